import type { S3Access } from "../access.js";
import { signatureOf } from "../signature.js";
import { S3Error } from "./answer.js";
import type { S3Request } from "./request.js";

/** How far a client's clock may be off, in milliseconds. */
const MAX_SKEW_MS = 15 * 60_000;

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request,\s*SignedHeaders=([^,]+),\s*Signature=([0-9a-f]{64})$/;

/**
 * Computes the signature of a request as S3 does and compares.
 * @param now the server's time, in milliseconds
 * @throws S3Error 403, or 400 where the headers are no signature at all
 */
export function authenticate(request: S3Request, access: S3Access, anonymous: boolean, now: number): void {
  const { authorization, "x-amz-date": time = "", "x-amz-content-sha256": payloadHash } = request.headers;
  if (authorization === undefined) {
    if (anonymous) return;
    throw new S3Error(403, "AccessDenied", "Access Denied.");
  }
  const [, accessKeyId, day, region, names, signature] = AUTHORIZATION.exec(authorization) ?? [];
  if (names === undefined)
    throw new S3Error(400, "AuthorizationHeaderMalformed", "The authorization header is malformed.");
  if (payloadHash === undefined) {
    const missing = "Missing required header for this request: x-amz-content-sha256";
    throw new S3Error(400, "InvalidRequest", missing);
  }
  if (accessKeyId !== access.accessKeyId) {
    const unknown = "The AWS Access Key Id you provided does not exist in our records.";
    throw new S3Error(403, "InvalidAccessKeyId", unknown, { AWSAccessKeyId: accessKeyId! });
  }
  if (region !== access.region) {
    const wrong = `The authorization header is malformed; the region '${region}' is wrong; expecting '${access.region}'`;
    throw new S3Error(400, "AuthorizationHeaderMalformed", wrong, { Region: access.region });
  }
  checkTime(time, now);
  const signedNames = names.split(";");
  const unsigned = Object.keys(request.headers).filter((name) => mustBeSigned(name) && !signedNames.includes(name));
  if (unsigned.length > 0) {
    const message = "There were headers present in the request which were not signed";
    throw new S3Error(403, "AccessDenied", message, { HeadersNotSigned: unsigned.join(", ") });
  }
  const headers = Object.fromEntries(signedNames.map((name) => [name, request.headers[name] ?? ""]));
  const { method, target } = request;
  const expected = signatureOf({ method, target, headers, payloadHash, time }, access.region, access.secretAccessKey);
  if (signature !== expected || !time.startsWith(day!)) {
    const message = "The request signature we calculated does not match the signature you provided.";
    throw new S3Error(403, "SignatureDoesNotMatch", message, { AWSAccessKeyId: accessKeyId });
  }
}

function mustBeSigned(name: string): boolean {
  return name === "host" || name.startsWith("x-amz-");
}

function checkTime(time: string, now: number): void {
  const sent = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (Math.abs(sent - now) <= MAX_SKEW_MS) return;
  throw new S3Error(
    403,
    "RequestTimeTooSkewed",
    "The difference between the request time and the current time is too large.",
    { RequestTime: time, ServerTime: new Date(now).toISOString(), MaxAllowedSkewMilliseconds: String(MAX_SKEW_MS) },
  );
}
