/**
 * Plants faults in the engine's JSON parser, one at a time, and expects its tests to notice each. Takes some minutes.
 *
 *   node packages/core/scripts/mutants.mjs [name…]
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileEngine, moduleText } from "./compile-engine.mjs";

/** By name: the source, and a text in it with what takes its place. The first is none. */
const MUTANTS = {
  nothing: ["json.ts", "", ""],
  "floats: digits beyond 53 bits count as exact": ["float.ts", "mantissa < 1 << 53", "mantissa < 1 << 55"],
  "floats: ties are not rounded to even": ["float.ts", "(bits & 3) === 1", "(bits & 3) === 5"],
  "integers: the largest may be passed by one": [
    "number.ts",
    "<u64>i64.MAX_VALUE + <u64>minus",
    "<u64>i64.MAX_VALUE + 1",
  ],
  "integers: 1.0 is one, whatever was asked": ["number.ts", "if (strict) return 0;", ""],
  "decimals: rounded where digits lack": ["number.ts", "if (mantissa % unit !== 0) return 0;", ""],
  "text: half a surrogate pair passes": ["text.ts", "(low & 0xfffffc00) !== 0xdc00", "low > 0xffff"],
  "text: control characters pass": [
    "text.ts",
    "i8x16.lt_u(block, i8x16.splat(0x20))",
    "i8x16.lt_u(block, i8x16.splat(0x0b))",
  ],
  "base64: bits that are cut off may be set": ["text.ts", "pad === 1 && (c & 3) !== 0", "pad === 1 && (c & 3) > 3"],
  "UTF-8: surrogates pass": ["utf8.ts", "const SURROGATE: u8 = 16", "const SURROGATE: u8 = 0"],
  "dates: every hundredth year is a leap year": ["temporal.ts", "year % 400 === 0", "year % 200 === 0"],
  "keys: only the first sixteen bytes count": ["keys.ts", "size <= 16 || equals(", "size >= 0 || equals("],
  "objects: of a repeated key both values count": ["json.ts", "if (length > index) return 0;", ""],
  "objects: a value that may not be null may lack": [
    "json.ts",
    "if (required !== load<u32>(node, REQUIRED)) return 0;",
    "",
  ],
  "objects: a comma may be last": [
    "json.ts",
    "if (c !== QUOTE) return 0;",
    "if (c === CLOSE_OBJECT) break;\n      if (c !== QUOTE) return 0;",
  ],
  "rows: what a bad one left is not taken back": ["json.ts", "truncate(root, index);", ""],
  "rows: nulls of a bad one stay": [
    "node.ts",
    "store<u8>(at, load<u8>(at) | mask);\n        store<u32>(node, load<u32>(node, NULLS) - 1, NULLS);",
    "",
  ],
  "rows: anything may follow on the line": [
    "json.ts",
    "if (c !== LF) at = 0;",
    "while (load<u8>(at) !== LF && load<u8>(at) !== 0) at++;",
  ],
  "maps: keys are not compared": ["json.ts", "at === 0 || !isNewKey(key, first)", "at === 0"],
};

const core = fileURLToPath(new URL("..", import.meta.url));
const root = fileURLToPath(new URL("../../..", import.meta.url));
const wanted = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "eider-mutants-"));
let missed = 0;
try {
  for (const [name, [source, text, replacement]] of Object.entries(MUTANTS)) {
    if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
    const wasm = await compileEngine(join(core, "assembly"), (file, content) => {
      if (file !== source) return content;
      if (!content.includes(text)) throw new Error(`${source} no longer holds: ${text}`);
      return content.replace(text, () => replacement);
    });
    // Without a fault the tests must pass, or they would seem to notice whatever they are shown.
    const asExpected = testsPass(wasm) === (name === "nothing");
    if (!asExpected) missed++;
    console.log(`${asExpected ? "as expected" : "NOT NOTICED"}  ${name}`);
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = missed > 0 ? 1 : 0;

/** Whether the tests pass with another module in place of the engine's. */
function testsPass(wasm) {
  const module = join(folder, "engine-module.ts");
  const config = join(folder, "vitest.config.mjs");
  writeFileSync(module, moduleText(wasm, "none: it is a mutant"));
  writeFileSync(
    config,
    `export default {
      root: ${JSON.stringify(root)},
      cacheDir: ${JSON.stringify(join(folder, "cache"))},
      resolve: { alias: [{ find: /^\\.\\/engine-module\\.js$/, replacement: ${JSON.stringify(module)} }] },
      test: { include: ["packages/core/test/json-engine.test.ts"], testTimeout: 120_000, bail: 1 },
    };`,
  );
  // The last test compares the module with its sources, from which a mutant differs in any case.
  const args = ["run", "--config", config, "--testNamePattern", "^(?!the module in the package)"];
  return spawnSync(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), ...args]).status === 0;
}
