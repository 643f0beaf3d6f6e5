/**
 * A zstd encoder (RFC 8878) in the manner of the fast levels: one hash table, the first match found, literals by
 * Huffman codes. The same input gives the same bytes.
 */

import { PAIRS_BYTES, writeLiterals } from "./huffman";
import { matchEnd } from "./match";
import { MIN_MATCH, SEQUENCE_BYTES, writeSequences } from "./sequences";

const MAGIC: u32 = 0xfd2fb528;
const MAX_BLOCK = 1 << 17;
/** Bytes that a decoder has to keep; frames that are not longer are kept as a whole. */
const WINDOW_LOG = 23;
const MAX_HASH_BITS = 14;
/** A match begins with this many equal bytes at least, and mostly with six. */
const EQUAL = 4;
/** The longer no match was found, the larger the steps: one byte more after each 2^this bytes. */
const PATIENCE = 5;

/** Scratch memory: the table, a block's literals, its sequences and their codes, codes of pairs of literals. */
const LITERALS: usize = 4 << MAX_HASH_BITS;
const SEQUENCES: usize = LITERALS + MAX_BLOCK + 64;
const CODES: usize = SEQUENCES + <usize>(MAX_BLOCK / EQUAL) * SEQUENCE_BYTES;
const PAIRS: usize = CODES + 3 * (MAX_BLOCK / EQUAL) + 16;
const SCRATCH: usize = PAIRS + PAIRS_BYTES;

/** Bytes of scratch memory. */
export function zstdScratch(): usize {
  return SCRATCH;
}

/** Bytes that the output may need in between: a block is measured by writing it. */
export function zstdRoom(size: i32): usize {
  return <usize>size + 4 * <usize>min(size, MAX_BLOCK) + 3 * <usize>(size >> 17) + 1024;
}

let table: usize = 0;
let hashBits: i32 = 0;
let frame: usize = 0;
/** Distances of the last two matches. */
let repeat1: u32 = 0;
let repeat2: u32 = 0;
let literalEnd: usize = 0;
let sequenceEnd: usize = 0;

/** Compresses `size` bytes at `from` into one frame at `out`; returns its end. */
export function zstd(out: usize, from: usize, size: i32, scratch: usize): usize {
  table = scratch;
  // Short pages need no table of full size to be cleared.
  hashBits = min(MAX_HASH_BITS, max(6, 32 - <i32>clz(size)));
  memory.fill(table, 0, <usize>4 << hashBits);
  frame = from;
  repeat1 = 1;
  repeat2 = 4;
  let to = writeFrameHeader(out, size);
  const end = from + size;
  do {
    const blockEnd = min(end, from + MAX_BLOCK);
    to = writeBlock(to, from, blockEnd, blockEnd == end, scratch);
    from = blockEnd;
  } while (from < end);
  return to;
}

function writeFrameHeader(out: usize, size: i32): usize {
  store<u32>(out, MAGIC);
  if (size > 1 << WINDOW_LOG) {
    // Content size of four bytes, and a window of its own.
    store<u8>(out, 2 << 6, 4);
    store<u8>(out, (WINDOW_LOG - 10) << 3, 5);
    store<u32>(out, size, 6);
    return out + 10;
  }
  // One segment: the content is the window.
  if (size < 256) {
    store<u8>(out, 1 << 5, 4);
    store<u8>(out, <u8>size, 5);
    return out + 6;
  }
  if (size < 65536 + 256) {
    store<u8>(out, (1 << 6) | (1 << 5), 4);
    store<u16>(out, <u16>(size - 256), 5);
    return out + 7;
  }
  store<u8>(out, (2 << 6) | (1 << 5), 4);
  store<u32>(out, size, 5);
  return out + 9;
}

