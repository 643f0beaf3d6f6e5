/** What the answers of S3 mean. No message and no cause holds what was signed with, or what a server echoes of it. */

import { EiderError, NotFoundError, StoreError } from "@eider/core";
import type { S3Settings } from "./s3-options.js";
import { TransportError } from "./s3-transport.js";

/** The requests that the store makes, and the permission that each needs. */
export const PERMISSIONS = {
  PutObject: "s3:PutObject",
  GetObject: "s3:GetObject",
  HeadObject: "s3:GetObject and, to be told that an object is absent, s3:ListBucket",
  ListObjectsV2: "s3:ListBucket",
  DeleteObject: "s3:DeleteObject",
  DeleteObjects: "s3:DeleteObject",
  CreateMultipartUpload: "s3:PutObject",
  UploadPart: "s3:PutObject",
  CompleteMultipartUpload: "s3:PutObject",
  AbortMultipartUpload: "s3:AbortMultipartUpload",
  ListParts: "s3:ListMultipartUploadParts",
  ListMultipartUploads: "s3:ListBucketMultipartUploads",
} as const;

export type S3Operation = keyof typeof PERMISSIONS;

/** A request that did not succeed, as the parts of the store see it; callers of the store get its `error`. */
export class S3Failure extends Error {
  /** For the caller. */
  readonly error: EiderError;
  /** S3's own code, or the name of what else failed. */
  readonly s3Code: string;
  /** HTTP's status; 0 without an answer. */
  readonly status: number;
  /** The request may have had its effect, or may still have it. */
  readonly unknown: boolean;

  constructor(error: EiderError, s3Code: string, status: number, unknown: boolean) {
    super(error.message, { cause: error });
    this.error = error;
    this.s3Code = s3Code;
    this.status = status;
    this.unknown = unknown;
  }
}

/** The error for the caller. */
export function publicError(error: unknown): unknown {
  return error instanceof S3Failure ? error.error : error;
}

interface Meaning {
  readonly code: string;
  readonly advice: string;
  readonly retryable?: boolean;
}

const busy: Meaning = {
  code: "store_busy",
  advice: "the store asks for fewer requests. Try again later.",
  retryable: true,
};
const conflict: Meaning = {
  code: "store_busy",
  advice: "others change it at this moment. Try again.",
  retryable: true,
};
const broken: Meaning = { code: "store_failed", advice: "the store failed. Try again.", retryable: true };
const slow: Meaning = { code: "store_timeout", advice: "the store took too long. Try again.", retryable: true };
const credentials: Meaning = {
  code: "bad_credentials",
  advice: "the store does not accept these credentials. Check the access key, its secret and the session token.",
};
const expired: Meaning = { code: "credentials_expired", advice: "the credentials have expired. Get new ones." };
const region: Meaning = { code: "wrong_region", advice: "the bucket is in another region" };
const skew: Meaning = { code: "clock_skew", advice: "this computer's clock and the store's differ" };
const full: Meaning = {
  code: "store_full",
  advice: "the store or its quota is full. Free some space, then try again.",
};

const tooLarge: Meaning = {
  code: "object_too_large",
  advice: "it is larger than the store takes. Write smaller objects.",
};
const unknown: Meaning = {
  code: "not_supported",
  advice: 'the store has no such request or header. If it is new to it, try checksums: "when-required".',
};

/** By S3's code. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const BY_CODE: Readonly<Record<string, Meaning>> = {
  SlowDown: busy,
  ServiceUnavailable: busy,
  TooManyRequests: busy,
  RequestLimitExceeded: busy,
  Throttling: busy,
  InternalError: broken,
  RequestTimeout: slow,
  ConditionalRequestConflict: conflict,
  OperationAborted: conflict,
  RequestTimeTooSkewed: skew,
  InvalidAccessKeyId: credentials,
  SignatureDoesNotMatch: credentials,
  InvalidToken: credentials,
  ExpiredToken: expired,
  TokenRefreshRequired: expired,
  PermanentRedirect: region,
  AuthorizationHeaderMalformed: region,
  IllegalLocationConstraintException: region,
  NoSuchUpload: { code: "upload_lost", advice: "somebody ended its upload. Put it again.", retryable: true },
  EntityTooLarge: tooLarge,
  QuotaExceeded: full,
  InsufficientCapacity: full,
  XMinioStorageFull: full,
  InvalidObjectState: { code: "object_archived", advice: "it is archived. Restore it first." },
  NotImplemented: unknown,
};

const BY_STATUS: Readonly<Record<number, Meaning>> = {
  301: region,
  307: broken,
  401: credentials,
  408: slow,
  409: conflict,
  413: tooLarge,
  429: busy,
  500: broken,
  501: unknown,
  502: broken,
  503: busy,
  504: slow,
  507: full,
};

/** The parts of the SDK's errors that are read here. */
interface SdkError {
  readonly name?: string;
  readonly Code?: string;
  readonly message?: string;
  readonly Region?: string;
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly requestId?: string };
  readonly $response?: { readonly headers?: Readonly<Record<string, string>> };
}

/** Codes of Node.js for connections that were never made. */
const NEVER_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/**
 * @param subject the object's key, if there is one
 * @param now this computer's clock
 */
