/** CSV bytes → record batches by the WebAssembly engine. */

import type { RecordBatch } from "./columns.js";
import { csvDialect } from "./csv-dialect.js";
import { CsvEngineRecords } from "./csv-engine-records.js";
import { type CsvConsumer, CsvInput } from "./csv-input.js";
import type { CsvReader } from "./csv-reader.js";
import { CsvRows } from "./csv-rows.js";
import { acquireEngine, type Engine } from "./engine.js";
import { EngineBatches } from "./engine-batches.js";
import { EngineParser, type EngineText } from "./engine-parser.js";
import type { Parser, TextParserOptions } from "./parser.js";

/**
 * A parser of CSV with the rules and the results of `createCsvParser`; undefined on hosts where the engine cannot run.
 * @param onBatch as in `createTextParser`
 */
export function createCsvEngineParser(
  options: TextParserOptions,
  onBatch?: (batch: RecordBatch) => void,
): Parser<Uint8Array> | undefined {
  csvDialect(options.csv ?? {}); // an engine that is acquired must find its parser
  const engine = acquireEngine();
  return engine && new EngineParser(new CsvEngineText(options, engine), onBatch);
}

class CsvEngineText implements EngineText, CsvConsumer {
  readonly batches: EngineBatches;
  readonly engine: CsvEngineRecords;
  readonly #rows: CsvRows;
  readonly #input: CsvInput;
  /** Columns of the input. */
  #names: readonly string[] = [];

  constructor(options: TextParserOptions, engine: Engine) {
    const batches = new EngineBatches(options, engine);
    this.batches = batches;
    this.engine = new CsvEngineRecords(options, batches);
    this.#rows = new CsvRows(options, batches.slow, {
      get length() {
        return batches.length;
      },
      get bytes() {
        return engine.exports.addBytes(0);
      },
      accept(bytes) {
        batches.slow.accept(bytes);
        batches.count(bytes);
      },
    });
    this.#input = new CsvInput(options.csv ?? {}, this, options.part);
  }

  push(piece: Uint8Array): void {
    this.#input.push(piece);
    this.engine.unload();
  }

  end(): void {
    this.#input.end();
  }

  columns(names: readonly string[], line: number): void {
    this.#rows.columns(names, line);
    this.#names = names;
    const { children } = this.batches.plan.root;
    const { sources } = this.#rows;
    const nodes = new Map(sources.map((column, field) => [column, children[field]!.address]));
    this.engine.begin(this.#input.delimiter, names.length, 0, (column) => nodes.get(column));
    if (children.some(({ nullable }, field) => !nullable && sources[field] === -1)) this.engine.stop();
  }

  records(block: CsvReader, from: number): void {
    this.#rows.records(block, from);
  }

  wholeUntil(utf8: Uint8Array, at: number): number {
    return this.engine.wholeUntil(utf8, at);
  }

  ignoredFields(): Map<string, number> {
    const all = new Map(this.batches.ignoredFields);
    for (const [column, count] of this.engine.dropped()) {
      const name = this.#names[column]!;
      all.set(name, (all.get(name) ?? 0) + count);
    }
    return all;
  }
}
