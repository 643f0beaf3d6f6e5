/** AWS Signature Version 4, as S3 uses it: with the path encoded once and never normalised. Signing and checking share it. */

import { createHash, createHmac } from "node:crypto";
import type { S3Access } from "./access.js";

/** What a signature covers. */
export interface SignedRequest {
  readonly method: string;
  /** Path and query as they are on the wire. */
  readonly target: string;
  /** Those that are signed: lower-case names, values as sent. */
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body in hex, or one of the words that stand for it: the value of `x-amz-content-sha256`. */
  readonly payloadHash: string;
  /** `20260102T030405Z` */
  readonly time: string;
}

/** The signature in hex. */
export function signatureOf(request: SignedRequest, region: string, secretAccessKey: string): string {
  const { time } = request;
  const scope = scopeOf(time, region);
  const hash = createHash("sha256").update(canonicalRequest(request)).digest("hex");
  const steps = scope.split("/");
  const key = steps.reduce<string | Buffer>((key, step) => hmac(key, step), `AWS4${secretAccessKey}`);
  return hmac(key, `AWS4-HMAC-SHA256\n${time}\n${scope}\n${hash}`).toString("hex");
}

/** What a client sends beside the body. */
export interface SigningOptions {
  /** Signed with the others: lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Default: now. */
  readonly time?: Date;
}

/** The headers of a signed request, as a client that trusts its body would make them. */
export function signedHeaders(
  method: string,
  url: URL,
  access: S3Access,
  { headers: own = {}, body = "", time: date = new Date() }: SigningOptions = {},
): Record<string, string> {
  const time = `${date.toISOString().slice(0, 19).replaceAll(/[-:]/g, "")}Z`;
  const payloadHash = own["x-amz-content-sha256"] ?? createHash("sha256").update(body).digest("hex");
  const headers = { ...own, host: url.host, "x-amz-content-sha256": payloadHash, "x-amz-date": time };
  const request = { method, target: url.pathname + url.search, headers, payloadHash, time };
  const signature = signatureOf(request, access.region, access.secretAccessKey);
  const credential = `${access.accessKeyId}/${scopeOf(time, access.region)}`;
  const names = Object.keys(headers).sort().join(";");
  const authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${names}, Signature=${signature}`;
  return { ...headers, authorization };
}

function canonicalRequest({ method, target, headers, payloadHash }: SignedRequest): string {
  const question = target.indexOf("?");
  const [path, query] = question < 0 ? [target, ""] : [target.slice(0, question), target.slice(question + 1)];
  const names = Object.keys(headers).sort();
  const lines = names.map((name) => `${name}:${headers[name]!.trim().replaceAll(/ +/g, " ")}\n`);
  const encodedPath = path.split("/").map(reencode).join("/");
  return [method, encodedPath, canonicalQuery(query), lines.join(""), names.join(";"), payloadHash].join("\n");
}

function canonicalQuery(query: string): string {
  if (query === "") return "";
  const pairs = query.split("&").map((pair) => {
    const equals = pair.indexOf("=");
    return equals < 0 ? `${reencode(pair)}=` : `${reencode(pair.slice(0, equals))}=${reencode(pair.slice(equals + 1))}`;
  });
  return pairs.sort().join("&");
}

/** What is percent-encoded in any way, in the one way that is signed: all but RFC 3986's unreserved characters. */
function reencode(text: string): string {
  return encodeURIComponent(decodeURIComponent(text)).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function scopeOf(time: string, region: string): string {
  return `${time.slice(0, 8)}/${region}/s3/aws4_request`;
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
