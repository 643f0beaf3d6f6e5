/**
 * Integers wider than 32 bits, as they lie in memory. Hot loops take 64-bit ones as two 32-bit halves, low first, and
 * as a `number` where that is exact, so that no BigInt is made per value.
 */

const TWO32 = 4294967296;

/** High halves of integers that are exact as a `number`: |v| < 2^53. */
const SAFE_HIGH = 1 << 21;

/** Whether the integer with this (signed) high half is exact as a `number`. */
export function isSafe(high: number): boolean {
  return high >= -SAFE_HIGH && high < SAFE_HIGH;
}

export function fromHalves(low: number, high: number): number {
  return high * TWO32 + low;
}

/** Floor of a signed 64-bit integer divided by `divisor` ≤ 2^37, exact where the quotient is below 2^53. */
export function divideHalves(low: number, high: number, divisor: number): number {
  if (isSafe(high)) return Math.floor(fromHalves(low, high) / divisor);
  return Number(floorDivide(bigFromHalves(low, high), BigInt(divisor)));
}

export function bigFromHalves(low: number, high: number): bigint {
  return (BigInt(high) << 32n) | BigInt(low >>> 0);
}

/** Division that rounds toward negative infinity; `divisor` > 0. */
export function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return value < 0n && quotient * divisor !== value ? quotient - 1n : quotient;
}

/** A 16-byte little-endian two's complement integer: the unscaled value of a decimal. */
export function readInt128(bytes: Uint8Array, start: number): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, 16);
  return (view.getBigInt64(8, true) << 64n) | view.getBigUint64(0, true);
}

/** Writes what {@link readInt128} reads; the value must fit. */
export function writeInt128(bytes: Uint8Array, start: number, value: bigint): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset + start, 16);
  view.setBigInt64(0, BigInt.asIntN(64, value), true);
  view.setBigInt64(8, value >> 64n, true);
}

/** A decimal as text, with all digits of its scale: `-0.01`, `5.00`. */
export function formatDecimal(unscaled: bigint, scale: number): string {
  if (scale === 0) return String(unscaled);
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, "0");
  return `${unscaled < 0n ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}
