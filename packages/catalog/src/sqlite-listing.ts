/** Questions about a snapshot, answered from the catalog's tables. Each runs inside one read transaction. */

import { type ColumnStatistics, NotFoundError, nameKey } from "@eider/core";
import { type BoundClass, fromOrderedBytes, isIntegerType, leafFields } from "./bounds.js";
import type { IntegerBounds, ListedFile, ListedReject, Receipt, SnapshotInfo, TableInfo } from "./catalog.js";
import type { BatchRecord } from "./check.js";
import { readPartitionValue, readSchema } from "./entry.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { corrupt, readJson } from "./sqlite-json.js";
import { LIVE } from "./sqlite-schema.js";

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
}

/** Tables that are live at a snapshot, as they were then: takes it four times. */
const TABLES_AT = `
  SELECT t.no, t.id, t.name, t.folder, t.partition_by, t.order_by, t.created_in,
    v.version, v.last_field_id, v.schema, x.rows, x.files, x.bytes
  FROM tables t
  JOIN schema_versions v ON v.table_no = t.no
    AND v.version = (SELECT max(version) FROM schema_versions WHERE table_no = t.no AND snapshot <= ?)
  JOIN table_totals x ON x.table_no = t.no
    AND x.snapshot = (SELECT max(snapshot) FROM table_totals WHERE table_no = t.no AND snapshot <= ?)
  WHERE t.created_in <= ? AND (t.dropped_in IS NULL OR t.dropped_in > ?)`;

/**
 * Files of a table that are live at a snapshot: takes the table's number, then the snapshot twice. The index leads to the
 * live ones and those removed since, past no others.
 */
const FILES_AT = "f.table_no = ? AND f.removed_in > ? AND f.added_in <= ?";

export function headOf(driver: SqliteDriver): number {
  return driver.get<{ n: number | null }>("SELECT max(n) AS n FROM entries")?.n ?? 0;
}

/** The snapshot meant by `at`, by default the head. */
export function snapshotAt(driver: SqliteDriver, at: number | undefined): number {
  const head = headOf(driver);
  if (at === undefined) return head;
  if (Number.isInteger(at) && at >= 0 && at <= head) return at;
  throw new NotFoundError("snapshot_not_found", `there is no snapshot ${at}: the lake has snapshots 1 to ${head}`, {
    subject: String(at),
  });
}

/** The largest snapshot with time ≤ `time`, in milliseconds since the epoch. */
export function snapshotAtTime(driver: SqliteDriver, time: number): number {
  const row = driver.get<{ n: number }>(
    "SELECT n FROM entries WHERE time <= ? ORDER BY time DESC, n DESC LIMIT 1",
    time,
  );
  if (row) return row.n;
  const first = driver.get<{ time: number }>("SELECT time FROM entries WHERE n = 1");
  throw new NotFoundError(
    "snapshot_not_found",
    first
      ? `the first snapshot is of ${new Date(first.time).toISOString()}, later than asked for`
      : "the lake is empty",
  );
}

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
    schema: readSchema(readJson(row.schema)),
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
  };
}

interface FileRow {
  readonly id: number;
  readonly key: string;
  readonly added_in: number;
  readonly batch: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: Buffer;
  readonly base: number;
  readonly schema_version: number;
  readonly partition: string;
}

interface StatisticsRow {
  readonly file: number;
  readonly field: number;
  readonly class: BoundClass;
  readonly min: Uint8Array | null;
  readonly max: Uint8Array | null;
  readonly value_count: number;
  readonly null_count: number;
  readonly has_nan: number;
  readonly min_exact: number;
  readonly max_exact: number;
  readonly stored_bytes: number;
}

export function listFiles(driver: SqliteDriver, tableId: string, at: number, statistics: boolean): ListedFile[] {
  const table = tableNumber(driver, tableId);
  if (table === undefined || (table.dropped_in ?? LIVE) <= at) return [];
  const columns = statistics ? listStatistics(driver, table.no, at) : undefined;
  // Most tables have no partitions, or the same few over and over.
  const partitions = new Map<string, ListedFile["partition"]>();
  const partition = (json: string): ListedFile["partition"] => {
    let values = partitions.get(json);
    if (!values) {
      values = readJson(json).list().map(readPartitionValue);
      partitions.set(json, values);
    }
    return values;
  };
  return driver
    .all<FileRow>(
      `SELECT f.id, f.key, f.added_in, f.batch, f.rows, f.bytes, f.sha256, f.base, f.schema_version, f.partition
       FROM files f WHERE ${FILES_AT} ORDER BY f.id`,
      table.no,
      at,
      at,
    )
    .map((row) => ({
      key: row.key,
      bytes: row.bytes,
      rows: row.rows,
      sha256: row.sha256.toString("hex"),
      base: row.base,
      schemaVersion: row.schema_version,
      partition: partition(row.partition),
      columns: columns?.get(row.id) ?? [],
      addedIn: row.added_in,
      batchId: row.batch ?? undefined,
    }));
}

