/** One Parquet object on its way into the store. */

import { createHash } from "node:crypto";
import type { DataFile } from "@eider/catalog";
import {
  type EncodedRowGroup,
  type OrderBy,
  ParquetEncoder,
  type PartitionSpec,
  type PartitionValue,
  parquetReady,
  type RecordBatch,
  type Schema,
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
