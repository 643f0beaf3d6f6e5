import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createCsvEngineParser } from "../src/csv-engine.js";
import { createCsvParser } from "../src/csv-parser.js";
import { type CsvOptions, type Parser, SchemaMisfit, type TextParserOptions } from "../src/parser.js";
import { batchRows } from "../src/values.js";
import { comparedOutcome, type Outcome, PLAIN_TYPES } from "./outcome.js";
import { schemaOf, utf8 } from "./text.js";

function engineParser(options: TextParserOptions): Parser<Uint8Array> {
  const parser = createCsvEngineParser(options);
  if (!parser) throw new Error("this host has no WebAssembly with vectors");
  return parser;
}

/** Parses by both parsers and expects the same of them. */
function compare(input: Uint8Array, options: TextParserOptions, cuts: readonly number[] = []): Outcome {
  return comparedOutcome(createCsvParser(options), engineParser(options), input, options, cuts);
}

const TYPES: Readonly<Record<string, string>> = {
  ...PLAIN_TYPES,
  st: "struct<x: int64>",
  ls: "list<string>",
  m: "map<string,int64>",
  n: "unknown",
};

/** Texts of cells, without quotes. */
const TEXTS: readonly string[] = [
  ...["", " ", "x", "NA", "NULL", "N", "NAN", "é", "a longer text, of more than sixteen bytes", "exactly 16 bytes"],
  ...[
    "15 bytes of text",
    "17 bytes of text!",
    'say "hi"',
    '"',
    '""',
    'x"',
    "a\nb",
    "a\r\nb",
    "\r",
    "\n\n",
    "a,b",
    ",",
    ";",
  ],
  ...["\0", "a\0b", "\ufeffx", "back\\slash", "\\", 'quoted \\" so', "'", "it's", "tab\tin", " padded ", "\t1 "],
  ...["true", "false", "True", "truex", "tru", "TRUE", "0", "-0", "-0.0", "-0e1", "00", "007", "+7", "1_000", "0x10"],
  ...[
    "1",
    "-1",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "32768",
    "65535",
    "65536",
    "2147483647",
    "-2147483648",
  ],
  ...["2147483648", "4294967295", "4294967296", "9007199254740992", "9007199254740993", "16777216", "16777217"],
  ...["9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"],
  ...["18446744073709551615", "18446744073709551616", "99999999999999999999", "123456789012345678901234567890"],
  ...[
    "1.0",
    "1.5",
    "1.50",
    "-1.25",
    "1.",
    ".5",
    "1e3",
    "1E+3",
    "12e-1",
    "0.1",
    "0.30000000000000004",
    "1e308",
    "1e400",
  ],
  ...["5e-324", "2.2250738585072014e-308", "3.4028235e38", "3.4028236e38", "-122.419415512345", "0.8414709848078965"],
  ...[
    "0.1234567890123450000",
    "1.0000000000000000000000",
    "123456789.123456",
    "12.34",
    "12.345",
    "12.3400",
    "0.1234567890123456",
    "12345678.90",
    "1.5x",
  ],
  ...[
    `0.${"0".repeat(300)}1`,
    `1${"0".repeat(310)}.5`,
    "12345678901234567.5",
    "NaN",
    "Infinity",
    "-Infinity",
    "NaNx",
    "nan",
  ],
  ...["2031-02-03", "2031-02-29", "2032-02-29", "0001-01-01", "0000-01-01", "9999-12-31", "2031-2-3", "2031-02-03x"],
  ...["04:05:06", "04:05:06.7", "04:05:06.123456", "04:05:06.1234567", "24:00:00", "04:05:60", "04:05"],
  ...["2031-02-03T04:05:06Z", "2031-02-03T04:05:06", "2031-02-03 04:05:06.5", "2031-02-03T04:05:06.123+05:30"],
  ...["2031-02-03T04:05:06-03:30", "2031-02-03 04:05:06Z", "2031-02-03T24:00:00Z", "2031-02-03T04:05:60Z"],
  ...[
    "00112233-4455-6677-8899-aabbccddeeff",
    "00112233-4455-6677-8899-AABBCCDDEEFF",
    "0011223g-4455-6677-8899-aabbccddeeff",
  ],
  ...["AAECAwQ=", "AAECAwR=", "AAECAw==", "AAEC", "AA==", "AB==", "A", "AAECAwQFBgcICQoLDA0ODxAREhM=", "AA E"],
  ...["{}", "[]", "null", "[1]", '{"x":1}'],
];

