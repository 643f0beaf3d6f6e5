/** Inputs of every kind in parts, read once from the front to the end. */

import { fromArrow } from "@eider/core";
import { bytesOf, type PaceOptions, type ReadCounters, rowsOf } from "../commit/pass.js";
import type { AppendOptions } from "../options.js";
import { openArrowParts } from "./arrow-parts.js";
import { openBatchParts } from "./batch-parts.js";
import { peek } from "./decompress.js";
import { recogniseFormat } from "./format.js";
import type { Input } from "./input.js";
import { openRowGroupParts } from "./row-group-parts.js";
import { openRowParts } from "./row-parts.js";
import { FRONT_BYTES, openTextParts } from "./text-parts.js";

/** A source in parts that appends can take. */
export interface InputParts extends AsyncDisposable {
  /** Whether something is left, with which another part begins. */
  more(): Promise<boolean>;
  /**
   * The next part; the one before has been read to its end.
   * @param known it is only compared, so nothing of it is kept
   */
  next(known: boolean): PartInput;
}

export interface PartInput {
  readonly input: Input;
  /** What the part is read by, instead of what the whole source was. */
  readonly options: Pick<AppendOptions, "format" | "csv">;
}

export interface PartsOptions {
  readonly partBytes: number;
  /** For what is kept. */
  readonly tempFolder: string;
  readonly pace: PaceOptions;
  /** Of the whole source, counted while it is read. */
  readonly counters: ReadCounters;
}

/**
 * @throws InvalidInputError `not_divisible`, `unknown_format`, and what an append throws for input that is broken as a whole
 */
export async function openInputParts(input: Input, options: PartsOptions): Promise<InputParts> {
  switch (input.kind) {
    case "rows":
      return openRowParts(rowsOf(input, options.pace), options);
    case "arrow":
      return openBatchParts(fromArrow(input.source), options);
    case "batches":
      return openBatchParts({ schema: input.schema, batches: input.batches.open() }, options);
    case "rowGroups":
      throw new Error("row groups are parts already");
    case "bytes": {
      const { append } = options.pace;
      const { head, rest } = await peek(bytesOf(input, options.pace, options.counters), FRONT_BYTES);
      try {
        const format = append.format ?? recogniseFormat(head, input.name, input.mediaType);
        if (format === "parquet") return await openRowGroupParts(input, rest, options);
        if (format === "arrow") return await openArrowParts(input, rest, options);
        return openTextParts(input, format, { head, rest }, options);
      } catch (error) {
        await rest[Symbol.asyncIterator]().return?.();
        throw error;
      }
    }
  }
}