function listStatistics(driver: SqliteDriver, table: number, at: number): Map<number, ColumnStatistics[]> {
  const byFile = new Map<number, ColumnStatistics[]>();
  const rows = driver.all<StatisticsRow>(
    `SELECT s.file, s.field, s.class, s.min, s.max, s.value_count, s.null_count, s.has_nan, s.min_exact, s.max_exact,
     s.stored_bytes FROM files f JOIN column_stats s ON s.file = f.id
     WHERE ${FILES_AT}`,
    table,
    at,
    at,
  );
  for (const row of rows) {
    let columns = byFile.get(row.file);
    if (!columns) {
      columns = [];
      byFile.set(row.file, columns);
    }
    columns.push({
      fieldId: row.field,
      valueCount: row.value_count,
      nullCount: row.null_count,
      hasNaN: row.has_nan === 1,
      ...(row.min && { min: fromOrderedBytes(row.class, row.min) }),
      ...(row.max && { max: fromOrderedBytes(row.class, row.max) }),
      minExact: row.min_exact === 1,
      maxExact: row.max_exact === 1,
      storedBytes: row.stored_bytes,
    });
  }
  return byFile;
}

/** Over the live files at the head. A few steps in an index per column, however many files there are. */
export function integerBounds(driver: SqliteDriver, tableId: string): Map<number, IntegerBounds | undefined> {
  const bounds = new Map<number, IntegerBounds | undefined>();
  const table = tableNumber(driver, tableId);
  if (!table || table.dropped_in !== null) return bounds;
  const last = driver.get<{ schema: string }>(
    "SELECT schema FROM schema_versions WHERE table_no = ? ORDER BY version DESC LIMIT 1",
    table.no,
  );
  if (!last) return corrupt(`the table ${tableId} has no schema`);
  for (const [field, { type }] of leafFields(readSchema(readJson(last.schema)))) {
    if (!isIntegerType(type)) continue;
    const unbounded = driver.get(
      `SELECT 1 FROM unbounded u JOIN files f ON f.id = u.file
       WHERE u.table_no = ? AND u.field = ? AND f.removed_in = ? LIMIT 1`,
      table.no,
      field,
      LIVE,
    );
    if (unbounded) {
      bounds.set(field, undefined);
      continue;
    }
    // Files from before a widening may hold the other class.
    const found = (["int", "uint"] as const).flatMap((kind) => {
      const min = extreme(driver, table.no, field, kind, "min");
      const max = extreme(driver, table.no, field, kind, "max");
      return min === undefined || max === undefined ? [] : [{ min, max }];
    });
    const [first, second] = found;
    if (!first) continue;
    bounds.set(field, {
      min: second && second.min < first.min ? second.min : first.min,
      max: second && second.max > first.max ? second.max : first.max,
    });
  }
  return bounds;
}

/** CROSS JOIN keeps SQLite from starting with the files: the first live one in the index's order is the answer. */
function extreme(
  driver: SqliteDriver,
  table: number,
  field: number,
  kind: "int" | "uint",
  end: "min" | "max",
): bigint | undefined {
  const row = driver.get<{ bound: Uint8Array }>(
    `SELECT s.${end} AS bound FROM column_stats s CROSS JOIN files f ON f.id = s.file
     WHERE s.table_no = ? AND s.field = ? AND s.class = ? AND s.${end} IS NOT NULL AND f.removed_in = ?
     ORDER BY s.${end} ${end === "min" ? "ASC" : "DESC"} LIMIT 1`,
    table,
    field,
    kind,
    LIVE,
  );
  if (!row) return undefined;
  const bound = fromOrderedBytes(kind, row.bound);
  return typeof bound === "bigint" ? bound : corrupt("a bound of an integer column is no integer");
}

