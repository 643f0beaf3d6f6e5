/**
 * Columns in memory. A node is one column and, for the parser, the plan of what may be read into it; a struct has its
 * fields as children, and the row itself is a struct. TypeScript lays nodes out (`engine-plan.ts`, same numbers).
 *
 * A child of a struct may be shorter than its struct: what lacks is null, and is filled in (`pad`) when the child gets
 * its next value or when the batch ends. So a key that a row does not have costs nothing.
 */

import { outlook, root } from "./batch";
import { allocate } from "./memory";

/** Types, as in `engine-plan.ts`. */
export const BOOL: u32 = 0;
export const INT8: u32 = 1;
export const INT16: u32 = 2;
export const INT32: u32 = 3;
export const UINT8: u32 = 4;
export const UINT16: u32 = 5;
export const UINT32: u32 = 6;
export const INT64: u32 = 7;
export const UINT64: u32 = 8;
export const FLOAT32: u32 = 9;
export const FLOAT64: u32 = 10;
export const DECIMAL: u32 = 11;
export const STRING: u32 = 12;
export const JSON_TEXT: u32 = 13;
export const BINARY: u32 = 14;
export const DATE: u32 = 15;
export const TIME: u32 = 16;
export const TIMESTAMP: u32 = 17;
export const TIMESTAMPTZ: u32 = 18;
export const UUID: u32 = 19;
export const FIXED: u32 = 20;
export const STRUCT: u32 = 21;
export const LIST: u32 = 22;
export const MAP: u32 = 23;
export const UNKNOWN: u32 = 24;

/** Byte offsets within a node. */
export const TYPE: usize = 0;
export const FLAGS: usize = 4;
/** Values so far, and how many of them are null. */
export const LENGTH: usize = 8;
export const NULLS: usize = 12;
/** Address of the values; how many fit (also counts offsets). */
export const VALUES: usize = 16;
export const CAPACITY: usize = 20;
/** Address of the offsets, of which there are one more than values. */
export const OFFSETS: usize = 24;
/** Address of the validity bits, which are ones where no null was written; how many there are. */
export const VALIDITY: usize = 28;
export const VALIDITY_CAPACITY: usize = 32;
/** string, json, binary: bytes used and bytes that fit. */
export const END: usize = 36;
export const BYTES: usize = 40;
/** Address of the children's addresses; how many there are. */
export const CHILDREN: usize = 44;
export const COUNT: usize = 48;
/** struct: addresses of spellings by hash; their number less one; the key expected first; fields that may not lack. */
export const SLOTS: usize = 52;
export const SLOT_MASK: usize = 56;
export const FIRST: usize = 60;
export const REQUIRED: usize = 64;
/** Bytes per value of types of fixed width, else 0. */
export const WIDTH: usize = 68;
/** Integers: the bounds. decimal: precision and scale. fixed: size. */
export const LOW: usize = 72;
export const HIGH: usize = 80;
/** What the batch before needed: first sizes of the buffers. */
export const EXPECTED: usize = 88;
export const EXPECTED_BYTES: usize = 92;

export const NULLABLE: u32 = 1;
/** Only null is read into it; whatever else there is goes the slow way. */
export const SLOW: u32 = 2;

const MIN_CAPACITY: u32 = 32;
/** Offsets are signed 32-bit numbers. */
const MAX_BYTES: u64 = 0x7fffffff;

export function isBytes(type: u32): bool {
  return type >= STRING && type <= BINARY;
}

/**
 * The next size of a buffer. What it is moved from is lost until the arena is reset, so as soon as a part of the batch is
 * there, it gets the size that the whole will need.
 */
function larger(needed: u32, current: u32, expected: u32): u32 {
  const foreseen = <u32>min<f64>(<f64>needed * outlook(load<u32>(root, LENGTH)) * 1.0625, <f64>MAX_BYTES / 64);
  return max(max(needed, current * 2), max(max(expected, foreseen), MIN_CAPACITY));
}

/** A copy with more room of the `used` bytes at `old`. */
function moved(old: usize, used: usize, size: u64): usize {
  if (size > MAX_BYTES) unreachable();
  const fresh = allocate(<usize>size);
  if (used > 0) memory.copy(fresh, old, used);
  return fresh;
}

