/**
 * Fold: the hot batches of a table become data files, many batches in one. The steps are those of an append: an intent,
 * files that nobody sees, and one entry, **the commit point**, which removes the batches and adds the files. Killed
 * before it, the files are orphans and the batches hot as before.
 */

import { type Catalog, type HotBatch, hotPages, type TableInfo } from "@eider/catalog";
import {
  alignBatch,
  CorruptionError,
  concatBatches,
  decodeRecordBatch,
  type RecordBatch,
  type Schema,
} from "@eider/core";
import type { FoldTotals } from "../options.js";
import { type AppendContext, giveUp, isUnknown, MAX_ATTEMPTS } from "./append.js";
import { type Stage, tableStage } from "./stage.js";
import { Staging } from "./staging.js";

/** Of one commit: its entry names the batches, and has to stay small. */
const RANGE_BATCHES = 10_000;
/** Of one commit: some files of the usual size in Parquet, and seconds of work. */
const RANGE_BYTES = 256 * 1024 * 1024;
/** Batches in memory at once: at 64 KiB, 8 MiB. */
const PAGE = 128;

export interface FoldOptions {
  /** Only batches up to this snapshot: a table that is appended to all the time has an end too. */
  readonly until: number;
  readonly signal?: AbortSignal | undefined;
  /** Whether nothing more is to be begun. Default: no. */
  readonly isOver?: () => boolean;
  readonly onBatches?: (batches: number, rows: number) => void;
}

export interface Folded extends FoldTotals {
  /** False if something is left to fold. */
  readonly finished: boolean;
}

/** Folds what is hot of a table, one commit for each range of batches. */
export async function foldTable(context: AppendContext, tableId: string, options: FoldOptions): Promise<Folded> {
  let total: FoldTotals = { batches: 0, rows: 0, files: 0, bytes: 0 };
  for (let tries = 0; tries < MAX_ATTEMPTS && !options.isOver?.(); ) {
    options.signal?.throwIfAborted();
    const range = await nextRange(context.catalog, tableId, options.until);
    if (!range) return { ...total, finished: true };
    const folded = await foldRange(context, range, options);
    if (folded) {
      total = addTotals(total, folded);
    } else {
      tries++;
      await context.catalog.refresh();
    }
  }
  return { ...total, finished: false };
}

export function addTotals(a: FoldTotals, b: FoldTotals): FoldTotals {
  return {
    batches: a.batches + b.batches,
    rows: a.rows + b.rows,
    files: a.files + b.files,
    bytes: a.bytes + b.bytes,
  };
}

/** What one commit folds: all that is hot at snapshot `at` and was added in the snapshots `first` to `last`. */
interface Range {
  /** As it is then. */
  readonly table: TableInfo;
  readonly at: number;
  readonly first: number;
  readonly last: number;
  readonly batches: number;
  readonly rows: number;
}

/** The oldest hot batches, cut between snapshots; undefined if none are left. */
async function nextRange(catalog: Catalog, tableId: string, until: number): Promise<Range | undefined> {
  const { snapshot: at } = await catalog.head();
  const table = (await catalog.tables(at)).find(({ id }) => id === tableId);
  if (!table) return undefined;
  const listed = await catalog.hotBatches(tableId, { at, limit: RANGE_BATCHES, data: false });
  const taken: HotBatch[] = [];
  let bytes = 0;
  for (const batch of listed) {
    bytes += batch.bytes;
    const splits = batch.addedIn === taken.at(-1)?.addedIn;
    if (batch.addedIn > until || (bytes > RANGE_BYTES && taken.length > 0 && !splits)) break;
    taken.push(batch);
  }
  if (taken.length === 0) return undefined;
  const rows = taken.reduce((sum, batch) => sum + batch.rows, 0);
  return { table, at, first: taken[0]!.addedIn, last: taken.at(-1)!.addedIn, batches: taken.length, rows };
}

/** Undefined if the commit came too late: some of the batches are hot no more, or staging took too long. */
async function foldRange(context: AppendContext, range: Range, options: FoldOptions): Promise<FoldTotals | undefined> {
  const { catalog } = context;
  const { table } = range;
  const staging = new Staging(catalog);
  const stage = foldStage(context, range, await staging.base(), options.signal);
  let settled = false;
  try {
    const removeHot = await stageRange(context, stage, range, options);
    const files = await stage.finish();
    options.signal?.throwIfAborted();
    const { schemaVersion } = table;
    const addFiles = files.map((file) => ({ ...file, schemaVersion }));
    const outcome = await catalog.commit({
      operations: [{ op: "rearrange", table: table.id, removeHot, removeFiles: [], addFiles }],
      ...staging.draft,
    });
    settled = outcome.status === "committed";
    if (!settled) return undefined;
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    return { batches: removeHot.length, rows: range.rows, files: files.length, bytes };
  } catch (error) {
    settled = isUnknown(error);
    throw error;
  } finally {
    if (!settled) await giveUp(context, [stage], staging);
  }
}

function foldStage(
  context: AppendContext,
  { table, first, last }: Range,
  base: number,
  signal: AbortSignal | undefined,
): Stage {
  // Batches are far smaller than a row group: rows wait until they fill one.
  const layout = { ...context.layout, wholeFiles: table.partitionBy.length > 0 };
  const keyValues = { "eider.folded": JSON.stringify({ first, last }) };
  return tableStage({ ...context, layout }, table, table.schema, { base, keyValues, signal });
}

/** Puts the rows of a range into the stage. @returns the ids of its batches */
async function stageRange(
  { catalog, timer }: AppendContext,
  stage: Stage,
  { table, at, first, last }: Range,
  { signal, onBatches }: FoldOptions,
): Promise<string[]> {
  const ids: string[] = [];
  for await (const batches of hotPages(catalog, table.id, { at, after: first - 1, upTo: last, limit: PAGE })) {
    signal?.throwIfAborted();
    let rows = 0;
    for (const run of runsOfVersion(batches)) {
      const aligned = alignRun(run, table.schema);
      await stage.add(aligned);
      rows += aligned.length;
    }
    ids.push(...batches.map(({ batchId }) => batchId));
    onBatches?.(batches.length, rows);
    await timer.turn();
  }
  return ids;
}

/** Batches in their order, those of one schema version together. */
function runsOfVersion(batches: readonly HotBatch[]): HotBatch[][] {
  const runs: HotBatch[][] = [];
  for (const batch of batches) {
    const run = runs.at(-1);
    if (run?.at(-1)?.schemaVersion === batch.schemaVersion) run.push(batch);
    else runs.push([batch]);
  }
  return runs;
}

/** The rows as the table has them now: fields by id, for their names may be others' by now. */
function alignRun(run: readonly HotBatch[], schema: Schema): RecordBatch {
  const rows = concatBatches(run.map((batch) => decodeRecordBatch(batch.schema, batch.data)));
  const { batch, rejects } = alignBatch(rows, schema, "id");
  const [misfit] = rejects;
  if (!misfit) return batch;
  // Columns only ever widen, without loss.
  const { batchId, addedIn } = run[0]!;
  throw new CorruptionError(
    "damaged_batch",
    `a hot batch, ${JSON.stringify(batchId)} of snapshot ${addedIn} or one after it, has a row that its table cannot hold: ${misfit.reason}; stop writing and run verify`,
    { subject: batchId },
  );
}
