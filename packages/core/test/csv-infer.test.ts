import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCsvInferrer, createPlainCsvInferrer } from "../src/csv-infer.js";
import { InvalidInputError } from "../src/errors.js";
import type { CsvOptions, InferrerOptions } from "../src/parser.js";
import { assignFieldIds, formatType, type Schema, type SchemaInput, toSchema } from "../src/schema.js";

const utf8 = new TextEncoder();

type Options = Omit<InferrerOptions, "base"> & { base?: SchemaInput; csv?: CsvOptions };

function infer(text: string, options: Options = {}): Schema {
  const { base, ...rest } = options;
  const own = { ...rest, ...(base && { base: assignFieldIds(toSchema(base)) }) };
  const [schema, plain] = [createCsvInferrer, createPlainCsvInferrer].map((create) => {
    const inferrer = create(own);
    inferrer.push(utf8.encode(text));
    return inferrer.end();
  });
  // With the engine and without it.
  expect(schema).toEqual(plain);
  return schema!;
}

const types = (schema: Schema): Record<string, string> =>
  Object.fromEntries(schema.fields.map((f) => [f.name, formatType(f.type)]));

/** The type of a column with these cells, one per line. */
function typeOf(cells: readonly string[], options: Options = {}): string {
  return formatType(infer(`v,x\n${cells.map((cell) => `${cell},\n`).join("")}`, options).fields[0]!.type);
}

describe("a new column", () => {
  test.each<[string[], string]>([
    [["0", "-1", "9223372036854775807", "-9223372036854775808"], "int64"],
    [["1", "9223372036854775808"], "decimal(38,0)"],
    [["1", "-9223372036854775809"], "decimal(38,0)"],
    [["99999999999999999999999999999999999999", "1"], "decimal(38,0)"],
    [["100000000000000000000000000000000000000", "1"], "string"],
    [["0.5", "0"], "float64"],
    [["0.5", "9007199254740992", "-9007199254740992"], "float64"],
    [["0.5", "9007199254740993"], "decimal(17,1)"],
    [["0.5", "9007199254740994"], "float64"],
    [["-1", "9007199254740993", "9007199254740994", "0.5"], "decimal(17,1)"],
    [["0.1234567890123450000", "0.1234567890123456"], "decimal(19,19)"],
    [["0.123456789012345", "1"], "float64"],
    [["0.1234567890123456"], "decimal(16,16)"],
    [["12345678.12345678", "-1"], "decimal(16,8)"],
    [["100000000000000000000.0", "1"], "float64"],
    [["1.50000000000000000000"], "float64"],
    [["-0.0"], "float64"],
    [["12345678901234567890.5", "0.0000000000000000001"], "string"],
    [[`1${"0".repeat(400)}.0`], "string"],
    [[`0.${"0".repeat(400)}1`], "string"],
    [["true", "false"], "bool"],
    [["true", "1"], "string"],
    [["True"], "string"],
    [["2031-02-03", "0001-01-01"], "date"],
    [["2031-02-29"], "string"],
    [["2031-02-03T04:05:06", "2031-02-03 04:05:06.123456"], "timestamp"],
    [["2031-02-03T04:05:06.1234567"], "string"],
    [["2031-02-03T04:05:06Z", "2031-02-03T04:05:06.5-03:30"], "timestamptz"],
    [["2031-02-03T04:05:06Z", "2031-02-03T04:05:06"], "string"],
    [["2031-02-03", "2031-02-03T04:05:06"], "string"],
    [["2031-02-03T24:00:00Z"], "string"],
    [["2031-02-03T04:05:60Z"], "string"],
    [["2031-02-03 04:05:06Z"], "string"],
    [["04:05:06"], "string"],
    [["1", "x"], "string"],
    [["1", "true"], "string"],
    [["1", "2031-02-03"], "string"],
    [["{}", "[]"], "string"],
    [["", ""], "unknown"],
    [[], "unknown"],
    [["", "1", ""], "int64"],
    [['""', "1"], "string"],
    [['"1"', '"2"'], "int64"],
    [['"2031-02-03"'], "date"],
    [['"a""b"'], "string"],
  ])("%j is %s", (cells, type) => {
    expect(typeOf(cells)).toBe(type);
    expect(typeOf(cells.toReversed())).toBe(type);
  });

  test.each([
    "00501",
    "-0",
    "+7",
    "1_000",
    "1e3",
    "0x10",
    "-",
    ".5",
    "5.",
    "1.5.2",
    " 1",
    "NaN",
    "Infinity",
    "1,5",
    "٣",
  ])("D65: %s stays text", (cell) => {
    expect(typeOf([`"${cell}"`])).toBe("string");
    expect(typeOf(["1", `"${cell}"`, "2.5"])).toBe("string");
  });

  test("texts that mean null do not count, unless quoted", () => {
    const csv = { nullValues: ["", "NA"] };
    expect(typeOf(["1", "NA", ""], { csv })).toBe("int64");
    expect(typeOf(["1", '"NA"'], { csv })).toBe("string");
    expect(typeOf(["1", ""], { csv: { nullValues: ["NA"] } })).toBe("string");
  });

  test("leaves dates and times text where asked", () => {
    for (const cell of ["2031-02-03", "2031-02-03T04:05:06", "2031-02-03T04:05:06Z"]) {
      expect(typeOf([cell], { inferTimestamps: false })).toBe("string");
    }
  });

  test("is decided by all cells, the last one included", () => {
    expect(typeOf([...new Array<string>(20_000).fill("1"), "x"])).toBe("string");
    expect(typeOf([...new Array<string>(20_000).fill("1"), "1.5"])).toBe("float64");
  });
});