/** A cell as a writer would write it, which quotes it where it must. */
function quoted(text: string, quote = '"', escaping = quote): string {
  return quote + text.replaceAll(quote, escaping + quote) + quote;
}

const OPTIONS: readonly CsvOptions[] = [
  {},
  { nullValues: [] },
  { nullValues: ["", "NA", "NULL", "15 bytes of text", "exactly 16 bytes", "a longer text"] },
  { trim: true },
  { trim: true, nullValues: ["", "NA"] },
  { ragged: "pad" },
  { escape: "\\" },
  { escape: "1" },
  { quote: "" },
  { quote: "'" },
  ...[";", "\t", "|", " ", "0", "1", "-", ".", ":", "T", "e", "a", "\0"].map((delimiter) => ({ delimiter })),
  { delimiter: "\t", trim: true },
  { delimiter: " ", trim: true },
  ...["1", "-", ".", "e", "x", " "].map((quote) => ({ quote })),
  { quote: " ", trim: true },
];

const LINES = Number(process.env.EIDER_FUZZ_LINES ?? 20_000);
const settings = { numRuns: Math.ceil(LINES / 20) };

const policies = fc.record({
  unknownFields: fc.constantFrom("misfit", "reject", "ignore"),
  valueMisfits: fc.constantFrom("misfit", "reject", "reject"),
  batchRows: fc.constantFrom(1, 2, 3, 7, 100_000),
  batchBytes: fc.constantFrom(1, 50, 300, 1_000_000),
  maxRejects: fc.constantFrom(0, 3, 1000),
} as const);

