/** Where a JSON text is cut into parts that can be read apart: in front of rows. */

import { UTF8_MARK } from "./byte-search.js";
import { JsonSplitter, type RowSeparator } from "./json-splitter.js";
import type { TextPart } from "./parser.js";

export interface JsonCutter {
  /** Where the part begins that is being read. */
  readonly part: TextPart;
  /**
   * Goes on with the next piece of the text.
   * @throws InvalidInputError `bad_json`, `row_too_large` for the piece before, which a parser of it refuses too
   */
  begin(piece: Uint8Array): void;
  /** Where in the piece the part ends, and the next one begins; −1 once it ends in a later piece. */
  next(): number;
  /** @throws InvalidInputError as `begin`, and `bad_json` where the text is cut off */
  end(): void;
}

/**
 * A cutter for an array of rows, or objects one after the other, in UTF-8. A part ends in front of the first row that
 * begins `partBytes` or more behind the part's own begin, and has one row at least: the cuts follow from the text alone.
 */
export function createJsonCutter(partBytes: number): JsonCutter {
  return new Cuts(partBytes);
}

class Cuts implements JsonCutter {
  readonly #partBytes: number;
  readonly #splitter: JsonSplitter;
  part: TextPart = { line: 1, offset: 0, json: "front" };
  /** Of the part, which may end in a later piece than it begins in. */
  #begin = 0;
  #hasRow = false;
  /** Of the text before the piece. */
  #offset = 0;
  #length = 0;
  /** Of the piece before the bytes that the splitter was given. */
  #skipped = 0;
  /** Parts that begin in the piece, and how many of them {@link next} has told. */
  #parts: TextPart[] = [];
  #told = 0;
  #error: unknown;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
    this.#splitter = new JsonSplitter({
      // Asked wherever a row begins; none is taken, so that the splitter looks for its end.
      rows: (_, at, separator, line) => {
        this.#row(this.#offset + this.#skipped + at, separator, line);
        return at;
      },
      row: () => {},
      oversized: () => {},
    });
  }

  begin(piece: Uint8Array): void {
    if (this.#error !== undefined) throw this.#error;
    this.#offset += this.#length;
    this.#length = piece.length;
    this.#parts = [];
    this.#told = 0;
    let at = 0;
    while (at < piece.length && piece[at] === UTF8_MARK[this.#offset + at]) at++;
    this.#skipped = at;
    // The parser of the text does not give the splitter a mark either: its errors tell offsets in the whole text.
    this.#splitter.skip(at);
    try {
      this.#splitter.push(piece.subarray(at));
    } catch (error) {
      // What comes before it in the piece is cut first, as it would be if the piece were shorter, and then parsed: that
      // may find another fault before this one.
      this.#error = error;
    }
  }

  next(): number {
    const part = this.#parts[this.#told++];
    if (!part) return -1;
    this.part = part;
    return part.offset - this.#offset;
  }

  end(): void {
    if (this.#error !== undefined) throw this.#error;
    this.#splitter.end();
  }

  #row(offset: number, separator: RowSeparator, line: number): void {
    if (this.#hasRow && offset - this.#begin >= this.#partBytes) {
      this.#begin = offset;
      this.#parts.push({ line, offset, json: separator === "commas" ? "array" : "objects" });
    }
    this.#hasRow = true;
  }
}
