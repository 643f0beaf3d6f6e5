/** The snapshots of the lake, by number and by time. */

import { NotFoundError } from "@eider/core";
import type { SnapshotInfo } from "./catalog.js";
import { readMeta } from "./sqlite-changes.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { assertNotExpired } from "./sqlite-expiry.js";
import { corrupt, readJson } from "./sqlite-json.js";
import { tableNumber } from "./sqlite-tables.js";

function headOf(driver: SqliteDriver): number {
  return driver.get<{ n: number | null }>("SELECT max(n) AS n FROM entries")?.n ?? 0;
}

/**
 * The snapshot meant by `at`, by default the head. It may have ended, so that queries that run can go on; not if
 * something of it was let go of, unless with `expired`.
 */
export function snapshotAt(
  driver: SqliteDriver,
  at: number | undefined,
  { expired = false }: { readonly expired?: boolean } = {},
): number {
  const head = headOf(driver);
  if (at === undefined) return head;
  if (Number.isInteger(at) && at >= 0 && at <= head) {
    if (!expired) assertNotExpired(driver, at, "purged");
    return at;
  }
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
            const to = operation.optional("to")?.count();
            const meta = operation.optional("meta");
            const called = operation.optional("name")?.text();
            return {
              op: operation.get("op").text(),
              ...(table !== undefined && { table: name(table) }),
              ...(batchId !== undefined && { batchId }),
              ...(rows !== undefined && { rows }),
              ...(to !== undefined && { to }),
              ...(called !== undefined && { name: called }),
              ...(meta && { meta: readMeta(meta) }),
            };
          }),
        meta: readMeta(json.get("meta")),
      };
    });
}
