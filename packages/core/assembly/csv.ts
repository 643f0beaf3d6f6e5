/**
 * CSV records (RFC 4180, and what `csv-reader.ts` of the sources adds) → columns. This takes the records that it is
 * sure of and leaves all others, untouched, to TypeScript: every rule is there, and each function here returns 0 where
 * one might be broken.
 *
 * A line feed stands behind the input, so that every reader stops there.
 */

import { batch, endRow, full, root, strict } from "./batch";
import { readBool } from "./json";
import {
  BINARY,
  BOOL,
  BYTES,
  CAPACITY,
  clear,
  DATE,
  DECIMAL,
  END,
  FIXED,
  FLAGS,
  FLOAT32,
  FLOAT64,
  growBytes,
  growValues,
  HIGH,
  JSON_TEXT,
  LENGTH,
  NULLABLE,
  OFFSETS,
  pad,
  STRING,
  STRUCT,
  TIME,
  TIMESTAMP,
  TIMESTAMPTZ,
  TYPE,
  truncate,
  UUID,
  VALUES,
} from "./node";
import { append64, digits, exponential, integer, readDecimal, readFloat, readInteger, scale, slot } from "./number";
import { dropNote, keepNote, note, PROFILE } from "./profile";
import { days, micros, readDate, readInstant, readTime, readTimestamp } from "./temporal";
import { appendBase64, appendUuid, closeText } from "./text";

const LF: u32 = 0x0a;
const CR: u32 = 0x0d;
const SPACE: u32 = 0x20;
const TAB: u32 = 0x09;
const MINUS: u32 = 0x2d;
const ZERO: u32 = 0x30;

/** Flags of {@link configureCsv}. */
const TRIM: u32 = 1;
/** Values other than text are read where they stand: no byte of the dialect can be part of one. */
const DIRECT: u32 = 2;
const EMPTY_IS_NULL: u32 = 4;
/** Short records are filled with nulls. */
const PAD: u32 = 8;
/** The columns are profiles. */
const PROFILES: u32 = 16;

/** The dialect in bytes; 256 where there is none. */
let delimiter: u32 = 0;
let quote: u32 = 0;
let escaping: u32 = 0;
let trim: bool = false;
let direct: bool = false;
let emptyIsNull: bool = false;
let ragged: bool = false;
let profiles: bool = false;

/**
 * What the columns of the input are, eight bytes each: the column that they go to, or {@link DROPPED} or
 * {@link FORBIDDEN}, then how many values were dropped.
 */
let cells: usize = 0;
let width: u32 = 0;
const CELL_BYTES: usize = 8;
const DROPPED: usize = 0;
/** The schema lacks the column, and takes no value in it. */
const FORBIDDEN: usize = 1;

/** Texts other than the empty one that mean null: address and length of each. A bit for each length. */
let nulls: usize = 0;
let nullsEnd: usize = 0;
let nullLengths: u32 = 0;
let longestNull: usize = 0;

/** Where the cells of the record being read are noted that are to be dropped; behind the cells, four bytes each. */
let dropped: usize = 0;
let droppedCount: u32 = 0;

/** The end of the input, with the line feed that is none of it. */
let limit: usize = 0;
/** Physical lines that {@link readRecords} has passed; and within the record being read. */
let lines: u32 = 0;
let linesInRecord: u32 = 0;
let cut: bool = false;

/** A column for the text of one cell that goes to no column, or not as it is. */
const cellText = memory.data(96, 16);
/** The batch whose arena holds the text. */
let cellBatch: u32 = 0;

export function configureCsv(
  delimiterByte: u32,
  quoteByte: u32,
  escapeByte: u32,
  flags: u32,
  cellTable: usize,
  cellCount: u32,
  nullTable: usize,
  nullCount: u32,
): void {
  delimiter = delimiterByte;
  quote = quoteByte;
  escaping = escapeByte;
  trim = (flags & TRIM) !== 0;
  direct = (flags & DIRECT) !== 0;
  emptyIsNull = (flags & EMPTY_IS_NULL) !== 0;
  ragged = (flags & PAD) !== 0;
  profiles = (flags & PROFILES) !== 0;
  cells = cellTable;
  width = cellCount;
  dropped = cellTable + <usize>cellCount * CELL_BYTES;
  nulls = nullTable;
  nullsEnd = nullTable + ((<usize>nullCount) << 3);
  nullLengths = 0;
  longestNull = 0;
  for (let entry = nulls; entry < nullsEnd; entry += 8) {
    const size = load<u32>(entry, 4);
    nullLengths |= 1 << min(size, 31);
    longestNull = max(longestNull, size);
  }
  store<u32>(cellText, STRING, TYPE);
}

