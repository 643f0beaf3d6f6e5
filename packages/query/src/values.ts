/** Result columns as JavaScript values: core's rules, and DuckDB's types that core has no name for. */

import { type Column, type RecordBatch, valueReader } from "@eider/core";
import type { ValueMode } from "./query.js";
import { PLAIN, type Shape } from "./result-types.js";

/** The rows of a batch as objects with one property per column. */
export function resultRows(batch: RecordBatch, shapes: readonly Shape[], mode: ValueMode): Record<string, unknown>[] {
  const names = batch.schema.fields.map((field) => field.name);
  const readers = batch.columns.map((column, i) => resultReader(column, shapes[i]!, mode));
  const width = names.length;
  const rows: Record<string, unknown>[] = new Array(batch.length);
  const plain = !names.includes("__proto__");
  for (let row = 0; row < batch.length; row++) {
    const out: Record<string, unknown> = {};
    for (let i = 0; i < width; i++) {
      const value = readers[i]!(row);
      if (plain || names[i] !== "__proto__") out[names[i]!] = value;
      else Object.defineProperty(out, "__proto__", { value, enumerable: true, configurable: true, writable: true });
    }
    rows[row] = out;
  }
  return rows;
}

function resultReader(column: Column, shape: Shape, mode: ValueMode): (row: number) => unknown {
  const read = valueReader(column, mode);
  switch (column.type.kind) {
    case "decimal":
      if (shape.kind === "integer") return hugeintReader(column, mode);
      break;
    case "timestamp":
    case "timestamptz":
      return infinityReader(column.values as BigInt64Array, INFINITE_MICROS, read);
    case "date":
      return infinityReader(column.values as Int32Array, INFINITE_DAYS, read);
  }
  return shape === PLAIN ? read : (row) => reshape(read(row), shape, mode);
}

/** DuckDB's `infinity` in its own units; the other end is its negative. */
const INFINITE_MICROS = 0x7fffffffffffffffn;
const INFINITE_DAYS = 0x7fffffff;

function infinityReader<T extends bigint | number>(
  values: { readonly [row: number]: T; includes(value: T): boolean },
  infinite: T,
  read: (row: number) => unknown,
): (row: number) => unknown {
  const negative = -infinite as T;
  if (!values.includes(infinite) && !values.includes(negative)) return read;
  return (row) => {
    const value = read(row);
    if (value === null) return null;
    return values[row] === infinite ? "infinity" : values[row] === negative ? "-infinity" : value;
  };
}

function hugeintReader(column: Column, mode: ValueMode): (row: number) => unknown {
  const { buffer, byteOffset, byteLength } = column.values!;
  // Bytes that came from another process begin anywhere.
  const view = new DataView(buffer, byteOffset, byteLength);
  const { validity } = column;
  return (row) => {
    if (validity !== undefined && (validity[row >>> 3]! & (1 << (row & 7))) === 0) return null;
    return integer((view.getBigInt64(row * 16 + 8, true) << 64n) | view.getBigUint64(row * 16, true), mode);
  };
}

function integer(value: bigint, mode: ValueMode): unknown {
  if (mode === "exact") return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

/** A value as core reads it, with its wide integers (texts to core) as integers. */
function reshape(value: unknown, shape: Shape, mode: ValueMode): unknown {
  if (value === null || value === undefined) return value;
  switch (shape.kind) {
    case "plain":
      return value;
    case "integer":
      return integer(BigInt(value as string), mode);
    case "list":
      return Array.isArray(value) ? value.map((element) => reshape(element, shape.element, mode)) : value;
    case "map": {
      const pair = ([key, item]: readonly [unknown, unknown]): [unknown, unknown] => [
        reshape(key, shape.key, mode),
        reshape(item, shape.value, mode),
      ];
      if (value instanceof Map) return new Map([...value].map(pair));
      if (Array.isArray(value)) return (value as [unknown, unknown][]).map(pair);
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, reshape(item, shape.value, mode)]));
    }
    case "struct": {
      if (typeof value !== "object") return value;
      return Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, reshape(item, shape.fields.get(key) ?? PLAIN, mode)]),
      );
    }
  }
}
