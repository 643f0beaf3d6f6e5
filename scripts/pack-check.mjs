/**
 * Packs every package as it would be published and uses the tarballs as a stranger would: manifests and types are linted
 * (publint, attw), then they are installed into an empty project, imported, required, compiled against in strict
 * TypeScript, run, and bundled into a server by the recipe of docs/bundling.md.
 */

import { spawn, spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootstrap, npm, root } from "./bootstrap.mjs";

const COMMAND_TIMEOUT_MS = 300_000;
const SERVER_TIMEOUT_MS = 30_000;

const rootManifest = readJson(join(root, "package.json"));
const packages = readdirSync(join(root, "packages"))
  .map((name) => {
    const folder = join(root, "packages", name);
    return { folder, ...readJson(join(folder, "package.json")) };
  })
  .filter((manifest) => !manifest.private);

const APP = `
import { BatchConflictError, Lake, type AppendResult } from "eider";

const lake = await Lake.open("./lake");
const events = lake.table("events", { orderBy: ["id"] });
const rows = [{ id: 1, type: "view" }, { id: 2, type: "buy" }, { id: 3, type: "view" }];
const first: AppendResult = await events.append(rows, { batchId: "one" });
const second: AppendResult = await events.append(rows, { batchId: "one" });
const conflict: unknown = await events.append([{ id: 4 }], { batchId: "one" }).catch((error: unknown) => error);
if (!(conflict instanceof BatchConflictError)) throw conflict;
const perType = await lake.sql<{ type: string; n: bigint }>\`SELECT type, count(*) AS n FROM events GROUP BY ALL ORDER BY type\`;
console.log(first.status, second.status, perType.map(({ type, n }) => \`\${type}=\${n}\`).join(" "));
await lake.close();
`;
const APP_OUTPUT = "committed duplicate buy=1 view=2";

