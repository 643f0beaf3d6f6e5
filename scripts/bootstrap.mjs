/**
 * Installs and builds what is missing or stale, and nothing else: what `npm start` and `npm test` run first.
 * Has no dependencies, since there may be none yet; fast when there is nothing to do.
 */

import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The repository's folder. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const NODE_MINIMUM = [20, 19];
/** Between two signs of life, in milliseconds. */
const HEARTBEAT_MS = 15_000;
const SPINNER_MS = 1_000;
const BUILD_STAMP = join(root, "node_modules", ".cache", "eider", "build.sha256");

/** Makes the checkout ready to run. Ends the process with a message where it cannot. */
export async function bootstrap() {
  checkNode();
  if (installIsStale()) {
    await step(
      "Installing packages (the first time, the native SQLite module may compile for a minute or more)",
      ...npm("ci", "--no-audit", "--no-fund", "--no-progress"),
    );
  }
  // A native module is built for one Node.js version: another version of it finds a module that does not load.
  if (!nodeHasSqlite() && !sqliteLoads()) {
    await step(
      `Building the native SQLite module for Node.js ${process.versions.node} (a minute or more)`,
      ...npm("rebuild", "better-sqlite3"),
    );
    const problem = sqliteProblem();
    if (problem) {
      fail(
        `better-sqlite3 does not load on this machine:\n${problem}\n` +
          "Compiling it needs Python 3, make and a C++ compiler (Debian: apt-get install python3 make g++;\n" +
          "macOS: xcode-select --install; Windows: the Visual Studio Build Tools). Then run this again.",
      );
    }
  }
  const sources = hashSources();
  if (sources !== readIfThere(BUILD_STAMP) || missingOutputs().length > 0) {
    await step("Building packages", process.execPath, [
      join(root, "node_modules", "turbo", "bin", "turbo"),
      "run",
      "build",
      "--output-logs=errors-only",
    ]);
    const missing = missingOutputs();
    if (missing.length > 0) fail(`The build left these files out, though packages export them:\n${missing.join("\n")}`);
    mkdirSync(dirname(BUILD_STAMP), { recursive: true });
    writeFileSync(BUILD_STAMP, sources);
  }
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [needMajor, needMinor] = NODE_MINIMUM;
  if (major < needMajor || (major === needMajor && minor < needMinor)) {
    fail(
      `Eider needs Node.js ${NODE_MINIMUM.join(".")} or newer; this is ${process.versions.node}.\n` +
        "Install a current version from https://nodejs.org and run this again.",
    );
  }
}

/**
 * Compares package-lock.json with npm's own record of what it installed, by content: time stamps lie after a clone.
 * Packages for other platforms are optional in the first and absent from the second.
 */
function installIsStale() {
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const record = readIfThere(join(root, "node_modules", ".package-lock.json"));
  if (record === undefined) return true;
  const present = JSON.parse(record).packages;
  return Object.entries(wanted).some(([path, entry]) => {
    if (path === "") return false;
    const found = present[path];
    if (found === undefined) return !entry.optional;
    return found.version !== entry.version || found.integrity !== entry.integrity;
  });
}

/** Whether Eider uses the SQLite inside of this Node.js, as packages/catalog/src/node-sqlite.ts decides. */
function nodeHasSqlite() {
  if (Number.parseInt(process.versions.node, 10) < 24) return false;
  return "deserialize" in (process.getBuiltinModule("node:sqlite")?.DatabaseSync.prototype ?? {});
}

function sqliteLoads() {
  return sqliteProblem() === undefined;
}

/** Why better-sqlite3 cannot be used; in a process of its own, as Windows cannot rebuild a module that is loaded. */
function sqliteProblem() {
  const probe = spawnSync(process.execPath, ["-e", 'new (require("better-sqlite3"))(":memory:").close()'], {
    cwd: root,
    encoding: "utf8",
  });
  if (probe.status === 0) return undefined;
  return /^\w*Error: .*$/m.exec(probe.stderr)?.[0] ?? probe.stderr.trim();
}

