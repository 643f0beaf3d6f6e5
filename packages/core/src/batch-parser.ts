import type { RecordBatch } from "./columns.js";
import type { Reject } from "./errors.js";
import type { Parser } from "./parser.js";
import type { RowBatches } from "./row-batches.js";

/** A parser that fills batches of its own, and answers from them. */
export abstract class BatchParser<I> implements Parser<I> {
  protected readonly batches: RowBatches;

  constructor(batches: RowBatches) {
    this.batches = batches;
  }

  abstract push(input: I): void;

  abstract end(): void;

  take(): RecordBatch | undefined {
    return this.batches.take();
  }

  get rows(): number {
    return this.batches.rows;
  }

  get rejects(): readonly Reject[] {
    return this.batches.rejects;
  }

  get ignoredFields(): ReadonlyMap<string, number> {
    return this.batches.ignoredFields;
  }
}
