/**
 * Input that may be needed twice. An append may have to read its source again: when a value late in it needs another
 * schema, or when another writer changed the table meanwhile. Streams are therefore kept, in memory up to a limit and
 * in a temporary file beyond it.
 */

import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { batchBytes, plainRow, type RecordBatch, StoreError } from "@eider/core";
import { readAt } from "@eider/core/node";

/** Bytes read back from the file at a time. */
const READ_BYTES = 1024 * 1024;

/** A source that can be opened again and again; released when the append ends. */
export interface Replayable<T> extends AsyncDisposable {
  open(): AsyncIterable<T>;
}

/** How pieces of a spool are measured and written to its file. */
interface Codec<T> {
  /** Total weight kept in memory before the temporary file begins. */
  readonly memoryLimit: number;
  /** What a piece counts against the memory limit. */
  weight(piece: T): number;
  /** A piece that stays as it is whatever the source does with its buffer next. */
  own(piece: T): T;
  encode(piece: T): Uint8Array;
  /** Reads the file from the start, `length` bytes. */
  decode(file: FileHandle, length: number): AsyncIterable<T>;
}

const byteCodec: Codec<Uint8Array> = {
  memoryLimit: 16 * 1024 * 1024,
  weight: (piece) => piece.byteLength,
  // The `slice` of a Buffer would share its memory.
  own: (piece) => new Uint8Array(piece),
  encode: (piece) => piece,
  async *decode(file, length) {
    for (let at = 0; at < length; ) {
      const piece = await readFully(file, at, Math.min(READ_BYTES, length - at));
      at += piece.byteLength;
      yield piece;
    }
  },
};

/** Pieces as length-prefixed structured clones: dates, big integers, bytes, NaN and −0 come back as they were. */
function cloneCodec<T>(
  memoryLimit: number,
  weight: (piece: T) => number,
  toClone: (piece: T) => unknown,
  fromClone: (clone: unknown) => T,
): Codec<T> {
  return {
    memoryLimit,
    weight,
    own: (piece) => piece,
    encode(piece) {
      const body = serialize(toClone(piece));
      const framed = Buffer.allocUnsafe(4 + body.length);
      framed.writeUInt32LE(body.length, 0);
      body.copy(framed, 4);
      return framed;
    },
    async *decode(file, length) {
      for (let at = 0; at < length; ) {
        const size = Buffer.from(await readFully(file, at, 4)).readUInt32LE(0);
        yield fromClone(deserialize(await readFully(file, at + 4, size)));
        at += 4 + size;
      }
    },
  };
}

/** A chunk of rows in the file, and which of its rows stayed in memory: places in the chunk, and in what was kept. */
interface ChunkClone {
  readonly rows: unknown[];
  readonly kept: readonly (readonly [place: number, index: number])[];
}

/** For one spool: rows that cannot be cloned stay with it. They are rejects, of which an append takes a limited number. */
function rowCodec(): Codec<readonly unknown[]> {
  const unclonable: unknown[] = [];
  const toClone = (chunk: readonly unknown[]): ChunkClone => {
    const kept: [number, number][] = [];
    const rows = chunk.map((row, place) => {
      const plain = plainRow(row);
      if (plain === undefined) kept.push([place, unclonable.push(row) - 1]);
      return plain;
    });
    return { rows, kept };
  };
  const fromClone = (clone: unknown): readonly unknown[] => {
    const { rows, kept } = clone as ChunkClone;
    for (const [place, index] of kept) rows[place] = unclonable[index];
    return rows;
  };
  return cloneCodec(20_000, (chunk) => chunk.length, toClone, fromClone);
}

const batchCodec = cloneCodec(
  16 * 1024 * 1024,
  batchBytes,
  (batch) => batch,
  (clone) => clone as RecordBatch,
);

async function readFully(file: FileHandle, position: number, length: number): Promise<Uint8Array> {
  const bytes = await readAt(file, position, length);
  if (bytes.length < length) throw new Error("the temporary copy of the input ended early");
  return bytes;
}

/** Keeps a stream of bytes so that it can be read again. */
export function spoolBytes(source: AsyncIterable<Uint8Array>, folder: string): Replayable<Uint8Array> {
  return new Spool(source, byteCodec, folder);
}

/** Keeps a stream of row chunks so that it can be read again. Rows kept in memory are the caller's own objects. */
export function spoolRows(source: AsyncIterable<readonly unknown[]>, folder: string): Replayable<readonly unknown[]> {
  return new Spool(source, rowCodec(), folder);
}

