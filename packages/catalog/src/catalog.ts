/**
 * The catalog: metadata of a lake, never its bytes. Everything is asynchronous, so that a remote catalog fits.
 * A commit is an *entry* numbered like the snapshot it makes; see `entry.ts` for its form and `check.ts`, `apply.ts`
 * for what it means.
 */

import type { ColumnStatistics, FieldBounds, PartitionValue, Reject, Schema } from "@eider/core";
import type { FilePredicate } from "./file-predicate.js";

export interface TableInfo {
  /** Random, for ever: receipts belong to it. A dropped and recreated name has a new id. */
  readonly id: string;
  readonly name: string;
  /** Key prefix of the table in the store, fixed at creation; no slash at the end. */
  readonly folder: string;
  readonly schema: Schema;
  /** 1 at creation, +1 with each change. */
  readonly schemaVersion: number;
  /** Highest field id ever given out. */
  readonly lastFieldId: number;
  /** Canonical partition expressions, for example `["day(ts)", "app"]`. */
  readonly partitionBy: readonly string[];
  readonly orderBy: readonly string[];
  /** Snapshot that created it. */
  readonly createdIn: number;
  /** At the snapshot asked for, those of hot batches included. */
  readonly rows: number;
  /** Data files and their size at the snapshot. */
  readonly files: number;
  readonly bytes: number;
  /** Batches whose rows are in the catalog, and their size. */
  readonly hotBatches: number;
  readonly hotBytes: number;
  /** The last snapshot that did more than add some: a fold or a rollback; 0 if none did. From it on they only come. */
  readonly hotSince: number;
}

/** A table without what changes with every batch. */
export type TableLayout = Omit<TableInfo, "rows" | "files" | "bytes" | "hotBatches" | "hotBytes" | "hotSince">;

export interface DataFile {
  readonly key: string;
  readonly bytes: number;
  readonly rows: number;
  /** Hex SHA-256 of the object. */
  readonly sha256: string;
  /** Snapshot when its staging began; also in its name. */
  readonly base: number;
  /** Schema version the file was written with. */
  readonly schemaVersion: number;
  readonly partition: readonly PartitionValue[];
  readonly columns: readonly ColumnStatistics[];
  /**
   * The file's end, of which the rest can be checked part by part: its Parquet footer has a digest of each column chunk.
   * Undefined of files that have none.
   */
  readonly footer?: FileEnd;
}

/** The last bytes of a file. */
export interface FileEnd {
  readonly bytes: number;
  /** Hex SHA-256 of them. */
  readonly sha256: string;
}

/** A data file as listed: also when it came. */
export interface ListedFile extends DataFile {
  readonly addedIn: number;
  readonly batchId: string | undefined;
}

/** The rows of a small batch, which are kept in the catalog until they are folded into a data file. */
export interface HotRows {
  /** An Arrow record batch message (`encodeRecordBatch`), of the append's schema version. */
  readonly data: Uint8Array;
  /** Of its integer columns that have values, what widening needs to know. */
  readonly bounds: readonly FieldBounds[];
}

/** A hot batch as listed. */
export interface HotBatch {
  readonly batchId: string;
  readonly addedIn: number;
  readonly rows: number;
  /** Of its data. */
  readonly bytes: number;
  readonly schemaVersion: number;
  /** Of that version. */
  readonly schema: Schema;
  /** An Arrow record batch message, see `decodeRecordBatch`. */
  readonly data: Uint8Array;
}

/** What a committed batch returns, and what can be looked up for ever. */
export interface Receipt {
  readonly table: string;
  readonly batchId: string;
  readonly snapshot: number;
  readonly rows: number;
  /** Rows that were kept aside. */
  readonly rejected: number;
  /**
   * `bytes:<hex>` or `rows:<hex>`: SHA-256 of the input, never of the table's schema. `parts:<hex>`: of the hashes of the
   * batches that a source was appended in.
   */
  readonly contentHash: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly committedAt: string;
}

