/** UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */

/** Position of the first byte in `[start, end)` that does not belong to a whole, valid character; −1 if all do. */
export function invalidUtf8(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end) {
    const first = bytes[at]!;
    if (first < 0x80) {
      at++;
      continue;
    }
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
