/** The changes of a table as rows: what `eider.changes(…)` shows. */

import type { Catalog, ListedFile, TableChange, TableInfo } from "@eider/catalog";
import { CatalogError, nameKey, QueryError, type Schema, storedSchema } from "@eider/core";
import type { ChangesCall } from "./changes-call.js";
import { unknownTableMessage } from "./duckdb-error.js";
import type { BatchesFile, HeldBatches } from "./hot-files.js";
import type { HeldFiles } from "./local-files.js";
import type { BoundParameters } from "./parameters.js";
import { type TableReads, tableReads } from "./reads.js";
import { changesNamespace } from "./rewrite.js";
import type { TableView } from "./session.js";
import { snapshotOf } from "./snapshot.js";
import { quoteName, quoteText } from "./sql-tokens.js";
import type { Parameter } from "./statement.js";
import { tableSql } from "./table-sql.js";

/** What tells of each row where it came from, before the table's own columns; with the types. */
const COLUMNS = { _snapshot: "BIGINT", _batch_id: "VARCHAR", _kind: "VARCHAR", _to: "BIGINT" } as const;

/** Changes looked at in one step. */
const PAGE = 1000;
/** In which of the files a row is, and which of its rows. */
const PLACE = { file: "_eider_file", row: "_eider_row" } as const;

/** What a call means: the batches and rollbacks of a table behind one snapshot, up to another. */
export interface TableChanges {
  /** As at the last of the snapshots. */
  readonly table: TableInfo;
  readonly after: number;
  readonly until: number;
  readonly appends: readonly AppendedBatch[];
  readonly rollbacks: readonly { readonly snapshot: number; readonly to: number }[];
}

export interface AppendedBatch {
  readonly snapshot: number;
  readonly batchId: string;
  /** Empty for a batch that came hot, or without rows. */
  readonly files: readonly ListedFile[];
  readonly isHot: boolean;
}

/**
 * @param at the query's snapshot
 * @throws QueryError `bad_changes`, `unknown_table`; NotFoundError; CatalogError `cursor_expired`
 */
export async function resolveChanges(
  catalog: Catalog,
  call: ChangesCall,
  values: BoundParameters,
  at: number,
): Promise<TableChanges> {
  const bad = (reason: string): never => {
    throw new QueryError("bad_changes", `eider.changes: ${reason}`, { position: call.start });
  };
  const [name, from, to] = [call.table, call.after, call.until].map((one) => argument(one, values));
  if (typeof name !== "string") return bad("the first argument is the name of a table");
  const until = to === undefined ? at : await snapshotOf(catalog, snapshotArgument(to) ?? bad("what is until?"));
  const start = snapshotArgument(from) ?? bad("the second argument is a snapshot's number, a tag or a time");
  // A number may be of a snapshot that has ended: what comes behind it is asked for.
  const after = typeof start === "number" ? start : await snapshotOf(catalog, start);
  if (after > until) bad(`snapshot ${after} comes after ${until}`);
  const tables = until === 0 ? [] : await catalog.tables(until);
  const table = tables.find((one) => nameKey(one.name) === nameKey(name));
  if (!table) {
    const message = unknownTableMessage(
      name,
      tables.map((one) => one.name),
    );
    throw new QueryError("unknown_table", message, { position: call.start, subject: name });
  }
  const taken = table.schema.fields.find((field) => Object.hasOwn(COLUMNS, nameKey(field.name)));
  if (taken)
    bad(`the table has a column ${JSON.stringify(taken.name)}, which would be there twice: use table.changes()`);
  const changes: TableChange[] = [];
  for (let position = String(after); ; position = changes.at(-1)!.position) {
    const page = await catalog.changes(table.id, position, { until, limit: PAGE });
    if (page.length === 0) break;
    changes.push(...page);
  }
  const appends = await findBatches(catalog, table, until, changes);
  const rollbacks = changes.flatMap((change) => (change.kind === "rollback" ? [change] : []));
  return { table, after, until, appends, rollbacks };
}

/** Where the rows of each batch are, as it was committed. */
async function findBatches(
  catalog: Catalog,
  table: TableInfo,
  until: number,
  changes: readonly TableChange[],
): Promise<AppendedBatch[]> {
  const filesAt = async (snapshot: number): Promise<ListedFile[]> =>
    catalog.files(table.id, snapshot, { statistics: false });
  // Most files are there still, and one look finds them.
  const now = await filesAt(until);
  const byBatch = new Map<string, ListedFile[]>();
  for (const file of now) {
    const key = `${file.addedIn} ${file.batchId}`;
    const own = byBatch.get(key);
    if (own) own.push(file);
    else byBatch.set(key, [file]);
  }
  const batches: AppendedBatch[] = [];
  for (const change of changes) {
    if (change.kind !== "append" || change.receipt.rows === 0) continue;
    const { snapshot, batchId, rows } = change.receipt;
    let files: readonly ListedFile[] = byBatch.get(`${snapshot} ${batchId}`) ?? [];
    if (rowsOf(files) < rows) {
      files = (await filesAt(snapshot)).filter((file) => file.addedIn === snapshot && file.batchId === batchId);
    }
    batches.push({ snapshot, batchId, files, isHot: files.length === 0 });
    if (files.length === 0 || rowsOf(files) === rows) continue;
    throw new CatalogError("catalog_corrupt", `the files of batch ${JSON.stringify(batchId)} have other rows than it`);
  }
  return batches;
}

