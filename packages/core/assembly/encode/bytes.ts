/** Values that are ranges of bytes: picking, copying, and their smallest and largest. */

import { RESULT } from "./result";

/** Whether two ranges are equal; `length` is a multiple of eight. */
// @ts-ignore: decorator
@inline
export function sameWords(a: usize, b: usize, length: i32): bool {
  for (let at = 0; at < length; at += 8) if (load<u64>(a + at) != load<u64>(b + at)) return false;
  return true;
}

/**
 * Offsets of the values alone: nulls are empty ranges, so the bytes need not move. Returns false for a column that keeps
 * bytes under its nulls.
 */
export function pickOffsets(offsets: usize, positions: usize, count: i32, picked: usize): bool {
  let end = load<i32>(offsets + ((<usize>load<i32>(positions)) << 2));
  for (let i = 0; i < count; i++) {
    const range = offsets + ((<usize>load<i32>(positions + ((<usize>i) << 2))) << 2);
    const start = load<i32>(range);
    if (start != end) return false;
    store<i32>(picked + ((<usize>i) << 2), start);
    end = load<i32>(range, 4);
  }
  store<i32>(picked + ((<usize>count) << 2), end);
  return true;
}

/** Copies the ranges at `positions` side by side to `to`, with new offsets. */
export function moveRanges(
  data: usize,
  offsets: usize,
  positions: usize,
  count: i32,
  to: usize,
  moved: usize,
): void {
  let end = 0;
  for (let i = 0; i < count; i++) {
    const range = offsets + ((<usize>load<i32>(positions + ((<usize>i) << 2))) << 2);
    const start = load<i32>(range);
    const length = load<i32>(range, 4) - start;
    store<i32>(moved + ((<usize>i) << 2), end);
    memory.copy(to + <usize>end, data + <usize>start, length);
    end += length;
  }
  store<i32>(moved + ((<usize>count) << 2), end);
}

/** Offsets of values of one width. */
export function evenOffsets(count: i32, width: i32, offsets: usize): void {
  for (let i = 0; i <= count; i++) store<i32>(offsets + ((<usize>i) << 2), i * width);
}

/**
 * Picks values of `width` bytes out of slots of `stride`; with `reverse` the lowest byte comes last, as decimals are
 * stored. `positions` of 0 takes all.
 */
export function packFixed(
  values: usize,
  positions: usize,
  count: i32,
  stride: i32,
  width: i32,
  reverse: bool,
  to: usize,
): void {
  for (let i = 0; i < count; i++) {
    const index = positions == 0 ? i : load<i32>(positions + ((<usize>i) << 2));
    const from = values + <usize>index * <usize>stride;
    if (reverse) for (let b = 0; b < width; b++) store<u8>(to + (width - 1 - b), load<u8>(from + b));
    else memory.copy(to, from, width);
    to += width;
  }
}

/** BYTE_ARRAY as PLAIN: each value behind its length. */
export function plainRanges(out: usize, data: usize, offsets: usize, start: i32, end: i32): usize {
  for (let i = start; i < end; i++) out = plainRange(out, data, offsets + ((<usize>i) << 2));
  return out;
}

/** The dictionary's entries as PLAIN; without their lengths if they are of one width. */
export function plainEntries(
  out: usize,
  data: usize,
  offsets: usize,
  entries: usize,
  size: i32,
  lengths: bool,
): usize {
  for (let i = 0; i < size; i++) {
    const range = offsets + ((<usize>load<i32>(entries + ((<usize>i) << 2))) << 2);
    if (lengths) {
      out = plainRange(out, data, range);
    } else {
      const length = load<i32>(range, 4) - load<i32>(range);
      memory.copy(out, data + <usize>load<i32>(range), length);
      out += length;
    }
  }
  return out;
}

// @ts-ignore: decorator
@inline
function plainRange(out: usize, data: usize, range: usize): usize {
  const start = load<i32>(range);
  const length = load<i32>(range, 4) - start;
  store<i32>(out, length);
  memory.copy(out + 4, data + <usize>start, length);
  return out + 4 + length;
}

let data: usize = 0;
let offsets: usize = 0;
/** Big-endian two's complement: the first byte has its sign flipped. */
let flip: u64 = 0;
let smallest: i32 = 0;
let largest: i32 = 0;
/** Bytes that the smallest and the largest, and so all between them, begin with. */
let shared: i32 = 0;
/** What follows these in the smallest and the largest: eight bytes each, in the order of numbers. */
let smallestKey: u64 = 0;
let largestKey: u64 = 0;

