/** What a scope shows of the lake's tables, and which files a statement in it needs. */

import { ANY_FILE, allOf, type Catalog, type FilePredicate, parseTableName, type TableInfo } from "@eider/catalog";
import { type Field, InvalidInputError, NotFoundError, nameKey, QueryError } from "@eider/core";
import type { HeldHotFiles, HotFiles } from "../hot-files.js";
import type { LocalFiles } from "../local-files.js";
import { type BoundParameters, literalOf, matchParameters } from "../parameters.js";
import type { Planner, PlanOptions } from "../plan.js";
import type { QueryOptions } from "../query.js";
import { type TableReads, tableReads } from "../reads.js";
import { rewrite } from "../rewrite.js";
import { readScans, type ScanPlanner } from "../scan-planner.js";
import { aloneDatabases, type TableView } from "../session.js";
import { snapshotOf, travelTarget } from "../snapshot.js";
import { quoteName, quoteText } from "../sql-tokens.js";
import { parseStatement, type Statement } from "../statement.js";
import { tableSql } from "../table-sql.js";
import { TextEdits } from "../text-edits.js";
import type { SqlFragment, TableGrant } from "./options.js";
import type { ScopeReply, ScopeRequest } from "./protocol.js";

/**
 * Stops DuckDB from moving a statement's conditions to those of the grant: they might see rows that are not granted, and
 * an error, or the lack of one, would tell of them. (DuckDB 1.5 was not seen to run them first, but promises nothing.)
 */
const BARRIER = "LIMIT 9223372036854775807";

export interface ScopedPlan {
  readonly snapshot: number;
  readonly reads: readonly TableReads[];
  readonly views: readonly TableView[];
  /** Of the snapshots that `AT` names. */
  readonly others: ReadonlyMap<number, readonly TableView[]>;
  /** What is to run, and with which values. */
  readonly sql: string;
  readonly parameters: BoundParameters;
  /** Where a character of {@link sql} stands in the statement. */
  originalPosition(position: number): number;
  /** The time that the statement must see. */
  readonly now: string | undefined;
  /** Of the files, the only ones that may be opened. */
  readonly paths: readonly string[];
  release(): Promise<void>;
}

/** What a grant's condition needs of a table. */
interface ConditionScan {
  /** What a file must be able to hold for a row of it to be granted. */
  readonly predicate: FilePredicate;
  /** Field ids of the columns that it reads; undefined for all. */
  readonly columns: ReadonlySet<number> | undefined;
}

const NO_CONDITION: ConditionScan = { predicate: ANY_FILE, columns: new Set() };
const ANY_CONDITION: ConditionScan = { predicate: ANY_FILE, columns: undefined };

/** A table of the lake as far as it is granted. */
interface GrantedTable {
  readonly table: TableInfo;
  readonly fields: readonly Field[];
  /** Without parameters. */
  readonly where: string | undefined;
}

type Judge = (
  request: Extract<ScopeRequest, { op: "plan" }>,
  originalPosition: (position: number) => number,
) => Promise<Extract<ScopeReply, { readonly reply: "planned" }>>;

export interface ScopePlannerOptions {
  readonly catalog: Catalog;
  readonly files: LocalFiles;
  readonly hot: HotFiles;
  readonly planner: Planner;
  /** Of the trusted instance: for what the grants say, not for statements. */
  readonly scans: ScanPlanner;
  readonly grants: Readonly<Record<string, TableGrant>>;
  /** Whether `AT` may name other snapshots. */
  readonly history: boolean;
}

export class ScopePlanner {
  readonly #options: ScopePlannerOptions;
  readonly #grants: ReadonlyMap<string, { readonly columns: ReadonlySet<string> | undefined; readonly where?: string }>;
  /** What the grants say of files, by table and schema. */
  readonly #conditions = new Map<string, Promise<ConditionScan>>();
  readonly tableNames: readonly string[];

