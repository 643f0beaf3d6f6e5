/** The `eider` command: its arguments, its exit codes, and what happens on Ctrl-C. */

import { type Argument, Command, CommanderError, Option } from "commander";
import { CatalogError } from "eider";
import { appendCommand } from "./commands/append.js";
import { changesCommand, rollbackCommand, tagCommand } from "./commands/changes.js";
import { copyCommand, shareCommand } from "./commands/copy.js";
import {
  batchesCommand,
  filesCommand,
  receiptCommand,
  schemaCommand,
  snapshotsCommand,
  tablesCommand,
} from "./commands/inspect.js";
import { maintainCommand, verifyCommand } from "./commands/maintain.js";
import { rebuildCommand } from "./commands/rebuild.js";
import { purgeRejectsCommand, rejectsCommand, replayCommand } from "./commands/rejects.js";
import { sqlCommand } from "./commands/sql.js";
import { typesCommand } from "./commands/types.js";
import { viewCommand } from "./commands/view.js";
import type { Context } from "./context.js";
import { describeError, Failure } from "./failure.js";
import { OutputClosed, type Terminal, write } from "./terminal.js";
import { printable } from "./text.js";
import { version } from "./version.js";

const EXIT = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

const EXAMPLES = `
Examples:
  eider append ./lake events clicks.ndjson.gz
  eider append ./lake events clicks.ndjson.gz     again: a duplicate, no change
  eider sql ./lake "SELECT type, count(*) FROM events GROUP BY ALL"
  eider files ./lake events --sql                 the same in plain DuckDB

Exit status: 0 done, 1 failed (stderr says "code: message"), 2 wrong usage,
130 interrupted.`;

/**
 * Runs one command line (without `node` and the script's name).
 * @returns the exit status
 */
export async function run(args: readonly string[], terminal: Terminal): Promise<number> {
  const abort = new AbortController();
  const interrupt = (): void => {
    // A second Ctrl-C does not wait for the clean-up.
    if (abort.signal.aborted) process.exit(EXIT.interrupted);
    abort.abort(new Error("interrupted"));
  };
  terminal.on("SIGINT", interrupt);
  terminal.on("SIGTERM", interrupt);
  // Without listeners a failed write would end the process; who writes gets the error too, and handles it.
  for (const stream of [terminal.stdout, terminal.stderr]) stream.on("error", ignore);
  const said = { out: "", err: "" };
  let words: readonly string[] = [];
  const parser = program({ terminal, signal: abort.signal }, said).hook("preAction", (_, command) => {
    words = command.args;
  });
  let status: number = EXIT.done;
  try {
    await parser.parseAsync([...args], { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) status = error.exitCode === 0 ? EXIT.done : EXIT.usage;
    else if (error instanceof OutputClosed) status = EXIT.done;
    else if (abort.signal.aborted && !isUnknownOutcome(error)) {
      said.err += `interrupted\n${error instanceof Failure ? error.notes.map((note) => `${printable(note)}\n`).join("") : ""}`;
      status = EXIT.interrupted;
    } else {
      said.err += describeError(error, words);
      status = EXIT.failed;
    }
  }
  terminal.off("SIGINT", interrupt);
  terminal.off("SIGTERM", interrupt);
  // Where nobody listens there is nobody to tell.
  if (said.out !== "") await write(terminal.stdout, said.out).catch(ignore);
  if (said.err !== "") await write(terminal.stderr, said.err).catch(ignore);
  return status;
}

function ignore(): void {}

/** An interrupted commit may have happened: then nobody may say that it did not. */
function isUnknownOutcome(error: unknown): boolean {
  const cause = error instanceof Failure ? error.cause : error;
  return cause instanceof CatalogError && cause.code === "commit_unknown";
}

function argumentTerm(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** @param said receives what the parser of the command line has to say: help, and what is wrong */
function program(context: Context, said: { out: string; err: string }): Command {
  const { terminal } = context;
  const root = new Command("eider")
    .description("Append files to a lake exactly once, and query them with SQL.")
    .version(version, "-V, --version", "print the version")
    .helpOption("-h, --help", "show this help")
    .helpCommand("help [command]", "show what a command does and takes")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => {
        said.out += text;
      },
      writeErr: (text) => {
        said.err += text;
      },
      getOutHelpWidth: () => terminal.stdout.columns ?? 80,
      getErrHelpWidth: () => terminal.stdout.columns ?? 80,
    })
    .configureHelp({
      subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(" "),
    })
    .addHelpText("after", EXAMPLES);
  for (const command of [
    appendCommand(context),
    sqlCommand(context),
    tablesCommand(context),
    schemaCommand(context),
    batchesCommand(context),
    receiptCommand(context),
    rejectsCommand(context),
    replayCommand(context),
    purgeRejectsCommand(context),
    filesCommand(context),
    snapshotsCommand(context),
    changesCommand(context),
    tagCommand(context),
    rollbackCommand(context),
    viewCommand(context),
    typesCommand(context),
    verifyCommand(context),
    maintainCommand(context),
    copyCommand(context),
    shareCommand(context),
    rebuildCommand(context),
  ]) {
    if (command.name() !== "sql") command.addOption(new Option("--json", "print JSON instead of text"));
    root.addCommand(
      command.copyInheritedSettings(root).showHelpAfterError(`(eider ${command.name()} --help shows how)`),
    );
  }
  return root.showHelpAfterError("(eider --help shows how)");
}
