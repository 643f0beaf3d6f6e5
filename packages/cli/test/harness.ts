/** Runs the command line: in this process with stand-ins for its streams, or as a process of its own from the build. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll } from "vitest";
import { run } from "../src/index.js";

/** A new temporary folder, removed when the tests of the file are done. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "eider-cli-test-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Standard output as it came. */
  readonly bytes: Buffer;
}

export interface Stand {
  readonly stdin?: string | Uint8Array | Readable;
  /** Standard output is a terminal of so many columns. */
  readonly columns?: number;
  /** Standard input and error are a terminal. */
  readonly interactive?: boolean;
  /** Ctrl-C after so many milliseconds. */
  readonly interruptAfterMs?: number;
  /** What is written to standard error, as it comes; `interrupt` is Ctrl-C. */
  readonly onStderr?: (text: string, interrupt: () => void) => void;
}

class Screen extends Writable {
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  readonly chunks: Buffer[] = [];
  readonly #onText: (text: string) => void;

  constructor(isTTY: boolean, columns: number | undefined, onText: (text: string) => void = () => {}) {
    super();
    this.isTTY = isTTY;
    this.columns = columns;
    this.#onText = onText;
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.chunks.push(Buffer.from(chunk));
    this.#onText(chunk.toString("utf8"));
    done();
  }
}

/** Runs `eider …args` in this process. */
export async function eider(args: readonly string[], stand: Stand = {}): Promise<Outcome> {
  const signals = new EventEmitter();
  const { stdin = "", interactive = false, columns, interruptAfterMs, onStderr } = stand;
  const stdout = new Screen(columns !== undefined, columns);
  const stderr = new Screen(interactive, undefined, (text) => onStderr?.(text, () => void signals.emit("SIGINT")));
  const input = stdin instanceof Readable ? stdin : Readable.from([Buffer.from(stdin)]);
  if (interruptAfterMs !== undefined) setTimeout(() => signals.emit("SIGINT"), interruptAfterMs);
  const code = await run(args, {
    stdin: Object.assign(input, { isTTY: interactive }),
    stdout: stdout as Writable & { isTTY: boolean; columns: number },
    stderr,
    on: (event, listener) => signals.on(event, listener),
    off: (event, listener) => signals.off(event, listener),
  });
  const bytes = Buffer.concat(stdout.chunks);
  return { code, stdout: bytes.toString("utf8"), stderr: Buffer.concat(stderr.chunks).toString("utf8"), bytes };
}

/** The same, where anything but success is a mistake of the test. */
export async function eiderOk(args: readonly string[], stand: Stand = {}): Promise<Outcome> {
  const outcome = await eider(args, stand);
  if (outcome.code !== 0) throw new Error(`eider ${args.join(" ")} ended with ${outcome.code}: ${outcome.stderr}`);
  return outcome;
}

/** The command as it is installed. */
const command: string = fileURLToPath(new URL("../bin/eider.js", import.meta.url));

type Child = ChildProcessByStdio<Writable, Readable, Readable>;

/** Starts `eider …args` as a process. `ended` settles when it has. */
export function startEider(
  args: readonly string[],
  cwd: string,
): { readonly child: Child; readonly ended: Promise<Outcome> } {
  return start(process.execPath, [command, ...args], cwd);
}

/** Runs a line of bash in which `eider` is the command. */
export function bash(line: string, cwd: string): Promise<Outcome> {
  const quoted = [process.execPath, command].map((part) => `'${part}'`).join(" ");
  const { child, ended } = start("bash", ["-c", `eider() { ${quoted} "$@"; }\n${line}`], cwd);
  child.stdin.end();
  return ended;
}

function start(
  file: string,
  args: readonly string[],
  cwd: string,
): { readonly child: Child; readonly ended: Promise<Outcome> } {
  const child = spawn(file, args, { cwd, stdio: ["pipe", "pipe", "pipe"] });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  // A child that has ended reads no more.
  child.stdin.on("error", () => {});
  const ended = new Promise<Outcome>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      const bytes = Buffer.concat(out);
      resolve({ code, stdout: bytes.toString("utf8"), stderr: Buffer.concat(err).toString("utf8"), bytes });
    });
  });
  return { child, ended };
}
