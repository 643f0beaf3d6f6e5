/** Column statistics of a data file: taken while encoding, or read from a footer on import. */

import type { DataType } from "./schema.js";

/** A bound of a column's values: the type's own order, strings and binary by unsigned bytes. */
export type BoundValue = bigint | number | boolean | Uint8Array;

/**
 * Statistics of one leaf column over one data file, keyed by field id. Absent bounds mean unknown, never "no values".
 * Bounds ignore nulls and NaN. −0 and 0 count as equal: a bound of zero covers both.
 */
export interface ColumnStatistics {
  readonly fieldId: number;
  /** Values including nulls; for leaves below lists this counts elements. */
  readonly valueCount: number;
  readonly nullCount: number;
  /** Float columns: whether a NaN is present. False for all other types. */
  readonly hasNaN: boolean;
  /**
   * Integers, decimals (unscaled), dates (days), times and timestamps (microseconds) as bigint; floats as number;
   * bool as boolean; string, json, binary, fixed, uuid as bytes, `max` rounded up when truncated.
   */
  readonly min?: BoundValue;
  readonly max?: BoundValue;
  /** False where a byte bound was truncated (min rounded down, max rounded up). */
  readonly minExact: boolean;
  readonly maxExact: boolean;
  /** Bytes of the column's pages in the file. */
  readonly storedBytes: number;
}

