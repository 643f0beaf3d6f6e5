/** Rows of any number into Parquet objects, with flat memory. */

import { createHash, randomBytes } from "node:crypto";
import {
  AlreadyExistsError,
  type ArrowLike,
  alignBatch,
  type ColumnStatistics,
  createRowParser,
  fromArrow,
  InvalidInputError,
  mergeSchema,
  ParquetEncoder,
  type ParquetOptions,
  type Parser,
  type PartitionValue,
  parquetReady,
  parsePartitionBy,
  type RowProblem,
  type Schema,
  type SchemaInput,
  StoreError,
  storedSchema,
  toSchema,
} from "@eider/core";
import { type ObjectStore, openStore } from "@eider/storage";
import { uuidv7 } from "../ids.js";
import { checkObjectWriterOptions } from "../option-rules.js";
import type { StoredFile } from "./data-file.js";
import { type FileLayout, type FileOptions, fileLayout, type Rotation } from "./layout.js";
import { PartitionFiles } from "./partition-files.js";
import { PathTemplate } from "./path-template.js";
import { RowWriter, type WriterProgress } from "./row-writer.js";
import { type SchemaField, writerSchema } from "./schema-file.js";

/** Rows parsed before they go to their partitions. */
const BATCH_ROWS = 20_000;
const BATCH_BYTES = 4 * 1024 * 1024;
/** Rows looked at before others get their turn. */
const CHUNK_ROWS = 1000;
const TURN_MS = 10;
/** Rows named in an error. */
const NAMED_ROWS = 20;

export interface ObjectWriterOptions extends FileOptions {
  /** The columns: `{ "id!": "int64" }`, `schema({ id: t.int64() })`, or a list of fields with Parquet's names of types. */
  readonly schema?: SchemaInput | readonly SchemaField[];
  /** A YAML or JSON file with such a list under `schema:`. Exactly one of the two has to be there. */
  readonly schemaFile?: string | URL;
  /** A key that the schema does not have: an `error` (default), or `ignore` it. */
  readonly unknownFields?: "error" | "ignore";
  /** `col`, `year|month|day|hour(col)`, `bucket(n, col)`, `truncate(w, col)`. Default: one partition. */
  readonly partitionBy?: readonly string[];
  /** Keys of objects. Default `{partition}/{id}-{n}.parquet`, without `partitionBy` `{id}-{n}.parquet`. */
  readonly path?: string;
  /**
   * Names the writer in the keys of its objects. The same rows written again with the same id and options give the same
   * objects: those that are there already are recognised, and stay. Default: a new UUIDv7.
   */
  readonly id?: string;
  /** When an object is complete and the next one begins. Default: when the writer is closed or flushed. */
  readonly rotate?: Rotation;
  /** Key-value metadata of the files. */
  readonly keyValues?: Readonly<Record<string, string>>;
  /** Told of each object once it is complete and durable; awaited. What it throws fails the writer. */
  readonly onWritten?: (object: WrittenObject) => void | Promise<void>;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: WriterProgress) => void;
}

/** An object that is complete and durable. */
export interface WrittenObject {
  readonly key: string;
  readonly rows: number;
  readonly bytes: number;
  /** Hex SHA-256 of the object. */
  readonly sha256: string;
  /** The partition's values, in the order of `partitionBy`. */
  readonly partition: readonly PartitionValue[];
  readonly statistics: readonly ColumnStatistics[];
  /** It was there already, from an earlier try with the same id. */
  readonly existing: boolean;
}

export interface ObjectWriterResult {
  readonly rows: number;
  readonly objects: number;
  /** Stored bytes of the objects. */
  readonly bytes: number;
}

/**
 * Writes rows as Parquet objects into a store. There are no tables and no commits: an object is visible as soon as it is
 * complete. Memory holds about one row group for each open partition and never depends on the number of rows.
 */
export class ParquetObjectWriter<R = object> extends RowWriter<R, ObjectWriterResult> {
  /** In the keys of its objects. */
  readonly id: string;
  readonly #options: ObjectWriterOptions;
  readonly #schema: Schema;
  readonly #store: ObjectStore;
  readonly #ownsStore: boolean;
  readonly #parser: Parser<readonly unknown[]>;
  readonly #files: PartitionFiles;
  readonly #counts = new Map<string, number>();
  readonly #existing = new Set<string>();
  #arrowRows = 0;
  /** When the first of the rows came that are parsed, and not among the files yet. */
  #parsedSince: number | undefined;
  #objects = 0;
  #bytes = 0;

