/** What a lake does for itself between appends: hot batches are folded, old snapshots end, and orphans are removed. */

import type { Catalog, TableInfo } from "@eider/catalog";
import type { AppendContext } from "./commit/append.js";
import { addTotals, type Folded, foldTable } from "./commit/fold.js";
import { expireSnapshots } from "./expire.js";
import type { OpenLake } from "./open.js";
import type { FoldLimits, FoldTotals, MaintainOptions, MaintainResult } from "./options.js";
import { removeOrphans } from "./orphans.js";

const FOLD_LIMITS: Required<FoldLimits> = { bytes: 16 * 1024 * 1024, batches: 1000, ageMs: 60 * 60 * 1000 };

type Maintained = Pick<OpenLake, "store" | "catalog" | "clock" | "timer">;

export async function maintain(
  open: Maintained,
  context: AppendContext,
  options: MaintainOptions,
): Promise<MaintainResult> {
  const { catalog, store, clock, timer } = open;
  const { budgetMs = Number.POSITIVE_INFINITY } = options;
  const started = timer.now();
  const isOver = (): boolean => timer.now() - started >= budgetMs;
  const { fold = options.retain === "none" ? "all" : {} } = options;
  const { finished, ...folded } = await foldDue(open, context, { ...options, fold }, isOver);
  const { batches, rows } = folded;
  const report = (phase: "expire" | "orphans"): void =>
    options.onProgress?.({ phase, batches, rows, elapsedMs: timer.now() - started });
  const nothing = { deleted: [], bytes: 0 };
  if (isOver()) return { folded, finished: false, oldestSnapshot: await oldestSnapshot(catalog), ...nothing };
  report("expire");
  await expireSnapshots(catalog, store.serverTime?.() ?? clock(), options);
  report("orphans");
  const removed = await removeOrphans(open, options);
  return { folded, finished, oldestSnapshot: await oldestSnapshot(catalog), ...removed };
}

async function oldestSnapshot(catalog: Catalog): Promise<number> {
  return Math.max(1, (await catalog.expiry()).before);
}

/** Folds the tables that are due. */
export async function foldDue(
  { catalog, store, clock, timer }: Maintained,
  context: AppendContext,
  { fold = {}, signal, onProgress }: Pick<MaintainOptions, "fold" | "signal" | "onProgress">,
  isOver: () => boolean = () => false,
): Promise<Folded> {
  const started = timer.now();
  const read = { batches: 0, rows: 0 };
  const report = (table: string): void =>
    onProgress?.({ phase: "fold", table, ...read, elapsedMs: timer.now() - started });

  let folded: FoldTotals = { batches: 0, rows: 0, files: 0, bytes: 0 };
  let finished = true;
  await catalog.refresh();
  const { snapshot: until } = await catalog.head();
  const now = store.serverTime?.() ?? clock();
  if (fold === "none") return { ...folded, finished };
  const limits = fold === "all" ? { batches: 1 } : fold;
  for (const table of await catalog.tables(until)) {
    if (!(await isDue(catalog, table, limits, now))) continue;
    report(table.name);
    const result = await foldTable(context, table.id, {
      until,
      signal,
      isOver,
      onBatches: (batches, rows) => {
        read.batches += batches;
        read.rows += rows;
        report(table.name);
      },
    });
    folded = addTotals(folded, result);
    finished &&= result.finished;
  }
  return { ...folded, finished };
}

async function isDue(catalog: Catalog, table: TableInfo, limits: FoldLimits, now: number): Promise<boolean> {
  const { bytes = FOLD_LIMITS.bytes, batches = FOLD_LIMITS.batches, ageMs = FOLD_LIMITS.ageMs } = limits;
  if (table.hotBatches === 0) return false;
  if (table.hotBytes >= bytes || table.hotBatches >= batches) return true;
  const [oldest] = await catalog.hotBatches(table.id, { limit: 1, data: false });
  if (!oldest) return false;
  const [snapshot] = await catalog.snapshots({ after: oldest.addedIn - 1, limit: 1 });
  return snapshot !== undefined && now - Date.parse(snapshot.committedAt) >= ageMs;
}
