/** The catalog in SQL: `eider.tables`, `.views`, `.columns`, `.snapshots`, `.batches`, `.files`, `.rejects`, at the query's snapshot. */

import type { Catalog, ListedReject, Receipt, SnapshotInfo, TableInfo, ViewInfo } from "@eider/catalog";
import { childFields, type Field, formatType } from "@eider/core";
import type { TableView } from "./session.js";
import { quoteText } from "./sql-tokens.js";

/** Rows read from the catalog at once. */
const PAGE = 10_000;

type Row = Readonly<Record<string, unknown>>;

interface SystemTable {
  /** Columns and their types in DuckDB. */
  readonly columns: Readonly<Record<string, string>>;
  rows(catalog: Catalog, tables: readonly TableInfo[], snapshot: number, views: readonly ViewInfo[]): Promise<Row[]>;
}

const SYSTEM_TABLES: Readonly<Record<string, SystemTable>> = {
  tables: {
    columns: {
      name: "VARCHAR",
      id: "VARCHAR",
      schema_version: "BIGINT",
      rows: "BIGINT",
      files: "BIGINT",
      bytes: "BIGINT",
      hot_batches: "BIGINT",
      hot_bytes: "BIGINT",
      partition_by: "VARCHAR[]",
      order_by: "VARCHAR[]",
      folder: "VARCHAR",
      created_in: "BIGINT",
    },
    rows: async (_, tables) =>
      tables.map((table) => ({
        name: table.name,
        id: table.id,
        schema_version: table.schemaVersion,
        rows: table.rows,
        files: table.files,
        bytes: table.bytes,
        hot_batches: table.hotBatches,
        hot_bytes: table.hotBytes,
        partition_by: table.partitionBy,
        order_by: table.orderBy,
        folder: table.folder,
        created_in: table.createdIn,
      })),
  },
  views: {
    columns: { name: "VARCHAR", sql: "VARCHAR", created_in: "BIGINT" },
    rows: async (_catalog, _tables, _snapshot, views) =>
      views.map(({ name, sql, createdIn }) => ({ name, sql, created_in: createdIn })),
  },
  columns: {
    columns: {
      table: "VARCHAR",
      path: "VARCHAR[]",
      field_id: "BIGINT",
      position: "BIGINT",
      type: "VARCHAR",
      nullable: "BOOLEAN",
    },
    rows: async (_, tables) =>
      tables.flatMap((table) => table.schema.fields.flatMap((field, i) => columnRows(table.name, [], field, i))),
  },
  snapshots: {
    columns: { snapshot: "BIGINT", committed_at: "TIMESTAMPTZ", operations: "JSON", meta: "MAP(VARCHAR, VARCHAR)" },
    rows: async (catalog, tables, snapshot) => {
      const names = new Map(tables.map(({ id, name }) => [id, name]));
      const all: SnapshotInfo[] = [];
      for (let after = 0; after < snapshot; after = all.at(-1)!.snapshot) {
        const page = await catalog.snapshots({ after, limit: PAGE });
        if (page.length === 0) break;
        all.push(...page);
      }
      return all
        .filter((info) => info.snapshot <= snapshot)
        .map(({ snapshot: n, committedAt, operations, meta }) => ({
          snapshot: n,
          committed_at: committedAt,
          // Tables are called by their names; one that has been dropped has its id left.
          operations: operations.map(({ table, ...operation }) => ({
            ...operation,
            ...(table !== undefined && { table: names.get(table) ?? table }),
          })),
          meta,
        }));
    },
  },
  batches: {
    columns: {
      table: "VARCHAR",
      batch_id: "VARCHAR",
      snapshot: "BIGINT",
      rows: "BIGINT",
      rejected: "BIGINT",
      content_hash: "VARCHAR",
      committed_at: "TIMESTAMPTZ",
    },
    rows: async (catalog, tables, snapshot) => {
      const rows: Row[] = [];
      for (const { id } of tables) {
        for await (const receipt of receipts(catalog, id, snapshot)) {
          rows.push({
            table: receipt.table,
            batch_id: receipt.batchId,
            snapshot: receipt.snapshot,
            rows: receipt.rows,
            rejected: receipt.rejected,
            content_hash: receipt.contentHash,
            committed_at: receipt.committedAt,
          });
        }
      }
      return rows;
    },
  },
  files: {
    columns: {
      table: "VARCHAR",
      key: "VARCHAR",
      rows: "BIGINT",
      bytes: "BIGINT",
      sha256: "VARCHAR",
      added_in: "BIGINT",
      base: "BIGINT",
      schema_version: "BIGINT",
      batch_id: "VARCHAR",
    },
    rows: async (catalog, tables, snapshot) => {
      const files = await Promise.all(
        tables.map(async ({ id, name }) =>
          (await catalog.files(id, snapshot, { statistics: false })).map((file) => ({
            table: name,
            key: file.key,
            rows: file.rows,
            bytes: file.bytes,
            sha256: file.sha256,
            added_in: file.addedIn,
            base: file.base,
            schema_version: file.schemaVersion,
            batch_id: file.batchId,
          })),
        ),
      );
      return files.flat();
    },
  },
  rejects: {
    columns: {
      id: "VARCHAR",
      table: "VARCHAR",
      batch_id: "VARCHAR",
      snapshot: "BIGINT",
      line: "BIGINT",
      code: "VARCHAR",
      reason: "VARCHAR",
      raw: "VARCHAR",
      replayed_by: "VARCHAR",
      replayed_in: "BIGINT",
      purged_in: "BIGINT",
    },
    rows: async (catalog, tables, snapshot) => {
      const lists = await Promise.all(tables.map(({ id }) => catalog.rejects(id, { limit: Number.MAX_SAFE_INTEGER })));
      return lists
        .flat()
        .filter((reject) => reject.snapshot <= snapshot)
        .map((reject) => rejectRow(reject, snapshot));
    },
  },
};

