import { pathToFileURL } from "node:url";
import { bundleSources } from "./bundle.js";

/** The process of scopes. */
export async function buildScopeEntry(): Promise<URL> {
  return pathToFileURL(await bundleSources("scope/process.ts", `scope-${process.pid}.mjs`));
}
