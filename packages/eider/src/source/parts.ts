/**
 * A source that is read once, part after part. Where a part ends follows from the content and the limit alone, never from
 * how the content arrives, so that the same source has the same parts each time.
 */

import { CatalogError, canonicalRow } from "@eider/core";
import type { Replayable } from "./spool.js";

/** Tells where parts end. */
export interface Cuts<T> {
  /** Goes on with the next piece. */
  begin(piece: T): void;
  /** Where in the piece the part ends, and the next one begins; −1 once it ends in a later piece. */
  next(): number;
  /** Told when there is no other piece. Throws what is wrong with the end. */
  end?(): void;
}

/** How pieces are taken apart: bytes, or rows. */
export interface PieceKind<T> {
  length(piece: T): number;
  slice(piece: T, from: number, to: number): T;
}

export const BYTES: PieceKind<Uint8Array> = {
  length: (piece) => piece.byteLength,
  slice: (piece, from, to) => piece.subarray(from, to),
};

export const ROWS: PieceKind<readonly unknown[]> = {
  length: (piece) => piece.length,
  slice: (piece, from, to) => piece.slice(from, to),
};

/** One reader at a time, and each part read to its end before the next. */
export class SourceParts<T> implements AsyncDisposable {
  readonly #source: AsyncIterator<T>;
  readonly #kind: PieceKind<T>;
  readonly #cuts: Cuts<T>;
  #piece: T | undefined;
  #at = 0;
  #ended = false;
  #taken = 0;

  constructor(source: AsyncIterable<T>, kind: PieceKind<T>, cuts: Cuts<T>) {
    this.#source = source[Symbol.asyncIterator]();
    this.#kind = kind;
    this.#cuts = cuts;
  }

  /** Bytes, or rows, in the parts so far. */
  get taken(): number {
    return this.#taken;
  }

  /** Whether something is left, with which another part begins. */
  async more(): Promise<boolean> {
    while (this.#piece === undefined || this.#at === this.#kind.length(this.#piece)) {
      if (this.#ended) return false;
      const next = await this.#source.next();
      if (next.done) {
        this.#ended = true;
        this.#cuts.end?.();
        return false;
      }
      this.#piece = next.value;
      this.#at = 0;
      this.#cuts.begin(next.value);
    }
    return true;
  }

  /** The rest of the part. A piece is valid until the next one is asked for. */
  async *read(): AsyncIterable<T> {
    while (await this.more()) {
      const piece = this.#piece!;
      const from = this.#at;
      const cut = this.#cuts.next();
      this.#at = cut === -1 ? this.#kind.length(piece) : cut;
      this.#taken += this.#at - from;
      yield this.#kind.slice(piece, from, this.#at);
      if (cut !== -1) return;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#source.return?.();
  }
}

/** A part that is read for its hash alone, because its batch is committed. */
export function readOnce<T>(part: AsyncIterable<T>): Replayable<T> {
  let opened = false;
  return {
    open() {
      if (!opened) {
        opened = true;
        return part;
      }
      throw new CatalogError("table_replaced", "the table was dropped while parts of it were compared: try again", {
        retryable: true,
      });
    },
    [Symbol.asyncDispose]: async () => {},
  };
}

/** One row in so many is measured. */
const MEASURED = 64;

/** Parts of rows, by their size as JSON: the first of each {@link MEASURED} rows stands for them all. */
export class RowCuts implements Cuts<readonly unknown[]> {
  readonly #partBytes: number;
  #rows: readonly unknown[] = [];
  #at = 0;
  /** Of the part. */
  #count = 0;
  #bytes = 0;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
  }

  begin(rows: readonly unknown[]): void {
    this.#rows = rows;
    this.#at = 0;
  }

  next(): number {
    while (this.#at < this.#rows.length) {
      if (this.#count % MEASURED === 0) {
        this.#bytes += MEASURED * Buffer.byteLength(canonicalRow(this.#rows[this.#at]));
      }
      this.#count++;
      this.#at++;
      if (this.#count % MEASURED === 0 && this.#bytes >= this.#partBytes) {
        this.#count = 0;
        this.#bytes = 0;
        return this.#at;
      }
    }
    return -1;
  }
}
