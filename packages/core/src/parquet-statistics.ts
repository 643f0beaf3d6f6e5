/** Statistics in Parquet's form: bounds as PLAIN values, column indexes, offset indexes, and sums over a file. */

import { BoundaryOrder, PhysicalType } from "./parquet-format.js";
import type { ColumnChunk } from "./parquet-pages.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { ThriftType, type ThriftWriter } from "./parquet-thrift.js";
import {
  type Bounds,
  type BoundValue,
  type ColumnStatistics,
  compareBounds,
  mergeBounds,
  NO_BOUNDS,
} from "./statistics.js";

/**
 * A bound as a PLAIN value, byte arrays without their length.
 *
 * parquet.thrift, `TypeDefinedOrder`: a minimum of +0 is written as −0 and a maximum of −0 as +0.
 */
export function plainBound(leaf: ParquetLeaf, value: BoundValue, side: "min" | "max"): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === "boolean") return Uint8Array.of(value ? 1 : 0);
  const bytes = new Uint8Array(leaf.typeLength || (WIDTHS[leaf.physical] ?? 8));
  const view = new DataView(bytes.buffer);
  if (typeof value === "number") {
    const float = value === 0 ? (side === "min" ? -0 : 0) : value;
    if (leaf.physical === PhysicalType.float) view.setFloat32(0, float, true);
    else view.setFloat64(0, float, true);
  } else if (leaf.physical === PhysicalType.int32) {
    view.setInt32(0, Number(BigInt.asIntN(32, value)), true);
  } else if (leaf.physical === PhysicalType.int64) {
    view.setBigInt64(0, value, true);
  } else {
    // Decimals of fixed length are big-endian.
    for (let i = bytes.length - 1, rest = value; i >= 0; i--, rest >>= 8n) bytes[i] = Number(rest & 0xffn);
  }
  return bytes;
}

const WIDTHS: Partial<Record<PhysicalType, number>> = { [PhysicalType.int32]: 4, [PhysicalType.float]: 4 };

/**
 * Writes a `ColumnIndex`, unless a page's bounds are missing or would mislead: it has no way to leave one page out.
 * Returns whether it did.
 */
export function writeColumnIndex(out: ThriftWriter, { leaf, pages }: ColumnChunk): boolean {
  for (const { bounds } of pages) {
    if (bounds.hasNaN) return false;
    if (bounds.values > 0 && (bounds.min === undefined || bounds.max === undefined)) return false;
  }
  const empty = new Uint8Array(0);
  out.begin();
  out.list(1, ThriftType.true, pages.length);
  for (const { bounds } of pages) out.elementBool(bounds.values === 0);
  out.list(2, ThriftType.binary, pages.length);
  for (const { bounds: b } of pages) out.elementBinary(b.min === undefined ? empty : plainBound(leaf, b.min, "min"));
  out.list(3, ThriftType.binary, pages.length);
  for (const { bounds: b } of pages) out.elementBinary(b.max === undefined ? empty : plainBound(leaf, b.max, "max"));
  out.i32(4, boundaryOrder(pages.map((page) => page.bounds)));
  out.list(5, ThriftType.i64, pages.length);
  for (const { nullCount } of pages) out.elementInt(nullCount);
  out.end();
  return true;
}

/** Whether minima and maxima both rise, or both fall, over the pages that have any. */
function boundaryOrder(pages: readonly Bounds[]): number {
  let ascending = true;
  let descending = true;
  let last: Bounds | undefined;
  for (const page of pages) {
    if (page.values === 0) continue;
    if (last !== undefined) {
      const min = compareBounds(last.min!, page.min!);
      const max = compareBounds(last.max!, page.max!);
      if (min > 0 || max > 0) ascending = false;
      if (min < 0 || max < 0) descending = false;
    }
    last = page;
  }
  if (ascending) return BoundaryOrder.ascending;
  return descending ? BoundaryOrder.descending : BoundaryOrder.unordered;
}

/** Writes an `OffsetIndex`; `chunkOffset` is where the chunk begins in the file. */
export function writeOffsetIndex(out: ThriftWriter, { pages }: ColumnChunk, chunkOffset: number): void {
  out.begin();
  out.list(1, ThriftType.struct, pages.length);
  for (const page of pages) {
    out.begin();
    out.i64(1, chunkOffset + page.offset);
    out.i32(2, page.size);
    out.i64(3, page.firstRow);
    out.end();
  }
  out.end();
}

/** Sums up a leaf's chunks into the statistics of the file. */
export class ColumnAccount {
  readonly #leaf: ParquetLeaf;
  #bounds: Bounds = NO_BOUNDS;
  #valueCount = 0;
  #nullCount = 0;
  #storedBytes = 0;

  constructor(leaf: ParquetLeaf) {
    this.#leaf = leaf;
  }

  add(chunk: ColumnChunk): void {
    this.#bounds = mergeBounds(this.#bounds, chunk.bounds);
    this.#valueCount += chunk.valueCount;
    this.#nullCount += chunk.nullCount;
    this.#storedBytes += chunk.compressedBytes;
  }

  statistics(): ColumnStatistics {
    const { min, max, minExact, maxExact, hasNaN } = this.#bounds;
    return {
      fieldId: this.#leaf.field.id,
      valueCount: this.#valueCount,
      nullCount: this.#nullCount,
      hasNaN,
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
      minExact,
      maxExact,
      storedBytes: this.#storedBytes,
    };
  }
}
