/**
 * Keys of objects → columns. A spelling is a key as it is written, with its closing quote; several may lead to one
 * column. Spellings are laid out by TypeScript (`engine-plan.ts`, same numbers) and found by hash, but mostly not
 * searched: each remembers which one followed it last time.
 */

import { SLOT_MASK, SLOTS } from "./node";

/** Byte offsets within a spelling. */
export const NEXT: usize = 0;
/** The column; 0 where the values of the key are dropped. */
export const CHILD: usize = 4;
export const SIZE: usize = 8;
/** A one for each of the first 16 bytes. */
const MASK: usize = 12;
/** 1 where the column may not be null, else 0. */
export const NEEDED: usize = 16;
/** Values dropped so far. */
export const DROPPED: usize = 20;
const TEXT: usize = 32;

const BACKSLASH: u32 = 0x5c;
const QUOTE: u32 = 0x22;

/** The key that {@link find} did not find, without its quotes, and the struct in which; 0 when there is none. */
let missedNode: usize = 0;
let missedStart: usize = 0;
let missedEnd: usize = 0;

export function missed(): usize {
  return missedNode;
}
export function missedKeyStart(): usize {
  return missedStart;
}
export function missedKeyEnd(): usize {
  return missedEnd;
}
export function forgetMissed(): void {
  missedNode = 0;
}

/** Whether the bytes at `at`, behind an opening quote, are the spelling. */
export function matches(spelling: usize, at: usize): bool {
  const equal = i8x16.bitmask(i8x16.eq(v128.load(at), v128.load(spelling, TEXT)));
  if ((~equal & load<u32>(spelling, MASK)) !== 0) return false;
  const size = load<u32>(spelling, SIZE);
  return size <= 16 || equals(at + 16, spelling + TEXT + 16, size - 16);
}

function equals(a: usize, b: usize, size: u32): bool {
  let left = <i32>size;
  while (left >= 16) {
    if (i8x16.bitmask(i8x16.eq(v128.load(a), v128.load(b))) !== 0xffff) return false;
    a += 16;
    b += 16;
    left -= 16;
  }
  return (~i8x16.bitmask(i8x16.eq(v128.load(a), v128.load(b))) & ((1 << left) - 1)) === 0;
}

/** An odd number of 53 bits, half of them ones. */
const MIX: u64 = 0x1b8735939e3779;

export function hashBytes(at: usize, size: u32): u32 {
  let h: u64 = size;
  let left = size;
  while (left >= 8) {
    h = (h ^ load<u64>(at)) * MIX;
    h ^= h >>> 32;
    at += 8;
    left -= 8;
  }
  if (left > 0) {
    h = (h ^ (load<u64>(at) & (((<u64>1) << (left << 3)) - 1))) * MIX;
    h ^= h >>> 32;
  }
  return <u32>h ^ <u32>(h >>> 15);
}

/** Puts a spelling, its text and size written, into the table of a struct, which must have room. */
export function addSpelling(node: usize, spelling: usize): void {
  const size = load<u32>(spelling, SIZE);
  store<u32>(spelling, size >= 16 ? 0xffff : (1 << size) - 1, MASK);
  const mask = load<u32>(node, SLOT_MASK);
  const slots = load<usize>(node, SLOTS);
  let slot = hashBytes(spelling + TEXT, size) & mask;
  while (load<usize>(slots + ((<usize>slot) << 2)) !== 0) slot = (slot + 1) & mask;
  store<usize>(slots + ((<usize>slot) << 2), spelling);
}

/** The spelling at `at`, behind an opening quote; 0 if there is none, which is noted if it is a whole key. */
export function find(node: usize, at: usize): usize {
  let end = at;
  for (;;) {
    const block = v128.load(end);
    const stop = i8x16.bitmask(
      v128.or(
        v128.or(i8x16.eq(block, i8x16.splat(0x22)), i8x16.eq(block, i8x16.splat(0x5c))),
        i8x16.lt_u(block, i8x16.splat(0x20)),
      ),
    );
    if (stop === 0) {
      end += 16;
      continue;
    }
    end += <usize>ctz(stop);
    const c: u32 = load<u8>(end);
    if (c === QUOTE) break;
    // What is wrong with an escape is found out where the key is learned.
    if (c !== BACKSLASH || load<u8>(end, 1) < 0x20) return 0;
    end += 2;
  }
  const size = <u32>(end - at) + 1;
  const mask = load<u32>(node, SLOT_MASK);
  const slots = load<usize>(node, SLOTS);
  for (let slot = hashBytes(at, size) & mask; ; slot = (slot + 1) & mask) {
    const spelling = load<usize>(slots + ((<usize>slot) << 2));
    if (spelling === 0) break;
    if (load<u32>(spelling, SIZE) === size && matches(spelling, at)) return spelling;
  }
  missedNode = node;
  missedStart = at;
  missedEnd = end;
  return 0;
}
