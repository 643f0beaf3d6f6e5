export type * from "./catalog.js";
