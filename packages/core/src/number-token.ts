/** Numbers as JSON writes them (RFC 8259, section 6), read from bytes without going through a `number` where that rounds. */

import type { DecimalBuilder } from "./builders.js";
import { decodeAscii } from "./utf8.js";

const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

/** Any integer of this many digits is exact as a `number`. */
const EXACT_DIGITS = 15;
/** Digits of the widest decimal. */
const MAX_DIGITS = 38;
/** Exponents are cut here: no type holds a number beyond. */
const MAX_EXPONENT = 1_000_000;

const TWO32 = 0x1_0000_0000;

/** Powers of ten that are exact as a `number`. */
const POWERS: readonly number[] = Array.from({ length: 23 }, (_, n) => Number(`1e${n}`));

/** One number of the input: `read` it, then ask what it is. One object serves all numbers of a reader. */
export class NumberToken {
  negative = false;
  /** Written without fraction and exponent. */
  integer = true;
  /** Written with an exponent. */
  exponent = false;
  /** Significant digits: without leading zeros, with trailing ones. 0 for zero. */
  digits = 0;
  /** The value is ± its digits as an integer × 10^−scale. */
  scale = 0;
  /** The digits as an integer while there are at most 15. */
  #mantissa = 0;
  #bytes: Uint8Array = new Uint8Array(0);
  #start = 0;
  #end = 0;
  /** Magnitude of the last {@link unscale}: four words of 32 bits, least significant first. */
  #m0 = 0;
  #m1 = 0;
  #m2 = 0;
  #m3 = 0;
  /** Result of {@link toInt64} and {@link toUint64}. */
  low = 0;
  high = 0;

  /**
   * Reads the number at `start`.
   * @returns where it ends, or -1 where the grammar is broken
   */
  read(bytes: Uint8Array, start: number, end: number): number {
    this.#bytes = bytes;
    this.#start = start;
    let at = start;
    let mantissa = 0;
    let digits = 0;
    let fraction = 0;
    let exponent = 0;
    this.integer = true;
    this.exponent = false;
    this.negative = bytes[at] === MINUS;
    if (this.negative) at++;
    let c = at < end ? bytes[at]! : 0;
    if (c === ZERO) {
      c = ++at < end ? bytes[at]! : 0;
      if (c >= ZERO && c <= NINE) return -1;
    } else {
      if (c < ZERO || c > NINE) return -1;
      do {
        if (++digits <= EXACT_DIGITS) mantissa = mantissa * 10 + (c - ZERO);
        c = ++at < end ? bytes[at]! : 0;
      } while (c >= ZERO && c <= NINE);
    }
    if (c === POINT) {
      this.integer = false;
      const first = ++at;
      c = at < end ? bytes[at]! : 0;
      while (c >= ZERO && c <= NINE) {
        if (digits > 0 || c !== ZERO) {
          if (++digits <= EXACT_DIGITS) mantissa = mantissa * 10 + (c - ZERO);
        }
        c = ++at < end ? bytes[at]! : 0;
      }
      fraction = at - first;
      if (fraction === 0) return -1;
    }
    if (c === 0x65 || c === 0x45) {
      this.integer = false;
      this.exponent = true;
      c = ++at < end ? bytes[at]! : 0;
      const negative = c === MINUS;
      if (negative || c === PLUS) c = ++at < end ? bytes[at]! : 0;
      if (c < ZERO || c > NINE) return -1;
      do {
        if (exponent < MAX_EXPONENT) exponent = exponent * 10 + (c - ZERO);
        c = ++at < end ? bytes[at]! : 0;
      } while (c >= ZERO && c <= NINE);
      if (negative) exponent = -exponent;
    }
    this.#mantissa = mantissa;
    this.digits = digits;
    this.scale = fraction - exponent;
    this.#end = at;
    return at;
  }

