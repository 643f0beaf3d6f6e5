/** `eider append`: files, or standard input, into a table. Each file is one batch, or a batch in parts. */

import { createReadStream } from "node:fs";
import { Argument, Command, Option } from "commander";
import {
  type AppendOptions,
  type AppendPartsResult,
  type AppendResult,
  InvalidInputError,
  type Progress,
  type Source,
  type Table,
} from "eider";
import { byteSize, expressions, oneCharacter, schemaModeOption } from "../arguments.js";
import { type Context, type JsonFlag, print, withLake } from "../context.js";
import { Failure } from "../failure.js";
import { fingerprint, type InputFile, inputFile } from "../input-file.js";
import { progressLine } from "../progress.js";
import { OutputClosed, readInput } from "../terminal.js";
import { plural, printable } from "../text.js";

interface Flags extends JsonFlag, Pick<AppendOptions, "format" | "schemaMode" | "onReject"> {
  readonly batchId?: string;
  /** Bytes of a part; true is the default. */
  readonly parts?: number | true;
  readonly partitionBy?: readonly string[];
  readonly orderBy?: readonly string[];
  readonly delimiter?: string;
  readonly header: boolean;
}

const HELP = `
Each file is one batch: all of it is committed, or nothing. Its id is its name
and the hash of its content, so the same file again is a duplicate that changes
nothing, and a file that has changed is a new batch. After a failure or Ctrl-C
run the same command again. Standard input has a lasting id only by --batch-id.
With --parts a file is committed part by part, and the same command again goes
on with the first part that is missing.

Examples:
  eider append ./lake events clicks.ndjson.gz
  eider append ./lake events *.parquet --partition-by "day(ts)" --order-by id
  curl -s https://example.com/rates.csv |
    eider append ./lake rates - --batch-id rates-2031-02-03
  eider append ./lake sales sales.txt --format csv --on-reject quarantine
  eider append ./lake events 2030.ndjson.zst --parts=1GiB`;

export function appendCommand(context: Context): Command {
  return new Command("append")
    .summary("append files to a table, each once")
    .description("Append files to a table, each as one batch. The lake and the table are made if they do not exist.")
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table: events, or ns.events")
    .addArgument(
      new Argument("[files...]", "NDJSON, JSON, CSV, TSV, Parquet or Arrow; plain, gzip or zstd; - is standard input"),
    )
    .option("--batch-id <id>", "the batch's id, for one input (default: its name and the hash of its content)")
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
    .option(
      "--partition-by <expressions>",
      "for a new table: col, year|month|day|hour(col), bucket(n, col), truncate(w, col); several by commas",
      expressions,
    )
    .option("--order-by <columns>", "for a new table: what each data file is sorted by; several by commas", expressions)
    .addOption(schemaModeOption())
    .addOption(
      new Option(
        "--on-reject <what>",
        "a row that cannot be taken fails the batch, or is kept aside (default: fail)",
      ).choices(["fail", "quarantine"]),
    )
    .option(
      "--parts [size]",
      "commit in parts of so many bytes, decompressed: --parts=64MiB (default: 256MiB)",
      byteSize,
    )
    .option("--delimiter <character>", "of CSV input (default: detected)", oneCharacter)
    .option("--no-header", "the first record of CSV input holds values, not names")
    .addHelpText("after", HELP)
    .action(async (where: string, name: string, files: readonly string[], flags: Flags, command: Command) => {
      const problem = usageProblem(where, files, flags, context);
      if (problem !== undefined) command.error(`error: ${problem}`, { exitCode: 2 });
      const inputs: InputFile[] = [];
      for (const file of files.length === 0 ? ["-"] : files) inputs.push(await inputFile(file));
      if (flags.parts !== undefined && flags.batchId === undefined && inputs.some(({ kind }) => kind !== "file")) {
        command.error("error: --parts of what can be read only once needs --batch-id, by which another try goes on", {
          exitCode: 2,
        });
      }
      await withLake(where, {}, async (lake) => {
        const table = lake.table<unknown>(name, {
          ...(flags.partitionBy && { partitionBy: flags.partitionBy }),
          ...(flags.orderBy && { orderBy: flags.orderBy }),
        });
        for (const [at, input] of inputs.entries()) {
          try {
            await report(context, flags, input, await appendOne(context, table, input, flags));
          } catch (error) {
            throw new Failure(error, inputs.length > 1 ? [position(inputs, at)] : []);
          }
        }
      });
    });
}

function usageProblem(where: string, files: readonly string[], flags: Flags, context: Context): string | undefined {
  if (/^memory:/i.test(where)) return "a lake in memory would end with this command: name a folder";
  if (flags.batchId !== undefined && files.length > 1) {
    return "--batch-id names one batch, but there are several files: append them one by one";
  }
  if (files.filter((file) => file === "-").length > 1) return "standard input (-) can be read only once";
  if (files.length === 0 && context.terminal.stdin.isTTY) return "name files to append, or - to type rows here";
  return undefined;
}

