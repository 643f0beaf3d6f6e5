/**
 * What `append` was given, reduced to one of three things that can be read more than once: bytes, rows, or Arrow data.
 */

import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import {
  type ArrowLike,
  InvalidInputError,
  isArrowLike,
  NotFoundError,
  type RecordBatch,
  type Schema,
  type TextPart,
} from "@eider/core";
import type { Source } from "../options.js";
import { filePieces } from "./file-pieces.js";
import { interruptible } from "./interruptible.js";
import { type Replayable, spoolBytes, spoolRows, unkept } from "./spool.js";
import { isDetached, used, wasRead } from "./used.js";

/** Rows handed to a parser at a time. */
const ROW_CHUNK = 1000;
/** Bytes of an array handed on at a time: what they become is let go of before the next are read. */
const BYTE_CHUNK = 1024 * 1024;

export type Input =
  | {
      readonly kind: "bytes";
      /** Still compressed, if it was. A piece is valid until the next one is asked for. */
      readonly bytes: Replayable<Uint8Array>;
      /** For the format and for messages; not a promise that such a file exists. */
      readonly name: string | undefined;
      /** What a server or a `Blob` says about the bytes; often wrong, so the last to be asked. */
      readonly mediaType?: string;
      readonly totalBytes: number | undefined;
      /** A local file with exactly these bytes. */
      readonly path?: string;
      /** Where they begin in a longer text, for messages: NDJSON, JSON, or CSV whose options give delimiter and header. */
      readonly part?: TextPart;
      /** Rows of longer Arrow data that come before these, for messages. Default 0. */
      readonly rowsBefore?: number;
    }
  | {
      readonly kind: "rows";
      readonly rows: Replayable<readonly unknown[]>;
      /** Rows of a longer source that come before these, for messages. Default 0. */
      readonly rowsBefore?: number;
    }
  | { readonly kind: "arrow"; readonly source: ArrowLike }
  /** Columns that come one batch after the other, all of one schema. */
  | {
      readonly kind: "batches";
      readonly schema: Schema;
      readonly batches: Replayable<RecordBatch>;
      /** Rows of longer data that come before these, for messages. Default 0. */
      readonly rowsBefore?: number;
    }
  /** Some row groups of a local Parquet file. */
  | {
      readonly kind: "rowGroups";
      readonly path: string;
      readonly name: string;
      /** What they are hashed by. */
      readonly bytes: Replayable<Uint8Array>;
      /** Their rows in the file, from 0; `to` is behind the last. */
      readonly rows: { readonly from: number; readonly to: number };
    };

export interface InputOptions {
  /** For copies of streams that outgrow memory. */
  readonly tempFolder: string;
  readonly signal: AbortSignal | undefined;
  /** The input is opened once: of a stream nothing is kept. */
  readonly once?: boolean;
}

/**
 * Recognises a source by its shape.
 * @throws InvalidInputError `bad_source`, with what to pass instead
 * @throws NotFoundError `file_not_found`, `url_not_found`
 */
export async function openInput(source: Source, options: InputOptions): Promise<Input> {
  if (typeof source === "string") {
    throw new InvalidInputError(
      "bad_source",
      "a string could be a path, a URL or the data: pass { file }, { url } or the bytes (new TextEncoder().encode(text))",
    );
  }
  if (typeof source !== "object" || source === null) {
    throw new InvalidInputError("bad_source", `cannot append ${typeName(source)}: pass ${SOURCES}`);
  }
  if (source instanceof Uint8Array && isDetached(source)) throw used("the bytes were transferred elsewhere");
  if (source instanceof Uint8Array) return bytesInput(constant(slices(source)), undefined, source.byteLength);
  if (isArrowLike(source)) return { kind: "arrow", source };
  if (Array.isArray(source)) return { kind: "rows", rows: constant(chunks(source)) };
  if (hasPlace(source, "file")) return fileInput(String(source.file));
  if (hasPlace(source, "url") && !isBody(source)) return urlInput(String(source.url), options);
  if (isResponse(source)) return responseInput(source, options);
  if (isBlob(source)) {
    const blob = source;
    const bytes = { open: () => iterate(blob.stream()), [Symbol.asyncDispose]: async () => {} };
    const name = "name" in blob && typeof blob.name === "string" ? blob.name : undefined;
    return { kind: "bytes", bytes, name, mediaType: blob.type, totalBytes: blob.size };
  }
  if (isReadableStream(source)) {
    if (source.locked) throw used("the stream is being read elsewhere");
    return streamInput(iterate(source, options.signal), options, undefined, wasRead(source));
  }
  if (Symbol.asyncIterator in source) {
    // The stream of a file says where it is from: `createReadStream("clicks.csv")`.
    const name = "path" in source && typeof source.path === "string" ? source.path : undefined;
    return streamInput(interruptible(source as AsyncIterable<unknown>, options.signal), options, name, wasRead(source));
  }
  if (Symbol.iterator in source) {
    return { kind: "rows", rows: keptRows(chunked(source as Iterable<unknown>), options) };
  }
  throw new InvalidInputError(
    "bad_source",
    `cannot append a single object: pass ${SOURCES}; { file } and { url } take a text or a URL`,
  );
}

