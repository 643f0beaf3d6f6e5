import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { quoteName, quoteText, tokenize, type UnterminatedToken } from "../src/sql-tokens.js";

const kinds = (sql: string): string[] => tokenize(sql).map(({ kind, value }) => `${kind} ${value}`);

describe("tokens", () => {
  test.each([
    ["SELECT a.b", ["word SELECT", "word a", "symbol .", "word b"]],
    [`"a""b" 'it''s'`, [`quoted a"b`, "string it's"]],
    ["'-- no comment' -- comment\n1", ["string -- no comment", "number 1"]],
    ["1 /* a /* nested */ b */ 2", ["number 1", "number 2"]],
    [String.raw`E'it\'s' e'\\' 'x\'`, [String.raw`string it\'s`, String.raw`string \\`, "string x\\"]],
    ["$$it's$$ $t$ $$ $t$", ["string it's", "string  $$ "]],
    ["? ?2 $1 $name $_x1", ["parameter ", "parameter 2", "parameter 1", "parameter name", "parameter _x1"]],
    ["a$1", ["word a$1"]],
    ["1.5e-3 .5 1_000 0xFF 1.", ["number 1.5e-3", "number .5", "number 1_000", "number 0xFF", "number 1."]],
    ["VERSION => 3", ["word VERSION", "symbol =>", "number 3"]],
    ["größe\u00a0x", ["word größe", "word x"]],
    ["a::INT", ["word a", "symbol :", "symbol :", "word INT"]],
  ])("%s", (sql, expected) => {
    expect(kinds(sql)).toEqual(expected);
  });

  test.each([
    ["SELECT 'a", "string", 7],
    ['SELECT "a', "quoted name", 7],
    ["1 /* /* */", "comment", 2],
    ["$x$ $y$", "dollar-quoted string", 0],
  ])("%s does not end", (sql, what, start) => {
    expect(() => tokenize(sql)).toThrow(`unterminated ${what}`);
    try {
      tokenize(sql);
    } catch (error) {
      expect((error as UnterminatedToken).start).toBe(start);
    }
  });

  test("any text and name survives quoting", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }), (text, name) => {
        const tokens = tokenize(`x ${quoteText(text)} ${quoteName(name)} y`);
        expect(tokens.map((token) => [token.kind, token.value])).toEqual([
          ["word", "x"],
          ["string", text],
          ["quoted", name],
          ["word", "y"],
        ]);
      }),
    );
  });

  test("a long string does not overflow", () => {
    const text = "''x".repeat(1_000_000);
    expect(tokenize(`'${text}'`)[0]!.value.length).toBe(2_000_000);
  });
});
