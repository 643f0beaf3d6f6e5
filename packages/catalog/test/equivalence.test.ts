/** Random drafts through both states: the same verdicts, and at every snapshot the same lake. */

import { BatchConflictError, InvalidInputError, nameKey } from "@eider/core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { apply, floorAfter } from "../src/apply.js";
import type { CommitResult, Draft, HotBatch, Operation, Receipt } from "../src/catalog.js";
import { check } from "../src/check.js";
import { decodeEntry } from "../src/entry.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { openSqlite, type SqliteDriver } from "../src/sqlite-driver.js";
import { append, create, dataFile, FOOTER, hot, part, rearrange, SCHEMA, statistics } from "./fixtures.js";
import { MemoryState } from "./memory-state.js";

const BATCHES = ["b1", "b2", "b3", "b4", "__proto__", "é", "a\0b", "😀"];

const table = fc.constantFrom("t1", "t1", "t1", "t2", "t3");
const batch = fc.constantFrom(...BATCHES);
const hash = fc.constantFrom("rows:1", "rows:1", "rows:1", "rows:2");
const small = fc.nat(3);

const bounds = fc.option(fc.tuple(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), fc.uint8Array({ maxLength: 4 })), {
  nil: undefined,
});
const partition = fc.oneof(
  fc.constantFrom(null, "", "5", 5n, -(2n ** 63n), 2n ** 64n, 0.1, -0, true, false, "i5", "__proto__", "'); COPY"),
  fc.string({ unit: "binary" }),
);

/** Versions and bases are relative to the state, mostly right; see `toOperation`. Now and then a key comes again. */
const operation = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("create" as const), table, name: fc.constantFrom("a", "A", "b") }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("evolve" as const), table, ahead: fc.constantFrom(1, 1, 1, 0, 2) }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      table,
      batch,
      hash,
      ahead: fc.constantFrom(0, 0, 0, 0, 1),
      files: fc.array(fc.record({ rows: small, age: fc.nat(4), bounds, partition, old: fc.nat(3) }), { maxLength: 2 }),
      reject: fc.option(fc.string({ unit: "grapheme" }), { nil: undefined }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("replay" as const),
      table: fc.constant("t1"),
      batch: fc.constantFrom("r1", "r2", "r3"),
      picks: fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 2 }),
      extra: fc.constantFrom(0, 0, 0, 0, 1),
      reject: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("purge" as const),
      table: fc.constant("t1"),
      picks: fc.uniqueArray(fc.nat(2), { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("hot" as const),
      table,
      batch,
      hash,
      rows: fc.integer({ min: 1, max: 3 }),
      low: fc.bigInt({ min: -5n, max: 5n }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("rearrange" as const),
      table,
      picks: fc.array(fc.nat(9), { maxLength: 3 }),
      miscounts: fc.constantFrom(0, 0, 0, 0, 0, 1),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("drop" as const), table }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("floor" as const), floor: fc.nat(8) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("part" as const),
      table,
      ahead: fc.constantFrom(1, 1, 1, 0, -1, 2),
      length: fc.constantFrom(1, 1, 2),
      hash,
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("rollback" as const), table, back: fc.nat(9) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("cursor" as const),
      from: fc.constantFrom(undefined, undefined, undefined, "7"),
      back: fc.constantFrom(0, 1, 2, -1, undefined),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("expire" as const),
      back: fc.integer({ min: -1, max: 8 }),
      unused: fc.nat(9),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("view" as const),
      name: fc.constantFrom("a", "A", "b", "v", "v", "V"),
      sql: fc.constantFrom("SELECT 1", "SELECT 2", undefined),
      ahead: fc.constantFrom(0, 0, 0, 0, 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("tag" as const), back: fc.constantFrom(0, 1, -1, undefined) }),
  },
);
type PlannedOperation = typeof operation extends fc.Arbitrary<infer O> ? O : never;

const drafts = fc
  .array(
    fc.record({
      operations: fc.oneof(
        { weight: 3, arbitrary: operation.map((one) => [one]) },
        { weight: 1, arbitrary: fc.array(operation, { minLength: 2, maxLength: 3 }) },
      ),
      expect: fc.constantFrom(...Array<undefined>(15).fill(undefined), 1, 2, 3),
      time: fc.nat(1000),
    }),
    { minLength: 12, maxLength: 24 },
  )
  .map((plans): Plan[] => [
    { operations: [{ kind: "create", table: "t1", name: "a" }], expect: undefined, time: 500 },
    ...plans,
  ]);

interface Plan {
  readonly operations: readonly PlannedOperation[];
  readonly expect: number | undefined;
  readonly time: number;
}

