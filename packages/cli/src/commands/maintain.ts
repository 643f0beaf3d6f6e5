/** `eider verify` and `eider maintain`. */

import { Command } from "commander";
import { CorruptionError } from "eider";
import { hours } from "../arguments.js";
import { type Context, type JsonFlag, print, READ, withLake } from "../context.js";
import { formatBytes, plural, printable } from "../text.js";

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
    .summary("remove what writers left behind")
    .description("Remove data files that were staged and never committed.")
    .argument("<lake>", "folder of the lake")
    .option("--grace-hours <n>", "leave files younger than this alone: their writer may be at work", hours, 24)
    .addHelpText("after", "\nExample:\n  eider maintain ./lake --grace-hours 1")
    .action(async (where: string, flags: JsonFlag & { readonly graceHours: number }) => {
      const result = await withLake(where, { mode: "open" }, (lake) =>
        lake.maintain({ graceMs: flags.graceHours * HOUR_MS, signal: context.signal }),
      );
      await print(
        context,
        flags,
        result,
        () => `${plural(result.deleted.length, "orphan")} removed, ${formatBytes(result.bytes)}\n`,
      );
    });
}
