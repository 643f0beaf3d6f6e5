/** Text of any format: which parser and inferrer read it. */

import { createCsvEngineParser } from "./csv-engine.js";
import { createCsvInferrer } from "./csv-infer.js";
import { createCsvParser } from "./csv-parser.js";
import { createJsonEngineParser } from "./json-engine.js";
import { createJsonInferrer } from "./json-infer.js";
import { createJsonParser } from "./json-parser.js";
import type { CsvOptions, Inferrer, InferrerOptions, Parser, TextFormat, TextParserOptions } from "./parser.js";

/** A parser of text; for its rules see {@link createJsonParser} and {@link createCsvParser}. */
export function createTextParser(options: TextParserOptions): Parser<Uint8Array> {
  if (options.format === "csv") return createCsvEngineParser(options) ?? createCsvParser(options);
  return createJsonEngineParser(options) ?? createJsonParser(options);
}

/** An inferrer for text; for its rules see {@link createJsonInferrer} and {@link createCsvInferrer}. */
export function createTextInferrer(
  options: InferrerOptions & { readonly format: TextFormat; readonly csv?: CsvOptions },
): Inferrer<Uint8Array> {
  return options.format === "csv"
    ? createCsvInferrer(options)
    : createJsonInferrer({ ...options, format: options.format });
}
