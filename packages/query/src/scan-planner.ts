/**
 * Asks DuckDB what a statement reads of each table, before any file is chosen: an instance of its own binds and optimizes
 * the statement over empty tables of the same names and types, and says which filters reach which scan.
 */

import { anyOf, type FilePredicate, parseTableName, type TableInfo } from "@eider/catalog";
import { columnValue, type Field } from "@eider/core";
import { VectorReader } from "./arrow.js";
import { BEYOND_CLOCK, READ_CLOCK, tellsTime } from "./clock.js";
import type { Native, NativeDatabase } from "./native.js";
import { type PlannedScan, readPlan } from "./plan-json.js";
import { Session, type SessionPlan } from "./session.js";
import { quoteText } from "./sql-tokens.js";

/**
 * The optimizers of the instance: rewriting and moving filters. Others would draw on the statistics of the empty tables,
 * and take their emptiness for the answer.
 */
export const PLANNING_OPTIMIZERS: readonly string[] = [
  "expression_rewriter",
  "filter_pullup",
  "filter_pushdown",
  "regex_range",
  "cte_inlining",
  "cte_filter_pusher",
];

/**
 * Those of an instance that tells which columns of subqueries and CTEs nobody uses. DuckDB 1.5 cannot make such a plan of
 * every statement (`inequal types`): without `build_side_probe_side`, which swaps sides of joins, of none with a CTE.
 */
export const COLUMN_OPTIMIZERS: readonly string[] = [...PLANNING_OPTIMIZERS, "unused_columns", "build_side_probe_side"];

const IDLE_SESSIONS = 4;

export class ScanPlanner implements AsyncDisposable {
  readonly #native: Native;
  readonly #open: () => Promise<NativeDatabase>;
  #planning: Promise<Planning> | undefined;
  #idle: Session[] = [];

  /** @param open opens an instance with {@link PLANNING_OPTIMIZERS} or {@link COLUMN_OPTIMIZERS}, on first use */
  constructor(native: Native, open: () => Promise<NativeDatabase>) {
    this.#native = native;
    this.#open = open;
  }

  /** What a query reads of the tables, see `serialize`; undefined if that cannot be told. */
  async plan(...query: Parameters<ScanPlanner["serialize"]>): Promise<StatementScans | undefined> {
    const plan = await this.serialize(...query);
    return plan && readScans(plan.text, plan.session, plan.now);
  }

