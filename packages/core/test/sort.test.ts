import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseOrderBy, parseType, type Schema, sortedOrder } from "../src/index.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf, type Value } from "./column-builder.js";

const schemaOf = (types: Readonly<Record<string, string>>): Schema => ({
  fields: Object.entries(types).map(([name, type], i) => ({ id: i + 1, name, type: parseType(type), nullable: true })),
});

function sorted(type: string, values: readonly Value[], order = "c"): Value[] {
  const schema = schemaOf({ c: type });
  const batch = batchOf(
    schema,
    values.map((c) => ({ c })),
  );
  const rows = sortedOrder(batch, parseOrderBy([order], schema));
  return rows === undefined ? [...values] : Array.from(rows, (row) => values[row]!);
}

describe("parseOrderBy", () => {
  const schema = schemaOf({ a: "int64", "my ts": "timestamp", 'q"d': "string", l: "list<int64>", desc: "bool" });

  test.each([
    ["a", "a"],
    ["A asc", "a"],
    ['"my ts" DESC', '"my ts" desc'],
    ['"q""d" desc nulls first', '"q""d" desc nulls first'],
    ["a NULLS LAST", "a"],
    ["desc", "desc"],
    ["desc desc", "desc desc"],
  ])("%s", (expression, canonical) => {
    const [key] = parseOrderBy([expression], schema);
    expect(key!.text).toBe(canonical);
    expect(parseOrderBy([key!.text], schema)).toEqual([key]);
  });

  test.each([
    ["b", "unknown_column", '"b"'],
    ["l", "type_mismatch", '"l" of type list<int64>'],
    ["a down", "bad_order", "a down"],
    ["", "bad_order", "col"],
    ["a; DROP TABLE b", "bad_order", "col"],
  ])("refuses %j", (expression, code, message) => {
    expect(() => parseOrderBy([expression], schema)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });
});

describe("sortedOrder", () => {
  test("orders each type as documented", () => {
    expect(sorted("int64", [5n, -(2n ** 63n), null, 2n ** 63n - 1n, -1n, 0n])).toEqual([
      -(2n ** 63n),
      -1n,
      0n,
      5n,
      2n ** 63n - 1n,
      null,
    ]);
    expect(sorted("uint64", [2n ** 64n - 1n, 0n, 2n ** 63n])).toEqual([0n, 2n ** 63n, 2n ** 64n - 1n]);
    expect(sorted("int8", [127, -128, 0])).toEqual([-128, 0, 127]);
    expect(sorted("uint32", [4_294_967_295, 0, 2_147_483_648])).toEqual([0, 2_147_483_648, 4_294_967_295]);
    expect(
      sorted("float64", [Number.NaN, 1, Number.NEGATIVE_INFINITY, null, -1.5, Number.POSITIVE_INFINITY, 5e-324]),
    ).toEqual([Number.NEGATIVE_INFINITY, -1.5, 5e-324, 1, Number.POSITIVE_INFINITY, Number.NaN, null]);
    expect(sorted("decimal(38,2)", [-(10n ** 37n), 10n ** 37n, -1n, 0n])).toEqual([-(10n ** 37n), -1n, 0n, 10n ** 37n]);
    // By UTF-8 bytes, not UTF-16 units: U+FF5E (EF BD 9E) before U+1D518 (F0 9D 94 98).
    expect(sorted("string", ["𝔘", "～", "a", "", "a\u0000", "B", null])).toEqual([
      "",
      "B",
      "a",
      "a\u0000",
      "～",
      "𝔘",
      null,
    ]);
    expect(sorted("string", ["prefix-long-b", "prefix-long-a", "prefix-l"])).toEqual([
      "prefix-l",
      "prefix-long-a",
      "prefix-long-b",
    ]);
    expect(sorted("bool", [true, null, false])).toEqual([false, true, null]);
  });

  test("descending, nulls last all the same unless told otherwise", () => {
    expect(sorted("int64", [1n, null, 3n], "c desc")).toEqual([3n, 1n, null]);
    expect(sorted("int64", [1n, null, 3n], "c desc nulls first")).toEqual([null, 3n, 1n]);
    expect(sorted("int64", [1n, null, 3n], "c nulls first")).toEqual([null, 1n, 3n]);
    expect(sorted("float64", [1, Number.NaN], "c desc")).toEqual([Number.NaN, 1]);
  });

  test("−0 equals 0: they keep their order", () => {
    expect(sorted("float64", [1, 0, -0])).toEqual([0, -0, 1]);
    expect(sorted("float64", [1, -0, 0])).toEqual([-0, 0, 1]);
  });

  test("is undefined for rows in order, also with equal ones, and for no rows", () => {
    const schema = schemaOf({ a: "string", b: "int32" });
    const order = parseOrderBy(["a", "b desc"], schema);
    const batch = batchOf(schema, [
      { a: "x", b: 2 },
      { a: "x", b: 1 },
      { a: "x", b: 1 },
      { a: "y", b: 9 },
      { a: null, b: 9 },
    ]);
    expect(sortedOrder(batch, order)).toBe(undefined);
    expect(sortedOrder(batchOf(schema, []), order)).toBe(undefined);
    expect(sortedOrder(batch, [])).toBe(undefined);
  });

  test("garbage under nulls does not order them", () => {
    const schema = schemaOf({ a: "int32", b: "int32" });
    const batch = batchOf(schema, [
      { a: null, b: 2 },
      { a: null, b: 1 },
    ]);
    (batch.columns[0]!.values as Int32Array).set([1, 2]);
    expect([...sortedOrder(batch, parseOrderBy(["a", "b"], schema))!]).toEqual([1, 0]);
  });

  test("agrees with a stable sort by a plain comparison, for all types and several keys", () => {
    fc.assert(
      fc.property(generatedBatches({ depth: 0, maxRows: 60 }), fc.array(fc.boolean()), ({ schema, rows }, flags) => {
        const expressions = schema.fields.map(
          ({ name }, i) => `${name}${flags[i] ? " desc" : ""}${flags[i + 1] ? " nulls first" : ""}`,
        );
        const batch = batchOf(schema, rows);
        const order = sortedOrder(batch, parseOrderBy(expressions, schema)) ?? rows.map((_, i) => i);
        const expected = rows
          .map((_, i) => i)
          .sort((x, y) => {
            for (const [i, { name, type }] of schema.fields.entries()) {
              const [a, b] = [rows[x]![name] ?? null, rows[y]![name] ?? null];
              if (a === null && b === null) continue;
              if (a === null || b === null) return (a === null) === (flags[i + 1] ?? false) ? -1 : 1;
              const compared = compare(type.kind, a, b) * (flags[i] ? -1 : 1);
              if (compared !== 0) return compared;
            }
            return x - y;
          });
        const show = (at: number): unknown => exactRow(schema.fields, rows[at]!);
        expect(
          Array.from(order),
          JSON.stringify(expected.map(show), (_, v) => (typeof v === "bigint" ? `${v}` : v)),
        ).toEqual(expected);
      }),
    );
  });
});

function compare(kind: string, a: Exclude<Value, null>, b: Exclude<Value, null>): number {
  if (kind === "string" || kind === "json") return Buffer.compare(Buffer.from(a as string), Buffer.from(b as string));
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  if (kind === "float32" || kind === "float64") {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  }
  return a < b ? -1 : a > b ? 1 : 0;
}
