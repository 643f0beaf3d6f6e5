/** What a lake does for itself between appends: hot batches are folded, and orphans removed. */

import type { Catalog, TableInfo } from "@eider/catalog";
import type { AppendContext } from "./commit/append.js";
import { addTotals, foldTable } from "./commit/fold.js";
import type { OpenLake } from "./open.js";
import type { FoldLimits, FoldTotals, MaintainOptions, MaintainProgress, MaintainResult } from "./options.js";
import { removeOrphans } from "./orphans.js";

const FOLD_LIMITS: Required<FoldLimits> = { bytes: 16 * 1024 * 1024, batches: 1000, ageMs: 60 * 60 * 1000 };

export async function maintain(
  open: Pick<OpenLake, "store" | "catalog" | "clock" | "timer">,
  context: AppendContext,
  options: MaintainOptions,
): Promise<MaintainResult> {
  const { catalog, store, clock, timer } = open;
  const { signal, budgetMs = Number.POSITIVE_INFINITY, fold = {} } = options;
  const started = timer.now();
  const isOver = (): boolean => timer.now() - started >= budgetMs;
  const read = { batches: 0, rows: 0 };
  const report = (where: Pick<MaintainProgress, "phase" | "table">): void =>
    options.onProgress?.({ ...where, ...read, elapsedMs: timer.now() - started });

  let folded: FoldTotals = { batches: 0, rows: 0, files: 0, bytes: 0 };
  let finished = true;
  await catalog.refresh();
  const { snapshot: until } = await catalog.head();
  const now = store.serverTime?.() ?? clock();
  const limits = fold === "all" ? { batches: 1 } : fold;
  for (const table of limits === "none" ? [] : await catalog.tables(until)) {
    if (limits === "none" || !(await isDue(catalog, table, limits, now))) continue;
    report({ phase: "fold", table: table.name });
    const result = await foldTable(context, table.id, {
      until,
      signal,
      isOver,
      onBatches: (batches, rows) => {
        read.batches += batches;
        read.rows += rows;
        report({ phase: "fold", table: table.name });
      },
    });
    folded = addTotals(folded, result);
    finished &&= result.finished;
  }
  if (isOver()) return { folded, finished: false, deleted: [], bytes: 0 };
  report({ phase: "orphans" });
  return { folded, finished, ...(await removeOrphans(open, options)) };
}

async function isDue(catalog: Catalog, table: TableInfo, limits: FoldLimits, now: number): Promise<boolean> {
  const { bytes, batches, ageMs } = { ...FOLD_LIMITS, ...limits };
  if (table.hotBatches === 0) return false;
  if (table.hotBytes >= bytes || table.hotBatches >= batches) return true;
  const [oldest] = await catalog.hotBatches(table.id, { limit: 1, data: false });
  if (!oldest) return false;
  const [snapshot] = await catalog.snapshots({ after: oldest.addedIn - 1, limit: 1 });
  return snapshot !== undefined && now - Date.parse(snapshot.committedAt) >= ageMs;
}
