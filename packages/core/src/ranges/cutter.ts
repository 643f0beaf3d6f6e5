/**
 * Where a long text is cut into ranges that can be parsed apart: at the ends of rows. The cuts follow from the text and
 * the limits alone, never from how it arrives or how many threads there are.
 */

import { searchable, UTF8_MARK } from "../byte-search.js";
import { type CsvOptions, readCsvHead, type TextFormat, type TextPart } from "../index.js";

/** A range ends with the row that reaches one of these. */
export interface RangeLimits {
  readonly lines: number;
  readonly bytes: number;
}

export interface Cutter {
  /** Options for the ranges after the first, which do not see the header. */
  readonly csv: CsvOptions | undefined;
  /** Where the range begins that is being read; undefined for the first. */
  readonly part: TextPart | undefined;
  /** Goes on with the next piece of the text. */
  begin(piece: Uint8Array): void;
  /** Where in the piece the range ends, and the next one begins; −1 once it ends in a later piece. */
  next(): number;
}

/** Bytes from the front of a CSV text that tell its delimiter and header, if they are not very long. */
const CSV_FRONT_BYTES = 128 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const OPEN_LIST = 0x5b;

/** How much of a text {@link createCutter} wants to see. */
export function frontBytes(format: TextFormat): number {
  return format === "csv" ? CSV_FRONT_BYTES : 1;
}

/**
 * A cutter for the text, or for the part of one that begins at `start`; undefined where it has to be read in one: JSON, encodings other than UTF-8, and CSV of which
 * the cut could not know whether a line end is inside quotes (with `trim` or an escape of its own).
 * @param front its first bytes, {@link frontBytes} of them unless `complete`
 */
export function createCutter(
  format: TextFormat,
  csv: CsvOptions | undefined,
  front: Uint8Array,
  complete: boolean,
  limits: RangeLimits,
  start?: TextPart,
): Cutter | undefined {
  // A byte-order mark of UTF-16; no UTF-8 begins so.
  if (format === "json" || front[0]! >= 0xfe) return undefined;
  if (format === "ndjson") return new LineCutter(limits, start);
  const options = csv ?? {};
  const quote = options.quote ?? '"';
  if ((options.encoding ?? "utf-8") !== "utf-8" || options.trim || (options.escape ?? quote) !== quote)
    return undefined;
  const head = readCsvHead(front.subarray(0, CSV_FRONT_BYTES), options, complete);
  if (!head) return undefined;
  const { delimiter, header, line } = head;
  const named = { ...options, delimiter, header };
  if (start) return new CsvCutter(new Position(limits, start), named, 0);
  const firstRow = UTF8_MARK.every((byte, i) => front[i] === byte) ? UTF8_MARK.length : 0;
  return new CsvCutter(new Position(limits, undefined, line), named, firstRow);
}

/** Lines and bytes of the range so far, and where it begins. */
class Position {
  readonly #limits: RangeLimits;
  readonly #after: number;
  #part: TextPart | undefined;
  #line = 1;
  #lines = 0;
  /** Of the text before the piece, and before the range. */
  #pieceOffset = 0;
  #rangeOffset = 0;
  #pieceLength = 0;

  /** @param after the first range goes beyond this line */
  constructor(limits: RangeLimits, start?: TextPart, after = 0) {
    this.#limits = limits;
    this.#after = after;
    if (!start) return;
    this.#part = start;
    this.#line = start.line;
    this.#rangeOffset = start.offset;
    this.#pieceOffset = start.offset;
  }

  get part(): TextPart | undefined {
    return this.#part;
  }

  /** Of the piece, in the text. */
  get offset(): number {
    return this.#pieceOffset;
  }

  begin(length: number): void {
    this.#pieceOffset += this.#pieceLength;
    this.#pieceLength = length;
  }

  addLine(): void {
    this.#lines++;
  }

