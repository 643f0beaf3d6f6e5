/** Columns in parts, each of whole record batches. */

import { batchBytes, type RecordBatch, type Schema } from "@eider/core";
import type { InputParts, PartsOptions } from "./input-parts.js";
import { type Cuts, type PieceKind, readOnce, SourceParts } from "./parts.js";
import { spoolBatches } from "./spool.js";

/** A batch is not taken apart. */
const BATCHES: PieceKind<RecordBatch> = { length: () => 1, slice: (batch) => batch };

export interface BatchSource {
  readonly schema: Schema;
  readonly batches: AsyncIterable<RecordBatch> | Iterable<RecordBatch>;
}

/** A part ends with the batch that brings its columns to `partBytes`. */
export function openBatchParts({ schema, batches }: BatchSource, { partBytes, tempFolder }: PartsOptions): InputParts {
  let rows = 0;
  async function* counted(): AsyncGenerator<RecordBatch> {
    for await (const batch of batches) {
      yield batch;
      rows += batch.length;
    }
  }
  const parts = new SourceParts(counted(), BATCHES, new BatchCuts(partBytes));
  return {
    more: () => parts.more(),
    next(known) {
      const rowsBefore = rows;
      const kept = known ? readOnce(parts.read()) : spoolBatches(parts.read(), tempFolder);
      return { input: { kind: "batches", schema, batches: kept, rowsBefore }, options: {} };
    },
    [Symbol.asyncDispose]: () => parts[Symbol.asyncDispose](),
  };
}

class BatchCuts implements Cuts<RecordBatch> {
  readonly #partBytes: number;
  #bytes = 0;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
  }

  begin(batch: RecordBatch): void {
    this.#bytes += batchBytes(batch);
  }

  next(): number {
    if (this.#bytes < this.#partBytes) return -1;
    this.#bytes = 0;
    return 1;
  }
}
