/**
 * What the cells of a CSV column have in common, for inference: its kinds of text, and of its numbers those that stand
 * for all others. A profile lies where a record would look for a column, but holds no values. TypeScript lays it out
 * (`csv-profile.ts`, same numbers) and has the rules; what this cannot tell exactly is left to it.
 */

import { FLAGS } from "./node";
import { digits, exponential, integer, mantissa, negative, readNumber, scale } from "./number";
import { readDate, readInstant, readTimestamp } from "./temporal";

/** The type of a node that is a profile. */
export const PROFILE: u32 = 25;

/** Flags beside those of a node: dates and times are kinds; any other text decides; fractions are left alone. */
const TEMPORAL: u32 = 4;
const OPEN: u32 = 8;
const EXACT: u32 = 16;

/** Byte offsets within a profile: bits of kinds; the kind of the record's cell, and its number. */
const KINDS: usize = 12;
const KIND: usize = 16;
const PLACES: usize = 20;
const NUMBER: usize = 24;
const DIGITS: usize = 32;
/** Integers: the bounds, and the one of most bits. */
const LOWEST: usize = 40;
const HIGHEST: usize = 48;
const WIDEST: usize = 56;
const WIDEST_BITS: usize = 36;
/** Fractions: most digits before the point and places, those written and those that count; the one of most digits. */
const MOST_DIGITS: usize = 64;
const MOST_PLACES: usize = 68;
const MOST_WRITTEN: usize = 72;
const LONGEST_DIGITS: usize = 76;
const LONGEST: usize = 80;
const LONGEST_PLACES: usize = 88;

const INTEGER: u32 = 1;
const BOOL: u32 = 2;
const DATE: u32 = 4;
const TIMESTAMP: u32 = 8;
const INSTANT: u32 = 16;
const TEXT: u32 = 32;
const FRACTION: u32 = 64;

const MINUS: u32 = 0x2d;
const TRUE_TEXT: u32 = 0x65757274;
const ALSE_TEXT: u32 = 0x65736c61;
/** Digits that a mantissa holds, and places that are no matter of exponents. */
const MAX_DIGITS: i32 = 19;

/** Notes the cell `[text, end)`, behind which there is a line feed; false if TypeScript must look at it. */
export function note(profile: usize, text: usize, end: usize): bool {
  const flags = load<u32>(profile, FLAGS);
  if ((flags & OPEN) !== 0 && (load<u32>(profile, KINDS) & TEXT) !== 0) return true;
  const size = end - text;
  const c: u32 = load<u8>(text);
  const isDigit = c - 0x30 < 10;
  let kind = TEXT;
  if (isDigit || c === MINUS) {
    if (readNumber(text) === end && !exponential) {
      // Minus zero is no integer.
      if (!integer || !negative || digits > 0) {
        if (digits > MAX_DIGITS || mantissa > <u64>i64.MAX_VALUE) return false;
        if (!integer && (scale > MAX_DIGITS || (flags & EXACT) !== 0)) return false;
        kind = integer ? INTEGER : FRACTION;
        store<i64>(profile, integer && negative ? -(<i64>mantissa) : <i64>mantissa, NUMBER);
        store<i32>(profile, scale, PLACES);
        store<i32>(profile, digits, DIGITS);
      }
    } else if (isDigit && (flags & TEMPORAL) !== 0) {
      if (size === 10) {
        if (readDate(text) !== 0) kind = DATE;
      } else if (readInstant(text) === end) kind = INSTANT;
      else if (readTimestamp(text) === end) kind = TIMESTAMP;
    }
  } else if (size === 4) {
    if (load<u32>(text) === TRUE_TEXT) kind = BOOL;
  } else if (size === 5 && c === 0x66 && load<u32>(text, 1) === ALSE_TEXT) kind = BOOL;
  store<u32>(profile, kind, KIND);
  return true;
}

/** The record counts: its cell is one of the column's. */
export function keepNote(profile: usize): void {
  const kind = load<u32>(profile, KIND);
  if (kind === 0) return;
  store<u32>(profile, 0, KIND);
  const kinds = load<u32>(profile, KINDS);
  store<u32>(profile, kinds | kind, KINDS);
  if (kind === INTEGER) keepInteger(profile, (kinds & INTEGER) === 0);
  else if (kind === FRACTION) keepFraction(profile);
}

export function dropNote(profile: usize): void {
  store<u32>(profile, 0, KIND);
}

function keepInteger(profile: usize, first: bool): void {
  const value = load<i64>(profile, NUMBER);
  if (first || value < load<i64>(profile, LOWEST)) store<i64>(profile, value, LOWEST);
  if (first || value > load<i64>(profile, HIGHEST)) store<i64>(profile, value, HIGHEST);
  const bits = value === 0 ? 0 : <i32>(64 - clz(abs(value)) - ctz(value));
  if (first || bits > load<i32>(profile, WIDEST_BITS)) {
    store<i32>(profile, bits, WIDEST_BITS);
    store<i64>(profile, value, WIDEST);
  }
}

function keepFraction(profile: usize): void {
  const value = load<u64>(profile, NUMBER);
  const written = load<i32>(profile, PLACES);
  let size = load<i32>(profile, DIGITS);
  store<i32>(profile, max(load<i32>(profile, MOST_DIGITS), size - written), MOST_DIGITS);
  store<i32>(profile, max(load<i32>(profile, MOST_WRITTEN), written), MOST_WRITTEN);
  let places = value === 0 ? 0 : written;
  // Zeros at the end do not count.
  for (let rest = value; rest !== 0 && rest % 10 === 0; rest /= 10) {
    places--;
    size--;
  }
  store<i32>(profile, max(load<i32>(profile, MOST_PLACES), places), MOST_PLACES);
  if (size > load<i32>(profile, LONGEST_DIGITS)) {
    store<i32>(profile, size, LONGEST_DIGITS);
    store<u64>(profile, value, LONGEST);
    store<i32>(profile, written, LONGEST_PLACES);
  }
}
