import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../src/errors.js";
import type { InferrerOptions } from "../src/parser.js";
import { createTextInferrer } from "../src/text-parser.js";
import { inferRows, inferSchema, parse, parseRows, schemaOf, types, utf8 } from "./text.js";

/** The type of a column `c` that holds these values, as JSON text. */
function typeOf(...values: string[]): string | undefined {
  return types(inferSchema(values.map((value) => `{"c":${value}}`).join("\n"))).c;
}

/** The type that a column `c` of type `base` evolves to. */
function evolved(base: string, values: string[], options: InferrerOptions = {}): string | undefined {
  const text = values.map((value) => `{"c":${value}}`).join("\n");
  return types(inferSchema(text, { ...options, base: schemaOf({ c: base }) })).c;
}

describe("types of new columns", () => {
  test("scalars", () => {
    expect(typeOf("true", "false", "null")).toBe("bool");
    expect(typeOf("1", "-9223372036854775808", "9223372036854775807")).toBe("int64");
    expect(typeOf('"x"')).toBe("string");
    expect(typeOf("1.5")).toBe("float64");
    expect(typeOf("1.0", "2e3")).toBe("float64");
  });

  test("D01: a value that differs late in the batch", () => {
    const many = new Array<string>(25_000).fill('{"n":7}');
    const odd = ['{"n":1.5}', '{"n":null}', '{"n":8,"late":"z"}'];
    for (const lines of [
      [...many, ...odd],
      [...odd, ...many],
      [...many.slice(0, 12_000), ...odd, ...many.slice(12_000)],
    ]) {
      const schema = inferSchema(lines.join("\n"));
      expect(types(schema)).toEqual({ n: "float64", late: "string" });
      const { rows, rejects } = parse(lines.join("\n"), schema);
      expect(rejects).toEqual([]);
      expect(rows.reduce((sum, { n }) => sum + ((n as number | null) ?? 0), 0)).toBe(175_009.5);
      expect(rows.filter(({ n }) => n === null)).toHaveLength(1);
      expect(rows.filter(({ late }) => late !== null)).toEqual([{ n: 8, late: "z" }]);
    }
  });

  test("D02: integers beyond 64 bits", () => {
    expect(typeOf("9223372036854775808")).toBe("decimal(38,0)");
    expect(typeOf("1", "18446744073709551616")).toBe("decimal(38,0)");
    expect(typeOf("-99999999999999999999999999999999999999")).toBe("decimal(38,0)");
    // No numeric type holds it; json keeps it, and later numbers, digit by digit.
    expect(typeOf("1", "100000000000000000000000000000000000000")).toBe("json");
  });

  test("fractions with integers that float64 does not hold", () => {
    expect(typeOf("0.5", "9007199254740992")).toBe("float64");
    expect(typeOf("0.5", "9007199254740993")).toBe("decimal(17,1)");
    expect(typeOf("0.500", "9007199254740993")).toBe("decimal(17,1)");
    expect(typeOf("1.0", "9007199254740993")).toBe("decimal(38,0)");
    expect(typeOf("1e-30", "9007199254740993")).toBe("json");
    expect(typeOf(`0.${"1".repeat(22)}`, "9007199254740993")).toBe("decimal(38,22)");
    expect(typeOf(`0.${"1".repeat(23)}`, "9007199254740993")).toBe("json");
  });

  test("D04: digit strings are strings", () => {
    expect(typeOf('"0042"', '"30"')).toBe("string");
    expect(typeOf('"true"', '"false"')).toBe("string");
  });

  test("D75: only text that is always an instant", () => {
    expect(typeOf('"2031-02-03T04:05:06+05:30"', '"2031-02-02T22:35:06Z"', "null")).toBe("timestamptz");
    expect(typeOf('"2031-02-03T04:05:06Z"', '"2031-02-03T04:05:06"')).toBe("string");
    expect(typeOf('"2031-02-03T04:05:06"', '"2031-02-03T04:05:06Z"')).toBe("string");
    expect(typeOf('"2031-02-03"')).toBe("string");
    expect(typeOf('"2031-02-03T24:00:00Z"')).toBe("string");
    expect(typeOf('"\\u0032031-02-03T04:05:06Z"')).toBe("timestamptz");
    const text = '{"c":"2031-02-03T04:05:06Z"}';
    expect(types(inferSchema(text, { inferTimestamps: false }))).toEqual({ c: "string" });
  });

  test("mixed kinds are json", () => {
    const kinds = ["true", "1", '"x"', '{"a":1}', "[1]"];
    for (const one of kinds) for (const other of kinds) if (one !== other) expect(typeOf(one, other)).toBe("json");
    expect(typeOf("[1]", '["x"]')).toBe("list<json>");
    expect(typeOf('{"a":1}', '{"a":"x"}')).toBe("struct<a: json>");
    expect(typeOf("{}", '"x"')).toBe("json");
    expect(typeOf("[]", '{"a":1}')).toBe("json");
  });

  test("D05: what holds nothing stays unknown", () => {
    expect(typeOf("null")).toBe("unknown");
    expect(typeOf("{}", "[]", "null")).toBe("unknown");
    expect(typeOf("[[]]", "[]")).toBe("list<unknown>");
    expect(typeOf("{}", '{"y":{}}')).toBe("struct<y: unknown>");
    expect(types(inferSchema('{"a":1,"x":{}}\n{"a":2,"x":{"y":{}}}'))).toEqual({ a: "int64", x: "struct<y: unknown>" });
  });

  test("nested", () => {
    expect(typeOf('[{"a":[1,null]},{"b":{"c":true}}]', '[{"a":[1.5]}]')).toBe(
      "list<struct<a: list<float64>, b: struct<c: bool>>>",
    );
  });

  test("D07, D09: names", () => {
    const text = '{"Photo":1}\n{"photo":2,"photo_1":3}\n{"a.b":1,"a":{"b":2},"":3,"k k":4,"\\u00e9":5,"e\\u0301":6}';
    expect(types(inferSchema(text))).toEqual({
      Photo: "int64",
      photo_1: "int64",
      "a.b": "int64",
      a: "struct<b: int64>",
      _empty: "int64",
      "k k": "int64",
      "\u00e9": "int64",
      "e\u0301": "int64",
    });
  });

  test("D07: a row with two spellings does not count; an object with two is json", () => {
    expect(types(inferSchema('{"x":1}\n{"A":1,"a":"x","new":1}\n{"x":2}'))).toEqual({ x: "int64" });
    expect(typeOf('{"k":1}', '{"K":1,"k":2}')).toBe("json");
  });

  test("D11: an overridden value does not count", () => {
    expect(types(inferSchema('{"a":"x","b":{"c":1},"a":1,"b":{"d":2}}'))).toEqual({
      a: "int64",
      b: "struct<d: int64>",
    });
  });

  test("D12: a row beyond float64 does not count", () => {
    expect(types(inferSchema('{"x":1e400,"y":1}\n{"x":1}'))).toEqual({ x: "int64" });
  });

  test("D71: rows of a wrong form do not count", () => {
    const text = '{"a":1}\n{"a":"x"},\n3\n{"b":1\n[1]\n{"c":"\\ud800"}\n\n{"a":2}';
    const inferrer = createTextInferrer({ format: "ndjson" });
    inferrer.push(utf8(text));
    expect(types(inferrer.end())).toEqual({ a: "int64" });
    expect(inferrer.rows).toBe(2);
  });

  test("D80: names of Object.prototype", () => {
    const { fields } = inferSchema('{"__proto__":{"x":1},"hasOwnProperty":2,"toString":"s","constructor":null}');
    expect(fields.map(({ name }) => name)).toEqual(["__proto__", "hasOwnProperty", "toString", "constructor"]);
  });

  test("D74: objects with ids as keys become json above 1,000 keys; below, their number does not matter", () => {
    const events = Array.from({ length: 200 }, (_, i) => {
      const keys = Array.from({ length: 50 }, (_, k) => `"id_${i * 50 + k}":${k}`);
      return `{"n":${i},"p":{${keys.join(",")}}}`;
    });
    expect(types(inferSchema(events.join("\n")))).toEqual({ n: "int64", p: "json" });
    const { rows } = parse(events.join("\n"), inferSchema(events.join("\n")));
    expect(JSON.parse(rows[199]!.p as string)).toHaveProperty("id_9999", 49);
    for (const count of [24, 25, 199, 200, 1000, 1001]) {
      const object = `{${Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join(",")}}`;
      expect(typeOf(object)!.startsWith("struct<")).toBe(count <= 1000);
      expect(typeOf(object, '{"k0":"x"}') === "json").toBe(count > 1000);
    }
  });

  test("D74: a table of ids as keys is refused", () => {
    const row = `{${Array.from({ length: 10_001 }, (_, i) => `"k${i}":0`).join(",")}}`;
    expect(() => inferSchema(row)).toThrow(InvalidInputError);
    expect(() => inferSchema(row)).toThrow(/10001 columns/);
  });

  test("a sample: a row that is cut at its end does not count and is no error", () => {
    for (const [format, text] of [
      ["ndjson", '{"a":1}\n{"b":2'],
      ["json", '[{"a":1},{"b":2'],
    ] as const) {
      const inferrer = createTextInferrer({ format });
      inferrer.push(utf8(text));
      expect(types(inferrer.schema())).toEqual({ a: "int64" });
      inferrer.push(utf8("}"));
      if (format === "json") inferrer.push(utf8("]"));
      expect(types(inferrer.end())).toEqual({ a: "int64", b: "int64" });
    }
  });

  test("input that is broken as a whole throws as a parser does", () => {
    expect(() => inferSchema('[{"a":1}', { format: "json" })).toThrow(InvalidInputError);
    expect(() => inferSchema(Uint8Array.of(0x7b, 0xff))).toThrow(/byte offset 1/);
  });
});

