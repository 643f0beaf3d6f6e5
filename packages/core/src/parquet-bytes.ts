/** Values that are ranges of bytes: BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY. Hot loops; no object per value. */

import { type ByteBuffer, bigEndian } from "./parquet-buffer.js";
import type { Dictionary } from "./parquet-dictionary.js";
import { writeDelta32 } from "./parquet-encodings.js";
import { Encoding } from "./parquet-format.js";
import type { LeafEntries } from "./parquet-levels.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { exact, type LeafValues } from "./parquet-values.js";
import { type Bounds, type BoundValue, NO_BOUNDS } from "./statistics.js";

/** BYTE_ARRAY, and FIXED_LEN_BYTE_ARRAY of `width` bytes. */
export class BytesValues implements LeafValues {
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
