/** SQLite by better-sqlite3: a native module, built for one version of Node.js. */

import { CatalogError, InvalidInputError } from "@eider/core";
import Database from "better-sqlite3";
import { readAlone } from "./sqlite-copy.js";
import type { DriverOptions, OpenDriver, SqliteValue } from "./sqlite-driver.js";

/** @throws CatalogError `native_module_missing` */
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
    const message = `better-sqlite3 cannot open ${JSON.stringify(path)}: it ends with a space`;
    throw new InvalidInputError("bad_path", message, { subject: path });
  }
  try {
    if (path !== undefined && copy) return new Database(readAlone(path), { readonly: true });
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

/** Not found at all (`bindings` lists the places it tried), or built for another version or platform. */
function isNativeFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return "tries" in error || code === "ERR_DLOPEN_FAILED" || code === "MODULE_NOT_FOUND";
}
