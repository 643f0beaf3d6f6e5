/** Our schema as Parquet's: the tree of schema elements, and the leaves with their levels. */

import { SchemaError } from "./errors.js";
import { ConvertedType, LogicalType, PhysicalType, Repetition, TimeUnit } from "./parquet-format.js";
import { ThriftType, type ThriftWriter } from "./parquet-thrift.js";
import type { DataType, Field, Schema } from "./schema.js";

/** A leaf column: what has values in a Parquet file. */
export interface ParquetLeaf {
  readonly field: Field;
  /** Names from the top, with the groups that lists and maps add. */
  readonly path: readonly string[];
  readonly physical: PhysicalType;
  /** Bytes of a value; FIXED_LEN_BYTE_ARRAY only, else 0. */
  readonly typeLength: number;
  /** Levels of a value that is there. */
  readonly maxDefinition: number;
  readonly maxRepetition: number;
}

/** Levels are held in bytes, and no sane schema nests deeper. */
const MAX_LEVEL = 255;

/**
 * The leaves of a schema, depth first: the order of column chunks in a row group.
 * @throws SchemaError `no_columns`, `unknown_type`, `nesting_too_deep`
 */
export function parquetLeaves(schema: Schema): ParquetLeaf[] {
  if (schema.fields.length === 0) {
    throw new SchemaError("no_columns", "a Parquet file needs a column; give the table at least one with a known type");
  }
  const leaves: ParquetLeaf[] = [];
  const visit = (
    field: Field,
    above: readonly string[],
    name: string,
    definition: number,
    repetition: number,
  ): void => {
    const path = [...above, name];
    const d = definition + (field.nullable ? 1 : 0);
    const { type } = field;
    if (d >= MAX_LEVEL) throw new SchemaError("nesting_too_deep", `the column ${path.join(".")} nests too deeply`);
    switch (type.kind) {
      case "struct":
        if (type.fields.length === 0) throw unstorable(path, "a struct without fields");
        for (const child of type.fields) visit(child, path, child.name, d, repetition);
        break;
      case "list":
        visit(type.element, [...path, "list"], "element", d + 1, repetition + 1);
        break;
      case "map":
        visit(type.key, [...path, "key_value"], "key", d + 1, repetition + 1);
        visit(type.value, [...path, "key_value"], "value", d + 1, repetition + 1);
        break;
      case "unknown":
        throw unstorable(path, "a column of unknown type");
      default:
        leaves.push({
          field,
          path,
          physical: physicalType(type),
          typeLength: typeLength(type),
          maxDefinition: d,
          maxRepetition: repetition,
        });
    }
  };
  for (const field of schema.fields) visit(field, [], field.name, 0, 0);
  return leaves;
}

function unstorable(path: readonly string[], what: string): SchemaError {
  return new SchemaError(
    "unknown_type",
    `Parquet cannot store ${what} (${path.join(".")}); leave it out of the schema`,
  );
}

/** How a leaf type is stored. Decimals take the smallest of INT32, INT64 and FIXED_LEN_BYTE_ARRAY that holds them. */
function physicalType(type: DataType): PhysicalType {
  switch (type.kind) {
    case "bool":
      return PhysicalType.boolean;
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32":
    case "date":
      return PhysicalType.int32;
    case "int64":
    case "uint64":
    case "time":
    case "timestamp":
    case "timestamptz":
      return PhysicalType.int64;
    case "float32":
      return PhysicalType.float;
    case "float64":
      return PhysicalType.double;
    case "decimal":
      if (type.precision <= 9) return PhysicalType.int32;
      return type.precision <= 18 ? PhysicalType.int64 : PhysicalType.fixedLenByteArray;
    case "fixed":
    case "uuid":
      return PhysicalType.fixedLenByteArray;
    default:
      return PhysicalType.byteArray;
  }
}

function typeLength(type: DataType): number {
  switch (type.kind) {
    case "fixed":
      return type.size;
    case "uuid":
      return 16;
    case "decimal":
      return type.precision <= 18 ? 0 : decimalBytes(type.precision);
    default:
      return 0;
  }
}

/** The fewest bytes whose two's complement holds every decimal of this precision, as Iceberg's specification asks. */
function decimalBytes(precision: number): number {
  const limit = 10n ** BigInt(precision) - 1n;
  let bytes = 1;
  while (2n ** BigInt(8 * bytes - 1) - 1n < limit) bytes++;
  return bytes;
}

/** Writes `FileMetaData.schema` (field `id` of the struct that is open): the root and then every node, depth first. */
export function writeSchema(out: ThriftWriter, id: number, schema: Schema): void {
  out.list(id, ThriftType.struct, 1 + schema.fields.reduce((sum, field) => sum + countNodes(field.type), 0));
  out.begin();
  out.string(4, "schema");
  out.i32(5, schema.fields.length);
  out.end();
  for (const field of schema.fields) writeField(out, field, field.name);
}

