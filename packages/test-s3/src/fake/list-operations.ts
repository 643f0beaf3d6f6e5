/** Listings. Keys come in the order of their UTF-8 bytes. */

import { type Answer, element, S3Error, xmlAnswer } from "./answer.js";
import { compareUtf8, type StoredObject } from "./bucket-state.js";
import type { Operation } from "./operation.js";

export const listObjects: Operation = ({ request, bucket, limits }) => {
  const { query } = request;
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const startAfter = query.get("start-after");
  const token = query.get("continuation-token");
  const after = token === undefined ? startAfter : readToken(token);
  const maxKeys = Math.min(wholeNumber(query.get("max-keys"), "max-keys") ?? limits.maxKeys, limits.maxKeys);
  const encode = encoderOf(query.get("encoding-type"));

  const contents: string[] = [];
  const groups = new Set<string>();
  let last: string | undefined;
  let truncated = false;
  for (const key of keysFrom(bucket.sortedKeys(), prefix, after)) {
    if (!key.startsWith(prefix)) break;
    const cut = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    const group = cut < 0 ? undefined : key.slice(0, cut + delimiter.length);
    // A page that ended in a group goes on after all of it.
    if (group !== undefined && (groups.has(group) || group === after)) continue;
    if (contents.length + groups.size >= maxKeys) {
      truncated = maxKeys > 0;
      break;
    }
    last = group ?? key;
    if (group !== undefined) groups.add(group);
    else contents.push(contentsOf(encode(key), bucket.objects.get(key)!));
  }
  return xmlAnswer("ListBucketResult", [
    element("Name", request.bucket),
    element("Prefix", encode(prefix)),
    ...(startAfter === undefined ? [] : [element("StartAfter", encode(startAfter))]),
    ...(token === undefined ? [] : [element("ContinuationToken", token)]),
    ...(truncated ? [element("NextContinuationToken", makeToken(last!))] : []),
    element("KeyCount", contents.length + groups.size),
    element("MaxKeys", maxKeys),
    ...(delimiter === "" ? [] : [element("Delimiter", encode(delimiter))]),
    ...(query.has("encoding-type") ? [element("EncodingType", "url")] : []),
    element("IsTruncated", truncated),
    ...contents,
    ...[...groups].map((group) => `<CommonPrefixes>${element("Prefix", encode(group))}</CommonPrefixes>`),
  ]);
};

export const listUploads: Operation = ({ request, bucket, limits }) => {
  const { query } = request;
  const prefix = query.get("prefix") ?? "";
  const keyMarker = query.get("key-marker") ?? "";
  const idMarker = query.get("upload-id-marker") ?? "";
  const max = Math.min(wholeNumber(query.get("max-uploads"), "max-uploads") ?? limits.maxKeys, limits.maxKeys);
  const encode = encoderOf(query.get("encoding-type"));
  const all = [...bucket.uploads.values()]
    .filter(({ key }) => key.startsWith(prefix))
    .sort((a, b) => compareUtf8(a.key, b.key) || compareUtf8(a.id, b.id))
    .filter(({ key, id }) => {
      const order = compareUtf8(key, keyMarker);
      return order > 0 || (order === 0 && idMarker !== "" && compareUtf8(id, idMarker) > 0);
    });
  const page = all.slice(0, max);
  const truncated = page.length < all.length;
  const lastOfPage = page.at(-1);
  return xmlAnswer("ListMultipartUploadsResult", [
    element("Bucket", request.bucket),
    element("Prefix", encode(prefix)),
    element("KeyMarker", encode(keyMarker)),
    element("UploadIdMarker", idMarker),
    ...(truncated && lastOfPage !== undefined
      ? [element("NextKeyMarker", encode(lastOfPage.key)), element("NextUploadIdMarker", lastOfPage.id)]
      : []),
    element("MaxUploads", max),
    ...(query.has("encoding-type") ? [element("EncodingType", "url")] : []),
    element("IsTruncated", truncated),
    ...page.map(({ key, id, startedAt }) => {
      const about = [element("Key", encode(key)), element("UploadId", id), element("Initiated", isoTime(startedAt))];
      return `<Upload>${about.join("")}${element("StorageClass", "STANDARD")}</Upload>`;
    }),
  ]);
};

export function listBuckets(names: readonly string[]): Answer {
  const buckets = [...names].sort(compareUtf8).map((name) => `<Bucket>${element("Name", name)}</Bucket>`);
  return xmlAnswer("ListAllMyBucketsResult", [`<Buckets>${buckets.join("")}</Buckets>`]);
}

export function isoTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

/** A number of a query; undefined where it was not given. */
export function wholeNumber(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new S3Error(400, "InvalidArgument", `Argument ${name} must be a whole number.`, { ArgumentName: name });
}

/** `encoding-type=url`: as in forms, with a plus for a space, but with slashes as they are. */
function encoderOf(type: string | undefined): (text: string) => string {
  if (type === undefined) return (text) => text;
  if (type !== "url") throw new S3Error(400, "InvalidArgument", "Invalid Encoding Method specified in Request");
  return (text) =>
    encodeURIComponent(text)
      .replaceAll("%2F", "/")
      .replaceAll("%20", "+")
      .replaceAll(/[!'()]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** The keys from a prefix on and strictly after one, found by halving: also those behind the prefix. */
function keysFrom(sorted: readonly string[], prefix: string, after: string | undefined): readonly string[] {
  const from = after === undefined || compareUtf8(after, prefix) < 0 ? prefix : after;
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareUtf8(sorted[middle]!, from) < 0) low = middle + 1;
    else high = middle;
  }
  if (from === after && sorted[low] === after) low++;
  return sorted.slice(low);
}

function contentsOf(key: string, { modifiedAt, etag, bytes }: StoredObject): string {
  const about = [
    element("Key", key),
    element("LastModified", isoTime(modifiedAt)),
    element("ETag", etag),
    element("Size", bytes.length),
    element("StorageClass", "STANDARD"),
  ];
  return `<Contents>${about.join("")}</Contents>`;
}

/** Opaque, so that nobody takes it for a key. */
function makeToken(key: string): string {
  return Buffer.from(`after:${key}`).toString("base64url");
}

function readToken(token: string): string {
  const text = Buffer.from(token, "base64url").toString("utf8");
  if (!text.startsWith("after:"))
    throw new S3Error(400, "InvalidArgument", "The continuation token provided is incorrect");
  return text.slice("after:".length);
}
