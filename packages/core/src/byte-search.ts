/** Looking for bytes. */

/** UTF-8's byte-order mark. */
export const UTF8_MARK: readonly number[] = [0xef, 0xbb, 0xbf];

/**
 * The same bytes as a `Buffer` where there are any, whose `indexOf` is four times as fast as that of `Uint8Array` on
 * rows of 200 bytes.
 */
export function searchable(bytes: Uint8Array): Uint8Array {
  const { Buffer: Buffers } = globalThis as { Buffer?: typeof Buffer };
  return Buffers?.from(bytes.buffer, bytes.byteOffset, bytes.byteLength) ?? bytes;
}

/** Where a byte comes next, asked with places that only grow: it is looked for again only once it lies behind. */
export class NextByte {
  readonly #byte: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #next = 0;

  constructor(byte: number) {
    this.#byte = byte;
  }

  /** @param bytes {@link searchable} */
  begin(bytes: Uint8Array): void {
    this.#bytes = bytes;
    this.#next = -1;
  }

  /** The first place from `at` on; the length where there is none. */
  from(at: number): number {
    if (this.#next < at) {
      const found = this.#bytes.indexOf(this.#byte, at);
      this.#next = found === -1 ? this.#bytes.length : found;
    }
    return this.#next;
  }
}
