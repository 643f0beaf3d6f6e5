/** What the CSV options mean in bytes, and how the delimiter is found when it is not given. */

import { type CsvDialect, CsvReader, NONE } from "./csv-reader.js";
import { InvalidInputError, SchemaError } from "./errors.js";
import type { CsvOptions } from "./parser.js";

/** Bytes of UTF-8 from the front of the input that decide the delimiter. Nothing behind them is looked at. */
export const SAMPLE_BYTES: number = 64 * 1024;

/** In this order where nothing else decides. */
const CANDIDATES: readonly string[] = [",", ";", "\t", "|"];

export interface DelimiterCandidate {
  readonly delimiter: string;
  /** Cells in the first record. */
  readonly cells: number;
  /** Records with as many cells as the first, which counts too, of `records` (blank lines do not count). */
  readonly agreeing: number;
  readonly records: number;
}

export interface DelimiterGuess {
  readonly delimiter: string;
  /** One sentence for people. */
  readonly reason: string;
  readonly candidates: readonly DelimiterCandidate[];
}

/**
 * Checks the options and translates them; `delimiter` decides where the options leave it open.
 * @throws SchemaError `bad_csv_option`
 */
export function csvDialect(options: CsvOptions, delimiter: string = options.delimiter ?? ","): CsvDialect {
  const quote = options.quote === "" ? NONE : optionByte("quote", options.quote ?? '"');
  const dialect: CsvDialect = {
    delimiter: optionByte("delimiter", delimiter),
    quote,
    escape: quote === NONE || options.escape === undefined ? quote : optionByte("escape", options.escape),
    trim: options.trim ?? false,
  };
  if (dialect.delimiter === quote || dialect.delimiter === dialect.escape)
    throw new SchemaError("bad_csv_option", "the CSV delimiter must differ from the quote and the escape");
  if (typeof options.header === "object" && options.header.length === 0)
    throw new SchemaError("bad_csv_option", "the CSV header lists no names: give at least one, or true or false");
  return dialect;
}

function optionByte(name: string, value: string): number {
  const code = value.charCodeAt(0);
  if (value.length !== 1 || code >= 0x80 || code === 0x0a || code === 0x0d)
    throw new SchemaError("bad_csv_option", `the CSV ${name} must be one ASCII character and not a line end`);
  return code;
}

/**
 * Finds the delimiter among `,` `;` tab and `|`, from the front of the input (`sample`, valid UTF-8, at most
 * {@link SAMPLE_BYTES}; `complete` says that the input ends there).
 *
 * A candidate must occur in the first record, outside quotes. Of those, the one wins by which the largest share of the
 * sample's records have as many cells as the first; then the one that gives more cells; then the order above. If none
 * occurs the input has one column, and the delimiter is `,`.
 */
export function detectDelimiter(sample: Uint8Array, options: CsvOptions = {}, complete = true): DelimiterGuess {
  const candidates = CANDIDATES.filter((d) => d !== options.quote && d !== options.escape)
    .filter((d) => sample.includes(d.charCodeAt(0)))
    .map((delimiter) => tryDelimiter(sample, delimiter, options, complete))
    .filter((c) => c.cells > 1);
  // Equal shares compare as products, without rounding.
  const [best] = candidates.toSorted((a, b) => b.agreeing * a.records - a.agreeing * b.records || b.cells - a.cells);
  if (!best) return { delimiter: ",", reason: "no delimiter occurs in the first record: one column", candidates };
  const name = JSON.stringify(best.delimiter);
  return {
    delimiter: best.delimiter,
    reason: `${name} gives the first record ${best.cells} cells, and ${best.agreeing} of ${best.records} records agree`,
    candidates,
  };
}

function tryDelimiter(
  sample: Uint8Array,
  delimiter: string,
  options: CsvOptions,
  complete: boolean,
): DelimiterCandidate {
  let cells = 0;
  let records = 0;
  let agreeing = 0;
  const reader = new CsvReader(csvDialect(options, delimiter), (block) => {
    for (let r = 0; r < block.records; r++) {
      if (block.recordStarts[r] === block.recordEnds[r]) continue;
      const count = block.recordCells[r + 1]! - block.recordCells[r]!;
      if (records === 0) cells = count;
      records++;
      if (count === cells) agreeing++;
    }
  });
  reader.push(sample);
  try {
    // The last record counts if it is all there, or if it is all there is.
    if (complete || records === 0) reader.end();
  } catch (error) {
    // A quote that this candidate leaves open: whoever reads the input will report it.
    if (!(error instanceof InvalidInputError)) throw error;
  }
  return { delimiter, cells, records, agreeing };
}