function toDraft(plan: Plan, model: MemoryState, nextKey: () => string): Draft {
  const operations = plan.operations.map((planned) => toOperation(planned, model, nextKey));
  return { operations, ...(plan.expect !== undefined && { expectSnapshot: plan.expect }) };
}

function toOperation(planned: PlannedOperation, model: MemoryState, nextKey: () => string): Operation {
  switch (planned.kind) {
    case "create": {
      const { table: id, name } = planned;
      return create(id, name, { create: { name, folder: `${name}-${id}`, partitionBy: ["name"], orderBy: ["id"] } });
    }
    case "evolve": {
      const x = { id: 3, name: "x", type: { kind: "float64" as const }, nullable: true };
      const version = Math.max(2, (model.table(planned.table)?.schemaVersion ?? 0) + planned.ahead);
      return {
        op: "schema",
        table: planned.table,
        version,
        schema: { fields: [...SCHEMA.fields, x] },
        lastFieldId: 3,
      };
    }
    case "append": {
      const version = (model.table(planned.table)?.schemaVersion ?? 1) + planned.ahead;
      const files = planned.files.map(({ rows, age, bounds: both, partition: value, old }) =>
        dataFile(old === 0 ? "key-old" : nextKey(), {
          rows,
          base: Math.max(0, model.head().n - age),
          schemaVersion: version,
          partition: [value],
          columns: [
            statistics(1, both ? { min: both[0], max: both[0] } : {}),
            statistics(2, { ...(both && { min: both[1] }), maxExact: false, nullCount: rows }),
          ],
        }),
      );
      return append(planned.table, planned.batch, [], {
        hash: planned.hash,
        schemaVersion: version,
        files,
        rows: files.reduce((sum, file) => sum + file.rows, 0),
        rejects: planned.reject === undefined ? [] : [{ line: 1, code: "c", reason: "r", raw: planned.reject }],
      });
    }
    case "replay": {
      const { table: id, batch: batchId, picks, extra, reject } = planned;
      const rejects = reject ? [{ line: 1, code: "again", reason: "r", raw: "again" }] : [];
      const replays = pickRejects(model, id, picks);
      const rows = replays.length - rejects.length + extra;
      const more = {
        hash: "rows:replay",
        rejects,
        replays,
        schemaVersion: model.table(id)?.schemaVersion ?? 1,
      };
      return rows === 0 ? append(id, batchId, [], more) : hot(id, batchId, rows, more);
    }
    case "purge":
      return { op: "purge", table: planned.table, rejects: pickRejects(model, planned.table, planned.picks) };
    case "hot": {
      const { table: id, batch: batchId, rows, low } = planned;
      return hot(id, batchId, rows, {
        hash: planned.hash,
        schemaVersion: model.table(id)?.schemaVersion ?? 1,
        hot: { data: Buffer.from(`${batchId} ${low}`), bounds: [{ fieldId: 1, min: low, max: low + 2n }] },
      });
    }
    case "rearrange": {
      const { picks, miscounts } = planned;
      const { files, hotBatches } = model.parts(planned.table);
      // A pick may be of what was removed before, or be made twice.
      const removeHot = picks.flatMap((pick) => hotBatches[pick] ?? []);
      const removeFiles = picks.flatMap((pick) => files[pick] ?? []);
      const rows = [...removeHot, ...removeFiles].reduce((sum, part) => sum + part.rows, 0);
      const version = model.table(planned.table)?.schemaVersion ?? 1;
      return rearrange(planned.table, {
        removeHot: removeHot.length + removeFiles.length > 0 ? removeHot.map(({ name }) => name) : ["b1"],
        removeFiles: removeFiles.map(({ name }) => name),
        addFiles: [
          dataFile(nextKey(), {
            rows: rows + miscounts,
            footer: FOOTER,
            base: model.head().n,
            schemaVersion: version,
            partition: [null],
            columns: [statistics(1, { min: -5n, max: 7n }), statistics(2)],
          }),
        ],
      });
    }
    case "drop":
      return { op: "drop", table: planned.table };
    case "floor":
      return { op: "floor", floor: planned.floor };
    case "part": {
      const { table: id, ahead, length, hash: content } = planned;
      const first = Math.max(0, Number(model.mark(id, "s")?.last ?? 0) + ahead);
      const schemaVersion = model.table(id)?.schemaVersion ?? 1;
      return part(id, "s", first, first + length - 1, { hash: content, schemaVersion });
    }
    case "rollback":
      return { op: "rollback", table: planned.table, to: Math.max(1, model.head().n - planned.back) };
    case "cursor": {
      const to = planned.back === undefined ? undefined : String(Math.max(0, model.head().n - planned.back));
      return {
        op: "cursor",
        name: "c",
        from: planned.from ?? model.cursor("c") ?? "0",
        ...(to !== undefined && { to }),
      };
    }
    case "expire": {
      const { n } = model.head();
      return { op: "expire", before: Math.max(1, n - planned.back), unusedSince: Math.max(0, n - planned.unused) };
    }
    case "view": {
      const { name, sql, ahead } = planned;
      const found = model.viewByName(nameKey(name));
      const from = found === undefined && ahead + (sql === undefined ? 1 : 0) === 0 ? undefined : (found ?? 0) + ahead;
      return { op: "view", name, ...(from !== undefined && { from }), ...(sql !== undefined && { sql }) };
    }
    case "tag": {
      const snapshot = planned.back === undefined ? undefined : Math.max(1, model.head().n - planned.back);
      return { op: "tag", name: "v", ...(snapshot !== undefined && { snapshot }) };
    }
  }
}

