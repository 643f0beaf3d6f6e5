/**
 * The reading side of an append: input of any kind becomes record batches of the table's schema, rejects, and the hash
 * of what was read. The schema is settled on the way:
 *
 * - a table's first batch is judged by a sample from its front, then parsed with that schema;
 * - a value that the schema does not take stops the parse; every value of the input is then looked at, the schema
 *   evolves, and the input is parsed again. The result is the same as if all had been looked at first, because a
 *   parser stops at exactly those values that would have changed the inferred schema.
 */

import {
  type ArrowLike,
  alignBatch,
  assignFieldIds,
  batchRows,
  canonicalRow,
  createRowInferrer,
  createRowParser,
  createTextInferrer,
  createTextParser,
  fromArrow,
  type Inferrer,
  InvalidInputError,
  mergeSchema,
  type Parser,
  type ParserOptions,
  type RecordBatch,
  type Reject,
  readArrowIPC,
  type Schema,
  SchemaMisfit,
  type TextFormat,
  toSchema,
} from "@eider/core";
import { createContentHash } from "@eider/core/node";
import type { ParquetImport } from "@eider/query";
import type { AppendOptions, Format } from "../options.js";
import { decompressed, peek } from "../source/decompress.js";
import { FORMAT_BYTES, recogniseFormat } from "../source/format.js";
import type { Input } from "../source/input.js";
import { spoolToFile } from "../source/spool.js";

/** Bytes, or rows, from the front of a table's first batch that its schema is first guessed from. */
const SAMPLE_BYTES = 4 * 1024 * 1024;
const SAMPLE_ROWS = 10_000;
/** With `onReject: "fail"`: the batch is given up when this many rows are at fault. */
const NAMED_REJECTS = 20;

/** Progress of one pass over the input; a second pass starts again from 0. */
export interface ReadCounters {
  bytes: number;
  rows: number;
  rejected: number;
}

export interface ReadOptions {
  readonly append: AppendOptions;
  /** The table as planned on: undefined for a new table without a declared schema. */
  readonly schema: Schema | undefined;
  readonly lastFieldId: number;
  readonly integerBounds: () => Promise<ReadonlyMap<number, { readonly min: bigint; readonly max: bigint }>>;
  readonly openParquet: (path: string) => Promise<ParquetImport>;
  readonly tempFolder: string;
  readonly onCounters: (counters: ReadCounters) => void;
}

/** Receives the batches of a pass. `restart` comes before the first batch and whenever the schema has changed. */
export interface BatchSink {
  restart(schema: Schema): Promise<void>;
  add(batch: RecordBatch): Promise<void>;
}

export interface ReadResult {
  /** Ids assigned; equal to the given schema when nothing evolved. */
  readonly schema: Schema;
  readonly contentHash: string;
  readonly rows: number;
  readonly rejects: readonly Reject[];
  readonly ignoredFields: ReadonlyMap<string, number>;
}

/** Reads the input to its end, into the sink. */
export async function readInput(input: Input, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  switch (input.kind) {
    case "rows":
      return new Reading(options, sink, rowReader(input, options)).run();
    case "arrow":
      return readColumns(arrowObject(input.source), options, sink);
    case "bytes": {
      const format = await formatOf(input, options.append.format);
      if (format === "parquet") return readParquet(input, options, sink);
      if (format === "arrow") return readColumns(arrowBytes(input, options), options, sink);
      return new Reading(options, sink, textReader(input, format, options)).run();
    }
  }
}

/** Reads the input to its end for its hash alone: how a batch that is committed already is recognised. */
export async function hashInput(input: Input, options: ReadOptions): Promise<string> {
  if (input.kind === "bytes") {
    const hash = createContentHash("bytes");
    const counters = newCounters();
    for await (const chunk of bytesOf(input, options, counters)) hash.update(chunk);
    return hash.digest();
  }
  const hash = createContentHash("rows");
  if (input.kind === "rows") {
    for await (const rows of input.rows.open()) {
      options.append.signal?.throwIfAborted();
      hashRows(hash, rows);
    }
  } else {
    for (const batch of fromArrow(input.source).batches) hashRows(hash, batchRows(batch, "exact"));
  }
  return hash.digest();
}

