/** Which tables a statement means, at which snapshots, and as what SQL they are shown to DuckDB. */

import {
  ANY_FILE,
  type Catalog,
  type FilePredicate,
  type ListedFile,
  parseTableName,
  predicateKey,
  type TableInfo,
} from "@eider/catalog";
import { NotFoundError, nameKey, QueryError } from "@eider/core";
import {
  batchFiles,
  changesReads,
  changesView,
  hotBatches,
  resolveChanges,
  type TableChanges,
} from "./changes-table.js";
import { brokenView, unknownTableMessage } from "./duckdb-error.js";
import type { GivenFiles, HeldGiven } from "./given-tables.js";
import type { HotFile, HotFiles } from "./hot-files.js";
import type { HeldFiles, LocalFiles, WantedFile } from "./local-files.js";
import { type BoundParameters, literalOf } from "./parameters.js";
import type { EngineQueryOptions } from "./query.js";
import { type TableReads, tableReads } from "./reads.js";
import { type LakeRelations, namesOf } from "./relations.js";
import { remember } from "./remember.js";
import { rewriteQuery } from "./rewrite.js";
import type { ScanPlanner, StatementScans } from "./scan-planner.js";
import type { Session, SessionPlan, TableView } from "./session.js";
import { snapshotOf, travelTarget } from "./snapshot.js";
import type { Statement } from "./statement.js";
import { namedSystemTables, systemTable } from "./system-tables.js";
import { tableSql, widenedFields } from "./table-sql.js";
import { type Shown, viewOf } from "./views.js";

/** Plans and views kept, so that a repeated query asks the catalog for its head alone. */
const CACHED_PLANS = 64;
const CACHED_VIEWS = 64;
/** Schema versions that are looked up for what a table's files hold; of more, the columns' types count as unknown. */
const KNOWN_VERSIONS = 8;

/** Some files of a table at a snapshot. They never change. */
export interface ResolvedTable {
  /** Equal keys have equal files. */
  readonly key: string;
  readonly table: TableInfo;
  readonly files: readonly ListedFile[];
}

export interface Plan {
  readonly snapshot: number;
  readonly session: SessionPlan;
  /** Those that may hold rows that the statement wants. */
  readonly files: readonly WantedFile[];
  readonly reads: readonly TableReads[];
  /** All names at the query's snapshot, of tables and views. */
  readonly tables: readonly string[];
  /** By `nameKey`: why a view cannot be shown. */
  readonly broken: ReadonlyMap<string, string>;
  /** Snapshot of each `AT`, in the statement's order. */
  readonly travels: readonly number[];
}

export interface PlanOptions extends EngineQueryOptions {
  /** Whether any column may be read, whatever the plan says. Default false. */
  readonly allColumns?: boolean;
  /** Whether only names and types of the result are wanted: then no file is copied, where the statement can be planned. */
  readonly describes?: boolean;
}

/** A statement's tables and views, by snapshot: the main one, and those that `AT` names. */
interface Tables {
  readonly snapshot: number;
  readonly main: Shown;
  readonly others: ReadonlyMap<number, Shown>;
  readonly travels: readonly number[];
  /** What the calls of `eider.changes` show, in the statement's order. */
  readonly changes: readonly TableChanges[];
  readonly given: HeldGiven["tables"];
}

export interface PlannerOptions {
  readonly catalog: Catalog;
  readonly relations: LakeRelations;
  readonly files: LocalFiles;
  readonly hot: HotFiles;
  readonly given: GivenFiles;
  readonly scans: ScanPlanner;
  /** Asked for columns alone, where they matter. */
  readonly columns: ScanPlanner;
}

