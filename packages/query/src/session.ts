/**
 * A connection that sees the tables of one plan under their natural names: each snapshot is an in-memory database of
 * views, attached for this connection's use. Measured: connect, attach, one view and `USE` take about 1 ms together.
 */

import { parseTableName, type TableName } from "@eider/catalog";
import { nameKey } from "@eider/core";
import { clockSql } from "./clock.js";
import { type DuckDBError, isFatal, readDuckDBError } from "./duckdb-error.js";
import {
  BASE_DATABASE,
  type Native,
  type NativeConnection,
  type NativeDatabase,
  type NativeResult,
  type NativeStatement,
  openConnection,
} from "./native.js";
import type { Databases } from "./rewrite.js";
import { quoteName } from "./sql-tokens.js";
import { TextEdits } from "./text-edits.js";

export interface TableView {
  readonly name: string;
  readonly sql: string;
  /** Whether its rows are copied, as a table of the session. Default: a view. */
  readonly copied?: boolean;
  /** Where it stands, for what is no table of the lake. Default: in the namespace that its name has. */
  readonly namespace?: string;
  /** Of a view of the lake: where its text names tables (characters), and whether without a namespace. */
  readonly references?: readonly { readonly position: number; readonly bare: boolean }[];
}

/** What a session shows: the tables of the query's own snapshot, and of those that `AT` names. */
export interface SessionPlan {
  /** Equal keys show equal tables. */
  readonly key: string;
  readonly main: readonly TableView[];
  readonly others: ReadonlyMap<number, readonly TableView[]>;
  /** Whether it shows what is there for one query alone. */
  readonly servesOnce?: boolean;
  /** The time that statements see, see `clock.ts`. Default: that of each statement. */
  readonly now?: string | undefined;
  /** The data files that the views read: released by the session when it is not in use, or by who does not open one. */
  readonly files?: SessionFiles;
  /** Lets go of what else the views read: by the session when it closes, or by who does not open one. */
  readonly release?: () => Promise<void>;
}

interface SessionFiles {
  release(): Promise<void>;
}

/** Prefix of the sessions' databases: nothing of a user's is likely to be called so. */
const PREFIX = "_eider";

/** A namespace cannot be called so, as DuckDB says `a.b` is ambiguous when `a` is both a database and a namespace. */
const ALONE = "_eider_alone";

let lastNumber = 0;

/** What the databases are called of a session that is alone in its instance. */
export function aloneDatabases(snapshots: Iterable<number>): Databases {
  return databasesOf(ALONE, snapshots);
}

function databasesOf(database: string, snapshots: Iterable<number>): Databases {
  return { database, databases: new Map([...snapshots].map((n) => [n, `${database}_at_${n}`])) };
}

export class Session {
  readonly key: string;
  readonly #native: Native;
  readonly connection: NativeConnection;
  /** Database of the query's own snapshot. */
  readonly database: string;
  /** Databases by snapshot, for `AT`. */
  readonly databases: ReadonlyMap<number, string>;

  /** The instance, where it is this session's alone. */
  readonly #instance: NativeDatabase | undefined;
  #files: SessionFiles | undefined;
  readonly #release: (() => Promise<void>) | undefined;
  readonly #once: boolean;
  /** By `nameKey`: why a view of the lake could not be made. */
  readonly failures: Map<string, DuckDBError> = new Map();
  #hasClock = false;

  private constructor(
    native: Native,
    connection: NativeConnection,
    plan: SessionPlan,
    instance: NativeDatabase | undefined,
  ) {
    this.#native = native;
    this.connection = connection;
    this.key = plan.key;
    this.#instance = instance;
    this.#files = plan.files;
    this.#release = plan.release;
    this.#once = plan.servesOnce ?? false;
    const prefix = instance ? ALONE : `${PREFIX}_${++lastNumber}`;
    ({ database: this.database, databases: this.databases } = databasesOf(prefix, plan.others.keys()));
  }

  static async open(native: Native, instance: NativeDatabase, plan: SessionPlan): Promise<Session> {
    return new Session(native, await openConnection(native, instance), plan, undefined).#attachAll(plan);
  }

  /** A session that sees no other's databases; it owns the instance. */
  static async alone(native: Native, instance: NativeDatabase, plan: SessionPlan): Promise<Session> {
    return new Session(native, await openConnection(native, instance), plan, instance).#attachAll(plan);
  }

  /** Whether it serves one statement: by its plan, or since it owns its instance, or its time has been set. */
  get servesOnce(): boolean {
    return this.#once || this.#instance !== undefined || this.#hasClock;
  }

