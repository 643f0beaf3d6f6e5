/** Generated schemas and rows for property tests, and what a row must look like when it is read back. */

import fc from "fast-check";
import type { DataType, Field, Schema } from "../src/schema.js";
import type { Value } from "./column-builder.js";

interface GeneratedBatch {
  readonly schema: Schema;
  readonly rows: readonly { readonly [name: string]: Value }[];
}

const field = (name: string, type: DataType, nullable = true): Field => ({ id: 0, name, type, nullable });

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.constantFrom("", "\ufeffbom", "é", "e\u0301", "𝔘"),
);
const bytes = (length: { minLength?: number; maxLength: number }): fc.Arbitrary<Uint8Array> => fc.uint8Array(length);
const integer = (bits: number, signed: boolean): fc.Arbitrary<bigint> =>
  signed
    ? fc.bigInt({ min: -(2n ** BigInt(bits - 1)), max: 2n ** BigInt(bits - 1) - 1n })
    : fc.bigInt({ min: 0n, max: 2n ** BigInt(bits) - 1n });
/** Microseconds of the years 1 to 9999. */
const instant = fc.bigInt({ min: -62_135_596_800_000_000n, max: 253_402_300_799_999_999n });

interface Typed {
  readonly type: DataType;
  readonly values: fc.Arbitrary<Value>;
}

const leaves: readonly Typed[] = [
  { type: { kind: "bool" }, values: fc.boolean() },
  ...([8, 16, 32, 64] as const).flatMap((bits): Typed[] => [
    { type: { kind: `int${bits}` }, values: integer(bits, true) },
    { type: { kind: `uint${bits}` }, values: integer(bits, false) },
  ]),
  { type: { kind: "int64" }, values: fc.bigInt({ min: -5n, max: 5n }) },
  { type: { kind: "float32" }, values: fc.float() },
  { type: { kind: "float64" }, values: fc.double() },
  { type: { kind: "decimal", precision: 5, scale: 2 }, values: fc.bigInt({ min: -99999n, max: 99999n }) },
  {
    type: { kind: "decimal", precision: 38, scale: 10 },
    values: fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n }),
  },
  { type: { kind: "string" }, values: text },
  { type: { kind: "json" }, values: fc.json() },
  { type: { kind: "binary" }, values: bytes({ maxLength: 20 }) },
  { type: { kind: "fixed", size: 3 }, values: bytes({ minLength: 3, maxLength: 3 }) },
  { type: { kind: "uuid" }, values: bytes({ minLength: 16, maxLength: 16 }) },
  { type: { kind: "date" }, values: fc.integer({ min: -719_162, max: 2_932_896 }) },
  { type: { kind: "time" }, values: fc.bigInt({ min: 0n, max: 86_399_999_999n }) },
  { type: { kind: "timestamp" }, values: instant },
  { type: { kind: "timestamptz" }, values: instant },
];

const orNull = (values: fc.Arbitrary<Value>): fc.Arbitrary<Value> => fc.option(values, { nil: null, freq: 4 });

function typed(depth: number): fc.Arbitrary<Typed> {
  const leaf = fc.constantFrom(...leaves);
  if (depth === 0) return leaf;
  const inner = typed(depth - 1);
  return fc.oneof(
    { weight: 5, arbitrary: leaf },
    inner.map(
      ({ type, values }): Typed => ({
        type: { kind: "list", element: field("element", type) },
        values: fc.array(orNull(values), { maxLength: 4 }),
      }),
    ),
    inner.map(
      ({ type, values }): Typed => ({
        type: { kind: "map", key: field("key", { kind: "string" }, false), value: field("value", type) },
        values: fc
          .uniqueArray(fc.tuple(text, orNull(values)), { maxLength: 3, selector: ([key]) => key })
          .map((pairs) => pairs as unknown as Value),
      }),
    ),
    fc.array(inner, { minLength: 1, maxLength: 3 }).map((members): Typed => {
      const names = ["a", "__proto__", "b c"];
      return {
        type: { kind: "struct", fields: members.map((member, i) => field(names[i]!, member.type)) },
        values: fc
          .tuple(...members.map((member) => orNull(member.values)))
          .map((parts) => plainObject(parts.map((part, i) => [names[i]!, part]))),
      };
    }),
  );
}

/** An object whose properties are all its own, `__proto__` too. */
function plainObject(entries: readonly (readonly [string, Value])[]): { readonly [name: string]: Value } {
  return Object.fromEntries(entries);
}

/** Batches of 1 to 4 columns named c0, c1, …, of any type, with nulls. */
export function generatedBatches(options: { maxRows?: number; depth?: number } = {}): fc.Arbitrary<GeneratedBatch> {
  const { maxRows = 30, depth = 2 } = options;
  return fc.array(typed(depth), { minLength: 1, maxLength: 4 }).chain((columns) => {
    const row = fc.tuple(...columns.map((column) => orNull(column.values)));
    return fc.array(row, { maxLength: maxRows }).map((rows) => ({
      schema: { fields: columns.map((column, i) => ({ ...field(`c${i}`, column.type), id: 0 })) },
      rows: rows.map((values) => plainObject(values.map((value, i) => [`c${i}`, value]))),
    }));
  });
}

/** The value that `batchRows(…, "exact")` must give, from the value that the column was built of. */
function exactValue(type: DataType, value: Value): unknown {
  if (value === null) return null;
  switch (type.kind) {
    case "int64":
    case "uint64":
      return BigInt(value as bigint);
    case "float32":
    case "float64":
      return value;
    case "decimal": {
      const unscaled = value as bigint;
      const digits = unscaled
        .toString()
        .replace("-", "")
        .padStart(type.scale + 1, "0");
      const cut = digits.length - type.scale;
      return `${unscaled < 0n ? "-" : ""}${digits.slice(0, cut)}${type.scale > 0 ? "." : ""}${digits.slice(cut)}`;
    }
    case "bool":
    case "string":
    case "json":
    case "binary":
    case "fixed":
      return value;
    case "uuid": {
      const hex = Buffer.from(value as Uint8Array).toString("hex");
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    }
    case "date":
      return isoOf(BigInt(value as number) * 86_400_000_000n).slice(0, 10);
    case "time":
      return isoOf(value as bigint).slice(11);
    case "timestamp":
      return isoOf(value as bigint);
    case "timestamptz":
      return `${isoOf(value as bigint)}Z`;
    case "list":
      return (value as readonly Value[]).map((element) => exactValue(type.element.type, element));
    case "map":
      return new Map(
        (value as readonly (readonly [Value, Value])[]).map(([key, item]) => [
          exactValue(type.key.type, key),
          exactValue(type.value.type, item),
        ]),
      );
    case "struct":
      return exactRow(type.fields, value as { readonly [name: string]: Value });
    default:
      return Number(value);
  }
}

export function exactRow(fields: readonly Field[], row: { readonly [name: string]: Value }): Record<string, unknown> {
  return Object.fromEntries(
    fields.map(({ name, type }) => [name, exactValue(type, Object.hasOwn(row, name) ? row[name]! : null)]),
  );
}

/** By way of `Date`, which counts milliseconds, and the microseconds behind them. */
function isoOf(micros: bigint): string {
  const below = ((micros % 1000n) + 1000n) % 1000n;
  const iso = new Date(Number((micros - below) / 1000n)).toISOString();
  return iso.replace("Z", below.toString().padStart(3, "0"));
}
