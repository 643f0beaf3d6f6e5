/** Which tables a statement means, at which snapshots, and as what SQL they are shown to DuckDB. */

import { type Catalog, type ListedFile, parseTableName, type TableInfo } from "@eider/catalog";
import { NotFoundError, QueryError } from "@eider/core";
import { unknownTableMessage } from "./duckdb-error.js";
import type { LocalFiles } from "./local-files.js";
import type { BoundParameters } from "./parameters.js";
import type { SqlParam } from "./query.js";
import type { Session, SessionPlan, TableView } from "./session.js";
import { snapshotOf } from "./snapshot.js";
import { quoteName } from "./sql-tokens.js";
import type { Statement, TimeTravel } from "./statement.js";
import { tableSql } from "./table-sql.js";
import { TextEdits } from "./text-edits.js";

/** Views and lists of tables kept, so that a repeated query asks the catalog for its head alone. */
const CACHED_VIEWS = 64;
const CACHED_LISTS = 8;

/** What the catalog says about a table at a snapshot. It never changes. */
interface ResolvedTable {
  readonly view: TableView;
  readonly files: readonly ListedFile[];
}

export interface Plan {
  readonly snapshot: number;
  readonly session: SessionPlan;
  readonly files: readonly ListedFile[];
  /** All names at the query's snapshot. */
  readonly tables: readonly string[];
  /** Snapshot of each `AT`, in the statement's order. */
  readonly travels: readonly number[];
}

export class Planner {
  readonly #catalog: Catalog;
  readonly #files: LocalFiles;
  readonly #lists = new Map<number, Promise<readonly TableInfo[]>>();
  readonly #tables = new Map<string, Promise<ResolvedTable>>();

  constructor(catalog: Catalog, files: LocalFiles) {
    this.#catalog = catalog;
    this.#files = files;
  }