describe("the engine gives what the TypeScript parser gives", () => {
  test.each(Object.entries(TYPES))("for every text in a column of %s (%s)", (name, type) => {
    const schema = schemaOf({ before: "string", [name]: type, behind: "int64" });
    for (const csv of OPTIONS) {
      const { delimiter = ",", quote = '"', escape: escaping = quote } = csv;
      const options = { schema, format: "csv", unknownFields: "reject", csv: { ...csv, delimiter } } as const;
      const lines = TEXTS.flatMap((text) => [
        `x${delimiter}${text}${delimiter}7`,
        `${delimiter}${quoted(text, quote, escaping)}${delimiter}8`,
      ]);
      const header = ["before", name, "behind"];
      const given = { ...options, csv: { ...options.csv, header } };
      compare(utf8(lines.join("\n")), { ...given, valueMisfits: "reject" });
      compare(utf8(`${lines.join("\r\n")}\r\n`), { ...given, valueMisfits: "reject", batchRows: 5 });
      // The first misfit stops a parser, so that each line needs its own.
      if (Object.keys(csv).length > 0) continue;
      const top = header.join(",");
      for (const line of lines) compare(utf8(`${top}\n${line}\n`), { ...options, valueMisfits: "misfit" });
    }
  });

  test("for records of all types, right and wrong, in any dialect, over any split", () => {
    const names = Object.keys(TYPES);
    const text = fc.oneof(fc.constantFrom(...TEXTS), fc.string({ maxLength: 40 }));
    const fitting = fc.constantFrom(
      ...["", "1", "12", "x", "2031-02-03T04:05:06Z", "1.5", "true", '"quoted"', '"a ""b"" c"'],
    );
    const cell = fc.tuple(fc.oneof(text, fitting, fitting), fc.boolean());
    const column = fc.constantFrom(...names, "s", "s", "S2", "i64", "f64", "tz", "other", "more", "");
    const bytes = fc.constantFrom(0, 0x0a, 0x0d, 0x22, 0x2c, 0x5c, 0x80, 0xc3, 0xff);
    fc.assert(
      fc.property(
        fc.uniqueArray(column, { minLength: 1, maxLength: 6 }),
        fc.array(fc.array(cell, { maxLength: 7 }), { maxLength: 20 }),
        fc.constantFrom(...OPTIONS, {}, {}, {}),
        fc.constantFrom("\n", "\r\n", "\r", "mixed"),
        fc.record({ end: fc.boolean(), bang: fc.boolean(), whole: fc.boolean() }),
        fc.array(fc.nat(400), { maxLength: 5 }),
        fc.option(fc.tuple(fc.nat(400), bytes), { freq: 8 }),
        policies,
        (header, records, csv, ending, { end, bang, whole }, at, damage, policy) => {
          const { delimiter = ",", quote = '"', escape: escaping = quote } = csv;
          const join = (cells: readonly string[]): string => cells.join(delimiter);
          const lines = records.map((cells) => {
            const some = whole ? header.map((_, i) => cells[i % (cells.length || 1)] ?? (["", false] as const)) : cells;
            return join(some.map(([value, isQuoted]) => (isQuoted ? quoted(value, quote, escaping) : value)));
          });
          const body = [join(header.map((name) => quoted(name, quote, escaping))), ...lines];
          const ends = ["\n", "\r\n", "\r"];
          const ended = body.map((line, i) => {
            const last = i === body.length - 1 && !end;
            return line + (last ? "" : ending === "mixed" ? ends[(line.length + i) % 3]! : ending);
          });
          const input = utf8(ended.join(""));
          if (damage && damage[0] < input.length) input[damage[0]] = damage[1];
          const types = header
            .filter((name) => name in TYPES)
            .map((name, i) => [bang && i === 0 ? `${name}!` : name, TYPES[name]!] as const);
          const schema = schemaOf({ ...Object.fromEntries(types), lacking: "int64" });
          const cuts = at.filter((cut) => cut <= input.length).sort((a, b) => a - b);
          compare(input, { ...policy, schema, format: "csv", csv: { ...csv, delimiter } }, cuts);
        },
      ),
      settings,
    );
  });

  test("cut at every position", () => {
    const text =
      'a,b,c\r\n1,"x ""y"" z",2031-02-03\r\n\r\n,"two\r\nlines, é\n",\r\n3,a text of more than sixteen bytes,2031-02-04\r\n' +
      'bad,x,\r\n4,"x"y,\r5,,\r\n6\r\n"7","","2031-02-05"\r\n8,last,2031-02-06';
    const schema = schemaOf({ a: "int64", b: "string", c: "date" });
    const options = { schema, format: "csv", unknownFields: "reject", valueMisfits: "reject" } as const;
    const input = utf8(text);
    for (const csv of [{ delimiter: "," }, { delimiter: ",", nullValues: ["", "8"] }, {}]) {
      for (let cut = 0; cut <= input.length; cut++) {
        const { rows, rejects } = compare(input, { ...options, csv }, [cut]);
        expect([rows, ...rejects.map(({ line }) => line)]).toEqual([6, 8, 9, 11]);
        compare(input, { ...options, csv }, [cut, Math.min(cut + 1, input.length), Math.min(cut + 17, input.length)]);
      }
    }
    compare(
      input,
      options,
      Array.from(input, (_, i) => i),
    );
  });

  test("for texts of any length around the width of a vector", () => {
    const options = { schema: schemaOf({ a: "string", b: "string", c: "string" }), format: "csv" } as const;
    const csv = { delimiter: ",", nullValues: ["", "N".repeat(16), "N".repeat(17)] };
    const parser = engineParser({ ...options, unknownFields: "reject", valueMisfits: "reject", csv });
    const texts: string[] = [];
    const values: (string | null)[] = [];
    const lines: string[] = ["a,b,c"];
    for (let length = 1; length < 70; length++) {
      for (const text of ["x".repeat(length), `${"y".repeat(length)}"`, "N".repeat(length)]) {
        values.push(text === "N".repeat(16) || text === "N".repeat(17) ? null : text);
        texts.push(text);
        lines.push(`${text},${quoted(text)},${text}`);
      }
    }
    parser.push(utf8(`${lines.join("\r\n")}\r\n`));
    parser.end();
    const rows = batchRows(parser.take()!, "exact");
    expect(rows).toEqual(texts.map((text, i) => ({ a: values[i], b: text, c: values[i] })));
  });
});

