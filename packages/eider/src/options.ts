/** The options and results of the public API: plain data, with defaults and units beside each. */

import type { Catalog, ListedReject, Receipt, Timer } from "@eider/catalog";
import type { ArrowLike, CsvOptions, Schema, SchemaInput, StandardSchema, TypedSchema } from "@eider/core";
import type { SqlAccess } from "@eider/query";
import type { ObjectStore } from "@eider/storage";

/** Where a lake's own messages go. Never called with row values or credentials. */
export interface Logger {
  debug?(message: string, details?: Readonly<Record<string, unknown>>): void;
  info?(message: string, details?: Readonly<Record<string, unknown>>): void;
  warn?(message: string, details?: Readonly<Record<string, unknown>>): void;
}

/**
 * A folder (`./lake`, `file:///…`, `C:\lake`), `memory:`, a store and a catalog of your own, or a store alone: a shared
 * lake, to which any number of hosts commit by a log in the store.
 */
export type LakeLocation =
  | string
  | URL
  | { readonly store: ObjectStore; readonly catalog: Catalog }
  | { readonly store: ObjectStore };

export interface LakeOptions {
  /** `create` (default): make the lake if there is none. `open`: it must exist. `read`: it must exist and nothing is written. */
  readonly mode?: "create" | "open" | "read";
  /**
   * Folder for temporary files: spooled input, sorts that spill; and for what is worth keeping of a lake that is elsewhere:
   * the index of a shared one, without which the next start reads the log again, and copies of data files, which processes
   * share. Default: the system's folder for temporary files.
   */
  readonly cacheDir?: string;
  /**
   * Bytes of the copies of data files that queries make where the store is no folder, of all processes that share them.
   * Those of one query must fit (`cache_too_small`). Default 4 GiB.
   */
  readonly cacheBytes?: number;
  /**
   * Of data files that are larger than so many bytes, only the columns that a query reads are copied; smaller ones are
   * copied whole. Default 16 MiB.
   */
  readonly wholeFileBytes?: number;
  /** DuckDB's memory limit in bytes. Default: DuckDB's own, 80% of the machine's memory. */
  readonly memoryBytes?: number;
  /**
   * Shared lakes: milliseconds for which queries do without asking whether other hosts have committed. What this process
   * has committed, or was told of, they see at once. 0 asks before every query. Default 1000.
   */
  readonly stalenessMs?: number;
  /**
   * An append whose rows take at most so many bytes, as Arrow, is kept in the catalog until it is folded with others into
   * data files: it costs a commit and no file. Text of four times as many bytes always becomes files, and so does what a
   * writer with options for its files is given. 0: every append makes files. At most 1 MiB. Default 64 KiB.
   */
  readonly inlineBytes?: number;
  /**
   * Threads of a query, and worker threads of an append of 32 MiB or more, each of which takes some 40 MB of memory.
   * Default: one per core, for appends three at most. 1: appends start no worker.
   */
  readonly threads?: number;
  /**
   * What the SQL of this lake may touch besides its tables. `all` (default): whatever the process may, files and `COPY … TO`
   * included. `lake`: only files below the lake's folder, for reading; no `COPY`, no settings. With `folders`, also files
   * below those, for reading, by absolute paths. Limits of rows, memory and tables for people you do not trust are more than
   * this: see `lake.scope`.
   */
  readonly sqlAccess?: SqlAccess;
  /**
   * `manual` (default): nothing is folded but by `lake.maintain()`. `auto`: after appends, what is due by its default
   * limits is folded in the background; the process stays alive for no longer, and `close` does not wait for the rest.
   */
  readonly maintenance?: "manual" | "auto";
  readonly logger?: Logger;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly clock?: () => number;
  /** That many random bytes. Default: the platform's secure source. */
  readonly random?: (size: number) => Uint8Array;
  /** Monotonic time and waiting. Default: the platform's. */
  readonly timer?: Timer;
}

