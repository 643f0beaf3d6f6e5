/** What was committed of each batch: its receipt. */

import type { Receipt, SourceMark } from "./catalog.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { tableNumber } from "./sqlite-tables.js";
import type { BatchRecord } from "./state.js";

export function findReceipt(driver: SqliteDriver, tableId: string, batchId: string): Receipt | undefined {
  const row = driver.get<BatchRecord & { table: string }>(
    `SELECT t.name AS "table", r.hash, r.rows, r.rejected, r.snapshot, r.time FROM tables t JOIN receipts r ON r.table_no = t.no
     WHERE t.id = ? AND r.batch = ?`,
    tableId,
    batchId,
  );
  return row && toReceipt(row.table, batchId, row);
}

export function findMark(driver: SqliteDriver, tableId: string, source: string): SourceMark | undefined {
  const row = driver.get<{ last: string; batch: string }>(
    "SELECT s.last, s.batch FROM tables t JOIN sources s ON s.table_no = t.no WHERE t.id = ? AND s.source = ?",
    tableId,
    source,
  );
  const receipt = row && findReceipt(driver, tableId, row.batch);
  return receipt && { source, last: row.last, receipt };
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
      `SELECT batch, hash, rows, rejected, snapshot, time FROM receipts
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
    rejected: record.rejected,
    contentHash: record.hash,
    committedAt: new Date(record.time).toISOString(),
  };
}
