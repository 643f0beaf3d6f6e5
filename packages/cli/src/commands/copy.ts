/** `eider copy` and `eider share`: a lake at another place. */

import { Command } from "commander";
import type { CopyOptions, CopyResult, Lake } from "eider";
import { type Context, type JsonFlag, print, READ, withLake } from "../context.js";
import { formatBytes, plural } from "../text.js";

export function copyCommand(context: Context): Command {
  return command(context, "copy", "copied", (lake, to, options) => lake.copyTo(to, options))
    .summary("copy a lake to another place")
    .description(
      "Copy a lake, with its history, to a new or empty place, where it is another lake that hosts can share. " +
        "The lake itself is only read. What was interrupted is gone on with by the same command.",
    )
    .addHelpText("after", "\nExample:\n  eider copy ./lake s3://bucket/copy-2031-02");
}

export function shareCommand(context: Context): Command {
  return command(context, "share", "moved", (lake, to, options) => lake.share(to, options))
    .summary("move a lake to where hosts share it")
    .description(
      "Move a lake from one machine to a new or empty place that any number of hosts share. It stays the same lake; what " +
        "is left here can be read and takes no appends any more. What was interrupted is gone on with by the same command.",
    )
    .addHelpText("after", "\nExample:\n  eider share ./lake s3://bucket/lake");
}

function command(
  context: Context,
  name: "copy" | "share",
  done: string,
  work: (lake: Lake, to: string, options: CopyOptions) => Promise<CopyResult>,
): Command {
  return new Command(name)
    .argument("<lake>", "folder or URL of the lake")
    .argument("<to>", "folder or URL of the new place")
    .action(async (where: string, to: string, flags: JsonFlag) => {
      const options = name === "copy" ? READ : { mode: "open" as const };
      const result = await withLake(where, options, (lake) => work(lake, to, { signal: context.signal }));
      await print(context, flags, result, () => {
        const { files, bytes, snapshot } = result;
        return `${done} to ${to} at snapshot ${snapshot}: ${plural(files, "file")}, ${formatBytes(bytes)}\n`;
      });
    });
}
