/**
 * What must hold of any history: an acknowledged append is there exactly once, one whose fate is unknown at most once,
 * one that failed never, not even later; and every process sees, at every snapshot, what the log says.
 */

import { BatchConflictError, CatalogError, StoreError } from "@eider/core";
import { decodeEntry, draftsOf, type Entry } from "../../../catalog/src/entry.js";
import { decodeStub, isStub } from "../../../catalog/src/stub.js";
import type { Event } from "./history.js";
import { checkFeed } from "./oracle-feed.js";
import { sha256Of } from "./reader.js";
import type { SimBucket } from "./sim-store.js";
import { rowsOf, type Work } from "./workload.js";
import type { Opened, World } from "./world.js";

/** What the log says of one batch of one table. */
interface Committed {
  readonly entry: Entry;
  /** Of the append that made it. */
  readonly tag: string;
  readonly table: string;
  readonly batch: string;
  readonly rows: number;
  readonly keys: readonly string[];
  readonly hash: string;
}

/** Errors that faults of the store or the disk may lead to: all say that trying again helps. */
const EXPECTED: ReadonlySet<string> = new Set([
  "sim_lost",
  "sim_busy",
  "put_unsettled",
  "staged_file_lost",
  "commit_unknown",
  "catalog_io",
]);

/** What is wrong; empty if nothing is. */
export async function judge(world: World): Promise<string[]> {
  const problems: string[] = [];
  const log = readLog(world);
  const committed = checkLog(log, problems);
  checkHistory(world.history, committed, problems);
  checkFeed(log, problems);
  checkQueries(world, log, committed, problems);
  if (world.bucket.overwritten.length > 0) problems.push(`overwritten: ${world.bucket.overwritten.join(", ")}`);
  if (world.mode === "shared") checkStubs(world, log, problems);
  try {
    await world.inspect((opened) => checkAnswers(opened, world.bucket, log, committed, problems));
  } catch (error) {
    problems.push(`the lake cannot be read: ${String(error)}`);
  }
  return problems;
}

function readLog({ mode, hosts, bucket }: World): Entry[] {
  if (mode === "shared") {
    return [...bucket.entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, bytes]) => decodeEntry(bytes));
  }
  const { real } = hosts[0]!.disk;
  // Nobody may have come so far as to make it.
  if (!real.get("SELECT 1 FROM sqlite_schema WHERE name = 'entries'")) return [];
  return real.all<{ n: number; header: Uint8Array }>("SELECT n, header FROM entries ORDER BY n").map((entry) => {
    // A rollback adds copies, which no receipt is of.
    const blobs = real.all<{ data: Uint8Array }>(
      `SELECT h.data FROM hot_batches h
       JOIN receipts r ON r.table_no = h.table_no AND r.batch = h.batch AND r.snapshot = h.added_in
       WHERE h.added_in = ? ORDER BY h.id`,
      entry.n,
    );
    return decodeEntry(Buffer.concat([entry.header, ...blobs.map(({ data }) => data)]));
  });
}

/** Either of two checkpoints, and the entries after it, are the whole lake; and no number is free again. */
function checkStubs({ bucket }: World, log: readonly Entry[], problems: string[]): void {
  const keys = bucket.keys("_eider/log/");
  if (keys.length !== log.length) problems.push(`of ${log.length} entries ${keys.length} are there`);
  const checkpoints = bucket.keys("_eider/checkpoint/").map((key) => Number(key.split("/")[2]!.slice(0, 20)));
  const older = checkpoints.at(-2) ?? 0;
  for (const key of keys) {
    const { bytes } = bucket.objects.get(key)!;
    if (isStub(bytes) && decodeStub(bytes).n > older) problems.push(`${key} is a stub, and is needed after ${older}`);
  }
}

