/** Numbers as JSON writes them (RFC 8259, section 6) → columns. What this cannot take exactly is left to TypeScript. */

import { nearest } from "./float";
import {
  CAPACITY,
  FLOAT32,
  growValues,
  HIGH,
  INT16,
  INT32,
  INT64,
  LENGTH,
  LOW,
  TYPE,
  UINT16,
  UINT32,
  UINT64,
  VALUES,
  WIDTH,
} from "./node";
import { multiply, tenTo, upper } from "./wide";

const MINUS: u32 = 0x2d;
const POINT: u32 = 0x2e;
const ZERO: u32 = 0x30;

/** Digits that a u64 holds, whatever they are. */
const MAX_DIGITS: i32 = 19;

/** What {@link readNumber} read: ± mantissa × 10^−scale. The mantissa is meaningless beyond 19 digits. */
export let mantissa: u64 = 0;
export let scale: i32 = 0;
/** Significant digits: without leading zeros. */
export let digits: i32 = 0;
export let negative: bool = false;
/** Written without fraction and exponent; with an exponent. */
export let integer: bool = false;
export let exponential: bool = false;

function isDigit(c: u32): bool {
  return c - ZERO < 10;
}

/** Reads the number at `at`; returns where it ends, or 0 where the grammar is broken. */
export function readNumber(at: usize): usize {
  let c: u32 = load<u8>(at);
  negative = c === MINUS;
  if (c === MINUS) c = load<u8>(++at);
  if (!isDigit(c)) return 0;
  let m: u64 = 0;
  let n: i32 = 0;
  let begin = at;
  if (c === ZERO) {
    c = load<u8>(++at);
    if (isDigit(c)) return 0;
  } else {
    do {
      m = m * 10 + (c - ZERO);
      c = load<u8>(++at);
    } while (isDigit(c));
    n = <i32>(at - begin);
  }
  let places: i32 = 0;
  integer = true;
  exponential = false;
  if (c === POINT) {
    integer = false;
    begin = ++at;
    c = load<u8>(at);
    // Zeros before the first digit that counts.
    if (n === 0) while (c === ZERO) c = load<u8>(++at);
    const first = at;
    while (isDigit(c)) {
      m = m * 10 + (c - ZERO);
      c = load<u8>(++at);
    }
    n += <i32>(at - first);
    places = <i32>(at - begin);
    if (places === 0) return 0;
  }
  if ((c | 0x20) === 0x65) {
    integer = false;
    exponential = true;
    c = load<u8>(++at);
    const down = c === MINUS;
    if (down || c === 0x2b) c = load<u8>(++at);
    if (!isDigit(c)) return 0;
    let exponent: i32 = 0;
    do {
      if (exponent < 1000000) exponent = exponent * 10 + <i32>(c - ZERO);
      c = load<u8>(++at);
    } while (isDigit(c));
    places += down ? exponent : -exponent;
  }
  mantissa = m;
  digits = n;
  scale = places;
  return at;
}

/** Whether the number read last is within the range of float64, as far as this can tell. */
export function inRange(): bool {
  return digits - scale <= 300;
}

