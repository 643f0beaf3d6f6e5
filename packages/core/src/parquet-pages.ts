/** One column chunk: its values cut into pages, encoded, compressed, with the statistics of each page. */

import { type Codec, type Compressed, UNCOMPRESSED } from "./compression.js";
import { ByteBuffer } from "./parquet-buffer.js";
import { BytesValues } from "./parquet-bytes.js";
import type { Dictionary } from "./parquet-dictionary.js";
import { Encoding, PageType, PhysicalType } from "./parquet-format.js";
import { cutPages, type LeafEntries } from "./parquet-levels.js";
import type { EncodeMemory } from "./parquet-memory.js";
import { BoolValues, NumberValues } from "./parquet-numbers.js";
import type { PageOptions } from "./parquet-options.js";
import type { OutputBytes } from "./parquet-output.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { ThriftWriter } from "./parquet-thrift.js";
import { encodedBytes, type LeafValues } from "./parquet-values.js";
import { type Bounds, mergeBounds, NO_BOUNDS, truncateBounds } from "./statistics.js";

export interface PageRecord {
  /** Bytes from the start of the chunk to the page's header. */
  readonly offset: number;
  /** Bytes, header included. */
  readonly size: number;
  /** Row within the row group that the page begins with. */
  readonly firstRow: number;
  readonly nullCount: number;
  readonly bounds: Bounds;
}

export interface ColumnChunk {
  readonly leaf: ParquetLeaf;
  readonly codec: number;
  /** Of the data pages. */
  readonly encodings: ReadonlyMap<Encoding, number>;
  readonly valueCount: number;
  readonly nullCount: number;
  readonly uncompressedBytes: number;
  readonly compressedBytes: number;
  /** Bytes of the dictionary page that comes first, 0 for none. */
  readonly dictionaryBytes: number;
  readonly bounds: Bounds;
  readonly pages: readonly PageRecord[];
  /** The chunk's bytes, in order. */
  readonly parts: readonly Uint8Array[];
}

/** Values of a page before it is cut short of `pageRows` rows. */
const PAGE_BYTES = 1 << 20;
/** Floats that are encoded both ways to choose between them. */
const SPLIT_SAMPLE = 2048;
/** Below this, a dictionary page costs more than it can save. */
const DICTIONARY_MIN_BYTES = 128;

/** Encodes column chunks, one after the other. */
export class ChunkEncoder {
  readonly #header = new ThriftWriter(new ByteBuffer(128));

