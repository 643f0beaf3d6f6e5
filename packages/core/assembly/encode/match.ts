/** The end of the bytes at `a`, before `end`, that are equal to those at `b`, which comes before. */
// @ts-ignore: decorator
@inline
export function matchEnd(a: usize, b: usize, end: usize): usize {
  while (a + 8 <= end) {
    const difference = load<u64>(a) ^ load<u64>(b);
    if (difference != 0) return a + (<usize>ctz(difference) >> 3);
    a += 8;
    b += 8;
  }
  while (a < end && load<u8>(a) == load<u8>(b)) {
    a++;
    b++;
  }
  return a;
}