export interface TableOptions {
  /**
   * Columns of a new table: `{ id: "int64", "name!": "string" }`, or `schema({ id: t.int64() })`, which types the rows
   * too. Default: inferred from the first batch.
   *
   * Or a validator of zod, valibot, ArkType or any other Standard Schema (https://standardschema.dev). It checks each
   * appended row, and what it returns is stored; rows that it refuses are rejects. Bytes, Arrow and Parquet have no rows
   * to check. Columns are what it describes as JSON Schema, all nullable, else inferred; a property that is new to it
   * becomes a new column. It may be called more than once for a row.
   */
  readonly schema?: SchemaInput | StandardSchema;
  /** `col`, `year|month|day|hour(col)`, `bucket(n, col)`, `truncate(w, col)`. Fixed when the table is created. */
  readonly partitionBy?: readonly string[];
  /** Columns that rows are sorted by within each data file, `col` or `col desc`. Fixed when the table is created. */
  readonly orderBy?: readonly string[];
}

/** Options whose schema says what the rows are. */
export interface TypedTableOptions<R extends object> extends TableOptions {
  readonly schema: TypedSchema<R> | StandardSchema<R>;
}

/** Formats of byte sources. Default: recognised by content, then by file name. */
export type Format = "ndjson" | "json" | "csv" | "tsv" | "parquet" | "arrow";

/** Anything rows can come from. A bare string is refused: it could be a path, a URL or the data itself. */
export type Source<R = object> =
  | readonly R[]
  | Iterable<R>
  | AsyncIterable<R>
  | Uint8Array
  | AsyncIterable<Uint8Array>
  | ReadableStream
  | Blob
  | Response
  | ArrowLike
  | { readonly file: string | URL }
  | { readonly url: string | URL };

/**
 * A batch as a part of an endless source, such as a partition of a log: of each source only the last part is remembered.
 * Parts follow each other without gap: what ends at or before the last one is a duplicate, what begins right behind it is
 * new, and anything else is an error. The first part of a source may begin anywhere.
 */
export interface SourceBatch {
  readonly source: string;
  /** Number of the part, or of its last message: 0 to 2^63 − 1. */
  readonly sequence: number | bigint;
  /** Number of its first message. Default: `sequence`. */
  readonly first?: number | bigint;
}

/** A move of a durable cursor, made only if the cursor is at `from`. See `lake.cursor(…)`. */
export interface CursorMove {
  readonly name: string;
  /** Where the consumer began: `"0"` for a cursor that was never moved. */
  readonly from: string;
  /** The position behind what it has consumed. */
  readonly to: string;
}

export interface AppendOptions {
  /**
   * Unique in the table; a retry with the same id commits nothing twice. A text, or a part of a source. Default: a new
   * UUIDv7, which makes no promise about retries.
   */
  readonly batchId?: string | SourceBatch;
  /**
   * Moves a cursor in the same commit: what is derived from a feed is so appended exactly once. A batch that is known is a
   * duplicate wherever the cursor is; for a new one, a cursor that is elsewhere is `cursor_moved`.
   */
  readonly cursor?: CursorMove;
  readonly format?: Format;
  readonly csv?: CsvOptions;
  /**
   * `evolve` (default): new fields become columns, numbers widen without loss. `strict`: a field that the table lacks
   * is a reject. `ignore`: such fields are dropped and counted.
   */
  readonly schemaMode?: "evolve" | "strict" | "ignore";
  /** A row that cannot be taken: `fail` (default) the batch, or keep the row in `table.rejects()` and take the others. */
  readonly onReject?: "fail" | "quarantine";
  /** With `quarantine`: more rejects than this fail the batch. Default 10,000. */
  readonly maxRejects?: number;
  /** Inference: text that is always strict ISO 8601 with a zone becomes timestamptz. Default true; false leaves it text. */
  readonly inferTimestamps?: boolean;
  /** Inference: different keys that objects of one column may have and still be a struct, not json. Default 1,000. */
  readonly maxStructKeys?: number;
  /** A batch fails that would give the table more columns: `too_many_fields`. Default 10,000. */
  readonly maxColumns?: number;
  /** An id that is committed already: `verify` (default) reads the source and compares its hash, `trust` answers at once. */
  readonly onSeen?: "verify" | "trust";
  /** Text kept with the snapshot, for people and tools. */
  readonly meta?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly phase: "read" | "upload" | "commit";
  /** Bytes read from the source, before decompression. */
  readonly bytes: number;
  /** Where the source knows its length. */
  readonly totalBytes?: number;
  readonly rows: number;
  readonly rejected: number;
  readonly elapsedMs: number;
}

export interface AppendResult {
  /** `duplicate`: this batch id was committed before with the same content; nothing was written. */
  readonly status: "committed" | "duplicate";
  readonly rowsAdded: number;
  readonly rowsRejected: number;
  /** With `schemaMode: "ignore"`: how many values of which unknown fields were dropped. */
  readonly ignoredFields?: Readonly<Record<string, number>>;
  readonly receipt: Receipt;
}

