import { describe, expect, test } from "vitest";
import { csvDialect, detectDelimiter } from "../src/csv-dialect.js";
import { NONE } from "../src/csv-reader.js";
import { SchemaError } from "../src/errors.js";
import type { CsvOptions } from "../src/parser.js";

const utf8 = new TextEncoder();
const guess = (text: string, options: CsvOptions = {}, complete = true): string =>
  detectDelimiter(utf8.encode(text), options, complete).delimiter;

describe("delimiter detection", () => {
  test.each<[string, string, string]>([
    ["comma", "a,b\n1,2\n", ","],
    ["semicolon with decimal commas", "name;price\nx;1,5\ny;2,5\n", ";"],
    ["tab", "a\tb c\n1\t2, 3\n", "\t"],
    ["pipe with commas in the text", "id|note, more\n1|a, b, c\n2|d\n", "|"],
    ["only outside quotes", '"a;b;c",d\n"1;2;3",4\n', ","],
    ["one column", "zip\n00501\n", ","],
    ["one column of text with commas", "name\nDoe, Jane\nRoe, Jim\n", ","],
    ["ragged, but nothing else is there", "a,b,c\n1,2,3\n4,5\n6,7,8,9\n", ","],
    ["more cells among equals", "a,b;c;d\n1,2;3;4\n", ";"],
    ["the documented order among equals", "a;b,c\n1;2,3\n", ","],
    ["nothing", "", ","],
    ["blank lines do not count", "\n\na;b\n\n1;2\n", ";"],
  ])("%s", (_name, text, delimiter) => {
    expect(guess(text)).toBe(delimiter);
  });

  test("a record that the end of the sample cuts does not count", () => {
    const text = "a;b,c\n1;2,3\n4;5";
    expect(guess(text, {}, true)).toBe(";");
    expect(guess(text, {}, false)).toBe(",");
  });

  test("a first record longer than the sample still counts", () => {
    expect(guess("a;b;c", {}, false)).toBe(";");
  });

  test("an open quote in the sample is left to the reader", () => {
    expect(guess('a;b\n1;"x')).toBe(";");
  });

  test("says why", () => {
    expect(detectDelimiter(utf8.encode("a;b,c\n1;2\n"))).toEqual({
      delimiter: ";",
      reason: '";" gives the first record 2 cells, and 2 of 2 records agree',
      candidates: [
        { delimiter: ",", cells: 2, agreeing: 1, records: 2 },
        { delimiter: ";", cells: 2, agreeing: 2, records: 2 },
      ],
    });
    expect(detectDelimiter(utf8.encode("a\n")).reason).toBe("no delimiter occurs in the first record: one column");
  });
});

describe("options", () => {
  test("defaults are RFC 4180", () => {
    expect(csvDialect({})).toEqual({ delimiter: 0x2c, quote: 0x22, escape: 0x22, trim: false });
  });

  test("no quote needs no escape", () => {
    expect(csvDialect({ quote: "", escape: "\\" })).toMatchObject({ quote: NONE, escape: NONE });
  });

  test.each<CsvOptions>([
    { delimiter: "" },
    { delimiter: ",," },
    { delimiter: "\n" },
    { delimiter: "é" },
    { quote: "''" },
    { escape: "" },
    { delimiter: ";", quote: ";" },
    { delimiter: "\\", escape: "\\" },
    { header: [] },
  ])("%j is refused", (options) => {
    expect(() => csvDialect(options)).toThrow(SchemaError);
  });
});
