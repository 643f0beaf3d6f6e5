/** `eider rejects`, `eider replay` and `eider purge-rejects`: rows that were kept aside, and what becomes of them. */

import { type Command, Option } from "commander";
import type { AppendResult, ListedReject, PurgeRejectsOptions, ReplayOptions, Table } from "eider";
import {
  names,
  oneCharacter,
  positiveNumber,
  schemaModeOption,
  snapshotOrInstant,
  tableCommand,
} from "../arguments.js";
import { type Context, type JsonFlag, print, printList, READ, withLake } from "../context.js";
import { cut, formatCount, plural, printable } from "../text.js";

/** Lines of a list, unless told. */
const LIMIT = 1000;
/** Columns of a reject's text; it may be 64 KiB long, and JSON has all of it. */
const RAW_WIDTH = 100;
/** Most rejects of one replay. */
const REPLAY_LIMIT = 10_000;

interface ListFlags extends JsonFlag {
  readonly batchId?: string;
  readonly open?: boolean;
  readonly after?: string;
  readonly limit: number;
}

export function rejectsCommand(context: Context): Command {
  return tableCommand(
    "rejects",
    "list rows that were kept aside",
    "List the rows that could not be taken and were kept aside by append --on-reject quarantine.",
  )
    .option("--batch-id <id>", "only those of a batch")
    .option("--open", "only those that were neither replayed nor purged")
    .option("--limit <n>", "how many at the most", positiveNumber, LIMIT)
    .option("--after <id>", "only those behind a reject: the next page")
    .addHelpText(
      "after",
      "\nExamples:\n  eider rejects ./lake events\n  eider rejects ./lake events --open --json\n" +
        "  eider rejects ./lake events --limit 20 --after 117-19",
    )
    .action(async (where: string, name: string, { json, ...options }: ListFlags) => {
      const rejects = await withLake(where, READ, (lake) => lake.table(name).rejects(options));
      const headers = ["id", "line", "state", "reason", "batch", "row"];
      await printList(context, json ? { json } : {}, rejects, headers, (reject) => [
        reject.id,
        reject.line,
        stateOf(reject),
        reject.reason,
        reject.batchId,
        cut(printable(reject.raw), RAW_WIDTH),
      ]);
    });
}

function stateOf({ replayedIn, purgedIn }: ListedReject): string {
  const became = [...(replayedIn === undefined ? [] : ["replayed"]), ...(purgedIn === undefined ? [] : ["purged"])];
  return became.join(", ") || "open";
}

interface ReplayFlags extends JsonFlag, Pick<ReplayOptions, "format" | "schemaMode" | "onReject"> {
  readonly batchId?: string;
  readonly all?: boolean;
  readonly columns?: readonly string[];
  readonly delimiter?: string;
}

const REPLAY_HELP = `
The rejects named are one batch: all of it is committed, or nothing. Each reject
is taken once: the same command again is a duplicate that changes nothing. With
--batch-id or --all every open one is taken, ${formatCount(REPLAY_LIMIT)} to a batch.

Examples:
  eider replay ./lake events 12-0 12-3
  eider replay ./lake events --batch-id upload-42 --on-reject quarantine
  eider replay ./lake sales --all --format csv --columns id,name,price`;

export function replayCommand(context: Context): Command {
  return tableCommand(
    "replay",
    "append rejects in another try, each once",
    "Append rows that were kept aside in another try: after the table's schema has changed, or in another mode.",
  )
    .argument("[id...]", "ids of rejects, from eider rejects")
    .option("--batch-id <id>", "the open rejects of a batch")
    .option("--all", "all open rejects of the table")
    .addOption(
      new Option("--format <format>", "how their texts are written (default: ndjson)").choices([
        "ndjson",
        "csv",
        "tsv",
      ]),
    )
    .option("--columns <names>", "of CSV and TSV: the columns of the texts, by commas", names)
    .option("--delimiter <character>", "of CSV (default: a comma)", oneCharacter)
    .addOption(schemaModeOption())
    .addOption(
      new Option(
        "--on-reject <what>",
        "a row that cannot be taken this time fails the replay, or is kept aside again (default: fail)",
      ).choices(["fail", "quarantine"]),
    )
    .addHelpText("after", REPLAY_HELP)
    .action(async (where: string, name: string, ids: readonly string[], flags: ReplayFlags, command: Command) => {
      const ways = [ids.length > 0, flags.batchId !== undefined, flags.all === true].filter((given) => given);
      if (ways.length !== 1) {
        command.error("error: name rejects by their ids, or give --batch-id, or --all", { exitCode: 2 });
      }
      if ((flags.format ?? "ndjson") !== "ndjson" && !flags.columns) {
        command.error(`error: rejects of ${flags.format} have no header with them: name --columns`, { exitCode: 2 });
      }
      await withLake(where, { mode: "open" }, async (lake) => {
        const table = lake.table(name);
        let done = 0;
        for (const some of ids.length > 0 ? [ids] : await openIds(table, flags.batchId)) {
          const result = await table.replay(some, replayOptions(context, flags));
          await print(context, flags, result, () => describe(result));
          done++;
        }
        if (done === 0 && !flags.json) await print(context, flags, {}, () => "no open rejects\n");
      });
    });
}