/** Leaves the indexes of the smallest and the largest of the ranges `start` to `end`: at least one. */
export function rangeBounds(d: usize, o: usize, signed: bool, start: i32, end: i32): void {
  beginBounds(d, o, signed, start);
  for (let i = start + 1; i < end; i++) takeBound(i);
  store<i32>(RESULT, smallest);
  store<i32>(RESULT, largest, 4);
}

/** The same for values in a dictionary: only entries that occur are compared. `seen` is a zeroed byte per entry. */
export function entryBounds(
  d: usize,
  o: usize,
  signed: bool,
  codes: usize,
  entries: usize,
  size: i32,
  seen: usize,
  start: i32,
  end: i32,
): void {
  for (let i = start; i < end; i++) store<u8>(seen + <usize>load<i32>(codes + ((<usize>i) << 2)), 1);
  let found = false;
  for (let code = 0; code < size; code++) {
    if (load<u8>(seen + code) == 0) continue;
    const index = load<i32>(entries + ((<usize>code) << 2));
    if (found) takeBound(index);
    else beginBounds(d, o, signed, index);
    found = true;
  }
  store<i32>(RESULT, smallest);
  store<i32>(RESULT, largest, 4);
}

function beginBounds(d: usize, o: usize, signed: bool, index: i32): void {
  data = d;
  offsets = o;
  flip = signed ? 0x80 : 0;
  setBounds(index, index);
}

// @ts-ignore: decorator
@inline
function startOf(index: i32): usize {
  return data + <usize>load<i32>(offsets + ((<usize>index) << 2));
}

// @ts-ignore: decorator
@inline
function lengthOf(index: i32): i32 {
  const range = offsets + ((<usize>index) << 2);
  return load<i32>(range, 4) - load<i32>(range);
}

/** Eight bytes from `at` on as a number, zeros where the range has ended. */
// @ts-ignore: decorator
@inline
function keyAt(start: usize, length: i32, at: i32): u64 {
  const rest = length - at;
  const word = load<u64>(start + at) ^ (at == 0 ? flip : 0);
  const key = bswap(word);
  return rest >= 8 ? key : rest <= 0 ? 0 : key & (~(<u64>0) << ((8 - rest) << 3));
}

function setBounds(least: i32, most: i32): void {
  smallest = least;
  largest = most;
  const lengthA = lengthOf(least);
  const lengthB = lengthOf(most);
  const length = min(lengthA, lengthB);
  shared = least == most ? length : common(startOf(least), startOf(most), 0, length);
  smallestKey = keyAt(startOf(least), lengthA, shared);
  largestKey = keyAt(startOf(most), lengthB, shared);
}

/** Bytes from `from` to `length` in which two ranges agree, and those before. */
// @ts-ignore: decorator
@inline
function common(a: usize, b: usize, from: i32, length: i32): i32 {
  for (let at = from; at < length; at += 8) {
    const difference = load<u64>(a + at) ^ load<u64>(b + at);
    if (difference != 0) return min(length, at + (<i32>ctz(difference) >> 3));
  }
  return length;
}

/**
 * Most values share the beginning and lie between the two found so far by the eight bytes behind it: then nothing else
 * is looked at.
 */
// @ts-ignore: decorator
@inline
function takeBound(index: i32): void {
  const start = startOf(index);
  const length = lengthOf(index);
  if (length >= shared && common(start, startOf(smallest), 0, shared) == shared) {
    const key = keyAt(start, length, shared);
    if (key > smallestKey && key < largestKey) return;
  }
  compareBoth(index);
}

function compareBoth(index: i32): void {
  if (compare(index, smallest) < 0) setBounds(index, largest);
  else if (compare(index, largest) > 0) setBounds(smallest, index);
}

function compare(a: i32, b: i32): i32 {
  const lengthA = lengthOf(a);
  const lengthB = lengthOf(b);
  const length = min(lengthA, lengthB);
  const at = common(startOf(a), startOf(b), 0, length);
  if (at == length) return lengthA - lengthB;
  const sign = at == 0 ? <i32>flip : 0;
  return (<i32>load<u8>(startOf(a) + at) ^ sign) - (<i32>load<u8>(startOf(b) + at) ^ sign);
}
