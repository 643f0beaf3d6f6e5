/** One column chunk: its values cut into pages, encoded, compressed, with the statistics of each page. */

import { type Codec, UNCOMPRESSED } from "./compression.js";
import { ByteBuffer, putUint32 } from "./parquet-buffer.js";
import { BytesValues } from "./parquet-bytes.js";
import { Dictionary } from "./parquet-dictionary.js";
import { bitWidth, writeHybrid } from "./parquet-encodings.js";
import { Encoding, PageType, PhysicalType } from "./parquet-format.js";
import { cutPages, type LeafEntries, type PageCuts } from "./parquet-levels.js";
import { BoolValues, PairValues, WordValues } from "./parquet-numbers.js";
import type { ParquetLeaf } from "./parquet-schema.js";
import { ThriftWriter } from "./parquet-thrift.js";
import type { LeafValues } from "./parquet-values.js";
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

export interface PageOptions {
  readonly codec: Codec;
  readonly pageRows: number;
  readonly dictionary: boolean;
  readonly truncateBytes: number;
}

/** Values of a page before it is cut short of `pageRows` rows. */
const PAGE_BYTES = 1 << 20;
/** Below this, a dictionary page costs more than it can save. */
const DICTIONARY_MIN_BYTES = 128;

/** Encodes column chunks, one after the other, with buffers that are kept. */
export class ChunkEncoder {
  readonly #options: PageOptions;
  readonly #body = new ByteBuffer();
  readonly #dictionaryBody = new ByteBuffer(0);
  readonly #header = new ThriftWriter(new ByteBuffer(128));
  readonly #dictionary = new Dictionary();
  #levels = new Int32Array(0);

  constructor(options: PageOptions) {
    this.#options = options;
  }

  encode(leaf: ParquetLeaf, entries: LeafEntries): ColumnChunk {
    const values = packValues(leaf, entries);
    const { encoding, dictionary } = this.#choose(values);
    const cuts = cutPages(leaf, entries, values, this.#options.pageRows, PAGE_BYTES);
    const chunk = new ChunkBuilder(this.#header);

    this.#dictionaryBody.clear();
    if (dictionary !== undefined) values.writeDictionary(this.#dictionaryBody, dictionary);
    let codec = this.#options.codec;
    for (let page = 0; page + 1 < cuts.entries.length; page++) {
      const pageEncoding = this.#writeBody(leaf, entries, values, cuts, page, encoding, dictionary);
      const body = this.#body.view();
      let compressed = codec.compress(body);
      if (page === 0) {
        // The codec is one for all pages of a chunk: left out where it does not shrink the first ones.
        let packed = dictionary === undefined ? undefined : codec.compress(this.#dictionaryBody.view());
        const size = compressed.length + (packed?.length ?? 0);
        if (codec !== UNCOMPRESSED && size >= body.length + this.#dictionaryBody.length) {
          codec = UNCOMPRESSED;
          compressed = body.slice();
          packed &&= this.#dictionaryBody.copy();
        }
        if (dictionary !== undefined && packed !== undefined) {
          chunk.addDictionary(dictionary.size, this.#dictionaryBody.length, packed);
        }
      }
      const start = cuts.values[page]!;
      const end = cuts.values[page + 1]!;
      const bounds = truncateBounds(
        leaf.field.type,
        values.bounds(start, end, dictionary),
        this.#options.truncateBytes,
      );
      const count = cuts.entries[page + 1]! - cuts.entries[page]!;
      chunk.addData(pageEncoding, count, count - (end - start), cuts.rows[page]!, bounds, body.length, compressed);
    }
    return chunk.finish(leaf, codec.id);
  }

  #choose(values: LeafValues): { encoding: Encoding; dictionary: Dictionary | undefined } {
    if (values.count === 0) return { encoding: Encoding.plain, dictionary: undefined };
    const { encoding, bytes } = values.direct();
    if (this.#options.dictionary && bytes >= DICTIONARY_MIN_BYTES && values.buildDictionary(this.#dictionary)) {
      const dictionary = this.#dictionary;
      const size = dictionary.bytes + (values.count * bitWidth(dictionary.size - 1)) / 8;
      if (size + DICTIONARY_MIN_BYTES / 2 < bytes) return { encoding: Encoding.rleDictionary, dictionary };
    }
    return { encoding, dictionary: undefined };
  }

  /** A version 1 page: repetition levels, definition levels, values. Every reader takes it. */
  #writeBody(
    leaf: ParquetLeaf,
    entries: LeafEntries,
    values: LeafValues,
    cuts: PageCuts,
    page: number,
    encoding: Encoding,
    dictionary: Dictionary | undefined,
  ): Encoding {
    const out = this.#body;
    out.clear();
    const first = cuts.entries[page]!;
    const last = cuts.entries[page + 1]!;
    if (leaf.maxRepetition > 0) this.#writeLevels(entries.repetition, 0, first, last, leaf.maxRepetition);
    if (leaf.maxDefinition > 0) {
      this.#writeLevels(entries.definition, leaf.maxDefinition, first, last, leaf.maxDefinition);
    }
    const start = cuts.values[page]!;
    const end = cuts.values[page + 1]!;
    if (dictionary !== undefined) {
      const width = bitWidth(dictionary.size - 1);
      out.byte(width);
      writeHybrid(out, dictionary.codes, start, end, width);
      return encoding;
    }
    // A page of nulls has no first value, which delta encodings begin with.
    if (start === end) return Encoding.plain;
    values.write(out, encoding, start, end);
    return encoding;
  }

  /** Levels behind their length in bytes; absent levels are all `missing`. */
  #writeLevels(levels: Uint8Array | undefined, missing: number, start: number, end: number, max: number): void {
    const count = end - start;
    if (this.#levels.length < count) this.#levels = new Int32Array(Math.max(count, 1024));
    if (levels === undefined) this.#levels.fill(missing, 0, count);
    else this.#levels.set(levels.subarray(start, end));
    const out = this.#body;
    const at = out.length;
    out.uint32(0);
    writeHybrid(out, this.#levels, 0, count, bitWidth(max));
    putUint32(out.bytes, at, out.length - at - 4);
  }
}

/** Packs the values of a leaf. The result may share the column's buffers. */
function packValues(leaf: ParquetLeaf, entries: LeafEntries): LeafValues {
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

class ChunkBuilder {
  readonly #header: ThriftWriter;
  readonly #encodings = new Map<Encoding, number>();
  readonly #pages: PageRecord[] = [];
  readonly #parts: Uint8Array[] = [];
  #valueCount = 0;
  #nullCount = 0;
  #uncompressed = 0;
  #compressed = 0;
  #dictionaryBytes = 0;
  #bounds: Bounds = NO_BOUNDS;

  constructor(header: ThriftWriter) {
    this.#header = header;
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
      parts: this.#parts,
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
    const header = this.#header.out.copy();
    this.#parts.push(header, body);
    this.#uncompressed += header.length + uncompressed;
    this.#compressed += header.length + body.length;
    return header.length + body.length;
  }
}
