import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { batchRows, columnValue, parseType } from "../src/index.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf, columnOf, type Value } from "./column-builder.js";

function readAll(type: string, values: readonly Value[], mode: "exact" | "json"): unknown[] {
  const column = columnOf({ id: 1, name: "c", type: parseType(type), nullable: true }, values);
  return values.map((_, i) => columnValue(column, i, mode));
}

describe("exact values", () => {
  test("are what the columns were made of, for all types", () => {
    fc.assert(
      fc.property(generatedBatches(), ({ schema, rows }) => {
        expect(batchRows(batchOf(schema, rows), "exact")).toEqual(rows.map((row) => exactRow(schema.fields, row)));
      }),
    );
  });

  test.each([
    ["timestamp", -1n, "1969-12-31T23:59:59.999999"],
    ["timestamp", -62_135_596_800_000_000n, "0001-01-01T00:00:00.000000"],
    ["timestamp", 253_402_300_799_999_999n, "9999-12-31T23:59:59.999999"],
    // Beyond 2^53 microseconds, where a double would lose the last digit.
    ["timestamp", 9_007_199_254_740_993n, "2255-06-05T23:47:34.740993"],
    ["timestamptz", 1_930_000_000_123_456n, "2031-02-27T23:06:40.123456Z"],
    ["timestamptz", 9_223_372_036_854_775_807n, "+294247-01-10T04:00:54.775807Z"],
    ["date", -719_163, "0000-12-31"],
    ["date", -719_529, "-000001-12-31"],
    ["date", 11_016, "2000-02-29"],
    ["time", 86_399_999_999n, "23:59:59.999999"],
    ["time", 0n, "00:00:00.000000"],
    ["int64", -9_223_372_036_854_775_808n, -9_223_372_036_854_775_808n],
    ["uint64", 18_446_744_073_709_551_615n, 18_446_744_073_709_551_615n],
    ["decimal(29,2)", -7005n, "-70.05"],
    ["decimal(29,2)", -1n, "-0.01"],
    ["decimal(29,2)", 12_345_678_901_234_567_890_123_456_789n, "123456789012345678901234567.89"],
    ["decimal(18,4)", -10_000n, "-1.0000"],
    ["decimal(38,0)", -(10n ** 38n) + 1n, "-99999999999999999999999999999999999999"],
    ["string", "\ufeffé𝔘", "\ufeffé𝔘"],
  ] as const)("%s %s is %s", (type, value, expected) => {
    expect(readAll(type, [value], "exact")).toEqual([expected]);
  });

  test("binary is a copy, not a window into the batch", () => {
    const column = columnOf({ id: 1, name: "c", type: { kind: "binary" }, nullable: true }, [Uint8Array.of(1, 2)]);
    const value = columnValue(column, 0, "exact") as Uint8Array;
    value[0] = 9;
    expect(columnValue(column, 0, "exact")).toEqual(Uint8Array.of(1, 2));
  });

  test("null list, empty list, list of null and null struct stay apart, and null is a key", () => {
    const fields = [
      { id: 1, name: "l", type: parseType("list<int64>"), nullable: true },
      { id: 2, name: "ll", type: parseType("list<list<int64>>"), nullable: true },
      { id: 3, name: "s", type: parseType("struct<u: int64>"), nullable: true },
    ];
    const rows = [
      { l: [1n, 2n], ll: [[]], s: { u: null } },
      { l: [], ll: [null, [3n]], s: null },
      { l: null, ll: [], s: { u: 1n } },
      { l: [null], ll: null, s: null },
    ];
    expect(batchRows(batchOf({ fields }, rows), "exact")).toStrictEqual(rows);
  });

  test("__proto__ is a name like any other, in structs, maps and rows", () => {
    const type = parseType('struct<"__proto__": int32, constructor: string>');
    const value = Object.fromEntries([
      ["__proto__", 7],
      ["constructor", "c"],
    ]) as unknown as Value;
    const [read] = readAll('struct<"__proto__": int32, constructor: string>', [value], "exact") as object[];
    expect(Object.entries(read!)).toEqual([
      ["__proto__", 7],
      ["constructor", "c"],
    ]);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    const row = batchRows(
      batchOf({ fields: [{ id: 1, name: "__proto__", type, nullable: true }] }, [
        Object.fromEntries([["__proto__", value]]),
      ]),
      "exact",
    )[0]!;
    expect(Object.keys(row)).toEqual(["__proto__"]);
    const pairs = [["__proto__", 1n]] as unknown as Value;
    const [asJson] = readAll("map<string,int64>", [pairs], "json");
    expect(JSON.stringify(asJson)).toBe('{"__proto__":1}');
    expect(({} as Record<string, unknown>).u).toBe(undefined);
  });
});

describe("JSON values", () => {
  test.each([
    ["int64", 9_007_199_254_740_991n, 9_007_199_254_740_991],
    ["int64", 9_007_199_254_740_992n, "9007199254740992"],
    ["int64", -9_007_199_254_740_991n, -9_007_199_254_740_991],
    ["int64", -9_007_199_254_740_992n, "-9007199254740992"],
    ["uint64", 18_446_744_073_709_551_615n, "18446744073709551615"],
    ["float64", Number.NaN, "NaN"],
    ["float64", Number.NEGATIVE_INFINITY, "-Infinity"],
    ["float32", Number.POSITIVE_INFINITY, "Infinity"],
    ["float64", 0.5, 0.5],
    ["binary", Uint8Array.of(0xff, 0xee), "/+4="],
    ["fixed(3)", Uint8Array.of(1, 2, 3), "AQID"],
    ["binary", Uint8Array.of(), ""],
    ["json", '{"a": 1}', '{"a": 1}'],
    ["map<string,int64>", [["k", 1n]], { k: 1 }],
    ["map<int32,string>", [[1, "x"]], [[1, "x"]]],
    ["list<int64>", [1n, null], [1, null]],
  ] as const)("%s %s is %s", (type, value, expected) => {
    expect(readAll(type, [value as unknown as Value], "json")).toEqual([expected]);
  });

  test("survive JSON.stringify, for all types", () => {
    fc.assert(
      fc.property(generatedBatches(), ({ schema, rows }) => {
        const read = batchRows(batchOf(schema, rows), "json");
        expect(JSON.parse(JSON.stringify(read))).toEqual(withoutNegativeZero(read));
      }),
    );
  });
});

test("texts of a column with more rows than are decoded at once", () => {
  const texts = Array.from({ length: 1000 }, (_, i) =>
    i % 3 === 0 ? `é${i}` : i % 7 === 0 ? null : `v${i}`.repeat(i % 5),
  );
  expect(readAll("string", texts, "exact")).toEqual(texts);
  const ascii = Array.from({ length: 1000 }, (_, i) => `row ${i}`);
  expect(readAll("string", ascii, "exact")).toEqual(ascii);
});

/** JSON has no −0; everything else must come back as it was. */
function withoutNegativeZero(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNegativeZero);
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutNegativeZero(item)]));
  }
  return Object.is(value, -0) ? 0 : value;
}
