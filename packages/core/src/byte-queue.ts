/** Bytes of chunks of any size, by the piece. */

export class ByteQueue {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunks: Uint8Array[] = [];
  #available = 0;

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** The next `size` bytes, or undefined if there are fewer. Not copied where one chunk holds them on eight bytes. */
  async take(size: number): Promise<Uint8Array | undefined> {
    if (!(await this.#fill(size))) return undefined;
    return this.#remove(size);
  }

  /** The next bytes, which stay; fewer than `size` at the end. */
  async peek(size: number): Promise<Uint8Array> {
    await this.#fill(size);
    const bytes = this.#remove(Math.min(size, this.#available));
    if (bytes.length > 0) this.#chunks.unshift(bytes);
    this.#available += bytes.length;
    return bytes;
  }

  /** Reads to the end and gives the last `size` bytes. */
  async drain(size: number): Promise<Uint8Array> {
    while (await this.#fill(this.#available + 1)) this.#remove(Math.max(0, this.#available - size));
    this.#remove(Math.max(0, this.#available - size));
    return this.#remove(this.#available);
  }

  /** All that is left. */
  async rest(): Promise<Uint8Array> {
    while (await this.#fill(this.#available + 1));
    return this.#remove(this.#available);
  }

  /** All that is left, as it comes. */
  async *pieces(): AsyncGenerator<Uint8Array> {
    while (await this.#fill(1)) yield this.#remove(this.#chunks[0]!.length);
  }

  /** Tells the source that no more is wanted. */
  async close(): Promise<void> {
    this.#chunks = [];
    await this.#source.return?.();
  }

  async #fill(size: number): Promise<boolean> {
    while (this.#available < size) {
      const next = await this.#source.next();
      if (next.done) return false;
      if (next.value.length === 0) continue;
      this.#chunks.push(next.value);
      this.#available += next.value.length;
    }
    return true;
  }

  #remove(size: number): Uint8Array {
    this.#available -= size;
    const first = this.#chunks[0];
    if (size === 0 || first === undefined) return new Uint8Array(0);
    if (first.length >= size && first.byteOffset % 8 === 0) {
      this.#advance(size);
      return first.subarray(0, size);
    }
    const out = new Uint8Array(size);
    for (let at = 0; at < size; ) {
      const piece = this.#chunks[0]!.subarray(0, size - at);
      out.set(piece, at);
      this.#advance(piece.length);
      at += piece.length;
    }
    return out;
  }

  #advance(size: number): void {
    const first = this.#chunks[0]!;
    if (first.length === size) this.#chunks.shift();
    else this.#chunks[0] = first.subarray(size);
  }
}
