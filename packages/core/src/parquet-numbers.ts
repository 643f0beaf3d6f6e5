/** Values of fixed physical widths: bits, and words of 32 and 64 bits. Hot loops; no object per value. */

import type { Column } from "./columns.js";
import type { ByteBuffer } from "./parquet-buffer.js";
import type { Dictionary } from "./parquet-dictionary.js";
import { estimateDeltaBits, writeDelta32, writeDelta64 } from "./parquet-encodings.js";
import { Encoding, PhysicalType } from "./parquet-format.js";
import type { LeafEntries } from "./parquet-levels.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { exact, type LeafValues } from "./parquet-values.js";
import { type Bounds, NO_BOUNDS } from "./statistics.js";

/** BOOLEAN. */
export class BoolValues implements LeafValues {
  readonly width = 1;
  readonly offsets = undefined;
  readonly count: number;
  /** 0 or 1 each. */
  readonly #values: Uint8Array;

  constructor({ column, positions, values: count }: LeafEntries) {
    const bits = column.values as Uint8Array;
    const values = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
      const at = positions === undefined ? i : positions[i]!;
      values[i] = (bits[at >> 3]! >> (at & 7)) & 1;
    }
    this.count = count;
    this.#values = values;
  }

  get plainBytes(): number {
    return (this.count + 7) >> 3;
  }

  direct(): { encoding: Encoding; bytes: number } {
    return { encoding: Encoding.plain, bytes: this.plainBytes };
  }

  buildDictionary(): boolean {
    return false;
  }

  writeDictionary(): void {}

  write(out: ByteBuffer, _encoding: Encoding, start: number, end: number): void {
    const size = (end - start + 7) >> 3;
    const bytes = out.reserve(size);
    bytes.fill(0, out.length, out.length + size);
    for (let i = start; i < end; i++) bytes[out.length + ((i - start) >> 3)]! |= this.#values[i]! << ((i - start) & 7);
    out.length += size;
  }

  bounds(start: number, end: number): Bounds {
    if (start === end) return NO_BOUNDS;
    let sum = 0;
    for (let i = start; i < end; i++) sum += this.#values[i]!;
    return exact(sum === end - start, sum > 0, end - start);
  }
}

/** INT32 and FLOAT. */
export class WordValues implements LeafValues {
  readonly width = 4;
  readonly offsets = undefined;
  readonly count: number;
  readonly #words: Int32Array;
  readonly #leaf: ParquetLeaf;

  constructor(leaf: ParquetLeaf, entries: LeafEntries) {
    this.#leaf = leaf;
    this.count = entries.values;
    this.#words = packWords(wordsOf(entries.column), entries);
  }

  get plainBytes(): number {
    return 4 * this.count;
  }

