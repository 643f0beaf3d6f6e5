import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The worker beside the module that this one is in, as built or as bundled; undefined in sources and most bundles. */
export function builtWorker(): URL | undefined {
  for (const name of ["./eider-worker.js", "./eider-worker.mjs"]) {
    // A bundle in CommonJS has no URL of its own.
    if (!URL.canParse(name, import.meta.url)) return undefined;
    const url = new URL(name, import.meta.url);
    if (url.protocol === "file:" && existsSync(fileURLToPath(url))) return url;
  }
  return undefined;
}