export function findReceipt(driver: SqliteDriver, tableId: string, batchId: string): Receipt | undefined {
  const row = driver.get<BatchRecord & { table: string }>(
    `SELECT t.name AS "table", r.hash, r.rows, r.snapshot, r.time FROM tables t JOIN receipts r ON r.table_no = t.no
     WHERE t.id = ? AND r.batch = ?`,
    tableId,
    batchId,
  );
  return row && toReceipt(row.table, batchId, row);
}

/** Newest first; the page ends with the end of a snapshot. */
export function listReceipts(driver: SqliteDriver, tableId: string, last: number, limit: number): Receipt[] {
  const table = tableNumber(driver, tableId);
  if (!table) return [];
  const first = driver.get<{ snapshot: number | null }>(
    `SELECT min(snapshot) AS snapshot FROM
     (SELECT snapshot FROM receipts WHERE table_no = ? AND snapshot <= ? ORDER BY snapshot DESC LIMIT ?)`,
    table.no,
    last,
    limit,
  )?.snapshot;
  if (first === null || first === undefined) return [];
  return driver
    .all<BatchRecord & { batch: string }>(
      `SELECT batch, hash, rows, snapshot, time FROM receipts
       WHERE table_no = ? AND snapshot BETWEEN ? AND ? ORDER BY snapshot DESC, batch`,
      table.no,
      first,
      last,
    )
    .map((row) => toReceipt(table.name, row.batch, row));
}

export function toReceipt(table: string, batchId: string, record: BatchRecord): Receipt {
  return {
    table,
    batchId,
    snapshot: record.snapshot,
    rows: record.rows,
    contentHash: record.hash,
    committedAt: new Date(record.time).toISOString(),
  };
}

export function listRejects(
  driver: SqliteDriver,
  tableId: string,
  batchId: string | undefined,
  limit: number,
): ListedReject[] {
  const table = tableNumber(driver, tableId);
  if (!table) return [];
  const rows = driver.all<{
    snapshot: number;
    ordinal: number;
    batch: string;
    line: number;
    code: string;
    reason: string;
    raw: string;
  }>(
    `SELECT snapshot, ordinal, batch, line, code, reason, raw FROM rejects
     WHERE table_no = ? ${batchId === undefined ? "" : "AND batch = ?"} ORDER BY snapshot, ordinal LIMIT ?`,
    table.no,
    ...(batchId === undefined ? [] : [batchId]),
    limit,
  );
  return rows.map(({ ordinal, batch, ...row }) => ({
    id: `${row.snapshot}-${ordinal}`,
    table: table.name,
    batchId: batch,
    ...row,
  }));
}

export function listSnapshots(driver: SqliteDriver, after: number, limit: number): SnapshotInfo[] {
  const names = new Map<string, string>();
  const name = (id: string): string => {
    const known = names.get(id) ?? tableNumber(driver, id)?.name ?? corrupt(`there is no table ${id}`);
    names.set(id, known);
    return known;
  };
  return driver
    .all<{ n: number; time: number; summary: string }>(
      "SELECT n, time, summary FROM entries WHERE n > ? ORDER BY n LIMIT ?",
      after,
      limit,
    )
    .map(({ n, time, summary }) => {
      const json = readJson(summary);
      return {
        snapshot: n,
        committedAt: new Date(time).toISOString(),
        operations: json
          .get("operations")
          .list()
          .map((operation) => {
            const table = operation.optional("table")?.text();
            const batchId = operation.optional("batchId")?.text();
            const rows = operation.optional("rows")?.count();
            return {
              op: operation.get("op").text(),
              ...(table !== undefined && { table: name(table) }),
              ...(batchId !== undefined && { batchId }),
              ...(rows !== undefined && { rows }),
            };
          }),
        meta: Object.fromEntries(
          json
            .get("meta")
            .entries()
            .map(([key, value]) => [key, value.text()]),
        ),
      };
    });
}

/** Those of the keys that were committed: without expiry, every snapshot can still be asked for. */
export function referencedKeys(driver: SqliteDriver, keys: readonly string[]): Set<string> {
  return new Set(keys.filter((key) => driver.get("SELECT 1 FROM files WHERE key = ?", key) !== undefined));
}

function tableNumber(
  driver: SqliteDriver,
  id: string,
): { no: number; name: string; dropped_in: number | null } | undefined {
  return driver.get("SELECT no, name, dropped_in FROM tables WHERE id = ?", id);
}
