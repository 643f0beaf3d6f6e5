export { type EngineOptions, QueryEngine, type SqlAccess } from "./engine.js";
export type { QueryRunner } from "./engine-query.js";
export type { GivenTable, GivenTables } from "./given-tables.js";
export type * from "./query.js";
export type { ScopeLimits, ScopeOptions, SqlFragment, TableGrant } from "./scope/options.js";
export { snapshotOf } from "./snapshot.js";
export { batchQuery, makeSql, sql } from "./sql.js";