function rowsOf(files: readonly ListedFile[]): number {
  return files.reduce((sum, { rows }) => sum + rows, 0);
}

/** Those that were hot when they came. */
export function hotBatches({ appends }: TableChanges): readonly AppendedBatch[] {
  return appends.filter(({ isHot }) => isHot);
}

/** The data files of the others, each of one batch. */
export function batchFiles({ appends }: TableChanges, held: HeldFiles): BatchesFile[] {
  return appends.flatMap(({ snapshot, batchId, files }) =>
    files.map((file) => {
      const { rows } = file;
      return { ...file, path: held.path(file), batches: [{ snapshot, batchId, rows }] };
    }),
  );
}

/** What is read of the table for its changes. */
export function changesReads({ table, until, appends }: TableChanges, held: HeldFiles, hot: HeldBatches): TableReads {
  const read = appends.flatMap(({ files }) => files);
  const hotBatches = hot.files.reduce((sum, { batches }) => sum + batches.length, 0);
  return tableReads({ ...table, files: read.length, hotBatches, hotBytes: 0 }, until, read, held);
}

/**
 * What the n-th call of a statement shows.
 * @param files all that the batches have, hot ones as files too
 */
export function changesView(
  call: number,
  { table, rollbacks }: Pick<TableChanges, "table" | "rollbacks">,
  files: readonly BatchesFile[],
  guarded?: ReadonlySet<number>,
): TableView {
  const sql = changesSql(table.schema, files, rollbacks, guarded);
  return { name: "changes", namespace: changesNamespace(call), sql };
}

/** @param files all that the batches have, hot ones as files too; none gives no rows, with the columns and types */
function changesSql(
  schema: Schema,
  files: readonly Pick<BatchesFile, "path" | "rows" | "batches">[],
  rollbacks: TableChanges["rollbacks"],
  guarded: ReadonlySet<number> = new Set(),
): string {
  const none = Object.entries(COLUMNS).map(([name, type]) => `NULL::${type} AS ${quoteName(name)}`);
  const nulls = schema.fields.map(() => ", NULL").join("");
  const selects = [`SELECT ${none.join(", ")}${nulls && ", *"} FROM (${tableSql(schema, [])})`];
  const batches = files.flatMap(({ batches: own }, file) => {
    let first = 0;
    return own.map(({ snapshot, batchId, rows }) => {
      first += rows;
      return `(${file}, ${first - rows}, ${rows}, ${snapshot}, ${quoteText(batchId)})`;
    });
  });
  const listed = `(VALUES ${batches.join(", ")}) c(file, first, rows, snapshot, batch)`;
  if (batches.length > 0 && storedSchema(schema).fields.length === 0) {
    // After a rollback to when no column had a value.
    selects.push(
      `SELECT snapshot, batch, 'append', NULL${nulls} FROM (SELECT snapshot, batch, unnest(range(rows)) FROM ${listed})`,
    );
  } else if (batches.length > 0) {
    const rows = tableSql(schema, files, { guarded, place: PLACE });
    selects.push(
      `SELECT c.snapshot, c.batch, 'append', NULL, f.* EXCLUDE (${PLACE.file}, ${PLACE.row}) FROM (${rows}) f ` +
        `ASOF JOIN ${listed} ON c.file = f.${PLACE.file} AND f.${PLACE.row} >= c.first`,
    );
  }
  if (rollbacks.length > 0) {
    const rows = rollbacks.map(({ snapshot, to }) => `(${snapshot}, NULL, 'rollback', ${to}${nulls})`);
    selects.push(`VALUES ${rows.join(", ")}`);
  }
  return selects.join("\nUNION ALL ");
}

function argument(given: string | Parameter | undefined, values: BoundParameters): unknown {
  return typeof given === "object" ? values.get(given.name) : given;
}

function snapshotArgument(value: unknown): number | string | Date | undefined {
  if (typeof value === "bigint" || (typeof value === "string" && /^\d+$/.test(value))) return Number(value);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  return typeof value === "string" || value instanceof Date ? value : undefined;
}
