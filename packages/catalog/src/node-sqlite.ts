/**
 * SQLite by Node.js itself (`node:sqlite`). From Node.js 24.19 on, the better-sqlite3 that runs on Node.js 20 ends the
 * process when it is compiled there and garbage is collected (https://github.com/WiseLibs/better-sqlite3/issues/1515).
 */

import { pathToFileURL } from "node:url";
import { readAlone } from "./sqlite-copy.js";
import type { OpenDriver, SqliteValue } from "./sqlite-driver.js";

/** The first whose `node:sqlite` does not warn that it is an experiment. */
const NODE_MAJOR = 24;

/** What of `node:sqlite` is used here; the types of Node.js 20 do not have it. */
interface Statement {
  run(...params: readonly SqliteValue[]): { readonly changes: number | bigint };
  get(...params: readonly SqliteValue[]): object | undefined;
  all(...params: readonly SqliteValue[]): object[];
}

interface Database {
  readonly isOpen: boolean;
  exec(sql: string): void;
  prepare(sql: string): Statement;
  deserialize(bytes: Uint8Array): void;
  close(): void;
}

type DatabaseClass = new (
  path: string | URL,
  options: { readonly readOnly: boolean; readonly timeout: number },
) => Database;

/** How to open a database with it; undefined where Node.js has none, or not all of it. */
export function nodeSqlite(): OpenDriver | undefined {
  // Asked for by name: an import would fail on Node.js 20, and the mere loading warns on 22.
  if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR) return undefined;
  const found = process.getBuiltinModule("node:sqlite") as { readonly DatabaseSync?: DatabaseClass } | undefined;
  const DatabaseSync = found?.DatabaseSync;
  return DatabaseSync && "deserialize" in DatabaseSync.prototype ? opener(DatabaseSync) : undefined;
}

function opener(DatabaseSync: DatabaseClass): OpenDriver {
  return (path, { readonly, create, blockMs, copy }) => {
    const database = named(() => {
      const options = { readOnly: readonly && !copy, timeout: blockMs };
      if (path === undefined || copy) return new DatabaseSync(":memory:", options);
      const url = pathToFileURL(path);
      if (!readonly && !create) url.search = "?mode=rw"; // without it SQLite makes the file
      return new DatabaseSync(url, options);
    });
    if (path !== undefined && copy) {
      try {
        const bytes = readAlone(path);
        // An empty file is an empty database, which cannot be loaded as one.
        if (bytes.length > 0) named(() => database.deserialize(bytes));
        database.exec("PRAGMA query_only = ON");
      } catch (error) {
        database.close();
        throw error;
      }
    }
    // Preparing costs more than most of our statements do; there are a few dozen different ones.
    const statements = new Map<string, Statement>();
    const prepare = (sql: string): Statement => {
      let statement = statements.get(sql);
      if (!statement) {
        statement = database.prepare(sql);
        statements.set(sql, statement);
      }
      return statement;
    };
    return {
      exec: (sql) => named(() => database.exec(sql)),
      run: (sql, ...params) => named(() => Number(prepare(sql).run(...params).changes)),
      get: <R>(sql: string, ...params: readonly SqliteValue[]) => {
        const row = named(() => prepare(sql).get(...params));
        return row && ({ ...row } as R);
      },
      // Rows come without a prototype: users would see that.
      all: <R>(sql: string, ...params: readonly SqliteValue[]) =>
        named(() => prepare(sql).all(...params)).map((row) => ({ ...row }) as R),
      close: () => {
        if (database.isOpen) database.close();
      },
    };
  };
}

/** SQLite's primary result codes, of which an extended code is the lowest byte (sqlite.org/rescode.html). */
const CODES: ReadonlyMap<number, string> = new Map([
  [1, "ERROR"],
  [2, "INTERNAL"],
  [3, "PERM"],
  [4, "ABORT"],
  [5, "BUSY"],
  [6, "LOCKED"],
  [7, "NOMEM"],
  [8, "READONLY"],
  [9, "INTERRUPT"],
  [10, "IOERR"],
  [11, "CORRUPT"],
  [12, "NOTFOUND"],
  [13, "FULL"],
  [14, "CANTOPEN"],
  [15, "PROTOCOL"],
  [17, "SCHEMA"],
  [18, "TOOBIG"],
  [19, "CONSTRAINT"],
  [20, "MISMATCH"],
  [21, "MISUSE"],
  [23, "AUTH"],
  [25, "RANGE"],
  [26, "NOTADB"],
]);

/** Gives errors SQLite's code by name, with the number of an extended one: `SQLITE_BUSY`, `SQLITE_IOERR_1034`. */
function named<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    const code = error instanceof Error && "errcode" in error ? Number(error.errcode) : Number.NaN;
    const name = CODES.get(code & 0xff);
    if (name !== undefined) Object.assign(error as Error, { code: `SQLITE_${name}${code > 0xff ? `_${code}` : ""}` });
    throw error;
  }
}
