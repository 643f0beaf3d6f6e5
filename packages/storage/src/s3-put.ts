/** Where a body goes: into one PutObject, or into a multipart upload while it is produced. */

import { randomUUID } from "node:crypto";
import { StoreError } from "@eider/core";
import { drainBody } from "./body.js";
import { type PartBuffers, PartBytes } from "./part-bytes.js";
import { type Commit, commit } from "./s3-commit.js";
import type { S3Connection } from "./s3-connection.js";
import { MARK } from "./s3-object.js";
import { MAX_PUT_BYTES } from "./s3-options.js";
import { type Slots, tooLong, Upload } from "./s3-upload.js";
import type { ObjectBody, ObjectInfo, PutOptions } from "./store.js";

/** What puts of one store share. */
export interface PutParts {
  readonly connection: S3Connection;
  readonly slots: Slots;
  readonly buffers: PartBuffers;
  /** Whether the end of a multipart upload looks at conditions; may ask the store. */
  readonly conditionalMultipart: () => Promise<boolean>;
}

/** @param signal of the caller and of the store */
export function putObject(
  parts: PutParts,
  key: string,
  body: ObjectBody,
  options: PutOptions,
  signal: AbortSignal,
): Promise<ObjectInfo> {
  const put = { key, mark: randomUUID(), ifAbsent: options.ifAbsent ?? false, ifMatch: options.ifMatch, signal };
  const commitOptions = { ...put, retries: options.retries ?? "safe" } as const;
  return body instanceof Uint8Array
    ? putBytes(parts, body, commitOptions, options)
    : putStream(parts, body, commitOptions, options);
}

type Put = Omit<Commit, "size"> & { readonly signal: AbortSignal };

async function putBytes(parts: PutParts, bytes: Uint8Array, put: Put, options: PutOptions): Promise<ObjectInfo> {
  const { connection } = parts;
  const { partBytes, maxParts } = connection.settings;
  const size = bytes.length;
  const conditional = put.ifAbsent || put.ifMatch !== undefined;
  if (size <= partBytes || (conditional && size <= MAX_PUT_BYTES)) {
    await drainBody(bytes, { ...options, signal: put.signal }, () => undefined);
    return putWhole(connection, bytes, put);
  }
  if (conditional && !(await parts.conditionalMultipart())) throw conditionTooLarge(put.key, MAX_PUT_BYTES);
  // Equal parts but the last, as some stores want, and no more of them than S3 takes.
  const each = Math.max(partBytes, Math.ceil(size / maxParts));
  if (each > MAX_PUT_BYTES) throw tooLong(put.key, connection);
  return uploading(parts, put, size, async (upload, signal) => {
    let done = 0;
    for (let start = 0; start < size; start += each) {
      const part = bytes.subarray(start, start + each);
      await upload.add(part, signal, () => {
        done += part.length;
        options.onProgress?.(done);
      });
    }
  });
}

/** Begins an upload, lets `fill` add its parts, and completes it; whatever fails, nothing is left behind. */
async function uploading(
  { connection, slots }: PutParts,
  put: Put,
  size: number | (() => number),
  fill: (upload: Upload, signal: AbortSignal) => Promise<void>,
): Promise<ObjectInfo> {
  const upload = await Upload.begin(connection, slots, put.key, put.mark, put.signal);
  try {
    await fill(upload, AbortSignal.any([put.signal, upload.failed]));
    return await upload.complete({ ...put, size: typeof size === "number" ? size : size() });
  } catch (error) {
    await upload.abort();
    throw error;
  }
}

async function putWhole(connection: S3Connection, bytes: Uint8Array, put: Put): Promise<ObjectInfo> {
  const input = { Key: connection.absolute(put.key), Body: bytes, Metadata: { [MARK]: put.mark } };
  return commit(connection, "PutObject", input, { ...put, size: bytes.length });
}

async function putStream(
  parts: PutParts,
  body: AsyncIterable<Uint8Array>,
  put: Put,
  options: PutOptions,
): Promise<ObjectInfo> {
  const { connection, slots, buffers } = parts;
  const { partBytes, maxParts, maxConditionalBytes } = connection.settings;
  const conditional = put.ifAbsent || put.ifMatch !== undefined;
  /** Ends the reading of the body when a part fails, even while the source hangs. */
  const ended = new AbortController();
  const signal = AbortSignal.any([put.signal, ended.signal]);
  let part = new PartBytes(buffers);
  /** Whole parts that wait for the decision whether there will be an upload. */
  let waiting: Uint8Array[] = [];
  let upload: Upload | undefined;
  let total = 0;

  const begin = async (): Promise<Upload> => {
    const begun = await Upload.begin(connection, slots, put.key, put.mark, put.signal);
    begun.failed.addEventListener("abort", () => ended.abort(begun.failed.reason), { once: true });
    return begun;
  };
  /** The part is full and there is more. */
  const turn = async (): Promise<void> => {
    waiting.push(part.take());
    part = new PartBytes(buffers);
    if (upload === undefined && conditional && !(await parts.conditionalMultipart())) {
      if (total > maxConditionalBytes) throw conditionTooLarge(put.key, maxConditionalBytes);
      return;
    }
    upload ??= await begin();
    // What is there is not read again; of one that failed, a request may still hold the bytes.
    for (const bytes of waiting) await upload.add(bytes, signal, () => buffers.give(bytes));
    waiting = [];
  };

  buffers.open();
  try {
    await drainBody(body, { ...options, signal }, async (chunk) => {
      total += chunk.length;
      if (total > partBytes * maxParts) throw tooLong(put.key, connection);
      for (let start = 0; start < chunk.length; ) {
        if (part.full) await turn();
        start += part.add(chunk.subarray(start));
      }
    });
    if (upload === undefined) {
      const bytes = waiting.length === 0 ? part.take() : Buffer.concat([...waiting, part.take()], total);
      return await putWhole(connection, bytes, put);
    }
    await upload.add(part.take(), signal);
    return await upload.complete({ ...put, size: total });
  } catch (error) {
    await upload?.abort();
    throw error;
  } finally {
    buffers.close();
  }
}

function conditionTooLarge(key: string, most: number): StoreError {
  const advice =
    "and this store looks at conditions for whole objects only. Put it without a condition, under a new key.";
  return new StoreError("condition_too_large", `${key} is longer than ${most} bytes, ${advice}`, { subject: key });
}
