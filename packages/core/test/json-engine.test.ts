import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createJsonEngineParser } from "../src/json-engine.js";
import { createJsonParser } from "../src/json-parser.js";
import { SchemaMisfit, type TextParserOptions } from "../src/parser.js";
import { batchRows } from "../src/values.js";
import { comparedOutcome, type Outcome, PLAIN_TYPES } from "./outcome.js";
import { schemaOf, utf8 } from "./text.js";

/** Parses by both parsers and expects the same of them. */
function compare(input: Uint8Array, options: TextParserOptions, cuts: readonly number[] = []): Outcome {
  const engine = createJsonEngineParser(options);
  if (!engine) throw new Error("this host has no WebAssembly with vectors");
  return comparedOutcome(createJsonParser(options), engine, input, options, cuts);
}

const EVERYTHING = schemaOf({
  ...PLAIN_TYPES,
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
    '"\\ud83d\\u0041"',
    '"\\ud83d\\ud83d"',
    '"\\ud83d\\n"',
    '"\\uD83D\\uDE00"',
    ...Array.from({ length: 33 }, (_, c) => `"raw ${String.fromCharCode(c)} character"`),
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
const settings = { numRuns: Math.ceil(LINES / 20) };

describe("the engine gives what the TypeScript parser gives", () => {
  test("for every value in a column of every type", () => {
    for (const field of EVERYTHING.fields) {
      const options = { schema: { fields: [field] }, format: "ndjson", unknownFields: "reject" } as const;
      const lines = VALUES.map((value) => `{"${field.name}":${value}}`);
      compare(utf8(lines.join("\n")), { ...options, valueMisfits: "reject" });
      for (const line of lines) compare(utf8(line), { ...options, valueMisfits: "misfit" });
    }
  });

  test("for every value under a key that is dropped", () => {
    const options = { schema: schemaOf({ s: "string" }), format: "ndjson", valueMisfits: "reject" } as const;
    for (const keys of ["other", "\\u006fther"]) {
      const lines = VALUES.map((value) => `{"s":"x","${keys}":${value},"s2":[${value},{"k":${value}}]}`);
      compare(utf8(lines.join("\n")), { ...options, unknownFields: "ignore" });
    }
  });

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

  test("where values may not be null, but are or lack", () => {
    const schema = schemaOf({
      "a!": "int64",
      b: "string",
      "s!": "struct<x!: int32, y: string>",
      l: "list<struct<p!: int8, q: string>>",
      m: "map<string,int64!>",
    });
    const whole = '"a":1,"b":"t","s":{"x":2,"y":"u"},"l":[{"p":3,"q":"v"}],"m":{"k":4}';
    const rows = [
      `{${whole}}`,
      `{${whole.replace('"a":1,', "")}}`,
      `{${whole.replace('"a":1', '"a":null')}}`,
      `{${whole.replace('"x":2,', "")}}`,
      `{${whole.replace('"s":{"x":2,"y":"u"},', "")}}`,
      `{${whole.replace('"x":2', '"x":null')}}`,
      `{${whole.replace('"p":3,', "")}}`,
      `{${whole.replace('{"p":3,"q":"v"}', '{"p":3},{"q":"v"}')}}`,
      `{${whole.replace('"k":4', '"k":null')}}`,
      `{${whole.replace('"b":"t",', "").replace('"y":"u"', '"y":null')}}`,
    ];
    const options = { schema, format: "ndjson", unknownFields: "reject", valueMisfits: "reject" } as const;
    for (const row of rows) compare(utf8(row), options);
    const { rows: taken, rejects } = compare(utf8(rows.join("\n")), options);
    expect([taken, rejects.map(({ line }) => line)]).toEqual([2, [2, 3, 4, 5, 6, 7, 8, 9]]);
  });

  test("for keys that differ late, or by case, or end early", () => {
    const keys = [
      "a key of twenty bytes",
      "a key of twenty bytez",
      "a key of twenty byte",
      "a key of twentY bytes and more",
    ];
    const schema = schemaOf({ [keys[0]!]: "int64", [keys[1]!]: "int64", [keys[2]!]: "int64" });
    const options = { schema, format: "ndjson", unknownFields: "ignore", valueMisfits: "reject" } as const;
    const orders = [[0, 1, 2], [1, 0], [2, 1, 0], [1], [2, 0, 3], [3, 1]];
    const input = orders.map((order) => `{${order.map((key) => `"${keys[key]}":${key}`).join(",")}}`).join("\n");
    const { batches, ignored } = compare(utf8(input), options);
    const rows = batches.flatMap((batch) => batchRows(batch, "json"));
    expect(rows).toEqual(
      orders.map((order) => Object.fromEntries([0, 1, 2].map((key) => [keys[key], order.includes(key) ? key : null]))),
    );
    expect(ignored).toEqual({ [keys[3]!]: 2 });
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

/** The values of the only column, which the engine itself must have read: TypeScript's parser is not asked. */
function column(type: string, texts: readonly string[]): unknown[] {
  const schema = schemaOf({ v: type });
  const engine = createJsonEngineParser({ schema, format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" });
  if (!engine) throw new Error("this host has no WebAssembly with vectors");
  engine.push(utf8(texts.map((text) => `{"v":${text}}\n`).join("")));
  engine.end();
  const batch = engine.take();
  return batch ? batchRows(batch, "exact").map((row) => (row as { v: unknown }).v) : [];
}

describe("values equal those of", () => {
  const numRuns = 300;

  test("Number, for fractions of any length", () => {
    const digits = fc.stringMatching(/^[0-9]{1,22}$/);
    const fraction = fc
      .tuple(fc.boolean(), fc.nat(99999), digits, fc.option(fc.integer({ min: -330, max: 300 })))
      .map(([minus, whole, places, e]) => `${minus ? "-" : ""}${whole}.${places}${e === null ? "" : `e${e}`}`);
    // Floats as JavaScript writes them, and numbers half way between two floats.
    const shortest = fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => x.toExponential());
    const halfway = fc
      .tuple(fc.bigInt({ min: 2n ** 52n, max: 2n ** 53n - 1n }), fc.integer({ min: -4, max: 3 }))
      .map(([m, shift]) => {
        // (2m + 1) × 2^shift has one bit more than a float.
        const odd = 2n * m + 1n;
        if (shift >= 0) return `${odd << BigInt(shift)}.0`;
        const scaled = (odd * 10n ** BigInt(-shift)) >> BigInt(-shift);
        const text = scaled.toString().padStart(20, "0");
        return `${text.slice(0, shift).replace(/^0+(?=.)/, "")}.${text.slice(shift)}`;
      });
    fc.assert(
      fc.property(fc.array(fc.oneof(fraction, shortest, halfway), { maxLength: 50 }), (texts) => {
        const finite = texts.filter((text) => Number.isFinite(Number(text)));
        expect(column("float64", finite)).toEqual(finite.map(Number));
      }),
      { numRuns },
    );
  });

  test("BigInt, for integers of 64 bits", () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)),
        fc.array(fc.bigInt(0n, 2n ** 64n - 1n)),
        (i, u) => {
          expect(column("int64", i.map(String))).toEqual(i);
          expect(column("uint64", u.map(String))).toEqual(u);
        },
      ),
      { numRuns },
    );
  });

  test("Date, for instants", () => {
    const instant = fc.date({
      min: new Date("0001-01-01T00:00:00Z"),
      max: new Date("9999-12-31T23:59:59.999Z"),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(fc.array(instant), (dates) => {
        const micros = dates.map((date) => date.toISOString().replace("Z", "000Z"));
        expect(
          column(
            "timestamptz",
            dates.map((date) => JSON.stringify(date)),
          ),
        ).toEqual(micros);
      }),
      { numRuns },
    );
  });

  test("JSON.parse, for text", () => {
    const text = fc.string({ unit: "binary", maxLength: 80 }).filter((s) => !/\p{Surrogate}/u.test(s));
    const escaped = (s: string): string =>
      `"${Array.from({ length: s.length }, (_, i) => `\\u${s.charCodeAt(i).toString(16).padStart(4, "0")}`).join("")}"`;
    fc.assert(
      fc.property(fc.array(text), (texts) => {
        expect(
          column(
            "string",
            texts.map((s) => JSON.stringify(s)),
          ),
        ).toEqual(texts);
        expect(column("string", texts.map(escaped))).toEqual(texts);
      }),
      { numRuns },
    );
  });

  test("Buffer, for base64", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), (values) => {
        const texts = values.map((bytes) => JSON.stringify(Buffer.from(bytes).toString("base64")));
        expect(column("binary", texts)).toEqual(values);
      }),
      { numRuns },
    );
  });
});

