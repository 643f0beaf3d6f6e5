/** What hyparquet reads from a file of ours, in the form of `rows.json`. Runs wherever JavaScript does. */

import type { DataType, Schema } from "@eider/core";
import { parquetMetadata, parquetRead, type SchemaElement } from "hyparquet";
import { compressors } from "hyparquet-compressors";

// `ignoreBOM` keeps a U+FEFF at the start of a value.
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Values as they are stored, where hyparquet's own conversion would round them or cut them to milliseconds. */
const PARSERS = {
  timestampFromMilliseconds: (millis: bigint) => millis,
  timestampFromMicroseconds: (micros: bigint) => micros,
  timestampFromNanoseconds: (nanos: bigint) => nanos,
  dateFromDays: (days: number) => days,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && decoder.decode(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && decoder.decode(bytes),
};

export async function hyparquetRows(file: Uint8Array<ArrayBuffer>, schema: Schema): Promise<unknown[]> {
  const metadata = parquetMetadata(file.buffer);
  const elements = metadata.schema.map(withoutConversion);
  let rows: readonly (readonly unknown[])[] = [];
  await parquetRead({
    file: file.buffer,
    metadata: { ...metadata, schema: elements },
    compressors,
    parsers: PARSERS,
    // Text columns are text all the same, and binary ones are not.
    utf8: false,
    // As an object a row would lose its column `__proto__`.
    rowFormat: "array",
    onComplete: (read) => {
      rows = read;
    },
  });
  return rows.map((row) => Object.fromEntries(schema.fields.map(({ name, type }, i) => [name, toJson(type, row[i])])));
}

/** hyparquet makes a double of a decimal, and text of bytes that are none. */
function withoutConversion(element: SchemaElement): SchemaElement {
  const { converted_type, logical_type, ...rest } = element;
  return converted_type === "DECIMAL" ? rest : element;
}

function toJson(type: DataType, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  switch (type.kind) {
    case "decimal":
      return decimalText(value instanceof Uint8Array ? bigEndian(value) : BigInt(value as bigint | number), type.scale);
    case "date":
      return new Date((value as number) * 86_400_000).toISOString().slice(0, 10);
    case "time":
      return instantText(value as bigint).slice(11);
    case "timestamp":
      return instantText(value as bigint);
    case "timestamptz":
      return `${instantText(value as bigint)}Z`;
    case "binary":
    case "fixed":
      return btoa(Array.from(value as Uint8Array, (byte) => String.fromCharCode(byte)).join(""));
    case "list":
      return (value as unknown[]).map((item) => toJson(type.element.type, item));
    case "struct": {
      const fields = value as Readonly<Record<string, unknown>>;
      return Object.fromEntries(type.fields.map((field) => [field.name, toJson(field.type, fields[field.name])]));
    }
    case "map":
      return mapJson(type.key.type, type.value.type, value);
    default:
      if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
      if (typeof value !== "bigint") return value;
      return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
}

/** Maps with text keys as objects, others as pairs. */
function mapJson(keyType: DataType, valueType: DataType, value: unknown): unknown {
  const pairs = (value instanceof Map ? [...value] : Object.entries(value as object)).map(([key, item]) => [
    toJson(keyType, key),
    toJson(valueType, item),
  ]);
  return keyType.kind === "string" ? Object.fromEntries(pairs) : pairs;
}

function bigEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(8 * bytes.length, value);
}

function decimalText(unscaled: bigint, scale: number): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  const sign = unscaled < 0n ? "-" : "";
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

/** Microseconds as `2031-02-03T04:05:06.000000`. */
function instantText(micros: bigint): string {
  const millis = micros >= 0n || micros % 1000n === 0n ? micros / 1000n : micros / 1000n - 1n;
  const text = new Date(Number(millis)).toISOString().slice(0, -1);
  return text + String(micros - millis * 1000n).padStart(3, "0");
}
