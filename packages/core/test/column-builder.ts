/**
 * Columns from JavaScript values, one value after the other: slow, plain, and independent of the parsers, so that tests
 * of the encoder rest on nothing else. Values: bool as boolean; integers, dates (days), times (µs), decimals (unscaled)
 * as bigint or number; floats as number; string and json as string; binary, fixed, uuid as bytes; lists as arrays; maps
 * as arrays of pairs; structs as objects; null.
 */

import type { Column, ColumnValues, RecordBatch } from "../src/columns.js";
import type { DataType, Field, Schema } from "../src/schema.js";

export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Value[]
  | { readonly [name: string]: Value };

const ARRAYS = {
  int8: Int8Array,
  int16: Int16Array,
  int32: Int32Array,
  uint8: Uint8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  float32: Float32Array,
  float64: Float64Array,
  date: Int32Array,
} as const;

export function batchOf(schema: Schema, rows: readonly { readonly [name: string]: Value }[]): RecordBatch {
  const columns = schema.fields.map((field) =>
    columnOf(
      field,
      rows.map((row) => row[field.name] ?? null),
    ),
  );
  return { schema, length: rows.length, columns };
}

export function columnOf(field: Field, values: readonly Value[]): Column {
  const { type } = field;
  const validity = new Uint8Array((values.length + 7) >> 3);
  let nullCount = 0;
  values.forEach((value, i) => {
    if (value === null) nullCount++;
    else validity[i >> 3]! |= 1 << (i & 7);
  });
  return {
    type,
    length: values.length,
    nullCount,
    validity: nullCount > 0 ? validity : undefined,
    ...fill(type, values),
  };
}

type Filled = Pick<Column, "values" | "offsets" | "children">;

function fill(type: DataType, values: readonly Value[]): Filled {
  switch (type.kind) {
    case "bool": {
      const bits = new Uint8Array((values.length + 7) >> 3);
      values.forEach((value, i) => {
        if (value === true) bits[i >> 3]! |= 1 << (i & 7);
      });
      return flat(bits);
    }
    case "int64":
    case "time":
    case "timestamp":
    case "timestamptz":
      return flat(BigInt64Array.from(values, (value) => BigInt((value as bigint) ?? 0)));
    case "uint64":
      return flat(BigUint64Array.from(values, (value) => BigInt((value as bigint) ?? 0)));
    case "decimal": {
      const bytes = new Uint8Array(16 * values.length);
      const view = new DataView(bytes.buffer);
      values.forEach((value, i) => {
        const unscaled = BigInt((value as bigint) ?? 0);
        view.setBigUint64(16 * i, BigInt.asUintN(64, unscaled), true);
        view.setBigInt64(16 * i + 8, BigInt.asIntN(64, unscaled >> 64n), true);
      });
      return flat(bytes);
    }
    case "uuid":
    case "fixed": {
      const size = type.kind === "fixed" ? type.size : 16;
      const bytes = new Uint8Array(size * values.length);
      values.forEach((value, i) => {
        if (value !== null) bytes.set(value as Uint8Array, size * i);
      });
      return flat(bytes);
    }
    case "string":
    case "json":
    case "binary": {
      const parts = values.map((value) =>
        value === null
          ? new Uint8Array(0)
          : typeof value === "string"
            ? new TextEncoder().encode(value)
            : (value as Uint8Array),
      );
      const offsets = offsetsOf(parts.map((part) => part.length));
      const bytes = new Uint8Array(offsets[parts.length]!);
      parts.forEach((part, i) => {
        bytes.set(part, offsets[i]!);
      });
      return { values: bytes, offsets, children: [] };
    }
    case "list": {
      const lists = values.map((value) => (value as readonly Value[]) ?? []);
      return {
        values: undefined,
        offsets: offsetsOf(lists.map((list) => list.length)),
        children: [columnOf(type.element, lists.flat(1))],
      };
    }
    case "map": {
      const maps = values.map((value) => (value as readonly (readonly [Value, Value])[]) ?? []);
      const pairs = maps.flat(1);
      return {
        values: undefined,
        offsets: offsetsOf(maps.map((map) => map.length)),
        children: [
          columnOf(
            type.key,
            pairs.map((pair) => pair[0]),
          ),
          columnOf(
            type.value,
            pairs.map((pair) => pair[1]),
          ),
        ],
      };
    }
    case "struct":
      return {
        values: undefined,
        offsets: undefined,
        children: type.fields.map((child) =>
          columnOf(
            child,
            values.map((value) => (value as { readonly [name: string]: Value } | null)?.[child.name] ?? null),
          ),
        ),
      };
    case "unknown":
      throw new Error("unknown columns are not stored");
    default:
      return flat(ARRAYS[type.kind].from(values.map((value) => Number(value ?? 0))));
  }
}

function flat(values: ColumnValues): Filled {
  return { values, offsets: undefined, children: [] };
}

function offsetsOf(lengths: readonly number[]): Int32Array {
  const offsets = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => {
    offsets[i + 1] = offsets[i]! + length;
  });
  return offsets;
}