  /** The nearest float64; ±Infinity where the number is beyond its range. */
  toNumber(): number {
    const { scale } = this;
    let value: number;
    if (this.digits <= EXACT_DIGITS && scale <= 22 && scale >= -22) {
      // Both operands are exact, so that the one rounding of the operation is the right one (W. Clinger, 1990).
      value = scale > 0 ? this.#mantissa / POWERS[scale]! : this.#mantissa * POWERS[-scale]!;
      return this.negative ? -value : value;
    }
    value = Number(decodeAscii(this.#bytes, this.#start, this.#end));
    return value;
  }

  /** Whether the number is beyond the range of float64. */
  get infinite(): boolean {
    // 310 digits before the point are more than the 309 of the largest float64.
    return !this.integer && this.digits - this.scale > 300 && !Number.isFinite(this.toNumber());
  }

  /** Whether it is an integer of at most 15 digits, see {@link smallInteger}. */
  get small(): boolean {
    return this.integer && this.digits <= EXACT_DIGITS;
  }

  /** The value where {@link small}; −0 is 0. */
  get smallInteger(): number {
    return this.negative ? 0 - this.#mantissa : this.#mantissa;
  }

  /** Digits before the point. */
  get integerDigits(): number {
    return Math.max(0, this.digits - this.scale);
  }

  /** Digits behind the point that the value needs: trailing zeros do not count. */
  get valueScale(): number {
    let { scale } = this;
    if (scale <= 0 || this.digits === 0) return 0;
    let at = this.#end - 1;
    if (this.exponent) while ((this.#bytes[at]! | 0x20) !== 0x65) at--;
    if (this.exponent) at--;
    for (; scale > 0 && (this.#bytes[at] === ZERO || this.#bytes[at] === POINT); at--) {
      if (this.#bytes[at] === ZERO) scale--;
    }
    return scale;
  }

  /** Whether the value is an integer, however it is written, of at most 38 digits. */
  get integral(): boolean {
    return this.unscale(MAX_DIGITS, 0);
  }

  /**
   * Computes the value × 10^scale.
   * @returns false where that is no integer or has more than `precision` digits
   */
  unscale(precision: number, scale: number): boolean {
    this.#m0 = this.#m1 = this.#m2 = this.#m3 = 0;
    if (this.digits === 0) return true;
    const shift = scale - this.scale;
    const total = this.digits + shift;
    if (total > precision || total <= 0) return false;
    if (this.digits <= EXACT_DIGITS && total <= EXACT_DIGITS) {
      let value = this.#mantissa;
      if (shift >= 0) value *= POWERS[shift]!;
      else {
        if (value % POWERS[-shift]! !== 0) return false;
        value /= POWERS[-shift]!;
      }
      this.#m0 = value % TWO32;
      this.#m1 = Math.floor(value / TWO32);
      return true;
    }
    return this.#accumulate(total, shift);
  }

  /** The digits one by one into the magnitude: the first `total` of them count, the rest must be zeros. */
  #accumulate(total: number, shift: number): boolean {
    let chunk = 0;
    let power = 1;
    let seen = 0;
    for (let at = this.#start; at < this.#end; at++) {
      const digit = this.#bytes[at]! - ZERO;
      if (digit === 0x65 - ZERO || digit === 0x45 - ZERO) break;
      if (digit < 0 || digit > 9 || (seen === 0 && digit === 0)) continue;
      if (++seen > total) {
        if (digit !== 0) return false;
        continue;
      }
      chunk = chunk * 10 + digit;
      power *= 10;
      if (power === 1_000_000) {
        this.#multiplyAdd(power, chunk);
        chunk = 0;
        power = 1;
      }
    }
    this.#multiplyAdd(power, chunk);
    for (let zeros = shift; zeros > 0; zeros -= 6) this.#multiplyAdd(POWERS[Math.min(zeros, 6)]!, 0);
    return true;
  }

  /** `factor` ≤ 10^6 keeps each product within 53 bits. */
  #multiplyAdd(factor: number, term: number): void {
    let carry = this.#m0 * factor + term;
    this.#m0 = carry % TWO32;
    carry = this.#m1 * factor + Math.floor(carry / TWO32);
    this.#m1 = carry % TWO32;
    carry = this.#m2 * factor + Math.floor(carry / TWO32);
    this.#m2 = carry % TWO32;
    this.#m3 = this.#m3 * factor + Math.floor(carry / TWO32);
  }

  /** Sets {@link low} and {@link high}; false where the value is no integer or out of range. */
  toInt64(): boolean {
    if (!this.unscale(19, 0)) return false;
    if (this.#m2 !== 0) return false;
    if (this.#m1 > 0x7fff_ffff && !(this.negative && this.#m1 === 0x8000_0000 && this.#m0 === 0)) return false;
    this.#setHalves();
    return true;
  }

  /** Sets {@link low} and {@link high}; false where the value is no integer or out of range. */
  toUint64(): boolean {
    if (!this.unscale(20, 0) || this.#m2 !== 0 || (this.negative && this.digits > 0)) return false;
    this.#setHalves();
    return true;
  }

  #setHalves(): void {
    this.low = this.#m0 | 0;
    this.high = this.#m1 | 0;
    if (!this.negative) return;
    this.high = (~this.high + (this.low === 0 ? 1 : 0)) | 0;
    this.low = -this.low | 0;
  }

  /** The value as a `number` if it is an integer within the bounds, which are at most 32 bits wide; else NaN. */
  toInteger(min: number, max: number): number {
    if (!this.unscale(10, 0)) return Number.NaN;
    const magnitude = this.#m1 * TWO32 + this.#m0;
    const value = this.negative ? 0 - magnitude : magnitude;
    return value >= min && value <= max ? value : Number.NaN;
  }

  /** Appends the value to a decimal column; false where it has too many digits on either side of the point. */
  appendDecimal(builder: DecimalBuilder, precision: number, scale: number): boolean {
    if (!this.unscale(precision, scale)) return false;
    let w0 = this.#m0 | 0;
    let w1 = this.#m1 | 0;
    let w2 = this.#m2 | 0;
    let w3 = this.#m3 | 0;
    if (this.negative) {
      // Two's complement over the words: invert, then add one with its carry.
      w0 = -w0 | 0;
      w1 = w0 === 0 ? -w1 | 0 : ~w1;
      w2 = w0 === 0 && w1 === 0 ? -w2 | 0 : ~w2;
      w3 = w0 === 0 && w1 === 0 && w2 === 0 ? -w3 | 0 : ~w3;
    }
    builder.append(w0, w1, w2, w3);
    return true;
  }

  /** Whether the value is an integer of at most 38 digits that needs no more than `bits` bits between its first and last 1. */
  fitsBits(bits: number): boolean {
    if (this.small && bits >= 50) return true;
    if (!this.unscale(MAX_DIGITS, 0)) return false;
    const words = [this.#m0, this.#m1, this.#m2, this.#m3];
    let highest = -1;
    let lowest = -1;
    for (const [i, word] of words.entries()) {
      if (word === 0) continue;
      highest = i * 32 + 31 - Math.clz32(word);
      if (lowest === -1) lowest = i * 32 + 31 - Math.clz32(word & -word);
    }
    return highest - lowest < bits;
  }

  /** The value of an integer of at most 38 digits. */
  toBigInt(): bigint {
    if (!this.unscale(MAX_DIGITS, 0)) throw new RangeError("not an integer of at most 38 digits");
    const magnitude =
      (BigInt(this.#m3) << 96n) | (BigInt(this.#m2) << 64n) | (BigInt(this.#m1) << 32n) | BigInt(this.#m0);
    return this.negative ? -magnitude : magnitude;
  }
}
