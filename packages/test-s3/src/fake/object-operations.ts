/** Operations on one object, and on several by name. */

import { createHash } from "node:crypto";
import { element, elementsOf, notImplemented, S3Error, textOf, xmlAnswer } from "./answer.js";
import type { BucketState, StoredObject } from "./bucket-state.js";
import type { Operation, OperationContext } from "./operation.js";

/** https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html */
const MAX_DELETES = 1000;
/** UTF-8 bytes. */
const MAX_KEY_BYTES = 1024;

export const putObject: Operation = (context) => {
  const { request, bucket, payload, limits, now } = context;
  checkKey(request.key);
  if (payload.bytes.length > limits.maxPutBytes)
    throw new S3Error(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.");
  checkWriteConditions(context);
  const etag = etagOf(payload.bytes);
  bucket.set(request.key, {
    bytes: payload.bytes,
    etag,
    modifiedAt: wholeSeconds(now),
    ...describe(context),
    checksums: payload.checksums,
  });
  return { status: 200, headers: { etag, ...checksumHeaders(payload.checksums) } };
};

export const getObject: Operation = ({ request, bucket }) => {
  const object = find(bucket, request.key);
  const headers = {
    etag: object.etag,
    "last-modified": new Date(object.modifiedAt).toUTCString(),
    "accept-ranges": "bytes",
    "content-type": object.contentType,
    ...object.metadata,
  };
  const refusal = readCondition(request.headers, object);
  if (refusal === 304)
    return { status: 304, headers: { etag: headers.etag, "last-modified": headers["last-modified"] } };
  if (refusal === 412) throw preconditionFailed("If-Match");
  const size = object.bytes.length;
  const range = rangeOf(request.headers.range, size);
  if (range === undefined) {
    const asked = request.headers["x-amz-checksum-mode"] === "ENABLED";
    return {
      status: 200,
      headers: { ...headers, ...(asked ? checksumHeaders(object.checksums) : {}) },
      body: object.bytes,
    };
  }
  const [start, end] = range;
  const contentRange = `bytes ${start}-${end - 1}/${size}`;
  return {
    status: 206,
    headers: { ...headers, "content-range": contentRange },
    body: object.bytes.subarray(start, end),
  };
};

export const deleteObject: Operation = ({ request, bucket }) => {
  bucket.delete(request.key);
  return { status: 204 };
};

export const deleteObjects: Operation = ({ bucket, payload }) => {
  const xml = payload.bytes.toString("utf8");
  const keys = elementsOf(xml, "Object").map((object) => textOf(object, "Key"));
  if (keys.length === 0 || keys.length > MAX_DELETES || keys.some((key) => key === undefined))
    throw new S3Error(400, "MalformedXML", "The XML you provided was not well-formed or did not validate.");
  for (const key of keys) bucket.delete(key!);
  const quiet = textOf(xml, "Quiet") === "true";
  return xmlAnswer("DeleteResult", quiet ? [] : keys.map((key) => `<Deleted>${element("Key", key!)}</Deleted>`));
};

/** `If-None-Match: *` and `If-Match`, as they are when the effect comes. */
export function checkWriteConditions({ request, bucket, conditions }: OperationContext): void {
  if (conditions === "ignores") return;
  const { "if-none-match": ifNoneMatch, "if-match": ifMatch } = request.headers;
  if (ifNoneMatch === undefined && ifMatch === undefined) return;
  if (conditions === "refuses" || (ifNoneMatch !== undefined && ifNoneMatch !== "*")) throw notImplemented();
  const object = bucket.objects.get(request.key);
  if (ifNoneMatch === "*" && object !== undefined) throw preconditionFailed("If-None-Match");
  if (ifMatch === undefined) return;
  if (object === undefined) throw noSuchKey(request.key);
  if (!sameEtag(ifMatch, object.etag)) throw preconditionFailed("If-Match");
}

export function checkKey(key: string): void {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw new S3Error(400, "KeyTooLongError", "Your key is too long.");
}

/** What a PutObject or CreateMultipartUpload says of the object beside its bytes. */
export function describe({ request }: OperationContext): Pick<StoredObject, "contentType" | "metadata"> {
  const metadata = Object.entries(request.headers).filter(([name]) => name.startsWith("x-amz-meta-"));
  return {
    contentType: request.headers["content-type"] ?? "binary/octet-stream",
    metadata: Object.fromEntries(metadata),
  };
}

export function etagOf(bytes: Uint8Array): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

export function checksumHeaders(checksums: Readonly<Record<string, string>>): Record<string, string> {
  const headers = Object.entries(checksums).map(([algorithm, value]) => [`x-amz-checksum-${algorithm}`, value]);
  return Object.fromEntries(headers);
}

export function wholeSeconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000) * 1000;
}

/** ETags are compared with and without quotes alike. */
export function sameEtag(a: string, b: string): boolean {
  return a.replaceAll('"', "") === b.replaceAll('"', "");
}

function find(bucket: BucketState, key: string): StoredObject {
  const object = bucket.objects.get(key);
  if (object === undefined) throw noSuchKey(key);
  return object;
}

function noSuchKey(key: string): S3Error {
  return new S3Error(404, "NoSuchKey", "The specified key does not exist.", { Key: key });
}

function preconditionFailed(condition: string): S3Error {
  const message = "At least one of the pre-conditions you specified did not hold";
  return new S3Error(412, "PreconditionFailed", message, { Condition: condition });
}

/** RFC 9110, 13.2.2: If-Match goes before If-Unmodified-Since, If-None-Match before If-Modified-Since. */
function readCondition(headers: Readonly<Record<string, string>>, object: StoredObject): 304 | 412 | undefined {
  const names = (text: string): boolean =>
    text === "*" || text.split(",").some((tag) => sameEtag(tag.trim().replace(/^W\//, ""), object.etag));
  const { "if-match": match, "if-none-match": noneMatch } = headers;
  const { "if-unmodified-since": unmodifiedSince, "if-modified-since": modifiedSince } = headers;
  if (match !== undefined ? !names(match) : object.modifiedAt > Date.parse(unmodifiedSince ?? "")) return 412;
  if (noneMatch !== undefined ? names(noneMatch) : object.modifiedAt <= Date.parse(modifiedSince ?? "")) return 304;
  return undefined;
}

/**
 * `[start, end)` of a range that S3 serves; undefined where there is none, or one that it does not understand, which means
 * the whole object.
 */
function rangeOf(range: string | undefined, size: number): readonly [number, number] | undefined {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(range ?? "") ?? [];
  if (first === undefined || last === undefined || (first === "" && last === "")) return undefined;
  if (first !== "" && last !== "" && Number(first) > Number(last)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(size, Number(last) + 1);
  if (start < end) return [start, end];
  const details = { RangeRequested: range!, ActualObjectSize: String(size) };
  const headers = { "content-range": `bytes */${size}` };
  throw new S3Error(416, "InvalidRange", "The requested range is not satisfiable", details, headers);
}
