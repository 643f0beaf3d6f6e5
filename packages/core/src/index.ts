export type { Column, ColumnValues, RecordBatch } from "./columns.js";
export * from "./errors.js";
export * from "./schema.js";
export type { BoundValue, ColumnStatistics } from "./statistics.js";
