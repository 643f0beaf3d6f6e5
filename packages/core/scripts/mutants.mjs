/**
 * Plants faults in the package, one at a time, and fails unless the tests that are named for each notice it.
 *
 *   node packages/core/scripts/mutants.mjs [--every-test] [word…]
 *
 * A file in `mutants/` holds the faults of one part, by name: where they go and which tests must fail, so that a run
 * takes seconds and not the whole suite's minutes. Words choose mutants by what their names hold. `--every-test` runs
 * all tests of the files that are named and prints which ones failed: to choose the quickest of them.
 */

import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compileEngine, moduleText, QUICK_FLAGS } from "./compile-engine.mjs";

/**
 * @typedef {object} Mutant
 * @property {string} name what goes wrong, behind the part that it goes wrong in
 * @property {string} file below `packages/core`: in `assembly/`, which is compiled, or in `src/`
 * @property {string} find stands in the file once
 * @property {string} replace takes its place
 * @property {Record<string, string[]>} tests names, or parts of names, by file in `test/`: each must fail
 */

/** Longest time for one mutant's tests, in milliseconds. */
const LIMIT_MS = 300_000;

const core = fileURLToPath(new URL("..", import.meta.url));
const root = fileURLToPath(new URL("../../..", import.meta.url));
const everyTest = process.argv.includes("--every-test");
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const folder = mkdtempSync(join(tmpdir(), "eider-mutants-"));

try {
  const mutants = (await load()).filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)));
  // Without a fault the same tests must pass, or they would seem to notice whatever they are shown.
  const jobs = [{ name: "no fault", tests: together(mutants) }, ...mutants];
  let missed = 0;
  const next = async () => {
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      const fault = await verdict(job);
      if (fault !== undefined) missed++;
      process.stdout.write(fault === undefined ? `as expected  ${job.name}\n` : `FAULT        ${job.name}: ${fault}\n`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, next));
  process.stdout.write(`${mutants.length} mutants, ${missed} not as expected\n`);
  process.exitCode = missed > 0 || mutants.length === 0 ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** @returns {Promise<Mutant[]>} */
async function load() {
  const mutants = [];
  const files = readdirSync(new URL("mutants/", import.meta.url)).filter((file) => file.endsWith(".mjs"));
  for (const file of files.sort()) {
    const { default: own } = await import(new URL(`mutants/${file}`, import.meta.url).href);
    mutants.push(...own.map((mutant) => ({ ...mutant, name: `${basename(file, ".mjs")} ${mutant.name}` })));
  }
  return mutants;
}

function together(mutants) {
  const tests = {};
  for (const mutant of mutants) {
    for (const [file, names] of Object.entries(mutant.tests)) tests[file] = [...(tests[file] ?? []), ...names];
  }
  return tests;
}

/** What is wrong with a mutant or its tests; undefined if all is as it should be. */
async function verdict({ name, file, find, replace, tests }) {
  const changed = new Map();
  if (file !== undefined) {
    const text = readFileSync(join(core, file), "utf8");
    if (text.split(find).length !== 2) return `${file} must hold once: ${find}`;
    changed.set(
      file,
      text.replace(find, () => replace),
    );
  }
  if (file === undefined || file.startsWith("assembly/")) {
    let wasm;
    try {
      wasm = await compileEngine(
        join(core, "assembly"),
        (path, text) => changed.get(`assembly/${path}`) ?? text,
        QUICK_FLAGS,
      );
    } catch (error) {
      return error.message;
    }
    changed.clear();
    changed.set("src/engine-module.ts", moduleText(wasm, "none: it is a mutant"));
  }
  const results = await run(name, changed, tests);
  if (results === undefined) return `its tests do not end within ${LIMIT_MS / 1000} s: plant another fault`;
  if (everyTest) {
    const failed = results.filter(({ status }) => status === "failed");
    if (file === undefined) return failed.length === 0 ? undefined : `"${failed[0].fullName}" fails`;
    for (const { fullName, duration } of failed) process.stdout.write(`  ${Math.round(duration)} ms  ${fullName}\n`);
    return failed.length === 0 ? "no test noticed" : undefined;
  }
  for (const wanted of Object.values(tests).flat()) {
    const named = results.filter(({ fullName }) => fullName.includes(wanted));
    if (named.length === 0) return `there is no test "${wanted}"`;
    const noticed = named.some(({ status }) => status === "failed");
    if (noticed !== (file !== undefined)) return noticed ? `"${wanted}" fails` : `"${wanted}" did not notice`;
  }
  return undefined;
}

/** What became of the tests with other contents for some files of the package; undefined if they did not end. */
async function run(name, changed, tests) {
  const place = mkdtempSync(join(folder, "run-"));
  const contents = Object.fromEntries([...changed].map(([file, text]) => [join(core, file), text]));
  const names = Object.values(tests).flat();
  const config = join(place, "vitest.config.mjs");
  writeFileSync(
    config,
    `const contents = ${JSON.stringify(contents)};
    export default {
      root: ${JSON.stringify(root)},
      cacheDir: ${JSON.stringify(join(place, "cache"))},
      plugins: [{ name: "mutant", enforce: "pre", load: (id) => contents[id] }],
      test: {
        include: ${JSON.stringify(Object.keys(tests).map((file) => `packages/core/test/${file}`))},
        setupFiles: [${JSON.stringify(join(root, "test/support/seed.ts"))}],
        testTimeout: ${LIMIT_MS},
        maxWorkers: 1,
        pool: "threads",
      },
    };`,
  );
  const report = join(place, "report.json");
  const args = ["run", "--config", config, "--reporter", "json", "--outputFile", report];
  if (!everyTest) {
    const escaped = names.map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
    args.push("--testNamePattern", escaped.join("|"));
  }
  const child = spawn(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), ...args], {
    stdio: ["ignore", "ignore", "pipe"],
    // The same generated values in every run: whether a fault is noticed is no matter of luck.
    env: { ...process.env, EIDER_SEED: "1" },
  });
  let messages = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    messages += text;
  });
  const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
  const signal = await new Promise((resolve) => child.on("close", (_code, by) => resolve(by)));
  clearTimeout(timer);
  if (signal !== null) return undefined;
  let suites;
  try {
    suites = JSON.parse(readFileSync(report, "utf8")).testResults;
  } catch (error) {
    throw new Error(`the tests for "${name}" did not run:\n${messages}`, { cause: error });
  }
  const results = suites.flatMap((suite) => suite.assertionResults);
  if (results.length === 0) throw new Error(`the tests for "${name}" did not run:\n${suites[0]?.message ?? messages}`);
  return results;
}
