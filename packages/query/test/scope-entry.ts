/** The process of scopes from our sources, bundled, so that nothing needs to be built before. */

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";

const source = (name: string): string => join(import.meta.dirname, "../..", name, "src/index.ts");

export async function buildScopeEntry(): Promise<URL> {
  const outfile = join(import.meta.dirname, "..", "node_modules", ".child", `scope-${process.pid}.mjs`);
  await build({
    entryPoints: [join(import.meta.dirname, "../src/scope/process.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["@duckdb/*", "better-sqlite3", "apache-arrow", "@foxglove/*"],
    alias: { "@eider/core": source("core"), "@eider/storage": source("storage"), "@eider/catalog": source("catalog") },
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
    logLevel: "error",
  });
  return pathToFileURL(outfile);
}
