/**
 * Compiles `assembly/` to WebAssembly and writes it into `src/engine-module.ts`, where it needs no loader: Node.js,
 * browsers, workers and bundlers take it alike. Does nothing when that file was made from the same sources.
 *
 *   node scripts/build-engine.mjs [--check | --dry-run]
 *
 * `--check` compiles in any case and fails where the result differs from what is there; `--dry-run` fails where the
 * sources do, and compiles nothing.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { compileEngine, hashSources, moduleText } from "./compile-engine.mjs";

const folder = fileURLToPath(new URL("../assembly/", import.meta.url));
const target = fileURLToPath(new URL("../src/engine-module.ts", import.meta.url));

const sources = hashSources(folder);
const present = existsSync(target) ? readFileSync(target, "utf8") : "";
const check = process.argv.includes("--check");
const stale = !present.includes(sources);
if (process.argv.includes("--dry-run")) process.exitCode = stale ? 1 : 0;
else if (check || stale) {
  const wasm = await compileEngine(folder);
  const text = moduleText(wasm, sources);
  if (check && text !== present) {
    process.stderr.write("src/engine-module.ts is not what assembly/ compiles to: run npm run build\n");
    process.exitCode = 1;
  } else if (!check) writeFileSync(target, text);
}
