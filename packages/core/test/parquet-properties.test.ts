/** Laws of the encoder over generated schemas and values: what three other readers read is what was written, and pruning loses nothing. */

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Compression, parquetReady } from "../src/compression.js";
import { encodeParquet } from "../src/parquet-encoder.js";
import { readParquetFooter } from "../src/parquet-footer.js";
import type { ParquetOptions } from "../src/parquet-options.js";
import { assignFieldIds, type DataType, type Field, type Schema } from "../src/schema.js";
import { type BoundValue, type ColumnStatistics, compareBounds } from "../src/statistics.js";
import { batchOf, type Value } from "./column-builder.js";
import { asDoubles, DuckReader, hyparquetRows, parquetRsRows, type Row } from "./parquet-readers.js";

const duck = new DuckReader();
beforeAll(async () => {
  for (const compression of ["zstd", "gzip", "brotli"] as const) await parquetReady({ compression });
});
afterAll(() => {
  duck.close();
});

const text = fc.string({ unit: "grapheme", maxLength: 12 });

function integers(bits: number, signed: boolean): fc.Arbitrary<number> {
  const min = signed ? -(2 ** (bits - 1)) : 0;
  const max = signed ? 2 ** (bits - 1) - 1 : 2 ** bits - 1;
  return fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max, 0, 1));
}

function bigints(min: bigint, max: bigint): fc.Arbitrary<bigint> {
  return fc.oneof(fc.bigInt({ min, max }), fc.constantFrom(min, max, 0n, 1n));
}

const float64 = fc.oneof(fc.double(), fc.constantFrom(0, -0, Number.NaN, Number.POSITIVE_INFINITY, 1.5));

/** Values of leaf types that DuckDB can hold (its dates and timestamps end where theirs do). */
function leafValues(type: DataType): fc.Arbitrary<Value> {
  switch (type.kind) {
    case "bool":
      return fc.boolean();
    case "int8":
    case "int16":
    case "int32":
      return integers(Number(type.kind.slice(3)), true);
    case "uint8":
    case "uint16":
    case "uint32":
      return integers(Number(type.kind.slice(4)), false);
    case "int64":
      return bigints(-(2n ** 63n), 2n ** 63n - 1n);
    case "uint64":
      return bigints(0n, 2n ** 64n - 1n);
    case "float32":
      return float64.map(Math.fround);
    case "float64":
      return float64;
    case "decimal":
      return bigints(-(10n ** BigInt(type.precision)) + 1n, 10n ** BigInt(type.precision) - 1n);
    case "string":
      return fc.oneof(
        text,
        fc.constantFrom("", "\u{10FFFF}", "x".repeat(200), "é".repeat(70), "\u{10FFFF}".repeat(20)),
      );
    case "json":
      return fc.jsonValue().map((value) => JSON.stringify(value));
    case "binary":
      return fc.oneof(fc.uint8Array({ maxLength: 12 }), fc.constantFrom(new Uint8Array(90).fill(255)));
    case "fixed":
      return fc.uint8Array({ minLength: type.size, maxLength: type.size });
    case "uuid":
      return fc.uint8Array({ minLength: 16, maxLength: 16 });
    case "date":
      return fc.integer({ min: -719162, max: 2932896 });
    case "time":
      return bigints(0n, 86_399_999_999n);
    default:
      return bigints(-62_135_596_800_000_000n, 253_402_300_799_999_999n);
  }
}

const leafType: fc.Arbitrary<DataType> = fc.oneof(
  fc.constantFrom<DataType[]>(
    ...(
      [
        "bool",
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "string",
        "binary",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "uuid",
        "json",
      ] as const
    ).map((kind): DataType => ({ kind })),
  ),
  fc
    .integer({ min: 1, max: 38 })
    .chain((precision) =>
      fc.integer({ min: 0, max: precision }).map((scale): DataType => ({ kind: "decimal", precision, scale })),
    ),
  fc.integer({ min: 1, max: 20 }).map((size): DataType => ({ kind: "fixed", size })),
);

