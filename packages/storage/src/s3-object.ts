/** Objects as S3 describes them, and the bytes of one as they arrive. */

import type { Readable } from "node:stream";
import { NotFoundError, StoreError } from "@eider/core";
import { Backoff } from "./backoff.js";
import { type ByteRange, memoryBody, resolveRange, SingleBody } from "./body.js";
import type { S3Connection } from "./s3-connection.js";
import { publicError, S3Failure } from "./s3-errors.js";
import type { GetOptions, ObjectInfo, StoredObject } from "./store.js";

/** A body that nobody reads gives its connection back after this time, and asks again when it is read. */
const UNREAD_MILLISECONDS = 5000;

/** S3 puts etags in quotes in some places; here they are always without. */
export function plainEtag(etag: string | undefined): string {
  return (etag ?? "").replace(/^W\//, "").replace(/^"(.*)"$/, "$1");
}

/** S3 tells the time of one object in milliseconds in one answer and in seconds in another. */
export function wholeSeconds(time: Date | number | undefined): number {
  return Math.floor(Number(time ?? 0) / 1000) * 1000;
}

/** An object that is there, and the mark that its put left. */
export interface Found {
  readonly info: ObjectInfo;
  readonly mark: string | undefined;
}

/** The name of the user metadata by which a put knows its own object again. */
export const MARK = "eider-put";

/** @throws the public error, or the signal's reason */
export async function headObject(
  connection: S3Connection,
  key: string,
  signal: AbortSignal | undefined,
): Promise<Found | undefined> {
  try {
    const mode = signal === undefined ? {} : { abortSignal: signal };
    const Key = connection.absolute(key);
    const found = await connection.retry("HeadObject", { Key }, mode, ({ status }) => status === 404);
    const { ContentLength: size = 0, LastModified, ETag, Metadata } = found;
    const info = { key, size, etag: plainEtag(ETag), modifiedAt: wholeSeconds(LastModified) };
    return { info, mark: Metadata?.[MARK] };
  } catch (error) {
    if (error instanceof S3Failure) return undefined;
    throw error;
  }
}

interface Opening extends ObjectInfo {
  readonly range: ByteRange;
  readonly stream: Readable;
}

/** Asks for the object, or for a range of it. Undefined where the range has no bytes. */
async function open(
  connection: S3Connection,
  key: string,
  wanted: GetOptions["range"],
  signal: AbortSignal | undefined,
): Promise<Opening | undefined> {
  const mode = { stream: true, ...(signal === undefined ? {} : { abortSignal: signal }) };
  const header = rangeHeader(wanted);
  const input = { Key: connection.absolute(key), ...(header === undefined ? {} : { Range: header }) };
  let answer: Awaited<ReturnType<typeof connection.request<"GetObject">>>;
  try {
    answer = await connection.request("GetObject", input, mode);
  } catch (error) {
    if (error instanceof S3Failure && error.status === 416) return undefined;
    throw error;
  }
  const stream = answer.Body as unknown as Readable;
  try {
    const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.ContentRange ?? "") ?? [];
    const size = total === undefined ? (answer.ContentLength ?? 0) : Number(total);
    const range = total === undefined ? { start: 0, end: size } : { start: Number(first), end: Number(last) + 1 };
    const right = resolveRange(wanted, size);
    if (range.start !== right.start || range.end !== right.end) {
      const asked = `bytes ${right.start} to ${right.end} of ${size}`;
      throw new StoreError(
        "wrong_range",
        `${key}: asked for ${asked}, the store gave ${range.start} to ${range.end}.`,
        {
          subject: key,
        },
      );
    }
    return { key, size, range, stream, etag: plainEtag(answer.ETag), modifiedAt: wholeSeconds(answer.LastModified) };
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

function rangeHeader(range: GetOptions["range"]): string | undefined {
  if (range === undefined) return undefined;
  if ("suffix" in range) return `bytes=-${range.suffix}`;
  return `bytes=${range.start}-${range.end === undefined ? "" : range.end - 1}`;
}

/** Whether a range has no bytes whatever the object is: S3 has no way to ask for that. */
function isEmpty(range: GetOptions["range"]): boolean {
  if (range === undefined) return false;
  return "suffix" in range ? range.suffix === 0 : range.end === range.start;
}

/** @throws the public error, or the signal's reason */
export async function getObject(
  connection: S3Connection,
  key: string,
  wanted: GetOptions["range"],
  signal: AbortSignal | undefined,
): Promise<StoredObject> {
  resolveRange(wanted, 0);
  const opened = isEmpty(wanted) ? undefined : await openRetrying(connection, key, wanted, signal);
  if (opened !== undefined) {
    const { range, stream, ...facts } = opened;
    return { ...facts, body: resumingBody(connection, facts, range, stream, signal) };
  }
  const found = await headObject(connection, key, signal);
  if (found === undefined) throw new NotFoundError("object_not_found", `There is no object ${key}.`, { subject: key });
  const { info } = found;
  const { start, end } = resolveRange(wanted, info.size);
  if (start !== end) throw changed(key);
  return { ...info, body: memoryBody(key, new Uint8Array(0), { start: 0, end: 0 }, signal) };
}

async function openRetrying(
  connection: S3Connection,
  key: string,
  wanted: GetOptions["range"],
  signal: AbortSignal | undefined,
): Promise<Opening | undefined> {
  const backoff = new Backoff(connection.settings.retry);
  while (true) {
    try {
      return await open(connection, key, wanted, signal);
    } catch (error) {
      await backoff.wait(publicError(error), signal);
    }
  }
}

/** The bytes of `range`. A connection that breaks amid them is made again where it broke, if the object is the same. */
function resumingBody(
  connection: S3Connection,
  info: ObjectInfo,
  range: ByteRange,
  first: Readable,
  signal: AbortSignal | undefined,
): AsyncIterable<Uint8Array> {
  let unread: Readable | undefined = first;
  const drop = (): void => {
    signal?.removeEventListener("abort", drop);
    unread?.destroy();
    unread = undefined;
  };
  // Nobody listens yet, and a connection that breaks meanwhile is no error: it is made again.
  first.on("error", () => undefined);
  const timer = setTimeout(drop, UNREAD_MILLISECONDS).unref();
  signal?.addEventListener("abort", drop, { once: true });

  return new SingleBody(info.key, async function* () {
    clearTimeout(timer);
    signal?.removeEventListener("abort", drop);
    let stream = unread;
    unread = undefined;
    const backoff = new Backoff(connection.settings.retry);
    for (let at = range.start; at < range.end; ) {
      try {
        signal?.throwIfAborted();
        stream ??= await reopen(connection, info, { start: at, end: range.end }, signal);
        for await (const chunk of pieces(stream, info.key, connection.settings.timeoutMs, signal)) {
          if (at + chunk.length > range.end)
            throw new StoreError("store_failed", `${info.key}: more bytes came than asked for.`);
          at += chunk.length;
          yield chunk;
          backoff.reset();
        }
        if (at < range.end) throw short(info.key, range.end - at);
      } catch (error) {
        await backoff.wait(publicError(error), signal);
      } finally {
        stream?.destroy();
        stream = undefined;
      }
    }
  });
}

/**
 * The rest of an object. Its etag is compared here and not by `If-Match`, which some stores want in quotes and others
 * only without.
 */
async function reopen(
  connection: S3Connection,
  info: ObjectInfo,
  range: ByteRange,
  signal: AbortSignal | undefined,
): Promise<Readable> {
  try {
    const opened = await open(connection, info.key, range, signal);
    if (opened?.etag === info.etag && opened.size === info.size) return opened.stream;
    opened?.stream.destroy();
  } catch (error) {
    if (error instanceof S3Failure && error.status === 404) throw changed(info.key, error.error);
    throw error;
  }
  throw changed(info.key);
}

/** The chunks of a connection, which must keep coming while they are waited for. */
async function* pieces(
  stream: Readable,
  key: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const details = { subject: key, retryable: true };
  let waiting = true;
  const timer = setTimeout(() => {
    const message = `${key}: no byte for ${timeoutMs} ms. Read it again.`;
    if (waiting) stream.destroy(new StoreError("store_timeout", message, details));
  }, timeoutMs);
  const onAbort = (): void => void stream.destroy(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      waiting = false;
      // Not a Buffer: its `slice` does not copy.
      yield new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      signal?.throwIfAborted();
      waiting = true;
      timer.refresh();
    }
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof StoreError) throw error;
    throw new StoreError("store_disconnected", `${key}: the connection broke. Read it again.`, {
      ...details,
      cause: error,
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
    stream.destroy();
  }
}

function changed(key: string, cause?: unknown): StoreError {
  const message = `${key} was replaced or deleted during the read. Get it again.`;
  return new StoreError("object_changed", message, { subject: key, cause });
}

function short(key: string, missing: number): StoreError {
  return new StoreError("short_read", `${key} ended ${missing} bytes early. Read it again.`, {
    subject: key,
    retryable: true,
  });
}
