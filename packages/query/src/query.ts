/** What `lake.sql` returns and takes. */

import type { RecordBatch, Schema } from "@eider/core";
import type { GivenTables } from "./given-tables.js";

/** What can be bound to `?`, `$1` or `$name`. `undefined` is an error. */
export type SqlParam =
  | null
  | boolean
  | number
  | bigint
  | string
  | Date
  | Uint8Array
  | readonly SqlParam[]
  | { readonly [key: string]: SqlParam };

/**
 * - `exact`: 64-bit and wider integers as bigint, decimals as string, timestamps as ISO text with six digits, dates as
 *   `YYYY-MM-DD`, binary as Uint8Array, maps as `Map`.
 * - `json`: survives `JSON.stringify`: safe integers as numbers and others as strings, NaN and infinities as strings, binary as base64.
 */
export type ValueMode = "exact" | "json";

export interface QueryOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds. */
  readonly timeoutMs?: number;
  /** Snapshot number, tag, ISO instant or Date. Default: the head when the query starts. */
  readonly at?: number | string | Date;
  /** Default `exact`. */
  readonly values?: ValueMode;
  /**
   * Rows and Arrow data that the query sees as tables, by names that the lake has not. They are read when the query runs, if
   * it names them, and gone when it ends.
   */
  readonly tables?: GivenTables;
  /** Whether files that cannot match are left out, by the statistics in the catalog. Default true; false is for comparing. */
  readonly prune?: boolean;
}

/** Of a query that shows, in place of its tables, what one batch brought to them at the snapshot. */
export interface EngineQueryOptions extends QueryOptions {
  readonly batchId?: string;
}

export interface QueryColumn {
  readonly name: string;
  /** DuckDB's name of the type, for example `BIGINT`, `DECIMAL(10,2)`, `STRUCT("a" INTEGER)`. */
  readonly type: string;
}

/** Files or batches, and bytes of them. */
export interface ReadCount {
  readonly count: number;
  readonly bytes: number;
}

export interface QueryStats {
  /** The snapshot every table was read at. */
  readonly snapshot: number;
  /** Data files of the tables named in the query, and those handed to DuckDB after pruning. */
  readonly filesConsidered: number;
  readonly filesRead: number;
  /**
   * Where what was read came from. `store`: data files of a folder, read where they are, with their sizes, or else files of
   * which this query fetched something, with the bytes that it fetched. `cache`: data files of which all that is needed had
   * been copied, with the bytes of the copies. `hot`: hot batches, which are in the catalog. DuckDB reads of the files and
   * copies what it needs.
   */
  readonly from: { readonly store: ReadCount; readonly cache: ReadCount; readonly hot: ReadCount };
  readonly elapsedMs: number;
  readonly rows: number;
  /** Of a scope with `onLimit: "truncate"`: whether rows beyond its limits were left out. */
  readonly truncated?: boolean;
}

/**
 * A query that runs when it is awaited or iterated, once per use, and not before. It can be returned and passed on as a
 * promise of all its rows. `for await` streams rows with backpressure; a stream that fails midway throws, it never ends as
 * if complete.
 */
export interface Query<R = Record<string, unknown>> extends Promise<R[]>, AsyncIterable<R> {
  /** The first row, or undefined. */
  first(): Promise<R | undefined>;
  columns(): Promise<QueryColumn[]>;
  /** Result as record batches of `@eider/core`, streamed: at least one, of no rows where the result has none. */
  batches(): AsyncIterable<RecordBatch>;
  /** Result as an `apache-arrow` Table. */
  arrow(): Promise<import("apache-arrow").Table>;
  /** Result as an Arrow IPC stream. */
  arrowIPC(): ReadableStream<Uint8Array>;
  /** Of the last completed use; undefined before. */
  readonly stats: QueryStats | undefined;
}

/** Runs statements; `lake.sql` and `lake.with(…).sql` have this shape. */
export interface Sql {
  <R = Record<string, unknown>>(strings: TemplateStringsArray, ...values: SqlParam[]): Query<R>;
  <R = Record<string, unknown>>(
    text: string,
    params?: readonly SqlParam[] | Readonly<Record<string, SqlParam>>,
  ): Query<R>;
  /** Kysely's `compile()` (`parameters`) and Drizzle's `toSQL()` (`params`). */
  <R = Record<string, unknown>>(query: {
    readonly sql: string;
    readonly parameters?: readonly unknown[];
    readonly params?: readonly unknown[];
  }): Query<R>;
}

export interface SqlRunner {
  readonly sql: Sql;
}

/** A Parquet file opened for import. */
export interface ParquetReadOptions {
  readonly signal?: AbortSignal;
  /** Only these of the file's rows, from 0; `to` is behind the last. `not_divisible` if a column is called `file_row_number`. */
  readonly rows?: { readonly from: number; readonly to: number };
}

export interface ParquetImport {
  /** As inferred from the file; ids are 0. */
  readonly schema: Schema;
  readonly rows: number;
  batches(options?: ParquetReadOptions): AsyncIterable<RecordBatch>;
}