/** Keeps a stream of batches so that it can be read again. Batches kept in memory share the caller's buffers. */
export function spoolBatches(source: AsyncIterable<RecordBatch>, folder: string): Replayable<RecordBatch> {
  return new Spool(source, batchCodec, folder);
}

/** A stream that is opened once: whoever opens it ends it. */
export function unkept<T>(source: AsyncIterable<T>): Replayable<T> {
  const iterator = source[Symbol.asyncIterator]();
  return {
    open: () => ({ [Symbol.asyncIterator]: () => iterator }),
    async [Symbol.asyncDispose]() {
      await iterator.return?.();
    },
  };
}

/** Copies a one-shot stream as it is read, and gives the same pieces again. */
class Spool<T> implements Replayable<T> {
  readonly #source: AsyncIterator<T>;
  readonly #codec: Codec<T>;
  readonly #folder: string;
  readonly #memory: T[] = [];
  #memoryWeight = 0;
  #path: string | undefined;
  #file: FileHandle | undefined;
  #fileBytes = 0;
  #done = false;

  constructor(source: AsyncIterable<T>, codec: Codec<T>, folder: string) {
    this.#source = source[Symbol.asyncIterator]();
    this.#codec = codec;
    this.#folder = folder;
  }

  /** What was read before, then the rest of the source. One reader at a time. */
  async *open(): AsyncIterable<T> {
    yield* this.#memory;
    if (this.#file) yield* this.#codec.decode(this.#file, this.#fileBytes);
    while (!this.#done) {
      const next = await this.#source.next();
      if (next.done) {
        this.#done = true;
        return;
      }
      await this.#keep(next.value);
      yield next.value;
    }
  }

  async #keep(piece: T): Promise<void> {
    if (!this.#file && this.#memoryWeight < this.#codec.memoryLimit) {
      this.#memory.push(this.#codec.own(piece));
      this.#memoryWeight += this.#codec.weight(piece);
      return;
    }
    const bytes = this.#codec.encode(piece);
    try {
      await this.#write(bytes);
    } catch (error) {
      throw temporaryFailed(error, this.#folder);
    }
  }

  async #write(bytes: Uint8Array): Promise<void> {
    if (!this.#file) {
      await mkdir(this.#folder, { recursive: true });
      this.#path = join(this.#folder, `eider-spool-${process.pid}-${randomUUID()}`);
      this.#file = await open(this.#path, "wx+", 0o600);
      // Unlinked at once where the system allows it, so that a killed process leaves nothing behind.
      if (process.platform !== "win32") await rm(this.#path);
    }
    for (let written = 0; written < bytes.byteLength; ) {
      const left = bytes.byteLength - written;
      written += (await this.#file.write(bytes, written, left, this.#fileBytes + written)).bytesWritten;
    }
    this.#fileBytes += bytes.byteLength;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#done) await this.#source.return?.();
    await this.#file?.close();
    if (this.#path) await rm(this.#path, { force: true });
  }
}

/** The lake's disk may be another one: so the folder is named. */
function temporaryFailed(cause: unknown, folder: string): StoreError {
  const { code = "" } = cause as NodeJS.ErrnoException;
  const reason = code === "ENOSPC" || code === "EDQUOT" ? "its disk is full" : `it cannot be written (${code})`;
  return new StoreError(
    "temporary_file",
    `${folder}, where input is kept that may be read twice: ${reason}. Make room there, or set TMPDIR or cacheDir`,
    { subject: folder, cause },
  );
}

/**
 * Writes a stream to a temporary file, for engines that read only files; removed when disposed. What the source throws
 * passes unchanged.
 * @throws StoreError `temporary_file`
 */
export async function spoolToFile(
  source: AsyncIterable<Uint8Array>,
  folder: string,
): Promise<AsyncDisposable & { readonly path: string }> {
  const path = join(folder, `eider-spool-${process.pid}-${randomUUID()}`);
  const dispose = async (): Promise<void> => rm(path, { force: true });
  const orFail = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw temporaryFailed(error, folder);
    }
  };
  try {
    await orFail(() => mkdir(folder, { recursive: true }));
    await using file = await orFail(() => open(path, "wx", 0o600));
    for await (const chunk of source) await orFail(() => file.appendFile(chunk));
  } catch (error) {
    // What is left of it is not the reason.
    await dispose().catch(() => undefined);
    throw error;
  }
  return { path, [Symbol.asyncDispose]: dispose };
}
