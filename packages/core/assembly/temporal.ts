/**
 * Dates, times and timestamps as text, strictly, by the rules of `temporal.ts` of the sources: years 0001 to 9999, days
 * of the calendar, no 24:00 and no :60, up to 9 digits of fraction of which those beyond microseconds are zeros.
 */

const DASH: u32 = 0x2d;
const COLON: u32 = 0x3a;
const ZERO: u32 = 0x30;

const DAY_SECONDS: i64 = 86400;
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds since the epoch. */
const FIRST_SECOND: i64 = -62135596800;
const LAST_SECOND: i64 = 253402300799;

/** Results of {@link readDate} and {@link readTime}: days since 1970-01-01; microseconds since midnight. */
export let days: i32 = 0;
export let micros: i64 = 0;

/** The ten bytes of the last date, because neighbouring rows often share it. */
let lastStart: u64 = 0;
let lastEnd: u32 = 0;

/** Two digits as a number, or one of at least 100. */
function two(at: usize): u32 {
  const tens = <u32>load<u8>(at) - ZERO;
  const ones = <u32>load<u8>(at, 1) - ZERO;
  return tens < 10 && ones < 10 ? tens * 10 + ones : 100;
}

/** Reads `2031-02-03`; returns where it ends, or 0. */
export function readDate(at: usize): usize {
  const start = load<u64>(at);
  const end: u32 = load<u16>(at, 8);
  if (start === lastStart && end === lastEnd) return at + 10;
  if (load<u8>(at, 4) !== DASH || load<u8>(at, 7) !== DASH) return 0;
  const century = two(at);
  const rest = two(at + 2);
  const month = two(at + 5);
  const day = two(at + 8);
  if (century > 99 || rest > 99) return 0;
  const year = century * 100 + rest;
  if (year < 1 || month < 1 || month > 12 || day < 1) return 0;
  const leap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const last: u32 = month === 2 ? 28 + u32(leap) : 30 + ((month + (month >>> 3)) & 1);
  if (day > last) return 0;
  // Years counted from March, in eras of 400 (the proleptic Gregorian calendar).
  const y = year - u32(month <= 2);
  const era = y / 400;
  const yearOfEra = y - era * 400;
  const dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  days = <i32>(era * 146097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear) - 719468;
  lastStart = start;
  lastEnd = end;
  return at + 10;
}

/** Reads `04:05:06.789`; returns where it ends, or 0. */
export function readTime(at: usize): usize {
  const hours = two(at);
  const minutes = two(at + 3);
  const seconds = two(at + 6);
  if (load<u8>(at, 2) !== COLON || load<u8>(at, 5) !== COLON || hours > 23 || minutes > 59 || seconds > 59) return 0;
  let fraction: u32 = 0;
  at += 8;
  if (load<u8>(at) === 0x2e) {
    const first = ++at;
    let digit = <u32>load<u8>(at) - ZERO;
    while (digit < 10 && at - first < 9) {
      fraction = fraction * 10 + digit;
      digit = <u32>load<u8>(++at) - ZERO;
    }
    const count = at - first;
    if (count === 0 || digit < 10) return 0;
    if (count === 3) fraction *= 1000;
    else {
      for (let i = count; i < 6; i++) fraction *= 10;
      for (let i: usize = 6; i < count; i++) {
        if (fraction % 10 !== 0) return 0;
        fraction /= 10;
      }
    }
  }
  micros = <i64>((hours * 60 + minutes) * 60 + seconds) * 1000000 + fraction;
  return at;
}

/** Reads `2031-02-03T04:05:06`, also with a space for the `T`, into {@link micros} since the epoch; returns where it ends, or 0. */
export function readTimestamp(at: usize): usize {
  if (readDate(at) === 0) return 0;
  const separator: u32 = load<u8>(at, 10);
  if (separator !== 0x54 && separator !== 0x20) return 0;
  at = readTime(at + 11);
  micros += <i64>days * (DAY_SECONDS * 1000000);
  return at;
}

/** Reads `2031-02-03T04:05:06Z` or with an offset such as `+05:30` into {@link micros} since the epoch; returns where it ends, or 0. */
export function readInstant(at: usize): usize {
  if (load<u8>(at, 10) !== 0x54) return 0;
  at = readTimestamp(at);
  if (at === 0) return 0;
  const sign: u32 = load<u8>(at);
  if (sign === 0x5a) return at + 1;
  if ((sign !== 0x2b && sign !== DASH) || load<u8>(at, 3) !== COLON) return 0;
  const hours = two(at + 1);
  const minutes = two(at + 4);
  if (hours > 23 || minutes > 59) return 0;
  const offset = <i64>(hours * 60 + minutes) * 60000000;
  micros += sign === DASH ? offset : -offset;
  // The last second goes on until its end.
  if (micros < FIRST_SECOND * 1000000 || micros >= (LAST_SECOND + 1) * 1000000) return 0;
  return at + 6;
}
