/** Arrow types as ours. */

import { type ArrowField, type ArrowType, ArrowTypeId } from "./arrow-shape.js";
import { SchemaError } from "./errors.js";
import { fieldName } from "./json-keys.js";
import type { DataType, Field, Schema, SimpleKind } from "./schema.js";

/** Field metadata that names an extension type (Arrow columnar format, "Extension Types"). */
export const EXTENSION_NAME = "ARROW:extension:name";

/**
 * Our schema of Arrow fields; ids are 0. Dictionaries are their values, large and view types the plain ones, fixed-size
 * lists are lists, half floats float32, and all units of time microseconds.
 * @throws SchemaError `unsupported_type` for intervals, durations, unions and decimals of over 38 digits
 */
export function schemaFromArrow(fields: readonly ArrowField[]): Schema {
  return { fields: fields.map((field) => fieldFromArrow(field, [field.name])) };
}

function fieldFromArrow(field: ArrowField, path: readonly string[], name: string = fieldName(field.name)): Field {
  return {
    id: 0,
    name,
    type: typeFromArrow(field.type, field.metadata?.get(EXTENSION_NAME), path),
    nullable: field.nullable,
  };
}

function typeFromArrow(type: ArrowType, extension: string | undefined, path: readonly string[]): DataType {
  switch (type.typeId) {
    case ArrowTypeId.null:
      return { kind: "unknown" };
    case ArrowTypeId.bool:
      return { kind: "bool" };
    case ArrowTypeId.int:
      return { kind: `${type.isSigned ? "int" : "uint"}${type.bitWidth}` as SimpleKind };
    case ArrowTypeId.float:
      return { kind: type.precision === 2 ? "float64" : "float32" };
    case ArrowTypeId.decimal:
      return decimalFromArrow(type, path);
    case ArrowTypeId.utf8:
    case ArrowTypeId.largeUtf8:
    case ArrowTypeId.utf8View:
      return { kind: extension === "arrow.json" ? "json" : "string" };
    case ArrowTypeId.binary:
    case ArrowTypeId.largeBinary:
    case ArrowTypeId.binaryView:
      return { kind: "binary" };
    case ArrowTypeId.fixedSizeBinary: {
      const size = type.byteWidth ?? 0;
      if (extension === "arrow.uuid" && size === 16) return { kind: "uuid" };
      if (size < 1) throw unsupported(path, "fixed-size binary of 0 bytes", "leave the column out");
      return { kind: "fixed", size };
    }
    case ArrowTypeId.date:
      return { kind: "date" };
    case ArrowTypeId.time:
      return { kind: "time" };
    case ArrowTypeId.timestamp:
      return { kind: type.timezone ? "timestamptz" : "timestamp" };
    case ArrowTypeId.fixedSizeList:
      if ((type.listSize ?? 0) < 1) throw unsupported(path, "fixed-size list of 0 elements", "leave the column out");
      return { kind: "list", element: fieldFromArrow(type.children![0]!, [...path, "element"], "element") };
    case ArrowTypeId.list:
    case ArrowTypeId.largeList:
      return { kind: "list", element: fieldFromArrow(type.children![0]!, [...path, "element"], "element") };
    case ArrowTypeId.map: {
      const [key, value] = type.children![0]!.type.children!;
      return {
        kind: "map",
        // Keys are never null, whatever the field says (Arrow columnar format, "Map layout").
        key: { ...fieldFromArrow(key!, [...path, "key"], "key"), nullable: false },
        value: fieldFromArrow(value!, [...path, "value"], "value"),
      };
    }
    case ArrowTypeId.struct:
      return { kind: "struct", fields: type.children!.map((child) => fieldFromArrow(child, [...path, child.name])) };
    case ArrowTypeId.dictionary:
      return typeFromArrow(type.dictionary!, extension, path);
    case ArrowTypeId.interval:
      throw unsupported(path, "interval", "cast it to text, or to whole numbers of months, days or microseconds");
    case ArrowTypeId.duration:
      throw unsupported(path, "duration", "cast it to int64");
    case ArrowTypeId.union:
      throw unsupported(path, "union", "turn it into a struct with one field per type");
    default:
      throw unsupported(path, `number ${type.typeId}`, "cast it to a type of the Arrow specification's core");
  }
}

function decimalFromArrow({ precision = 0, scale = 0 }: ArrowType, path: readonly string[]): DataType {
  if (precision < 1 || precision > 38) {
    throw unsupported(path, `decimal of ${precision} digits`, "cast it to decimal(38,s) or text");
  }
  if (scale < 0 || scale > precision) {
    throw unsupported(path, `decimal(${precision},${scale})`, "cast it to a scale from 0 to the precision");
  }
  return { kind: "decimal", precision, scale };
}

function unsupported(path: readonly string[], what: string, advice: string): SchemaError {
  const column = path.map((name) => JSON.stringify(name)).join(".");
  return new SchemaError(
    "unsupported_type",
    `the column ${column} has the Arrow type ${what}, which cannot be stored: ${advice}`,
    {
      subject: path[0]!,
    },
  );
}