type ContentHash = ReturnType<typeof createContentHash>;

function hashRows(hash: ContentHash, rows: readonly unknown[]): void {
  for (const row of rows) hash.update(`${canonicalRow(row)}\n`);
}

function newCounters(): ReadCounters {
  return { bytes: 0, rows: 0, rejected: 0 };
}

/** The plain bytes of an input, counted before decompression. */
async function* bytesOf(
  input: Input & { kind: "bytes" },
  options: ReadOptions,
  counters: ReadCounters,
): AsyncIterable<Uint8Array> {
  const counted = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of input.bytes.open()) {
      options.append.signal?.throwIfAborted();
      counters.bytes += chunk.byteLength;
      yield chunk;
    }
  };
  yield* decompressed(counted());
}

async function formatOf(input: Input & { kind: "bytes" }, given: Format | undefined): Promise<Format> {
  if (given !== undefined) return given;
  const plain = decompressed(input.bytes.open());
  const { head, rest } = await peek(plain, FORMAT_BYTES);
  await rest[Symbol.asyncIterator]().return?.();
  return recogniseFormat(head, input.name);
}

/** What differs between text and rows: how pieces are read, parsed, judged and hashed. */
interface Reader<T> {
  /** One pass over the input. */
  pieces(counters: ReadCounters): AsyncIterable<T>;
  /** Size of a piece, and how much of the front is a sample, in the same unit. */
  size(piece: T): number;
  readonly sampleSize: number;
  parser(options: ParserOptions): Parser<T>;
  inferrer(
    base: Schema | undefined,
    bounds: Awaited<ReturnType<ReadOptions["integerBounds"]>> | undefined,
  ): Inferrer<T>;
  newHash(): ContentHash;
  hash(hash: ContentHash, piece: T): void;
}

function textReader(input: Input & { kind: "bytes" }, format: Format, options: ReadOptions): Reader<Uint8Array> {
  const text: { format: TextFormat; csv?: NonNullable<AppendOptions["csv"]> } =
    format === "tsv"
      ? { format: "csv", csv: { delimiter: "\t", ...options.append.csv } }
      : { format: format as TextFormat, ...(options.append.csv && { csv: options.append.csv }) };
  return {
    pieces: (counters) => bytesOf(input, options, counters),
    size: (piece) => piece.byteLength,
    sampleSize: SAMPLE_BYTES,
    parser: (parse) => createTextParser({ ...parse, ...text }),
    inferrer: (base, integerBounds) =>
      createTextInferrer({ ...text, ...(base && { base }), ...(integerBounds && { integerBounds }) }),
    newHash: () => createContentHash("bytes"),
    hash: (hash, piece) => hash.update(piece),
  };
}

function rowReader(input: Input & { kind: "rows" }, options: ReadOptions): Reader<readonly unknown[]> {
  return {
    async *pieces() {
      for await (const rows of input.rows.open()) {
        options.append.signal?.throwIfAborted();
        yield rows;
      }
    },
    size: (piece) => piece.length,
    sampleSize: SAMPLE_ROWS,
    parser: (parse) => createRowParser(parse),
    inferrer: (base, integerBounds) =>
      createRowInferrer({ ...(base && { base }), ...(integerBounds && { integerBounds }) }),
    newHash: () => createContentHash("rows"),
    hash: hashRows,
  };
}

/** Text or rows, with inference. */
class Reading<T> {
  readonly #options: ReadOptions;
  readonly #sink: BatchSink;
  readonly #reader: Reader<T>;
  readonly #mode: "evolve" | "strict" | "ignore";

  constructor(options: ReadOptions, sink: BatchSink, reader: Reader<T>) {
    this.#options = options;
    this.#sink = sink;
    this.#reader = reader;
    // A table without a schema has nothing to be strict about: its first batch decides.
    this.#mode = options.schema ? (options.append.schemaMode ?? "evolve") : "evolve";
  }

