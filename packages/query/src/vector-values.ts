/** Values of DuckDB's vectors in the layout of our columns. Each function takes the memory as its own. */

/** Bits set, by byte. */
export const BIT_COUNTS: Uint8Array = Uint8Array.from({ length: 256 }, (_, byte) => {
  let count = 0;
  for (let bits = byte; bits !== 0; bits &= bits - 1) count++;
  return count;
});

export function isSet(validity: Uint8Array | undefined, row: number): boolean {
  return validity === undefined || (validity[row >>> 3]! & (1 << (row & 7))) !== 0;
}

export function joinBytes(pieces: readonly Uint8Array[]): { values: Uint8Array; offsets: Int32Array } {
  const offsets = new Int32Array(pieces.length + 1);
  let end = 0;
  pieces.forEach((piece, i) => {
    end += piece.length;
    offsets[i + 1] = end;
  });
  return { values: Buffer.concat(pieces, end), offsets };
}

/** A byte per value → a bit per value. */
export function packBits(bytes: ArrayBuffer): Uint8Array {
  const source = new Uint8Array(bytes);
  const bits = new Uint8Array((source.length + 7) >>> 3);
  for (let i = 0; i < source.length; i++) if (source[i] === 1) bits[i >>> 3]! |= 1 << (i & 7);
  return bits;
}

export function asBytes(bytes: ArrayBuffer): Uint8Array {
  return new Uint8Array(bytes);
}

/** Narrow unscaled decimals → 16 bytes each. */
export function widen(source: Int16Array | Int32Array): Uint8Array {
  const words = new Int32Array(source.length * 4);
  for (let i = 0; i < source.length; i++) {
    const value = source[i]!;
    words[i * 4] = value;
    words.fill(value >> 31, i * 4 + 1, i * 4 + 4);
  }
  return new Uint8Array(words.buffer);
}

/** The same for 64-bit ones. */
export function widen64(bytes: ArrayBuffer): Uint8Array {
  const source = new Int32Array(bytes);
  const words = new Int32Array(source.length * 2);
  for (let i = 0; i < source.length; i += 2) {
    const high = source[i + 1]!;
    words[i * 2] = source[i]!;
    words[i * 2 + 1] = high;
    words[i * 2 + 2] = high >> 31;
    words[i * 2 + 3] = high >> 31;
  }
  return new Uint8Array(words.buffer);
}

/** DuckDB's UUIDs are 128-bit integers with the top bit flipped, so that they sort as text; ours are the text's bytes. */
export function bigEndianUuids(bytes: ArrayBuffer): Uint8Array {
  const source = new Uint32Array(bytes);
  const words = new Uint32Array(source.length);
  for (let i = 0; i < source.length; i += 4) {
    words[i] = swapBytes(source[i + 3]! ^ 0x8000_0000);
    words[i + 1] = swapBytes(source[i + 2]!);
    words[i + 2] = swapBytes(source[i + 1]!);
    words[i + 3] = swapBytes(source[i]!);
  }
  return new Uint8Array(words.buffer);
}

function swapBytes(word: number): number {
  return (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}

/** ±infinity, in every unit. */
const INFINITE = 0x7fffffffffffffffn;

export function scaleInstants(bytes: ArrayBuffer, scale: (value: bigint) => bigint): BigInt64Array {
  const values = new BigInt64Array(bytes);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value !== INFINITE && value !== -INFINITE) values[i] = scale(value);
  }
  return values;
}

/** Nanoseconds → microseconds, down. */
export function floorToMicros(nanos: bigint): bigint {
  const micros = nanos / 1000n;
  return nanos % 1000n < 0n ? micros - 1n : micros;
}