  private constructor(parts: Parts, options: ObjectWriterOptions) {
    // JavaScript does not know that this is private.
    if (!(parts?.template instanceof PathTemplate)) {
      throw new InvalidInputError("bad_option", "open a ParquetObjectWriter by: await ParquetObjectWriter.open(…)");
    }
    super(options);
    const { store, schema, id, template, layout, specs } = parts;
    this.id = id;
    this.#options = options;
    this.#schema = schema;
    this.#store = store;
    this.#ownsStore = parts.ownsStore;
    this.#parser = createRowParser({
      schema,
      unknownFields: options.unknownFields === "ignore" ? "ignore" : "reject",
      valueMisfits: "reject",
      batchRows: Math.min(BATCH_ROWS, layout.rowGroupRows),
      batchBytes: BATCH_BYTES,
      maxRejects: NAMED_ROWS,
    });
    this.#files = new PartitionFiles({
      store,
      schema: storedSchema(schema),
      partitionBy: specs,
      orderBy: [],
      layout,
      newKey: (values) => this.#newKey(template, values),
      onFile: (file, values) => this.#written(file, values),
      keysAreNew: false,
      isStored: (file, error) => this.#isStored(file, error),
      signal: this.signal,
    });
  }

  /**
   * Opens a writer. Nothing is written yet, and nothing is left behind if it is never used.
   * @param store a store, or where one is: `./folder`, `s3://bucket/prefix`, `memory:`; such a one is closed with the writer
   * @throws InvalidInputError `bad_option`, `bad_path` @throws NotFoundError `file_not_found` for `schemaFile`
   * @throws SchemaError the schema, `partitionBy` or an option of a column cannot be
   */
  static async open<R = object>(
    store: ObjectStore | string | URL,
    options: ObjectWriterOptions,
  ): Promise<ParquetObjectWriter<R>> {
    checkObjectWriterOptions(options);
    const ownsStore = typeof store === "string" || store instanceof URL;
    if (!ownsStore && typeof store?.capabilities !== "object") {
      throw new InvalidInputError(
        "bad_option",
        "a writer takes a store, or where one is: ./folder or s3://bucket/prefix",
      );
    }
    const schema = await writerSchema(options.schema, options.schemaFile);
    const specs = (options.partitionBy ?? []).map((text) => parsePartitionBy(text, schema));
    const id = options.id ?? uuidv7(Date.now(), randomBytes);
    const template = new PathTemplate(options.path, specs, schema, id);
    const layout = fileLayout(parquetOf(options), options.rotate);
    await filesReady(layout.parquet);
    // Says now what is wrong with the schema and the options of columns.
    void new ParquetEncoder(storedSchema(schema), layout.parquet);
    const opened = ownsStore ? await openStore(store) : store;
    return new ParquetObjectWriter<R>({ store: opened, ownsStore, schema, id, template, layout, specs }, options);
  }

  get rows(): number {
    return this.#parser.rows + this.#arrowRows;
  }

  get acknowledgedRows(): number {
    return this.#files.acknowledgedRows;
  }

  /** Objects that are being written or stored. */
  get openPartitions(): number {
    return this.#files.openFiles;
  }

  /** Completes all open objects: every row so far is durable when this returns. Rows that follow begin new objects. */
  flush(): Promise<void> {
    return this.inTurn(() => this.#flush());
  }

  protected async takeRows(rows: readonly R[]): Promise<void> {
    let turn = performance.now();
    for (let at = 0; at < rows.length; at += CHUNK_ROWS) {
      this.signal.throwIfAborted();
      this.#parser.push(at === 0 && rows.length <= CHUNK_ROWS ? rows : rows.slice(at, at + CHUNK_ROWS));
      if (this.#parser.rejects.length > 0) refuse(this.#parser.rejects);
      await this.#drain();
      if (performance.now() - turn < TURN_MS) continue;
      await new Promise(setImmediate);
      turn = performance.now();
    }
    this.report();
  }

  protected async takeArrow(source: ArrowLike): Promise<void> {
    const { schema, batches } = fromArrow(source);
    const mode = this.#options.unknownFields === "ignore" ? "ignore" : "strict";
    mergeSchema(this.#schema, toSchema(schema), { mode });
    // What was written before comes first.
    await this.#drain(true);
    for (const batch of batches) {
      this.signal.throwIfAborted();
      const aligned = alignBatch(batch, this.#schema);
      const rejects = aligned.rejects
        .slice(0, NAMED_ROWS)
        .map((problem) => ({ ...problem, line: this.rows + problem.line }));
      if (rejects.length > 0) refuse(rejects);
      this.#arrowRows += batch.length;
      await this.#files.add(aligned.batch);
      await new Promise(setImmediate);
    }
    this.report();
  }

  protected override get dueInMs(): number | undefined {
    const { ageMs } = this.#options.rotate ?? {};
    const due = this.#files.dueInMs;
    if (ageMs === undefined || this.#parsedSince === undefined) return due;
    const parsed = Math.max(0, this.#parsedSince + ageMs - performance.now());
    return due === undefined ? parsed : Math.min(parsed, due);
  }

  protected override async onDue(): Promise<void> {
    await this.#drain(true);
    await this.#files.closeDue();
    this.report();
  }

  protected async finish(): Promise<ObjectWriterResult> {
    await this.#flush();
    if (this.#ownsStore) await this.#store[Symbol.asyncDispose]();
    return { rows: this.rows, objects: this.#objects, bytes: this.#bytes };
  }

  protected async giveUp(reason: unknown): Promise<void> {
    await this.#files.abort(reason);
    if (this.#ownsStore) await this.#store[Symbol.asyncDispose]();
  }

  async #flush(): Promise<void> {
    await this.#drain(true);
    await this.#files.flush();
    this.report();
  }

  /** Batches of the parser go to their files; with `all` also the rows that do not fill one yet. */
  async #drain(all = false): Promise<void> {
    // A parser of rows goes on after this.
    if (all) this.#parser.end();
    const since = this.#parsedSince ?? performance.now();
    for (let batch = this.#parser.take(); batch; batch = this.#parser.take()) {
      this.#parsedSince = undefined;
      await this.#files.add(batch, { since });
    }
    if (this.rows > this.#files.rows) this.#parsedSince ??= performance.now();
  }

  #newKey(template: PathTemplate, values: readonly PartitionValue[]): string {
    const first = template.key(values, 0);
    const number = this.#counts.get(first) ?? 0;
    this.#counts.set(first, number + 1);
    return number === 0 ? first : template.key(values, number);
  }

  async #written(
    { key, rows, bytes, sha256, columns }: StoredFile,
    partition: readonly PartitionValue[],
  ): Promise<void> {
    this.#objects++;
    this.#bytes += bytes;
    const existing = this.#existing.delete(key);
    await this.#options.onWritten?.({ key, rows, bytes, sha256, partition, statistics: columns, existing });
    this.report();
  }

  /** The object of an earlier try with the same id, or of a put whose answer was lost. */
  async #isStored(file: StoredFile, error: unknown): Promise<boolean> {
    const exists = error instanceof AlreadyExistsError;
    if (!exists && !(error instanceof StoreError && error.code === "put_unsettled")) return false;
    const { signal } = this;
    const found = await this.#store.head(file.key, { signal });
    if (!found) return false;
    if (found.size === file.bytes) {
      const hash = createHash("sha256");
      for await (const chunk of (await this.#store.get(file.key, { signal })).body) hash.update(chunk);
      if (hash.digest("hex") === file.sha256) {
        if (exists) this.#existing.add(file.key);
        return true;
      }
    }
    throw new AlreadyExistsError(
      "object_differs",
      `there is an object ${file.key} with other content, which stays: give the writer another id or path`,
      { subject: file.key, cause: error },
    );
  }
}

interface Parts {
  readonly store: ObjectStore;
  readonly ownsStore: boolean;
  readonly schema: Schema;
  readonly id: string;
  readonly template: PathTemplate;
  readonly layout: FileLayout;
  readonly specs: readonly ReturnType<typeof parsePartitionBy>[];
}

function parquetOf(options: ObjectWriterOptions): FileOptions & ParquetOptions {
  const { schema, schemaFile, unknownFields, partitionBy, path, id, rotate, onWritten, signal, onProgress, ...files } =
    options;
  return files;
}

/** Loads the codecs of a layout. */
export async function filesReady({ columns = {}, ...options }: ParquetOptions): Promise<void> {
  await parquetReady(options);
  for (const column of Object.values(columns)) {
    const { compression = options.compression, compressionLevel = options.compressionLevel } = column;
    await parquetReady({
      ...(compression && { compression }),
      ...(compressionLevel !== undefined && { compressionLevel }),
    });
  }
}

/** @throws InvalidInputError `rejected_rows` */
function refuse(rejects: readonly RowProblem[]): never {
  const rows = rejects.map(({ line, code, reason }) => ({ line, code, reason }));
  const { line, reason } = rows[0]!;
  const count = rows.length === 1 ? "a row" : `${rows.length} rows`;
  throw new InvalidInputError(
    "rejected_rows",
    `${count} cannot be written; the first is row ${line}: ${reason}. The writer has stopped: fix the rows, or the schema`,
    { rows },
  );
}