const fieldOf = (name: string, type: fc.Arbitrary<DataType>): fc.Arbitrary<Field> =>
  fc.record({ id: fc.constant(0), name: fc.constant(name), type, nullable: fc.boolean() });

const { type: anyType } = fc.letrec<{ type: DataType }>((tie) => ({
  type: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    { weight: 3, arbitrary: leafType },
    { weight: 1, arbitrary: fieldOf("element", tie("type")).map((element): DataType => ({ kind: "list", element })) },
    {
      weight: 1,
      arbitrary: fieldOf("value", tie("type")).map(
        (value): DataType => ({
          kind: "map",
          key: { id: 0, name: "key", type: { kind: "string" }, nullable: false },
          value,
        }),
      ),
    },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fieldOf("p", tie("type")), fieldOf("q r", tie("type")))
        .map((fields): DataType => ({ kind: "struct", fields })),
    },
  ),
}));

function valuesOf(field: Field): fc.Arbitrary<Value> {
  const present = presentValues(field.type);
  return field.nullable ? fc.option(present, { freq: 4, nil: null }) : present;
}

function presentValues(type: DataType): fc.Arbitrary<Value> {
  switch (type.kind) {
    case "list":
      return fc.array(valuesOf(type.element), { maxLength: 4 });
    case "map":
      // Keys as a JavaScript object gives them back in order: no digits first.
      return fc.uniqueArray(
        fc.tuple(
          text.map((key) => `k${key}`),
          valuesOf(type.value),
        ),
        { maxLength: 3, selector: ([key]) => key },
      ) as fc.Arbitrary<Value>;
    case "struct":
      return fc.record(Object.fromEntries(type.fields.map((field) => [field.name, valuesOf(field)])));
    default:
      return leafValues(type);
  }
}

const options: fc.Arbitrary<ParquetOptions> = fc.record({
  compression: fc.constantFrom<Compression[]>("zstd", "uncompressed", "snappy", "lz4raw", "gzip", "brotli"),
  pageRows: fc.constantFrom(1, 3, 8, 20_000),
  dictionary: fc.constantFrom("auto" as const, false as const),
});

interface Sample {
  readonly schema: Schema;
  readonly rows: readonly Row[];
  readonly options: ParquetOptions;
  readonly groupRows: number;
}

/** `repeat` makes columns long enough for dictionaries and delta blocks without more to generate. */
const sample: fc.Arbitrary<Sample> = fc.tuple(fieldOf("a", anyType), fieldOf("b.c", anyType)).chain((fields) =>
  fc.record({
    schema: fc.constant(assignFieldIds({ fields })),
    rows: fc
      .tuple(
        fc.array(fc.record(Object.fromEntries(fields.map((field) => [field.name, valuesOf(field)]))), {
          maxLength: 30,
        }),
        fc.constantFrom(1, 1, 20),
      )
      .map(([rows, repeat]) => Array.from({ length: repeat }, () => rows).flat()),
    options,
    groupRows: fc.constantFrom(7, 100_000),
  }),
);

function encode({ schema, rows, options: o, groupRows }: Sample): {
  bytes: Uint8Array;
  statistics: ColumnStatistics[];
} {
  const batches = [];
  for (let at = 0; at < rows.length; at += groupRows) batches.push(batchOf(schema, rows.slice(at, at + groupRows)));
  return encodeParquet(schema, batches, o);
}

/** Own copies with null-prototype differences gone, for comparison. */
function plain(value: Value): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (Array.isArray(value)) return value.map(plain);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, v]) => [name, plain(v as Value)]));
  }
  return value;
}

