/** Text in any supported encoding → checked UTF-8, over chunks of any split. Nothing ever becomes U+FFFD silently. */

import { InvalidInputError } from "./errors.js";
import { invalidUtf8 } from "./utf8-check.js";

export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

export interface Utf8ReaderOptions {
  /** What the input is declared to be. A byte-order mark outranks it, as in the WHATWG Encoding Standard. */
  readonly encoding?: TextEncoding | undefined;
  /** The input is a part of UTF-8 text, from this byte on: a later one has no byte-order mark. */
  readonly offset?: number | undefined;
  /** Takes the UTF-8, which is only valid during the call. A sequence may be split over two calls. */
  readonly sink: (utf8: Uint8Array) => void;
  /** The 1-based line that the sink has reached, for errors. */
  readonly line: () => number;
  /** A faster check: where, from `at` on, at least all is known to be whole characters. Told each chunk of UTF-8 once. */
  readonly wholeUntil?: (utf8: Uint8Array, at: number) => number;
  /** Told how many bytes of the input come before the first that the sink gets: those of a byte-order mark of UTF-8. */
  readonly skipped?: (bytes: number) => void;
}

interface Decoder {
  /** Decodes until the end of `chunk` or the first invalid byte; the sink has everything before it when this throws. */
  push(chunk: Uint8Array): void;
  end(): void;
}

/** Finds out the encoding, drops a byte-order mark at the start (never an inner U+FEFF), decodes and validates. */
export class Utf8Reader {
  readonly #options: Utf8ReaderOptions;
  /** The first bytes, until they tell the encoding. */
  #head: number[] | undefined = [];
  #decoder: Decoder | undefined;

  constructor(options: Utf8ReaderOptions) {
    this.#options = options;
    if (!options.offset) return;
    this.#head = undefined;
    this.#decoder = createDecoder("utf-8", options.offset, options);
  }

