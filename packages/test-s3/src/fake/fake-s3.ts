/** An S3 in memory that keeps the real rules, breaks them by script, and writes down what was asked of it. */

import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestS3 } from "../access.js";
import { type Answer, errorAnswer, S3Error } from "./answer.js";
import { authenticate } from "./authentication.js";
import { BucketState } from "./bucket-state.js";
import { gone, readBody, reset, send } from "./exchange.js";
import { listBuckets } from "./list-operations.js";
import type { ConditionMode, FakeLimits, OperationContext } from "./operation.js";
import { OPERATIONS } from "./operations.js";
import { type ChecksumMode, payloadOf } from "./payload.js";
import { parseRequest, type S3Request } from "./request.js";
import { RequestLog } from "./request-log.js";
import { type Fault, type FaultAnswer, type FaultRule, Script } from "./script.js";

export interface FakeS3Options {
  /** Default "accepts". */
  readonly checksums?: ChecksumMode;
  /** Default "keeps". */
  readonly conditions?: ConditionMode;
  /** As R2. Default false. */
  readonly equalParts?: boolean;
  /** Default "refused". */
  readonly lateParts?: OperationContext["lateParts"];
  /** Default "succeeds". */
  readonly completeAgain?: OperationContext["completeAgain"];
  /** Default: S3's. */
  readonly limits?: Partial<FakeLimits>;
  /** Whether requests without a signature are served. Default false. */
  readonly anonymous?: boolean;
  /** The server's clock, in milliseconds since the epoch: its `Date`, the time of objects, and what clients may be off from. */
  readonly clock?: () => number;
}

const LIMITS: FakeLimits = { minPartBytes: 5 << 20, maxParts: 10_000, maxPutBytes: 5 * 2 ** 30, maxKeys: 1000 };
/** Clients keep connections; one that is closed just as it is used again looks like a fault. */
const KEEP_ALIVE_MS = 60_000;

export class FakeS3 implements TestS3 {
  readonly endpoint: string;
  readonly region: string = "us-east-1";
  readonly accessKeyId: string = "fake-access-key";
  readonly secretAccessKey: string = "fake-secret-key";
  readonly log: RequestLog = new RequestLog();
  readonly #options: FakeS3Options;
  readonly #server: Server;
  readonly #script: Script = new Script();
  readonly #buckets: Map<string, BucketState> = new Map();
  readonly #unsettled: Set<Promise<unknown>> = new Set();
  #requests = 0;

