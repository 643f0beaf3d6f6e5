/** Products of 128 bits, and powers of ten. */

/** The upper half of the last {@link multiply}. */
export let upper: u64 = 0;

/** The lower half of the product; the upper one is in {@link upper}. */
export function multiply(a: u64, b: u64): u64 {
  const a0 = a & 0xffffffff;
  const a1 = a >>> 32;
  const b0 = b & 0xffffffff;
  const b1 = b >>> 32;
  const low = a0 * b0;
  const middle = a1 * b0 + (low >>> 32);
  const other = a0 * b1 + (middle & 0xffffffff);
  upper = a1 * b1 + (middle >>> 32) + (other >>> 32);
  return (other << 32) | (low & 0xffffffff);
}

const TENS = memory.data<u64>([
  1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000, 100000000000, 1000000000000,
  10000000000000, 100000000000000, 1000000000000000, 10000000000000000, 100000000000000000, 1000000000000000000,
  10000000000000000000,
]);

/** 10^exponent, which is at most 19. */
export function tenTo(exponent: i32): u64 {
  return load<u64>(TENS + ((<usize>exponent) << 3));
}
