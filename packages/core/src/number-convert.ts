/** Numeric columns as other numeric types, value by value: what does not fit exactly is reported, never rounded. */

import { isValid } from "./bitmap.js";
import type { Column } from "./columns.js";
import { fromHalves, isSafe, readInt128, writeInt128 } from "./integers.js";
import { bytesOf, typedValues, valueBytes, wordsOf } from "./layout.js";
import type { DataType } from "./schema.js";

/** Told the position of each value that does not fit; its slot is left 0. */
export type Misfit = (index: number) => void;

/**
 * The column as another numeric type. Floats fit integers where they are whole, float32 where it is exact, and
 * decimals by their shortest decimal text; decimals fit floats up to 15 significant digits or where the float is exact.
 */
export function convertNumbers(column: Column, to: DataType, misfit: Misfit): Column {
  const numbers = exactNumbers(column);
  const bytes = new Uint8Array(column.length * valueBytes(to));
  const store = numberStore(to, bytes);
  const exact = exactReader(column);
  const storeExact = exactStore(to, bytes);
  for (let i = 0; i < column.length; i++) {
    if (!isValid(column.validity, i)) continue;
    if (numbers !== undefined && store(i, numbers[i]!)) continue;
    const value = exact(i);
    if (!(typeof value === "number" ? store(i, value) : storeExact(i, value))) misfit(i);
  }
  return { ...column, type: to, values: typedValues(to, bytes) };
}

/** A finite number as `unscaled × 10^-scale`; NaN and infinities as they are. */
type Exact = { readonly unscaled: bigint; readonly scale: number } | number;

/** The values as numbers where all are exact so. What lies under nulls does not matter. */
function exactNumbers(column: Column): ArrayLike<number> | undefined {
  const { kind } = column.type;
  if (kind === "decimal") return undefined;
  if (kind !== "int64" && kind !== "uint64") return column.values as Float64Array;
  const words = wordsOf(column.values!);
  const out = new Float64Array(column.length);
  for (let i = 0; i < out.length; i++) {
    const high = kind === "int64" ? words[2 * i + 1]! | 0 : words[2 * i + 1]!;
    if (!isSafe(high) && isValid(column.validity, i)) return undefined;
    out[i] = fromHalves(words[2 * i]!, high);
  }
  return out;
}

function exactReader(column: Column): (index: number) => Exact {
  const { type } = column;
  switch (type.kind) {
    case "decimal": {
      const bytes = bytesOf(column.values!);
      return (i) => ({ unscaled: readInt128(bytes, i * 16), scale: type.scale });
    }
    case "int64":
    case "uint64": {
      const values = column.values as BigInt64Array;
      return (i) => ({ unscaled: values[i]!, scale: 0 });
    }
    default: {
      const values = column.values as Float64Array;
      return (i) => decimalOf(values[i]!);
    }
  }
}

/** Whole numbers as they are, others as the shortest decimal that reads back as the number. */
function decimalOf(value: number): Exact {
  if (!Number.isFinite(value)) return value;
  if (Number.isInteger(value)) return { unscaled: BigInt(value), scale: 0 };
  const [mantissa, exponent = "0"] = value.toExponential().split("e");
  const [whole, fraction = ""] = mantissa!.split(".");
  return { unscaled: BigInt(`${whole}${fraction}`), scale: fraction.length - Number(exponent) };
}

const BITS: ReadonlyMap<string, { readonly bits: number; readonly signed: boolean }> = new Map([
  ["int8", { bits: 8, signed: true }],
  ["int16", { bits: 16, signed: true }],
  ["int32", { bits: 32, signed: true }],
  ["int64", { bits: 64, signed: true }],
  ["uint8", { bits: 8, signed: false }],
  ["uint16", { bits: 16, signed: false }],
  ["uint32", { bits: 32, signed: false }],
  ["uint64", { bits: 64, signed: false }],
]);

