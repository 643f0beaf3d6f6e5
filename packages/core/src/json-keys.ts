/** Object keys of JSON text → fields, by comparing bytes: no string is made for a key that was seen before. */

import { hash } from "./byte-keys.js";
import { nameKey } from "./schema.js";

/**
 * The name of the field that a key goes to. DuckDB has no zero-length names and ends its texts at NUL, so the empty key
 * goes to `_empty` and NUL becomes its picture, U+2400; every other key is literal, whatever dots, blanks, quotes or
 * accents it holds.
 */
export function fieldName(key: string): string {
  return key === "" ? "_empty" : key.includes("\0") ? key.replaceAll("\0", "\u2400") : key;
}

/** Spellings kept from one object to the next, beyond one per field: input may spell a key in endless ways. */
export const MAX_EXTRA_SPELLINGS = 4096;

/** A key as it was written. */
export interface Spelling {
  readonly key: string;
  /** Index of its field. */
  readonly field: number;
}

/**
 * Keys of one kind of object. A key that was seen before is found by its bytes, at best at first try: after each key
 * the table remembers which key followed it last time.
 */
export class JsonKeys {
  /** By spelling: the bytes of the key as written in JSON text, with the closing quote. */
  #bytes: Uint8Array[] = [];
  #spellings: Spelling[] = [];
  /** By spelling + 1, 0 standing for the object's beginning: which spelling followed last time, -1 for none. */
  #followers: Int32Array = new Int32Array(16).fill(-1);
  /** Open addressing over hashes of the bytes: spelling + 1, 0 for an empty slot. */
  #slots: Int32Array = new Int32Array(32);
  readonly #names: string[] = [];
  /** Fields by name without case. */
  readonly #fields: Map<string, number> = new Map();

  /** Number of fields. */
  get size(): number {
    return this.#names.length;
  }

  spelling(index: number): Spelling {
    return this.#spellings[index]!;
  }

  name(field: number): string {
    return this.#names[field]!;
  }

  /** The field of a name, without regard to case; -1 if there is none. */
  field(name: string): number {
    return this.#fields.get(nameKey(name)) ?? -1;
  }

  /** Adds a field under the next index; the name must be new, without regard to case. */
  add(name: string): number {
    const field = this.#names.push(name) - 1;
    this.#fields.set(nameKey(name), field);
    this.#rememberName(field);
    return field;
  }

  /** Removes the fields from `size` on. */
  truncate(size: number): void {
    for (const name of this.#names.splice(size)) this.#fields.delete(nameKey(name));
    this.#forget();
  }

  /** To be called between two objects: keeps the memory for spellings bounded. */
  tidy(): void {
    if (this.#spellings.length > this.#names.length + MAX_EXTRA_SPELLINGS) this.#forget();
  }

  /**
   * Tries the spelling that followed `previous` (-1 at the object's beginning) last time.
   * @returns the spelling if the bytes at `at`, just behind the opening quote, are it and its closing quote; else -1
   */
  predict(previous: number, bytes: Uint8Array, at: number): number {
    const spelling = this.#followers[previous + 1]!;
    if (spelling === -1) return -1;
    const expected = this.#bytes[spelling]!;
    const { length } = expected;
    for (let i = 0; i < length; i++) if (bytes[at + i] !== expected[i]) return -1;
    return spelling;
  }

  /** Bytes of a spelling as written, with its closing quote. */
  width(spelling: number): number {
    return this.#bytes[spelling]!.length;
  }

  /** The spelling in `[start, end)`, of which `end` is the closing quote; -1 if it was not seen before. */
  find(previous: number, bytes: Uint8Array, start: number, end: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hash(bytes, start, end) & mask; ; slot = (slot + 1) & mask) {
      const spelling = this.#slots[slot]! - 1;
      if (spelling === -1) return -1;
      const expected = this.#bytes[spelling]!;
      if (expected.length !== end - start + 1) continue;
      let i = 0;
      while (i < expected.length && bytes[start + i] === expected[i]) i++;
      if (i < expected.length) continue;
      this.#followers[previous + 1] = spelling;
      return spelling;
    }
  }

  /** Remembers that the key decoded from `[start, end)`, of which `end` is the closing quote, goes to a field. */
  learn(key: string, field: number, bytes: Uint8Array, start: number, end: number): number {
    return this.#remember(bytes.slice(start, end + 1), { key, field });
  }

  /** The name as JSON.stringify escapes it, which is how most writers do; other escapes are learned. */
  #rememberName(field: number): void {
    const key = this.#names[field]!;
    this.#remember(new TextEncoder().encode(JSON.stringify(key).slice(1)), { key, field });
  }

  #forget(): void {
    this.#bytes = [];
    this.#spellings = [];
    this.#followers.fill(-1);
    this.#slots.fill(0);
    for (let field = 0; field < this.#names.length; field++) this.#rememberName(field);
  }

  #remember(bytes: Uint8Array, spelling: Spelling): number {
    const index = this.#spellings.length;
    this.#bytes.push(bytes);
    this.#spellings.push(spelling);
    if (index + 1 >= this.#followers.length) {
      const grown = new Int32Array(this.#followers.length * 2).fill(-1);
      grown.set(this.#followers);
      this.#followers = grown;
    }
    if ((index + 1) * 4 > this.#slots.length) {
      this.#slots = new Int32Array(this.#slots.length * 2);
      for (let i = 0; i < index; i++) this.#occupy(i);
    }
    this.#occupy(index);
    return index;
  }

  #occupy(spelling: number): void {
    const bytes = this.#bytes[spelling]!;
    const mask = this.#slots.length - 1;
    let slot = hash(bytes, 0, bytes.length - 1) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = spelling + 1;
  }
}
