import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { RecordBatch } from "../src/columns.js";
import { createCsvEngineParser } from "../src/csv-engine.js";
import { createCsvInferrer } from "../src/csv-infer.js";
import { columnNames } from "../src/csv-input.js";
import { createCsvParser } from "../src/csv-parser.js";
import { InvalidInputError } from "../src/errors.js";
import { type CsvOptions, type Parser, SchemaMisfit, type TextParserOptions } from "../src/parser.js";
import { assignFieldIds, type Schema, type SchemaInput, toSchema } from "../src/schema.js";
import { batchRows } from "../src/values.js";

const utf8 = new TextEncoder();

interface Result {
  rows: Record<string, unknown>[];
  rejects: (readonly [line: number, code: string])[];
  batches: number[];
  ignored: Record<string, number>;
}

type Options = Partial<Omit<TextParserOptions, "schema" | "format">> & CsvOptions;

function parserOptions(schema: SchemaInput, options: Options): TextParserOptions {
  const { unknownFields = "misfit", valueMisfits = "reject", batchRows, batchBytes, maxRejects, ...csv } = options;
  return {
    schema: assignFieldIds(toSchema(schema)),
    format: "csv",
    unknownFields,
    valueMisfits,
    csv,
    ...(batchRows !== undefined && { batchRows }),
    ...(batchBytes !== undefined && { batchBytes }),
    ...(maxRejects !== undefined && { maxRejects }),
  };
}

/** By both parsers, of which the same is expected. */
function parseChunks(chunks: Iterable<Uint8Array>, schema: SchemaInput, options: Options = {}): Result {
  const all = [...chunks];
  const parsers = [createCsvParser, createCsvEngineParser].map((create) => (): Result => {
    const parser = create(parserOptions(schema, options));
    if (!parser) throw new Error("this host has no WebAssembly with vectors");
    return drained(parser, all);
  });
  const [result, other] = parsers.map((run) => {
    try {
      return { result: run() };
    } catch (error) {
      return { error };
    }
  });
  expect(other).toEqual(result);
  if (!result?.result) throw result?.error;
  return result.result;
}

function drained(parser: Parser<Uint8Array>, chunks: readonly Uint8Array[]): Result {
  const batches: RecordBatch[] = [];
  const drain = (): void => {
    for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
  };
  for (const chunk of chunks) {
    const reused = chunk.slice();
    parser.push(reused);
    reused.fill(0x22); // the caller may reuse a chunk
    drain();
  }
  parser.end();
  drain();
  const rows = batches.flatMap((batch) => batchRows(batch, "exact"));
  expect(parser.rows).toBe(rows.length);
  for (const { length, columns } of batches) for (const column of columns) expect(column.length).toBe(length);
  return {
    rows,
    rejects: parser.rejects.map((r) => [r.line, r.code] as const),
    batches: batches.map((b) => b.length),
    ignored: Object.fromEntries(parser.ignoredFields),
  };
}

const parse = (text: string, schema: SchemaInput, options?: Options): Result =>
  parseChunks([utf8.encode(text)], schema, options);

function* splits(bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let cut = 0; cut <= bytes.length; cut++) yield [bytes.subarray(0, cut), bytes.subarray(cut)];
  yield Array.from(bytes, (byte) => Uint8Array.of(byte));
}