  /** @throws InvalidInputError `bad_scope`; QueryError where a grant's condition is no SQL */
  constructor(options: ScopePlannerOptions) {
    this.#options = options;
    this.tableNames = Object.keys(options.grants);
    this.#grants = new Map(
      Object.entries(options.grants).map(([name, { columns, where }]) => [
        nameKey(name),
        { columns: columns && new Set(columns.map(nameKey)), ...(where && { where: inlined(name, where) }) },
      ]),
    );
  }

  /**
   * @param judge has the process judge and plan the statement; `originalPosition` says where in it a character of the SQL stands
   * @throws QueryError `scope_refused`
   */
  async plan(
    statement: Statement,
    values: BoundParameters,
    { at, prune = true, allColumns = false, signal }: PlanOptions,
    judge: Judge,
  ): Promise<ScopedPlan> {
    const { catalog, files, hot, planner } = this.#options;
    const snapshot = await snapshotOf(catalog, at);
    const travels = await this.#travels(statement, values);
    const granted = await this.#granted(snapshot);
    const others = new Map<number, GrantedTable[]>();
    for (const then of travels) others.set(then, others.get(then) ?? (await this.#granted(then)));
    const { sql, parameters, edits } = rewrite(statement, values, travels, aloneDatabases(others.keys()));
    const originalPosition = (position: number): number => edits.originalPosition(position);
    const empty = ({ table, fields }: GrantedTable): TableView => ({
      name: table.name,
      sql: tableSql({ fields }, []),
      copied: true,
    });
    const { plan, session, now } = await judge(
      {
        op: "plan",
        statement,
        parameters: values,
        travels,
        sql,
        tables: granted.map(empty),
        others: new Map([...others].map(([then, tables]) => [then, tables.map(empty)])),
      },
      originalPosition,
    );
    const scans = prune && plan !== undefined && session ? readScans(plan, session, now) : undefined;
    const needed = [
      ...granted.map((each) => ({ each, of: snapshot, travel: undefined })),
      ...[...others].flatMap(([then, tables]) => tables.map((each) => ({ each, of: then, travel: then }))),
    ].filter(({ each }) => statement.names.has(nameKey(parseTableName(each.table.name).name)));
    const resolved = await Promise.all(
      needed.map(async ({ each, of, travel }) => {
        const wanted = scans?.predicate(shown(each), travel) ?? ANY_FILE;
        const condition = await this.#conditionOf(each);
        const columns = allColumns
          ? undefined
          : together(scans?.columns(shown(each), travel) ?? idsOf(each), condition.columns);
        return { ...(await planner.resolve(each.table, of, allOf([wanted, condition.predicate]))), columns };
      }),
    );
    const all = resolved.flatMap((table) => table.files);
    const held = await files.hold(
      resolved.flatMap(({ files: found, columns }) => found.map((file) => ({ file, columns }))),
      signal,
    );
    const heldHot: HeldHotFiles[] = [];
    const release = async (): Promise<void> => {
      for (const hold of [held, ...heldHot]) await hold.release();
    };
    try {
      const views: TableView[] = [];
      const past = new Map<number, TableView[]>([...others.keys()].map((then) => [then, []]));
      for (const [i, { each, of, travel }] of needed.entries()) {
        const own = await hot.hold(each.table, of, signal);
        heldHot.push(own);
        const view = await planner.view(resolved[i]!, held, own.files, statement.comparesNulls);
        const among = travel === undefined ? views : past.get(travel)!;
        among.push({ name: view.name, sql: grantSql(each, view.sql) });
      }
      const hotPaths = heldHot.flatMap((own) => own.files.map(({ path }) => path));
      return {
        snapshot,
        reads: resolved.map(({ table, files: read }, i) => tableReads(table, needed[i]!.of, read, held)),
        views,
        others: past,
        sql,
        parameters,
        originalPosition,
        now: scans?.now,
        paths: [...all.map((file) => held.path(file)), ...hotPaths],
        release,
      };
    } catch (error) {
      await release();
      throw error;
    }
  }

  /** A statement in place of `SHOW TABLES`: the names of what is granted, and there. */
  async tablesSql({ at }: QueryOptions): Promise<string> {
    const granted = await this.#granted(await snapshotOf(this.#options.catalog, at));
    return `SELECT unnest([${granted.map(({ table }) => quoteText(table.name)).join(", ")}]::VARCHAR[]) AS name`;
  }

  /** The snapshot of each `AT`. What there is beyond the grants is not told. */
  async #travels(statement: Statement, values: BoundParameters): Promise<number[]> {
    const travels: number[] = [];
    for (const travel of statement.timeTravels) {
      const refused = (reason: string): QueryError =>
        new QueryError("scope_refused", reason, { position: travel.start });
      if (!this.#options.history) throw refused("AT cannot be used here");
      try {
        travels.push(await snapshotOf(this.#options.catalog, travelTarget(travel, values)));
      } catch (error) {
        if (error instanceof NotFoundError) throw refused("there is no such snapshot");
        throw error;
      }
    }
    return travels;
  }

  async #granted(snapshot: number): Promise<GrantedTable[]> {
    const tables = snapshot === 0 ? [] : await this.#options.catalog.tables(snapshot);
    const views = snapshot === 0 ? [] : await this.#options.catalog.views(snapshot);
    const view = views.find(({ name }) => this.#grants.has(nameKey(name)));
    if (view) {
      const name = JSON.stringify(view.name);
      throw new InvalidInputError("bad_scope", `${name} is a view: grant the tables that it reads, with a condition`, {
        subject: view.name,
      });
    }
    return tables.flatMap((table) => {
      const grant = this.#grants.get(nameKey(table.name));
      if (!grant) return [];
      const { columns, where } = grant;
      const fields = table.schema.fields.filter(({ name }) => columns?.has(nameKey(name)) ?? true);
      return fields.length === 0 ? [] : [{ table, fields, where }];
    });
  }

  #conditionOf({ table, where }: GrantedTable): Promise<ConditionScan> | ConditionScan {
    if (where === undefined) return NO_CONDITION;
    const key = `${table.id}:${table.schemaVersion}`;
    const known = this.#conditions.get(key) ?? this.#planWhere(table, where);
    this.#conditions.set(key, known);
    known.catch(() => this.#conditions.delete(key));
    return known;
  }

  async #planWhere(table: TableInfo, where: string): Promise<ConditionScan> {
    const view: TableView = { name: table.name, sql: tableSql(table.schema, []), copied: true };
    const { namespace = "main", name } = parseTableName(table.name);
    const scans = await this.#options.scans.plan(
      { key: `grant:${table.id}:${table.schemaVersion}`, main: [view], others: new Map() },
      parseStatement(`SELECT (${where}\n)`).names,
      () => `SELECT 1 FROM ${quoteName(namespace)}.${quoteName(name)} WHERE (${where}\n)`,
    );
    // What is kept must hold at any time.
    if (scans === undefined || scans.now !== undefined) return ANY_CONDITION;
    return { predicate: scans.predicate(table), columns: scans.columns(table) };
  }
}

/** A table with the columns that are granted. */
function shown({ table, fields }: GrantedTable): TableInfo {
  return { ...table, schema: { fields } };
}

function idsOf({ fields }: GrantedTable): ReadonlySet<number> {
  return new Set(fields.map(({ id }) => id));
}

function together(a: ReadonlySet<number>, b: ReadonlySet<number> | undefined): ReadonlySet<number> | undefined {
  return b && new Set([...a, ...b]);
}

/** The granted part of a table, as a SELECT. */
export function grantSql({ fields, where }: Pick<GrantedTable, "fields" | "where">, table: string): string {
  const columns = fields.map(({ name }) => quoteName(name)).join(", ");
  if (where === undefined) return `SELECT ${columns} FROM (${table}\n)`;
  return `SELECT ${columns} FROM (${table}\n) WHERE (${where}\n) ${BARRIER}`;
}

/** A grant's condition with its values in it. */
function inlined(table: string, { text, params }: SqlFragment): string {
  const bad = (reason: string): never => {
    throw new InvalidInputError("bad_scope", `the condition of table ${JSON.stringify(table)} ${reason}`, {
      subject: table,
    });
  };
  const open = "SELECT (";
  const statement = parseStatement(`${open}${text}\n)`);
  if (statement.timeTravels.length > 0) bad("cannot use AT");
  const literal = literalText(statement, matchParameters(statement.parameters, params));
  if (literal === undefined)
    return bad("has a value that has no literal: use null, booleans, numbers, text, Date or lists");
  return literal.slice(open.length, -2);
}

/** A statement with its values in place of its parameters; undefined if one of them has no literal. */
function literalText({ text, parameters }: Statement, values: BoundParameters): string | undefined {
  const edits = new TextEdits(text);
  for (const { name, start, end } of parameters) {
    const literal = literalOf(values.get(name)!);
    if (literal === undefined) return undefined;
    edits.replace(start, end, literal);
  }
  return edits.apply();
}
