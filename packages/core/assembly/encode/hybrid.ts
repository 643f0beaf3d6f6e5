/**
 * The RLE / bit-packing hybrid of Encodings.md, for levels and dictionary indexes: runs of eight or more equal values as
 * (count, value), everything between in groups of eight, `width` bits each, lowest bit first. Functions write at `out`
 * and return where they ended; up to eight bytes behind that are clobbered.
 */

export function varint(out: usize, value: u32): usize {
  while (value >= 0x80) {
    store<u8>(out++, value | 0x80);
    value >>>= 7;
  }
  store<u8>(out, value);
  return out + 1;
}

/** A run: also of all levels where none differs. */
export function writeRun(out: usize, value: u32, count: i32, width: i32): usize {
  let to = varint(out, <u32>count << 1);
  for (let bits = 0; bits < width; bits += 8) store<u8>(to++, value >>> bits);
  return to;
}

/** `width` is 0 for a dictionary of one entry, at most 24. */
export function hybrid32(out: usize, values: usize, start: i32, end: i32, width: i32): usize {
  return hybrid<u32>(out, values, start, end, width);
}

/** Levels. */
export function hybrid8(out: usize, values: usize, start: i32, end: i32, width: i32): usize {
  return hybrid<u8>(out, values, start, end, width);
}

// @ts-ignore: decorator
@inline
function hybrid<T>(out: usize, values: usize, start: i32, end: i32, width: i32): usize {
  // A literal run without bytes would confuse some readers.
  if (width == 0) return end > start ? writeRun(out, 0, end - start, 0) : out;
  let literals = start; // where the values begin that are not written yet
  let at = start; // always some eights behind it: only there a run may begin
  while (at + 8 <= end) {
    if (!eightEqual<T>(values + <usize>at * sizeof<T>())) {
      at += 8;
      continue;
    }
    const value = load<T>(values + <usize>at * sizeof<T>());
    let next = at + 8;
    while (next < end && load<T>(values + <usize>next * sizeof<T>()) == value) next++;
    out = writeLiterals<T>(out, values, literals, at, width);
    out = writeRun(out, value, next - at, width);
    literals = next;
    at = next;
  }
  return writeLiterals<T>(out, values, literals, end, width);
}

// @ts-ignore: decorator
@inline
function eightEqual<T>(at: usize): bool {
  if (sizeof<T>() == 1) return load<u64>(at) == <u64>load<u8>(at) * 0x0101010101010101;
  const first = i32x4.splat(load<i32>(at));
  return i32x4.all_true(v128.and(i32x4.eq(first, v128.load(at)), i32x4.eq(first, v128.load(at, 16))));
}

// @ts-ignore: decorator
@inline
function writeLiterals<T>(out: usize, values: usize, start: i32, end: i32, width: i32): usize {
  if (start == end) return out;
  const groups = (end - start + 7) >> 3;
  let to = varint(out, (<u32>groups << 1) | 1);
  const last = to + <usize>groups * width;
  let at = start;
  if (sizeof<T>() == 1) {
    for (; at + 8 <= end; at += 8) {
      store<u64>(to, packEight(load<u64>(values + at), width));
      to += width;
    }
  }
  let pending: u64 = 0;
  let bits = 0;
  for (; at < end; at++) {
    pending |= <u64>load<T>(values + <usize>at * sizeof<T>()) << bits;
    bits += width;
    if (bits >= 32) {
      store<u32>(to, <u32>pending);
      to += 4;
      pending >>= 32;
      bits -= 32;
    }
  }
  // The last group is filled up with zeros.
  while (to < last) {
    store<u32>(to, <u32>pending);
    to += 4;
    pending = 0;
  }
  return last;
}

/** Eight bytes of up to `width` bits side by side: pairs first, then pairs of pairs. */
// @ts-ignore: decorator
@inline
function packEight(bytes: u64, width: i32): u64 {
  const pairs = (bytes & 0x00ff00ff00ff00ff) | ((bytes & 0xff00ff00ff00ff00) >> (8 - width));
  const fours = (pairs & 0x0000ffff0000ffff) | ((pairs & 0xffff0000ffff0000) >> (2 * (8 - width)));
  return (fours & 0xffffffff) | ((fours >> 32) << (4 * width));
}
