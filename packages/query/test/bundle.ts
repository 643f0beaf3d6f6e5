/** Our sources as one file that a child process runs, so that nothing needs to be built before. */

import { join } from "node:path";
import { build } from "esbuild";

const source = (name: string, file = "index.ts"): string => join(import.meta.dirname, "../..", name, "src", file);

/**
 * @param entry relative to the sources of this package
 * @param name of the file, beside those of other tests
 * @returns its path
 */
export async function bundleSources(entry: string, name: string): Promise<string> {
  const outfile = join(import.meta.dirname, "..", "node_modules", ".child", name);
  await build({
    entryPoints: [join(import.meta.dirname, "../src", entry)],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    external: ["@duckdb/*", "better-sqlite3", "apache-arrow", "@foxglove/*"],
    alias: {
      // The longer name first: an alias stands for what is behind it too.
      "@eider/core/node": source("core", "node.ts"),
      "@eider/core": source("core"),
      "@eider/storage": source("storage"),
      "@eider/catalog": source("catalog"),
    },
    banner: {
      js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
    },
    logLevel: "error",
  });
  return outfile;
}
