import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../src/errors.js";
import { SchemaMisfit } from "../src/parser.js";
import { type Field, parseType, toSchema } from "../src/schema.js";
import { createTextInferrer, createTextParser } from "../src/text-parser.js";
import { parse, schemaOf, utf8 } from "./text.js";

function codes(rejects: readonly { line: number; code: string }[]): string[] {
  return rejects.map(({ line, code }) => `${line} ${code}`);
}

function thrown(run: () => unknown): InvalidInputError {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidInputError) return error;
    throw error;
  }
  throw new Error("did not throw");
}

describe("NDJSON", () => {
  test("D71: blank lines and CR LF", () => {
    expect(parse('{"a":1}\r\n\r\n   \n{"a":2}\n\n', { a: "int64" })).toMatchObject({
      rows: [{ a: 1 }, { a: 2 }],
      rejects: [],
    });
    expect(parse(' \t{"a" :\t1 , "b":[ 1 ,2 ] } \r', { a: "int64", b: "list<int64>" }).rows).toEqual([
      { a: 1, b: [1, 2] },
    ]);
  });

  test("D71: a cut last line is a reject with its line", () => {
    const { rows, rejects } = parse('{"a":1}\n{"a":', { a: "int64" });
    expect(rows).toEqual([{ a: 1 }]);
    expect(rejects).toEqual([{ line: 2, code: "bad_json", reason: "is cut off", raw: '{"a":' }]);
  });

  test.each([
    '{"a":1},',
    "3",
    '"x"',
    "[1]",
    "null",
    '{"a":1}{"a":2}',
    '{"a":1,}',
    "{a:1}",
    "{'a':1}",
    '{"a":1]',
    '{"a" 1}',
  ])("D71: the line %s is a reject", (line) => {
    const { rows, rejects } = parse(`{"a":7}\n${line}\n{"a":8}`, { a: "int64" });
    expect(rows).toEqual([{ a: 7 }, { a: 8 }]);
    expect(codes(rejects)).toEqual(["2 bad_json"]);
  });

  test("D71: U+2028 and U+FEFF inside text are kept, a byte-order mark at the start is not", () => {
    const text = '\ufeff{"a":"x\u2028y\ufeff"}\n{"a":"\ufeff"}';
    expect(parse(text, { a: "string" }).rows).toEqual([{ a: "x\u2028y\ufeff" }, { a: "\ufeff" }]);
  });

  test("D71: a top-level array is read as JSON", () => {
    expect(parse(' \n[{"a":1},\n{"a":2}\n]', { a: "int64" }).rows).toEqual([{ a: 1 }, { a: 2 }]);
  });

  test("input that is not UTF-8 is an error of the whole input, with its place", () => {
    const bytes = Uint8Array.from([...utf8('{"a":"x"}\n{"a":"'), 0x96, ...utf8('"}\n')]);
    const error = thrown(() => parse(bytes, { a: "string" }));
    expect(error.code).toBe("bad_encoding");
    expect(error.message).toContain("line 2");
    expect(error.message).toContain("byte offset 16");
  });

  test("UTF-16 with a byte-order mark is decoded", () => {
    const text = '\ufeff{"a":"é😀"}\n{"a":"x"}';
    const bytes = new Uint8Array(text.length * 2);
    for (let i = 0; i < text.length; i++) new DataView(bytes.buffer).setUint16(i * 2, text.charCodeAt(i), true);
    expect(parse(bytes, { a: "string" }, { cuts: [1, 12, 13] }).rows).toEqual([{ a: "é😀" }, { a: "x" }]);
  });

  test("a line larger than 16 MiB is a reject, and what follows is taken", () => {
    const large = `{"a":"${"x".repeat(16 * 1024 * 1024)}"}`;
    const { rows, rejects } = parse(
      `{"a":"1"}\n${large}\n{"a":"2"}`,
      { a: "string" },
      { cuts: [5_000_000, 12_000_000] },
    );
    expect(rows).toEqual([{ a: "1" }, { a: "2" }]);
    expect(codes(rejects)).toEqual(["2 row_too_large"]);
    expect(rejects[0]!.raw).toHaveLength(64 * 1024);
  });

  test("too many rejects", () => {
    const error = thrown(() => parse("1\n2\n3\n", { a: "int64" }, { maxRejects: 2 }));
    expect(error.code).toBe("too_many_rejects");
    expect(error.rows.map(({ line }) => line)).toEqual([1, 2]);
  });

  test("batches are cut by rows and by bytes", () => {
    const lines = Array.from({ length: 25 }, (_, i) => `{"a":${i}}`).join("\n");
    const byRows = parse(lines, { a: "int64" }, { batchRows: 10 });
    expect(byRows.batches.map(({ length }) => length)).toEqual([10, 10, 5]);
    expect(byRows.rows.map(({ a }) => a)).toEqual(Array.from({ length: 25 }, (_, i) => i));
    const byBytes = parse(lines, { a: "int64" }, { batchBytes: 40 });
    expect(byBytes.batches.map(({ length }) => length)).toEqual([6, 6, 5, 5, 3]);
  });
});

