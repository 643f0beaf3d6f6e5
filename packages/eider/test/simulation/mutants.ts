/** Faults that the simulation has to find. Each is a mistake that somebody could make, or has made elsewhere. */

import type { Fault } from "./bundle.js";
import type { WorldKind } from "./simulate.js";
import type { Mode } from "./world.js";

export interface Mutant {
  readonly name: string;
  readonly mode: Mode;
  /** Whose bounded runs find it; default random schedules. */
  readonly scenario?: string;
  /** Only random ones of such worlds come to it. */
  readonly only?: WorldKind;
  readonly faults: readonly Fault[];
}

const APPEND = "packages/eider/src/commit/append.ts";
const CHECK = "packages/catalog/src/check.ts";
const COMMITS = "packages/catalog/src/local-commits.ts";
const LOG = "packages/eider/src/shared/log.ts";
const CHECKPOINTS = "packages/eider/src/shared/checkpoints.ts";
const SHARED = "packages/eider/src/shared/shared-catalog.ts";
const ORPHANS = "packages/eider/src/orphans.ts";
const COPY = "packages/eider/src/copy.ts";
const EXPIRE = "packages/eider/src/expire.ts";

export const MUTANTS: readonly Mutant[] = [
  ...(["local", "shared"] as const).map(
    (mode): Mutant => ({
      mode,
      scenario: "two consumers",
      name: `look at cursors before batches (${mode})`,
      faults: [
        {
          file: CHECK,
          find: "checkBatches(state, draft.operations) ??\n    checkCursors(state, draft.operations) ??",
          replace: "checkCursors(state, draft.operations) ??\n    checkBatches(state, draft.operations) ??",
        },
      ],
    }),
  ),
  ...(["local", "shared"] as const).map(
    (mode): Mutant => ({
      mode,
      scenario: "two replays",
      name: `take a reject whoever has taken it (${mode})`,
      faults: [
        { file: CHECK, find: "if (other !== undefined) {", replace: "if (other !== undefined && false) {" },
        {
          file: "packages/eider/src/commit/replay.ts",
          find: "if (replayedBy !== undefined && replayedBy !== batchId) {",
          replace: "if (replayedBy !== undefined && false) {",
        },
      ],
    }),
  ),
  {
    mode: "shared",
    scenario: "two replays",
    name: "leave the texts of purged rejects in the log",
    faults: [
      {
        file: SHARED,
        find: "await this.#log.scrub(rejects, signal);",
        replace: "",
      },
    ],
  },
  {
    mode: "shared",
    scenario: "a table replaced",
    name: "move cursors wherever they are",
    faults: [
      {
        file: "packages/catalog/src/check-batches.ts",
        find: "if (position !== from) {",
        replace: "if (position !== from && false) {",
      },
    ],
  },
  {
    mode: "local",
    scenario: "a lake taken back",
    name: "take a lake back whatever has come since",
    faults: [
      {
        file: "packages/eider/src/commit/rollback.ts",
        find: "...(name === undefined && { expectSnapshot: head })",
        replace: "",
      },
    ],
  },
  {
    mode: "local",
    name: "commit to a snapshot that was not expected",
    faults: [
      {
        file: CHECK,
        find: "if (draft.expectSnapshot !== undefined && draft.expectSnapshot !== head) {",
        replace: "if (draft.expectSnapshot !== undefined && draft.expectSnapshot > head) {",
      },
    ],
  },
  {
    mode: "local",
    name: "take parts of a source in any order",
    faults: [
      {
        file: "packages/catalog/src/check-batches.ts",
        find: "if (last !== undefined && from > last + 1n) {",
        replace: "if (last !== undefined && from < last) {",
      },
    ],
  },
  {
    mode: "local",
    scenario: "a table taken back",
    name: "take a table back to columns that it does not have",
    faults: [{ file: CHECK, find: "if (!then || !now || !sameSchema(then, now)) {", replace: "if (!then || !now) {" }],
  },
  {
    mode: "local",
    name: "delete files that only earlier snapshots name",
    faults: [
      {
        file: ORPHANS,
        find: "const referenced = await catalog.referencedKeys(page.map((object) => object.key));",
        replace:
          "const referenced = new Set<string>(); for (const { id } of await catalog.tables()) for (const { key } of await catalog.files(id)) referenced.add(key);",
      },
    ],
  },
  {
    mode: "local",
    name: "end what lies behind a cursor",
    faults: [
      {
        file: EXPIRE,
        find: "Math.min(await firstKept(catalog, head, now, retain), needed)",
        replace: "Math.max(await firstKept(catalog, head, now, retain), Math.min(0, needed))",
      },
    ],
  },
  {
    mode: "local",
    name: "let go of what queries that run still read",
    faults: [
      {
        file: EXPIRE,
        find: "const unusedSince = waitMs === 0 ?",
        replace: "const unusedSince = waitMs >= 0 ?",
      },
    ],
  },
  {
    mode: "shared",
    scenario: "a tag that keeps a snapshot",
    name: "let go of what a tag keeps",
    faults: [
      {
        file: "packages/catalog/src/sqlite-expiry.ts",
        find: "SELECT 1 FROM (SELECT snapshot FROM tags UNION ALL SELECT snapshot FROM ended_tags) p",
        replace: "SELECT 1 FROM (SELECT snapshot FROM ended_tags) p",
      },
    ],
  },
  {
    mode: "local",
    scenario: "a lake moved",
    name: "move a lake and go on where it was",
    faults: [
      { file: COPY, find: "if (await catalog.retire(copy.content.snapshot, mark?.id)) {", replace: "if (copy) {" },
    ],
  },
  {
    mode: "local",
    scenario: "a lake copied",
    name: "copy only files that are live",
    faults: [
      {
        file: "packages/catalog/src/checkpoint.ts",
        find: "SELECT key, bytes, sha256 FROM files ORDER BY id",
        replace:
          "SELECT key, bytes, sha256 FROM files WHERE table_no IN (SELECT no FROM tables WHERE dropped_in IS NULL)",
      },
    ],
  },
  {
    mode: "shared",
    only: "restored",
    name: "go on though the store was set back to a backup",
    faults: [
      {
        file: "packages/eider/src/shared/same-log.ts",
        find: "if (timer.now() - this.#lookedAt >= everyMs) await this.assert();",
        replace: "",
      },
    ],
  },
  {
    mode: "shared",
    only: "mixed",
    name: "read what a newer version has written",
    faults: [{ file: "packages/catalog/src/entry.ts", find: "if (minReader > READER) {", replace: "if (false) {" }],
  },
  ...(["local", "shared"] as const).map(
    (mode): Mutant => ({
      mode,
      scenario: "two folds",
      name: `skip the liveness check (${mode})`,
      faults: [
        {
          file: CHECK,
          find: "if (!extent || this.#removed.has(key) || this.#rolledBack.has(id)) {",
          replace: "if (!extent) return undefined; if (false) {",
        },
        { file: CHECK, find: "if (added === rows) return undefined;", replace: "return undefined;" },
      ],
    }),
  ),
  {
    mode: "shared",
    scenario: "a group out of patience",
    name: "delete the files of a group whose outcome is unknown",
    faults: [
      {
        file: SHARED,
        find: 'isCommitted(outcome) ? settled : "again"',
        replace:
          'isCommitted(outcome) ? (drafts.length > 1 ? { failure: new CatalogError("catalog_io", "failed", { retryable: true }) } : settled) : "again"',
      },
    ],
  },
  {
    mode: "shared",
    scenario: "a tag of another host",
    name: "look for tags in an index that may be old",
    faults: [
      { file: SHARED, find: 'if (typeof at !== "number" || at >', replace: 'if (typeof at === "number" && at >' },
    ],
  },
  {
    mode: "shared",
    scenario: "parts of a source on two hosts",
    name: "refuse what comes too early by an index that may be old",
    faults: [{ file: SHARED, find: "if (!outcomes.some(mayBeAllowedLater)) return false;", replace: "return false;" }],
  },
  {
    mode: "local",
    scenario: "two rollbacks at once",
    name: "plan a rollback on whatever is there meanwhile",
    faults: [
      {
        file: "packages/eider/src/commit/rollback.ts",
        find: "const now = await catalog.tables(head);",
        replace: "const now = await catalog.tables();",
      },
    ],
  },
  {
    mode: "local",
    name: "commit a transaction step by step",
    faults: [
      {
        file: "packages/eider/src/transaction.ts",
        find: "const result = await catalog.commit(draft);",
        replace:
          "const { intent: _, ...rest } = draft; await catalog.commit({ ...rest, operations: draft.operations.slice(0, -1) }); " +
          "const result = await catalog.commit({ ...draft, operations: draft.operations.slice(-1) });",
      },
    ],
  },
  {
    mode: "local",
    name: "skip the floor",
    faults: [
      { file: CHECK, find: "if (oldest && oldest.base < this.#floor) {", replace: "if (oldest && oldest.base < 0) {" },
      {
        file: "packages/catalog/src/sqlite-commit.ts",
        find: 'if (entry.floor > floor) driver.run("DELETE FROM intents WHERE base < ?", entry.floor);',
        replace: "",
      },
    ],
  },
  {
    mode: "local",
    scenario: "a slow writer",
    name: "delete what was listed before the floor was raised",
    faults: [
      {
        file: ORPHANS,
        find: "const orphaned = await unreferenced(catalog, found);",
        replace: "const orphaned = found;",
      },
    ],
  },
  {
    mode: "local",
    name: "settle a failed COMMIT by the batch id instead of the entry id",
    faults: [
      {
        file: COMMITS,
        find: "if (settled) return settled;",
        replace: "",
      },
    ],
  },
  {
    mode: "local",
    name: "go on from what the last transaction left, whoever has written since",
    faults: [{ file: COMMITS, find: "left.version === version &&", replace: "" }],
  },
  {
    mode: "local",
    name: "take a failed COMMIT for one that had no effect",
    faults: [
      {
        file: "packages/catalog/src/sqlite-connection.ts",
        find: "if (isDiskFull(error)) throw error;",
        replace: "throw toCatalogError(error, this.#name);",
      },
    ],
  },
  {
    mode: "local",
    name: "let one member of a group take the others down",
    faults: [
      {
        file: "packages/catalog/src/sqlite-commit.ts",
        find: "const refused = refusal(group, draft) ?? admit(draft);",
        replace:
          'const refused = refusal(group, draft) ?? admit(draft); if (refused && "failure" in refused) throw refused.failure;',
      },
      { file: COMMITS, find: "if (tries === 0 && members.length > 1 && !isBusy(error))", replace: "if (false)" },
    ],
  },
  {
    mode: "local",
    name: "hash what the table makes of the input",
    faults: [
      {
        file: "packages/eider/src/commit/read-rows.ts",
        find: "return { schema, contentHash: hash.digest(), rows, rejects, ignoredFields };",
        replace:
          "hash.update(JSON.stringify(schema)); return { schema, contentHash: hash.digest(), rows, rejects, ignoredFields };",
      },
    ],
  },
  {
    mode: "local",
    name: "trust a put that got no answer",
    faults: [
      {
        file: "packages/eider/src/commit/stage.ts",
        find: "if ((await this.#options.store.head(key))?.size === bytes) return true;",
        replace: "return true;",
      },
    ],
  },
  {
    mode: "shared",
    name: "compare the writer instead of the entry id",
    faults: [
      {
        file: LOG,
        find: "won: entryFacts(found).id === id",
        replace: "won: entryFacts(found).writer === entryFacts(bytes).writer",
      },
    ],
  },
  {
    mode: "shared",
    name: "skip the floor on a shared lake",
    faults: [
      { file: CHECK, find: "if (oldest && oldest.base < this.#floor) {", replace: "if (oldest && oldest.base < 0) {" },
    ],
  },
  {
    mode: "shared",
    name: "take every refused put for a loss",
    faults: [
      { file: LOG, find: "won: entryFacts(found).id === id", replace: "won: entryFacts(found).id === id && false" },
    ],
  },
  {
    mode: "shared",
    name: "report failure though the put may still take effect",
    faults: [
      {
        file: LOG,
        find: "if (timer.now() >= deadline) {",
        replace: "if (failure) throw failure; if (timer.now() >= deadline) {",
      },
    ],
  },
  {
    mode: "shared",
    name: "report failure when patience is at its end",
    faults: [{ file: LOG, find: '"commit_unknown",', replace: '"catalog_io",' }],
  },
  {
    mode: "shared",
    name: "report failure when the index cannot follow",
    faults: [
      {
        file: SHARED,
        find: 'this.#options.logger?.warn?.("a commit could not be entered into this host\'s index yet", { error });',
        replace: "throw error;",
      },
    ],
  },
  {
    mode: "shared",
    name: "check the members of an entry without those before them",
    faults: [
      {
        file: "packages/catalog/src/sqlite-commit.ts",
        find: "if (drafts.length > 1) group.add(draft.operations, time);",
        replace: "",
      },
    ],
  },
  {
    mode: "shared",
    name: "tell what hung on an entry that was lost",
    faults: [
      {
        file: SHARED,
        find: 'return outcomes.map((outcome, i) => (stands(outcome, i) ? outcome : "again"));',
        replace: 'return outcomes.map((outcome) => (isCommitted(outcome) ? "again" : outcome));',
      },
    ],
  },
  {
    mode: "shared",
    name: "put without a condition",
    faults: [{ file: LOG, find: '{ ifAbsent: true, retries: "none" }', replace: '{ retries: "none" }' }],
  },
  {
    mode: "shared",
    name: "delete instead of stub",
    faults: [
      {
        file: LOG,
        find: "await this.#options.store.put(key, stub);",
        replace: "await this.#options.store.delete(key);",
      },
    ],
  },
  {
    mode: "shared",
    scenario: "out of patience",
    name: "delete what was staged though the outcome is unknown",
    faults: [
      {
        file: APPEND,
        find: "settled = isUnknown(error);",
        replace: "settled = false;",
      },
    ],
  },
  {
    mode: "local",
    scenario: "a slow writer",
    name: "delete orphans without raising the floor",
    faults: [
      {
        file: ORPHANS,
        find: 'if (floor > (await catalog.head()).floor) await catalog.commit({ operations: [{ op: "floor", floor }] });',
        replace: "",
      },
    ],
  },
  {
    mode: "shared",
    name: "stub what only one checkpoint has",
    faults: [
      {
        file: CHECKPOINTS,
        find: "(await listCheckpoints(store))[KEPT - 1]",
        replace: "(await listCheckpoints(store))[0]",
      },
    ],
  },
  {
    mode: "shared",
    scenario: "two queries of a process",
    name: "let a query join a refresh that has looked already",
    faults: [
      {
        file: SHARED,
        find: "this.#nextRefresh ??= this.#refreshing.then(again, again);",
        replace: "return this.#refreshing;",
      },
    ],
  },
];
