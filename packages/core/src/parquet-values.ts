/**
 * The values of one leaf in one row group, packed densely without nulls: what dictionaries, encodings and statistics
 * work on. `parquet-numbers.ts` and `parquet-bytes.ts` have one class for each physical form.
 */

import type { ByteBuffer } from "./parquet-buffer.js";
import type { Dictionary } from "./parquet-dictionary.js";
import type { Encoding } from "./parquet-format.js";
import type { ValueSizes } from "./parquet-levels.js";
import type { Bounds, BoundValue } from "./statistics.js";

export interface LeafValues extends ValueSizes {
  readonly count: number;
  /** Bytes as PLAIN. */
  readonly plainBytes: number;
  /** The best encoding without a dictionary, and about how many bytes it takes. */
  direct(): { encoding: Encoding; bytes: number };
  /** False where a dictionary cannot pay. */
  buildDictionary(dictionary: Dictionary): boolean;
  /** The dictionary's entries as PLAIN. */
  writeDictionary(out: ByteBuffer, dictionary: Dictionary): void;
  write(out: ByteBuffer, encoding: Encoding, start: number, end: number): void;
  /** With the dictionary, if the chunk has one: then only its entries need comparing. */
  bounds(start: number, end: number, dictionary: Dictionary | undefined): Bounds;
}

/** Bounds that are values of the column themselves. */
export function exact(min: BoundValue, max: BoundValue, values: number, hasNaN = false): Bounds {
  return { min, max, minExact: true, maxExact: true, hasNaN, values };
}
