/**
 * The values of one leaf in one row group, packed densely without nulls: what dictionaries, encodings and statistics
 * work on. Hot loops; nothing here makes an object per value.
 */

import type { Column } from "./columns.js";
import type { ByteBuffer } from "./parquet-buffer.js";
import type { Dictionary } from "./parquet-dictionary.js";
import { estimateDeltaBits, writeDelta32, writeDelta64 } from "./parquet-encodings.js";
import { Encoding, PhysicalType } from "./parquet-format.js";
import type { LeafEntries, ValueSizes } from "./parquet-levels.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { bigEndian } from "./parquet-statistics.js";
import { type Bounds, type BoundValue, NO_BOUNDS } from "./statistics.js";

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

/** Packs the values of a leaf. The result may share the column's buffers. */
export function packValues(leaf: ParquetLeaf, entries: LeafEntries): LeafValues {
  switch (leaf.physical) {
    case PhysicalType.boolean:
      return new BoolValues(entries);
    case PhysicalType.int32:
    case PhysicalType.float:
      return new WordValues(leaf, entries);
    case PhysicalType.int64:
    case PhysicalType.double:
      return new PairValues(leaf, entries);
    default:
      return new BytesValues(leaf, entries);
  }
}

class BoolValues implements LeafValues {
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

function exact(min: BoundValue, max: BoundValue, values: number, hasNaN = false): Bounds {
  return { min, max, minExact: true, maxExact: true, hasNaN, values };
}

/** INT32 and FLOAT. */
class WordValues implements LeafValues {
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
class PairValues implements LeafValues {
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

/** BYTE_ARRAY, and FIXED_LEN_BYTE_ARRAY of `width` bytes. */
class BytesValues implements LeafValues {
  /** 0 for BYTE_ARRAY. */
  readonly width: number;
  readonly count: number;
  readonly #data: Uint8Array;
  readonly #leaf: ParquetLeaf;
  #offsets: Int32Array | undefined;

  constructor(leaf: ParquetLeaf, entries: LeafEntries) {
    this.#leaf = leaf;
    this.count = entries.values;
    this.width = leaf.typeLength;
    const packed = this.width === 0 ? packRanges(entries) : packFixed(leaf, entries);
    this.#data = packed.data;
    this.#offsets = packed.offsets;
  }

  get offsets(): Int32Array | undefined {
    return this.#offsets;
  }

  get plainBytes(): number {
    return this.width > 0 ? this.width * this.count : this.#offsets![this.count]! - this.#offsets![0]! + 4 * this.count;
  }

  direct(): { encoding: Encoding; bytes: number } {
    if (this.width > 0) return { encoding: Encoding.plain, bytes: this.plainBytes };
    // Lengths apart from bytes are smaller, compress better and are quicker to write.
    return { encoding: Encoding.deltaLengthByteArray, bytes: this.plainBytes - 3 * this.count };
  }

