export { type EngineOptions, QueryEngine } from "./engine.js";
export type * from "./query.js";
export { makeSql } from "./sql.js";
