/** Child processes that run this package's sources, bundled once per test file. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Bundles `worker.ts`; the native module stays outside, by its absolute place. */
export async function bundleWorker(): Promise<{ script: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "eider-catalog-worker-"));
  const script = join(folder, "worker.mjs");
  const native = pathToFileURL(createRequire(import.meta.url).resolve("better-sqlite3")).href;
  await build({
    entryPoints: [here("./worker.ts")],
    outfile: script,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    alias: {
      "@eider/core": here("../../core/src/index.ts"),
      "@eider/core/node": here("../../core/src/node.ts"),
    },
    plugins: [
      {
        name: "native",
        setup: ({ onResolve }) => {
          onResolve({ filter: /^better-sqlite3$/ }, () => ({ path: native, external: true }));
        },
      },
    ],
    external: ["apache-arrow", "@foxglove/wasm-zstd", "fzstd"],
  });
  return { script, remove: () => rm(folder, { recursive: true, force: true }) };
}

export interface Worker {
  readonly process: ChildProcess;
  /** Lines that it has printed so far. */
  readonly lines: string[];
  /** All lines, once it has ended well; else throws with what it wrote to stderr. */
  readonly ended: Promise<string[]>;
  /** How it ended, well or not: its exit code, or the signal. */
  readonly exit: Promise<number | NodeJS.Signals>;
}

export function startWorker(script: string, args: readonly string[], user?: number): Worker {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  const lines: string[] = [];
  let rest = "";
  let errors = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop()!;
    lines.push(...parts);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const exit = new Promise<number | NodeJS.Signals>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => resolve(code ?? signal ?? -1));
  });
  const ended = exit.then((code) => {
    if (code !== 0) throw new Error(`worker ${args.join(" ")} ended with ${code}: ${errors}`);
    return lines;
  });
  ended.catch(() => {}); // looked at by those who need it
  return { process: child, lines, ended, exit };
}
