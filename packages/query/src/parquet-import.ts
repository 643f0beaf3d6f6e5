/** Foreign Parquet files, decoded by DuckDB: any encoding and codec that it knows, as record batches. */

import {
  batchBytes,
  concatBatches,
  EiderError,
  InvalidInputError,
  nameKey,
  type RecordBatch,
  type Schema,
  SchemaError,
} from "@eider/core";
import { type ColumnReader, VectorReader } from "./arrow.js";
import { type NamedFile, toImportError } from "./duckdb-error.js";
import { Interrupter } from "./interrupter.js";
import {
  type Native,
  type NativeConnection,
  type NativeDatabase,
  type NativeResult,
  openConnection,
  openInstance,
} from "./native.js";
import type { ParquetImport } from "./query.js";
import { importTarget } from "./result-types.js";
import { quoteName, quoteText } from "./sql-tokens.js";
import { literalPath } from "./table-sql.js";

/**
 * Bytes. An import streams, so its memory is that of the pages and chunks in flight: about 100 MB for a file of usual
 * row groups, whatever its size and this limit. A file with one huge page per column needs room for those.
 */
const MEMORY_BYTES = 1024 * 1024 * 1024;
const THREADS = 2;

/** A batch is complete with so many rows (50 of DuckDB's chunks), or bytes. */
const BATCH_ROWS = 102_400;
const BATCH_BYTES = 16 * 1024 * 1024;

export class ParquetImporter implements AsyncDisposable {
  readonly #native: Native;
  readonly #spillDir: string;
  #instance: Promise<NativeDatabase> | undefined;

  constructor(native: Native, spillDir: string) {
    this.#native = native;
    this.#spillDir = spillDir;
  }

  /**
   * Reads what the file says of itself. Errors call it `name`.
   * @throws InvalidInputError `bad_parquet`, `no_columns`; SchemaError `unsupported_type`, `duplicate_field`
   */
  async open(path: string, name: string = path): Promise<ParquetImport> {
    const file = { path, name };
    return this.#connected(file, async (connection) => {
      const rows = Number(await this.#one(connection, `SELECT num_rows FROM parquet_file_metadata(${fileText(path)})`));
      const elements = await this.#texts(connection, elementsSql(path));
      const columns = readColumns(elements, name);
      const { schema, sql } = await this.#describe(connection, path, columns);
      return {
        schema,
        rows,
        batches: ({ signal, rows: { from, to } = { from: 0, to: rows } } = {}) => {
          if (to - from === rows) return this.#batches(file, sql, schema, rows, signal);
          assertNumbered(schema, name);
          // DuckDB leaves out the row groups of other rows.
          const some = `${sql} WHERE file_row_number >= ${from} AND file_row_number < ${to}`;
          return this.#batches(file, some, schema, to - from, signal);
        },
      };
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const instance = this.#instance;
    this.#instance = undefined;
    if (instance) this.#native.close_sync(await instance);
  }

  async #describe(
    connection: NativeConnection,
    path: string,
    columns: readonly (readonly SchemaElement[])[],
  ): Promise<{ schema: Schema; sql: string }> {
    const native = this.#native;
    const source = `read_parquet(${fileText(path)}, hive_partitioning = false)`;
    const statement = await native.prepare(connection, `SELECT * FROM ${source}`);
    const count = native.prepared_statement_column_count(statement);
    const names = Array.from({ length: count }, (_, i) => native.prepared_statement_column_name(statement, i));
    const selected = names.map((name, i) => {
      const type = native.prepared_statement_column_logical_type(statement, i);
      const target = importTarget(native, type, name, columns[i]!.map(isInstant));
      return target === undefined ? quoteName(name) : `CAST(${quoteName(name)} AS ${target}) AS ${quoteName(name)}`;
    });
    const sql = `SELECT ${selected.join(", ")} FROM ${source}`;
    const typed = await native.prepare(connection, sql);
    const vectors = new VectorReader(native);
    const fields = names.map((name, i) => ({
      id: 0,
      name,
      type: vectors.column(native.prepared_statement_column_logical_type(typed, i)).type,
      nullable: true,
    }));
    return { schema: { fields }, sql };
  }

