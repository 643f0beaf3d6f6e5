export type { ListedFile, ListedReject, Receipt, SnapshotInfo } from "@eider/catalog";
export type {
  ColumnStatistics,
  CsvOptions,
  DataType,
  Field,
  Reject,
  RowProblem,
  Schema,
  SchemaInput,
} from "@eider/core";
export {
  AlreadyExistsError,
  BatchConflictError,
  CatalogError,
  CorruptionError,
  EiderError,
  formatType,
  InvalidInputError,
  LimitError,
  NotFoundError,
  QueryError,
  SchemaError,
  StoreError,
} from "@eider/core";
export type { Query, QueryColumn, QueryOptions, QueryStats, Sql, SqlParam, SqlRunner, ValueMode } from "@eider/query";
export { Lake } from "./lake.js";
export type {
  AppendOptions,
  AppendResult,
  Format,
  LakeLocation,
  LakeOptions,
  Logger,
  MaintainOptions,
  MaintainResult,
  Progress,
  Source,
  TableDescription,
  TableOptions,
  VerifyFinding,
  VerifyOptions,
  VerifyReport,
} from "./options.js";
export { Table } from "./table.js";
