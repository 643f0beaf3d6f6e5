/**
 * Text and rows, whose schema is settled while they are read:
 *
 * - a table's first batch is judged by a sample from its front, then parsed with that schema;
 * - a value that the schema does not take stops the parse; every value of the input is then looked at, the schema
 *   evolves, and the input is parsed again. The result is the same as if all had been looked at first, because a
 *   parser stops at exactly those values that would have changed the inferred schema.
 */

import {
  assignFieldIds,
  createRowInferrer,
  createRowParser,
  createTextInferrer,
  type Inferrer,
  type InferrerOptions,
  InvalidInputError,
  type Parser,
  type ParserOptions,
  type Reject,
  type RowParserOptions,
  type Schema,
  SchemaMisfit,
  storedSchema,
  type TextFormat,
} from "@eider/core";
import { type ContentHash, createContentHash } from "@eider/core/node";
import { TextFeed } from "@eider/core/ranges";
import type { AppendOptions } from "../options.js";
import {
  type BatchSink,
  type BytesInput,
  bytesOf,
  type Feed,
  failRows,
  hashRows,
  NAMED_REJECTS,
  newCounters,
  type ReadCounters,
  type ReadOptions,
  type ReadResult,
  type RowsInput,
  rowsOf,
} from "./pass.js";
import { validateRows } from "./validate.js";

/** Bytes, or rows, from the front of a table's first batch that its schema is first guessed from. */
const SAMPLE_BYTES = 4 * 1024 * 1024;
const SAMPLE_ROWS = 10_000;

export function readText(
  input: BytesInput,
  format: TextFormat | "tsv",
  options: ReadOptions,
  sink: BatchSink,
): Promise<ReadResult> {
  const { ranges } = options;
  if (format !== "json" && input.totalBytes !== undefined && input.totalBytes >= ranges.minBytes) ranges.warm();
  return new Reading(options, sink, textReader(input, format, options)).run();
}

export function readRows(input: RowsInput, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  return new Reading(options, sink, rowReader(input, options)).run();
}

/** What differs between text and rows: how pieces are read, parsed, judged and hashed. */
interface Reader<T> {
  /** What the numbers of rejects count. */
  readonly unit: "line" | "row";
  /** One pass over the input. */
  pieces(counters: ReadCounters): AsyncIterable<T>;
  /** Size of a piece, and how much of the front is a sample, in the same unit. */
  size(piece: T): number;
  readonly sampleSize: number;
  feed(options: ParserOptions, rowGroupsFrom: number, sink: BatchSink): Feed<T>;
  inferrer(
    base: Schema | undefined,
    bounds: Awaited<ReturnType<ReadOptions["integerBounds"]>> | undefined,
  ): Inferrer<T>;
  /** What of a piece is parsed and judged: what a validator makes of it. Default: the piece. */
  validated?(piece: T): Promise<T>;
  newHash(): ContentHash;
  /** The piece as it came, so that a retry is recognised whatever a validator makes of it. */
  hash(hash: ContentHash, piece: T): void;
}

function textReader(input: BytesInput, format: TextFormat | "tsv", options: ReadOptions): Reader<Uint8Array> {
  const text: { format: TextFormat; csv?: NonNullable<AppendOptions["csv"]> } =
    format === "tsv"
      ? { format: "csv", csv: { delimiter: "\t", ...options.append.csv } }
      : { format, ...(options.append.csv && { csv: options.append.csv }) };
  const part = input.part && { part: input.part };
  return {
    unit: "line",
    pieces: (counters) => bytesOf(input, options, counters),
    size: (piece) => piece.byteLength,
    sampleSize: SAMPLE_BYTES,
    feed: (parse, rowGroupsFrom, sink) =>
      new TextFeed({
        text: { ...parse, ...text, ...part },
        pool: options.ranges,
        totalBytes: input.totalBytes,
        rowGroupsFrom,
        sink,
        signal: options.append.signal,
      }),
    inferrer: (base, integerBounds) =>
      createTextInferrer({
        ...text,
        ...part,
        ...inference(options.append),
        ...(base && { base }),
        ...(integerBounds && { integerBounds }),
      }),
    newHash: () => createContentHash("bytes"),
    hash: (hash, piece) => hash.update(piece),
  };
}