function checkLog(log: readonly Entry[], problems: string[]): Committed[] {
  const committed: Committed[] = [];
  const seen = new Set<string>();
  log.forEach((entry, i) => {
    const before = log[i - 1];
    if (entry.n !== i + 1) problems.push(`entry ${i + 1} has number ${entry.n}`);
    if (entry.prev !== (before?.id ?? "")) problems.push(`entry ${entry.n} follows another one than entry ${i}`);
    if (before && entry.time < before.time) problems.push(`entry ${entry.n} is older than entry ${i}`);
    if (before && entry.floor < before.floor) problems.push(`the floor falls at entry ${entry.n}`);
    const operations = draftsOf(entry).flatMap((draft) =>
      draft.operations.map((operation) => ({ operation, tag: draft.meta.tag ?? "" })),
    );
    for (const { operation, tag } of operations) {
      if (operation.op !== "append") continue;
      const { table, batch, rows, files, hash } = operation;
      const key = `${table} ${batch}`;
      if (seen.has(key)) problems.push(`batch ${batch} of table ${table} is committed again in entry ${entry.n}`);
      seen.add(key);
      if (files.some(({ base }) => base < entry.floor))
        problems.push(`entry ${entry.n} has files from below its floor`);
      committed.push({ entry, tag, table, batch, rows, hash, keys: files.map((file) => file.key) });
    }
  });
  return committed;
}

function checkHistory(history: readonly Event[], committed: readonly Committed[], problems: string[]): void {
  const made = new Map<string, Committed[]>();
  for (const one of committed) {
    made.set(one.tag, [...(made.get(one.tag) ?? []), one]);
  }
  for (const event of history) {
    const { work, tag, outcome, result } = event;
    const wrong = (what: string): void => void problems.push(`${tag} (${work.kind}, ${outcome}): ${what}`);
    const reason = event.error && unexpected(event, history, committed);
    if (reason) wrong(`${reason}: ${String(event.error)}`);
    if (work.kind !== "append" && work.kind !== "transaction" && work.kind !== "consume") continue;
    const own = made.get(tag) ?? [];
    const parts = work.kind === "transaction" ? 2 : 1;
    if (own.length > 0 && (own.length !== parts || own.some(({ entry }) => entry !== own[0]!.entry))) {
      wrong(`${own.length} batches of it are committed, in entries ${own.map(({ entry }) => entry.n).join()}`);
    }
    if (outcome === "fail" && own.length > 0) wrong(`it failed, and is in entry ${own[0]!.entry.n}`);
    for (const one of own) {
      if (work.kind === "consume") continue;
      if (one.batch !== nameOf(work)) wrong(`it is committed as batch ${one.batch}`);
      if (one.rows !== rowsOf(work).length) wrong(`it is committed with ${one.rows} rows`);
    }
    if (outcome !== "ok" || !result) continue;
    const { receipt, status } = result;
    const found = committed.find(
      ({ entry, batch, hash }) =>
        entry.n === receipt.snapshot && batch === receipt.batchId && hash === receipt.contentHash,
    );
    if (!found) wrong(`its receipt is of entry ${receipt.snapshot}, which does not have it`);
    if (status === "committed" && own[0]?.entry.n !== receipt.snapshot) wrong("it was acknowledged, and is not there");
    if (status === "duplicate" && own.length > 0)
      wrong("it was told to be a duplicate of what it has committed itself");
    // What was acknowledged before this one began comes before it.
    const later = history.find(
      (other) =>
        other.outcome === "ok" &&
        other.result?.status === "committed" &&
        (other.ended ?? Number.POSITIVE_INFINITY) < event.started &&
        other.result.receipt.snapshot > receipt.snapshot,
    );
    if (status === "committed" && later) wrong(`it comes before ${later.tag}, which was there first`);
  }
}

type Batch = Extract<Work, { kind: "append" | "transaction" }>;

function nameOf({ kind, batch }: Batch): string {
  return kind === "append" ? `b${batch}` : `x${batch}`;
}

/** Whether a piece of work is another content under the same batch id. */
function isOther(a: Work, b: Batch): boolean {
  if (a.kind !== "append" && a.kind !== "transaction") return false;
  const sameTable = a.kind === "transaction" || b.kind === "transaction" || a.table === b.table;
  return nameOf(a) === nameOf(b) && a.content !== b.content && sameTable;
}

