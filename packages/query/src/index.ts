export type * from "./query.js";
