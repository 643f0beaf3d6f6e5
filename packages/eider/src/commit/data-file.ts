/** One Parquet object on its way into the store. */

import { createHash } from "node:crypto";
import type { DataFile } from "@eider/catalog";
import {
  AlreadyExistsError,
  type EncodedRowGroup,
  type OrderBy,
  ParquetEncoder,
  type PartitionSpec,
  type PartitionValue,
  parquetReady,
  type RecordBatch,
  type Schema,
  StoreError,
} from "@eider/core";
import type { ObjectStore } from "@eider/storage";

/** Files up to this size are put in one piece; larger ones are streamed. */
const WHOLE_PUT_BYTES = 8 * 1024 * 1024;
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

/** One data file being encoded: small ones are put whole at the end, large ones stream while they grow. */
export class DataFileWriter {
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

  async add(group: EncodedRowGroup): Promise<void> {
    this.#encoder ??= await this.#begin();
    await this.#take(this.#encoder.addRowGroup(group));
  }

  async close(): Promise<StagedFile> {
    const encoder = this.#encoder ?? (await this.#begin());
    await this.#take(encoder.finish());
    if (this.#upload) {
      await this.#upload.pipe.end();
      await this.#settled(this.#upload.done);
    } else {
      const whole = Buffer.concat(this.#buffered);
      await this.#settled(this.#options.store.put(this.#key, whole, { ifAbsent: true, ...this.#signal() }));
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

  /**
   * A put whose answer was lost, or that was sent twice and met itself: the key is used for nothing else, so an object of
   * this size is ours.
   */
  async #settled(put: Promise<unknown>): Promise<void> {
    try {
      await put;
    } catch (error) {
      const answered = error instanceof AlreadyExistsError;
      if (!answered && !(error instanceof StoreError && error.code === "put_unsettled")) throw error;
      if ((await this.#options.store.head(this.#key))?.size === this.#bytes) return;
      if (!answered) throw error;
      // Ours, and swept since: this append was so slow that maintenance took it for dead.
      throw new StoreError("staged_file_lost", `${this.#key} was removed while it was staged: append again`, {
        retryable: true,
        cause: error,
        subject: this.#key,
      });
    }
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
      const { maxConditionalBytes, maxObjectBytes } = this.#options.store.capabilities;
      // Some stores take a condition with short streams only. The key is new either way.
      const ifAbsent = maxConditionalBytes >= maxObjectBytes;
      const done = this.#options.store.put(this.#key, pipe, { ifAbsent, ...this.#signal() });
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
