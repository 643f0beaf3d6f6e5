/** The simulation over sources in which a fault is planted: built apart, so that nothing else sees it. */

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** One place in the sources, and what is to stand there instead. */
export interface Fault {
  /** From the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/**
 * Returns the bundle, which is the caller's to remove.
 * @throws Error if the place is not there exactly once: the gate would guard nothing
 */
export async function buildWith(name: string, faults: readonly Fault[]): Promise<string> {
  const folder = join(ROOT, "node_modules", ".cache", "eider-simulation");
  mkdirSync(folder, { recursive: true });
  const outfile = join(folder, `${name.replaceAll(/\W+/g, "-")}-${process.pid}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL("worker.ts", import.meta.url))],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    packages: "external",
    logLevel: "silent",
    plugins: [sources(), planted(faults)],
  });
  return outfile;
}

/** Our own packages are their sources. */
function sources(): Plugin {
  return {
    name: "sources",
    setup(b) {
      b.onResolve({ filter: /^@eider\// }, ({ path }) => {
        const [, name = "", entry = "index"] = path.split("/");
        return { path: join(ROOT, "packages", name, "src", `${entry}.ts`) };
      });
    },
  };
}

function planted(faults: readonly Fault[]): Plugin {
  return {
    name: "planted",
    setup(b) {
      const seen = new Set<Fault>();
      b.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const here = faults.filter(({ file }) => join(ROOT, file) === path);
        if (here.length === 0) return undefined;
        let contents = readFileSync(path, "utf8");
        for (const fault of here) {
          if (contents.split(fault.find).length !== 2) {
            throw new Error(`${fault.file} does not have exactly once: ${fault.find}`);
          }
          contents = contents.replace(fault.find, () => fault.replace);
          seen.add(fault);
        }
        return { contents, loader: "ts" };
      });
      b.onEnd(() => {
        for (const fault of faults) if (!seen.has(fault)) throw new Error(`${fault.file} is not part of the build`);
      });
    },
  };
}
