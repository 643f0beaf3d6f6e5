/**
 * DuckDB's strings as one run of bytes with offsets. A `duckdb_string_t` is 16 bytes: a 32-bit length, then up to 12
 * bytes inline, or a 4-byte prefix and a pointer.
 */

import { LimitError } from "@eider/core";
import type { Native } from "./native.js";

const INLINE_BYTES = 12;

/**
 * Strings less than this apart are fetched in one call. Their pages are mapped, and with a gap below the smallest page
 * size (4 KiB) there is no page between theirs, so the bytes in the gap can be read too.
 */
const MAX_GAP = 4095;

/** A call per string costs about 0.9 µs; beyond so many runs in one vector the pointers are worth sorting. */
const MAX_UNSORTED_RUNS = 16;

/** A run of memory fetched in one call. Addresses are below 2^48, so exact as numbers. */
interface Run {
  start: number;
  end: number;
  /** A row whose string begins at `start`: what the native call is given. */
  row: number;
}

/** Arrow's 32-bit offsets end here. */
const MAX_OFFSET = 0x7fffffff;

/**
 * Strings under a null become empty: their slots hold anything.
 * @throws LimitError `column_too_large`
 */
export function readStrings(
  native: Native,
  entries: ArrayBuffer,
  length: number,
  validity: Uint8Array | undefined,
): { values: Uint8Array; offsets: Int32Array } {
  const words = new Uint32Array(entries);
  const offsets = new Int32Array(length + 1);
  let end = 0;
  let pointers = 0;
  for (let row = 0; row < length; row++) {
    if (validity === undefined || (validity[row >>> 3]! & (1 << (row & 7))) !== 0) {
      const bytes = words[row * 4]!;
      end += bytes;
      if (bytes > INLINE_BYTES) pointers++;
    }
    offsets[row + 1] = end;
  }
  if (end > MAX_OFFSET) {
    throw new LimitError("column_too_large", "2048 values of one column hold over 2 GiB: select a part of each");
  }
  const values = new Uint8Array(end);
  const source = new Uint8Array(entries);
  const runs = pointers === 0 ? [] : findRuns(words, offsets, length, pointers);
  const fetched = runs.map((run) => native.get_data_from_pointer(entries, run.row * 16 + 8, run.end - run.start));
  let last = 0;
  for (let row = 0; row < length; row++) {
    let to = offsets[row]!;
    const stop = offsets[row + 1]!;
    const bytes = stop - to;
    if (bytes === 0) continue;
    if (bytes <= INLINE_BYTES) {
      for (let from = row * 16 + 4; to < stop; ) values[to++] = source[from++]!;
      continue;
    }
    const address = addressOf(words, row);
    let run = runs[last]!;
    if (address < run.start || address >= run.end) {
      last = findRun(runs, address);
      run = runs[last]!;
    }
    const from = address - run.start;
    values.set(fetched[last]!.subarray(from, from + bytes), to);
  }
  return { values, offsets };
}

function addressOf(words: Uint32Array, row: number): number {
  return words[row * 4 + 3]! * 0x1_0000_0000 + words[row * 4 + 2]!;
}

/** Runs that hold every string kept outside its entry, ordered by address. */
function findRuns(words: Uint32Array, offsets: Int32Array, length: number, pointers: number): Run[] {
  const runs: Run[] = [];
  let run: Run | undefined;
  for (let row = 0; row < length; row++) {
    const bytes = offsets[row + 1]! - offsets[row]!;
    if (bytes <= INLINE_BYTES) continue;
    const start = addressOf(words, row);
    const end = start + bytes;
    if (run && start <= run.end + MAX_GAP && end >= run.start - MAX_GAP) {
      if (start < run.start) {
        run.start = start;
        run.row = row;
      }
      if (end > run.end) run.end = end;
      continue;
    }
    if (runs.length === MAX_UNSORTED_RUNS) return mergeRuns(everyString(words, offsets, length, pointers));
    run = { start, end, row };
    runs.push(run);
  }
  return mergeRuns(runs);
}

function everyString(words: Uint32Array, offsets: Int32Array, length: number, pointers: number): Run[] {
  const runs: Run[] = new Array(pointers);
  let at = 0;
  for (let row = 0; row < length; row++) {
    const bytes = offsets[row + 1]! - offsets[row]!;
    if (bytes <= INLINE_BYTES) continue;
    const start = addressOf(words, row);
    runs[at++] = { start, end: start + bytes, row };
  }
  return runs;
}

function mergeRuns(runs: Run[]): Run[] {
  runs.sort((a, b) => a.start - b.start);
  const merged: Run[] = [];
  for (const next of runs) {
    const run = merged.at(-1);
    if (run && next.start <= run.end + MAX_GAP) run.end = Math.max(run.end, next.end);
    else merged.push(next);
  }
  return merged;
}

function findRun(runs: readonly Run[], address: number): number {
  let low = 0;
  let high = runs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if (runs[middle]!.start <= address) low = middle;
    else high = middle - 1;
  }
  return low;
}