/** Makes room for `needed` values in all. */
export function growValues(node: usize, needed: u32): void {
  const current = load<u32>(node, CAPACITY);
  if (needed <= current) return;
  const capacity = larger(needed, current, load<u32>(node, EXPECTED));
  const length = load<u32>(node, LENGTH);
  const type = load<u32>(node, TYPE);
  const width = load<u32>(node, WIDTH);
  if (width > 0) {
    store<usize>(node, moved(load<usize>(node, VALUES), length * width, <u64>capacity * width), VALUES);
  } else if (type === BOOL) {
    store<usize>(node, moved(load<usize>(node, VALUES), (length + 7) >>> 3, (<u64>capacity + 7) >>> 3), VALUES);
  } else if (isBytes(type) || type === LIST || type === MAP) {
    const offsets = moved(
      load<usize>(node, OFFSETS),
      current > 0 ? (<usize>length + 1) * 4 : 0,
      (<u64>capacity + 1) * 4,
    );
    if (current === 0) store<u32>(offsets, 0);
    store<usize>(node, offsets, OFFSETS);
  }
  store<u32>(node, capacity, CAPACITY);
}

/** Makes room for values of `needed` bytes in all, of which `used` are written. */
export function growBytes(node: usize, used: u32, needed: u32): void {
  const current = load<u32>(node, BYTES);
  if (needed <= current) return;
  if (needed > <u32>MAX_BYTES) unreachable();
  const size = min<u32>(<u32>MAX_BYTES, larger(needed, current, load<u32>(node, EXPECTED_BYTES)));
  store<usize>(node, moved(load<usize>(node, VALUES), used, size), VALUES);
  store<u32>(node, size, BYTES);
}

/** Where value `index` of a column with offsets begins. */
function startOf(node: usize, index: u32): u32 {
  return index === 0 ? 0 : load<u32>(load<usize>(node, OFFSETS) + <usize>index * 4);
}

/** Makes room for `needed` validity bits in all; the new ones are ones. */
function growValidity(node: usize, needed: u32): void {
  const current = load<u32>(node, VALIDITY_CAPACITY);
  if (needed <= current) return;
  const capacity = (larger(needed, current, load<u32>(node, EXPECTED)) + 7) & ~7;
  const validity = moved(load<usize>(node, VALIDITY), current >>> 3, capacity >>> 3);
  memory.fill(validity + (current >>> 3), 0xff, (capacity - current) >>> 3);
  store<usize>(node, validity, VALIDITY);
  store<u32>(node, capacity, VALIDITY_CAPACITY);
}

/** Clears the validity bits `[from, to)`. */
function markNulls(node: usize, from: u32, to: u32): void {
  growValidity(node, to);
  const validity = load<usize>(node, VALIDITY);
  let i = from;
  while (i < to) {
    const at = validity + (i >>> 3);
    if ((i & 7) === 0 && to - i >= 8) {
      const bytes = (to - i) >>> 3;
      memory.fill(at, 0, bytes);
      i += bytes << 3;
    } else {
      store<u8>(at, load<u8>(at) & ~((<u8>1) << (<u8>(i & 7))));
      i++;
    }
  }
  store<u32>(node, load<u32>(node, NULLS) + to - from, NULLS);
}

/** Appends nulls until there are `length` values. */
export function pad(node: usize, length: u32): void {
  const from = load<u32>(node, LENGTH);
  if (from >= length) return;
  const type = load<u32>(node, TYPE);
  if (type !== UNKNOWN) {
    markNulls(node, from, length);
    if (type !== STRUCT) {
      growValues(node, length);
      const width = load<u32>(node, WIDTH);
      const values = load<usize>(node, VALUES);
      if (width > 0) memory.fill(values + <usize>from * width, 0, (length - from) * width);
      else if (type === BOOL) for (let i = from; i < length; i++) setBool(values, i, false);
      else {
        const offsets = load<usize>(node, OFFSETS);
        const end = load<u32>(offsets + <usize>from * 4);
        for (let i = from + 1; i <= length; i++) store<u32>(offsets + <usize>i * 4, end);
      }
    }
  }
  store<u32>(node, length, LENGTH);
}