  /**
   * @throws QueryError `unknown_table` (for `AT`), `bad_snapshot`; NotFoundError `snapshot_not_found`
   * @throws CorruptionError where local copies of objects are made
   */
  async plan(statement: Statement, values: BoundParameters, at: number | string | Date | undefined): Promise<Plan> {
    const snapshot = await snapshotOf(this.#catalog, at);
    const all = await this.#listTables(snapshot);
    const tables = all.map((table) => table.name);
    const wanted = all.filter((table) => statement.needsAllTables || isNamed(table.name, statement.names));
    const main = await Promise.all(wanted.map((table) => this.#resolve(table, snapshot)));
    const files = main.flatMap((table) => table.files);
    const travels: number[] = [];
    const others = new Map<number, TableView[]>();
    for (const travel of statement.timeTravels) {
      const then = await snapshotOf(this.#catalog, travelTarget(travel, values));
      travels.push(then);
      const views = others.get(then) ?? [];
      others.set(then, views);
      const name = travel.path.join(".").toLowerCase();
      const table = (await this.#listTables(then)).find((t) => sqlName(t.name).toLowerCase() === name);
      if (!table) {
        throw new QueryError(
          "unknown_table",
          `there is no table ${JSON.stringify(travel.path.join("."))} at snapshot ${then}`,
          { position: travel.pathStart, subject: travel.path.join(".") },
        );
      }
      if (views.some((view) => view.name === table.name)) continue;
      const resolved = await this.#resolve(table, then);
      views.push(resolved.view);
      files.push(...resolved.files);
    }
    const keys = [...others].map(([then, views]) => `${then}:${views.map((view) => JSON.stringify(view.name)).join()}`);
    const key = [`${snapshot}:${wanted.map((table) => table.id).join()}`, ...keys].join(";");
    return { snapshot, tables, files, travels, session: { key, main: main.map((table) => table.view), others } };
  }

  /** The SELECT for one table; see `QueryEngine.filesSql`. */
  async tableSql(name: string, at: number | string | Date | undefined): Promise<string> {
    const snapshot = await snapshotOf(this.#catalog, at);
    const tables = await this.#listTables(snapshot);
    const table = tables.find((t) => t.name.toLowerCase() === name.toLowerCase());
    if (table) return (await this.#resolve(table, snapshot)).view.sql;
    const names = tables.map((t) => t.name);
    throw new NotFoundError("unknown_table", unknownTableMessage(name, names), { subject: name });
  }

  #listTables(snapshot: number): Promise<readonly TableInfo[]> {
    return remember(this.#lists, snapshot, CACHED_LISTS, async () =>
      snapshot === 0 ? [] : this.#catalog.tables(snapshot),
    );
  }

  #resolve(table: TableInfo, snapshot: number): Promise<ResolvedTable> {
    return remember(this.#tables, `${snapshot}:${table.id}`, CACHED_VIEWS, async () => {
      const files = await this.#catalog.files(table.id, snapshot, { statistics: false });
      const paths = await this.#files.paths(files);
      const sql = tableSql(
        table.schema,
        files.map((file, i) => ({ path: paths[i]!, rows: file.rows })),
      );
      return { view: { name: table.name, sql }, files };
    });
  }
}

/** What a snapshot says never changes. The `limit` values used last are kept; failures are not. */
function remember<K, V>(known: Map<K, Promise<V>>, key: K, limit: number, find: () => Promise<V>): Promise<V> {
  const value = known.get(key) ?? find();
  known.delete(key);
  known.set(key, value);
  value.catch(() => known.delete(key));
  for (const oldest of known.keys()) {
    if (known.size <= limit) break;
    known.delete(oldest);
  }
  return value;
}

/** A table's name as a statement's tokens say it, without quotes. */
function sqlName(table: string): string {
  const { namespace, name } = parseTableName(table);
  return namespace === undefined ? name : `${namespace}.${name}`;
}

function isNamed(table: string, names: ReadonlySet<string>): boolean {
  const { namespace, name } = parseTableName(table);
  if (names.has(table.toLowerCase())) return true;
  return names.has(name.toLowerCase()) && (namespace === undefined || names.has(namespace.toLowerCase()));
}

function travelTarget(travel: TimeTravel, values: BoundParameters): number | string | Date {
  const { value, by } = travel;
  const target = typeof value === "string" ? value : values.get(value.name);
  const number = typeof target === "bigint" ? Number(target) : target;
  if (by === "version") {
    if (typeof number === "number") return number;
    if (typeof number === "string" && /^\d+$/.test(number)) return Number(number);
  } else if (typeof number === "string" || number instanceof Date) return number;
  throw new QueryError(
    "bad_snapshot",
    by === "version"
      ? "AT (VERSION => …) takes a snapshot's number"
      : "AT (TIMESTAMP => …) takes a Date or ISO 8601 text",
    { position: travel.start },
  );
}

/** The statement with `t AT (…)` as a table of that snapshot's database. */
export function rewrite(
  statement: Statement,
  values: BoundParameters,
  plan: Plan,
  session: Session,
): { sql: string; parameters: BoundParameters; edits: TextEdits } {
  const edits = new TextEdits(statement.text);
  const { timeTravels } = statement;
  timeTravels.forEach((travel, i) => {
    const database = session.databases.get(plan.travels[i]!)!;
    const schema = travel.path.length === 1 ? "main." : "";
    edits.replace(travel.pathStart, travel.pathStart, `${quoteName(database)}.${schema}`);
    edits.replace(travel.start, travel.end, "");
  });
  const inTravel = (start: number): boolean => timeTravels.some((t) => start >= t.start && start < t.end);
  const left = statement.parameters.filter((p) => !inTravel(p.start));
  if (left.length === statement.parameters.length) return { sql: edits.apply(), parameters: values, edits };
  // Positions without gaps are all that DuckDB takes, so what is left of them gets names.
  const parameters = new Map<string, SqlParam>();
  for (const { name, start, end } of left) {
    edits.replace(start, end, `$p${name}`);
    parameters.set(`p${name}`, values.get(name)!);
  }
  return { sql: edits.apply(), parameters, edits };
}
