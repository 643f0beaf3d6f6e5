/** Parquet's value encodings over dense typed arrays; see Encodings.md of apache/parquet-format. Hot loops. */

import { type ByteBuffer, putUint32 } from "./parquet-buffer.js";

/** Bits needed for values up to `max`. */
export function bitWidth(max: number): number {
  return 32 - Math.clz32(max);
}

/**
 * The RLE / bit-packing hybrid, for levels, dictionary indexes: runs of eight or more equal values as (count, value),
 * everything between in groups of eight, `width` bits each, lowest bit first. `width` is at most 24.
 */
export function writeHybrid(out: ByteBuffer, values: Int32Array, start: number, end: number, width: number): void {
  if (width === 0) {
    // Only a dictionary of one entry; a literal run without bytes would confuse some readers.
    if (end > start) writeRun(out, 0, end - start, 0);
    return;
  }
  let literals = start; // where the values begin that are not written yet
  let at = start;
  while (at < end) {
    const value = values[at]!;
    let next = at + 1;
    while (next < end && values[next] === value) next++;
    // Literals come in groups of eight: the run first fills the group that is open.
    const runStart = literals + ((at - literals + 7) & ~7);
    if (next - runStart >= 8) {
      writeLiterals(out, values, literals, runStart, width);
      writeRun(out, value, next - runStart, width);
      literals = next;
    }
    at = next;
  }
  writeLiterals(out, values, literals, end, width);
}

function writeRun(out: ByteBuffer, value: number, count: number, width: number): void {
  out.varint(count * 2);
  for (let bits = 0; bits < width; bits += 8) out.byte((value >>> bits) & 0xff);
}

function writeLiterals(out: ByteBuffer, values: Int32Array, start: number, end: number, width: number): void {
  if (start === end) return;
  const groups = (end - start + 7) >> 3;
  out.varint(groups * 2 + 1);
  const bytes = out.reserve(groups * width + 4);
  let at = out.length;
  let bits = 0;
  let pending = 0;
  for (let i = start; i < end; i++) {
    pending |= values[i]! << bits;
    bits += width;
    while (bits >= 8) {
      bytes[at++] = pending;
      pending >>>= 8;
      bits -= 8;
    }
  }
  out.length += groups * width;
  if (bits > 0) bytes[at++] = pending;
  // The last group is filled up with zeros.
  if (at < out.length) bytes.fill(0, at, out.length);
}

const BLOCK = 128;
const MINIBLOCK = 32;
const MINIBLOCKS = BLOCK / MINIBLOCK;

/** The block's deltas less the smallest, as 64 bits in two halves. Shared: nothing here awaits. */
const deltaLow = new Int32Array(BLOCK);
const deltaHigh = new Int32Array(BLOCK);

/** DELTA_BINARY_PACKED for INT32: differences wrap around in 32 bits. At least one value. */
export function writeDelta32(out: ByteBuffer, values: Int32Array, start: number, end: number): void {
  const first = values[start]!;
  writeDeltaHeader(out, end - start);
  writeZigzag64(out, first, first >> 31);
  let previous = first;
  for (let block = start + 1; block < end; block += BLOCK) {
    const count = Math.min(BLOCK, end - block);
    let min = 0x7fffffff;
    for (let i = 0; i < count; i++) {
      const value = values[block + i]!;
      const delta = (value - previous) | 0;
      previous = value;
      deltaLow[i] = delta;
      if (delta < min) min = delta;
    }
    for (let i = 0; i < count; i++) deltaLow[i] = deltaLow[i]! - min;
    deltaLow.fill(0, count);
    writeZigzag64(out, min, min >> 31);
    writeMiniblocks(out, count, false);
  }
}

/** DELTA_BINARY_PACKED for INT64, given as pairs of words, low first. At least one value. */
export function writeDelta64(out: ByteBuffer, words: Int32Array, start: number, end: number): void {
  let previousLow = words[2 * start]!;
  let previousHigh = words[2 * start + 1]!;
  writeDeltaHeader(out, end - start);
  writeZigzag64(out, previousLow, previousHigh);
  for (let block = start + 1; block < end; block += BLOCK) {
    const count = Math.min(BLOCK, end - block);
    let minLow = -1;
    let minHigh = 0x7fffffff;
    for (let i = 0; i < count; i++) {
      const low = words[2 * (block + i)]!;
      const high = words[2 * (block + i) + 1]!;
      const dLow = (low - previousLow) | 0;
      const dHigh = (high - previousHigh - (low >>> 0 < previousLow >>> 0 ? 1 : 0)) | 0;
      previousLow = low;
      previousHigh = high;
      deltaLow[i] = dLow;
      deltaHigh[i] = dHigh;
      if (dHigh < minHigh || (dHigh === minHigh && dLow >>> 0 < minLow >>> 0)) {
        minLow = dLow;
        minHigh = dHigh;
      }
    }
    let high = 0;
    for (let i = 0; i < count; i++) {
      const dLow = deltaLow[i]!;
      const dHigh = (deltaHigh[i]! - minHigh - (dLow >>> 0 < minLow >>> 0 ? 1 : 0)) | 0;
      deltaLow[i] = dLow - minLow;
      deltaHigh[i] = dHigh;
      high |= dHigh;
    }
    deltaLow.fill(0, count);
    deltaHigh.fill(0, count);
    writeZigzag64(out, minLow, minHigh);
    writeMiniblocks(out, count, high !== 0);
  }
}