  /** @throws InvalidInputError `bad_encoding`, with line and byte offset */
  push(chunk: Uint8Array): void {
    let at = 0;
    if (this.#head) {
      // Three bytes tell every mark apart.
      while (this.#head.length < 3 && at < chunk.length) this.#head.push(chunk[at++]!);
      if (this.#head.length < 3) return;
      this.#start(this.#head);
    }
    if (at < chunk.length) this.#decoder!.push(at === 0 ? chunk : chunk.subarray(at));
  }

  /** @throws InvalidInputError `bad_encoding` where the input ends within a character */
  end(): void {
    if (this.#head) this.#start(this.#head);
    this.#decoder!.end();
  }

  #start(head: readonly number[]): void {
    this.#head = undefined;
    const [a, b, c] = head;
    let encoding = this.#options.encoding;
    let mark = 0;
    if (a === 0xef && b === 0xbb && c === 0xbf) [encoding, mark] = ["utf-8", 3];
    else if (a === 0xff && b === 0xfe) [encoding, mark] = ["utf-16le", 2];
    else if (a === 0xfe && b === 0xff) [encoding, mark] = ["utf-16be", 2];
    else if (encoding === undefined && b !== undefined && (a === 0) !== (b === 0)) {
      // NUL is valid UTF-8, so this must be asked: no table begins with one NUL byte in its first two.
      throw new InvalidInputError(
        "bad_encoding",
        "the input looks like UTF-16 without a byte-order mark: declare its encoding",
        { rows: [{ line: 1, code: "bad_encoding", reason: "a NUL byte at the start" }] },
      );
    }
    this.#decoder = createDecoder(encoding ?? "utf-8", mark, this.#options);
    if (encoding === "utf-8" && mark > 0) this.#options.skipped?.(mark);
    if (head.length > mark) this.#decoder.push(Uint8Array.from(head.slice(mark)));
  }
}

function createDecoder(encoding: TextEncoding, offset: number, options: Utf8ReaderOptions): Decoder {
  switch (encoding) {
    case "utf-8":
      return new Utf8Checker(offset, options);
    case "utf-16le":
    case "utf-16be":
      return new Utf16Decoder(encoding, offset, options);
    case "windows-1252":
      return new Windows1252Decoder(offset, options);
  }
}

function invalid(encoding: TextEncoding, offset: number, line: number, what: string): InvalidInputError {
  return new InvalidInputError(
    "bad_encoding",
    `line ${line}, byte offset ${offset}: ${what} is not valid ${encoding}; convert the input or declare its encoding`,
    { rows: [{ line, code: "bad_encoding", reason: `not valid ${encoding} at byte offset ${offset}` }] },
  );
}

const hex = (byte: number): string => `byte 0x${byte.toString(16).padStart(2, "0")}`;

/** Passes chunks through as they are once they are known to be UTF-8 (Unicode table 3-7, well-formed sequences). */
class Utf8Checker implements Decoder {
  readonly #options: Utf8ReaderOptions;
  /** Bytes of the input before the current chunk. */
  #offset: number;
  /** Continuation bytes still missing, and the range of the next one. */
  #missing = 0;
  #low = 0x80;
  #high = 0xbf;
  /** Offset and first byte of the sequence that is being read. */
  #sequenceStart = 0;
  #lead = 0;

  constructor(offset: number, options: Utf8ReaderOptions) {
    this.#offset = offset;
    this.#options = options;
  }

  push(chunk: Uint8Array): void {
    const bad = this.#check(chunk);
    this.#options.sink(bad === -1 ? chunk : chunk.subarray(0, bad));
    if (bad !== -1) this.#fail(this.#offset + bad, chunk[bad]!);
    this.#offset += chunk.length;
  }

  end(): void {
    if (this.#missing > 0) {
      throw invalid("utf-8", this.#sequenceStart, this.#options.line(), "a character cut off by the end of the input");
    }
  }

  #fail(offset: number, byte: number): never {
    if (this.#missing > 0) throw invalid("utf-8", this.#sequenceStart, this.#options.line(), hex(this.#lead));
    throw invalid("utf-8", offset, this.#options.line(), hex(byte));
  }

  /** The position of the first byte that cannot follow, or −1. */
  #check(chunk: Uint8Array): number {
    const length = chunk.length;
    let { wholeUntil } = this.#options;
    let at = 0;
    while (at < length) {
      if (this.#missing === 0) {
        if (wholeUntil) {
          at = wholeUntil(chunk, at);
          wholeUntil = undefined;
        }
        // All that is whole; what is left is wrong, or goes on in the next chunk.
        const end = invalidUtf8(chunk, at, length);
        if (end === -1) break;
        at = end;
        const lead = chunk[at]!;
        this.#low = 0x80;
        this.#high = 0xbf;
        if (lead >= 0xc2 && lead <= 0xdf) this.#missing = 1;
        else if (lead >= 0xe0 && lead <= 0xef) {
          this.#missing = 2;
          if (lead === 0xe0)
            this.#low = 0xa0; // no overlong forms
          else if (lead === 0xed) this.#high = 0x9f; // no surrogates
        } else if (lead >= 0xf0 && lead <= 0xf4) {
          this.#missing = 3;
          if (lead === 0xf0) this.#low = 0x90;
          else if (lead === 0xf4) this.#high = 0x8f; // nothing above U+10FFFF
        } else return at;
        this.#sequenceStart = this.#offset + at;
        this.#lead = lead;
        at++;
      } else {
        const byte = chunk[at]!;
        if (byte < this.#low || byte > this.#high) return at;
        this.#low = 0x80;
        this.#high = 0xbf;
        this.#missing--;
        at++;
      }
    }
    return -1;
  }
}

/** Collects UTF-8 in a fixed buffer and hands it on when full, so that memory does not follow the chunk's size. */
class Utf8Writer {
  readonly #bytes = new Uint8Array(64 * 1024);
  #length = 0;
  readonly #sink: (utf8: Uint8Array) => void;

  constructor(sink: (utf8: Uint8Array) => void) {
    this.#sink = sink;
  }

  write(codePoint: number): void {
    if (this.#length + 4 > this.#bytes.length) this.flush();
    const bytes = this.#bytes;
    if (codePoint < 0x80) bytes[this.#length++] = codePoint;
    else if (codePoint < 0x800) {
      bytes[this.#length++] = 0xc0 | (codePoint >> 6);
      bytes[this.#length++] = 0x80 | (codePoint & 0x3f);
    } else if (codePoint < 0x10000) {
      bytes[this.#length++] = 0xe0 | (codePoint >> 12);
      bytes[this.#length++] = 0x80 | ((codePoint >> 6) & 0x3f);
      bytes[this.#length++] = 0x80 | (codePoint & 0x3f);
    } else {
      bytes[this.#length++] = 0xf0 | (codePoint >> 18);
      bytes[this.#length++] = 0x80 | ((codePoint >> 12) & 0x3f);
      bytes[this.#length++] = 0x80 | ((codePoint >> 6) & 0x3f);
      bytes[this.#length++] = 0x80 | (codePoint & 0x3f);
    }
  }

  flush(): void {
    const length = this.#length;
    this.#length = 0;
    if (length > 0) this.#sink(this.#bytes.subarray(0, length));
  }
}

class Utf16Decoder implements Decoder {
  readonly #encoding: "utf-16le" | "utf-16be";
  readonly #options: Utf8ReaderOptions;
  readonly #writer: Utf8Writer;
  #offset: number;
  /** The first byte of a unit whose second is in the next chunk. */
  #half = -1;
  /** A high surrogate that waits for its low one. */
  #pending = 0;

  constructor(encoding: "utf-16le" | "utf-16be", offset: number, options: Utf8ReaderOptions) {
    this.#encoding = encoding;
    this.#offset = offset;
    this.#options = options;
    this.#writer = new Utf8Writer(options.sink);
  }

  push(chunk: Uint8Array): void {
    const little = this.#encoding === "utf-16le";
    for (const byte of chunk) {
      this.#offset++;
      if (this.#half === -1) {
        this.#half = byte;
        continue;
      }
      const unit = little ? this.#half | (byte << 8) : (this.#half << 8) | byte;
      this.#half = -1;
      const low = (unit & 0xfc00) === 0xdc00;
      if ((this.#pending !== 0) !== low) this.#fail("a surrogate without its pair");
      if (low) {
        this.#writer.write(0x10000 + ((this.#pending & 0x3ff) << 10) + (unit & 0x3ff));
        this.#pending = 0;
      } else if ((unit & 0xfc00) === 0xd800) this.#pending = unit;
      else this.#writer.write(unit);
    }
    this.#writer.flush();
  }

  end(): void {
    if (this.#half !== -1 || this.#pending !== 0) {
      // Reported where the character begins, like a unit that was read.
      this.#offset += this.#half !== -1 ? 1 : 2;
      this.#fail("a character cut off by the end of the input");
    }
  }

  /** The offset reported is that of the unit at fault: of the high surrogate if one waits, else of the last unit. */
  #fail(what: string): never {
    this.#writer.flush();
    throw invalid(this.#encoding, this.#offset - (this.#pending !== 0 ? 4 : 2), this.#options.line(), what);
  }
}

/** windows-1252's code points for 0x80 to 0x9f; 0 where it defines none (unlike WHATWG, which invents C1 controls). */
const WINDOWS_1252_HIGH: readonly number[] = [
  0x20ac, 0, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017d, 0, 0,
  0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0, 0x017e, 0x0178,
];

class Windows1252Decoder implements Decoder {
  readonly #options: Utf8ReaderOptions;
  readonly #writer: Utf8Writer;
  #offset: number;

  constructor(offset: number, options: Utf8ReaderOptions) {
    this.#offset = offset;
    this.#options = options;
    this.#writer = new Utf8Writer(options.sink);
  }

  push(chunk: Uint8Array): void {
    for (const byte of chunk) {
      const codePoint = byte >= 0x80 && byte <= 0x9f ? WINDOWS_1252_HIGH[byte - 0x80]! : byte;
      if (codePoint === 0 && byte !== 0) {
        this.#writer.flush();
        throw invalid("windows-1252", this.#offset, this.#options.line(), hex(byte));
      }
      this.#writer.write(codePoint);
      this.#offset++;
    }
    this.#writer.flush();
  }

  end(): void {}
}