/** Lines passed by the last {@link readRecords}. */
export function recordLines(): u32 {
  return lines;
}

/** Whether the last {@link readRecords} stopped at a record that does not end within the input. */
export function isCut(): bool {
  return cut;
}

/**
 * Takes records from `at` up to `end`, until the batch is full or a record is not whole or not sure.
 * @returns where the last record taken ends, its line end included; `at` if none was taken
 */
export function readRecords(at: usize, end: usize): usize {
  limit = end;
  lines = 0;
  cut = false;
  if (cellBatch !== batch) {
    clear(cellText);
    cellBatch = batch;
  }
  while (!full && at < limit) {
    const c: u32 = load<u8>(at);
    if ((c === LF || c === CR) && width !== 1) {
      // A blank line.
      const next = behindLine(at);
      if (next === 0) {
        cut = true;
        break;
      }
      lines++;
      at = next;
      continue;
    }
    const index = load<u32>(root, LENGTH);
    linesInRecord = 1;
    droppedCount = 0;
    const stop = readRecord(at, index);
    const next: usize = stop === 0 ? 0 : behindLine(stop);
    if (next === 0) {
      truncate(root, index);
      if (profiles) keepNotes(false);
      if (stop !== 0 || lineEnd(at) >= limit) cut = true;
      break;
    }
    store<u32>(root, index + 1, LENGTH);
    if (profiles) keepNotes(true);
    endRow(index + 1, stop - at);
    for (let i: u32 = 0; i < droppedCount; i++) {
      const cell = load<usize>(dropped + ((<usize>i) << 2));
      store<u32>(cell, load<u32>(cell, 4) + 1, 4);
    }
    lines += linesInRecord;
    at = next;
  }
  return at;
}

/** Whether what the profiles have noted of the record counts. */
function keepNotes(counts: bool): void {
  for (let cell = cells; cell < dropped; cell += CELL_BYTES) {
    const profile = load<usize>(cell);
    if (profile <= FORBIDDEN) continue;
    if (counts) keepNote(profile);
    else dropNote(profile);
  }
}

/** Where the line end at `at` ends: LF, CR LF or CR; 0 if that is not known before there is more input. */
function behindLine(at: usize): usize {
  if (load<u8>(at) === LF) return at < limit ? at + 1 : 0;
  if (at + 1 >= limit) return 0;
  return load<u8>(at, 1) === LF ? at + 2 : at + 1;
}

/** The first line end from `at` on, whatever the quotes. */
function lineEnd(at: usize): usize {
  let stop = 0;
  while (stop === 0) {
    const block = v128.load(at);
    stop = i8x16.bitmask(v128.or(i8x16.eq(block, i8x16.splat(<i8>LF)), i8x16.eq(block, i8x16.splat(<i8>CR))));
    at += 16;
  }
  return at - 16 + <usize>ctz(stop);
}

/** Bits of the bytes among sixteen that end an unquoted cell. */
function stops(block: v128): i32 {
  return i8x16.bitmask(
    v128.or(
      i8x16.eq(block, i8x16.splat(<i8>delimiter)),
      v128.or(i8x16.eq(block, i8x16.splat(<i8>LF)), i8x16.eq(block, i8x16.splat(<i8>CR))),
    ),
  );
}

function isBlank(c: u32): bool {
  return (c === SPACE || c === TAB) && c !== delimiter;
}

function skipBlanks(at: usize): usize {
  while (isBlank(load<u8>(at))) at++;
  return at;
}

/** Reads the record at `at` as row `index`; returns where its line end is, or 0. */
function readRecord(at: usize, index: u32): usize {
  let cell = cells;
  const last = cells + <usize>(width - 1) * CELL_BYTES;
  for (;;) {
    if (trim) at = skipBlanks(at);
    let c: u32 = load<u8>(at);
    const node = load<usize>(cell);
    let end: usize = 0;
    if (c === delimiter || c === LF || c === CR) {
      if (emptyIsNull) end = at;
    } else if (nulls !== nullsEnd && c !== quote) end = readNull(at);
    if (end !== 0) {
      if (node > FORBIDDEN && (load<u32>(node, FLAGS) & NULLABLE) === 0) return 0;
    } else if (node > FORBIDDEN) {
      if (load<u32>(node, LENGTH) < index) pad(node, index);
      if (load<u32>(node, TYPE) !== STRING) end = readCell(node, at, c);
      else end = c === quote ? readQuoted(node, at + 1) : readUnquoted(node, at);
    } else if (node === DROPPED) {
      end = readText(at, c);
      store<usize>(dropped + ((<usize>droppedCount) << 2), cell);
      droppedCount++;
    }
    if (end === 0) return 0;
    at = end;
    if (trim) at = skipBlanks(at);
    c = load<u8>(at);
    if (c === delimiter) {
      at++;
      if (cell === last) {
        // One empty cell too many.
        if (trim) at = skipBlanks(at);
        c = load<u8>(at);
        return ragged && (c === LF || c === CR) ? at : 0;
      }
      cell += CELL_BYTES;
      continue;
    }
    if (c !== LF && c !== CR) return 0;
    if (cell !== last && !isPadded(cell, last)) return 0;
    return at;
  }
}

