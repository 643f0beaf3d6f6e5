import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, canonicalRow, compareCodePoints } from "../src/canonical.js";
import { InvalidInputError } from "../src/errors.js";
import { createContentHash, sha256Hex } from "../src/node.js";

describe("canonicalJson", () => {
  test.each<[unknown, string]>([
    [JSON.parse('{"b":1.0,"a":{"d":[3,1,2],"c":-0.0}}'), '{"a":{"c":0,"d":[3,1,2]},"b":1}'],
    [{ é: "ü\u2028😀", "😀": 1, "\uffee": 2 }, '{"é":"ü\u2028😀","\uffee":2,"😀":1}'],
    [{ b: 1, 10: 2, 9: 3, B: 4, "": 5 }, '{"":5,"10":2,"9":3,"B":4,"b":1}'],
    [[1e21, 1e-7, 0.1, 12345678901234567890n], "[1e+21,1e-7,0.1,12345678901234567890]"],
    [[undefined, () => 1, null], "[null,null,null]"],
    [{ a: undefined, b: null }, '{"b":null}'],
    ['\u0000\n"\\\ud800', '"\\u0000\\n\\"\\\\\\ud800"'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [Uint8Array.of(1, 2, 255), '"AQL/"'],
    [
      new Map([
        ["z", 1],
        ["a", 2],
      ]),
      '{"a":2,"z":1}',
    ],
    [{ toJSON: () => ({ toJSON: () => 1, x: 2 }) }, '{"x":2}'],
    [undefined, "null"],
    [JSON.parse('{"__proto__":{"x":1},"hasOwnProperty":2}'), '{"__proto__":{"x":1},"hasOwnProperty":2}'],
  ])("value %#", (value, text) => {
    expect(canonicalJson(value)).toBe(text);
  });

  test("reads back as the value, whatever the value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test("100 levels are written, more and cycles are refused", () => {
    const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    expect(canonicalJson(nested(100))).toBe("[".repeat(100) + "]".repeat(100));
    expect(() => canonicalJson(nested(101))).toThrow(InvalidInputError);
    const cycle: Record<string, unknown> = {};
    cycle.self = cycle;
    expect(() => canonicalJson(cycle)).toThrow(InvalidInputError);
  });
});

