export { type EngineOptions, QueryEngine } from "./engine.js";
export type { QueryRunner } from "./engine-query.js";
export type * from "./query.js";
export type { ScopeLimits, ScopeOptions, SqlFragment, TableGrant } from "./scope/options.js";
export { snapshotOf } from "./snapshot.js";
export { batchQuery, makeSql, sql } from "./sql.js";