/** Ids of rejects of the table; where it has none, of no reject. */
function pickRejects(model: MemoryState, table: string, picks: readonly number[]): string[] {
  const there = model.table(table) ? (model.rejects(table) as { id: string }[]) : [];
  return [...new Set(picks.map((pick) => there[pick % there.length]?.id ?? `9-${pick}`))];
}

/** What a commit came to, in words. */
async function outcome(commit: Promise<CommitResult>): Promise<string> {
  try {
    const result = await commit;
    return result.status === "stale" ? `stale ${result.reason}` : result.status;
  } catch (error) {
    if (error instanceof BatchConflictError) return `conflict ${error.code}`;
    if (error instanceof InvalidInputError) return `invalid ${error.code}`;
    throw error;
  }
}

/** The same on the model, which it changes. */
function modelOutcome(model: MemoryState, draft: Draft, time: number): string {
  const verdict = check(model, draft);
  switch (verdict.status) {
    case "stale":
      return `stale ${verdict.reason}`;
    case "invalid":
    case "conflict":
      return `${verdict.status} ${verdict.code}`;
    case "duplicate":
      return "duplicate";
    case "apply": {
      const head = model.head();
      model.apply(
        apply(model, {
          lake: "l",
          n: head.n + 1,
          id: `e${head.n + 1}`,
          prev: head.id,
          writer: "w",
          host: "h",
          time: Math.max(head.time, time),
          floor: floorAfter(head.floor, draft.operations),
          meta: {},
          operations: draft.operations,
        }),
      );
      return "committed";
    }
  }
}

const noDuplicateBatches = (draft: Draft): boolean => {
  const ids = draft.operations.flatMap((op) => (op.op === "append" ? [`${op.table} ${op.batch}`] : []));
  return new Set(ids).size === ids.length;
};

/** In pages of two batches, or of a snapshot with more. */
async function hotInPages(catalog: SqliteCatalog, id: string, at: number): Promise<HotBatch[]> {
  const all: HotBatch[] = [];
  for (;;) {
    const page = await catalog.hotBatches(id, { at, after: all.at(-1)?.addedIn ?? 0, limit: 2 });
    if (page.length === 0) break;
    all.push(...page);
  }
  expect(all).toEqual(await catalog.hotBatches(id, { at }));
  expect(await catalog.hotBatches(id, { at, data: false })).toEqual(
    all.map((batch) => ({ ...batch, bytes: batch.data.length, data: new Uint8Array(0) })),
  );
  return all;
}

async function tablesAt(catalog: SqliteCatalog, at: number): Promise<unknown[]> {
  const tables = await catalog.tables(at);
  return Promise.all(
    tables.map(async ({ folder, partitionBy, orderBy, lastFieldId, ...table }) => {
      const { id, name, rows } = table;
      const batches = await catalog.batches(id, { at });
      const byId = (a: { batchId: string }, b: { batchId: string }): number => (a.batchId < b.batchId ? -1 : 1);
      expect(await catalog.table(name.toUpperCase(), at)).toMatchObject({ id, rows });
      return {
        ...table,
        hot: await hotInPages(catalog, id, at),
        list: await catalog.files(id, at),
        batches: batches
          .map(({ batchId, contentHash, rows: n, snapshot }) => ({ batchId, hash: contentHash, rows: n, snapshot }))
          .sort(byId),
      };
    }),
  );
}

