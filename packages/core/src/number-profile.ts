/** What the numbers of one column have in common, independent of their order. */

import { digitsOf, type IntegerBounds, joinBounds, type NumberNeed, needOf } from "./evolve.js";
import { NumberToken } from "./number-token.js";
import type { DataType } from "./schema.js";

/** Digits of the widest decimal, and an integer that stands for all that have more. */
const MAX_DIGITS = 38;
const BEYOND_DECIMAL = 10n ** 38n;

const MAX_FLOAT32 = 3.4028234663852886e38;

/** The float64, or float32 if `single`, that is exactly this integer. As for text, integers beyond 38 digits have none. */
export function exactFloat(value: bigint, single: boolean): number | undefined {
  if (value >= BEYOND_DECIMAL || value <= -BEYOND_DECIMAL) return undefined;
  const number = single ? Math.fround(Number(value)) : Number(value);
  return BigInt(number) === value ? number : undefined;
}

/**
 * Numbers written with a fraction or an exponent count as floats, `1.0` too. But for a column that is integer or
 * decimal already (`base`) the value counts, not how it is written. In a column that is numeric already, a number that
 * no type it could widen to holds will be a reject, and does not count.
 */
export class NumberProfile {
  readonly #exactBase: boolean;
  readonly #decimalBase: boolean;
  readonly #numericBase: boolean;
  /** Bounds of the integers of at most 15 digits (or safe ones), and of all longer ones. */
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #big: IntegerBounds | undefined;
  #exact = true;
  #exactSingle = true;
  #fractions = false;
  #integerDigits = 0;
  #scale = 0;
  readonly #token = new NumberToken();
  readonly #text = new Uint8Array(32);

  constructor(base: DataType | undefined) {
    const need = base && needOf(base);
    this.#numericBase = need !== undefined;
    this.#exactBase = need !== undefined && !need.floats;
    this.#decimalBase = base?.kind === "decimal";
  }

  /** Whether float32 holds them all, integers exactly. */
  get single(): boolean {
    return this.#exactSingle;
  }

  /** A number as JSON text. */
  addToken(token: NumberToken): void {
    if (token.integer || (this.#exactBase && token.integral)) this.#addInteger(token);
    else this.#addFraction(token);
  }

  /** A number of JavaScript. Integers that are not safe do not count: they are refused, or fractions decide. */
  addNumber(value: number): void {
    if (Number.isSafeInteger(value)) {
      this.#addSmall(value);
      if (Math.fround(value) !== value) this.#exactSingle = false;
    } else if (!Number.isFinite(value)) {
      this.#fractions = true;
      this.#integerDigits = this.#scale = Number.POSITIVE_INFINITY;
    } else if (Number.isInteger(value)) {
      this.#exactSingle &&= Math.abs(Math.fround(value)) <= MAX_FLOAT32;
    } else {
      const text = String(value);
      for (let i = 0; i < text.length; i++) this.#text[i] = text.charCodeAt(i);
      this.#token.read(this.#text, 0, text.length);
      this.#addFraction(this.#token);
    }
  }

  addBigInt(value: bigint): void {
    const digits = value.toString().length - (value < 0n ? 1 : 0);
    if (this.#numericBase && digits > MAX_DIGITS) return;
    this.#addBig(digits > MAX_DIGITS ? (value < 0n ? -BEYOND_DECIMAL : BEYOND_DECIMAL) : value);
    this.#integerDigits = Math.max(this.#integerDigits, digits);
    this.#exact &&= exactFloat(value, false) !== undefined;
    this.#exactSingle &&= exactFloat(value, true) !== undefined;
  }

  get need(): NumberNeed {
    const integers = this.#integers();
    return {
      integers,
      exact: this.#exact,
      fractions: this.#fractions,
      floats: true,
      integerDigits: Math.max(this.#integerDigits, digitsOf(integers)),
      scale: this.#scale,
    };
  }

  #addInteger(token: NumberToken): void {
    if (token.small) {
      this.#addSmall(token.smallInteger);
      if (this.#exactSingle && token.digits > 7) this.#exactSingle = token.fitsBits(24);
      return;
    }
    const digits = token.integerDigits;
    if (this.#numericBase && digits > MAX_DIGITS) return;
    this.#integerDigits = Math.max(this.#integerDigits, digits);
    this.#addBig(digits > MAX_DIGITS ? (token.negative ? -BEYOND_DECIMAL : BEYOND_DECIMAL) : token.toBigInt());
    this.#exact &&= token.fitsBits(53);
    this.#exactSingle &&= token.fitsBits(24);
  }

  #addFraction(token: NumberToken): void {
    const scale = token.valueScale;
    const { integerDigits } = token;
    if (this.#decimalBase && integerDigits + scale > MAX_DIGITS) return;
    this.#fractions = true;
    this.#integerDigits = Math.max(this.#integerDigits, integerDigits);
    this.#scale = Math.max(this.#scale, scale);
    if (this.#exactSingle) this.#exactSingle = Math.abs(Math.fround(token.toNumber())) <= MAX_FLOAT32;
  }

  #addSmall(value: number): void {
    if (value < this.#min) this.#min = value;
    if (value > this.#max) this.#max = value;
  }

  #addBig(value: bigint): void {
    const bounds = this.#big ?? { min: value, max: value };
    if (value < bounds.min) this.#big = { min: value, max: bounds.max };
    else if (value > bounds.max) this.#big = { min: bounds.min, max: value };
    else this.#big = bounds;
  }

  #integers(): IntegerBounds | undefined {
    if (this.#min > this.#max) return this.#big;
    const small = { min: BigInt(this.#min), max: BigInt(this.#max) };
    return joinBounds(small, this.#big);
  }
}
