/** Values of fixed width: picking them, their bounds, PLAIN and BYTE_STREAM_SPLIT. A position array of 0 takes all. */

import { RESULT } from "./result";

/** 32-bit words at `positions`, `stride` bytes apart: the low words of decimals. */
export function pack32(values: usize, positions: usize, count: i32, stride: i32, to: usize): void {
  for (let i = 0; i < count; i++) {
    const index = positions == 0 ? i : load<i32>(positions + ((<usize>i) << 2));
    store<u32>(to + ((<usize>i) << 2), load<u32>(values + <usize>index * <usize>stride));
  }
}

export function pack64(values: usize, positions: usize, count: i32, stride: i32, to: usize): void {
  for (let i = 0; i < count; i++) {
    const index = positions == 0 ? i : load<i32>(positions + ((<usize>i) << 2));
    store<u64>(to + ((<usize>i) << 3), load<u64>(values + <usize>index * <usize>stride));
  }
}

/** Values of one byte, or two, as words. */
export function widen(values: usize, positions: usize, count: i32, width: i32, signed: bool, to: usize): void {
  for (let i = 0; i < count; i++) {
    const at = values + <usize>(positions == 0 ? i : load<i32>(positions + ((<usize>i) << 2))) * <usize>width;
    let value: i32;
    if (width == 1) value = signed ? <i32>load<i8>(at) : <i32>load<u8>(at);
    else value = signed ? <i32>load<i16>(at) : <i32>load<u16>(at);
    store<i32>(to + ((<usize>i) << 2), value);
  }
}

/** Bits as bytes of 0 or 1. */
export function unpackBits(bits: usize, positions: usize, count: i32, to: usize): void {
  for (let i = 0; i < count; i++) {
    const at = positions == 0 ? i : load<i32>(positions + ((<usize>i) << 2));
    store<u8>(to + i, (<i32>load<u8>(bits + (at >> 3)) >> (at & 7)) & 1);
  }
}

/** BOOLEAN as PLAIN, from bytes: lowest bit first, the last byte filled up with zeros. Reads and writes whole sixteens. */
export function packBits(out: usize, values: usize, start: i32, end: i32): usize {
  const last = out + ((end - start + 7) >> 3);
  let at = values + start;
  const stop = values + end;
  for (; at + 16 <= stop; at += 16) {
    store<u16>(out, i8x16.bitmask(i8x16.neg(v128.load(at))));
    out += 2;
  }
  if (at < stop) {
    const rest = <i32>(stop - at);
    store<u16>(out, i8x16.bitmask(i8x16.neg(v128.load(at))) & ((1 << rest) - 1));
  }
  return last;
}

/** How many of the bytes are 1. */
export function sumBytes(values: usize, start: i32, end: i32): i32 {
  let sum = 0;
  for (let i = start; i < end; i++) sum += load<u8>(values + i);
  return sum;
}

/** Leaves the smallest and the largest, 32 bits each. `flip` is the sign bit for unsigned order, else 0. */
export function bounds32(values: usize, start: i32, end: i32, flip: i32): void {
  let least = i32.MAX_VALUE;
  let most = i32.MIN_VALUE;
  for (let i = start; i < end; i++) {
    const value = load<i32>(values + ((<usize>i) << 2)) ^ flip;
    least = min(least, value);
    most = max(most, value);
  }
  store<i32>(RESULT, least ^ flip);
  store<i32>(RESULT, most ^ flip, 4);
}

/** The same of 64 bits each. */
export function bounds64(values: usize, start: i32, end: i32, flip: i64): void {
  let least = i64.MAX_VALUE;
  let most = i64.MIN_VALUE;
  for (let i = start; i < end; i++) {
    const value = load<i64>(values + ((<usize>i) << 3)) ^ flip;
    least = min(least, value);
    most = max(most, value);
  }
  store<i64>(RESULT, least ^ flip);
  store<i64>(RESULT, most ^ flip, 8);
}

/** Leaves the smallest and the largest as doubles; returns how many values are not NaN. */
export function boundsFloat(values: usize, start: i32, end: i32): i32 {
  return floatBounds<f32>(values, start, end);
}

export function boundsDouble(values: usize, start: i32, end: i32): i32 {
  return floatBounds<f64>(values, start, end);
}

// @ts-ignore: decorator
@inline
function floatBounds<T>(values: usize, start: i32, end: i32): i32 {
  let least = <T>Infinity;
  let most = <T>-Infinity;
  let count = 0;
  for (let i = start; i < end; i++) {
    const value = load<T>(values + <usize>i * sizeof<T>());
    // Comparisons with NaN are false.
    least = value < least ? value : least;
    most = value > most ? value : most;
    count += i32(value == value);
  }
  store<f64>(RESULT, <f64>least);
  store<f64>(RESULT, <f64>most, 8);
  return count;
}

/** The dictionary's entries as PLAIN. */
export function entries32(out: usize, values: usize, entries: usize, size: i32): usize {
  for (let i = 0; i < size; i++) {
    const at = values + ((<usize>load<i32>(entries + ((<usize>i) << 2))) << 2);
    store<u32>(out + ((<usize>i) << 2), load<u32>(at));
  }
  return out + ((<usize>size) << 2);
}

export function entries64(out: usize, values: usize, entries: usize, size: i32): usize {
  for (let i = 0; i < size; i++) {
    const at = values + ((<usize>load<i32>(entries + ((<usize>i) << 2))) << 3);
    store<u64>(out + ((<usize>i) << 3), load<u64>(at));
  }
  return out + ((<usize>size) << 3);
}

/** BYTE_STREAM_SPLIT of Encodings.md: the first bytes of all values, then the second bytes, and so on. */
export function splitStreams(out: usize, values: usize, start: i32, end: i32, width: i32): usize {
  const count = <usize>(end - start);
  const from = values + <usize>start * <usize>width;
  for (let b: usize = 0; b < <usize>width; b++) {
    for (let i: usize = 0; i < count; i++) store<u8>(out + i, load<u8>(from + i * <usize>width + b));
    out += count;
  }
  return out;
}
