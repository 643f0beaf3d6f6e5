import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Column, RecordBatch } from "../src/columns.js";
import { InvalidInputError, type Reject } from "../src/errors.js";
import { createJsonEngineParser } from "../src/json-engine.js";
import { createJsonParser } from "../src/json-parser.js";
import { type Parser, SchemaMisfit, type TextParserOptions } from "../src/parser.js";
import { formatType } from "../src/schema.js";
import { schemaOf, utf8 } from "./text.js";

/** All that a parser makes of its input. */
interface Outcome {
  readonly batches: readonly RecordBatch[];
  readonly rejects: readonly Reject[];
  readonly ignored: Readonly<Record<string, number>>;
  readonly rows: number;
  readonly error: string | undefined;
}

function outcome(parser: Parser<Uint8Array>, input: Uint8Array, cuts: readonly number[] = []): Outcome {
  const batches: RecordBatch[] = [];
  let error: string | undefined;
  try {
    let at = 0;
    for (const cut of [...cuts, input.length]) {
      const chunk = input.slice(at, cut);
      parser.push(chunk);
      chunk.fill(0xff);
      for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
      at = cut;
    }
    parser.end();
  } catch (thrown) {
    if (!(thrown instanceof SchemaMisfit || thrown instanceof InvalidInputError)) throw thrown;
    error = `${thrown.name}: ${thrown.message}`;
  }
  for (let batch = parser.take(); batch; batch = parser.take()) batches.push(batch);
  const ignored = Object.fromEntries([...parser.ignoredFields].sort(([a], [b]) => (a < b ? -1 : 1)));
  return { batches, rejects: parser.rejects, ignored, rows: parser.rows, error };
}

/** Parses by both parsers and expects the same of them. */
function compare(input: Uint8Array, options: TextParserOptions, cuts: readonly number[] = []): Outcome {
  const engine = createJsonEngineParser(options);
  if (!engine) throw new Error("this host has no WebAssembly with vectors");
  const expected = outcome(createJsonParser(options), input, cuts);
  expect(inWords(outcome(engine, input, cuts))).toEqual(inWords(expected));
  return expected;
}

/** An outcome as text that says all of it, to the bytes. */
function inWords({ batches, ...rest }: Outcome): string[] {
  const columnWords = ({ type, validity, values, offsets, children, ...counts }: Column): unknown => [
    formatType(type),
    counts,
    validity && hex(validity),
    values && values.constructor.name + hex(values),
    offsets && hex(offsets),
    children.map(columnWords),
  ];
  return [
    JSON.stringify(rest),
    ...batches.map(({ schema, length }) => `${length} rows of ${formatType({ kind: "struct", ...schema })}`),
    ...batches.flatMap(({ columns }) => columns.map((column) => JSON.stringify(columnWords(column)))),
  ];
}

