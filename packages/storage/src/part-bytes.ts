/** The first buffer of a part; it doubles, so that many streams of little data take little memory. */
const FIRST_BUFFER_BYTES = 64 * 1024;

/**
 * Buffers of whole parts, used again: new ones of megabytes cost about as much as the copying into them. None is kept
 * while nobody streams.
 */
export class PartBuffers {
  /** Bytes of a part. */
  readonly bytes: number;
  readonly #most: number;
  #free: Uint8Array[] = [];
  #streams = 0;

  /** @param most buffers to keep */
  constructor(bytes: number, most: number) {
    this.bytes = bytes;
    this.#most = most;
  }

  /** A stream begins. */
  open(): void {
    this.#streams++;
  }

  /** A stream has ended. */
  close(): void {
    if (--this.#streams === 0) this.#free = [];
  }

  take(): Uint8Array | undefined {
    return this.#free.pop();
  }

  /** @param bytes of a whole part that nobody uses any more */
  give(bytes: Uint8Array): void {
    if (bytes.length === this.bytes && this.#streams > 0 && this.#free.length < this.#most) this.#free.push(bytes);
  }
}

/** The bytes of one part as they come. */
export class PartBytes {
  readonly #buffers: PartBuffers;
  #bytes: Uint8Array = new Uint8Array(0);
  #used = 0;

  constructor(buffers: PartBuffers) {
    this.#buffers = buffers;
  }

  get full(): boolean {
    return this.#used === this.#buffers.bytes;
  }

  /** Copies as many as there is room for and tells how many. */
  add(bytes: Uint8Array): number {
    const count = Math.min(bytes.length, this.#buffers.bytes - this.#used);
    const needed = this.#used + count;
    if (needed > this.#bytes.length) this.#grow(needed);
    this.#bytes.set(count === bytes.length ? bytes : bytes.subarray(0, count), this.#used);
    this.#used = needed;
    return count;
  }

  take(): Uint8Array {
    return this.#bytes.subarray(0, this.#used);
  }

  #grow(needed: number): void {
    const most = this.#buffers.bytes;
    const size = Math.min(most, Math.max(needed, 4 * this.#bytes.length, FIRST_BUFFER_BYTES));
    const grown = this.#buffers.take() ?? new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
    grown.set(this.#bytes.subarray(0, this.#used));
    this.#bytes = grown;
  }
}
