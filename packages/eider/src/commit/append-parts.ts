/**
 * An append in parts, for sources that are too long to be begun again. Each part is an append of its own, `<id>/<n>`,
 * visible once it is committed. The last commit is the empty batch `<id>`: it says that all parts are there.
 *
 * Another try cuts the source at the same places. Parts that are committed are read for their hash only, and compared.
 */

import { checkBatchId, type Receipt } from "@eider/catalog";
import { BatchConflictError } from "@eider/core";
import type { AppendOptions, AppendPartsOptions, AppendPartsResult, Progress, Source } from "../options.js";
import { disposeInput, type Input, openInput } from "../source/input.js";
import { type InputParts, openInputParts } from "../source/input-parts.js";
import { type AppendContext, appendInput } from "./append.js";
import { CommittedParts } from "./committed-parts.js";
import { newCounters, type ReadCounters } from "./pass.js";
import type { TablePlan } from "./table-plan.js";

const DEFAULT_PART_BYTES = 256 * 1024 * 1024;

export async function appendParts(
  context: AppendContext,
  plan: TablePlan,
  source: Source,
  options: AppendPartsOptions,
): Promise<AppendPartsResult> {
  const { batchId, partBytes = DEFAULT_PART_BYTES, onSeen, signal } = options;
  signal?.throwIfAborted();
  // The longest id that a part may get.
  checkBatchId(`${batchId}/${Number.MAX_SAFE_INTEGER}`);
  await context.catalog.refresh();
  const committed = new CommittedParts(context.catalog, plan.name, batchId);
  const whole = await committed.whole();
  if (whole && onSeen === "trust") return alreadyThere(whole, await committed.parts());
  await committed.assertSameSize(partBytes);
  const input = await openInput(source, { tempFolder: context.tempFolder, signal, once: true });
  try {
    const counters = newCounters();
    const { batchId: _, onProgress: __, partBytes: ___, ...append } = options;
    const { tempFolder, timer } = context;
    await using parts = await openInputParts(input, { partBytes, tempFolder, pace: { append, timer }, counters });
    const work = new PartsAppend(context, plan, committed, options, partBytes);
    return await work.run(parts, input, counters, whole !== undefined);
  } finally {
    await disposeInput(input);
  }
}

class PartsAppend {
  readonly #context: AppendContext;
  readonly #plan: TablePlan;
  readonly #committed: CommittedParts;
  readonly #options: AppendPartsOptions;
  readonly #started: number;
  /** Of every part's append. */
  readonly #append: AppendOptions;
  readonly #receipts: Receipt[] = [];
  #partsCommitted = 0;
  /** Of all parts, and of those that this call has committed. */
  #rows = 0;
  #added = 0;
  #rejected = 0;
  readonly #ignored = new Map<string, number>();

  constructor(
    context: AppendContext,
    plan: TablePlan,
    committed: CommittedParts,
    options: AppendPartsOptions,
    partBytes: number,
  ) {
    this.#context = context;
    this.#plan = plan;
    this.#committed = committed;
    this.#options = options;
    this.#started = context.timer.now();
    const { batchId: _, partBytes: __, onProgress: ___, onSeen: ____, ...append } = options;
    this.#append = { ...append, meta: { ...options.meta, ...committed.note(partBytes) } };
  }

  /** @param complete all parts are committed, so that there can be no other */
  async run(parts: InputParts, source: Input, counters: ReadCounters, complete: boolean): Promise<AppendPartsResult> {
    // A source without rows is a part without rows: it makes the table.
    do await this.#appendPart(parts, source, counters, complete);
    while (await parts.more());
    const next = this.#receipts.length + 1;
    if (await this.#committed.part(next)) {
      throw this.#committed.conflict(this.#committed.partId(next), "is committed, and the source ends before it");
    }
    this.#options.signal?.throwIfAborted();
    const { status, receipt } = await this.#committed.complete(this.#receipts, this.#options.meta ?? {});
    return {
      status: this.#partsCommitted > 0 ? "committed" : status,
      parts: this.#receipts.length,
      partsCommitted: this.#partsCommitted,
      rows: this.#rows,
      rowsAdded: this.#added,
      rowsRejected: this.#rejected,
      ...(this.#ignored.size > 0 && { ignoredFields: Object.fromEntries(this.#ignored) }),
      receipt,
      receipts: this.#receipts,
    };
  }

  async #appendPart(parts: InputParts, source: Input, counters: ReadCounters, complete: boolean): Promise<void> {
    const part = this.#receipts.length + 1;
    const id = this.#committed.partId(part);
    const known = await this.#committed.part(part);
    if (complete && !known) throw this.#committed.conflict(id, "is not among the parts, which are complete");
    const { input, options } = parts.next(known !== undefined);
    const report = ({ phase, rows, rejected }: Pick<Progress, "phase" | "rows" | "rejected">): void =>
      this.#options.onProgress?.({
        part,
        phase,
        bytes: counters.bytes,
        ...(source.kind === "bytes" && source.totalBytes !== undefined && { totalBytes: source.totalBytes }),
        rows: this.#rows + rows,
        rejected: this.#rejected + rejected,
        elapsedMs: this.#context.timer.now() - this.#started,
      });
    const append = { ...this.#append, ...options, ...(this.#options.onProgress && { onProgress: report }) };
    const result = await appendInput(this.#context, this.#plan, input, { id }, append).catch((error: unknown) => {
      if (!(error instanceof BatchConflictError)) throw error;
      throw this.#committed.conflict(id, "is committed with other content than the source has at its place", error);
    });
    this.#receipts.push(result.receipt);
    if (result.status === "committed") this.#partsCommitted++;
    this.#rows += result.receipt.rows;
    this.#added += result.rowsAdded;
    this.#rejected += result.rowsRejected;
    for (const [name, count] of Object.entries(result.ignoredFields ?? {})) {
      this.#ignored.set(name, (this.#ignored.get(name) ?? 0) + count);
    }
    report({ phase: "commit", rows: 0, rejected: 0 });
  }
}

/** All parts are known, and their content is not asked about. */
function alreadyThere(receipt: Receipt, receipts: readonly Receipt[]): AppendPartsResult {
  return {
    status: "duplicate",
    parts: receipts.length,
    partsCommitted: 0,
    rows: receipts.reduce((rows, part) => rows + part.rows, 0),
    rowsAdded: 0,
    rowsRejected: 0,
    receipt,
    receipts,
  };
}
