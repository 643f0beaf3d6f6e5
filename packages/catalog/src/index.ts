export type * from "./catalog.js";
export { checkBatchId, parseTableName, type TableName } from "./names.js";
export { SqliteCatalog, type SqliteCatalogOptions } from "./sqlite-catalog.js";
export type { DriverOptions, OpenDriver, SqliteDriver, SqliteValue } from "./sqlite-driver.js";
export type { Timer } from "./timer.js";