describe("JSON", () => {
  const json = (text: string, cuts: readonly number[] = []) => parse(text, { a: "int64" }, { format: "json", cuts });

  test("an array of objects over many lines; a row's line is where it begins", () => {
    const text = '[\n  {"a": 1},\n  {\n    "a": 2\n  }\n  ,\n  {"a": "x"}, [1], 5, "]", {"a":3}\n]\n';
    const { rows, rejects } = json(text);
    expect(rows).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
    expect(codes(rejects)).toEqual(["7 type_mismatch", "7 bad_json", "7 bad_json", "7 bad_json"]);
    for (let cut = 0; cut <= text.length; cut++) {
      const split = json(text, [cut]);
      expect(split.rows).toEqual(rows);
      expect(split.rejects).toEqual(rejects);
    }
  });

  test("one object is one row; objects may follow each other", () => {
    expect(json(' {"a":1} ').rows).toEqual([{ a: 1 }]);
    expect(json('{"a":1}{"a":2}\n\n{\n"a":3}').rows).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
    expect(json("[]").rows).toEqual([]);
    expect(json("").rows).toEqual([]);
  });

  test("brackets and escaped quotes within text do not end a row", () => {
    const text = '[{"s":"}]\\"{["},{"s":"\\\\"},{"s":"]"}]';
    expect(parse(text, { s: "string" }, { format: "json" }).rows).toEqual([{ s: '}]"{[' }, { s: "\\" }, { s: "]" }]);
  });

  test.each([
    ['[{"a":1}', "line 1, byte offset 8"],
    ['[{"a":1},', "line 1, byte offset 9"],
    ['[{"a":1},\n{"a":', "line 2, byte offset 10"],
    ['[{"a":1},]', "line 1, byte offset 9"],
    ['[,{"a":1}]', "line 1, byte offset 1"],
    ['[{"a":1}\n{"a":2}]', "line 2, byte offset 9"],
    ['[{"a":1}] x', "line 1, byte offset 10"],
    ['[{"a":1}][{"a":2}]', "line 1, byte offset 9"],
    ['{"a":1},{"a":2}', "line 1, byte offset 7"],
    ["3", "line 1, byte offset 0"],
    ["\n\nhello", "line 3, byte offset 2"],
    ['["x', "line 1, byte offset 1"],
  ])("%j is broken as a whole", (text, place) => {
    for (const cuts of [[], [Math.floor(text.length / 2)]]) {
      const error = thrown(() => json(text, cuts));
      expect(error.code).toBe("bad_json");
      expect(error.message).toContain(place);
    }
  });

  test("offsets count a byte-order mark", () => {
    const marked = '\ufeff[{"a":1},\n{"a":';
    for (const format of ["json", "ndjson"] as const) {
      for (const cuts of [[], [2], [3], [7]]) {
        const error = thrown(() => parse(marked, { a: "int64" }, { format, cuts }));
        expect(error.message).toContain("line 2, byte offset 13");
      }
    }
    const inferrer = createTextInferrer({ format: "json" });
    inferrer.push(utf8(marked));
    expect(() => inferrer.end()).toThrow("line 2, byte offset 13");
    const engine = createTextParser({
      schema: schemaOf({ a: "int64" }),
      format: "json",
      unknownFields: "reject",
      valueMisfits: "reject",
    });
    engine.push(utf8(marked));
    expect(() => engine.end()).toThrow("line 2, byte offset 13");
  });

  test("a value larger than 16 MiB", () => {
    const error = thrown(() => json(`[{"a":"${"x".repeat(17_000_000)}"}]`, [8_000_000]));
    expect(error.code).toBe("row_too_large");
  });
});