export interface AppendPartsOptions extends Omit<AppendOptions, "batchId" | "cursor" | "onProgress"> {
  /** Unique in the table. The parts are the batches `<batchId>/1`, `<batchId>/2`, …; `<batchId>` itself comes last, and is empty. */
  readonly batchId: string;
  /**
   * A part ends with the row, the record batch (Arrow) or the row group (Parquet) that reaches so many bytes of what was
   * decompressed; rows count as JSON (estimated from one row in 64). Has to be the same in every try. Default 256 MiB.
   */
  readonly partBytes?: number;
  readonly onProgress?: (progress: PartsProgress) => void;
}

/** `bytes`, `rows` and `rejected` are those of all parts so far. */
export interface PartsProgress extends Progress {
  /** Number of the part, from 1. */
  readonly part: number;
}

export interface AppendPartsResult {
  /** `duplicate`: everything was committed before; nothing was written. */
  readonly status: "committed" | "duplicate";
  /** Parts of the source, and how many of them this call has committed. */
  readonly parts: number;
  readonly partsCommitted: number;
  /** In all parts. */
  readonly rows: number;
  /** Of this call. */
  readonly rowsAdded: number;
  readonly rowsRejected: number;
  /** With `schemaMode: "ignore"`: how many values of which unknown fields this call has dropped. */
  readonly ignoredFields?: Readonly<Record<string, number>>;
  /** Of the empty batch that says that all parts are there. */
  readonly receipt: Receipt;
  /** Of the parts, in order. */
  readonly receipts: readonly Receipt[];
}

/** Which rejects of a table; those that satisfy all that is given. */
export interface RejectsOptions {
  readonly batchId?: string;
  readonly ids?: readonly string[];
  /** Only those that are neither replayed nor purged. */
  readonly open?: boolean;
  /** Continues behind a reject: the id of the last one of a page. */
  readonly after?: string;
  /** Default 1000. */
  readonly limit?: number;
}

export interface ReplayOptions
  extends Pick<AppendOptions, "csv" | "schemaMode" | "onReject" | "maxRejects" | "meta" | "signal" | "onProgress"> {
  /**
   * What is read in place of a reject's text: one row. Called once for each reject, in their order. The same rejects have to
   * be mapped to the same texts when a replay is tried again.
   */
  readonly map?: (raw: string, reject: ListedReject) => string | Promise<string>;
  /** Of the texts. `csv` and `tsv` need `csv: { header: [names] }`. Default `ndjson`: each is a JSON object. */
  readonly format?: "ndjson" | "csv" | "tsv";
}

/** Which texts are to go: exactly one of `ids`, `batchId` and `before`. */
export interface PurgeRejectsOptions {
  readonly ids?: readonly string[];
  readonly batchId?: string;
  /** Those committed before a snapshot or an instant. */
  readonly before?: number | Date;
  readonly signal?: AbortSignal;
  /** `purged`: texts taken away so far; `rejects`: those looked at. */
  readonly onProgress?: (progress: { readonly rejects: number; readonly purged: number }) => void;
}

export interface PurgeRejectsResult {
  /** Rejects whose text this call took away; others had none any more. */
  readonly purged: number;
}

/** A table as it stands at a snapshot. */
export interface TableDescription {
  readonly name: string;
  readonly schema: Schema;
  readonly schemaVersion: number;
  readonly partitionBy: readonly string[];
  readonly orderBy: readonly string[];
  /** Of files and of hot batches. */
  readonly rows: number;
  readonly files: number;
  /** Of the files, as stored. */
  readonly bytes: number;
  /** Batches whose rows are in the catalog, and in no file yet. */
  readonly hotBatches: number;
  /** Of the hot batches, as stored. */
  readonly hotBytes: number;
}

