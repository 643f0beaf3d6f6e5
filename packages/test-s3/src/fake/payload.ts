/** The body of a request: unwrapped from AWS's own chunks, and checked against all that was said of it. */

import { createHash } from "node:crypto";
import { notImplemented, S3Error } from "./answer.js";
import { CHECKSUMS, checksumsOf } from "./checksums.js";
import type { S3Request } from "./request.js";

/**
 * Which checksums a store takes: those that S3 knows; none, as some compatible stores (an error 501); or it wants one, as
 * S3 does for buckets with object lock.
 */
export type ChecksumMode = "accepts" | "rejects" | "requires";

export interface Payload {
  readonly bytes: Buffer;
  /** Those that came with it and hold, base64 by algorithm. */
  readonly checksums: Readonly<Record<string, string>>;
}

/** Operations whose body is data. */
const DATA = new Set(["PutObject", "UploadPart"]);

/** @throws S3Error where the body is not what its headers say */
export function payloadOf(request: S3Request, raw: Buffer, mode: ChecksumMode): Payload {
  const { headers, operation } = request;
  if (mode === "rejects") refuseChecksums(request);
  if (DATA.has(operation)) requireLength(headers);
  const streaming = headers["x-amz-content-sha256"]?.startsWith("STREAMING-") ?? false;
  const { bytes, trailers } = streaming ? unwrap(raw, headers) : { bytes: raw, trailers: {} };
  const checksums = checksumsOf({ ...headers, ...trailers });
  const md5 = headers["content-md5"];
  const isSafe = md5 !== undefined || Object.keys(checksums).length > 0;
  if (!isSafe && (operation === "DeleteObjects" || (mode === "requires" && DATA.has(operation)))) {
    const message = "Missing required header for this request: Content-MD5 OR x-amz-checksum-*";
    throw new S3Error(400, "InvalidRequest", message);
  }
  if (md5 !== undefined) checkMd5(md5, bytes);
  for (const [algorithm, value] of Object.entries(checksums)) checkChecksum(algorithm, value, bytes);
  checkSha256(headers["x-amz-content-sha256"], bytes);
  return { bytes, checksums };
}

/** Headers that stores from before 2025 do not know. */
function refuseChecksums({ headers }: S3Request): void {
  const unknown = Object.entries(headers).find(
    ([name, value]) =>
      // `x-amz-checksum-mode` asks for one in the answer; whoever knows no checksums ignores it.
      (name.startsWith("x-amz-checksum-") && name !== "x-amz-checksum-mode") ||
      name === "x-amz-sdk-checksum-algorithm" ||
      name === "x-amz-trailer" ||
      (name === "content-encoding" && value.includes("aws-chunked")) ||
      (name === "x-amz-content-sha256" && value.startsWith("STREAMING-")),
  );
  if (unknown !== undefined) throw notImplemented(unknown[0]);
}

function requireLength(headers: Readonly<Record<string, string>>): void {
  if (headers["content-length"] !== undefined) return;
  if (headers["transfer-encoding"] !== undefined && headers["x-amz-decoded-content-length"] === undefined)
    throw notImplemented("Transfer-Encoding");
  if (headers["x-amz-decoded-content-length"] === undefined)
    throw new S3Error(411, "MissingContentLength", "You must provide the Content-Length HTTP header.");
}

/** `<hex length>[;chunk-signature=…]\r\n<bytes>\r\n`, a chunk of no bytes, then trailers as lines. */
function unwrap(
  raw: Buffer,
  headers: Readonly<Record<string, string>>,
): { bytes: Buffer; trailers: Record<string, string> } {
  const chunks: Buffer[] = [];
  let at = 0;
  for (;;) {
    const end = raw.indexOf("\r\n", at);
    const length = Number.parseInt(raw.toString("latin1", at, end).split(";")[0]!, 16);
    if (end < 0 || Number.isNaN(length)) throw new S3Error(400, "IncompleteBody", "The request body ended early.");
    at = end + 2;
    if (length === 0) break;
    chunks.push(raw.subarray(at, at + length));
    at += length + 2;
  }
  const bytes = Buffer.concat(chunks);
  if (bytes.length !== Number(headers["x-amz-decoded-content-length"])) {
    const message = "You did not provide the number of bytes specified by the x-amz-decoded-content-length header.";
    throw new S3Error(400, "IncompleteBody", message);
  }
  const trailers: Record<string, string> = {};
  for (const line of raw.toString("latin1", at).split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) trailers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim();
  }
  const promised = headers["x-amz-trailer"];
  if (promised !== undefined && trailers[promised] === undefined)
    throw new S3Error(400, "MalformedTrailerError", "The request contained trailing data that was not well-formed.");
  return { bytes, trailers };
}

function checkMd5(given: string, bytes: Buffer): void {
  if (Buffer.from(given, "base64").length !== 16)
    throw new S3Error(400, "InvalidDigest", "The Content-MD5 you specified was invalid.");
  if (createHash("md5").update(bytes).digest("base64") !== given)
    throw new S3Error(400, "BadDigest", "The Content-MD5 you specified did not match what we received.");
}

function checkChecksum(algorithm: string, given: string, bytes: Buffer): void {
  const checksum = CHECKSUMS[algorithm];
  if (checksum === undefined)
    throw new S3Error(501, "NotImplemented", `This server does not compute x-amz-checksum-${algorithm}.`);
  const expected = checksum(bytes);
  if (Buffer.from(given, "base64").length !== expected.length)
    throw new S3Error(400, "InvalidRequest", `Value for x-amz-checksum-${algorithm} header is invalid.`);
  if (expected.toString("base64") !== given) {
    const message = `The ${algorithm.toUpperCase()} you specified did not match the calculated checksum.`;
    throw new S3Error(400, "BadDigest", message);
  }
}

function checkSha256(given: string | undefined, bytes: Buffer): void {
  if (given === undefined || given === "UNSIGNED-PAYLOAD" || given.startsWith("STREAMING-")) return;
  if (createHash("sha256").update(bytes).digest("hex") !== given) {
    const message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
    throw new S3Error(400, "XAmzContentSHA256Mismatch", message);
  }
}
