/** DELTA_BINARY_PACKED of Encodings.md: blocks of 128 differences, in four miniblocks of their own widths. */

import { varint } from "./hybrid";
import { matchEnd } from "./match";

const BLOCK = 128;
const MINIBLOCK = 32;
const MINIBLOCKS = BLOCK / MINIBLOCK;

/** A block's differences, less the smallest of them. */
const deltas = memory.data(BLOCK * 8, 16);

/** INT64, values `start` to `end`: at least one. Differences wrap around. */
export function delta64(out: usize, values: usize, start: i32, end: i32): usize {
  let previous = load<i64>(values + ((<usize>start) << 3));
  out = header(out, end - start, previous);
  for (let block = start + 1; block < end; block += BLOCK) {
    const count = min(BLOCK, end - block);
    let least = i64.MAX_VALUE;
    for (let i = 0; i < count; i++) {
      const value = load<i64>(values + ((<usize>(block + i)) << 3));
      const delta = value - previous;
      previous = value;
      store<i64>(deltas + ((<usize>i) << 3), delta);
      least = min(least, delta);
    }
    for (let i = 0; i < count; i++) {
      const at = deltas + ((<usize>i) << 3);
      store<i64>(at, load<i64>(at) - least);
    }
    out = miniblocks(zigzag(out, least), count);
  }
  return out;
}

/** INT32. Differences wrap around in 32 bits. */
export function delta32(out: usize, values: usize, start: i32, end: i32): usize {
  let previous = load<i32>(values + ((<usize>start) << 2));
  out = header(out, end - start, previous);
  for (let block = start + 1; block < end; block += BLOCK) {
    const count = min(BLOCK, end - block);
    let least = i32.MAX_VALUE;
    for (let i = 0; i < count; i++) {
      const value = load<i32>(values + ((<usize>(block + i)) << 2));
      const delta = value - previous;
      previous = value;
      store<i32>(deltas + ((<usize>i) << 3), delta);
      least = min(least, delta);
    }
    for (let i = 0; i < count; i++) {
      const at = deltas + ((<usize>i) << 3);
      store<u64>(at, <u32>(load<i32>(at) - least));
    }
    out = miniblocks(zigzag(out, least), count);
  }
  return out;
}

/** The lengths of the byte ranges `start` to `end`, as DELTA_LENGTH_BYTE_ARRAY begins with them. */
export function deltaLengths(out: usize, offsets: usize, start: i32, end: i32): usize {
  let previous = lengthAt(offsets, start);
  out = header(out, end - start, previous);
  for (let block = start + 1; block < end; block += BLOCK) {
    const count = min(BLOCK, end - block);
    let least = i32.MAX_VALUE;
    for (let i = 0; i < count; i++) {
      const value = lengthAt(offsets, block + i);
      const delta = value - previous;
      previous = value;
      store<i32>(deltas + ((<usize>i) << 3), delta);
      least = min(least, delta);
    }
    for (let i = 0; i < count; i++) {
      const at = deltas + ((<usize>i) << 3);
      store<u64>(at, <u32>(load<i32>(at) - least));
    }
    out = miniblocks(zigzag(out, least), count);
  }
  return out;
}

/**
 * DELTA_BYTE_ARRAY of Encodings.md: how much each value shares with the one before, the lengths of the rests, the rests.
 * `scratch` has room for two numbers for each value, and one more.
 */
export function deltaBytes(out: usize, data: usize, offsets: usize, start: i32, end: i32, scratch: usize): usize {
  const count = end - start;
  const prefixes = scratch;
  const rests = scratch + ((<usize>count) << 2);
  let before: usize = 0;
  let beforeLength = 0;
  let total = 0;
  for (let i = 0; i < count; i++) {
    const value = data + <usize>load<i32>(offsets + ((<usize>(start + i)) << 2));
    const length = lengthAt(offsets, start + i);
    const shared = <i32>(matchEnd(value, before, value + min(length, beforeLength)) - value);
    store<i32>(prefixes + ((<usize>i) << 2), shared);
    store<i32>(rests + ((<usize>i) << 2), total);
    total += length - shared;
    before = value;
    beforeLength = length;
  }
  store<i32>(rests + ((<usize>count) << 2), total);
  out = delta32(out, prefixes, 0, count);
  out = deltaLengths(out, rests, 0, count);
  for (let i = 0; i < count; i++) {
    const length = lengthAt(rests, i);
    const value = offsets + ((<usize>(start + i)) << 2);
    memory.copy(out, data + <usize>(load<i32>(value, 4) - length), length);
    out += length;
  }
  return out;
}

