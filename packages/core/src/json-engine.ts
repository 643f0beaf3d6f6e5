/** JSON and NDJSON bytes → record batches by the WebAssembly engine. */

import type { RecordBatch } from "./columns.js";
import { acquireEngine, type Engine } from "./engine.js";
import type { EngineBatches } from "./engine-batches.js";
import { EngineParser, type EngineText } from "./engine-parser.js";
import { JsonEngineRows } from "./json-engine-rows.js";
import { createSplitter } from "./json-parser.js";
import type { JsonSplitter, NdjsonSplitter } from "./json-splitter.js";
import type { Parser, TextParserOptions } from "./parser.js";
import { Utf8Reader } from "./text-encoding.js";

/**
 * A parser of JSON and NDJSON with the rules and the results of `createJsonParser`; undefined on hosts where the engine
 * cannot run.
 * @param onBatch as in `createTextParser`
 */
export function createJsonEngineParser(
  options: TextParserOptions,
  onBatch?: (batch: RecordBatch) => void,
): Parser<Uint8Array> | undefined {
  const engine = acquireEngine();
  return engine && new EngineParser(new JsonEngineText(options, engine), onBatch);
}

class JsonEngineText implements EngineText {
  readonly batches: EngineBatches;
  readonly #rows: JsonEngineRows;
  readonly #splitter: NdjsonSplitter | JsonSplitter;
  readonly #text: Utf8Reader;

  constructor(options: TextParserOptions, engine: Engine) {
    const rows = new JsonEngineRows(options, engine);
    const splitter = createSplitter(options, rows);
    this.batches = rows.batches;
    this.#rows = rows;
    this.#splitter = splitter;
    this.#text = new Utf8Reader({
      offset: options.part?.offset,
      sink: (utf8) => splitter.push(utf8),
      line: () => splitter.line,
      skipped: (bytes) => splitter.skip(bytes),
      wholeUntil: (utf8, at) => rows.wholeUntil(utf8, at),
    });
  }

  push(piece: Uint8Array): void {
    this.#text.push(piece);
    this.#rows.unload();
  }

  end(): void {
    this.#text.end();
    this.#splitter.end();
  }

  ignoredFields(): Map<string, number> {
    return this.#rows.ignoredFields();
  }
}