describe("round trip", () => {
  test("DuckDB, hyparquet and parquet-rs read what was written", async () => {
    await fc.assert(
      fc.asyncProperty(sample, async (s) => {
        const { bytes } = encode(s);
        expect((await duck.rows(bytes)).map(plain)).toEqual(s.rows.map(plain));
        expect(parquetRsRows(bytes).map(plain)).toEqual(s.rows.map(plain));
        const doubles = s.rows.map((row) =>
          Object.fromEntries(s.schema.fields.map((field) => [field.name, asDoubles(field.type, row[field.name]!)])),
        );
        expect((await hyparquetRows(bytes, s.schema)).map(plain)).toEqual(doubles.map(plain));
      }),
      { numRuns: 150 },
    );
  });

  test("the footer gives back schema and statistics", () => {
    fc.assert(
      fc.property(sample, (s) => {
        const { bytes, statistics } = encode(s);
        const footer = readParquetFooter(bytes);
        expect(footer.schema).toEqual(s.schema);
        expect(footer.rows).toBe(s.rows.length);
        // Bounds beside NaN are not in the file, and the file says nothing of exactness where there is no bound.
        footer.statistics.forEach((found, i) => {
          const made = statistics[i]!;
          const counts = { valueCount: made.valueCount, nullCount: made.nullCount, storedBytes: made.storedBytes };
          expect(found).toMatchObject({ fieldId: made.fieldId, hasNaN: made.hasNaN, ...counts });
          if (!made.hasNaN) expect(found).toEqual(made);
        });
      }),
      { numRuns: 100 },
    );
  });
});

/** The leaf values of a column that has no lists: what statistics are about. */
const flatColumn = leafType.chain((type) =>
  fc.record({
    type: fc.constant(type),
    values: fc.array(fc.option(leafValues(type), { freq: 5 }), { minLength: 1, maxLength: 40 }),
    options,
    groupRows: fc.constantFrom(5, 100_000),
  }),
);

function toBound(type: DataType, value: Value): BoundValue {
  if (typeof value === "string") return new TextEncoder().encode(value);
  if (typeof value === "number" && type.kind !== "float32" && type.kind !== "float64") return BigInt(value);
  return value as BoundValue;
}

