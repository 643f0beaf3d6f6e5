/** A parser around the engine: gives it back in time, and fails for good. */

import type { RecordBatch } from "./columns.js";
import { type EngineBatches, PIECE_BYTES } from "./engine-batches.js";
import { InvalidInputError, type Reject } from "./errors.js";
import type { Parser } from "./parser.js";

/** What makes rows of the input. */
export interface EngineText {
  readonly batches: EngineBatches;
  /** At most {@link PIECE_BYTES}. */
  push(piece: Uint8Array): void;
  end(): void;
  /** See `Parser.ignoredFields`. */
  ignoredFields(): ReadonlyMap<string, number>;
}

export class EngineParser implements Parser<Uint8Array> {
  readonly #text: EngineText;
  readonly #batches: EngineBatches;
  /** What is left when the engine is given back. */
  #final: { readonly rows: number; readonly ignoredFields: ReadonlyMap<string, number> } | undefined;
  #failure: unknown;

  /** @param onBatch as in `createTextParser` */
  constructor(text: EngineText, onBatch?: (batch: RecordBatch) => void) {
    this.#text = text;
    this.#batches = text.batches;
    if (onBatch) this.#batches.lend(onBatch);
  }

  push(input: Uint8Array): void {
    this.#guard(() => {
      if (input.length <= PIECE_BYTES) this.#text.push(input);
      else {
        for (let at = 0; at < input.length; at += PIECE_BYTES) this.#text.push(input.subarray(at, at + PIECE_BYTES));
      }
    });
  }

  end(): void {
    this.#guard(() => {
      this.#text.end();
      this.#batches.flush();
    });
    this.#release();
  }

  take(): RecordBatch | undefined {
    return this.#batches.take();
  }

  get rows(): number {
    return this.#final?.rows ?? this.#batches.taken;
  }

  get rejects(): readonly Reject[] {
    return this.#batches.rejects;
  }

  get ignoredFields(): ReadonlyMap<string, number> {
    return this.#final?.ignoredFields ?? this.#text.ignoredFields();
  }

  /** A parser that failed has no engine any more: it fails again whatever comes. */
  #guard(work: () => void): void {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      work();
    } catch (error) {
      this.#failure = error instanceof WebAssembly.RuntimeError ? tooLarge(error) : error;
      this.#release();
      throw this.#failure;
    }
  }

  #release(): void {
    if (this.#final) return;
    this.#final = { rows: this.#batches.taken, ignoredFields: this.#text.ignoredFields() };
    this.#batches.release();
  }
}

/** The engine stops where its memory, 4 GiB at most, or a column, 2 GiB at most, cannot grow. */
function tooLarge(cause: Error): InvalidInputError {
  return new InvalidInputError("batch_too_large", "the columns of one batch exceed the memory: lower batchBytes", {
    cause,
  });
}
