/** Where encoded pages go. */

const FIRST_BYTES = 4 * 1024;
const MOST_BYTES = 1024 * 1024;

/**
 * Bytes written one behind the other into few arrays, each twice as large as the one before. An array for each page
 * would be cheap to make, but a garbage collector that sees only their small objects lets them pile up.
 */
export class OutputBytes {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** Of the bytes that {@link take} has not returned. */
  #start = 0;
  #end = 0;
  #parts: Uint8Array[] = [];
  #next = FIRST_BYTES;

  append(bytes: Uint8Array): void {
    let rest = bytes;
    while (rest.length > this.#bytes.length - this.#end) {
      const fit = this.#bytes.length - this.#end;
      this.#bytes.set(rest.subarray(0, fit), this.#end);
      this.#end += fit;
      rest = rest.subarray(fit);
      this.#cut();
      this.#bytes = new Uint8Array(this.#next);
      this.#start = 0;
      this.#end = 0;
      this.#next = Math.min(this.#next * 2, MOST_BYTES);
    }
    this.#bytes.set(rest, this.#end);
    this.#end += rest.length;
  }

  /** All that was appended since the last call. */
  take(): Uint8Array[] {
    this.#cut();
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }

  #cut(): void {
    if (this.#end > this.#start) this.#parts.push(this.#bytes.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}

/** The same bytes in fewer parts: those joined that lie side by side in one array. */
export function joinParts(parts: readonly Uint8Array[]): Uint8Array[] {
  const joined: Uint8Array[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last && last.buffer === part.buffer && last.byteOffset + last.length === part.byteOffset) {
      joined[joined.length - 1] = new Uint8Array(last.buffer, last.byteOffset, last.length + part.length);
    } else joined.push(part);
  }
  return joined;
}
