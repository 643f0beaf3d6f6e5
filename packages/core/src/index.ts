export type { Column, ColumnValues, PartitionValue, RecordBatch } from "./columns.js";
export * from "./errors.js";
export type {
  CsvOptions,
  Inferrer,
  InferrerOptions,
  Parser,
  ParserOptions,
  TextFormat,
  TextParserOptions,
} from "./parser.js";
export { SchemaMisfit } from "./parser.js";
export * from "./schema.js";
export type { BoundValue, ColumnStatistics } from "./statistics.js";
