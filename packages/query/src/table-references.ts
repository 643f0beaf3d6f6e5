/** The tables that a SELECT reads, by DuckDB's own parse of it (`json_serialize_sql`, DuckDB 1.5). */

import { nameKey } from "@eider/core";

/** A table as a text names it. */
export interface TableReference {
  /** `[name]` or `[namespace, name]`. */
  readonly path: readonly string[];
  /** Bytes of UTF-8 into the SQL, to the first character of the path. */
  readonly position: number;
}

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Every mention of a table; names that `WITH` gives are none, where they hide one. */
export function tableReferences(serialized: string): TableReference[] {
  const found: TableReference[] = [];
  visit(JSON.parse(serialized) as Json, new Set(), found);
  return found;
}

/** @param hidden names that stand for queries of `WITH` here */
function visit(node: Json | undefined, hidden: ReadonlySet<string>, found: TableReference[]): void {
  if (Array.isArray(node)) for (const child of node) visit(child as Json, hidden, found);
  if (!isObject(node)) return;
  if (node.type === "BASE_TABLE" && typeof node.table_name === "string") {
    const { schema_name: namespace, table_name: name, query_location: position } = node;
    const path = typeof namespace === "string" && namespace !== "" ? [namespace, name] : [name];
    if (path.length > 1 || !hidden.has(nameKey(name))) found.push({ path, position: Number(position) });
    return;
  }
  const own = new Set(hidden);
  if (isObject(node.cte_map)) {
    for (const { key, value } of node.cte_map.map as readonly { readonly key: string; readonly value: Json }[]) {
      // Those after it see it, and the query itself; it sees itself only if it is recursive, see below.
      visit(value, own, found);
      own.add(nameKey(key));
    }
  }
  for (const [key, child] of Object.entries(node)) {
    if (key === "cte_map") continue;
    const recursive = node.type === "RECURSIVE_CTE_NODE" && key === "right";
    visit(child, recursive ? new Set([...own, nameKey(String(node.cte_name))]) : own, found);
  }
}

function isObject(json: Json | undefined): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}
