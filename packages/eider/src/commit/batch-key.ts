/** What a batch is known by: any text, or its place in a source. */

import { checkBatchId, checkLabel, isSequence, rangeBatchId, type SourceRange } from "@eider/catalog";
import { InvalidInputError } from "@eider/core";
import type { SourceBatch } from "../options.js";

export interface BatchKey {
  readonly id: string;
  /** Of a batch that only moves the mark of its source. */
  readonly range?: SourceRange;
  /** Of a replay: the ids of its rejects, which its commit marks. */
  readonly replays?: readonly string[];
  /** Made for this very append: nobody can have committed it before. */
  readonly isNew?: true;
}

/** @throws InvalidInputError `bad_batch_id`, `bad_name` */
export function batchKey(batchId: string | SourceBatch): BatchKey {
  if (typeof batchId !== "object" || batchId === null) {
    checkBatchId(batchId);
    return { id: batchId };
  }
  const { source, sequence, first = sequence } = batchId;
  checkLabel(source, "source");
  const range = { source, first: digitsOf(first, source), last: digitsOf(sequence, source) };
  if (BigInt(range.first) > BigInt(range.last)) {
    throw new InvalidInputError("bad_batch_id", `a part of source ${JSON.stringify(source)} ends before it begins`, {
      subject: source,
    });
  }
  return { id: rangeBatchId(range), range };
}

function digitsOf(sequence: number | bigint, source: string): string {
  const exact = typeof sequence === "bigint" || Number.isSafeInteger(sequence);
  const digits = exact ? String(BigInt(sequence)) : "";
  if (isSequence(digits)) return digits;
  throw new InvalidInputError(
    "bad_batch_id",
    `a sequence number of source ${JSON.stringify(source)} is not a whole number from 0 to 2^63 − 1 (as bigint beyond 2^53)`,
    { subject: source },
  );
}
