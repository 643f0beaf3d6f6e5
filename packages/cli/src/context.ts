/** What every command gets. */

import { Lake, type LakeOptions } from "eider";
import { toJson } from "./json.js";
import { type Cell, formatTable } from "./table.js";
import { type Terminal, write } from "./terminal.js";

export interface Context {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Commands that print a result for people, or for programs. */
export interface JsonFlag {
  readonly json?: boolean;
}

/** For commands that only look: they never make a lake. */
export const READ: LakeOptions = { mode: "read" };

/** Opens a lake for one command and closes it afterwards, whatever happens. */
export async function withLake<T>(where: string, options: LakeOptions, work: (lake: Lake) => Promise<T>): Promise<T> {
  const lake = await Lake.open(where, options);
  try {
    return await work(lake);
  } finally {
    await lake.close();
  }
}

/** Prints a result as text for people, or the whole of it as one line of JSON. */
export function print(context: Context, flags: JsonFlag, result: unknown, text: () => string): Promise<void> {
  return write(context.terminal.stdout, flags.json ? `${toJson(result)}\n` : text());
}

/** Prints a list as a table. What people copy from it (ids, keys) is never cut, so it comes last in a row. */
export function printList<T>(
  context: Context,
  flags: JsonFlag,
  items: readonly T[],
  headers: readonly string[],
  cells: (item: T) => readonly Cell[],
): Promise<void> {
  return print(context, flags, items, () => formatTable(headers, items.map(cells)));
}
