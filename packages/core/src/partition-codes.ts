/**
 * The partition value of every row of a column, as a dense code: equal values have equal codes, numbered in order of
 * first appearance. Works over whole columns; only distinct values become JavaScript values.
 */

import { hexText, uuidText } from "./binary-text.js";
import { getBit, isValid } from "./bitmap.js";
import { bucketOf, hashDecimal } from "./bucket.js";
import { DAY_MICROS, HOUR_MICROS, monthsFromDays } from "./calendar.js";
import type { Column, PartitionValue } from "./columns.js";
import { divideHalves, fromHalves, isSafe, readInt128 } from "./integers.js";
import { bytesOf, valueBytes, wordsOf } from "./layout.js";
import { murmur3, murmur3Long } from "./murmur3.js";
import type { Transform } from "./transforms.js";

export interface PartitionCodes {
  /** One per row. */
  readonly codes: Uint32Array;
  /** The value of each code. */
  readonly values: PartitionValue[];
}

/** Applies a transform to a column. Nulls have a code of their own, whose value is null. */
export function partitionCodes(column: Column, transform: Transform): PartitionCodes {
  switch (column.type.kind) {
    case "string":
    case "binary":
    case "fixed":
    case "uuid":
    case "decimal":
      return transform.kind === "bucket"
        ? codeNumbers(column, bucketBytes(column, transform.buckets), toBigInt)
        : codeBytes(column, transform);
    case "bool":
      return codeNumbers(column, bitsAsNumbers(column), (value) => value === 1);
    case "float32":
    case "float64":
      // −0 and 0 are one partition (adding 0 makes them one value), and so are all NaN.
      return codeNumbers(column, column.values as Float32Array | Float64Array, (value) => value + 0);
    default: {
      const numbers = transformNumbers(column, transform);
      return numbers ? codeNumbers(column, numbers, toBigInt) : codeBigInts(column, transform);
    }
  }
}

function toBigInt(value: number): bigint {
  return BigInt(value);
}

/** Codes of rows in order, and the null code when it is met. */
class Coder {
  readonly codes: Uint32Array;
  readonly values: PartitionValue[] = [];
  #nullCode = -1;

  constructor(length: number) {
    this.codes = new Uint32Array(length);
  }

  add(value: PartitionValue): number {
    return this.values.push(value) - 1;
  }