  async run(): Promise<ReadResult> {
    const { schema, lastFieldId } = this.#options;
    if (schema && this.#mode !== "evolve") return this.#parse(schema, "reject");
    const first = schema ?? assignFieldIds(await this.#sampleSchema(), lastFieldId);
    try {
      return await this.#parse(first, "misfit");
    } catch (error) {
      if (!(error instanceof SchemaMisfit)) throw error;
    }
    const { inferred, contentHash } = await this.#inferAll();
    const result = await this.#parse(assignFieldIds(inferred, lastFieldId), "reject");
    if (result.contentHash !== contentHash) {
      throw new InvalidInputError(
        "source_changed",
        "the source changed while it was read: append it again when it is at rest",
      );
    }
    return result;
  }

  async #sampleSchema(): Promise<Schema> {
    const inferrer = this.#reader.inferrer(undefined, undefined);
    let size = 0;
    for await (const piece of this.#reader.pieces(newCounters())) {
      inferrer.push(piece);
      size += this.#reader.size(piece);
      if (size >= this.#reader.sampleSize) return inferrer.schema();
    }
    return inferrer.end();
  }

  async #inferAll(): Promise<{ inferred: Schema; contentHash: string }> {
    const base = this.#options.schema;
    const inferrer = this.#reader.inferrer(base, base && (await this.#options.integerBounds()));
    const hash = this.#reader.newHash();
    const counters = newCounters();
    for await (const piece of this.#reader.pieces(counters)) {
      this.#reader.hash(hash, piece);
      inferrer.push(piece);
      this.#options.onCounters({ ...counters, rows: inferrer.rows });
    }
    return { inferred: inferrer.end(), contentHash: hash.digest() };
  }

  async #parse(schema: Schema, misfits: "misfit" | "reject"): Promise<ReadResult> {
    const fail = (this.#options.append.onReject ?? "fail") === "fail";
    const parser = this.#reader.parser({
      schema,
      unknownFields: this.#mode === "ignore" ? "ignore" : misfits,
      valueMisfits: misfits,
      ...(this.#options.append.maxRejects !== undefined && { maxRejects: this.#options.append.maxRejects }),
    });
    const hash = this.#reader.newHash();
    const counters = newCounters();
    await this.#sink.restart(schema);
    for await (const piece of this.#reader.pieces(counters)) {
      this.#reader.hash(hash, piece);
      parser.push(piece);
      if (fail && parser.rejects.length >= NAMED_REJECTS) failRows(parser.rejects, true);
      await this.#drain(parser);
      counters.rows = parser.rows;
      counters.rejected = parser.rejects.length;
      this.#options.onCounters(counters);
    }
    parser.end();
    if (fail && parser.rejects.length > 0) failRows(parser.rejects, false);
    await this.#drain(parser);
    this.#options.onCounters({ ...counters, rows: parser.rows, rejected: parser.rejects.length });
    return {
      schema,
      contentHash: hash.digest(),
      rows: parser.rows,
      rejects: parser.rejects,
      ignoredFields: parser.ignoredFields,
    };
  }

  async #drain(parser: Parser<T>): Promise<void> {
    for (let batch = parser.take(); batch; batch = parser.take()) await this.#sink.add(batch);
  }
}

function failRows(rejects: readonly Reject[], more: boolean): never {
  const rows = rejects.slice(0, NAMED_REJECTS).map(({ line, code, reason }) => ({ line, code, reason }));
  const first = rows[0]!;
  const count = more ? `at least ${rejects.length} rows` : rejects.length === 1 ? "1 row" : `${rejects.length} rows`;
  throw new InvalidInputError(
    "rejected_rows",
    `${count} cannot be taken, nothing was committed; the first is line ${first.line}: ${first.reason}. ` +
      `Fix the input, or append with onReject: "quarantine" to keep such rows aside.`,
    { rows },
  );
}

/** Input that comes in columns with a schema of its own. */
interface ColumnInput {
  readonly schema: Schema;
  batches(): AsyncIterable<RecordBatch> | Iterable<RecordBatch>;
  /** Told after the last batch. */
  contentHash(): string;
}

