import { StoreError } from "@eider/core";
import { compareKeys, keyProblem } from "./keys.js";
import type { S3Connection } from "./s3-connection.js";
import { plainEtag, wholeSeconds } from "./s3-object.js";
import type { ListOptions, ObjectInfo } from "./store.js";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const IN_NO_KEY = /[\u0000-\u001f\u007f\\]|\p{Cs}/u;

/**
 * The objects under a prefix. What others put there under names that cannot be keys (`folder/`, `a//b`) is left out.
 * @throws StoreError `list_order`: the store does not list in the order of UTF-8
 */
export async function* listObjects(
  connection: S3Connection,
  prefix: string,
  options: ListOptions,
): AsyncGenerator<ObjectInfo> {
  const { signal } = options;
  signal?.throwIfAborted();
  if (IN_NO_KEY.test(prefix)) return;
  // A text that is no key may be cut before what S3 would refuse: all keys after it are still listed.
  const after = options.after?.split(IN_NO_KEY, 1)[0] ?? "";
  const mode = signal === undefined ? {} : { abortSignal: signal };
  let start: { ContinuationToken?: string; StartAfter?: string } =
    after === "" ? {} : { StartAfter: connection.absolute(after) };
  let last = "";
  while (true) {
    const input = { Prefix: connection.absolute(prefix), EncodingType: "url" as const, ...start };
    const page = await connection.retry("ListObjectsV2", input, mode);
    const decode = page.EncodingType === "url" ? fromUrl : (text: string): string => text;
    const { Contents = [] } = page;
    for (const { Key, Size, ETag, LastModified } of Contents) {
      signal?.throwIfAborted();
      const found = decode(Key ?? "");
      if (last !== "" && compareKeys(found, last) <= 0) throw disordered(connection, last, found);
      last = found;
      const key = connection.relative(found);
      if (keyProblem(key) !== undefined || !key.startsWith(prefix)) continue;
      if (options.after !== undefined && compareKeys(key, options.after) <= 0) continue;
      yield { key, size: Size ?? 0, etag: plainEtag(ETag), modifiedAt: wholeSeconds(LastModified) };
    }
    signal?.throwIfAborted();
    if (!page.IsTruncated) return;
    const { NextContinuationToken } = page;
    if (NextContinuationToken === undefined && Contents.length === 0) throw endless(connection);
    start = NextContinuationToken === undefined ? { StartAfter: last } : { ContinuationToken: NextContinuationToken };
  }
}

/** As S3 encodes names for XML: as in forms, where a plus is a space. */
function fromUrl(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return "";
  }
}

function disordered({ settings }: S3Connection, before: string, key: string): StoreError {
  const advice = "does not list objects in the order of their names, as directory buckets do. Use another bucket.";
  return new StoreError("list_order", `${settings.url} ${advice} ${key} came after ${before}.`, { subject: key });
}

function endless({ settings }: S3Connection): StoreError {
  return new StoreError("store_failed", `${settings.url}: a listing has more pages, but no way to the next.`);
}
