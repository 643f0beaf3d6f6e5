/** Decimal digits → the nearest float64. */

import { multiply, upper } from "./wide";

/** Powers of five that {@link nearest} knows, from 10^−LIMIT to 10^LIMIT: two words each, written by TypeScript. */
const LIMIT: i32 = 100;

let powers: usize = 0;

/** The table is at `address`: for each exponent the upper and the lower word of its 128 leading bits. */
export function setPowers(address: usize): void {
  powers = address;
}

/** Powers of ten that float64 holds exactly. */
const EXACT = memory.data<f64>([
  1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
  1e21, 1e22,
]);

/** `mantissa` × 10^`exponent`, rounded to nearest, ties to even; NaN where this function cannot tell. */
export function nearest(mantissa: u64, exponent: i32): f64 {
  // Both operands are exact, so that the one rounding of the operation is the right one (W. Clinger, 1990).
  if (mantissa < 1 << 53 && exponent >= -22 && exponent <= 22) {
    const value = <f64>mantissa;
    return exponent < 0
      ? value / load<f64>(EXACT + ((<usize>-exponent) << 3))
      : value * load<f64>(EXACT + ((<usize>exponent) << 3));
  }
  if (mantissa === 0) return 0;
  if (exponent < -LIMIT || exponent > LIMIT) return NaN;
  return eiselLemire(mantissa, exponent);
}

/** D. Lemire: Number parsing at a gigabyte per second, 2021, section 5. Normal numbers only. */
function eiselLemire(mantissa: u64, exponent: i32): f64 {
  const zeros = clz(mantissa);
  const w = mantissa << zeros;
  const entry = powers + ((<usize>(exponent + LIMIT)) << 4);
  let low = multiply(w, load<u64>(entry));
  let high = upper;
  // 55 bits are kept; only where all others are ones can the rest of the power matter.
  if ((high & 0x1ff) === 0x1ff) {
    multiply(w, load<u64>(entry, 8));
    const sum = low + upper;
    if (sum < low) high++;
    low = sum;
    if (low === u64.MAX_VALUE && (exponent < -27 || exponent > 55)) return NaN;
  }
  const carry = high >>> 63;
  const shift = carry + 9;
  let bits = high >>> shift;
  let power = <i64>(((152170 + 65536) * exponent) >> 16) + 63 + <i64>carry - <i64>zeros + 1023;
  if (power <= 0) return NaN;
  // Half way between two floats: round to even.
  if (low <= 1 && exponent >= -4 && exponent <= 23 && (bits & 3) === 1 && bits << shift === high) bits &= ~1;
  bits = (bits + (bits & 1)) >>> 1;
  if (bits >= 1 << 53) {
    bits = 1 << 52;
    power++;
  }
  if (power >= 0x7ff) return NaN;
  return reinterpret<f64>((bits & ~((<u64>1) << 52)) | ((<u64>power) << 52));
}