function writeDeltaHeader(out: ByteBuffer, count: number): void {
  out.varint(BLOCK);
  out.varint(MINIBLOCKS);
  out.varint(count);
}

/** Zigzag and LEB128 of a 64-bit integer in two halves. */
function writeZigzag64(out: ByteBuffer, low: number, high: number): void {
  const sign = high >> 31;
  let lo = (low << 1) ^ sign;
  let hi = ((high << 1) | (low >>> 31)) ^ sign;
  while (hi !== 0 || lo >>> 0 >= 0x80) {
    out.byte((lo & 0x7f) | 0x80);
    lo = (lo >>> 7) | (hi << 25);
    hi >>>= 7;
  }
  out.byte(lo);
}

/** Widths of the four miniblocks, then their values; a miniblock without values has width 0 and no bytes. */
function writeMiniblocks(out: ByteBuffer, count: number, wide: boolean): void {
  const bytes = out.reserve(MINIBLOCKS + BLOCK * 8);
  const widths = out.length;
  let at = widths + MINIBLOCKS;
  for (let m = 0; m < MINIBLOCKS; m++) {
    const start = m * MINIBLOCK;
    if (start >= count) {
      bytes[widths + m] = 0;
      continue;
    }
    let low = 0;
    let high = 0;
    for (let i = start; i < start + MINIBLOCK; i++) low |= deltaLow[i]!;
    if (wide) for (let i = start; i < start + MINIBLOCK; i++) high |= deltaHigh[i]!;
    if (high !== 0) {
      bytes[widths + m] = 32 + bitWidth(high);
      at = packWide(bytes, at, start, bitWidth(high));
    } else {
      const width = bitWidth(low);
      bytes[widths + m] = width;
      at = pack(bytes, at, start, width);
    }
  }
  out.length = at;
}

/** Packs 32 values of up to 32 bits. */
function pack(bytes: Uint8Array, to: number, start: number, width: number): number {
  let at = to;
  let word = 0;
  let bits = 0;
  for (let i = start; i < start + MINIBLOCK; i++) {
    const value = deltaLow[i]!;
    word |= value << bits;
    bits += width;
    if (bits >= 32) {
      putUint32(bytes, at, word);
      at += 4;
      bits -= 32;
      // A shift by 32 would be a shift by none.
      word = bits === 0 ? 0 : value >>> (width - bits);
    }
  }
  return at;
}

/** Packs 32 values of more than 32 bits: the low word of each, then `highWidth` bits of the high word. */
function packWide(bytes: Uint8Array, to: number, start: number, highWidth: number): number {
  let at = to;
  let word = 0;
  let bits = 0;
  for (let i = start; i < start + MINIBLOCK; i++) {
    const low = deltaLow[i]!;
    putUint32(bytes, at, word | (low << bits));
    at += 4;
    word = bits === 0 ? 0 : low >>> (32 - bits);
    const high = deltaHigh[i]!;
    word |= high << bits;
    bits += highWidth;
    if (bits >= 32) {
      putUint32(bytes, at, word);
      at += 4;
      bits -= 32;
      word = bits === 0 ? 0 : high >>> (highWidth - bits);
    }
  }
  return at;
}

/**
 * About how many bits a value takes with DELTA_BINARY_PACKED, from some blocks spread over `count` values.
 * `stride` is 1 for INT32, 2 for pairs of words.
 */
export function estimateDeltaBits(words: Int32Array, count: number, stride: 1 | 2): number {
  if (count < 2) return 32 * stride;
  const samples = Math.min(16, Math.ceil(count / MINIBLOCK));
  let total = 0;
  for (let s = 0; s < samples; s++) {
    const last = Math.max(1, count - MINIBLOCK);
    const start = 1 + (samples === 1 ? 0 : Math.floor(((last - 1) * s) / (samples - 1)));
    const end = Math.min(count, start + MINIBLOCK);
    let min = Number.POSITIVE_INFINITY;
    let max = Number.NEGATIVE_INFINITY;
    for (let i = start; i < end; i++) {
      // Doubles are exact enough to count bits.
      const delta = approximate(words, i, stride) - approximate(words, i - 1, stride);
      if (delta < min) min = delta;
      if (delta > max) max = delta;
    }
    const spread = max - min;
    total += spread < 1 ? 0 : Math.min(32 * stride, Math.floor(Math.log2(spread)) + 1);
  }
  // Each block of 128 spends about seven bytes on its smallest delta and widths.
  return total / samples + 0.5;
}

function approximate(words: Int32Array, index: number, stride: 1 | 2): number {
  return stride === 1 ? words[index]! : words[2 * index + 1]! * 0x1_0000_0000 + (words[2 * index]! >>> 0);
}