test("takes the bytes that are UTF-8, and no others", () => {
  // The bounds of what may follow what: RFC 3629, section 4.
  const bounds = [0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef];
  const byte = fc.constantFrom(...bounds, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff);
  const text = fc.tuple(fc.nat(70), fc.array(byte, { minLength: 1, maxLength: 5 }), fc.nat(70));
  const options = { schema: schemaOf({ s: "string" }), format: "ndjson", unknownFields: "reject" } as const;
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const isUtf8 = (bytes: Uint8Array): boolean => {
    try {
      decoder.decode(bytes);
      return true;
    } catch {
      return false;
    }
  };
  fc.assert(
    fc.property(text, ([before, bytes, behind]) => {
      const value = [...utf8("x".repeat(before)), ...bytes, ...utf8("y".repeat(behind))];
      const input = Uint8Array.from([...utf8('{"s":"'), ...value, ...utf8('"}')]);
      const { rows } = compare(input, { ...options, valueMisfits: "reject" });
      expect(rows).toBe(isUtf8(input) ? 1 : 0);
    }),
    { numRuns: 10_000 },
  );
});

test("takes the dates that the calendar has, and no others", () => {
  const options = { schema: schemaOf({ d: "date" }), format: "ndjson", unknownFields: "reject" } as const;
  const two = (n: number): string => String(n).padStart(2, "0");
  const years = fc.oneof(
    fc.nat(9999),
    fc.nat(99).map((century) => century * 100),
    fc.constantFrom(4, 1996, 2000, 2024),
  );
  const dates = fc.tuple(years, fc.nat(13), fc.oneof(fc.nat(32), fc.constantFrom(28, 29, 30, 31)));
  fc.assert(
    fc.property(fc.array(dates, { minLength: 20, maxLength: 20 }), (all) => {
      for (const [year, month, day] of all) {
        const text = `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
        // A date that the calendar lacks is another one in JavaScript, or none.
        const date = new Date(`${text}T00:00:00Z`);
        const real = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text) && year > 0;
        expect(compare(utf8(`{"d":"${text}"}`), { ...options, valueMisfits: "reject" }).rows).toBe(real ? 1 : 0);
      }
    }),
    { numRuns: 500 },
  );
});

describe("the engine and TypeScript take turns", () => {
  const reject = { unknownFields: "reject", valueMisfits: "reject", format: "ndjson" } as const;

  test("in long inputs with odd rows of any frequency and size", () => {
    const schema = schemaOf({ i: "int64", s: "string", "l!": "list<string>", st: "struct<a: float64, b: string>" });
    const row = (i: number): string => {
      if (i % 5000 === 4000) return `{"l":[],"s":"${"long ".repeat(60_000)}"}`;
      if (i % 5000 === 4500) return `{"l":[],"s":"${"longer ".repeat(20_000)}"}`;
      if (i > 8000 && i % 3 === 0) return `{"i":${i},"i":${i + 1},"l":["x"],"st":{"a":1.5,"b":"t"}}`;
      if (i % 997 === 0) return `{"i":"${i}","l":[]}`;
      return `{"i":${i},"s":"row ${i}","l":["a","${i}"],"st":${i % 7 === 0 ? "null" : `{"b":"é","a":${i / 8}}`}}`;
    };
    const input = utf8(Array.from({ length: 12_000 }, (_, i) => row(i)).join("\n"));
    for (const size of [input.length, 65_536, 100_003]) {
      const cuts = Array.from({ length: Math.floor(input.length / size) }, (_, i) => (i + 1) * size);
      for (const batch of [{}, { batchRows: 1000 }, { batchBytes: 300_000 }]) {
        const { rows, rejects } = compare(input, { ...reject, ...batch, schema }, cuts);
        // 13 multiples of 997, of which 8,973 and 11,964 are rows with a repeated key.
        expect([rows, rejects.length]).toEqual([11_989, 11]);
      }
    }
  });

  test("where keys are spelled in endless ways", () => {
    const spelled = (i: number): string => {
      const letters = Array.from("spelling", (c, bit) => ((i >> bit) & 1 ? c.toUpperCase() : c)).join("");
      return i % 2 === 0 ? letters : `\\u00${letters.charCodeAt(0).toString(16)}${letters.slice(1)}`;
    };
    const rows = Array.from(
      { length: 3000 },
      (_, i) => `{"${spelled(i % 256)}":${i},"k${i}":[${i}],"other":"x","x${i % 20}":0}`,
    );
    const schema = schemaOf({ spelling: "int64", other: "string" });
    const { ignored } = compare(utf8(rows.join("\n")), { ...reject, unknownFields: "ignore", schema });
    expect(ignored).toMatchObject({ k17: 1, x3: 150 });
  });

  test("for nulls that are followed by none", () => {
    const schema = schemaOf({ a: "int64", s: "string", b: "bool", l: "list<struct<x: int64>>" });
    const full = (i: number) => `{"a":${i},"s":"${i}","b":${i % 2 === 0},"l":[{"x":${i}}]}`;
    const input = utf8(["{}", '{"l":[{}]}', ...Array.from({ length: 1000 }, (_, i) => full(i))].join("\n"));
    const { batches } = compare(input, { ...reject, schema });
    expect(batches[0]!.columns.map(({ nullCount }) => nullCount)).toEqual([2, 2, 2, 1]);
    compare(input, { ...reject, schema, batchRows: 200 });
  });

  test("over thousands of columns, most of which a row lacks", () => {
    const names = Array.from({ length: 1000 }, (_, i) => `a column with number ${i}`);
    const schema = schemaOf(Object.fromEntries(names.map((name, i) => [name, i % 10 ? "int32" : "string"])));
    const row = (i: number): string => {
      const own = [i % 1000, (i * 7) % 1000, (i * 31) % 1000].map(
        (c) => `"a column with number ${c}":${c % 10 ? i : `"${i}"`}`,
      );
      return `{${own.join(",")}}`;
    };
    const input = utf8(Array.from({ length: 200 }, (_, i) => row(i)).join("\n"));
    compare(input, { ...reject, schema });
    compare(input, { ...reject, schema, batchRows: 64 });
  });

  test("a parser that failed says so again, and leaves the engine fit for the next one", () => {
    const options = { ...reject, unknownFields: "misfit", schema: schemaOf({ a: "int64" }) } as const;
    const parser = createJsonEngineParser(options);
    const bad = utf8('{"a":1}\n{"b":1}\n');
    expect(() => parser?.push(bad)).toThrow(SchemaMisfit);
    expect(() => parser?.push(utf8('{"a":1}\n'))).toThrow(SchemaMisfit);
    expect(parser?.rows).toBe(1);
    compare(utf8('{"a":7}\n{"a":null}\n{}'), options);
  });
});

test("the module in the package is made from the sources in assembly/", () => {
  const script = fileURLToPath(new URL("../scripts/build-engine.mjs", import.meta.url));
  expect(spawnSync(process.execPath, [script, "--dry-run"]).status).toBe(0);
});
