/** Rows as JSON objects → columns in the engine's memory; those that it is not sure of go through TypeScript. */

import type { RecordBatch } from "./columns.js";
import { type Engine, releaseEngine } from "./engine.js";
import { appendChildren, copyChildren, engineColumn, setLength } from "./engine-columns.js";
import { EnginePlan } from "./engine-plan.js";
import type { Reject } from "./errors.js";
import { JsonCursor } from "./json-cursor.js";
import { tooLarge } from "./json-parser.js";
import { JsonRows } from "./json-rows.js";
import type { RowSeparator, RowSink } from "./json-splitter.js";
import type { TextParserOptions } from "./parser.js";
import { DEFAULT_BATCH_BYTES, RowBatches, RowFault, rowsPerBatch } from "./row-batches.js";
import { type Schema, storedSchema } from "./schema.js";
import { rawText } from "./utf8.js";

/** Input that the engine looks at in one go: what the processor's cache holds beside the columns. */
export const PIECE_BYTES: number = 256 * 1024;
/** Largest row that is handed to the engine alone, because its text came in two chunks. */
const ROW_BYTES = 64 * 1024;
/** Bytes behind the input that the engine may look at. */
const SLACK = 64;

const LF = 0x0a;
/** As in `assembly/json.ts`. */
const SEPARATORS: Readonly<Record<RowSeparator, number>> = { lines: 0, commas: 1, blanks: 2 };

/**
 * A row through TypeScript costs as much as some sixty in the engine, most of it for moving a batch of one row. So once
 * such rows are more frequent than that, they go there in runs, together with those between them.
 */
const RARE = 64;
/** Rows that may go there one by one before that: all of it at the start, and one more for each {@link RARE} others. */
const MAX_CREDIT = 32;
const MAX_RUN = 512;

const NO_REJECTS: readonly Reject[] = [];

export class JsonEngineRows implements RowSink {
  readonly #engine: Engine;
  readonly #plan: EnginePlan;
  readonly #ignore: boolean;
  readonly #stored: Schema;
  readonly #batchRows: number;
  readonly #batchBytes: number;
  readonly #options: TextParserOptions;
  /** Rows that TypeScript took, until they are moved behind those of the engine. It also keeps the rejects. */
  #slow: RowBatches | undefined;
  #slowRows: JsonRows | undefined;
  readonly #cursor = new JsonCursor();
  readonly #ready: RecordBatch[] = [];
  /** Addresses in the engine: of a row by itself, and of a piece of the input. */
  readonly #rowAddress: number;
  readonly #inputAddress: number;
  /** The bytes that are at {@link #inputAddress}. */
  #loaded: Uint8Array | undefined;
  /** How rows followed one another when last asked: as they do throughout. */
  #separator: RowSeparator = "lines";
  #lines = 0;
  #finishedRows = 0;
  /** Rows left of a run through TypeScript, and the length of the last run. */
  #pause = 0;
  #run = 1;
  #credit = MAX_CREDIT;

