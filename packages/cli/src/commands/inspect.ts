/** The commands that look at a lake's metadata. None of them creates or changes anything. */

import type { Command } from "commander";
import { formatType, type Lake, NotFoundError, QueryError, type SnapshotInfo } from "eider";
import { atOption, atOptions, lakeCommand, positiveNumber, tableCommand, wholeNumber } from "../arguments.js";
import { type Context, type JsonFlag, print, printList, READ, withLake } from "../context.js";
import { formatTable } from "../table.js";
import { write } from "../terminal.js";
import { formatBytes, formatCount, plural, printable, shellQuote } from "../text.js";

interface AtFlag extends JsonFlag {
  readonly at?: number | string | Date;
}

interface LimitFlag extends JsonFlag {
  readonly limit: number;
}

/** Lines of a list, unless told. */
const LIMIT = 1000;

export function tablesCommand(context: Context): Command {
  return lakeCommand("tables", "list the tables", "List the tables of a lake.")
    .addOption(atOption("as of"))
    .addHelpText("after", "\nExamples:\n  eider tables ./lake\n  eider tables ./lake --at 12 --json")
    .action(async (where: string, flags: AtFlag) => {
      const tables = await withLake(where, READ, (lake) => lake.tables(atOptions(flags)));
      const headers = ["table", "rows", "files", "size", "hot batches", "partitioned by"];
      await printList(context, flags, tables, headers, ({ name, rows, files, bytes, hotBatches, partitionBy }) => [
        name,
        formatCount(rows),
        formatCount(files),
        formatBytes(bytes),
        formatCount(hotBatches),
        partitionBy.join(", "),
      ]);
    });
}

export function schemaCommand(context: Context): Command {
  return tableCommand("schema", "show a table's columns", "Show a table's columns, and how its files are laid out.")
    .addOption(atOption("as of"))
    .addHelpText("after", "\nExamples:\n  eider schema ./lake events\n  eider schema ./lake events --at 3 --json")
    .action(async (where: string, name: string, flags: AtFlag) => {
      const table = await withLake(where, READ, (lake) => lake.table(name).describe(atOptions(flags)));
      await print(context, flags, table, () => {
        const columns = table.schema.fields.map(({ id, name, nullable, type }) => [
          id,
          name,
          formatType(type),
          nullable ? "" : "not null",
        ]);
        const layout = [
          ...(table.partitionBy.length > 0 ? [`partitioned by ${table.partitionBy.join(", ")}`] : []),
          ...(table.orderBy.length > 0 ? [`sorted by ${table.orderBy.join(", ")}`] : []),
        ];
        return [
          formatTable(["id", "column", "type", ""], columns),
          ...layout.map((line) => `${printable(line)}\n`),
        ].join("");
      });
    });
}

export function batchesCommand(context: Context): Command {
  return tableCommand("batches", "list a table's batches", "List a table's batches, newest first.")
    .option("--limit <n>", "how many at the most", positiveNumber, LIMIT)
    .option("--before <snapshot>", "only those committed before a snapshot: the next page", wholeNumber)
    .addHelpText(
      "after",
      "\nExamples:\n  eider batches ./lake events\n  eider batches ./lake events --limit 20 --before 117",
    )
    .action(async (where: string, name: string, flags: LimitFlag & { readonly before?: number }) => {
      const page = { limit: flags.limit, ...(flags.before !== undefined && { before: flags.before }) };
      const receipts = await withLake(where, READ, (lake) => lake.table(name).batches(page));
      await printList(context, flags, receipts, ["snapshot", "committed", "rows", "batch"], (receipt) => [
        receipt.snapshot,
        receipt.committedAt,
        formatCount(receipt.rows),
        receipt.batchId,
      ]);
    });
}

