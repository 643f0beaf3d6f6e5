/** `eider verify` and `eider maintain`. */

import { Command, Option } from "commander";
import { CorruptionError, type MaintainResult, type Retention } from "eider";
import { days, hours, seconds, wholeNumber } from "../arguments.js";
import { type Context, type JsonFlag, print, READ, withLake } from "../context.js";
import { formatBytes, plural, printable } from "../text.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export function verifyCommand(context: Context): Command {
  return new Command("verify")
    .summary("check that all data is there and unchanged")
    .description("Check that every data file is there and unchanged, and name objects that belong to no snapshot.")
    .argument("<lake>", "folder of the lake")
    .option("--no-hashes", "compare sizes only; do not read the files")
    .addHelpText("after", "\nExamples:\n  eider verify ./lake\n  eider verify ./lake --no-hashes --json")
    .action(async (where: string, flags: JsonFlag & { readonly hashes: boolean }) => {
      const report = await withLake(where, READ, (lake) =>
        lake.verify({ hashes: flags.hashes, signal: context.signal }),
      );
      await print(context, flags, report, () => {
        const findings = report.findings.map(
          ({ kind, key, message }) => `${printable(`${kind}  ${key}: ${message}`)}\n`,
        );
        const hot = report.hotBatches > 0 ? `, ${plural(report.hotBatches, "hot batch", "hot batches")}` : "";
        return `${findings.join("")}${plural(report.files, "file")}, ${formatBytes(report.bytes)}${hot} checked\n`;
      });
      if (!report.ok) {
        const bad = report.findings.filter((finding) => finding.kind !== "stray").length;
        throw new CorruptionError(
          "verify_failed",
          `${plural(bad, "data file or batch", "data files or batches")} lost or changed: restore from a backup what is listed`,
        );
      }
    });
}

export function maintainCommand(context: Context): Command {
  return new Command("maintain")
    .summary("fold hot batches into files, end old snapshots, remove leftovers")
    .description(
      "Fold hot batches, small ones that are in the catalog, into data files; let old snapshots expire, where that is asked " +
        "for; and remove data files that were staged and never committed, or that only expired snapshots show.",
    )
    .argument("<lake>", "folder of the lake")
    .addOption(
      new Option(
        "--fold <which>",
        "those of tables with 16 MiB of them, 1,000, or one an hour old; of all tables; or none",
      )
        .choices(["due", "all", "none"])
        .default("due"),
    )
    .option("--retain-snapshots <n>", "let older snapshots expire than the newest so many", wholeNumber)
    .option("--retain-days <n>", "let snapshots expire that are older; with both, those for which both are true", days)
    .option("--budget-seconds <n>", "begin nothing more after so long", seconds)
    .option("--grace-hours <n>", "leave files younger than this alone: their writer may be at work", hours, 24)
    .addHelpText(
      "after",
      "\nExamples:\n  eider maintain ./lake\n  eider maintain ./lake --fold all\n  eider maintain ./lake --retain-days 30",
    )
    .action(async (where: string, flags: MaintainFlags) => {
      const { fold, graceHours, budgetSeconds } = flags;
      const retain = retention(flags);
      const result = await withLake(where, { mode: "open" }, (lake) =>
        lake.maintain({
          ...(fold !== "due" && { fold }),
          ...(retain !== undefined && { retain }),
          graceMs: graceHours * HOUR_MS,
          ...(budgetSeconds !== undefined && { budgetMs: budgetSeconds * 1000 }),
          signal: context.signal,
        }),
      );
      await print(context, flags, result, () => describeResult(result, retain !== undefined));
    });
}

interface MaintainFlags extends JsonFlag {
  readonly fold: "due" | "all" | "none";
  readonly graceHours: number;
  readonly budgetSeconds?: number;
  readonly retainSnapshots?: number;
  readonly retainDays?: number;
}

function retention({ retainSnapshots: snapshots, retainDays }: MaintainFlags): Retention | undefined {
  if (snapshots === undefined && retainDays === undefined) return undefined;
  return {
    ...(snapshots !== undefined && { snapshots }),
    ...(retainDays !== undefined && { ageMs: retainDays * DAY_MS }),
  };
}

function describeResult(
  { folded, finished, deleted, bytes, oldestSnapshot }: MaintainResult,
  expires: boolean,
): string {
  const batches = plural(folded.batches, "hot batch", "hot batches");
  const into = folded.files > 0 ? ` into ${plural(folded.files, "file")}, ${formatBytes(folded.bytes)}` : "";
  const removed = `${plural(deleted.length, "file")} removed, ${formatBytes(bytes)}`;
  const kept = expires ? `, snapshots from ${oldestSnapshot} on kept` : "";
  return `${batches} folded${into}, ${removed}${kept}${finished ? "" : "; not finished: run it again"}\n`;
}
