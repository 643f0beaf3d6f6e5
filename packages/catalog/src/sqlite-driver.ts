/** SQLite behind five methods, so that any binding fits. Synchronous, as SQLite is. */

import { openBetterSqlite } from "./better-sqlite.js";
import { nodeSqlite } from "./node-sqlite.js";

/**
 * Integers come back as numbers: every integer column is bounded to what a number holds exactly, see `sqlite-schema.ts`;
 * wider values (column bounds) are blobs.
 */
export type SqliteValue = string | number | Uint8Array | null;

export interface SqliteDriver {
  /** Runs statements that return nothing. */
  exec(sql: string): void;
  /** Runs one statement and returns how many rows it changed. */
  run(sql: string, ...params: readonly SqliteValue[]): number;
  /** The first row, or undefined. */
  get<R>(sql: string, ...params: readonly SqliteValue[]): R | undefined;
  all<R>(sql: string, ...params: readonly SqliteValue[]): R[];
  /** Rolls back what is open. */
  close(): void;
}

export interface DriverOptions {
  readonly readonly: boolean;
  /** Whether to create the file if there is none. */
  readonly create: boolean;
  /** Milliseconds that SQLite itself may block the thread waiting for a lock. */
  readonly blockMs: number;
  /** Reads a copy of the file in memory, without locks or a write-ahead log: right only while nobody writes. */
  readonly copy: boolean;
}

/** Opens a file, or a database in memory if `path` is undefined. Throws SQLite's errors as they are, `code` being `SQLITE_…`. */
export type OpenDriver = (path: string | undefined, options: DriverOptions) => SqliteDriver;

/** The SQLite inside of Node.js where that is ready, which is no module to build; else better-sqlite3. */
export const openSqlite: OpenDriver = (path, options) => (nodeSqlite() ?? openBetterSqlite)(path, options);

/** Another number than before whenever another connection has written since; what this one writes does not change it. */
export function dataVersion(driver: SqliteDriver): number {
  return driver.get<{ data_version: number }>("PRAGMA data_version")!.data_version;
}
