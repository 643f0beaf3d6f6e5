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
} from "@eider/core";

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
 * @throws SchemaMisfit, InvalidInputError as the parser does
 */
export function runRange({ text, output, bytes }: RangeJob): RangeResult {
  const batches: RecordBatch[] = [];
  const rowGroups: EncodedRowGroup[] = [];
  const parser = output === "batches" ? createTextParser(text) : createEncodingParser(text, rowGroups);
  parser.push(bytes);
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

/** The result with each row group in one buffer, and the buffers that can be handed over with it. */
export function transferable(result: RangeResult): { readonly result: RangeResult; readonly buffers: ArrayBuffer[] } {
  const buffers = new Set<ArrayBuffer>();
  const rowGroups = result.rowGroups.map((group) => {
    const size = group.chunks.reduce((sum, { compressedBytes }) => sum + compressedBytes, 0);
    const bytes = new Uint8Array(size);
    buffers.add(bytes.buffer);
    let at = 0;
    const chunks = group.chunks.map((chunk) => {
      const start = at;
      for (const part of chunk.parts) {
        bytes.set(part, at);
        at += part.length;
      }
      return { ...chunk, parts: [bytes.subarray(start, at)] };
    });
    return { ...group, chunks };
  });
  for (const batch of result.batches) for (const buffer of buffersOf(batch)) buffers.add(buffer);
  return { result: { ...result, rowGroups }, buffers: [...buffers] };
}

function buffersOf(batch: RecordBatch): Set<ArrayBuffer> {
  const buffers = new Set<ArrayBuffer>();
  for (const column of batch.columns) addBuffers(column, buffers);
  return buffers;
}

function addBuffers({ values, offsets, validity, children }: Column, buffers: Set<ArrayBuffer>): void {
  for (const view of [values, offsets, validity]) {
    if (view && view.byteLength > 0 && view.buffer instanceof ArrayBuffer) buffers.add(view.buffer);
  }
  for (const child of children) addBuffers(child, buffers);
}
