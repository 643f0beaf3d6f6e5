/**
 * SQLite compiled to WebAssembly, which reaches the disk by Node's functions alone: the same C code decides what is written
 * and synced in which order as in the native build. Without shared memory its write-ahead log is of one connection.
 */

import { createRequire } from "node:module";
import type { OpenDriver, SqliteValue } from "@eider/catalog";

interface Database {
  exec(sql: string): void;
  run(sql: string, values: readonly SqliteValue[]): { readonly changes: number };
  get(sql: string, values: readonly SqliteValue[]): object | null;
  all(sql: string, values: readonly SqliteValue[]): object[];
  close(): void;
}

type Module = { readonly Database: new (path: string, options: { readonly fileMustExist: boolean }) => Database };

/** Loaded when it is used: by then the calls that it makes are watched. */
const require = createRequire(import.meta.url);

/** So small that the log is brought into the file, and begun again, several times in a test. */
const CHECKPOINT_PAGES = 40;

/** @param change of the SQL that is executed, for planted faults */
export function wasmSqlite(change: (sql: string) => string = (sql) => sql): OpenDriver {
  const { Database } = require("node-sqlite3-wasm") as Module;
  return (path, { create }) => {
    const database = new Database(path!, { fileMustExist: !create });
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    return {
      exec(sql) {
        database.exec(change(sql));
        if (sql.includes("journal_size_limit")) database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
      },
      run: (sql, ...values) => database.run(sql, values).changes,
      get: <R>(sql: string, ...values: readonly SqliteValue[]) => (database.get(change(sql), values) ?? undefined) as R,
      all: <R>(sql: string, ...values: readonly SqliteValue[]) => database.all(sql, values) as R[],
      close: () => database.close(),
    };
  };
}
