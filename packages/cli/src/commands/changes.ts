/** `eider changes`, `eider tag` and `eider rollback`: what happened to a table, and the way back. */

import { Command } from "commander";
import type { Change } from "eider";
import { atOption, atOptions, snapshot, wholeNumber } from "../arguments.js";
import { type Context, type JsonFlag, print, printList, READ, withLake } from "../context.js";
import { toJson } from "../json.js";
import { write } from "../terminal.js";
import { formatCount, printable } from "../text.js";

/** Columns of a position and of a number of rows. */
const WIDTHS = { position: 12, rows: 12 } as const;

interface FeedFlags extends JsonFlag {
  readonly after?: string;
  readonly follow?: boolean;
  readonly pollMs?: number;
}

export function changesCommand(context: Context): Command {
  return new Command("changes")
    .summary("list a table's batches as they come")
    .description(
      "List what was committed to a table, oldest first, one line for each batch: position, time, rows, batch id. " +
        "With --json one line of JSON each.",
    )
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table")
    .option("--after <position>", "only what lies behind a position, or a snapshot's number")
    .option("--follow", "wait for more, until the table is dropped or Ctrl-C")
    .option("--poll-ms <n>", "with --follow: milliseconds between two looks", wholeNumber)
    .addHelpText(
      "after",
      "\nExamples:\n  eider changes ./lake events\n  eider changes ./lake events --after 117 --follow --json",
    )
    .action(async (where: string, name: string, flags: FeedFlags) => {
      const { after, follow, pollMs } = flags;
      const options = {
        signal: context.signal,
        ...(after !== undefined && { after }),
        ...(follow && { follow }),
        ...(pollMs !== undefined && { pollMs }),
      };
      await withLake(where, READ, async (lake) => {
        for await (const change of lake.table(name).changes(options)) {
          await write(context.terminal.stdout, flags.json ? `${toJson(toPlain(change))}\n` : toLine(change));
        }
      });
    });
}

export function tagCommand(context: Context): Command {
  return new Command("tag")
    .summary("name a snapshot, or list the names")
    .description("Name a snapshot, so that --at and AT (VERSION => 'name') find it. Without a name: list all.")
    .argument("<lake>", "folder of the lake")
    .argument("[name]", "name of the tag; it does not begin with a digit")
    .addOption(atOption("name the lake as of"))
    .option("--delete", "forget the name")
    .addHelpText(
      "after",
      "\nExamples:\n  eider tag ./lake before-import\n  eider tag ./lake v1 --at 117\n  eider tag ./lake",
    )
    .action(async (where: string, name: string | undefined, flags: JsonFlag & TagFlags, command: Command) => {
      if (name === undefined) {
        if (flags.delete || flags.at !== undefined) command.error("error: name the tag", { exitCode: 2 });
        const tags = await withLake(where, READ, (lake) => lake.tags());
        await printList(context, flags, tags, ["snapshot", "tag"], (tag) => [tag.snapshot, tag.name]);
        return;
      }
      if (flags.delete) {
        await withLake(where, { mode: "open" }, (lake) => lake.untag(name));
        await print(context, flags, { name }, () => `${printable(name)} is forgotten\n`);
        return;
      }
      const tag = await withLake(where, { mode: "open" }, (lake) => lake.tag(name, atOptions(flags)));
      await print(context, flags, tag, () => `${printable(tag.name)} is snapshot ${tag.snapshot}\n`);
    });
}

interface TagFlags {
  readonly at?: number | string | Date;
  readonly delete?: boolean;
}

export function rollbackCommand(context: Context): Command {
  return new Command("rollback")
    .summary("make a table, or all, what they were at a snapshot")
    .description(
      "Make a table, or without one all tables, what they were at a snapshot, by a new commit. What came since stays " +
        "readable at its own snapshots, and its batches are known all the same.",
    )
    .argument("<lake>", "folder of the lake")
    .argument("[table]", "name of the table")
    .requiredOption("--to <snapshot>", "a snapshot's number, a tag, or a time like 2031-02-03T04:05Z", snapshot)
    .addHelpText(
      "after",
      "\nExamples:\n  eider rollback ./lake events --to 117\n  eider rollback ./lake --to before-import",
    )
    .action(
      async (where: string, name: string | undefined, flags: JsonFlag & { readonly to: number | string | Date }) => {
        const { to } = flags;
        const result = await withLake(where, { mode: "open" }, (lake) =>
          name === undefined ? lake.rollback({ to }) : lake.table(name).rollback({ to }),
        );
        await print(context, flags, result, () => `snapshot ${result.snapshot}\n`);
      },
    );
}

/** A change as data: without the query that reads its rows. */
function toPlain(change: Change): object {
  if (change.kind === "rollback") return change;
  const { kind, position, snapshot: n, batchId, receipt, meta } = change;
  return { kind, position, snapshot: n, batchId, receipt, meta };
}

function toLine(change: Change): string {
  const position = change.position.padEnd(WIDTHS.position);
  if (change.kind === "rollback") return `${position} back to snapshot ${change.to}\n`;
  const { committedAt, rows } = change.receipt;
  return `${position} ${committedAt} ${formatCount(rows).padStart(WIDTHS.rows)} ${printable(change.batchId)}\n`;
}
