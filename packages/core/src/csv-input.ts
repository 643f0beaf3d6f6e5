/** CSV input up to named columns and records: encoding, delimiter, header. What parser and inferrer share. */

import { csvDialect, detectDelimiter, SAMPLE_BYTES } from "./csv-dialect.js";
import { CsvReader, ESCAPED, QUOTED } from "./csv-reader.js";
import { InvalidInputError } from "./errors.js";
import { fieldName } from "./json-keys.js";
import type { CsvOptions, TextPart } from "./parser.js";
import { nameKey } from "./schema.js";
import { Utf8Reader } from "./text-encoding.js";
import { decodeUtf8 } from "./utf8.js";

export interface CsvConsumer {
  /** Called once, before any records, with the columns of the input in order. `line` is that of the header. */
  columns(names: readonly string[], line: number): void;
  /** Records `from` up to `block.records`, which are only valid during the call. */
  records(block: CsvReader, from: number): void;
  /** Takes records, once they have names, without the reader. */
  readonly engine?: CsvRecordTaker | undefined;
  /** See `Utf8ReaderOptions`. */
  wholeUntil?(utf8: Uint8Array, at: number): number;
}

/** Takes records straight from the bytes, those that it is sure of. */
export interface CsvRecordTaker {
  /**
   * Takes whole records from `at` on, where one begins or goes on that it has {@link kept}. It may keep the beginning
   * of one that the bytes end in.
   * @returns where the last record taken ends, or the chunk if all that follows is kept; what lies behind goes to the
   * reader: what was kept first, then the bytes from there on
   */
  take(bytes: Uint8Array, at: number): number;
  /** Physical lines in what the last {@link take} took. */
  readonly lines: number;
  /** How many records the reader takes, with the one that {@link take} did not. */
  left(): number;
  /** The beginning of a record that was kept; it is no more. Valid until the next call. */
  kept(): Uint8Array;
}

/** What a record is to a table of some columns. */
export const ROW = 0;
export const BLANK = 1;
const RAGGED = 2;
export const BAD_QUOTE = 3;

export class CsvInput {
  readonly #options: CsvOptions;
  readonly #consumer: CsvConsumer;
  readonly #encoding: Utf8Reader;
  readonly #firstLine: number;
  /** The front of the input, until there is enough of it to find the delimiter. */
  #sample: Uint8Array | undefined;
  #sampleLength = 0;
  #reader: CsvReader | undefined;
  #delimiter: string | undefined;
  #named = false;

