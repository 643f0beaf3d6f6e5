/** The keys that a map holds so far, as bytes: tells whether a key is new without making a string of it. */
export class ByteKeys {
  #bytes: Uint8Array = new Uint8Array(256);
  /** Where each key ends; it begins where the one before it ends. */
  #ends: Int32Array = new Int32Array(17);
  #count = 0;
  /** Open addressing: key + 1, 0 for an empty slot. */
  #slots: Int32Array = new Int32Array(32);

  clear(): void {
    if (this.#count === 0) return;
    this.#count = 0;
    this.#slots.fill(0);
  }

  /** Adds the key `[start, end)`; false if it is there already. */
  add(bytes: Uint8Array, start: number, end: number): boolean {
    const mask = this.#slots.length - 1;
    let slot = hash(bytes, start, end) & mask;
    for (; this.#slots[slot] !== 0; slot = (slot + 1) & mask) {
      if (this.#equals(this.#slots[slot]! - 1, bytes, start, end)) return false;
    }
    this.#slots[slot] = this.#count + 1;
    this.#append(bytes, start, end);
    if (this.#count * 2 > this.#slots.length) this.#rehash();
    return true;
  }

  #equals(key: number, bytes: Uint8Array, start: number, end: number): boolean {
    const from = this.#ends[key]!;
    if (this.#ends[key + 1]! - from !== end - start) return false;
    for (let i = start; i < end; i++) if (this.#bytes[from + i - start] !== bytes[i]) return false;
    return true;
  }

  #append(bytes: Uint8Array, start: number, end: number): void {
    const from = this.#ends[this.#count]!;
    const to = from + end - start;
    if (to > this.#bytes.length) {
      const grown = new Uint8Array(to * 2);
      grown.set(this.#bytes.subarray(0, from));
      this.#bytes = grown;
    }
    for (let i = start; i < end; i++) this.#bytes[from + i - start] = bytes[i]!;
    this.#count++;
    if (this.#count >= this.#ends.length) {
      const grown = new Int32Array(this.#ends.length * 2);
      grown.set(this.#ends);
      this.#ends = grown;
    }
    this.#ends[this.#count] = to;
  }

  #rehash(): void {
    this.#slots = new Int32Array(this.#slots.length * 2);
    const mask = this.#slots.length - 1;
    for (let key = 0; key < this.#count; key++) {
      let slot = hash(this.#bytes, this.#ends[key]!, this.#ends[key + 1]!) & mask;
      while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
      this.#slots[slot] = key + 1;
    }
  }
}

/** FNV-1a, 32 bits, its upper half folded into the lower, which picks the slot. */
export function hash(bytes: Uint8Array, start: number, end: number): number {
  let h = 0x811c9dc5;
  for (let i = start; i < end; i++) h = Math.imul(h ^ bytes[i]!, 0x01000193);
  return h ^ (h >>> 15);
}