function writeBlock(out: usize, from: usize, end: usize, last: bool, scratch: usize): usize {
  const size = <i32>(end - from);
  const before1 = repeat1;
  const before2 = repeat2;
  literalEnd = scratch + LITERALS;
  sequenceEnd = scratch + SEQUENCES;
  const anchor = findMatches(from, end);
  let literals = scratch + LITERALS;
  let literalSize = <i32>(end - anchor);
  // A block without a match is all literals: they need not be copied.
  if (anchor == from) literals = from;
  else {
    memory.copy(literalEnd, anchor, literalSize);
    literalSize += <i32>(literalEnd - literals);
  }
  let to = writeLiterals(out + 3, literals, literalSize, scratch + PAIRS);
  const sequences = <i32>((sequenceEnd - scratch - SEQUENCES) / SEQUENCE_BYTES);
  to = writeSequences(to, scratch + SEQUENCES, sequences, scratch + CODES);
  let type = 2;
  let stored = <i32>(to - out - 3);
  if (stored >= size - (size >> 7)) {
    type = 0;
    stored = size;
    memory.copy(out + 3, from, size);
    to = out + 3 + size;
    // A decoder learns distances from sequences only.
    repeat1 = before1;
    repeat2 = before2;
  }
  const header = i32(last) | (type << 1) | (stored << 3);
  store<u16>(out, <u16>header);
  store<u8>(out, <u8>(header >> 16), 2);
  return to;
}

// @ts-ignore: decorator
@inline
function hashAt(at: usize): usize {
  // Of six bytes.
  return table + (<usize>((load<u64>(at) << 16) * 0x9fb21c651e98df25 >> (64 - hashBits)) << 2);
}

/** Collects literals and sequences; returns where the literals behind the last match begin. */
function findMatches(from: usize, end: usize): usize {
  let anchor = from;
  if (end < from + 16) return anchor;
  const limit = end - 9;
  let at = from;
  while (at <= limit) {
    const slot = hashAt(at);
    const candidate = <usize>load<u32>(slot) + frame;
    store<u32>(slot, <u32>(at - frame));
    let match: usize;
    let start: usize;
    let code: u32;
    // The distance of the last match again, one byte on. The first byte of a frame has nothing before it.
    if (at + 1 - repeat1 >= frame && load<u32>(at, 1) == load<u32>(at + 1 - repeat1)) {
      start = at + 1;
      match = start - repeat1;
      code = 1;
    } else if (
      load<u32>(candidate) == load<u32>(at) &&
      candidate < at &&
      at - candidate < (<usize>1 << WINDOW_LOG) - 16
    ) {
      start = at;
      match = candidate;
      while (start > anchor && match > frame && load<u8>(start - 1) == load<u8>(match - 1)) {
        start--;
        match--;
      }
      repeat2 = repeat1;
      repeat1 = <u32>(start - match);
      code = repeat1 + 3;
    } else {
      at += ((at - anchor) >> PATIENCE) + 1;
      continue;
    }
    const found = at;
    at = matchEnd(start + EQUAL, match + EQUAL, end);
    take(anchor, start, <u32>(at - start), code);
    anchor = at;
    if (at > limit) break;
    store<u32>(hashAt(found + 2), <u32>(found + 2 - frame));
    store<u32>(hashAt(at - 2), <u32>(at - 2 - frame));
    // The distance before the last one, at once: without literals the first code means this one, and they change places.
    while (at <= limit && at - repeat2 >= frame && load<u32>(at) == load<u32>(at - repeat2)) {
      const distance = repeat2;
      repeat2 = repeat1;
      repeat1 = distance;
      store<u32>(hashAt(at), <u32>(at - frame));
      const next = matchEnd(at + EQUAL, at + EQUAL - distance, end);
      take(at, at, <u32>(next - at), 1);
      at = next;
      anchor = at;
    }
  }
  return anchor;
}

/** Takes the literals `anchor` to `start`, and a match. */
// @ts-ignore: decorator
@inline
function take(anchor: usize, start: usize, length: u32, code: u32): void {
  const literals = <i32>(start - anchor);
  // Mostly few: sixteen at a time, beyond their end, where the next ones go.
  if (literals <= 32) {
    v128.store(literalEnd, v128.load(anchor));
    v128.store(literalEnd, v128.load(anchor, 16), 16);
  } else memory.copy(literalEnd, anchor, literals);
  literalEnd += literals;
  store<u32>(sequenceEnd, literals);
  store<u32>(sequenceEnd, length - MIN_MATCH, 4);
  store<u32>(sequenceEnd, code, 8);
  sequenceEnd += SEQUENCE_BYTES;
}
