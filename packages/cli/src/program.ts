/** The `eider` command: its arguments, its exit codes, and what happens on Ctrl-C. */

import { Command, CommanderError, Option } from "commander";
import { EiderError } from "eider";
import { appendCommand } from "./commands/append.js";
import {
  batchesCommand,
  filesCommand,
  receiptCommand,
  schemaCommand,
  snapshotsCommand,
  tablesCommand,
} from "./commands/inspect.js";
import { maintainCommand, verifyCommand } from "./commands/maintain.js";
import { sqlCommand } from "./commands/sql.js";
import { typesCommand } from "./commands/types.js";
import type { Context } from "./context.js";
import type { Terminal } from "./terminal.js";
import { version } from "./version.js";

const EXIT = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

const EXAMPLES = `
Examples:
  eider append ./lake events clicks.ndjson.gz        a file is a batch; the same file again is a duplicate
  cat rows.csv | eider append ./lake sales - --format csv --batch-id 2031-02-03
  eider sql ./lake "SELECT event_type, count(*) FROM events GROUP BY ALL"
  eider sql ./lake "SELECT * FROM events AT (VERSION => 3)" --format ndjson
  eider files ./lake events --sql                    the same rows in plain DuckDB

Exit status: 0 done, 1 failed (stderr says "code: message"), 2 wrong usage, 130 interrupted.`;

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
  let closedOutput = false;
  const onOutputError = (error: NodeJS.ErrnoException): void => {
    // The reader of a pipe (`| head`) has seen enough.
    if (error.code === "EPIPE") closedOutput = true;
    abort.abort(error);
  };
  terminal.stdout.on("error", onOutputError);
  try {
    await program({ terminal, signal: abort.signal }).parseAsync([...args], { from: "user" });
    return EXIT.done;
  } catch (error) {
    if (closedOutput) return EXIT.done;
    if (abort.signal.aborted) {
      terminal.stderr.write("interrupted: nothing of the unfinished batch was committed\n");
      return EXIT.interrupted;
    }
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    terminal.stderr.write(`${describeError(error)}\n`);
    return EXIT.failed;
  } finally {
    terminal.off("SIGINT", interrupt);
    terminal.off("SIGTERM", interrupt);
    terminal.stdout.off("error", onOutputError);
  }
}

function describeError(error: unknown): string {
  if (!(error instanceof EiderError)) {
    return `internal_error: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
  const rows = "rows" in error ? (error.rows as readonly { line: number; reason: string }[]) : [];
  const lines = rows.map(({ line, reason }) => `  line ${line}: ${reason}`);
  return [`${error.code}: ${error.message}`, ...lines].join("\n");
}

function program(context: Context): Command {
  const { terminal } = context;
  const json = (): Option => new Option("--json", "print JSON instead of text");
  const root = new Command("eider")
    .description("Append files to a lake exactly once, and query them with SQL.")
    .version(version, "-V, --version", "print the version")
    .helpCommand("help [command]", "show what a command does and takes")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
    })
    .showHelpAfterError("(eider --help shows how)")
    .addHelpText("after", EXAMPLES);
  for (const command of [
    appendCommand(context),
    sqlCommand(context),
    tablesCommand(context),
    schemaCommand(context),
    batchesCommand(context),
    receiptCommand(context),
    filesCommand(context),
    snapshotsCommand(context),
    typesCommand(context),
    verifyCommand(context),
    maintainCommand(context),
  ]) {
    if (command.name() !== "sql") command.addOption(json());
    root.addCommand(command.copyInheritedSettings(root));
  }
  return root;
}
