/** Murmur3, x86 variant, 32 bits, as Iceberg's bucket transform uses it (Iceberg spec, appendix B, seed 0). */

const C1 = 0xcc9e2d51;
const C2 = 0x1b873593;

function mixWord(hash: number, word: number): number {
  let k = Math.imul(word, C1);
  k = (k << 15) | (k >>> 17);
  k = Math.imul(k, C2);
  const h = hash ^ k;
  return (Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64) | 0;
}

function finish(hash: number, length: number): number {
  let h = hash ^ length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** Hash of the bytes `[start, end)`, as a signed 32-bit integer. */
export function murmur3(bytes: Uint8Array, start: number, end: number, seed = 0): number {
  let hash = seed;
  const wordsEnd = start + ((end - start) & ~3);
  let at = start;
  for (; at < wordsEnd; at += 4) {
    hash = mixWord(hash, bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
  }
  if (at < end) {
    let k = bytes[at]!;
    if (at + 1 < end) k |= bytes[at + 1]! << 8;
    if (at + 2 < end) k |= bytes[at + 2]! << 16;
    k = Math.imul(k, C1);
    hash ^= Math.imul((k << 15) | (k >>> 17), C2);
  }
  return finish(hash, end - start);
}

/** Hash of the eight little-endian bytes of a 64-bit integer given in halves. */
export function murmur3Long(low: number, high: number): number {
  return finish(mixWord(mixWord(0, low), high), 8);
}
