/** `eider sql`: one query, its result in a format for people or for programs. */

import { Command, Option } from "commander";
import { QueryError } from "eider";
import { atOption, atOptions } from "../arguments.js";
import { type Context, READ, withLake } from "../context.js";
import { Failure } from "../failure.js";
import { sqlExcerpt } from "../sql-excerpt.js";
import { type FormatName, formats, type Row } from "../sql-formats.js";
import { readInput } from "../terminal.js";

interface Flags {
  readonly format: FormatName;
  readonly at?: number | string | Date;
}

const HELP = `
The SQL is DuckDB's. All tables are read at one snapshot. Formats:
  table           for people: up to 1,000 rows; a terminal cuts cells to fit
  json, ndjson    integers beyond 2^53 as text, bytes as base64
  csv             null is an empty cell, the empty text is ""
  parquet, arrow  for other tools, types kept; Arrow is an IPC stream

Examples:
  eider sql ./lake "SELECT type, count(*) FROM events GROUP BY ALL"
  eider sql ./lake "FROM events WHERE ts >= '2031-02-03'" --format csv > e.csv
  eider sql ./lake "FROM events" --at 12 --format parquet > events.parquet
  eider sql ./lake "SELECT count(*) FROM events AT (VERSION => 3)"
  eider sql ./lake - < report.sql`;

export function sqlCommand(context: Context): Command {
  return new Command("sql")
    .summary("run a query and print its result")
    .description("Run one SELECT over the tables of a lake.")
    .argument("<lake>", "folder of the lake")
    .argument("<query>", "the SQL, or - to read it from standard input")
    .addOption(
      new Option("--format <format>", "how to print the result").choices(Object.keys(formats)).default("table"),
    )
    .addOption(atOption("read every table as of"))
    .addHelpText("after", HELP)
    .action(async (where: string, text: string, flags: Flags, command: Command) => {
      const { terminal, signal } = context;
      if ((flags.format === "parquet" || flags.format === "arrow") && terminal.stdout.isTTY) {
        command.error(`error: ${flags.format} is binary: send it to a file with > name`, { exitCode: 2 });
      }
      const sql = text === "-" ? await readText(context) : text;
      const values = flags.format === "json" || flags.format === "ndjson" ? "json" : "exact";
      await withLake(where, READ, async (lake) => {
        const query = lake.with({ values, signal, ...atOptions(flags) }).sql<Row>(sql);
        try {
          await formats[flags.format](terminal, query);
        } catch (error) {
          if (!(error instanceof QueryError) || error.position === undefined) throw error;
          throw new Failure(error, sqlExcerpt(sql, error.position).split("\n"));
        }
      });
    });
}

async function readText({ terminal, signal }: Context): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of readInput(terminal.stdin, "standard input", signal)) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