/** Whether a record may end with the cell `cell`. One of a single cell may be a blank line. */
function isPadded(cell: usize, last: usize): bool {
  if (!ragged || cell === cells) return false;
  while (cell !== last) {
    cell += CELL_BYTES;
    const node = load<usize>(cell);
    if (node > FORBIDDEN && (load<u32>(node, FLAGS) & NULLABLE) === 0) return false;
  }
  return true;
}

/** Where the unquoted cell at `at`, which is not empty, ends if it is one of the texts that mean null; else 0. */
function readNull(at: usize): usize {
  let end = at;
  for (;;) {
    const stop = stops(v128.load(end));
    if (stop !== 0) {
      end += <usize>ctz(stop);
      break;
    }
    end += 16;
    if (!trim && end - at > longestNull) return 0;
  }
  let size = <u32>(end - at);
  if (trim) while (isBlank(load<u8>(at + size - 1))) size--;
  if (((nullLengths >>> min<u32>(size, 31)) & 1) === 0) return 0;
  for (let entry = nulls; entry < nullsEnd; entry += 8) {
    if (load<u32>(entry, 4) === size && memory.compare(load<usize>(entry), at, size) === 0) return end;
  }
  return 0;
}

/** Appends the unquoted cell at `at` to a column of text; returns where it ends. */
function readUnquoted(node: usize, at: usize): usize {
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  let values = load<usize>(node, VALUES);
  let bound = values + load<u32>(node, BYTES);
  const begin = load<u32>(node, END);
  let out = values + begin;
  for (;;) {
    // The last block may go beyond `bound`, by less than the arena's slack.
    if (out >= bound) {
      const used = <u32>(out - values);
      growBytes(node, used, used + 16);
      values = load<usize>(node, VALUES);
      bound = values + load<u32>(node, BYTES);
      out = values + used;
    }
    const block = v128.load(at);
    v128.store(out, block);
    const stop = stops(block);
    if (stop !== 0) {
      at += <usize>ctz(stop);
      out += <usize>ctz(stop);
      break;
    }
    at += 16;
    out += 16;
  }
  if (trim) while (out > values + begin && isBlank(load<u8>(out - 1))) out--;
  closeText(node, index, <u32>(out - values));
  return at;
}

/** Appends the cell behind the quote at `at - 1` to a column of text; returns where its quote is closed, or 0. */
function readQuoted(node: usize, at: usize): usize {
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  let values = load<usize>(node, VALUES);
  let bound = values + load<u32>(node, BYTES);
  let out = values + load<u32>(node, END);
  for (;;) {
    // As above; a block and the byte behind it are less than the slack, too.
    if (out >= bound) {
      const used = <u32>(out - values);
      growBytes(node, used, used + 16);
      values = load<usize>(node, VALUES);
      bound = values + load<u32>(node, BYTES);
      out = values + used;
    }
    const block = v128.load(at);
    v128.store(out, block);
    const stop = i8x16.bitmask(
      v128.or(
        v128.or(i8x16.eq(block, i8x16.splat(<i8>quote)), i8x16.eq(block, i8x16.splat(<i8>escaping))),
        v128.or(i8x16.eq(block, i8x16.splat(<i8>LF)), i8x16.eq(block, i8x16.splat(<i8>CR))),
      ),
    );
    if (stop === 0) {
      at += 16;
      out += 16;
      continue;
    }
    const run = <usize>ctz(stop);
    at += run;
    out += run;
    let c: u32 = load<u8>(at);
    if (c === quote) {
      if (escaping !== quote || load<u8>(at, 1) !== quote) break;
      at++;
    } else if (at >= limit) {
      cut = true;
      return 0;
    } else if (c === escaping) {
      const next: u32 = load<u8>(at, 1);
      // Before anything else it stands for itself.
      if (next === quote || next === escaping) {
        c = next;
        at++;
      }
    } else if (c === CR || load<u8>(at - 1) !== CR) linesInRecord++;
    store<u8>(out, c);
    at++;
    out++;
  }
  closeText(node, index, <u32>(out - values));
  return at + 1;
}

