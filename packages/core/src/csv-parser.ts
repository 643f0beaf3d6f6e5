/** CSV bytes → record batches. */

import { BatchParser } from "./batch-parser.js";
import { CsvInput } from "./csv-input.js";
import { type CsvBatch, CsvRows } from "./csv-rows.js";
import type { Parser, TextParserOptions } from "./parser.js";
import { DEFAULT_BATCH_BYTES, RowBatches, rowsPerBatch } from "./row-batches.js";

/**
 * A parser of CSV. The columns of the input go to the schema's fields by name, whatever their case; fields that the
 * input lacks are null. A cell fits a column as follows, and else its row is at fault:
 *
 * - string: any text, a quoted empty cell is the empty string; no other type takes empty text
 * - other types: as `createTextAppender` lists, so the number 7 is not written `+7`, `007` or `7_000`
 * - lists, maps and structs have no form in CSV and take only null
 *
 * With `valueMisfits: "misfit"` a number must also be written as inference expects numbers of its column, see
 * `inferredNumbers`.
 *
 * A column that the schema lacks is a misfit by its name alone; with `unknownFields: "reject"` its rows are rejected,
 * with `"ignore"` its values are counted, where a cell is not null.
 */
export function createCsvParser(options: TextParserOptions): Parser<Uint8Array> {
  return new CsvParser(options);
}

class CsvParser extends BatchParser<Uint8Array> implements CsvBatch {
  readonly #input: CsvInput;
  readonly #batchRows: number;
  readonly #batchBytes: number;
  #bytes = 0;

  constructor(options: TextParserOptions) {
    // Batches are cut here, where a range of rows must be known before its columns are filled.
    super(new RowBatches({ ...options, batchRows: Infinity, batchBytes: Infinity }));
    this.#batchRows = rowsPerBatch(options);
    this.#batchBytes = options.batchBytes ?? DEFAULT_BATCH_BYTES;
    this.#input = new CsvInput(options.csv ?? {}, new CsvRows(options, this.batches, this), options.part);
  }

  get length(): number {
    return this.batches.root.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  accept(bytes: number): void {
    this.batches.accept(bytes);
    this.#bytes += bytes;
    if (this.length >= this.#batchRows || this.#bytes >= this.#batchBytes) {
      this.batches.flush();
      this.#bytes = 0;
    }
  }

  push(input: Uint8Array): void {
    this.#input.push(input);
  }

  end(): void {
    this.#input.end();
    this.batches.flush();
  }
}
