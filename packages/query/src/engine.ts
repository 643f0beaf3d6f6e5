/** SQL over a lake: which tables a statement means, at which snapshot, from which files. */

import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Catalog } from "@eider/catalog";
import { CatalogError, EiderError, QueryError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { type ErrorContext, isFatal, readDuckDBError, toQueryError } from "./duckdb-error.js";
import { EngineQuery, type QueryRunner, type RunningQuery } from "./engine-query.js";
import { GivenFiles } from "./given-tables.js";
import { HotFiles } from "./hot-files.js";
import { Interrupter } from "./interrupter.js";
import { LocalFiles } from "./local-files.js";
import { isMissingColumn, MissingColumns, startWithColumns } from "./missing-columns.js";
import { type InstanceSettings, loadNative, type Native, type NativeDatabase, openInstance } from "./native.js";
import { once } from "./once.js";
import { matchParameters } from "./parameters.js";
import { ParquetImporter } from "./parquet-import.js";
import { type Plan, Planner, type PlanOptions } from "./plan.js";
import type { EngineQueryOptions, ParquetImport, Query, QueryColumn } from "./query.js";
import { explainReads, totalReads } from "./reads.js";
import { LakeRelations } from "./relations.js";
import { rewrite } from "./rewrite.js";
import { Run } from "./run.js";
import { COLUMN_OPTIMIZERS, PLANNING_OPTIMIZERS, ScanPlanner } from "./scan-planner.js";
import type { ScopeOptions } from "./scope/options.js";
import { ProcessPool } from "./scope/process-pool.js";
import { ScopePlanner } from "./scope/scope-planner.js";
import { ScopedEngine } from "./scope/scoped-engine.js";
import { Session, type SessionPlan } from "./session.js";
import type { SqlInput } from "./sql.js";
import { quoteText } from "./sql-tokens.js";
import { parseStatement, type Statement } from "./statement.js";
import { TempFolder } from "./temp-folder.js";
import { charOffset } from "./utf8-offset.js";

export type SqlAccess = "all" | "lake" | { readonly folders: readonly string[] };

export interface EngineOptions {
  readonly catalog: Catalog;
  readonly store: ObjectStore;
  /** DuckDB's memory limit in bytes. Default: DuckDB's own, 80% of the machine's memory. */
  readonly memoryBytes?: number;
  /** Default: one per core. */
  readonly threads?: number;
  /** Where local copies and spilled data go. Default: the system's folder for temporary files. */
  readonly tempDir?: string;
  /**
   * Bytes of the local copies of data files, where the store has no files of its own. All files of one query must fit.
   * Default 4 GiB.
   */
  readonly cacheBytes?: number;
  /** Folder of those copies, which other processes may share. Default: one of its own, which goes with the engine. */
  readonly cacheFolder?: string;
  /** Of larger data files, only the columns that a query reads are copied. Bytes, default 16 MiB. */
  readonly wholeFileBytes?: number;
  /**
   * What SQL may touch besides the tables. `all` (default): whatever the process may. `lake`: files below the lake's
   * own folder, for reading only; with folders, files below those too.
   */
  readonly sqlAccess?: SqlAccess;
  /** Of the process that SQL from outside runs in. Default: the file beside this one, as built. */
  readonly scopeEntry?: URL;
}

/** First words of a view's text. */
const VIEW_BEGINS: ReadonlySet<string> = new Set(["SELECT", "FROM", "VALUES", "TABLE", "WITH", "("]);

/** Idle sessions kept for the next query over the same tables at the same snapshot. */
const IDLE_SESSIONS = 4;

export class QueryEngine implements QueryRunner, AsyncDisposable {
  readonly #native: Native;
  readonly #options: EngineOptions;
  readonly #temp: TempFolder;
  readonly #files: LocalFiles;
  readonly #hot: HotFiles;
  readonly #importer: ParquetImporter;
  readonly #relations: LakeRelations;
  readonly #planner: Planner;
  readonly #scans: ScanPlanner;
  readonly #scopes: ProcessPool;
  readonly #running = new Set<{ stop(reason: unknown): Promise<void> }>();
  readonly #retiring = new Set<Promise<void>>();
  #idle: Session[] = [];
  #instance: Promise<NativeDatabase>;
  #closed: Promise<void> | undefined;

  private constructor(native: Native, options: EngineOptions, temp: TempFolder) {
    this.#native = native;
    this.#options = options;
    this.#temp = temp;
    const { store, cacheBytes, cacheFolder, wholeFileBytes } = options;
    this.#files = new LocalFiles({
      store,
      temp,
      ...(cacheBytes !== undefined && { cacheBytes }),
      ...(cacheFolder !== undefined && { cacheFolder }),
      ...(wholeFileBytes !== undefined && { wholeFileBytes }),
      onFull: () => this.#closeIdle(),
    });
    // Plans need no cores and little memory of their own.
    const scanPlanner = (optimizers: readonly string[]): ScanPlanner =>
      new ScanPlanner(native, () => this.#openInstance({ threads: 1, optimizers }));
    this.#scans = scanPlanner(PLANNING_OPTIMIZERS);
    this.#hot = new HotFiles(options.catalog, join(temp.path, "hot"));
    this.#relations = new LakeRelations(options.catalog, (sql) => this.#scans.parse(sql));
    this.#planner = new Planner({
      catalog: options.catalog,
      relations: this.#relations,
      files: this.#files,
      hot: this.#hot,
      given: new GivenFiles(join(temp.path, "given")),
      scans: this.#scans,
      columns: scanPlanner(COLUMN_OPTIMIZERS),
    });
    this.#scopes = new ProcessPool({ entry: options.scopeEntry, cwd: temp.path });
    this.#importer = new ParquetImporter(native, join(temp.path, "import"));
    this.#instance = this.#openInstance();
  }

  /**
   * Loads DuckDB and opens an instance of it.
   * @throws CatalogError `native_module_missing`; StoreError `temp_folder`
   */
  static async open(options: EngineOptions): Promise<QueryEngine> {
    const native = await loadNative();
    const temp = await TempFolder.create(options.tempDir ?? tmpdir());
    const engine = new QueryEngine(native, options, temp);
    try {
      await engine.#instance;
      return engine;
    } catch (error) {
      await temp[Symbol.asyncDispose]();
      throw error;
    }
  }

  #openInstance(special: Pick<InstanceSettings, "threads" | "optimizers"> = {}): Promise<NativeDatabase> {
    const { memoryBytes, threads } = this.#options;
    return openInstance(this.#native, {
      spillDir: join(this.#temp.path, "spill"),
      ...(memoryBytes !== undefined && { memoryBytes }),
      ...(threads !== undefined && { threads }),
      ...(this.#isConfined && { confinedTo: { folders: this.#folders() } }),
      ...special,
    });
  }

  get #isConfined(): boolean {
    return (this.#options.sqlAccess ?? "all") !== "all";
  }

  /** Where data files are: the store's folder, if it has one, and the local copies; and the folders that are given. */
  #folders(): string[] {
    const { store, cacheFolder, sqlAccess } = this.#options;
    const inStore = store.localPath?.("_eider");
    const given = typeof sqlAccess === "object" ? sqlAccess.folders.map((folder) => resolve(folder)) : [];
    return [
      ...(inStore === undefined ? [] : [dirname(inStore)]),
      ...(cacheFolder ? [cacheFolder] : []),
      this.#temp.path,
      ...given,
    ];
  }

  /** A query that runs when it is used. */
  query<R>(input: SqlInput, options: EngineQueryOptions = {}): Query<R> {
    return new EngineQuery<R>(async () => this, input, options);
  }

  /**
   * Starts a statement. `all` runs it to its end first, `stream` computes rows as they are read.
   * @throws QueryError, NotFoundError `snapshot_not_found`, LimitError, CorruptionError, or the signal's reason
   */
  async start(input: SqlInput, options: EngineQueryOptions, mode: "stream" | "all"): Promise<RunningQuery> {
    return startWithColumns((allColumns) => this.#start(input, { ...options, allColumns }, mode));
  }

  async #start(input: SqlInput, options: PlanOptions, mode: "stream" | "all"): Promise<RunningQuery> {
    const startedAt = performance.now();
    const prepared = await this.#prepare(input, options);
    const { run, plan } = prepared;
    let rows = 0;
    try {
      const { shape, chunks } = await (mode === "all" ? run.materialize() : run.stream());
      const explained = await prepared.explained?.materialize();
      return {
        shape,
        async *chunks() {
          for await (const chunk of chunks()) {
            prepared.interrupter.throwIfStopped();
            rows += chunk.length;
            yield chunk;
          }
          if (explained) for await (const chunk of explained.chunks()) yield chunk;
          prepared.finish();
        },
        stats: () => ({
          snapshot: plan.snapshot,
          ...totalReads(plan.reads),
          elapsedMs: performance.now() - startedAt,
          rows,
        }),
        close: prepared.close,
      };
    } catch (error) {
      await prepared.close();
      throw error;
    }
  }

  /** Names and types of a statement's columns. */
  async columns(input: SqlInput, options: EngineQueryOptions): Promise<QueryColumn[]> {
    const prepared = await this.#prepare(input, { ...options, describes: true });
    try {
      const columns = await prepared.run.describe();
      prepared.finish();
      return [...columns];
    } finally {
      await prepared.close();
    }
  }

  /**
   * Runs statements from outside: over the granted tables and within limits, in a process of their own.
   * @throws InvalidInputError `bad_scope`
   */
  scope(scope: ScopeOptions): QueryRunner {
    this.#assertOpen();
    return new ScopedEngine({
      scope,
      pool: this.#scopes,
      spillDir: join(this.#temp.path, "spill"),
      planner: new ScopePlanner({
        catalog: this.#options.catalog,
        files: this.#files,
        hot: this.#hot,
        planner: this.#planner,
        scans: this.#scans,
        grants: scope.tables,
        history: scope.history ?? false,
      }),
    });
  }

  /**
   * The SELECT that plain DuckDB runs to read a table as `lake.sql` does.
   * @throws NotFoundError `unknown_table`, `snapshot_not_found`; QueryError `hot_rows` if some rows are in no file
   */
  async filesSql(tableName: string, at?: number | string | Date): Promise<string> {
    this.#assertOpen();
    return this.#planner.tableSql(tableName, at);
  }

  /**
   * A text as that of a view: without what follows its `;`.
   * @throws QueryError `bad_view`, and whatever is wrong with it as a query
   */
  async viewText(name: string, sql: string): Promise<string> {
    this.#assertOpen();
    const { text, opening, parameters, timeTravels } = parseStatement(sql);
    const bad = (reason: string, position: number): never => {
      throw new QueryError("bad_view", reason, { position, subject: name });
    };
    if (!VIEW_BEGINS.has(opening)) bad("a view is a SELECT", 0);
    if (parameters[0]) bad("a view has no parameters: write the value", parameters[0].start);
    if (timeTravels[0]) bad("a view shows its tables at the snapshot of the query, without AT", timeTravels[0].start);
    const problem = await this.#relations.viewProblem(name, text);
    try {
      await this.columns({ text, params: [] }, {});
    } catch (error) {
      // Of a misspelt text or name DuckDB says more.
      if (problem && !(error instanceof QueryError && /^(syntax_error|unknown_table)$/.test(error.code))) throw problem;
      throw error;
    }
    if (problem) throw problem;
    return text.trim();
  }

  /**
   * A foreign Parquet file, decoded by DuckDB. Errors call it `name`, by default its path.
   * @throws InvalidInputError `bad_parquet`, SchemaError
   */
  async openParquet(path: string, name?: string): Promise<ParquetImport> {
    this.#assertOpen();
    return this.#importer.open(path, name);
  }

  /** Ends running queries with `engine_closed` and lets go of memory and temporary files. */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      const reason = new QueryError("engine_closed", "the lake was closed while the query ran");
      await Promise.allSettled([...this.#running].map((running) => running.stop(reason)));
      await this.#scopes[Symbol.asyncDispose]();
      await this.#closeIdle();
      await this.#files[Symbol.asyncDispose]();
      await this.#importer[Symbol.asyncDispose]();
      await this.#planner[Symbol.asyncDispose]();
      this.#native.close_sync(await this.#instance);
      await this.#temp[Symbol.asyncDispose]();
    })();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #assertOpen(): void {
    if (this.#closed) throw new CatalogError("lake_closed", "the lake is closed: open it again");
  }

  #assertAllowed(statement: Statement): void {
    if (this.#isConfined && statement.writesFile) {
      throw new QueryError(
        "read_only_sql",
        'COPY … TO is refused: SQL of this lake only reads; open it with sqlAccess: "all" to write files',
      );
    }
  }

  /** Plans a statement and gives it a session. */
  async #prepare(input: SqlInput, options: PlanOptions) {
    this.#assertOpen();
    const statement = parseStatement(input.text);
    this.#assertAllowed(statement);
    const values = matchParameters(statement.parameters, input.params);
    const interrupter = new Interrupter(this.#native, options);
    let session: Session | undefined;
    let finished = false;
    const planning = (async () => {
      interrupter.throwIfStopped();
      const plan = await this.#planner.plan(statement, values, { ...options, signal: interrupter.signal });
      const own = await this.#session(plan.session, statement.needsAllTables).catch((error: unknown) =>
        this.#translate(error, plan, statement, () => undefined),
      );
      session = own;
      interrupter.throwIfStopped();
      const { sql, parameters, edits } = rewrite(statement, values, plan.travels, own);
      const run = new Run({
        native: this.#native,
        session: own,
        interrupter,
        sql,
        nests: statement.nests,
        parameters,
        translate: (error, prefixBytes) =>
          this.#translate(error, withFailures(plan, own), statement, (offset) => {
            const position = charOffset(sql, offset - prefixBytes);
            return position === undefined ? undefined : edits.originalPosition(position);
          }),
      });
      const explained = statement.explains && plan.reads.length > 0 ? explanation(run, plan) : undefined;
      return { run, plan, explained };
    })();
    const close = once(async () => {
      await planning.catch(() => undefined);
      interrupter[Symbol.dispose]();
      await interrupter.idle();
      if (session) await this.#giveBack(session, finished);
      this.#running.delete(running);
    });
    const running = {
      stop: (reason: unknown): Promise<void> => {
        interrupter.stop(reason);
        return close();
      },
    };
    this.#running.add(running);
    try {
      const finish = (): void => {
        finished = true;
      };
      return { ...(await planning), interrupter, close, finish };
    } catch (error) {
      await close();
      throw error;
    }
  }

  /**
   * A session over an instance of its own where the statement can see the instance's other databases, those of the
   * queries that run at the same time.
   */
  async #session(plan: SessionPlan, alone: boolean): Promise<Session> {
    const index = alone ? -1 : this.#idle.findIndex((session) => session.key === plan.key);
    if (index >= 0) {
      const session = this.#idle.splice(index, 1)[0]!;
      await session.adopt(plan);
      return session;
    }
    try {
      if (alone) return await Session.alone(this.#native, await this.#openInstance(), plan);
      return await Session.open(this.#native, await this.#instance, plan);
    } catch (error) {
      await plan.files?.release();
      await plan.release?.();
      throw error;
    }
  }

  /** When it is done, sessions hold no files but those of queries that run. */
  async #closeIdle(): Promise<void> {
    for (const session of this.#idle.splice(0)) this.#retire(session);
    await Promise.all(this.#retiring);
  }

  async #giveBack(session: Session, finished: boolean): Promise<void> {
    if (!finished || this.#closed) return session.close();
    if (session.servesOnce) return this.#retire(session);
    await session.rest();
    this.#idle.push(session);
    if (this.#idle.length > IDLE_SESSIONS) this.#retire(this.#idle.shift()!);
  }

  /** Closes a session that nobody waits for; a database that stays attached harms nobody. */
  #retire(session: Session): void {
    const closing = session.close().catch(() => undefined);
    this.#retiring.add(closing);
    void closing.finally(() => this.#retiring.delete(closing));
  }

  /** Throws the error for the user in place of what a native call threw. */
  async #translate(
    error: unknown,
    plan: Plan,
    statement: Statement,
    positionOf: ErrorContext["positionOf"],
  ): Promise<never> {
    if (error instanceof EiderError && !(error instanceof QueryError && error.code === "incomplete_result"))
      throw error;
    const read = readDuckDBError(error);
    if (isFatal(read)) this.#replaceInstance();
    if (isMissingColumn(read.message)) throw new MissingColumns(error);
    if (!HARMLESS.has(read.type)) {
      const fault = await this.#files.findFault(plan.files, read.message);
      if (fault) throw fault;
    }
    if (error instanceof EiderError) throw error;
    throw toQueryError(read, { sql: statement.text, positionOf, tables: plan.tables, broken: plan.broken }, error);
  }

  /** After a fatal error an instance refuses everything. */
  #replaceInstance(): void {
    const old = this.#instance;
    this.#instance = this.#openInstance();
    for (const session of this.#idle.splice(0)) void session.release();
    void old.then((database) => this.#native.close_sync(database)).catch(() => undefined);
  }
}

/** The plan with the views that could not be made of its tables. */
function withFailures(plan: Plan, { failures }: Session): Plan {
  if (failures.size === 0) return plan;
  const problems = [...failures].map(([name, { message }]) => [name, message.split("\n", 1)[0]!] as const);
  return { ...plan, broken: new Map([...plan.broken, ...problems]) };
}

/** What the lake adds to DuckDB's EXPLAIN, as one more row of it. */
function explanation(run: Run, { reads }: Plan): Run {
  return run.another(`SELECT 'files' AS explain_key, ${quoteText(explainReads(reads))} AS explain_value`);
}

/** Errors that say nothing about files. */
const HARMLESS: ReadonlySet<string> = new Set([
  "Parser",
  "Binder",
  "Catalog",
  "Conversion",
  "Out of Range",
  "Out of Memory",
]);
