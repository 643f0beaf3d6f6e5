/** How a column may grow: the widening table, and the choice of a numeric type by what its values need. */

import type { DataType, SimpleKind } from "./schema.js";

/** A row of the widening table. */
export interface Widening {
  readonly from: string;
  /** In order of preference: the first that holds both the stored and the new values is taken. */
  readonly to: readonly string[];
  readonly when: string;
}

const ALWAYS = "always";
const INTEGER =
  "to another integer type: always; to decimal: all digits fit 38; to float64: the new values have fractions";
const INTEGER_64 = `${INTEGER}, and all stored and new integers are exact in float64 (|n| ≤ 2^53 by the column's statistics)`;

/**
 * Every lossless widening there is. What is not listed does not widen: a change of kind (number, text, bool, object,
 * list) leaves the column as it is, and rows that do not fit it are rejects.
 */
export const wideningTable: readonly Widening[] = [
  { from: "unknown", to: ["any type"], when: "with the first value" },
  { from: "int8", to: ["int16", "int32", "int64", "float64", "decimal"], when: INTEGER },
  { from: "int16", to: ["int32", "int64", "float64", "decimal"], when: INTEGER },
  { from: "int32", to: ["int64", "float64", "decimal"], when: INTEGER },
  { from: "int64", to: ["float64", "decimal"], when: INTEGER_64 },
  { from: "uint8", to: ["uint16", "uint32", "uint64", "int16", "int32", "int64", "float64", "decimal"], when: INTEGER },
  { from: "uint16", to: ["uint32", "uint64", "int32", "int64", "float64", "decimal"], when: INTEGER },
  { from: "uint32", to: ["uint64", "int64", "float64", "decimal"], when: INTEGER },
  { from: "uint64", to: ["float64", "decimal"], when: INTEGER_64 },
  { from: "float32", to: ["float64"], when: ALWAYS },
  {
    from: "decimal",
    to: ["decimal"],
    when: "neither the digits before nor those after the point shrink, at most 38 in all",
  },
  { from: "struct", to: ["struct"], when: "fields are added, or widened by this table; so too in lists and maps" },
];

/** The widening table as Markdown. */
export function formatWideningTable(): string {
  const rows = wideningTable.map(({ from, to, when }) => `| ${from} | ${to.join(", ")} | ${when} |`);
  return ["| from | to | when |", "|---|---|---|", ...rows].join("\n");
}

/** Smallest and largest of some integers. */
export interface IntegerBounds {
  readonly min: bigint;
  readonly max: bigint;
}

/** What a set of numbers needs of a type that is to hold them all exactly. */
export interface NumberNeed {
  /** Bounds of the integers among them, if there are any. */
  readonly integers: IntegerBounds | undefined;
  /** Every integer among them is exact in float64. */
  readonly exact: boolean;
  /** Some are not integers (or count as such, having been written or stored as floats). */
  readonly fractions: boolean;
  /** They may become float64, rounded to the nearest where they have fractions. False for decimals, which are exact. */
  readonly floats: boolean;
  /** Digits before and after the point that hold them all exactly; Infinity where no decimal does. */
  readonly integerDigits: number;
  readonly scale: number;
}

type IntegerKind = Extract<SimpleKind, `int${string}` | `uint${string}`>;

const INTEGER_BOUNDS: ReadonlyMap<string, IntegerBounds> = new Map<IntegerKind, IntegerBounds>([
  ["int8", { min: -(2n ** 7n), max: 2n ** 7n - 1n }],
  ["int16", { min: -(2n ** 15n), max: 2n ** 15n - 1n }],
  ["int32", { min: -(2n ** 31n), max: 2n ** 31n - 1n }],
  ["int64", { min: -(2n ** 63n), max: 2n ** 63n - 1n }],
  ["uint8", { min: 0n, max: 2n ** 8n - 1n }],
  ["uint16", { min: 0n, max: 2n ** 16n - 1n }],
  ["uint32", { min: 0n, max: 2n ** 32n - 1n }],
  ["uint64", { min: 0n, max: 2n ** 64n - 1n }],
]);

const EXACT = { min: -(2n ** 53n), max: 2n ** 53n };
const EXACT_SINGLE = { min: -(2n ** 24n), max: 2n ** 24n };
const MAX_PRECISION = 38;

/** Whether `inner` lies within `outer`. */
function within(inner: IntegerBounds, outer: IntegerBounds): boolean {
  return inner.min >= outer.min && inner.max <= outer.max;
}

