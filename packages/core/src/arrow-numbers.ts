/** Arrow's number, date and time encodings that are not ours, as ours. */

import { DAY_MICROS } from "./calendar.js";
import { bigFromHalves, divideHalves, fromHalves, isSafe, readInt128 } from "./integers.js";
import { wordsOf } from "./layout.js";

/** The values of a column, each of `width` bytes. */
export interface ArrowNumbers {
  readonly bytes: Uint8Array;
  readonly width: number;
  readonly length: number;
}

/** Told of a value beyond what its type holds. Throws, unless the value is null: then its slot holds anything. */
export type OutOfRange = (row: number) => void;

/** Units as Arrow numbers them. */
export const MICROSECOND = 2;
const NANOSECOND = 3;
/** Microseconds per second and millisecond. */
const MICROS_PER_UNIT = [1_000_000, 1000] as const;

const DAY_MILLIS = 86_400_000;

export function halfFloats({ bytes, length }: ArrowNumbers): Float32Array {
  return Float32Array.from({ length }, (_, i) => halfFloat(bytes[2 * i]! | (bytes[2 * i + 1]! << 8)));
}

/** IEEE 754 binary16. */
function halfFloat(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Decimals of 32, 64, 128 or 256 bits, as 128; all within their precision. */
export function decimals(source: ArrowNumbers, precision: number, outOfRange: OutOfRange): Uint8Array {
  const bytes = source.width === 16 ? source.bytes : resize(source, outOfRange);
  const words = wordsOf(bytes);
  const limit = 10n ** BigInt(precision);
  const numberLimit = Math.min(Number(limit), Number.MAX_SAFE_INTEGER);
  for (let i = 0; i < source.length; i++) {
    const high = words[4 * i + 1]! | 0;
    const sign = high >> 31;
    if ((words[4 * i + 2]! | 0) === sign && (words[4 * i + 3]! | 0) === sign && isSafe(high)) {
      if (Math.abs(fromHalves(words[4 * i]!, high)) < numberLimit) continue;
    }
    const value = readInt128(bytes, i * 16);
    if (value >= limit || value <= -limit) outOfRange(i);
  }
  return bytes;
}

function resize({ bytes, width, length }: ArrowNumbers, outOfRange: OutOfRange): Uint8Array {
  const out = new Uint8Array(length * 16);
  const kept = Math.min(width, 16);
  for (let i = 0; i < length; i++) {
    const sign = bytes[(i + 1) * width - 1]! & 0x80 ? 0xff : 0;
    for (let k = 0; k < kept; k++) out[i * 16 + k] = bytes[i * width + k]!;
    for (let k = kept; k < 16; k++) out[i * 16 + k] = sign;
    // All above the low half must repeat its sign.
    let fits = (out[i * 16 + 15]! & 0x80) === (sign & 0x80);
    for (let k = 16; k < width; k++) fits &&= bytes[i * width + k] === sign;
    if (!fits) outOfRange(i);
  }
  return out;
}

/** Milliseconds to days. */
export function datesOfMillis({ bytes, length }: ArrowNumbers, outOfRange: OutOfRange): Int32Array {
  const words = wordsOf(bytes);
  const out = new Int32Array(length);
  for (let i = 0; i < length; i++) {
    const days = divideHalves(words[2 * i]!, words[2 * i + 1]! | 0, DAY_MILLIS);
    if (days !== (days | 0)) outOfRange(i);
    out[i] = days;
  }
  return out;
}

/** Times of day; nanoseconds are rounded down. */
export function times(source: ArrowNumbers, unit: number = MICROSECOND, outOfRange: OutOfRange): BigInt64Array {
  const words = wordsOf(source.bytes);
  const out = new Uint32Array(source.length * 2);
  for (let i = 0; i < source.length; i++) {
    const value = source.width === 8 ? fromHalves(words[2 * i]!, words[2 * i + 1]! | 0) : words[i]! | 0;
    const micros = unit === NANOSECOND ? Math.floor(value / 1000) : value * (MICROS_PER_UNIT[unit] ?? 1);
    if (micros >= 0 && micros < DAY_MICROS) {
      out[2 * i] = micros;
      out[2 * i + 1] = Math.floor(micros / 2 ** 32);
    } else {
      outOfRange(i);
    }
  }
  return new BigInt64Array(out.buffer);
}

/** Seconds, milliseconds or nanoseconds since the epoch; nanoseconds are rounded down. */
export function timestamps(source: ArrowNumbers, unit: number = 0, outOfRange: OutOfRange): BigInt64Array {
  const words = wordsOf(source.bytes);
  const out = new Uint32Array(source.length * 2);
  const values = new BigInt64Array(out.buffer);
  if (unit === NANOSECOND) {
    for (let i = 0; i < source.length; i++) {
      // Long division by 1000 in base 2^32: each digit and remainder is exact as a number.
      const high = words[2 * i + 1]! | 0;
      const quotient = Math.floor(high / 1000);
      out[2 * i + 1] = quotient;
      out[2 * i] = Math.floor(fromHalves(words[2 * i]!, high - quotient * 1000) / 1000);
    }
    return values;
  }
  const factor = MICROS_PER_UNIT[unit] ?? 1;
  for (let i = 0; i < source.length; i++) {
    const low = words[2 * i]!;
    const high = words[2 * i + 1]! | 0;
    const micros = fromHalves(low, high) * factor;
    if (isSafe(high) && Number.isSafeInteger(micros)) {
      out[2 * i] = micros;
      out[2 * i + 1] = Math.floor(micros / 2 ** 32);
    } else {
      const exact = bigFromHalves(low, high) * BigInt(factor);
      if (BigInt.asIntN(64, exact) === exact) values[i] = exact;
      else outOfRange(i);
    }
  }
  return values;
}