describe("the engine itself, not TypeScript, takes", () => {
  /** Rows that the engine takes at once: with misfits a refused one would be seen, as TypeScript's rows move one by one. */
  function rowsOf(text: string, types: Readonly<Record<string, string>>, csv: CsvOptions = {}): unknown[] {
    const options = {
      schema: schemaOf(types),
      format: "csv",
      unknownFields: "ignore",
      valueMisfits: "reject",
    } as const;
    const parser = engineParser({ ...options, csv: { delimiter: ",", ...csv } });
    parser.push(utf8(text));
    parser.end();
    const batch = parser.take();
    return batch ? batchRows(batch, "exact") : [];
  }

  test("the values that a hand would write down", () => {
    const types = {
      i: "int64",
      s: "string",
      f: "float64",
      d: "decimal(5,2)",
      b: "bool",
      t: "timestamptz",
      x: "binary",
    };
    const text =
      "i,s,f,d,b,t,x,unknown\r\n" +
      '-9223372036854775808,"say ""hi""",-0.5,123.45,true,2031-02-03T04:05:06+05:30,AQL/,u\r\n' +
      '"7",,NaN,-1,false,"1969-12-31T23:59:59.999999Z",,""\r\n' +
      ',"",,,,,,\r\n';
    expect(rowsOf(text, types)).toEqual([
      {
        i: -(2n ** 63n),
        s: 'say "hi"',
        f: -0.5,
        d: "123.45",
        b: true,
        t: "2031-02-02T22:35:06.000000Z",
        x: Uint8Array.of(1, 2, 255),
      },
      { i: 7n, s: null, f: Number.NaN, d: "-1.00", b: false, t: "1969-12-31T23:59:59.999999Z", x: null },
      { i: null, s: "", f: null, d: null, b: null, t: null, x: null },
    ]);
  });

  test("BigInt's integers and Number's floats", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), fc.bigInt(0n, 2n ** 64n - 1n), fc.double())),
        fc.constantFrom(...['"', ""]),
        (values, q) => {
          const lines = values.map((cells) =>
            cells.map((value) => q + (Object.is(value, -0) ? "-0" : value) + q).join(","),
          );
          const expected = values.map(([i, u, f]) => ({ i, u, f }));
          // Integers that are not exact in a float64 are no floats.
          fc.pre(
            values.every(([, , f]) => !Number.isFinite(f) || Number.isSafeInteger(f) || !/^-?[0-9]+$/.test(String(f))),
          );
          expect(rowsOf(`i,u,f\n${lines.join("\n")}\n`, { i: "int64", u: "uint64", f: "float64" })).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("any text, as a writer by RFC 4180 writes it", () => {
    const text = fc.string({ unit: "binary", maxLength: 60 }).filter((s) => !/\p{Surrogate}/u.test(s));
    fc.assert(
      fc.property(fc.array(fc.tuple(text, fc.string({ unit: fc.constantFrom(...'",\r\n ax') }))), (values) => {
        const lines = values.map((cells) => cells.map((value) => quoted(value)).join(","));
        expect(rowsOf(`a,b\r\n${lines.join("\r\n")}\r\n`, { a: "string", b: "string" })).toEqual(
          values.map(([a, b]) => ({ a, b })),
        );
      }),
      { numRuns: 300 },
    );
  });
});

