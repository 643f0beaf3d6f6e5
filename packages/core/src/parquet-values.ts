/**
 * The values of one leaf in one row group, packed densely without nulls: what dictionaries, encodings and statistics
 * work on. `parquet-numbers.ts` and `parquet-bytes.ts` have one class for each physical form.
 */

import type { Dictionary } from "./parquet-dictionary.js";
import type { Encoding } from "./parquet-format.js";
import type { ValueSizes } from "./parquet-levels.js";
import type { Bounds, BoundValue } from "./statistics.js";

export interface LeafValues extends ValueSizes {
  readonly count: number;
  /** Bytes of the values `start` to `end` as PLAIN. */
  plainBytes(start: number, end: number): number;
  /** The best encoding without a dictionary, and about how many bytes it takes. */
  direct(): { encoding: Encoding; bytes: number };
  /** Whether BYTE_STREAM_SPLIT is worth a try. */
  readonly splits: boolean;
  /** Undefined where a dictionary would be too large; with `judge` also where a sample says that it will not pay. */
  dictionary(judge: boolean): Dictionary | undefined;
  /** Writes the dictionary's entries as PLAIN at an address; returns the end. */
  writeDictionary(out: number, dictionary: Dictionary): number;
  /** Writes the values `start` to `end` at an address, at most {@link encodedBytes}; returns the end. */
  write(out: number, encoding: Encoding, start: number, end: number): number;
  /** With the dictionary, if the chunk has one: then only its entries need comparing. */
  bounds(start: number, end: number, dictionary: Dictionary | undefined): Bounds;
}

/** More than any encoding takes for `count` values of `plainBytes` bytes as PLAIN. */
export function encodedBytes(count: number, plainBytes: number): number {
  // DELTA_BINARY_PACKED may fill up a block, and spends 14 bytes on each for its smallest difference and widths;
  // DELTA_BYTE_ARRAY has two numbers for each value.
  return plainBytes + 8 * count + 28 * (1 + (count >> 7)) + 4096;
}

/** Bounds that are values of the column themselves. */
export function exact(min: BoundValue, max: BoundValue, values: number, hasNaN = false): Bounds {
  return { min, max, minExact: true, maxExact: true, hasNaN, values };
}
