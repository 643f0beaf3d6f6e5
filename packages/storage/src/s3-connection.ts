/** One S3 client, its requests one by one, and the store's clock. */

import { createHash } from "node:crypto";
import type * as S3 from "@aws-sdk/client-s3";
import { InvalidInputError, StoreError } from "@eider/core";
import { Backoff, realClock } from "./backoff.js";
import { errorCode } from "./file-error.js";
import { failureOf, publicError, S3Failure, type S3Operation } from "./s3-errors.js";
import type { S3Settings } from "./s3-options.js";
import { type RequestMode, S3Transport } from "./s3-transport.js";

/** What each request takes and gives. */
export interface S3Calls {
  PutObject: [S3.PutObjectCommandInput, S3.PutObjectCommandOutput];
  GetObject: [S3.GetObjectCommandInput, S3.GetObjectCommandOutput];
  HeadObject: [S3.HeadObjectCommandInput, S3.HeadObjectCommandOutput];
  ListObjectsV2: [S3.ListObjectsV2CommandInput, S3.ListObjectsV2CommandOutput];
  DeleteObject: [S3.DeleteObjectCommandInput, S3.DeleteObjectCommandOutput];
  DeleteObjects: [S3.DeleteObjectsCommandInput, S3.DeleteObjectsCommandOutput];
  CreateMultipartUpload: [S3.CreateMultipartUploadCommandInput, S3.CreateMultipartUploadCommandOutput];
  UploadPart: [S3.UploadPartCommandInput, S3.UploadPartCommandOutput];
  CompleteMultipartUpload: [S3.CompleteMultipartUploadCommandInput, S3.CompleteMultipartUploadCommandOutput];
  AbortMultipartUpload: [S3.AbortMultipartUploadCommandInput, S3.AbortMultipartUploadCommandOutput];
  ListParts: [S3.ListPartsCommandInput, S3.ListPartsCommandOutput];
  ListMultipartUploads: [S3.ListMultipartUploadsCommandInput, S3.ListMultipartUploadsCommandOutput];
}

/** The parts of the SDK's middleware that are used here. */
interface Exchange {
  readonly request: { headers: Record<string, string>; readonly body?: unknown };
}
interface Answered {
  readonly response: { readonly headers?: Readonly<Record<string, string>> };
}
type Next = (args: Exchange) => Promise<Answered>;
interface Command {
  readonly middlewareStack: { add(middleware: (next: Next) => Next, where: object): void };
}
type CommandClass = new (input: object) => Command;

interface Opened {
  readonly module: Readonly<Record<string, unknown>>;
  send(command: Command, mode: RequestMode): Promise<unknown>;
}

export class S3Connection {
  readonly settings: S3Settings;
  /** Whether this store wants `If-Match` with quotes, as HTTP does; Ceph takes it only without. */
  quotesEtags = true;
  readonly #prefix: string;
  readonly #transport: S3Transport | undefined;
  #opened: Promise<Opened> | undefined;
  #client: S3.S3Client | undefined;
  /** The store's clock when an answer came, and this process's monotonic one. */
  #time: { readonly store: number; readonly here: number } | undefined;

  constructor(settings: S3Settings) {
    this.settings = settings;
    this.#prefix = settings.prefix ? `${settings.prefix}/` : "";
    this.#transport = settings.client === undefined ? new S3Transport(settings) : undefined;
  }

  /** Whether an abort leaves a request alone that is out as a whole. A client of the caller's cannot tell. */
  get tellsWhenSent(): boolean {
    return this.#transport !== undefined;
  }

  /** The key in the bucket of one in the store, or of a prefix of some. */
  absolute(key: string): string {
    return this.#prefix + key;
  }

