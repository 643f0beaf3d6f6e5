/** A query's result in each format: text for people, text for programs, bytes. */

import { assignFieldIds, ParquetEncoder, parquetReady, type Schema, storedSchema } from "@eider/core";
import { InvalidInputError, type Query } from "eider";
import { toJson } from "./json.js";
import { type Cell, formatTable } from "./table.js";
import { type Terminal, write, writeAll } from "./terminal.js";
import { formatCount, printableLines } from "./text.js";

export type Row = Record<string, unknown>;

/** Rows a table shows at the most: all of them have to be known before its first line. */
const TABLE_ROWS = 1000;

type Printer = (terminal: Terminal, query: Query<Row>) => Promise<void>;

export type FormatName = "table" | "json" | "ndjson" | "csv" | "parquet" | "arrow";

export const formats: Readonly<Record<FormatName, Printer>> = {
  table: async ({ stdout }, query) => write(stdout, await tableText(query, stdout.isTTY ? stdout.columns : undefined)),
  json: ({ stdout }, query) => writeAll(stdout, jsonText(query)),
  ndjson: ({ stdout }, query) => writeAll(stdout, ndjsonText(query)),
  csv: ({ stdout }, query) => writeAll(stdout, csvText(query)),
  parquet: ({ stdout }, query) => writeBytes(stdout, parquetBytes(query)),
  arrow: ({ stdout }, query) => writeBytes(stdout, query.arrowIPC()),
};

async function writeBytes(stdout: Terminal["stdout"], pieces: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const piece of pieces) await write(stdout, piece);
}

/** The result's columns in their order. JavaScript moves keys that look like indexes to the front of an object. */
async function columnNames(query: Query<Row>, first: Row | undefined): Promise<string[]> {
  const keys = first === undefined ? undefined : Object.keys(first);
  if (keys !== undefined && !keys.some((key) => /^\d+$/.test(key))) return keys;
  return (await query.columns()).map((column) => column.name);
}

async function tableText(query: Query<Row>, width: number | undefined): Promise<string> {
  const rows: Row[] = [];
  let more = false;
  for await (const row of query) {
    more = rows.length === TABLE_ROWS;
    if (more) break;
    rows.push(row);
  }
  const names = await columnNames(query, rows[0]);
  if (names.join() === "explain_key,explain_value") {
    return rows.map((row) => `${printableLines(String(row.explain_value)).trimEnd()}\n`).join("");
  }
  const cells = rows.map((row) => names.map((name) => cell(row[name])));
  const text = formatTable(names, cells, { width, nullText: "NULL" });
  return more
    ? `${text}only the first ${formatCount(TABLE_ROWS)} rows: --format csv, json or ndjson prints all\n`
    : text;
}

function cell(value: unknown): Cell {
  return typeof value === "number" || typeof value === "bigint" ? value : text(value);
}

/** A value as text, the same in tables and in CSV: nested ones as JSON, bytes as base64. */
function text(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return typeof value === "object" ? toJson(withoutMaps(value)) : String(value);
}

/** Maps become objects, which is how JSON shows them. */
function withoutMaps(value: unknown): unknown {
  if (value instanceof Map) {
    return Object.fromEntries([...value].map(([key, item]) => [text(key), withoutMaps(item)]));
  }
  if (Array.isArray(value)) return value.map(withoutMaps);
  if (typeof value === "object" && value !== null && !(value instanceof Uint8Array)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutMaps(item)]));
  }
  return value;
}

async function* jsonText(query: Query<Row>): AsyncIterable<string> {
  let separator = "[\n";
  for await (const row of query) {
    yield `${separator}${JSON.stringify(row)}`;
    separator = ",\n";
  }
  yield separator === "[\n" ? "[]\n" : "\n]\n";
}

async function* ndjsonText(query: Query<Row>): AsyncIterable<string> {
  for await (const row of query) yield `${JSON.stringify(row)}\n`;
}

/** RFC 4180 but for line ends, which are those of other tools in a pipe. Null is an empty cell, the empty text is `""`. */
async function* csvText(query: Query<Row>): AsyncIterable<string> {
  let names: string[] | undefined;
  for await (const row of query) {
    if (names === undefined) {
      names = await columnNames(query, row);
      yield csvLine(names);
    }
    yield csvLine(names.map((name) => text(row[name])));
  }
  if (names === undefined) yield csvLine(await columnNames(query, undefined));
}

function csvLine(cells: readonly (string | null)[]): string {
  return `${cells.map((value) => (value === null ? "" : csvCell(value))).join(",")}\n`;
}

function csvCell(value: string): string {
  return value === "" || /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

async function* parquetBytes(query: Query<Row>): AsyncIterable<Uint8Array> {
  await parquetReady();
  let encoder: ParquetEncoder | undefined;
  for await (const batch of query.batches()) {
    const schema = exportSchema(batch.schema);
    encoder ??= new ParquetEncoder(schema);
    yield* encoder.writeRowGroup({ ...batch, schema });
  }
  if (encoder) yield* encoder.finish();
}

function exportSchema(schema: Schema): Schema {
  const stored = storedSchema(assignFieldIds(schema));
  if (stored.fields.length < schema.fields.length) {
    throw new InvalidInputError(
      "untyped_column",
      "a column of the result has no type: cast it, for example NULL::VARCHAR",
    );
  }
  return stored;
}
