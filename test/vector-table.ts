/** A table of encoded files without a lake around it: how a vector's inputs are parsed and encoded, in Node and in browsers. */

import {
  assignFieldIds,
  type ColumnStatistics,
  createTextInferrer,
  createTextParser,
  encodeParquet,
  lastFieldId,
  type RecordBatch,
  type Reject,
  type Schema,
  storedSchema,
  toSchema,
} from "@eider/core";
import type { Vector, VectorInput } from "./vectors.js";

export interface EncodedInput {
  readonly bytes: Uint8Array;
  readonly batches: readonly RecordBatch[];
  readonly rows: number;
  readonly rejects: readonly Reject[];
}

export class VectorTable {
  schema: Schema;
  readonly #vector: Pick<Vector, "declared" | "parquet">;
  readonly #bounds = new Map<number, { min: bigint; max: bigint }>();
  #inputs = 0;

  constructor(vector: Pick<Vector, "declared" | "parquet">) {
    this.#vector = vector;
    this.schema = assignFieldIds(toSchema(vector.declared ?? {}));
  }

  append(input: Pick<VectorInput, "bytes" | "format" | "csv">): EncodedInput {
    if (this.#vector.declared === undefined) this.#evolve(input);
    const parser = createTextParser({
      schema: this.schema,
      unknownFields: "misfit",
      valueMisfits: "reject",
      format: input.format,
      ...(input.csv === undefined ? {} : { csv: input.csv }),
    });
    parser.push(input.bytes);
    parser.end();
    const batches: RecordBatch[] = [];
    for (let batch = parser.take(); batch !== undefined; batch = parser.take()) batches.push(batch);
    const { bytes, statistics } = encodeParquet(storedSchema(this.schema), batches, this.#vector.parquet);
    for (const column of statistics) this.#noteBounds(column);
    this.#inputs++;
    return { bytes, batches, rows: parser.rows, rejects: parser.rejects };
  }

  #evolve(input: Pick<VectorInput, "bytes" | "format" | "csv">): void {
    const inferrer = createTextInferrer({
      format: input.format,
      ...(input.csv === undefined ? {} : { csv: input.csv }),
      ...(this.#inputs === 0 ? {} : { base: this.schema, integerBounds: this.#bounds }),
    });
    inferrer.push(input.bytes);
    this.schema = assignFieldIds(inferrer.end(), lastFieldId(this.schema));
  }

  #noteBounds({ fieldId, min, max }: ColumnStatistics): void {
    if (typeof min !== "bigint" || typeof max !== "bigint") return;
    const known = this.#bounds.get(fieldId);
    this.#bounds.set(fieldId, {
      min: known !== undefined && known.min < min ? known.min : min,
      max: known !== undefined && known.max > max ? known.max : max,
    });
  }
}
