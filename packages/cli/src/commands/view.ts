/** `eider view`: SELECTs that have a name in the lake. */

import type { Command } from "commander";
import { QueryError } from "eider";
import { atOption, atOptions, lakeCommand } from "../arguments.js";
import { type Context, type JsonFlag, print, printList, READ, withLake } from "../context.js";
import { Failure } from "../failure.js";
import { sqlExcerpt } from "../sql-excerpt.js";
import { printable } from "../text.js";

interface ViewFlags extends JsonFlag {
  readonly at?: number | string | Date;
  readonly replace?: boolean;
  readonly drop?: boolean;
}

export function viewCommand(context: Context): Command {
  return lakeCommand(
    "view",
    "make a view, or list them",
    "Give a SELECT over tables and other views a name, which SQL reads like a table. Without a name: list all views.",
  )
    .argument("[name]", "name of the view")
    .argument("[sql]", "the SELECT")
    .addOption(atOption("list the views as of"))
    .option("--replace", "replace a view of this name")
    .option("--drop", "drop the view")
    .addHelpText(
      "after",
      "\nExamples:\n  eider view ./lake bought \"SELECT * FROM events WHERE type = 'buy'\"\n" +
        "  eider view ./lake\n  eider view ./lake bought --drop",
    )
    .action(
      async (where: string, name: string | undefined, sql: string | undefined, flags: ViewFlags, command: Command) => {
        const wrong = (what: string): never => command.error(`error: ${what}`, { exitCode: 2 });
        if (name === undefined) {
          if (flags.drop || flags.replace) wrong("name the view");
          const views = await withLake(where, READ, (lake) => lake.views(atOptions(flags)));
          await printList(context, flags, views, ["snapshot", "view", "sql"], (view) => [
            view.createdIn,
            view.name,
            view.sql,
          ]);
          return;
        }
        if (flags.at !== undefined) wrong("--at is for lists: it goes without a name");
        if (flags.drop) {
          if (sql !== undefined || flags.replace) wrong("--drop takes the name alone");
          const dropped = await withLake(where, { mode: "open" }, (lake) => lake.dropView(name));
          await print(context, flags, dropped, () => `${printable(name)} is dropped\n`);
          return;
        }
        if (sql === undefined) return wrong("give the view's SELECT, or --drop");
        const view = await withLake(where, { mode: "open" }, (lake) =>
          lake.createView(name, sql, { orReplace: flags.replace ?? false }),
        ).catch((error: unknown) => {
          if (!(error instanceof QueryError) || error.position === undefined) throw error;
          throw new Failure(error, sqlExcerpt(sql, error.position).split("\n"));
        });
        await print(context, flags, view, () => `${printable(view.name)} is made in snapshot ${view.createdIn}\n`);
      },
    );
}