export interface ListedReject extends Reject {
  /** `<snapshot>-<place in its entry>`: unique in the lake. */
  readonly id: string;
  readonly table: string;
  readonly batchId: string;
  readonly snapshot: number;
  /** The batch that took it in another try, and the snapshot of that. */
  readonly replayedBy?: string;
  readonly replayedIn?: number;
  /** The snapshot from which on its text is gone; `raw` is empty. */
  readonly purgedIn?: number;
}

/** Which rejects of a table; those that satisfy all that is given. */
export interface RejectsOptions {
  readonly batchId?: string;
  readonly ids?: readonly string[];
  /** Only those that are neither replayed nor purged. */
  readonly open?: boolean;
  /** Only those of snapshots before this one. */
  readonly before?: number;
  /** Continues behind a reject: its id. */
  readonly after?: string;
  /** Default 1000. */
  readonly limit?: number;
}

/** An entry without its files. */
export interface SnapshotInfo {
  readonly snapshot: number;
  readonly committedAt: string;
  readonly operations: readonly {
    readonly op: string;
    readonly table?: string;
    readonly batchId?: string;
    readonly rows?: number;
    /** Of a rollback: the snapshot that it went back to. */
    readonly to?: number;
    /** Of a cursor, a tag or a view. */
    readonly name?: string;
    /** Of the append, where several share a snapshot of a shared lake. */
    readonly meta?: Meta;
  }[];
  /** Empty where the operations have their own. */
  readonly meta: Meta;
}

/** A batch as part `first` to `last` of what a source delivers: see {@link SourceMark}. */
export interface SourceRange {
  readonly source: string;
  /** Decimal digits, at most 2^63 − 1. */
  readonly first: string;
  readonly last: string;
}

/**
 * How far a source has been taken: all that is kept of its batches but the last, so that an endless source stays small.
 * What is not beyond `last` is a duplicate; what comes next begins right behind it.
 */
export interface SourceMark {
  readonly source: string;
  /** Decimal digits. */
  readonly last: string;
  /** Of the last batch. */
  readonly receipt: Receipt;
}

/** Where a consumer is that must not forget it. */
export interface CursorInfo {
  readonly name: string;
  /** See `position.ts`. What lies behind it is kept for the consumer, up to an age. */
  readonly position: string;
  /** Snapshot of the last move: how old a cursor is. */
  readonly movedIn: number;
}

/** A name for a snapshot, which is kept as long as it has one. */
export interface TagInfo {
  readonly name: string;
  readonly snapshot: number;
}

/** A SELECT with a name. */
export interface ViewInfo {
  readonly name: string;
  readonly sql: string;
  /** Snapshot that gave it this text. */
  readonly createdIn: number;
}

/** What a snapshot changed in a table, in the order of its entry. Rearrangements change no rows and are left out. */
export type TableChange =
  | { readonly kind: "append"; readonly position: string; readonly receipt: Receipt; readonly meta: Meta }
  /** The rows are again those of snapshot `to`. */
  | {
      readonly kind: "rollback";
      readonly position: string;
      readonly snapshot: number;
      readonly to: number;
      readonly meta: Meta;
    };

export type Meta = Readonly<Record<string, string>>;

