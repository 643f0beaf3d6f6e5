/**
 * Text on its way into the sink, range by range. Short input, and text that cannot be cut, is parsed here as it comes;
 * of long input each range is gathered and goes to a worker. The ranges, their order and what becomes of them are the
 * same either way.
 */

import {
  createTextParser,
  DEFAULT_MAX_REJECTS,
  type EncodedRowGroup,
  type Parser,
  parquetReady,
  type RecordBatch,
  type Reject,
  releaseEngines,
  type TextParserOptions,
  tooManyRejects,
} from "../index.js";
import { type Cutter, createCutter, frontBytes } from "./cutter.js";
import { createEncodingParser, type RangeJob, type RangeResult } from "./job.js";
import type { RangePool } from "./pool.js";

/** Room for the row that ends a range. */
const ROW_BYTES = 1024 * 1024;
/** A range that a row makes longer than this is parsed here: no row that parsers take is so large. */
const MAX_ROW_BYTES = 16 * 1024 * 1024;

/** Takes what becomes of the text, in its order. */
export interface RangeSink {
  add(batch: RecordBatch): Promise<void>;
  addRowGroup(group: EncodedRowGroup): Promise<void>;
}

export interface TextFeedOptions {
  readonly text: TextParserOptions;
  readonly pool: RangePool;
  /** Of the input, perhaps compressed; if known. */
  readonly totalBytes: number | undefined;
  /** Text of so many bytes or more comes as row groups, shorter text as batches. Infinity: all of it as batches. */
  readonly rowGroupsFrom: number;
  readonly sink: RangeSink;
  readonly signal: AbortSignal | undefined;
}

/** The range being read: by a parser here, or into a buffer for a worker. */
type Range =
  | { readonly text: TextParserOptions; readonly parser: Parser<Uint8Array> }
  | { readonly text: TextParserOptions; readonly parser: undefined; buffer: Uint8Array<ArrayBuffer>; length: number };

/** A range that a worker has, or will have. */
interface Pending {
  readonly result: Promise<RangeResult>;
  /** Ends when there is a result or an error. */
  readonly settling: Promise<void>;
  settled: boolean;
}

export class TextFeed implements AsyncDisposable {
  readonly #options: TextFeedOptions;
  readonly #maxRejects: number;
  #output: RangeJob["output"] = "batches";
  /** The front of the text, until it is known how to cut it, and what becomes of it. */
  #front: Uint8Array[] | undefined = [];
  #bytes = 0;
  #cutter: Cutter | undefined;
  #range: Range | undefined;
  #ranges = 0;
  /** Buffers for ranges: how many there are, those that are free, and what waits for one. */
  #buffers = 0;
  readonly #free: Uint8Array<ArrayBuffer>[] = [];
  #onFree = (): void => {};
  readonly #pending: Pending[] = [];
  /** What a parser here has encoded, until it is in the sink. */
  readonly #encoded: EncodedRowGroup[] = [];
  /** Of the ranges that are done. */
  #rows = 0;
  readonly #rejects: Reject[] = [];
  readonly #ignored = new Map<string, number>();

  constructor(options: TextFeedOptions) {
    this.#options = options;
    this.#maxRejects = options.text.maxRejects ?? DEFAULT_MAX_REJECTS;
  }

  get rows(): number {
    return this.#rows + (this.#range?.parser?.rows ?? 0);
  }

  get rejects(): readonly Reject[] {
    const current = this.#range?.parser?.rejects ?? [];
    return current.length === 0 ? this.#rejects : [...this.#rejects, ...current];
  }

  get ignoredFields(): ReadonlyMap<string, number> {
    return this.#ignored;
  }

