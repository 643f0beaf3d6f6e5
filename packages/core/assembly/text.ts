/** JSON strings (RFC 8259, section 7) → columns. The input is known to be UTF-8, and a byte below 0x20 ends it. */

import { BYTES, CAPACITY, END, FIXED, growBytes, growValues, HIGH, LENGTH, OFFSETS, TYPE, VALUES } from "./node";
import { slot } from "./number";

const QUOTE: u32 = 0x22;
const BACKSLASH: u32 = 0x5c;
const LOWER_U: u32 = 0x75;

/** Bits of the bytes among sixteen that end a run of plain characters: quote, backslash, control characters. */
function stops(block: v128): i32 {
  return i8x16.bitmask(
    v128.or(
      v128.or(i8x16.eq(block, i8x16.splat(0x22)), i8x16.eq(block, i8x16.splat(0x5c))),
      i8x16.lt_u(block, i8x16.splat(0x20)),
    ),
  );
}

/** Reads the string behind the quote at `at - 1` into a column; returns where it ends, or 0. */
export function readString(node: usize, at: usize): usize {
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  let values = load<usize>(node, VALUES);
  let limit = values + load<u32>(node, BYTES);
  let out = values + load<u32>(node, END);
  for (;;) {
    // The last run and an escape may go beyond `limit`, by less than the arena's slack.
    if (out >= limit) {
      const used = <u32>(out - values);
      growBytes(node, used, used + 16);
      values = load<usize>(node, VALUES);
      limit = values + load<u32>(node, BYTES);
      out = values + used;
    }
    const block = v128.load(at);
    v128.store(out, block);
    const stop = stops(block);
    if (stop === 0) {
      at += 16;
      out += 16;
      continue;
    }
    const run = <usize>ctz(stop);
    at += run;
    out += run;
    const c: u32 = load<u8>(at);
    if (c === QUOTE) break;
    if (c !== BACKSLASH) return 0;
    at = readEscape(at, out);
    if (at === 0) return 0;
    out += written;
  }
  closeText(node, index, <u32>(out - values));
  return at + 1;
}

/** Ends the text `index` of a column at the offset `end` of its bytes. */
export function closeText(node: usize, index: u32, end: u32): void {
  store<u32>(load<usize>(node, OFFSETS) + ((<usize>index) << 2), end, 4);
  store<u32>(node, end, END);
  store<u32>(node, index + 1, LENGTH);
}

/** Appends the bytes `[start, end)` to a column. */
export function appendBytes(node: usize, start: usize, end: usize): void {
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  const from = load<u32>(node, END);
  const to = from + <u32>(end - start);
  growBytes(node, from, to);
  memory.copy(load<usize>(node, VALUES) + from, start, end - start);
  store<u32>(load<usize>(node, OFFSETS) + ((<usize>index) << 2), to, 4);
  store<u32>(node, to, END);
  store<u32>(node, index + 1, LENGTH);
}

/** Bytes that the last {@link readEscape} has written. */
let written: usize = 0;

/** What the letters b, f, n, r, t, the quote and both slashes stand for after a backslash, from 0x22 on; 0 for the others. */
const ESCAPES = memory.data<u8>([
  0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x5c, 0, 0, 0, 0, 0, 0x08, 0, 0, 0, 0x0c, 0, 0, 0, 0,
  0, 0, 0, 0x0a, 0, 0, 0, 0x0d, 0, 0x09,
]);

/** Writes the character of the escape at `at` to `to`, as one to four bytes; returns where the escape ends, or 0. */
function readEscape(at: usize, to: usize): usize {
  const letter: u32 = load<u8>(at, 1);
  if (letter !== LOWER_U) {
    if (letter - 0x22 > 0x74 - 0x22) return 0;
    const character: u32 = load<u8>(ESCAPES + (letter - 0x22));
    if (character === 0) return 0;
    store<u8>(to, character);
    written = 1;
    return at + 2;
  }
  const unit = hexUnit(at + 2);
  if (unit > 0xffff) return 0;
  if (unit < 0x80) {
    store<u8>(to, unit);
    written = 1;
  } else if (unit < 0x800) {
    store<u8>(to, 0xc0 | (unit >>> 6));
    store<u8>(to, 0x80 | (unit & 0x3f), 1);
    written = 2;
  } else if ((unit & 0xf800) !== 0xd800) {
    store<u8>(to, 0xe0 | (unit >>> 12));
    store<u8>(to, 0x80 | ((unit >>> 6) & 0x3f), 1);
    store<u8>(to, 0x80 | (unit & 0x3f), 2);
    written = 3;
  } else {
    // UTF-8 cannot express half of a surrogate pair.
    if (unit >= 0xdc00 || load<u8>(at, 6) !== BACKSLASH || load<u8>(at, 7) !== LOWER_U) return 0;
    const low = hexUnit(at + 8);
    if ((low & 0xfffffc00) !== 0xdc00) return 0;
    const point = 0x10000 + ((unit & 0x3ff) << 10) + (low & 0x3ff);
    store<u8>(to, 0xf0 | (point >>> 18));
    store<u8>(to, 0x80 | ((point >>> 12) & 0x3f), 1);
    store<u8>(to, 0x80 | ((point >>> 6) & 0x3f), 2);
    store<u8>(to, 0x80 | (point & 0x3f), 3);
    written = 4;
    return at + 12;
  }
  return at + 6;
}

