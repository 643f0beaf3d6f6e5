/** The catalog's tables as the state that `check` and `apply` see, and the changes written to them. */

import { CatalogError, type ColumnStatistics, type Field, nameKey, type Schema } from "@eider/core";
import type { Change } from "./apply.js";
import { boundClass, leafFields, toOrderedBytes } from "./bounds.js";
import type { DataFile, Expiry, SourceRange } from "./catalog.js";
import { blobBytes, type Entry, encodeHeader, valueToJson } from "./entry.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { endTag, expire, findExpiry, isTagged } from "./sqlite-expiry.js";
import { rollBackFiles } from "./sqlite-files.js";
import { addHotBounds, findLiveHot, HOT_BY_BATCH, rollBackHot } from "./sqlite-hot.js";
import { corrupt, readJson } from "./sqlite-json.js";
import { findReject, insertReject, markReplayed, purgeRejects } from "./sqlite-rejects.js";
import { LIVE } from "./sqlite-schema.js";
import { storedSchemaOf } from "./sqlite-schemas.js";
import { findView, replaceView } from "./sqlite-views.js";
import type {
  BatchRecord,
  CatalogState,
  EntryHead,
  Extent,
  MarkState,
  PastTable,
  RejectState,
  TableState,
  Totals,
} from "./state.js";
import { summarize } from "./summary.js";

const TOTALS = "rows, files, bytes, hot_batches AS hotBatches, hot_bytes AS hotBytes, hot_since AS hotSince";

/** Tables after which a state has grown large: then it is better read anew than kept. */
const MANY_TABLES = 1000;

/**
 * Lives as long as one transaction, or as several with nobody else's between them: their changes are made by it alone, so it
 * may remember what it has read.
 */
export class SqliteState implements CatalogState {
  readonly #driver: SqliteDriver;
  readonly #numbers = new Map<string, number>();
  readonly #tables = new Map<string, TableState | undefined>();
  readonly #totals = new Map<string, Totals>();
  readonly #schemas = new Map<string, Schema>();
  #head: EntryHead | undefined;
  #expiry: Expiry | undefined;
  /** The last one asked for: the files of a batch share their schema. */
  #leaves: { readonly of: string; readonly fields: ReadonlyMap<number, Field> } | undefined;

  constructor(driver: SqliteDriver) {
    this.#driver = driver;
  }

  /** Whether it remembers so much that it should not be kept. */
  get isLarge(): boolean {
    return this.#schemas.size + this.#numbers.size > MANY_TABLES;
  }