describe("canonicalRow", () => {
  const same: [string, unknown, unknown][] = [
    ["key order", { a: 1, b: { d: 1, c: 2 } }, { b: { c: 2, d: 1 }, a: 1 }],
    ["null and absent at the top", { a: 1, b: null }, { a: 1 }],
    ["undefined and null at the top", { a: undefined }, { a: null }],
    ["undefined and absent below", { a: { b: undefined } }, { a: {} }],
    ["number and bigint", { a: 5 }, { a: 5n }],
    ["number and bigint beyond 2^53", { a: 2 ** 60 }, { a: 2n ** 60n }],
    ["number and bigint beyond 1e21", { a: 2 ** 100 }, { a: 2n ** 100n }],
    ["zero and minus zero", { a: 0 }, { a: -0 }],
    ["a date and its text", { a: new Date(1e12) }, { a: "2001-09-09T01:46:40.000Z" }],
    ["a map and an object", { a: new Map([["x", 1]]) }, { a: { x: 1 } }],
    ["a typed array and an array", { a: Int16Array.of(1, 2) }, { a: [1, 2] }],
    ["a Buffer and bytes", { a: Buffer.from("hi") }, { a: Uint8Array.of(0x68, 0x69) }],
    ["bytes and their buffer", { a: Uint8Array.of(1).buffer }, { a: Uint8Array.of(1) }],
    ["toJSON", { a: new URL("http://x/") }, { a: "http://x/" }],
    ["a class and an object", Object.assign(Object.create({ inherited: 1 }), { a: 1 }), { a: 1 }],
  ];
  test.each(same)("equal: %s", (_name, a, b) => {
    expect(canonicalRow(a)).toBe(canonicalRow(b));
  });

  const cycle: unknown[] = [];
  cycle.push(cycle, cycle);
  const distinct: [string, unknown][] = [
    ["one", { a: 1 }],
    ["text of one", { a: "1" }],
    ["true", { a: true }],
    ["null below", { a: { b: null } }],
    ["empty below", { a: {} }],
    ["empty list", { a: [] }],
    ["null in a list", { a: [null] }],
    ["NaN", { a: Number.NaN }],
    ["text of NaN", { a: "NaN" }],
    ["infinity", { a: Infinity }],
    ["minus infinity", { a: -Infinity }],
    ["2^53", { a: 2 ** 53 }],
    ["2^53 + 1", { a: 2n ** 53n + 1n }],
    ["a tenth", { a: 0.1 }],
    ["the next float above a tenth", { a: 0.10000000000000002 }],
    ["binary", { a: Uint8Array.of(1) }],
    ["base64 of it", { a: "AQ==" }],
    ["empty text", { a: "" }],
    ["other case", { A: 1 }],
    ["NFC", { a: "é" }],
    ["NFD", { a: "e\u0301" }],
    ["a lone surrogate", { a: "\ud800" }],
    ["another lone surrogate", { a: "\udc00" }],
    ["a symbol", { a: Symbol("x") }],
    ["a function", { a: () => 1 }],
    ["a cycle", { a: cycle }],
    ["not an object", 1],
    ["a row of nothing", {}],
    ["a row that is a list", [1]],
  ];
  test("all others differ from each other", () => {
    const texts = distinct.map(([, row]) => canonicalRow(row));
    expect(new Set(texts).size).toBe(distinct.length);
    for (const text of texts) expect(text).not.toContain("\n");
  });

  test("does not depend on the rows before it", () => {
    const value = fc.dictionary(
      fc.constantFrom("a", "b", "c", "10", "9", "\uffee", "😀"),
      fc.jsonValue({ maxDepth: 2 }),
    );
    fc.assert(
      fc.property(fc.array(value, { maxLength: 20 }), (rows) => {
        const reversed = rows.toReversed().map(canonicalRow).toReversed();
        expect(rows.map(canonicalRow)).toEqual(reversed);
        for (const row of rows) {
          const shuffled = Object.fromEntries(Object.entries(row).toReversed());
          expect(canonicalRow(shuffled)).toBe(canonicalRow(row));
        }
      }),
    );
    const many = Array.from({ length: 1200 }, (_, i) => ({ [`k${i}`]: 1, a: 2 }));
    expect(many.map(canonicalRow)).toEqual(many.map((_, i) => `{"a":2,"k${i}":1}`));
  });

  test("is the row's JSON with sorted keys where JSON can say it", () => {
    expect(canonicalRow({ b: [1, "x"], a: { d: 0.5, c: false } })).toBe('{"a":{"c":false,"d":0.5},"b":[1,"x"]}');
  });
});

test("code points sort as their UTF-8 does", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      expect(Math.sign(compareCodePoints(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
    }),
    { numRuns: 1000 },
  );
  expect(compareCodePoints("\uffee", "😀")).toBeLessThan(0);
});

describe("content hashes", () => {
  // printf 'abc' | sha256sum
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  // printf '{"a":1}\n{"a":2}\n' | sha256sum
  const twoRows = "e91bd3062f38c3f1df2165d987872b022fb39a08c642a6fbc3b862dd2a2aaf24";

  test("bytes: in any pieces", () => {
    for (const pieces of [["abc"], ["a", "bc"], [Uint8Array.of(0x61, 0x62), "", "c"]]) {
      const hash = createContentHash("bytes");
      for (const piece of pieces) hash.update(piece);
      expect(hash.digest()).toBe(`bytes:${abc}`);
    }
    expect(sha256Hex("abc")).toBe(abc);
  });

  test("rows: canonical texts, each with a line feed", () => {
    const hash = createContentHash("rows");
    hash.update(`${canonicalRow({ a: 1 })}\n`);
    hash.update(new TextEncoder().encode('{"a":2}\n'));
    expect(hash.digest()).toBe(`rows:${twoRows}`);
  });

  test("many short texts between bytes keep their order", () => {
    const hash = createContentHash("rows");
    let all = "";
    for (let i = 0; i < 20_000; i++) {
      const text = `{"é":${i}}\n`;
      hash.update(i % 5000 === 0 ? new TextEncoder().encode(text) : text);
      all += text;
    }
    expect(hash.digest()).toBe(`rows:${sha256Hex(all)}`);
  });
});