describe("evolution", () => {
  const LARGE = "9007199254740993";

  test("numbers widen by the table", () => {
    expect(evolved("int8", ["127"])).toBe("int8");
    expect(evolved("int8", ["128"])).toBe("int16");
    expect(evolved("int8", ["-32769"])).toBe("int32");
    expect(evolved("int32", ["2147483648"])).toBe("int64");
    expect(evolved("int64", ["9223372036854775808"])).toBe("decimal(38,0)");
    expect(evolved("uint8", ["256"])).toBe("uint16");
    expect(evolved("uint8", ["-1"])).toBe("int16");
    expect(evolved("uint32", ["-1"])).toBe("int64");
    expect(evolved("uint32", ["18446744073709551615"])).toBe("uint64");
    expect(evolved("uint64", ["-1"])).toBe("decimal(38,0)");
    expect(evolved("uint64", ["18446744073709551616"])).toBe("decimal(38,0)");
    expect(evolved("int32", ["1.5"])).toBe("float64");
    expect(evolved("int32", ["1.0", "2e1"])).toBe("int32");
    expect(evolved("int32", ["1.5", LARGE])).toBe("decimal(17,1)");
    expect(evolved("float32", ["16777216", "0.1"])).toBe("float32");
    expect(evolved("float32", ["16777217"])).toBe("float64");
    expect(evolved("float32", ["1e39"])).toBe("float64");
    expect(evolved("float64", [LARGE])).toBe("float64");
    expect(evolved("decimal(10,2)", ["12345678.91"])).toBe("decimal(10,2)");
    expect(evolved("decimal(10,2)", ["0.123"])).toBe("decimal(11,3)");
    expect(evolved("decimal(10,2)", ["1234567890"])).toBe("decimal(12,2)");
    expect(evolved("decimal(38,2)", ["0.123"])).toBe("decimal(38,2)");
  });

  test("64-bit integers become floats only where the stored ones are known to be exact", () => {
    const bounds = (min: bigint, max: bigint): InferrerOptions => ({ integerBounds: new Map([[1, { min, max }]]) });
    expect(evolved("int64", ["1.5"], bounds(0n, 2n ** 53n))).toBe("float64");
    expect(evolved("int64", ["1.5"], bounds(0n, 2n ** 53n + 1n))).toBe("decimal(20,1)");
    expect(evolved("int64", ["1.5"])).toBe("decimal(20,1)");
    expect(evolved("int64", ["1.5", LARGE], bounds(0n, 5n))).toBe("decimal(20,1)");
    expect(evolved("uint64", ["0.25"], bounds(0n, 5n))).toBe("float64");
    expect(evolved("int64", ["1e-30"])).toBe("int64");
  });

  test("a change of kind does not widen", () => {
    for (const base of [
      "int64",
      "float64",
      "string",
      "bool",
      "timestamptz",
      "list<int64>",
      "struct<a: int64>",
      "date",
    ]) {
      expect(evolved(base, ["true", "1", '"x"', '{"a":1}', "[1]", "null"])).toBe(base);
    }
    expect(evolved("string", ['"2031-02-03T04:05:06Z"'])).toBe("string");
    expect(evolved("json", ["1", '"x"', "1.5"])).toBe("json");
  });

  test("unknown becomes anything, fields are added at every depth, and names keep their case", () => {
    const base = schemaOf({
      u: "unknown",
      S: "struct<a: int8, u: unknown>",
      l: "list<struct<x: int64>>",
      m: "map<string,int8>",
    });
    const text = '{"U":[1],"s":{"A":300,"u":{},"new":"x"},"l":[{"X":1,"y":true}],"m":{"k":1,"K":1000},"extra":{"z":1}}';
    const schema = inferSchema(text, { base });
    expect(types(schema)).toEqual({
      u: "list<int64>",
      S: "struct<a: int16, u: unknown, new: string>",
      l: "list<struct<x: int64, y: bool>>",
      m: "map<string,int16>",
      extra: "struct<z: int64>",
    });
    const ids = JSON.stringify(schema).match(/"id":\d+/g);
    expect(ids).toEqual([1, 0, 2, 3, 4, 0, 5, 6, 7, 0, 8, 9, 10, 0, 0].map((id) => `"id":${id}`));
    expect(parse(text, schema).rejects).toEqual([]);
  });

  test("D02: the same table, one batch after the other", () => {
    let type = "int64";
    const digits = ["9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616"];
    for (const value of digits) {
      type = evolved(type, [value])!;
      expect(parse(`{"c":${value}}`, { c: type }).rows.map(({ c }) => String(c))).toEqual([value]);
    }
    expect(type).toBe("decimal(38,0)");
  });

  test("a struct of the table does not grow without bound", () => {
    const object = `{${Array.from({ length: 1001 }, (_, i) => `"k${i}":${i}`).join(",")}}`;
    expect(() => evolved("struct<k0: int64>", [object])).toThrow(/1001 fields/);
  });
});