  encode(
    memory: EncodeMemory,
    leaf: ParquetLeaf,
    entries: LeafEntries,
    options: PageOptions,
    output: OutputBytes,
  ): ColumnChunk {
    const values = packValues(memory, leaf, entries);
    const { encoding, dictionary } = choose(memory, values, options);
    const cuts = cutPages(memory, leaf, entries, values, options.pageRows, PAGE_BYTES);
    const pages = new PageBodies(memory, leaf, entries, values, encoding, dictionary);
    const chunk = new ChunkBuilder(this.#header, output);
    let { codec } = options;
    for (let page = 0; page + 1 < cuts.entries.length; page++) {
      const mark = memory.mark();
      const start = cuts.values[page]!;
      const end = cuts.values[page + 1]!;
      const body = pages.data(cuts.entries[page]!, cuts.entries[page + 1]!, start, end);
      let compressed: Compressed = codec.compress(memory, body.at, body.length);
      if (page === 0) {
        // The codec is one for all pages of a chunk: left out where it does not shrink the first ones.
        const first = dictionary === undefined ? undefined : pages.dictionary(dictionary);
        let packed: Compressed | undefined = first && codec.compress(memory, first.at, first.length);
        const size = compressed.length + (packed?.length ?? 0);
        if (codec !== UNCOMPRESSED && size >= body.length + (first?.length ?? 0)) {
          codec = UNCOMPRESSED;
          compressed = body;
          packed = first;
        }
        if (first !== undefined && packed !== undefined) {
          chunk.addDictionary(dictionary!.size, first.length, memory.view(packed.at, packed.length));
        }
      }
      const bounds = truncateBounds(leaf.field.type, values.bounds(start, end, dictionary), options.truncateBytes);
      const count = cuts.entries[page + 1]! - cuts.entries[page]!;
      const nulls = count - (end - start);
      const bytes = memory.view(compressed.at, compressed.length);
      chunk.addData(body.encoding, count, nulls, cuts.rows[page]!, bounds, body.length, bytes);
      memory.release(mark);
    }
    return chunk.finish(leaf, codec.id);
  }
}

interface Choice {
  readonly encoding: Encoding;
  readonly dictionary: Dictionary | undefined;
}

/** The encoding that was asked for, else a dictionary where it pays, else what suits the values. */
function choose(memory: EncodeMemory, values: LeafValues, options: PageOptions): Choice {
  if (values.count === 0) return { encoding: Encoding.plain, dictionary: undefined };
  const asked = options.encoding;
  if (asked !== undefined && asked !== Encoding.rleDictionary) return { encoding: asked, dictionary: undefined };
  const { encoding, bytes } = values.direct();
  if (asked === Encoding.rleDictionary || (options.dictionary && bytes >= DICTIONARY_MIN_BYTES)) {
    const mark = memory.mark();
    const dictionary = values.dictionary(asked === undefined);
    if (dictionary !== undefined) {
      const size = dictionary.bytes + (values.count * bitWidth(dictionary.size - 1)) / 8;
      const pays = size + DICTIONARY_MIN_BYTES / 2 < bytes;
      if (pays || asked !== undefined) return { encoding: Encoding.rleDictionary, dictionary };
    }
    memory.release(mark);
  }
  if (encoding === Encoding.plain && values.splits && splitPays(memory, values, options.codec)) {
    return { encoding: Encoding.byteStreamSplit, dictionary: undefined };
  }
  return { encoding, dictionary: undefined };
}

/** Whether BYTE_STREAM_SPLIT makes a sample of floats smaller by an eighth: else PLAIN is quicker to read. */
function splitPays(memory: EncodeMemory, values: LeafValues, codec: Codec): boolean {
  if (codec === UNCOMPRESSED || values.count < SPLIT_SAMPLE / 4) return false;
  const mark = memory.mark();
  const end = Math.min(values.count, SPLIT_SAMPLE);
  const at = memory.take(encodedBytes(end, values.plainBytes(0, end)));
  const size = (encoding: Encoding): number => {
    return codec.compress(memory, at, values.write(at, encoding, 0, end) - at).length;
  };
  const pays = size(Encoding.byteStreamSplit) < 0.875 * size(Encoding.plain);
  memory.release(mark);
  return pays;
}

interface PageBody {
  readonly at: number;
  readonly length: number;
}

/** What pages of a chunk hold before they are compressed. */
class PageBodies {
  readonly #memory: EncodeMemory;
  readonly #leaf: ParquetLeaf;
  readonly #entries: LeafEntries;
  readonly #values: LeafValues;
  readonly #encoding: Encoding;
  readonly #dictionary: Dictionary | undefined;

  constructor(
    memory: EncodeMemory,
    leaf: ParquetLeaf,
    entries: LeafEntries,
    values: LeafValues,
    encoding: Encoding,
    dictionary: Dictionary | undefined,
  ) {
    this.#memory = memory;
    this.#leaf = leaf;
    this.#entries = entries;
    this.#values = values;
    this.#encoding = encoding;
    this.#dictionary = dictionary;
  }

