/** `lake.sql`: the ways to write a statement and its values. */

import { parseTableName } from "@eider/catalog";
import { InvalidInputError } from "@eider/core";
import { EngineQuery, type QueryRunner } from "./engine-query.js";
import type { ParameterValues } from "./parameters.js";
import type { Query, QueryOptions, Sql, SqlParam } from "./query.js";
import type { SqlFragment } from "./scope/options.js";
import { quoteName } from "./sql-tokens.js";

export interface SqlInput {
  readonly text: string;
  readonly params: ParameterValues;
}

/** The `sql` function over an engine that is opened when a query first runs. */
export function makeSql(engine: () => Promise<QueryRunner>, options: QueryOptions = {}): Sql {
  return (<R>(first: unknown, ...rest: readonly unknown[]): Query<R> =>
    new EngineQuery<R>(engine, toInput(first, rest), options)) as Sql;
}

/** The rows that a batch brought to its table, as of the snapshot of its commit. */
export function batchQuery<R>(
  engine: () => Promise<QueryRunner>,
  { table, batchId, snapshot }: { readonly table: string; readonly batchId: string; readonly snapshot: number },
  options: Pick<QueryOptions, "values" | "signal" | "timeoutMs">,
): Query<R> {
  const { namespace, name } = parseTableName(table);
  const text = `FROM ${namespace === undefined ? "" : `${quoteName(namespace)}.`}${quoteName(name)}`;
  return new EngineQuery<R>(engine, { text, params: [] }, { ...options, at: snapshot, batchId });
}

/** A piece of SQL with its values: ``sql`tenant = ${id}` ``. For the grants of `lake.scope`. */
export function sql(strings: TemplateStringsArray, ...values: readonly SqlParam[]): SqlFragment {
  return { text: templateText(strings), params: values };
}

function toInput(first: unknown, rest: readonly unknown[]): SqlInput {
  if (isTemplate(first)) return { text: templateText(first), params: rest };
  if (typeof first === "string") return { text: first, params: (rest[0] ?? []) as ParameterValues };
  if (typeof first === "object" && first !== null && typeof (first as { sql?: unknown }).sql === "string") {
    const { sql, parameters, params } = first as {
      sql: string;
      parameters?: readonly unknown[];
      params?: readonly unknown[];
    };
    return { text: sql, params: parameters ?? params ?? [] };
  }
  throw new InvalidInputError(
    "bad_query",
    "sql takes a template, a text with its values, or an object { sql, parameters }",
  );
}

function isTemplate(value: unknown): value is TemplateStringsArray {
  return Array.isArray(value) && Array.isArray((value as { raw?: unknown }).raw);
}

/** Values become `$1`, `$2`, …, kept apart from words and digits beside them. */
function templateText(strings: TemplateStringsArray): string {
  let text = "";
  for (let i = 0; i < strings.length; i++) {
    // Text with an invalid escape has no cooked form.
    const part = strings[i] ?? strings.raw[i]!;
    if (i > 0)
      text += `${/[\w$\u0080-\uffff]$/.test(text) ? " " : ""}$${i}${/^[\w$\u0080-\uffff]/.test(part) ? " " : ""}`;
    text += part;
  }
  return text;
}