export function setBool(values: usize, index: u32, value: bool): void {
  const at = values + (index >>> 3);
  const mask = 1 << (index & 7);
  store<u8>(at, value ? load<u8>(at) | mask : load<u8>(at) & ~mask);
}

/** Takes back all values from index `length` on, and what a row that was not finished has left below. */
export function truncate(node: usize, length: u32): void {
  const type = load<u32>(node, TYPE);
  const current = load<u32>(node, LENGTH);
  const kept = min(current, length);
  if (load<u32>(node, NULLS) > 0) {
    const validity = load<usize>(node, VALIDITY);
    const marked = min(current, load<u32>(node, VALIDITY_CAPACITY));
    for (let i = kept; i < marked; i++) {
      const at = validity + (i >>> 3);
      const mask = 1 << (i & 7);
      if ((load<u8>(at) & mask) === 0) {
        store<u8>(at, load<u8>(at) | mask);
        store<u32>(node, load<u32>(node, NULLS) - 1, NULLS);
      }
    }
  }
  store<u32>(node, kept, LENGTH);
  if (isBytes(type)) store<u32>(node, startOf(node, kept), END);
  else if (type >= STRUCT && type <= MAP) {
    const children = load<usize>(node, CHILDREN);
    const count = load<u32>(node, COUNT);
    const inner = type === STRUCT ? length : startOf(node, kept);
    for (let i: u32 = 0; i < count; i++) truncate(load<usize>(children + <usize>i * 4), inner);
  }
}

/** Fills in the nulls that lack at the ends of all columns below. */
export function complete(node: usize): void {
  const type = load<u32>(node, TYPE);
  if (type < STRUCT || type > MAP) return;
  const children = load<usize>(node, CHILDREN);
  const count = load<u32>(node, COUNT);
  for (let i: u32 = 0; i < count; i++) {
    const child = load<usize>(children + <usize>i * 4);
    if (type === STRUCT) pad(child, load<u32>(node, LENGTH));
    complete(child);
  }
}

/** Gives each column below that has nulls a validity bit for each value, so that it can be read where it is. */
export function wholeValidity(node: usize): void {
  if (load<u32>(node, NULLS) > 0) growValidity(node, load<u32>(node, LENGTH));
  const children = load<usize>(node, CHILDREN);
  const count = load<u32>(node, COUNT);
  for (let i: u32 = 0; i < count; i++) wholeValidity(load<usize>(children + <usize>i * 4));
}

/** Forgets all values, and that there were buffers: to be called with the arena's reset. */
export function clear(node: usize): void {
  const length = load<u32>(node, LENGTH);
  if (length > 0) store<u32>(node, length, EXPECTED);
  const end = load<u32>(node, END);
  // A little more than before: a batch of as many rows is seldom shorter by much, and copying costs more.
  if (end > 0) store<u32>(node, end + (end >>> 4), EXPECTED_BYTES);
  store<u32>(node, 0, LENGTH);
  store<u32>(node, 0, NULLS);
  store<usize>(node, 0, VALUES);
  store<u32>(node, 0, CAPACITY);
  store<usize>(node, 0, OFFSETS);
  store<usize>(node, 0, VALIDITY);
  store<u32>(node, 0, VALIDITY_CAPACITY);
  store<u32>(node, 0, END);
  store<u32>(node, 0, BYTES);
  const children = load<usize>(node, CHILDREN);
  const count = load<u32>(node, COUNT);
  for (let i: u32 = 0; i < count; i++) clear(load<usize>(children + <usize>i * 4));
}

/** For columns that come from elsewhere: nulls up to `start`, then room for `count` values of `bytes` bytes in all. */
export function reserve(node: usize, start: u32, count: u32, bytes: u32): void {
  pad(node, start);
  if (count > 0 || load<u32>(node, CAPACITY) === 0) growValues(node, start + count);
  const end = load<u32>(node, END);
  if (bytes > 0) growBytes(node, end, end + bytes);
}

/** Makes the value `index`, which {@link reserve} made room for, null. */
export function markNull(node: usize, index: u32): void {
  markNulls(node, index, index + 1);
}