  constructor(options: CsvOptions, consumer: CsvConsumer, part?: TextPart) {
    this.#options = options;
    this.#consumer = consumer;
    this.#firstLine = part?.line ?? 1;
    if (options.delimiter === undefined) {
      csvDialect(options); // the other options must be right from the start
      this.#sample = new Uint8Array(0);
    } else this.#reader = this.#createReader(options.delimiter);
    this.#encoding = new Utf8Reader({
      encoding: options.encoding,
      offset: part?.offset,
      sink: (utf8) => this.#push(utf8),
      line: () => this.#line(),
      ...(consumer.wholeUntil && { wholeUntil: consumer.wholeUntil.bind(consumer) }),
    });
  }

  push(chunk: Uint8Array): void {
    this.#encoding.push(chunk);
  }

  end(): void {
    this.#encoding.end();
    if (this.#sample) this.#detect(true);
    this.#readKept();
    this.#reader!.end();
    if (!this.#named) this.#name(typeof this.#options.header === "object" ? this.#options.header : [], 1);
  }

  /** Once it is known. */
  get delimiter(): string | undefined {
    return this.#delimiter;
  }

  /** The input so far as UTF-8 while it is still too short to find the delimiter. */
  get undecided(): Uint8Array | undefined {
    return this.#sample?.subarray(0, this.#sampleLength);
  }

  #push(utf8: Uint8Array): void {
    let rest = utf8;
    if (this.#sample) {
      const taken = rest.subarray(0, SAMPLE_BYTES - this.#sampleLength);
      const length = this.#sampleLength + taken.length;
      if (length > this.#sample.length) {
        const grown = new Uint8Array(Math.min(SAMPLE_BYTES, Math.max(length, 2 * this.#sample.length)));
        grown.set(this.#sample);
        this.#sample = grown;
      }
      this.#sample.set(taken, this.#sampleLength);
      this.#sampleLength = length;
      if (this.#sampleLength < SAMPLE_BYTES) return;
      this.#detect(false);
      rest = rest.subarray(taken.length);
    }
    this.#read(rest);
  }

  #read(utf8: Uint8Array): void {
    const reader = this.#reader!;
    const { engine } = this.#consumer;
    let at = 0;
    while (at < utf8.length) {
      if (engine && reader.idle) {
        if (!this.#named) reader.expect(1, 0);
        else {
          at = engine.take(utf8, at);
          if (at === utf8.length) {
            reader.expect(0, engine.lines);
            return;
          }
          reader.expect(engine.left(), engine.lines);
          reader.push(engine.kept());
        }
      }
      at = reader.push(utf8, at);
    }
  }

  /** Whatever the engine has kept goes to the reader, and all that follows. */
  detach(): void {
    if (!this.#sample) this.#readKept();
  }

  /** All that follows goes to the reader, and first the record that the input so far ends in. */
  #readKept(): void {
    const reader = this.#reader!;
    const { engine } = this.#consumer;
    const kept = engine && this.#named && reader.idle ? engine.kept() : undefined;
    reader.expectAll();
    if (kept) reader.push(kept);
  }

  #detect(complete: boolean): void {
    const sample = this.#sample!.subarray(0, this.#sampleLength);
    this.#sample = undefined;
    this.#reader = this.#createReader(detectDelimiter(sample, this.#options, complete).delimiter);
    this.#read(sample);
  }

  /** Only for errors, after which nothing follows: what is not read yet is read to count its lines. */
  #line(): number {
    if (this.#sample) this.#detect(false);
    this.#readKept();
    return this.#reader!.line;
  }

  #createReader(delimiter: string): CsvReader {
    this.#delimiter = delimiter;
    const reader = new CsvReader(csvDialect(this.#options, delimiter), (block) => this.#take(block), this.#firstLine);
    if (this.#consumer.engine) reader.expect(0, 0);
    return reader;
  }

  #take(block: CsvReader): void {
    let from = 0;
    if (!this.#named) {
      const header = this.#options.header ?? true;
      if (header === true) {
        // Blank lines above the header name nothing.
        while (from < block.records && recordForm(block, from, 2, false) === BLANK) from++;
        if (from === block.records) return;
        this.#nameByRecord(block, from++);
      } else {
        const names =
          header === false ? Array.from({ length: block.recordCells[1]! }, (_, i) => `column_${i + 1}`) : header;
        this.#name(names, block.recordLines[0]!);
      }
    }
    if (from < block.records) this.#consumer.records(block, from);
  }

  #nameByRecord(block: CsvReader, record: number): void {
    const line = block.recordLines[record]!;
    if (block.recordBad[record] === 1) {
      const reason = "text follows a closing quote in the header";
      throw new InvalidInputError("bad_quote", `line ${line}: ${reason}`, {
        rows: [{ line, code: "bad_quote", reason }],
      });
    }
    const names: string[] = [];
    for (let c = block.recordCells[record]!; c < block.recordCells[record + 1]!; c++) names.push(cellText(block, c));
    this.#name(names, line);
  }

  #name(names: readonly string[], line: number): void {
    this.#named = true;
    this.#consumer.columns(columnNames(names), line);
  }
}

/** What the front of a CSV text tells about all of it. */
export interface CsvHead {
  readonly delimiter: string;
  /** Distinct names, as `CsvOptions.header` takes them. */
  readonly header: readonly string[];
  /** 1-based line where the header begins, or the first record if there is none. */
  readonly line: number;
}

/**
 * Delimiter and column names of a CSV text; undefined where its front does not tell them, or is at fault.
 * @param front at least 64 KiB and 3 bytes, unless `complete` says that the text ends there
 */
export function readCsvHead(front: Uint8Array, options: CsvOptions, complete: boolean): CsvHead | undefined {
  let head: Omit<CsvHead, "delimiter"> | undefined;
  const input = new CsvInput(options, {
    columns: (header, line) => {
      head = { header, line };
    },
    records() {},
  });
  try {
    input.push(front);
    if (complete) input.end();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return undefined;
  }
  const { delimiter } = input;
  // A text of blank lines has no columns.
  if (!head || head.header.length === 0 || delimiter === undefined) return undefined;
  return { delimiter, ...head };
}

/**
 * Distinct names for the columns of a header, without regard to case: the first `k` keeps its name, further ones become
 * `k_2`, `k_3`, …, and the empty name in column n becomes `column_<n>`. Made names step over those that the header has.
 */
export function columnNames(header: readonly string[]): string[] {
  const own = new Set(header.map(nameKey));
  const used = new Set<string>();
  const counts = new Map<string, number>();
  return header.map((name, index) => {
    const base = name === "" ? `column_${index + 1}` : fieldName(name);
    const key = nameKey(base);
    let unique = base;
    if (used.has(key) || (name === "" && own.has(key))) {
      let n = counts.get(key) ?? 2;
      while (own.has(`${key}_${n}`) || used.has(`${key}_${n}`)) n++;
      counts.set(key, n + 1);
      unique = `${base}_${n}`;
    }
    used.add(nameKey(unique));
    return unique;
  });
}

/**
 * What record `record` is to a table of `width` columns. With `pad` a short one is a row, and so is one that only has
 * an empty cell too many (a delimiter at the line's end). An empty line is blank unless there is one column, where it
 * is an empty cell.
 */
export function recordForm(block: CsvReader, record: number, width: number, pad: boolean): number {
  if (block.recordBad[record] === 1) return BAD_QUOTE;
  const first = block.recordCells[record]!;
  const cells = block.recordCells[record + 1]! - first;
  if (cells === width) return ROW;
  if (cells === 1 && isEmpty(block, first)) return BLANK;
  if (pad && (cells < width || (cells === width + 1 && isEmpty(block, first + width)))) return ROW;
  return RAGGED;
}

function isEmpty(block: CsvReader, cell: number): boolean {
  return block.cellStarts[cell] === block.cellEnds[cell] && block.cellFlags[cell] === 0;
}

/** A cell's text, unescaped. */
function cellText(block: CsvReader, cell: number): string {
  if ((block.cellFlags[cell]! & ESCAPED) === 0)
    return decodeUtf8(block.bytes, block.cellStarts[cell]!, block.cellEnds[cell]!);
  const text = block.unescape(cell);
  return decodeUtf8(text, 0, text.length);
}

/** Tells the cells that are null: the unquoted ones of a few texts. */
export class NullCells {
  /** Whether the empty cell is one, which is the common case. */
  readonly #empty: boolean;
  readonly #texts: readonly Uint8Array[];

  constructor(options: CsvOptions) {
    const texts = options.nullValues ?? [""];
    const encoder = new TextEncoder();
    this.#empty = texts.includes("");
    this.#texts = texts.filter((text) => text !== "").map((text) => encoder.encode(text));
  }

  has(block: CsvReader, cell: number): boolean {
    if ((block.cellFlags[cell]! & QUOTED) !== 0) return false;
    const start = block.cellStarts[cell]!;
    const length = block.cellEnds[cell]! - start;
    if (length === 0) return this.#empty;
    for (const text of this.#texts) {
      if (text.length !== length) continue;
      let i = 0;
      while (i < length && block.bytes[start + i] === text[i]) i++;
      if (i === length) return true;
    }
    return false;
  }
}
