/**
 * Step 1 and 2 of a commit: rows become Parquet data files under new keys. Nothing staged here is visible to anyone
 * until an entry names it; what is never named is an orphan, which `maintain` removes.
 */

import {
  batchBytes,
  concatBatches,
  type EncodedRowGroup,
  type PartitionValue,
  partitionKey,
  partitionPath,
  type RecordBatch,
  routePartitions,
  sliceBatch,
  sortedOrder,
  takeRows,
} from "@eider/core";
import { DataFileWriter, type StagedFile, type StageOptions } from "./data-file.js";

/** Rows of a row group. */
const ROW_GROUP_ROWS = 100_000;
/** Stored bytes after which a data file is closed and the next one begun. */
const TARGET_FILE_BYTES = 128 * 1024 * 1024;
/**
 * Memory for rows that wait for their file, over all partitions together. A file that is sorted, or one of several
 * partitions, holds at most this much: compaction merges such files later.
 */
const PENDING_BYTES = 64 * 1024 * 1024;

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
  #open: DataFileWriter | undefined;

  constructor(options: StageOptions) {
    this.#options = options;
  }

  /** Whether rows are stored in the order in which they come, so that {@link addRowGroup} may be used too. */
  get keepsOrder(): boolean {
    return this.#options.partitionBy.length === 0 && this.#options.orderBy.length === 0;
  }

  /** Adds rows that are encoded already, with the stage's schema. */
  async addRowGroup(group: EncodedRowGroup): Promise<void> {
    this.#options.signal?.throwIfAborted();
    this.#open ??= this.#newFile([], "");
    await this.#open.add(group);
    if (this.#open.bytes >= TARGET_FILE_BYTES) await this.#closeOpen();
  }

  async add(batch: RecordBatch): Promise<void> {
    this.#options.signal?.throwIfAborted();
    if (batch.length === 0) return;
    if (this.keepsOrder) {
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

  #newFile(values: readonly PartitionValue[], path: string): DataFileWriter {
    const name = `${this.#options.base}-${this.#options.newId()}.parquet`;
    const key = [this.#options.folder, "data", ...(path === "" ? [] : [path]), name].join("/");
    this.#keys.push(key);
    return new DataFileWriter(this.#options, key, values);
  }
}
