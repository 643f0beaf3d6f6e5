/** Expected hashes: Iceberg specification, appendix B, "32-bit Hash Requirements". */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type BoundValue,
  bucketOfBound,
  type PartitionValue,
  parsePartitionBy,
  parseType,
  routePartitions,
  type Schema,
} from "../src/index.js";
import { murmur3, murmur3Long } from "../src/murmur3.js";
import { batchOf, type Value } from "./column-builder.js";

const schemaOf = (type: string, name = "c"): Schema => ({
  fields: [{ id: 1, name, type: parseType(type), nullable: true }],
});

/** The partition value of each row. */
function apply(expression: string, type: string, values: readonly Value[]): PartitionValue[] {
  const schema = schemaOf(type);
  const batch = batchOf(
    schema,
    values.map((c) => ({ c })),
  );
  const out: PartitionValue[] = [];
  for (const group of routePartitions(batch, [parsePartitionBy(expression, schema)])) {
    for (const row of group.rows) out[row] = group.values[0]!;
  }
  return out;
}

describe("parsePartitionBy", () => {
  const schema: Schema = {
    fields: Object.entries({
      ts: "timestamptz",
      "my ts": "date",
      'q"c': "string",
      id: "int64",
      f: "float64",
      j: "json",
    })
      .map(([name, type], i) => ({ id: i + 1, name, type: parseType(type), nullable: true }))
      .concat([{ id: 9, name: "later", type: { kind: "unknown" }, nullable: true }]),
  };

  test.each([
    ["id", "id"],
    [" ID ", "id"],
    ["day(ts)", "day(ts)"],
    ["YEAR( ts )", "year(ts)"],
    ['month("my ts")', 'month("my ts")'],
    ["hour(ts)", "hour(ts)"],
    ["bucket(16, id)", "bucket(16, id)"],
    ['truncate( 4 ,"q""c")', 'truncate(4, "q""c")'],
    ["day(later)", "day(later)"],
  ])("%s", (expression, canonical) => {
    const spec = parsePartitionBy(expression, schema);
    expect(spec.text).toBe(canonical);
    expect(parsePartitionBy(spec.text, schema)).toEqual(spec);
  });

  test.each([
    ["day(id)", "type_mismatch", 'day of the column "id" of type int64: it must be date, timestamp, timestamptz'],
    ['hour("my ts")', "type_mismatch", "it must be timestamp, timestamptz"],
    ["bucket(4, f)", "type_mismatch", '"f" of type float64'],
    ["truncate(4, ts)", "type_mismatch", "it must be int8"],
    ["j", "type_mismatch", '"j" of type json'],
    ["nope", "unknown_column", '"nope": the columns are "ts", "my ts"'],
    ["week(ts)", "bad_partition", "bucket(n, col)"],
    ["bucket(0, id)", "bad_partition", "bucket(n, col)"],
    ["bucket(id)", "bad_partition", "bucket(n, col)"],
    ["day(3, ts)", "bad_partition", "day(col)"],
    ["my ts", "bad_partition", "my ts"],
    ["", "bad_partition", "col"],
  ])("refuses %j", (expression, code, message) => {
    expect(() => parsePartitionBy(expression, schema)).toThrow(
      expect.objectContaining({ name: "SchemaError", code, message: expect.stringContaining(message) }),
    );
  });
});