describe("statistics", () => {
  test("bounds hold all values, and exact ones are among them", () => {
    fc.assert(
      fc.property(flatColumn, ({ type, values, options: o, groupRows }) => {
        const schema: Schema = { fields: [{ id: 1, name: "v", type, nullable: true }] };
        const rows = values.map((v) => ({ v }));
        const { statistics } = encode({ schema, rows, options: { ...o, statisticsTruncateBytes: 8 }, groupRows });
        const s = statistics[0]!;
        const present = values.filter((v) => v !== null && !Number.isNaN(v)).map((v) => toBound(type, v));
        expect(s.nullCount).toBe(values.filter((v) => v === null).length);
        expect(s.hasNaN).toBe(values.some((v) => Number.isNaN(v)));
        for (const value of present) {
          if (s.min !== undefined) expect(compareBounds(s.min, value)).toBeLessThanOrEqual(0);
          if (s.max !== undefined) expect(compareBounds(s.max, value)).toBeGreaterThanOrEqual(0);
        }
        if (present.length === 0) expect([s.min, s.max]).toEqual([undefined, undefined]);
        else expect(s.min).toBeDefined();
        if (s.minExact) expect(present.some((value) => compareBounds(value, s.min!) === 0)).toBe(true);
        if (s.maxExact) expect(present.some((value) => compareBounds(value, s.max!) === 0)).toBe(true);
        if ((type.kind === "string" || type.kind === "json") && s.max !== undefined) {
          // Throws where the cut went through a character.
          new TextDecoder("utf-8", { fatal: true }).decode(s.max as Uint8Array);
          new TextDecoder("utf-8", { fatal: true }).decode(s.min as Uint8Array);
        }
      }),
      { numRuns: 500 },
    );
  });

  const OPERATORS = {
    "=": (order: number) => order === 0,
    "<>": (order: number) => order !== 0,
    "<": (order: number) => order < 0,
    "<=": (order: number) => order <= 0,
    ">": (order: number) => order > 0,
    ">=": (order: number) => order >= 0,
  };

  /** DuckDB's order: NaN equals itself and is above all. */
  function duckOrder(a: BoundValue, b: BoundValue): number {
    const nan = Number(Number.isNaN(a)) - Number(Number.isNaN(b));
    return nan !== 0 || Number.isNaN(a) ? nan : compareBounds(a, b);
  }

  function literal(type: DataType, value: Value): string {
    switch (type.kind) {
      case "string":
      case "json":
        return `'${(value as string).replaceAll("'", "''")}'`;
      case "float32":
      case "float64":
        return `'${Object.is(value, -0) ? "-0.0" : String(value)}'::DOUBLE`;
      case "binary":
      case "fixed":
        return `unhex('${Buffer.from(value as Uint8Array).toString("hex")}')`;
      case "uuid":
        return `'${Buffer.from(value as Uint8Array).toString("hex")}'::UUID`;
      case "date":
        return `(DATE '1970-01-01' + (${value})::INTEGER)`;
      case "time":
        return `(TIME '00:00:00' + to_microseconds(${value}))`;
      case "timestamp":
        return `make_timestamp(${value}::BIGINT)`;
      case "timestamptz":
        return `make_timestamptz(${value}::BIGINT)`;
      case "bool":
        return String(value);
      default:
        return `${value}`;
    }
  }

  const comparable = fc.constantFrom<DataType[]>(
    { kind: "float64" },
    { kind: "float32" },
    { kind: "string" },
    { kind: "binary" },
    { kind: "int64" },
    { kind: "uint64" },
    { kind: "int8" },
    { kind: "uint32" },
    { kind: "timestamp" },
    { kind: "timestamptz" },
    { kind: "date" },
    { kind: "time" },
    { kind: "uuid" },
    { kind: "json" },
    { kind: "bool" },
    { kind: "fixed", size: 12 },
    { kind: "decimal", precision: 9, scale: 0 },
    { kind: "decimal", precision: 30, scale: 0 },
  );

  test("a filter in DuckDB finds what the source holds", async () => {
    const question = comparable.chain((type) =>
      fc.record({
        type: fc.constant(type),
        values: fc.array(fc.option(leafValues(type), { freq: 6 }), { minLength: 1, maxLength: 30 }),
        probe: leafValues(type),
        probeAt: fc.nat(),
        operator: fc.constantFrom(...(Object.keys(OPERATORS) as (keyof typeof OPERATORS)[])),
        options,
        groupRows: fc.constantFrom(4, 100_000),
      }),
    );
    await fc.assert(
      fc.asyncProperty(question, async ({ type, values, probe, probeAt, operator, options: o, groupRows }) => {
        const schema: Schema = {
          fields: [
            { id: 1, name: "n", type: { kind: "int32" }, nullable: false },
            { id: 2, name: "v", type, nullable: true },
            {
              id: 3,
              name: "s",
              type: { kind: "struct", fields: [{ id: 4, name: "v", type, nullable: true }] },
              nullable: true,
            },
          ],
        };
        const rows = values.map((v, n) => ({ n, v, s: n % 7 === 3 ? null : { v } }));
        const { bytes } = encode({ schema, rows, options: { ...o, statisticsTruncateBytes: 8 }, groupRows });
        const file = duck.file(bytes);
        // Mostly ask for a value that is there.
        for (const asked of [probe, values[probeAt % values.length] ?? probe]) {
          const matches = (v: Value): boolean =>
            v !== null && OPERATORS[operator](duckOrder(toBound(type, v), toBound(type, asked)));
          const find = async (where: string): Promise<Value[]> =>
            (await duck.sql(`SELECT n FROM ${file} WHERE ${where} ORDER BY n`)).map(({ n }) => n!);
          const condition = `${operator} ${literal(type, asked)}`;
          const numbers = (found: typeof rows): number[] => found.map(({ n }) => n);
          expect(await find(`v ${condition}`)).toEqual(numbers(rows.filter(({ v }) => matches(v))));
          // Within a struct, and of its parts what is null.
          expect(await find(`s.v ${condition}`)).toEqual(numbers(rows.filter(({ s }) => s !== null && matches(s.v))));
          expect(await find("v IS NULL")).toEqual(numbers(rows.filter(({ v }) => v === null)));
          expect(await find("s.v IS NOT NULL")).toEqual(numbers(rows.filter(({ s }) => s !== null && s.v !== null)));
        }
      }),
      { numRuns: 200 },
    );
  });
});
