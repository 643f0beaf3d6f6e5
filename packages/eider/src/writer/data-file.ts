/** One Parquet object on its way into the store. */

import { createHash } from "node:crypto";
import type { FileEnd } from "@eider/catalog";
import {
  AlreadyExistsError,
  type ColumnStatistics,
  type EncodedRowGroup,
  ParquetEncoder,
  type ParquetOptions,
  type Schema,
} from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { Pipe } from "./pipe.js";

/** Files up to this size are put in one piece; larger ones are streamed. */
const WHOLE_PUT_BYTES = 8 * 1024 * 1024;

/** Bytes of page index and footer: of each file, of each column chunk without its bounds, of each page without them. */
const FOOTER_BYTES = 1024;
const CHUNK_FOOTER_BYTES = 512;
const PAGE_FOOTER_BYTES = 64;

export interface DataFileOptions {
  readonly store: ObjectStore;
  readonly key: string;
  /** What the file holds: ids assigned, no unknown fields. */
  readonly schema: Schema;
  readonly parquet: ParquetOptions;
  /** Nobody else has ever had the key, so nothing can be there. */
  readonly keyIsNew: boolean;
  readonly signal: AbortSignal | undefined;
}

/** A file that is in the store, whole. */
export interface StoredFile {
  readonly key: string;
  readonly bytes: number;
  readonly rows: number;
  /** Hex SHA-256 of the object. */
  readonly sha256: string;
  readonly columns: readonly ColumnStatistics[];
  /** Of a file that has digests of its parts. */
  readonly footer?: FileEnd;
}

/** One data file being encoded: small ones are put whole at the end, large ones stream while they grow. */
export class DataFileWriter {
  readonly #options: DataFileOptions;
  readonly #encoder: ParquetEncoder;
  readonly #hash = createHash("sha256");
  readonly #abort = new AbortController();
  #buffered: Uint8Array[] = [];
  #bytes = 0;
  /** What page index and footer may come to. */
  #footerBytes: number;
  #closed: StoredFile | undefined;
  /** `pipe` is undefined where the object is there already: then nothing is sent. */
  #upload: { readonly pipe: Pipe<Uint8Array> | undefined; readonly done: Promise<unknown> } | undefined;

  /** After `parquetReady`. */
  constructor(options: DataFileOptions) {
    this.#options = options;
    this.#encoder = new ParquetEncoder(options.schema, options.parquet);
    const { keyValues } = options.parquet;
    // As JSON both are longer than in Thrift, whose text is UTF-8.
    this.#footerBytes = FOOTER_BYTES + 3 * JSON.stringify([options.schema, keyValues]).length;
  }

  /** Of the file so far, without its footer. */
  get bytes(): number {
    return this.#bytes;
  }

  get rows(): number {
    return this.#encoder.rows;
  }

  /** At least as many bytes as the whole file would have with this row group as its last. */
  bytesWith(group: EncodedRowGroup): number {
    return this.#bytes + this.#footerBytes + this.#footerBytesOf(group) + sizeOf(group);
  }

  async add(group: EncodedRowGroup): Promise<void> {
    this.#footerBytes += this.#footerBytesOf(group);
    await this.#take(this.#encoder.addRowGroup(group));
  }

  /**
   * Ends the file, which is durable in the store then.
   * @throws AlreadyExistsError there is an object of that key, perhaps this very one: see {@link closed}
   */
  async close(): Promise<StoredFile> {
    const end = this.#encoder.finish();
    const footer = end.at(-1)!;
    await this.#take(end);
    const { store, key, parquet } = this.#options;
    const file: StoredFile = {
      key,
      bytes: this.#bytes,
      rows: this.#encoder.rows,
      sha256: this.#hash.digest("hex"),
      columns: this.#encoder.statistics(),
      ...(parquet.chunkDigest && {
        footer: { bytes: footer.length, sha256: createHash("sha256").update(footer).digest("hex") },
      }),
    };
    this.#closed = file;
    if (this.#upload) {
      this.#upload.pipe?.end();
      await this.#upload.done;
    } else {
      await store.put(key, Buffer.concat(this.#buffered), { ifAbsent: true, signal: this.#signal() });
    }
    this.#buffered = [];
    return file;
  }

  /** What {@link close} was to put, also when it failed. */
  get closed(): StoredFile | undefined {
    return this.#closed;
  }

  /** Ends when nothing of it is under way any more. */
  async abort(reason: unknown): Promise<void> {
    this.#abort.abort(reason);
    this.#upload?.pipe?.fail(reason);
    this.#buffered = [];
    await this.#upload?.done.catch(() => {});
  }

  #footerBytesOf(group: EncodedRowGroup): number {
    // A minimum and a maximum each.
    const bounds = 2 * (this.#options.parquet.statisticsTruncateBytes ?? 64) + 32;
    return group.chunks.reduce(
      (sum, { pages }) => sum + CHUNK_FOOTER_BYTES + bounds + pages.length * (PAGE_FOOTER_BYTES + bounds),
      0,
    );
  }

  async #take(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      this.#hash.update(chunk);
      this.#bytes += chunk.byteLength;
    }
    if (!this.#upload) {
      this.#buffered.push(...chunks);
      if (this.#bytes <= WHOLE_PUT_BYTES) return;
      this.#upload = await this.#begin();
      chunks = this.#buffered;
      this.#buffered = [];
    }
    for (const chunk of chunks) await this.#upload.pipe?.push(chunk);
  }

  async #begin(): Promise<{ pipe: Pipe<Uint8Array> | undefined; done: Promise<unknown> }> {
    const { store, key, keyIsNew } = this.#options;
    const signal = this.#signal();
    const { maxConditionalBytes, maxObjectBytes } = store.capabilities;
    // Some stores take a condition with short streams only: then a look has to do.
    const ifAbsent = maxConditionalBytes >= maxObjectBytes;
    if (!ifAbsent && !keyIsNew && (await store.head(key, { signal })) !== undefined) {
      const done = Promise.reject(
        new AlreadyExistsError("object_exists", `${key} exists and stays as it is.`, { subject: key }),
      );
      done.catch(() => {});
      return { pipe: undefined, done };
    }
    const pipe = new Pipe<Uint8Array>();
    const done = store.put(key, pipe, { ifAbsent, signal });
    // Ends a writer that waits for room when the put has failed; the error itself comes out of `done`.
    done.catch((error: unknown) => pipe.fail(error));
    return { pipe, done };
  }

  #signal(): AbortSignal {
    const { signal } = this.#options;
    return signal ? AbortSignal.any([signal, this.#abort.signal]) : this.#abort.signal;
  }
}

function sizeOf(group: EncodedRowGroup): number {
  return group.chunks.reduce((sum, chunk) => sum + chunk.compressedBytes, 0);
}
