/** Column statistics of a data file: taken while encoding, or read from a footer on import. */

/** A bound of a column's values: the type's own order, strings and binary by unsigned bytes. */
export type BoundValue = bigint | number | boolean | Uint8Array;

/**
 * Statistics of one leaf column over one data file, keyed by field id. Absent bounds mean unknown, never "no values".
 * Bounds ignore nulls and NaN. −0 and 0 count as equal: a bound of zero covers both.
 */
export interface ColumnStatistics {
  readonly fieldId: number;
  /** Values including nulls; for leaves below lists this counts elements. */
  readonly valueCount: number;
  readonly nullCount: number;
  /** Float columns: whether a NaN is present. False for all other types. */
  readonly hasNaN: boolean;
  /**
   * Integers, decimals (unscaled), dates (days), times and timestamps (microseconds) as bigint; floats as number;
   * bool as boolean; string, json, binary, fixed, uuid as bytes, `max` rounded up when truncated.
   */
  readonly min?: BoundValue;
  readonly max?: BoundValue;
  /** False where a byte bound was truncated (min rounded down, max rounded up). */
  readonly minExact: boolean;
  readonly maxExact: boolean;
  /** Bytes of the column's pages in the file. */
  readonly storedBytes: number;
}
