/** Record batches to a Parquet file, row group by row group. Format: apache/parquet-format 2.x with version 1 pages. */

import type { RecordBatch } from "./columns.js";
import { LentBatch } from "./engine-columns.js";
import { SchemaError } from "./errors.js";
import { ByteBuffer } from "./parquet-buffer.js";
import { CHUNK_DIGESTS } from "./parquet-excerpt.js";
import { Encoding, MAGIC, PageType } from "./parquet-format.js";
import { walkLeaves } from "./parquet-levels.js";
import { EncodeMemory } from "./parquet-memory.js";
import { type PageOptions, type ParquetOptions, pageOptions } from "./parquet-options.js";
import { joinParts, OutputBytes } from "./parquet-output.js";
import { ChunkEncoder, type ColumnChunk } from "./parquet-pages.js";
import { type ParquetLeaf, parquetLeaves, writeSchema } from "./parquet-schema.js";
import { ColumnAccount, plainBound, writeColumnIndex, writeOffsetIndex } from "./parquet-statistics.js";
import { ThriftType, ThriftWriter } from "./parquet-thrift.js";
import type { Schema } from "./schema.js";
import type { ColumnStatistics } from "./statistics.js";

interface Chunk {
  readonly chunk: ColumnChunk;
  /** Absolute. */
  readonly offset: number;
  columnIndex?: { readonly offset: number; readonly length: number };
  offsetIndex?: { readonly offset: number; readonly length: number };
}

/** A row group apart from its file, which any encoder of the same schema and options takes. Plain data, to be sent to other threads. */
export interface EncodedRowGroup {
  readonly rows: number;
  readonly chunks: readonly ColumnChunk[];
}

interface RowGroup {
  readonly rows: number;
  readonly chunks: readonly Chunk[];
}

/**
 * Writes one Parquet file. Every call returns bytes to append to what came before; memory holds one row group.
 *
 * @throws SchemaError `no_columns`, `unknown_type`, `bad_option`, `no_such_column`, `unsupported_encoding`,
 *   `unsupported_compression`, `compression_not_loaded`
 */
export class ParquetEncoder {
  readonly #schema: Schema;
  readonly #leaves: readonly ParquetLeaf[];
  readonly #options: ParquetOptions;
  readonly #pages: readonly PageOptions[];
  readonly #chunks: ChunkEncoder = new ChunkEncoder();
  readonly #columns: readonly ColumnAccount[];
  readonly #rowGroups: RowGroup[] = [];
  readonly #digests: string[] = [];
  #bytesWritten = 0;
  #rows = 0;
  #finished = false;

  /** @param schema as stored: field ids assigned, nothing unknown (see `storedSchema`) */
  constructor(schema: Schema, options: ParquetOptions = {}) {
    this.#schema = schema;
    this.#leaves = parquetLeaves(schema);
    this.#options = options;
    this.#columns = this.#leaves.map((leaf) => new ColumnAccount(leaf));
    this.#pages = pageOptions(this.#leaves, options);
  }

  /** Bytes returned so far. */
  get bytesWritten(): number {
    return this.#bytesWritten;
  }

  get rows(): number {
    return this.#rows;
  }

  /**
   * Encodes a batch as one row group; an empty batch gives nothing.
   * @throws SchemaError `batch_mismatch`
   * @throws InvalidInputError `null_in_required`
   */
  writeRowGroup(batch: RecordBatch): Uint8Array[] {
    return this.addRowGroup(this.encodeRowGroup(batch));
  }

