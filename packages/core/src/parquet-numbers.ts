/** Values of fixed physical widths: bits, and words of 32 and 64 bits. */

import { bitmapBytes } from "./bitmap.js";
import type { Column } from "./columns.js";
import { valueBytes } from "./layout.js";
import { type Dictionary, numberDictionary } from "./parquet-dictionary.js";
import { Encoding, PhysicalType } from "./parquet-format.js";
import type { LeafEntries } from "./parquet-levels.js";
import type { EncodeMemory } from "./parquet-memory.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { exact, type LeafValues } from "./parquet-values.js";
import { type Bounds, NO_BOUNDS } from "./statistics.js";

/** BOOLEAN. */
export class BoolValues implements LeafValues {
  readonly width = 1;
  readonly offsets = 0;
  readonly count: number;
  readonly #memory: EncodeMemory;
  /** 0 or 1 each. */
  readonly #values: number;

  constructor(memory: EncodeMemory, { column, positions, values: count }: LeafEntries) {
    const bits = memory.copyIn(column.values!, bitmapBytes(column.length));
    this.count = count;
    this.#memory = memory;
    this.#values = memory.take(count);
    memory.loops.unpackBits(bits, positions, count, this.#values);
  }

  plainBytes(start: number, end: number): number {
    return bitmapBytes(end - start);
  }

  direct(): { encoding: Encoding; bytes: number } {
    return { encoding: Encoding.plain, bytes: bitmapBytes(this.count) };
  }

  readonly splits = false;

  dictionary(): undefined {
    return undefined;
  }

  writeDictionary(out: number): number {
    return out;
  }

  write(out: number, _encoding: Encoding, start: number, end: number): number {
    return this.#memory.loops.packBits(out, this.#values, start, end);
  }

  bounds(start: number, end: number): Bounds {
    if (start === end) return NO_BOUNDS;
    const sum = this.#memory.loops.sumBytes(this.#values, start, end);
    return exact(sum === end - start, sum > 0, end - start);
  }
}

/** INT32, FLOAT, INT64 and DOUBLE. */
export class NumberValues implements LeafValues {
  readonly width: 4 | 8;
  readonly offsets = 0;
  readonly count: number;
  readonly #memory: EncodeMemory;
  readonly #leaf: ParquetLeaf;
  readonly #values: number;

  constructor(memory: EncodeMemory, leaf: ParquetLeaf, entries: LeafEntries) {
    const { int32, float } = PhysicalType;
    this.width = leaf.physical === int32 || leaf.physical === float ? 4 : 8;
    this.count = entries.values;
    this.#memory = memory;
    this.#leaf = leaf;
    this.#values = pack(memory, entries, this.width);
  }

  plainBytes(start: number, end: number): number {
    return this.width * (end - start);
  }

  direct(): { encoding: Encoding; bytes: number } {
    const plain = this.plainBytes(0, this.count);
    if (this.splits) return { encoding: Encoding.plain, bytes: plain };
    const { estimateDelta32, estimateDelta64 } = this.#memory.loops;
    const bits = (this.width === 4 ? estimateDelta32 : estimateDelta64)(this.#values, this.count);
    const delta = (this.count * bits) / 8;
    // Plain values decode faster: packing has to save something.
    return delta < 0.9 * plain
      ? { encoding: Encoding.deltaBinaryPacked, bytes: delta }
      : { encoding: Encoding.plain, bytes: plain };
  }

  dictionary(judge: boolean): Dictionary | undefined {
    return numberDictionary(this.#memory, this.#values, this.count, this.width, judge);
  }

  writeDictionary(out: number, { entries, size }: Dictionary): number {
    const { entries32, entries64 } = this.#memory.loops;
    return (this.width === 4 ? entries32 : entries64)(out, this.#values, entries, size);
  }

  write(out: number, encoding: Encoding, start: number, end: number): number {
    const { delta32, delta64, splitStreams } = this.#memory.loops;
    if (encoding === Encoding.byteStreamSplit) return splitStreams(out, this.#values, start, end, this.width);
    if (encoding === Encoding.deltaBinaryPacked) {
      return (this.width === 4 ? delta32 : delta64)(out, this.#values, start, end);
    }
    return this.#memory.copy(out, this.#values + this.width * start, this.width * (end - start));
  }

  bounds(start: number, end: number): Bounds {
    if (start === end) return NO_BOUNDS;
    if (this.splits) return this.#floatBounds(start, end);
    const memory = this.#memory;
    const { kind } = this.#leaf.field.type;
    if (this.width === 4) {
      memory.loops.bounds32(this.#values, start, end, kind === "uint32" ? 0x8000_0000 | 0 : 0);
      const bound = (index: number): bigint => {
        const value = memory.resultInt32(index);
        return BigInt(kind === "uint32" ? value >>> 0 : value);
      };
      return exact(bound(0), bound(1), end - start);
    }
    memory.loops.bounds64(this.#values, start, end, kind === "uint64" ? -(1n << 63n) : 0n);
    const bound = (index: number): bigint => {
      const value = memory.resultInt64(index);
      return kind === "uint64" ? BigInt.asUintN(64, value) : value;
    };
    return exact(bound(0), bound(1), end - start);
  }

  get splits(): boolean {
    return this.#leaf.physical === PhysicalType.float || this.#leaf.physical === PhysicalType.double;
  }

  /** NaN counts for nothing but `hasNaN`. */
  #floatBounds(start: number, end: number): Bounds {
    const { boundsFloat, boundsDouble } = this.#memory.loops;
    const count = (this.width === 4 ? boundsFloat : boundsDouble)(this.#values, start, end);
    const hasNaN = count < end - start;
    if (count === 0) return { ...NO_BOUNDS, hasNaN };
    // Adding 0 makes −0 plain 0: which of the two is written is decided there.
    return exact(this.#memory.resultDouble(0) + 0, this.#memory.resultDouble(1) + 0, count, hasNaN);
  }
}

/** Values side by side in their physical width: widened from 8 and 16 bits, cut from the low end of decimals. */
function pack(memory: EncodeMemory, { column, positions, values: count }: LeafEntries, width: 4 | 8): number {
  const stride = valueBytes(column.type);
  const values = memory.copyIn(column.values!, stride * column.length);
  if (stride === width && positions === 0) return values;
  const packed = memory.take(width * count);
  const { pack32, pack64, widen } = memory.loops;
  if (stride < width) widen(values, positions, count, stride, isSigned(column), packed);
  else (width === 4 ? pack32 : pack64)(values, positions, count, stride, packed);
  return packed;
}

function isSigned({ type }: Column): number {
  return type.kind === "int8" || type.kind === "int16" ? 1 : 0;
}
