/**
 * Bounds as bytes whose unsigned order is the order of the values, so that SQLite's own blob comparison (memcmp) and
 * its indices answer range questions.
 */

import {
  type BoundValue,
  CorruptionError,
  childFields,
  type DataType,
  decodeBound,
  encodeBound,
  type Field,
  type Schema,
} from "@eider/core";

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

const leavesOf = new WeakMap<Schema, ReadonlyMap<number, Field>>();

/** The fields that hold values themselves, by id: what a file has statistics of. */
export function leafFields(schema: Schema): ReadonlyMap<number, Field> {
  const known = leavesOf.get(schema);
  if (known) return known;
  const leaves = new Map<number, Field>();
  const visit = (field: Field): void => {
    const children = childFields(field.type);
    if (boundClass(field.type) !== undefined) leaves.set(field.id, field);
    else children.forEach(visit);
  };
  schema.fields.forEach(visit);
  leavesOf.set(schema, leaves);
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

/** A type of each class, for core's encoding; scale does not matter to it. */
function typeOf(kind: BoundClass): DataType {
  switch (kind) {
    case "int":
      return { kind: "int64" };
    case "uint":
      return { kind: "uint64" };
    case "float":
      return { kind: "float64" };
    case "bool":
      return { kind: "bool" };
    case "bytes":
      return { kind: "binary" };
    default:
      return { kind: "decimal", precision: 38, scale: 0 };
  }
}

/** The value must fit, see {@link fitsBound}. */
export function toOrderedBytes(kind: BoundClass, value: BoundValue): Uint8Array {
  return encodeBound(typeOf(kind), value);
}

/**
 * The inverse of {@link toOrderedBytes}.
 * @throws CorruptionError `catalog_corrupt` if the bytes have the wrong length
 */
export function fromOrderedBytes(kind: BoundClass, bytes: Uint8Array): BoundValue {
  const size = kind === "bytes" ? bytes.length : kind === "bool" ? 1 : kind.startsWith("decimal") ? 16 : 8;
  if (bytes.length !== size) {
    throw new CorruptionError(
      "catalog_corrupt",
      `a bound of class ${kind} has ${bytes.length} bytes instead of ${size}`,
    );
  }
  // A copy: the driver's Buffer is neither a plain Uint8Array to callers nor alone in its memory.
  return decodeBound(typeOf(kind), new Uint8Array(bytes));
}
