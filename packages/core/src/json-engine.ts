/** JSON and NDJSON bytes → record batches by the WebAssembly engine. */

import type { RecordBatch } from "./columns.js";
import { acquireEngine, type Engine } from "./engine.js";
import { InvalidInputError, type Reject } from "./errors.js";
import { JsonEngineRows, PIECE_BYTES } from "./json-engine-rows.js";
import { createSplitter } from "./json-parser.js";
import type { JsonSplitter, NdjsonSplitter } from "./json-splitter.js";
import type { Parser, TextParserOptions } from "./parser.js";
import { Utf8Reader } from "./text-encoding.js";

/**
 * A parser of JSON and NDJSON with the rules and the results of `createJsonParser`; undefined on hosts where the engine
 * cannot run.
 */
export function createJsonEngineParser(options: TextParserOptions): Parser<Uint8Array> | undefined {
  const engine = acquireEngine();
  return engine && new JsonEngineParser(options, engine);
}

class JsonEngineParser implements Parser<Uint8Array> {
  /** Gives the engine back once there are no more rows: then only what it has counted is left. */
  readonly #rows: JsonEngineRows;
  readonly #splitter: NdjsonSplitter | JsonSplitter;
  readonly #text: Utf8Reader;
  /** What is left when the engine is given back. */
  #final: { readonly rows: number; readonly ignoredFields: ReadonlyMap<string, number> } | undefined;
  #failure: unknown;

  constructor(options: TextParserOptions, engine: Engine) {
    const rows = new JsonEngineRows(options, engine);
    const splitter = createSplitter(options, rows);
    this.#rows = rows;
    this.#splitter = splitter;
    this.#text = new Utf8Reader({
      offset: options.part?.offset,
      sink: (utf8) => splitter.push(utf8),
      line: () => splitter.line,
      wholeUntil: (utf8, at) => rows.wholeUntil(utf8, at),
    });
  }

  push(input: Uint8Array): void {
    this.#guard(() => {
      if (input.length <= PIECE_BYTES) this.#text.push(input);
      else {
        for (let at = 0; at < input.length; at += PIECE_BYTES) this.#text.push(input.subarray(at, at + PIECE_BYTES));
      }
      this.#rows.unload();
    });
  }

  end(): void {
    this.#guard(() => {
      this.#text.end();
      this.#splitter.end();
      this.#rows.flush();
    });
    this.#release();
  }

  take(): RecordBatch | undefined {
    return this.#rows.take();
  }

  get rows(): number {
    return this.#final?.rows ?? this.#rows.taken;
  }

  get rejects(): readonly Reject[] {
    return this.#rows.rejects;
  }

  get ignoredFields(): ReadonlyMap<string, number> {
    return this.#final?.ignoredFields ?? this.#rows.ignoredFields();
  }

  /** A parser that failed has no engine any more: it fails again whatever comes. */
  #guard(work: () => void): void {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      work();
    } catch (error) {
      this.#failure = error instanceof WebAssembly.RuntimeError ? tooLarge(error) : error;
      this.#release();
      throw this.#failure;
    }
  }

  #release(): void {
    if (this.#final) return;
    this.#final = { rows: this.#rows.taken, ignoredFields: this.#rows.ignoredFields() };
    this.#rows.release();
  }
}

/** The engine stops where its memory, 4 GiB at most, or a column, 2 GiB at most, cannot grow. */
function tooLarge(cause: Error): InvalidInputError {
  return new InvalidInputError("batch_too_large", "the columns of one batch exceed the memory: lower batchBytes", {
    cause,
  });
}
