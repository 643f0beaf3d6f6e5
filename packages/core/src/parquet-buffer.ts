/** A growable byte buffer, reused from page to page. Hot loops reserve once and then write through `bytes` and `length`. */
export class ByteBuffer {
  bytes: Uint8Array<ArrayBuffer>;
  /** Bytes in use. */
  length = 0;

  constructor(capacity = 4096) {
    this.bytes = new Uint8Array(capacity);
  }

  /** Makes room for `count` more bytes and returns the array to write them to, from `length`. */
  reserve(count: number): Uint8Array<ArrayBuffer> {
    const needed = this.length + count;
    if (needed > this.bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2));
      grown.set(this.bytes.subarray(0, this.length));
      this.bytes = grown;
    }
    return this.bytes;
  }

  clear(): void {
    this.length = 0;
  }

  byte(value: number): void {
    this.reserve(1)[this.length++] = value;
  }

  append(bytes: Uint8Array): void {
    this.reserve(bytes.length).set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Unsigned LEB128 of a safe integer ≥ 0. */
  varint(value: number): void {
    const bytes = this.reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      bytes[this.length++] = (rest % 0x80) | 0x80;
      // Shifts work on 32 bits only.
      rest = rest < 0x8000_0000 ? rest >>> 7 : Math.floor(rest / 0x80);
    }
    bytes[this.length++] = rest;
  }

  uint32(value: number): void {
    putUint32(this.reserve(4), this.length, value);
    this.length += 4;
  }

  /** A view of what was written, valid until the next write. */
  view(): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(0, this.length);
  }
}

/** Stores 32 bits, little-endian. */
function putUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value;
  bytes[at + 1] = value >>> 8;
  bytes[at + 2] = value >>> 16;
  bytes[at + 3] = value >>> 24;
}

/** Two's complement, highest byte first: decimals of fixed length. */
export function bigEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(8 * bytes.length, value);
}
