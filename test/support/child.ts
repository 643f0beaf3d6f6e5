/** Child processes that run the built packages: for what only several processes, or a killed one, can show. */

import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export interface ChildResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** What it printed: one JSON value a line. */
  readonly lines: readonly unknown[];
  readonly stderr: string;
}

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Node's own flags, for example `--max-old-space-size=64`. */
  readonly flags?: readonly string[];
  /** The most files that it may have open at once. */
  readonly openFiles?: number;
  /** Each line as it comes. */
  readonly onLine?: (line: unknown, child: ChildProcess) => void;
}

/** Runs `test/children/<name>.mjs` with one JSON argument and collects what it prints. */
export async function runChild(name: string, argument: unknown, options: ChildOptions = {}): Promise<ChildResult> {
  const script = fileURLToPath(new URL(`../children/${name}.mjs`, import.meta.url));
  const command = [process.execPath, ...(options.flags ?? []), script, JSON.stringify(argument)];
  const limited = ["sh", "-c", `ulimit -n ${options.openFiles} && exec "$@"`, "sh", ...command];
  const [program, ...args] = options.openFiles === undefined ? command : limited;
  const child = spawn(program!, args, {
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines: unknown[] = [];
  let rest = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    for (const part of parts) {
      const line: unknown = JSON.parse(part);
      lines.push(line);
      options.onLine?.(line, child);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve([code, signal]));
  });
  return { code, signal, lines, stderr };
}
