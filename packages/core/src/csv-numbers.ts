/** What CSV inference takes for numbers: plain ones, without exponents, told apart by how they are written. */

import type { NumberToken } from "./number-token.js";
import type { DataType } from "./schema.js";
import type { TextAppender } from "./text-values.js";

const ZERO = 0x30;
const NINE = 0x39;
const MINUS = 0x2d;
const POINT = 0x2e;

/** Decimals of this many significant digits come back from a float64 unchanged (IEEE 754: DBL_DIG). */
const FLOAT_DIGITS = 15;
/** Numbers of this many bytes have no more digits than that: one is the point. Integers have the type's own check. */
const SHORT_BYTES = FLOAT_DIGITS + 1;

/** Whether a plain decimal comes back from a float64 as it was: few significant digits, and far from the limits. */
export function isFloat(token: NumberToken, bytes: Uint8Array, end: number): boolean {
  // Digits before the point, or minus the zeros behind it: 10^−290 to 10^300 is all normal.
  const magnitude = token.digits - token.scale;
  if (token.digits > 0 && (magnitude > 300 || magnitude < -290)) return false;
  let significant = token.digits;
  for (let at = end - 1; significant > FLOAT_DIGITS && (bytes[at] === ZERO || bytes[at] === POINT); at--) {
    if (bytes[at] === ZERO) significant--;
  }
  return significant <= FLOAT_DIGITS;
}

/**
 * Takes only the numbers that leave inference with the column's type, of all that fit it: not `1.0` into an integer
 * column, not `1e3` anywhere, no decimal that a float would round. With this a schema inferred from the front of the
 * input is either right for all of it, or a value stops the parser.
 */
export function inferredNumbers(type: DataType, appender: TextAppender, token: NumberToken): TextAppender {
  switch (type.kind) {
    case "int8":
    case "int16":
    case "int32":
    case "int64":
    case "uint8":
    case "uint16":
    case "uint32":
    case "uint64":
      return new PlainNumbers(appender, 0);
    case "decimal":
      return new PlainNumbers(appender, type.scale);
    case "float32":
    case "float64":
      return new PlainFloats(appender, token);
    default:
      return appender;
  }
}

/** Whether there are only digits, points and minuses, with at most `scale` bytes after a point; and not `-0`. */
function isPlain(bytes: Uint8Array, start: number, end: number, scale: number): boolean {
  if (bytes[start] === MINUS && end - start === 2 && bytes[start + 1] === ZERO) return false;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte >= ZERO && byte <= NINE) continue;
    if (byte === POINT ? end - at - 1 > scale : byte !== MINUS) return false;
  }
  return true;
}

/** Integers and decimals, written with at most so many digits after the point; 0 for no point. */
class PlainNumbers implements TextAppender {
  readonly #appender: TextAppender;
  readonly #scale: number;

  constructor(appender: TextAppender, scale: number) {
    this.#appender = appender;
    this.#scale = scale;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    // A point without digits behind it passes here, and fails there.
    return isPlain(bytes, start, end, this.#scale) && this.#appender.append(bytes, start, end);
  }
}

class PlainFloats implements TextAppender {
  readonly #appender: TextAppender;
  readonly #token: NumberToken;

  constructor(appender: TextAppender, token: NumberToken) {
    this.#appender = appender;
    this.#token = token;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    return this.#fits(bytes, start, end) && this.#appender.append(bytes, start, end);
  }

  #fits(bytes: Uint8Array, start: number, end: number): boolean {
    if (!isPlain(bytes, start, end, Number.POSITIVE_INFINITY)) return false;
    if (end - start <= SHORT_BYTES) return true;
    const token = this.#token;
    return token.read(bytes, start, end) === end && (token.integer || isFloat(token, bytes, end));
  }
}
