export { type EngineOptions, QueryEngine } from "./engine.js";
export type * from "./query.js";
export { snapshotOf } from "./snapshot.js";
export { batchQuery, makeSql } from "./sql.js";
