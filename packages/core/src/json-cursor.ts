/** JSON text (RFC 8259), strictly: a cursor over bytes. */

import { NumberToken } from "./number-token.js";
import { MAX_DEPTH, RowFault } from "./row-batches.js";
import { decodeUtf8, writePair, writeUnit } from "./utf8.js";

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
export const CLOSE_LIST = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
export const MINUS = 0x2d;
const LOWER_U = 0x75;

/** What each escaped character stands for; 0 for those that may not be escaped. */
const ESCAPES = new Uint8Array(128);
for (const [letter, character] of ['""', "\\\\", "//", "b\b", "f\f", "n\n", "r\r", "t\t"].map((pair) => [...pair])) {
  ESCAPES[letter!.charCodeAt(0)] = character!.charCodeAt(0);
}

export function badJson(reason: string): RowFault {
  return new RowFault("form", "bad_json", reason);
}

/**
 * A position in JSON text. The bytes are valid UTF-8 (checked before), and what is read throws a {@link RowFault}
 * `bad_json` where the grammar is broken.
 */
export class JsonCursor {
  bytes: Uint8Array = new Uint8Array(0);
  at = 0;
  end = 0;
  /** Objects and lists that are open at `at`. */
  depth = 0;
  /** The content of the string last read: without its quotes, escapes as written. */
  stringStart = 0;
  stringEnd = 0;
  escaped = false;
  readonly number: NumberToken = new NumberToken();
  /** The last unescaped string. */
  scratch: Uint8Array = new Uint8Array(256);

  reset(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
    this.depth = 0;
  }

  /** Moves to the next byte that is no whitespace and returns it; 0 at the end. */
  next(): number {
    const { bytes, end } = this;
    let { at } = this;
    while (at < end) {
      const c = bytes[at]!;
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) {
        this.at = at;
        return c;
      }
      at++;
    }
    this.at = at;
    return 0;
  }

  /** Reads `text`, of which the first character is known to be there. */
  literal(text: "null" | "true" | "false"): void {
    for (let i = 1; i < text.length; i++) {
      if (this.at + i >= this.end || this.bytes[this.at + i] !== text.charCodeAt(i)) {
        throw badJson(`is not JSON: expected ${text}`);
      }
    }
    this.at += text.length;
  }

  /** Opens an object or list: steps over its bracket. */
  open(): void {
    if (++this.depth > MAX_DEPTH) {
      throw new RowFault("form", "too_deep", `is nested deeper than ${MAX_DEPTH} levels`);
    }
    this.at++;
  }

  /** Closes an object or list: steps over its bracket. */
  close(): void {
    this.depth--;
    this.at++;
  }

  /** Reads the string whose opening quote is at `at`, into `stringStart`, `stringEnd` and `escaped`. */
  string(): void {
    const { bytes, end } = this;
    let at = this.at + 1;
    this.stringStart = at;
    this.escaped = false;
    for (;;) {
      while (at < end) {
        const c = bytes[at]!;
        if (c === QUOTE || c === BACKSLASH || c < 0x20) break;
        at++;
      }
      if (at >= end) throw badJson("is cut off within a string");
      const c = bytes[at]!;
      if (c === QUOTE) break;
      if (c !== BACKSLASH) throw badJson("holds a control character that is not escaped in a string");
      at = this.#escape(at);
      this.escaped = true;
    }
    this.stringEnd = at;
    this.at = at + 1;
  }

  /** Checks the escape at `at`; returns where it ends. */
  #escape(at: number): number {
    const c = at + 1 < this.end ? this.bytes[at + 1]! : 0;
    if (c !== LOWER_U) {
      if (c >= 128 || ESCAPES[c] === 0) throw badJson("holds an unknown escape in a string");
      return at + 2;
    }
    const unit = this.#unit(at);
    if ((unit & 0xf800) !== 0xd800) return at + 6;
    // UTF-8 cannot express half of a surrogate pair.
    if (unit >= 0xdc00 || this.bytes[at + 6] !== BACKSLASH || (this.#unit(at + 6) & 0xfc00) !== 0xdc00) {
      throw badJson("holds an escaped surrogate without its pair in a string");
    }
    return at + 12;
  }

  /** The UTF-16 unit of the escape `\uXXXX` at `at`. */
  #unit(at: number): number {
    let unit = 0;
    if (at + 6 > this.end || this.bytes[at + 1] !== LOWER_U) throw badJson("holds a broken \\u escape in a string");
    for (let i = at + 2; i < at + 6; i++) {
      const c = this.bytes[i]!;
      const digit = c <= 0x39 ? c - 0x30 : (c | 0x20) - 0x57;
      if (digit < 0 || digit > 15 || (c > 0x39 && digit < 10)) throw badJson("holds a broken \\u escape in a string");
      unit = unit * 16 + digit;
    }
    return unit;
  }

  /**
   * Writes the string `[start, end)`, read before, without its escapes.
   * @returns where it ends in `target`, which has room for `end - start` bytes
   */
  unescape(start: number, end: number, target: Uint8Array, to: number): number {
    const { bytes } = this;
    let out = to;
    let at = start;
    while (at < end) {
      const c = bytes[at]!;
      if (c !== BACKSLASH) {
        target[out++] = c;
        at++;
        continue;
      }
      const letter = bytes[at + 1]!;
      if (letter !== LOWER_U) {
        target[out++] = ESCAPES[letter]!;
        at += 2;
        continue;
      }
      const unit = this.#unit(at);
      at += 6;
      if ((unit & 0xf800) !== 0xd800) out = writeUnit(unit, target, out);
      else {
        out = writePair(unit, this.#unit(at), target, out);
        at += 6;
      }
    }
    return out;
  }

  /** Unescapes the string `[start, end)` into {@link scratch}; returns its length. */
  unescapeToScratch(start: number, end: number): number {
    if (this.scratch.length < end - start) this.scratch = new Uint8Array((end - start) * 2);
    return this.unescape(start, end, this.scratch, 0);
  }

  /** The string `[start, end)`, read before, as text. */
  text(start: number, end: number, escaped: boolean): string {
    if (!escaped) return decodeUtf8(this.bytes, start, end);
    return decodeUtf8(this.scratch, 0, this.unescapeToScratch(start, end));
  }

  /** Reads the number at `at` into {@link number}. */
  readNumber(): void {
    const end = this.number.read(this.bytes, this.at, this.end);
    if (end === -1) throw badJson("holds a broken number");
    this.at = end;
  }

  /** A fault for what is at the cursor, where `what` should be. */
  expected(what: string): RowFault {
    if (this.at >= this.end) return badJson("is cut off");
    const c = this.bytes[this.at];
    if (c === CLOSE_OBJECT || c === CLOSE_LIST) return badJson(`has a comma or bracket too many: expected ${what}`);
    return badJson(`is not JSON: expected ${what}`);
  }
}

export function outOfRange(): RowFault {
  return new RowFault("form", "number_out_of_range", "holds a number beyond the range of float64");
}
