/** The tables of a snapshot. */

import { nameKey } from "@eider/core";
import type { TableInfo } from "./catalog.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { readJson } from "./sqlite-json.js";
import { storedSchemaOf } from "./sqlite-schemas.js";

interface TableRow {
  readonly no: number;
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  readonly partition_by: string;
  readonly order_by: string;
  readonly created_in: number;
  readonly version: number;
  readonly last_field_id: number;
  readonly schema: string;
  readonly rows: number;
  readonly files: number;
  readonly bytes: number;
  readonly hot_batches: number;
  readonly hot_bytes: number;
  readonly hot_since: number;
}

/** Tables that are live at a snapshot, as they were then: takes it four times. */
const TABLES_AT = `
  SELECT t.no, t.id, t.name, t.folder, t.partition_by, t.order_by, t.created_in,
    v.version, v.last_field_id, v.schema, x.rows, x.files, x.bytes, x.hot_batches, x.hot_bytes, x.hot_since
  FROM tables t
  JOIN schema_versions v ON v.table_no = t.no
    AND v.version = (SELECT max(version) FROM schema_versions WHERE table_no = t.no AND snapshot <= ?)
  JOIN table_totals x ON x.table_no = t.no
    AND x.snapshot = (SELECT max(snapshot) FROM table_totals WHERE table_no = t.no AND snapshot <= ?)
  WHERE t.created_in <= ? AND (t.dropped_in IS NULL OR t.dropped_in > ?)`;

export function listTables(driver: SqliteDriver, at: number): TableInfo[] {
  return driver.all<TableRow>(`${TABLES_AT} ORDER BY t.name`, at, at, at, at).map(toTableInfo);
}

export function findTable(driver: SqliteDriver, name: string, at: number): TableInfo | undefined {
  const row = driver.get<TableRow>(`${TABLES_AT} AND t.name_key = ?`, at, at, at, at, nameKey(name));
  return row && toTableInfo(row);
}

function toTableInfo(row: TableRow): TableInfo {
  return {
    id: row.id,
    name: row.name,
    folder: row.folder,
    schema: storedSchemaOf(row.schema),
    schemaVersion: row.version,
    lastFieldId: row.last_field_id,
    partitionBy: readJson(row.partition_by)
      .list()
      .map((item) => item.text()),
    orderBy: readJson(row.order_by)
      .list()
      .map((item) => item.text()),
    createdIn: row.created_in,
    rows: row.rows,
    files: row.files,
    bytes: row.bytes,
    hotBatches: row.hot_batches,
    hotBytes: row.hot_bytes,
    hotSince: row.hot_since,
  };
}

/** The small number that stands for a table in every other row. */
export function tableNumber(
  driver: SqliteDriver,
  id: string,
): { no: number; name: string; created_in: number; dropped_in: number | null } | undefined {
  return driver.get("SELECT no, name, created_in, dropped_in FROM tables WHERE id = ?", id);
}
