/** The test vectors: their files, and what plain DuckDB says of data, in the form of their `rows.json`. See test-vectors/README.md. */

import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import {
  DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  DuckDBUUIDValue,
} from "@duckdb/node-api";
import {
  type CsvOptions,
  type DataType,
  type ParquetOptions,
  type Schema,
  storedType,
  type TextFormat,
} from "@eider/core";

export const VECTORS: string = fileURLToPath(new URL("../test-vectors/", import.meta.url));
/** Topics that are not text, with runners of their own. */
const OTHER_TOPICS = /^(interop|events)\//;

export interface VectorInput {
  readonly file: string;
  readonly format: TextFormat;
  readonly csv: CsvOptions | undefined;
  readonly bytes: Uint8Array;
  readonly rejects: readonly { readonly line: number; readonly code: string }[];
  readonly facts: ParquetFacts | undefined;
}

export interface ParquetFacts {
  readonly rowGroups?: readonly number[];
  /** By path, joined with dots. */
  readonly columns?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface Vector {
  /** `topic/case` */
  readonly name: string;
  readonly about: string;
  readonly inputs: readonly VectorInput[];
  /** What the table is created with; undefined where the first input decides. */
  readonly declared: Readonly<Record<string, string>> | undefined;
  readonly parquet: ParquetOptions;
  /** Name to type of the table in the end. */
  readonly schema: Readonly<Record<string, string>>;
  readonly rows: readonly unknown[];
}

interface VectorFile {
  readonly about: string;
  readonly expected: string;
  readonly inputs: readonly { readonly file: string; readonly format: TextFormat; readonly csv?: CsvOptions }[];
  readonly schema?: Readonly<Record<string, string>>;
  readonly parquet?: ParquetOptions;
}

/** All vectors whose inputs are text, by name. */
export function loadVectors(): Vector[] {
  return readdirSync(VECTORS, { recursive: true, encoding: "utf8" })
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => path.endsWith("/vector.json") && !OTHER_TOPICS.test(path))
    .map((path) => load(path.slice(0, -"/vector.json".length)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function load(name: string): Vector {
  const read = (file: string): Uint8Array => readFileSync(`${VECTORS}${name}/${file}`);
  const json = <T>(file: string): T => JSON.parse(new TextDecoder().decode(read(file))) as T;
  const files = readdirSync(`${VECTORS}${name}`);
  const optional = <T>(file: string): T[] => (files.includes(file) ? json<T[]>(file) : []);
  const vector = json<VectorFile>("vector.json");
  const rejects = optional<VectorInput["rejects"]>("rejects.json");
  const facts = optional<ParquetFacts>("parquet.json");
  return {
    name,
    about: vector.about,
    inputs: vector.inputs.map(({ file, format, csv }, i) => ({
      file,
      format,
      csv,
      bytes: read(file),
      rejects: rejects[i] ?? [],
      facts: facts[i],
    })),
    declared: vector.schema,
    parquet: vector.parquet ?? {},
    schema: json("schema.json"),
    rows: json("rows.json"),
  };
}

/** Runs SQL whose columns are those of the schema, and gives its rows in the form of `rows.json`. */
export async function duckRows(connection: DuckDBConnection, sql: string, schema: Schema): Promise<unknown[]> {
  const reader = await connection.runAndReadAll(sql);
  const names = reader.columnNames();
  return reader
    .getRows()
    .map((row) =>
      Object.fromEntries(
        schema.fields.map((field) => [field.name, toJson(storedType(field.type), row[names.indexOf(field.name)])]),
      ),
    );
}

function toJson(type: DataType | undefined, value: unknown): unknown {
  if (value === null || value === undefined || type === undefined) return null;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint")
    return BigInt(Number(value)) === value && Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value instanceof DuckDBDecimalValue) return decimalText(value.value, value.scale);
  if (value instanceof DuckDBDateValue) return dateText(BigInt(value.days));
  if (value instanceof DuckDBTimeValue) return timeText(value.micros);
  if (value instanceof DuckDBTimestampValue) return timestampText(value.micros);
  if (value instanceof DuckDBTimestampTZValue) return `${timestampText(value.micros)}Z`;
  if (value instanceof DuckDBUUIDValue) return value.toString();
  if (value instanceof DuckDBBlobValue) return Buffer.from(value.bytes).toString("base64");
  if (value instanceof DuckDBListValue && type.kind === "list") {
    return value.items.map((item) => toJson(type.element.type, item));
  }
  if (value instanceof DuckDBStructValue && type.kind === "struct") {
    return Object.fromEntries(type.fields.map((f) => [f.name, toJson(f.type, value.entries[f.name])]));
  }
  if (value instanceof DuckDBMapValue && type.kind === "map") {
    const pairs = value.entries.map((entry) => [
      toJson(type.key.type, entry.key),
      toJson(type.value.type, entry.value),
    ]);
    return type.key.type.kind === "string" ? Object.fromEntries(pairs) : pairs;
  }
  return value;
}

function decimalText(unscaled: bigint, scale: number): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  const sign = unscaled < 0n ? "-" : "";
  return scale === 0 ? sign + digits : `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const DAY_MICROS = 86_400_000_000n;

function dateText(days: bigint): string {
  return new Date(Number(days) * 86_400_000).toISOString().slice(0, 10);
}

function timeText(micros: bigint): string {
  const seconds = Number(micros / 1_000_000n);
  const two = (n: number): string => String(n).padStart(2, "0");
  const fraction = String(micros % 1_000_000n).padStart(6, "0");
  return `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}.${fraction}`;
}

function timestampText(micros: bigint): string {
  // Towards the past: what is before 1970 has a positive time of day too.
  const ofDay = ((micros % DAY_MICROS) + DAY_MICROS) % DAY_MICROS;
  return `${dateText((micros - ofDay) / DAY_MICROS)}T${timeText(ofDay)}`;
}