/** As they are when this begins: rows that are rejected again are not tried again. */
async function openIds(table: Table, batchId: string | undefined): Promise<string[][]> {
  const groups: string[][] = [];
  let after: string | undefined;
  for (;;) {
    const page = await table.rejects({
      open: true,
      limit: LIMIT,
      ...(batchId !== undefined && { batchId }),
      ...(after !== undefined && { after }),
    });
    for (const { id } of page) {
      if ((groups.at(-1)?.length ?? REPLAY_LIMIT) === REPLAY_LIMIT) groups.push([]);
      groups.at(-1)!.push(id);
    }
    after = page.at(-1)?.id;
    if (page.length < LIMIT) return groups;
  }
}

function replayOptions({ signal }: Context, flags: ReplayFlags): ReplayOptions {
  const { format, schemaMode, onReject, columns, delimiter } = flags;
  return {
    signal,
    ...(format && { format }),
    ...(schemaMode && { schemaMode }),
    ...(onReject && { onReject }),
    ...((columns || delimiter !== undefined) && {
      csv: { ...(columns && { header: columns }), ...(delimiter !== undefined && { delimiter }) },
    }),
  };
}

function describe({ status, rowsRejected, receipt }: AppendResult): string {
  const parts = [
    plural(receipt.rows, "row"),
    ...(rowsRejected > 0 ? [`${plural(rowsRejected, "row")} rejected again`] : []),
    `snapshot ${receipt.snapshot}`,
    `batch ${receipt.batchId}`,
  ];
  return `${printable(`${status}  ${receipt.table}: ${parts.join(", ")}`)}\n`;
}

interface PurgeFlags extends JsonFlag {
  readonly batchId?: string;
  readonly before?: number | Date;
}

const PURGE_HELP = `
There is no way back. What was wrong with a row stays listed, and receipts count
it still. After an interruption run the same command again.

Examples:
  eider purge-rejects ./lake events 12-0 12-3
  eider purge-rejects ./lake events --before 2031-02-03
  eider purge-rejects ./lake events --batch-id upload-42`;

export function purgeRejectsCommand(context: Context): Command {
  return tableCommand(
    "purge-rejects",
    "take the texts of rejects away for good",
    "Take the texts of rows that were kept aside away for good, from the catalog and from the log.",
  )
    .argument("[id...]", "ids of rejects, from eider rejects")
    .option("--batch-id <id>", "those of a batch")
    .option(
      "--before <snapshot>",
      "those committed before a snapshot: its number, or a time like 2031-02-03T04:05Z",
      snapshotOrInstant,
    )
    .addHelpText("after", PURGE_HELP)
    .action(async (where: string, name: string, ids: readonly string[], flags: PurgeFlags, command: Command) => {
      const { batchId, before } = flags;
      const options: PurgeRejectsOptions = {
        signal: context.signal,
        ...(ids.length > 0 && { ids }),
        ...(batchId !== undefined && { batchId }),
        ...(before !== undefined && { before }),
      };
      if (Object.keys(options).length !== 2) {
        command.error("error: name rejects by their ids, or give --batch-id, or --before", { exitCode: 2 });
      }
      const result = await withLake(where, { mode: "open" }, (lake) => lake.table(name).purgeRejects(options));
      await print(context, flags, result, () => `${plural(result.purged, "reject")} purged\n`);
    });
}