/** What was done before a failure, and what was not. */
function position(inputs: readonly InputFile[], at: number): string {
  const names = (some: readonly InputFile[]): string => some.map(({ argument }) => argument).join(", ");
  const before = at === 0 ? "nothing was committed" : `committed: ${names(inputs.slice(0, at))}`;
  const after = at === inputs.length - 1 ? "" : `; not tried: ${names(inputs.slice(at + 1))}`;
  return `${inputs[at]!.argument} is file ${at + 1} of ${inputs.length}; ${before}${after}. Run the same command again: what is committed will be a duplicate.`;
}

async function appendOne(
  context: Context,
  table: Table<unknown>,
  input: InputFile,
  flags: Flags,
): Promise<AppendResult | AppendPartsResult> {
  const progress = progressLine(context.terminal, input.name);
  const stop = new AbortController();
  try {
    const print =
      input.kind === "file" && flags.batchId === undefined
        ? await fingerprint(input.argument, {
            signal: context.signal,
            onProgress: (bytes, totalBytes) => progress.update({ phase: "hash", bytes, totalBytes }),
          })
        : undefined;
    const options = {
      ...appendOptions(flags),
      ...(flags.batchId !== undefined && { batchId: flags.batchId }),
      // An id with the content's hash in it proves that the content is the same: no need to read it again to compare.
      ...(print && { batchId: `${input.name}@${print.sha256}`, onSeen: "trust" as const }),
      signal: AbortSignal.any([context.signal, stop.signal]),
      onProgress: (update: Progress) => {
        progress.update(update);
        // The last moment before the commit: what was read must be what the id says.
        if (update.phase === "commit" && print?.isCurrent() === false) stop.abort(changed(input));
      },
    };
    const source = sourceOf(context, input);
    const { parts } = flags;
    if (parts === undefined) return await table.append(source, options);
    // What is read only once was asked for an id before.
    return await table.appendParts(source, {
      ...options,
      batchId: options.batchId!,
      ...(parts !== true && { partBytes: parts }),
    });
  } finally {
    progress.stop();
  }
}

function appendOptions(flags: Flags): Pick<AppendOptions, "format" | "schemaMode" | "onReject" | "csv"> {
  const { format, schemaMode, onReject, delimiter, header } = flags;
  return {
    ...(format && { format }),
    ...(schemaMode && { schemaMode }),
    ...(onReject && { onReject }),
    ...((delimiter !== undefined || !header) && {
      csv: { ...(delimiter !== undefined && { delimiter }), ...(!header && { header }) },
    }),
  };
}

function sourceOf({ terminal, signal }: Context, { kind, argument, name }: InputFile): Source<unknown> {
  if (kind === "file") return { file: argument };
  return notEmpty(readInput(kind === "stdin" ? terminal.stdin : createReadStream(argument), name, signal), name);
}

/** A pipe without a byte is a command before it that failed: as a batch of no rows it would take the batch's id. */
async function* notEmpty(source: AsyncIterable<Uint8Array>, name: string): AsyncIterable<Uint8Array> {
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes === 0) throw new InvalidInputError("empty_input", `${name} gave no byte: nothing was committed`);
}

function changed({ argument }: InputFile): Error {
  return new InvalidInputError("file_changed", `${argument} changed while it was read: append it again`, {
    subject: argument,
  });
}

async function report(
  context: Context,
  flags: Flags,
  input: InputFile,
  result: AppendResult | AppendPartsResult,
): Promise<void> {
  try {
    await print(context, flags, { file: input.argument, ...result }, () => describe(input.name, result));
  } catch (error) {
    // Nobody reads what is printed any more; the files are to be appended all the same.
    if (!(error instanceof OutputClosed)) throw error;
  }
}

function describe(name: string, result: AppendResult | AppendPartsResult): string {
  const { status, rowsRejected, ignoredFields, receipt } = result;
  const { table, snapshot, batchId } = receipt;
  const inParts = "parts" in result;
  const ignored = Object.entries(ignoredFields ?? {}).map(([field, count]) => `${field} (${count})`);
  const facts = [
    ...(inParts ? [`${plural(result.parts, "part")}, ${result.partsCommitted} of them new`] : []),
    plural(inParts ? result.rows : receipt.rows, "row"),
    ...(rowsRejected > 0 ? [`${plural(rowsRejected, "row")} rejected`] : []),
    ...(ignored.length > 0 ? [`fields ignored: ${ignored.join(", ")}`] : []),
    `snapshot ${snapshot}`,
    `batch ${batchId}`,
  ];
  return `${printable(`${status}  ${name} → ${table}: ${facts.join(", ")}`)}\n`;
}