/** Order of two bounds of one column: negative, zero or positive. Bytes compare unsigned; −0 equals 0. */
export function compareBounds(a: BoundValue, b: BoundValue): number {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  return a < b ? -1 : a > b ? 1 : 0;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/**
 * Writes a bound as bytes whose unsigned order is the type's own order, for indexes that know only bytes:
 * integers, dates, times and timestamps as 8 bytes, big-endian, sign flipped; uint64 as 8 bytes unsigned; decimals as
 * 16 bytes, sign flipped; floats (also float32) as a float64 whose bits are flipped, NaN above all, −0 as 0; bool as
 * one byte; everything else as it is.
 * @throws RangeError if the value is not of the type
 */
export function encodeBound(type: DataType, value: BoundValue): Uint8Array {
  switch (type.kind) {
    case "bool":
      return Uint8Array.of(value === true ? 1 : 0);
    case "float32":
    case "float64": {
      const bytes = new Uint8Array(8);
      const view = new DataView(bytes.buffer);
      // Adding 0 turns −0 into 0: a bound of zero covers both.
      view.setFloat64(0, Number(value) + 0);
      if ((bytes[0]! & 0x80) === 0) bytes[0]! ^= 0x80;
      else for (let i = 0; i < 8; i++) bytes[i]! ^= 0xff;
      return bytes;
    }
    case "uint64": {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigUint64(0, integer(type, value));
      return bytes;
    }
    case "decimal": {
      const bytes = new Uint8Array(16);
      const view = new DataView(bytes.buffer);
      const unscaled = integer(type, value);
      view.setBigInt64(0, unscaled >> 64n);
      view.setBigUint64(8, unscaled & 0xffff_ffff_ffff_ffffn);
      bytes[0]! ^= 0x80;
      return bytes;
    }
    case "int8":
    case "int16":
    case "int32":
    case "int64":
    case "uint8":
    case "uint16":
    case "uint32":
    case "date":
    case "time":
    case "timestamp":
    case "timestamptz": {
      const bytes = new Uint8Array(8);
      new DataView(bytes.buffer).setBigInt64(0, integer(type, value));
      bytes[0]! ^= 0x80;
      return bytes;
    }
    default:
      if (!(value instanceof Uint8Array)) throw new RangeError(`a bound of ${type.kind} is bytes`);
      return value;
  }
}

function integer(type: DataType, value: BoundValue): bigint {
  if (typeof value !== "bigint") throw new RangeError(`a bound of ${type.kind} is a bigint`);
  return value;
}

/** Reads what {@link encodeBound} wrote. */
export function decodeBound(type: DataType, bytes: Uint8Array): BoundValue {
  switch (type.kind) {
    case "bool":
      return bytes[0] === 1;
    case "float32":
    case "float64": {
      const copy = bytes.slice();
      if ((copy[0]! & 0x80) !== 0) copy[0]! ^= 0x80;
      else for (let i = 0; i < 8; i++) copy[i]! ^= 0xff;
      return viewOf(copy).getFloat64(0);
    }
    case "uint64":
      return viewOf(bytes).getBigUint64(0);
    case "decimal": {
      const view = viewOf(bytes);
      return (BigInt.asIntN(64, view.getBigUint64(0) ^ SIGN_64) << 64n) | view.getBigUint64(8);
    }
    case "int8":
    case "int16":
    case "int32":
    case "int64":
    case "uint8":
    case "uint16":
    case "uint32":
    case "date":
    case "time":
    case "timestamp":
    case "timestamptz":
      return BigInt.asIntN(64, viewOf(bytes).getBigUint64(0) ^ SIGN_64);
    default:
      return bytes;
  }
}

const SIGN_64 = 1n << 63n;

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Bounds of some values of a leaf column, before they are truncated for storage. */
export interface Bounds {
  readonly min?: BoundValue;
  readonly max?: BoundValue;
  readonly minExact: boolean;
  readonly maxExact: boolean;
  readonly hasNaN: boolean;
  /** Values looked at that are neither null nor NaN. Bounds missing where this is not 0 are unknown. */
  readonly values: number;
}

export const NO_BOUNDS: Bounds = { minExact: false, maxExact: false, hasNaN: false, values: 0 };

/**
 * Cuts byte bounds to `limit` bytes: the minimum downwards, the maximum upwards. Text is cut between characters and
 * stays valid UTF-8. A maximum that cannot be rounded up (all U+10FFFF, all 0xFF) is left out.
 */
export function truncateBounds(type: DataType, bounds: Bounds, limit: number): Bounds {
  const { min, max } = bounds;
  const text = type.kind === "string" || type.kind === "json";
  if (!text && type.kind !== "binary" && type.kind !== "fixed") return bounds;
  let cut = bounds;
  if (min instanceof Uint8Array && min.length > limit) {
    cut = { ...cut, min: min.slice(0, text ? characterStart(min, limit) : limit), minExact: false };
  }
  if (max instanceof Uint8Array && max.length > limit) {
    const rounded = text ? roundUpText(max, limit) : roundUpBytes(max, limit);
    if (rounded === undefined) {
      const { max: _dropped, ...rest } = cut;
      cut = { ...rest, maxExact: false };
    } else {
      cut = { ...cut, max: rounded, maxExact: false };
    }
  }
  return cut;
}

/** The start of the character that byte `at` belongs to. */
function characterStart(bytes: Uint8Array, at: number): number {
  let start = at;
  while (start > 0 && (bytes[start]! & 0xc0) === 0x80) start--;
  return start;
}

function roundUpBytes(bytes: Uint8Array, limit: number): Uint8Array | undefined {
  for (let end = limit; end > 0; end--) {
    if (bytes[end - 1]! < 0xff) {
      const rounded = bytes.slice(0, end);
      rounded[end - 1]!++;
      return rounded;
    }
  }
  return undefined;
}

/** UTF-8's byte order is the order of code points, so the next code point at the end is above all that begins alike. */
function roundUpText(bytes: Uint8Array, limit: number): Uint8Array | undefined {
  const decoder = new TextDecoder();
  for (let end = characterStart(bytes, limit); end > 0; end = characterStart(bytes, end - 1)) {
    const start = characterStart(bytes, end - 1);
    const character = decoder.decode(bytes.subarray(start, end)).codePointAt(0) ?? 0x10ffff;
    // Bytes that are no UTF-8 decode to U+FFFD; going up from there would not go up.
    if (character === 0xfffd && bytes[start] !== 0xef) continue;
    // Surrogates are no characters: after U+D7FF comes U+E000.
    const next = character === 0xd7ff ? 0xe000 : character + 1;
    if (next > 0x10ffff) continue;
    const tail = new TextEncoder().encode(String.fromCodePoint(next));
    if (start + tail.length > limit) continue;
    const rounded = new Uint8Array(start + tail.length);
    rounded.set(bytes.subarray(0, start));
    rounded.set(tail, start);
    return rounded;
  }
  return undefined;
}

/** Bounds of two sets of values together. What is unknown of one side is unknown of both. */
export function mergeBounds(a: Bounds, b: Bounds): Bounds {
  const hasNaN = a.hasNaN || b.hasNaN;
  if (a.values === 0) return b.hasNaN === hasNaN ? b : { ...b, hasNaN };
  if (b.values === 0) return a.hasNaN === hasNaN ? a : { ...a, hasNaN };
  const [min, minExact] = outer(a.min, a.minExact, b.min, b.minExact, -1);
  const [max, maxExact] = outer(a.max, a.maxExact, b.max, b.maxExact, 1);
  return {
    ...(min === undefined ? {} : { min }),
    ...(max === undefined ? {} : { max }),
    minExact,
    maxExact,
    hasNaN,
    values: a.values + b.values,
  };
}

function outer(
  a: BoundValue | undefined,
  aExact: boolean,
  b: BoundValue | undefined,
  bExact: boolean,
  sign: number,
): [BoundValue | undefined, boolean] {
  if (a === undefined || b === undefined) return [undefined, false];
  const order = compareBounds(a, b) * sign;
  if (order === 0) return [a, aExact || bExact];
  return order > 0 ? [a, aExact] : [b, bExact];
}