describe("keys", () => {
  test("D07: a key goes to the column of its name whatever its case; two spellings in one row are refused", () => {
    const text = '{"Photo":1,"photo":2,"photo_1":3}\n{"PHOTO":4}\n{"photo":5}\n{"photo_1":6}';
    const { rows, rejects } = parse(text, { Photo: "int64", photo_1: "int64" });
    expect(rows).toEqual([
      { Photo: 4, photo_1: null },
      { Photo: 5, photo_1: null },
      { Photo: null, photo_1: 6 },
    ]);
    expect(rejects).toMatchObject([{ line: 1, code: "duplicate_key" }]);
    expect(rejects[0]!.reason).toContain('"Photo" and "photo"');
  });

  test("D07: two spellings are refused even where the table has no such column, or the value is of another type", () => {
    expect(codes(parse('{"B":1,"b":2}', { a: "int64" }, { unknownFields: "misfit" }).rejects)).toEqual([
      "1 duplicate_key",
    ]);
    expect(codes(parse('{"A":"x","a":2}', { a: "int64" }, { valueMisfits: "misfit" }).rejects)).toEqual([
      "1 duplicate_key",
    ]);
  });

  test("D07: within a struct too", () => {
    const schema = { s: "struct<a: int64>" };
    expect(codes(parse('{"s":{"a":1,"A":2}}', schema).rejects)).toEqual(["1 duplicate_key"]);
    expect(() => parse('{"s":{"a":1,"A":2}}', schema, { valueMisfits: "misfit" })).toThrow(SchemaMisfit);
  });

  test("D09: dotted, blank, spaced, accented and quoted keys are literal", () => {
    const text = '{"a.b":1,"a":{"b":2},"":3,"k k":4,"\\u00e9":5,"e\\u0301":6,"q\\"q":7}';
    const schema = {
      "a.b": "int64",
      a: "struct<b: int64>",
      _empty: "int64",
      "k k": "int64",
      "\u00e9": "int64",
      "e\u0301": "int64",
      'q"q': "int64",
    };
    expect(parse(text, schema).rows).toEqual([
      { "a.b": 1, a: { b: 2 }, _empty: 3, "k k": 4, "\u00e9": 5, "e\u0301": 6, 'q"q': 7 },
    ]);
    expect(codes(parse('{"":1,"_empty":2}', schema).rejects)).toEqual(["1 duplicate_key"]);
  });

  test("D11: of a repeated key the last value counts, between good rows", () => {
    const text = '{"a":1,"b":0}\n{"a":1,"b":0,"a":2}\n{"a":3,"b":1}';
    expect(parse(text, { a: "int64", b: "int64" }).rows).toEqual([
      { a: 1, b: 0 },
      { a: 2, b: 0 },
      { a: 3, b: 1 },
    ]);
    const nested = '{"s":{"x":1,"l":[1,2]},"s":{"l":[3]},"m":{"k":1,"k":2},"\\u0061":5,"a":6}';
    expect(parse(nested, { a: "int64", s: "struct<x: int64, l: list<int64>>", m: "map<string,int64>" }).rows).toEqual([
      { a: 6, s: { x: null, l: [3] }, m: { k: 2 } },
    ]);
  });

  test("D11: an overridden value need not fit", () => {
    const schema = { a: "int64", s: "struct<x: int64>", m: "map<string,int64>" };
    const text = '{"a":"x","a":2,"s":{"new":1},"s":{"x":3},"m":{"k":"y","k":4}}';
    for (const mode of ["misfit", "reject"] as const) {
      expect(parse(text, schema, { unknownFields: mode, valueMisfits: mode }).rows).toEqual([
        { a: 2, s: { x: 3 }, m: { k: 4 } },
      ]);
    }
    expect(codes(parse('{"a":1,"a":"x"}', schema).rejects)).toEqual(["1 type_mismatch"]);
  });

  test("D80: names of Object.prototype are ordinary", () => {
    const text = '{"__proto__":{"x":1},"hasOwnProperty":2,"toString":3,"m":{"__proto__":4,"constructor":5}}';
    // A schema written as an object could not hold this key.
    const proto: Field = { id: 0, name: "__proto__", type: parseType("struct<x: int64>"), nullable: true };
    const others = toSchema({ hasOwnProperty: "int64", toString: "int64", m: "map<string,int64>" }).fields;
    const { rows, batches } = parse(text, { fields: [proto, ...others] });
    expect(({} as Record<string, unknown>).x).toBeUndefined();
    expect(batches[0]!.columns[0]!.children[0]!.values).toEqual(BigInt64Array.of(1n));
    expect(Object.entries(rows[0]!).slice(1, 3)).toEqual([
      ["hasOwnProperty", 2],
      ["toString", 3],
    ]);
    expect(Object.getOwnPropertyDescriptor(rows[0]!.m, "__proto__")?.value).toBe(4);
  });

  test("unknown keys stop, reject, or are dropped and counted", () => {
    const text = '{"a":1,"z":2,"s":{"x":1,"y":{"q":[1]}}}\n{"a":"x","z":1}\n{"Z":null}';
    const schema = { a: "int64", s: "struct<x: int64>" };
    expect(codes(parse(text, schema).rejects)).toEqual(["1 unknown_field", "2 type_mismatch", "3 unknown_field"]);
    expect(() => parse(text, schema, { unknownFields: "misfit" })).toThrow(SchemaMisfit);
    const { rows, ignored } = parse(text, schema, { unknownFields: "ignore" });
    expect(rows).toEqual([
      { a: 1, s: { x: 1 } },
      { a: null, s: null },
    ]);
    // The second row was refused for its own reason: what it dropped does not count.
    expect(ignored).toEqual({ z: 1, "s.y": 1, Z: 1 });
  });

  test("missing and null values that may not be", () => {
    const schema = { "a!": "int64", s: "struct<x!: int64, y: int64>" };
    const text = '{"a":1,"s":{"x":1}}\n{"s":{"x":1}}\n{"a":null}\n{"a":2,"s":{"y":1}}\n{"a":3,"s":null}';
    const { rows, rejects } = parse(text, schema, { valueMisfits: "misfit" });
    expect(rows.map(({ a }) => a)).toEqual([1, 3]);
    expect(codes(rejects)).toEqual(["2 missing_value", "3 missing_value", "4 missing_value"]);
    expect(rejects[2]!.reason).toContain("s.x");
    // What else the row holds may need another schema, and is settled first.
    expect(() => parse('{"a":null,"new":1}', schema, { unknownFields: "misfit" })).toThrow(SchemaMisfit);
    expect(() => parse('{"s":{"x":1,"new":1}}', schema, { unknownFields: "misfit" })).toThrow(SchemaMisfit);
  });
});

