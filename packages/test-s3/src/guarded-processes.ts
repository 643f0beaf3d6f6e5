/** Processes with a folder that end with this one, however it ends. Linux only. */

import { type ChildProcess, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { basename, join } from "node:path";

/**
 * Reads process ids until its standard input ends, which happens at the latest when its parent does, SIGKILL included.
 * Then it kills them, if they still are the programs that they were ($2), and removes the folder ($1).
 */
const GUARD = `
pids=; while read -r pid; do pids="$pids $pid"; done
for pid in $pids; do
  case " $2 " in *" $(cat "/proc/$pid/comm" 2>/dev/null) "*) kill -9 "$pid" ;; esac
done
tries=0; until rm -rf "$1" 2>/dev/null || [ $((tries += 1)) -gt 50 ]; do sleep 0.1; done
`;

export class GuardedProcesses {
  readonly #folder: string;
  readonly #guard: ChildProcess;
  readonly #children = new Map<string, ChildProcess>();

  /**
   * @param folder removed in the end
   * @param programs names of those that will be started
   */
  constructor(folder: string, programs: readonly string[]) {
    this.#folder = folder;
    // A session of its own: what ends a terminal's process group must not end the guard before its time.
    this.#guard = spawn("/bin/sh", ["-c", GUARD, "guard", folder, programs.join(" ")], {
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
    });
    this.#guard.stdin!.on("error", () => undefined);
    (this.#guard.stdin as unknown as { unref(): void }).unref();
    this.#guard.unref();
  }

  /** Starts a program that runs until `stop`. It keeps this process from ending no more than the guard does. */
  start(program: string, args: readonly string[]): void {
    const output = openSync(join(this.#folder, `${basename(program)}.out`), "a");
    const child = spawn(program, args, { detached: true, stdio: ["ignore", output, output] });
    child.once("error", () => undefined);
    if (child.pid !== undefined) this.#guard.stdin!.write(`${child.pid}\n`);
    child.unref();
    this.#children.set(program, child);
  }

  /** Names those that ended by themselves. */
  ended(): string[] {
    return [...this.#children]
      .filter(([, { pid, exitCode, signalCode }]) => pid === undefined || exitCode !== null || signalCode !== null)
      .map(([program]) => program);
  }

  /** Kills all, by the guard, so that what a crash would do is what always happens; resolves when nothing is left. */
  async stop(): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      if (this.#guard.exitCode !== null || this.#guard.signalCode !== null) resolve();
      else this.#guard.once("exit", () => resolve()).ref();
    });
    this.#guard.stdin!.end();
    await gone;
  }
}