  async push(piece: Uint8Array): Promise<void> {
    this.#bytes += piece.length;
    if (!this.#front) await this.#read(piece);
    else if (this.#bytes >= this.#frontBytes()) await this.#decide(piece, false);
    // The piece is the caller's, who may use its memory again.
    else this.#front.push(new Uint8Array(piece));
  }

  async end(): Promise<void> {
    if (this.#front) await this.#decide(new Uint8Array(0), true);
    if (this.#ranges === 0) this.#range = await this.#begin();
    await this.#endRange();
    while (this.#pending.length > 0) await this.#collect();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.pool.forget(this);
  }

  #frontBytes(): number {
    const { text, rowGroupsFrom } = this.#options;
    return Math.max(frontBytes(text.format), Number.isFinite(rowGroupsFrom) ? rowGroupsFrom : 0);
  }

  async #decide(piece: Uint8Array, complete: boolean): Promise<void> {
    const { text, pool, rowGroupsFrom } = this.#options;
    this.#output = this.#bytes >= rowGroupsFrom ? "rowGroups" : "batches";
    const front = this.#front!.length === 0 ? piece : joined([...this.#front!, piece], this.#bytes);
    this.#front = undefined;
    this.#cutter = createCutter(text.format, text.csv, front, complete, pool.limits, text.part);
    await this.#read(front);
  }

  async #read(piece: Uint8Array): Promise<void> {
    this.#cutter?.begin(piece);
    for (let at = 0; at < piece.length; ) {
      this.#range ??= await this.#begin();
      const cut = this.#cutter?.next() ?? -1;
      const end = cut === -1 ? piece.length : cut;
      await this.#take(end - at === piece.length ? piece : piece.subarray(at, end));
      if (cut !== -1) await this.#endRange();
      at = end;
    }
  }

  async #begin(): Promise<Range> {
    this.#ranges++;
    const { text, pool } = this.#options;
    const { part, csv } = this.#cutter ?? {};
    // A range is a batch: its parser can foresee what its columns will need.
    const own = { ...text, batchBytes: pool.limits.bytes, ...(part && csv && { csv }), ...(part && { part }) };
    if (!this.#usesWorkers()) return this.#beginHere(own);
    // What has parsed the ranges before is needed no more.
    releaseEngines();
    return { text: own, parser: undefined, buffer: await this.#buffer(), length: 0 };
  }

  /** There are as many as workers: theirs come back long before they have encoded what was in them. */
  async #buffer(): Promise<Uint8Array<ArrayBuffer>> {
    const { pool, signal } = this.#options;
    for (;;) {
      const free = this.#free.pop();
      if (free) return free;
      const running = this.#running();
      if (running.length === 0 || this.#buffers < pool.threads) {
        this.#buffers++;
        return new Uint8Array(pool.limits.bytes + ROW_BYTES);
      }
      const freed = new Promise<void>((resolve) => (this.#onFree = resolve));
      await untilAborted(Promise.race([freed, ...running.map(({ settling }) => settling)]), signal);
    }
  }

  #usesWorkers(): boolean {
    const { pool, totalBytes } = this.#options;
    if (!this.#cutter || pool.threads === 1) return false;
    return this.#bytes >= pool.minBytes || (totalBytes !== undefined && totalBytes >= pool.minBytes);
  }

  /** Begins a range that is parsed here, once all before it are in the sink. */
  async #beginHere(text: TextParserOptions): Promise<Range> {
    while (this.#pending.length > 0) await this.#collect();
    if (this.#output === "batches") return { text, parser: createTextParser(text) };
    await parquetReady();
    return { text, parser: createEncodingParser(text, this.#encoded) };
  }

  async #take(bytes: Uint8Array): Promise<void> {
    let range = this.#range!;
    if (!range.parser) {
      const length = range.length + bytes.length;
      const most = this.#options.pool.limits.bytes + MAX_ROW_BYTES;
      if (length <= most) {
        if (length > range.buffer.length) range.buffer = grown(range.buffer.subarray(0, range.length), most);
        range.buffer.set(bytes, range.length);
        range.length = length;
        return;
      }
      const gathered = range.buffer.subarray(0, range.length);
      this.#buffers--;
      range = await this.#beginHere(range.text);
      this.#range = range;
      range.parser?.push(gathered);
    }
    if (!range.parser) return;
    range.parser.push(bytes);
    await this.#drain(range.parser);
  }

  async #endRange(): Promise<void> {
    const range = this.#range;
    // The input ended where a range did.
    if (!range) return;
    this.#range = undefined;
    if (!range.parser) return this.#dispatch(range.text, range.buffer.subarray(0, range.length));
    range.parser.end();
    await this.#drain(range.parser);
    this.#count(range.parser);
  }

  async #drain(parser: Parser<Uint8Array>): Promise<void> {
    const { sink } = this.#options;
    for (let batch = parser.take(); batch; batch = parser.take()) await sink.add(batch);
    for (const rowGroup of this.#encoded.splice(0)) await sink.addRowGroup(rowGroup);
  }

  /** Gives a range to a worker as soon as one has nothing else to do for this feed. */
  async #dispatch(text: TextParserOptions, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    const { pool, signal } = this.#options;
    const output = this.#output;
    // Batches are large, and have to wait for this thread, which sorts and encodes them: one worker keeps it busy.
    const threads = output === "batches" ? 1 : pool.threads;
    for (;;) {
      const running = this.#running();
      // Results that wait for an earlier range take memory too.
      if (this.#pending.length >= 2 * threads) await this.#collect();
      else if (running.length < threads) break;
      else await untilAborted(Promise.race(running.map(({ settling }) => settling)), signal);
    }
    const answer = pool.run(this, { text, output, bytes }, (buffer) => {
      this.#free.push(new Uint8Array(buffer));
      this.#onFree();
    });
    const settle = (): void => {
      pending.settled = true;
    };
    const pending: Pending = {
      result: answer,
      settling: answer.then(settle, settle),
      settled: false,
    };
    this.#pending.push(pending);
    // Now that the worker is busy there is time for what others have done.
    while (this.#pending[0]?.settled) await this.#collect();
  }

  #running(): Pending[] {
    return this.#pending.filter(({ settled }) => !settled);
  }

  /** Waits for the range that is next in order, and puts it into the sink. */
  async #collect(): Promise<void> {
    const { sink, signal } = this.#options;
    const result = await untilAborted(this.#pending.shift()!.result, signal);
    for (const rowGroup of result.rowGroups) await sink.addRowGroup(rowGroup);
    for (const batch of result.batches) await sink.add(batch);
    this.#count(result);
  }

  #count({ rows, rejects, ignoredFields }: Pick<RangeResult, "rows" | "rejects" | "ignoredFields">): void {
    this.#rows += rows;
    this.#rejects.push(...rejects);
    for (const [name, count] of ignoredFields) this.#ignored.set(name, (this.#ignored.get(name) ?? 0) + count);
    if (this.#rejects.length > this.#maxRejects) {
      throw tooManyRejects(this.#rejects.slice(0, this.#maxRejects + 1), this.#maxRejects);
    }
  }
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function grown(bytes: Uint8Array, size: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(size);
  larger.set(bytes);
  return larger;
}

/** Waits for a promise, or for the abort of the signal. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  signal.throwIfAborted();
  let abort = (): void => {};
  try {
    return await new Promise<T>((resolve, reject) => {
      abort = () => reject(signal.reason);
      signal.addEventListener("abort", abort);
      promise.then(resolve, reject);
    });
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
