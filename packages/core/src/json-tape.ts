/** The tokens of one JSON value, for those who need them twice. */

import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  type JsonCursor,
  MINUS,
  OPEN_LIST,
  OPEN_OBJECT,
  outOfRange,
  QUOTE,
} from "./json-cursor.js";

/** Kinds of token on the tape. */
const NULL = 0;
export const FALSE = 1;
export const TRUE = 2;
export const NUMBER = 3;
export const STRING = 4;
export const ESCAPED_STRING = 5;
export const LIST = 6;
export const OBJECT = 7;

/** Integers of each entry: kind, start, end. */
const ENTRY = 3;
/** The tape of a row larger than this is given back. */
const LARGE_TAPE = ENTRY * 256 * 1024;

/**
 * The tokens of one value in the order of the text. An entry is a kind, where it starts and where it ends: for strings
 * the content without quotes, for objects and lists `end` is the number of the entry behind the last one inside.
 * Object members are two entries, the key and the value.
 */
export class JsonTape {
  readonly #cursor: JsonCursor;
  #entries: Int32Array = new Int32Array(ENTRY * 256);
  #length = 0;

  constructor(cursor: JsonCursor) {
    this.#cursor = cursor;
  }

  /** Number of entries. */
  get length(): number {
    return this.#length;
  }

  kind(entry: number): number {
    return this.#entries[entry * ENTRY]!;
  }

  start(entry: number): number {
    return this.#entries[entry * ENTRY + 1]!;
  }

  end(entry: number): number {
    return this.#entries[entry * ENTRY + 2]!;
  }

  /** The entry behind this one and all that is inside it. */
  after(entry: number): number {
    return this.kind(entry) >= LIST ? this.end(entry) : entry + 1;
  }

  /** Replaces the start of an entry by something its reader wants to remember. */
  mark(entry: number, value: number): void {
    this.#entries[entry * ENTRY + 1] = value;
  }

  /** Reads the value at the cursor; the tape holds it alone. */
  read(): void {
    this.#length = 0;
    if (this.#entries.length > LARGE_TAPE) this.#entries = new Int32Array(ENTRY * 256);
    this.#value(this.#cursor.next());
  }

  /** `c` is the byte at the cursor. */
  #value(c: number): void {
    const cursor = this.#cursor;
    const start = cursor.at;
    switch (c) {
      case OPEN_OBJECT:
        this.#object();
        return;
      case OPEN_LIST:
        this.#list();
        return;
      case QUOTE:
        this.#string();
        return;
      case 0x6e:
        cursor.literal("null");
        this.#push(NULL, start, cursor.at);
        return;
      case 0x74:
        cursor.literal("true");
        this.#push(TRUE, start, cursor.at);
        return;
      case 0x66:
        cursor.literal("false");
        this.#push(FALSE, start, cursor.at);
        return;
      default:
        if (c !== MINUS && (c < 0x30 || c > 0x39)) throw cursor.expected("a value");
        cursor.readNumber();
        if (cursor.number.infinite) throw outOfRange();
        this.#push(NUMBER, start, cursor.at);
    }
  }

  #string(): void {
    const cursor = this.#cursor;
    cursor.string();
    this.#push(cursor.escaped ? ESCAPED_STRING : STRING, cursor.stringStart, cursor.stringEnd);
  }

  #object(): void {
    const cursor = this.#cursor;
    const entry = this.#push(OBJECT, cursor.at, 0);
    cursor.open();
    let c = cursor.next();
    if (c !== CLOSE_OBJECT) {
      for (;;) {
        if (c !== QUOTE) throw cursor.expected("a key in quotes");
        this.#string();
        c = cursor.next();
        if (c !== COLON) throw cursor.expected("a colon after a key");
        cursor.at++;
        this.#value(cursor.next());
        c = cursor.next();
        if (c === CLOSE_OBJECT) break;
        if (c !== COMMA) throw cursor.expected("a comma in an object");
        cursor.at++;
        c = cursor.next();
      }
    }
    cursor.close();
    this.#entries[entry * ENTRY + 2] = this.#length;
  }

  #list(): void {
    const cursor = this.#cursor;
    const entry = this.#push(LIST, cursor.at, 0);
    cursor.open();
    let c = cursor.next();
    if (c !== CLOSE_LIST) {
      for (;;) {
        this.#value(c);
        c = cursor.next();
        if (c === CLOSE_LIST) break;
        if (c !== COMMA) throw cursor.expected("a comma in an array");
        cursor.at++;
        c = cursor.next();
      }
    }
    cursor.close();
    this.#entries[entry * ENTRY + 2] = this.#length;
  }

  #push(kind: number, start: number, end: number): number {
    const at = this.#length * ENTRY;
    if (at >= this.#entries.length) {
      const grown = new Int32Array(this.#entries.length * 2);
      grown.set(this.#entries);
      this.#entries = grown;
    }
    this.#entries[at] = kind;
    this.#entries[at + 1] = start;
    this.#entries[at + 2] = end;
    return this.#length++;
  }
}
