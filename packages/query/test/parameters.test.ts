import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SqlParam } from "../src/index.js";
import { TestLake } from "./support.js";

let lake: TestLake;
beforeAll(async () => {
  lake = await TestLake.open();
});
afterAll(async () => {
  await lake[Symbol.asyncDispose]();
});

describe("types of parameters", () => {
  test.each<[SqlParam, string, unknown]>([
    [null, '"NULL"', null],
    [true, "BOOLEAN", true],
    [1, "INTEGER", 1],
    [2147483648, "BIGINT", 2147483648n],
    [-0, "DOUBLE", -0],
    [1.5, "DOUBLE", 1.5],
    [Number.NaN, "DOUBLE", Number.NaN],
    [2 ** 53, "DOUBLE", 2 ** 53],
    [1n, "BIGINT", 1n],
    [2n ** 63n, "HUGEINT", 2n ** 63n],
    [-(2n ** 127n), "HUGEINT", -(2n ** 127n)],
    ["it's $1 ?", "VARCHAR", "it's $1 ?"],
    ["a\0b", "VARCHAR", "a\0b"],
    [new Date(-1), "TIMESTAMP WITH TIME ZONE", "1969-12-31T23:59:59.999000Z"],
    [new Date(8.64e15), "TIMESTAMP WITH TIME ZONE", "+275760-09-13T00:00:00.000000Z"],
    [Uint8Array.of(0, 255), "BLOB", Uint8Array.of(0, 255)],
    [[1, null, 3], "INTEGER[]", [1, null, 3]],
    [[1, 2n ** 40n], "BIGINT[]", [1n, 2n ** 40n]],
    [[1, 1.5], "DOUBLE[]", [1, 1.5]],
    [[[1], []], "INTEGER[][]", [[1], []]],
    [["a", "b"], "VARCHAR[]", ["a", "b"]],
    [
      { a: 1, b: ["x"], c: { d: null } },
      'STRUCT(a INTEGER, b VARCHAR[], c STRUCT(d "NULL"))',
      { a: 1, b: ["x"], c: { d: null } },
    ],
    [
      [{ a: 1 }, { b: "x" }],
      "STRUCT(a INTEGER, b VARCHAR)[]",
      [
        { a: 1, b: null },
        { a: null, b: "x" },
      ],
    ],
  ])("%s is %s", async (param, type, value) => {
    const [row] = await lake.sql<{ t: string; v: unknown }>("SELECT typeof($1) AS t, $1 AS v", [param]);
    expect(row).toStrictEqual({ t: type, v: value });
    expect(await lake.sql("SELECT $1 AS v", [param]).first()).toStrictEqual({ v: value });
  });

  test("an empty list", async () => {
    expect(await lake.sql("SELECT len($1) AS n, 1 = ANY($1) AS found", [[]])).toEqual([{ n: 0n, found: false }]);
  });

  test.each<[string, unknown, RegExp]>([
    ["undefined", undefined, /undefined: pass null/],
    ["a function", () => 1, /function/],
    ["an invalid date", new Date(Number.NaN), /invalid Date/],
    ["too wide an integer", 2n ** 127n, /128 bits/],
    ["half a character", "\ud800", /Unicode/],
    ["an object without fields", {}, /without fields/],
    ["a class instance", new URL("https://example.com"), /URL/],
    ["a map", new Map(), /Map/],
    ["mixed kinds", [1, "a"], /mixes int32 and text/],
    ["undefined inside", [{ a: undefined }], /field "a" of element 0 of parameter 1 is undefined/],
    ["a bigint that no double holds", [1.5, 2n ** 60n + 1n], /no double/],
  ])("%s is refused", async (_name, param, message) => {
    await expect(Promise.resolve(lake.sql({ sql: "SELECT $1", params: [param] }))).rejects.toMatchObject({
      name: "InvalidInputError",
      code: "bad_parameter",
      message: expect.stringMatching(message),
    });
  });

  test("any JSON-like value survives, as itself and inside a list", async () => {
    const leaf = fc.oneof(
      fc.integer(),
      fc.double({ noNaN: true }),
      fc.bigInt({ min: -(2n ** 127n), max: 2n ** 127n - 1n }),
      fc.string({ unit: "grapheme" }),
      fc.boolean(),
      fc.constant(null),
    );
    await fc.assert(
      fc.asyncProperty(leaf, async (param) => {
        const [row] = await lake.sql<{ v: unknown; w: unknown[] }>("SELECT $1 AS v, [$1] AS w", [param]);
        const expected =
          typeof param === "number" && Number.isSafeInteger(param) && (param | 0) !== param && !Object.is(param, -0)
            ? BigInt(param)
            : param;
        expect(row!.v).toStrictEqual(expected);
        expect(row!.w).toStrictEqual([expected]);
      }),
      { numRuns: 150 },
    );
  });
});

describe("places of parameters", () => {
  test("?, $n, $name, templates, and query builders' objects", async () => {
    const { sql } = lake;
    expect(await sql("SELECT ? AS a, ? AS b", [1, 2])).toEqual([{ a: 1, b: 2 }]);
    expect(await sql("SELECT $2 AS a, $1 AS b, $2 + 1 AS c", [1, 2])).toEqual([{ a: 2, b: 1, c: 3 }]);
    expect(await sql("SELECT $b AS b, $a AS a", { a: 1, b: 2 })).toEqual([{ b: 2, a: 1 }]);
    expect(await sql({ sql: "SELECT ? AS a", parameters: [1] })).toEqual([{ a: 1 }]);
    expect(await sql({ sql: "SELECT $1 AS a", params: [1] })).toEqual([{ a: 1 }]);
    expect(await sql("SELECT '?' AS a, $$ $1 $$ AS b -- ?")).toEqual([{ a: "?", b: " $1 " }]);
  });

  test("a template keeps its values apart from words beside them", async () => {
    expect(await lake.sql`SELECT 10 LIMIT${1}`).toEqual([{ "10": 10 }]);
    expect(await lake.sql`SELECT ${1}AS a`).toEqual([{ a: 1 }]);
  });

  test.each<[string, unknown, RegExp, number | undefined]>([
    ["SELECT ?, ?", [1], /parameter 2 has no value: 1 value was passed/, 10],
    ["SELECT $1, $3", [1, 2, 3], /value 2 of 3 is not used/, undefined],
    ["SELECT 1", [1], /value 1 of 1 is not used/, undefined],
    ["SELECT '?'", [1], /inside quotes/, undefined],
    ["SELECT $1", [], /parameter 1 has no value/, 7],
    ["SELECT $0", [1], /parameter 0 has no value/, 7],
    ["SELECT $a", [1], /\$a is named/, 7],
    ["SELECT $a", {}, /\$a has no value/, 7],
    ["SELECT $a", { a: 1, b: 2 }, /value "b" is not used/, undefined],
    ["SELECT ?", { a: 1 }, /as an array/, 7],
    ["SELECT ?, $1", [1, 2], /one kind/, 10],
    ["SELECT $1, $a", [1, 2], /one kind/, 7],
    ["SELECT $toString", {}, /\$toString has no value/, 7],
  ])("%s with %j", async (text, params, message, position) => {
    await expect(Promise.resolve(lake.sql(text, params as SqlParam[]))).rejects.toMatchObject({
      name: "QueryError",
      code: "bad_parameters",
      message: expect.stringMatching(message),
      position,
    });
  });

  test("what is no query", () => {
    expect(() => lake.sql(1 as unknown as string)).toThrow(expect.objectContaining({ code: "bad_query" }));
  });
});
