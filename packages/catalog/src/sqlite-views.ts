/** Views: SELECTs with a name, each from one snapshot on and before another. */

import { nameKey } from "@eider/core";
import type { ViewInfo } from "./catalog.js";
import type { SqliteDriver } from "./sqlite-driver.js";

export function listViews(driver: SqliteDriver, at: number): ViewInfo[] {
  return driver.all(
    `SELECT name, sql, created_in AS "createdIn" FROM views
     WHERE created_in <= ? AND (dropped_in IS NULL OR dropped_in > ?) ORDER BY name`,
    at,
    at,
  );
}

/** Snapshot of the live view of this name. */
export function findView(driver: SqliteDriver, key: string): number | undefined {
  return driver.get<{ n: number }>("SELECT created_in AS n FROM views WHERE name_key = ? AND dropped_in IS NULL", key)
    ?.n;
}

/** Ends the live view of this name as of snapshot `n`, and with a text begins one of that. */
export function replaceView(driver: SqliteDriver, n: number, name: string, sql: string | undefined): void {
  const key = nameKey(name);
  driver.run("UPDATE views SET dropped_in = ? WHERE name_key = ? AND dropped_in IS NULL", n, key);
  if (sql === undefined) return;
  driver.run("INSERT INTO views (name, name_key, sql, created_in) VALUES (?, ?, ?, ?)", name, key, sql, n);
}