/** Changes one entry may carry. */
export type Operation =
  | {
      /** A new table or a new schema version of one. */
      readonly op: "schema";
      /** Table id. */
      readonly table: string;
      readonly version: number;
      readonly schema: Schema;
      readonly lastFieldId: number;
      /**
       * Where columns are widened that hold only some of their values exactly, such as int64 to float64: the snapshot whose
       * values were looked at. Rows that came later make the change stale.
       */
      readonly valuesOf?: number;
      /** Present exactly when version is 1. */
      readonly create?: {
        readonly name: string;
        readonly folder: string;
        readonly partitionBy: readonly string[];
        readonly orderBy: readonly string[];
      };
    }
  | {
      readonly op: "append";
      readonly table: string;
      readonly batch: string;
      /** Instead of being remembered for ever, the batch moves the mark of its source. */
      readonly range?: SourceRange;
      readonly hash: string;
      readonly rows: number;
      /** The schema version the batch was encoded for: must be current once the entry's own `schema` ops are applied. */
      readonly schemaVersion: number;
      readonly files: readonly DataFile[];
      /** All rows of the batch, in place of files. */
      readonly hot?: HotRows;
      readonly rejects: readonly Reject[];
      /** Ids of the table's rejects that this batch is another try of, one for each of its rows, rejected ones included. */
      readonly replays?: readonly string[];
    }
  | {
      /** The same rows at other places: hot batches are folded into data files, small files become larger ones. */
      readonly op: "rearrange";
      readonly table: string;
      /** Ids of hot batches. */
      readonly removeHot: readonly string[];
      /** Keys of data files. */
      readonly removeFiles: readonly string[];
      readonly addFiles: readonly DataFile[];
    }
  | { readonly op: "drop"; readonly table: string }
  /**
   * Makes the live files of a table those of snapshot `to`, whatever was added or removed since. Its schema is that of
   * `to` by then. Receipts stay: a batch that was rolled back is known all the same.
   */
  | { readonly op: "rollback"; readonly table: string; readonly to: number }
  /** Moves a cursor, if it is where the consumer believes it to be (`0`: new). Without `to` the cursor ends. */
  | { readonly op: "cursor"; readonly name: string; readonly from: string; readonly to?: string }
  /** Names a snapshot, or renames it from another one; without a snapshot the name is given up. */
  | { readonly op: "tag"; readonly name: string; readonly snapshot?: number }
  /**
   * Gives a name to a SELECT, or another SELECT to the name; without `sql` the view ends. `from` is the snapshot that the view
   * is of which is replaced or ends; without it there is none of that name.
   */
  | { readonly op: "view"; readonly name: string; readonly from?: number; readonly sql?: string }
  /** Takes the texts of rejects away, for good: their ids. What is gone already stays so. */
  | { readonly op: "purge"; readonly table: string; readonly rejects: readonly string[] }
  /**
   * Ends the snapshots before one: only what has a tag can still be asked for. What no snapshot has shown since snapshot
   * `unusedSince`, but those that had ended by then, is let go of: rows of hot batches, and data files, which may be deleted.
   */
  | { readonly op: "expire"; readonly before: number; readonly unusedSince: number }
  /** Raises the floor: staged files with an older base may no longer be committed, and may be deleted. */
  | { readonly op: "floor"; readonly floor: number };

/** What a writer hands to `commit`. */
export interface Draft {
  readonly operations: readonly Operation[];
  readonly meta?: Readonly<Record<string, string>>;
  /** The writer's staging intent, ended by the same transaction. */
  readonly intent?: string;
  readonly expectSnapshot?: number;
}

/**
 * Expected outcomes of a commit.
 * - `committed`: made snapshot `snapshot`; receipts of its appends in order.
 * - `duplicate`: every append was committed before with equal content; nothing was written.
 * - `stale`: something the draft was planned on has changed (schema version, table dropped or created, floor, intent
 *   gone, files or hot batches gone, expected snapshot): plan again on the new head, or give up.
 */
export type CommitResult =
  | { readonly status: "committed"; readonly snapshot: number; readonly receipts: readonly Receipt[] }
  | { readonly status: "duplicate"; readonly receipts: readonly Receipt[] }
  | { readonly status: "stale"; readonly reason: StaleReason; readonly message: string };

export type StaleReason =
  | "schema"
  | "table_missing"
  | "table_exists"
  | "floor"
  | "intent"
  /** A file or hot batch that was to be removed is gone. */
  | "removed"
  /** Snapshots have ended as far already. */
  | "expired"
  | "snapshot"
  /** A cursor was moved by somebody else. Planning again cannot help, only reading again. */
  | "cursor"
  /** A source's batch came before the one that it follows. */
  | "sequence"
  /** A view was made, replaced or dropped meanwhile. */
  | "view";

