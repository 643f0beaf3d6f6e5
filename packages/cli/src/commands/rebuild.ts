/** `eider rebuild`: a lake that has lost its catalog. */

import { Command } from "commander";
import { Lake } from "eider";
import { type Context, type JsonFlag, print } from "../context.js";
import { plural } from "../text.js";

export function rebuildCommand(context: Context): Command {
  return new Command("rebuild")
    .argument("<lake>", "folder of the lake")
    .summary("make a lost catalog again")
    .description(
      "Make the catalog of a lake in a folder again from what the folder has besides: the newest checkpoint and the commits " +
        "after it. What was committed in the last second before the catalog was lost may be missing. A catalog that is " +
        "there is not touched: move it away first, with the files beside it.",
    )
    .addHelpText("after", "\nExample:\n  eider rebuild ./lake && eider verify ./lake")
    .action(async (where: string, flags: JsonFlag) => {
      const result = await Lake.rebuild(where, { signal: context.signal });
      await print(context, flags, result, () => {
        const { snapshot, checkpoint, entries, unnamed } = result;
        const from = checkpoint > 0 ? `the checkpoint at ${checkpoint} and ` : "";
        const rest = unnamed > 0 ? `; ${plural(unnamed, "data file")} that no commit names` : "";
        return `rebuilt at snapshot ${snapshot} from ${from}${plural(entries, "commit")}${rest}\n`;
      });
    });
}
