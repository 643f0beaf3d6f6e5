/** The catalog's state, as those see it who judge an entry and those who apply it. */

import type { Schema } from "@eider/core";
import type { Expiry } from "./catalog.js";

/** What is recorded of a batch, for ever. */
export interface BatchRecord {
  readonly hash: string;
  readonly rows: number;
  readonly rejected: number;
  readonly snapshot: number;
  /** Milliseconds since the epoch. */
  readonly time: number;
}

export interface RejectState {
  /** The batch that is another try of it. */
  readonly replayedBy: string | undefined;
  readonly purged: boolean;
}

export interface TableState {
  readonly name: string;
  readonly partitionBy: readonly string[];
  readonly schemaVersion: number;
  readonly lastFieldId: number;
  /** False once dropped. */
  readonly live: boolean;
}

export interface Totals {
  /** Of data files and of hot batches. */
  readonly rows: number;
  readonly files: number;
  readonly bytes: number;
  readonly hotBatches: number;
  readonly hotBytes: number;
  /** The last snapshot that did more than add hot batches: a fold or a rollback; 0 if none did. */
  readonly hotSince: number;
}

/** Rows that are live at one place: a data file or a hot batch. */
export interface Extent {
  readonly rows: number;
  readonly bytes: number;
}

export interface EntryHead {
  /** 0 before the first entry. */
  readonly n: number;
  /** Empty before the first entry. */
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly floor: number;
}

/** The lake as `check` and `apply` see it: after entry `head().n`, before the next. */
export interface CatalogState {
  head(): EntryHead;
  /** By id, dropped ones too. */
  table(id: string): TableState | undefined;
  /** Id of the live table whose name has this `nameKey`. */
  tableByName(key: string): string | undefined;
  /** Snapshot of the live view whose name has this `nameKey`. */
  viewByName(key: string): number | undefined;
  /** Whether any table, dropped or not, has this folder; without regard to case, as on some disks. */
  folderUsed(folder: string): boolean;
  schema(table: string, version: number): Schema | undefined;
  batch(table: string, batch: string): BatchRecord | undefined;
  /** Whether the key was ever committed. */
  keyUsed(key: string): boolean;
  /** By its id; undefined if the table has no such reject. */
  reject(table: string, id: string): RejectState | undefined;
  /** How far a source of the table has been taken. */
  mark(table: string, source: string): MarkState | undefined;
  /** Of the cursor that was moved, and has not ended. */
  cursor(name: string): string | undefined;
  /** By its key; undefined once it is removed. */
  liveFile(table: string, key: string): Extent | undefined;
  /** By its batch id; undefined once it is folded. */
  liveHot(table: string, batch: string): Extent | undefined;
  totals(table: string): Totals;
  /** The last snapshot that changed its rows or its files. */
  changedIn(table: string): number;
  /** How far snapshots have ended. */
  expiry(): Pick<Expiry, "before" | "unusedSince">;
  /** Whether a snapshot has a tag, which keeps it. */
  isTagged(snapshot: number): boolean;
  /** The table as it was at a snapshot; undefined if it was not there. */
  past(table: string, snapshot: number): PastTable | undefined;
}

/** How far a source has been taken, in decimal digits, and its last batch. */
export interface MarkState {
  readonly last: string;
  readonly batch: string;
}

export interface PastTable {
  readonly schemaVersion: number;
  readonly totals: Totals;
}
