/** Finds the distinct values of a column chunk, or gives up early where a dictionary would not pay. Hot loops. */

/** More would take indexes of over 16 bits, and memory that readers must hold. */
const MAX_ENTRIES = 65_536;
const MAX_BYTES = 1 << 20;
/** Chunks larger than twice this are first judged by a sample spread over them. */
const SAMPLE = 4096;
/** A sample with more distinct values than this share says: mostly unique. (About 40,000 distinct among 100,000.) */
const SAMPLE_DISTINCT = 0.95;

/** Reused from chunk to chunk. */
export class Dictionary {
  /** Entry number of each value. */
  codes: Int32Array = new Int32Array(0);
  /** Where each entry was first seen. */
  entries: Int32Array = new Int32Array(0);
  size = 0;
  /** Bytes of the entries as PLAIN. */
  bytes = 0;

  #hashes = new Int32Array(0);
  /** Open addressing: entry + 1, 0 where free. */
  #slots = new Int32Array(0);
  #mask = 0;
  #shift = 0;
  /** Steps left: colliding values, by chance or by intent, must not cost more than the encoding saves. */
  #steps = 0;

  /** Values of `stride` words each, compared bit by bit. Returns false when it gave up. */
  buildWords(words: Int32Array, count: number, stride: 1 | 2): boolean {
    this.#prepare(count);
    const limit = Math.min(MAX_ENTRIES, MAX_BYTES / (4 * stride));
    if (count > 2 * SAMPLE) {
      const step = Math.floor(count / SAMPLE);
      for (let i = 0; i < SAMPLE; i++) this.#findWords(words, i * step, stride);
      if (this.size > SAMPLE * SAMPLE_DISTINCT) return false;
    }
    const { codes } = this;
    for (let i = 0; i < count; i++) {
      codes[i] = this.#findWords(words, i, stride);
      if (this.size > limit || this.#steps < 0) return false;
    }
    this.bytes = this.size * 4 * stride;
    return true;
  }

  /** Byte ranges `offsets[i]` to `offsets[i + 1]`; `overhead` bytes are stored with each. */
  buildBytes(data: Uint8Array, offsets: Int32Array, count: number, overhead: number): boolean {
    this.#prepare(count);
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    if (count > 2 * SAMPLE) {
      const step = Math.floor(count / SAMPLE);
      for (let i = 0; i < SAMPLE; i++) this.#findBytes(view, data, offsets, i * step, overhead);
      if (this.size > SAMPLE * SAMPLE_DISTINCT) return false;
    }
    const { codes } = this;
    for (let i = 0; i < count; i++) {
      codes[i] = this.#findBytes(view, data, offsets, i, overhead);
      if (this.size > MAX_ENTRIES || this.bytes > MAX_BYTES || this.#steps < 0) return false;
    }
    return true;
  }

  #prepare(count: number): void {
    const capacity = 1 << Math.max(4, 33 - Math.clz32(Math.min(count, MAX_ENTRIES) - 1));
    if (this.codes.length < count) this.codes = new Int32Array(count);
    // One more than may be kept: the loop stops after it has exceeded the limit.
    const entries = Math.min(count, MAX_ENTRIES) + 1;
    if (this.entries.length < entries) {
      this.entries = new Int32Array(entries);
      this.#hashes = new Int32Array(entries);
    }
    if (this.#slots.length < capacity) this.#slots = new Int32Array(capacity);
    else this.#slots.fill(0, 0, capacity);
    this.#mask = capacity - 1;
    this.#shift = Math.clz32(capacity) + 1;
    this.#steps = 8 * count + 1024;
    this.size = 0;
    this.bytes = 0;
  }

  #findWords(words: Int32Array, i: number, stride: 1 | 2): number {
    const slots = this.#slots;
    const mask = this.#mask;
    const first = words[i * stride]!;
    const second = stride === 2 ? words[i * 2 + 1]! : 0;
    let hash = Math.imul(first ^ Math.imul(second, 0x85ebca6b), 0x9e3779b1);
    hash = Math.imul(hash ^ (hash >>> 15), 0x9e3779b1);
    for (let slot = hash >>> this.#shift; ; slot = (slot + 1) & mask) {
      const entry = slots[slot]! - 1;
      if (entry < 0) {
        this.entries[this.size] = i;
        slots[slot] = ++this.size;
        return this.size - 1;
      }
      const at = this.entries[entry]! * stride;
      if (words[at] === first && (stride === 1 || words[at + 1] === second)) return entry;
      this.#steps--;
    }
  }

  #findBytes(view: DataView, data: Uint8Array, offsets: Int32Array, i: number, overhead: number): number {
    const slots = this.#slots;
    const mask = this.#mask;
    const start = offsets[i]!;
    const end = offsets[i + 1]!;
    let hash = end - start;
    let at = start;
    for (; at + 4 <= end; at += 4) {
      hash = Math.imul(hash ^ view.getInt32(at, true), 0x9e3779b1);
      hash ^= hash >>> 15;
    }
    for (; at < end; at++) hash = Math.imul(hash ^ data[at]!, 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 13), 0x85ebca6b);
    for (let slot = hash >>> this.#shift; ; slot = (slot + 1) & mask) {
      const entry = slots[slot]! - 1;
      if (entry < 0) {
        this.entries[this.size] = i;
        this.#hashes[this.size] = hash;
        this.bytes += end - start + overhead;
        slots[slot] = ++this.size;
        return this.size - 1;
      }
      if (this.#hashes[entry] === hash) {
        const other = this.entries[entry]!;
        const otherStart = offsets[other]!;
        if (offsets[other + 1]! - otherStart === end - start && sameBytes(view, data, start, end, otherStart))
          return entry;
      }
      this.#steps--;
    }
  }
}

function sameBytes(view: DataView, data: Uint8Array, start: number, end: number, other: number): boolean {
  let a = start;
  let b = other;
  for (; a + 4 <= end; a += 4, b += 4) if (view.getInt32(a, true) !== view.getInt32(b, true)) return false;
  for (; a < end; a++, b++) if (data[a] !== data[b]) return false;
  return true;
}