export function failureOf(
  thrown: unknown,
  operation: S3Operation,
  settings: S3Settings,
  subject: string | undefined,
  now: number,
): S3Failure {
  if (thrown instanceof EiderError) return new S3Failure(thrown, thrown.code, 0, false);
  if (thrown instanceof TransportError) return unanswered(thrown, settings, subject);
  const error = thrown as SdkError;
  const status = error.$metadata?.httpStatusCode ?? 0;
  if (status === 0) return withoutStatus(error, settings, subject);
  const s3Code = error.Code ?? error.name ?? "";
  const headers = error.$response?.headers ?? {};
  const place = subject === undefined ? settings.url : `${subject} in ${settings.url}`;
  const cause = new Error(
    `${operation}: HTTP ${status} ${s3Code}, request ${error.$metadata?.requestId ?? "without id"}`,
  );
  const fail = (public_: EiderError): S3Failure => new S3Failure(public_, s3Code, status, status >= 500);

  if (s3Code === "NoSuchBucket") {
    const advice = "has no such bucket. Create it, or check its name, the region and the endpoint.";
    return fail(
      new StoreError("bucket_not_found", `${whereIs(settings)} ${advice}`, { subject: settings.bucket, cause }),
    );
  }
  const meaning = BY_CODE[s3Code] ?? BY_STATUS[status];
  if (status === 404 && meaning === undefined) {
    const message = `There is no object ${place}: look at the keys with list.`;
    return fail(
      new NotFoundError("object_not_found", message, { ...(subject === undefined ? {} : { subject }), cause }),
    );
  }
  const details = {
    subject: subject ?? settings.bucket,
    cause,
    retryable: meaning?.retryable ?? status >= 500,
    retryAfterMs: retryAfter(headers["retry-after"], now),
  };
  if (meaning === region) return fail(new StoreError(region.code, regionMessage(error, headers, settings), details));
  if (meaning === skew) return fail(new StoreError(skew.code, skewMessage(headers.date, now), details));
  if (meaning === credentials || meaning === expired) {
    return fail(new StoreError(meaning.code, `${whereIs(settings)}: ${meaning.advice}`, details));
  }
  if (meaning !== undefined) return fail(new StoreError(meaning.code, `${place}: ${meaning.advice}`, details));
  if (status === 403) {
    const advice = `these credentials may not do ${operation}. It needs ${PERMISSIONS[operation]}.`;
    return fail(new StoreError("store_denied", `${place}: ${advice}`, details));
  }
  const said = status < 500 && s3Code !== "" ? ` (${s3Code})` : "";
  return fail(
    new StoreError("store_refused", `${place}: the store refused ${operation} with ${status}${said}.`, details),
  );
}

function unanswered(error: TransportError, settings: S3Settings, subject: string | undefined): S3Failure {
  const at = subject === undefined ? whereIs(settings) : `${subject}, ${whereIs(settings)}`;
  const [code, advice] =
    error.kind === "connect"
      ? ["store_unreachable", "no connection. Check the endpoint and the network, then try again."]
      : error.kind === "timeout"
        ? ["store_timeout", "no answer in time. Try again."]
        : ["store_disconnected", "the connection broke before the answer. Try again."];
  const details = { subject: subject ?? settings.bucket, cause: error.cause ?? error, retryable: true };
  return new S3Failure(new StoreError(code, `${at}: ${advice}`, details), error.kind, 0, error.sent);
}

/** Neither an answer nor our transport's word: a client of the caller's, or the SDK before it sent anything. */
function withoutStatus(error: SdkError, settings: S3Settings, subject: string | undefined): S3Failure {
  const [name, text] = [error.name ?? "", error.message ?? ""];
  const details = { subject: subject ?? settings.bucket };
  if (/^(?:Credentials|Token)ProviderError$|^ProviderError$/.test(name) || /credential/i.test(text)) {
    const advice =
      "no credentials were found. Give credentials, set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or say anonymous.";
    return new S3Failure(new StoreError("no_credentials", `${settings.url}: ${advice}`, details), name, 0, false);
  }
  if (/region is missing/i.test(text)) {
    const advice = "no region is known. Give region, or set AWS_REGION.";
    return new S3Failure(new StoreError("no_region", `${settings.url}: ${advice}`, details), name, 0, false);
  }
  const retryable = error.code !== undefined || name === "TimeoutError";
  const foreign = settings.client !== undefined && name !== "AbortError" && !NEVER_SENT.has(error.code ?? "");
  // An answer that the SDK could not read, or a client that does not say how far its request came.
  const unknown = error.$response !== undefined || foreign;
  const message = `${whereIs(settings)}: the request failed (${error.code ?? name}).${retryable ? " Try again." : ""}`;
  return new S3Failure(
    new StoreError("store_failed", message, { ...details, retryable, cause: error }),
    name,
    0,
    unknown,
  );
}

function whereIs({ url, endpoint }: S3Settings): string {
  return endpoint === undefined ? url : `${url} at ${endpoint}`;
}

function regionMessage(error: SdkError, headers: Readonly<Record<string, string>>, settings: S3Settings): string {
  const right = headers["x-amz-bucket-region"] ?? error.Region;
  const told = right === undefined ? "" : `: it is ${right}`;
  return `${whereIs(settings)}: the region is not the bucket's${told}. Give region ${right ?? "the right one"}.`;
}

function skewMessage(date: string | undefined, now: number): string {
  const theirs = date === undefined ? Number.NaN : Date.parse(date);
  const by = Number.isNaN(theirs) ? "" : ` by ${Math.abs(Math.round((now - theirs) / 1000))} seconds`;
  return `This computer's clock and the store's differ${by}, more than the store accepts. Set the clock.`;
}

/** Seconds or a date: RFC 9110, 10.2.3. */
function retryAfter(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const seconds = Number(value);
  const milliseconds = Number.isNaN(seconds) ? Date.parse(value) - now : seconds * 1000;
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}