/** Lets go of an input: it is not read again. */
export async function disposeInput(input: Input): Promise<void> {
  if (input.kind === "bytes" || input.kind === "rowGroups") await input.bytes[Symbol.asyncDispose]();
  if (input.kind === "rows") await input.rows[Symbol.asyncDispose]();
  if (input.kind === "batches") await input.batches[Symbol.asyncDispose]();
}

const SOURCES = "an array of rows, bytes, a stream, Arrow data, { file } or { url }";

function typeName(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a ${typeof value}`;
}

function bytesInput(bytes: Replayable<Uint8Array>, name: string | undefined, totalBytes: number | undefined): Input {
  return { kind: "bytes", bytes, name, totalBytes };
}

async function fileInput(file: string): Promise<Input> {
  const path = file.startsWith("file:") ? fileURLToPath(file) : file;
  let size: number;
  try {
    const info = await stat(path);
    if (info.isDirectory()) {
      throw new InvalidInputError("bad_source", `${path} is a folder: pass its files one by one`, { subject: path });
    }
    size = info.size;
  } catch (cause) {
    if (cause instanceof InvalidInputError) throw cause;
    throw fileError(path, cause);
  }
  const open = async function* (): AsyncIterable<Uint8Array> {
    try {
      yield* filePieces(path);
    } catch (cause) {
      throw fileError(path, cause);
    }
  };
  return { kind: "bytes", bytes: { open, [Symbol.asyncDispose]: async () => {} }, name: path, totalBytes: size, path };
}

function fileError(path: string, cause: unknown): Error {
  const code = (cause as NodeJS.ErrnoException).code;
  if (code === "ENOENT" || code === "ENOTDIR") {
    return new NotFoundError("file_not_found", `there is no file ${path}`, { subject: path, cause });
  }
  return new InvalidInputError("file_unreadable", `cannot read ${path} (${code ?? "unknown error"})`, {
    subject: path,
    cause,
  });
}

async function urlInput(text: string, options: InputOptions): Promise<Input> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "file:") return fileInput(fileURLToPath(url));
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new InvalidInputError("bad_source", "{ url } takes http:, https: and file: URLs; use { file } for a path");
  }
  const where = `${url.origin}${url.pathname}`;
  // fetch refuses them too, and says them in its message.
  if (url.username !== "" || url.password !== "") {
    throw new InvalidInputError(
      "bad_source",
      `a URL with a user or a password is not fetched: fetch ${where} with an Authorization header and pass the Response`,
      { subject: where },
    );
  }
  let response: Response;
  try {
    response = await fetch(url, { signal: options.signal ?? null });
  } catch (cause) {
    if (options.signal?.aborted) throw options.signal.reason;
    throw new InvalidInputError("url_unreachable", `cannot fetch ${where}`, { subject: where, cause });
  }
  return responseInput(response, options, url.pathname);
}

function responseInput(response: Response, options: InputOptions, path?: string): Input {
  if (!response.ok) {
    const message = `the server answered ${response.status}`;
    if (response.status === 404 || response.status === 410) throw new NotFoundError("url_not_found", message);
    throw new InvalidInputError("url_unreachable", message);
  }
  if (response.bodyUsed || response.body?.locked) throw used("the body of the response was read before");
  if (response.body === null) return bytesInput(constant([]), path, 0);
  const name = path ?? (URL.canParse(response.url) ? new URL(response.url).pathname : undefined);
  const length = Number(response.headers.get("content-length") ?? Number.NaN);
  // With a content encoding the length counts other bytes than those that arrive here.
  const total = response.headers.has("content-encoding") || !Number.isSafeInteger(length) ? undefined : length;
  const bytes = keptBytes(answer(response.body, options.signal), options);
  return { kind: "bytes", bytes, name, mediaType: response.headers.get("content-type") ?? "", totalBytes: total };
}

/** The body of a response, which ends in an error of ours where the connection does. */
async function* answer(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): AsyncIterable<Uint8Array> {
  try {
    yield* iterate(body, signal);
  } catch (cause) {
    signal?.throwIfAborted();
    throw new InvalidInputError("url_unreachable", "the response broke off: fetch it again", { cause });
  }
}

/**
 * A stream of bytes or of rows: the first item tells which.
 * @param wasRead somebody has read from it: if nothing is left, it is not the empty input that it seems to be
 */
async function streamInput(
  source: AsyncIterable<unknown>,
  options: InputOptions,
  name?: string,
  wasRead = false,
): Promise<Input> {
  const iterator = source[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.done && wasRead) throw used("the stream was read to its end before");
  if (!first.done && typeof first.value === "string") {
    await iterator.return?.();
    throw new InvalidInputError(
      "bad_source",
      "the stream gives strings: take bytes instead (no setEncoding, or pipe through a TextEncoderStream)",
    );
  }
  const all = (async function* () {
    let finished = false;
    try {
      for (let next = first; !next.done; next = await iterator.next()) yield next.value;
      finished = true;
    } finally {
      if (!finished) await iterator.return?.();
    }
  })();
  if (!first.done && first.value instanceof Uint8Array) {
    return bytesInput(keptBytes(onlyBytes(all), options), name, undefined);
  }
  return { kind: "rows", rows: keptRows(chunked(all), options) };
}

function keptBytes(source: AsyncIterable<Uint8Array>, options: InputOptions): Replayable<Uint8Array> {
  return options.once ? unkept(source) : spoolBytes(source, options.tempFolder);
}

function keptRows(source: AsyncIterable<readonly unknown[]>, options: InputOptions): Replayable<readonly unknown[]> {
  return options.once ? unkept(source) : spoolRows(source, options.tempFolder);
}

async function* onlyBytes(source: AsyncIterable<unknown>): AsyncIterable<Uint8Array> {
  for await (const item of source) {
    if (!(item instanceof Uint8Array)) {
      throw new InvalidInputError("bad_source", `a stream of bytes gave a ${typeof item}`);
    }
    yield item;
  }
}

async function* chunked(source: Iterable<unknown> | AsyncIterable<unknown>): AsyncIterable<readonly unknown[]> {
  let chunk: unknown[] = [];
  for await (const row of source) {
    chunk.push(row);
    if (chunk.length === ROW_CHUNK) {
      yield chunk;
      chunk = [];
    }
  }
  if (chunk.length > 0) yield chunk;
}

function* chunks(rows: readonly unknown[]): Iterable<readonly unknown[]> {
  for (let i = 0; i < rows.length; i += ROW_CHUNK) yield rows.slice(i, i + ROW_CHUNK);
}

function* slices(bytes: Uint8Array): Iterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += BYTE_CHUNK) yield bytes.subarray(at, at + BYTE_CHUNK);
}

/** Something that is in memory already. */
function constant<T>(pieces: Iterable<T>): Replayable<T> {
  const kept = [...pieces];
  return {
    async *open() {
      yield* kept;
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

/** A web stream as an async iterable that cancels it when the reader stops early or the signal does. */
async function* iterate<T>(stream: ReadableStream<T>, signal?: AbortSignal): AsyncIterable<T> {
  const reader = stream.getReader();
  // Ends a read that waits, as if the stream had ended.
  const cancel = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", cancel);
  let finished = false;
  try {
    for (;;) {
      const next = await reader.read();
      signal?.throwIfAborted();
      if (next.done) break;
      yield next.value;
    }
    finished = true;
  } finally {
    signal?.removeEventListener("abort", cancel);
    if (!finished) await reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

function hasPlace<K extends string>(value: object, key: K): value is Record<K, string | URL> {
  if (!(key in value) || Symbol.iterator in value) return false;
  const place = (value as Record<K, unknown>)[key];
  return typeof place === "string" || place instanceof URL;
}

function isBody(value: object): boolean {
  return "arrayBuffer" in value && "body" in value;
}

function isResponse(value: object): value is Response {
  return isBody(value) && "ok" in value && "headers" in value;
}

function isBlob(value: object): value is Blob {
  return "stream" in value && "size" in value && typeof (value as Blob).stream === "function";
}

function isReadableStream(value: object): value is ReadableStream {
  return "getReader" in value && typeof (value as ReadableStream).getReader === "function";
}
