import { constants } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { StoreError } from "@eider/core";
import { type ByteRange, memoryBody, PIECE_BYTES, resolveRange, SingleBody } from "./body.js";
import { errorCode, fileError, isAbsent, notFound } from "./file-error.js";
import { factsOf } from "./file-facts.js";
import { isLink } from "./folders.js";
import type { GetOptions, StoredObject } from "./store.js";

// Links are not followed, and opening a named pipe must not wait for its other end.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/** Opens the object at `path`. Its file stays open in `handles` until its body is read, left or fails. */
export async function openObject(
  path: string,
  key: string,
  options: GetOptions,
  handles: Set<FileHandle>,
): Promise<StoredObject> {
  let handle: FileHandle | undefined;
  try {
    if (constants.O_NOFOLLOW === undefined && (await lstat(path)).isSymbolicLink()) throw isLink(key);
    handle = await open(path, FLAGS);
    const stats = await handle.stat({ bigint: true });
    if (!stats.isFile()) throw notFound(key);
    const facts = factsOf(stats);
    const range = resolveRange(options.range, facts.size);
    if (range.end - range.start > PIECE_BYTES) {
      const body = fileBody(handle, key, range, options.signal, handles);
      handles.add(handle);
      handle = undefined;
      return { key, ...facts, body };
    }
    // A small one is read at once: nothing stays open for a caller who looks only at the size.
    const bytes = await readPiece(handle, key, range.start, range.end - range.start);
    return { key, ...facts, body: memoryBody(key, bytes, { start: 0, end: bytes.length }, options.signal) };
  } catch (error) {
    // A file where the key has a folder, or (on Windows) a folder at the key itself: no object either way.
    throw isAbsent(error) || errorCode(error) === "EISDIR" ? notFound(key, error) : fileError(error, key, "read");
  } finally {
    await handle?.close();
  }
}

function fileBody(
  handle: FileHandle,
  key: string,
  range: ByteRange,
  signal: AbortSignal | undefined,
  handles: Set<FileHandle>,
): AsyncIterable<Uint8Array> {
  return new SingleBody(key, async function* () {
    try {
      for (let start = range.start; start < range.end; start += PIECE_BYTES) {
        signal?.throwIfAborted();
        if (!handles.has(handle)) throw new StoreError("store_closed", `${key}: its store was closed during the read.`);
        yield await readPiece(handle, key, start, Math.min(PIECE_BYTES, range.end - start));
      }
    } finally {
      if (handles.delete(handle)) await handle.close();
    }
  });
}

async function readPiece(handle: FileHandle, key: string, position: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length);
  try {
    for (let done = 0; done < length; ) {
      const { bytesRead } = await handle.read(bytes, done, length - done, position + done);
      if (bytesRead === 0) {
        const message = `${key} ended ${length - done} bytes early: something cut it during the read. Read it again.`;
        throw new StoreError("short_read", message, { subject: key, retryable: true });
      }
      done += bytesRead;
    }
  } catch (error) {
    throw fileError(error, key, "read");
  }
  return bytes;
}
