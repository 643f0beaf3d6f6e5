/** One pass over the input of an append: what is asked of it, what comes out, and what all kinds of input share. */

import type { Timer } from "@eider/catalog";
import {
  canonicalRow,
  type EncodedRowGroup,
  InvalidInputError,
  type RecordBatch,
  type Reject,
  type Schema,
  type StandardSchema,
} from "@eider/core";
import type { ContentHash } from "@eider/core/node";
import type { RangePool } from "@eider/core/ranges";
import type { ParquetImport } from "@eider/query";
import type { AppendOptions } from "../options.js";
import { decompressed } from "../source/decompress.js";
import type { Input } from "../source/input.js";

/** With `onReject: "fail"`: the batch is given up when this many rows are at fault. */
export const NAMED_REJECTS = 20;

/** Milliseconds of reading after which other work of the process gets its turn. */
const TURN_MS = 10;

export type BytesInput = Input & { readonly kind: "bytes" };
export type RowsInput = Input & { readonly kind: "rows" };
export type BatchesInput = Input & { readonly kind: "batches" };
export type RowGroupsInput = Input & { readonly kind: "rowGroups" };

/** Progress of one pass over the input; a second pass starts again from 0. */
export interface ReadCounters {
  bytes: number;
  rows: number;
  rejected: number;
}

export interface ReadOptions {
  readonly append: AppendOptions;
  /** The table as planned on: undefined for a new table without a declared schema. */
  readonly schema: Schema | undefined;
  readonly lastFieldId: number;
  /** Checks, and may change, each row; not bytes, Arrow and Parquet, which have no rows. */
  readonly validator: StandardSchema | undefined;
  readonly integerBounds: () => Promise<ReadonlyMap<number, { readonly min: bigint; readonly max: bigint }>>;
  readonly openParquet: (path: string, name: string) => Promise<ParquetImport>;
  readonly tempFolder: string;
  readonly ranges: RangePool;
  readonly timer: Timer;
  readonly onCounters: (counters: ReadCounters) => void;
}

/** What reading at a pace needs to know. */
export type PaceOptions = Pick<ReadOptions, "append" | "timer">;

/** Receives the batches of a pass. */
export interface BatchSink {
  /**
   * Comes before the first batch and whenever the schema has changed. Tells from how many bytes on a text may come
   * encoded: Infinity where rows are sorted or parted before they are stored.
   */
  restart(schema: Schema): Promise<number>;
  add(batch: RecordBatch): Promise<void>;
  addRowGroup(group: EncodedRowGroup): Promise<void>;
}

/** Takes the pieces of a pass in order, and puts what becomes of them into the sink. */
export interface Feed<T> extends AsyncDisposable {
  push(piece: T): Promise<void>;
  end(): Promise<void>;
  /** Rows taken so far, and rows that cannot be taken. */
  readonly rows: number;
  readonly rejects: readonly Reject[];
  /** Dropped values by key, complete at the end. */
  readonly ignoredFields: ReadonlyMap<string, number>;
}

export interface ReadResult {
  /** Ids assigned; equal to the given schema when nothing evolved. */
  readonly schema: Schema;
  readonly contentHash: string;
  readonly rows: number;
  readonly rejects: readonly Reject[];
  readonly ignoredFields: ReadonlyMap<string, number>;
}

export function newCounters(): ReadCounters {
  return { bytes: 0, rows: 0, rejected: 0 };
}

/** Adds rows to a `rows:` hash: canonical JSON, a line each. */
export function hashRows(hash: ContentHash, rows: readonly unknown[]): void {
  for (const row of rows) hash.update(`${canonicalRow(row)}\n`);
}

/** The plain bytes of an input, counted before decompression. */
export async function* bytesOf(
  input: BytesInput,
  options: PaceOptions,
  counters: ReadCounters,
): AsyncIterable<Uint8Array> {
  const counted = async function* (): AsyncIterable<Uint8Array> {
    for await (const chunk of paced(input.bytes.open(), options)) {
      counters.bytes += chunk.byteLength;
      yield chunk;
    }
  };
  yield* decompressed(counted());
}

/** The rows of an input, in chunks. */
export function rowsOf(input: RowsInput, options: PaceOptions): AsyncIterable<readonly unknown[]> {
  return paced(input.rows.open(), options);
}

/**
 * A source that never waits, such as an array, would keep timers and other requests waiting to its end, the timer that
 * aborts this very append among them.
 */
export async function* paced<T>(
  source: AsyncIterable<T> | Iterable<T>,
  { timer, append: { signal } }: PaceOptions,
): AsyncIterable<T> {
  let turn = timer.now();
  for await (const piece of source) {
    signal?.throwIfAborted();
    yield piece;
    if (timer.now() - turn < TURN_MS) continue;
    await new Promise(setImmediate);
    turn = timer.now();
  }
}

/** @throws InvalidInputError `rejected_rows`, naming the first rows at fault */
export function failRows(rejects: readonly Reject[], more: boolean, unit: "line" | "row"): never {
  const rows = rejects.slice(0, NAMED_REJECTS).map(({ line, code, reason }) => ({ line, code, reason }));
  const first = rows[0]!;
  const count = more ? `at least ${rejects.length} rows` : rejects.length === 1 ? "1 row" : `${rejects.length} rows`;
  throw new InvalidInputError(
    "rejected_rows",
    `${count} cannot be taken, nothing was committed; the first is ${unit} ${first.line}: ${first.reason}. ` +
      `Fix the input, or append with onReject: "quarantine" to keep such rows aside.`,
    { rows },
  );
}
