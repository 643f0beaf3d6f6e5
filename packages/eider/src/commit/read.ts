/**
 * The reading side of an append: input of any kind becomes record batches of the table's schema, rejects, and the hash
 * of what was read.
 */

import { batchRows, fromArrow } from "@eider/core";
import { createContentHash } from "@eider/core/node";
import type { Format } from "../options.js";
import { decompressed, readHead } from "../source/decompress.js";
import { FORMAT_BYTES, recogniseFormat } from "../source/format.js";
import type { Input } from "../source/input.js";
import {
  type BatchSink,
  type BytesInput,
  bytesOf,
  hashRows,
  newCounters,
  paced,
  type ReadOptions,
  type ReadResult,
  rowsOf,
} from "./pass.js";
import {
  hashRowGroups,
  readArrowBytes,
  readArrowObject,
  readBatches,
  readParquet,
  readRowGroups,
} from "./read-columns.js";
import { readRows, readText } from "./read-rows.js";

/** Reads the input to its end, into the sink. */
export async function readInput(input: Input, options: ReadOptions, sink: BatchSink): Promise<ReadResult> {
  switch (input.kind) {
    case "rows":
      return readRows(input, options, sink);
    case "arrow":
      return readArrowObject(input.source, options, sink);
    case "batches":
      return readBatches(input, options, sink);
    case "rowGroups":
      return readRowGroups(input, options, sink);
    case "bytes": {
      const format = await formatOf(input, options.append.format);
      if (format === "parquet") return readParquet(input, options, sink);
      if (format === "arrow") return readArrowBytes(input, options, sink);
      return readText(input, format, options, sink);
    }
  }
}

/** Reads the input to its end for its hash alone: how a batch that is committed already is recognised. */
export async function hashInput(input: Input, options: ReadOptions): Promise<string> {
  if (input.kind === "bytes") {
    const hash = createContentHash("bytes");
    const counters = newCounters();
    for await (const chunk of bytesOf(input, options, counters)) hash.update(chunk);
    return hash.digest();
  }
  if (input.kind === "rowGroups") return hashRowGroups(input, options);
  const hash = createContentHash("rows");
  if (input.kind === "rows") {
    for await (const rows of rowsOf(input, options)) hashRows(hash, rows);
  } else {
    const batches = input.kind === "batches" ? input.batches.open() : fromArrow(input.source).batches;
    for await (const batch of paced(batches, options)) hashRows(hash, batchRows(batch, "exact"));
  }
  return hash.digest();
}

async function formatOf(input: BytesInput, given: Format | undefined): Promise<Format> {
  if (given !== undefined) return given;
  const head = await readHead(decompressed(input.bytes.open()), FORMAT_BYTES);
  return recogniseFormat(head, input.name, input.mediaType);
}
