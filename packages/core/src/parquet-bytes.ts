/** Values that are ranges of bytes: BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY. */

import { valueBytes } from "./layout.js";
import { bigEndian } from "./parquet-buffer.js";
import { bytesDictionary, type Dictionary } from "./parquet-dictionary.js";
import { Encoding } from "./parquet-format.js";
import type { LeafEntries } from "./parquet-levels.js";
import type { EncodeMemory } from "./parquet-memory.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { exact, type LeafValues } from "./parquet-values.js";
import { type Bounds, type BoundValue, NO_BOUNDS } from "./statistics.js";

/** BYTE_ARRAY, and FIXED_LEN_BYTE_ARRAY of `width` bytes. */
export class BytesValues implements LeafValues {
  /** 0 for BYTE_ARRAY. */
  readonly width: number;
  readonly count: number;
  readonly splits = false;
  readonly #memory: EncodeMemory;
  readonly #data: number;
  readonly #leaf: ParquetLeaf;
  /** Also for fixed widths: dictionaries and bounds need them. */
  readonly #offsets: number;

  constructor(memory: EncodeMemory, leaf: ParquetLeaf, entries: LeafEntries) {
    this.#memory = memory;
    this.#leaf = leaf;
    this.count = entries.values;
    this.width = leaf.typeLength;
    const { data, offsets } = this.width === 0 ? packRanges(memory, entries) : packFixed(memory, leaf, entries);
    this.#data = data;
    this.#offsets = offsets;
  }

  get offsets(): number {
    return this.width === 0 ? this.#offsets : 0;
  }

  plainBytes(start: number, end: number): number {
    if (this.width > 0) return this.width * (end - start);
    return this.#offset(end) - this.#offset(start) + 4 * (end - start);
  }

  direct(): { encoding: Encoding; bytes: number } {
    const plain = this.plainBytes(0, this.count);
    if (this.width > 0) return { encoding: Encoding.plain, bytes: plain };
    // Lengths apart from bytes are smaller, compress better and are quicker to write.
    return { encoding: Encoding.deltaLengthByteArray, bytes: plain - 3 * this.count };
  }

  dictionary(judge: boolean): Dictionary | undefined {
    return bytesDictionary(this.#memory, this.#data, this.#offsets, this.count, this.width > 0 ? 0 : 4, judge);
  }

  writeDictionary(out: number, { entries, size }: Dictionary): number {
    return this.#memory.loops.plainEntries(out, this.#data, this.#offsets, entries, size, this.width === 0 ? 1 : 0);
  }

  write(out: number, encoding: Encoding, start: number, end: number): number {
    const memory = this.#memory;
    if (this.width > 0) return memory.copy(out, this.#data + start * this.width, this.width * (end - start));
    if (encoding === Encoding.plain) return memory.loops.plainRanges(out, this.#data, this.#offsets, start, end);
    if (encoding === Encoding.deltaByteArray) {
      const mark = memory.mark();
      const scratch = memory.take(8 * (end - start) + 4);
      const last = memory.loops.deltaBytes(out, this.#data, this.#offsets, start, end, scratch);
      memory.release(mark);
      return last;
    }
    const to = memory.loops.deltaLengths(out, this.#offsets, start, end);
    const from = this.#offset(start);
    return memory.copy(to, this.#data + from, this.#offset(end) - from);
  }

  bounds(start: number, end: number, dictionary: Dictionary | undefined): Bounds {
    if (start === end) return NO_BOUNDS;
    const memory = this.#memory;
    const offsets = this.#offsets;
    const signed = this.#leaf.field.type.kind === "decimal" ? 1 : 0;
    if (dictionary === undefined) {
      memory.loops.rangeBounds(this.#data, offsets, signed, start, end);
    } else {
      const { codes, entries, size } = dictionary;
      const mark = memory.mark();
      const seen = memory.take(size);
      memory.fill(seen, 0, size);
      memory.loops.entryBounds(this.#data, offsets, signed, codes, entries, size, seen, start, end);
      memory.release(mark);
    }
    return exact(this.#bound(memory.resultInt32(0)), this.#bound(memory.resultInt32(1)), end - start);
  }

  #bound(index: number): BoundValue {
    const from = this.#offset(index);
    const bytes = this.#memory.bytes(this.#data + from, this.#offset(index + 1) - from);
    return this.#leaf.field.type.kind === "decimal" ? bigEndian(bytes) : bytes;
  }

  #offset(index: number): number {
    return this.#memory.int32(this.#offsets + 4 * index);
  }
}

interface Packed {
  readonly data: number;
  readonly offsets: number;
}

/** Nulls are empty ranges, so the bytes need not move: only the offsets of the values are picked. */
function packRanges(memory: EncodeMemory, { column, positions, values: count }: LeafEntries): Packed {
  const { loops } = memory;
  const bytes = column.offsets![column.length]!;
  const data = memory.copyIn(column.values!, bytes);
  const offsets = memory.copyIn(column.offsets!, 4 * (column.length + 1));
  if (positions === 0) return { data, offsets };
  const picked = memory.take(4 * (count + 1));
  if (count === 0) memory.setInt32(picked, 0);
  else if (loops.pickOffsets(offsets, positions, count, picked) === 0) {
    // The column keeps bytes under its nulls.
    const moved = memory.take(bytes);
    loops.moveRanges(data, offsets, positions, count, moved, picked);
    return { data: moved, offsets: picked };
  }
  return { data, offsets: picked };
}

/** Fixed-width values side by side; decimals turned to big-endian and cut to `typeLength` bytes. */
function packFixed(memory: EncodeMemory, leaf: ParquetLeaf, { column, positions, values: count }: LeafEntries): Packed {
  const width = leaf.typeLength;
  const stride = valueBytes(column.type);
  const data = memory.copyIn(column.values!, stride * column.length);
  const offsets = memory.take(4 * (count + 1));
  memory.loops.evenOffsets(count, width, offsets);
  const decimal = column.type.kind === "decimal";
  if (positions === 0 && !decimal) return { data, offsets };
  const packed = memory.take(width * count);
  memory.loops.packFixed(data, positions, count, stride, width, decimal ? 1 : 0, packed);
  return { data: packed, offsets };
}