  direct(): { encoding: Encoding; bytes: number } {
    const bytes = this.plainBytes;
    if (this.#leaf.physical === PhysicalType.float) return { encoding: Encoding.plain, bytes };
    return deltaOrPlain(bytes, this.count, estimateDeltaBits(this.#words, this.count, 1));
  }

  buildDictionary(dictionary: Dictionary): boolean {
    return dictionary.buildWords(this.#words, this.count, 1);
  }

  writeDictionary(out: ByteBuffer, dictionary: Dictionary): void {
    for (let i = 0; i < dictionary.size; i++) out.uint32(this.#words[dictionary.entries[i]!]!);
  }

  write(out: ByteBuffer, encoding: Encoding, start: number, end: number): void {
    if (encoding === Encoding.deltaBinaryPacked) writeDelta32(out, this.#words, start, end);
    else out.append(bytesOf(this.#words, start, end));
  }

  bounds(start: number, end: number): Bounds {
    if (start === end) return NO_BOUNDS;
    const words = this.#words;
    if (this.#leaf.physical === PhysicalType.float) {
      return floatBounds(new Float32Array(words.buffer, words.byteOffset, words.length), start, end);
    }
    // Flipping the sign bit turns the unsigned order into the signed one.
    const flip = this.#leaf.field.type.kind === "uint32" ? 0x8000_0000 | 0 : 0;
    let min = 0x7fff_ffff;
    let max = -0x8000_0000;
    for (let i = start; i < end; i++) {
      const value = words[i]! ^ flip;
      if (value < min) min = value;
      if (value > max) max = value;
    }
    const bound = (value: number): bigint => BigInt(flip === 0 ? value : (value ^ flip) >>> 0);
    return exact(bound(min), bound(max), end - start);
  }
}

/** INT64 and DOUBLE, as pairs of words, low first. */
export class PairValues implements LeafValues {
  readonly width = 8;
  readonly offsets = undefined;
  readonly count: number;
  readonly #words: Int32Array;
  readonly #leaf: ParquetLeaf;

  constructor(leaf: ParquetLeaf, entries: LeafEntries) {
    this.#leaf = leaf;
    this.count = entries.values;
    this.#words = packPairs(entries);
  }

  get plainBytes(): number {
    return 8 * this.count;
  }

  direct(): { encoding: Encoding; bytes: number } {
    const bytes = this.plainBytes;
    if (this.#leaf.physical === PhysicalType.double) return { encoding: Encoding.plain, bytes };
    return deltaOrPlain(bytes, this.count, estimateDeltaBits(this.#words, this.count, 2));
  }

  buildDictionary(dictionary: Dictionary): boolean {
    return dictionary.buildWords(this.#words, this.count, 2);
  }

  writeDictionary(out: ByteBuffer, dictionary: Dictionary): void {
    for (let i = 0; i < dictionary.size; i++) {
      const at = 2 * dictionary.entries[i]!;
      out.uint32(this.#words[at]!);
      out.uint32(this.#words[at + 1]!);
    }
  }

  write(out: ByteBuffer, encoding: Encoding, start: number, end: number): void {
    if (encoding === Encoding.deltaBinaryPacked) writeDelta64(out, this.#words, start, end);
    else out.append(bytesOf(this.#words, 2 * start, 2 * end));
  }

  bounds(start: number, end: number): Bounds {
    if (start === end) return NO_BOUNDS;
    const words = this.#words;
    if (this.#leaf.physical === PhysicalType.double) return floatBounds(doublesOf(words), start, end);
    return this.#leaf.field.type.kind === "uint64"
      ? pairBounds(words, start, end, 0x8000_0000 | 0)
      : pairBounds(words, start, end, 0);
  }
}

/** Doubles hold the integers that people count with; only beyond them two words need comparing. */
function pairBounds(words: Int32Array, start: number, end: number, flip: number): Bounds {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (let i = start; i < end; i++) {
    const high = words[2 * i + 1]!;
    const value = (flip === 0 ? high : high >>> 0) * 0x1_0000_0000 + (words[2 * i]! >>> 0);
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (Number.isSafeInteger(min) && Number.isSafeInteger(max)) return exact(BigInt(min), BigInt(max), end - start);
  return widePairBounds(words, start, end, flip);
}

/** `flip` is the sign bit for unsigned values: flipping it turns their order into the signed one. */
function widePairBounds(words: Int32Array, start: number, end: number, flip: number): Bounds {
  let minHigh = 0x7fff_ffff;
  let minLow = -1;
  let maxHigh = -0x8000_0000;
  let maxLow = 0;
  for (let i = start; i < end; i++) {
    const low = words[2 * i]!;
    const high = words[2 * i + 1]! ^ flip;
    if (high < minHigh || (high === minHigh && low >>> 0 < minLow >>> 0)) {
      minHigh = high;
      minLow = low;
    }
    if (high > maxHigh || (high === maxHigh && low >>> 0 > maxLow >>> 0)) {
      maxHigh = high;
      maxLow = low;
    }
  }
  const bound = (high: number, low: number): bigint => {
    const value = (BigInt(high ^ flip) << 32n) | BigInt(low >>> 0);
    return flip === 0 ? value : BigInt.asUintN(64, value);
  };
  return exact(bound(minHigh, minLow), bound(maxHigh, maxLow), end - start);
}

function deltaOrPlain(plain: number, count: number, deltaBits: number): { encoding: Encoding; bytes: number } {
  const delta = (count * deltaBits) / 8;
  // Plain values decode faster: packing has to save something.
  return delta < 0.9 * plain
    ? { encoding: Encoding.deltaBinaryPacked, bytes: delta }
    : { encoding: Encoding.plain, bytes: plain };
}

/** NaN counts for nothing but `hasNaN`. */
function floatBounds(values: Float32Array | Float64Array, start: number, end: number): Bounds {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  let count = 0;
  for (let i = start; i < end; i++) {
    const value = values[i]!;
    if (value < min) min = value;
    if (value > max) max = value;
    if (!Number.isNaN(value)) count++;
  }
  const hasNaN = count < end - start;
  // Adding 0 makes −0 plain 0: which of the two is written is decided there.
  return count === 0 ? { ...NO_BOUNDS, hasNaN } : exact(min + 0, max + 0, count, hasNaN);
}

/** The same bytes as doubles; copied where they do not lie on an eight-byte boundary. */
function doublesOf(words: Int32Array): Float64Array {
  if (words.byteOffset % 8 === 0) return new Float64Array(words.buffer, words.byteOffset, words.length / 2);
  return new Float64Array(words.slice().buffer);
}

function bytesOf(words: Int32Array, start: number, end: number): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset + 4 * start, 4 * (end - start));
}

/** The column's values as 32-bit words: widened from 8 and 16 bits, cut from the low end of decimals. */
function wordsOf(column: Column): Int32Array {
  const values = column.values!;
  if (column.type.kind === "decimal") {
    const wide = decimalWords(column);
    const words = new Int32Array(column.length);
    for (let i = 0; i < column.length; i++) words[i] = wide[4 * i]!;
    return words;
  }
  if (values.BYTES_PER_ELEMENT === 4) return new Int32Array(values.buffer, values.byteOffset, column.length);
  return Int32Array.from(values as Int16Array);
}

/** Decimals as four words each, lowest first. */
function decimalWords(column: Column): Int32Array {
  const values = column.values as Uint8Array;
  const bytes = values.byteOffset % 4 === 0 ? values : values.slice(0, 16 * column.length);
  return new Int32Array(bytes.buffer, bytes.byteOffset, 4 * column.length);
}

function packWords(words: Int32Array, { positions, values: count }: LeafEntries): Int32Array {
  if (positions === undefined) return words;
  const packed = new Int32Array(count);
  for (let i = 0; i < count; i++) packed[i] = words[positions[i]!]!;
  return packed;
}

function packPairs({ column, positions, values: count }: LeafEntries): Int32Array {
  const decimal = column.type.kind === "decimal";
  const values = column.values!;
  const words = decimal ? decimalWords(column) : new Int32Array(values.buffer, values.byteOffset, 2 * column.length);
  if (positions === undefined && !decimal) return words;
  const stride = decimal ? 4 : 2;
  const packed = new Int32Array(2 * count);
  for (let i = 0; i < count; i++) {
    const at = stride * (positions === undefined ? i : positions[i]!);
    packed[2 * i] = words[at]!;
    packed[2 * i + 1] = words[at + 1]!;
  }
  return packed;
}
