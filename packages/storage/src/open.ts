import { posix, win32 } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "@eider/core";
import { FileStore, type FileStoreOptions } from "./file-store.js";
import { MemoryStore } from "./memory-store.js";
import type { ObjectStore } from "./store.js";

/** Two letters or more: `C:` is a drive. */
const SCHEME = /^([a-z][a-z0-9+.-]+):/i;
const HOME = /^~(?:$|[/\\])/;
const WINDOWS_PATH = /^(?:[a-z]:|\\\\)/i;

/** Where `openStore` goes. */
export type StorePlace = { readonly kind: "memory" } | { readonly kind: "file"; readonly path: string };

/**
 * Reads `memory:`, `file:///…` or a path. On Windows `C:\data`, `C:/data` and `\\server\share` are paths too; elsewhere
 * they are refused, because they would silently become oddly named folders here.
 * @throws InvalidInputError `bad_store_url`, `unknown_scheme`, or `not_yet` for `s3:`. No message repeats the URL of
 * another scheme: it may hold credentials.
 */
export function parseStoreUrl(where: string | URL, windows: boolean): StorePlace {
  const text = String(where);
  if (text.trim() === "" || text.includes("\0")) throw badUrl("it is empty or has a NUL character");
  if (HOME.test(text))
    throw badUrl("~ is replaced by shells only; join it to os.homedir(), or write ./~ for a folder of that name");
  const scheme = SCHEME.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) {
    if (!windows && WINDOWS_PATH.test(text)) throw badUrl("it is a path of Windows, and this is another system");
    return { kind: "file", path: windows ? win32.normalize(text) : posix.normalize(text) };
  }
  if (scheme === "memory") {
    if (text.length > "memory:".length) throw badUrl("a memory store has no name");
    return { kind: "memory" };
  }
  if (scheme === "file") {
    // A URL has no relative form: it would be a folder at the root of the disk.
    if (!/^file:[/\\]/i.test(text))
      throw badUrl("a file: URL begins with file:/// and is absolute; a path needs no file:");
    try {
      return { kind: "file", path: fileURLToPath(text, { windows }) };
    } catch (error) {
      throw badUrl("it is no URL of a local folder, which looks like file:///srv/lake", error);
    }
  }
  if (scheme === "s3") {
    throw new InvalidInputError("not_yet", "S3 comes with its own release: use a folder or memory: until then.");
  }
  throw new InvalidInputError(
    "unknown_scheme",
    `There is no store for ${scheme}: URLs. Use memory:, file:///… or a path; a path with a colon begins with ./`,
  );
}

function badUrl(reason: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    "bad_store_url",
    `This is not where a store can be: ${reason}. Give memory:, file:///… or a path.`,
    { cause },
  );
}

/**
 * Opens the store at a URL or path; the options are for folders. Nothing is created before the first `put`.
 * @throws InvalidInputError `bad_store_url`, `unknown_scheme` or `not_yet`
 */
export async function openStore(where: string | URL, options: FileStoreOptions = {}): Promise<ObjectStore> {
  const place = parseStoreUrl(where, process.platform === "win32");
  return place.kind === "memory" ? new MemoryStore() : new FileStore(place.path, options);
}