await bootstrap();
const temporary = realpathSync(mkdtempSync(join(tmpdir(), "eider-pack-")));
let failures = 0;
try {
  const tarballs = packages.map(pack);
  for (const [index, { name }] of packages.entries()) {
    await check(`publint ${name}`, () => tool("publint/src/cli.js", ["run", tarballs[index], "--strict"]));
    // Eider is ESM only: `require()` of it works from Node.js 20.19 on, which attw's other profiles do not know.
    await check(`attw ${name}`, () =>
      tool("@arethetypeswrong/cli/dist/index.js", [
        tarballs[index],
        "--profile=esm-only",
        "--no-definitely-typed",
        "--format=ascii",
        "--no-emoji",
      ]),
    );
  }
  const app = join(temporary, "app");
  await check("install into an empty project", () => install(app, tarballs));
  for (const { name, exports } of packages) {
    for (const path of Object.keys(exports)) {
      if (path === "./package.json") continue;
      const specifier = join(name, path).replaceAll("\\", "/");
      await check(`import ${specifier}`, () =>
        node(app, ["--input-type=module", "-e", `await import(${JSON.stringify(specifier)})`]),
      );
      await check(`require ${specifier}`, () => node(app, ["-e", `require(${JSON.stringify(specifier)})`]));
    }
  }
  await check("npx eider --help", () =>
    expectOutput(command(app, ...npm("exec", "--offline", "--", "eider", "--help")), "append"),
  );
  await check("strict TypeScript, compiled and run", () => {
    writeFileSync(join(app, "app.ts"), APP);
    command(app, ...npm("exec", "--offline", "--", "tsc"));
    expectOutput(node(app, ["app.js"]), APP_OUTPUT);
  });
  await check("CommonJS", () => {
    const code =
      'const { Lake } = require("eider"); Lake.open("memory:").then((lake) => lake.close()).then(() => console.log("closed"))';
    expectOutput(node(app, ["-e", code]), "closed");
  });
  await check("server bundled by docs/bundling.md", () => bundledServer(app));
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
if (failures > 0) process.exitCode = 1;

async function check(title, run) {
  try {
    await run();
    console.log(`ok     ${title}`);
  } catch (error) {
    failures++;
    console.log(`FAILED ${title}\n${String(error.message).trim().replace(/^/gm, "       ")}`);
  }
}

function pack({ folder }) {
  const [{ filename }] = JSON.parse(command(folder, ...npm("pack", "--json", `--pack-destination=${temporary}`)));
  return join(temporary, filename);
}

/** Our packages come from the tarballs, theirs from the registry. */
function install(app, tarballs) {
  mkdirSync(app);
  const { typescript, esbuild, "@types/node": nodeTypes } = rootManifest.devDependencies;
  writeFileSync(
    join(app, "package.json"),
    JSON.stringify({
      private: true,
      type: "module",
      dependencies: Object.fromEntries(packages.map(({ name }, index) => [name, `file:${tarballs[index]}`])),
      devDependencies: { typescript, esbuild, "@types/node": nodeTypes },
    }),
  );
  writeFileSync(
    join(app, "tsconfig.json"),
    JSON.stringify({
      // A server's: what only browsers' libraries declare is not there.
      compilerOptions: { strict: true, target: "ES2022", lib: ["ES2023"], module: "NodeNext", types: ["node"] },
      files: ["app.ts"],
    }),
  );
  command(app, ...npm("install", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts"));
  // The native module as built in this checkout: to compile it again takes a minute and proves nothing about our packages.
  cpSync(join(root, "node_modules", "better-sqlite3", "build"), join(app, "node_modules", "better-sqlite3", "build"), {
    recursive: true,
  });
}

async function bundledServer(app) {
  const recipe = readFileSync(join(root, "docs", "bundling.md"), "utf8");
  const server = /^```ts[^\n]*\n(\/\/ server\.ts\n.*?)^```$/ms.exec(recipe)[1];
  const build = /^```sh\n(npx esbuild .*?)^```$/ms.exec(recipe)[1];
  writeFileSync(join(app, "server.ts"), server);
  command(app, "bash", ["-euc", build]);

  // Where it is deployed there is nothing but the bundle and the modules that the recipe keeps out.
  const deployed = join(temporary, "deployed");
  mkdirSync(deployed);
  cpSync(join(app, "bundle"), deployed, { recursive: true });
  const outside = ["better-sqlite3", "bindings", "file-uri-to-path", "@duckdb", "@foxglove"];
  for (const name of outside)
    cpSync(join(app, "node_modules", name), join(deployed, "node_modules", name), { recursive: true });

  const child = spawn(process.execPath, ["server.mjs"], { cwd: deployed, env: { ...process.env, PORT: "0" } });
  let output = "";
  try {
    const port = await new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no answer in ${SERVER_TIMEOUT_MS} ms\n${output}`)),
        SERVER_TIMEOUT_MS,
      );
      const collect = (chunk) => {
        output += chunk;
        const found = /port: (\d+)/.exec(output);
        if (found) {
          clearTimeout(timer);
          resolve(found[1]);
        }
      };
      child.stdout.on("data", collect);
      child.stderr.on("data", collect);
      child.on("close", (code) => reject(new Error(`the server ended with ${code}\n${output}`)));
    });
    await fetch(`http://127.0.0.1:${port}/a`);
    const rows = await (await fetch(`http://127.0.0.1:${port}/a`)).json();
    if (JSON.stringify(rows) !== '[{"path":"/a","visits":2}]')
      throw new Error(`the server answered ${JSON.stringify(rows)}\n${output}`);
  } finally {
    child.kill();
  }
}

function tool(script, args) {
  return node(root, [join(root, "node_modules", ...script.split("/")), ...args]);
}

function node(cwd, args) {
  return command(cwd, process.execPath, args);
}

/** Runs to the end and gives what it printed; throws with all of it where it fails. */
function command(cwd, program, args, options = {}) {
  const { status, signal, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    encoding: "utf8",
    timeout: COMMAND_TIMEOUT_MS,
    ...options,
  });
  if (status !== 0)
    throw new Error(
      `${[program, ...args].join(" ")}: ${error?.message ?? signal ?? status}\n${stdout ?? ""}${stderr ?? ""}`,
    );
  return stdout;
}

function expectOutput(output, expected) {
  if (!output.includes(expected))
    throw new Error(`printed ${JSON.stringify(output)}, expected ${JSON.stringify(expected)}`);
}

function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}
