/** A stream of JSON text → its rows, over chunks of any split. */

import { NextByte, searchable } from "./byte-search.js";
import { InvalidInputError } from "./errors.js";
import type { TextPart } from "./parser.js";
import { MAX_ROW_BYTES } from "./row-batches.js";

/** How rows follow one another: a line each, with commas between them, or with nothing but blanks. */
export type RowSeparator = "lines" | "commas" | "blanks";

/** Takes what the splitter finds. Bytes are only valid during the call. */
export interface RowSink {
  /**
   * May take whole rows from `at` on, where one begins; `line` is that of `at`. What it does not take comes by
   * {@link row}.
   * @returns where the last row taken ends, its line end included; `at` if none was taken
   */
  rows?(bytes: Uint8Array, at: number, separator: RowSeparator, line: number): number;
  /** Line feeds in what the last {@link rows} took. */
  linesTaken?(): number;
  /** The text of one row, without regard to its form. */
  row(bytes: Uint8Array, start: number, end: number, line: number): void;
  /** A line was too large to be kept; `bytes` are its first ones. */
  oversized(bytes: Uint8Array, line: number): void;
}

const LF = 0x0a;
const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

function isSpace(c: number): boolean {
  return c === SPACE || c === LF || c === 0x0d || c === 0x09;
}

/** The start of a row whose end is in a later chunk. */
class Carry {
  bytes: Uint8Array = new Uint8Array(4096);
  length = 0;

  add(chunk: Uint8Array, start: number, end: number): void {
    const length = this.length + end - start;
    // One byte more, for the line end that readers find behind the row.
    if (length >= this.bytes.length) {
      const grown = new Uint8Array(Math.max(length + 1, this.bytes.length * 2));
      grown.set(this.bytes.subarray(0, this.length));
      this.bytes = grown;
    }
    this.bytes.set(chunk.subarray(start, end), this.length);
    this.length = length;
    this.bytes[length] = LF;
  }

  clear(): void {
    this.length = 0;
    // The buffer of an unusually long row is given back.
    if (this.bytes.length > 1024 * 1024) this.bytes = new Uint8Array(4096);
  }
}

/**
 * NDJSON: a row per line. Lines end with LF or CR LF; blank ones are skipped; the last one needs no end. Input whose
 * first byte that is not blank is `[` is read as JSON instead, see {@link JsonSplitter}.
 */
export class NdjsonSplitter {
  readonly #sink: RowSink;
  readonly #carry = new Carry();
  /** Line of the next row. */
  #line = 1;
  /** Takes over where the input turns out to be a JSON array. */
  #json: JsonSplitter | undefined;
  /** Until the first byte that is not blank. */
  #undecided = true;
  /** Within a line that was too large. */
  #skipping = false;
  /** Bytes of the input before the current chunk. */
  #offset = 0;

  constructor(sink: RowSink, part?: TextPart) {
    this.#sink = sink;
    if (!part) return;
    this.#line = part.line;
    this.#offset = part.offset;
    this.#undecided = false;
  }

  /** 1-based line that was reached. */
  get line(): number {
    return this.#json?.line ?? this.#line;
  }

  /** Bytes of the input that come before the first chunk. */
  skip(bytes: number): void {
    this.#offset += bytes;
  }

  push(chunk: Uint8Array): void {
    if (this.#json) {
      this.#json.push(chunk);
      return;
    }
    let at = 0;
    if (this.#undecided) {
      at = this.#skipBlank(chunk);
      if (at < chunk.length) {
        this.#undecided = false;
        if (chunk[at] === OPEN_LIST) {
          this.#json = new JsonSplitter(this.#sink, { line: this.#line, offset: this.#offset + at });
          this.#json.push(chunk.subarray(at));
          return;
        }
      }
    }
    this.#lines(chunk, at);
    this.#offset += chunk.length;
  }