async function readColumns(source: Promise<ColumnInput>, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  const input = await source;
  const base = options.schema;
  const mode = options.append.schemaMode ?? "evolve";
  const merged = mergeSchema(base, toSchema(input.schema), {
    mode: base ? mode : "evolve",
    ...(base && { integerBounds: await options.integerBounds() }),
  });
  const schema = assignFieldIds(merged, options.lastFieldId);
  await sink.restart(schema);
  const rejects: Reject[] = [];
  const counters = newCounters();
  const fail = (options.append.onReject ?? "fail") === "fail";
  const maxRejects = options.append.maxRejects ?? 10_000;
  let read = 0;
  for await (const batch of input.batches()) {
    options.append.signal?.throwIfAborted();
    const aligned = alignBatch(batch, schema);
    for (const problem of aligned.rejects) rejects.push({ ...problem, line: read + problem.line, raw: "" });
    if (fail && rejects.length >= NAMED_REJECTS) failRows(rejects, true);
    if (rejects.length > maxRejects) {
      throw new InvalidInputError("too_many_rejects", `more than ${maxRejects} rows cannot be taken`);
    }
    read += batch.length;
    await sink.add(aligned.batch);
    counters.rows += aligned.batch.length;
    counters.rejected = rejects.length;
    options.onCounters(counters);
  }
  if (fail && rejects.length > 0) failRows(rejects, false);
  return { schema, contentHash: input.contentHash(), rows: counters.rows, rejects, ignoredFields: new Map() };
}

async function arrowObject(source: ArrowLike): Promise<ColumnInput> {
  const { schema, batches } = fromArrow(source);
  const hash = createContentHash("rows");
  return {
    schema,
    *batches() {
      for (const batch of batches) {
        hashRows(hash, batchRows(batch, "exact"));
        yield batch;
      }
    },
    contentHash: () => hash.digest(),
  };
}

async function arrowBytes(input: Input & { kind: "bytes" }, options: ReadOptions): Promise<ColumnInput> {
  const hash = createContentHash("bytes");
  const hashed = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of bytesOf(input, options, newCounters())) {
      hash.update(chunk);
      yield chunk;
    }
  };
  const { schema, batches } = await readArrowIPC(hashed());
  return { schema, batches: () => batches, contentHash: () => hash.digest() };
}

/** DuckDB decodes foreign Parquet from a file, so input that is not a plain file already is written to one. */
async function readParquet(
  input: Input & { kind: "bytes" },
  options: ReadOptions,
  sink: BatchSink,
): Promise<ReadResult> {
  const hash = createContentHash("bytes");
  const counters = newCounters();
  const plain = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of bytesOf(input, options, counters)) {
      hash.update(chunk);
      options.onCounters(counters);
      yield chunk;
    }
  };
  await using file =
    (await isPlainFile(input)) && input.path !== undefined
      ? await readThrough(plain(), input.path)
      : await spoolToFile(plain(), options.tempFolder);
  const imported = await options.openParquet(file.path);
  const contentHash = hash.digest();
  const { signal } = options.append;
  const source: ColumnInput = {
    schema: imported.schema,
    batches: () => imported.batches(signal ? { signal } : {}),
    contentHash: () => contentHash,
  };
  // Awaited here: the temporary file goes when this function returns.
  return await readColumns(Promise.resolve(source), options, sink);
}

async function isPlainFile(input: Input & { kind: "bytes" }): Promise<boolean> {
  if (input.path === undefined) return false;
  const { head, rest } = await peek(input.bytes.open(), 4);
  await rest[Symbol.asyncIterator]().return?.();
  return Buffer.from(head).toString("latin1") === "PAR1";
}

/** Reads a stream only for what happens on the way (its hash, its progress). */
async function readThrough(
  source: AsyncIterable<Uint8Array>,
  path: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  for await (const _ of source);
  return { path, [Symbol.asyncDispose]: async () => {} };
}