  private constructor(server: Server, options: FakeS3Options) {
    this.#server = server;
    this.#options = options;
    this.endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on("request", (incoming, response) => void this.#track(this.#serve(incoming, response)));
  }

  static async start(options: FakeS3Options = {}): Promise<FakeS3> {
    const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS });
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
    return new FakeS3(server, options);
  }

  /** Replaces the rules; without any, all goes well. Counts of `nth` begin anew. */
  script(...rules: readonly FaultRule[]): void {
    this.#script.set(rules);
  }

  async makeBucket(name: string = `eider-${randomUUID()}`): Promise<string> {
    this.#buckets.set(name, new BucketState());
    return name;
  }

  /** The objects of a bucket as they are now, by key in the order of listings. */
  objects(bucket: string): Map<string, Uint8Array> {
    const state = this.#state(bucket);
    return new Map(state.sortedKeys().map((key) => [key, state.objects.get(key)!.bytes]));
  }

  /** Multipart uploads of a bucket that are neither completed nor aborted. */
  uploads(bucket: string): { readonly key: string; readonly id: string; readonly parts: readonly number[] }[] {
    const open = [...this.#state(bucket).uploads.values()];
    return open.map(({ key, id, parts }) => ({ key, id, parts: [...parts.keys()].sort((a, b) => a - b) }));
  }

  /** The largest number of multipart uploads that a bucket had open at once. */
  peakUploads(bucket: string): number {
    return this.#state(bucket).peakUploads;
  }

  /** Resolves when all requests and all late effects are through. What hangs keeps it waiting until its client goes. */
  async settled(): Promise<void> {
    while (this.#unsettled.size > 0) await Promise.all(this.#unsettled);
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #state(bucket: string): BucketState {
    const state = this.#buckets.get(bucket);
    if (state === undefined) throw new Error(`The fake has no bucket ${bucket}.`);
    return state;
  }

  #now(): number {
    return this.#options.clock?.() ?? Date.now();
  }

  #track<T>(running: Promise<T>): Promise<T> {
    this.#unsettled.add(running);
    void running.finally(() => this.#unsettled.delete(running));
    return running;
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: target = "" } = incoming;
    const number = ++this.#requests;
    response.on("error", () => undefined);
    response.setHeader("date", new Date(this.#now()).toUTCString());
    response.setHeader("x-amz-request-id", `fake-${number}`);
    let request: S3Request;
    try {
      request = parseRequest(number, method, target, incoming.headers);
    } catch (error) {
      await readBody(incoming);
      const answer = errorAnswer(error as S3Error, target);
      return send(response, answer, { method, onBytes: () => undefined });
    }
    const entry = this.log.begin(request);
    try {
      const fault = this.#script.faultFor(request) ?? {};
      entry.faulted = Object.keys(fault).length > 0;
      const body = await readBody(incoming, fault.cutRequestAt);
      entry.bytesIn = body?.length ?? 0;
      if (body === undefined) return;
      if (fault.cutRequestAt !== undefined) return reset(response);
      await waitFor(fault.wait);
      const answer = this.#perform(request, body, fault);
      if (fault.answer === "reset") return reset(response);
      if (fault.answer === "hang") return await gone(response);
      const scripted = fault.answer;
      const sent = scripted === undefined ? answer : scriptedAnswer(scripted, request);
      if (sent === undefined) throw new Error("A fault without an effect now needs an answer.");
      entry.status = sent.status;
      await send(response, sent, {
        method,
        ...(fault.body === undefined ? {} : { how: fault.body }),
        ...(scripted?.spaces === undefined ? {} : { spaces: scripted.spaces }),
        onBytes: (bytes) => {
          entry.bytesOut += bytes;
        },
      });
    } catch (error) {
      // A mistake in this server or in a script: to be seen, not waited for.
      const answer = scriptedAnswer({ status: 500, code: "FakeFailed", message: String(error) }, request);
      if (response.headersSent) reset(response);
      else await send(response, answer, { method, onBytes: () => undefined });
    } finally {
      this.log.end(entry);
    }
  }

  /** Lets a request have its effect, now, later or never; gives its own answer if it has one now. */
  #perform(request: S3Request, body: Buffer, { effect = "now" }: Fault): Answer | undefined {
    if (effect === "never") return undefined;
    if (effect === "now") return this.#answer(request, body);
    const { after } = effect;
    void this.#track(waitFor(after).then(() => this.#answer(request, body)));
    return undefined;
  }

  #answer(request: S3Request, body: Buffer): Answer {
    try {
      const now = this.#now();
      authenticate(request, this, this.#options.anonymous ?? false, now);
      const payload = payloadOf(request, body, this.#options.checksums ?? "accepts");
      if (request.operation === "ListBuckets") return listBuckets([...this.#buckets.keys()]);
      if (request.operation === "CreateBucket") return this.#createBucket(request.bucket);
      const bucket = this.#buckets.get(request.bucket);
      if (bucket === undefined)
        throw new S3Error(404, "NoSuchBucket", "The specified bucket does not exist", { BucketName: request.bucket });
      if (request.operation === "DeleteBucket") return this.#deleteBucket(request.bucket, bucket);
      const operation = OPERATIONS[request.operation];
      if (operation === undefined)
        throw new S3Error(501, "NotImplemented", `This server does not have ${request.method} ${request.target}.`);
      return operation({
        request,
        payload,
        bucket,
        limits: { ...LIMITS, ...this.#options.limits },
        conditions: this.#options.conditions ?? "keeps",
        equalParts: this.#options.equalParts ?? false,
        lateParts: this.#options.lateParts ?? "refused",
        completeAgain: this.#options.completeAgain ?? "succeeds",
        now,
      });
    } catch (error) {
      if (error instanceof S3Error) return errorAnswer(error, request.target);
      throw error;
    }
  }

  #createBucket(name: string): Answer {
    if (!this.#buckets.has(name)) this.#buckets.set(name, new BucketState());
    return { status: 200, headers: { location: `/${name}` } };
  }

  #deleteBucket(name: string, bucket: BucketState): Answer {
    if (bucket.objects.size > 0)
      throw new S3Error(409, "BucketNotEmpty", "The bucket you tried to delete is not empty");
    this.#buckets.delete(name);
    return { status: 204 };
  }
}

function scriptedAnswer(answer: FaultAnswer, request: S3Request): Answer {
  const { status, headers = {}, text, code, message = "" } = answer;
  if (code === undefined) return { status, headers, body: text ?? "" };
  const document = errorAnswer(new S3Error(status, code, message, {}, headers), request.target);
  return text === undefined ? document : { ...document, body: text };
}

async function waitFor(moment: number | Promise<unknown> | undefined): Promise<void> {
  if (typeof moment === "number") await sleep(moment);
  else await moment;
}