/** An integer of up to 64 bits. `strict`: not as `1.0` or `1e3`, though these are integers. */
export function readInteger(node: usize, at: usize, strict: bool): usize {
  const start = at;
  let c: u32 = load<u8>(at);
  const minus = c === MINUS;
  if (minus) c = load<u8>(++at);
  if (!isDigit(c)) return 0;
  let value: u64 = c - ZERO;
  const first = at;
  c = load<u8>(++at);
  if (value === 0) {
    if (isDigit(c)) return 0;
  } else {
    while (isDigit(c)) {
      value = value * 10 + (c - ZERO);
      c = load<u8>(++at);
    }
  }
  const type = load<u32>(node, TYPE);
  if (at - first > <usize>MAX_DIGITS) {
    if (type !== UINT64 || at - first > 20) return 0;
    // The first digit of the largest one is 1, and a sum beyond it wraps to less than 10^19.
    if (load<u8>(first) !== 0x31 || value < 10000000000000000000) return 0;
  }
  if (c === POINT || (c | 0x20) === 0x65) {
    if (strict) return 0;
    at = readNumber(start);
    if (at === 0 || !shiftToInteger()) return 0;
    value = mantissa;
  }
  if (type === UINT64) {
    if (minus && value !== 0) return 0;
    append64(node, value);
    return at;
  }
  // The magnitude of the smallest is one more than that of the largest.
  if (value > <u64>i64.MAX_VALUE + <u64>minus) return 0;
  const signed = minus ? -(<i64>value) : <i64>value;
  if (type === INT64) append64(node, <u64>signed);
  else {
    if (signed < load<i64>(node, LOW) || signed > load<i64>(node, HIGH)) return 0;
    const address = slot(node);
    if (type === INT32 || type === UINT32) store<i32>(address, <i32>signed);
    else if (type === INT16 || type === UINT16) store<i16>(address, <i16>signed);
    else store<i8>(address, <i8>signed);
  }
  return at;
}

/** Makes `mantissa` the value of the number read last; false where that is no integer or has too many digits. */
function shiftToInteger(): bool {
  if (digits > MAX_DIGITS) return false;
  if (digits === 0) return true;
  const whole = digits - scale;
  if (whole < 1 || whole > MAX_DIGITS) return false;
  if (scale > 0) {
    const unit = tenTo(scale);
    if (mantissa % unit !== 0) return false;
    mantissa /= unit;
  } else mantissa *= tenTo(-scale);
  return true;
}

export function readFloat(node: usize, at: usize): usize {
  at = readNumber(at);
  if (at === 0 || digits > MAX_DIGITS) return 0;
  const single = load<u32>(node, TYPE) === FLOAT32;
  let value: f64;
  if (integer) {
    // An integer must be exact: rounding is for fractions.
    const bits = mantissa === 0 ? 0 : 64 - clz(mantissa) - ctz(mantissa);
    if (bits > (single ? 24 : 53)) return 0;
    value = <f64>mantissa;
  } else {
    value = nearest(mantissa, -scale);
    if (Number.isNaN(value)) return 0;
  }
  if (negative) value = -value;
  const address = slot(node);
  if (single) {
    const rounded = <f32>value;
    if (abs(rounded) === Infinity) {
      store<u32>(node, load<u32>(node, LENGTH) - 1, LENGTH);
      return 0;
    }
    store<f32>(address, rounded);
  } else store<f64>(address, value);
  return at;
}

/** A decimal, as its unscaled value in 128 bits. `strict`: not as `1.0` where it has no places. */
export function readDecimal(node: usize, at: usize, strict: bool): usize {
  at = readNumber(at);
  if (at === 0 || digits > MAX_DIGITS || exponential) return 0;
  if (strict && !integer && load<i64>(node, HIGH) === 0) return 0;
  let low: u64 = 0;
  let high: u64 = 0;
  if (digits > 0) {
    const shift = <i32>load<i64>(node, HIGH) - scale;
    const total = digits + shift;
    if (total > <i32>load<i64>(node, LOW) || total < 1 || shift > MAX_DIGITS) return 0;
    if (shift >= 0) {
      low = multiply(mantissa, tenTo(shift));
      high = upper;
    } else {
      const unit = tenTo(-shift);
      if (mantissa % unit !== 0) return 0;
      low = mantissa / unit;
    }
    if (negative) {
      low = -low;
      high = ~high + u64(low === 0);
    }
  }
  const address = slot(node);
  store<u64>(address, low);
  store<u64>(address, high, 8);
  return at;
}

/** Appends a value of eight bytes. */
export function append64(node: usize, value: u64): void {
  store<u64>(slot(node), value);
}

/** The address of one value more of a fixed width. */
export function slot(node: usize): usize {
  const index = load<u32>(node, LENGTH);
  if (index >= load<u32>(node, CAPACITY)) growValues(node, index + 1);
  store<u32>(node, index + 1, LENGTH);
  return load<usize>(node, VALUES) + <usize>index * load<u32>(node, WIDTH);
}
