/** Rows as JSON objects → columns in the engine's memory; those that it is not sure of go through TypeScript. */

import type { Engine } from "./engine.js";
import { EngineBatches, PIECE_BYTES, SLACK_BYTES, Turns } from "./engine-batches.js";
import { JsonCursor } from "./json-cursor.js";
import { tooLarge } from "./json-parser.js";
import { JsonRows } from "./json-rows.js";
import type { RowSeparator, RowSink } from "./json-splitter.js";
import type { TextParserOptions } from "./parser.js";
import { RowFault } from "./row-batches.js";
import { rawText } from "./utf8.js";

/** Largest row that is handed to the engine alone, because its text came in two chunks. */
const ROW_BYTES = 64 * 1024;

const LF = 0x0a;
/** As in `assembly/json.ts`. */
const SEPARATORS: Readonly<Record<RowSeparator, number>> = { lines: 0, commas: 1, blanks: 2 };

export class JsonEngineRows implements RowSink {
  readonly batches: EngineBatches;
  readonly #engine: Engine;
  readonly #ignore: boolean;
  readonly #options: TextParserOptions;
  #slowRows: JsonRows | undefined;
  readonly #cursor = new JsonCursor();
  /** Addresses in the engine: of a row by itself, and of a piece of the input. */
  readonly #rowAddress: number;
  readonly #inputAddress: number;
  /** The bytes that are at {@link #inputAddress}. */
  #loaded: Uint8Array | undefined;
  /** How rows followed one another when last asked: as they do throughout. */
  #separator: RowSeparator = "lines";
  #lines = 0;
  /** Rows left of a run through TypeScript. */
  #pause = 0;
  readonly #turns = new Turns();

  constructor(options: TextParserOptions, engine: Engine) {
    this.#engine = engine;
    this.#options = options;
    this.#ignore = options.unknownFields === "ignore";
    this.batches = new EngineBatches(options, engine);
    this.#rowAddress = this.batches.plan.end;
    this.#inputAddress = this.#rowAddress + ROW_BYTES + SLACK_BYTES;
    this.batches.begin(this.#inputAddress + PIECE_BYTES + SLACK_BYTES);
  }

  /** See `Parser.ignoredFields`. */
  ignoredFields(): Map<string, number> {
    const all = new Map(this.batches.ignoredFields);
    for (const [path, count] of this.batches.plan.dropped()) all.set(path, (all.get(path) ?? 0) + count);
    return all;
  }

  /** Where, from `at` on, all of a chunk is known to be whole characters of UTF-8. */
  wholeUntil(chunk: Uint8Array, at: number): number {
    if (chunk.length > PIECE_BYTES) return at;
    this.#load(chunk);
    const { exports } = this.#engine;
    return at + exports.wholeUtf8(this.#inputAddress + at, this.#inputAddress + chunk.length);
  }

  /** Forgets the chunk, whose memory may be used again. */
  unload(): void {
    this.#loaded = undefined;
  }

  rows(bytes: Uint8Array, at: number, separator: RowSeparator): number {
    this.#separator = separator;
    if (this.#pause > 0 || bytes.length > PIECE_BYTES) return at;
    this.#load(bytes);
    const start = this.#inputAddress + at;
    this.#lines = 0;
    return at + this.#read(start, separator) - start;
  }

  linesTaken(): number {
    return this.#lines;
  }

  row(bytes: Uint8Array, start: number, end: number, line: number): void {
    if (this.#pause > 0) this.#pause--;
    else if (bytes !== this.#loaded && end - start <= ROW_BYTES && this.#single(bytes, start, end)) return;
    else this.#pause = this.#turns.spend() - 1;
    const { slow } = this.batches;
    const { length } = slow.root;
    this.#slowRows ??= new JsonRows(this.#options, slow);
    this.#slowRows.row(bytes, start, end, line);
    if (slow.root.length > length) this.batches.count(end - start);
  }

  oversized(bytes: Uint8Array, line: number): void {
    this.batches.slow.refuse(tooLarge(), line, rawText(bytes, 0, bytes.length));
  }

  /** Copies a chunk into the engine, with a 0 behind it at which every reader there stops. */
  #load(chunk: Uint8Array): void {
    if (chunk === this.#loaded) return;
    const { bytes } = this.#engine;
    bytes.set(chunk, this.#inputAddress);
    bytes[this.#inputAddress + chunk.length] = 0;
    this.#loaded = chunk;
  }

  /** Lets the engine take a row whose text came in two chunks; false if it does not. */
  #single(chunk: Uint8Array, from: number, to: number): boolean {
    const { bytes } = this.#engine;
    const address = this.#rowAddress;
    let length = to - from;
    bytes.set(chunk.subarray(from, to), address);
    if (this.#separator === "lines") bytes[address + length++] = LF;
    bytes[address + length] = 0;
    const separator = this.#separator === "commas" ? "blanks" : this.#separator;
    return this.#read(address, separator) === address + length;
  }

  /** Lets the engine take rows from `start` on; returns where the last one ends. */
  #read(start: number, separator: RowSeparator): number {
    const { batches } = this;
    const { exports } = this.#engine;
    batches.moveSlow();
    const rows = batches.taken;
    let at = start;
    for (;;) {
      const done = exports.readRows(at, SEPARATORS[separator]);
      this.#lines += exports.linesRead();
      const isFull = exports.isFull() !== 0;
      if (isFull) batches.flush();
      const again = isFull || this.#learn();
      // With commas the engine begins at a row, not before the comma that is next.
      if (!again || (separator === "commas" && done > at)) {
        this.#turns.earn(batches.taken - rows);
        return done;
      }
      at = done;
    }
  }

  /** Teaches the engine the key that it has just missed; false if there was none, or the schema does not take it. */
  #learn(): boolean {
    const { exports, bytes } = this.#engine;
    const node = exports.missed();
    if (node === 0) return false;
    const start = exports.missedKeyStart();
    const end = exports.missedKeyEnd();
    const cursor = this.#cursor;
    cursor.reset(bytes, start - 1, end + 1);
    try {
      cursor.string();
    } catch (fault) {
      if (fault instanceof RowFault) return false;
      throw fault;
    }
    const key = cursor.text(cursor.stringStart, cursor.stringEnd, cursor.escaped);
    return this.batches.plan.learn(node, bytes.slice(start, end), key, this.#ignore);
  }
}