function hex({ buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString("hex");
}

const EVERYTHING = schemaOf({
  b: "bool",
  i8: "int8",
  i16: "int16",
  i32: "int32",
  i64: "int64",
  u8: "uint8",
  u16: "uint16",
  u32: "uint32",
  u64: "uint64",
  f32: "float32",
  f64: "float64",
  d9: "decimal(9,2)",
  d38: "decimal(38,10)",
  s: "string",
  j: "json",
  bin: "binary",
  date: "date",
  time: "time",
  ts: "timestamp",
  tz: "timestamptz",
  id: "uuid",
  fix: "fixed(5)",
  st: "struct<x: int64, y: struct<z: string, w: list<float64>>>",
  ls: "list<string>",
  ll: "list<list<int32>>",
  lst: "list<struct<p: int8, q: string>>",
  m: "map<string,int64>",
  mi: "map<int32,string>",
  n: "unknown",
  lu: "list<unknown>",
});

const VALUES: readonly string[] = [
  ...["null", "true", "false", "0", "-0", "1", "-1", "127", "128", "-128", "-129", "255", "256", "32767", "65535"],
  ...["2147483647", "2147483648", "-2147483648", "4294967295", "4294967296", "9007199254740993", "16777217"],
  ...["9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615"],
  ...["18446744073709551616", "19999999999999999999", "99999999999999999999", "123456789012345678901234567890"],
  ...[
    "1.0",
    "1.5",
    "-1.25",
    "1e3",
    "1E+3",
    "12e-1",
    "0.1",
    "0.30000000000000004",
    "1e308",
    "1e400",
    "-1e-400",
    "5e-324",
  ],
  ...["2.2250738585072014e-308", "179769313486231570000", "1.7976931348623157e308", "0.000001", "123456.789e3"],
  ...["9007199254740993.0", "3.4028235e38", "3.4028236e38", "0.1234567890123456789", "0.12345678901234567890123"],
  ...["12.34", "12.345", "1234567.89", "12345678.90", "0e5", "1e-2", "1.", ".5", "01", "-", "+1", "1e", "0x1", "- 1"],
  ...[
    '""',
    '"x"',
    '"a longer text, of more than sixteen bytes"',
    '"é"',
    '"\\n\\"\\\\\\/\\b\\f\\r\\t"',
    '"\\u00e9\\ud83d\\ude00"',
  ],
  ...[
    '"\\ud83d"',
    '"\\ude00"',
    '"\\u12"',
    '"\\x"',
    '"tab\tin"',
    '"\\u0000"',
    '"12.34"',
    '"-0.5"',
    '"1e2"',
    '"12.345"',
    '"1.5x"',
  ],
  ...[
    '"2031-02-03"',
    '"2031-02-29"',
    '"2032-02-29"',
    '"2100-02-29"',
    '"0001-01-01"',
    '"0000-01-01"',
    '"9999-12-31"',
    '"2031-04-31"',
  ],
  ...[
    '"04:05:06"',
    '"04:05:06.7"',
    '"04:05:06.123456"',
    '"04:05:06.1234560"',
    '"04:05:06.1234567"',
    '"23:59:59.999999000"',
    '"24:00:00"',
    '"04:05:60"',
    '"04:05:06."',
    '"04:05:06.0000000000"',
  ],
  ...[
    '"2031-02-03T04:05:06Z"',
    '"2031-02-03T04:05:06"',
    '"2031-02-03 04:05:06.5"',
    '"2031-02-03T04:05:06.123+05:30"',
    '"2031-02-03 04:05:06Z"',
  ],
  ...[
    '"0001-01-01T00:00:00+00:01"',
    '"9999-12-31T23:59:59.999999Z"',
    '"9999-12-31T23:59:59-00:01"',
    '"1969-12-31T23:59:59.999999Z"',
    '"2031-02-03T04:05:06+24:00"',
    '"2031-02-03T04:05:06z"',
  ],
  ...[
    '"00112233-4455-6677-8899-aabbccddeeff"',
    '"00112233-4455-6677-8899-AABBCCDDEEFF"',
    '"00112233445566778899aabbccddeeff0000"',
    '"0011223g-4455-6677-8899-aabbccddeeff"',
  ],
  ...[
    '"AAECAwQ="',
    '"AAECAwR="',
    '"AAECAw=="',
    '"AAEC"',
    '"AA=="',
    '"AB=="',
    '"A"',
    '"AAECAwQFBgcICQoLDA0ODxAREhM="',
    '"AA E"',
  ],
  ...[
    "{}",
    "[]",
    "[ ]",
    "{ }",
    "[null]",
    "[1]",
    "[1, 2,3 ]",
    '["a","b"]',
    '[["a"]]',
    "[[1],[],null,[2,3]]",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[{}]",
  ],
  ...[
    '{"x":1}',
    '{"x":1,"y":{"z":"q","w":[1.5,null]}}',
    '{"y":null,"x":null}',
    '{"X":1}',
    '{"x":1,"x":2}',
    '{"x":1,"X":2}',
    '{"x":true}',
    '{"k":1}',
  ],
  ...[
    '{"x":1,}',
    "{,}",
    '{"x"}',
    '{"x":}',
    "{x:1}",
    '{"\\u0078":7}',
    '{"":1}',
    '{"a":1,"b":2}',
    '{"a":1,"a":2}',
    '{"1":"x","2":"y"}',
    '{"1":"x","1.0":"y"}',
  ],
  ...['[{"p":1,"q":"r"},{"q":"s"},null,{"p":300}]', '[{"p":1,"q":"r"},{"q":"s"},null,{"p":-3}]', '[{"p":1,"Q":"r"}]'],
  ...[
    "tru",
    "nul",
    "truE",
    "nulll",
    "NaN",
    "Infinity",
    "'x'",
    "",
    "\u00a0",
    "[[[[[[[[]]]]]]]]",
    `${"[".repeat(99)}${"]".repeat(99)}`,
    `${"[".repeat(100)}${"]".repeat(100)}`,
  ],
];

const KEYS: readonly string[] = [
  ...EVERYTHING.fields.map(({ name }) => name),
  ...["S", "I64", "\\u0073", "other", "", "b ", "a key that is a lot longer than thirty-two bytes, even", 'q\\"', "st"],
];

const blanks = fc.constantFrom("", "", "", "", " ", "  ", "\t", "\r", " \t ");

/** A row of the keys of EVERYTHING, mostly right. */
const member = fc.tuple(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), blanks, blanks, blanks);
const line = fc.oneof(
  { weight: 20, arbitrary: fc.array(member, { maxLength: 6 }).map(rowText) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "",
      "  ",
      "[]",
      "1",
      '"x"',
      "null",
      "{",
      "}",
      '{"s":"x"}}',
      '{"s":"x"} {"s":"y"}',
      "{}\r",
    ),
  },
);

