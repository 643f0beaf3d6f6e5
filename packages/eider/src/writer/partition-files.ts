/**
 * Rows on their way into the files of their partitions. Memory is bounded by what may wait and by the files that may be
 * open, never by the number of rows or partitions:
 *
 * - rows of a partition wait in columns until they fill a row group, which goes into the partition's open file;
 * - where the rows that wait take too much memory, those of the largest partitions go first, as smaller row groups;
 * - where too many files are open, the one least recently written to is closed first.
 */

import {
  batchBytes,
  concatBatches,
  type EncodedRowGroup,
  LimitError,
  type OrderBy,
  ParquetEncoder,
  type PartitionSpec,
  type PartitionValue,
  parquetReady,
  partitionKey,
  type RecordBatch,
  routePartitions,
  type Schema,
  sliceBatch,
  sortedOrder,
  takeRows,
} from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { DataFileWriter, type StoredFile } from "./data-file.js";
import type { FileLayout } from "./layout.js";

/** Files that are ended at the same time. */
const MAX_CLOSING = 4;
/** Memory of the objects around a small column; without it, thousands of partitions of few rows would count as nothing. */
const COLUMN_OVERHEAD_BYTES = 512;
/** Batches of a partition that wait before they are joined into one. */
const MAX_WAITING_BATCHES = 8;

export interface PartitionFilesOptions {
  readonly store: ObjectStore;
  /** What the files hold: ids assigned, no unknown fields. */
  readonly schema: Schema;
  readonly partitionBy: readonly PartitionSpec[];
  readonly orderBy: OrderBy;
  readonly layout: FileLayout;
  /** The key of a partition's next file; each call gives another. */
  readonly newKey: (values: readonly PartitionValue[]) => string;
  /** Nobody else has ever had such keys. */
  readonly keysAreNew: boolean;
  /** A file is in the store, whole. */
  readonly onFile: (file: StoredFile, values: readonly PartitionValue[]) => void | Promise<void>;
  /** The put of a file failed. Answers whether the file is in the store all the same: its answer was lost, or an earlier try's. */
  readonly isStored: (file: StoredFile, error: unknown) => Promise<boolean>;
  readonly signal: AbortSignal | undefined;
}

/** `first` is the number of the first row among all rows that were added, from 0; or less. */
interface Waiting {
  readonly batch: RecordBatch;
  readonly first: number;
}

interface OpenFile {
  readonly writer: DataFileWriter;
  readonly values: readonly PartitionValue[];
  first: number;
  /** When its first row came. Milliseconds of `performance.now`. */
  readonly since: number;
}

interface Partition {
  readonly id: string;
  readonly values: readonly PartitionValue[];
  waiting: Waiting[];
  rows: number;
  bytes: number;
  /** When the first row that waits came. */
  since: number;
  /** Rows being encoded: neither waiting nor in a file. */
  moving: number | undefined;
  file: OpenFile | undefined;
}

/** After an error only {@link abort} may follow. Calls must not overlap. */
export class PartitionFiles {
  readonly #options: PartitionFilesOptions;
  readonly #layout: FileLayout;
  readonly #maxObjectBytes: number;
  readonly #partitions = new Map<string, Partition>();
  /** Partitions with a file, the least recently written to first. */
  readonly #open = new Set<Partition>();
  readonly #closing = new Map<OpenFile, Promise<void>>();
  #encoder: ParquetEncoder | undefined;
  #waitingBytes = 0;
  #rows = 0;
  /** The first of the rows that were given up, or whose file failed. */
  #firstLost = Number.POSITIVE_INFINITY;
  #failure: { readonly error: unknown } | undefined;

  constructor(options: PartitionFilesOptions) {
    this.#options = options;
    this.#layout = options.layout;
    this.#maxObjectBytes = options.store.capabilities.maxObjectBytes;
  }

  /** Rows added so far. */
  get rows(): number {
    return this.#rows;
  }