  head(): EntryHead {
    this.#head ??= this.#driver.get<EntryHead>("SELECT n, id, time, floor FROM entries ORDER BY n DESC LIMIT 1") ?? {
      n: 0,
      id: "",
      time: 0,
      floor: 0,
    };
    return this.#head;
  }

  mode(): string | undefined {
    return this.#driver.get<{ mode: string }>("SELECT mode FROM meta")?.mode;
  }

  /** Of which lake, and in which mode, the catalog is: each mode has its own way to commit. */
  checkMode(lakeId: string, mode: "local" | "shared"): void {
    const meta = this.#driver.get<{ lake_id: string; mode: string }>("SELECT lake_id, mode FROM meta");
    if (meta?.mode === "moved") {
      throw new CatalogError(
        "lake_moved",
        "the lake goes on at another place, where hosts share it: open it there; what is here can be read",
      );
    }
    if (meta?.mode !== mode || meta.lake_id !== lakeId) {
      throw new CatalogError(
        "wrong_mode",
        `the catalog is in ${meta?.mode ?? "no"} mode, for lake ${meta?.lake_id}: open the lake again`,
      );
    }
  }

  table(id: string): TableState | undefined {
    if (!this.#tables.has(id)) this.#tables.set(id, this.#readTable(id));
    return this.#tables.get(id);
  }

  #readTable(id: string): TableState | undefined {
    const row = this.#driver.get<{
      no: number;
      name: string;
      partition_by: string;
      dropped_in: number | null;
      version: number;
      last_field_id: number;
    }>(
      `SELECT t.no, t.name, t.partition_by, t.dropped_in, v.version, v.last_field_id
       FROM tables t JOIN schema_versions v ON v.table_no = t.no WHERE t.id = ? ORDER BY v.version DESC LIMIT 1`,
      id,
    );
    if (!row) return undefined;
    this.#numbers.set(id, row.no);
    return {
      name: row.name,
      partitionBy: readJson(row.partition_by)
        .list()
        .map((item) => item.text()),
      schemaVersion: row.version,
      lastFieldId: row.last_field_id,
      live: row.dropped_in === null,
    };
  }

  tableByName(key: string): string | undefined {
    return this.#driver.get<{ id: string }>("SELECT id FROM tables WHERE name_key = ? AND dropped_in IS NULL", key)?.id;
  }

  viewByName(key: string): number | undefined {
    return findView(this.#driver, key);
  }

  folderUsed(folder: string): boolean {
    return this.#driver.get("SELECT 1 FROM tables WHERE folder_key = ?", nameKey(folder)) !== undefined;
  }

  schema(table: string, version: number): Schema | undefined {
    const key = `${version} ${table}`;
    let schema = this.#schemas.get(key);
    if (!schema) {
      schema = this.#readSchema(table, version);
      if (schema) this.#schemas.set(key, schema);
    }
    return schema;
  }

  #readSchema(table: string, version: number): Schema | undefined {
    const no = this.#number(table);
    if (no === undefined) return undefined;
    const row = this.#driver.get<{ schema: string }>(
      "SELECT schema FROM schema_versions WHERE table_no = ? AND version = ?",
      no,
      version,
    );
    return row && storedSchemaOf(row.schema);
  }

  batch(table: string, batch: string): BatchRecord | undefined {
    const no = this.#number(table);
    if (no === undefined) return undefined;
    return this.#driver.get(
      "SELECT hash, rows, rejected, snapshot, time FROM receipts WHERE table_no = ? AND batch = ?",
      no,
      batch,
    );
  }

  reject(table: string, id: string): RejectState | undefined {
    const no = this.#number(table);
    return no === undefined ? undefined : findReject(this.#driver, no, id);
  }

  mark(table: string, source: string): MarkState | undefined {
    const no = this.#number(table);
    if (no === undefined) return undefined;
    return this.#driver.get("SELECT last, batch FROM sources WHERE table_no = ? AND source = ?", no, source);
  }

  cursor(name: string): string | undefined {
    return this.#driver.get<{ position: string }>("SELECT position FROM cursors WHERE name = ?", name)?.position;
  }

  keyUsed(key: string): boolean {
    return this.#driver.get("SELECT 1 FROM files WHERE key = ?", key) !== undefined;
  }

  // A table that the draft itself creates has nothing yet.

  liveFile(table: string, key: string): Extent | undefined {
    const no = this.#number(table);
    if (no === undefined) return undefined;
    return this.#driver.get<{ rows: number; bytes: number }>(
      `SELECT rows, bytes FROM files WHERE key = ? AND table_no = ? AND removed_in = ${LIVE}`,
      key,
      no,
    );
  }

  liveHot(table: string, batch: string): Extent | undefined {
    const no = this.#number(table);
    return no === undefined ? undefined : findLiveHot(this.#driver, no, batch);
  }

  changedIn(table: string): number {
    const row = this.#driver.get<{ snapshot: number }>(
      "SELECT snapshot FROM table_totals WHERE table_no = ? ORDER BY snapshot DESC LIMIT 1",
      this.#need(table),
    );
    return row?.snapshot ?? corrupt(`the table ${table} has no totals`);
  }

  totals(table: string): Totals {
    const known = this.#totals.get(table);
    if (known) return known;
    const row = this.#driver.get<Totals>(
      `SELECT ${TOTALS} FROM table_totals WHERE table_no = ? ORDER BY snapshot DESC LIMIT 1`,
      this.#need(table),
    );
    if (!row) return corrupt(`the table ${table} has no totals`);
    this.#totals.set(table, row);
    return row;
  }

  expiry(): Expiry {
    this.#expiry ??= findExpiry(this.#driver);
    return this.#expiry;
  }

  isTagged(snapshot: number): boolean {
    return isTagged(this.#driver, snapshot);
  }

  past(table: string, snapshot: number): PastTable | undefined {
    const no = this.#number(table);
    if (no === undefined) return undefined;
    const totals = this.#driver.get<Totals>(
      `SELECT ${TOTALS} FROM table_totals WHERE table_no = ? AND snapshot <= ? ORDER BY snapshot DESC LIMIT 1`,
      no,
      snapshot,
    );
    const schema = this.#driver.get<{ version: number }>(
      "SELECT max(version) AS version FROM schema_versions WHERE table_no = ? AND snapshot <= ?",
      no,
      snapshot,
    );
    return totals && schema && { schemaVersion: schema.version, totals };
  }

  /** Writes the changes of one entry. */
  write(changes: readonly Change[]): void {
    let n = 0;
    for (const change of changes) {
      switch (change.change) {
        case "entry":
          n = change.entry.n;
          this.#insertEntry(change.entry);
          break;
        case "create":
          this.#tables.delete(change.table);
          this.#driver.run(
            `INSERT INTO tables (id, name, name_key, folder, folder_key, partition_by, order_by, created_in)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
            change.table,
            change.name,
            nameKey(change.name),
            change.folder,
            nameKey(change.folder),
            JSON.stringify(change.partitionBy),
            JSON.stringify(change.orderBy),
            n,
          );
          break;
        case "version":
          this.#tables.delete(change.table);
          this.#driver.run(
            "INSERT INTO schema_versions (table_no, version, snapshot, last_field_id, schema) VALUES (?, ?, ?, ?, ?)",
            this.#need(change.table),
            change.version,
            n,
            change.lastFieldId,
            JSON.stringify(change.schema),
          );
          break;
        case "drop":
          this.#tables.delete(change.table);
          this.#driver.run("UPDATE tables SET dropped_in = ? WHERE id = ?", n, change.table);
          break;
        case "batch":
          if (change.range) this.#moveMark(change.table, change.batch, change.range);
          this.#driver.run(
            "INSERT INTO receipts (table_no, batch, hash, rows, rejected, snapshot, time) VALUES (?, ?, ?, ?, ?, ?, ?)",
            this.#need(change.table),
            change.batch,
            change.hash,
            change.rows,
            change.rejected,
            n,
            change.time,
          );
          break;
        case "file":
          this.#insertFile(change.table, change.batch, change.file, n);
          break;
        case "hot": {
          const { table, batch, rows, schemaVersion, hot } = change;
          this.#driver.run(
            "INSERT INTO hot_batches (table_no, batch, added_in, rows, schema_version, data) VALUES (?, ?, ?, ?, ?, ?)",
            this.#need(table),
            batch,
            n,
            rows,
            schemaVersion,
            hot.data,
          );
          addHotBounds(this.#driver, this.#need(table), this.#leavesOf(table, schemaVersion), hot.bounds);
          break;
        }
        case "removeFile":
          this.#driver.run("UPDATE files SET removed_in = ? WHERE key = ? AND removed_in = ?", n, change.key, LIVE);
          break;
        case "removeHot":
          this.#driver.run(
            `UPDATE ${HOT_BY_BATCH} SET removed_in = ? WHERE table_no = ? AND batch = ? AND removed_in = ?`,
            n,
            this.#need(change.table),
            change.batch,
            LIVE,
          );
          break;
        case "reject": {
          const place = { snapshot: n, ordinal: change.ordinal };
          insertReject(this.#driver, this.#need(change.table), change.batch, place, change.reject);
          break;
        }
        case "replay":
          markReplayed(this.#driver, this.#need(change.table), change.batch, n, change.rejects);
          break;
        case "purge":
          purgeRejects(this.#driver, this.#need(change.table), n, change.rejects);
          break;
        case "rollback":
          rollBackFiles(this.#driver, this.#need(change.table), n, change.to);
          rollBackHot(this.#driver, this.#need(change.table), n, change.to);
          break;
        case "cursor":
          if (change.position === undefined) this.#driver.run("DELETE FROM cursors WHERE name = ?", change.name);
          else {
            this.#driver.run(
              "INSERT OR REPLACE INTO cursors (name, position, moved_in) VALUES (?, ?, ?)",
              change.name,
              change.position,
              n,
            );
          }
          break;
        case "tag":
          endTag(this.#driver, change.name, n);
          if (change.snapshot === undefined) this.#driver.run("DELETE FROM tags WHERE name = ?", change.name);
          else
            this.#driver.run(
              "INSERT OR REPLACE INTO tags (name, snapshot) VALUES (?, ?)",
              change.name,
              change.snapshot,
            );
          break;
        case "view":
          replaceView(this.#driver, n, change.name, change.sql);
          break;
        case "expire":
          this.#expiry = undefined;
          expire(this.#driver, n, change.before, change.unusedSince);
          break;
        case "totals":
          this.#totals.set(change.table, change.totals);
          this.#driver.run(
            `INSERT INTO table_totals (table_no, snapshot, rows, files, bytes, hot_batches, hot_bytes, hot_since)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
            this.#need(change.table),
            n,
            change.totals.rows,
            change.totals.files,
            change.totals.bytes,
            change.totals.hotBatches,
            change.totals.hotBytes,
            change.totals.hotSince,
          );
          break;
      }
    }
  }

  #insertEntry(entry: Entry): void {
    const { n, id, time, floor } = entry;
    this.#head = { n, id, time, floor };
    const header = encodeHeader(entry);
    this.#driver.run(
      `INSERT INTO entries (n, id, prev, time, floor, writer, host, summary, header, log_end)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, CASE (SELECT mode FROM meta) WHEN 'shared' THEN x'' ELSE ? END,
       coalesce((SELECT log_end FROM entries WHERE n = ?), 0) + ?)`,
      entry.n,
      entry.id,
      entry.prev,
      entry.time,
      entry.floor,
      entry.writer,
      entry.host,
      summarize(entry),
      header,
      entry.n - 1,
      header.length + blobBytes(entry),
    );
  }

  /** The source's last batch gives its place to this one. */
  #moveMark(table: string, batch: string, { source, last }: SourceRange): void {
    const no = this.#need(table);
    const before = this.mark(table, source);
    if (before) this.#driver.run("DELETE FROM receipts WHERE table_no = ? AND batch = ?", no, before.batch);
    this.#driver.run(
      "INSERT OR REPLACE INTO sources (table_no, source, last, batch) VALUES (?, ?, ?, ?)",
      no,
      source,
      last,
      batch,
    );
  }

  #insertFile(table: string, batch: string | undefined, file: DataFile, n: number): void {
    const no = this.#need(table);
    const id = this.#driver.get<{ id: number }>(
      `INSERT INTO files (table_no, key, added_in, batch, rows, bytes, sha256, base, schema_version, partition,
         footer_bytes, footer_sha256)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
      no,
      file.key,
      n,
      batch ?? null,
      file.rows,
      file.bytes,
      Buffer.from(file.sha256, "hex"),
      file.base,
      file.schemaVersion,
      JSON.stringify(file.partition.map(valueToJson)),
      file.footer?.bytes ?? null,
      file.footer ? Buffer.from(file.footer.sha256, "hex") : null,
    )?.id;
    if (id === undefined) corrupt("a file was not inserted");
    const leaves = this.#leavesOf(table, file.schemaVersion);
    const bounded = new Set<number>();
    for (const column of file.columns) {
      const leaf = leaves.get(column.fieldId) ?? corrupt(`${file.key} has statistics of no field`);
      const kind = boundClass(leaf.type) ?? corrupt(`${file.key} has statistics of a nested field`);
      this.#driver.run(
        `INSERT INTO column_stats (file, field, table_no, class, min, max, value_count, null_count,
         has_nan, min_exact, max_exact, stored_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        id,
        column.fieldId,
        no,
        kind,
        column.min === undefined ? null : toOrderedBytes(kind, column.min),
        column.max === undefined ? null : toOrderedBytes(kind, column.max),
        column.valueCount,
        column.nullCount,
        column.hasNaN ? 1 : 0,
        column.minExact ? 1 : 0,
        column.maxExact ? 1 : 0,
        column.storedBytes,
      );
      if (hasBounds(column)) bounded.add(column.fieldId);
    }
    for (const field of leaves.keys()) {
      if (bounded.has(field)) continue;
      this.#driver.run("INSERT INTO unbounded (table_no, field, file) VALUES (?, ?, ?)", no, field, id);
    }
  }

  #leavesOf(table: string, version: number): ReadonlyMap<number, Field> {
    const of = `${version} ${table}`;
    if (this.#leaves?.of !== of) {
      const schema = this.schema(table, version) ?? corrupt(`the table ${table} has no schema version ${version}`);
      this.#leaves = { of, fields: leafFields(schema) };
    }
    return this.#leaves.fields;
  }

  #number(table: string): number | undefined {
    const known = this.#numbers.get(table);
    if (known !== undefined) return known;
    const no = this.#driver.get<{ no: number }>("SELECT no FROM tables WHERE id = ?", table)?.no;
    if (no !== undefined) this.#numbers.set(table, no);
    return no;
  }

  #need(table: string): number {
    return this.#number(table) ?? corrupt(`there is no table ${table}`);
  }
}

/** Whether all values of the column are known to lie between bounds, or there are none. */
function hasBounds({ min, max, valueCount, nullCount }: ColumnStatistics): boolean {
  return (min !== undefined && max !== undefined) || nullCount === valueCount;
}