/** `Math.min` knows no bigint. */
function least(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

/** The bounds of two sets of integers together. */
export function joinBounds(a: IntegerBounds | undefined, b: IntegerBounds | undefined): IntegerBounds | undefined {
  if (!a || !b) return a ?? b;
  return { min: least(a.min, b.min), max: -least(-a.max, -b.max) };
}

/** Decimal digits of the widest of some integers. */
export function digitsOf(bounds: IntegerBounds | undefined): number {
  if (!bounds) return 0;
  const digits = (value: bigint): number => (value === 0n ? 0 : value.toString().replace("-", "").length);
  return Math.max(digits(bounds.min), digits(bounds.max));
}

/** What all values of a numeric type need; undefined for other types. `bounds` narrows the integers, where known. */
export function needOf(type: DataType, bounds?: IntegerBounds): NumberNeed | undefined {
  const integers = INTEGER_BOUNDS.get(type.kind);
  if (integers) {
    const stored = bounds ?? integers;
    const exact = within(stored, EXACT);
    return { integers: stored, exact, fractions: false, floats: false, integerDigits: digitsOf(stored), scale: 0 };
  }
  switch (type.kind) {
    case "decimal": {
      const integerDigits = type.precision - type.scale;
      const limit = 10n ** BigInt(integerDigits) - 1n;
      return {
        integers: { min: -limit, max: limit },
        exact: type.precision <= 15,
        fractions: type.scale > 0,
        floats: false,
        integerDigits,
        scale: type.scale,
      };
    }
    case "float32":
    case "float64": {
      const unlimited = Number.POSITIVE_INFINITY;
      return {
        integers: undefined,
        exact: true,
        fractions: true,
        floats: true,
        integerDigits: unlimited,
        scale: unlimited,
      };
    }
    default:
      return undefined;
  }
}

/** Whether a column of `type` takes all numbers that need `need`. */
function holds(type: DataType, need: NumberNeed): boolean {
  const bounds = INTEGER_BOUNDS.get(type.kind);
  if (bounds) return !need.fractions && (need.integers === undefined || within(need.integers, bounds));
  switch (type.kind) {
    case "decimal":
      return need.scale <= type.scale && need.integerDigits <= type.precision - type.scale;
    case "float32":
      return need.exact && (need.floats || !need.fractions) && within(need.integers ?? EXACT_SINGLE, EXACT_SINGLE);
    case "float64":
      return need.exact && (need.floats || !need.fractions);
    default:
      return false;
  }
}

function decimalFor(integerDigits: number, scale: number): DataType | undefined {
  const precision = Math.max(1, integerDigits + scale);
  return precision <= MAX_PRECISION ? { kind: "decimal", precision, scale } : undefined;
}

/**
 * The type that a numeric column of type `from` widens to, so that it takes numbers that need `need`: `from` itself if
 * it takes them already, undefined if nothing lossless does. `stored` are bounds of the column's integers; without them
 * a 64-bit column counts as holding its whole range.
 */
export function widenNumber(from: DataType, need: NumberNeed, stored?: IntegerBounds): DataType | undefined {
  if (holds(from, need)) return from;
  const own = needOf(from, stored);
  if (!own) return undefined;
  if (from.kind === "decimal") {
    return decimalFor(Math.max(own.integerDigits, need.integerDigits), Math.max(from.scale, need.scale));
  }
  const both: NumberNeed = {
    integers: joinBounds(own.integers, need.integers),
    exact: own.exact && need.exact,
    fractions: own.fractions || need.fractions,
    floats: own.floats || need.floats,
    integerDigits: Math.max(own.integerDigits, need.integerDigits),
    scale: Math.max(own.scale, need.scale),
  };
  for (const to of wideningTable.find((row) => row.from === from.kind)?.to ?? []) {
    if (to === "decimal") {
      // Wide enough for the type's whole range, not only for what its statistics have seen so far.
      const digits = Math.max(both.integerDigits, digitsOf(INTEGER_BOUNDS.get(from.kind)));
      return both.scale === 0 ? decimalFor(Math.max(digits, MAX_PRECISION), 0) : decimalFor(digits, both.scale);
    }
    // An integer that outgrows 64 bits becomes decimal, even if float64 happens to hold it.
    if (to === "float64" && !both.fractions) continue;
    const type: DataType = { kind: to as SimpleKind };
    if (holds(type, both)) return type;
  }
  return undefined;
}

/** The type of a new column for numbers that need `need`; undefined if no numeric type holds them all. */
export function inferNumber(need: NumberNeed): DataType | undefined {
  const int64: DataType = { kind: "int64" };
  if (holds(int64, need)) return int64;
  if (need.fractions && need.floats && need.exact) return { kind: "float64" };
  if (need.integerDigits > MAX_PRECISION) return undefined;
  return need.scale === 0 ? decimalFor(MAX_PRECISION, 0) : decimalFor(need.integerDigits, need.scale);
}

/**
 * The type that takes all values of `from` and of `to`, by the widening table: `from` itself if it takes them already,
 * undefined if there is none. For scalar types; fields of structs are merged by name before. `stored`: see
 * {@link widenNumber}.
 */
export function widen(from: DataType, to: DataType, stored?: IntegerBounds): DataType | undefined {
  if (to.kind === "unknown") return from;
  if (from.kind === "unknown") return to;
  if (from.kind === "float32" && to.kind === "float64") return to;
  const need = needOf(to);
  if (need) return widenNumber(from, need, stored);
  return JSON.stringify(from) === JSON.stringify(to) ? from : undefined;
}
