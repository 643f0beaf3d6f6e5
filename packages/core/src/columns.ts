/**
 * Columns in Arrow's memory layout, without Arrow's classes: what parsers fill, what the Parquet encoder reads, and
 * what turns into `apache-arrow` objects by wrapping the same buffers.
 */

import type { DataType, Schema } from "./schema.js";

/** The values buffer, by type. Little-endian, as on every platform Node runs on. */
export type ColumnValues =
  | Uint8Array // bool (bit-packed, LSB first), uint8, string/json/binary data, fixed(n), uuid, decimal (16 bytes each, two's complement)
  | Int8Array
  | Int16Array
  | Int32Array // int32; date: days since 1970-01-01
  | Uint16Array
  | Uint32Array
  | BigInt64Array // int64; time, timestamp, timestamptz: microseconds
  | BigUint64Array
  | Float32Array
  | Float64Array;

/**
 * One column. `length` values of `type`, of which `nullCount` are null.
 *
 * | type | values | offsets | children |
 * |---|---|---|---|
 * | bool | bits | | |
 * | numbers, date, time, timestamps | typed array of `length` | | |
 * | decimal, uuid, fixed(n) | 16, 16, n bytes each | | |
 * | string, json, binary | bytes | `length + 1` | |
 * | list | | `length + 1` | element |
 * | map | | `length + 1` | key, value (of equal length) |
 * | struct | | | one per field, each of `length` |
 *
 * Slots under a null hold anything for fixed-width types and an empty range for types with offsets. `offsets[0]` is 0.
 * Children of a null struct are null there too.
 */
export interface Column {
  readonly type: DataType;
  readonly length: number;
  readonly nullCount: number;
  /** Bit i (LSB first) is 1 where value i is not null. Undefined when `nullCount` is 0. */
  readonly validity: Uint8Array | undefined;
  readonly values: ColumnValues | undefined;
  readonly offsets: Int32Array | undefined;
  readonly children: readonly Column[];
}

/** Columns of equal length, one per field of `schema`. Never holds `unknown` fields: see `storedSchema`. */
export interface RecordBatch {
  readonly schema: Schema;
  readonly length: number;
  readonly columns: readonly Column[];
}

/**
 * A value of a partition tuple, after its transform; null is the null partition. Integers, decimals (unscaled), dates,
 * times and transform results that count (years, months, days, hours, buckets) are bigint; binary is hex text.
 */
export type PartitionValue = string | bigint | number | boolean | null;
