/** Arrow bitmaps: bit i is `bytes[i >> 3] >> (i & 7) & 1` (least significant bit first). */

/** Bytes that hold `bits` bits. */
export function bitmapBytes(bits: number): number {
  return (bits + 7) >>> 3;
}

export function getBit(bytes: Uint8Array, bit: number): boolean {
  return ((bytes[bit >> 3]! >> (bit & 7)) & 1) === 1;
}

export function setBit(bytes: Uint8Array, bit: number): void {
  bytes[bit >> 3]! |= 1 << (bit & 7);
}

/** Whether value `index` is not null, by a validity bitmap that is absent when nothing is null. */
export function isValid(validity: Uint8Array | undefined, index: number): boolean {
  return validity === undefined || ((validity[index >> 3]! >> (index & 7)) & 1) === 1;
}

/** Sets bits `[start, start + length)`. */
export function fillBits(bytes: Uint8Array, start: number, length: number): void {
  let bit = start;
  const end = start + length;
  while (bit < end && (bit & 7) !== 0) setBit(bytes, bit++);
  const wholeEnd = end & ~7;
  if (bit < wholeEnd) {
    bytes.fill(0xff, bit >> 3, wholeEnd >> 3);
    bit = wholeEnd;
  }
  while (bit < end) setBit(bytes, bit++);
}

/** Ors `length` bits from `source` at `from` into `target` at `to`; the target's bits there must be 0. */
export function copyBits(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  let done = 0;
  if ((from & 7) === 0 && (to & 7) === 0) {
    const whole = length >>> 3;
    target.set(source.subarray(from >> 3, (from >> 3) + whole), to >> 3);
    done = whole << 3;
  } else if ((to & 7) === 0) {
    const shift = from & 7;
    const whole = length >>> 3;
    const base = from >> 3;
    for (let i = 0; i < whole; i++)
      target[(to >> 3) + i] = (source[base + i]! >> shift) | (source[base + i + 1]! << (8 - shift));
    done = whole << 3;
  }
  for (; done < length; done++) if (getBit(source, from + done)) setBit(target, to + done);
}

/** How many of the bits `[start, start + length)` are 1. */
export function countBits(bytes: Uint8Array, start: number, length: number): number {
  let count = 0;
  let bit = start;
  const end = start + length;
  for (; bit < end && (bit & 7) !== 0; bit++) if (getBit(bytes, bit)) count++;
  for (; bit + 8 <= end; bit += 8) count += POPCOUNT[bytes[bit >> 3]!]!;
  for (; bit < end; bit++) if (getBit(bytes, bit)) count++;
  return count;
}

const POPCOUNT = new Uint8Array(256);
for (let i = 1; i < 256; i++) POPCOUNT[i] = POPCOUNT[i >> 1]! + (i & 1);

/** `length` bits of `bytes` from `start`, at bit 0 of the result: the same bytes when they lie on a byte already. */
export function sliceBits(bytes: Uint8Array, start: number, length: number): Uint8Array {
  if ((start & 7) === 0) return bytes.subarray(start >> 3, (start >> 3) + bitmapBytes(length));
  const out = new Uint8Array(bitmapBytes(length));
  copyBits(bytes, start, out, 0, length);
  return out;
}
