/** `eider sql`: one query, its result in a format for people or for programs. */

import { assignFieldIds, ParquetEncoder, parquetReady, type Schema, storedSchema } from "@eider/core";
import { Command, Option } from "commander";
import { InvalidInputError, type Query } from "eider";
import { type Context, withLake } from "../context.js";
import { type Cell, formatCount, formatTable, toJson } from "../output.js";
import { write } from "../terminal.js";
import { snapshotNumber } from "./inspect.js";

type Row = Record<string, unknown>;

/** Rows a table shows before it says how many more there are. */
const TABLE_ROWS = 1000;

export function sqlCommand(context: Context): Command {
  return new Command("sql")
    .description("Run one SELECT over the tables of a lake.")
    .argument("<lake>", "folder of the lake")
    .argument("<query>", "the SQL, or - to read it from standard input")
    .addOption(
      new Option("--format <format>", "how to print the result")
        .choices(["table", "json", "ndjson", "csv", "parquet", "arrow"])
        .default("table"),
    )
    .option("--at <snapshot>", "read every table as of a snapshot", snapshotNumber)
    .action(
      async (where: string, text: string, flags: { format: keyof typeof printers; at?: number }, command: Command) => {
        const { stdout, stdin } = context.terminal;
        if ((flags.format === "parquet" || flags.format === "arrow") && stdout.isTTY) {
          command.error(`error: ${flags.format} is binary: send it to a file with > name`, { exitCode: 2 });
        }
        const sql = text === "-" ? await readAll(stdin) : text;
        await withLake(where, { mode: "read" }, async (lake) => {
          const runner = lake.with({
            values: flags.format === "json" || flags.format === "ndjson" ? "json" : "exact",
            signal: context.signal,
            ...(flags.at !== undefined && { at: flags.at }),
          });
          await printers[flags.format](context, runner.sql<Row>(sql));
        });
      },
    );
}

async function readAll(stream: AsyncIterable<unknown>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString("utf8");
}

const printers = { table, json, ndjson, csv, parquet, arrow };

async function table(context: Context, query: Query<Row>): Promise<void> {
  const columns = (await query.columns()).map((column) => column.name);
  const rows: Cell[][] = [];
  let count = 0;
  for await (const row of query) {
    if (count++ < TABLE_ROWS) rows.push(columns.map((name) => toCell(row[name])));
  }
  const more = count > TABLE_ROWS ? `… and ${formatCount(count - TABLE_ROWS)} more; --format prints them all\n` : "";
  await write(context.terminal.stdout, `${formatTable(columns, rows)}${more}`);
}

function toCell(value: unknown): Cell {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "string") return value;
  if (value === null || value === undefined) return null;
  return toText(value);
}

/** A value as text: the same in tables and in CSV. */
function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  return typeof value === "object" ? toJson(plain(value)) : String(value);
}

/** Maps become objects, which is how JSON shows them. */
function plain(value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, item]) => [String(key), plain(item)]));
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === "object" && value !== null && !(value instanceof Uint8Array)) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
  }
  return value;
}

async function json(context: Context, query: Query<Row>): Promise<void> {
  const { stdout } = context.terminal;
  let separator = "[\n";
  for await (const row of query) {
    await write(stdout, `${separator}${JSON.stringify(row)}`);
    separator = ",\n";
  }
  await write(stdout, separator === "[\n" ? "[]\n" : "\n]\n");
}

async function ndjson(context: Context, query: Query<Row>): Promise<void> {
  for await (const row of query) await write(context.terminal.stdout, `${JSON.stringify(row)}\n`);
}

/** RFC 4180. Null is an empty cell, the empty text is `""`. */
async function csv(context: Context, query: Query<Row>): Promise<void> {
  const { stdout } = context.terminal;
  const columns = (await query.columns()).map((column) => column.name);
  await write(stdout, `${columns.map(csvText).join(",")}\r\n`);
  for await (const row of query) {
    const cells = columns.map((name) => (row[name] === null ? "" : csvText(toText(row[name]))));
    await write(stdout, `${cells.join(",")}\r\n`);
  }
}

function csvText(text: string): string {
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

async function arrow(context: Context, query: Query<Row>): Promise<void> {
  const reader = query.arrowIPC().getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    await write(context.terminal.stdout, next.value);
  }
}

async function parquet(context: Context, query: Query<Row>): Promise<void> {
  const { stdout } = context.terminal;
  await parquetReady();
  let encoder: ParquetEncoder | undefined;
  for await (const batch of query.batches()) {
    const schema = exportSchema(batch.schema);
    encoder ??= new ParquetEncoder(schema);
    for (const chunk of encoder.writeRowGroup({ ...batch, schema })) await write(stdout, chunk);
  }
  for (const chunk of encoder?.finish() ?? []) await write(stdout, chunk);
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