export interface Head {
  /** 0 for an empty lake. */
  readonly snapshot: number;
  /** Milliseconds since the epoch of the head's entry; 0 for an empty lake. */
  readonly time: number;
  readonly floor: number;
}

/** How far snapshots have ended. 0 where none have. */
export interface Expiry {
  /** Those before this one have ended, but for those with a tag. */
  readonly before: number;
  /** See the operation `expire`. */
  readonly unusedSince: number;
  /** What only snapshots before this one show was let go of. */
  readonly purged: number;
}

/** A writer's announcement that it stages files: they are left alone until it ends or the floor passes its base. */
export interface Intent {
  readonly id: string;
  /** Snapshot when staging began: the base of every file staged under it. */
  readonly base: number;
}

/** An intent as listed: also whose it is. */
export interface ListedIntent extends Intent {
  /** Random per process start. */
  readonly writer: string;
  readonly host: string;
  /** Milliseconds since the epoch. */
  readonly started: number;
}

/** The smallest and the largest value of an integer column. */
export interface IntegerBounds {
  readonly min: bigint;
  readonly max: bigint;
}

export interface HotOptions {
  /** Default: the head. */
  readonly at?: number;
  /** Only batches added after this snapshot. Default 0. */
  readonly after?: number;
  /** Default: all. A page never splits a snapshot, so it may be longer. */
  readonly limit?: number;
  /** Default true. Without it `data` is empty, and a listing of many batches costs a fraction. */
  readonly data?: boolean;
}

export interface FilesOptions {
  /** Default true. Without statistics `columns` is empty, and a listing of many files costs a fraction. */
  readonly statistics?: boolean;
  /** Leaves out files that the statistics prove to have no row for which it is true. */
  readonly where?: FilePredicate;
}