export class Planner implements AsyncDisposable {
  readonly #catalog: Catalog;
  readonly #relations: LakeRelations;
  readonly #files: LocalFiles;
  readonly #hot: HotFiles;
  readonly #given: GivenFiles;
  readonly #scans: ScanPlanner;
  /** Asked for columns alone, where they matter. */
  readonly #columns: ScanPlanner;
  /** Of statements whose plan is the same at any time. */
  readonly #plans = new Map<string, Promise<StatementScans | undefined>>();
  readonly #tables = new Map<string, Promise<ResolvedTable>>();
  /** Where the same file always has the same path. */
  readonly #views = new Map<string, Promise<TableView>>();

  constructor({ catalog, relations, files, hot, given, scans, columns }: PlannerOptions) {
    this.#catalog = catalog;
    this.#relations = relations;
    this.#files = files;
    this.#hot = hot;
    this.#given = given;
    this.#scans = scans;
    this.#columns = columns;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scans[Symbol.asyncDispose]();
    await this.#columns[Symbol.asyncDispose]();
  }

  /**
   * @throws QueryError `unknown_table` (for `AT`), `bad_snapshot`; NotFoundError `snapshot_not_found`
   * @throws CorruptionError, LimitError where local copies of objects are made
   */
  async plan(said: Statement, values: BoundParameters, options: PlanOptions): Promise<Plan> {
    const snapshot = await snapshotOf(this.#catalog, options.at);
    if (!options.tables) return this.#planAt(snapshot, said, values, options, NONE_GIVEN);
    const taken = namesOf(await this.#relations.list(snapshot));
    const given = await this.#given.hold(options.tables, (name) => wants(said, name), taken, options.signal);
    try {
      return await this.#planAt(snapshot, said, values, options, given);
    } catch (error) {
      await given.release();
      throw error;
    }
  }

  async #planAt(
    snapshot: number,
    said: Statement,
    values: BoundParameters,
    { batchId, prune = true, allColumns = false, describes = false, signal }: PlanOptions,
    given: HeldGiven,
  ): Promise<Plan> {
    const all = await this.#relations.list(snapshot);
    const main = await this.#relations.expand(all, (name) => wants(said, name));
    const changes = await Promise.all(
      said.changesCalls.map((call) => resolveChanges(this.#catalog, call, values, snapshot)),
    );
    const tables: Tables = { snapshot, main, changes, given: given.tables, ...(await this.#travel(said, values)) };
    const statement = withViews(said, [main, ...tables.others.values()]);
    const scans = prune ? await this.#planScans(statement, values, tables) : undefined;
    const files: WantedFile[] = [];
    const keys: string[] = [];
    const resolve = async (of: readonly TableInfo[], then: number, travel?: number): Promise<ResolvedTable[]> => {
      const wanted = of.map((table) => scans?.predicate(table, travel) ?? ANY_FILE);
      const resolved = await Promise.all(
        of.map((table, i) =>
          describes && scans && !this.#files.areInPlace
            ? withoutFiles(table)
            : this.resolve(table, then, wanted[i]!, batchId),
        ),
      );
      for (const { table, files: found } of resolved) {
        const columns = allColumns ? undefined : scans?.columns(table, travel);
        files.push(...found.map((file) => ({ file, columns })));
      }
      keys.push(resolved.map(({ key }) => key).join());
      return resolved;
    };
    const here = await resolve(main.tables, snapshot);
    const system = namedSystemTables(said.names);
    const of = { catalog: this.#catalog, ...all, snapshot };
    const systemViews: TableView[] = await Promise.all(system.map((name) => systemTable(name, of)));
    if (system.length > 0) keys.push(`eider:${snapshot}:${system.join()}`);
    if (statement.comparesNulls) keys.push("guarded");
    const now = scans?.now;
    if (now !== undefined) keys.push(`now:${now}`);
    const there = new Map<number, readonly ResolvedTable[]>();
    for (const [then, { tables: of }] of tables.others) there.set(then, await resolve(of, then, then));
    for (const { table, after, until, appends } of changes) {
      keys.push(`changes:${table.id}:${after}:${until}`);
      files.push(...appends.flatMap((batch) => batch.files.map((file) => ({ file, columns: undefined }))));
    }
    for (const shown of [main, ...tables.others.values()]) keys.push(viewsKey(shown));
    // All at once: two queries that each hold some of their files could wait for each other.
    const held = await this.#files.hold(files, signal);
    const reads: TableReads[] = [];
    const holds: { release(): Promise<void> }[] = [];
    const release = async (): Promise<void> => {
      for (const hold of holds) await hold.release();
    };
    keys.push(held.key);
    try {
      const show = async (of: readonly ResolvedTable[], then: number, { views: own }: Shown): Promise<TableView[]> => {
        const views: TableView[] = [];
        for (const resolved of of) {
          const hot =
            batchId === undefined
              ? await this.#hot.hold(resolved.table, then, signal)
              : await this.#hot.holdBatches(resolved.table, [{ snapshot: then, batchId }]);
          holds.push(hot);
          reads.push(tableReads(resolved.table, then, resolved.files, held));
          views.push(await this.view(resolved, held, hot.files, statement.comparesNulls));
        }
        return [...views, ...own.map(viewOf)];
      };
      for (const [i, each] of changes.entries()) {
        const hot = await this.#hot.holdBatches(each.table, hotBatches(each), signal);
        holds.push(hot);
        reads.push(changesReads(each, held, hot));
        const own = [...batchFiles(each, held), ...hot.files];
        const guarded = await this.#guarded(each.table, own, statement.comparesNulls);
        systemViews.push(changesView(i, each, own, guarded));
      }
      const views = [...systemViews, ...given.tables, ...(await show(here, snapshot, main))];
      const others = new Map<number, readonly TableView[]>();
      for (const [then, of] of there) others.set(then, await show(of, then, tables.others.get(then)!));
      return {
        snapshot,
        tables: [...namesOf(all), ...given.names],
        broken: main.broken,
        files,
        reads,
        travels: tables.travels,
        session: {
          key: keys.join(";"),
          main: views,
          others,
          now,
          files: held,
          release: async () => {
            await release();
            await given.release();
          },
          servesOnce: given.tables.length > 0,
        },
      };
    } catch (error) {
      await held.release();
      await release();
      throw error;
    }
  }

  /** The tables and views that `AT` names. */
  async #travel(statement: Statement, values: BoundParameters): Promise<Pick<Tables, "others" | "travels">> {
    const travels: number[] = [];
    const named = new Map<number, Set<string>>();
    for (const travel of statement.timeTravels) {
      const then = await snapshotOf(this.#catalog, travelTarget(travel, values));
      travels.push(then);
      const name = travel.path.join(".").toLowerCase();
      const { tables, views } = await this.#relations.list(then);
      const found = [...tables, ...views].find((one) => sqlName(one.name).toLowerCase() === name);
      if (!found) {
        throw new QueryError(
          "unknown_table",
          `there is no table ${JSON.stringify(travel.path.join("."))} at snapshot ${then}`,
          { position: travel.pathStart, subject: travel.path.join(".") },
        );
      }
      named.set(then, (named.get(then) ?? new Set()).add(found.name));
    }
    const others = new Map<number, Shown>();
    for (const [then, names] of named) {
      const shown = await this.#relations.expand(await this.#relations.list(then), (name) => names.has(name));
      for (const name of names) {
        const problem = shown.broken.get(nameKey(name));
        if (problem !== undefined) throw brokenView(name, `${problem}, at snapshot ${then}`);
      }
      others.set(then, shown);
    }
    return { others, travels };
  }

  /** What the statement reads of each table; undefined where there is nothing to choose from, or it cannot be told. */
  async #planScans(
    statement: Statement,
    values: BoundParameters,
    { main, others, travels, changes, given }: Tables,
  ): Promise<StatementScans | undefined> {
    if (statement.needsAllTables) return undefined;
    const tables = [main, ...others.values()].flatMap((of) => of.tables);
    const choosesColumns = tables.some(({ bytes }) => this.#files.choosesColumns(bytes));
    if (!choosesColumns && !tables.some(({ files }) => files > 1)) return undefined;
    const keyOf = (of: Shown): string =>
      [...of.tables.map((t) => `${t.name}:${t.id}:${t.schemaVersion}`), viewsKey(of)].join();
    const system = namedSystemTables(statement.names);
    const shown = [
      keyOf(main),
      ...[...others].map(([then, of]) => `${then}@${keyOf(of)}`),
      system.join(),
      changes.map(({ table }) => `${table.id}:${table.schemaVersion}`).join(),
      JSON.stringify(given.map(({ name, schema }) => [name, schema])),
    ].join(";");
    const literals = [...values].map(([name, value]) => [name, literalOf(value)]);
    const key = JSON.stringify([shown, travels, statement.text, literals]);
    const scans = await remember(this.#plans, key, CACHED_PLANS, async () => {
      const empty = ({ name, schema }: Pick<TableInfo, "name" | "schema">): TableView => ({
        name,
        sql: tableSql(schema, []),
        copied: true,
      });
      const show = ({ tables, views }: Shown): TableView[] => [...tables.map(empty), ...views.map(viewOf)];
      const plan: SessionPlan = {
        key: shown,
        main: [
          ...(await Promise.all(system.map((name) => systemTable(name)))),
          ...changes.map(({ table }, i) => ({ ...changesView(i, { table, rollbacks: [] }, []), copied: true })),
          ...given.map(empty),
          ...show(main),
        ],
        others: new Map([...others].map(([then, of]) => [then, show(of)])),
      };
      const toSql = (session: Session): string | undefined => rewriteQuery(statement, values, travels, session);
      const scans = await this.#scans.plan(plan, statement.names, toSql);
      // At another time another plan might hold.
      if (!choosesColumns || !scans || scans.now !== undefined) return scans;
      const narrower = await this.#columns.plan(plan, statement.names, toSql);
      return narrower ? scans.narrowedBy(narrower) : scans;
    });
    if (scans?.now !== undefined) this.#plans.delete(key);
    return scans;
  }

  /** The SELECT for one table; see `QueryEngine.filesSql`. */
  async tableSql(name: string, at: number | string | Date | undefined): Promise<string> {
    const snapshot = await snapshotOf(this.#catalog, at);
    const { tables } = await this.#relations.list(snapshot);
    const table = tables.find((t) => t.name.toLowerCase() === name.toLowerCase());
    if (table) {
      if (table.hotBatches > 0) throw hotRows(table, snapshot);
      const resolved = await this.resolve(table, snapshot, ANY_FILE);
      // Held until the engine closes, for nobody knows how long what is printed is used.
      const held = await this.#files.hold(resolved.files.map((file) => ({ file, columns: undefined })));
      return (await this.view(resolved, held, [])).sql;
    }
    const names = tables.map((t) => t.name);
    throw new NotFoundError("unknown_table", unknownTableMessage(name, names), { subject: name });
  }

  /** With a batch, only its own files: those that it came with at this snapshot. */
  resolve(table: TableInfo, snapshot: number, where: FilePredicate, batchId?: string): Promise<ResolvedTable> {
    const key = `${snapshot}:${table.id}:${predicateKey(where)}${batchId === undefined ? "" : JSON.stringify(batchId)}`;
    return remember(this.#tables, key, CACHED_VIEWS, async () => {
      const all = await this.#catalog.files(table.id, snapshot, { statistics: false, where });
      const own = (file: ListedFile): boolean => file.addedIn === snapshot && file.batchId === batchId;
      return { key, table, files: batchId === undefined ? all : all.filter(own) };
    });
  }

  /** The table's columns that some of the files may hold in a narrower type, where that matters. */
  async #widened(
    table: TableInfo,
    files: readonly Pick<ListedFile, "schemaVersion" | "addedIn">[],
  ): Promise<ReadonlySet<number> | undefined> {
    const others = new Map(files.map(({ schemaVersion, addedIn }) => [schemaVersion, addedIn]));
    others.delete(table.schemaVersion);
    if (others.size > KNOWN_VERSIONS) return widenedFields(table.schema, [undefined]);
    const schemas = await Promise.all(
      [...others].map(async ([version, addedIn]) => {
        // A file outlives the snapshot that it came with.
        const then = (await this.#relations.tablesThen(addedIn)).find(({ id }) => id === table.id);
        return then?.schemaVersion === version ? then.schema : undefined;
      }),
    );
    return widenedFields(table.schema, schemas);
  }

  /** The table's columns on which no filter may go to the files. */
  async #guarded(
    table: TableInfo,
    files: readonly Pick<ListedFile, "schemaVersion" | "addedIn">[],
    all: boolean,
  ): Promise<ReadonlySet<number> | undefined> {
    return all ? new Set(table.schema.fields.map(({ id }) => id)) : this.#widened(table, files);
  }

  /**
   * @param guardsAll whether no filter at all goes to the files: DuckDB 1.5 skips row groups whose nulls match
   *   `x < 1 OR x IS DISTINCT FROM 2`, for it takes a null for no match of the second half
   */
  view(
    { key, table, files }: ResolvedTable,
    held: HeldFiles,
    hot: readonly HotFile[],
    guardsAll = false,
  ): Promise<TableView> {
    const make = async (): Promise<TableView> => {
      const all = [...files, ...hot];
      const sources = [...files.map((file) => ({ path: held.path(file), rows: file.rows })), ...hot];
      const sql = tableSql(table.schema, sources, {
        guarded: await this.#guarded(table, all, guardsAll),
        isOwnSchema: all.every(({ schemaVersion }) => schemaVersion === table.schemaVersion),
      });
      return { name: table.name, sql };
    };
    return this.#files.areInPlace && hot.length === 0
      ? remember(this.#views, guardsAll ? `${key}:guarded` : key, CACHED_VIEWS, make)
      : make();
  }
}

const NONE_GIVEN: HeldGiven = { names: [], tables: [], release: async () => undefined };

/** Whether a statement may mean a table or view. */
function wants(statement: Statement, name: string): boolean {
  return statement.needsAllTables || isNamed(name, statement.names);
}

/** The statement as it is with the texts of the views that it sees. */
function withViews(statement: Statement, shown: readonly Shown[]): Statement {
  const texts = shown.flatMap(({ views }) => views.map(({ text }) => text));
  if (texts.length === 0) return statement;
  return {
    ...statement,
    names: new Set([statement.names, ...texts.map(({ names }) => names)].flatMap((names) => [...names])),
    comparesNulls: statement.comparesNulls || texts.some(({ comparesNulls }) => comparesNulls),
  };
}

/** A table as if it had no files, for who wants no more than its columns. */
function withoutFiles(table: TableInfo): ResolvedTable {
  return { key: `empty:${table.id}:${table.schemaVersion}`, table, files: [] };
}

function viewsKey({ views }: Shown): string {
  return views.map(({ view }) => `view:${view.name}:${view.createdIn}`).join();
}

/** Rows that are in no file, which plain DuckDB could not read. */
function hotRows({ name, hotBatches }: TableInfo, snapshot: number): QueryError {
  return new QueryError(
    "hot_rows",
    `${hotBatches === 1 ? "1 hot batch" : `${hotBatches} hot batches`} of table ${JSON.stringify(name)} at snapshot ` +
      `${snapshot} ${hotBatches === 1 ? "is" : "are"} in no file: ` +
      "asked for the newest snapshot of a lake that is open for writing, they are folded into files first",
    { subject: name },
  );
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
