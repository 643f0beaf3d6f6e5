/** The work of one range: its text becomes row groups, or batches. The same on any thread. */

import {
  type Column,
  createTextParser,
  type EncodedRowGroup,
  ParquetEncoder,
  type Parser,
  type RecordBatch,
  type Reject,
  storedSchema,
  type TextParserOptions,
} from "../index.js";

/** Plain data, as it goes to a worker; `bytes` is handed over. */
export interface RangeJob {
  readonly text: TextParserOptions;
  /** Row groups for a file that takes them as they come, or batches for a reader that sorts or parts their rows. */
  readonly output: "rowGroups" | "batches";
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/** Plain data, as it comes from a worker. */
export interface RangeResult {
  readonly rowGroups: readonly EncodedRowGroup[];
  readonly batches: readonly RecordBatch[];
  readonly rows: number;
  readonly rejects: readonly Reject[];
  readonly ignoredFields: ReadonlyMap<string, number>;
}

/**
 * Parses a range, and encodes it if the job says so; needs `parquetReady`.
 * @param onParsed is called when the bytes are needed no more
 * @throws SchemaMisfit, InvalidInputError as the parser does
 */
export function runRange({ text, output, bytes }: RangeJob, onParsed: () => void): RangeResult {
  const batches: RecordBatch[] = [];
  const rowGroups: EncodedRowGroup[] = [];
  const parser = output === "batches" ? createTextParser(text) : createEncodingParser(text, rowGroups);
  parser.push(bytes);
  onParsed();
  parser.end();
  for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
  const { rows, rejects, ignoredFields } = parser;
  return { rowGroups, batches, rows, rejects, ignoredFields };
}

/** A parser of which each batch becomes a row group, encoded where the parser has put it; needs `parquetReady`. */
export function createEncodingParser(text: TextParserOptions, rowGroups: EncodedRowGroup[]): Parser<Uint8Array> {
  let encoder: ParquetEncoder | undefined;
  return createTextParser(text, (batch) => {
    encoder ??= new ParquetEncoder(storedSchema(text.schema));
    rowGroups.push(encoder.encodeRowGroup(batch));
  });
}

/** The buffers that can be handed over with a result. */
export function buffersOfResult({ rowGroups, batches }: RangeResult): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  for (const { chunks } of rowGroups)
    for (const { parts } of chunks) for (const part of parts) addBuffer(part, buffers);
  for (const batch of batches) for (const column of batch.columns) addBuffers(column, buffers);
  return [...buffers];
}

function addBuffers({ values, offsets, validity, children }: Column, buffers: Set<ArrayBuffer>): void {
  for (const view of [values, offsets, validity]) if (view && view.byteLength > 0) addBuffer(view, buffers);
  for (const child of children) addBuffers(child, buffers);
}

function addBuffer({ buffer }: ArrayBufferView, buffers: Set<ArrayBuffer>): void {
  if (buffer instanceof ArrayBuffer) buffers.add(buffer);
}
