/**
 * What SQL from outside may contain, judged by DuckDB's own parse of it (`json_serialize_sql`, DuckDB 1.5): a SELECT over
 * the granted tables, with functions that are known to be harmless. It is a whitelist: a node of a kind that is not known
 * here refuses the statement.
 */

import { nameKey } from "@eider/core";
import { FUNCTIONS, TABLE_FUNCTIONS } from "./functions.js";

/** Why a statement is refused. */
export interface Refusal {
  readonly reason: string;
  /** Bytes of UTF-8 into the SQL, where DuckDB tells. */
  readonly position?: number;
}

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
interface JsonObject {
  readonly [key: string]: Json | undefined;
}

const QUERIES: ReadonlySet<unknown> = new Set(["SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"]);

const EXPRESSIONS: ReadonlySet<unknown> = new Set([
  "BETWEEN",
  "CASE",
  "CAST",
  "COLLATE",
  "COLUMN_REF",
  "COMPARISON",
  "CONJUNCTION",
  "CONSTANT",
  "FUNCTION",
  "LAMBDA",
  "LAMBDA_REF",
  "OPERATOR",
  "PARAMETER",
  "POSITIONAL_REFERENCE",
  "STAR",
  "SUBQUERY",
  "WINDOW",
]);

/** What stands in FROM, but for tables and functions. */
const SOURCES: ReadonlySet<unknown> = new Set(["EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SUBQUERY"]);

/** Names of `WITH` that cannot be taken for a file where they mean nothing else. */
const PLAIN_NAME = /^[\p{L}_][\p{L}\p{N}_ ]*$/u;

/**
 * Judges what `json_serialize_sql` made of one statement.
 * @param tables granted, as `namespace.name` or `name`
 * @param databases the same at other snapshots, by the database that shows them
 * @returns undefined if it may run
 */
export function refusalOf(
  serialized: string,
  tables: readonly string[],
  databases: ReadonlyMap<string, readonly string[]> = new Map(),
): Refusal | undefined {
  const parsed = JSON.parse(serialized) as JsonObject;
  const { error, statements } = parsed;
  if (error !== false || !Array.isArray(statements) || statements.length !== 1) {
    return { reason: reasonOf(parsed) };
  }
  try {
    new Guard(tables, databases).visit(statements[0] as Json);
    return undefined;
  } catch (refused) {
    if (refused instanceof Refused) return refused.refusal;
    throw refused;
  }
}

/** Why a statement was not serialized: DuckDB does that with SELECT alone, if it can read it. */
function reasonOf({ error_type: type, error_message: message }: JsonObject): string {
  return type === "parser" ? `it cannot be parsed: ${String(message)}` : "only a SELECT can run here";
}

class Refused extends Error {
  readonly refusal: Refusal;

  constructor(reason: string, node: JsonObject) {
    super(reason);
    const position = node.query_location;
    // DuckDB's "nowhere" is the largest 64-bit number.
    this.refusal = { reason, ...(Number.isSafeInteger(position) && { position: position as number }) };
  }
}

class Guard {
  readonly #tables: ReadonlySet<string>;
  readonly #databases: ReadonlyMap<string, ReadonlySet<string>>;
  /** Names that `WITH` gives, from the outermost query to the one that is visited. */
  readonly #named: string[] = [];

  constructor(tables: readonly string[], databases: ReadonlyMap<string, readonly string[]>) {
    this.#tables = new Set(tables.map(nameKey));
    this.#databases = new Map([...databases].map(([name, granted]) => [name, new Set(granted.map(nameKey))]));
  }

  visit(node: Json | undefined): void {
    if (Array.isArray(node)) for (const child of node) this.visit(child as Json);
    else if (isObject(node)) this.#object(node);
  }

  #object(node: JsonObject): void {
    if ("cte_map" in node) this.#query(node);
    else if ("class" in node) this.#expression(node);
    else if ("alias" in node && "sample" in node) this.#source(node);
    else this.#children(node);
  }

  #children(node: JsonObject, but?: string): void {
    for (const [key, child] of Object.entries(node)) if (key !== but) this.visit(child);
  }

  #query(node: JsonObject): void {
    if (!QUERIES.has(node.type)) throw new Refused(`${String(node.type)} cannot be used here`, node);
    const outside = this.#named.length;
    const { map } = node.cte_map as { readonly map: readonly { readonly key: string; readonly value: Json }[] };
    for (const { key, value } of map) {
      if (!PLAIN_NAME.test(key)) throw new Refused(`WITH takes plain names here, not ${JSON.stringify(key)}`, node);
      // A recursive one sees itself, and those after it see it.
      this.#named.push(nameKey(key));
      this.visit(value);
    }
    if (typeof node.cte_name === "string") this.#named.push(nameKey(node.cte_name));
    this.#children(node, "cte_map");
    this.#named.length = outside;
  }

  #expression(node: JsonObject): void {
    if (!EXPRESSIONS.has(node.class)) throw new Refused(`${String(node.class)} cannot be used here`, node);
    if ("function_name" in node) {
      const name = String(node.function_name);
      if (!isDuckDBsOwn(node) || !FUNCTIONS.has(name.toLowerCase())) {
        throw new Refused(`the function ${name}() cannot be used here`, node);
      }
    }
    this.#children(node);
  }

  #source(node: JsonObject): void {
    switch (node.type) {
      case "BASE_TABLE":
        this.#table(node);
        break;
      case "TABLE_FUNCTION":
        this.#tableFunction(node);
        break;
      case "SHOW_REF":
        if (!/^(DESCRIBE|SUMMARY)$/.test(String(node.show_type)) || !isObject(node.query)) {
          throw new Refused("SHOW cannot be used here", node);
        }
        this.visit(node.query);
        break;
      default:
        if (!SOURCES.has(node.type)) throw new Refused(`${String(node.type)} cannot be used in FROM here`, node);
        this.#children(node);
    }
  }

  #table(node: JsonObject): void {
    const { catalog_name: catalog, schema_name: schema, table_name: table, at_clause: at } = node;
    if (at !== null && at !== undefined) throw new Refused("AT cannot be used here", node);
    // `AT` has become a database by now, in which tables without a namespace are in `main`.
    const database = this.#databases.get(String(catalog));
    const plain = schema === "" || (database !== undefined && schema === "main");
    const name = plain ? String(table) : `${String(schema)}.${String(table)}`;
    const known = database
      ? database.has(nameKey(name))
      : catalog === "" && (this.#tables.has(nameKey(name)) || (plain && this.#named.includes(nameKey(name))));
    if (!known) throw new Refused(`there is no table ${JSON.stringify(name)} here`, node);
  }

  #tableFunction(node: JsonObject): void {
    const call = node.function as JsonObject;
    const name = String(call.function_name);
    if (!isDuckDBsOwn(call) || !TABLE_FUNCTIONS.has(name.toLowerCase())) {
      throw new Refused(`the function ${name}() cannot be used in FROM here`, node);
    }
    this.#children(call);
    this.#children(node, "function");
  }
}

/** Whether a function is named without a place of its own: what the instance brings. */
function isDuckDBsOwn({ schema, catalog }: JsonObject): boolean {
  return (schema === "" || schema === "main") && (catalog === undefined || catalog === "" || catalog === "system");
}

function isObject(json: Json | undefined): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
