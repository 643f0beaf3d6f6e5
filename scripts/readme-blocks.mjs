/**
 * Runs the code blocks of the documentation as they are written, each by itself in an empty folder, against the built
 * packages; TypeScript is type checked as well. `node scripts/readme-blocks.mjs [file…]`, all documents by default.
 *
 * The words after the language decide: `ts` and `js` blocks run, unless `no-run="reason"` says why not;
 * `sh` blocks run if they say `run`. Other languages are left alone.
 */

import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { transformSync } from "esbuild";
import ts from "typescript";
import { root, workspaces } from "./bootstrap.mjs";

const BLOCK_TIMEOUT_MS = 120_000;
/** What a strict user would set; the examples have to hold there too. */
const COMPILER_OPTIONS = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: true,
  noEmit: true,
  moduleDetection: ts.ModuleDetectionKind.Force,
  types: ["node"],
};

const files = process.argv.length > 2 ? process.argv.slice(2) : documents();
const blocks = files.flatMap((file) => blocksOf(file, readFileSync(join(root, file), "utf8")));
const runnable = blocks.filter((block) => block.problem === undefined);
const temporary = realpathSync(mkdtempSync(join(tmpdir(), "eider-blocks-")));
try {
  for (const [index, block] of runnable.entries()) prepare(block, join(temporary, String(index)));
  checkTypes(runnable.filter((block) => block.language === "ts"));
  for (const block of runnable) block.problem ??= runProblem(block);
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
for (const block of blocks) {
  console.log(`${block.problem === undefined ? "ok    " : "FAILED"} ${block.file}:${block.line} ${block.language}`);
  if (block.problem !== undefined) console.log(block.problem.replace(/^/gm, "       "));
}
const failed = blocks.filter((block) => block.problem !== undefined).length;
console.log(`${blocks.length - failed} of ${blocks.length} code blocks run as written`);
if (failed > 0) process.exitCode = 1;

function documents() {
  const inside = (folder) =>
    readdirSync(join(root, folder))
      .filter((name) => name.endsWith(".md"))
      .map((name) => `${folder}/${name}`);
  return [
    "README.md",
    ...workspaces()
      .filter((folder) => folder.startsWith("packages/"))
      .map((folder) => `${folder}/README.md`),
    ...inside("docs"),
  ];
}

/** The blocks of a document that are to run, and those that say so wrongly. */
function blocksOf(file, text) {
  const found = [];
  const fence = /^```(\w+)([^\n]*)\n(.*?)^```$/gms;
  for (const { 1: language, 2: flags, 3: code, index } of text.matchAll(fence)) {
    const block = { file, language, code, line: text.slice(0, index).split("\n").length };
    const words = flags.trim();
    if (language === "sh") {
      if (words === "run") found.push(block);
      else if (words !== "") found.push({ ...block, problem: `unknown words after sh: ${words}` });
    } else if (language === "ts" || language === "js") {
      if (words === "") found.push(block);
      else if (!/^no-run="[^"]{10,}"$/.test(words))
        found.push({
          ...block,
          problem: `unknown words after ${language}: ${words}; a block that cannot run says no-run="and why"`,
        });
    }
  }
  return found;
}

/** A folder with the block in it and the built packages beside it, as after `npm install eider`. */
function prepare(block, folder) {
  mkdirSync(folder);
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"), "junction");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  block.folder = folder;
  block.path = join(folder, `example.${block.language}`);
  writeFileSync(block.path, block.code);
}

/** Gives blocks that TypeScript does not accept their problem; one program for all, each block a module of its own. */
function checkTypes(blocks) {
  const program = ts.createProgram(
    blocks.map((block) => block.path),
    { ...COMPILER_OPTIONS, typeRoots: [join(root, "node_modules", "@types")] },
  );
  for (const { file, start, messageText } of ts.getPreEmitDiagnostics(program)) {
    const message = ts.flattenDiagnosticMessageText(messageText, "\n");
    const block = blocks.find(({ folder }) => file && !relative(folder, file.fileName).startsWith(".."));
    if (block === undefined) throw new Error(`${file?.fileName ?? "TypeScript"}: ${message}`);
    const line = ts.getLineAndCharacterOfPosition(file, start).line + 1;
    block.problem = `${block.problem === undefined ? "" : `${block.problem}\n`}line ${line}: ${message}`;
  }
}

function runProblem(block) {
  let command = [process.execPath, block.path];
  if (block.language === "ts") {
    const path = join(block.folder, "example.mjs");
    writeFileSync(path, transformSync(block.code, { loader: "ts", format: "esm", target: "node20" }).code);
    command = [process.execPath, path];
  } else if (block.language === "sh") command = ["bash", "-euo", "pipefail", block.path];
  const { status, signal, stdout, stderr, error } = spawnSync(command[0], command.slice(1), {
    cwd: block.folder,
    encoding: "utf8",
    timeout: BLOCK_TIMEOUT_MS,
    env: { ...process.env, PATH: `${join(root, "node_modules", ".bin")}${delimiter}${process.env.PATH}` },
  });
  if (status === 0) return undefined;
  return `${error?.message ?? `ended with ${signal ?? status}`}\n${stdout}${stderr}`.trim();
}
