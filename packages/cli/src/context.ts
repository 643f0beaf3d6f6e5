/** What every command gets. */

import { Lake, type LakeOptions } from "eider";
import type { Terminal } from "./terminal.js";

export interface Context {
  readonly terminal: Terminal;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Opens a lake for one command and closes it afterwards, whatever happens. */
export async function withLake<T>(where: string, options: LakeOptions, work: (lake: Lake) => Promise<T>): Promise<T> {
  const lake = await Lake.open(where, options);
  try {
    return await work(lake);
  } finally {
    await lake.close();
  }
}