  /**
   * Encodes a batch as a row group that may go into this file or another of the same schema and options.
   * @throws SchemaError `batch_mismatch`
   * @throws InvalidInputError `null_in_required`
   */
  encodeRowGroup(batch: RecordBatch): EncodedRowGroup {
    const { fields } = this.#schema;
    if (batch.columns.length !== fields.length) {
      throw new SchemaError("batch_mismatch", `the batch has ${batch.columns.length} columns, not ${fields.length}`);
    }
    const chunks: ColumnChunk[] = [];
    const output = new OutputBytes();
    if (batch.length === 0) return { rows: 0, chunks };
    EncodeMemory.use(
      (memory) => {
        fields.forEach((field, i) => {
          walkLeaves(memory, field, batch.columns[i]!, batch.length, (entries) => {
            const i = chunks.length;
            chunks.push(this.#chunks.encode(memory, this.#leaves[i]!, entries, this.#pages[i]!, output));
          });
        });
      },
      batch instanceof LentBatch ? batch.engine : undefined,
    );
    return { rows: batch.length, chunks };
  }

  /** Adds a row group as the next of the file; one without rows gives nothing. */
  addRowGroup(group: EncodedRowGroup): Uint8Array[] {
    this.#checkOpen();
    if (group.rows === 0) return [];
    const parts = this.#start();
    const chunks = group.chunks.map((chunk, i): Chunk => {
      this.#columns[i]!.add(chunk);
      const offset = this.#bytesWritten;
      parts.push(...chunk.parts);
      if (this.#options.chunkDigest) this.#digests.push(this.#options.chunkDigest(chunk.parts));
      this.#bytesWritten += chunk.compressedBytes;
      // The bytes belong to the caller now.
      return { chunk: { ...chunk, leaf: this.#leaves[i]!, parts: [] }, offset };
    });
    this.#rowGroups.push({ rows: group.rows, chunks });
    this.#rows += group.rows;
    return joinParts(parts);
  }

  /** The page indexes and the footer. The file is complete. */
  finish(): Uint8Array[] {
    this.#checkOpen();
    this.#finished = true;
    const parts = this.#start();
    if (this.#options.pageIndex !== false) parts.push(this.#writePageIndex());
    const footer = this.#writeFooter();
    parts.push(footer);
    this.#bytesWritten += footer.length;
    return parts;
  }

  /** Statistics of all rows so far, leaf by leaf. */
  statistics(): ColumnStatistics[] {
    return this.#columns.map((column) => column.statistics());
  }

  #checkOpen(): void {
    if (this.#finished) throw new Error("this Parquet file is finished");
  }

  #start(): Uint8Array[] {
    if (this.#bytesWritten > 0) return [];
    this.#bytesWritten = MAGIC.length;
    return [MAGIC];
  }

  /** PageIndex.md: all column indexes of all row groups, then all offset indexes. */
  #writePageIndex(): Uint8Array {
    const out = new ThriftWriter(new ByteBuffer());
    const all = this.#rowGroups.flatMap((group) => group.chunks.map((chunk) => ({ group, chunk })));
    const place = (from: number) => ({ offset: this.#bytesWritten + from, length: out.out.length - from });
    if ((this.#options.statistics ?? "page") === "page") {
      for (const { chunk } of all) {
        const from = out.out.length;
        if (writeColumnIndex(out, chunk.chunk)) chunk.columnIndex = place(from);
      }
    }
    for (const { chunk } of all) {
      const from = out.out.length;
      writeOffsetIndex(out, chunk.chunk, chunk.offset);
      chunk.offsetIndex = place(from);
    }
    this.#bytesWritten += out.out.length;
    return out.out.view();
  }

  #writeFooter(): Uint8Array {
    const out = new ThriftWriter(new ByteBuffer());
    out.begin();
    out.i32(1, 2);
    writeSchema(out, 2, this.#schema);
    out.i64(3, this.#rows);
    out.list(4, ThriftType.struct, this.#rowGroups.length);
    this.#rowGroups.forEach((group, i) => {
      this.#writeRowGroup(out, group, i);
    });
    const keyValues = Object.entries(this.#options.keyValues ?? {});
    if (this.#options.chunkDigest) keyValues.push([CHUNK_DIGESTS, this.#digests.join(" ")]);
    if (keyValues.length > 0) {
      out.list(5, ThriftType.struct, keyValues.length);
      for (const [key, value] of keyValues) {
        out.begin();
        out.string(1, key);
        out.string(2, value);
        out.end();
      }
    }
    out.string(6, this.#options.createdBy ?? CREATED_BY);
    // Without column orders readers must ignore min_value and max_value.
    out.list(7, ThriftType.struct, this.#leaves.length);
    for (const _ of this.#leaves) {
      out.begin();
      out.struct(1);
      out.end();
      out.end();
    }
    out.end();
    out.out.uint32(out.out.length);
    out.out.append(MAGIC);
    return out.out.view();
  }

  #writeRowGroup(out: ThriftWriter, group: RowGroup, ordinal: number): void {
    const sum = (pick: (chunk: ColumnChunk) => number): number =>
      group.chunks.reduce((total, { chunk }) => total + pick(chunk), 0);
    out.begin();
    out.list(1, ThriftType.struct, group.chunks.length);
    for (const chunk of group.chunks) this.#writeChunk(out, chunk);
    out.i64(
      2,
      sum((chunk) => chunk.uncompressedBytes),
    );
    out.i64(3, group.rows);
    out.i64(5, group.chunks[0]!.offset);
    out.i64(
      6,
      sum((chunk) => chunk.compressedBytes),
    );
    if (ordinal < 0x8000) out.i16(7, ordinal);
    out.end();
  }

  #writeChunk(out: ThriftWriter, { chunk, offset, columnIndex, offsetIndex }: Chunk): void {
    const { leaf, dictionaryBytes } = chunk;
    out.begin();
    out.i64(2, 0);
    out.struct(3);
    out.i32(1, leaf.physical);
    const encodings = new Set<Encoding>([Encoding.rle, ...chunk.encodings.keys()]);
    if (dictionaryBytes > 0) encodings.add(Encoding.plain);
    out.list(2, ThriftType.i32, encodings.size);
    for (const encoding of encodings) out.elementInt(encoding);
    out.list(3, ThriftType.binary, leaf.path.length);
    for (const name of leaf.path) out.elementString(name);
    out.i32(4, chunk.codec);
    out.i64(5, chunk.valueCount);
    out.i64(6, chunk.uncompressedBytes);
    out.i64(7, chunk.compressedBytes);
    out.i64(9, offset + dictionaryBytes);
    if (dictionaryBytes > 0) out.i64(11, offset);
    if (this.#options.statistics !== "none") this.#writeStatistics(out, chunk);
    out.list(13, ThriftType.struct, chunk.encodings.size + (dictionaryBytes > 0 ? 1 : 0));
    if (dictionaryBytes > 0) writeEncodingStats(out, PageType.dictionary, Encoding.plain, 1);
    for (const [encoding, count] of chunk.encodings) writeEncodingStats(out, PageType.data, encoding, count);
    out.end();
    if (offsetIndex !== undefined) {
      out.i64(4, offsetIndex.offset);
      out.i32(5, offsetIndex.length);
    }
    if (columnIndex !== undefined) {
      out.i64(6, columnIndex.offset);
      out.i32(7, columnIndex.length);
    }
    out.end();
  }

  #writeStatistics(out: ThriftWriter, { leaf, nullCount, bounds }: ColumnChunk): void {
    const { min, max } = bounds;
    out.struct(12);
    out.i64(3, nullCount);
    // parquet.thrift: a reader would take bounds beside NaN for bounds of all values.
    if (!bounds.hasNaN) {
      if (max !== undefined) out.binary(5, plainBound(leaf, max, "max"));
      if (min !== undefined) out.binary(6, plainBound(leaf, min, "min"));
      if (max !== undefined) out.bool(7, bounds.maxExact);
      if (min !== undefined) out.bool(8, bounds.minExact);
    }
    out.end();
  }
}

const CREATED_BY = "eider version 0.1.0";

function writeEncodingStats(out: ThriftWriter, page: PageType, encoding: Encoding, count: number): void {
  out.begin();
  out.i32(1, page);
  out.i32(2, encoding);
  out.i32(3, count);
  out.end();
}

export interface EncodedParquet {
  readonly bytes: Uint8Array;
  readonly statistics: ColumnStatistics[];
  readonly rows: number;
}

/** Encodes a whole file in memory, one row group for each batch that has rows. See {@link ParquetEncoder}. */
export function encodeParquet(
  schema: Schema,
  batches: Iterable<RecordBatch>,
  options: ParquetOptions = {},
): EncodedParquet {
  const encoder = new ParquetEncoder(schema, options);
  const parts: Uint8Array[] = [];
  for (const batch of batches) parts.push(...encoder.writeRowGroup(batch));
  parts.push(...encoder.finish());
  const bytes = new Uint8Array(encoder.bytesWritten);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, statistics: encoder.statistics(), rows: encoder.rows };
}
