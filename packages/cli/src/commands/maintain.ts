/** `eider verify` and `eider maintain`. */

import { Command, InvalidArgumentError } from "commander";
import { CorruptionError } from "eider";
import { type Context, withLake } from "../context.js";
import { formatBytes, formatCount, toJson } from "../output.js";
import { write } from "../terminal.js";

interface JsonFlag {
  readonly json?: boolean;
}

export function verifyCommand(context: Context): Command {
  return new Command("verify")
    .description("Check that every data file is there and unchanged, and name objects that belong to no snapshot.")
    .argument("<lake>", "folder of the lake")
    .option("--no-hashes", "compare sizes only; do not read the files")
    .action(async (where: string, flags: JsonFlag & { hashes: boolean }) => {
      const report = await withLake(where, { mode: "read" }, (lake) =>
        lake.verify({ hashes: flags.hashes, signal: context.signal }),
      );
      const text = report.findings.map(({ kind, key, message }) => `${kind}  ${key}: ${message}\n`).join("");
      const summary = `${formatCount(report.files)} files, ${formatBytes(report.bytes)} checked\n`;
      await write(context.terminal.stdout, flags.json ? `${toJson(report)}\n` : text + summary);
      if (!report.ok) {
        const bad = report.findings.filter((finding) => finding.kind !== "stray").length;
        throw new CorruptionError(
          "verify_failed",
          `${formatCount(bad)} data files are lost or changed: restore them from a backup`,
        );
      }
    });
}

export function maintainCommand(context: Context): Command {
  return new Command("maintain")
    .description("Remove data files that were staged and never committed.")
    .argument("<lake>", "folder of the lake")
    .option("--grace-hours <n>", "leave files younger than this alone", hours, 24)
    .action(async (where: string, flags: JsonFlag & { graceHours: number }) => {
      const result = await withLake(where, { mode: "open" }, (lake) =>
        lake.maintain({ graceMs: flags.graceHours * 3_600_000, signal: context.signal }),
      );
      const text = `${formatCount(result.deleted.length)} orphans removed, ${formatBytes(result.bytes)}\n`;
      await write(context.terminal.stdout, flags.json ? `${toJson(result)}\n` : text);
    });
}

function hours(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0) throw new InvalidArgumentError("a number of hours");
  return value;
}
