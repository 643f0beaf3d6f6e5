/** Parquet in parts, each of whole row groups. */

import { InvalidInputError, type ParquetRowGroup, parquetFooterBytes, readParquetRowGroups } from "@eider/core";
import type { BytesInput } from "../commit/pass.js";
import { isPlainFile } from "../commit/read-columns.js";
import type { InputParts, PartsOptions } from "./input-parts.js";
import { LocalFile } from "./local-file.js";
import { spoolToFile } from "./spool.js";

/** Length and magic, at the end of a file. */
const TRAILER_BYTES = 8;

/** Row groups that follow one another, with all that lies around them: the parts of a file are all of it but its footer. */
interface Range {
  readonly start: number;
  readonly end: number;
  readonly rows: { readonly from: number; readonly to: number };
}

/**
 * The footer of a Parquet file is at its end, so one that is not a plain file is copied to one first.
 * @param bytes of the input, decompressed
 */
export async function openRowGroupParts(
  input: BytesInput,
  bytes: AsyncIterable<Uint8Array>,
  { partBytes, tempFolder, counters }: PartsOptions,
): Promise<InputParts> {
  const plain = await isPlainFile(input);
  const copy = plain ? undefined : await spoolToFile(bytes, tempFolder);
  const path = copy?.path ?? input.path!;
  const name = input.name ?? "the input";
  let file: LocalFile | undefined;
  const dispose = async (): Promise<void> => {
    await file?.[Symbol.asyncDispose]();
    await copy?.[Symbol.asyncDispose]();
    await bytes[Symbol.asyncIterator]().return?.();
  };
  try {
    file = await LocalFile.open(path);
    const { ranges, footer } = await readRanges(file, name, partBytes);
    let next = 0;
    return {
      more: async () => next < ranges.length,
      next() {
        const range = ranges[next++]!;
        const open = (): AsyncIterable<Uint8Array> => rangeBytes(file!, footer, range, plain ? counters : undefined);
        const hashed = { open, [Symbol.asyncDispose]: async () => {} };
        return { input: { kind: "rowGroups", path, name, bytes: hashed, rows: range.rows }, options: {} };
      },
      [Symbol.asyncDispose]: dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

/** @throws InvalidInputError `bad_parquet` */
async function readRanges(
  file: LocalFile,
  name: string,
  partBytes: number,
): Promise<{ readonly ranges: Range[]; readonly footer: Uint8Array }> {
  try {
    const trailer = await file.read(Math.max(0, file.bytes - TRAILER_BYTES), Math.min(TRAILER_BYTES, file.bytes));
    const footerBytes = Math.min(parquetFooterBytes(trailer), file.bytes);
    const footerAt = file.bytes - footerBytes;
    const footer = await file.read(footerAt, footerBytes);
    return { ranges: cut(readParquetRowGroups(footer), partBytes, footerAt), footer };
  } catch (cause) {
    if (!(cause instanceof InvalidInputError) || cause.code !== "bad_parquet") throw cause;
    throw new InvalidInputError("bad_parquet", `${name}: ${cause.message}`, { subject: name, cause });
  }
}

/**
 * A part ends with the row group before which `partBytes` of the file have come since its begin. Row groups whose pages lie
 * among those of others are not parted from them.
 */
function cut(groups: readonly ParquetRowGroup[], partBytes: number, end: number): Range[] {
  const ranges: Range[] = [];
  let start = 0;
  let [from, to] = [0, 0];
  let behind = 0;
  const first = firstStarts(groups);
  for (const [i, group] of groups.entries()) {
    const next = first[i]!;
    if (i > 0 && next >= behind && next - start >= partBytes) {
      ranges.push({ start, end: next, rows: { from, to } });
      start = next;
      from = to;
    }
    to += group.rows;
    behind = Math.max(behind, group.end);
  }
  ranges.push({ start, end, rows: { from, to } });
  return ranges;
}

/** Of each row group and those that come after it, where the first of their pages lies. */
function firstStarts(groups: readonly ParquetRowGroup[]): number[] {
  let first = Number.POSITIVE_INFINITY;
  return groups
    .map(({ start }) => start)
    .reverse()
    .map((start) => (first = Math.min(first, start)))
    .reverse();
}

/** What row groups are hashed by: the footer, which says what they are, and what lies in their place. */
async function* rangeBytes(
  file: LocalFile,
  footer: Uint8Array,
  { start, end }: Range,
  counters: { bytes: number } | undefined,
): AsyncIterable<Uint8Array> {
  yield footer;
  let at = start;
  for await (const piece of file.pieces(start, end)) {
    yield piece;
    at += piece.byteLength;
    if (counters) counters.bytes = at;
  }
  if (counters && end + footer.byteLength === file.bytes) counters.bytes = file.bytes;
}