// @ts-ignore: decorator
@inline
function lengthAt(offsets: usize, index: i32): i32 {
  const at = offsets + ((<usize>index) << 2);
  return load<i32>(at, 4) - load<i32>(at);
}

function header(out: usize, count: i32, first: i64): usize {
  return zigzag(varint(varint(varint(out, BLOCK), MINIBLOCKS), count), first);
}

function zigzag(out: usize, value: i64): usize {
  let rest: u64 = (value << 1) ^ (value >> 63);
  while (rest >= 0x80) {
    store<u8>(out++, <u8>rest | 0x80);
    rest >>= 7;
  }
  store<u8>(out, <u8>rest);
  return out + 1;
}

/** Widths of the four miniblocks, then their values; a miniblock without values has width 0 and no bytes. */
function miniblocks(out: usize, count: i32): usize {
  // The last miniblock is filled up with zeros.
  memory.fill(deltas + ((<usize>count) << 3), 0, (BLOCK - count) << 3);
  let to = out + MINIBLOCKS;
  for (let m = 0; m < MINIBLOCKS; m++) {
    const from = deltas + m * MINIBLOCK * 8;
    let all: u64 = 0;
    for (let i = 0; i < MINIBLOCK; i++) all |= load<u64>(from + (i << 3));
    const width = 64 - <i32>clz(all);
    store<u8>(out + m, <u8>width);
    pack(to, from, width);
    // 32 values of `width` bits.
    to += width << 2;
  }
  return to;
}

function pack(to: usize, from: usize, width: i32): void {
  if (width == 0) return;
  let pending: u64 = 0;
  let bits = 0;
  for (let i = 0; i < MINIBLOCK; i++) {
    const value = load<u64>(from + (i << 3));
    pending |= value << bits;
    bits += width;
    if (bits >= 64) {
      store<u64>(to, pending);
      to += 8;
      bits -= 64;
      // A shift by 64 would be a shift by none.
      pending = bits == 0 ? 0 : value >> (width - bits);
    }
  }
  if (bits > 0) store<u64>(to, pending);
}

/** About how many bits INT64 values take here, from some blocks spread over them. */
export function estimateDelta64(values: usize, count: i32): f64 {
  return estimate<i64>(values, count);
}

/** The same of INT32. */
export function estimateDelta32(values: usize, count: i32): f64 {
  return estimate<i32>(values, count);
}

// @ts-ignore: decorator
@inline
function estimate<T>(values: usize, count: i32): f64 {
  if (count < 2) return 8 * sizeof<T>();
  const samples = min(16, (count + MINIBLOCK - 1) / MINIBLOCK);
  const last = max(1, count - MINIBLOCK);
  let total = 0;
  for (let s = 0; s < samples; s++) {
    const start = 1 + (samples == 1 ? 0 : <i32>((<i64>(last - 1) * s) / (samples - 1)));
    const end = min(count, start + MINIBLOCK);
    let least = Infinity;
    let most = -Infinity;
    for (let i = start; i < end; i++) {
      // Doubles are exact enough to count bits.
      const at = values + <usize>i * sizeof<T>();
      const delta = <f64>load<T>(at) - <f64>load<T>(at - sizeof<T>());
      least = min(least, delta);
      most = max(most, delta);
    }
    total += 64 - <i32>clz(<u64>min(most - least, <f64>(sizeof<T>() == 4 ? u32.MAX_VALUE : i64.MAX_VALUE)));
  }
  // Each block of 128 spends about seven bytes on its smallest delta and widths.
  return <f64>total / <f64>samples + 0.5;
}
