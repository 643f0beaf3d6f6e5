/** Text of any format: which parser and inferrer read it. */

import type { RecordBatch } from "./columns.js";
import { createCsvEngineParser } from "./csv-engine.js";
import { createCsvInferrer } from "./csv-infer.js";
import { createCsvParser } from "./csv-parser.js";
import type { Reject } from "./errors.js";
import { createJsonEngineParser } from "./json-engine.js";
import { createJsonInferrer } from "./json-infer.js";
import { createJsonParser } from "./json-parser.js";
import type { Inferrer, InferrerOptions, Parser, TextParserOptions } from "./parser.js";

/**
 * A parser of text; for its rules see {@link createJsonParser} and {@link createCsvParser}.
 * @param onBatch takes each batch as soon as it is full, instead of `take`, which gives none. The batch is only valid
 *   until it returns: an encoder reads it where the parser has put it. What it throws comes out of `push` and `end`.
 */
export function createTextParser(
  options: TextParserOptions,
  onBatch?: (batch: RecordBatch) => void,
): Parser<Uint8Array> {
  const isCsv = options.format === "csv";
  const lending = isCsv ? createCsvEngineParser(options, onBatch) : createJsonEngineParser(options, onBatch);
  if (lending) return lending;
  const parser = isCsv ? createCsvParser(options) : createJsonParser(options);
  return onBatch ? new GivingParser(parser, onBatch) : parser;
}

/** Gives away the batches of a parser that keeps them. */
class GivingParser implements Parser<Uint8Array> {
  readonly #parser: Parser<Uint8Array>;
  readonly #onBatch: (batch: RecordBatch) => void;

  constructor(parser: Parser<Uint8Array>, onBatch: (batch: RecordBatch) => void) {
    this.#parser = parser;
    this.#onBatch = onBatch;
  }

  push(input: Uint8Array): void {
    this.#parser.push(input);
    this.#give();
  }

  end(): void {
    this.#parser.end();
    this.#give();
  }

  take(): undefined {}

  get rows(): number {
    return this.#parser.rows;
  }

  get rejects(): readonly Reject[] {
    return this.#parser.rejects;
  }

  get ignoredFields(): ReadonlyMap<string, number> {
    return this.#parser.ignoredFields;
  }

  #give(): void {
    for (let batch = this.#parser.take(); batch; batch = this.#parser.take()) this.#onBatch(batch);
  }
}

/** An inferrer for text; for its rules see {@link createJsonInferrer} and {@link createCsvInferrer}. */
export function createTextInferrer(
  options: InferrerOptions & Pick<TextParserOptions, "format" | "csv" | "part">,
): Inferrer<Uint8Array> {
  return options.format === "csv"
    ? createCsvInferrer(options)
    : createJsonInferrer({ ...options, format: options.format });
}
