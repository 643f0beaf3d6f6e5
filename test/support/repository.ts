import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's folder, absolute. */
export const root: string = fileURLToPath(new URL("../..", import.meta.url));

/** Names of the folders under `packages/` or `apps/`. */
export function workspaceNames(parent: "packages" | "apps"): string[] {
  return readdirSync(join(root, parent)).filter((name) => statSync(join(root, parent, name)).isDirectory());
}

/** Manifests and sources of all packages and apps: text by path from the root. */
export function sourceFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const read = (path: string): void => void files.set(path, readFileSync(join(root, path), "utf8"));
  for (const parent of ["packages", "apps"] as const) {
    for (const name of workspaceNames(parent)) {
      read(`${parent}/${name}/package.json`);
      for (const path of readdirSync(join(root, parent, name, "src"), { recursive: true, encoding: "utf8" }))
        if (path.endsWith(".ts")) read(`${parent}/${name}/src/${path.replaceAll("\\", "/")}`);
    }
  }
  return files;
}