describe("the engine and TypeScript take turns", () => {
  const reject = { unknownFields: "ignore", valueMisfits: "reject", format: "csv" } as const;

  test("in long inputs with odd records of any frequency and size", () => {
    const schema = schemaOf({ i: "int64", s: "string", "l!": "string", f: "float64" });
    const record = (i: number): string => {
      if (i % 5000 === 4000) return `1,"${"long\n".repeat(60_000)}",l,,`;
      if (i % 5000 === 4500) return `2,${"longer ".repeat(20_000)},l,,z`;
      if (i > 8000 && i % 3 === 0) return `${i},x,"l"l,1.5,`;
      if (i % 997 === 0) return `${i}x,,l,,`;
      return `${i},"row\r\n${i}",l${i},${i / 8},${i % 5 ? "" : "z"}`;
    };
    const body = Array.from({ length: 12_000 }, (_, i) => record(i)).join("\r\n");
    const input = utf8(`i,s,l,f,z\r\n${body}\r\n`);
    for (const size of [input.length, 65_536, 100_003]) {
      const cuts = Array.from({ length: Math.floor(input.length / size) }, (_, i) => (i + 1) * size);
      for (const batch of [{}, { batchRows: 1000 }, { batchBytes: 300_000 }]) {
        const { rows, rejects, ignored } = compare(input, { ...reject, ...batch, schema }, cuts);
        // 1,332 multiples of 3 behind 8,000 without 9,000, and 13 of 997 without 8,973 and 11,964, which are of both.
        expect([rows, rejects.length]).toEqual([12_000 - 1332 - 11, 1332 + 11]);
        expect(ignored.z).toBeGreaterThan(1000);
      }
    }
  });

  test("of wide tables, dropped columns and records that are padded", () => {
    const names = Array.from({ length: 1000 }, (_, i) => `column ${i}`);
    const schema = schemaOf(Object.fromEntries(names.map((name, i) => [name, i % 10 ? "int32" : "string"])));
    const record = (i: number): string =>
      Array.from({ length: 300 + (i % 3) * 600 }, (_, c) => ((c * i) % 7 ? "" : c % 10 ? c * i : `text ${c}`)).join(
        ",",
      );
    const header = Array.from({ length: 1500 }, (_, i) => `column ${i}`).join(",");
    const input = utf8(`${header}\n${Array.from({ length: 60 }, (_, i) => record(i)).join("\n")}\n`);
    for (const ragged of ["pad", "error"] as const) {
      for (const batch of [{}, { batchRows: 7 }]) compare(input, { ...reject, ...batch, schema, csv: { ragged } });
    }
  });

  test("short records, which may end before a column that may be null", () => {
    const schema = schemaOf({ a: "int64", "b!": "string", c: "string", "d!": "string", e: "int8" });
    const input = utf8("a,b,c,d,e\n1\n2,x\n3,x,y\n4,x,y,z\n5,x,,z,5\n6,,,z\n7,x,,z,7,\n8,x,,z,8,9\n\n9,x,y,\n");
    const { rows, rejects } = compare(input, { ...reject, schema, csv: { ragged: "pad", delimiter: "," } });
    expect([rows, ...rejects.map(({ line }) => line)]).toEqual([3, 2, 3, 4, 7, 9, 11]);
  });

  test("a single column, of which an empty line is a cell", () => {
    const rowsOf = (nullValues: readonly string[]): unknown[] => {
      const csv = { delimiter: ",", nullValues };
      const parser = engineParser({ ...reject, schema: schemaOf({ a: "string" }), csv });
      parser.push(utf8("a\n1\n\n\r\n2\n"));
      parser.end();
      return batchRows(parser.take()!, "exact").map(({ a }) => a);
    };
    expect(rowsOf([""])).toEqual(["1", null, null, "2"]);
    expect(rowsOf([])).toEqual(["1", "", "", "2"]);
  });

  test("in batches of any size, with texts that are dropped or decoded", () => {
    const schema = schemaOf({ a: "binary", b: "string" });
    const lines = Array.from({ length: 400 }, (_, i) => {
      const bytes = Uint8Array.from({ length: i }, (_, j) => i + j);
      return `${Buffer.from(bytes).toString("base64")},"dropped ${"x".repeat(i)}",text ${i}`;
    });
    const input = utf8(`a,z,b\n${lines.join("\n")}\n`);
    for (const rows of [1, 3, 50, 1000]) {
      const parser = engineParser({ ...reject, schema, batchRows: rows, csv: { delimiter: ",", nullValues: [] } });
      parser.push(input);
      parser.end();
      const found: unknown[] = [];
      for (let batch = parser.take(); batch; batch = parser.take()) found.push(...batchRows(batch, "exact"));
      expect(found).toEqual(
        lines.map((_, i) => ({ a: Uint8Array.from({ length: i }, (_, j) => i + j), b: `text ${i}` })),
      );
    }
  });

  test("where a field that may not be null has no column, no record is a row", () => {
    const schema = schemaOf({ a: "int64", "b!": "string" });
    const { rows, rejects } = compare(utf8("a\n1\n2\nx\n"), { ...reject, schema });
    expect([rows, ...rejects.map(({ code }) => code)]).toEqual([0, "missing_value", "missing_value", "type_mismatch"]);
  });

  test("a parser that failed says so again, and leaves the engine fit for the next one", () => {
    const options = { ...reject, valueMisfits: "misfit", schema: schemaOf({ a: "int64" }) } as const;
    const parser = engineParser(options);
    parser.push(utf8("a,b\n1,x\n"));
    parser.push(utf8("x,y\n"));
    expect(() => parser.end()).toThrow(SchemaMisfit);
    expect(() => parser.push(utf8("2,z\n"))).toThrow(SchemaMisfit);
    expect(parser.rows).toBe(1);
    expect(Object.fromEntries(parser.ignoredFields)).toEqual({ b: 1 });
    compare(utf8("a\n7\n\n8\n"), options);
  });
});
