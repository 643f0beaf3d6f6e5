/** Gathers, cuts and joins record batches. Nested columns come along; offsets always start at 0 again. */

import { bitmapBytes, copyBits, countBits, fillBits, getBit, setBit, sliceBits } from "./bitmap.js";
import type { Column, RecordBatch } from "./columns.js";
import { InvalidInputError, LimitError } from "./errors.js";
import { bytesOf, layoutOf, nullColumn, typedValues, valueBytes, wordsOf } from "./layout.js";
import type { Schema } from "./schema.js";

/** In a row list: not a row but a null. */
export const NULL_ROW = 0xffffffff;

/** Arrow's 32-bit offsets end here. */
const MAX_OFFSET = 0x7fffffff;

/** Shorter values are copied byte by byte: `subarray` and `set` cost more than the bytes do. */
const SHORT_BYTES = 24;

/**
 * The rows at the given 0-based positions, in that order; positions may repeat.
 * @throws LimitError `column_too_large`
 */
export function takeRows(batch: RecordBatch, rows: Uint32Array): RecordBatch {
  return {
    schema: batch.schema,
    length: rows.length,
    columns: batch.columns.map((column) => takeValues(column, rows)),
  };
}

/** The values at the given positions; {@link NULL_ROW} gives a null. */
export function takeValues(column: Column, rows: Uint32Array): Column {
  const { type } = column;
  const { validity, nullCount } = takeValidity(column, rows);
  const base = { type, length: rows.length, nullCount, validity };
  switch (layoutOf(type)) {
    case "bits":
      return { ...base, values: takeBits(bytesOf(column.values!), rows), offsets: undefined, children: [] };
    case "fixed":
      return { ...base, values: takeFixed(column, rows), offsets: undefined, children: [] };
    case "bytes": {
      const offsets = takeOffsets(column.offsets!, rows);
      return { ...base, values: takeBytes(column, offsets, rows), offsets, children: [] };
    }
    case "struct":
      return {
        ...base,
        values: undefined,
        offsets: undefined,
        children: column.children.map((child) => takeValues(child, rows)),
      };
    default: {
      const offsets = takeOffsets(column.offsets!, rows);
      const elements = elementRows(column.offsets!, offsets, rows);
      return {
        ...base,
        values: undefined,
        offsets,
        children: column.children.map((child) => takeValues(child, elements)),
      };
    }
  }
}

function takeValidity(column: Column, rows: Uint32Array): { validity: Uint8Array | undefined; nullCount: number } {
  const source = column.validity;
  if (source === undefined && !rows.includes(NULL_ROW)) return { validity: undefined, nullCount: 0 };
  const out = new Uint8Array(bitmapBytes(rows.length));
  let valid = 0;
  if (source === undefined) {
    for (let i = 0; i < rows.length; i++) {
      if (rows[i] !== NULL_ROW) {
        setBit(out, i);
        valid++;
      }
    }
  } else {
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      if (row !== NULL_ROW && getBit(source, row)) {
        setBit(out, i);
        valid++;
      }
    }
  }
  const nullCount = rows.length - valid;
  return { validity: nullCount === 0 ? undefined : out, nullCount };
}

function takeBits(source: Uint8Array, rows: Uint32Array): Uint8Array {
  const out = new Uint8Array(bitmapBytes(rows.length));
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (row !== NULL_ROW && getBit(source, row)) setBit(out, i);
  }
  return out;
}

