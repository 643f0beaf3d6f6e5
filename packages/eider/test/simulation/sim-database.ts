/**
 * Databases in memory that are used again and again: what a schedule leaves behind is rolled back, tables and prepared
 * statements stay. Making them anew for every host of every schedule took a third of the simulation's time.
 *
 * All of a schedule happens in one transaction that is never committed; each of its own transactions is a savepoint of
 * it. Those that were committed are not released either, so that a disk can lose the last of them.
 */

import { readFileSync, writeFileSync } from "node:fs";
import type { SqliteDriver, SqliteValue } from "@eider/catalog";
import { openSqlite } from "../../../catalog/src/sqlite-driver.js";
import { carriedTables } from "../../../catalog/src/sqlite-rows.js";

/** Not in use, by the statements that made their tables. */
const idle = new Map<string, SimDatabase[]>();
/** Files with tables that are empty, by the statements that made them: copies begin with them. */
const blank = new Map<string, Buffer>();

export class SimDatabase {
  readonly driver: SqliteDriver;
  readonly #schema: string;
  /** Makes one text of all tables; empty where there are none. */
  #contentSql: string | undefined;

  private constructor(schema: string) {
    this.#schema = schema;
    this.driver = openSqlite(undefined, { readonly: false, create: true, blockMs: 0, copy: false });
    // Has no effect within a transaction, and later there is always one.
    this.driver.exec("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF");
    this.driver.exec(schema);
    this.driver.exec("BEGIN");
  }

  /** @param schema statements that make the tables; empty for a database without any */
  static take(schema: string): SimDatabase {
    return idle.get(schema)?.pop() ?? new SimDatabase(schema);
  }

  /** Takes back all that happened, and leaves it to the next. */
  give(): void {
    this.driver.exec("ROLLBACK; BEGIN");
    const others = idle.get(this.#schema);
    if (others) others.push(this);
    else idle.set(this.#schema, [this]);
  }

  /** All that it says of the lake, as one text. */
  content(): string {
    this.#contentSql ??= contentSql(this.driver);
    return this.#contentSql === "" ? "" : this.driver.get<{ content: string }>(this.#contentSql)!.content;
  }

  /** Writes it into a real file, which SQLite itself could not do within a transaction. */
  copyTo(path: string): void {
    const made = blank.get(this.#schema);
    if (made) writeFileSync(path, made);
    else {
      writeTo(path, (file) => file.exec(this.#schema));
      blank.set(this.#schema, readFileSync(path));
    }
    writeTo(path, (file) => {
      for (const { application_id: id } of this.driver.all<{ application_id: number }>("PRAGMA application_id"))
        file.exec(`PRAGMA application_id = ${id}`);
      for (const { user_version: version } of this.driver.all<{ user_version: number }>("PRAGMA user_version"))
        file.exec(`PRAGMA user_version = ${version}`);
      file.exec("BEGIN");
      for (const name of ["meta", ...carriedTables(this.driver).map((table) => table.name)]) {
        for (const row of this.driver.all<Record<string, SqliteValue>>(`SELECT * FROM ${name}`)) {
          const columns = Object.keys(row);
          const places = columns.map(() => "?").join();
          file.run(`INSERT INTO ${name} (${columns.join()}) VALUES (${places})`, ...Object.values(row));
        }
      }
      file.exec("COMMIT");
    });
  }

  /** Begins a transaction, the one with this number. */
  begin(number: number): void {
    this.driver.run(`SAVEPOINT t${number}`);
  }

  /** Takes back this transaction and all later ones. */
  rollBack(number: number): void {
    this.driver.run(`ROLLBACK TO t${number}`);
    this.driver.run(`RELEASE t${number}`);
  }
}

/** Writes a file that nobody else has, which need not outlive a power cut. */
function writeTo(path: string, write: (file: SqliteDriver) => void): void {
  const file = openSqlite(path, { readonly: false, create: true, blockMs: 0, copy: false });
  try {
    file.exec("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF");
    write(file);
  } finally {
    file.close();
  }
}

/** One statement: many small ones, and their rows as objects, take longer than all else that compares two databases. */
function contentSql(driver: SqliteDriver): string {
  const tables = carriedTables(driver).map(({ name, columns }) => {
    const row = columns.map((column) => `quote(${column})`).join(" || ',' || ");
    return `SELECT '${name}' || coalesce(group_concat(${row}, ';'), '') AS rows FROM ${name}`;
  });
  return tables.length === 0 ? "" : `SELECT group_concat(rows, '\n') AS content FROM (${tables.join(" UNION ALL ")})`;
}
