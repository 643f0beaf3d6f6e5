/** The worker of the sources under test, which Node.js cannot run as they are. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll } from "vitest";

const source = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));

/** A folder below the repository, so that what is not bundled is found. Removed when the tests of the file are done. */
function folder(): string {
  const parent = source("node_modules/.cache");
  mkdirSync(parent, { recursive: true });
  const path = mkdtempSync(join(parent, "eider-worker-"));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Bundles `src/worker.ts`. */
export async function buildWorker(): Promise<URL> {
  const outfile = join(folder(), "eider-worker.mjs");
  await build({
    entryPoints: [source("packages/eider/src/worker.ts")],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    alias: {
      "@eider/core/ranges": source("packages/core/src/ranges.ts"),
      "@eider/core/node": source("packages/core/src/node.ts"),
      "@eider/core": source("packages/core/src/index.ts"),
      "@eider/catalog": source("packages/catalog/src/index.ts"),
    },
    external: ["@foxglove/wasm-zstd", "better-sqlite3"],
    outfile,
    logLevel: "error",
  });
  return pathToFileURL(outfile);
}

/** A worker that is this code. */
export function writeWorker(code: string): URL {
  const path = join(folder(), "eider-worker.mjs");
  writeFileSync(path, code);
  return pathToFileURL(path);
}
