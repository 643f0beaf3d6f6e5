/** Batches of any size to a Parquet file with row groups of about the same size. */

import type { RecordBatch } from "./columns.js";
import { ParquetEncoder } from "./parquet-encoder.js";
import { atLeastOne, type ParquetOptions } from "./parquet-options.js";
import type { Schema } from "./schema.js";
import type { ColumnStatistics } from "./statistics.js";
import { batchBytes, concatBatches, sliceBatch } from "./take.js";

export interface ParquetWriterOptions extends ParquetOptions {
  /** Rows in a row group. Default 100,000. */
  readonly rowGroupRows?: number;
  /** Bytes of a row group's columns in memory, about. Default 128 MiB. */
  readonly rowGroupBytes?: number;
}

/**
 * Writes one Parquet file. Every call returns bytes to append to what came before; memory holds the rows of one row
 * group, and the batch that was given last.
 */
export class ParquetWriter {
  readonly #encoder: ParquetEncoder;
  readonly #rowGroupRows: number;
  readonly #rowGroupBytes: number;
  #pending: RecordBatch[] = [];
  #pendingRows = 0;
  #pendingBytes = 0;

  /**
   * @param schema as stored: field ids assigned, nothing unknown (see `storedSchema`)
   * @throws SchemaError as `ParquetEncoder` does
   */
  constructor(schema: Schema, options: ParquetWriterOptions = {}) {
    this.#rowGroupRows = atLeastOne("rowGroupRows", options.rowGroupRows ?? 100_000);
    this.#rowGroupBytes = atLeastOne("rowGroupBytes", options.rowGroupBytes ?? 128 << 20);
    this.#encoder = new ParquetEncoder(schema, options);
  }

  /** Bytes returned so far. */
  get bytesWritten(): number {
    return this.#encoder.bytesWritten;
  }

  /** Rows taken so far, those included that wait for their row group to fill. */
  get rows(): number {
    return this.#encoder.rows + this.#pendingRows;
  }

  /**
   * Takes a batch, and encodes the row groups that it fills.
   * @throws SchemaError `batch_mismatch`
   * @throws InvalidInputError `null_in_required`
   */
  write(batch: RecordBatch): Uint8Array[] {
    const parts: Uint8Array[] = [];
    const rowBytes = batchBytes(batch) / batch.length;
    for (let at = 0; at < batch.length; ) {
      const room = Math.floor((this.#rowGroupBytes - this.#pendingBytes) / rowBytes);
      // A row that is larger than a row group has one of its own.
      const fit = this.#pendingRows === 0 ? Math.max(1, room) : Math.max(0, room);
      const count = Math.min(batch.length - at, this.#rowGroupRows - this.#pendingRows, fit);
      if (count > 0) {
        this.#pending.push(sliceBatch(batch, at, at + count));
        this.#pendingRows += count;
        this.#pendingBytes += count * rowBytes;
        at += count;
      }
      if (this.#pendingRows === this.#rowGroupRows || at < batch.length) parts.push(...this.#flush());
    }
    return parts;
  }

  /** The last row group, the page indexes and the footer. The file is complete. */
  finish(): Uint8Array[] {
    return [...this.#flush(), ...this.#encoder.finish()];
  }

  /** Statistics of all rows in row groups that are written, leaf by leaf. */
  statistics(): ColumnStatistics[] {
    return this.#encoder.statistics();
  }

  #flush(): Uint8Array[] {
    if (this.#pendingRows === 0) return [];
    const batch = concatBatches(this.#pending);
    this.#pending = [];
    this.#pendingRows = 0;
    this.#pendingBytes = 0;
    return this.#encoder.writeRowGroup(batch);
  }
}
