export { alignBatch } from "./align.js";
export { fromArrow } from "./arrow.js";
export { type ArrowStreams, cutArrowIPC } from "./arrow-cutter.js";
export type { ByteFile, KeepFile } from "./arrow-frames.js";
export { readArrowIPC, toArrowIPC } from "./arrow-ipc.js";
export { type ArrowLike, isArrowLike } from "./arrow-shape.js";
export { toArrow, toArrowSchema, toArrowTable } from "./arrow-write.js";
export { bucketOfBound } from "./bucket.js";
export { canonicalJson, canonicalRow } from "./canonical.js";
export type { Column, ColumnValues, PartitionValue, RecordBatch } from "./columns.js";
export { type Compression, parquetReady } from "./compression.js";
export { type DelimiterCandidate, type DelimiterGuess, detectDelimiter } from "./csv-dialect.js";
export { type CsvHead, readCsvHead } from "./csv-input.js";
export { engineReady, releaseEngines } from "./engine.js";
export * from "./errors.js";
export { type EncodedEvents, type EventsOptions, encodeEvents } from "./events.js";
export { formatWideningTable, widen, wideningTable } from "./evolve.js";
export { createRowInferrer } from "./infer-rows.js";
export { type FieldBounds, integerBounds } from "./integer-bounds.js";
export { createJsonCutter, type JsonCutter } from "./json-cutter.js";
export { schemaFromJsonSchema } from "./json-schema.js";
export { duckdbType, formatTypeMapping, type TypeMapping, typeMapping } from "./mapping.js";
export { type MergeOptions, mergeSchema } from "./merge.js";
export {
  type EncodedParquet,
  type EncodedRowGroup,
  encodeParquet,
  ParquetEncoder,
} from "./parquet-encoder.js";
export { excerptFooter, readStoredChunks, type StoredChunk } from "./parquet-excerpt.js";
export { type ParquetFooter, parquetFooterBytes, readParquetFooter } from "./parquet-footer.js";
export type { ParquetColumnOptions, ParquetEncoding, ParquetOptions } from "./parquet-options.js";
export { type ParquetRowGroup, readParquetRowGroups } from "./parquet-row-groups.js";
export { ParquetWriter, type ParquetWriterOptions } from "./parquet-writer.js";
export type {
  CsvOptions,
  Inferrer,
  InferrerOptions,
  JsonPlace,
  Parser,
  ParserOptions,
  TextFormat,
  TextParserOptions,
  TextPart,
} from "./parser.js";
export { SchemaMisfit } from "./parser.js";
export { type PartitionRows, partitionKey, routePartitions } from "./partition.js";
export { partitionPath, partitionValueText, pathName, pathText, tableFolder } from "./partition-path.js";
export { plainRow } from "./plain-row.js";
export { createProtobufParser, type ProtobufParserOptions } from "./protobuf-parser.js";
export {
  type ProtobufField,
  type ProtobufKey,
  type ProtobufScalar,
  type ProtobufType,
  protobufSchema,
} from "./protobuf-schema.js";
export { decodeRecordBatch, encodeRecordBatch } from "./record-message.js";
export { DEFAULT_MAX_REJECTS, tooManyRejects } from "./row-batches.js";
export { createRowParser, RefusedRow, type RowParserOptions } from "./rows.js";
export * from "./schema.js";
export * from "./schema-builder.js";
export { formatSchema, parseSchema } from "./schema-json.js";
export { type OrderBy, type OrderKey, parseOrderBy, sortedOrder } from "./sort.js";
export {
  isStandardSchema,
  type StandardIssue,
  type StandardSchema,
  schemaFromStandard,
} from "./standard-schema.js";
export { type BoundValue, type ColumnStatistics, compareBounds, decodeBound, encodeBound } from "./statistics.js";
export { batchBytes, concatBatches, emptyBatch, sliceBatch, takeRows } from "./take.js";
export { createTextInferrer, createTextParser } from "./text-parser.js";
export { type PartitionSpec, parsePartitionBy, type Transform } from "./transforms.js";
export { formatTypeTag, parseTypeTag } from "./type-tags.js";
export { batchRows, columnValue, type ValueMode, type ValueReader, valueReader } from "./values.js";
