/** UTF-8 as RFC 3629 has it, sixteen bytes at a time (J. Keiser, D. Lemire: Validating UTF-8 in less than one instruction per byte, 2021). */

const TOO_SHORT: u8 = 1;
const TOO_LONG: u8 = 2;
const OVERLONG_3: u8 = 4;
const TOO_LARGE: u8 = 8;
const SURROGATE: u8 = 16;
const OVERLONG_2: u8 = 32;
const TOO_LARGE_1000: u8 = 64;
const OVERLONG_4: u8 = 64;
const TWO_CONTS: u8 = 128;
const CARRY: u8 = TOO_SHORT | TOO_LONG | TWO_CONTS;

/** Errors that are possible given the high half of a byte, its low half, and the high half of the byte behind it. */
const FIRST_HIGH: v128 = i8x16(
  TOO_LONG,
  TOO_LONG,
  TOO_LONG,
  TOO_LONG,
  TOO_LONG,
  TOO_LONG,
  TOO_LONG,
  TOO_LONG,
  TWO_CONTS,
  TWO_CONTS,
  TWO_CONTS,
  TWO_CONTS,
  TOO_SHORT | OVERLONG_2,
  TOO_SHORT,
  TOO_SHORT | OVERLONG_3 | SURROGATE,
  TOO_SHORT | TOO_LARGE | TOO_LARGE_1000 | OVERLONG_4,
);
const FIRST_LOW: v128 = i8x16(
  CARRY | OVERLONG_3 | OVERLONG_2 | OVERLONG_4,
  CARRY | OVERLONG_2,
  CARRY,
  CARRY,
  CARRY | TOO_LARGE,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000 | SURROGATE,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
  CARRY | TOO_LARGE | TOO_LARGE_1000,
);
const SECOND_HIGH: v128 = i8x16(
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_LONG | OVERLONG_2 | TWO_CONTS | OVERLONG_3 | TOO_LARGE_1000 | OVERLONG_4,
  TOO_LONG | OVERLONG_2 | TWO_CONTS | OVERLONG_3 | TOO_LARGE,
  TOO_LONG | OVERLONG_2 | TWO_CONTS | SURROGATE | TOO_LARGE,
  TOO_LONG | OVERLONG_2 | TWO_CONTS | SURROGATE | TOO_LARGE,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
  TOO_SHORT,
);

/** Bits where `input` does not go on with what `previous`, the sixteen bytes before it, began. */
function faults(input: v128, previous: v128): v128 {
  const one = i8x16.shuffle(previous, input, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30);
  const two = i8x16.shuffle(previous, input, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29);
  const three = i8x16.shuffle(previous, input, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28);
  const special = v128.and(
    v128.and(
      i8x16.swizzle(FIRST_HIGH, i8x16.shr_u(one, 4)),
      i8x16.swizzle(FIRST_LOW, v128.and(one, i8x16.splat(0x0f))),
    ),
    i8x16.swizzle(SECOND_HIGH, i8x16.shr_u(input, 4)),
  );
  const third = i8x16.sub_sat_u(two, i8x16.splat(0x60));
  const fourth = i8x16.sub_sat_u(three, i8x16.splat(0x70));
  return v128.xor(v128.and(v128.or(third, fourth), i8x16.splat(<i8>0x80)), special);
}

/** Bytes at the end of `[start, end)` that may begin a character that goes on behind it. */
function cutOff(start: usize, end: usize): usize {
  for (let back: usize = 1; back <= 3 && end - back >= start; back++) {
    const c = load<u8>(end - back);
    if (c < 0x80) return 0;
    if (c >= 0xc0) {
      const length: usize = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      return length > back ? back : 0;
    }
  }
  return 0;
}

/** Bytes from `start` on, which begins a character, that are known to be whole valid characters: all but a cut one, or 0. */
export function wholeUtf8(start: usize, end: usize): usize {
  const stop = end - cutOff(start, end);
  let at = start;
  let previous = i8x16.splat(0);
  let fault = i8x16.splat(0);
  while (at + 64 <= stop) {
    const a = v128.load(at);
    const b = v128.load(at, 16);
    const c = v128.load(at, 32);
    const d = v128.load(at, 48);
    if (i8x16.bitmask(v128.or(v128.or(a, b), v128.or(c, d))) === 0) {
      // A character that `previous` left open is a fault in the first of these blocks.
      fault = v128.or(fault, faults(a, previous));
    } else {
      fault = v128.or(fault, faults(a, previous));
      fault = v128.or(fault, faults(b, a));
      fault = v128.or(fault, faults(c, b));
      fault = v128.or(fault, faults(d, c));
    }
    previous = d;
    at += 64;
  }
  // The rest with zeros behind it, among which an open character is a fault, too.
  for (; at < stop || at === stop; at += 16) {
    let rest = v128.load(at);
    const left = stop - at;
    if (left < 16) {
      const index = i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
      rest = v128.and(rest, i8x16.lt_u(index, i8x16.splat(<i8>left)));
    }
    fault = v128.or(fault, faults(rest, previous));
    previous = rest;
    if (left < 16) break;
  }
  return v128.any_true(fault) ? 0 : stop - start;
}
