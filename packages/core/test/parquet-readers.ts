/** Independent Parquet readers, each giving rows in the form of `column-builder.ts`, so that they compare with what was written. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  DuckDBUUIDValue,
} from "@duckdb/node-api";
import { DataType as ArrowType, type Data, tableFromIPC } from "apache-arrow";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { readParquet } from "parquet-wasm";
import type { DataType, Schema } from "../src/schema.js";
import type { Value } from "./column-builder.js";

export type Row = { readonly [name: string]: Value };

/** Files in a folder of their own, and a DuckDB to read them. Close it in `afterAll`. */
export class DuckReader {
  readonly #folder = mkdtempSync(join(tmpdir(), "eider-parquet-"));
  #connection: DuckDBConnection | undefined;
  #count = 0;

  /** Writes the file and returns its path as a SQL literal. */
  file(bytes: Uint8Array): string {
    const path = join(this.#folder, `${++this.#count}.parquet`);
    writeFileSync(path, bytes);
    return `'${path.replaceAll("'", "''")}'`;
  }

  /** All rows, in order. */
  async rows(bytes: Uint8Array): Promise<Row[]> {
    return this.sql(`SELECT * FROM ${this.file(bytes)}`);
  }

  async sql(sql: string): Promise<Row[]> {
    this.#connection ??= await (await DuckDBInstance.create()).connect();
    const reader = await this.#connection.runAndReadAll(sql);
    const names = reader.columnNames();
    return reader.getRows().map((row) => Object.fromEntries(row.map((value, i) => [names[i]!, fromDuck(value)])));
  }

  close(): void {
    this.#connection?.closeSync();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function fromDuck(value: unknown): Value {
  if (value instanceof DuckDBDecimalValue) return value.value;
  if (value instanceof DuckDBDateValue) return value.days;
  if (value instanceof DuckDBTimeValue) return value.micros;
  if (value instanceof DuckDBTimestampValue || value instanceof DuckDBTimestampTZValue) return value.micros;
  if (value instanceof DuckDBBlobValue) return new Uint8Array(value.bytes);
  if (value instanceof DuckDBUUIDValue) return uuidBytes(value.toString());
  if (value instanceof DuckDBListValue) return value.items.map(fromDuck);
  if (value instanceof DuckDBMapValue) return value.entries.map(({ key, value: v }) => [fromDuck(key), fromDuck(v)]);
  if (value instanceof DuckDBStructValue) {
    return Object.fromEntries(Object.entries(value.entries).map(([name, v]) => [name, fromDuck(v)]));
  }
  return value as Value;
}

export function uuidBytes(text: string): Uint8Array {
  return Uint8Array.from(text.replaceAll("-", "").match(/../g) ?? [], (hex) => Number.parseInt(hex, 16));
}

/** Rows as hyparquet reads them. Decimals come as doubles: compare them with {@link asDoubles}. */
export async function hyparquetRows(bytes: Uint8Array, schema: Schema): Promise<Row[]> {
  const rows = await parquetReadObjects({
    file: {
      byteLength: bytes.length,
      slice: (start, end) => bytes.slice(start, end).buffer as ArrayBuffer,
    },
    compressors,
    utf8: false,
    parsers: {
      dateFromDays: (days) => days,
      timestampFromMicroseconds: (micros) => micros,
      jsonFromBytes: (text) => text && new TextDecoder().decode(text),
      uuidFromBytes: (uuid) => uuid?.slice(),
    },
  });
  return rows.map((row) =>
    Object.fromEntries(schema.fields.map((field) => [field.name, fromHyparquet(field.type, row[field.name])])),
  );
}

function fromHyparquet(type: DataType, value: unknown): Value {
  if (value === null || value === undefined) return null;
  switch (type.kind) {
    case "list":
      return (value as unknown[]).map((element) => fromHyparquet(type.element.type, element));
    case "struct":
      return Object.fromEntries(
        type.fields.map((field) => [
          field.name,
          fromHyparquet(field.type, (value as Record<string, unknown>)[field.name]),
        ]),
      );
    case "map":
      return Object.entries(value as object).map(([key, v]) => [key, fromHyparquet(type.value.type, v)]);
    default:
      return value instanceof Uint8Array ? value.slice() : (value as Value);
  }
}

/** The same values with decimals as doubles. */
export function asDoubles(type: DataType, value: Value): Value {
  if (value === null) return null;
  switch (type.kind) {
    case "decimal":
      return Number(value) / 10 ** type.scale;
    case "list":
      return (value as readonly Value[]).map((element) => asDoubles(type.element.type, element));
    case "map":
      return (value as readonly (readonly [Value, Value])[]).map(([key, v]) => [key, asDoubles(type.value.type, v)]);
    case "struct":
      return Object.fromEntries(
        type.fields.map((field) => [field.name, asDoubles(field.type, (value as Row)[field.name] ?? null)]),
      );
    default:
      return value;
  }
}

/** The columns of a file as parquet-rs reads them, as Arrow vectors. `rows` is a range, found through the page index. */
export function arrowRows(bytes: Uint8Array, rows: { offset?: number; limit?: number } = {}): Row[] {
  const table = tableFromIPC(readParquet(bytes, rows).intoIPCStream());
  return table.toArray().map((row) => row.toJSON() as Row);
}

/** Rows as parquet-rs reads them, out of Arrow's buffers: apache-arrow's own getters round times to milliseconds. */
export function parquetRsRows(bytes: Uint8Array): Row[] {
  const { schema, batches } = tableFromIPC(readParquet(bytes).intoIPCStream());
  return batches.flatMap(({ data }) =>
    Array.from({ length: data.length }, (_, i) =>
      Object.fromEntries(schema.fields.map(({ name }, column) => [name, fromArrow(data.children[column]!, i)])),
    ),
  );
}

function fromArrow(data: Data, i: number): Value {
  if (!data.getValid(i)) return null;
  const { type, values, valueOffsets, children } = data;
  const range = <T>(pick: (at: number) => T): T[] =>
    Array.from({ length: valueOffsets[i + 1]! - valueOffsets[i]! }, (_, k) => pick(valueOffsets[i]! + k));
  if (ArrowType.isBool(type)) return ((values[i >> 3]! >> (i & 7)) & 1) === 1;
  if (ArrowType.isUtf8(type)) return new TextDecoder("utf-8", { ignoreBOM: true }).decode(slice(data, i));
  if (ArrowType.isBinary(type)) return slice(data, i);
  if (ArrowType.isFixedSizeBinary(type)) return values.slice(i * type.byteWidth, (i + 1) * type.byteWidth);
  if (ArrowType.isDecimal(type)) {
    const words = values.subarray((i * type.bitWidth) / 32, ((i + 1) * type.bitWidth) / 32) as Uint32Array;
    return BigInt.asIntN(
      type.bitWidth,
      words.reduceRight((all, word) => (all << 32n) | BigInt(word), 0n),
    );
  }
  if (ArrowType.isList(type)) return range((at) => fromArrow(children[0]!, at));
  if (ArrowType.isMap(type)) {
    const [key, value] = children[0]!.children;
    return range((at): Value => [fromArrow(key!, at), fromArrow(value!, at)]);
  }
  if (ArrowType.isStruct(type)) {
    return Object.fromEntries(type.children.map(({ name }, child) => [name, fromArrow(children[child]!, i)]));
  }
  // Integers, floats, dates, times and timestamps: numbers up to 32 bits, else bigints.
  return values[i] as number | bigint;
}

function slice({ values, valueOffsets }: Data, i: number): Uint8Array {
  return values.slice(valueOffsets[i], valueOffsets[i + 1]);
}