  dictionary(dictionary: Dictionary): PageBody {
    const at = this.#memory.take(dictionary.bytes);
    return { at, length: this.#values.writeDictionary(at, dictionary) - at };
  }

  /** A version 1 page: repetition levels, definition levels, values. Every reader takes it. */
  data(first: number, last: number, start: number, end: number): PageBody & { readonly encoding: Encoding } {
    const { maxRepetition, maxDefinition } = this.#leaf;
    const plain = this.#values.plainBytes(start, end);
    const levels = hybridBytes(last - first, 8);
    const indexes = hybridBytes(end - start, 24);
    const at = this.#memory.take(2 * levels + Math.max(indexes, encodedBytes(end - start, plain)));
    let out = at;
    if (maxRepetition > 0) out = this.#writeLevels(out, this.#entries.repetition, 0, first, last, maxRepetition);
    if (maxDefinition > 0) {
      out = this.#writeLevels(out, this.#entries.definition, maxDefinition, first, last, maxDefinition);
    }
    let encoding = this.#encoding;
    if (this.#dictionary !== undefined) {
      const width = bitWidth(this.#dictionary.size - 1);
      this.#memory.setByte(out, width);
      out = this.#memory.loops.hybrid32(out + 1, this.#dictionary.codes, start, end, width);
    } else if (start === end) {
      // A page of nulls has no first value, which delta encodings begin with.
      encoding = Encoding.plain;
    } else {
      out = this.#values.write(out, encoding, start, end);
    }
    return { at, length: out - at, encoding };
  }

  /** Levels behind their length in bytes; absent levels are all `missing`. */
  #writeLevels(out: number, levels: number, missing: number, start: number, end: number, max: number): number {
    const { hybrid8, writeRun } = this.#memory.loops;
    const from = out + 4;
    const to =
      levels === 0
        ? writeRun(from, missing, end - start, bitWidth(max))
        : hybrid8(from, levels, start, end, bitWidth(max));
    this.#memory.setInt32(out, to - from);
    return to;
  }
}

/** Bits needed for values up to `max`. */
function bitWidth(max: number): number {
  return 32 - Math.clz32(max);
}

/** More than the RLE / bit-packing hybrid takes. */
function hybridBytes(count: number, width: number): number {
  // Each group of eight may end a run of literals, and the run behind it says its own length and value.
  return ((count >> 3) + 2) * (width + 10) + 16;
}

/** Packs the values of a leaf. */
function packValues(memory: EncodeMemory, leaf: ParquetLeaf, entries: LeafEntries): LeafValues {
  switch (leaf.physical) {
    case PhysicalType.boolean:
      return new BoolValues(memory, entries);
    case PhysicalType.byteArray:
    case PhysicalType.fixedLenByteArray:
      return new BytesValues(memory, leaf, entries);
    default:
      return new NumberValues(memory, leaf, entries);
  }
}

class ChunkBuilder {
  readonly #header: ThriftWriter;
  readonly #encodings = new Map<Encoding, number>();
  readonly #pages: PageRecord[] = [];
  readonly #output: OutputBytes;
  #valueCount = 0;
  #nullCount = 0;
  #uncompressed = 0;
  #compressed = 0;
  #dictionaryBytes = 0;
  #bounds: Bounds = NO_BOUNDS;

  constructor(header: ThriftWriter, output: OutputBytes) {
    this.#header = header;
    this.#output = output;
  }

  addDictionary(size: number, uncompressed: number, body: Uint8Array): void {
    const header = this.#begin(PageType.dictionary, uncompressed, body.length);
    header.struct(7);
    header.i32(1, size);
    header.i32(2, Encoding.plain);
    header.end();
    this.#dictionaryBytes = this.#add(uncompressed, body);
  }

  addData(
    encoding: Encoding,
    valueCount: number,
    nullCount: number,
    firstRow: number,
    bounds: Bounds,
    uncompressed: number,
    body: Uint8Array,
  ): void {
    const header = this.#begin(PageType.data, uncompressed, body.length);
    header.struct(5);
    header.i32(1, valueCount);
    header.i32(2, encoding);
    header.i32(3, Encoding.rle);
    header.i32(4, Encoding.rle);
    header.end();
    const offset = this.#compressed;
    this.#pages.push({ offset, size: this.#add(uncompressed, body), firstRow, nullCount, bounds });
    this.#encodings.set(encoding, (this.#encodings.get(encoding) ?? 0) + 1);
    this.#valueCount += valueCount;
    this.#nullCount += nullCount;
    this.#bounds = mergeBounds(this.#bounds, bounds);
  }

  finish(leaf: ParquetLeaf, codec: number): ColumnChunk {
    return {
      leaf,
      codec,
      encodings: this.#encodings,
      valueCount: this.#valueCount,
      nullCount: this.#nullCount,
      uncompressedBytes: this.#uncompressed,
      compressedBytes: this.#compressed,
      dictionaryBytes: this.#dictionaryBytes,
      bounds: this.#bounds,
      pages: this.#pages,
      parts: this.#output.take(),
    };
  }

  #begin(type: PageType, uncompressed: number, compressed: number): ThriftWriter {
    const header = this.#header;
    header.out.clear();
    header.begin();
    header.i32(1, type);
    header.i32(2, uncompressed);
    header.i32(3, compressed);
    return header;
  }

  /** Ends the header and takes the page; returns its bytes. */
  #add(uncompressed: number, body: Uint8Array): number {
    this.#header.end();
    const header = this.#header.out.view();
    this.#output.append(header);
    this.#output.append(body);
    this.#uncompressed += header.length + uncompressed;
    this.#compressed += header.length + body.length;
    return header.length + body.length;
  }
}