  async *#batches(
    file: NamedFile,
    sql: string,
    schema: Schema,
    rows: number,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<RecordBatch, void, undefined> {
    const native = this.#native;
    const connection = await openConnection(native, await this.#open());
    const vectors = new VectorReader(native);
    using interrupter = new Interrupter(native, signal ? { signal } : {});
    const call = async <T>(work: () => Promise<T>): Promise<T> => {
      try {
        return await interrupter.call(connection, work);
      } catch (error) {
        interrupter.throwIfStopped();
        throw error instanceof EiderError ? error : toImportError(error, file);
      }
    };
    try {
      const result = await call(async () => native.execute_prepared_streaming(await native.prepare(connection, sql)));
      const readers: ColumnReader[] = schema.fields.map((_, i) =>
        vectors.column(native.column_logical_type(result, i)),
      );
      let read = 0;
      let waiting: RecordBatch[] = [];
      let waitingRows = 0;
      let waitingBytes = 0;
      for (;;) {
        const chunk = await call(() => native.fetch_chunk(result));
        const size = chunk === null ? 0 : native.data_chunk_get_size(chunk);
        if (chunk === null || size === 0) break;
        const batch = vectors.batch(chunk, size, schema.fields, readers);
        waiting.push(batch);
        waitingRows += size;
        waitingBytes += batchBytes(batch);
        if (waitingRows < BATCH_ROWS && waitingBytes < BATCH_BYTES) continue;
        const joined = concatBatches(waiting);
        waiting = [];
        read += waitingRows;
        waitingRows = 0;
        waitingBytes = 0;
        yield joined;
      }
      // A stream that fails ends as if complete; the footer's count tells.
      if (read + waitingRows !== rows) {
        await call(() => native.query(connection, `EXPLAIN ANALYZE ${sql}`));
        throw new InvalidInputError("bad_parquet", `${file.name} gave ${read + waitingRows} of ${rows} rows`, {
          subject: file.name,
        });
      }
      if (waitingRows > 0) yield concatBatches(waiting);
    } finally {
      // Another statement ends a stream that was not read to its end.
      await native.query(connection, "SELECT 1").catch(() => undefined);
      native.disconnect_sync(connection);
    }
  }

  async #connected<T>(file: NamedFile, work: (connection: NativeConnection) => Promise<T>): Promise<T> {
    const connection = await openConnection(this.#native, await this.#open());
    try {
      return await work(connection);
    } catch (error) {
      throw error instanceof EiderError ? error : toImportError(error, file);
    } finally {
      this.#native.disconnect_sync(connection);
    }
  }

  #open(): Promise<NativeDatabase> {
    this.#instance ??= openInstance(this.#native, {
      memoryBytes: MEMORY_BYTES,
      threads: THREADS,
      spillDir: this.#spillDir,
    });
    return this.#instance;
  }

  async #one(connection: NativeConnection, sql: string): Promise<bigint> {
    const chunk = await this.#native.fetch_chunk(await this.#native.query(connection, sql));
    const bytes = this.#native.vector_get_data(this.#native.data_chunk_get_vector(chunk!, 0), 8);
    return bytes.length < 8 ? 0n : new DataView(bytes.buffer, bytes.byteOffset).getBigInt64(0, true);
  }

  async #texts(connection: NativeConnection, sql: string): Promise<string[]> {
    const result: NativeResult = await this.#native.query(connection, sql);
    const reader = new VectorReader(this.#native).column(this.#native.column_logical_type(result, 0));
    const texts: string[] = [];
    for (let i = 0; i < this.#native.result_chunk_count(result); i++) {
      const chunk = this.#native.result_get_chunk(result, i);
      const size = this.#native.data_chunk_get_size(chunk);
      const { values, offsets } = reader.read(this.#native.data_chunk_get_vector(chunk, 0), size, undefined);
      const bytes = Buffer.from(values!.buffer as ArrayBuffer, values!.byteOffset, values!.byteLength);
      for (let row = 0; row < size; row++) texts.push(bytes.toString("utf8", offsets![row], offsets![row + 1]));
    }
    return texts;
  }
}

/** @throws InvalidInputError `not_divisible` where a column hides the numbers that DuckDB gives to rows */
function assertNumbered({ fields }: Schema, name: string): void {
  const column = fields.find((field) => nameKey(field.name) === "file_row_number");
  if (!column) return;
  const message = `${name} cannot be read in parts, for its column ${column.name}: append it whole, or rename the column`;
  throw new InvalidInputError("not_divisible", message, { subject: column.name });
}

function fileText(path: string): string {
  return quoteText(literalPath(path));
}

/** The file's own schema, one JSON text per element: DuckDB renames columns that differ only by case, and this does not. */
function elementsSql(path: string): string {
  return `SELECT {name: name, children: num_children, precision: "precision", converted: converted_type,
    logical: logical_type}::JSON::VARCHAR FROM parquet_schema(${fileText(path)})`;
}

interface SchemaElement {
  readonly name: string;
  readonly children: number | null;
  readonly precision: number | null;
  readonly converted: string | null;
  readonly logical: string | null;
}

/**
 * Files of old writers have the converted type alone: then a timestamp is an instant (parquet-format's LogicalTypes.md,
 * "TIMESTAMP_MILLIS … isAdjustedToUTC = true"). DuckDB takes it for a local time.
 */
function isInstant({ converted, logical }: SchemaElement): boolean {
  return logical === null && (converted?.startsWith("TIMESTAMP_") ?? false);
}

/** The primitive columns of each column. Refuses what DuckDB would take silently for something else. */
function readColumns(texts: readonly string[], name: string): SchemaElement[][] {
  const elements = texts.map((text) => JSON.parse(text) as SchemaElement);
  // Depth first: the root, then each column followed by what is within it.
  let at = 1;
  const leaves = (): SchemaElement[] => {
    const element = elements[at++]!;
    if (!element.children) return [element];
    return Array.from({ length: element.children }, leaves).flat();
  };
  const columns: SchemaElement[][] = [];
  const seen = new Map<string, string>();
  while (at < elements.length) {
    const column = elements[at]!.name;
    const other = seen.get(nameKey(column));
    if (other !== undefined) {
      throw new SchemaError(
        "duplicate_field",
        `${name} has the columns ${JSON.stringify(other)} and ${JSON.stringify(column)}, which differ at most by case: rename one`,
        { subject: column },
      );
    }
    seen.set(nameKey(column), column);
    columns.push(leaves());
  }
  const wide = elements.find(({ precision }) => (precision ?? 0) > 38);
  if (wide) {
    throw new SchemaError(
      "unsupported_type",
      `${name} has the column ${JSON.stringify(wide.name)} of decimal(${wide.precision}): at most 38 digits can be stored`,
      { subject: wide.name },
    );
  }
  return columns;
}