export interface Catalog extends AsyncDisposable {
  readonly lakeId: string;
  readonly catalogId: string;
  /** `shared`: other hosts commit to the same lake. */
  readonly kind: "local" | "shared";
  /**
   * Takes over what other hosts have committed before this call. All but `head`, and `resolveSnapshot` of what is not
   * known yet, tell of what was taken over last.
   */
  refresh(): Promise<void>;
  head(): Promise<Head>;
  /**
   * Number of the snapshot meant: itself, the largest with time ≤ the instant, or the one with this tag. 0 is the lake before
   * its first commit.
   * @param options.expired takes snapshots that have ended, too
   * @throws NotFoundError `snapshot_not_found`, `snapshot_expired`, `tag_not_found`
   */
  resolveSnapshot(
    at: number | Date | { readonly tag: string },
    options?: { readonly expired?: boolean },
  ): Promise<number>;
  /** In force at a snapshot, by default at the head. */
  expiry(at?: number): Promise<Expiry>;
  /** Oldest first, those that have ended too, from the one after `after`; `limit` is 1000 by default. */
  snapshots(page?: { after?: number; limit?: number }): Promise<SnapshotInfo[]>;
  /**
   * Live tables at a snapshot (default head), by name.
   * @param options.expired takes snapshots of which something was let go, too: their schemas stay, their hot batches may be gone
   */
  tables(at?: number, options?: { readonly expired?: boolean }): Promise<TableInfo[]>;
  /** By name, without regard to case. */
  table(name: string, at?: number): Promise<TableInfo | undefined>;
  /** The live table: what appends ask for, so it costs next to nothing as long as tables stay as they are. */
  layout(name: string): Promise<TableLayout | undefined>;
  /** Live views at a snapshot (default head), by name. */
  views(at?: number): Promise<ViewInfo[]>;
  /** Live files of a table at a snapshot, in order of commit. */
  files(tableId: string, at?: number, options?: FilesOptions): Promise<ListedFile[]>;
  /** Hot batches of a table at a snapshot, in order of commit. */
  hotBatches(tableId: string, options?: HotOptions): Promise<HotBatch[]>;
  /**
   * Bounds of the integer columns over all live rows, by field id: what widening needs to know. A column without any
   * value has no entry; one whose files do not all tell their bounds has an undefined one.
   */
  integerBounds(tableId: string): Promise<Map<number, IntegerBounds | undefined>>;
  receipt(tableId: string, batchId: string): Promise<Receipt | undefined>;
  sourceMark(tableId: string, source: string): Promise<SourceMark | undefined>;
  /**
   * What changed in a table behind a position, in order, up to and with snapshot `until`: the changes of `limit` snapshots
   * (1000 by default) at a time. No page is empty but the last.
   * @throws CatalogError `cursor_expired` if snapshots behind the position are kept no longer
   */
  changes(tableId: string, after: string, options?: { until?: number; limit?: number }): Promise<TableChange[]>;
  cursors(): Promise<CursorInfo[]>;
  /** Undefined if it was never moved, or has ended. */
  cursor(name: string): Promise<CursorInfo | undefined>;
  /** By name. */
  tags(): Promise<TagInfo[]>;
  /**
   * Newest first; `before` is a snapshot, exclusive; `limit` is 1000 by default. A page never splits a snapshot, so it may
   * be longer than `limit`.
   */
  batches(tableId: string, options?: { at?: number; before?: number; limit?: number }): Promise<Receipt[]>;
  /** In the order in which they were committed. */
  rejects(tableId: string, options?: RejectsOptions): Promise<ListedReject[]>;
  /**
   * After a purge: takes the texts of these rejects out of wherever else they are: entries in the store, and what files have in
   * places that are free by now. May be called again, and has to be where it was stopped. May block for seconds.
   */
  scrub(rejects: readonly string[], signal?: AbortSignal): Promise<void>;
  /** Announces that files will be staged, before the first of them is put. */
  begin(): Promise<Intent>;
  /** Ends an intent whose files were deleted or never put. */
  abandon(intentId: string): Promise<void>;
  /** Open intents, or those whose base is older than `olderThan`: what vacuum would end by raising the floor. */
  intents(olderThan?: number): Promise<ListedIntent[]>;
  /** Whether a table, live or dropped, has this folder (without regard to case): no other may be given it. */
  folderUsed(folder: string): Promise<boolean>;
  /**
   * Makes smaller what it keeps in the store and does not need any more.
   * @param before milliseconds since the epoch, by the store's clock: what is newer is left alone
   */
  tidy(before: number, signal?: AbortSignal): Promise<void>;
  /** Copies all that is known here, as it is at one moment, into a new SQLite file. May block for seconds. */
  exportTo(path: string): Promise<void>;
  /**
   * Ends a local catalog whose lake goes on elsewhere: it answers, and commits nothing any more (`lake_moved`).
   * @param copy random: which copy of the lake goes on. Undefined: one that certainly does.
   * @returns false if the head is another snapshot than this, and then nothing has changed
   * @throws CatalogError `lake_moved` if another copy does
   */
  retire(snapshot: number, copy?: string): Promise<boolean>;
  /** Those of the keys that some snapshot needs: for verify and vacuum. */
  referencedKeys(keys: readonly string[]): Promise<Set<string>>;
  /** Those of the keys that were committed and that no snapshot needs any more: they may be deleted. */
  unusedKeys(keys: readonly string[]): Promise<Set<string>>;
  /**
   * Commits a draft as the next entry: all of it or nothing.
   * @throws BatchConflictError `batch_conflict` a batch id is known with other content; `transaction_conflict` only some
   * of its batches are known, or not all from one snapshot; `reject_replayed` a reject was replayed by another batch
   * @throws InvalidInputError the draft contradicts itself or the catalog in a way that planning again cannot help
   * @throws CatalogError `catalog_busy` (retryable) after waiting; `commit_unknown` if the outcome cannot be told
   */
  commit(draft: Draft): Promise<CommitResult>;
}