type Member = readonly [key: string, value: string, ...blanks: readonly string[]];

function rowText(members: readonly Member[]): string {
  return `{${members.map(([key, value, a, b, c]) => `${a}"${key}"${b}:${c}${value}`).join(",")}}`;
}

/** Lines that are right for their column, so that many are taken in a row. */
const FITTING: readonly Member[] = [
  ["i64", "12345678", "", "", ""],
  ["s", '"some text"', "", "", ""],
  ["s", '"Zürich, \\"quoted\\""', " ", "", " "],
  ["tz", '"2031-02-03T04:05:06.789Z"', "", "", ""],
  ["f64", "12.75", "", "", ""],
  ["f64", "0.8414709848078965", "", "", ""],
  ["b", "true", "", "", ""],
  ["st", '{"x":1,"y":{"w":[1,2],"z":"abc"}}', "", "", ""],
  ["ls", '["a","b",null]', "", "", ""],
  ["m", '{"k":1,"l":null}', "", "", ""],
  ["lst", '[{"p":1},{"q":"x"}]', "", "", ""],
  ["d38", "12345678901.5", "", "", ""],
  ["u64", "18446744073709551615", "", "", ""],
  ["j", '{"a":[1,2,{"b":null}]}', "", "", ""],
];
const fitting = fc.uniqueArray(fc.constantFrom(...FITTING), { selector: ([key]) => key, maxLength: 8 }).map(rowText);

const policies = fc.record({
  unknownFields: fc.constantFrom("misfit", "reject", "ignore"),
  valueMisfits: fc.constantFrom("misfit", "reject"),
  batchRows: fc.constantFrom(1, 2, 3, 7, 100_000),
  batchBytes: fc.constantFrom(1, 50, 300, 1_000_000),
  maxRejects: fc.constantFrom(0, 3, 1000),
} as const);

const LINES = Number(process.env.EIDER_FUZZ_LINES ?? 20_000);
const settings = { numRuns: Math.ceil(LINES / 20), seed: Number(process.env.EIDER_SEED ?? 3) };

describe("the engine gives what the TypeScript parser gives", () => {
  test("for rows of every type, right and wrong, under all policies", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(line, fitting), { maxLength: 24 }),
        policies,
        fc.boolean(),
        (lines, policy, endless) => {
          const input = utf8(lines.join("\n") + (endless ? "" : "\n"));
          compare(input, { ...policy, schema: EVERYTHING, format: "ndjson" });
        },
      ),
      settings,
    );
  });

  test("for arrays and objects over lines", () => {
    const gap = fc.constantFrom("", " ", "\n", "\r\n", " \n\t");
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.oneof(line, fitting), gap, gap), { maxLength: 12 }),
        fc.constantFrom(...(["[,]", "[ ]", " "] as const)),
        policies,
        (rows, form, policy) => {
          const separator = form === "[,]" ? "," : " ";
          const text = rows
            .map(([row, before, behind]) => before + row.replaceAll(",", `,${before}`) + behind)
            .join(separator);
          const input = utf8(form === " " ? text : `${form[0]}${text}]`);
          compare(input, { ...policy, schema: EVERYTHING, format: "json" });
        },
      ),
      settings,
    );
  });

  test("over any split into chunks, also of bytes that are not UTF-8", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(line, fitting), { maxLength: 6 }),
        fc.array(fc.nat(400), { maxLength: 5 }),
        fc.option(fc.tuple(fc.nat(400), fc.constantFrom(0, 0x0a, 0x22, 0x5c, 0x80, 0xc3, 0xe2, 0xf0, 0xff))),
        fc.constantFrom("ndjson", "json"),
        policies,
        (lines, at, damage, format, policy) => {
          const input = utf8(lines.join("\n"));
          if (damage && damage[0] < input.length) input[damage[0]] = damage[1];
          const cuts = at.filter((cut) => cut <= input.length).sort((a, b) => a - b);
          compare(input, { ...policy, schema: EVERYTHING, format }, cuts);
        },
      ),
      settings,
    );
  });
});