  buildDictionary(dictionary: Dictionary): boolean {
    return dictionary.buildBytes(this.#data, this.#ranges(), this.count, this.width > 0 ? 0 : 4);
  }

  writeDictionary(out: ByteBuffer, dictionary: Dictionary): void {
    const offsets = this.#ranges();
    for (let i = 0; i < dictionary.size; i++) {
      const entry = dictionary.entries[i]!;
      if (this.width === 0) out.uint32(offsets[entry + 1]! - offsets[entry]!);
      copyBytes(out, this.#data, offsets[entry]!, offsets[entry + 1]!);
    }
  }

  write(out: ByteBuffer, encoding: Encoding, start: number, end: number): void {
    if (this.width > 0) {
      out.append(this.#data.subarray(start * this.width, end * this.width));
      return;
    }
    const offsets = this.#offsets!;
    if (encoding === Encoding.deltaLengthByteArray) {
      const lengths = new Int32Array(end - start);
      for (let i = start; i < end; i++) lengths[i - start] = offsets[i + 1]! - offsets[i]!;
      writeDelta32(out, lengths, 0, end - start);
      out.append(this.#data.subarray(offsets[start]!, offsets[end]!));
      return;
    }
    for (let i = start; i < end; i++) {
      out.uint32(offsets[i + 1]! - offsets[i]!);
      copyBytes(out, this.#data, offsets[i]!, offsets[i + 1]!);
    }
  }

  bounds(start: number, end: number, dictionary: Dictionary | undefined): Bounds {
    if (start === end) return NO_BOUNDS;
    const offsets = this.#ranges();
    const order = new RangeOrder(this.#data, offsets, this.#leaf.field.type.kind === "decimal");
    if (dictionary === undefined) {
      for (let i = start; i < end; i++) order.take(i);
    } else {
      const seen = new Uint8Array(dictionary.size);
      for (let i = start; i < end; i++) seen[dictionary.codes[i]!] = 1;
      for (let code = 0; code < seen.length; code++) if (seen[code] === 1) order.take(dictionary.entries[code]!);
    }
    return exact(this.#bound(order.min, offsets), this.#bound(order.max, offsets), end - start);
  }

  #bound(index: number, offsets: Int32Array): BoundValue {
    const bytes = this.#data.slice(offsets[index]!, offsets[index + 1]!);
    return this.#leaf.field.type.kind === "decimal" ? bigEndian(bytes) : bytes;
  }

  /** Offsets also for fixed widths, where they are only needed for dictionaries and bounds. */
  #ranges(): Int32Array {
    if (this.#offsets !== undefined) return this.#offsets;
    const offsets = new Int32Array(this.count + 1);
    for (let i = 0; i <= this.count; i++) offsets[i] = i * this.width;
    this.#offsets = offsets;
    return offsets;
  }
}

/**
 * Finds the smallest and the largest of byte ranges. Most lie between the two found so far, and share a beginning with
 * both: one comparison with the smallest tells how much, and the largest is compared from there on.
 */
class RangeOrder {
  min = -1;
  max = -1;
  /** Bytes that the smallest and the largest have in common. */
  #shared = 0;
  /** Where the last comparison found a difference. */
  #differs = 0;
  readonly #data: Uint8Array;
  readonly #view: DataView;
  readonly #offsets: Int32Array;
  /** Big-endian two's complement: the first byte has its sign flipped. */
  readonly #flip: number;

  constructor(data: Uint8Array, offsets: Int32Array, signed: boolean) {
    this.#data = data;
    this.#view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.#offsets = offsets;
    this.#flip = signed ? 0x80 : 0;
  }

  take(index: number): void {
    if (this.min < 0) {
      this.min = this.max = index;
      this.#shared = this.#offsets[index + 1]! - this.#offsets[index]!;
      return;
    }
    const order = this.#compare(index, this.min, 0);
    if (order < 0) {
      this.min = index;
    } else if (order > 0 && (this.#differs < this.#shared || this.#compare(index, this.max, this.#shared) > 0)) {
      this.max = index;
    } else {
      return;
    }
    this.#compare(this.min, this.max, 0);
    this.#shared = this.#differs;
  }

  /** Compares two ranges that are known to agree in their first `from` bytes. */
  #compare(a: number, b: number, from: number): number {
    const offsets = this.#offsets;
    const x = offsets[a]!;
    const y = offsets[b]!;
    const xLength = offsets[a + 1]! - x;
    const yLength = offsets[b + 1]! - y;
    const length = Math.min(xLength, yLength);
    let at = from;
    const view = this.#view;
    while (at + 4 <= length && view.getInt32(x + at) === view.getInt32(y + at)) at += 4;
    const data = this.#data;
    while (at < length && data[x + at] === data[y + at]) at++;
    this.#differs = at;
    if (at === length) return xLength - yLength;
    return at === 0 ? (data[x]! ^ this.#flip) - (data[y]! ^ this.#flip) : data[x + at]! - data[y + at]!;
  }
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

interface PackedBytes {
  readonly data: Uint8Array;
  readonly offsets: Int32Array | undefined;
}

/** Nulls are empty ranges, so the bytes need not move: only the offsets of the values are picked. */
function packRanges({ column, positions, values: count }: LeafEntries): PackedBytes {
  const data = column.values as Uint8Array;
  const offsets = column.offsets!;
  if (positions === undefined) return { data, offsets };
  const packed = new Int32Array(count + 1);
  let end = count === 0 ? 0 : offsets[positions[0]!]!;
  for (let i = 0; i < count; i++) {
    const start = offsets[positions[i]!]!;
    if (start !== end) return compactRanges(data, offsets, positions, count);
    packed[i] = start;
    end = offsets[positions[i]! + 1]!;
  }
  packed[count] = end;
  return { data, offsets: packed };
}

/** For columns that keep bytes under their nulls. */
function compactRanges(data: Uint8Array, offsets: Int32Array, positions: Int32Array, count: number): PackedBytes {
  const packed = new Int32Array(count + 1);
  for (let i = 0; i < count; i++) {
    packed[i + 1] = packed[i]! + offsets[positions[i]! + 1]! - offsets[positions[i]!]!;
  }
  const bytes = new Uint8Array(packed[count]!);
  for (let i = 0; i < count; i++) {
    bytes.set(data.subarray(offsets[positions[i]!]!, offsets[positions[i]! + 1]!), packed[i]!);
  }
  return { data: bytes, offsets: packed };
}

/** Fixed-width values side by side; decimals turned to big-endian and cut to `typeLength` bytes. */
function packFixed(leaf: ParquetLeaf, { column, positions, values: count }: LeafEntries): PackedBytes {
  const source = column.values as Uint8Array;
  const width = leaf.typeLength;
  const decimal = column.type.kind === "decimal";
  if (positions === undefined && !decimal) return { data: source.subarray(0, width * count), offsets: undefined };
  const stride = decimal ? 16 : width;
  const data = new Uint8Array(width * count);
  for (let i = 0; i < count; i++) {
    const from = stride * (positions === undefined ? i : positions[i]!);
    const to = width * i;
    if (decimal) for (let b = 0; b < width; b++) data[to + width - 1 - b] = source[from + b]!;
    else for (let b = 0; b < width; b++) data[to + b] = source[from + b]!;
  }
  return { data, offsets: undefined };
}

/** Short values are copied faster byte by byte than by a call. */
function copyBytes(out: ByteBuffer, data: Uint8Array, start: number, end: number): void {
  const length = end - start;
  const bytes = out.reserve(length);
  if (length > 48) {
    bytes.set(data.subarray(start, end), out.length);
  } else {
    const to = out.length;
    for (let i = 0; i < length; i++) bytes[to + i] = data[start + i]!;
  }
  out.length += length;
}
