/** Text to and from UTF-8 in buffers. */

/** Longest {@link rawText}, in bytes. */
const MAX_RAW_BYTES = 64 * 1024;

// `ignoreBOM` keeps a U+FEFF at the start of a value, which otherwise would vanish.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Text of bytes that are known to be UTF-8. */
export function decodeUtf8(bytes: Uint8Array, start: number, end: number): string {
  return decoder.decode(bytes.subarray(start, end));
}

/** Text of bytes that are known to be ASCII and few, such as a number. */
export function decodeAscii(bytes: Uint8Array, start: number, end: number): string {
  let text = "";
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i]!);
  return text;
}

/** A row's text for a reject, cut at 64 KiB but not within a character. */
export function rawText(bytes: Uint8Array, start: number, end: number): string {
  let stop = Math.min(end, start + MAX_RAW_BYTES);
  if (stop < end) while (stop > start && (bytes[stop]! & 0xc0) === 0x80) stop--;
  return decodeUtf8(bytes, start, stop);
}

/**
 * Writes `text` to `target` from `at`; there must be room for 3 bytes per UTF-16 unit.
 * @returns where it ends, or -1 if the text holds a surrogate without its pair, which UTF-8 cannot express
 */
export function encodeUtf8(text: string, target: Uint8Array, at: number): number {
  let to = at;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) target[to++] = unit;
    else if ((unit & 0xf800) !== 0xd800) to = writeUnit(unit, target, to);
    else {
      const low = text.charCodeAt(++i);
      if (unit >= 0xdc00 || (low & 0xfc00) !== 0xdc00) return -1;
      to = writePair(unit, low, target, to);
    }
  }
  return to;
}

/** Writes a character of the basic plane; returns where it ends. */
export function writeUnit(unit: number, target: Uint8Array, at: number): number {
  let to = at;
  if (unit < 0x80) target[to++] = unit;
  else {
    if (unit < 0x800) target[to++] = 0xc0 | (unit >> 6);
    else {
      target[to++] = 0xe0 | (unit >> 12);
      target[to++] = 0x80 | ((unit >> 6) & 0x3f);
    }
    target[to++] = 0x80 | (unit & 0x3f);
  }
  return to;
}

/** Writes the character of a surrogate pair as 4 bytes; returns where it ends. */
export function writePair(high: number, low: number, target: Uint8Array, at: number): number {
  const codePoint = 0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
  target[at] = 0xf0 | (codePoint >> 18);
  target[at + 1] = 0x80 | ((codePoint >> 12) & 0x3f);
  target[at + 2] = 0x80 | ((codePoint >> 6) & 0x3f);
  target[at + 3] = 0x80 | (codePoint & 0x3f);
  return at + 4;
}