  /** As many rows from the front as are all in files that are in the store, whole. */
  get acknowledgedRows(): number {
    let least = this.#firstNotClosing();
    for (const { first } of this.#closing.keys()) least = Math.min(least, first);
    return least;
  }

  /** Files that are open or being ended. */
  get openFiles(): number {
    return this.#open.size + this.#closing.size;
  }

  /**
   * `eager` writes the batch as row groups of its own instead of waiting for more; only without partitions and order.
   * `since` is when its first row came, by default now.
   */
  async add(batch: RecordBatch, options: { readonly eager?: boolean; readonly since?: number } = {}): Promise<void> {
    const { eager = false, since = performance.now() } = options;
    this.#check();
    if (batch.length === 0) return;
    const ready = new Set<Partition>();
    const routes = this.#routes(batch);
    const start = this.#rows;
    this.#rows += batch.length;
    // All rows wait before any is written, so that none is overlooked by `acknowledgedRows`.
    for (const { values, rows } of routes) {
      const partition = this.#partition(values);
      const part = rows === undefined ? batch : takeRows(batch, rows);
      this.#hold(partition, part, start + (rows?.[0] ?? 0), since);
      if (eager || this.#isFull(partition)) ready.add(partition);
    }
    for (const partition of ready) {
      if (this.#layout.wholeFiles) this.#sort(partition);
      while (partition.rows > 0 && (eager || this.#isFull(partition))) await this.#writeRowGroup(partition);
    }
    if (this.#waitingBytes > this.#layout.bufferBytes) await this.#relieve();
  }

  /** Adds rows that are encoded already, with the same schema and options; only without partitions and order. */
  async addRowGroup(group: EncodedRowGroup): Promise<void> {
    this.#check();
    if (group.rows === 0) return;
    const partition = this.#partition([]);
    partition.moving = this.#rows;
    this.#rows += group.rows;
    await this.#put(partition, group);
  }

  /** Ends all files: every row that was added is durable when this returns. */
  async flush(): Promise<void> {
    this.#check();
    for (const partition of [...this.#partitions.values()]) await this.#endPartition(partition);
    while (this.#closing.size > 0) await this.#oneClosed();
    this.#check();
  }

  /** Ends the files whose first row came `maxAgeMs` ago. */
  async closeDue(): Promise<void> {
    this.#check();
    const due = performance.now() - this.#layout.maxAgeMs;
    for (const partition of [...this.#partitions.values()]) {
      if (sinceOf(partition) <= due) await this.#endPartition(partition);
    }
  }

  /** When {@link closeDue} has something to do, in milliseconds from now; undefined if nothing waits. */
  get dueInMs(): number | undefined {
    let oldest = Number.POSITIVE_INFINITY;
    for (const partition of this.#partitions.values()) oldest = Math.min(oldest, sinceOf(partition));
    if (oldest === Number.POSITIVE_INFINITY || this.#layout.maxAgeMs === Number.POSITIVE_INFINITY) return undefined;
    return Math.max(0, oldest + this.#layout.maxAgeMs - performance.now());
  }

  /** Gives up what is not in the store yet. Ends when nothing is under way any more. */
  async abort(reason: unknown): Promise<void> {
    this.#failure ??= { error: reason };
    const files = [...this.#closing.keys()];
    for (const { file } of this.#open) if (file) files.push(file);
    this.#firstLost = this.#firstNotClosing();
    this.#open.clear();
    this.#partitions.clear();
    this.#waitingBytes = 0;
    await Promise.all([...files.map(({ writer }) => writer.abort(reason)), ...this.#closing.values()]);
  }

  /** The first row that waits, moves, is in an open file or lost; the number of rows if there is none. */
  #firstNotClosing(): number {
    let least = Math.min(this.#rows, this.#firstLost);
    for (const { waiting, moving, file } of this.#partitions.values()) {
      least = Math.min(least, waiting[0]?.first ?? least, moving ?? least, file?.first ?? least);
    }
    return least;
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error;
    this.#options.signal?.throwIfAborted();
  }

  /** `rows` is undefined for all of them. */
  #routes(batch: RecordBatch): { values: readonly PartitionValue[]; rows: Uint32Array | undefined }[] {
    const { partitionBy } = this.#options;
    if (partitionBy.length === 0) return [{ values: [], rows: undefined }];
    return routePartitions(batch, partitionBy).map(({ values, rows }) => ({
      values,
      rows: rows.length === batch.length ? undefined : rows,
    }));
  }

  #partition(values: readonly PartitionValue[]): Partition {
    const id = partitionKey(values);
    let partition = this.#partitions.get(id);
    if (!partition) {
      partition = { id, values, waiting: [], rows: 0, bytes: 0, since: 0, moving: undefined, file: undefined };
      this.#partitions.set(id, partition);
    }
    return partition;
  }

  #hold(partition: Partition, batch: RecordBatch, first: number, since: number): void {
    if (partition.rows === 0) partition.since = since;
    partition.waiting.push({ batch, first });
    partition.rows += batch.length;
    this.#count(partition, heldBytes(batch));
    if (partition.waiting.length > MAX_WAITING_BATCHES && partition.bytes < COLUMN_OVERHEAD_BYTES * 1024) {
      this.#join(partition);
    }
  }

  /** Many small batches take more memory than their rows do. */
  #join(partition: Partition): void {
    const batch = concatBatches(partition.waiting.map((waiting) => waiting.batch));
    partition.waiting = [{ batch, first: partition.waiting[0]!.first }];
    this.#count(partition, heldBytes(batch) - partition.bytes);
  }

  #count(partition: Partition, bytes: number): void {
    partition.bytes += bytes;
    this.#waitingBytes += bytes;
  }

  #isFull({ rows, bytes, file }: Partition): boolean {
    const { wholeFiles, rowGroupRows, rowGroupBytes, maxFileRows } = this.#layout;
    if (rows === 0) return false;
    if (rows + (file?.writer.rows ?? 0) >= maxFileRows) return true;
    return !wholeFiles && (rows >= rowGroupRows || bytes >= rowGroupBytes);
  }

  /** Makes room by writing what waits in the largest partitions. */
  async #relieve(): Promise<void> {
    const { bufferBytes } = this.#layout;
    const byBytes = [...this.#partitions.values()].sort((a, b) => b.bytes - a.bytes);
    for (const partition of byBytes) {
      // A little more than has to be: looking for the largest costs time too.
      if (this.#waitingBytes <= bufferBytes * (7 / 8)) return;
      if (this.#layout.wholeFiles) await this.#endPartition(partition);
      else while (partition.rows > 0) await this.#writeRowGroup(partition);
    }
  }

  async #endPartition(partition: Partition): Promise<void> {
    this.#sort(partition);
    while (partition.rows > 0) await this.#writeRowGroup(partition);
    if (partition.file) await this.#end(partition);
  }

  #sort(partition: Partition): void {
    if (this.#options.orderBy.length === 0 || partition.rows === 0) return;
    if (partition.waiting.length > 1) this.#join(partition);
    const { batch, first } = partition.waiting[0]!;
    const order = sortedOrder(batch, this.#options.orderBy);
    if (order) partition.waiting = [{ batch: takeRows(batch, order), first }];
  }

  /** Encodes a row group of what waits, of all that waits if that is less. */
  async #writeRowGroup(partition: Partition): Promise<void> {
    const { rowGroupRows, rowGroupBytes, maxFileRows } = this.#layout;
    const { rows, bytes, file } = partition;
    const room = maxFileRows - (file?.writer.rows ?? 0);
    const fit = Math.max(1, Math.floor(rowGroupBytes / (bytes / rows)));
    partition.moving = partition.waiting[0]!.first;
    const batch = this.#take(partition, Math.min(rows, rowGroupRows, room, fit));
    if (!this.#encoder) {
      await parquetReady();
      this.#encoder = new ParquetEncoder(this.#options.schema, this.#layout.parquet);
    }
    await this.#put(partition, this.#encoder.encodeRowGroup(batch));
  }

  /** Takes so many rows from the front of what waits. */
  #take(partition: Partition, count: number): RecordBatch {
    const taken: RecordBatch[] = [];
    let left = count;
    let used = 0;
    for (; left > 0; used++) {
      const { batch, first: at } = partition.waiting[used]!;
      if (batch.length > left) {
        taken.push(sliceBatch(batch, 0, left));
        partition.waiting[used] = { batch: sliceBatch(batch, left, batch.length), first: at };
        break;
      }
      taken.push(batch);
      left -= batch.length;
    }
    partition.waiting.splice(0, used);
    const share = partition.bytes * (count / partition.rows);
    partition.rows -= count;
    this.#count(partition, partition.rows === 0 ? -partition.bytes : -share);
    return concatBatches(taken);
  }

  async #put(partition: Partition, group: EncodedRowGroup): Promise<void> {
    const { maxFileBytes, maxFileRows } = this.#layout;
    const limit = Math.min(maxFileBytes, this.#maxObjectBytes);
    if (partition.file && partition.file.writer.bytesWith(group) > limit) await this.#end(partition);
    const file = partition.file ?? (await this.#begin(partition));
    this.#open.delete(partition);
    this.#open.add(partition);
    if (file.writer.bytesWith(group) > this.#maxObjectBytes) {
      throw new LimitError(
        "row_group_too_large",
        `a row group is more than the ${this.#maxObjectBytes} bytes of the store's largest object: lower rowGroupRows or rowGroupBytes`,
      );
    }
    file.first = Math.min(file.first, partition.moving!);
    partition.moving = undefined;
    await file.writer.add(group);
    if (file.writer.rows >= maxFileRows || file.writer.bytes >= limit) await this.#end(partition);
  }

  async #begin(partition: Partition): Promise<OpenFile> {
    const { store, schema, layout, newKey, keysAreNew, signal } = this.#options;
    while (this.openFiles >= layout.maxOpen) {
      const [oldest] = this.#open;
      if (oldest && this.#closing.size < MAX_CLOSING) await this.#end(oldest);
      if (this.openFiles >= layout.maxOpen) await this.#oneClosed();
    }
    await parquetReady();
    this.#check();
    const key = newKey(partition.values);
    const writer = new DataFileWriter({ store, key, schema, parquet: layout.parquet, keyIsNew: keysAreNew, signal });
    const file = { writer, values: partition.values, first: partition.moving!, since: partition.since };
    partition.file = file;
    this.#open.add(partition);
    return file;
  }

  /** Ends the file of a partition, without waiting for the store unless it is busy with others. */
  async #end(partition: Partition): Promise<void> {
    const file = partition.file!;
    partition.file = undefined;
    this.#open.delete(partition);
    if (partition.rows === 0 && partition.moving === undefined) this.#partitions.delete(partition.id);
    const done = this.#close(file)
      .catch((error: unknown) => {
        this.#failure ??= { error };
        this.#firstLost = Math.min(this.#firstLost, file.first);
      })
      .finally(() => this.#closing.delete(file));
    this.#closing.set(file, done);
    while (this.#closing.size > MAX_CLOSING) await this.#oneClosed();
  }

  async #close(file: OpenFile): Promise<void> {
    const { onFile, isStored } = this.#options;
    let stored: StoredFile;
    try {
      stored = await file.writer.close();
    } catch (error) {
      const expected = file.writer.closed;
      if (!expected || !(await isStored(expected, error))) throw error;
      stored = expected;
    }
    file.first = Number.POSITIVE_INFINITY;
    await onFile(stored, file.values);
  }

  async #oneClosed(): Promise<void> {
    await Promise.race(this.#closing.values());
    this.#check();
  }
}

function sinceOf({ rows, since, file }: Partition): number {
  return file?.since ?? (rows > 0 ? since : Number.POSITIVE_INFINITY);
}

function heldBytes(batch: RecordBatch): number {
  return batchBytes(batch) + COLUMN_OVERHEAD_BYTES * batch.columns.length;
}
