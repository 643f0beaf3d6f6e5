/** CSV records → columns in the engine's memory. */

import { csvDialect } from "./csv-dialect.js";
import type { CsvRecordTaker } from "./csv-input.js";
import type { CsvDialect } from "./csv-reader.js";
import { type EngineBatches, PIECE_BYTES, SLACK_BYTES, Turns } from "./engine-batches.js";
import type { TextParserOptions } from "./parser.js";

/** Largest beginning of a record that is kept for the next chunk. */
const KEPT_BYTES = 64 * 1024;

const LF = 0x0a;

/** Flags of the dialect, and what a column of the input is where it is not an address; as in `assembly/csv.ts`. */
const TRIM = 1;
const DIRECT = 2;
const EMPTY_IS_NULL = 4;
const PAD = 8;
const PROFILES = 16;
const DROPPED = 0;
const FORBIDDEN = 1;

/** Bytes that values other than text are written with. */
const VALUE_BYTE = /[0-9A-Za-z+\-.: ]/;

export class CsvEngineRecords implements CsvRecordTaker {
  lines = 0;
  readonly #options: TextParserOptions;
  readonly #batches: EngineBatches;
  /** Where a piece of the input is in the engine; what was kept lies before it. */
  readonly #inputAddress: number;
  readonly #turns = new Turns();
  /** The bytes that are at {@link #inputAddress}. */
  #loaded: Uint8Array | undefined;
  #kept = 0;
  /** Columns of the input, of which the engine has a table. */
  #width = 0;
  #cells = 0;
  #usable = false;

  constructor(options: TextParserOptions, batches: EngineBatches) {
    this.#options = options;
    this.#batches = batches;
    this.#inputAddress = batches.plan.end + KEPT_BYTES;
    batches.engine.exports.reach(this.#tables);
  }

  /**
   * Begins to take records of `width` cells.
   * @param room bytes to be kept free for the caller
   * @param nodeOf where a column of the input goes to, given the address of that room; undefined where the schema lacks
   *   it
   * @returns the address of the room
   */
  begin(
    delimiter: string | undefined,
    width: number,
    room: number,
    nodeOf: (column: number, room: number) => number | undefined,
  ): number {
    const csv = this.#options.csv ?? {};
    const { exports } = this.#batches.engine;
    const { nullValues = [""] } = csv;
    const texts = nullValues.filter((text) => text !== "").map((text) => new TextEncoder().encode(text));
    // The room, the cells, place to note those that are dropped, the null texts' entries, the texts.
    const roomAddress = this.#tables;
    this.#width = width;
    this.#cells = roomAddress + room;
    const nulls = this.#cells + width * 12;
    let top = nulls + texts.length * 8;
    exports.reach(top + texts.reduce((sum, text) => sum + text.length, 0));
    const { bytes, words } = this.#batches.engine;
    const unknown = this.#options.unknownFields === "ignore" ? DROPPED : FORBIDDEN;
    for (let i = 0; i < width; i++) {
      words[(this.#cells >>> 2) + 2 * i] = nodeOf(i, roomAddress) ?? unknown;
      words[(this.#cells >>> 2) + 2 * i + 1] = 0;
    }
    for (const [i, text] of texts.entries()) {
      words[(nulls >>> 2) + 2 * i] = top;
      words[(nulls >>> 2) + 2 * i + 1] = text.length;
      bytes.set(text, top);
      top += text.length;
    }
    this.#batches.begin(top);
    const dialect = csvDialect(csv, delimiter);
    const flags =
      (dialect.trim ? TRIM : 0) |
      (isDirect(dialect) ? DIRECT : 0) |
      (nullValues.includes("") ? EMPTY_IS_NULL : 0) |
      (csv.ragged === "pad" ? PAD : 0) |
      (room > 0 ? PROFILES : 0);
    exports.configureCsv(
      dialect.delimiter,
      dialect.quote,
      dialect.escape,
      flags,
      this.#cells,
      width,
      nulls,
      texts.length,
    );
    this.#usable = width > 0;
    return roomAddress;
  }

  take(bytes: Uint8Array, at: number): number {
    this.lines = 0;
    if (!this.#usable) return at;
    this.#load(bytes);
    const input = this.#inputAddress;
    const end = input + bytes.length;
    const start = input + at - this.#kept;
    const done = this.#read(start, end);
    const rest = end - done;
    if (rest > 0 && rest <= KEPT_BYTES && this.#batches.engine.exports.isCut() !== 0) {
      this.#batches.engine.bytes.copyWithin(input - rest, done, end);
      this.#kept = rest;
      return bytes.length;
    }
    // The record that began with what was kept goes to the reader, with it.
    if (done === start) return at;
    this.#kept = 0;
    return done - input;
  }

  left(): number {
    return this.#usable ? this.#turns.spend() : Number.POSITIVE_INFINITY;
  }

  kept(): Uint8Array {
    const kept = this.#batches.engine.bytes.slice(this.#inputAddress - this.#kept, this.#inputAddress);
    this.#kept = 0;
    return kept;
  }

  /** Where, from `at` on, all of a chunk is known to be whole characters of UTF-8. */
  wholeUntil(chunk: Uint8Array, at: number): number {
    this.#load(chunk);
    return at + this.#batches.engine.exports.wholeUtf8(this.#inputAddress + at, this.#inputAddress + chunk.length);
  }

  /** Forgets the chunk, whose memory may be used again. */
  unload(): void {
    this.#loaded = undefined;
  }

  /** No record can be a row: all go to the reader. */
  stop(): void {
    this.#usable = false;
  }

  /** Values that the engine has dropped so far, by column of the input. */
  *dropped(): Iterable<readonly [column: number, count: number]> {
    const { words } = this.#batches.engine;
    for (let i = 0; i < this.#width; i++) {
      const count = words[(this.#cells >>> 2) + 2 * i + 1]!;
      if (count > 0) yield [i, count];
    }
  }

  /** What lies behind the input. */
  get #tables(): number {
    return this.#inputAddress + PIECE_BYTES + SLACK_BYTES;
  }

  /** Copies a chunk into the engine, with a line feed behind it at which every reader there stops. */
  #load(chunk: Uint8Array): void {
    if (chunk === this.#loaded) return;
    const { bytes } = this.#batches.engine;
    bytes.set(chunk, this.#inputAddress);
    bytes[this.#inputAddress + chunk.length] = LF;
    this.#loaded = chunk;
  }

  /** Lets the engine take records from `start` on; returns where the last one ends. */
  #read(start: number, end: number): number {
    const batches = this.#batches;
    const { exports } = batches.engine;
    batches.moveSlow();
    const rows = batches.taken;
    let at = start;
    for (;;) {
      at = exports.readRecords(at, end);
      this.lines += exports.recordLines();
      if (exports.isFull() === 0) break;
      batches.flush();
    }
    this.#turns.earn(batches.taken - rows);
    return at;
  }
}

function isDirect({ delimiter, quote, escape: escaping }: CsvDialect): boolean {
  return escaping === quote && !VALUE_BYTE.test(String.fromCharCode(delimiter, quote));
}
