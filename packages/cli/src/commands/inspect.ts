/** The commands that look at a lake's metadata. None of them creates or changes anything. */

import { Command, InvalidArgumentError } from "commander";
import { formatType, NotFoundError, type SnapshotInfo } from "eider";
import { type Context, withLake } from "../context.js";
import { formatBytes, formatCount, printList, toJson } from "../output.js";
import { write } from "../terminal.js";

interface JsonFlag {
  readonly json?: boolean;
}

const READ = { mode: "read" } as const;

/** A snapshot number on the command line. */
export function snapshotNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new InvalidArgumentError("a snapshot number");
  return value;
}

export function tablesCommand(context: Context): Command {
  return new Command("tables")
    .description("List the tables of a lake.")
    .argument("<lake>", "folder of the lake")
    .option("--at <snapshot>", "as of a snapshot", snapshotNumber)
    .action(async (where: string, flags: JsonFlag & { at?: number }) => {
      const tables = await withLake(where, READ, (lake) => lake.tables(flags.at === undefined ? {} : { at: flags.at }));
      await printList(context, tables, flags, ["table", "rows", "files", "size", "partitioned by"], (table) => [
        table.name,
        table.rows,
        table.files,
        formatBytes(table.bytes),
        table.partitionBy.join(", "),
      ]);
    });
}

export function schemaCommand(context: Context): Command {
  return new Command("schema")
    .description("Show a table's columns.")
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table")
    .option("--at <snapshot>", "as of a snapshot", snapshotNumber)
    .action(async (where: string, name: string, flags: JsonFlag & { at?: number }) => {
      const table = await withLake(where, READ, (lake) =>
        lake.table(name).describe(flags.at === undefined ? {} : { at: flags.at }),
      );
      if (flags.json) {
        await write(context.terminal.stdout, `${toJson(table)}\n`);
        return;
      }
      await printList(context, table.schema.fields, flags, ["id", "column", "type", "null"], (field) => [
        field.id,
        field.name,
        formatType(field.type),
        field.nullable ? "yes" : "no",
      ]);
    });
}

export function batchesCommand(context: Context): Command {
  return new Command("batches")
    .description("List a table's batches, newest first.")
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table")
    .option("--limit <n>", "how many at the most", snapshotNumber, 1000)
    .option("--before <snapshot>", "only batches committed before a snapshot", snapshotNumber)
    .action(async (where: string, name: string, flags: JsonFlag & { limit: number; before?: number }) => {
      const page = { limit: flags.limit, ...(flags.before !== undefined && { before: flags.before }) };
      const receipts = await withLake(where, READ, (lake) => lake.table(name).batches(page));
      await printList(context, receipts, flags, ["snapshot", "committed", "rows", "batch"], (receipt) => [
        receipt.snapshot,
        receipt.committedAt,
        receipt.rows,
        receipt.batchId,
      ]);
    });
}

export function receiptCommand(context: Context): Command {
  return new Command("receipt")
    .description("Show the receipt of a batch: whether, when and with what content it was committed.")
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table")
    .argument("<batch-id>", "id of the batch")
    .action(async (where: string, name: string, batchId: string, flags: JsonFlag) => {
      const receipt = await withLake(where, READ, (lake) => lake.table(name).receipt(batchId));
      if (!receipt) {
        throw new NotFoundError("batch_not_found", `table ${name} has no batch ${JSON.stringify(batchId)}`, {
          subject: batchId,
        });
      }
      if (flags.json) {
        await write(context.terminal.stdout, `${toJson(receipt)}\n`);
        return;
      }
      const lines = Object.entries(receipt).map(([key, value]) => `${key.padEnd(12)} ${value}\n`);
      await write(context.terminal.stdout, lines.join(""));
    });
}

export function filesCommand(context: Context): Command {
  return new Command("files")
    .description("List a table's data files, or print the SQL that reads them in plain DuckDB.")
    .argument("<lake>", "folder of the lake")
    .argument("<table>", "name of the table")
    .option("--at <snapshot>", "as of a snapshot", snapshotNumber)
    .option("--sql", "print a SELECT over read_parquet([…]) instead")
    .action(async (where: string, name: string, flags: JsonFlag & { at?: number; sql?: boolean }) => {
      const at = flags.at === undefined ? {} : { at: flags.at };
      if (flags.sql) {
        const sql = await withLake(where, READ, (lake) => lake.table(name).filesSql(at));
        await write(context.terminal.stdout, flags.json ? `${toJson({ sql })}\n` : `${sql}\n`);
        return;
      }
      const files = await withLake(where, READ, (lake) => lake.table(name).files(at));
      await printList(context, files, flags, ["snapshot", "rows", "size", "key"], (file) => [
        file.addedIn,
        file.rows,
        formatBytes(file.bytes),
        file.key,
      ]);
    });
}

export function snapshotsCommand(context: Context): Command {
  return new Command("snapshots")
    .description("List the snapshots of a lake, oldest first.")
    .argument("<lake>", "folder of the lake")
    .option("--after <snapshot>", "only later ones", snapshotNumber)
    .option("--limit <n>", "how many at the most", snapshotNumber, 1000)
    .action(async (where: string, flags: JsonFlag & { after?: number; limit: number }) => {
      const page = { limit: flags.limit, ...(flags.after !== undefined && { after: flags.after }) };
      const snapshots = await withLake(where, READ, (lake) => lake.snapshots(page));
      await printList(context, snapshots, flags, ["snapshot", "committed", "what"], (snapshot) => [
        snapshot.snapshot,
        snapshot.committedAt,
        snapshot.operations.map(describeOperation).join("; "),
      ]);
    });
}

function describeOperation({ op, table, batchId, rows }: SnapshotInfo["operations"][number]): string {
  const what = [op, table].filter((part) => part !== undefined).join(" ");
  return rows === undefined
    ? what
    : `${what}: ${formatCount(rows)} rows${batchId === undefined ? "" : ` (${batchId})`}`;
}