function failure(run: () => unknown): InvalidInputError {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidInputError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("columns", () => {
  test("each type from its text", () => {
    const schema = {
      b: "bool",
      i: "int8",
      l: "int64",
      u: "uint64",
      f: "float64",
      d: "decimal(38,2)",
      s: "string",
      t: "date",
      ts: "timestamp",
      tz: "timestamptz",
      id: "uuid",
      x: "binary",
    };
    const text =
      "b,i,l,u,f,d,s,t,ts,tz,id,x\n" +
      "true,-128,-9223372036854775808,18446744073709551615,0.1,123456789012345678901234567890123456.78,é," +
      "2031-02-03,2031-02-03 04:05:06.5,2031-02-03T04:05:06+05:30,F79C3E09-677c-4bbd-a479-3f349cb785e7,AQL/\n" +
      'false,127,9223372036854775807,0,1e3,-1.5,"","0001-01-01",9999-12-31T23:59:59,1970-01-01T00:00:00Z,,\n';
    expect(parse(text, schema).rows).toEqual([
      {
        b: true,
        i: -128,
        l: -(2n ** 63n),
        u: 2n ** 64n - 1n,
        f: 0.1,
        d: "123456789012345678901234567890123456.78",
        s: "é",
        t: "2031-02-03",
        ts: "2031-02-03T04:05:06.500000",
        tz: "2031-02-02T22:35:06.000000Z",
        id: "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        x: Uint8Array.of(1, 2, 255),
      },
      {
        b: false,
        i: 127,
        l: 2n ** 63n - 1n,
        u: 0n,
        f: 1000,
        d: "-1.50",
        s: "",
        t: "0001-01-01",
        ts: "9999-12-31T23:59:59.000000",
        tz: "1970-01-01T00:00:00.000000Z",
        id: null,
        x: null,
      },
    ]);
  });

  test.each<[string, string]>([
    ["int64", "9223372036854775808"],
    ["int64", "1.5"],
    ["int64", "007"],
    ["int64", "+7"],
    ["int64", "1_000"],
    ["int64", "0x10"],
    ["int64", '""'],
    ["int64", " 1"],
    ["uint8", "-1"],
    ["uint8", "256"],
    ["float64", "1e400"],
    ["float64", "9007199254740993"],
    ["float64", "1."],
    ["decimal(3,1)", "100.0"],
    ["decimal(3,1)", "1.25"],
    ["bool", "TRUE"],
    ["bool", "1"],
    ["date", "2031-02-29"],
    ["date", "2031-02-03T00:00:00Z"],
    ["timestamp", "2031-02-03T04:05:06Z"],
    ["timestamptz", "2031-02-03T04:05:06"],
    ["timestamptz", "2031-02-03T24:00:00Z"],
    ["uuid", "f79c3e09"],
    ["binary", "AQL"],
    ["struct<a: int64>", "x"],
    ["unknown", "x"],
    ["unknown", '""'],
  ])("%s does not take %s", (type, cell) => {
    const { rows, rejects } = parse(`a,v\n1,\n2,${cell}\n3,\n`, { a: "int64", v: type }, { nullValues: [""] });
    expect(rejects).toEqual([[3, "type_mismatch"]]);
    expect(rows.map((row) => row.a)).toEqual([1n, 3n]);
  });

  test("D65: a number fits a string column, and text does not fit a number column", () => {
    expect(parse("zip\n60601\n", { zip: "string" }).rows).toEqual([{ zip: "60601" }]);
    expect(parse("zip\n60601\n00501\n", { zip: "int64" }).rejects).toEqual([[3, "type_mismatch"]]);
  });

  test("go to the schema's fields by name, whatever the case and the order", () => {
    expect(parse("B,a\nx,1\n", { a: "int64", b: "string", c: "bool" }).rows).toEqual([{ a: 1n, b: "x", c: null }]);
  });

  test("that may not be null make the rows without them rejects", () => {
    expect(parse("a,b\n1,x\n,y\n", { "a!": "int64", b: "string" })).toMatchObject({
      rows: [{ a: 1n, b: "x" }],
      rejects: [[3, "missing_value"]],
    });
    expect(parse("b\nx\n", { "a!": "int64", b: "string" }).rejects).toEqual([[2, "missing_value"]]);
  });
});

test("D75: an instant has its zone, and what has none is no instant", () => {
  const at = ["2031-02-03T04:05:06+05:30", "2031-02-03T04:05:06-03:30", '"2031-02-02T22:35:06Z"'];
  const none = [
    "2031-02-03T04:05:06",
    "2031-02-03",
    "2031-02-03T24:00:00Z",
    "2031-02-03T04:05:60Z",
    "2031-02-03T04:05:06+0530",
  ];
  const { rows, rejects } = parse(`t,x\n${[...at, ...none].map((text) => `${text},\n`).join("")}`, {
    t: "timestamptz",
    x: "string",
  });
  expect(rows.map(({ t }) => t)).toEqual([
    "2031-02-02T22:35:06.000000Z",
    "2031-02-03T07:35:06.000000Z",
    "2031-02-02T22:35:06.000000Z",
  ]);
  expect(rejects.map(([line]) => line)).toEqual([5, 6, 7, 8, 9]);
  expect(
    parse("t\n2031-02-03T04:05:06\n2031-02-03 04:05:06\n2031-02-03T04:05:06Z\n", { t: "timestamp" }),
  ).toMatchObject({
    rows: [{ t: "2031-02-03T04:05:06.000000" }, { t: "2031-02-03T04:05:06.000000" }],
    rejects: [[4, "type_mismatch"]],
  });
});

describe("null cells", () => {
  test("by default the empty unquoted cell", () => {
    expect(parse('a,b\n,""\nNA,x\n', { a: "string", b: "string" }).rows).toEqual([
      { a: null, b: "" },
      { a: "NA", b: "x" },
    ]);
  });

  test("or those listed, unless quoted", () => {
    const rows = parse(
      'a,b\nNA,"NA"\n,NULL\nNA2,N\n',
      { a: "string", b: "string" },
      { nullValues: ["NA", "NULL"] },
    ).rows;
    expect(rows).toEqual([
      { a: null, b: "NA" },
      { a: "", b: null },
      { a: "NA2", b: "N" },
    ]);
  });

  test("a column of one cell per line keeps its empty lines, and no row follows the last line end", () => {
    expect(parse("a\n1\n\n2\n", { a: "int64" }).rows).toEqual([{ a: 1n }, { a: null }, { a: 2n }]);
    expect(parse("\n\na,b\n\n1,2\n\r\n\n", { a: "int64", b: "int64" }).rows).toEqual([{ a: 1n, b: 2n }]);
  });
});

describe("headers", () => {
  test("D62: a byte-order mark is no part of the first name, an inner one is text", () => {
    for (const text of ["\ufeffid,v\n1,\ufeffx\n", '\ufeff"id",v\n1,\ufeffx\n']) {
      for (const chunks of splits(utf8.encode(text))) {
        expect(parseChunks(chunks, { id: "int64", v: "string" }).rows).toEqual([{ id: 1n, v: "\ufeffx" }]);
      }
    }
  });

  test("D68: repeated and empty names keep all six values", () => {
    const names = { k: "int64", k_2: "int64", k_3: "int64", k_1: "int64", column_5: "int64", column_6: "int64" };
    expect(parse("k,k,k,k_1,,\n1,2,3,4,5,6\n", names).rows).toEqual([
      { k: 1n, k_2: 2n, k_3: 3n, k_1: 4n, column_5: 5n, column_6: 6n },
    ]);
  });

  test.each<[string[], string[]]>([
    [
      ["a", "A"],
      ["a", "A_2"],
    ],
    [
      ["k", "k_2", "k"],
      ["k", "k_2", "k_3"],
    ],
    [
      ["k", "k", "K_2", "k"],
      ["k", "k_3", "K_2", "k_4"],
    ],
    [
      ["", "column_1", ""],
      ["column_1_2", "column_1", "column_3"],
    ],
    [
      ["column_2", ""],
      ["column_2", "column_2_2"],
    ],
    [
      ["__proto__", "__proto__", "constructor"],
      ["__proto__", "__proto___2", "constructor"],
    ],
    [
      ["é", "e\u0301"],
      ["é", "e\u0301"],
    ],
    [
      [" a", "a"],
      [" a", "a"],
    ],
  ])("%j are named %j", (header, names) => {
    expect(columnNames(header)).toEqual(names);
  });

  test("always give as many distinct names", () => {
    const name = fc.oneof(
      fc.constantFrom("", "k", "K", "k_2", "k_3", "column_1", "column_2"),
      fc.string({ maxLength: 2 }),
    );
    fc.assert(
      fc.property(fc.array(name), (header) => {
        const names = columnNames(header);
        expect(new Set(names.map((n) => n.toLowerCase())).size).toBe(header.length);
        // The first of equal names is left as it is.
        header.forEach((own, i) => {
          const first = header.findIndex((other) => other.toLowerCase() === own.toLowerCase()) === i;
          if (own !== "" && first) expect(names[i]).toBe(own);
        });
      }),
    );
  });

  test("D80: names of Object.prototype are columns like any other", () => {
    const schema: Schema = {
      fields: ["__proto__", "constructor", "__proto__.polluted"].map((name, i) => ({
        id: i + 1,
        name,
        type: { kind: "string" },
        nullable: true,
      })),
    };
    for (const create of [createCsvParser, createCsvEngineParser]) {
      const parser = create(parserOptions(schema, {}))!;
      parser.push(utf8.encode("__proto__,constructor,__proto__.polluted\nx,y,true\nz,,\n"));
      parser.end();
      const batch = parser.take()!;
      expect(batch.columns.map((c) => new TextDecoder().decode(c.values as Uint8Array))).toEqual(["xz", "y", "true"]);
    }
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test("none, or given", () => {
    const two = { column_1: "int64", column_2: "string" };
    expect(parse("1,x\n2,y\n", two, { header: false }).rows).toEqual([
      { column_1: 1n, column_2: "x" },
      { column_1: 2n, column_2: "y" },
    ]);
    expect(parse("1,x\n", { a: "int64", b: "string" }, { header: ["a", "b"] }).rows).toEqual([{ a: 1n, b: "x" }]);
  });

  test("with text after a closing quote are refused", () => {
    expect(failure(() => parse('"a"b,c\n', {})).code).toBe("bad_quote");
  });

  test.each(["", "\n\n", "\ufeff", "a,b", "a,b\n", "a,b\r\n"])("%j has no rows", (text) => {
    expect(parse(text, { a: "int64", b: "int64" })).toEqual({ rows: [], rejects: [], batches: [], ignored: {} });
  });
});

describe("D67: ragged rows", () => {
  const text = "a,b,c\n1,2,3\n4,5\n6,7,8,9\n10,11,12,\n,,\n";
  const schema = { a: "int64", b: "int64", c: "int64" };

  test("are rejects by default, and never shift a cell", () => {
    const { rows, rejects } = parse(text, schema);
    expect(rows).toEqual([
      { a: 1n, b: 2n, c: 3n },
      { a: null, b: null, c: null },
    ]);
    expect(rejects).toEqual([
      [3, "ragged_row"],
      [4, "ragged_row"],
      [5, "ragged_row"],
    ]);
  });

  test("also where the first cell is empty", () => {
    expect(parse("a,b,c\n,5\n,,,\n", schema).rejects).toEqual([
      [2, "ragged_row"],
      [3, "ragged_row"],
    ]);
  });

  test("padded ones among whole ones do not take from the next row", () => {
    expect(parse("a,b,c\n1\n2,3\n4,5,6\n", schema, { ragged: "pad" }).rows).toEqual([
      { a: 1n, b: null, c: null },
      { a: 2n, b: 3n, c: null },
      { a: 4n, b: 5n, c: 6n },
    ]);
  });

  test("name what was expected and found, and keep the row", () => {
    const parser = createCsvParser(parserOptions(schema, {}));
    parser.push(utf8.encode(text));
    parser.end();
    expect(parser.rejects[1]).toEqual({
      line: 4,
      code: "ragged_row",
      reason: "expected 3 cells, found 4",
      raw: "6,7,8,9",
    });
  });

  test("padded: short rows end in nulls, long ones are rejects but for an empty last cell", () => {
    const { rows, rejects } = parse(`${text}13,14,15,""\n`, schema, { ragged: "pad" });
    expect(rows).toEqual([
      { a: 1n, b: 2n, c: 3n },
      { a: 4n, b: 5n, c: null },
      { a: 10n, b: 11n, c: 12n },
      { a: null, b: null, c: null },
    ]);
    expect(rejects).toEqual([
      [4, "ragged_row"],
      [7, "ragged_row"],
    ]);
  });
});

describe("rejects", () => {
  test("are in the order of the lines, whatever is wrong, with the rows around them taken", () => {
    const text = 'a,b\n1,x\nx,y\n2\n"3"4,z\n5,"a\nb"\n6,7,8\n,\n9,z\n';
    for (const chunks of splits(utf8.encode(text))) {
      expect(parseChunks(chunks, { "a!": "int64", b: "string" })).toMatchObject({
        rows: [
          { a: 1n, b: "x" },
          { a: 5n, b: "a\nb" },
          { a: 9n, b: "z" },
        ],
        rejects: [
          [3, "type_mismatch"],
          [4, "ragged_row"],
          [5, "bad_quote"],
          [8, "ragged_row"],
          [9, "missing_value"],
        ],
      });
    }
  });

  test("raw text is cut at 64 KiB, before a character that would be split", () => {
    const parser = createCsvParser(parserOptions({ a: "int64" }, {}));
    parser.push(utf8.encode(`a\nx${"é".repeat(40_000)}\n`));
    parser.end();
    expect(parser.rejects[0]!.raw).toBe(`x${"é".repeat(32_767)}`);
  });

  test("of more than the limit fail, naming the first lines", () => {
    const error = failure(() => parse("a\nx\n1\ny\nz\n", { a: "int64" }, { maxRejects: 2 }));
    expect(error.code).toBe("too_many_rejects");
    expect(error.rows.map((r) => r.line)).toEqual([2, 4]);
  });

  test("a misfit stops instead, at the first row at fault", () => {
    const run = (): unknown => parse("a,b\n1,1\n2,x\ny,3\n", { a: "int64", b: "int64" }, { valueMisfits: "misfit" });
    expect(run).toThrow(SchemaMisfit);
    expect(run).toThrow(/^line 3: /);
  });

  test("a missing value is a reject even where misfits stop, but does not hide one", () => {
    const schema = { "a!": "int64", b: "int64" };
    expect(parse("a,b\n,1\n", schema, { valueMisfits: "misfit" }).rejects).toEqual([[2, "missing_value"]]);
    expect(() => parse("a,b\n,1\n,x\n", schema, { valueMisfits: "misfit" })).toThrow(/^line 3: /);
    expect(parse("a,b\n,x\n", schema).rejects).toEqual([[2, "type_mismatch"]]);
  });

  test("a ragged row is a reject even where misfits stop", () => {
    expect(parse("a,b\n1\n", { a: "int64", b: "int64" }, { valueMisfits: "misfit" }).rejects).toEqual([
      [2, "ragged_row"],
    ]);
  });
});

describe("columns that the schema lacks", () => {
  const text = "a,z,Y\n1,x,\n2,,\n3,y,z\n";

  test("stop at the header", () => {
    expect(() => parse("a,z\n", { a: "int64" })).toThrow(/^line 1: .*"z"/);
  });

  test("reject the rows that have a value there", () => {
    expect(parse(text, { a: "int64" }, { unknownFields: "reject" })).toMatchObject({
      rows: [{ a: 2n }],
      rejects: [
        [2, "unknown_field"],
        [4, "unknown_field"],
      ],
    });
  });

  test("reject none where they are empty", () => {
    const { rows, rejects } = parse("a,z\n1,\n2,\n", { a: "int64" }, { unknownFields: "reject" });
    expect(rows).toEqual([{ a: 1n }, { a: 2n }]);
    expect(rejects).toEqual([]);
  });

  test("are counted where they are dropped", () => {
    expect(parse(`${text}x,x,x\n`, { a: "int64" }, { unknownFields: "ignore" })).toMatchObject({
      rows: [{ a: 1n }, { a: 2n }, { a: 3n }],
      rejects: [[5, "type_mismatch"]],
      ignored: { z: 2, Y: 1 },
    });
  });
});

describe("encodings", () => {
  const utf16le = (text: string): Uint8Array => new Uint8Array(Uint16Array.from(text, (c) => c.charCodeAt(0)).buffer);

  test("D70: UTF-16 with a mark, windows-1252 where declared", () => {
    expect(parseChunks([utf16le("\ufeffa,b\né,2\n")], { a: "string", b: "int64" }).rows).toEqual([{ a: "é", b: 2n }]);
    const windows = Uint8Array.from([0x61, 0x0a, 0x31, 0x20, 0x96, 0x20, 0x32, 0x0a]);
    expect(parseChunks([windows], { a: "string" }, { encoding: "windows-1252" }).rows).toEqual([{ a: "1 – 2" }]);
  });

  test("D70: a byte that is not UTF-8 names its line and offset, also behind good rows and before the delimiter is known", () => {
    const good = utf8.encode('a,b\n"x\ny",1\n');
    for (const options of [{}, { delimiter: "," }]) {
      for (const chunks of splits(Uint8Array.from([...good, 0x31, 0x20, 0x96, 0x0a]))) {
        const error = failure(() => parseChunks(chunks, { a: "string", b: "int64" }, options));
        expect(error.code).toBe("bad_encoding");
        expect(error.message).toMatch(/^line 4, byte offset 14: byte 0x96 /);
      }
    }
  });
});

describe("batches", () => {
  const text = `a,b\n${Array.from({ length: 5000 }, (_, i) => `${i},${i % 7 === 0 ? "x" : `"${i}"`}\n`).join("")}`;
  const schema = { a: "int64", b: "int64" };

  test("are cut by rows and by bytes of accepted rows, the same for any chunks", () => {
    const bytes = utf8.encode(text);
    const pieces: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += 777) pieces.push(bytes.subarray(at, at + 777));
    for (const limit of [{ batchRows: 1000 }, { batchBytes: 10_000 }, { batchRows: 1 }, {}]) {
      const whole = parseChunks([bytes], schema, limit);
      expect(parseChunks(pieces, schema, limit)).toEqual(whole);
      expect(whole.rows.map((r) => r.a)).toEqual(
        Array.from({ length: 5000 }, (_, i) => BigInt(i)).filter((i) => i % 7n !== 0n),
      );
      if (limit.batchRows === 1000) expect(whole.batches).toEqual([1000, 1000, 1000, 1000, 285]);
      if (limit.batchRows === 1) expect(new Set(whole.batches)).toEqual(new Set([1]));
      if (limit.batchBytes) expect(whole.batches.length).toBeGreaterThan(3);
    }
  });

  test("of rows that all fit", () => {
    // Each row is of 6 bytes without its line end.
    const rows = Array.from({ length: 3000 }, (_, i) => `${1000 + i},x`);
    const bytes = utf8.encode(`a,b\n${rows.join("\n")}`);
    const batches = (limit: Options): number[] => parseChunks([bytes], { a: "int64", b: "string" }, limit).batches;
    expect(batches({})).toEqual([3000]);
    expect(batches({ batchRows: 1100 })).toEqual([1100, 1100, 800]);
    expect(batches({ batchBytes: 7000 })).toEqual([1167, 1167, 666]);
    expect(batches({ batchBytes: 6000, batchRows: 900 })).toEqual([900, 900, 900, 300]);
    expect(batches({ batchBytes: 6000, batchRows: 1001 })).toEqual([1000, 1000, 1000]);
  });

  test("D63: whatever the chunks", () => {
    const input = utf8.encode('a,b\r\n"1\r\nx","say ""hi"""\r\n2,"é, z"\r\n');
    for (const chunks of splits(input)) {
      expect(parseChunks(chunks, { a: "string", b: "string" }).rows).toEqual([
        { a: "1\r\nx", b: 'say "hi"' },
        { a: "2", b: "é, z" },
      ]);
    }
  });

  test("long escaped cells", () => {
    const cell = '"'.repeat(5000);
    expect(parse(`a\n"${cell.replaceAll('"', '""')}"\n`, { a: "string" }).rows).toEqual([{ a: cell }]);
  });
});

test("the delimiter is the same however the front of the input arrives", () => {
  const text = `a;b,c\n${"1;2,3\n".repeat(20_000)}4;5\n`;
  const bytes = utf8.encode(text);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 1013) pieces.push(bytes.subarray(at, at + 1013));
  for (const chunks of [[bytes], pieces]) {
    const { rows, rejects } = parseChunks(chunks, { "a;b": "string", c: "int64" });
    expect(rows).toHaveLength(20_000);
    expect(rejects).toEqual([[20_002, "ragged_row"]]);
  }
});

test.each([
  ["int64", "1.0"],
  ["int64", "1e3"],
  ["float64", "-0"],
  ["float64", "1e3"],
  ["float64", "NaN"],
  ["float64", "0.12345678901234567"],
  ["decimal(5,1)", "-0"],
  ["decimal(5,1)", "1.00"],
  ["decimal(5,1)", "1e1"],
])("%s takes %s, but stops at it where inference would have said otherwise", (type, cell) => {
  const text = `v,w\n${cell},\n`;
  expect(parse(text, { v: type, w: "string" }).rows).toHaveLength(1);
  expect(() => parse(text, { v: type, w: "string" }, { valueMisfits: "misfit" })).toThrow(SchemaMisfit);
});

test("a schema inferred from the front either is that of all rows, or a row stops the parser", () => {
  const number = fc.oneof(
    fc.constantFrom("", "0", "1", "1.0", "1.50", "1e3", "-0", "0.1", "NaN", "9007199254740992", "9007199254740993"),
    fc.constantFrom("0.12345678901234567", "99999999999999999999", "1152921504606846976", "16777217", "1.", "0.10"),
    fc.maxSafeInteger().map(String),
    fc.integer({ min: -9_999_999, max: 9_999_999 }).map((n) => String(n / 100)),
  );
  const base = fc.constantFrom(
    undefined,
    "int8",
    "int64",
    "uint8",
    "float32",
    "float64",
    "decimal(20,1)",
    "decimal(5,2)",
  );
  fc.assert(
    fc.property(fc.array(number, { minLength: 1, maxLength: 8 }), fc.nat(8), base, (cells, front, type) => {
      const infer = (part: readonly string[]): Schema => {
        const fields = type === undefined ? undefined : assignFieldIds(toSchema({ v: type, w: "string" }));
        const inferrer = createCsvInferrer({ ...(fields && { base: fields }) });
        inferrer.push(utf8.encode(`v,w\n${part.map((cell) => `${cell},\n`).join("")}`));
        return inferrer.end();
      };
      const sampled = infer(cells.slice(0, front));
      const text = `v,w\n${cells.map((cell) => `${cell},\n`).join("")}`;
      try {
        parse(text, sampled, { valueMisfits: "misfit" });
      } catch (error) {
        expect(error).toBeInstanceOf(SchemaMisfit);
        return;
      }
      expect(sampled).toEqual(infer(cells));
    }),
    { numRuns: 3000 },
  );
});

/** A number's exact value as text: `<integer>e<exponent>` without trailing zeros. */
function digits(number: string): string {
  const [, sign, integer, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(number)!;
  const all = `${integer}${fraction}`.replace(/^0+/, "");
  const significant = all.replace(/0+$/, "");
  if (significant === "") return "0";
  return `${sign}${significant}e${Number(exponent) - fraction.length + all.length - significant.length}`;
}

test("the inferred schema takes every row of its input and keeps every value, in any order of rows", () => {
  const cell = fc.oneof(
    fc.constantFrom("", '""', "0", "-0", "1", "007", "1.5", "-0.0", "1e3", "true", "false", "2031-02-03", "NaN", "x"),
    fc.constantFrom("2031-02-03T04:05:06Z", "2031-02-03 04:05:06", "9007199254740993", "0.12345678901234567", '"1"'),
    fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }).map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => n.toFixed(Math.abs(Math.trunc(n * 10)) % 7)),
    fc.tuple(fc.maxSafeInteger(), fc.bigInt({ min: 0n, max: 10n ** 30n })).map(([a, b]) => `${a}.${b}`),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 6 }), fc.integer(), (cells, seed) => {
      const lines = cells.map((row) => `${row.join(",")}\n`);
      const infer = (body: readonly string[]): Schema => {
        const inferrer = createCsvInferrer({ csv: { delimiter: "," } });
        inferrer.push(utf8.encode(`a,b\n${body.join("")}`));
        return inferrer.end();
      };
      const schema = infer(lines);
      const { rows, rejects } = parse(`a,b\n${lines.join("")}`, schema, { delimiter: "," });
      expect(rejects).toEqual([]);
      expect(rows).toHaveLength(cells.length);
      cells.forEach((row, i) => {
        ["a", "b"].forEach((name, column) => {
          const text = row[column]!.replaceAll('"', "");
          const value = rows[i]![name];
          if (row[column] === "")
            expect(value ?? null).toBe(null); // an unknown column is not stored
          else if (typeof value === "number") expect(digits(String(value))).toBe(digits(text));
          else if (typeof value === "bigint") expect(String(value)).toBe(text);
          else if (schema.fields[column]!.type.kind === "decimal") expect(digits(value as string)).toBe(digits(text));
          else if (schema.fields[column]!.type.kind === "string") expect(value).toBe(text);
        });
      });
      const from = Math.abs(seed) % lines.length;
      expect(infer([...lines.slice(from), ...lines.slice(0, from)])).toEqual(schema);
    }),
    { numRuns: 2000 },
  );
});
