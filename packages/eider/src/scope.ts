/** `lake.scope`: SQL from outside. */

import {
  makeSql,
  type QueryEngine,
  type QueryOptions,
  type QueryRunner,
  type ScopeOptions,
  type SqlRunner,
} from "@eider/query";
import { checkScopeQueryOptions } from "./option-rules.js";

/** What `lake.scope` returns. */
export interface Scope extends SqlRunner {
  /** The same scope with options for its queries. `timeoutMs` only shortens what the scope's limits allow. */
  with(options: Omit<QueryOptions, "tables">): SqlRunner;
}

/** @param engine throws once the lake is closed */
export function makeScope(options: ScopeOptions, engine: () => Promise<QueryEngine>): Scope {
  let scoped: Promise<QueryRunner> | undefined;
  const runner = async (): Promise<QueryRunner> => {
    const open = engine();
    scoped ??= open.then((it) => it.scope(options));
    return scoped;
  };
  const withOptions = (queryOptions: Omit<QueryOptions, "tables">): SqlRunner => {
    checkScopeQueryOptions(queryOptions);
    return { sql: makeSql(runner, queryOptions) };
  };
  return { sql: withOptions({}).sql, with: withOptions };
}
