/**
 * A data file's footer and the chunks of some of its columns, fetched from a store by ranges, as a Parquet file of its own:
 *
 *     PAR1 | footer of the data file | chunks, in the order of that file | footer of this one
 *
 * Everything is checked: the footer by its SHA-256 in the catalog, each chunk by its digest in that footer. Columns that are
 * not there cannot be read, see `excerptFooter`.
 */

import { setMaxListeners } from "node:events";
import { type FileHandle, open } from "node:fs/promises";
import type { FileEnd, ListedFile } from "@eider/catalog";
import { excerptFooter, readStoredChunks, type StoredChunk, StoreError } from "@eider/core";
import { ChunkHash, readAt, sha256Hex } from "@eider/core/node";
import {
  type Excerpt,
  type ExcerptFile,
  type ExcerptPlan,
  type ObjectStore,
  readBody,
  type WholePlan,
} from "@eider/storage";
import { columnSetName, parseColumnSet } from "./column-set.js";
import { damagedFile } from "./file-fault.js";

export interface ColumnExcerptOptions {
  readonly store: ObjectStore;
  /** Its parts can be checked. */
  readonly file: ListedFile & { readonly footer: FileEnd };
  /** Field ids of the columns that are needed; some may not be in the file. */
  readonly columns: ReadonlySet<number>;
  /** Runs a request when it is its turn. */
  readonly limit: <T>(request: () => Promise<T>) => Promise<T>;
}

/** A file that is at most so many times what has to be fetched of it is fetched as a whole. */
const WHOLE_RATIO = 1.2;
/** What lies between two chunks is fetched with them where it is at most this part of the second one. */
const GAP_RATIO = 0.1;
/** Bytes of one request, unless a single chunk has more. */
const REQUEST_BYTES = 8 * 1024 ** 2;
/** The cache takes names of so many characters; so many of each tell its footer from another one. */
const NAME_LENGTH = 90;
const FOOTER_NAME_LENGTH = 16;
/** Bytes that are copied at once. */
const COPY_BYTES = 1024 ** 2;
const MAGIC = Buffer.from("PAR1");

/** An excerpt in the cache, with the columns that it has. */
interface OldExcerpt extends ExcerptFile {
  readonly columns: ReadonlySet<number>;
}

/** What an excerpt is to be: its chunks with their places in it, its footer at the end. */
interface Layout {
  readonly places: ReadonlyMap<StoredChunk, number>;
  readonly footer: Uint8Array;
  readonly bytes: number;
}

/** Chunks of a data file that are fetched by one request. */
interface Run {
  readonly start: number;
  readonly end: number;
  readonly chunks: readonly StoredChunk[];
}

type Put = (bytes: Uint8Array, at: number) => Promise<void>;

export class ColumnExcerpt implements Excerpt {
  readonly #options: ColumnExcerptOptions;
  /** Of the names of all excerpts of the file. */
  readonly #prefix: string;

  constructor(options: ColumnExcerptOptions) {
    this.#options = options;
    this.#prefix = `${options.file.footer.sha256.slice(0, FOOTER_NAME_LENGTH)}-`;
  }

  suits(name: string): boolean {
    const there = this.#columnsOf(name);
    return there !== undefined && [...this.#options.columns].every((id) => there.has(id));
  }

  /** The columns that are needed, and those that are there already, in one file. */
  async plan(there: readonly ExcerptFile[], signal: AbortSignal | undefined): Promise<ExcerptPlan | WholePlan> {
    const { file, columns: needed } = this.#options;
    const old = this.#largest(there);
    const columns = new Set([...needed, ...(old?.columns ?? [])]);
    const name = `${this.#prefix}${columnSetName(columns)}`;
    if (name.length > NAME_LENGTH) return { kind: "whole", fetchedBytes: 0 };
    const original = old ? await readOriginalFooter(old, file.footer) : await this.#fetchFooter(signal);
    const chunks = readStoredChunks(original);
    const missing = chunks.filter(({ fieldId }) => columns.has(fieldId) && !old?.columns.has(fieldId));
    const footerBytes = old ? 0 : original.length;
    const fetched = missing.reduce((sum, { bytes }) => sum + bytes, footerBytes);
    if (fetched * WHOLE_RATIO > file.bytes || missing.some(({ digest }) => digest === undefined)) {
      return { kind: "whole", fetchedBytes: footerBytes };
    }
    const layout = layoutOf(original, chunks, columns);
    return {
      kind: "excerpt",
      name,
      bytes: layout.bytes,
      replaces: there.map((each) => each.name),
      write: async (put, writing) => {
        await put(MAGIC, 0);
        await put(original, MAGIC.length);
        await put(layout.footer, layout.bytes - layout.footer.length);
        if (old) await copyChunks(old.path, layoutOf(original, chunks, old.columns), layout, put, writing);
        const runs = runsOf(missing);
        await this.#fetchAll(runs, layout, put, writing);
        return runs.reduce((sum, { start, end }) => sum + end - start, footerBytes);
      },
    };
  }

  #columnsOf(name: string): ReadonlySet<number> | undefined {
    return name.startsWith(this.#prefix) ? parseColumnSet(name.slice(this.#prefix.length)) : undefined;
  }

  #largest(there: readonly ExcerptFile[]): OldExcerpt | undefined {
    let largest: OldExcerpt | undefined;
    for (const { name, path } of there) {
      const columns = this.#columnsOf(name);
      if (columns && columns.size > (largest?.columns.size ?? -1)) largest = { name, path, columns };
    }
    return largest;
  }

