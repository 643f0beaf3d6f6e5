import { afterEach } from "vitest";
import { FakeS3, type FakeS3Options } from "../../test-s3/src/index.js";
import type { RetryClock } from "../src/index.js";
import { S3Store, type S3StoreOptions } from "../src/s3.js";

export const MIB: number = 1024 * 1024;

/** A fake S3 with one bucket, and stores in it whose retries wait on no clock. */
export interface FakeBucket {
  readonly s3: FakeS3;
  readonly bucket: string;
  /** The waits between tries, in milliseconds, as they were asked for. */
  readonly waits: number[];
  store(options?: Partial<S3StoreOptions>): S3Store;
  /** The operations that were asked for since the last call, with their statuses; undefined is no answer. */
  seen(): (readonly [operation: string, status: number | undefined])[];
}

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

/** Closed after the test. */
export async function fakeBucket(options: FakeS3Options = {}): Promise<FakeBucket> {
  const s3 = await FakeS3.start(options);
  open.push(s3);
  const bucket = await s3.makeBucket();
  const waits: number[] = [];
  const clock: RetryClock = { now: Date.now, sleep: async (milliseconds) => void waits.push(milliseconds) };
  let looked = 0;
  return {
    s3,
    bucket,
    waits,
    store(more = {}) {
      const { endpoint, region, accessKeyId, secretAccessKey } = s3;
      const credentials = { accessKeyId, secretAccessKey };
      const store = new S3Store({ bucket, endpoint, region, credentials, retry: { clock, random: () => 0 }, ...more });
      open.push(store);
      return store;
    },
    seen() {
      const requests = s3.log.requests.slice(looked);
      looked = s3.log.requests.length;
      return requests.map(({ operation, status }) => [operation, status] as const);
    },
  };
}

/** Bytes in which each MiB differs from the others. */
export function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >>> 8) * 7 + (i >>> 16) * 3) & 0xff;
  return bytes;
}

export async function* inPieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}

export async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

/** What a promise is rejected with. */
export function failure(promise: Promise<unknown>): Promise<Error & { readonly code?: string }> {
  return promise.then(
    () => Promise.reject(new Error("it succeeded")),
    (error: unknown) => error as Error,
  );
}

/** For a fault's `wait`, which is looked at when the whole request has come: `then` says how long to hold it. */
export function whenRead(then: () => Promise<unknown>): Promise<unknown> {
  // biome-ignore lint/suspicious/noThenProperty: awaiting it is what starts it
  const lazy: PromiseLike<unknown> = { then: (resolve, reject) => then().then(resolve, reject) };
  return lazy as Promise<unknown>;
}
