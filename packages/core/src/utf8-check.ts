/** UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */

/** ASCII bytes in a row from which on looking at words pays: with fewer, text with letters beyond ASCII is slow. */
const ASCII_RUN = 8;

/** Position of the first byte in `[start, end)` that does not belong to a whole, valid character; −1 if all do. */
export function invalidUtf8(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  let ascii = 0;
  while (at < end) {
    const first = bytes[at]!;
    if (first < 0x80) {
      at++;
      if (++ascii === ASCII_RUN) {
        at = skipAscii(bytes, at, end);
        ascii = 0;
      }
      continue;
    }
    ascii = 0;
    let length: number;
    // The second byte's range excludes overlong forms, surrogates and code points that do not exist.
    let low = 0x80;
    let high = 0xbf;
    if (first >= 0xc2 && first <= 0xdf) length = 2;
    else if (first >= 0xe0 && first <= 0xef) {
      length = 3;
      if (first === 0xe0) low = 0xa0;
      else if (first === 0xed) high = 0x9f;
    } else if (first >= 0xf0 && first <= 0xf4) {
      length = 4;
      if (first === 0xf0) low = 0x90;
      else if (first === 0xf4) high = 0x8f;
    } else return at;
    if (at + length > end || bytes[at + 1]! < low || bytes[at + 1]! > high) return at;
    for (let i = 2; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return at;
    at += length;
  }
  return -1;
}

/** The position of the first byte ≥ 0x80 from `at` on, or `end`. Sixteen bytes per step over aligned words. */
function skipAscii(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && ((bytes.byteOffset + at) & 3) !== 0) {
    if (bytes[at]! >= 0x80) return at;
    at++;
  }
  const count = (end - at) >> 2;
  if (count > 4) {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, count);
    let w = 0;
    while (w + 4 <= count && ((words[w]! | words[w + 1]! | words[w + 2]! | words[w + 3]!) & 0x80808080) === 0) w += 4;
    at += w << 2;
  }
  while (at < end && bytes[at]! < 0x80) at++;
  return at;
}