/** Stores a number if that is exact; false leaves the slot 0 and the judgement to {@link exactStore}. */
function numberStore(to: DataType, bytes: Uint8Array): (index: number, value: number) => boolean {
  const integer = BITS.get(to.kind);
  if (integer) {
    const { bits, signed } = integer;
    const min = signed ? -(2 ** (bits - 1)) : 0;
    const max = Math.min(signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1, Number.MAX_SAFE_INTEGER);
    const least = Math.max(min, Number.MIN_SAFE_INTEGER);
    if (bits === 64) {
      const words = wordsOf(bytes);
      return (i, value) => {
        if (!(Number.isInteger(value) && value >= least && value <= max)) return false;
        words[2 * i] = value;
        words[2 * i + 1] = Math.floor(value / 2 ** 32);
        return true;
      };
    }
    const values = typedValues(to, bytes) as Int32Array;
    return (i, value) => {
      if (!(Number.isInteger(value) && value >= min && value <= max)) return false;
      values[i] = value;
      return true;
    };
  }
  if (to.kind === "decimal") {
    const words = wordsOf(bytes);
    const limit = Math.min(10 ** to.precision, Number.MAX_SAFE_INTEGER);
    const { scale } = to;
    return (i, value) => {
      if (scale !== 0 || !Number.isInteger(value) || Math.abs(value) >= limit) return false;
      const high = Math.floor(value / 2 ** 32);
      words[4 * i] = value;
      words[4 * i + 1] = high;
      words[4 * i + 2] = words[4 * i + 3] = high < 0 ? -1 : 0;
      return true;
    };
  }
  const values = typedValues(to, bytes) as Float64Array;
  const single = to.kind === "float32";
  return (i, value) => {
    if (single && Math.fround(value) !== value && !Number.isNaN(value)) return false;
    values[i] = value;
    return true;
  };
}

function exactStore(to: DataType, bytes: Uint8Array): (index: number, value: Exclude<Exact, number>) => boolean {
  const integer = BITS.get(to.kind);
  if (integer?.bits === 64) {
    const view = new DataView(bytes.buffer);
    const fits = integer.signed ? BigInt.asIntN : BigInt.asUintN;
    return (i, value) => {
      const whole = rescale(value, 0);
      if (whole === undefined || fits(64, whole) !== whole) return false;
      view.setBigUint64(i * 8, BigInt.asUintN(64, whole), true);
      return true;
    };
  }
  if (integer) {
    const store = numberStore(to, bytes);
    return (i, value) => {
      const whole = rescale(value, 0);
      return whole !== undefined && store(i, Number(whole));
    };
  }
  if (to.kind === "decimal") {
    const limit = 10n ** BigInt(to.precision);
    return (i, value) => {
      const unscaled = rescale(value, to.scale);
      if (unscaled === undefined || unscaled >= limit || unscaled <= -limit) return false;
      writeInt128(bytes, i * 16, unscaled);
      return true;
    };
  }
  const store = numberStore(to, bytes);
  return (i, value) => {
    const number = Number(`${value.unscaled}e${-value.scale}`);
    return isFaithful(value, number) && store(i, number);
  };
}

/** The unscaled value at another scale, if no digit is lost. */
function rescale({ unscaled, scale }: Exclude<Exact, number>, to: number): bigint | undefined {
  if (to >= scale) return unscaled * 10n ** BigInt(to - scale);
  const divisor = 10n ** BigInt(scale - to);
  return unscaled % divisor === 0n ? unscaled / divisor : undefined;
}

/** Doubles keep any 15 significant digits; beyond, only numbers that are exact in binary. */
function isFaithful(value: Exclude<Exact, number>, number: number): boolean {
  const digits = String(value.unscaled).replace(/^-|0+$/g, "");
  if (digits.length <= 15) return true;
  const whole = rescale(value, 0);
  return whole !== undefined && BigInt(number) === whole;
}
