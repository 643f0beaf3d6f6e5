/** `eider verify` and `eider maintain`. */

import { Command, Option } from "commander";
import { CorruptionError, type MaintainResult } from "eider";
import { hours, seconds } from "../arguments.js";
import { type Context, type JsonFlag, print, READ, withLake } from "../context.js";
import { formatBytes, formatCount, plural, printable } from "../text.js";

const HOUR_MS = 3_600_000;

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
        return `${findings.join("")}${plural(report.files, "file")}, ${formatBytes(report.bytes)} checked\n`;
      });
      if (!report.ok) {
        const bad = report.findings.filter((finding) => finding.kind !== "stray").length;
        throw new CorruptionError(
          "verify_failed",
          `${plural(bad, "data file")} lost or changed: restore from a backup what is listed`,
        );
      }
    });
}

export function maintainCommand(context: Context): Command {
  return new Command("maintain")
    .summary("fold small batches into files, remove what writers left behind")
    .description(
      "Fold small batches, which are in the catalog, into data files, and remove data files that were staged and never committed.",
    )
    .argument("<lake>", "folder of the lake")
    .addOption(
      new Option("--fold <which>", "tables that are worth it, all with such batches, or none")
        .choices(["due", "all", "none"])
        .default("due"),
    )
    .option("--budget-seconds <n>", "begin nothing more after so long", seconds)
    .option("--grace-hours <n>", "leave files younger than this alone: their writer may be at work", hours, 24)
    .addHelpText("after", "\nExamples:\n  eider maintain ./lake\n  eider maintain ./lake --fold all")
    .action(async (where: string, flags: MaintainFlags) => {
      const { fold, graceHours, budgetSeconds } = flags;
      const result = await withLake(where, { mode: "open" }, (lake) =>
        lake.maintain({
          ...(fold !== "due" && { fold }),
          graceMs: graceHours * HOUR_MS,
          ...(budgetSeconds !== undefined && { budgetMs: budgetSeconds * 1000 }),
          signal: context.signal,
        }),
      );
      await print(context, flags, result, () => describeResult(result));
    });
}

interface MaintainFlags extends JsonFlag {
  readonly fold: "due" | "all" | "none";
  readonly graceHours: number;
  readonly budgetSeconds?: number;
}

function describeResult({ folded, finished, deleted, bytes }: MaintainResult): string {
  const batches = folded.batches === 1 ? "1 hot batch" : `${formatCount(folded.batches)} hot batches`;
  const into = folded.files > 0 ? ` into ${plural(folded.files, "file")}, ${formatBytes(folded.bytes)}` : "";
  const orphans = `${plural(deleted.length, "orphan")} removed, ${formatBytes(bytes)}`;
  return `${batches} folded${into}, ${orphans}${finished ? "" : "; not finished: run it again"}\n`;
}