/** Copies by 32-bit words where the width allows: no BigInt per value, and no float load that could change a NaN. */
function takeFixed(column: Column, rows: Uint32Array): Column["values"] {
  const width = valueBytes(column.type);
  const buffer = new ArrayBuffer(rows.length * width);
  if (width % 4 === 0) {
    const source = wordsOf(column.values!);
    const target = new Uint32Array(buffer);
    const words = width >>> 2;
    if (words === 1) {
      for (let i = 0; i < rows.length; i++) target[i] = source[rows[i]!]!;
    } else if (words === 2) {
      for (let i = 0; i < rows.length; i++) {
        const from = rows[i]! * 2;
        target[2 * i] = source[from]!;
        target[2 * i + 1] = source[from + 1]!;
      }
    } else {
      for (let i = 0, to = 0; i < rows.length; i++) {
        let from = rows[i]! * words;
        for (let k = 0; k < words; k++) target[to++] = source[from++]!;
      }
    }
  } else {
    const source = bytesOf(column.values!);
    const target = new Uint8Array(buffer);
    for (let i = 0, to = 0; i < rows.length; i++) {
      let from = rows[i]! * width;
      for (let k = 0; k < width; k++) target[to++] = source[from++]!;
    }
  }
  return typedValues(column.type, new Uint8Array(buffer));
}

function takeOffsets(source: Int32Array, rows: Uint32Array): Int32Array {
  const out = new Int32Array(rows.length + 1);
  let end = 0;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (row !== NULL_ROW) end += source[row + 1]! - source[row]!;
    if (end > MAX_OFFSET) throw tooLarge();
    out[i + 1] = end;
  }
  return out;
}

function takeBytes(column: Column, offsets: Int32Array, rows: Uint32Array): Uint8Array {
  const source = bytesOf(column.values!);
  const from = column.offsets!;
  const out = new Uint8Array(offsets[rows.length]!);
  for (let i = 0; i < rows.length; ) {
    const row = rows[i]!;
    const first = i++;
    if (row === NULL_ROW) continue;
    // Neighbours in the source are copied together: partitioning and filtering mostly leave runs.
    while (i < rows.length && rows[i] === row + (i - first)) i++;
    const start = from[row]!;
    const end = from[row + (i - first)]!;
    let to = offsets[first]!;
    if (end - start < SHORT_BYTES) for (let at = start; at < end; at++) out[to++] = source[at]!;
    else out.set(source.subarray(start, end), to);
  }
  return out;
}

function elementRows(source: Int32Array, offsets: Int32Array, rows: Uint32Array): Uint32Array {
  const out = new Uint32Array(offsets[rows.length]!);
  for (let i = 0, to = 0; i < rows.length; i++) {
    const row = rows[i]!;
    if (row === NULL_ROW) continue;
    for (let at = source[row]!; at < source[row + 1]!; at++) out[to++] = at;
  }
  return out;
}

/** Rows `[start, end)`. Fixed-width values and bytes are shared with the batch, not copied. */
export function sliceBatch(batch: RecordBatch, start: number, end: number): RecordBatch {
  if (start === 0 && end === batch.length) return batch;
  return {
    schema: batch.schema,
    length: end - start,
    columns: batch.columns.map((column) => sliceColumn(column, start, end)),
  };
}

function sliceColumn(column: Column, start: number, end: number): Column {
  if (start === 0 && end === column.length) return column;
  const length = end - start;
  const nullCount = column.validity === undefined ? 0 : length - countBits(column.validity, start, length);
  const base = {
    type: column.type,
    length,
    nullCount,
    validity: nullCount === 0 ? undefined : sliceBits(column.validity!, start, length),
  };
  switch (layoutOf(column.type)) {
    case "bits":
      return { ...base, values: sliceBits(bytesOf(column.values!), start, length), offsets: undefined, children: [] };
    case "fixed": {
      const perValue = column.values instanceof Uint8Array ? valueBytes(column.type) : 1;
      return {
        ...base,
        values: column.values!.subarray(start * perValue, end * perValue),
        offsets: undefined,
        children: [],
      };
    }
    case "struct":
      return {
        ...base,
        values: undefined,
        offsets: undefined,
        children: column.children.map((child) => sliceColumn(child, start, end)),
      };
    default: {
      const first = column.offsets![start]!;
      const last = column.offsets![end]!;
      const offsets = column.offsets!.subarray(start, end + 1);
      return {
        ...base,
        values: column.values && bytesOf(column.values).subarray(first, last),
        offsets: first === 0 ? offsets : offsets.map((offset) => offset - first),
        children: column.children.map((child) => sliceColumn(child, first, last)),
      };
    }
  }
}

