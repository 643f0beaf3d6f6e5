/**
 * Rows of any number into a table: an append whose source is written to instead of read from. With `commit: "rotate"` it
 * is one append after the other, the parts, whose batch ids are `<id>/1`, `<id>/2`, ….
 *
 * A part that is committed already is as long as it was then, whatever the limits of this writer say: so the same rows
 * under the same id meet the same parts again, wherever age or a flush had cut them.
 */

import {
  type ArrowLike,
  BatchConflictError,
  batchBytes,
  canonicalRow,
  fromArrow,
  InvalidInputError,
  type RecordBatch,
  type Schema,
  sliceBatch,
} from "@eider/core";
import type { AppendOptions, AppendResult } from "../options.js";
import type { Input } from "../source/input.js";
import { spoolBatches, spoolRows } from "../source/spool.js";
import type { FileOptions, Rotation } from "./layout.js";
import { Pipe } from "./pipe.js";
import { RowWriter, type WriterProgress } from "./row-writer.js";

/** Rows handed on at a time. */
const CHUNK_ROWS = 1000;
/** One row in so many is measured. */
const MEASURED = 64;

export interface TableWriterOptions
  extends FileOptions,
    Pick<AppendOptions, "schemaMode" | "onReject" | "maxRejects" | "meta" | "signal"> {
  /**
   * One writer is one batch. Rows written again under the same id are recognised as duplicates. Default: a new UUIDv7,
   * which makes no promise about retries.
   */
  readonly batchId?: string;
  /**
   * `close` (default): all rows are one batch, visible when the writer is closed. `rotate`: each time a limit of `rotate`
   * is reached, and with `flush`, the rows so far become a batch `<batchId>/<n>`, n from 1.
   */
  readonly commit?: "close" | "rotate";
  /**
   * With `commit: "close"`, where data files end (`rows`, `bytes`). With `commit: "rotate"`, where batches end: `rows`,
   * `ageMs`, and `bytes` of the rows as JSON, estimated.
   */
  readonly rotate?: Rotation;
  /** Told of each batch once it is committed, or found to be; awaited. What it throws fails the writer. */
  readonly onCommitted?: (result: AppendResult) => void | Promise<void>;
  readonly onProgress?: (progress: WriterProgress) => void;
}

export interface TableWriterResult {
  /** `duplicate`: everything was committed before; nothing was written. */
  readonly status: "committed" | "duplicate";
  /** Batches, duplicates included. 1 with `commit: "close"`. */
  readonly batches: number;
  readonly rowsAdded: number;
  readonly rowsRejected: number;
  /** Of the last batch; undefined if there was none. */
  readonly receipt: AppendResult["receipt"] | undefined;
}

/** What a writer needs of its table. */
export interface TableWriterHost {
  readonly tempFolder: string;
  append(input: Input, batchId: string, options: AppendOptions): Promise<AppendResult>;
  /** Rows that went into a batch, rejected ones included; undefined if it is not committed. */
  committedRows(batchId: string): Promise<number | undefined>;
  /** Whoever closes the lake waits for the writer from now on, instead of giving it up. */
  onClosing(): void;
  /** Nothing of the writer is under way any more. */
  onEnd(): void;
}

/** The batch that is being written. */
interface Part {
  readonly batchId: string;
  readonly kind: "rows" | "batches";
  /** Rows that it has to have, where it is committed already. */
  readonly length: number | undefined;
  readonly pipe: Pipe<never>;
  readonly done: Promise<AppendResult>;
  readonly schema: Schema | undefined;
  readonly since: number;
  rows: number;
  bytes: number;
}

export class TableWriter<R = object> extends RowWriter<R, TableWriterResult> {
  readonly batchId: string;
  readonly #host: TableWriterHost;
  readonly #options: TableWriterOptions;
  #part: Part | undefined;
  #chunk: unknown[] = [];
  #parts = 0;
  #rows = 0;
  #acknowledged = 0;
  #added = 0;
  #rejected = 0;
  #committed = 0;
  #receipt: AppendResult["receipt"] | undefined;

  /** Use `table.writer(…)`. */
  constructor(host: TableWriterHost, batchId: string, options: TableWriterOptions) {
    super(options);
    this.#host = host;
    this.batchId = batchId;
    this.#options = options;
  }

  get rows(): number {
    return this.#rows;
  }

  get acknowledgedRows(): number {
    return this.#acknowledged;
  }

