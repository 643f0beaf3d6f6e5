/** What changed from snapshot to snapshot, and the places in it that consumers and people keep: cursors and tags. */

import { CatalogError, NotFoundError } from "@eider/core";
import type { CursorInfo, Meta, TableChange, TagInfo } from "./catalog.js";
import type { JsonReader } from "./json-reader.js";
import { quote } from "./names.js";
import { formatPosition, parsePosition } from "./position.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { findExpiry } from "./sqlite-expiry.js";
import { readJson } from "./sqlite-json.js";
import { tableNumber } from "./sqlite-tables.js";

/** In pages of at least one change, as long as there is one. */
export function listChanges(
  driver: SqliteDriver,
  tableId: string,
  after: string,
  until: number,
  limit: number,
): TableChange[] {
  const table = tableNumber(driver, tableId);
  const start = parsePosition(after);
  if (!table) return [];
  assertKept(driver, table.created_in, start.snapshot, start.changes === undefined);
  let next = start.changes === undefined ? start.snapshot + 1 : start.snapshot;
  for (;;) {
    const rows = driver.all<EntryRow>(
      `SELECT e.n, e.time, e.summary FROM table_totals t JOIN entries e ON e.n = t.snapshot
       WHERE t.table_no = ? AND t.snapshot >= ? AND t.snapshot <= ? ORDER BY t.snapshot LIMIT ?`,
      table.no,
      next,
      until,
      limit,
    );
    const changes = rows.flatMap((row) => {
      const all = changesOf(row, tableId, table.name);
      return row.n === start.snapshot ? all.slice(start.changes) : all;
    });
    if (changes.length > 0 || rows.length < limit) return changes;
    next = rows.at(-1)!.n + 1;
  }
}

interface EntryRow {
  readonly n: number;
  readonly time: number;
  readonly summary: string;
}

function changesOf({ n, time, summary }: EntryRow, tableId: string, table: string): TableChange[] {
  const json = readJson(summary);
  const own = json
    .get("operations")
    .list()
    .filter((operation) => isChange(operation, tableId));
  return own.map((operation, i) => {
    const meta = readMeta(operation.optional("meta") ?? json.get("meta"));
    // Behind the last change of a snapshot lies the next snapshot.
    const position = formatPosition({ snapshot: n, ...(i + 1 < own.length && { changes: i + 1 }) });
    if (operation.get("op").text() === "rollback") {
      return { kind: "rollback", position, snapshot: n, to: operation.get("to").count(), meta };
    }
    const receipt = {
      table,
      batchId: operation.get("batchId").text(),
      snapshot: n,
      rows: operation.get("rows").count(),
      rejected: operation.optional("rejected")?.count() ?? 0,
      contentHash: operation.get("hash").text(),
      committedAt: new Date(time).toISOString(),
    };
    return { kind: "append", position, receipt, meta };
  });
}

function isChange(operation: JsonReader, tableId: string): boolean {
  const op = operation.get("op").text();
  return (op === "append" || op === "rollback") && operation.get("table").text() === tableId;
}

export function readMeta(json: JsonReader): Meta {
  return Object.fromEntries(json.entries().map(([key, value]) => [key, value.text()]));
}

/** Whether all that lies behind a snapshot is still there; with `complete` the snapshot itself is not needed. */
function assertKept(driver: SqliteDriver, createdIn: number, snapshot: number, complete: boolean): void {
  const first = findExpiry(driver).before;
  if ((complete ? snapshot + 1 : snapshot) >= first || createdIn >= first) return;
  throw new CatalogError(
    "cursor_expired",
    `snapshots before ${first} are kept no longer, and the position is in snapshot ${snapshot}: what came between is not told ` +
      "any more; begin again from the table as it is",
    { subject: String(snapshot) },
  );
}

const CURSORS = `SELECT name, position, moved_in AS "movedIn" FROM cursors`;

export function listCursors(driver: SqliteDriver): CursorInfo[] {
  return driver.all(`${CURSORS} ORDER BY name`);
}

export function findCursor(driver: SqliteDriver, name: string): CursorInfo | undefined {
  return driver.get(`${CURSORS} WHERE name = ?`, name);
}

export function listTags(driver: SqliteDriver): TagInfo[] {
  return driver.all("SELECT name, snapshot FROM tags ORDER BY name");
}

/** @throws NotFoundError `tag_not_found` */
export function taggedSnapshot(driver: SqliteDriver, tag: string): number {
  const row = driver.get<{ snapshot: number }>("SELECT snapshot FROM tags WHERE name = ?", tag);
  if (row) return row.snapshot;
  throw new NotFoundError("tag_not_found", `there is no tag ${quote(tag)}`, { subject: tag });
}
