/**
 * Dates, times and timestamps as text, strictly: `YYYY-MM-DD`, `HH:MM:SS` with up to 9 digits of fraction, and both
 * joined by `T`, followed by `Z` or `±HH:MM` for an instant. Years are 0001 to 9999, days are those of the calendar,
 * there is no 24:00 and no :60. Digits beyond microseconds must be zeros: nothing is rounded.
 */

const ZERO = 0x30;
const DASH = 0x2d;
const COLON = 0x3a;
const POINT = 0x2e;
const PLUS = 0x2b;
const UPPER_T = 0x54;
const UPPER_Z = 0x5a;
const SPACE = 0x20;

const DAY_SECONDS = 86_400;
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds since the epoch. */
const FIRST_SECOND = -62_135_596_800;
const LAST_SECOND = 253_402_300_799;

const MONTH_DAYS: readonly number[] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Days since 1970-01-01 of a date of the proleptic Gregorian calendar; years are counted from March. */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** Two digits as a number, or -1. */
function two(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]! - ZERO;
  const ones = bytes[at + 1]! - ZERO;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : -1;
}

/** Reads temporal text from bytes. Keeps the last date, because neighbouring rows often share it. */
export class TemporalReader {
  /** Result of {@link date}: days since 1970-01-01. */
  days = 0;
  /** Result of {@link time}, {@link timestamp} and {@link instant}: microseconds as halves of a 64-bit integer. */
  low = 0;
  high = 0;
  /** Seconds since midnight and microseconds of the last time of day. */
  #seconds = 0;
  #micros = 0;
  /** The last date as yyyymmdd; equal to none at first, not even to 0000-00-00. */
  #lastDate: number = Number.NaN;
  #lastDays = 0;

  /** `2031-02-03` */
  date(bytes: Uint8Array, start: number, end: number): boolean {
    return end - start === 10 && this.#date(bytes, start);
  }

  /** `04:05:06.789` since midnight. */
  time(bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#time(bytes, start, end) !== end) return false;
    this.#combine(this.#seconds, this.#micros);
    return true;
  }

  /** `2031-02-03T04:05:06`, also with a space for the `T`; no zone. */
  timestamp(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start < 19) return false;
    const separator = bytes[start + 10];
    if (separator !== UPPER_T && separator !== SPACE) return false;
    if (!this.#date(bytes, start) || this.#time(bytes, start + 11, end) !== end) return false;
    this.#combine(this.days * DAY_SECONDS + this.#seconds, this.#micros);
    return true;
  }

  /** `2031-02-03T04:05:06Z` or with an offset such as `+05:30`; an instant in UTC. */
  instant(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start < 20 || bytes[start + 10] !== UPPER_T || !this.#date(bytes, start)) return false;
    const zone = this.#time(bytes, start + 11, end);
    if (zone === -1) return false;
    let offset = 0;
    const sign = bytes[zone];
    if (sign === UPPER_Z) {
      if (zone + 1 !== end) return false;
    } else {
      if ((sign !== PLUS && sign !== DASH) || zone + 6 !== end || bytes[zone + 3] !== COLON) return false;
      const hours = two(bytes, zone + 1);
      const minutes = two(bytes, zone + 4);
      if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return false;
      offset = (hours * 60 + minutes) * 60;
      if (sign === DASH) offset = -offset;
    }
    const seconds = this.days * DAY_SECONDS + this.#seconds - offset;
    if (seconds < FIRST_SECOND || seconds > LAST_SECOND) return false;
    this.#combine(seconds, this.#micros);
    return true;
  }

  /** An instant in milliseconds since the epoch, as `Date` counts them. False for NaN and years outside 0001–9999. */
  milliseconds(value: number): boolean {
    const seconds = Math.floor(value / 1000);
    if (!(seconds >= FIRST_SECOND && seconds <= LAST_SECOND)) return false;
    this.#combine(seconds, (value - seconds * 1000) * 1000);
    return true;
  }

  #date(bytes: Uint8Array, at: number): boolean {
    if (bytes[at + 4] !== DASH || bytes[at + 7] !== DASH) return false;
    const century = two(bytes, at);
    const rest = two(bytes, at + 2);
    const month = two(bytes, at + 5);
    const day = two(bytes, at + 8);
    if (century < 0 || rest < 0) return false;
    const year = century * 100 + rest;
    const key = (year * 100 + month) * 100 + day;
    if (key !== this.#lastDate) {
      if (year < 1 || month < 1 || month > 12 || day < 1) return false;
      const leap = month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
      if (day > MONTH_DAYS[month - 1]! + (leap ? 1 : 0)) return false;
      this.#lastDays = daysFromCivil(year, month, day);
      this.#lastDate = key;
    }
    this.days = this.#lastDays;
    return true;
  }

  /** Reads a time of day; returns where it ends, or -1. */
  #time(bytes: Uint8Array, start: number, end: number): number {
    if (end - start < 8 || bytes[start + 2] !== COLON || bytes[start + 5] !== COLON) return -1;
    const hours = two(bytes, start);
    const minutes = two(bytes, start + 3);
    const seconds = two(bytes, start + 6);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || seconds < 0 || seconds > 59) return -1;
    this.#seconds = (hours * 60 + minutes) * 60 + seconds;
    this.#micros = 0;
    let at = start + 8;
    if (at >= end || bytes[at] !== POINT) return at;
    let unit = 100_000;
    const first = ++at;
    for (; at < end; at++) {
      const digit = bytes[at]! - ZERO;
      if (digit < 0 || digit > 9) break;
      if (unit === 0) {
        if (digit !== 0) return -1;
        continue;
      }
      this.#micros += digit * unit;
      unit = unit === 1 ? 0 : unit / 10;
    }
    return at === first || at - first > 9 ? -1 : at;
  }

  /** seconds × 10^6 + micros, in halves. The product needs up to 58 bits, so that it is made in two parts. */
  #combine(seconds: number, micros: number): void {
    const upper = Math.floor(seconds / 0x1_0000);
    const lower = (seconds - upper * 0x1_0000) * 1_000_000 + micros;
    const product = upper * 1_000_000;
    const productHigh = Math.floor(product / 0x1_0000);
    const sum = (product - productHigh * 0x1_0000) * 0x1_0000 + lower;
    this.high = productHigh + Math.floor(sum / 0x1_0000_0000);
    this.low = sum | 0;
  }
}