describe("the schema", () => {
  test("has the input's columns in order, ids to be assigned", () => {
    expect(infer("b,a\n1,x\n")).toEqual({
      fields: [
        { id: 0, name: "b", type: { kind: "int64" }, nullable: true },
        { id: 0, name: "a", type: { kind: "string" }, nullable: true },
      ],
    });
  });

  test.each(["", "\n", "\ufeff"])("of %j is empty", (text) => {
    expect(infer(text)).toEqual({ fields: [] });
  });

  test("of a header alone has unknown columns", () => {
    expect(types(infer("a,b\n"))).toEqual({ a: "unknown", b: "unknown" });
    expect(types(infer("", { csv: { header: ["a"] } }))).toEqual({ a: "unknown" });
  });

  test("comes from well-formed rows only", () => {
    const inferrer = createCsvInferrer({});
    inferrer.push(utf8.encode('a,b\n1,2\nx\n"1"x,y\n\n3,4,y\n5,6\n'));
    expect(types(inferrer.end())).toEqual({ a: "int64", b: "int64" });
    expect(inferrer.rows).toBe(2);
  });

  test("of a table of no more than 10,000 columns", () => {
    const header = (columns: number): string => Array.from({ length: columns }, (_, i) => `c${i}`).join(",");
    expect(infer(header(10_000)).fields).toHaveLength(10_000);
    expect(() => infer(header(10_001))).toThrow(InvalidInputError);
    expect(() => infer(header(10_000), { base: { other: "string" } })).toThrow(/10001 columns/);
  });

  test("of a sample leaves out the row that is cut, and may be asked before the delimiter is sure", () => {
    const inferrer = createCsvInferrer({});
    inferrer.push(utf8.encode("a;b\n1;2\n3;x"));
    expect(types(inferrer.schema())).toEqual({ a: "int64", b: "int64" });
    inferrer.push(utf8.encode(`y\n${"4;5\n".repeat(30_000)}6;7`));
    expect(types(inferrer.schema())).toEqual({ a: "int64", b: "string" });
    expect(inferrer.rows).toBe(30_002);
    expect(types(inferrer.end())).toEqual({ a: "int64", b: "string" });
    expect(inferrer.rows).toBe(30_003);
  });
});