/** Those of the system tables that a statement names. */
export function namedSystemTables(names: ReadonlySet<string>): string[] {
  return names.has("eider") ? Object.keys(SYSTEM_TABLES).filter((name) => names.has(name)) : [];
}

/** A system table's rows; without `of`, none. */
export async function systemTable(
  name: string,
  of?: {
    readonly catalog: Catalog;
    readonly tables: readonly TableInfo[];
    readonly views: readonly ViewInfo[];
    readonly snapshot: number;
  },
): Promise<TableView> {
  const { columns, rows } = SYSTEM_TABLES[name]!;
  const values = of ? await rows(of.catalog, of.tables, of.snapshot, of.views) : [];
  // JSON's way in is the shortest that takes lists, maps and nulls alike.
  const sql = `SELECT unnest(from_json(${quoteText(JSON.stringify(values))}, ${quoteText(JSON.stringify([columns]))}), max_depth := 2)`;
  return { name, sql, copied: true, namespace: "eider" };
}

function columnRows(table: string, parents: readonly string[], field: Field, position: number): Row[] {
  const path = [...parents, field.name];
  const row = {
    table,
    path,
    field_id: field.id,
    position: position + 1,
    type: formatType(field.type),
    nullable: field.nullable,
  };
  return [row, ...childFields(field.type).flatMap((child, i) => columnRows(table, path, child, i))];
}

/** What became of it later than the snapshot is not told, but a text that is gone is gone from all of them. */
function rejectRow(reject: ListedReject, at: number): Row {
  const { id, table, batchId, snapshot, line, code, reason, raw, replayedBy, replayedIn, purgedIn } = reject;
  const replayed = replayedIn !== undefined && replayedIn <= at;
  return {
    id,
    table,
    batch_id: batchId,
    snapshot,
    line,
    code,
    reason,
    raw: purgedIn === undefined ? raw : null,
    replayed_by: replayed ? replayedBy : null,
    replayed_in: replayed ? replayedIn : null,
    purged_in: purgedIn ?? null,
  };
}

async function* receipts(catalog: Catalog, tableId: string, at: number): AsyncGenerator<Receipt> {
  for (let before: number | undefined; ; ) {
    const page = await catalog.batches(tableId, { at, limit: PAGE, ...(before !== undefined && { before }) });
    yield* page;
    if (page.length < PAGE) return;
    before = page.at(-1)!.snapshot;
  }
}