export function receiptCommand(context: Context): Command {
  return tableCommand(
    "receipt",
    "show the receipt of a batch",
    "Show the receipt of a batch: whether, when and with what content it was committed. Fails if it was not.",
  )
    .argument("<batch-id>", "id of the batch")
    .addHelpText(
      "after",
      "\nExamples:\n  eider receipt ./lake rates rates-2031-02-03\n  eider receipt ./lake rates rates-2031-02-03 || echo not yet",
    )
    .action(async (where: string, name: string, batchId: string, flags: JsonFlag) => {
      const receipt = await withLake(where, READ, async (lake) => {
        const table = lake.table(name);
        // A table that does not exist is another mistake than a batch that was not committed.
        return (await table.receipt(batchId)) ?? (await table.describe().then(() => undefined));
      });
      if (!receipt) {
        throw new NotFoundError("batch_not_found", `table ${name} has no batch ${JSON.stringify(batchId)}`, {
          subject: batchId,
        });
      }
      await print(context, flags, receipt, () =>
        Object.entries(receipt)
          .map(([key, value]) => `${key.padEnd(12)} ${printable(String(value))}\n`)
          .join(""),
      );
    });
}

export function filesCommand(context: Context): Command {
  return tableCommand(
    "files",
    "list a table's data files, or print SQL that reads them",
    "List a table's data files, or print the SQL that reads them in plain DuckDB.",
  )
    .addOption(atOption("as of"))
    .option("--sql", "print a SELECT over read_parquet([…]) that gives the table's rows; folds hot batches first")
    .addHelpText("after", '\nExamples:\n  eider files ./lake events\n  duckdb -c "$(eider files ./lake events --sql)"')
    .action(async (where: string, name: string, flags: AtFlag & { readonly sql?: boolean }) => {
      if (flags.sql) {
        const filesSql = (lake: Lake): Promise<string> => lake.table(name).filesSql(atOptions(flags));
        const sql = await withLake(where, READ, filesSql).catch((error: unknown) => {
          // Only then is the lake written to.
          if (flags.at !== undefined || !(error instanceof QueryError) || error.code !== "hot_rows") throw error;
          return withLake(where, { mode: "open" }, filesSql);
        });
        await print(context, flags, { sql }, () => `${sql}\n`);
        return;
      }
      const { files, hotBatches } = await withLake(where, READ, async (lake) => {
        const table = lake.table(name);
        const { hotBatches } = await table.describe(atOptions(flags));
        return { files: await table.files(atOptions(flags)), hotBatches };
      });
      await printList(context, flags, files, ["snapshot", "rows", "size", "key"], (file) => [
        file.addedIn,
        formatCount(file.rows),
        formatBytes(file.bytes),
        file.key,
      ]);
      if (hotBatches > 0 && !flags.json) {
        const what = plural(hotBatches, "hot batch is", "hot batches are");
        const how = `eider maintain ${shellQuote(where)} --fold all makes files`;
        await write(
          context.terminal.stderr,
          `${what} in no file${flags.at === undefined ? ` yet: ${how}` : " there"}\n`,
        );
      }
    });
}

export function snapshotsCommand(context: Context): Command {
  return lakeCommand("snapshots", "list what was committed when", "List the snapshots of a lake, oldest first.")
    .option("--limit <n>", "how many at the most", positiveNumber, LIMIT)
    .option("--after <snapshot>", "only those after a snapshot: the next page", wholeNumber)
    .addHelpText("after", "\nExamples:\n  eider snapshots ./lake\n  eider snapshots ./lake --after 1000 --json")
    .action(async (where: string, flags: LimitFlag & { readonly after?: number }) => {
      const page = { limit: flags.limit, ...(flags.after !== undefined && { after: flags.after }) };
      const snapshots = await withLake(where, READ, (lake) => lake.snapshots(page));
      await printList(context, flags, snapshots, ["snapshot", "committed", "what"], (snapshot) => [
        snapshot.snapshot,
        snapshot.committedAt,
        snapshot.operations.map(describeOperation).join("; "),
      ]);
    });
}

function describeOperation({ op, table, name, to, batchId, rows }: SnapshotInfo["operations"][number]): string {
  // So far hot batches are all that is rearranged.
  const what = [op === "rearrange" ? "fold" : op, table ?? name, ...(to === undefined ? [] : [`to ${to}`])]
    .filter((word) => word !== undefined)
    .join(" ");
  return rows === undefined ? what : `${what}: ${plural(rows, "row")}${batchId === undefined ? "" : ` (${batchId})`}`;
}