describe("with a base schema", () => {
  test("columns are matched by name without case, and new ones added behind", () => {
    expect(infer("New,ZIP,id\nx,60601,3\n", { base: { id: "int64", zip: "string", gone: "bool" } })).toEqual({
      fields: [
        { id: 1, name: "id", type: { kind: "int64" }, nullable: true },
        { id: 2, name: "zip", type: { kind: "string" }, nullable: true },
        { id: 3, name: "gone", type: { kind: "bool" }, nullable: true },
        { id: 0, name: "New", type: { kind: "string" }, nullable: true },
      ],
    });
  });

  const bounds = (min: bigint, max: bigint): Options => ({ integerBounds: new Map([[1, { min, max }]]) });
  test.each<[string, string[], Options, string]>([
    ["int8", ["127"], {}, "int8"],
    ["int8", ["128"], {}, "int16"],
    ["int32", ["2147483648"], {}, "int64"],
    ["uint8", ["-1"], {}, "int16"],
    ["int64", ["9223372036854775808"], {}, "decimal(38,0)"],
    ["int32", ["1.5"], {}, "float64"],
    ["int64", ["1.5"], bounds(-5n, 2n ** 53n), "float64"],
    ["int64", ["1.5", "9007199254740993"], bounds(0n, 5n), "decimal(20,1)"],
    ["int64", ["1.5"], bounds(0n, 2n ** 53n + 1n), "decimal(20,1)"],
    ["int64", ["1.0", "-2.00"], {}, "int64"],
    ["float32", ["0.1", "16777217"], {}, "float64"],
    ["float32", ["0.1", "16777218"], {}, "float32"],
    ["decimal(5,2)", ["1.500"], {}, "decimal(5,2)"],
    ["decimal(5,2)", ["1234.5", "0.125"], {}, "decimal(7,3)"],
    ["decimal(38,0)", ["0.5"], {}, "decimal(38,0)"],
    ["unknown", ["2031-02-03"], {}, "date"],
    ["unknown", [""], {}, "unknown"],
    // What is not listed in the widening table leaves the column as it is.
    ["int64", ["x"], {}, "int64"],
    ["int64", ["true"], {}, "int64"],
    ["string", ["1"], {}, "string"],
    ["bool", ["1"], {}, "bool"],
    ["date", ["2031-02-03T04:05:06"], {}, "date"],
    ["float64", ["x"], {}, "float64"],
    ["list<int64>", ["1"], {}, "list<int64>"],
    // Cells that never fit do not keep the others from widening.
    ["int8", ["x", "300", "007", `1${"0".repeat(50)}`, "true"], {}, "int16"],
  ])("%s with %j", (type, cells, options, widened) => {
    expect(typeOf(cells, { ...options, base: { v: type } })).toBe(widened);
    expect(typeOf(cells.toReversed(), { ...options, base: { v: type } })).toBe(widened);
  });
});

