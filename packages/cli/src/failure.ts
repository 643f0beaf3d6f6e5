/** How a failed command says so: `code: message`, the rows at fault, and what to do in terms of the command line. */

import { EiderError, InvalidInputError } from "eider";
import { printable, printableLines, shellQuote } from "./text.js";

/** An error with what the command has to add to it. */
export class Failure extends Error {
  readonly notes: readonly string[];

  constructor(cause: unknown, notes: readonly string[]) {
    super("failed", { cause });
    this.notes = notes;
  }
}

/** What to do, by the error's code. `lake` and `table` are quoted for a shell. */
const HINTS: Readonly<Record<string, (lake: string, table: string) => string>> = {
  table_not_found: (lake) => `eider tables ${lake} lists the tables`,
  unknown_table: (lake) => `eider tables ${lake} lists the tables`,
  batch_not_found: (lake, table) => `eider batches ${lake} ${table} lists the batches`,
  snapshot_not_found: (lake) => `eider snapshots ${lake} lists the snapshots`,
  tag_not_found: (lake) => `eider tag ${lake} lists the tags`,
  unknown_format: () => "--format says what the input is",
  rejected_rows: (lake, table) =>
    `--on-reject quarantine takes the other rows and keeps these aside; eider rejects ${lake} ${table} lists them`,
  hot_rows: (lake) => `eider maintain ${lake} --fold all folds them for snapshots to come`,
  bad_replay: (lake, table) => `eider rejects ${lake} ${table} lists them`,
  reject_replayed: (lake, table) => `eider rejects ${lake} ${table} --open lists those that can be`,
  reject_not_found: (lake, table) => `eider rejects ${lake} ${table} lists them`,
  table_differs: (lake, table) => `eider schema ${lake} ${table} shows how the table was made`,
};

/** Lines for stderr. `args` are the command's own arguments: the lake, and the table where there is one. */
export function describeError(error: unknown, args: readonly string[]): string {
  const cause = error instanceof Failure ? error.cause : error;
  const notes = error instanceof Failure ? error.notes.map(printable) : [];
  if (!(cause instanceof EiderError)) {
    const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
    return `${[`internal_error: ${text}`, ...notes].join("\n")}\n`;
  }
  const rows = cause instanceof InvalidInputError ? cause.rows : [];
  const [lake = "", table = ""] = args.map(shellQuote);
  const hint = HINTS[cause.code]?.(lake, table);
  const lines = [
    `${cause.code}: ${printableLines(cause.message)}`,
    ...rows.map(({ line, reason }) => `  line ${line}: ${printable(reason)}`),
    ...notes,
    ...(hint === undefined ? [] : [`hint: ${printable(hint)}`]),
  ];
  return `${lines.join("\n")}\n`;
}
