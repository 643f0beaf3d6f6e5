/** SQLite behind five methods, so that another binding fits; better-sqlite3 now. Synchronous, as SQLite is. */

import { readFileSync } from "node:fs";
import { CatalogError, InvalidInputError } from "@eider/core";
import Database from "better-sqlite3";

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

/** Opens a file, or a database in memory if `path` is undefined. */
export type OpenDriver = (path: string | undefined, options: DriverOptions) => SqliteDriver;

/** @throws CatalogError `native_module_missing`; SQLite's errors as they are, with their `code` */
export const openBetterSqlite: OpenDriver = (path, options) => {
  const database = openDatabase(path, options);
  // Preparing costs more than most of our statements do; there are a few dozen different ones.
  const statements = new Map<string, Database.Statement>();
  const prepare = (sql: string): Database.Statement => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = database.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  };
  return {
    exec: (sql) => void database.exec(sql),
    run: (sql, ...params) => prepare(sql).run(...params).changes,
    get: <R>(sql: string, ...params: readonly SqliteValue[]) => prepare(sql).get(...params) as R | undefined,
    all: <R>(sql: string, ...params: readonly SqliteValue[]) => prepare(sql).all(...params) as R[],
    close: () => void database.close(),
  };
};

function openDatabase(path: string | undefined, { copy, readonly, create, blockMs }: DriverOptions): Database.Database {
  if (path !== undefined && path !== path.trim()) {
    throw new InvalidInputError(
      "bad_path",
      `better-sqlite3 cannot open ${JSON.stringify(path)}: it ends with a space`,
      {
        subject: path,
      },
    );
  }
  try {
    if (path !== undefined && copy) return new Database(withoutLog(readFileSync(path)), { readonly: true });
    return new Database(path ?? ":memory:", { readonly, fileMustExist: !create, timeout: blockMs });
  } catch (error) {
    if (error instanceof Database.SqliteError || !isNativeFailure(error)) throw error;
    throw new CatalogError(
      "native_module_missing",
      "the native module of better-sqlite3 is not built for this Node.js: run `npm rebuild better-sqlite3` " +
        "(packages that were installed with scripts disabled, or under another Node.js version, lack it)",
      { cause: error, subject: "better-sqlite3" },
    );
  }
}

/**
 * SQLite's file format, bytes 18 and 19: 2 says that the file goes with a write-ahead log, which a database in memory
 * cannot have; 1 that it stands alone.
 */
function withoutLog(file: Buffer): Buffer {
  if (file.length > 19) file.fill(1, 18, 20);
  return file;
}

/** Not found at all (`bindings` lists the places it tried), or built for another version or platform. */
function isNativeFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return "tries" in error || code === "ERR_DLOPEN_FAILED" || code === "MODULE_NOT_FOUND";
}
