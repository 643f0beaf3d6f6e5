export type {
  CursorInfo,
  ListedFile,
  ListedReject,
  Receipt,
  SnapshotInfo,
  TagInfo,
  Timer,
  ViewInfo,
} from "@eider/catalog";
export type {
  ColumnStatistics,
  ColumnType,
  Compression,
  CsvOptions,
  DataType,
  Field,
  InputList,
  InputMap,
  ParquetColumnOptions,
  ParquetEncoding,
  PartitionValue,
  Reject,
  ResultRow,
  Row,
  RowProblem,
  Schema,
  SchemaInput,
  StandardSchema,
  TypedSchema,
} from "@eider/core";
export {
  AlreadyExistsError,
  BatchConflictError,
  CatalogError,
  CorruptionError,
  EiderError,
  formatSchema,
  formatType,
  InvalidInputError,
  LimitError,
  NotFoundError,
  parseSchema,
  parseType,
  QueryError,
  SchemaError,
  StoreError,
  schema,
  schemaFromJsonSchema,
  t,
} from "@eider/core";
export type {
  GivenTable,
  GivenTables,
  Query,
  QueryColumn,
  QueryOptions,
  QueryStats,
  ScopeLimits,
  ScopeOptions,
  Sql,
  SqlAccess,
  SqlFragment,
  SqlParam,
  SqlRunner,
  TableGrant,
  ValueMode,
} from "@eider/query";
export { sql } from "@eider/query";
export type { Cursor } from "./cursor.js";
export type { AppendChange, Change, FeedOptions, RollbackChange } from "./feed.js";
export { Lake } from "./lake.js";
export type {
  AppendOptions,
  AppendPartsOptions,
  AppendPartsResult,
  AppendResult,
  CopyOptions,
  CopyResult,
  CursorMove,
  FoldLimits,
  FoldTotals,
  Format,
  LakeLocation,
  LakeOptions,
  Logger,
  MaintainOptions,
  MaintainProgress,
  MaintainResult,
  PartsProgress,
  Progress,
  PurgeRejectsOptions,
  PurgeRejectsResult,
  RebuildOptions,
  RebuildResult,
  RejectsOptions,
  ReplayOptions,
  Retention,
  Source,
  SourceBatch,
  TableDescription,
  TableOptions,
  TypedTableOptions,
  VerifyFinding,
  VerifyOptions,
  VerifyReport,
} from "./options.js";
export type { Scope } from "./scope.js";
export { Table } from "./table.js";
export type {
  StagedAppend,
  Transaction,
  TransactionAppendOptions,
  TransactionOptions,
  TransactionResult,
  TransactionTable,
} from "./transaction.js";
export type { CreateViewOptions } from "./views.js";
export type { FileOptions, Rotation } from "./writer/layout.js";
export {
  type ObjectWriterOptions,
  type ObjectWriterResult,
  ParquetObjectWriter,
  type WrittenObject,
} from "./writer/object-writer.js";
export type { RowWriter, WriterInput, WriterProgress, WriterSource } from "./writer/row-writer.js";
export type { SchemaField } from "./writer/schema-file.js";
export type { TableWriter, TableWriterOptions, TableWriterResult } from "./writer/table-writer.js";
