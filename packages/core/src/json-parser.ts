/** JSON and NDJSON bytes → record batches. */

import { BatchParser } from "./batch-parser.js";
import { JsonRows } from "./json-rows.js";
import { JsonSplitter, NdjsonSplitter, type RowSink } from "./json-splitter.js";
import type { Parser, TextParserOptions } from "./parser.js";
import { MAX_ROW_BYTES, RowBatches, RowFault } from "./row-batches.js";
import { Utf8Reader } from "./text-encoding.js";
import { rawText } from "./utf8.js";

/**
 * A parser of NDJSON (`format: "ndjson"`) and JSON (`format: "json"`).
 *
 * - RFC 8259, strictly. What is wrong within a row makes it a reject `bad_json`; what is wrong between the rows of a
 *   JSON array, or not UTF-8, is an error of the whole input. A byte-order mark is dropped.
 * - NDJSON that begins with `[` is read as JSON.
 * - A key goes to the column of its name, whatever its case; two spellings in one row are a reject `duplicate_key`.
 *   Of a key that is repeated the last value counts. The empty key is the column `_empty`.
 * - A missing key is null; a row without a value that may not be null is a reject `missing_value`.
 * - Numbers fit a type that holds them exactly; fractions are rounded to the nearest float. A number beyond the range
 *   of float64 is a reject `number_out_of_range`. Text is never a number and a number is never text.
 * - Deeper than 100 levels is a reject `too_deep`, a line larger than 16 MiB one of `row_too_large`.
 */
export function createJsonParser(options: TextParserOptions): Parser<Uint8Array> {
  return new JsonParser(options);
}

class JsonParser extends BatchParser<Uint8Array> {
  readonly #splitter: NdjsonSplitter | JsonSplitter;
  readonly #text: Utf8Reader;

  constructor(options: TextParserOptions) {
    super(new RowBatches(options));
    const rows = new JsonRows(options, this.batches);
    const splitter = createSplitter(options, {
      row: (bytes, start, end, line) => rows.row(bytes, start, end, line),
      oversized: (bytes, line) => this.batches.refuse(tooLarge(), line, rawText(bytes, 0, bytes.length)),
    });
    this.#splitter = splitter;
    this.#text = new Utf8Reader({
      offset: options.part?.offset,
      sink: (utf8) => splitter.push(utf8),
      line: () => splitter.line,
      skipped: (bytes) => splitter.skip(bytes),
    });
  }

  push(input: Uint8Array): void {
    this.#text.push(input);
  }

  end(): void {
    this.#text.end();
    this.#splitter.end();
    this.batches.flush();
  }
}

/** The splitter of a format. */
export function createSplitter(
  { format, part }: Pick<TextParserOptions, "format" | "part">,
  sink: RowSink,
): NdjsonSplitter | JsonSplitter {
  return format === "json" ? new JsonSplitter(sink, part) : new NdjsonSplitter(sink, part);
}

/** The fault of a row whose text is not kept. */
export function tooLarge(): RowFault {
  return new RowFault("form", "row_too_large", `is larger than ${MAX_ROW_BYTES} bytes`);
}