/** What an append says of inference. */
function inference({ inferTimestamps, maxStructKeys, maxColumns }: AppendOptions): InferrerOptions {
  return {
    ...(inferTimestamps !== undefined && { inferTimestamps }),
    ...(maxStructKeys !== undefined && { maxStructKeys }),
    ...(maxColumns !== undefined && { maxColumns }),
  };
}

function rowReader(input: RowsInput, options: ReadOptions): Reader<readonly unknown[]> {
  const { validator } = options;
  const { rowsBefore } = input;
  return {
    ...(validator && { validated: (rows) => validateRows(validator, rows, options.append.signal) }),
    unit: "row",
    pieces: () => rowsOf(input, options),
    size: (piece) => piece.length,
    sampleSize: SAMPLE_ROWS,
    feed: (parse, _rowGroupsFrom, sink) =>
      new RowFeed({ ...parse, ...(rowsBefore !== undefined && { rowsBefore }) }, sink),
    inferrer: (base, integerBounds) =>
      createRowInferrer({
        ...inference(options.append),
        ...(base && { base }),
        ...(integerBounds && { integerBounds }),
      }),
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
    // No file can be begun without a column: then the types come late, or never.
    if (storedSchema(first).fields.length > 0) {
      try {
        return await this.#parse(first, "misfit");
      } catch (error) {
        if (!(error instanceof SchemaMisfit)) throw error;
      }
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
      inferrer.push(await this.#validated(piece));
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
      inferrer.push(await this.#validated(piece));
      this.#options.onCounters({ ...counters, rows: inferrer.rows });
    }
    return { inferred: inferrer.end(), contentHash: hash.digest() };
  }

  async #parse(schema: Schema, misfits: "misfit" | "reject"): Promise<ReadResult> {
    const fail = (this.#options.append.onReject ?? "fail") === "fail";
    const options: ParserOptions = {
      schema,
      unknownFields: this.#mode === "ignore" ? "ignore" : misfits,
      valueMisfits: misfits,
      ...(this.#options.append.maxRejects !== undefined && { maxRejects: this.#options.append.maxRejects }),
    };
    const hash = this.#reader.newHash();
    const counters = newCounters();
    await using feed = this.#reader.feed(options, await this.#sink.restart(schema), this.#sink);
    for await (const piece of this.#reader.pieces(counters)) {
      this.#reader.hash(hash, piece);
      await feed.push(await this.#validated(piece));
      const { rows, rejects } = feed;
      if (fail && rejects.length >= NAMED_REJECTS) failRows(rejects, true, this.#reader.unit);
      counters.rows = rows;
      counters.rejected = rejects.length;
      this.#options.onCounters(counters);
    }
    await feed.end();
    const { rows, rejects, ignoredFields } = feed;
    if (fail && rejects.length > 0) failRows(rejects, false, this.#reader.unit);
    this.#options.onCounters({ ...counters, rows, rejected: rejects.length });
    return { schema, contentHash: hash.digest(), rows, rejects, ignoredFields };
  }

  #validated(piece: T): T | Promise<T> {
    return this.#reader.validated?.(piece) ?? piece;
  }
}

/** Rows, parsed as they come. */
class RowFeed implements Feed<readonly unknown[]> {
  readonly #parser: Parser<readonly unknown[]>;
  readonly #sink: BatchSink;

  constructor(options: RowParserOptions, sink: BatchSink) {
    this.#parser = createRowParser(options);
    this.#sink = sink;
  }

  get rows(): number {
    return this.#parser.rows;
  }

  get rejects(): readonly Reject[] {
    return this.#parser.rejects;
  }

  get ignoredFields(): ReadonlyMap<string, number> {
    return this.#parser.ignoredFields;
  }

  push(rows: readonly unknown[]): Promise<void> {
    this.#parser.push(rows);
    return this.#drain();
  }

  end(): Promise<void> {
    this.#parser.end();
    return this.#drain();
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  async #drain(): Promise<void> {
    const parser = this.#parser;
    for (let batch = parser.take(); batch; batch = parser.take()) await this.#sink.add(batch);
  }
}
