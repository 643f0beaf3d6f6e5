/** `eider append`: files, or standard input, into a table. Each file is one batch. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { basename } from "node:path";
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import {
  type AppendOptions,
  type AppendResult,
  type CsvOptions,
  type Format,
  NotFoundError,
  type Source,
  type Table,
} from "eider";
import { type Context, withLake } from "../context.js";
import { formatCount, toJson } from "../output.js";
import { progressLine } from "../progress.js";
import { write } from "../terminal.js";

interface Flags {
  readonly batchId?: string;
  readonly format?: Format;
  readonly partitionBy?: readonly string[];
  readonly orderBy?: readonly string[];
  readonly schemaMode?: "evolve" | "strict" | "ignore";
  readonly onReject?: "fail" | "quarantine";
  readonly delimiter?: string;
  readonly header: boolean;
  readonly json?: boolean;
}

export function appendCommand(context: Context): Command {
  return new Command("append")
    .description(
      "Append files to a table, each file as one batch. The lake and the table are made if they do not exist.",
    )
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table: events, or ns.events")
    .addArgument(
      new Argument("[files...]", "NDJSON, JSON, CSV, Parquet or Arrow, plain, gzip or zstd; - is standard input"),
    )
    .option(
      "--batch-id <id>",
      "the batch's id, for one file or standard input (default: the file's name and content hash)",
    )
    .addOption(
      new Option("--format <format>", "format of the input (default: by content, then by name)").choices([
        "ndjson",
        "json",
        "csv",
        "tsv",
        "parquet",
        "arrow",
      ]),
    )
    .option("--partition-by <expression...>", "for a new table: col, day(ts), bucket(16, id), …")
    .option("--order-by <column...>", "for a new table: columns to sort each data file by")
    .addOption(
      new Option("--schema-mode <mode>", "what to do with fields the table lacks").choices([
        "evolve",
        "strict",
        "ignore",
      ]),
    )
    .addOption(
      new Option("--on-reject <what>", "what to do with rows that cannot be taken").choices(["fail", "quarantine"]),
    )
    .option("--delimiter <character>", "of CSV input (default: detected)", oneCharacter)
    .option("--no-header", "the first record of CSV input holds values, not names")
    .action(async (lake: string, table: string, files: readonly string[], flags: Flags, command: Command) => {
      const sources = files.length === 0 ? ["-"] : files;
      if (flags.batchId !== undefined && sources.length > 1) {
        command.error("error: --batch-id names one batch, but there are several files: append them one by one", {
          exitCode: 2,
        });
      }
      if (sources.filter((file) => file === "-").length > 1) {
        command.error("error: standard input (-) can be read only once", { exitCode: 2 });
      }
      await withLake(lake, {}, async (open) => {
        const handle = open.table<unknown>(table, {
          ...(flags.partitionBy && { partitionBy: flags.partitionBy }),
          ...(flags.orderBy && { orderBy: flags.orderBy }),
        });
        for (const file of sources) await appendOne(context, handle, file, flags);
      });
    });
}

function oneCharacter(value: string): string {
  const text = value === "\\t" ? "\t" : value;
  if ([...text].length !== 1) throw new InvalidArgumentError("one character, or \\t for a tab");
  return text;
}

async function appendOne(context: Context, table: Table<unknown>, file: string, flags: Flags): Promise<void> {
  const { terminal, signal } = context;
  const name = file === "-" ? "standard input" : basename(file);
  const batchId = flags.batchId ?? (file === "-" ? undefined : await defaultBatchId(file, signal));
  const csv: CsvOptions = {
    ...(flags.delimiter !== undefined && { delimiter: flags.delimiter }),
    ...(!flags.header && { header: false }),
  };
  const progress = progressLine(terminal, name);
  const options: AppendOptions = {
    ...(batchId !== undefined && { batchId }),
    ...(flags.format && { format: flags.format }),
    ...(flags.schemaMode && { schemaMode: flags.schemaMode }),
    ...(flags.onReject && { onReject: flags.onReject }),
    ...(Object.keys(csv).length > 0 && { csv }),
    signal,
    onProgress: (update) => progress.update(update),
  };
  const source: Source<unknown> = file === "-" ? (terminal.stdin as AsyncIterable<Uint8Array>) : { file };
  let result: AppendResult;
  try {
    result = await table.append(source, options);
  } finally {
    progress.stop();
  }
  await write(terminal.stdout, flags.json ? `${toJson({ file, ...result })}\n` : `${describe(name, result)}\n`);
}

/** The file's name and content: the same file is the same batch wherever it lies, and changed content is another. */
async function defaultBatchId(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024, signal }))
      hash.update(chunk as Buffer);
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    const { code } = cause as NodeJS.ErrnoException;
    const message = code === "ENOENT" ? `there is no file ${file}` : `cannot read ${file} (${code ?? "unknown error"})`;
    throw new NotFoundError(code === "ENOENT" ? "file_not_found" : "file_unreadable", message, {
      subject: file,
      cause,
    });
  }
  return `${basename(file)}@${hash.digest("hex")}`;
}

function describe(name: string, { status, rowsAdded, rowsRejected, receipt }: AppendResult): string {
  const rows = status === "committed" ? rowsAdded : receipt.rows;
  const rejected = rowsRejected > 0 ? `, ${formatCount(rowsRejected)} rejected` : "";
  return `${status}  ${name} → ${receipt.table}: ${formatCount(rows)} rows${rejected}, snapshot ${receipt.snapshot}, batch ${receipt.batchId}`;
}
