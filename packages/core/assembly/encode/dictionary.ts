/**
 * Finds the distinct values of a column chunk, or gives up where a dictionary would not pay. The caller gives memory for
 * `codes` (the entry number of each value) and `entries` (where each entry was first seen), 32 bits each, and for a hash
 * table of open addressing: 2^`bits` slots of 16 bytes, at least twice as many as there may be entries. Entries are
 * numbered as they are found.
 */

import { sameWords } from "./bytes";
import { RESULT } from "./result";

/** If they are to be judged, chunks larger than twice this are judged by a sample spread over them first. */
const SAMPLE = 4096;
/** A sample with more distinct values says: mostly unique. (About 40,000 distinct among 100,000.) */
const SAMPLE_DISTINCT = <i32>(0.95 * SAMPLE);
/** The table begins with 2^this slots, which fit into the nearest cache, and grows with the entries. */
const FIRST_BITS = 11;

const K1: u64 = 0x9e3779b97f4a7c15;
const K2: u64 = 0xd6e8feb86659fd93;

/** A slot: the value, or the last up to eight bytes of it; its length in bytes; entry + 1, 0 where it is free. */
const LENGTH: usize = 8;
const ENTRY: usize = 12;

let slots: usize = 0;
let bits: i32 = 0;
let maxBits: i32 = 0;
let entries: usize = 0;
let size: i32 = 0;
/** Entries that the table has room for. */
let room: i32 = 0;
let bytes: i64 = 0;
/** Left: colliding values, by chance or by intent, must not cost more than the encoding saves. */
let steps: i32 = 0;

function prepare(count: i32, entriesAt: usize, slotsAt: usize, slotBits: i32): void {
  entries = entriesAt;
  slots = slotsAt;
  maxBits = slotBits;
  size = 0;
  bytes = 0;
  steps = 8 * count + 1024;
  clearTable(min(FIRST_BITS, slotBits));
}

function clearTable(to: i32): void {
  bits = to;
  room = bits < maxBits ? 1 << (bits - 1) : i32.MAX_VALUE;
  memory.fill(slots, 0, <usize>16 << bits);
}

// @ts-ignore: decorator
@inline
function slotAt(slot: i32): usize {
  return slots + ((<usize>slot) << 4);
}

// @ts-ignore: decorator
@inline
function place(slot: usize, key: u64, length: i32, entry: i32): void {
  store<u64>(slot, key);
  store<i32>(slot, length, LENGTH);
  store<i32>(slot, entry + 1, ENTRY);
}

/** Where an entry goes that is in the table nowhere yet. */
function freeSlot(hash: u64): usize {
  const mask = (1 << bits) - 1;
  let slot = <i32>(hash >> (64 - bits));
  while (load<i32>(slotAt(slot), ENTRY) != 0) slot = (slot + 1) & mask;
  return slotAt(slot);
}

/** INT32 and FLOAT, compared bit by bit. Returns the number of entries; −1 for more than `limit`, or too many steps. */
export function dictionary32(
  values: usize,
  count: i32,
  judge: bool,
  limit: i32,
  codes: usize,
  entriesAt: usize,
  slotsAt: usize,
  slotBits: i32,
): i32 {
  prepare(count, entriesAt, slotsAt, slotBits);
  return build<u32>(values, count, judge, limit, codes);
}

/** INT64 and DOUBLE. */
export function dictionary64(
  values: usize,
  count: i32,
  judge: bool,
  limit: i32,
  codes: usize,
  entriesAt: usize,
  slotsAt: usize,
  slotBits: i32,
): i32 {
  prepare(count, entriesAt, slotsAt, slotBits);
  return build<u64>(values, count, judge, limit, codes);
}

// @ts-ignore: decorator
@inline
function build<T>(values: usize, count: i32, judge: bool, limit: i32, codes: usize): i32 {
  if (judge && count > 2 * SAMPLE) {
    const step = count / SAMPLE;
    for (let i = 0; i < SAMPLE; i++) find<T>(values, i * step);
    if (size > SAMPLE_DISTINCT) return -1;
  }
  for (let i = 0; i < count; i++) {
    store<i32>(codes + ((<usize>i) << 2), find<T>(values, i));
    if (size > limit || steps < 0) return -1;
  }
  return size;
}

// @ts-ignore: decorator
@inline
function hashOf(value: u64): u64 {
  const hash = value * K1;
  return (hash ^ (hash >> 29)) * K2;
}

