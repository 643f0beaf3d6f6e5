/**
 * An append, from its source to its receipt. The steps and their order are the commit protocol's:
 *
 * 1. look the batch id up: what is committed already is only compared
 * 2. read and encode: a few rows become a hot batch, which is part of the entry
 * 3. of more rows, announce that files will be staged (an intent), which also fixes their base snapshot, and put them:
 *    nothing of it is visible
 * 4. commit one entry: **the commit point**
 * 5. if the entry lost against another writer's (`stale`), forget what was staged and start again at 1
 *
 * What was staged is deleted only when the outcome is certain.
 */

import type { Catalog, CommitResult, Draft, Receipt, TableInfo, Timer } from "@eider/catalog";
import { CatalogError } from "@eider/core";
import type { RangePool } from "@eider/core/ranges";
import type { ParquetImport } from "@eider/query";
import type { ObjectStore } from "@eider/storage";
import type { AppendOptions, AppendResult, Logger, Source } from "../options.js";
import { disposeInput, type Input, openInput } from "../source/input.js";
import type { FileLayout } from "../writer/layout.js";
import { type BatchKey, batchKey } from "./batch-key.js";
import type { ReadResult } from "./pass.js";
import { PendingBatch, type PendingBatchOptions, type TableState } from "./pending-batch.js";
import { Staging } from "./staging.js";
import { assertPlannable } from "./stale.js";
import { assertMatches, type TablePlan } from "./table-plan.js";

/** A commit starts over when another writer changed the table meanwhile; so often, and then it says so. */
export const MAX_ATTEMPTS = 20;

/** What an append needs of its lake. */
export interface AppendContext {
  readonly store: ObjectStore;
  readonly catalog: Catalog;
  readonly tempFolder: string;
  readonly openParquet: (path: string, name: string) => Promise<ParquetImport>;
  readonly logger: Logger;
  readonly ranges: RangePool;
  readonly layout: FileLayout;
  /** A batch whose rows take at most so many bytes becomes hot instead of files. 0: none does. */
  readonly inlineBytes: number;
  readonly timer: Timer;
  /** A random id for a file, a table or a batch; sorts by time. */
  readonly newId: () => string;
}

export async function append(
  context: AppendContext,
  plan: TablePlan,
  source: Source,
  options: AppendOptions,
): Promise<AppendResult> {
  options.signal?.throwIfAborted();
  // Told before the source is read, not after.
  const batch: BatchKey =
    options.batchId === undefined ? { id: context.newId(), isNew: true } : batchKey(options.batchId);
  if (options.onSeen === "trust") {
    const table = await context.catalog.table(plan.name);
    const known = table && (await findKnown(context.catalog, table, batch));
    if (known) return duplicate(known.receipt);
  }
  const input = await openInput(source, { tempFolder: context.tempFolder, signal: options.signal });
  return appendInput(context, plan, input, batch, options);
}

/** Appends an input that is open already, and disposes of it. */
export async function appendInput(
  context: AppendContext,
  plan: TablePlan,
  input: Input,
  batch: BatchKey,
  options: AppendOptions,
): Promise<AppendResult> {
  const work = { context, plan, input, batch, append: options, started: context.timer.now() };
  try {
    for (let tries = 1; ; tries++) {
      const result = await attempt(work);
      if (result !== "stale") return result;
      if (tries === MAX_ATTEMPTS) {
        const message = `table ${plan.name} changed ${tries} times during this append: try again`;
        throw new CatalogError("too_contended", message, { subject: plan.name, retryable: true });
      }
    }
  } finally {
    await disposeInput(input);
  }
}

/** What is known of a batch; of one that its source is far beyond, the receipt of the source's last. */
export async function findKnown(
  catalog: Catalog,
  table: Pick<TableInfo, "id">,
  { id, range }: BatchKey,
): Promise<{ readonly receipt: Receipt; readonly comparable: boolean } | undefined> {
  if (!range) {
    const receipt = await catalog.receipt(table.id, id);
    return receipt && { receipt, comparable: true };
  }
  const mark = await catalog.sourceMark(table.id, range.source);
  if (!mark || BigInt(range.last) > BigInt(mark.last)) return undefined;
  return { receipt: mark.receipt, comparable: mark.receipt.batchId === id };
}

export function duplicate(receipt: Receipt): AppendResult {
  return { status: "duplicate", rowsAdded: 0, rowsRejected: 0, receipt };
}

/** One try: from a look at the head to a committed entry, or `stale`. */
async function attempt(work: PendingBatchOptions): Promise<AppendResult | "stale"> {
  const { context, plan, batch, append: options } = work;
  const { catalog } = context;
  const pending = new PendingBatch(work);
  const table = await findTable(catalog, plan.name);
  if (table) {
    assertMatches(plan, table);
    const known = batch.isNew ? undefined : await findKnown(catalog, table, batch);
    if (known?.comparable) await pending.compare(known.receipt, table);
    if (known) return duplicate(known.receipt);
  }
  const staging = new Staging(catalog);
  let settled = false;
  try {
    const { operations, read } = await pending.prepare(table, staging, (id) => catalog.integerBounds(id));
    const draft: Draft = {
      operations: [...operations, ...(options.cursor ? [{ op: "cursor" as const, ...options.cursor }] : [])],
      ...staging.draft,
      ...(options.meta && { meta: options.meta }),
    };
    const outcome = await catalog.commit(draft);
    settled = outcome.status === "committed";
    return answer(outcome, read);
  } catch (error) {
    // Nobody knows yet whether the entry is there: its files must stay. A retry with the same batch id settles it.
    settled = isUnknown(error);
    throw error;
  } finally {
    if (!settled) await giveUp(context, [pending], staging);
  }
}

export function isUnknown(error: unknown): boolean {
  return error instanceof CatalogError && error.code === "commit_unknown";
}

/** Asks the other hosts only where it costs little: before a table is made that may exist. */
export async function findTable(catalog: Catalog, name: string): Promise<TableState | undefined> {
  const table = await catalog.layout(name);
  if (table || catalog.kind === "local") return table;
  await catalog.refresh();
  return catalog.layout(name);
}

/** Deletes what was staged. Where that fails too, the files are orphans, which `maintain` removes in time. */
export async function giveUp(
  { logger }: Pick<AppendContext, "logger">,
  staged: readonly { discard(): Promise<void> }[],
  staging: Staging | undefined,
): Promise<void> {
  try {
    for (const one of staged) await one.discard();
    await staging?.abandon();
  } catch (error) {
    logger.warn?.("staged files could not be removed and are left for maintenance", { error });
  }
}

function answer(outcome: CommitResult, read: ReadResult): AppendResult | "stale" {
  switch (outcome.status) {
    case "stale":
      assertPlannable(outcome);
      return "stale";
    case "duplicate":
      return duplicate(outcome.receipts[0]!);
    case "committed":
      return {
        status: "committed",
        rowsAdded: read.rows,
        rowsRejected: read.rejects.length,
        ...(read.ignoredFields.size > 0 && { ignoredFields: Object.fromEntries(read.ignoredFields) }),
        receipt: outcome.receipts[0]!,
      };
  }
}