  /** All in one call, since each has to wait for a thread. */
  async #attachAll(plan: SessionPlan): Promise<this> {
    const statements = [
      ...attach(this.database, plan.main),
      ...[...this.databases].flatMap(([snapshot, database]) => attach(database, plan.others.get(snapshot)!)),
      `USE ${this.database}`,
    ];
    try {
      await this.run(statements.join(";\n"));
      await this.#addViews(this.database, plan.main);
      for (const [snapshot, database] of this.databases) await this.#addViews(database, plan.others.get(snapshot)!);
      if (plan.now !== undefined) await this.setClock(plan.now);
      return this;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  /** A view that does not fit its tables any more is in the way only of statements that read it. */
  async #addViews(database: string, shown: readonly TableView[]): Promise<void> {
    const views = shown.flatMap((view) => {
      const { references } = view;
      if (!references) return [];
      const text = qualified(view.sql, references, database);
      return [{ view, sql: `CREATE OR REPLACE VIEW ${placeOf(database, view)} AS ${text}` }];
    });
    if (views.length === 0) return;
    try {
      // A comment may end a text.
      await this.run(views.map(({ sql }) => sql).join("\n;"));
      return;
    } catch (error) {
      if (isFatal(readDuckDBError(error))) throw error;
    }
    for (const { view, sql } of views) {
      try {
        await this.run(sql);
      } catch (error) {
        const failure = readDuckDBError(error);
        if (isFatal(failure)) throw error;
        this.failures.set(nameKey(view.name), failure);
      }
    }
  }

  /** Makes an instant the time that later statements see, see `clock.ts`. */
  async setClock(now: string): Promise<void> {
    const databases = [this.database, ...this.databases.values()];
    await this.run(databases.map((database) => clockSql(now, database)).join(";"));
    this.#hasClock = true;
  }

  run(sql: string): Promise<NativeResult> {
    return this.#native.query(this.connection, sql);
  }

  /**
   * Prepares one statement. A `PIVOT` that finds its columns in the data is several to DuckDB: all but the last are run.
   */
  async prepare(sql: string): Promise<NativeStatement> {
    if (!/pivot/i.test(sql)) return this.#native.prepare(this.connection, sql);
    const { extracted_statements: all, statement_count: count } = await this.#native.extract_statements(
      this.connection,
      sql,
    );
    for (let i = 0; i < count - 1; i++) {
      const helper = await this.#native.prepare_extracted_statement(this.connection, all, i);
      await this.#native.execute_prepared(helper);
    }
    return this.#native.prepare_extracted_statement(this.connection, all, Math.max(0, count - 1));
  }

  /** Uses a plan of the same key, which holds the same data files by the same paths. */
  async adopt({ files, release }: SessionPlan): Promise<void> {
    this.#files = files;
    // What else it reads it has by other paths.
    await release?.();
  }

  /** Lets go of its data files, until it adopts others of the same paths. */
  async rest(): Promise<void> {
    await this.#files?.release();
    this.#files = undefined;
  }

  /** Lets go of all files that its views read. */
  async release(): Promise<void> {
    await this.rest();
    await this.#release?.();
  }

  /** Ends whatever still runs on the connection, and lets go of it. */
  async close(): Promise<void> {
    try {
      // Another statement ends a stream that was not read to its end.
      const databases = [this.database, ...this.databases.values()];
      const detach = databases.map((database) => `DETACH DATABASE IF EXISTS ${database}`);
      await this.run([`USE ${BASE_DATABASE}`, ...detach].join(";\n"));
    } catch (error) {
      // An instance that had a fatal error takes no more statements; nothing of it is used again.
      if (!isFatal(readDuckDBError(error))) throw error;
    } finally {
      this.#native.disconnect_sync(this.connection);
      if (this.#instance) this.#native.close_sync(this.#instance);
      await this.release();
    }
  }
}

/** Statements that show tables in a database. */
function attach(database: string, views: readonly TableView[]): string[] {
  const statements = [`ATTACH ':memory:' AS ${database}`];
  const namespaces = new Set<string>();
  for (const view of views) {
    const { namespace } = partsOf(view);
    if (namespace !== undefined && !namespaces.has(namespace.toLowerCase())) {
      namespaces.add(namespace.toLowerCase());
      statements.push(`CREATE SCHEMA ${database}.${quoteName(namespace)}`);
    }
    if (view.references) continue;
    const kind = view.copied ? "TABLE" : "VIEW";
    statements.push(`CREATE ${kind} ${placeOf(database, view)} AS ${view.sql}`);
  }
  return statements;
}

function partsOf({ name, namespace }: TableView): TableName {
  return namespace === undefined ? parseTableName(name) : { namespace, name };
}

function placeOf(database: string, view: TableView): string {
  const { namespace = "main", name } = partsOf(view);
  return `${database}.${quoteName(namespace)}.${quoteName(name)}`;
}

/** A view's text with its tables as those of the database: names mean in it what they mean in a query. */
function qualified(sql: string, references: NonNullable<TableView["references"]>, database: string): string {
  const edits = new TextEdits(sql);
  for (const { position, bare } of references) {
    edits.replace(position, position, `${quoteName(database)}.${bare ? "main." : ""}`);
  }
  return edits.apply();
}