function countNodes(type: DataType): number {
  switch (type.kind) {
    case "struct":
      return 1 + type.fields.reduce((sum, field) => sum + countNodes(field.type), 0);
    case "list":
      return 2 + countNodes(type.element.type);
    case "map":
      return 2 + countNodes(type.key.type) + countNodes(type.value.type);
    default:
      return 1;
  }
}

function writeField(out: ThriftWriter, field: Field, name: string): void {
  const { type } = field;
  const repetition = field.nullable ? Repetition.optional : Repetition.required;
  switch (type.kind) {
    case "struct":
      writeGroup(out, name, repetition, type.fields.length, field.id);
      for (const child of type.fields) writeField(out, child, child.name);
      break;
    case "list":
      // LogicalTypes.md: a 3-level list, its middle level a repeated group `list` with the one field `element`.
      writeGroup(out, name, repetition, 1, field.id, ConvertedType.list, LogicalType.list);
      writeGroup(out, "list", Repetition.repeated, 1, 0);
      writeField(out, type.element, "element");
      break;
    case "map":
      // LogicalTypes.md: a repeated group `key_value` with a required `key` and an optional `value`.
      writeGroup(out, name, repetition, 1, field.id, ConvertedType.map, LogicalType.map);
      writeGroup(out, "key_value", Repetition.repeated, 2, 0);
      writeField(out, type.key, "key");
      writeField(out, type.value, "value");
      break;
    default: {
      out.begin();
      out.i32(1, physicalType(type));
      if (typeLength(type) > 0) out.i32(2, typeLength(type));
      out.i32(3, repetition);
      out.string(4, name);
      writeAnnotation(out, type, field.id);
      out.end();
    }
  }
}

function writeGroup(
  out: ThriftWriter,
  name: string,
  repetition: Repetition,
  children: number,
  id: number,
  converted?: number,
  logical?: number,
): void {
  out.begin();
  out.i32(3, repetition);
  out.string(4, name);
  out.i32(5, children);
  if (converted !== undefined) out.i32(6, converted);
  if (id > 0) out.i32(9, id);
  if (logical !== undefined) {
    out.struct(10);
    out.struct(logical);
    out.end();
    out.end();
  }
  out.end();
}

/** Converted type (6 to 8), field id (9) and logical type (10) of a leaf. */
function writeAnnotation(out: ThriftWriter, type: DataType, id: number): void {
  const converted = convertedType(type);
  if (converted !== undefined) out.i32(6, converted);
  if (type.kind === "decimal") {
    out.i32(7, type.scale);
    out.i32(8, type.precision);
  }
  if (id > 0) out.i32(9, id);
  const logical = logicalType(type);
  if (logical === undefined) return;
  out.struct(10);
  out.struct(logical);
  if (type.kind === "decimal") {
    out.i32(1, type.scale);
    out.i32(2, type.precision);
  } else if (logical === LogicalType.time || logical === LogicalType.timestamp) {
    out.bool(1, type.kind === "timestamptz");
    out.struct(2);
    out.struct(TimeUnit.micros);
    out.end();
    out.end();
  } else if (logical === LogicalType.integer) {
    out.i8(1, type.kind.endsWith("8") ? 8 : type.kind.endsWith("16") ? 16 : type.kind.endsWith("32") ? 32 : 64);
    out.bool(2, type.kind.startsWith("int"));
  }
  out.end();
  out.end();
}

function convertedType(type: DataType): number | undefined {
  switch (type.kind) {
    case "int8":
    case "int16":
    case "uint8":
    case "uint16":
    case "uint32":
    case "uint64":
    case "decimal":
    case "date":
    case "json":
      return ConvertedType[type.kind];
    case "string":
      return ConvertedType.utf8;
    case "time":
      return ConvertedType.timeMicros;
    // LogicalTypes.md wants local timestamps annotated too, for readers that know converted types only.
    case "timestamp":
    case "timestamptz":
      return ConvertedType.timestampMicros;
    default:
      return undefined;
  }
}

function logicalType(type: DataType): number | undefined {
  switch (type.kind) {
    case "int8":
    case "int16":
    case "uint8":
    case "uint16":
    case "uint32":
    case "uint64":
      return LogicalType.integer;
    case "string":
    case "json":
    case "uuid":
    case "decimal":
    case "date":
    case "time":
    case "timestamp":
      return LogicalType[type.kind];
    case "timestamptz":
      return LogicalType.timestamp;
    default:
      return undefined;
  }
}
