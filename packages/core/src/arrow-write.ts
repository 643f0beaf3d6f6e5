/** Record batches as objects of the Arrow library, around the same buffers. Loads the library on first use. */

import type * as Arrow from "apache-arrow";
import { EXTENSION_NAME } from "./arrow-schema.js";
import type { Column, RecordBatch } from "./columns.js";
import { bytesOf, wordsOf } from "./layout.js";
import { type DataType, type Field, type Schema, storedSchema } from "./schema.js";

let library: Promise<typeof Arrow> | undefined;

/** `apache-arrow` takes over 100 ms to load, which only those pay who use it. */
export function loadArrow(): Promise<typeof Arrow> {
  library ??= import("apache-arrow");
  return library;
}

/** Field metadata under which Parquet writers and readers look for the field's id. */
const FIELD_ID = "PARQUET:field_id";

/** The Arrow schema; field ids are in the metadata, and `uuid` and `json` are the canonical extension types. */
export async function toArrowSchema(schema: Schema): Promise<Arrow.Schema> {
  const arrow = await loadArrow();
  return arrowSchema(arrow, schema);
}

/** One batch as an Arrow record batch. No value is copied. */
export async function toArrow(batch: RecordBatch): Promise<Arrow.RecordBatch> {
  const arrow = await loadArrow();
  return arrowBatch(arrow, arrowSchema(arrow, batch.schema), batch);
}

/** Batches as an Arrow table; fields of unknown type are left out, as they are in batches. */
export async function toArrowTable(batches: Iterable<RecordBatch>, schema: Schema): Promise<Arrow.Table> {
  const arrow = await loadArrow();
  const shared = arrowSchema(arrow, storedSchema(schema));
  return new arrow.Table(
    shared,
    Array.from(batches, (batch) => arrowBatch(arrow, shared, batch)),
  );
}

function arrowSchema(arrow: typeof Arrow, schema: Schema): Arrow.Schema {
  return new arrow.Schema(schema.fields.map((field) => arrowField(arrow, field)));
}

function arrowField(arrow: typeof Arrow, field: Field): Arrow.Field {
  const metadata = new Map<string, string>();
  if (field.id !== 0) metadata.set(FIELD_ID, String(field.id));
  if (field.type.kind === "uuid" || field.type.kind === "json") {
    metadata.set(EXTENSION_NAME, `arrow.${field.type.kind}`);
    metadata.set("ARROW:extension:metadata", "");
  }
  return new arrow.Field(field.name, arrowType(arrow, field.type), field.nullable, metadata);
}

function arrowType(arrow: typeof Arrow, type: DataType): Arrow.DataType {
  switch (type.kind) {
    case "bool":
      return new arrow.Bool();
    case "int8":
      return new arrow.Int8();
    case "int16":
      return new arrow.Int16();
    case "int32":
      return new arrow.Int32();
    case "int64":
      return new arrow.Int64();
    case "uint8":
      return new arrow.Uint8();
    case "uint16":
      return new arrow.Uint16();
    case "uint32":
      return new arrow.Uint32();
    case "uint64":
      return new arrow.Uint64();
    case "float32":
      return new arrow.Float32();
    case "float64":
      return new arrow.Float64();
    case "decimal":
      return new arrow.Decimal(type.scale, type.precision, 128);
    case "string":
    case "json":
      return new arrow.Utf8();
    case "binary":
      return new arrow.Binary();
    case "fixed":
      return new arrow.FixedSizeBinary(type.size);
    case "uuid":
      return new arrow.FixedSizeBinary(16);
    case "date":
      return new arrow.DateDay();
    case "time":
      return new arrow.TimeMicrosecond();
    case "timestamp":
      return new arrow.TimestampMicrosecond();
    case "timestamptz":
      return new arrow.TimestampMicrosecond("UTC");
    case "list":
      return new arrow.List(arrowField(arrow, type.element));
    case "map": {
      const entries = new arrow.Struct([arrowField(arrow, type.key), arrowField(arrow, type.value)]);
      return new arrow.Map_(new arrow.Field("entries", entries as never, false));
    }
    case "struct":
      return new arrow.Struct(type.fields.map((field) => arrowField(arrow, field)));
    case "unknown":
      return new arrow.Null();
  }
}

function arrowBatch(arrow: typeof Arrow, schema: Arrow.Schema, batch: RecordBatch): Arrow.RecordBatch {
  const children = batch.columns.map((column, i) => arrowData(arrow, schema.fields[i]!.type, column));
  return new arrow.RecordBatch(
    schema,
    arrow.makeData({ type: new arrow.Struct(schema.fields), length: batch.length, nullCount: 0, children }),
  );
}

function arrowData(arrow: typeof Arrow, type: Arrow.DataType, column: Column): Arrow.Data {
  const { length, nullCount } = column;
  const base = { type, length, nullCount, ...(column.validity && { nullBitmap: column.validity }) };
  const children = (types: readonly Arrow.Field[]): Arrow.Data[] =>
    column.children.map((child, i) => arrowData(arrow, types[i]!.type, child));
  switch (column.type.kind) {
    case "string":
    case "json":
    case "binary":
      return arrow.makeData({ ...base, valueOffsets: column.offsets, data: column.values } as never);
    case "decimal":
      return arrow.makeData({ ...base, data: wordsOf(column.values!) } as never);
    case "list":
      return arrow.makeData({ ...base, valueOffsets: column.offsets, child: children(type.children)[0] } as never);
    case "map": {
      const entries = type.children[0]!.type as Arrow.Struct;
      const child = arrow.makeData({
        type: entries,
        length: column.children[0]!.length,
        nullCount: 0,
        children: children(entries.children),
      });
      return arrow.makeData({ ...base, valueOffsets: column.offsets, child } as never);
    }
    case "struct":
      return arrow.makeData({ ...base, children: children(type.children) } as never);
    case "bool":
      return arrow.makeData({ ...base, data: bytesOf(column.values!) } as never);
    default:
      return arrow.makeData({ ...base, data: column.values } as never);
  }
}
