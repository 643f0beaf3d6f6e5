/**
 * Bounds as bytes whose unsigned order is the order of the values, so that SQLite's own blob comparison (memcmp) and
 * its indices answer range questions.
 */

import { type BoundValue, CorruptionError, childFields, type DataType, type Field, type Schema } from "@eider/core";

/**
 * How a type's bounds are laid out. Only bounds of one class may be compared: a field that was widened has files of
 * both classes, and the unscaled digits of decimals compare only under one scale.
 */
export type BoundClass = "int" | "uint" | `decimal${number}` | "float" | "bool" | "bytes";

/** The class of a type's bounds; undefined for types that have none: nested ones and `unknown`. */
export function boundClass(type: DataType): BoundClass | undefined {
  switch (type.kind) {
    case "int8":
    case "int16":
    case "int32":
    case "int64":
    case "uint8":
    case "uint16":
    case "uint32":
    case "date":
    case "time":
    case "timestamp":
    case "timestamptz":
      return "int";
    case "uint64":
      return "uint";
    case "decimal":
      return `decimal${type.scale}`;
    case "float32":
    case "float64":
      return "float";
    case "bool":
      return "bool";
    case "string":
    case "json":
    case "binary":
    case "fixed":
    case "uuid":
      return "bytes";
    default:
      return undefined;
  }
}

/** Integers that a program counts with, without dates, times and decimals. */
export function isIntegerType(type: DataType): boolean {
  return /^u?int(8|16|32|64)$/.test(type.kind);
}

/** The fields that hold values themselves, by id: what a file has statistics of. */
export function leafFields(schema: Schema): Map<number, Field> {
  const leaves = new Map<number, Field>();
  const visit = (field: Field): void => {
    const children = childFields(field.type);
    if (boundClass(field.type) !== undefined) leaves.set(field.id, field);
    else children.forEach(visit);
  };
  schema.fields.forEach(visit);
  return leaves;
}

const INT64_MIN = -(1n << 63n);
const INT64_END = 1n << 63n;
const UINT64_END = 1n << 64n;
const INT128_BIAS = 1n << 127n;

/** Whether a value can be a bound of this class at all. */
export function fitsBound(kind: BoundClass, value: BoundValue): boolean {
  switch (kind) {
    case "int":
      return typeof value === "bigint" && value >= INT64_MIN && value < INT64_END;
    case "uint":
      return typeof value === "bigint" && value >= 0n && value < UINT64_END;
    case "float":
      return typeof value === "number" && !Number.isNaN(value);
    case "bool":
      return typeof value === "boolean";
    case "bytes":
      return value instanceof Uint8Array;
    default:
      return typeof value === "bigint" && value >= -INT128_BIAS && value < INT128_BIAS;
  }
}

/**
 * - `int` 8 bytes big-endian with the sign bit flipped, `uint` 8 bytes big-endian
 * - `decimal` 16 bytes big-endian with the sign bit flipped
 * - `float` 8 bytes of the float64: sign bit flipped when positive, all bits when negative; −0 as 0, which it equals
 * - `bool` one byte, `bytes` as they are
 *
 * The value must fit, see {@link fitsBound}.
 */
export function encodeBound(kind: BoundClass, value: BoundValue): Uint8Array {
  switch (kind) {
    case "int":
      return bigEndian64((value as bigint) - INT64_MIN);
    case "uint":
      return bigEndian64(value as bigint);
    case "float": {
      const bits = floatBits((value as number) + 0);
      return bigEndian64(bits < INT64_END ? bits + INT64_END : UINT64_END - 1n - bits);
    }
    case "bool":
      return Uint8Array.of(value ? 1 : 0);
    case "bytes":
      return value as Uint8Array;
    default: {
      const shifted = (value as bigint) + INT128_BIAS;
      const bytes = new Uint8Array(16);
      const view = new DataView(bytes.buffer);
      view.setBigUint64(0, shifted >> 64n);
      view.setBigUint64(8, shifted & (UINT64_END - 1n));
      return bytes;
    }
  }
}

/**
 * The inverse of {@link encodeBound}.
 * @throws CorruptionError `catalog_corrupt` if the bytes have the wrong length
 */
export function decodeBound(kind: BoundClass, bytes: Uint8Array): BoundValue {
  if (kind === "bytes") return new Uint8Array(bytes);
  const size = kind === "bool" ? 1 : kind.startsWith("decimal") ? 16 : 8;
  if (bytes.length !== size) {
    throw new CorruptionError(
      "catalog_corrupt",
      `a bound of class ${kind} has ${bytes.length} bytes instead of ${size}`,
    );
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (kind) {
    case "int":
      return view.getBigUint64(0) + INT64_MIN;
    case "uint":
      return view.getBigUint64(0);
    case "float": {
      const stored = view.getBigUint64(0);
      const scratch = new DataView(new ArrayBuffer(8));
      scratch.setBigUint64(0, stored >= INT64_END ? stored - INT64_END : UINT64_END - 1n - stored);
      return scratch.getFloat64(0);
    }
    case "bool":
      return bytes[0] === 1;
    default:
      return (view.getBigUint64(0) << 64n) + view.getBigUint64(8) - INT128_BIAS;
  }
}

function bigEndian64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value);
  return bytes;
}

function floatBits(value: number): bigint {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigUint64(0);
}