  end(): void {
    if (this.#json) this.#json.end();
    else if (this.#carry.length > 0) this.#emit(this.#carry.bytes, 0, this.#carry.length);
    this.#carry.clear();
  }

  #skipBlank(chunk: Uint8Array): number {
    let at = 0;
    for (; at < chunk.length && isSpace(chunk[at]!); at++) if (chunk[at] === LF) this.#line++;
    return at;
  }

  #lines(chunk: Uint8Array, from: number): void {
    let at = from;
    const carry = this.#carry;
    const sink = this.#sink;
    for (;;) {
      if (sink.rows && carry.length === 0 && !this.#skipping) {
        const end = sink.rows(chunk, at, "lines", this.#line);
        if (end > at) this.#line += sink.linesTaken?.() ?? 0;
        at = end;
      }
      const end = chunk.indexOf(LF, at);
      if (end === -1) break;
      if (this.#skipping) this.#skipping = false;
      else if (carry.length > 0) {
        carry.add(chunk, at, end);
        if (this.#fits(carry.length)) this.#emit(carry.bytes, 0, carry.length);
        this.#skipping = false;
        carry.clear();
      } else if (end - at > MAX_ROW_BYTES) this.#sink.oversized(chunk.subarray(at, end), this.#line);
      else this.#emit(chunk, at, end);
      this.#line++;
      at = end + 1;
    }
    if (this.#skipping || at === chunk.length) return;
    carry.add(chunk, at, chunk.length);
    if (!this.#fits(carry.length)) carry.clear();
  }

  /** Whether the carried line is not too large; if it is, the rest of it is skipped. */
  #fits(length: number): boolean {
    if (length <= MAX_ROW_BYTES) return true;
    this.#sink.oversized(this.#carry.bytes.subarray(0, length), this.#line);
    this.#skipping = true;
    return false;
  }

  #emit(bytes: Uint8Array, start: number, end: number): void {
    let from = start;
    while (from < end && isSpace(bytes[from]!)) from++;
    if (from < end) this.#sink.row(bytes, from, end, this.#line);
  }
}

/** Where {@link JsonSplitter} is between rows. */
const BEFORE = 0;
const FIRST_ELEMENT = 1;
const NEXT_ELEMENT = 2;
const AFTER_ELEMENT = 3;
const AFTER_LIST = 4;
const BETWEEN_OBJECTS = 5;

/**
 * JSON: one array of rows, or objects one after the other (a single one is one row), with any whitespace between.
 * A row may span lines; its line is that where it begins. What is wrong within a row is left to its reader; what is
 * wrong between rows is an error of the whole input.
 */
export class JsonSplitter {
  readonly #sink: RowSink;
  readonly #carry = new Carry();
  /** Whoever has cut the text sees that its array is closed. */
  readonly #isPart: boolean;
  #line: number;
  #offset: number;
  #state = BEFORE;
  /** State once the row ends. */
  #following = BEFORE;
  /** Within a row: where it began, open brackets, and whether a string or an escape in it is open. */
  #inRow = false;
  #rowLine = 0;
  #rowOffset = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** Within strings of the chunk. */
  readonly #quote = new NextByte(QUOTE);
  readonly #backslash = new NextByte(BACKSLASH);
  readonly #lineFeed = new NextByte(LF);

  constructor(sink: RowSink, { line, offset, json }: TextPart = { line: 1, offset: 0 }) {
    this.#sink = sink;
    this.#line = line;
    this.#offset = offset;
    this.#isPart = json !== undefined;
    if (json === "array") this.#state = NEXT_ELEMENT;
    else if (json === "objects") this.#state = BETWEEN_OBJECTS;
  }

  /** 1-based line that was reached. */
  get line(): number {
    return this.#line;
  }

  /** Bytes of the input that come before the first chunk. */
  skip(bytes: number): void {
    this.#offset += bytes;
  }

  /** @throws InvalidInputError `bad_json`, `row_too_large` */
  push(bytes: Uint8Array): void {
    const chunk = searchable(bytes);
    for (const next of [this.#quote, this.#backslash, this.#lineFeed]) next.begin(chunk);
    let at = 0;
    while (at < chunk.length) at = this.#inRow ? this.#row(chunk, at) : this.#between(chunk, at);
    this.#offset += chunk.length;
  }

  /** @throws InvalidInputError `bad_json` where the input is cut off */
  end(): void {
    if (this.#inRow)
      throw this.#error(this.#rowLine, this.#rowOffset, "the input ends within the value that begins here");
    if (this.#isPart) return;
    if (this.#state === FIRST_ELEMENT || this.#state === NEXT_ELEMENT || this.#state === AFTER_ELEMENT) {
      throw this.#error(this.#line, this.#offset, "the input ends within the array: a closing bracket is missing");
    }
  }

  #between(chunk: Uint8Array, from: number): number {
    let at = from;
    for (; at < chunk.length && isSpace(chunk[at]!); at++) if (chunk[at] === LF) this.#line++;
    if (at === chunk.length) return at;
    const c = chunk[at]!;
    switch (this.#state) {
      case BEFORE:
        if (c === OPEN_LIST) {
          this.#state = FIRST_ELEMENT;
          return at + 1;
        }
        if (c === OPEN_OBJECT) return this.#begin(chunk, at, BETWEEN_OBJECTS);
        throw this.#unexpected(at, "the input is not JSON rows: it begins neither with an array nor with an object");
      case FIRST_ELEMENT:
        if (c !== CLOSE_LIST) return this.#beginElement(chunk, at, c);
        this.#state = AFTER_LIST;
        return at + 1;
      case NEXT_ELEMENT:
        return this.#beginElement(chunk, at, c);
      case AFTER_ELEMENT:
        if (c !== COMMA && c !== CLOSE_LIST) throw this.#unexpected(at, "expected a comma or the end of the array");
        this.#state = c === COMMA ? NEXT_ELEMENT : AFTER_LIST;
        return at + 1;
      case BETWEEN_OBJECTS:
        if (c === OPEN_OBJECT) return this.#begin(chunk, at, BETWEEN_OBJECTS);
        throw this.#unexpected(at, "expected another object");
      default:
        throw this.#unexpected(at, "there is text after the end of the array");
    }
  }

  #beginElement(chunk: Uint8Array, at: number, c: number): number {
    if (c === COMMA || c === CLOSE_LIST || c === CLOSE_OBJECT) {
      throw this.#unexpected(at, "expected a value, found a comma or bracket too many");
    }
    return this.#begin(chunk, at, AFTER_ELEMENT);
  }

  #begin(chunk: Uint8Array, at: number, following: number): number {
    const sink = this.#sink;
    if (sink.rows) {
      const end = sink.rows(chunk, at, following === AFTER_ELEMENT ? "commas" : "blanks", this.#line);
      if (end > at) {
        this.#line += sink.linesTaken?.() ?? 0;
        this.#state = following;
        return end;
      }
    }
    this.#inRow = true;
    this.#following = following;
    this.#rowLine = this.#line;
    this.#rowOffset = this.#offset + at;
    this.#depth = 0;
    return at;
  }

  /** Looks for the end of the row; returns where in the chunk to go on. */
  #row(chunk: Uint8Array, start: number): number {
    const { length } = chunk;
    let at = start;
    let depth = this.#depth;
    while (at < length) {
      if (this.#inString) {
        at = this.#string(chunk, at);
        if (this.#inString) break;
        if (depth === 0) return this.#finish(chunk, start, at);
        continue;
      }
      const c = chunk[at]!;
      if (c === QUOTE) {
        this.#inString = true;
        at++;
      } else if (c === OPEN_OBJECT || c === OPEN_LIST) {
        depth++;
        at++;
      } else if (c === CLOSE_OBJECT || c === CLOSE_LIST) {
        // A number or literal that is an element ends before the bracket, all else with it.
        if (depth === 0) return this.#finish(chunk, start, at);
        depth--;
        at++;
        if (depth === 0) return this.#finish(chunk, start, at);
      } else if (depth === 0 && (c === COMMA || isSpace(c))) {
        return this.#finish(chunk, start, at);
      } else {
        if (c === LF) this.#line++;
        at++;
      }
    }
    this.#depth = depth;
    if (this.#carry.length + length - start > MAX_ROW_BYTES) throw this.#tooLarge();
    this.#carry.add(chunk, start, length);
    return length;
  }

  /** Moves behind the end of the string, if it is in this chunk. */
  #string(chunk: Uint8Array, from: number): number {
    const { length } = chunk;
    let at = from;
    if (this.#escaped) {
      this.#escaped = false;
      at++;
    }
    while (at < length) {
      const quote = this.#quote.from(at);
      const end = Math.min(quote, this.#backslash.from(at));
      for (let line = this.#lineFeed.from(at); line < end; line = this.#lineFeed.from(line + 1)) this.#line++;
      if (end === length) break;
      if (end === quote) {
        this.#inString = false;
        return end + 1;
      }
      this.#escaped = end + 1 === length;
      at = end + 2;
    }
    return length;
  }

  #finish(chunk: Uint8Array, start: number, end: number): number {
    this.#inRow = false;
    this.#state = this.#following;
    const carry = this.#carry;
    if (carry.length + end - start > MAX_ROW_BYTES) throw this.#tooLarge();
    if (carry.length === 0) this.#sink.row(chunk, start, end, this.#rowLine);
    else {
      carry.add(chunk, start, end);
      this.#sink.row(carry.bytes, 0, carry.length, this.#rowLine);
      carry.clear();
    }
    return end;
  }

  #tooLarge(): InvalidInputError {
    return this.#error(
      this.#rowLine,
      this.#rowOffset,
      `the value that begins here exceeds ${MAX_ROW_BYTES} bytes`,
      "row_too_large",
    );
  }

  #unexpected(at: number, reason: string): InvalidInputError {
    return this.#error(this.#line, this.#offset + at, reason);
  }

  #error(line: number, offset: number, reason: string, code = "bad_json"): InvalidInputError {
    return new InvalidInputError(code, `line ${line}, byte offset ${offset}: ${reason}`, {
      rows: [{ line, code, reason }],
    });
  }
}