/** Why an error should not have come; undefined if it may. */
function unexpected(event: Event, history: readonly Event[], committed: readonly Committed[]): string | undefined {
  const { error, work } = event;
  // One table of two may be another one by now.
  const dropped = history.some((other) => other.work.kind === "drop");
  if (error instanceof BatchConflictError && (work.kind === "append" || work.kind === "transaction")) {
    if (error.code === "transaction_conflict" && dropped && work.kind === "transaction") return undefined;
    const other = history.some(({ work: w }) => w.kind === work.kind && isOther(w, work));
    const there = committed.some((one) => one.batch === nameOf(work));
    return other && there ? undefined : "a conflict with nothing";
  }
  // Two consumers take different changes for the next one only where the table is another one by now.
  if (error instanceof CatalogError && error.code === "cursor_moved" && dropped && work.kind === "consume") {
    return undefined;
  }
  const told = (error instanceof StoreError || error instanceof CatalogError) && error.retryable;
  if (told && EXPECTED.has(error.code)) return undefined;
  return "an error that nobody should see";
}

function checkQueries(
  { history, stalenessMs }: World,
  log: readonly Entry[],
  committed: readonly Committed[],
  problems: string[],
): void {
  for (const { tag, seen, process, started, startedMs } of history) {
    if (!seen) continue;
    const { snapshot } = seen;
    for (const [table, batches] of Object.entries(seen.batches)) {
      const expected = committed
        .filter((one) => one.table === table && one.entry.n <= snapshot)
        .flatMap(({ batch, keys }) => keys.map(() => batch));
      if (expected.join() !== batches.join()) {
        problems.push(
          `${tag}: table ${table} at snapshot ${snapshot} has ${expected.join()}, seen was ${batches.join()}`,
        );
      }
    }
    const acknowledged = Math.max(
      0,
      ...history
        .filter(({ outcome, ended }) => outcome === "ok" && (ended ?? Number.POSITIVE_INFINITY) < started)
        // What others have committed may be overlooked for a while, what the same process was told of may not.
        .filter((other) => other.process === process || (other.endedMs ?? 0) + stalenessMs <= startedMs)
        .map(({ result }) => result?.receipt.snapshot ?? 0),
    );
    if (snapshot < acknowledged)
      problems.push(`${tag}: saw snapshot ${snapshot} after ${acknowledged} was acknowledged`);
    if (snapshot > log.length) problems.push(`${tag}: saw snapshot ${snapshot}, which does not exist`);
  }
}

/** What a process says of every snapshot, against the log. */
async function checkAnswers(
  { catalog }: Opened,
  { objects }: SimBucket,
  log: readonly Entry[],
  committed: readonly Committed[],
  problems: string[],
): Promise<void> {
  const { snapshot: head } = await catalog.head();
  if (head !== log.length) problems.push(`the head is ${head}, the log has ${log.length} entries`);
  const named = new Map<string, string>();
  for (let n = 1; n <= Math.min(head, log.length); n++) {
    const live = liveTables(log.slice(0, n));
    const tables = await catalog.tables(n);
    const ids = tables.map(({ id }) => id).sort();
    if (ids.join() !== [...live].sort().join()) problems.push(`snapshot ${n} has other tables`);
    for (const table of tables) {
      const batches = committed.filter((one) => one.table === table.id && one.entry.n <= n);
      const rows = batches.reduce((sum, one) => sum + one.rows, 0);
      if (table.rows !== rows) problems.push(`${table.name} has ${table.rows} rows at ${n}, the log ${rows}`);
      const files = await catalog.files(table.id, n, { statistics: false });
      if (files.map(({ key }) => key).join() !== batches.flatMap((one) => one.keys).join())
        problems.push(`${table.name} has other files at ${n}`);
      for (const { key, sha256 } of files) named.set(key, sha256);
    }
  }
  for (const [key, sha256] of named) {
    const object = objects.get(key);
    if (!object) problems.push(`${key} is gone`);
    else if (sha256Of(object.bytes) !== sha256) problems.push(`${key} is not what was committed`);
  }
  for (const { table, batch, entry, hash } of committed) {
    const receipt = await catalog.receipt(table, batch);
    if (receipt?.snapshot !== entry.n || receipt.contentHash !== hash) problems.push(`no receipt for ${batch}`);
  }
}

function liveTables(log: readonly Entry[]): Set<string> {
  const live = new Set<string>();
  for (const { operations } of log) {
    for (const operation of operations) {
      if (operation.op === "schema" && operation.create) live.add(operation.table);
      if (operation.op === "drop") live.delete(operation.table);
    }
  }
  return live;
}