// @ts-ignore: decorator
@inline
function find<T>(values: usize, index: i32): i32 {
  const value = <u64>load<T>(values + <usize>index * sizeof<T>());
  const mask = (1 << bits) - 1;
  let slot = <i32>(hashOf(value) >> (64 - bits));
  while (true) {
    const at = slotAt(slot);
    const entry = load<i32>(at, ENTRY) - 1;
    if (entry < 0) break;
    if (load<u64>(at) == value) return entry;
    steps--;
    slot = (slot + 1) & mask;
  }
  place(slotAt(slot), value, 0, size);
  store<i32>(entries + ((<usize>size) << 2), index);
  size++;
  if (size > room) {
    clearTable(min(bits + 2, maxBits));
    for (let i = 0; i < size; i++) {
      const entry = <u64>load<T>(values + <usize>load<i32>(entries + ((<usize>i) << 2)) * sizeof<T>());
      place(freeSlot(hashOf(entry)), entry, 0, i);
    }
  }
  return size - 1;
}

/**
 * Byte ranges `offsets[i]` to `offsets[i + 1]`; `overhead` bytes are stored with each. Returns the number of entries, or
 * −1; their bytes in all are left as the result, 64 bits. Up to eight bytes behind a range are read.
 */
export function dictionaryBytes(
  data: usize,
  offsets: usize,
  count: i32,
  overhead: i32,
  judge: bool,
  limit: i32,
  limitBytes: i32,
  codes: usize,
  entriesAt: usize,
  slotsAt: usize,
  slotBits: i32,
): i32 {
  prepare(count, entriesAt, slotsAt, slotBits);
  if (judge && count > 2 * SAMPLE) {
    const step = count / SAMPLE;
    for (let i = 0; i < SAMPLE; i++) findBytes(data, offsets, i * step, overhead);
    if (size > SAMPLE_DISTINCT) return -1;
  }
  for (let i = 0; i < count; i++) {
    store<i32>(codes + ((<usize>i) << 2), findBytes(data, offsets, i, overhead));
    if (size > limit || bytes > limitBytes || steps < 0) return -1;
  }
  store<i64>(RESULT, bytes);
  return size;
}

/** Of the last up to eight bytes: those behind the range are shifted out. */
// @ts-ignore: decorator
@inline
function tailKey(start: usize, length: i32): u64 {
  const before = <i32>max(0, length - 1) & ~7;
  return length == 0 ? 0 : load<u64>(start + before) << ((8 - (length - before)) << 3);
}

// @ts-ignore: decorator
@inline
function hashBytes(start: usize, length: i32, tail: u64): u64 {
  let hash = <u64>length * K2;
  const end = start + (<i32>max(0, length - 1) & ~7);
  for (let at = start; at < end; at += 8) {
    hash = (hash ^ load<u64>(at)) * K1;
    hash ^= hash >> 32;
  }
  return hashOf(hash ^ tail);
}

// @ts-ignore: decorator
@inline
function findBytes(data: usize, offsets: usize, index: i32, overhead: i32): i32 {
  const range = offsets + ((<usize>index) << 2);
  const start = data + <usize>load<i32>(range);
  const length = load<i32>(range, 4) - load<i32>(range);
  const tail = tailKey(start, length);
  const mask = (1 << bits) - 1;
  let slot = <i32>(hashBytes(start, length, tail) >> (64 - bits));
  while (true) {
    const at = slotAt(slot);
    const entry = load<i32>(at, ENTRY) - 1;
    if (entry < 0) break;
    if (load<u64>(at) == tail && load<i32>(at, LENGTH) == length) {
      if (length <= 8) return entry;
      const other = load<i32>(offsets + ((<usize>load<i32>(entries + ((<usize>entry) << 2))) << 2));
      if (sameWords(start, data + <usize>other, (length - 1) & ~7)) return entry;
    }
    steps--;
    slot = (slot + 1) & mask;
  }
  place(slotAt(slot), tail, length, size);
  store<i32>(entries + ((<usize>size) << 2), index);
  size++;
  bytes += length + overhead;
  if (size > room) growBytes(data, offsets);
  return size - 1;
}

function growBytes(data: usize, offsets: usize): void {
  clearTable(min(bits + 2, maxBits));
  for (let i = 0; i < size; i++) {
    const range = offsets + ((<usize>load<i32>(entries + ((<usize>i) << 2))) << 2);
    const start = data + <usize>load<i32>(range);
    const length = load<i32>(range, 4) - load<i32>(range);
    const tail = tailKey(start, length);
    place(freeSlot(hashBytes(start, length, tail)), tail, length, i);
  }
}
