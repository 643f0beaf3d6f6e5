/**
 * Step 1 and 2 of a commit: rows become Parquet data files under new keys. Nothing staged here is visible to anyone
 * until an entry names it; what is never named is an orphan, which `maintain` removes.
 */

import { createHash } from "node:crypto";
import type { DataFile } from "@eider/catalog";
import {
  batchBytes,
  concatBatches,
  type OrderBy,
  ParquetEncoder,
  type PartitionSpec,
  type PartitionValue,
  parquetReady,
  partitionKey,
  partitionPath,
  type RecordBatch,
  routePartitions,
  type Schema,
  sliceBatch,
  sortedOrder,
  takeRows,
} from "@eider/core";
import type { ObjectStore } from "@eider/storage";

/** Rows of a row group. */
const ROW_GROUP_ROWS = 100_000;
/** Stored bytes after which a data file is closed and the next one begun. */
const TARGET_FILE_BYTES = 128 * 1024 * 1024;
/** Files up to this size are put in one piece; larger ones are streamed. */
const WHOLE_PUT_BYTES = 8 * 1024 * 1024;
/**
 * Memory for rows that wait for their file, over all partitions together. A file that is sorted, or one of several
 * partitions, holds at most this much: compaction merges such files later.
 */
const PENDING_BYTES = 64 * 1024 * 1024;

export interface StageOptions {
  readonly store: ObjectStore;
  /** The table's folder. */
  readonly folder: string;
  /** Snapshot when staging began. */
  readonly base: number;
  /** What the files hold: ids assigned, no unknown fields. */
  readonly schema: Schema;
  readonly partitionBy: readonly PartitionSpec[];
  readonly orderBy: OrderBy;
  /** Key-values of the Parquet footer. */
  readonly keyValues: Readonly<Record<string, string>>;
  /** A new unique file id. */
  readonly newId: () => string;
  readonly signal: AbortSignal | undefined;
}

/** A data file before the commit decides which schema version it belongs to. */
export type StagedFile = Omit<DataFile, "schemaVersion">;

interface Pending {
  readonly values: readonly PartitionValue[];
  readonly path: string;
  batches: RecordBatch[];
  bytes: number;
}