  constructor(options: TextParserOptions, engine: Engine) {
    this.#engine = engine;
    this.#options = options;
    this.#ignore = options.unknownFields === "ignore";
    this.#stored = storedSchema(options.schema);
    this.#batchRows = rowsPerBatch(options);
    this.#batchBytes = options.batchBytes ?? DEFAULT_BATCH_BYTES;
    this.#plan = new EnginePlan(engine, options.schema);
    this.#rowAddress = this.#plan.end;
    this.#inputAddress = this.#rowAddress + ROW_BYTES + SLACK;
    const arena = this.#inputAddress + PIECE_BYTES + SLACK;
    const { exports } = engine;
    exports.reach(arena);
    exports.beginArena(arena);
    exports.configure(
      this.#plan.root.address,
      options.valueMisfits === "misfit",
      Math.min(this.#batchRows, 0xffff_ffff),
      this.#batchBytes,
    );
  }

  /** Rows taken so far. */
  get taken(): number {
    return this.#finishedRows + this.#columnRows + (this.#slow?.root.length ?? 0);
  }

  /** See `Parser.rejects`. */
  get rejects(): readonly Reject[] {
    return this.#slow?.rejects ?? NO_REJECTS;
  }

  /** Rows in the engine's columns. */
  get #columnRows(): number {
    return engineColumn(this.#engine, this.#plan.root).length;
  }

  /** See `Parser.ignoredFields`. */
  ignoredFields(): Map<string, number> {
    const all = new Map(this.#slow?.ignoredFields);
    for (const [path, count] of this.#plan.dropped()) all.set(path, (all.get(path) ?? 0) + count);
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
    else this.#spend();
    const slow = this.#slowBatches();
    const { length } = slow.root;
    this.#slowRows ??= new JsonRows(this.#options, slow);
    this.#slowRows.row(bytes, start, end, line);
    if (slow.root.length === length) return;
    const bytesInBatch = this.#engine.exports.addBytes(end - start);
    if (this.#columnRows + length + 1 >= this.#batchRows || bytesInBatch >= this.#batchBytes) this.flush();
  }

  oversized(bytes: Uint8Array, line: number): void {
    this.#slowBatches().refuse(tooLarge(), line, rawText(bytes, 0, bytes.length));
  }

  /** Makes a batch of the rows so far. */
  flush(): void {
    this.#moveSlow();
    const { exports } = this.#engine;
    const { root } = this.#plan;
    exports.complete(root.address);
    const length = this.#columnRows;
    if (length === 0) return;
    this.#ready.push({ schema: this.#stored, length, columns: copyChildren(this.#engine, root) });
    this.#finishedRows += length;
    exports.clear(root.address);
    exports.resetArena();
    exports.startBatch();
  }

  /** The next finished batch. */
  take(): RecordBatch | undefined {
    return this.#ready.shift();
  }

  /** No more rows: gives the engine back. Only what is {@link taken} may be asked after it. */
  release(): void {
    releaseEngine(this.#engine);
  }

  /** Made for the first row that needs it: most input has none. */
  #slowBatches(): RowBatches {
    const unlimited = Number.POSITIVE_INFINITY;
    this.#slow ??= new RowBatches({ ...this.#options, batchRows: unlimited, batchBytes: unlimited });
    return this.#slow;
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
    this.#moveSlow();
    const { exports } = this.#engine;
    const rows = this.taken;
    let at = start;
    for (;;) {
      const done = exports.readRows(at, SEPARATORS[separator]);
      this.#lines += exports.linesRead();
      const isFull = exports.isFull() !== 0;
      if (isFull) this.flush();
      const again = isFull || this.#learn();
      // With commas the engine begins at a row, not before the comma that is next.
      if (!again || (separator === "commas" && done > at)) {
        this.#credit = Math.min(MAX_CREDIT, this.#credit + (this.taken - rows) / RARE);
        return done;
      }
      at = done;
    }
  }

  /** A row goes to TypeScript that the engine has seen. */
  #spend(): void {
    this.#credit--;
    if (this.#credit >= 0) this.#run = 1;
    else {
      this.#credit = 0;
      this.#run = Math.min(this.#run * 2, MAX_RUN);
      this.#pause = this.#run - 1;
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
    return this.#plan.learn(node, bytes.slice(start, end), key, this.#ignore);
  }

  /** Moves the rows that TypeScript took behind those of the engine. */
  #moveSlow(): void {
    const slow = this.#slow;
    const count = slow?.root.length ?? 0;
    if (!slow || count === 0) return;
    slow.flush();
    const { columns } = slow.take()!;
    const { root } = this.#plan;
    const start = this.#columnRows;
    appendChildren(this.#engine, root, columns, start, count);
    setLength(this.#engine, root, start + count);
  }
}
