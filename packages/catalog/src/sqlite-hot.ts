/** Hot batches: small batches whose rows are in the catalog itself. */

import type { Field, FieldBounds, Schema } from "@eider/core";
import { boundClass, toOrderedBytes } from "./bounds.js";
import type { HotBatch } from "./catalog.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { corrupt } from "./sqlite-json.js";
import { LIVE } from "./sqlite-schema.js";
import { storedSchemaOf } from "./sqlite-schemas.js";
import { tableNumber } from "./sqlite-tables.js";
import type { Extent } from "./state.js";

interface HotRow {
  readonly batch: string;
  readonly added_in: number;
  readonly rows: number;
  readonly bytes: number;
  readonly schema_version: number;
  readonly data: Uint8Array | null;
}

const NO_DATA = new Uint8Array(0);

/**
 * Batches added after one snapshot and live at another: takes the table's number and the two snapshots, twice. Those that
 * are live still come from one range of the index, however many are.
 */
const HOT_AT = `(
  SELECT id, batch, added_in, rows, schema_version FROM hot_batches
  WHERE table_no = ? AND removed_in = ${LIVE} AND added_in > ? AND added_in <= ?
  UNION ALL
  SELECT id, batch, added_in, rows, schema_version FROM hot_batches
  WHERE table_no = ? AND removed_in < ${LIVE} AND added_in > ? AND added_in <= ? AND removed_in > ?
)`;

/** By itself SQLite would look for one batch among all that are live. */
export const HOT_BY_BATCH = "hot_batches INDEXED BY hot_batches_by_batch";

export interface ListHotOptions {
  readonly at: number;
  readonly after: number;
  readonly limit: number | undefined;
  readonly data: boolean;
}

export function listHot(driver: SqliteDriver, tableId: string, options: ListHotOptions): HotBatch[] {
  const { at, after, limit } = options;
  const table = tableNumber(driver, tableId);
  if (!table || (table.dropped_in ?? LIVE) <= at) return [];
  const range = (last: number): number[] => [table.no, after, last, table.no, after, last, at];
  const end =
    limit === undefined
      ? undefined
      : driver.get<{ added_in: number }>(
          `SELECT added_in FROM ${HOT_AT} ORDER BY id LIMIT 1 OFFSET ?`,
          ...range(at),
          Math.max(0, limit - 1),
        );
  const schemas = new Map<number, Schema>();
  const schemaOf = (version: number): Schema => {
    let schema = schemas.get(version);
    if (!schema) {
      const row = driver.get<{ schema: string }>(
        "SELECT schema FROM schema_versions WHERE table_no = ? AND version = ?",
        table.no,
        version,
      );
      schema = row ? storedSchemaOf(row.schema) : corrupt(`the table ${tableId} has no version ${version}`);
      schemas.set(version, schema);
    }
    return schema;
  };
  return driver
    .all<HotRow>(
      `SELECT x.batch, x.added_in, x.rows, x.schema_version, length(h.data) AS bytes, ${options.data ? "h.data" : "NULL AS data"}
       FROM ${HOT_AT} x JOIN hot_batches h ON h.id = x.id ORDER BY x.id`,
      ...range(end?.added_in ?? at),
    )
    .map((row) => ({
      batchId: row.batch,
      addedIn: row.added_in,
      rows: row.rows,
      bytes: row.bytes,
      schemaVersion: row.schema_version,
      schema: schemaOf(row.schema_version),
      data: row.data ?? NO_DATA,
    }));
}

export function findLiveHot(driver: SqliteDriver, table: number, batch: string): Extent | undefined {
  return driver.get<{ rows: number; bytes: number }>(
    `SELECT rows, length(data) AS bytes FROM ${HOT_BY_BATCH} WHERE table_no = ? AND batch = ? AND removed_in = ${LIVE}`,
    table,
    batch,
  );
}

/** Widens what is known of the hot rows' integers. */
export function addHotBounds(
  driver: SqliteDriver,
  table: number,
  leaves: ReadonlyMap<number, Field>,
  bounds: readonly FieldBounds[],
): void {
  for (const { fieldId, min, max } of bounds) {
    const type = leaves.get(fieldId)?.type;
    const kind = (type && boundClass(type)) ?? corrupt(`a hot batch has bounds of field ${fieldId}`);
    driver.run(
      `INSERT INTO hot_bounds (table_no, field, class, min, max) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET min = min(min, excluded.min), max = max(max, excluded.max)`,
      table,
      fieldId,
      kind,
      toOrderedBytes(kind, min),
      toOrderedBytes(kind, max),
    );
  }
}

/** The hot batches of a table become those of an earlier snapshot again, as of snapshot `n`. */
export function rollBackHot(driver: SqliteDriver, table: number, n: number, to: number): void {
  driver.run(
    `UPDATE hot_batches SET removed_in = ? WHERE table_no = ? AND removed_in = ${LIVE} AND added_in > ?`,
    n,
    table,
    to,
  );
  driver.run(
    `INSERT INTO hot_batches (table_no, batch, added_in, rows, schema_version, data)
     SELECT table_no, batch, ?, rows, schema_version, data FROM hot_batches
     WHERE table_no = ? AND removed_in > ? AND removed_in < ${LIVE} AND added_in <= ? ORDER BY id`,
    n,
    table,
    to,
    to,
  );
}