describe("JavaScript rows", () => {
  test("types by value", () => {
    const rows = [
      {
        n: 1,
        f: 1.5,
        b: 1n,
        big: 2n ** 64n,
        s: "x",
        t: true,
        d: new Date(0),
        bin: Uint8Array.of(1),
        u: undefined,
        z: null,
      },
      { n: -0, f: 2, b: 2, big: 1, l: [1, null], typed: Float64Array.of(1, 2), m: new Map([["k", 1]]), o: { p: {} } },
    ];
    const schema = inferRows(rows);
    expect(types(schema)).toEqual({
      n: "int64",
      f: "float64",
      b: "int64",
      big: "decimal(38,0)",
      s: "string",
      t: "bool",
      d: "timestamptz",
      bin: "binary",
      z: "unknown",
      l: "list<int64>",
      typed: "list<int64>",
      m: "struct<k: int64>",
      o: "struct<p: unknown>",
    });
    expect(parseRows(rows, schema, { unknownFields: "misfit", valueMisfits: "misfit" }).rejects).toEqual([]);
  });

  test("D12: NaN, infinities and −0 are floats", () => {
    expect(types(inferRows([{ x: Number.NaN }, { x: 1 }]))).toEqual({ x: "float64" });
    expect(types(inferRows([{ x: -Infinity }, { x: 2n ** 60n + 1n }]))).toEqual({ x: "json" });
  });

  test("dates with text", () => {
    const date = new Date(0);
    expect(types(inferRows([{ d: date }, { d: "2031-02-03T04:05:06Z" }]))).toEqual({ d: "timestamptz" });
    expect(types(inferRows([{ d: date }, { d: "x" }]))).toEqual({ d: "json" });
    expect(types(inferRows([{ d: date }], { inferTimestamps: false }))).toEqual({ d: "timestamptz" });
  });

  test("D02: a number that is no safe integer does not make a column float", () => {
    expect(types(inferRows([{ id: 2 ** 53 }]))).toEqual({ id: "int64" });
    expect(types(inferRows([{ id: 1e300 }, { id: 0.5 }]))).toEqual({ id: "float64" });
  });

  test("rows that are rejects under any schema do not count", () => {
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    const rows = [
      { a: 1 },
      { b: () => 1 },
      cycle,
      { c: new Date(Number.NaN) },
      { d: "\ud800" },
      { E: 1, e: 2 },
      null,
      3,
      [1],
    ];
    expect(types(inferRows(rows))).toEqual({ a: "int64" });
  });

  test("toJSON stands for the object", () => {
    const url = new URL("https://example.com/");
    expect(types(inferRows([{ url, n: { toJSON: () => [1] } }]))).toEqual({ url: "string", n: "list<int64>" });
  });
});
