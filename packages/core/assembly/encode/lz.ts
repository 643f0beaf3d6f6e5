/**
 * The plain LZ77 formats: Snappy (google/snappy, format_description.txt) and LZ4 blocks (lz4/lz4, lz4_Block_format.md).
 * One hash table of the last places, the first match found. The same input gives the same bytes.
 */

import { varint } from "./hybrid";
import { matchEnd } from "./match";

const HASH_BITS = 14;
const WINDOW: usize = 65535;
/** Both formats copy four bytes at least. */
const MIN_MATCH = 4;
/** LZ4 wants the last five bytes as literals, and no match that begins in the last twelve. */
const LAST_LITERALS: usize = 5;
const LAST_MATCH: usize = 12;

/** Bytes of scratch memory. */
export function lzScratch(): usize {
  return 4 << HASH_BITS;
}

/** Most bytes that the output may take. */
export function lzRoom(size: i32): usize {
  return <usize>size + <usize>size / 6 + 64;
}

/** Compresses `size` bytes at `from` as Snappy to `out`; returns the end. */
export function snappy(out: usize, from: usize, size: i32, scratch: usize): usize {
  return compress(varint(out, size), from, size, scratch, true);
}

/** The same as an LZ4 block. */
export function lz4(out: usize, from: usize, size: i32, scratch: usize): usize {
  return compress(out, from, size, scratch, false);
}

function compress(out: usize, from: usize, size: i32, table: usize, asSnappy: bool): usize {
  memory.fill(table, 0, 4 << HASH_BITS);
  const end = from + size;
  let anchor = from;
  if (size > 16) {
    const limit = end - LAST_MATCH;
    let at = from;
    while (at <= limit) {
      // Of five bytes.
      const slot = table + (<usize>(((load<u64>(at) << 24) * 0x9fb21c651e98df25) >> (64 - HASH_BITS)) << 2);
      let match = from + <usize>load<u32>(slot);
      store<u32>(slot, <u32>(at - from));
      if (match >= at || at - match > WINDOW || load<u32>(match) != load<u32>(at)) {
        at += ((at - anchor) >> 6) + 1;
        continue;
      }
      let start = at;
      while (start > anchor && match > from && load<u8>(start - 1) == load<u8>(match - 1)) {
        start--;
        match--;
      }
      at = matchEnd(start + MIN_MATCH, match + MIN_MATCH, end - LAST_LITERALS);
      const literals = <i32>(start - anchor);
      const length = <i32>(at - start);
      const distance = <i32>(start - match);
      if (asSnappy) out = snappyCopy(snappyLiterals(out, anchor, literals), length, distance);
      else out = lz4Sequence(out, anchor, literals, length, distance);
      anchor = at;
    }
  }
  const rest = <i32>(end - anchor);
  if (asSnappy) return snappyLiterals(out, anchor, rest);
  return lz4Literals(out, anchor, rest, 0);
}

function snappyLiterals(out: usize, from: usize, size: i32): usize {
  if (size == 0) return out;
  const last = size - 1;
  if (last < 60) store<u8>(out++, <u8>(last << 2));
  else {
    // 60 … 63 say how many bytes hold the length.
    const bytes = (39 - <i32>clz(last)) >> 3;
    store<u8>(out, <u8>((59 + bytes) << 2));
    store<u32>(out, last, 1);
    out += 1 + bytes;
  }
  memory.copy(out, from, size);
  return out + size;
}

function snappyCopy(out: usize, length: i32, distance: i32): usize {
  // A copy is 64 bytes at most, and what is left should be four at least.
  while (length >= 68) {
    out = snappyCopyLong(out, 64, distance);
    length -= 64;
  }
  if (length > 64) {
    out = snappyCopyLong(out, 60, distance);
    length -= 60;
  }
  if (length > 11 || distance >= 2048) return snappyCopyLong(out, length, distance);
  store<u8>(out, <u8>(1 | ((length - 4) << 2) | ((distance >> 8) << 5)));
  store<u8>(out, <u8>distance, 1);
  return out + 2;
}

function snappyCopyLong(out: usize, length: i32, distance: i32): usize {
  store<u8>(out, <u8>(2 | ((length - 1) << 2)));
  store<u16>(out, <u16>distance, 1);
  return out + 3;
}

function lz4Sequence(out: usize, from: usize, literals: i32, length: i32, distance: i32): usize {
  const extra = length - MIN_MATCH;
  out = lz4Literals(out, from, literals, min(extra, 15));
  store<u16>(out, <u16>distance);
  out += 2;
  return extra < 15 ? out : lz4Length(out, extra - 15);
}

/** A token with the low half given, and literals. */
function lz4Literals(out: usize, from: usize, size: i32, low: i32): usize {
  store<u8>(out++, <u8>((min(size, 15) << 4) | low));
  if (size >= 15) out = lz4Length(out, size - 15);
  memory.copy(out, from, size);
  return out + size;
}

function lz4Length(out: usize, rest: i32): usize {
  for (; rest >= 255; rest -= 255) store<u8>(out++, 255);
  store<u8>(out, <u8>rest);
  return out + 1;
}