  /** Ends the range at `at` in the piece, where a row begins, if that reaches a limit. */
  cut(at: number): boolean {
    const offset = this.#pieceOffset + at;
    if (this.#lines < this.#limits.lines && offset - this.#rangeOffset < this.#limits.bytes) return false;
    if (this.#line + this.#lines <= this.#after) return false;
    this.#line += this.#lines;
    this.#lines = 0;
    this.#rangeOffset = offset;
    this.#part = { line: this.#line, offset };
    return true;
  }
}

/** NDJSON: a row ends with its line. */
class LineCutter implements Cutter {
  readonly csv = undefined;
  readonly #position: Position;
  #piece: Uint8Array = new Uint8Array(0);
  #at = 0;
  /** Until the first byte that is not blank, which tells a JSON array: that is one range. */
  #undecided = true;
  #isArray = false;

  constructor(limits: RangeLimits, start: TextPart | undefined) {
    this.#position = new Position(limits, start);
    this.#undecided = start === undefined;
  }

  get part(): TextPart | undefined {
    return this.#position.part;
  }

  begin(piece: Uint8Array): void {
    this.#position.begin(piece.length);
    this.#piece = searchable(piece);
    this.#at = 0;
  }

  next(): number {
    if (this.#undecided) this.#skipBlank();
    const piece = this.#piece;
    while (!this.#isArray) {
      const end = piece.indexOf(LF, this.#at);
      if (end === -1) break;
      this.#at = end + 1;
      this.#position.addLine();
      if (this.#position.cut(this.#at)) return this.#at;
    }
    return -1;
  }

  #skipBlank(): void {
    const piece = this.#piece;
    for (; this.#at < piece.length; this.#at++) {
      const byte = piece[this.#at]!;
      if (byte === LF) this.#position.addLine();
      else if (byte !== 0x20 && byte !== 0x09 && byte !== CR && byte !== UTF8_MARK[this.#position.offset + this.#at]) {
        this.#undecided = false;
        this.#isArray = byte === OPEN_LIST;
        return;
      }
    }
  }
}

/**
 * CSV: a row ends at a line feed outside quotes. The rules are those of core's `CsvReader`: a quote opens a quoted cell
 * only as its first byte, and in a quoted cell a doubled one stands for itself.
 */
class CsvCutter implements Cutter {
  readonly csv: CsvOptions;
  readonly #position: Position;
  readonly #delimiter: number;
  /** −1 for none. */
  readonly #quote: number;
  /** Where the first row begins in the text, behind a byte-order mark. */
  readonly #firstRow: number;
  #piece: Uint8Array = new Uint8Array(0);
  /** The next ones in the piece; its length where there are none. */
  #nextLf = 0;
  #nextCr = 0;
  #nextQuote = 0;
  #quoted = false;
  /** Where in the piece a quote closed a cell last; −1 is the end of the piece before. */
  #closed = -2;
  /** The byte before the piece, and the last one of the piece, whose memory is another piece's once that has come. */
  #before = LF;
  #last = LF;

  constructor(position: Position, csv: CsvOptions & { readonly delimiter: string }, firstRow: number) {
    this.csv = csv;
    this.#firstRow = firstRow;
    this.#position = position;
    this.#delimiter = csv.delimiter.charCodeAt(0);
    const quote = csv.quote ?? '"';
    this.#quote = quote === "" ? -1 : quote.charCodeAt(0);
  }

  get part(): TextPart | undefined {
    return this.#position.part;
  }

  begin(piece: Uint8Array): void {
    const { length } = this.#piece;
    if (length > 0) {
      this.#before = this.#last;
      this.#closed = this.#closed === length - 1 ? -1 : -2;
    }
    this.#position.begin(piece.length);
    this.#piece = searchable(piece);
    if (piece.length > 0) this.#last = piece[piece.length - 1]!;
    this.#nextLf = this.#find(LF, 0);
    this.#nextCr = this.#find(CR, 0);
    this.#nextQuote = this.#find(this.#quote, 0);
  }

  next(): number {
    const piece = this.#piece;
    const { length } = piece;
    const firstRow = this.#firstRow - this.#position.offset;
    for (;;) {
      const at = Math.min(this.#nextLf, this.#nextCr, this.#nextQuote);
      if (at === length) return -1;
      const before = at === 0 ? this.#before : piece[at - 1]!;
      if (at === this.#nextQuote) {
        this.#nextQuote = this.#find(this.#quote, at + 1);
        if (this.#quoted) {
          this.#quoted = false;
          this.#closed = at;
        } else if (before === this.#delimiter || before === LF || before === CR || at === firstRow) {
          this.#quoted = true;
        } else if (this.#closed === at - 1) this.#quoted = true;
      } else if (at === this.#nextCr) {
        this.#nextCr = this.#find(CR, at + 1);
        this.#position.addLine();
      } else {
        this.#nextLf = this.#find(LF, at + 1);
        if (before !== CR) this.#position.addLine();
        if (!this.#quoted && this.#position.cut(at + 1)) return at + 1;
      }
    }
  }

  #find(byte: number, from: number): number {
    const at = byte === -1 ? -1 : this.#piece.indexOf(byte, from);
    return at === -1 ? this.#piece.length : at;
  }
}
