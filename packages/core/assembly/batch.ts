/** The batch that rows are read into, whatever their format: its columns, and when it is full. */

/** The row as a struct. */
export let root: usize = 0;
/** Whether a number must be written as inference expects it of its column. */
export let strict: bool = false;
export let full: bool = false;
/** Another number for each batch, and so for what the arena holds. */
export let batch: u32 = 0;

/** A batch is full with so many rows or bytes of input. */
let batchRows: u32 = 0;
let batchBytes: f64 = 0;
/** Bytes of input in the rows of this batch. */
let bytes: f64 = 0;

export function configure(rootNode: usize, isStrict: bool, rows: u32, maxBytes: f64): void {
  root = rootNode;
  strict = isStrict;
  batchRows = rows;
  batchBytes = maxBytes;
  startBatch();
}

/** Whether the batch is full. */
export function isFull(): bool {
  return full;
}

/** Counts the bytes of a row that was taken elsewhere; returns how many the batch has. */
export function addBytes(size: f64): f64 {
  bytes += size;
  return bytes;
}

/** The batch has `rows` now, the last one of `size` bytes of input. */
export function endRow(rows: u32, size: usize): void {
  bytes += <f64>size;
  full = rows >= batchRows || bytes >= batchBytes;
}

/** Of a batch, before what is in it tells how much more there will be. */
const SAMPLE: f64 = 1.0 / 64;

/** How many times as much the batch, with `rows` so far, may hold in the end; 0 while that is not known. */
export function outlook(rows: u32): f64 {
  const share = max(bytes / batchBytes, <f64>rows / <f64>batchRows);
  return share < SAMPLE ? 0 : 1 / share;
}

/** Begins another batch. */
export function startBatch(): void {
  batch++;
  bytes = 0;
  full = false;
}
