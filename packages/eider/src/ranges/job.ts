/** The work of one range: its text becomes row groups, or batches. The same on any thread. */

import {
  type Column,
  createTextParser,
  type EncodedRowGroup,
  ParquetEncoder,
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
  const parser = createTextParser(text);
  parser.push(bytes);
  parser.end();
  const batches: RecordBatch[] = [];
  for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
  const { rows, rejects, ignoredFields } = parser;
  if (output === "batches") return { rowGroups: [], batches, rows, rejects, ignoredFields };
  const encoder = new ParquetEncoder(storedSchema(text.schema));
  const rowGroups: EncodedRowGroup[] = [];
  for (const batch of batches) {
    rowGroups.push(encoder.encodeRowGroup(batch));
    free(buffersOf(batch));
  }
  return { rowGroups, batches: [], rows, rejects, ignoredFields };
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

/**
 * Gives memory back at once: a port that is closed drops what is handed over to it. The garbage collector, which sees
 * only the small objects in front of the buffers, would let a worker hold 30 MB more, and take time over it.
 */
function free(buffers: Iterable<ArrayBuffer>): void {
  const { port1 } = new MessageChannel();
  port1.close();
  port1.postMessage(undefined, [...buffers]);
}
