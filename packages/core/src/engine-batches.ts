/** Record batches whose columns are in the engine's memory, with the rows that TypeScript takes behind the engine's. */

import type { RecordBatch } from "./columns.js";
import { type Engine, releaseEngine } from "./engine.js";
import { appendChildren, copyChildren, engineColumn, LentBatch, setLength } from "./engine-columns.js";
import { EnginePlan } from "./engine-plan.js";
import type { Reject } from "./errors.js";
import type { ParserOptions } from "./parser.js";
import { DEFAULT_BATCH_BYTES, RowBatches, rowsPerBatch } from "./row-batches.js";
import { type Schema, storedSchema } from "./schema.js";

/** Input that the engine looks at in one go: what the processor's cache holds beside the columns. */
export const PIECE_BYTES: number = 256 * 1024;
/** Bytes behind the input that the engine may look at. */
export const SLACK_BYTES = 64;

const NO_REJECTS: readonly Reject[] = [];
const NONE_IGNORED: ReadonlyMap<string, number> = new Map();

export class EngineBatches {
  readonly engine: Engine;
  readonly plan: EnginePlan;
  readonly batchRows: number;
  readonly batchBytes: number;
  readonly #options: ParserOptions;
  readonly #stored: Schema;
  /** Rows that TypeScript took, until they are moved behind those of the engine. It also keeps the rejects. */
  #slow: RowBatches | undefined;
  readonly #ready: RecordBatch[] = [];
  #onBatch: ((batch: RecordBatch) => void) | undefined;
  #finishedRows = 0;

  constructor(options: ParserOptions, engine: Engine) {
    this.engine = engine;
    this.batchRows = rowsPerBatch(options);
    this.batchBytes = options.batchBytes ?? DEFAULT_BATCH_BYTES;
    this.#options = options;
    this.#stored = storedSchema(options.schema);
    this.plan = new EnginePlan(engine, options.schema);
  }

  /** Columns go behind `arena`, the first address that nothing else uses. */
  begin(arena: number): void {
    const { exports } = this.engine;
    exports.reach(arena);
    exports.beginArena(arena);
    exports.configure(
      this.plan.root.address,
      this.#options.valueMisfits === "misfit",
      Math.min(this.batchRows, 0xffff_ffff),
      this.batchBytes,
    );
  }

  /** From now on batches are lent instead of copied, each valid until `onBatch` returns; {@link take} gives none. */
  lend(onBatch: (batch: RecordBatch) => void): void {
    this.#onBatch = onBatch;
  }

  /** Rows taken so far. */
  get taken(): number {
    return this.#finishedRows + this.length;
  }

  /** Rows in the batch. */
  get length(): number {
    return this.#columnRows + (this.#slow?.root.length ?? 0);
  }

  /** See `Parser.rejects`. */
  get rejects(): readonly Reject[] {
    return this.#slow?.rejects ?? NO_REJECTS;
  }

  /** What TypeScript has dropped, see `Parser.ignoredFields`. */
  get ignoredFields(): ReadonlyMap<string, number> {
    return this.#slow?.ignoredFields ?? NONE_IGNORED;
  }

  /** Where TypeScript puts its rows, each to be followed by {@link count}. Made when first needed: most input has none. */
  get slow(): RowBatches {
    const unlimited = Number.POSITIVE_INFINITY;
    this.#slow ??= new RowBatches({ ...this.#options, batchRows: unlimited, batchBytes: unlimited });
    return this.#slow;
  }

  /** TypeScript has taken one row, of `bytes` of input. */
  count(bytes: number): void {
    const bytesInBatch = this.engine.exports.addBytes(bytes);
    if (this.length >= this.batchRows || bytesInBatch >= this.batchBytes) this.flush();
  }

  /** Makes a batch of the rows so far. */
  flush(): void {
    this.moveSlow();
    const { exports } = this.engine;
    const { root } = this.plan;
    exports.complete(root.address);
    const length = this.#columnRows;
    if (length === 0) return;
    if (this.#onBatch) {
      exports.wholeValidity(root.address);
      this.#onBatch(new LentBatch(this.engine, root, this.#stored, length));
    } else this.#ready.push({ schema: this.#stored, length, columns: copyChildren(this.engine, root) });
    this.#finishedRows += length;
    exports.clear(root.address);
    exports.resetArena();
    exports.startBatch();
  }

  /** The next finished batch. */
  take(): RecordBatch | undefined {
    return this.#ready.shift();
  }

  /** Moves the rows that TypeScript took behind those of the engine, which may go on then. */
  moveSlow(): void {
    const slow = this.#slow;
    const count = slow?.root.length ?? 0;
    if (!slow || count === 0) return;
    slow.flush();
    const { columns } = slow.take()!;
    const { root } = this.plan;
    const start = this.#columnRows;
    appendChildren(this.engine, root, columns, start, count);
    setLength(this.engine, root, start + count);
  }

  /** No more rows: gives the engine back. Only rejects and batches that are finished may be asked for after it. */
  release(): void {
    releaseEngine(this.engine);
  }

  /** Rows in the engine's columns. */
  get #columnRows(): number {
    return engineColumn(this.engine, this.plan.root).length;
  }
}

/**
 * A row through TypeScript costs as much as some sixty in the engine, most of it for moving a batch of one row. So once
 * such rows are more frequent than that, they go there in runs, together with those between them.
 */
const RARE = 64;
/** Rows that may go there one by one before that: all of it at the start, and one more for each {@link RARE} others. */
const MAX_CREDIT = 32;
const MAX_RUN = 512;

/** How many rows go to TypeScript when the engine has refused one. */
export class Turns {
  #run = 1;
  #credit = MAX_CREDIT;

  /** The engine has taken rows. */
  earn(rows: number): void {
    this.#credit = Math.min(MAX_CREDIT, this.#credit + rows / RARE);
  }

  /** The engine has refused a row: how many rows are TypeScript's now, with that one. */
  spend(): number {
    this.#credit--;
    if (this.#credit >= 0) this.#run = 1;
    else {
      this.#credit = 0;
      this.#run = Math.min(this.#run * 2, MAX_RUN);
    }
    return this.#run;
  }
}
