/** The tables of a catalog from one file into another: all but what is of one host alone. */

import { CorruptionError } from "@eider/core";
import type { SqliteDriver, SqliteValue } from "./sqlite-driver.js";

/** Of this host and this moment; no other has any use for them. */
export const HOST_TABLES: readonly string[] = ["intents"];
/** Rows that are in memory at a time. */
const PAGE = 5000;

export interface CarriedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** To be read once, while the file does not change. */
  readonly rows: Iterable<readonly SqliteValue[]>;
}

/** A checkpoint that is to be taken over. */
export interface CheckpointContent {
  /** The id of an entry; undefined if the checkpoint is older. */
  entryId(n: number): string | undefined;
  tables(): readonly CarriedTable[];
}

/** Everything that belongs to the lake. */
export function carriedTables(driver: SqliteDriver): CarriedTable[] {
  return driver
    .all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .filter(({ name }) => name !== "meta" && !name.startsWith("sqlite_") && !HOST_TABLES.includes(name))
    .map(({ name }) => {
      const columns = driver.all<{ name: string; pk: number }>("SELECT name, pk FROM pragma_table_info(?)", name);
      const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
      return {
        name,
        columns: columns.map((column) => column.name),
        rows: rowsInOrder(
          driver,
          name,
          columns.map((column) => column.name),
          key.map((column) => column.name),
        ),
      };
    });
}

function* rowsInOrder(
  driver: SqliteDriver,
  table: string,
  columns: readonly string[],
  key: readonly string[],
): Iterable<readonly SqliteValue[]> {
  const order = key.join(", ");
  const sql = (where: string): string =>
    `SELECT ${columns.join(", ")} FROM ${table} ${where} ORDER BY ${order} LIMIT ${PAGE}`;
  const after = sql(`WHERE (${order}) > (${key.map(() => "?").join(", ")})`);
  let page = driver.all<Record<string, SqliteValue>>(sql(""));
  for (;;) {
    for (const row of page) yield columns.map((column) => row[column] ?? null);
    const last = page.at(-1);
    if (!last || page.length < PAGE) return;
    page = driver.all(after, ...key.map((column) => last[column] ?? null));
  }
}

/** Replaces what belongs to the lake. In a write transaction, whose end is the moment at which all of it is there. */
export function replaceTables(driver: SqliteDriver, tables: readonly CarriedTable[]): void {
  const own = carriedTables(driver).map(({ name, columns }) => `${name} ${columns.join()}`);
  if (tables.map(({ name, columns }) => `${name} ${columns.join()}`).join("\n") !== own.join("\n")) {
    throw new CorruptionError("bad_checkpoint", "the checkpoint has other tables than a catalog of its version");
  }
  driver.exec("PRAGMA defer_foreign_keys = ON");
  for (const { name } of tables) driver.run(`DELETE FROM ${name}`);
  for (const { name, columns, rows } of tables) {
    const sql = `INSERT INTO ${name} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
    for (const row of rows) driver.run(sql, ...row);
  }
}
