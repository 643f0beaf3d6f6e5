import { InvalidInputError } from "@eider/core";
import { assertRetryOptions, type RetryOptions } from "./backoff.js";
import { assertSafeKey } from "./keys.js";

const MIB = 1024 * 1024;
/** S3's limits: https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html */
const MIN_PART_BYTES = 5 * MIB;
export const MAX_PUT_BYTES: number = 5 * 1024 * MIB;
const MAX_PARTS = 10_000;

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  /** When they end; asked for again before. */
  readonly expiration?: Date;
}

/** An `S3Client` of `@aws-sdk/client-s3`, told by its shape: who does not use S3 need not have that package's types. */
export interface S3ClientLike {
  readonly config: object;
  send(command: never, options?: never): Promise<unknown>;
  destroy(): void;
}

/** Where an S3 store is and how it is spoken to. */
export interface S3StoreOptions {
  readonly bucket: string;
  /** All keys are below this one. Default: none, the whole bucket. */
  readonly prefix?: string;
  /** Default: as the AWS SDK finds it (`AWS_REGION`, profile); with an `endpoint` else `us-east-1`. */
  readonly region?: string;
  /** `https://host:port` of a store that is not AWS. */
  readonly endpoint?: string;
  /** `https://endpoint/bucket/key`, not `https://bucket.endpoint/key`. Default: with an `endpoint`. */
  readonly forcePathStyle?: boolean;
  /** Default: the chain of the AWS SDK (environment, profile, SSO, container, instance). */
  readonly credentials?: S3Credentials | (() => Promise<S3Credentials>);
  /** Do not sign: for public buckets. Default false. */
  readonly anonymous?: boolean;
  /**
   * A client of yours, with its own endpoint, credentials and timeouts. Its `maxAttempts` must be 1: hidden retries
   * turn a put that succeeded into one that was refused. It stays open when the store closes.
   */
  readonly client?: S3ClientLike;
  /** Bytes of each part of a multipart upload but the last. From 5 MiB to 5 GiB, default 8 MiB. */
  readonly partBytes?: number;
  /** Parts of one upload. From 1 to 10,000, the default. */
  readonly maxParts?: number;
  /** Parts on their way at once, in all uploads of the store together. Default 4. */
  readonly maxInFlight?: number;
  /**
   * Streams of up to this many bytes are put with a condition (`ifAbsent`, `ifMatch`) by way of memory where the store
   * does not look at conditions at the end of a multipart upload. Default 64 MiB.
   */
  readonly maxConditionalBytes?: number;
  /**
   * Whether the store looks at conditions at the end of a multipart upload. Default: true without an `endpoint`, else
   * found out with a probe object below `_eider/probe/` by the first long stream with a condition.
   */
  readonly conditionalMultipart?: boolean;
  /** Milliseconds to connect. Default 5,000. */
  readonly connectTimeoutMs?: number;
  /** Milliseconds without a byte in either direction. Default 60,000. */
  readonly timeoutMs?: number;
  /** Default: 8 attempts, 100 ms doubling up to 20,000 ms, with jitter. */
  readonly retry?: RetryOptions;
  /**
   * Whether what is put carries a CRC checksum besides the SHA-256 of its signature, or only where S3 insists.
   * Default `when-supported`, with an `endpoint` `when-required`: other stores refuse what they do not know.
   */
  readonly checksums?: "when-supported" | "when-required";
  /** Refuse `put` and `delete`. Default false. */
  readonly readOnly?: boolean;
}

type Defaulted =
  | "partBytes"
  | "maxParts"
  | "maxInFlight"
  | "maxConditionalBytes"
  | "connectTimeoutMs"
  | "timeoutMs"
  | "retry"
  | "checksums"
  | "forcePathStyle";

/** Options with their defaults. */
export type S3Settings = S3StoreOptions & Required<Pick<S3StoreOptions, Defaulted>> & { readonly url: string };

/** @throws InvalidInputError (`bad_store_options`, of `retry` `bad_option`) that names the option */
export function settingsOf(options: S3StoreOptions): S3Settings {
  const { bucket, prefix, endpoint } = options;
  if (typeof bucket !== "string" || !/^[a-z0-9][a-z0-9._-]{1,253}[a-z0-9]$/i.test(bucket)) {
    throw bad("bucket", "is the bucket's name: letters, digits, dots and hyphens");
  }
  if (prefix !== undefined && prefix !== "") assertSafeKey(prefix);
  if (endpoint !== undefined) assertEndpoint(endpoint);
  if (options.anonymous && options.credentials !== undefined) throw bad("anonymous", "goes without credentials");
  const settings: S3Settings = {
    ...options,
    url: `s3://${bucket}${prefix ? `/${prefix}` : ""}`,
    forcePathStyle: options.forcePathStyle ?? endpoint !== undefined,
    partBytes: options.partBytes ?? 8 * MIB,
    maxParts: options.maxParts ?? MAX_PARTS,
    maxInFlight: options.maxInFlight ?? 4,
    maxConditionalBytes: options.maxConditionalBytes ?? 64 * MIB,
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    timeoutMs: options.timeoutMs ?? 60_000,
    retry: { attempts: 8, ...options.retry },
    checksums: options.checksums ?? (endpoint === undefined ? "when-supported" : "when-required"),
  };
  assertWithin(settings, "partBytes", MIN_PART_BYTES, MAX_PUT_BYTES);
  assertWithin(settings, "maxParts", 1, MAX_PARTS);
  assertWithin(settings, "maxInFlight", 1, 1000);
  assertWithin(settings, "maxConditionalBytes", MIB, MAX_PUT_BYTES);
  assertWithin(settings, "connectTimeoutMs", 1, 2 ** 31 - 1);
  assertWithin(settings, "timeoutMs", 1, 2 ** 31 - 1);
  assertRetryOptions(settings.retry);
  if (settings.checksums !== "when-supported" && settings.checksums !== "when-required") {
    throw bad("checksums", 'is "when-supported" or "when-required"');
  }
  return settings;
}

function assertEndpoint(endpoint: string): void {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  const shape = "is https://host or http://host:port, without a path";
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "") {
    throw bad("endpoint", shape);
  }
  if (url.username !== "" || url.password !== "")
    throw bad("endpoint", "holds no credentials: give them by themselves");
  if (url.pathname !== "/") throw bad("endpoint", shape);
}

function assertWithin(
  settings: S3Settings,
  name: Exclude<Defaulted, "retry" | "checksums" | "forcePathStyle">,
  least: number,
  most: number,
): void {
  const value = settings[name];
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw bad(name, `is a whole number from ${least} to ${most}, not ${String(value)}`);
}

function bad(option: string, rule: string): InvalidInputError {
  return new InvalidInputError("bad_store_options", `The option ${option} of an S3 store ${rule}.`, {
    subject: option,
  });
}