  async #fetchFooter(signal: AbortSignal | undefined): Promise<Uint8Array> {
    const { store, file, limit } = this.#options;
    const { key, bytes, footer } = file;
    const range = { start: bytes - footer.bytes, end: bytes };
    const { size, body } = await limit(() => store.get(key, { range, ...(signal && { signal }) }));
    const read = await readBody(body, signal && { signal });
    if (size !== bytes) throw damagedFile(key, `${size} bytes instead of ${bytes}`);
    if (sha256Hex(read) !== footer.sha256) throw damagedFile(key, "other bytes in its footer");
    return read;
  }

  /** Where one request fails, the others are ended. */
  async #fetchAll(runs: readonly Run[], layout: Layout, put: Put, signal: AbortSignal): Promise<void> {
    const failed = new AbortController();
    const each = AbortSignal.any([signal, failed.signal]);
    setMaxListeners(runs.length + 1, each);
    const requests = runs.map((run) =>
      this.#options.limit(() => {
        each.throwIfAborted();
        return this.#fetchRun(run, layout, put, each);
      }),
    );
    try {
      await Promise.all(requests);
    } catch (error) {
      failed.abort(error);
      await Promise.allSettled(requests);
      throw error;
    }
  }

  async #fetchRun({ start, end, chunks }: Run, { places }: Layout, put: Put, signal: AbortSignal): Promise<void> {
    const { store, file } = this.#options;
    const { size, body } = await store.get(file.key, { range: { start, end }, signal });
    let at = start;
    let next = 0;
    let hash = new ChunkHash();
    for await (const bytes of body) {
      if (size !== file.bytes) break;
      for (let from = 0; from < bytes.length && next < chunks.length; ) {
        const chunk = chunks[next]!;
        const skipped = Math.min(Math.max(0, chunk.offset - at), bytes.length - from);
        from += skipped;
        at += skipped;
        const part = bytes.subarray(from, from + chunk.offset + chunk.bytes - at);
        if (at < chunk.offset) continue;
        hash.update(part);
        await put(part, places.get(chunk)! + at - chunk.offset);
        from += part.length;
        at += part.length;
        if (at < chunk.offset + chunk.bytes) continue;
        if (hash.digest() !== chunk.digest) throw damagedFile(file.key, `other bytes from ${chunk.offset} on`);
        hash = new ChunkHash();
        next++;
      }
    }
    if (size !== file.bytes) throw damagedFile(file.key, `${size} bytes instead of ${file.bytes}`);
    if (next < chunks.length) {
      const message = `${file.key} ended early. Read it again.`;
      throw new StoreError("short_read", message, { subject: file.key, retryable: true });
    }
  }
}

/** The footer that an excerpt has of its data file. */
async function readOriginalFooter({ path }: OldExcerpt, footer: FileEnd): Promise<Uint8Array> {
  const handle = await open(path, "r");
  try {
    return await readFully(handle, MAGIC.length, footer.bytes);
  } finally {
    await handle.close();
  }
}

function layoutOf(original: Uint8Array, chunks: readonly StoredChunk[], columns: ReadonlySet<number>): Layout {
  let end = MAGIC.length + original.length;
  const places = new Map<StoredChunk, number>();
  for (const chunk of chunks) {
    if (!columns.has(chunk.fieldId)) continue;
    places.set(chunk, end);
    end += chunk.bytes;
  }
  const offsets = chunks.map((chunk) => places.get(chunk));
  const footer = excerptFooter(original, offsets);
  return { places, footer, bytes: end + footer.length };
}

/** Copies what one excerpt has to the places of another. The cache has checked its bytes. */
async function copyChunks(path: string, from: Layout, to: Layout, put: Put, signal: AbortSignal): Promise<void> {
  const handle = await open(path, "r");
  try {
    for (const [chunk, place] of from.places) {
      const { bytes } = chunk;
      const target = to.places.get(chunk)!;
      for (let done = 0; done < bytes; done += COPY_BYTES) {
        signal.throwIfAborted();
        await put(await readFully(handle, place + done, Math.min(COPY_BYTES, bytes - done)), target + done);
      }
    }
  } finally {
    await handle.close();
  }
}

async function readFully(handle: FileHandle, start: number, length: number): Promise<Uint8Array> {
  const bytes = await readAt(handle, start, length);
  if (bytes.length === length) return bytes;
  throw new StoreError("cache_failed", "a cached file was cut: try again", { retryable: true });
}

/** Requests for chunks, so that little is read in vain. */
function runsOf(chunks: readonly StoredChunk[]): Run[] {
  const runs: { start: number; end: number; chunks: StoredChunk[] }[] = [];
  for (const chunk of chunks.toSorted((a, b) => a.offset - b.offset)) {
    const { offset, bytes } = chunk;
    const last = runs.at(-1);
    if (last && offset - last.end <= GAP_RATIO * bytes && offset + bytes - last.start <= REQUEST_BYTES) {
      last.chunks.push(chunk);
      last.end = offset + bytes;
    } else runs.push({ start: offset, end: offset + bytes, chunks: [chunk] });
  }
  return runs;
}