describe("the engine's profiles tell what all cells tell", () => {
  const RUNS = Math.ceil(Number(process.env.EIDER_FUZZ_LINES ?? 20_000) / 8);
  const digits = (max: number): fc.Arbitrary<string> =>
    fc
      .tuple(fc.constantFrom("", "-"), fc.stringMatching(new RegExp(`^(0|[1-9][0-9]{0,${max}})$`)))
      .map((part) => part.join(""));
  const fraction = fc.tuple(digits(17), fc.stringMatching(/^[0-9]{1,20}$/)).map((part) => part.join("."));
  const zeros = fc.tuple(fc.nat(17), fc.nat(18)).map(([a, b]) => `1${"0".repeat(a)}.${"0".repeat(b)}5`);
  const few = fc.tuple(fc.integer({ min: -9999, max: 9999 }), fc.nat(3)).map(([n, places]) => (n / 8).toFixed(places));
  const number = fc.oneof(
    digits(5),
    digits(16),
    digits(40),
    few,
    few,
    fraction,
    zeros,
    fc.constantFrom("9007199254740992", "9007199254740993", "-9007199254740994", "9223372036854775807"),
    fc.constantFrom("9223372036854775808", "-9223372036854775808", "16777216", "16777217", "-0", "-0.0", "0.0", "1e3"),
    fc.constantFrom("1000000000000000.0", "0.1234567890123450000", "123456789012345678.50", "1.", "00501", "+7"),
  );
  const temporal = fc.constantFrom(
    "2031-02-03",
    "2031-02-03T04:05:06Z",
    "2031-02-03 04:05:06",
    "2031-02-29",
    "0000-01-01",
  );
  const other = fc.constantFrom(
    "true",
    "false",
    "x",
    '""',
    "NA",
    "",
    '"a,b\n""c"""',
    '"x"y',
    "é",
    "2031-02-03x",
    "truex",
  );
  const column = fc.constantFrom(
    number,
    number,
    fc.constantFrom("1", "2", ""),
    temporal,
    other,
    fc.oneof(number, temporal, other),
  );
  const kinds = fc.constantFrom(
    "int8",
    "int64",
    "uint8",
    "uint64",
    "float32",
    "float64",
    "decimal(20,1)",
    "decimal(5,2)",
    "string",
  );
  const base = fc.array(fc.option(kinds), { minLength: 3, maxLength: 3 });
  const dialects: readonly CsvOptions[] = [
    { delimiter: "," },
    {},
    { delimiter: ",", ragged: "pad" },
    { delimiter: ",", trim: true, nullValues: ["", "NA"] },
    { delimiter: "1" },
    { delimiter: ".", quote: "0" },
  ];

  test("for any cells, in any dialect, over any split, and asked at any time", () => {
    fc.assert(
      fc.property(
        fc.tuple(column, column, column).chain((cells) => fc.array(fc.tuple(...cells), { maxLength: 12 })),
        fc.option(base),
        fc.constantFrom(...dialects, { delimiter: "," }),
        fc.array(fc.nat(120), { maxLength: 4 }),
        fc.record({
          early: fc.boolean(),
          quoted: fc.boolean(),
          ragged: fc.nat(12),
          bad: fc.nat(2000),
          times: fc.boolean(),
        }),
        (rows, has, csv, at, { early, quoted, ragged, bad, times }) => {
          const { delimiter = "," } = csv;
          const cell = (text: string): string => (quoted && !text.includes('"') ? `"${text}"` : text);
          const lines = rows.map((cells, i) =>
            cells
              .map(cell)
              .slice(0, i === ragged ? 2 : 3)
              .join(delimiter),
          );
          const bytes = utf8.encode(`${["a", "b", "c"].join(delimiter)}\n${lines.join("\n")}\n`);
          if (bad < bytes.length) bytes[bad] = 0xff;
          const fields = has?.flatMap((type, i) => (type === null ? [] : [[["a", "b", "c"][i]!, type] as const]));
          const options = {
            csv,
            inferTimestamps: times,
            ...(fields && { base: assignFieldIds(toSchema(Object.fromEntries(fields))) }),
          };
          const cuts = at.filter((cut) => cut <= bytes.length).sort((x, y) => x - y);
          const [engine, plain] = [createCsvInferrer, createPlainCsvInferrer].map((create) => {
            const found: unknown[] = [];
            try {
              const inferrer = create(options);
              let from = 0;
              for (const cut of [...cuts, bytes.length]) {
                const chunk = bytes.slice(from, cut);
                inferrer.push(chunk);
                chunk.fill(0x31);
                from = cut;
                if (early) found.push(types(inferrer.schema()), inferrer.rows);
              }
              found.push(types(inferrer.end()), inferrer.rows);
            } catch (error) {
              if (!(error instanceof InvalidInputError)) throw error;
              found.push(error.message);
            }
            return found;
          });
          expect(engine).toEqual(plain);
        },
      ),
      { numRuns: RUNS },
    );
  });
});
