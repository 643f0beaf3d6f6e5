/** Multipart uploads: https://docs.aws.amazon.com/AmazonS3/latest/userguide/mpuoverview.html */

import { createHash, randomUUID } from "node:crypto";
import { element, elementsOf, S3Error, textOf, xmlAnswer } from "./answer.js";
import type { BucketState, Part, Upload } from "./bucket-state.js";
import { isoTime, wholeNumber } from "./list-operations.js";
import {
  checkKey,
  checksumHeaders,
  checkWriteConditions,
  describe,
  etagOf,
  sameEtag,
  wholeSeconds,
} from "./object-operations.js";
import type { Operation, OperationContext } from "./operation.js";
import type { S3Request } from "./request.js";

export const createUpload: Operation = (context) => {
  const { request, bucket, now } = context;
  checkKey(request.key);
  const id = randomUUID();
  bucket.open({ id, key: request.key, startedAt: wholeSeconds(now), ...describe(context), parts: new Map() });
  return xmlAnswer("InitiateMultipartUploadResult", [
    element("Bucket", request.bucket),
    element("Key", request.key),
    element("UploadId", id),
  ]);
};

export const uploadPart: Operation = (context) => {
  const { request, bucket, payload, limits } = context;
  const number = wholeNumber(request.query.get("partNumber"), "partNumber");
  if (number === undefined || number < 1 || number > limits.maxParts) {
    const message = `Part number must be an integer between 1 and ${limits.maxParts}, inclusive`;
    throw new S3Error(400, "InvalidArgument", message, { ArgumentName: "partNumber" });
  }
  if (payload.bytes.length > limits.maxPutBytes)
    throw new S3Error(400, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size.");
  const upload = find(bucket, request) ?? revive(context);
  const etag = etagOf(payload.bytes);
  upload.parts.set(number, { bytes: payload.bytes, etag, checksums: payload.checksums });
  return { status: 200, headers: { etag, ...checksumHeaders(payload.checksums) } };
};

export const completeUpload: Operation = (context) => {
  const { request, bucket, now } = context;
  const id = uploadIdOf(request);
  const before = bucket.completed.get(id);
  if (before?.key === request.key && context.completeAgain === "succeeds") return completion(request, before.etag);
  const upload = find(bucket, request);
  if (upload === undefined) throw noSuchUpload(request);
  const parts = partsNamed(upload, context.payload.bytes.toString("utf8"));
  checkSizes(parts, context);
  checkWriteConditions(context);
  const digests = parts.map(({ etag }) => Buffer.from(etag.replaceAll('"', ""), "hex"));
  const etag = `"${createHash("md5").update(Buffer.concat(digests)).digest("hex")}-${parts.length}"`;
  bucket.set(upload.key, {
    bytes: Buffer.concat(parts.map(({ bytes }) => bytes)),
    etag,
    modifiedAt: wholeSeconds(now),
    contentType: upload.contentType,
    metadata: upload.metadata,
    checksums: {},
  });
  bucket.uploads.delete(id);
  bucket.completed.set(id, { key: upload.key, etag });
  return completion(request, etag);
};

export const abortUpload: Operation = ({ request, bucket }) => {
  const upload = find(bucket, request);
  if (upload === undefined) throw noSuchUpload(request);
  bucket.uploads.delete(upload.id);
  bucket.aborted.set(upload.id, { upload, by: request.number });
  return { status: 204 };
};

export const listParts: Operation = ({ request, bucket, limits, now }) => {
  const upload = find(bucket, request);
  if (upload === undefined) throw noSuchUpload(request);
  const marker = wholeNumber(request.query.get("part-number-marker"), "part-number-marker") ?? 0;
  const max = Math.min(wholeNumber(request.query.get("max-parts"), "max-parts") ?? limits.maxKeys, limits.maxKeys);
  const all = [...upload.parts].sort(([a], [b]) => a - b).filter(([number]) => number > marker);
  const page = all.slice(0, max);
  return xmlAnswer("ListPartsResult", [
    element("Bucket", request.bucket),
    element("Key", request.key),
    element("UploadId", upload.id),
    element("PartNumberMarker", marker),
    element("NextPartNumberMarker", page.at(-1)?.[0] ?? marker),
    element("MaxParts", max),
    element("IsTruncated", page.length < all.length),
    ...page.map(([number, { etag, bytes }]) => {
      const about = [element("PartNumber", number), element("ETag", etag), element("Size", bytes.length)];
      return `<Part>${about.join("")}${element("LastModified", isoTime(now))}</Part>`;
    }),
  ]);
};

/** The open upload that a request names by key and id. */
function find(bucket: BucketState, request: S3Request): Upload | undefined {
  const upload = bucket.uploads.get(uploadIdOf(request));
  return upload?.key === request.key ? upload : undefined;
}

/**
 * "If any part uploads are currently in progress, those part uploads might or might not succeed" (AbortMultipartUpload).
 * One that does leaves the upload there again, with that part, until it is aborted once more.
 */
function revive({ request, bucket, lateParts }: OperationContext): Upload {
  const aborted = bucket.aborted.get(uploadIdOf(request));
  if (lateParts === "refused" || aborted?.upload.key !== request.key || request.number > aborted.by)
    throw noSuchUpload(request);
  aborted.upload.parts.clear();
  bucket.open(aborted.upload);
  return aborted.upload;
}

function partsNamed(upload: Upload, xml: string): Part[] {
  const named = elementsOf(xml, "Part").map((part) => ({
    number: Number(textOf(part, "PartNumber")),
    etag: textOf(part, "ETag") ?? "",
  }));
  if (named.length === 0)
    throw new S3Error(400, "MalformedXML", "The XML you provided was not well-formed or did not validate.");
  if (named.some(({ number }, index) => index > 0 && number <= named[index - 1]!.number)) {
    const message = "The list of parts was not in ascending order. Parts must be ordered by part number.";
    throw new S3Error(400, "InvalidPartOrder", message);
  }
  return named.map(({ number, etag }) => {
    const part = upload.parts.get(number);
    if (part !== undefined && sameEtag(part.etag, etag)) return part;
    const message = "One or more of the specified parts could not be found, or its entity tag did not match.";
    throw new S3Error(400, "InvalidPart", message, { PartNumber: String(number), ETag: etag });
  });
}

function checkSizes(parts: readonly Part[], { equalParts, limits }: OperationContext): void {
  const sizes = parts.map(({ bytes }) => bytes.length);
  const leading = sizes.slice(0, -1);
  const small = leading.find((size) => size < limits.minPartBytes);
  if (small !== undefined) {
    const message = "Your proposed upload is smaller than the minimum allowed size";
    const details = { ProposedSize: String(small), MinSizeAllowed: String(limits.minPartBytes) };
    throw new S3Error(400, "EntityTooSmall", message, details);
  }
  if (!equalParts || leading.length === 0) return;
  if (leading.some((size) => size !== leading[0]) || sizes.at(-1)! > leading[0]!)
    throw new S3Error(400, "InvalidPart", "All non-trailing parts must have the same length.");
}

function completion(request: S3Request, etag: string): ReturnType<Operation> {
  return xmlAnswer("CompleteMultipartUploadResult", [
    element("Location", `http://${request.headers.host}/${request.bucket}/${encodeURIComponent(request.key)}`),
    element("Bucket", request.bucket),
    element("Key", request.key),
    element("ETag", etag),
  ]);
}

function uploadIdOf(request: S3Request): string {
  return request.query.get("uploadId") ?? "";
}

function noSuchUpload(request: S3Request): S3Error {
  const message = "The specified multipart upload does not exist. It may have been aborted or completed.";
  return new S3Error(404, "NoSuchUpload", message, { UploadId: uploadIdOf(request) });
}