/** A batch of no rows. The schema holds no unknown fields. */
export function emptyBatch(schema: Schema): RecordBatch {
  return { schema, length: 0, columns: schema.fields.map((field) => nullColumn(field.type, 0)) };
}

/**
 * Joins batches of one schema (the first one's is kept).
 * @throws InvalidInputError `no_batches`; LimitError `column_too_large`
 */
export function concatBatches(batches: readonly RecordBatch[]): RecordBatch {
  const [first, second] = batches;
  if (first === undefined) throw new InvalidInputError("no_batches", "there is no batch to join: pass at least one");
  if (second === undefined) return first;
  return {
    schema: first.schema,
    length: batches.reduce((sum, batch) => sum + batch.length, 0),
    columns: first.columns.map((_, i) => concatColumns(batches.map((batch) => batch.columns[i]!))),
  };
}

/** Joins columns of one type; at least one. */
export function concatColumns(columns: readonly Column[]): Column {
  const { type, children } = columns[0]!;
  if (columns.length === 1) return columns[0]!;
  const length = columns.reduce((sum, column) => sum + column.length, 0);
  const base = { type, length, ...concatValidity(columns, length) };
  const joined = (): Column[] => children.map((_, i) => concatColumns(columns.map((column) => column.children[i]!)));
  switch (layoutOf(type)) {
    case "bits": {
      const values = new Uint8Array(bitmapBytes(length));
      let at = 0;
      for (const column of columns) {
        copyBits(bytesOf(column.values!), 0, values, at, column.length);
        at += column.length;
      }
      return { ...base, values, offsets: undefined, children: [] };
    }
    case "fixed": {
      const values = concatBytes(columns.map((column) => bytesOf(column.values!)));
      return { ...base, values: typedValues(type, values), offsets: undefined, children: [] };
    }
    case "bytes": {
      const offsets = concatOffsets(columns, length);
      // Bytes behind the last offset do not belong to the column.
      const values = concatBytes(columns.map((c) => bytesOf(c.values!).subarray(0, c.offsets![c.length]!)));
      return { ...base, values, offsets, children: [] };
    }
    case "struct":
      return { ...base, values: undefined, offsets: undefined, children: joined() };
    default:
      return { ...base, values: undefined, offsets: concatOffsets(columns, length), children: joined() };
  }
}

function concatValidity(
  columns: readonly Column[],
  length: number,
): { nullCount: number; validity: Uint8Array | undefined } {
  const nullCount = columns.reduce((sum, column) => sum + column.nullCount, 0);
  if (nullCount === 0) return { nullCount, validity: undefined };
  const validity = new Uint8Array(bitmapBytes(length));
  let at = 0;
  for (const column of columns) {
    if (column.validity === undefined) fillBits(validity, at, column.length);
    else copyBits(column.validity, 0, validity, at, column.length);
    at += column.length;
  }
  return { nullCount, validity };
}

function concatOffsets(columns: readonly Column[], length: number): Int32Array {
  const out = new Int32Array(length + 1);
  let at = 0;
  let base = 0;
  for (const column of columns) {
    const offsets = column.offsets!;
    for (let i = 1; i <= column.length; i++) out[at + i] = base + offsets[i]!;
    at += column.length;
    base += offsets[column.length]!;
    if (base > MAX_OFFSET) throw tooLarge();
  }
  return out;
}

function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function tooLarge(): LimitError {
  return new LimitError("column_too_large", "a column of one batch holds over 2 GiB: use smaller batches");
}

/** Bytes of memory that a batch's buffers hold; shared buffers count each time. */
export function batchBytes(batch: RecordBatch): number {
  return batch.columns.reduce((sum, column) => sum + columnBytes(column), 0);
}

function columnBytes(column: Column): number {
  return (
    (column.validity?.byteLength ?? 0) +
    (column.values?.byteLength ?? 0) +
    (column.offsets?.byteLength ?? 0) +
    column.children.reduce((sum, child) => sum + columnBytes(child), 0)
  );
}
