/** Snapshots that have ended, and what nobody can ask for any more because of it. */

import { NotFoundError } from "@eider/core";
import type { Expiry } from "./catalog.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { LIVE } from "./sqlite-schema.js";

/** In force at a snapshot, by default now. */
export function findExpiry(driver: SqliteDriver, at: number = LIVE): Expiry {
  const row = driver.get<{ before: number; unused_since: number; purged: number }>(
    "SELECT before, unused_since, purged FROM expiries WHERE n <= ? ORDER BY n DESC LIMIT 1",
    at,
  );
  return { before: row?.before ?? 0, unusedSince: row?.unused_since ?? 0, purged: row?.purged ?? 0 };
}

export function isTagged(driver: SqliteDriver, snapshot: number): boolean {
  return driver.get("SELECT 1 FROM tags WHERE snapshot = ?", snapshot) !== undefined;
}

/** @throws NotFoundError `snapshot_expired` if the snapshot has ended, or with `purged` only if it cannot be read any more */
export function assertNotExpired(driver: SqliteDriver, snapshot: number, limit: "before" | "purged"): void {
  if (snapshot === 0) return;
  const end = findExpiry(driver)[limit];
  if (snapshot >= end || isTagged(driver, snapshot)) return;
  if (limit === "purged" && driver.get("SELECT 1 FROM ended_tags WHERE snapshot = ?", snapshot)) return;
  throw new NotFoundError(
    "snapshot_expired",
    `snapshot ${snapshot} has expired: the lake keeps those from ${end} on, and those that have a tag`,
    { subject: String(snapshot) },
  );
}

/** A tag goes to another snapshot, or ends: what it has kept is kept for queries that run. */
export function endTag(driver: SqliteDriver, name: string, n: number): void {
  driver.run(
    "INSERT OR REPLACE INTO ended_tags (snapshot, ended_in) SELECT snapshot, ? FROM tags WHERE name = ?",
    n,
    name,
  );
}

/**
 * Condition for a row `r` of files or hot batches that no snapshot has shown for long enough: takes the snapshot before which
 * all had ended by then, twice. `t` is its table, with which its rows end.
 */
const UNUSED = `(r.removed_in <= ? OR coalesce(t.dropped_in, ${LIVE}) <= ?) AND NOT EXISTS (
  SELECT 1 FROM (SELECT snapshot FROM tags UNION ALL SELECT snapshot FROM ended_tags) p
  WHERE p.snapshot >= r.added_in AND p.snapshot < r.removed_in AND p.snapshot < coalesce(t.dropped_in, ${LIVE}))`;

/** Ends snapshots as of snapshot `n`, and lets go of the rows of hot batches that only long ended ones show. */
export function expire(driver: SqliteDriver, n: number, before: number, unusedSince: number): void {
  const purged = findExpiry(driver, unusedSince).before;
  driver.run(
    "INSERT INTO expiries (n, before, unused_since, purged) VALUES (?, ?, ?, ?)",
    n,
    before,
    unusedSince,
    purged,
  );
  driver.run("DELETE FROM ended_tags WHERE ended_in <= ?", unusedSince);
  driver.run(
    `DELETE FROM hot_batches WHERE id IN (
       SELECT r.id FROM hot_batches r JOIN tables t ON t.no = r.table_no WHERE ${UNUSED})`,
    purged,
    purged,
  );
}

/** Of some keys: those that were committed, by whether a snapshot needs them. */
export interface KeyUse {
  readonly used: Set<string>;
  /** No snapshot has needed them for long enough. */
  readonly unused: Set<string>;
}

export function findKeyUse(driver: SqliteDriver, keys: readonly string[]): KeyUse {
  const { purged } = findExpiry(driver);
  const found: KeyUse = { used: new Set(), unused: new Set() };
  for (const key of keys) {
    // A key has a row for each time that a rollback has brought it back.
    const use = driver.get<{ used: number | null }>(
      `SELECT max(NOT (${UNUSED})) AS used FROM files r JOIN tables t ON t.no = r.table_no WHERE r.key = ?`,
      purged,
      purged,
      key,
    )?.used;
    if (use === 1) found.used.add(key);
    else if (use === 0) found.unused.add(key);
  }
  return found;
}