/** Folders of the workspaces, relative to the root. */
export function workspaces() {
  return ["packages", "apps"].flatMap((parent) =>
    readdirSync(join(root, parent))
      .sort()
      .map((name) => `${parent}/${name}`)
      .filter((folder) => existsSync(join(root, folder, "package.json"))),
  );
}

/** One hash over everything that a build reads, as turbo.json lists it: whole folders (`src/` and all below) and single files. */
function hashSources() {
  const hash = createHash("sha256").update(process.versions.node.split(".")[0]);
  const { inputs } = JSON.parse(readFileSync(join(root, "turbo.json"), "utf8")).tasks.build;
  const files = workspaces().flatMap((folder) => inputs.flatMap((input) => listInput(folder, input)));
  for (const path of ["package-lock.json", "turbo.json", ...files]) {
    const bytes = readFileSync(join(root, path));
    hash.update(`\0${path}\0${bytes.length}\0`).update(bytes);
  }
  return hash.digest("hex");
}

function listInput(folder, input) {
  const path = join(folder, input.replace(/\/\*\*$/, ""));
  if (!existsSync(join(root, path))) return [];
  return input.endsWith("/**") ? listFiles(path) : [path];
}

function listFiles(folder) {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? listFiles(path) : [path];
    });
}

/** Files that a workspace's manifest promises and that are not built. */
function missingOutputs() {
  return workspaces().flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const paths = [
      ...Object.values(manifest.exports ?? {}).flatMap(leaves),
      ...leaves(manifest.bin ?? {}),
      ...leaves(manifest.main ?? {}),
    ];
    return paths
      .map((path) => `${folder}/${path.replace(/^\.\//, "")}`)
      .filter((path) => !existsSync(join(root, path)));
  });
}

function leaves(value) {
  return typeof value === "string" ? [value] : Object.values(value).flatMap(leaves);
}

/** How to run npm: by its script where it can be found, since `npm.cmd` cannot be spawned without a shell. */
export function npm(...args) {
  const beside = dirname(process.execPath);
  const script = [
    process.env.npm_execpath,
    join(beside, "node_modules", "npm", "bin", "npm-cli.js"),
    join(beside, "..", "lib", "node_modules", "npm", "bin", "npm-cli.js"),
  ].find((path) => path?.endsWith("npm-cli.js") && existsSync(path));
  return script ? [process.execPath, [script, ...args]] : ["npm", args, { shell: process.platform === "win32" }];
}

/** Runs one command with its title and a clock for company; its output is shown only if it fails. */
async function step(title, command, args, options = {}) {
  const started = Date.now();
  const seconds = () => `${Math.round((Date.now() - started) / 1000)} s`;
  const out = process.stderr;
  out.write(`${title} …${out.isTTY ? "" : "\n"}`);
  const clock = setInterval(
    () => out.write(out.isTTY ? `\r${title} … ${seconds()}` : `  … ${seconds()}\n`),
    out.isTTY ? SPINNER_MS : HEARTBEAT_MS,
  );
  let output = "";
  const status = await new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TURBO_TELEMETRY_DISABLED: "1", TURBO_NO_UPDATE_NOTIFIER: "1" },
      ...options,
    });
    const collect = (chunk) => {
      output += chunk;
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.on("error", (error) => {
      output += error.message;
      resolve(1);
    });
    child.on("close", (code, signal) => resolve(signal ?? code));
  });
  clearInterval(clock);
  out.write(out.isTTY ? `\r${title} … ${seconds()}\n` : `  done in ${seconds()}\n`);
  if (status !== 0) fail(`${output.trim()}\n\n${title}: failed (${status}).`);
}

/** Runs a command in the foreground with this process's terminal; gives its exit code. */
export function run(command, args, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } });
    child.on("error", (error) => {
      process.stderr.write(`${command}: ${error.message}\n`);
      resolve(1);
    });
    child.on("close", (code) => resolve(code ?? 1));
  });
}

function readIfThere(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) await bootstrap();