  /**
   * DuckDB's plan of a query as JSON, the session that it names, and the time at which it holds, where it depends on that;
   * undefined if there is none.
   * @param tables each without rows
   * @param names all names in the query, lower-case
   * @param toSql the query, naming the tables of the given session
   */
  async serialize(
    tables: SessionPlan,
    names: ReadonlySet<string>,
    toSql: (session: Session) => string | undefined,
  ): Promise<SerializedPlan | undefined> {
    this.#planning ??= this.#start();
    const { instance, changing } = await this.#planning;
    if ([...names].some((name) => changing.has(name))) return undefined;
    const timed = [...names].some(tellsTime);
    if (timed && names.has(BEYOND_CLOCK)) return undefined;
    const index = this.#idle.findIndex((session) => session.key === tables.key);
    const session = index >= 0 ? this.#idle.splice(index, 1)[0]! : await Session.open(this.#native, instance, tables);
    try {
      const sql = toSql(session);
      if (sql === undefined) return undefined;
      const now = timed ? (await this.#texts(session, READ_CLOCK))[0]! : undefined;
      if (now !== undefined) await session.setClock(now);
      const text = await this.#serialize(session, sql);
      return text === undefined ? undefined : { text, session, now };
    } finally {
      this.#idle.push(session);
      if (this.#idle.length > IDLE_SESSIONS) await this.#idle.shift()!.close();
    }
  }

  /** DuckDB's parse of a statement as JSON, an error of which is within it. */
  async parse(sql: string): Promise<string> {
    this.#planning ??= this.#start();
    const { instance } = await this.#planning;
    const session = await Session.open(this.#native, instance, { key: "", main: [], others: new Map() });
    try {
      return (await this.#texts(session, `SELECT json_serialize_sql(${quoteText(sql)})`))[0]!;
    } finally {
      await session.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const planning = await this.#planning?.catch(() => undefined);
    if (!planning) return;
    for (const session of this.#idle.splice(0)) await session.close();
    this.#native.close_sync(planning.instance);
  }

  async #serialize(session: Session, sql: string): Promise<string | undefined> {
    try {
      const [plan] = await this.#texts(
        session,
        `SELECT json_serialize_plan(${quoteText(sql)}, skip_null := true, optimize := true)`,
      );
      return plan;
    } catch {
      // The statement itself will say what is wrong with it.
      return undefined;
    }
  }

  async #start(): Promise<Planning> {
    const instance = await this.#open();
    const session = await Session.open(this.#native, instance, { key: "", main: [], others: new Map() });
    try {
      const changing = await this.#texts(session, CHANGING_FUNCTIONS);
      return { instance, changing: new Set(changing.filter((name) => !tellsTime(name))) };
    } finally {
      await session.close();
    }
  }

  /** The values of a statement's one column. */
  async #texts(session: Session, sql: string): Promise<string[]> {
    const native = this.#native;
    const result = await session.run(sql);
    const vectors = new VectorReader(native);
    const reader = vectors.column(native.column_logical_type(result, 0));
    const field: Field = { id: 0, name: "text", type: reader.type, nullable: true };
    const texts: string[] = [];
    for (let i = 0; i < native.result_chunk_count(result); i++) {
      const chunk = native.result_get_chunk(result, i);
      const batch = vectors.batch(chunk, native.data_chunk_get_size(chunk), [field], [reader]);
      for (let row = 0; row < batch.length; row++) texts.push(String(columnValue(batch.columns[0]!, row, "exact")));
    }
    return texts;
  }
}

interface Planning {
  readonly instance: NativeDatabase;
  /** Functions whose value is another in each query, but for those that a session's clock gives. */
  readonly changing: ReadonlySet<string>;
}

/** See {@link ScanPlanner.serialize}. */
interface SerializedPlan {
  readonly text: string;
  readonly session: SessionNames;
  readonly now: string | undefined;
}

/**
 * Functions that keep one value during a query, as `now()` does, and macros and keywords that call them. `age` of one
 * argument counts from today, though DuckDB says that it depends on nothing else.
 */
const CHANGING_FUNCTIONS = `
  WITH f AS (SELECT DISTINCT function_name AS name FROM duckdb_functions() WHERE stability = 'CONSISTENT_WITHIN_QUERY')
  SELECT name FROM f
  UNION SELECT m.function_name FROM duckdb_functions() m, f WHERE contains(m.macro_definition, f.name)
  UNION SELECT unnest(['age', 'current_user', 'session_user', 'user', 'current_role', 'current_catalog', 'current_schema', 'current_database'])`;

/** What the databases of a session are called. */
export type SessionNames = Pick<Session, "database" | "databases">;

/** What a plan in JSON reads of the tables of a session; undefined if DuckDB could not make one. */
export function readScans(plan: string, session: SessionNames, now: string | undefined): StatementScans | undefined {
  const scans = readPlan(plan);
  return scans && new StatementScans(session, scans, now);
}

/** What a query reads of its tables. */
export class StatementScans {
  readonly #main: string;
  readonly #databases: ReadonlyMap<number, string>;
  readonly #scans: readonly PlannedScan[];
  /** The same query, planned so that it may read fewer columns. */
  readonly #narrower: StatementScans | undefined;
  /** The time at which they hold: the session that runs the query must have it as its clock. */
  readonly now: string | undefined;

  constructor(
    { database, databases }: SessionNames,
    scans: readonly PlannedScan[],
    now: string | undefined,
    narrower?: StatementScans,
  ) {
    this.now = now;
    this.#narrower = narrower;
    this.#main = database;
    this.#databases = databases;
    this.#scans = scans;
  }

  /** True for every row of a table that the query needs; `travel` is the snapshot that its `AT` names. */
  predicate(table: TableInfo, travel?: number): FilePredicate {
    // A table without a scan is not in the query (its name stands for something else there), or behind a false condition.
    return anyOf(this.#scansOf(table, travel).map((scan) => scan.predicate(table.schema.fields)));
  }

  /** With what another plan of the query says of columns. */
  narrowedBy(other: StatementScans): StatementScans {
    const names = { database: this.#main, databases: this.#databases };
    return new StatementScans(names, this.#scans, this.now, other);
  }

  /** Field ids of the table's columns that the query may read; undefined for all. */
  columns(table: TableInfo, travel?: number): ReadonlySet<number> | undefined {
    const own = this.#scansOf(table, travel);
    const narrower = this.#narrower ? this.#narrower.#scansOf(table, travel) : undefined;
    // One that was left out there may be run all the same.
    const scans = narrower?.length === own.length ? narrower : own;
    const ids = new Set(scans.flatMap((scan) => scan.columns(table.schema.fields)).map(({ id }) => id));
    return ids.size < table.schema.fields.length ? ids : undefined;
  }

  #scansOf({ name }: TableInfo, travel: number | undefined): PlannedScan[] {
    const database = travel === undefined ? this.#main : this.#databases.get(travel);
    const { namespace = "main", name: table } = parseTableName(name);
    return this.#scans.filter(
      (scan) => scan.database === database && scan.schema === namespace && scan.table === table,
    );
  }
}