it("gives the state in memory and the state in SQLite the same verdicts and the same snapshots", async () => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(drafts, async (plans) => {
      let now = 0;
      let driver: SqliteDriver | undefined;
      await using catalog = await SqliteCatalog.open({
        path: ":memory:",
        clock: () => now,
        driver: (...args) => {
          driver = openSqlite(...args);
          return driver;
        },
      });
      const model = new MemoryState();
      const blobs: Uint8Array[][] = [];
      let keys = 0;
      for (const plan of plans) {
        const draft = toDraft(plan, model, () => `key-${++keys}`);
        if (!noDuplicateBatches(draft)) continue;
        now = plan.time;
        const expected = modelOutcome(model, draft, now);
        // The catalog lets go of those of ended snapshots.
        if (expected === "committed") {
          blobs.push(draft.operations.flatMap((op) => (op.op === "append" && op.hot ? [op.hot.data] : [])));
        }
        expect(await outcome(catalog.commit(draft))).toBe(expected);
        seen.set(expected, (seen.get(expected) ?? 0) + 1);
      }
      const { n, time, floor } = model.head();
      expect(await catalog.head()).toEqual({ snapshot: n, time, floor });
      const readable = model.readable();
      const { before } = model.expiry();
      for (let at = 0; at <= n; at++) {
        const expired = expect.objectContaining({ code: "snapshot_expired" });
        const ended = at > 0 && at < before && !model.isTagged(at);
        const resolved = catalog.resolveSnapshot(at);
        if (ended) await expect(resolved).rejects.toEqual(expired);
        else expect(await resolved).toBe(at);
        if (at > 0 && !readable.includes(at)) {
          await expect(catalog.tables(at)).rejects.toEqual(expired);
          continue;
        }
        const expected = model.tablesAt(at) as { batches: { batchId: string }[] }[];
        for (const { batches } of expected) batches.sort((a, b) => (a.batchId < b.batchId ? -1 : 1));
        expect(await tablesAt(catalog, at)).toEqual(expected);
        expect(await catalog.views(at)).toEqual(model.viewsAt(at));
      }
      const all = Array.from({ length: keys }, (_, i) => `key-${i + 1}`);
      expect([...(await catalog.unusedKeys([...all, "none"]))].sort()).toEqual(
        model
          .unusedKeys()
          .filter((key) => key !== "key-old")
          .sort(),
      );
      expect((await catalog.cursors()).map(({ name, position }) => [name, position])).toEqual([...model.cursors]);
      expect((await catalog.tags()).map((tag) => [tag.name, tag.snapshot])).toEqual([...model.tags]);
      for (const id of model.tableIds()) {
        expect(await catalog.rejects(id)).toEqual(model.rejects(id));
        const mark = model.mark(id, "s");
        expect((await catalog.sourceMark(id, "s"))?.last).toBe(mark?.last);
        for (const batchId of BATCHES) {
          const record = model.batch(id, batchId);
          const receipt: Receipt | undefined = record && {
            table: model.table(id)!.name,
            batchId,
            snapshot: record.snapshot,
            rows: record.rows,
            rejected: record.rejected,
            contentHash: record.hash,
            committedAt: new Date(record.time).toISOString(),
          };
          expect(await catalog.receipt(id, batchId)).toEqual(receipt);
        }
      }
      // The log alone leads to the same state again: entries are dense, chained, and valid where they stand.
      const replayed = new MemoryState();
      for (const row of driver!.all<{ n: number; header: Uint8Array }>("SELECT n, header FROM entries ORDER BY n")) {
        const entry = decodeEntry(Buffer.concat([row.header, ...blobs[row.n - 1]!]));
        expect([entry.n, entry.prev]).toEqual([replayed.head().n + 1, replayed.head().id]);
        expect(check(replayed, entry)).toEqual({ status: "apply" });
        replayed.apply(apply(replayed, entry));
      }
      for (let at = 0; at <= n; at++) {
        expect(replayed.tablesAt(at)).toEqual(model.tablesAt(at));
        expect(replayed.viewsAt(at)).toEqual(model.viewsAt(at));
      }
      for (const id of model.tableIds()) expect(replayed.rejects(id)).toEqual(model.rejects(id));
    }),
    { numRuns: 180 },
  );

  // A generator that never reaches an outcome proves nothing about it.
  for (const kind of [
    "committed",
    "duplicate",
    "conflict batch_conflict",
    "conflict reject_replayed",
    "conflict transaction_conflict",
    "stale table_exists",
    "stale table_missing",
    "stale schema",
    "stale floor",
    "stale removed",
    "stale snapshot",
    "invalid bad_file",
    "invalid bad_rearrangement",
    "invalid bad_floor",
    "stale cursor",
    "stale sequence",
    "conflict sequence_overlap",
    "invalid bad_position",
    "invalid bad_rollback",
    "invalid bad_tag",
    "invalid reject_not_found",
    "invalid reject_purged",
    "invalid replay_rows",
    "stale expired",
    "invalid bad_expiry",
    "stale view",
    "invalid name_taken",
  ]) {
    expect(seen.get(kind) ?? 0, kind).toBeGreaterThan(0);
  }
});