  /** The key in the store of one in the bucket. */
  relative(key: string): string {
    return key.slice(this.#prefix.length);
  }

  serverTime(): number | undefined {
    const time = this.#time;
    return time === undefined ? undefined : Math.floor(time.store + performance.now() - time.here);
  }

  /** Milliseconds since the epoch, here. */
  now(): number {
    return (this.settings.retry.clock ?? realClock).now();
  }

  /**
   * One request, sent once.
   * @param input without the bucket
   * @throws S3Failure, or the signal's reason
   */
  async request<O extends S3Operation>(
    operation: O,
    input: Omit<S3Calls[O][0], "Bucket">,
    mode: RequestMode = {},
  ): Promise<S3Calls[O][1]> {
    const { abortSignal } = mode;
    abortSignal?.throwIfAborted();
    const send = async (): Promise<S3Calls[O][1]> => {
      this.#opened ??= this.#open();
      const { module, send } = await this.#opened;
      const command = new (module[`${operation}Command`] as CommandClass)({ Bucket: this.settings.bucket, ...input });
      this.#watch(command);
      if (operation === "DeleteObjects") command.middlewareStack.add(withContentMd5, BEFORE_SIGNING);
      return (await send(command, mode)) as S3Calls[O][1];
    };
    const { Key, Prefix } = input as { readonly Key?: string; readonly Prefix?: string };
    const subject = Key === undefined ? Prefix : this.relative(Key);
    try {
      try {
        return await send();
      } catch (error) {
        // The SDK has learned the store's time from this answer: the second try is signed with it.
        if ((error as Error).name !== "RequestTimeTooSkewed") throw error;
        return await send();
      }
    } catch (error) {
      const failure = failureOf(error, operation, this.settings, subject, this.now());
      if (abortSignal?.aborted && failure.status === 0 && !(mode.untilSent && failure.unknown))
        throw abortSignal.reason;
      throw failure;
    }
  }

  /**
   * One request that may be sent again without harm.
   * @throws the public error, the signal's reason, or S3Failure for those codes and statuses that `expected` names
   */
  async retry<O extends S3Operation>(
    operation: O,
    input: Omit<S3Calls[O][0], "Bucket">,
    mode: RequestMode = {},
    expected: (failure: S3Failure) => boolean = () => false,
  ): Promise<S3Calls[O][1]> {
    const backoff = new Backoff(this.settings.retry);
    while (true) {
      try {
        return await this.request(operation, input, mode);
      } catch (error) {
        if (error instanceof S3Failure && expected(error)) throw error;
        await backoff.wait(publicError(error), mode.abortSignal);
      }
    }
  }

  /** Ends all connections, of running requests too. */
  close(): void {
    if (this.#transport === undefined) return;
    this.#client?.destroy();
    this.#transport.destroy();
  }

  async #open(): Promise<Opened> {
    const module = await loadSdk();
    const client = (this.settings.client as S3.S3Client | undefined) ?? this.#make(module);
    this.#client = client;
    if ((await client.config.maxAttempts()) !== 1) {
      const advice = "turn a put that succeeded into one that was refused. Make the client with maxAttempts: 1.";
      throw new InvalidInputError("bad_store_options", `The retries of the SDK's client ${advice}`);
    }
    // Both sides are the SDK's, whose types want to know each command.
    const send = client.send.bind(client) as unknown as Opened["send"];
    return { module: module as unknown as Opened["module"], send };
  }

  #make(module: typeof S3): S3.S3Client {
    const { region, endpoint, forcePathStyle, credentials, anonymous, checksums } = this.settings;
    const when = checksums === "when-supported" ? "WHEN_SUPPORTED" : "WHEN_REQUIRED";
    const home = region ?? (endpoint === undefined ? undefined : process.env.AWS_REGION || "us-east-1");
    const unsigned = {
      credentials: { accessKeyId: "", secretAccessKey: "" },
      signer: { sign: async <T>(request: T): Promise<T> => request },
    };
    return new module.S3Client({
      forcePathStyle,
      maxAttempts: 1,
      requestChecksumCalculation: when,
      // The SDK's check is a pipe that neither fails nor ends with the connection below it.
      responseChecksumValidation: "WHEN_REQUIRED",
      expectContinueHeader: false,
      requestHandler: this.#transport as never,
      ...(home === undefined ? {} : { region: home }),
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(credentials === undefined ? {} : { credentials }),
      ...(anonymous ? (unsigned as object) : {}),
    });
  }

  #watch(command: Command): void {
    const watch =
      (next: Next): Next =>
      async (args) => {
        const result = await next(args);
        const store = Date.parse(result.response.headers?.date ?? "");
        if (!Number.isNaN(store)) this.#time = { store, here: performance.now() };
        return result;
      };
    command.middlewareStack.add(watch, { step: "deserialize", priority: "low", name: "eiderServerTime" });
  }
}

/** After the SDK's own checksums, before it signs. */
const BEFORE_SIGNING = { step: "build", priority: "low", name: "eiderContentMd5" };

/**
 * DeleteObjects must carry a checksum. The SDK's CRC32 is unknown to many stores, even where it is told to leave
 * checksums out; all of them know Content-MD5, which is the older rule and still AWS's.
 */
const withContentMd5 =
  (next: Next): Next =>
  (args) => {
    const { headers, body } = args.request;
    for (const name of Object.keys(headers)) {
      if (/^x-amz-(?:checksum-|sdk-checksum-algorithm)/i.test(name)) delete headers[name];
    }
    const bytes = body instanceof Uint8Array ? body : Buffer.from(String(body ?? ""));
    headers["content-md5"] = createHash("md5").update(bytes).digest("base64");
    return next(args);
  };

async function loadSdk(): Promise<typeof S3> {
  try {
    return await import("@aws-sdk/client-s3");
  } catch (cause) {
    if (errorCode(cause) !== "ERR_MODULE_NOT_FOUND") throw cause;
    const advice = "An S3 store needs the package @aws-sdk/client-s3. Install it: npm install @aws-sdk/client-s3";
    throw new StoreError("module_missing", advice, { subject: "@aws-sdk/client-s3", cause });
  }
}