export interface MaintainOptions {
  /** How long a file that no snapshot references is left alone, for writers that are still at work. Default 24 h. */
  readonly graceMs?: number;
  /**
   * Which tables' hot batches are folded into data files: those that pass a limit (default), `all`, or `none`. Of a table
   * that is folded, all that is hot is.
   */
  readonly fold?: FoldLimits | "all" | "none";
  /**
   * Which snapshots can be asked for: `all` (default); `none` but the head, with hot batches folded and files deleted at
   * once; or the newest so many, and those younger than an age. A snapshot with a tag stays, and so does what a cursor
   * has still to read. Receipts stay for ever.
   */
  readonly retain?: Retention;
  /**
   * Milliseconds for which files and hot batches that only ended snapshots show are left for queries that run. Default 24
   * hours; with `retain: "none"` 0.
   */
  readonly queryMaxAgeMs?: number;
  /** A cursor that was not moved for so many milliseconds keeps nothing any more. Default seven days. */
  readonly cursorMaxAgeMs?: number;
  /** Milliseconds after which nothing more is begun; what has begun is finished. Default: no limit. */
  readonly budgetMs?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: MaintainProgress) => void;
}

/** Snapshots to keep: those that are among the newest, or young enough. The head is always kept. */
export type Retention =
  | "all"
  | "none"
  | {
      /** Their number. Default 1. */
      readonly snapshots?: number;
      /** Milliseconds. Default 0. */
      readonly ageMs?: number;
    };

/** When a table is folded: the first limit that is reached counts. */
export interface FoldLimits {
  /** Bytes of its hot batches, as they are stored. Default 16 MiB. */
  readonly bytes?: number;
  /** Their number. Default 1,000. */
  readonly batches?: number;
  /** Milliseconds since the oldest was committed. Default one hour. */
  readonly ageMs?: number;
}

export interface MaintainProgress {
  readonly phase: "fold" | "expire" | "orphans";
  /** That is being folded. */
  readonly table?: string;
  /** Hot batches and their rows that were read to be folded, over all tables so far. */
  readonly batches: number;
  readonly rows: number;
  readonly elapsedMs: number;
}

/** What was folded. */
export interface FoldTotals {
  readonly batches: number;
  readonly rows: number;
  /** Data files that were made of them, and their bytes. */
  readonly files: number;
  readonly bytes: number;
}

export interface MaintainResult {
  readonly folded: FoldTotals;
  /** False if the budget ended first, or other writers got ahead each time: call again. */
  readonly finished: boolean;
  /** The oldest snapshot that can be asked for, those with a tag apart. */
  readonly oldestSnapshot: number;
  /**
   * Keys deleted, and those whose unfinished uploads were ended: staged by writers that never committed, or of snapshots
   * that have ended.
   */
  readonly deleted: readonly string[];
  /** Of the files deleted. */
  readonly bytes: number;
}

export interface CopyOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: {
    readonly files: number;
    readonly totalFiles: number;
    readonly bytes: number;
  }) => void;
}

export interface CopyResult {
  /** The id of the lake at the new place. */
  readonly lake: string;
  /** Its head. */
  readonly snapshot: number;
  /** Data files there, those of an earlier try included, and their bytes. */
  readonly files: number;
  readonly bytes: number;
}

export interface RebuildOptions {
  readonly signal?: AbortSignal;
  /** Entries that were read so far, after the checkpoint. */
  readonly onProgress?: (progress: { readonly entries: number }) => void;
  readonly logger?: Logger;
}

export interface RebuildResult {
  /** The head of the lake now. What was committed later is lost. */
  readonly snapshot: number;
  /** Of the checkpoint that it began with; 0 if there was none. */
  readonly checkpoint: number;
  /** Entries after it. */
  readonly entries: number;
  /** Data files that nothing names: of commits that are lost, or of batches that were never committed. */
  readonly unnamed: number;
}

/**
 * One thing `verify` found. `stray` files are harmless and are removed by `maintain`; the others mean lost or changed data:
 * of files, and of hot batches (`batch`).
 */
export interface VerifyFinding {
  readonly kind: "missing" | "size" | "hash" | "batch" | "stray";
  /** Of the object; of a hot batch its table and id, `<table>/<batch id>`. */
  readonly key: string;
  readonly message: string;
}

export interface VerifyOptions {
  /** Read every data file and compare its SHA-256, not only its size. Default true. */
  readonly hashes?: boolean;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: {
    readonly files: number;
    readonly totalFiles: number;
    readonly bytes: number;
  }) => void;
}

export interface VerifyReport {
  /** No finding but strays. */
  readonly ok: boolean;
  readonly files: number;
  /** Of the files. */
  readonly bytes: number;
  /** Small batches in the catalog, whose rows were decoded. */
  readonly hotBatches: number;
  readonly findings: readonly VerifyFinding[];
}
