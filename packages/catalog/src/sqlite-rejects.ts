/** Rejects in the catalog's tables: rows that were kept aside, what became of them, and their texts. */

import type { Reject } from "@eider/core";
import type { ListedReject, RejectsOptions } from "./catalog.js";
import { ordinalsBySnapshot, type RejectPlace, rejectId, rejectPlace } from "./reject-id.js";
import { scrubEntry } from "./scrub.js";
import type { SqliteDriver, SqliteValue } from "./sqlite-driver.js";
import { tableNumber } from "./sqlite-tables.js";
import type { RejectState } from "./state.js";

/** Of a listing, unless told. */
export const DEFAULT_LIMIT = 1000;

interface RejectRow extends Reject {
  readonly snapshot: number;
  readonly ordinal: number;
  readonly batch: string;
  readonly replayed_in: number | null;
  readonly replayed_by: string | null;
  readonly purged_in: number | null;
}

/** In the order in which they were committed. */
export function listRejects(driver: SqliteDriver, tableId: string, options: RejectsOptions): ListedReject[] {
  const table = tableNumber(driver, tableId);
  if (!table) return [];
  const { batchId, ids, open, before, after, limit = DEFAULT_LIMIT } = options;
  const conditions = ["table_no = ?"];
  const parameters: SqliteValue[] = [table.no];
  const where = (condition: string, ...values: SqliteValue[]): void => {
    conditions.push(condition);
    parameters.push(...values);
  };
  if (batchId !== undefined) where("batch = ?", batchId);
  if (ids) where(`(snapshot, ordinal) IN (${PLACES})`, placesOf(ids));
  if (open) where("replayed_in IS NULL AND purged_in IS NULL");
  if (before !== undefined) where("snapshot < ?", before);
  const place = after === undefined ? undefined : rejectPlace(after);
  if (place) where("(snapshot, ordinal) > (?, ?)", place.snapshot, place.ordinal);
  return driver
    .all<RejectRow>(
      `SELECT snapshot, ordinal, batch, line, code, reason, raw, replayed_in, replayed_by, purged_in FROM rejects
       WHERE ${conditions.join(" AND ")} ORDER BY snapshot, ordinal LIMIT ?`,
      ...parameters,
      limit,
    )
    .map((row) => toListed(table.name, row));
}

function toListed(table: string, row: RejectRow): ListedReject {
  const { snapshot, batch, line, code, reason, raw, replayed_by, replayed_in, purged_in } = row;
  return {
    id: rejectId(row),
    table,
    batchId: batch,
    snapshot,
    line,
    code,
    reason,
    raw,
    ...(replayed_by !== null && { replayedBy: replayed_by }),
    ...(replayed_in !== null && { replayedIn: replayed_in }),
    ...(purged_in !== null && { purgedIn: purged_in }),
  };
}

export function findReject(driver: SqliteDriver, table: number, id: string): RejectState | undefined {
  const place = rejectPlace(id);
  const row =
    place &&
    driver.get<{ replayed_by: string | null; purged_in: number | null }>(
      "SELECT replayed_by, purged_in FROM rejects WHERE snapshot = ? AND ordinal = ? AND table_no = ?",
      place.snapshot,
      place.ordinal,
      table,
    );
  return row && { replayedBy: row.replayed_by ?? undefined, purged: row.purged_in !== null };
}

export function insertReject(
  driver: SqliteDriver,
  table: number,
  batch: string,
  { snapshot, ordinal }: RejectPlace,
  { line, code, reason, raw }: Reject,
): void {
  driver.run(
    "INSERT INTO rejects (snapshot, ordinal, table_no, batch, line, code, reason, raw) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    snapshot,
    ordinal,
    table,
    batch,
    line,
    code,
    reason,
    raw,
  );
}

export function markReplayed(
  driver: SqliteDriver,
  table: number,
  batch: string,
  snapshot: number,
  ids: readonly string[],
): void {
  driver.run(
    `UPDATE rejects SET replayed_in = ?, replayed_by = ? WHERE table_no = ? AND (snapshot, ordinal) IN (${PLACES})`,
    snapshot,
    batch,
    table,
    placesOf(ids),
  );
}

/** Their texts go, here and in the headers of entries that are kept here. */
export function purgeRejects(driver: SqliteDriver, table: number, snapshot: number, ids: readonly string[]): void {
  for (const [n, ordinals] of ordinalsBySnapshot(purgeable(driver, table, ids))) {
    const header = driver.get<{ header: Uint8Array }>("SELECT header FROM entries WHERE n = ?", n)?.header;
    const scrubbed = header && header.length > 0 ? scrubEntry(header, ordinals) : undefined;
    if (scrubbed) driver.run("UPDATE entries SET header = ? WHERE n = ?", scrubbed, n);
  }
  driver.run(
    `UPDATE rejects SET raw = '', purged_in = ?
     WHERE table_no = ? AND purged_in IS NULL AND (snapshot, ordinal) IN (${PLACES})`,
    snapshot,
    table,
    placesOf(ids),
  );
}

/** Those of the table that have not been purged: the headers of others are nobody's business. */
function purgeable(driver: SqliteDriver, table: number, ids: readonly string[]): string[] {
  return driver
    .all<RejectPlace>(
      `SELECT snapshot, ordinal FROM rejects
       WHERE table_no = ? AND purged_in IS NULL AND (snapshot, ordinal) IN (${PLACES})`,
      table,
      placesOf(ids),
    )
    .map(rejectId);
}

/** The places of {@link placesOf}, as rows. */
const PLACES = "SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(?)";

/** One parameter, however many they are. Texts that are no ids are left out. */
function placesOf(ids: readonly string[]): string {
  const places = ids.map(rejectPlace).filter((place) => place !== undefined);
  return JSON.stringify(places.map(({ snapshot, ordinal }) => [snapshot, ordinal]));
}
