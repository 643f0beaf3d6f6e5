import { spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expressions } from "../src/arguments.js";
import { toJson } from "../src/json.js";
import { sqlExcerpt } from "../src/sql-excerpt.js";
import { formatTable } from "../src/table.js";
import { cut, displayWidth, formatBytes, formatCount, plural, printable, shellQuote } from "../src/text.js";

const anyText = fc.string({ unit: "binary", maxLength: 40 });

describe("printable text", () => {
  it("holds nothing that moves a cursor or a line", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
        expect(printable(text)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/);
      }),
    );
    expect(printable("a\tb\r\nc\u001b[0m\u0085\ud800")).toBe("a\\tb\\r\\nc\\u001b[0m\\u0085\\ud800");
    expect(printable("São 東京 👩‍👩‍👧 \\n")).toBe("São 東京 👩‍👩‍👧 \\n");
  });
});

describe("width", () => {
  it.each([
    ["", 0],
    ["abc", 3],
    ["é", 1],
    ["e\u0301", 1],
    ["東京", 4],
    ["ﬁ", 1],
    ["Ａ", 2],
    ["👍", 2],
    ["👍🏽", 2],
    ["👩‍👩‍👧", 2],
    ["🇳🇴", 2],
    ["❤️", 2],
    ["한글", 4],
    ["𠮷", 2],
    ["…─", 2],
  ])("%j takes %i columns", (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  it("a cut text fits, and is the text itself where it fits", () => {
    fc.assert(
      fc.property(anyText.map(printable), fc.integer({ min: 2, max: 50 }), (text, width) => {
        const shown = cut(text, width);
        expect(displayWidth(shown)).toBeLessThanOrEqual(width);
        if (displayWidth(text) <= width) expect(shown).toBe(text);
        else expect(text.startsWith(shown.slice(0, -1)) && shown.endsWith("…")).toBe(true);
      }),
    );
  });
});

describe("tables", () => {
  it("have lines of one width, whatever is in them, and fit where they are asked to", () => {
    const rows = fc.array(fc.tuple(anyText, fc.option(anyText), fc.bigInt()), { maxLength: 5 });
    fc.assert(
      fc.property(rows, fc.integer({ min: 40, max: 120 }), (cells, width) => {
        const lines = formatTable(["one", "two", "three"], cells, { width }).split("\n");
        expect(lines.pop()).toBe("");
        expect(lines).toHaveLength(cells.length + 2);
        for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
      }),
    );
  });

  it("put numbers, counts, sizes and decimals to the right, and text that looks like one only if all does", () => {
    expect(
      formatTable(
        ["n", "size", "price", "zip", "none"],
        [
          [1, "5 B", "-1.50", "0042", null],
          [22n, "1.5 KiB", null, "n/a", null],
        ],
      ),
    ).toBe(
      [
        " n     size  price  zip   none",
        "──  ───────  ─────  ────  ────",
        " 1      5 B  -1.50  0042",
        "22  1.5 KiB         n/a",
        "",
      ].join("\n"),
    );
  });

  it("in records say when there are none", () => {
    expect(
      formatTable(
        Array.from({ length: 9 }, (_, i) => `column${i}`),
        [],
        { width: 20 },
      ),
    ).toMatch(/^no rows of column0, column1/);
  });
});

it("numbers and sizes read the same everywhere", () => {
  expect([0, 999, 1000, 1234567, -1234, 12345678901234567890n].map(formatCount)).toEqual([
    "0",
    "999",
    "1,000",
    "1,234,567",
    "-1,234",
    "12,345,678,901,234,567,890",
  ]);
  expect([0, 1023, 1024, 1536, 1048576, 5 * 1024 ** 4].map(formatBytes)).toEqual([
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "1.0 MiB",
    "5.0 TiB",
  ]);
  expect([plural(1, "row"), plural(0, "row"), plural(2000, "row")]).toEqual(["1 row", "0 rows", "2,000 rows"]);
});

it("JSON keeps integers exact and bytes readable", () => {
  expect(
    toJson({ a: 9007199254740991n, b: 9007199254740992n, c: -9007199254740993n, d: Uint8Array.of(1, 2), e: null }),
  ).toBe('{"a":9007199254740991,"b":"9007199254740992","c":"-9007199254740993","d":"AQI=","e":null}');
});

it("a quoted argument reaches the command as it was", () => {
  const argument = fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }).filter((text) => !text.includes("\0"));
  fc.assert(
    fc.property(fc.array(argument, { minLength: 1, maxLength: 20 }), (args) => {
      const { stdout } = spawnSync("sh", ["-c", `printf '%s\\0' ${args.map(shellQuote).join(" ")}`], {
        encoding: "utf8",
      });
      expect(stdout.split("\0").slice(0, -1)).toEqual(args);
    }),
    { numRuns: 20 },
  );
  expect([shellQuote("./lake"), shellQuote("my lake"), shellQuote("it's"), shellQuote("")]).toEqual([
    "./lake",
    "'my lake'",
    "'it'\\''s'",
    "''",
  ]);
});

it("expressions are cut at their commas, and not within them", () => {
  expect(expressions("a")).toEqual(["a"]);
  expect(expressions('day(ts), bucket(16, id),"a,b" desc, truncate(3, "x,(y""z")')).toEqual([
    "day(ts)",
    "bucket(16, id)",
    '"a,b" desc',
    'truncate(3, "x,(y""z")',
  ]);
  expect(expressions("b", ["a"])).toEqual(["a", "b"]);
  for (const text of ["", "a,", ",a", "a,,b"]) expect(() => expressions(text)).toThrow(/empty/);
});

describe("an excerpt of SQL", () => {
  it.each([
    ["SELECT x", 7, "1 | SELECT x", "           ^"],
    ["SELECT\n  x\nFROM t", 9, "2 |   x", "      ^"],
    ["SELECT '東', x", 12, "1 | SELECT '東', x", "                 ^"],
    ["SELECT\r\n\tx", 9, "2 |  x", "     ^"],
    ["SELECT", 6, "1 | SELECT", "          ^"],
    ["", 0, "1 | ", "    ^"],
  ])("%j at %i", (sql, position, line, mark) => {
    expect(sqlExcerpt(sql, position)).toBe(`${line}\n${mark}`);
  });

  it("of a long line is around the place", () => {
    const sql = `SELECT ${"a, ".repeat(200)}here${", b".repeat(200)}`;
    const [line = "", mark = ""] = sqlExcerpt(sql, sql.indexOf("here")).split("\n");
    expect(line).toMatch(/^1 \| ….*here.*…$/);
    expect(line.indexOf("here")).toBe(mark.indexOf("^"));
    expect(line.length).toBeLessThanOrEqual(102);
  });
});