/** Reads the text of the cell at `at`, which begins with `c`, into {@link cellText}; returns where the cell ends, or 0. */
function readText(at: usize, c: u32): usize {
  store<u32>(cellText, 0, LENGTH);
  store<u32>(cellText, 0, END);
  return c === quote ? readQuoted(cellText, at + 1) : readUnquoted(cellText, at);
}

/** Appends the cell at `at`, which begins with `c`, to a column that is not of text; returns where it ends, or 0. */
function readCell(node: usize, at: usize, c: u32): usize {
  const type = load<u32>(node, TYPE);
  if (type === JSON_TEXT || (type >= STRUCT && type !== PROFILE)) return 0;
  if (direct && type !== BINARY && type !== FIXED && type !== PROFILE) {
    if (c !== quote) return readValue(node, at, type);
    at = readValue(node, at + 1, type);
    return at !== 0 && load<u8>(at) === quote ? at + 1 : 0;
  }
  const end = readText(at, c);
  if (end === 0) return 0;
  const text = load<usize>(cellText, VALUES);
  const textEnd = text + load<u32>(cellText, END);
  if (type === BINARY || type === FIXED) return appendBase64(node, text, textEnd) ? end : 0;
  store<u8>(textEnd, LF);
  if (type === PROFILE) return note(node, text, textEnd) ? end : 0;
  return readValue(node, text, type) === textEnd ? end : 0;
}

/** Appends the value at `at`, whatever follows it; returns where it ends, or 0. */
function readValue(node: usize, at: usize, type: u32): usize {
  switch (type) {
    case BOOL:
      return readBool(node, at);
    case FLOAT32:
    case FLOAT64:
      return readFraction(node, at, type);
    case DECIMAL: {
      const end = readDecimal(node, at, false);
      // Only with the places that the column has.
      if (strict && (<i64>scale > load<i64>(node, HIGH) || isMinusZero(at, end))) return 0;
      return end;
    }
    case TIMESTAMPTZ:
      at = readInstant(at);
      break;
    case TIMESTAMP:
      at = readTimestamp(at);
      break;
    case TIME:
      at = readTime(at);
      break;
    case DATE:
      at = readDate(at);
      if (at !== 0) store<i32>(slot(node), days);
      return at;
    case UUID:
      return appendUuid(node, at) ? at + 36 : 0;
    default:
      // An integer would lose the sign of −0.
      return load<u8>(at) === MINUS && load<u8>(at, 1) === ZERO ? 0 : readInteger(node, at, strict);
  }
  if (at !== 0) append64(node, <u64>micros);
  return at;
}

/** Whether the number is written as `-0`. */
function isMinusZero(at: usize, end: usize): bool {
  return end - at === 2 && load<u8>(at) === MINUS && load<u8>(at, 1) === ZERO;
}

/** Numbers of so many bytes have at most 15 digits, which a float64 keeps (see `csv-numbers.ts` of the sources). */
const SHORT_BYTES: usize = 16;
const FLOAT_DIGITS: i32 = 15;
/** Of so few digits, with fewer places than this, none is beyond the normal range. */
const SAFE_PLACES: i32 = 290;

function readFraction(node: usize, at: usize, type: u32): usize {
  const end = readFloat(node, at);
  if (end === 0) return strict ? 0 : readSpecial(node, at, type);
  if (strict) {
    if (exponential || isMinusZero(at, end)) return 0;
    if (end - at > SHORT_BYTES && !integer && (digits > FLOAT_DIGITS || scale > SAFE_PLACES)) return 0;
  }
  return end;
}

/** `NaN`, `Infinity` and `-Infinity`. */
function readSpecial(node: usize, at: usize, type: u32): usize {
  let value = NaN;
  if ((load<u32>(at) & 0xffffff) === 0x4e614e) at += 3;
  else {
    const minus = load<u8>(at) === MINUS;
    if (minus) at++;
    if (load<u64>(at) !== 0x7974696e69666e49) return 0;
    value = minus ? -Infinity : Infinity;
    at += 8;
  }
  if (type === FLOAT32) store<f32>(slot(node), <f32>value);
  else store<f64>(slot(node), value);
  return at;
}
