import { posix, win32 } from "node:path";
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "@eider/core";
import { FileStore, type FileStoreOptions } from "./file-store.js";
import { MemoryStore } from "./memory-store.js";
import type { S3StoreOptions } from "./s3-options.js";
import type { ObjectStore } from "./store.js";

/** Two letters or more: `C:` is a drive. */
const SCHEME = /^([a-z][a-z0-9+.-]+):/i;
const HOME = /^~(?:$|[/\\])/;
const WINDOWS_PATH = /^(?:[a-z]:|\\\\)/i;

/** Where `openStore` goes. */
export type StorePlace =
  | { readonly kind: "memory" }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "s3"; readonly options: S3StoreOptions };

/**
 * Reads `memory:`, `file:///…`, `s3://bucket/prefix?region=…` or a path. On Windows `C:\data`, `C:/data` and `\\server\share` are paths too; elsewhere
 * they are refused, because they would silently become oddly named folders here.
 * @throws InvalidInputError `bad_store_url` or `unknown_scheme`. No message repeats the URL of another scheme: it may
 * hold credentials.
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
  if (scheme === "s3") return { kind: "s3", options: parseS3Url(text) };
  throw new InvalidInputError(
    "unknown_scheme",
    `There is no store for ${scheme}: URLs. Use memory:, file:///…, s3://… or a path; a path with a colon begins with ./`,
  );
}

function badUrl(reason: string, cause?: unknown): InvalidInputError {
  return new InvalidInputError(
    "bad_store_url",
    `This is not where a store can be: ${reason}. Give memory:, file:///…, s3://bucket/prefix or a path.`,
    { cause },
  );
}

/** The settings of an S3 store that its URL may hold; all others, and credentials, are for `new S3Store`. */
const S3_PARAMETERS = new Set(["region", "endpoint", "path-style", "anonymous", "checksums"]);

function parseS3Url(text: string): S3StoreOptions {
  const [, bucket, path = "", query = ""] = /^s3:\/\/([^/?#]*)\/?([^?#]*)(?:\?([^#]*))?$/i.exec(text) ?? [];
  if (bucket === undefined || bucket === "") throw badUrl("an S3 store is s3://bucket/prefix?region=…&endpoint=…");
  if (bucket.includes("@")) throw badUrl("it holds credentials: give them to new S3Store, or in AWS_ACCESS_KEY_ID");
  const parameters = new URLSearchParams(query);
  const flag = (name: string): boolean | undefined => {
    const value = parameters.get(name);
    if (value !== null && value !== "true" && value !== "false") throw badUrl(`${name} is true or false`);
    return value === null ? undefined : value === "true";
  };
  for (const name of parameters.keys()) {
    if (!S3_PARAMETERS.has(name)) {
      throw badUrl(`of an S3 store it may set ${[...S3_PARAMETERS].join(", ")}; the rest is for new S3Store`);
    }
  }
  const prefix = decodePrefix(path.replace(/\/$/, ""));
  const [forcePathStyle, anonymous] = [flag("path-style"), flag("anonymous")];
  const [region, endpoint, checksums] = [
    parameters.get("region"),
    parameters.get("endpoint"),
    parameters.get("checksums"),
  ];
  return {
    bucket,
    ...(prefix === "" ? {} : { prefix }),
    ...(region === null ? {} : { region }),
    ...(endpoint === null ? {} : { endpoint }),
    ...(forcePathStyle === undefined ? {} : { forcePathStyle }),
    ...(anonymous === undefined ? {} : { anonymous }),
    // `new S3Store` refuses any other text.
    ...(checksums === null ? {} : { checksums: checksums as NonNullable<S3StoreOptions["checksums"]> }),
  };
}

/** As in any URL: `%20` is a space. */
function decodePrefix(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch (error) {
    throw badUrl("a % in its prefix is written %25", error);
  }
}

/**
 * Opens the store at a URL or path. Nothing is created, and no request is sent, before the first call.
 * @throws InvalidInputError `bad_store_url`, `unknown_scheme`, `bad_store_options`
 */
export async function openStore(where: string | URL, options: FileStoreOptions = {}): Promise<ObjectStore> {
  const place = parseStoreUrl(where, process.platform === "win32");
  switch (place.kind) {
    case "memory":
      return new MemoryStore();
    case "file":
      return new FileStore(place.path, options);
    case "s3": {
      // Loaded for those who use it only.
      const { S3Store } = await import("./s3.js");
      return new S3Store({ ...place.options, readOnly: options.readOnly ?? false });
    }
  }
}
