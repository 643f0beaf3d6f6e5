/** The changes of a table as a feed. */

import {
  type Catalog,
  parsePosition,
  type Receipt,
  START,
  type TableChange,
  type TableInfo,
  type Timer,
} from "@eider/catalog";
import { CatalogError, InvalidInputError, NotFoundError } from "@eider/core";
import { batchQuery, type Query, type QueryOptions, snapshotOf } from "@eider/query";
import type { TableHost } from "./table.js";

export interface FeedOptions {
  /** Only what lies behind: the `position` of a change or of a cursor. Default: from the beginning. */
  readonly after?: string;
  /** Ends behind a snapshot, whatever `follow` says: its number, a tag or an instant. Default: the head when the feed begins. */
  readonly until?: number | string | Date;
  /** Waits for what is committed next, in place of ending. It ends when the table is dropped. */
  readonly follow?: boolean;
  /** Milliseconds between two looks for something new. Default 100, on shared lakes 1000, each of which is a GET. */
  readonly pollMs?: number;
  /** Ends the feed with its reason. */
  readonly signal?: AbortSignal;
}

/** One step of a feed. More kinds come with the operations that make them. */
export type Change = AppendChange | RollbackChange;

interface CommonChange {
  /** Behind this change: for `changes({ after })`, and for cursors. */
  readonly position: string;
  readonly snapshot: number;
  /** Of the commit. */
  readonly meta: Readonly<Record<string, string>>;
}

/** A batch that was committed. */
export interface AppendChange extends CommonChange {
  readonly kind: "append";
  readonly batchId: string;
  readonly receipt: Receipt;
  /** Its rows as they were committed, read when the query is used. */
  rows<T = Record<string, unknown>>(options?: Pick<QueryOptions, "values" | "signal" | "timeoutMs">): Query<T>;
}

/** The table went back: its rows are those of snapshot `to` again. */
export interface RollbackChange extends CommonChange {
  readonly kind: "rollback";
  readonly to: number;
}

const POLL_MS = { local: 100, shared: 1000 } as const;
/** Snapshots looked at in one step. */
const PAGE = 256;

export async function* feed(
  host: TableHost,
  name: string,
  options: FeedOptions,
): AsyncGenerator<Change, void, undefined> {
  const { after = START, follow = false, signal } = options;
  const { catalog, timer } = host.open;
  const { snapshot: first } = parsePosition(after);
  const end = await host.run(async () => {
    await assertReached(catalog, first);
    return endOf(catalog, options);
  });
  const pollMs = options.pollMs ?? POLL_MS[catalog.kind];
  let table: TableInfo | undefined;
  let position = after;
  for (let seen = -1; ; ) {
    signal?.throwIfAborted();
    const step = await host.run(async () => {
      const head = end ?? (await headOf(catalog));
      if (head === seen) return { head, changes: [], dropped: false };
      table ??= await findFed(catalog, name, head, first);
      if (!table) return { head, changes: [], dropped: false };
      const changes = await catalog.changes(table.id, position, { until: head, limit: PAGE });
      return { head, changes, dropped: (await catalog.table(name, head))?.id !== table.id };
    });
    if (!table && !follow) throw new NotFoundError("table_not_found", `there is no table ${name}`, { subject: name });
    for (const change of step.changes) {
      signal?.throwIfAborted();
      position = change.position;
      yield toChange(host, name, change);
    }
    // Behind a page may be another one.
    if (step.changes.length > 0) continue;
    if (step.dropped || end !== undefined) return;
    seen = step.head;
    await pause(timer, pollMs, signal);
  }
}

/**
 * The table that has the name, unless its consumer knows another one by it.
 * @throws CatalogError `table_replaced`
 */
async function findFed(catalog: Catalog, name: string, head: number, after: number): Promise<TableInfo | undefined> {
  const table = await catalog.table(name, head);
  if (!table || after === 0 || after >= table.createdIn) return table;
  let earlier: TableInfo | undefined;
  try {
    earlier = await catalog.table(name, after);
  } catch (error) {
    if (!(error instanceof NotFoundError && error.code === "snapshot_expired")) throw error;
  }
  if (!earlier) return table;
  throw new CatalogError(
    "table_replaced",
    `the position is in an earlier table ${name}, which was dropped: nothing more is told of that one. What was derived from it ` +
      `is its; the table that has the name now begins at position "${START}"`,
    { subject: name },
  );
}

/**
 * A position that the lake has not come to yet is of another one, or of a history that was lost with a disk: what is
 * committed up to there would be skipped.
 */
async function assertReached(catalog: Catalog, snapshot: number): Promise<void> {
  if (snapshot <= (await catalog.head()).snapshot) return;
  const head = await headOf(catalog);
  if (snapshot <= head) return;
  throw new InvalidInputError(
    "bad_position",
    `the position is behind snapshot ${snapshot}, and the lake has ${head}: it is of another lake, or of commits that were ` +
      "lost; begin again from a position that is sure",
    { subject: String(snapshot) },
  );
}

/** The last snapshot of a feed that ends. */
async function endOf(catalog: Catalog, { until, follow }: FeedOptions): Promise<number | undefined> {
  if (until !== undefined) return snapshotOf(catalog, until);
  return follow ? undefined : headOf(catalog);
}

/** As of this moment, however old queries may be. */
async function headOf(catalog: Catalog): Promise<number> {
  await catalog.refresh();
  return (await catalog.head()).snapshot;
}

function toChange(host: TableHost, table: string, change: TableChange): Change {
  if (change.kind === "rollback") return change;
  const { position, receipt, meta } = change;
  const { snapshot, batchId } = receipt;
  return {
    kind: "append",
    position,
    snapshot,
    batchId,
    receipt,
    meta,
    rows: (options = {}) => batchQuery(() => host.run(() => host.open.engine()), { table, batchId, snapshot }, options),
  };
}

/** @throws the signal's reason */
async function pause(timer: Timer, milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  const over = timer.sleep(milliseconds);
  if (!signal) return over;
  await new Promise<void>((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    over.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