/** Whether each value, as JSON text, fits a column of the type: the value stored, or a reject code. */
function fit(type: string, ...values: string[]): unknown[] {
  return values.map((value) => {
    const { rows, rejects } = parse(`{"c":${value}}`, { c: type }, { values: "exact" });
    return rejects[0]?.code ?? rows[0]!.c;
  });
}

const MISMATCH = "type_mismatch";

describe("values", () => {
  test("bool", () => {
    expect(fit("bool", "true", "false", "null", '"true"', "1", "[]")).toEqual([
      true,
      false,
      null,
      MISMATCH,
      MISMATCH,
      MISMATCH,
    ]);
  });

  test("D02: integers are exact or refused", () => {
    expect(fit("int64", "9007199254740993", "9223372036854775807", "-9223372036854775808", "0", "-0")).toEqual([
      9007199254740993n,
      9223372036854775807n,
      -9223372036854775808n,
      0n,
      0n,
    ]);
    expect(fit("int64", "9223372036854775808", '"5"', "1.5", "true", "1e-1", "{}")).toEqual(
      new Array(6).fill(MISMATCH),
    );
    expect(fit("int64", "1.0", "1e3", "12.50e1")).toEqual([1n, 1000n, 125n]);
    expect(fit("uint64", "18446744073709551615", "18446744073709551616", "-1")).toEqual([
      18446744073709551615n,
      MISMATCH,
      MISMATCH,
    ]);
    expect(fit("int8", "127", "-128", "128", "-129", "1e2")).toEqual([127, -128, MISMATCH, MISMATCH, 100]);
    expect(fit("uint8", "255", "256", "-1")).toEqual([255, MISMATCH, MISMATCH]);
    expect(fit("int16", "-32768", "32768")).toEqual([-32768, MISMATCH]);
    expect(fit("uint16", "65535", "65536")).toEqual([65535, MISMATCH]);
    expect(fit("int32", "-2147483648", "2147483648")).toEqual([-2147483648, MISMATCH]);
    expect(fit("uint32", "4294967295", "4294967296")).toEqual([4294967295, MISMATCH]);
    const decimal = "99999999999999999999999999999999999999";
    expect(fit("decimal(38,0)", "18446744073709551616", decimal, `${decimal}9`, "0.5")).toEqual([
      "18446744073709551616",
      decimal,
      MISMATCH,
      MISMATCH,
    ]);
  });

  test("D12: floats", () => {
    expect(
      fit("float64", "1.5", "-0", "-0.0", "0.1", "1e400", "-1e400", "9007199254740992", "9007199254740993"),
    ).toEqual([1.5, -0, -0, 0.1, "number_out_of_range", "number_out_of_range", 9007199254740992, MISMATCH]);
    expect(fit("float32", "0.1", "16777216", "16777217", "1e39", "1e400")).toEqual([
      Math.fround(0.1),
      16777216,
      MISMATCH,
      MISMATCH,
      "number_out_of_range",
    ]);
    expect(fit("json", "1e400", '{"x":[1e400]}')).toEqual(["number_out_of_range", "number_out_of_range"]);
  });

  test("decimals as numbers or text", () => {
    expect(
      fit("decimal(10,2)", "12.5", "12.50", '"12.5"', "1e3", "-0.01", "0.001", "123456789.0", '"x"', '""'),
    ).toEqual(["12.50", "12.50", "12.50", "1000.00", "-0.01", MISMATCH, MISMATCH, MISMATCH, MISMATCH]);
  });

  test("D04: text is text", () => {
    expect(fit("string", '"0042"', '"true"', "42", "true", '"\\u00e9\\n\\ud83d\\ude00\\/"', '"é😀"', '""')).toEqual([
      "0042",
      "true",
      MISMATCH,
      MISMATCH,
      "é\n😀/",
      "é😀",
      "",
    ]);
  });

  test.each([
    '"\\ud800"',
    '"\\ud800x"',
    '"\\ud800\\u0041"',
    '"\\udc00"',
    '"\\x41"',
    '"\\u12"',
    '"\\u12g4"',
    '"a\tb"',
    '"a\u0000"',
  ])("the string %j is not JSON that can be stored", (value) => {
    expect(fit("string", value)).toEqual(["bad_json"]);
    expect(fit("json", value)).toEqual(["bad_json"]);
    expect(parse(`{"d":${value}}`, { c: "string" }, { unknownFields: "ignore" }).rejects).toMatchObject([
      { code: "bad_json" },
    ]);
  });

  test("D75: timestamps", () => {
    expect(fit("timestamptz", '"2031-02-03T04:05:06+05:30"', '"2031-02-03T04:05:06-03:30"')).toEqual([
      "2031-02-02T22:35:06.000000Z",
      "2031-02-03T07:35:06.000000Z",
    ]);
    expect(fit("timestamptz", '"2031-02-03T04:05:06"', '"2031-02-03"', '"2031-02-03T24:00:00Z"', "1234567890")).toEqual(
      [MISMATCH, MISMATCH, MISMATCH, MISMATCH],
    );
    expect(fit("timestamp", '"2031-02-03T04:05:06"', '"2031-02-03T04:05:06Z"')).toEqual([
      "2031-02-03T04:05:06.000000",
      MISMATCH,
    ]);
    expect(fit("date", '"2031-02-03"', '"2031-02-30"', '"\\u0032031-02-03"')).toEqual([
      "2031-02-03",
      MISMATCH,
      "2031-02-03",
    ]);
    expect(fit("time", '"04:05:06.789"', '"24:00:00"')).toEqual(["04:05:06.789000", MISMATCH]);
  });

  test("uuid, binary and fixed as text", () => {
    expect(
      fit(
        "uuid",
        '"F79C3E09-677C-4BBD-A479-3F349CB785E7"',
        '"f79c3e09677c4bbda4793f349cb785e7"',
        '"g79c3e09-677c-4bbd-a479-3f349cb785e7"',
      ),
    ).toEqual(["f79c3e09-677c-4bbd-a479-3f349cb785e7", MISMATCH, MISMATCH]);
    expect(
      fit("binary", '""', '"AA=="', '"AAE="', '"AAEC"', '"AB=="', '"AA"', '"A==="', '"AA=A"', '"_-8="', '"===="'),
    ).toEqual([
      Uint8Array.of(),
      Uint8Array.of(0),
      Uint8Array.of(0, 1),
      Uint8Array.of(0, 1, 2),
      ...new Array(6).fill(MISMATCH),
    ]);
    expect(fit("fixed(2)", '"AAE="', '"AAEC"', '"AA=="')).toEqual([Uint8Array.of(0, 1), MISMATCH, MISMATCH]);
  });

  test("json is kept as it is written", () => {
    expect(fit("json", '{"b": 1.0, "a":[ 1e2 ]}', '"x\\u0041"', "12345678901234567890.10", "true", "null")).toEqual([
      '{"b": 1.0, "a":[ 1e2 ]}',
      '"x\\u0041"',
      "12345678901234567890.10",
      "true",
      null,
    ]);
  });

  test("lists, maps and structs in each other", () => {
    expect(fit("list<list<int64>>", "[]", "[[1],[],null,[2,null]]", "[1]", '{"0":[1]}')).toEqual([
      [],
      [[1n], [], null, [2n, null]],
      MISMATCH,
      MISMATCH,
    ]);
    expect(fit("map<string,list<int64>>", "{}", '{"a":[1],"":null}', "[]")).toEqual([
      new Map(),
      new Map<string, unknown>([
        ["a", [1n]],
        ["", null],
      ]),
      MISMATCH,
    ]);
    expect(fit("map<int64,bool>", '{"1":true,"2":null}', '{"x":true}')).toEqual([
      new Map<bigint, boolean | null>([
        [1n, true],
        [2n, null],
      ]),
      MISMATCH,
    ]);
    expect(fit("struct<a: struct<b: int64>>", '{"a":{"b":1}}', '{"a":{}}', "{}", "[]")).toEqual([
      { a: { b: 1n } },
      { a: { b: null } },
      { a: null },
      MISMATCH,
    ]);
  });

  test("a large map with repeated keys", () => {
    const keys = Array.from({ length: 1000 }, (_, i) => `"k${i % 700}":${i}`).join(",");
    const [map] = fit("map<string,int64>", `{${keys}}`) as [Map<string, bigint>];
    expect(map.size).toBe(700);
    expect(map.get("k0")).toBe(700n);
    expect(map.get("k699")).toBe(699n);
  });

  test("D05: an unknown column takes what holds nothing", () => {
    const text = "null;{};[];{ };[ ]".split(";").map((value) => `{"a":1,"x":${value}}`);
    const { rows, rejects } = parse(text.join("\n"), { a: "int64", x: "unknown" });
    expect(rejects).toEqual([]);
    expect(rows).toEqual(new Array(5).fill({ a: 1 }));
    expect(fit("unknown", "1", "[1]", '{"y":{}}', "false")).toEqual(new Array(4).fill(MISMATCH));
    expect(parse('{"a":2,"x":{"y":{}}}', { a: "int64", x: "struct<y: unknown>" }).rows).toEqual([{ a: 2 }]);
  });

  test("nesting up to 100 levels, the row included", () => {
    const nested = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);
    expect(fit("json", nested(99), nested(100), '{"a":'.repeat(100) + 1 + "}".repeat(100))).toEqual([
      nested(99),
      "too_deep",
      "too_deep",
    ]);
    expect(fit("json", "[".repeat(100_000))).toEqual(["too_deep"]);
    expect(parse(`{"z":${nested(100)}}`, { c: "json" }, { unknownFields: "ignore" }).rejects).toMatchObject([
      { code: "too_deep" },
    ]);
  });

  test("misfits stop a parser that may not decide", () => {
    const stops = (type: string, value: string): boolean => {
      try {
        parse(`{"c":null}\n{"c":${value}}`, { c: type }, { valueMisfits: "misfit" });
        return false;
      } catch (error) {
        if (error instanceof SchemaMisfit && error.line === 2) return true;
        throw error;
      }
    };
    expect(stops("int64", '"x"')).toBe(true);
    expect(stops("unknown", "1")).toBe(true);
    expect(stops("int64", "1.0")).toBe(true); // would have been a float had it come first
    expect(stops("decimal(38,0)", "1.0")).toBe(true); // so would this
    expect(stops("decimal(38,0)", "1e2")).toBe(true);
    expect(stops("decimal(38,0)", "100")).toBe(false);
    expect(stops("decimal(9,2)", "1.0")).toBe(false);
    expect(stops("int64", "1")).toBe(false);
    expect(stops("float64", "1")).toBe(false);
    expect(stops("int64", "1e400")).toBe(false); // a reject under any schema
    expect(stops("int64", "01")).toBe(false);
    expect(stops("string", '"x')).toBe(false);
  });

  test("a bad row leaves nothing behind, wherever it breaks", () => {
    const schema = {
      a: "int64",
      s: "string",
      l: "list<struct<x: int64, m: map<string,string>>>",
      p: "struct<q: list<string>, b: bool>",
    };
    const good = '{"a":1,"s":"v","l":[{"x":1,"m":{"k":"w"}},null],"p":{"q":["t",null],"b":true}}';
    const expected = parse(`${good}\n${good}`, schema);
    for (let cut = 1; cut < good.length; cut++) {
      const { rows, rejects, batches } = parse(`${good}\n${good.slice(0, cut)}\n${good}`, schema);
      expect(rejects).toMatchObject([{ line: 2, code: "bad_json", raw: good.slice(0, cut) }]);
      expect(rows).toEqual(expected.rows);
      expect(batches).toEqual(expected.batches);
    }
  });
});
