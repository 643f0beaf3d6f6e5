/**
 * Growable columns: what every reader (JSON, CSV, rows) fills. A builder writes straight into Arrow-layout buffers;
 * it makes no object, string or BigInt per value, can take back its last values (`truncate`), and gives its buffers
 * away when finished. The builders of each type are in `primitive-builders.ts` and `builders.ts`.
 */

import type { Column, ColumnValues } from "./columns.js";
import { type DataType, storedType } from "./schema.js";

/** Values in a new buffer. A later batch starts with what the batch before it needed. */
const MIN_CAPACITY = 16;

/** What all builders do alike: count, mark nulls, take back, finish. */
export abstract class ColumnBuilder {
  readonly type: DataType;
  /** Whether null fits; readers check it, `appendNull` does not (children of a null struct are null in any case). */
  readonly nullable: boolean;
  protected count = 0;
  /** Values that the last finished batch held: the first allocation of the next one. */
  protected expected = 0;
  #nulls = 0;
  /** Prefilled with ones, so that only nulls write to it. */
  #validity: Uint8Array = new Uint8Array(0);

  constructor(type: DataType, nullable: boolean) {
    this.type = type;
    this.nullable = nullable;
  }

  get length(): number {
    return this.count;
  }

  abstract appendNull(): void;

  /** Takes back all values from index `length` on. */
  truncate(length: number): void {
    if (this.#nulls > 0) {
      for (let i = length; i < this.count; i++) {
        const mask = 1 << (i & 7);
        const byte = this.#validity[i >> 3] ?? 0xff;
        if ((byte & mask) === 0) {
          this.#validity[i >> 3] = byte | mask;
          this.#nulls--;
        }
      }
    }
    this.count = length;
  }

  /** The values so far as a column of the stored type. The builder is empty afterwards and keeps none of the memory. */
  finish(): Column {
    const column = {
      type: storedType(this.type) ?? this.type,
      length: this.count,
      nullCount: this.#nulls,
      validity: this.#nulls === 0 ? undefined : this.#finishValidity(),
      ...this.finishBuffers(),
    };
    this.clear();
    return column;
  }

  /** Forgets the values and frees the memory. */
  clear(): void {
    // What is cleared twice (as a child, after it was finished) keeps what it expects.
    if (this.count > 0) this.expected = this.count;
    this.count = 0;
    this.#nulls = 0;
    this.#validity = new Uint8Array(0);
    this.clearBuffers();
  }

  protected abstract finishBuffers(): ColumnBuffers;
  protected abstract clearBuffers(): void;

  /** Marks the next slot as null; the caller counts it. */
  protected markNull(): void {
    const at = this.count >> 3;
    if (at >= this.#validity.length) {
      const grown = new Uint8Array(capacity(at + 1, this.#validity.length, (this.expected >> 3) + 1)).fill(0xff);
      grown.set(this.#validity);
      this.#validity = grown;
    }
    this.#validity[at]! &= ~(1 << (this.count & 7));
    this.#nulls++;
  }

  #finishValidity(): Uint8Array {
    const size = (this.count + 7) >> 3;
    let validity = this.#validity.subarray(0, size);
    if (validity.length < size) {
      validity = new Uint8Array(size).fill(0xff);
      validity.set(this.#validity);
    }
    // Bits beyond the last value are zero, as Arrow recommends, so that equal columns have equal bytes.
    if ((this.count & 7) !== 0) validity[size - 1]! &= (1 << (this.count & 7)) - 1;
    return validity;
  }
}

/** What {@link ColumnBuilder.finish} adds to the nulls. */
export type ColumnBuffers = Pick<Column, "values" | "offsets" | "children">;

/** How large a full buffer of `current` values becomes to hold `needed`. */
export function capacity(needed: number, current: number, expected: number): number {
  return Math.max(needed, current * 2, expected, MIN_CAPACITY);
}

export const NO_CHILDREN: readonly Column[] = [];

/** Buffers of a type of fixed width. */
export function plain(values: ColumnValues): ColumnBuffers {
  return { values, offsets: undefined, children: NO_CHILDREN };
}