/** Four hexadecimal digits, or more than 0xffff. */
function hexUnit(at: usize): u32 {
  let unit: u32 = 0;
  for (let i: usize = 0; i < 4; i++) {
    const digit = hexDigit(load<u8>(at + i));
    if (digit > 15) return 0x10000;
    unit = (unit << 4) | digit;
  }
  return unit;
}

/** A hexadecimal digit, or more than 15. */
function hexDigit(c: u32): u32 {
  const decimal = c - 0x30;
  if (decimal < 10) return decimal;
  const letter = (c | 0x20) - 0x61;
  return letter < 6 ? letter + 10 : 16;
}

/** Room for the character of an escape that is only stepped over. */
const SCRATCH = memory.data(16, 16);

/** Steps over the string behind the quote at `at - 1`; returns where it ends, or 0. */
export function skipString(at: usize): usize {
  while (at !== 0) {
    const stop = stops(v128.load(at));
    if (stop === 0) {
      at += 16;
      continue;
    }
    at += <usize>ctz(stop);
    const c: u32 = load<u8>(at);
    if (c === QUOTE) return at + 1;
    if (c !== BACKSLASH) return 0;
    at = readEscape(at, SCRATCH);
  }
  return 0;
}

/** Reads the uuid behind the quote at `at - 1`; returns where its string ends, or 0. */
export function readUuid(node: usize, at: usize): usize {
  return load<u8>(at, 36) === QUOTE && appendUuid(node, at) ? at + 37 : 0;
}

/** Appends the uuid at `at`, 36 bytes in groups of 8-4-4-4-12 digits; false, and nothing is appended, if it is none. */
export function appendUuid(node: usize, at: usize): bool {
  // Checked whole before the column is touched.
  for (let i: usize = 0; i < 36; i++) {
    const c: u32 = load<u8>(at + i);
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (c !== 0x2d) return false;
    } else if (hexDigit(c) > 15) return false;
  }
  const to = slot(node);
  let from = at;
  for (let i: usize = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) from++;
    store<u8>(to + i, (hexDigit(load<u8>(from)) << 4) | hexDigit(load<u8>(from, 1)));
    from += 2;
  }
  return true;
}

/** A base64 digit, or more than 63. */
function base64Digit(c: u32): u32 {
  const upper = c - 0x41;
  if (upper < 26) return upper;
  const lower = c - 0x61;
  if (lower < 26) return lower + 26;
  const decimal = c - 0x30;
  if (decimal < 10) return decimal + 52;
  return c === 0x2b ? 62 : c === 0x2f ? 63 : 64;
}

/** Reads the base64 behind the quote at `at - 1` into a column; returns where its string ends, or 0. */
export function readBase64(node: usize, at: usize): usize {
  let end = at;
  let stop = stops(v128.load(end));
  while (stop === 0) {
    end += 16;
    stop = stops(v128.load(end));
  }
  end += <usize>ctz(stop);
  // Escapes and control characters are left to TypeScript.
  return load<u8>(end) === QUOTE && appendBase64(node, at, end) ? end + 1 : 0;
}

/**
 * Appends the base64 in `[at, end)` (RFC 4648, section 4: padded, canonical) to a column of type binary or fixed;
 * false, and nothing is appended, if it is none.
 */
export function appendBase64(node: usize, at: usize, end: usize): bool {
  const size = end - at;
  if ((size & 3) !== 0) return false;
  const padding: usize = size === 0 || load<u8>(end - 1) !== 0x3d ? 0 : load<u8>(end - 2) !== 0x3d ? 1 : 2;
  const length = (size >>> 2) * 3 - padding;
  if (load<u32>(node, TYPE) === FIXED) {
    if (<i64>length !== load<i64>(node, HIGH)) return false;
    if (!decodeBase64(at, end, padding, slot(node))) {
      store<u32>(node, load<u32>(node, LENGTH) - 1, LENGTH);
      return false;
    }
    return true;
  }
  const from = load<u32>(node, END);
  // The decoder writes three bytes at once: up to two beyond the length, which the slack of the arena takes.
  growBytes(node, from, from + <u32>length);
  const to = load<usize>(node, VALUES) + from;
  if (!decodeBase64(at, end, padding, to)) return false;
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  store<u32>(load<usize>(node, OFFSETS) + ((<usize>index) << 2), from + <u32>length, 4);
  store<u32>(node, from + <u32>length, END);
  store<u32>(node, index + 1, LENGTH);
  return true;
}

function decodeBase64(at: usize, end: usize, padding: usize, to: usize): bool {
  while (at < end) {
    const pad = at + 4 === end ? padding : 0;
    const a = base64Digit(load<u8>(at));
    const b = base64Digit(load<u8>(at, 1));
    const c = pad === 2 ? 0 : base64Digit(load<u8>(at, 2));
    const d = pad > 0 ? 0 : base64Digit(load<u8>(at, 3));
    if ((a | b | c | d) > 63) return false;
    // Bits that the padding cuts off must be zero, or two texts would mean one value.
    if ((pad === 2 && (b & 15) !== 0) || (pad === 1 && (c & 3) !== 0)) return false;
    store<u8>(to, (a << 2) | (b >>> 4));
    if (pad < 2) store<u8>(to, (b << 4) | (c >>> 2), 1);
    if (pad < 1) store<u8>(to, (c << 6) | d, 2);
    to += 3;
    at += 4;
  }
  return true;
}