  nullCode(): number {
    if (this.#nullCode < 0) this.#nullCode = this.add(null);
    return this.#nullCode;
  }
}

function codeNumbers(
  column: Column,
  numbers: ArrayLike<number>,
  toValue: (value: number) => PartitionValue,
): PartitionCodes {
  const coder = new Coder(column.length);
  const { codes } = coder;
  // Map compares by SameValueZero: NaN equals itself, −0 equals 0.
  const known = new Map<number, number>();
  let last = Number.NaN;
  let lastCode = 0;
  for (let i = 0; i < codes.length; i++) {
    if (!isValid(column.validity, i)) {
      codes[i] = coder.nullCode();
      continue;
    }
    const value = numbers[i]!;
    if (value !== last) {
      let code = known.get(value);
      if (code === undefined) {
        code = coder.add(toValue(value));
        known.set(value, code);
      }
      last = value;
      lastCode = code;
    }
    codes[i] = lastCode;
  }
  return coder;
}

/** The rare case of integers beyond 2^53. */
function codeBigInts(column: Column, transform: Transform): PartitionCodes {
  const coder = new Coder(column.length);
  const values = column.values as BigInt64Array | BigUint64Array;
  const known = new Map<bigint, number>();
  for (let i = 0; i < column.length; i++) {
    if (!isValid(column.validity, i)) {
      coder.codes[i] = coder.nullCode();
      continue;
    }
    const value = truncateBigInt(values[i]!, transform);
    let code = known.get(value);
    if (code === undefined) {
      code = coder.add(value);
      known.set(value, code);
    }
    coder.codes[i] = code;
  }
  return coder;
}

/** `v - (((v % W) + W) % W)`: rounds toward negative infinity (Iceberg spec, "Truncate Transform Details"). */
function truncateBigInt(value: bigint, transform: Transform): bigint {
  if (transform.kind !== "truncate") return value;
  const width = BigInt(transform.width);
  return value - (((value % width) + width) % width);
}

function bitsAsNumbers(column: Column): Uint8Array {
  const bits = bytesOf(column.values!);
  const out = new Uint8Array(column.length);
  for (let i = 0; i < out.length; i++) out[i] = getBit(bits, i) ? 1 : 0;
  return out;
}

/** Transformed integers, dates and times, or undefined where they are not exact as numbers. */
function transformNumbers(column: Column, transform: Transform): ArrayLike<number> | undefined {
  switch (transform.kind) {
    case "bucket":
      return bucketIntegers(column, transform.buckets);
    case "identity":
      return exactNumbers(column);
    case "truncate": {
      const numbers = exactNumbers(column);
      const { width } = transform;
      return numbers && Float64Array.from(numbers, (value) => value - (((value % width) + width) % width));
    }
    case "hour":
      return divided(column, HOUR_MICROS);
    case "day":
      return daysOf(column);
    default: {
      const days = daysOf(column);
      const out = new Float64Array(days.length);
      let lastDay = 0;
      let months = 0;
      for (let i = 0; i < out.length; i++) {
        const day = days[i]!;
        if (day !== lastDay) {
          lastDay = day;
          months = monthsFromDays(day);
        }
        out[i] = transform.kind === "year" ? Math.floor(months / 12) : months;
      }
      return out;
    }
  }
}

function daysOf(column: Column): ArrayLike<number> {
  return column.type.kind === "date" ? (column.values as Int32Array) : divided(column, DAY_MICROS);
}

function divided(column: Column, divisor: number): Float64Array {
  const words = wordsOf(column.values!);
  const out = new Float64Array(column.length);
  for (let i = 0; i < out.length; i++) out[i] = divideHalves(words[2 * i]!, words[2 * i + 1]! | 0, divisor);
  return out;
}

function exactNumbers(column: Column): ArrayLike<number> | undefined {
  if (valueBytes(column.type) < 8) return column.values as Int32Array;
  const words = wordsOf(column.values!);
  const out = new Float64Array(column.length);
  const unsigned = column.type.kind === "uint64";
  for (let i = 0; i < out.length; i++) {
    const high = unsigned ? words[2 * i + 1]! : words[2 * i + 1]! | 0;
    // What lies under a null does not matter.
    if (!isSafe(high) && isValid(column.validity, i)) return undefined;
    out[i] = fromHalves(words[2 * i]!, high);
  }
  return out;
}

/** Integers of all widths, dates, times and timestamps hash as eight bytes (Iceberg spec, appendix B). */
function bucketIntegers(column: Column, buckets: number): Uint32Array {
  const out = new Uint32Array(column.length);
  if (column.type.kind === "uint64") {
    // Iceberg has no unsigned 64-bit integer: it is published as decimal(20,0), and hashes as one.
    const values = column.values as BigUint64Array;
    const scratch = new Uint8Array(16);
    const view = new DataView(scratch.buffer);
    for (let i = 0; i < out.length; i++) {
      view.setBigUint64(0, values[i]!, true);
      out[i] = bucketOf(hashDecimal(scratch, 0), buckets);
    }
  } else if (valueBytes(column.type) === 8) {
    const words = wordsOf(column.values!);
    for (let i = 0; i < out.length; i++) out[i] = bucketOf(murmur3Long(words[2 * i]!, words[2 * i + 1]!), buckets);
  } else {
    const values = column.values as Int32Array | Uint32Array;
    for (let i = 0; i < out.length; i++) {
      const value = values[i]!;
      out[i] = bucketOf(murmur3Long(value | 0, value < 0 ? -1 : 0), buckets);
    }
  }
  return out;
}

function bucketBytes(column: Column, buckets: number): Uint32Array {
  const bytes = bytesOf(column.values!);
  const out = new Uint32Array(column.length);
  const width = valueBytes(column.type);
  for (let i = 0; i < out.length; i++) {
    if (!isValid(column.validity, i)) continue;
    const start = column.offsets ? column.offsets[i]! : i * width;
    const end = column.offsets ? column.offsets[i + 1]! : start + width;
    out[i] = bucketOf(column.type.kind === "decimal" ? hashDecimal(bytes, start) : murmur3(bytes, start, end), buckets);
  }
  return out;
}

/** Text, binary, uuid, fixed and decimal: distinct byte strings by an open hash table of row ranges. */
function codeBytes(column: Column, transform: Transform): PartitionCodes {
  const coder = new Coder(column.length);
  const bytes = bytesOf(column.values!);
  const width = valueBytes(column.type);
  const toValue = bytesToValue(column);
  const limit = transform.kind === "truncate" && column.offsets ? transform.width : undefined;
  const countsCodePoints = column.type.kind === "string";
  const table = new BytesTable(bytes);
  const codeOfEntry: number[] = [];
  for (let i = 0; i < column.length; i++) {
    if (!isValid(column.validity, i)) {
      coder.codes[i] = coder.nullCode();
      continue;
    }
    const start = column.offsets ? column.offsets[i]! : i * width;
    let end = column.offsets ? column.offsets[i + 1]! : start + width;
    if (limit !== undefined && end - start > limit) {
      end = countsCodePoints ? codePointsEnd(bytes, start, end, limit) : start + limit;
    }
    // The table numbers its own entries: nulls may have taken a code among them.
    const known = codeOfEntry.length;
    const entry = table.find(start, end);
    if (entry === known) codeOfEntry.push(coder.add(toValue(bytes, start, end)));
    coder.codes[i] = codeOfEntry[entry]!;
  }
  if (column.type.kind === "decimal" && transform.kind === "truncate") return mergeTruncated(coder, transform);
  return coder;
}

/** Where the first `count` code points of UTF-8 text end. */
function codePointsEnd(bytes: Uint8Array, start: number, end: number, count: number): number {
  let left = count;
  let at = start;
  for (; at < end; at++) if ((bytes[at]! & 0xc0) !== 0x80 && left-- === 0) break;
  return at;
}

/** Truncates the distinct decimals and joins those that became equal. */
function mergeTruncated(coder: Coder, transform: Transform): PartitionCodes {
  const known = new Map<PartitionValue, number>();
  const values: PartitionValue[] = [];
  const codes = coder.values.map((value) => {
    const truncated = typeof value === "bigint" ? truncateBigInt(value, transform) : value;
    let code = known.get(truncated);
    if (code === undefined) {
      code = values.push(truncated) - 1;
      known.set(truncated, code);
    }
    return code;
  });
  return { codes: coder.codes.map((code) => codes[code]!), values };
}

function bytesToValue(column: Column): (bytes: Uint8Array, start: number, end: number) => PartitionValue {
  switch (column.type.kind) {
    case "string": {
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
      return (bytes, start, end) => decoder.decode(bytes.subarray(start, end));
    }
    case "decimal":
      return (bytes, start) => readInt128(bytes, start);
    case "uuid":
      return uuidText;
    default:
      return hexText;
  }
}

/** Distinct byte ranges of one buffer. */
class BytesTable {
  readonly #bytes: Uint8Array;
  #slots = new Int32Array(64).fill(-1);
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #hashes: number[] = [];
  #lastEntry = -1;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** The entry of an equal range, or the next number if there was none. */
  find(start: number, end: number): number {
    // Clustered data repeats its neighbour.
    if (this.#lastEntry >= 0 && this.#equals(this.#lastEntry, start, end)) return this.#lastEntry;
    const hash = murmur3(this.#bytes, start, end);
    const mask = this.#slots.length - 1;
    let slot = hash & mask;
    for (let entry = this.#slots[slot]!; entry >= 0; entry = this.#slots[slot]!) {
      if (this.#hashes[entry] === hash && this.#equals(entry, start, end)) {
        this.#lastEntry = entry;
        return entry;
      }
      slot = (slot + 1) & mask;
    }
    const entry = this.#starts.length;
    this.#slots[slot] = entry;
    this.#starts.push(start);
    this.#ends.push(end);
    this.#hashes.push(hash);
    this.#lastEntry = entry;
    if (this.#starts.length * 2 > this.#slots.length) this.#grow();
    return entry;
  }

  #equals(entry: number, start: number, end: number): boolean {
    let at = this.#starts[entry]!;
    if (this.#ends[entry]! - at !== end - start) return false;
    for (let i = start; i < end; i++) if (this.#bytes[i] !== this.#bytes[at++]) return false;
    return true;
  }

  #grow(): void {
    const slots = new Int32Array(this.#slots.length * 2).fill(-1);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.#hashes.length; entry++) {
      let slot = this.#hashes[entry]! & mask;
      while (slots[slot]! >= 0) slot = (slot + 1) & mask;
      slots[slot] = entry;
    }
    this.#slots = slots;
  }
}
