import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { SchemaMisfit } from "../src/parser.js";
import { inferRows, parseRows, types } from "./text.js";

/** Whether each value fits a column of the type: the value stored, or a reject code. */
function fit(type: string, ...values: unknown[]): unknown[] {
  return values.map((value) => {
    const { rows, rejects } = parseRows([{ c: value }], { c: type }, { values: "exact" });
    return rejects[0]?.code ?? rows[0]!.c;
  });
}

const MISMATCH = "type_mismatch";

describe("JavaScript rows", () => {
  test("integers", () => {
    expect(fit("int64", 1, -0, 5n, 2 ** 53 - 1, -(2n ** 63n), null, undefined)).toEqual([
      1n,
      0n,
      5n,
      9007199254740991n,
      -9223372036854775808n,
      null,
      null,
    ]);
    expect(fit("int64", 1.5, "1", true, 2n ** 63n, Number.NaN, Infinity, new Date(0))).toEqual(
      new Array(7).fill(MISMATCH),
    );
    expect(fit("int64", 2 ** 53, -1e300)).toEqual(["unsafe_integer", "unsafe_integer"]);
    expect(fit("uint64", 2n ** 64n - 1n, 2n ** 64n, -1, -1n)).toEqual([2n ** 64n - 1n, MISMATCH, MISMATCH, MISMATCH]);
    expect(fit("int8", 127, 128, -128n, 1.5)).toEqual([127, MISMATCH, -128, MISMATCH]);
    expect(fit("uint32", 4294967295, 4294967296, -1)).toEqual([4294967295, MISMATCH, MISMATCH]);
    expect(fit("int32", 2n ** 80n, 1e300)).toEqual([MISMATCH, "unsafe_integer"]);
  });

  test("an unsafe integer is refused at once, saying what to do", () => {
    const { rejects } = parseRows([{ c: 2 ** 53 }], { c: "int64" }, { valueMisfits: "misfit" });
    expect(rejects).toMatchObject([{ line: 1, code: "unsafe_integer", raw: '{"c":9007199254740992}' }]);
    expect(rejects[0]!.reason).toContain("pass a bigint");
  });

  test("D12: floats", () => {
    expect(fit("float64", Number.NaN, Infinity, -Infinity, -0, 1e300, 0.1, 5n, 2n ** 53n + 1n, "1")).toEqual([
      Number.NaN,
      Infinity,
      -Infinity,
      -0,
      1e300,
      0.1,
      5,
      MISMATCH,
      MISMATCH,
    ]);
    expect(fit("float32", 0.1, Number.NaN, -Infinity, 16777217, 1e39, 2n ** 25n)).toEqual([
      Math.fround(0.1),
      Number.NaN,
      -Infinity,
      MISMATCH,
      MISMATCH,
      33554432,
    ]);
  });

  test("decimals", () => {
    expect(fit("decimal(12,2)", 1.5, 12n, -3, "4.50", 0.001, 1e-7, 2 ** 53, 10n ** 11n, Number.NaN, true)).toEqual([
      "1.50",
      "12.00",
      "-3.00",
      "4.50",
      MISMATCH,
      MISMATCH,
      "unsafe_integer",
      MISMATCH,
      MISMATCH,
      MISMATCH,
    ]);
    expect(fit("decimal(38,0)", -(10n ** 38n) + 1n)).toEqual(["-99999999999999999999999999999999999999"]);
    expect(fit("decimal(10,9)", 1e-7)).toEqual(["0.000000100"]);
  });

  test("text", () => {
    expect(fit("string", "é😀\u0000\ufeff", "", 1, new Date(0))).toEqual(["é😀\u0000\ufeff", "", MISMATCH, MISMATCH]);
    expect(fit("string", "a\ud800", "\udc00\ud800")).toEqual(["bad_text", "bad_text"]);
    expect(fit("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "x")).toEqual([
      "f79c3e09-677c-4bbd-a479-3f349cb785e7",
      MISMATCH,
    ]);
    expect(fit("date", "2031-02-03", new Date(0))).toEqual(["2031-02-03", MISMATCH]);
    expect(fit("bool", true, "true", 0)).toEqual([true, MISMATCH, MISMATCH]);
  });

  test("instants", () => {
    expect(fit("timestamptz", new Date(-1), "1970-01-01T00:00:00.000001+00:00", "1970-01-01", 0)).toEqual([
      "1969-12-31T23:59:59.999000Z",
      "1970-01-01T00:00:00.000001Z",
      MISMATCH,
      MISMATCH,
    ]);
    expect(fit("timestamptz", new Date(Number.NaN), new Date(8.64e15))).toEqual(["bad_date", "bad_date"]);
  });

  test("bytes", () => {
    const bytes = Uint8Array.of(1, 2, 3, 4);
    expect(
      fit("binary", bytes.subarray(1, 3), Buffer.from([5]), bytes.buffer, new DataView(bytes.buffer, 3), "AQ==", [1]),
    ).toEqual([Uint8Array.of(2, 3), Uint8Array.of(5), bytes, Uint8Array.of(4), Uint8Array.of(1), MISMATCH]);
    expect(fit("fixed(2)", bytes.subarray(0, 2), bytes)).toEqual([Uint8Array.of(1, 2), MISMATCH]);
  });

  test("lists, structs and maps", () => {
    expect(
      fit("list<int64>", [1, null, undefined, 2n], Int32Array.of(3), BigInt64Array.of(4n), [], "x", {}, ["x"]),
    ).toEqual([[1n, null, null, 2n], [3n], [4n], [], MISMATCH, MISMATCH, MISMATCH]);
    expect(fit("list<bool>", Array(2))).toEqual([[null, null]]);
    expect(
      fit("struct<a: int64>", { A: 1 }, new Map([["a", 2]]), {}, { a: 1, A: 2 }, { a: undefined, A: 3 }, []),
    ).toEqual([{ a: 1n }, { a: 2n }, { a: null }, "duplicate_key", { a: 3n }, MISMATCH]);
    expect(fit("map<string,int64>", { x: 1, X: 2 }, new Map([["", null]]), new Map([[1, 1]]))).toEqual([
      new Map([
        ["x", 1n],
        ["X", 2n],
      ]),
      new Map([["", null]]),
      MISMATCH,
    ]);
    expect(
      fit(
        "map<int64,bool>",
        new Map<unknown, boolean>([
          [1, true],
          [2n, false],
        ]),
        new Map<unknown, boolean>([
          [1, true],
          [1n, false],
        ]),
      ),
    ).toEqual([
      new Map([
        [1n, true],
        [2n, false],
      ]),
      "duplicate_key",
    ]);
  });

  test("json takes what JSON can say", () => {
    expect(
      fit(
        "json",
        { b: 1n, a: [undefined, -0], d: new Date(0), u: undefined, bytes: Uint8Array.of(1) },
        "x",
        1e21,
        new Map([["k", 2n ** 70n]]),
      ),
    ).toEqual([
      '{"b":1,"a":[null,-0],"d":"1970-01-01T00:00:00.000Z","bytes":"AQ=="}',
      '"x"',
      "1e+21",
      '{"k":1180591620717411303424}',
    ]);
    expect(fit("json", { x: Number.NaN }, "\ud800", { f: () => 1 })).toEqual([
      MISMATCH,
      "bad_text",
      "unsupported_value",
    ]);
  });

  test("an unknown column takes what holds nothing", () => {
    expect(parseRows([{ x: null }, { x: {} }, { x: [] }, {}, { x: new Map() }], { x: "unknown" }).rejects).toEqual([]);
    expect(fit("unknown", 0, [1], { a: undefined }, { a: null })).toEqual([MISMATCH, MISMATCH, undefined, MISMATCH]);
  });

  test("objects with toJSON, and those of other realms", () => {
    expect(fit("string", new URL("https://example.com/"), { toJSON: () => null })).toEqual([
      "https://example.com/",
      null,
    ]);
    const [date, map, array, object] = runInNewContext("[new Date(5), new Map([['a', 1]]), [1], { a: 1 }]") as [
      Date,
      Map<string, number>,
      number[],
      object,
    ];
    expect(fit("timestamptz", date)).toEqual(["1970-01-01T00:00:00.005000Z"]);
    expect(fit("struct<a: int64>", map, object)).toEqual([{ a: 1n }, { a: 1n }]);
    expect(fit("list<int64>", array)).toEqual([[1n]]);
    expect(
      fit("string", {
        toJSON: () => {
          throw new Error("no");
        },
      }),
    ).toEqual(["unsupported_value"]);
  });

  test("what has no column type is refused whatever the column", () => {
    const values = [() => 1, Symbol("x"), new Set([1]), /x/, new Error("x"), Promise.resolve(1), Object(1)];
    for (const type of ["int64", "string", "json", "unknown"]) {
      expect(fit(type, ...values)).toEqual(new Array(values.length).fill("unsupported_value"));
    }
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const endless: unknown[] = [];
    endless.push(endless);
    expect(fit("json", cycle, endless)).toEqual(["too_deep", "too_deep"]);
    expect(parseRows([cycle], { a: "int64" }, { unknownFields: "misfit" }).rejects).toMatchObject([
      { code: "too_deep" },
    ]);
  });

  test("rows that are no objects", () => {
    const { rows, rejects } = parseRows([1, null, "x", [1], new Date(), { a: 1 }, new Map([["a", 2]])], { a: "int64" });
    expect(rejects.map(({ line, code }) => `${line} ${code}`)).toEqual(
      [1, 2, 3, 4, 5].map((line) => `${line} not_an_object`),
    );
    expect(rows).toEqual([{ a: 1 }, { a: 2 }]);
  });

  test("D07, D09, D80: keys", () => {
    const schema = { Photo: "int64", _empty: "int64", constructor: "int64" };
    const { rows, rejects } = parseRows(
      [
        { PHOTO: 1, "": 2, constructor: 3 },
        { photo: 1, Photo: 2 },
        { "": 1, _empty: 2 },
      ],
      schema,
    );
    expect(rows).toEqual([{ Photo: 1, _empty: 2, constructor: 3 }]);
    expect(rejects.map(({ line, code }) => `${line} ${code}`)).toEqual(["2 duplicate_key", "3 duplicate_key"]);
    const row = JSON.parse('{"__proto__":{"x":1}}') as object;
    expect(inferRows([row]).fields[0]!.name).toBe("__proto__");
    expect(parseRows([row], inferRows([row])).batches[0]!.columns[0]!.children[0]!.values).toEqual(
      BigInt64Array.of(1n),
    );
    // A prototype's members are no members of the row.
    expect(types(inferRows([Object.create({ inherited: 1 }, { own: { value: 1, enumerable: true } })]))).toEqual({
      own: "int64",
    });
  });

  test("unknown keys stop, reject, or are dropped and counted", () => {
    const rows = [{ a: 1, z: 2 }, { a: "x", z: 1 }, { s: { y: 1 }, Z: null }, { z: undefined }];
    const schema = { a: "int64", s: "struct<x: int64>" };
    expect(parseRows(rows, schema).rejects.map(({ code }) => code)).toEqual([
      "unknown_field",
      MISMATCH,
      "unknown_field",
    ]);
    expect(() => parseRows(rows, schema, { unknownFields: "misfit" })).toThrow(SchemaMisfit);
    expect(parseRows(rows, schema, { unknownFields: "ignore" }).ignored).toEqual({ z: 1, "s.y": 1, Z: 1 });
  });

  test("missing values, and a bad row leaves nothing behind", () => {
    const schema = { "a!": "int64", s: "struct<x!: string, l: list<int64>>" };
    const good = { a: 1, s: { x: "v", l: [1, 2] } };
    const bad = [{ s: good.s }, { a: null }, { a: 1, s: { l: [1] } }, { a: 1, s: { x: "w", l: [1, "x"] } }];
    const { rows, rejects, batches } = parseRows([good, ...bad, good], schema);
    expect(rejects.map(({ code }) => code)).toEqual(["missing_value", "missing_value", "missing_value", MISMATCH]);
    expect(rows).toEqual([good, good]);
    expect(batches).toEqual(parseRows([good, good], schema).batches);
  });

  test("batches are cut by rows and by an estimate of their bytes", () => {
    const rows = Array.from({ length: 5 }, () => ({ s: "x".repeat(100) }));
    expect(parseRows(rows, { s: "string" }, { batchRows: 2 }).batches.map(({ length }) => length)).toEqual([2, 2, 1]);
    expect(parseRows(rows, { s: "string" }, { batchBytes: 250 }).batches.map(({ length }) => length)).toEqual([3, 2]);
  });
});
