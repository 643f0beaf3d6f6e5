/** A text of any size → one Parquet file, range by range: on workers where there are any, with the same bytes without. */

import {
  type ColumnStatistics,
  ParquetEncoder,
  type ParquetOptions,
  parquetReady,
  type Reject,
  storedSchema,
  type TextParserOptions,
} from "../index.js";
import { TextFeed } from "./feed.js";
import { RangePool } from "./pool.js";

export interface EncodeTextOptions extends Omit<TextParserOptions, "part" | "batchRows" | "batchBytes"> {
  /** Workers, see `webWorkers`. Default: none, the caller's thread does it all. */
  readonly pool?: RangePool;
  /** Bytes of the text, if known: a long one goes to workers from its start. */
  readonly totalBytes?: number;
  readonly keyValues?: NonNullable<ParquetOptions["keyValues"]>;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: EncodeProgress) => void;
}

export interface EncodeProgress {
  /** Of the text, read so far. */
  readonly bytes: number;
  readonly totalBytes?: number;
  /** Taken and refused so far; those that workers still have do not count yet. The last report has all. */
  readonly rows: number;
  readonly rejected: number;
}

/** What the file holds, and what it does not. */
export interface EncodedText {
  readonly rows: number;
  readonly rejects: readonly Reject[];
  readonly ignoredFields: ReadonlyMap<string, number>;
  readonly statistics: readonly ColumnStatistics[];
}

/**
 * Encodes text as Parquet. Yields the file's bytes in order as they are made, and reads no further than they are taken;
 * returns what is known of it at the end. The same text gives the same bytes however it comes, with any number of workers.
 * @param text pieces of any size, which may be used again once the next one is asked for
 * @throws SchemaMisfit, InvalidInputError as a parser does; LimitError `worker_failed`; the signal's reason
 */
export async function* encodeText(
  text: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  options: EncodeTextOptions,
): AsyncGenerator<Uint8Array, EncodedText> {
  const { pool, totalBytes, keyValues, signal, onProgress, ...parser } = options;
  await parquetReady();
  const encoder = new ParquetEncoder(storedSchema(parser.schema), keyValues ? { keyValues } : {});
  let parts: Uint8Array[] = [];
  await using feed = new TextFeed({
    text: parser,
    pool: pool ?? new RangePool({ start: undefined, threads: 1 }),
    totalBytes,
    rowGroupsFrom: 0,
    sink: {
      add: async (batch) => void parts.push(...encoder.writeRowGroup(batch)),
      addRowGroup: async (group) => void parts.push(...encoder.addRowGroup(group)),
    },
    signal,
  });
  function* made(): Generator<Uint8Array> {
    const all = parts;
    parts = [];
    yield* all;
  }
  let bytes = 0;
  const report = (): void => {
    const { rows, rejects } = feed;
    onProgress?.({ bytes, ...(totalBytes !== undefined && { totalBytes }), rows, rejected: rejects.length });
  };
  for await (const piece of text) {
    signal?.throwIfAborted();
    await feed.push(piece);
    bytes += piece.length;
    report();
    yield* made();
  }
  await feed.end();
  report();
  yield* made();
  yield* encoder.finish();
  return {
    rows: feed.rows,
    rejects: feed.rejects,
    ignoredFields: feed.ignoredFields,
    statistics: encoder.statistics(),
  };
}