describe("bucket", () => {
  const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
  const boundOf = (value: string | number | bigint | Uint8Array): BoundValue =>
    typeof value === "string" ? new TextEncoder().encode(value) : typeof value === "number" ? BigInt(value) : value;
  const micros = (iso: string, extra = 0n): bigint => BigInt(Date.parse(iso)) * 1000n + extra;

  test.each([
    ["int32", 34, 2_017_239_379],
    ["int64", 34n, 2_017_239_379],
    ["uint8", 34, 2_017_239_379],
    ["decimal(9,2)", 1420n, -500_754_589],
    ["decimal(38,2)", 1420n, -500_754_589],
    ["date", Date.parse("2017-11-16") / 86_400_000, -653_330_422],
    ["time", micros("1970-01-01T22:31:08Z"), -662_762_989],
    ["timestamp", micros("2017-11-16T22:31:08Z"), -2_047_944_441],
    ["timestamp", micros("2017-11-16T22:31:08Z", 1n), -1_207_196_810],
    ["timestamptz", micros("2017-11-16T14:31:08-08:00"), -2_047_944_441],
    ["timestamptz", micros("2017-11-16T14:31:08-08:00", 1n), -1_207_196_810],
    ["string", "iceberg", 1_210_000_089],
    ["uuid", bytes("f79c3e09677c4bbda4793f349cb785e7"), 1_488_055_340],
    ["fixed(4)", bytes("00010203"), -188_683_207],
    ["binary", bytes("00010203"), -188_683_207],
  ] as const)("%s %s hashes to %i", (type, value, hash) => {
    const buckets = 2 ** 31 - 1;
    expect(apply(`bucket(${buckets}, c)`, type, [value])).toEqual([BigInt((hash & 0x7fffffff) % buckets)]);
    expect(apply("bucket(16, c)", type, [value, null])).toEqual([BigInt((hash & 0x7fffffff) % 16), null]);
    expect(bucketOfBound(parseType(type), boundOf(value), buckets)).toBe((hash & 0x7fffffff) % buckets);
  });

  test.each([
    ["int32", [-1, -(2 ** 31), 2 ** 31 - 1]],
    ["uint32", [0, 2 ** 32 - 1]],
    ["int64", [-1n, -(2n ** 63n), 2n ** 63n - 1n, 2n ** 32n]],
    ["uint64", [0n, 127n, 128n, 2n ** 63n, 2n ** 64n - 1n]],
    ["decimal(38,2)", [0n, -1n, 127n, -129n, 10n ** 37n, -(10n ** 37n)]],
    ["date", [-1, 0]],
    ["string", ["", "é", "\u{1f600}"]],
  ] as const)("of a bound of %s is that of the value", (type, values) => {
    const routed = apply("bucket(1000003, c)", type, values);
    expect(values.map((value) => bucketOfBound(parseType(type), boundOf(value), 1_000_003))).toEqual(
      routed.map(Number),
    );
  });

  test("types without buckets have none", () => {
    expect(bucketOfBound(parseType("float64"), 1, 16)).toBeUndefined();
    expect(bucketOfBound(parseType("bool"), true, 16)).toBeUndefined();
  });

  test("negative integers hash as eight bytes, sign and all, whatever their width", () => {
    const wide = apply("bucket(1000000, c)", "int64", [-1n, -128n, -(2n ** 31n)]);
    expect(apply("bucket(1000000, c)", "int32", [-1, -128, -(2 ** 31)])).toEqual(wide);
    expect(apply("bucket(1000000, c)", "int8", [-1, -128])).toEqual(wide.slice(0, 2));
    const view = new DataView(new ArrayBuffer(8));
    view.setBigInt64(0, -1n, true);
    expect(murmur3Long(-1, -1)).toBe(murmur3(new Uint8Array(view.buffer), 0, 8));
  });

  test("unsigned 64-bit integers hash as decimal(20,0), which is what Iceberg stores them as", () => {
    const values = [0n, 127n, 128n, 255n, 2n ** 63n, 2n ** 64n - 1n];
    expect(apply("bucket(1000000, c)", "uint64", values)).toEqual(apply("bucket(1000000, c)", "decimal(20,0)", values));
  });

  test("decimals hash by their shortest two's complement form", () => {
    // −1 is FF, 127 is 7F, 128 is 00 80, −129 is FF 7F.
    const hashes = ["ff", "7f", "0080", "ff7f"].map((hex) => murmur3(bytes(hex), 0, hex.length / 2) & 0x7fffffff);
    expect(apply("bucket(2147483647, c)", "decimal(20,0)", [-1n, 127n, 128n, -129n])).toEqual(
      hashes.map((hash) => BigInt(hash % 2_147_483_647)),
    );
  });
});

describe("truncate", () => {
  test.each([
    ["truncate(10, c)", "int32", [1, -1, 0, 15, -10, -11], [0n, -10n, 0n, 10n, -10n, -20n]],
    ["truncate(10, c)", "int64", [2n ** 62n, -1n], [4_611_686_018_427_387_900n, -10n]],
    ["truncate(10, c)", "uint64", [2n ** 64n - 1n], [18_446_744_073_709_551_610n]],
    ["truncate(50, c)", "decimal(9,2)", [1065n, -1065n, 1060n], [1050n, -1100n, 1050n]],
    ["truncate(3, c)", "string", ["iceberg", "ice", "ic", "", "é𝔘ñx"], ["ice", "ice", "ic", "", "é𝔘ñ"]],
    ["truncate(2, c)", "binary", [Uint8Array.of(1, 2, 3), Uint8Array.of(0xff)], ["0102", "ff"]],
  ] as const)("%s of %s", (expression, type, values, expected) => {
    expect(apply(expression, type, [...values, null])).toEqual([...expected, null]);
  });
});

describe("dates and times", () => {
  const iso = ["1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00Z", "2000-02-29T12:34:56Z", "1899-12-31T23:00:00Z"];
  const micros = iso.map((text) => BigInt(Date.parse(text)) * 1000n);

  test.each([
    ["year", [-1n, 0n, 30n, -71n]],
    ["month", [-1n, 0n, 361n, -841n]],
    ["day", [-1n, 0n, 11_016n, -25_568n]],
    ["hour", [-1n, 0n, 264_396n, -613_609n]],
  ])("%s counts from 1970 and rounds down before it", (transform, expected) => {
    expect(apply(`${transform}(c)`, "timestamptz", micros)).toEqual(expected);
    if (transform !== "hour") {
      const days = iso.map((text) => Math.floor(Date.parse(text) / 86_400_000));
      expect(apply(`${transform}(c)`, "date", days)).toEqual(expected);
    }
  });

  test("agree with Date for any instant of the years 1 to 9999", () => {
    fc.assert(
      fc.property(
        fc.date({
          min: new Date("0001-01-01T00:00:00Z"),
          max: new Date("9999-12-31T23:59:59.999Z"),
          noInvalidDate: true,
        }),
        fc.integer({ min: 0, max: 999 }),
        (date, extra) => {
          const value = BigInt(date.getTime()) * 1000n + BigInt(extra);
          const year = date.getUTCFullYear() - 1970;
          expect(apply("year(c)", "timestamp", [value])).toEqual([BigInt(year)]);
          expect(apply("month(c)", "timestamp", [value])).toEqual([BigInt(year * 12 + date.getUTCMonth())]);
          expect(apply("day(c)", "timestamp", [value])).toEqual([BigInt(Math.floor(date.getTime() / 86_400_000))]);
          expect(apply("hour(c)", "timestamp", [value])).toEqual([BigInt(Math.floor(date.getTime() / 3_600_000))]);
        },
      ),
    );
  });

  test("are exact at the ends of 64 bits", () => {
    const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];
    expect(apply("hour(c)", "timestamp", [least, most])).toEqual([least / 3_600_000_000n - 1n, most / 3_600_000_000n]);
  });
});