/** Stages the data files of one batch. After an error, or when the batch is not committed, `discard` deletes them. */
export class Stage {
  readonly #options: StageOptions;
  readonly #files: StagedFile[] = [];
  /** Every key that may exist in the store, also of puts that failed. */
  readonly #keys: string[] = [];
  readonly #pending = new Map<string, Pending>();
  #pendingBytes = 0;
  #open: FileInProgress | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  async add(batch: RecordBatch): Promise<void> {
    this.#options.signal?.throwIfAborted();
    if (batch.length === 0) return;
    if (this.#options.partitionBy.length === 0 && this.#options.orderBy.length === 0) {
      await this.#stream(batch);
      return;
    }
    for (const { values, rows } of routePartitions(batch, this.#options.partitionBy)) {
      const part = rows.length === batch.length ? batch : takeRows(batch, rows);
      const path = partitionPath(this.#options.partitionBy, values);
      const key = partitionKey(values);
      let pending = this.#pending.get(key);
      if (!pending) {
        pending = { values, path, batches: [], bytes: 0 };
        this.#pending.set(key, pending);
      }
      const bytes = batchBytes(part);
      pending.batches.push(part);
      pending.bytes += bytes;
      this.#pendingBytes += bytes;
    }
    while (this.#pendingBytes > PENDING_BYTES) await this.#flushLargest();
  }

  /** Closes what is open. The files are durable in the store when this returns. */
  async finish(): Promise<readonly StagedFile[]> {
    await this.#closeOpen();
    for (const [key, pending] of [...this.#pending]) {
      await this.#flush(key, pending);
    }
    return this.#files;
  }

  /** Deletes what was staged. Only for a batch that is certainly not committed. */
  async discard(): Promise<void> {
    await this.#open?.abort();
    this.#pending.clear();
    if (this.#keys.length > 0) await this.#options.store.delete(this.#keys);
  }

  async #stream(batch: RecordBatch): Promise<void> {
    this.#open ??= this.#newFile([], "");
    for (let start = 0; start < batch.length; start += ROW_GROUP_ROWS) {
      const end = Math.min(start + ROW_GROUP_ROWS, batch.length);
      await this.#open.write(start === 0 && end === batch.length ? batch : sliceBatch(batch, start, end));
    }
    if (this.#open.bytes >= TARGET_FILE_BYTES) await this.#closeOpen();
  }

  async #closeOpen(): Promise<void> {
    if (!this.#open) return;
    this.#files.push(await this.#open.close());
    this.#open = undefined;
  }

  async #flushLargest(): Promise<void> {
    let largest: [string, Pending] | undefined;
    for (const entry of this.#pending) if (!largest || entry[1].bytes > largest[1].bytes) largest = entry;
    if (largest) await this.#flush(...largest);
  }

  async #flush(key: string, pending: Pending): Promise<void> {
    this.#pending.delete(key);
    this.#pendingBytes -= pending.bytes;
    this.#options.signal?.throwIfAborted();
    let rows = concatBatches(pending.batches);
    pending.batches = [];
    const order = sortedOrder(rows, this.#options.orderBy);
    if (order) rows = takeRows(rows, order);
    this.#open = this.#newFile(pending.values, pending.path);
    await this.#stream(rows);
    await this.#closeOpen();
  }

  #newFile(values: readonly PartitionValue[], path: string): FileInProgress {
    const name = `${this.#options.base}-${this.#options.newId()}.parquet`;
    const key = [this.#options.folder, "data", ...(path === "" ? [] : [path]), name].join("/");
    this.#keys.push(key);
    return new FileInProgress(this.#options, key, values);
  }
}

/** One data file being encoded: small ones are put whole at the end, large ones stream while they grow. */
class FileInProgress {
  readonly #options: StageOptions;
  readonly #key: string;
  readonly #partition: readonly PartitionValue[];
  readonly #hash = createHash("sha256");
  readonly #abort = new AbortController();
  #encoder: ParquetEncoder | undefined;
  #buffered: Uint8Array[] = [];
  #bytes = 0;
  #upload: { readonly pipe: Pipe; readonly done: Promise<unknown> } | undefined;

  constructor(options: StageOptions, key: string, partition: readonly PartitionValue[]) {
    this.#options = options;
    this.#key = key;
    this.#partition = partition;
  }

  get bytes(): number {
    return this.#bytes;
  }

  async write(rows: RecordBatch): Promise<void> {
    this.#encoder ??= await this.#begin();
    await this.#take(this.#encoder.writeRowGroup(rows));
  }

  async close(): Promise<StagedFile> {
    const encoder = this.#encoder ?? (await this.#begin());
    await this.#take(encoder.finish());
    if (this.#upload) {
      await this.#upload.pipe.end();
      await this.#upload.done;
    } else {
      await this.#options.store.put(this.#key, Buffer.concat(this.#buffered), { ifAbsent: true, ...this.#signal() });
    }
    return {
      key: this.#key,
      bytes: this.#bytes,
      rows: encoder.rows,
      sha256: this.#hash.digest("hex"),
      base: this.#options.base,
      partition: this.#partition,
      columns: encoder.statistics(),
    };
  }

  async abort(): Promise<void> {
    const reason = new Error("the batch was given up");
    this.#abort.abort(reason);
    this.#upload?.pipe.fail(reason);
    this.#buffered = [];
    await this.#upload?.done.catch(() => {});
  }

  async #begin(): Promise<ParquetEncoder> {
    await parquetReady();
    return new ParquetEncoder(this.#options.schema, { keyValues: this.#options.keyValues });
  }

  async #take(chunks: readonly Uint8Array[]): Promise<void> {
    for (const chunk of chunks) {
      this.#hash.update(chunk);
      this.#bytes += chunk.byteLength;
    }
    if (!this.#upload) {
      this.#buffered.push(...chunks);
      if (this.#bytes <= WHOLE_PUT_BYTES) return;
      const pipe = new Pipe();
      const done = this.#options.store.put(this.#key, pipe, { ifAbsent: true, ...this.#signal() });
      // Ends a writer that waits for room when the put has failed; the error itself comes out of `done`.
      done.catch((error: unknown) => pipe.fail(error));
      this.#upload = { pipe, done };
      chunks = this.#buffered;
      this.#buffered = [];
    }
    for (const chunk of chunks) await this.#upload.pipe.push(chunk);
  }

  #signal(): { signal: AbortSignal } {
    const { signal } = this.#options;
    return { signal: signal ? AbortSignal.any([signal, this.#abort.signal]) : this.#abort.signal };
  }
}

/** Hands chunks from a writer to one reader, one at a time: the writer waits until the reader has taken the chunk. */
class Pipe implements AsyncIterable<Uint8Array> {
  #chunk: Uint8Array | undefined;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  async push(chunk: Uint8Array): Promise<void> {
    this.#chunk = chunk;
    this.#wakeReader?.();
    while (this.#chunk !== undefined && !this.#failure) await new Promise<void>((wake) => (this.#wakeWriter = wake));
    if (this.#failure) throw this.#failure.error;
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#wakeReader?.();
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.#wakeWriter?.();
    this.#wakeReader?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      if (this.#chunk !== undefined) {
        const chunk = this.#chunk;
        this.#chunk = undefined;
        this.#wakeWriter?.();
        yield chunk;
      } else if (this.#ended) return;
      else await new Promise<void>((wake) => (this.#wakeReader = wake));
    }
  }
}
