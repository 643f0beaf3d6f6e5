/** How each type lies in the buffers of a {@link Column}; see the table there. */

import { bitmapBytes } from "./bitmap.js";
import type { Column, ColumnValues } from "./columns.js";
import type { DataType } from "./schema.js";

/** Where a type keeps its values. `bytes` and `nested` kinds have offsets but for struct, which has children only. */
export type Layout = "bits" | "fixed" | "bytes" | "list" | "map" | "struct";

export function layoutOf(type: DataType): Layout {
  switch (type.kind) {
    case "bool":
      return "bits";
    case "string":
    case "json":
    case "binary":
      return "bytes";
    case "list":
    case "map":
    case "struct":
      return type.kind;
    default:
      return "fixed";
  }
}

/** Bytes per value of a fixed-width type; 0 for bool and for types with offsets or children. */
export function valueBytes(type: DataType): number {
  switch (type.kind) {
    case "int8":
    case "uint8":
      return 1;
    case "int16":
    case "uint16":
      return 2;
    case "int32":
    case "uint32":
    case "float32":
    case "date":
      return 4;
    case "int64":
    case "uint64":
    case "float64":
    case "time":
    case "timestamp":
    case "timestamptz":
      return 8;
    case "decimal":
    case "uuid":
      return 16;
    case "fixed":
      return type.size;
    default:
      return 0;
  }
}

/** The bytes of a fixed-width type as the typed array it is kept in; copied only if they are not aligned for it. */
export function typedValues(type: DataType, bytes: Uint8Array): ColumnValues {
  const width = type.kind === "decimal" || type.kind === "uuid" || type.kind === "fixed" ? 1 : valueBytes(type);
  const { buffer, byteOffset, byteLength } = width > 1 && bytes.byteOffset % width !== 0 ? bytes.slice() : bytes;
  const length = byteLength / Math.max(width, 1);
  switch (type.kind) {
    case "int8":
      return new Int8Array(buffer, byteOffset, length);
    case "int16":
      return new Int16Array(buffer, byteOffset, length);
    case "uint16":
      return new Uint16Array(buffer, byteOffset, length);
    case "int32":
    case "date":
      return new Int32Array(buffer, byteOffset, length);
    case "uint32":
      return new Uint32Array(buffer, byteOffset, length);
    case "float32":
      return new Float32Array(buffer, byteOffset, length);
    case "float64":
      return new Float64Array(buffer, byteOffset, length);
    case "int64":
    case "time":
    case "timestamp":
    case "timestamptz":
      return new BigInt64Array(buffer, byteOffset, length);
    case "uint64":
      return new BigUint64Array(buffer, byteOffset, length);
    default:
      return bytes;
  }
}

/** The same bytes, untyped. */
export function bytesOf(values: ArrayBufferView): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** The same bytes as 32-bit words, low half of a 64-bit value first; copied only if they are not aligned. */
export function wordsOf(values: ArrayBufferView): Uint32Array {
  const aligned = values.byteOffset % 4 === 0 ? values : bytesOf(values).slice();
  return new Uint32Array(aligned.buffer, aligned.byteOffset, aligned.byteLength >>> 2);
}

/** A column of `length` nulls. */
export function nullColumn(type: DataType, length: number): Column {
  const validity = length === 0 ? undefined : new Uint8Array(bitmapBytes(length));
  const base = { type, length, nullCount: length, validity };
  switch (type.kind) {
    case "string":
    case "json":
    case "binary":
      return { ...base, values: new Uint8Array(0), offsets: new Int32Array(length + 1), children: [] };
    case "list":
      return {
        ...base,
        values: undefined,
        offsets: new Int32Array(length + 1),
        children: [nullColumn(type.element.type, 0)],
      };
    case "map":
      return {
        ...base,
        values: undefined,
        offsets: new Int32Array(length + 1),
        children: [nullColumn(type.key.type, 0), nullColumn(type.value.type, 0)],
      };
    case "struct":
      return {
        ...base,
        values: undefined,
        offsets: undefined,
        children: type.fields.map((field) => nullColumn(field.type, length)),
      };
    case "bool":
      return { ...base, values: new Uint8Array(bitmapBytes(length)), offsets: undefined, children: [] };
    default:
      return {
        ...base,
        values: typedValues(type, new Uint8Array(length * valueBytes(type))),
        offsets: undefined,
        children: [],
      };
  }
}