  /**
   * With `commit: "rotate"`: commits the rows so far as a batch; they are durable when this returns. Where they are the
   * beginning of a batch that is committed already, they are acknowledged with the rest of that.
   * @throws InvalidInputError `nothing_to_flush` with `commit: "close"`, whose rows are durable when it is closed
   */
  flush(): Promise<void> {
    if (!this.#rotates) {
      const reason = 'the rows of this writer are committed when it is closed: open it with commit: "rotate" to flush';
      return Promise.reject(new InvalidInputError("nothing_to_flush", reason));
    }
    return this.inTurn(async () => {
      if (this.#part?.length === undefined) await this.#endPart();
    });
  }

  override close(): Promise<TableWriterResult> {
    this.#host.onClosing();
    return super.close();
  }

  protected async takeRows(rows: readonly R[]): Promise<void> {
    for (let at = 0; at < rows.length; ) {
      const part = await this.#open("rows", undefined);
      const count = Math.min(rows.length - at, CHUNK_ROWS - this.#chunk.length, this.#room(part));
      for (let i = at; i < at + count; i++) {
        if (part.rows++ % MEASURED === 0 && this.#options.rotate?.bytes)
          part.bytes += MEASURED * canonicalRow(rows[i]).length;
        this.#chunk.push(rows[i]);
      }
      at += count;
      this.#rows += count;
      if (this.#chunk.length === CHUNK_ROWS) await this.#push();
      await this.#rotateIfFull(part);
    }
    this.report();
  }

  protected async takeArrow(source: ArrowLike): Promise<void> {
    const { schema, batches } = fromArrow(source);
    for (const batch of batches) {
      for (let at = 0; at < batch.length; ) {
        const part = await this.#open("batches", schema);
        const count = Math.min(batch.length - at, this.#room(part));
        const piece = sliceBatch(batch, at, at + count);
        at += count;
        part.rows += count;
        part.bytes += batchBytes(piece);
        this.#rows += count;
        await (part.pipe as Pipe<RecordBatch>).push(piece);
        await this.#rotateIfFull(part);
      }
    }
    this.report();
  }

  protected override get dueInMs(): number | undefined {
    const { ageMs } = this.#options.rotate ?? {};
    if (!this.#rotates || ageMs === undefined || !this.#part || this.#part.length !== undefined) return undefined;
    return Math.max(0, this.#part.since + ageMs - performance.now());
  }

  protected override async onDue(): Promise<void> {
    if (this.dueInMs === 0) await this.#endPart();
  }

  protected async finish(): Promise<TableWriterResult> {
    if (!this.#rotates && !this.#part) await this.#open("rows", undefined);
    await this.#endPart();
    if (this.#rotates) await this.#checkComplete();
    this.#host.onEnd();
    return {
      status: this.#committed > 0 || this.#parts === 0 ? "committed" : "duplicate",
      batches: this.#parts,
      rowsAdded: this.#added,
      rowsRejected: this.#rejected,
      receipt: this.#receipt,
    };
  }

  protected async giveUp(reason: unknown): Promise<void> {
    const part = this.#part;
    part?.pipe.fail(reason);
    await part?.done.catch(() => {});
    this.#host.onEnd();
  }

  get #rotates(): boolean {
    return this.#options.commit === "rotate";
  }

  async #open(kind: Part["kind"], schema: Schema | undefined): Promise<Part> {
    const part = this.#part;
    if (part) {
      if (part.kind !== kind) {
        throw new InvalidInputError("mixed_input", "rows and Arrow data cannot be in one batch: use a writer for each");
      }
      if (schema && JSON.stringify(schema) !== JSON.stringify(part.schema)) {
        throw new InvalidInputError(
          "mixed_input",
          "the Arrow data of one batch has to have one schema: use a writer for each",
        );
      }
      return part;
    }
    const batchId = this.#rotates ? `${this.batchId}/${this.#parts + 1}` : this.batchId;
    const length = this.#rotates ? await this.#host.committedRows(batchId) : undefined;
    const pipe = new Pipe<never>();
    const { tempFolder } = this.#host;
    const input: Input =
      kind === "rows"
        ? { kind, rows: spoolRows(pipe, tempFolder) }
        : { kind, schema: schema!, batches: spoolBatches(pipe, tempFolder) };
    const { schemaMode, onReject, maxRejects, meta } = this.#options;
    const done = this.#host.append(input, batchId, {
      signal: this.signal,
      ...(schemaMode && { schemaMode }),
      ...(onReject && { onReject }),
      ...(maxRejects !== undefined && { maxRejects }),
      ...(meta && { meta }),
    });
    // Whoever writes next hears of it.
    done.catch((error: unknown) => pipe.fail(error));
    this.#part = { batchId, kind, length, pipe, done, schema, since: performance.now(), rows: 0, bytes: 0 };
    return this.#part;
  }

  /** Rows that the part still takes. */
  #room(part: Part): number {
    const limit = part.length ?? (this.#rotates ? this.#options.rotate?.rows : undefined) ?? Number.POSITIVE_INFINITY;
    return limit - part.rows;
  }

  async #rotateIfFull(part: Part): Promise<void> {
    const limit = this.#options.rotate?.bytes ?? Number.POSITIVE_INFINITY;
    const isLarge = this.#rotates && part.length === undefined && part.bytes >= limit;
    if (this.#room(part) <= 0 || isLarge) await this.#endPart();
  }

  async #push(): Promise<void> {
    const chunk = this.#chunk;
    this.#chunk = [];
    await (this.#part!.pipe as Pipe<readonly unknown[]>).push(chunk);
  }

  /** Commits the part. */
  async #endPart(): Promise<void> {
    const part = this.#part;
    if (!part) return;
    if (this.#chunk.length > 0) await this.#push();
    part.pipe.end();
    const result = await part.done;
    this.#part = undefined;
    this.#parts++;
    this.#acknowledged = this.#rows;
    this.#added += result.rowsAdded;
    this.#rejected += result.rowsRejected;
    if (result.status === "committed") this.#committed++;
    this.#receipt = result.receipt;
    await this.#options.onCommitted?.(result);
    this.report();
  }

  /** Fewer rows than were committed under this id are other content. */
  async #checkComplete(): Promise<void> {
    const batchId = `${this.batchId}/${this.#parts + 1}`;
    if ((await this.#host.committedRows(batchId)) === undefined) return;
    throw new BatchConflictError(
      "batch_conflict",
      `the rows ended before batch ${JSON.stringify(batchId)}, which is committed: choose another batch id`,
      { subject: batchId },
    );
  }
}
