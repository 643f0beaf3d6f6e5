/** The AssemblyScript compiler with the engine's settings. */

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { main } from "assemblyscript/asc";

/** No runtime: memory is an arena of our own. */
const FLAGS = ["--runtime", "stub", "-O3", "--converge", "--noAssert", "--enable", "simd", "--enable", "bulk-memory"];

/** Less optimized than what is released: compiled in a tenth of the time, with the same results. */
export const QUICK_FLAGS = ["-O1", ...FLAGS.filter((flag) => flag !== "-O3" && flag !== "--converge")];

/** One hash over the sources in a folder, as far as the engine is made of them, and how they are compiled. */
export function hashSources(folder) {
  const sources = new Map();
  const visit = (path) => {
    if (sources.has(path)) return;
    const text = readFileSync(path, "utf8");
    sources.set(path, text);
    for (const [, name] of text.matchAll(/ from "(\.[^"]+)"/g)) visit(join(dirname(path), `${name}.ts`));
  };
  visit(join(folder, "index.ts"));
  const hash = createHash("sha256").update(FLAGS.join(" "));
  for (const path of [...sources.keys()].sort()) hash.update(`\0${basename(path)}\0`).update(sources.get(path));
  return hash.digest("hex");
}

/**
 * The engine as WebAssembly.
 * @param folder the sources
 * @param edit may change a source before it is compiled, given its name
 * @param flags of the compiler
 */
export async function compileEngine(folder, edit = (_name, text) => text, flags = FLAGS) {
  let wasm;
  const { error, stderr } = await main(["index.ts", "--outFile", "engine.wasm", ...flags], {
    readFile: (name) => {
      const path = join(folder, name);
      return existsSync(path) ? edit(name, readFileSync(path, "utf8")) : null;
    },
    writeFile: (_name, contents) => {
      wasm = contents;
    },
    listFiles: () => [],
  });
  if (error || wasm === undefined)
    throw new Error(`assembly/ does not compile:\n${stderr.toString()}`, { cause: error });
  return wasm;
}

/** The text of `src/engine-module.ts`. */
export function moduleText(wasm, sources) {
  return `/** Made from \`assembly/\` by \`scripts/build-engine.mjs\`: never edit it by hand. */

/** The WebAssembly module in base64: ${wasm.length} bytes. Its sources have the hash ${sources}. */
export const ENGINE_MODULE =
  "${Buffer.from(wasm).toString("base64")}";
`;
}
