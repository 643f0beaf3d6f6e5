import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type CsvDialect, CsvReader, ESCAPED, NONE, QUOTED } from "../src/csv-reader.js";
import { InvalidInputError } from "../src/errors.js";
import { MAX_ROW_BYTES } from "../src/row-batches.js";

const RFC: CsvDialect = { delimiter: 0x2c, quote: 0x22, escape: 0x22, trim: false };
const utf8 = new TextEncoder();

interface Record {
  line: number;
  cells: string[];
  quoted: boolean[];
  bad: boolean;
  raw: string;
}

/** Reads `chunks` and copies everything that the sink is shown. */
function read(chunks: Iterable<Uint8Array>, dialect: CsvDialect = RFC): Record[] {
  const text = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const records: Record[] = [];
  const reader = new CsvReader(dialect, (block) => {
    for (let r = 0; r < block.records; r++) {
      const cells: string[] = [];
      const quoted: boolean[] = [];
      for (let c = block.recordCells[r]!; c < block.recordCells[r + 1]!; c++) {
        cells.push(
          (block.cellFlags[c]! & ESCAPED) !== 0
            ? text(block.unescape(c))
            : text(block.bytes.slice(block.cellStarts[c], block.cellEnds[c])),
        );
        quoted.push((block.cellFlags[c]! & QUOTED) !== 0);
      }
      const raw = text(block.bytes.slice(block.recordStarts[r], block.recordEnds[r]));
      records.push({ line: block.recordLines[r]!, cells, quoted, bad: block.recordBad[r] === 1, raw });
    }
  });
  for (const chunk of chunks) {
    const reused = chunk.slice();
    reader.push(reused);
    reused.fill(0x22); // the caller may reuse a chunk
  }
  reader.end();
  return records;
}

const rows = (text: string, dialect: CsvDialect = RFC): string[][] =>
  read([utf8.encode(text)], dialect).map((r) => r.cells);

function failure(run: () => unknown): InvalidInputError {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidInputError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** All ways to cut into two, and byte by byte. */
function* splits(bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let cut = 0; cut <= bytes.length; cut++) yield [bytes.subarray(0, cut), bytes.subarray(cut)];
  yield Array.from(bytes, (byte) => Uint8Array.of(byte));
}

describe("records and cells", () => {
  test.each<[string, string[][]]>([
    ["", []],
    ["a", [["a"]]],
    ["a\n", [["a"]]],
    [
      "a,b\n1,2\n",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    [
      "a,b\r\n1,2",
      [
        ["a", "b"],
        ["1", "2"],
      ],
    ],
    ["a\r1\r2\r", [["a"], ["1"], ["2"]]],
    ["a\n\nb\n", [["a"], [""], ["b"]]],
    ["\r\n\r\n", [[""], [""]]],
    [",\n", [["", ""]]],
    ["a,", [["a", ""]]],
    [
      ",,\n1,,3",
      [
        ["", "", ""],
        ["1", "", "3"],
      ],
    ],
    ['"a","b"', [["a", "b"]]],
    ['"",""\n', [["", ""]]],
    ['"a,b","c\nd","e\r\nf"\n', [["a,b", "c\nd", "e\r\nf"]]],
    ['"say ""hi""",""""\n', [['say "hi"', '"']]],
    ['a"b,c""d\n', [['a"b', 'c""d']]],
    [' "a",b \n', [[' "a"', "b "]]],
    ["a\0b,\0\n", [["a\0b", "\0"]]],
    [
      "é,😀\n\u2028,\ufeff\n",
      [
        ["é", "😀"],
        ["\u2028", "\ufeff"],
      ],
    ],
  ])("%j", (text, expected) => {
    expect(rows(text)).toEqual(expected);
  });

  test("a quoted empty cell is told from an empty one", () => {
    expect(read([utf8.encode('"",\n')])[0]!.quoted).toEqual([true, false]);
  });

  test("lines are physical, also within quotes", () => {
    const text = 'h\r\n"1\r\n2\n3\r4"\r\n\r\nx\ry\nz';
    for (const chunks of splits(utf8.encode(text))) {
      expect(read(chunks).map((r) => r.line)).toEqual([1, 2, 6, 7, 8, 9]);
    }
  });

  test("the raw record has its quotes but not its line end", () => {
    expect(read([utf8.encode('a,"b""\r\n"\r\nc\n')]).map((r) => r.raw)).toEqual(['a,"b""\r\n"', "c"]);
  });

  test("text after a closing quote marks the record, and the next one is read well", () => {
    for (const chunks of splits(utf8.encode('1,"a"b,c\n"d" ,e\n"f",g\n'))) {
      const records = read(chunks);
      expect(records.map((r) => r.bad)).toEqual([true, true, false]);
      expect(records[2]!.cells).toEqual(["f", "g"]);
    }
  });
});

describe("dialects", () => {
  test("another delimiter leaves commas alone", () => {
    expect(rows("a;b,c\n1\t2;3\n", { ...RFC, delimiter: 0x3b })).toEqual([
      ["a", "b,c"],
      ["1\t2", "3"],
    ]);
  });

  test("no quote at all", () => {
    expect(rows('"a","b\n', { ...RFC, quote: NONE, escape: NONE })).toEqual([['"a"', '"b']]);
  });

  test("a backslash escapes quotes and itself, and nothing else", () => {
    const dialect = { ...RFC, escape: 0x5c };
    const text = `${String.raw`"a\"b","c\\","\d\\\"e`}\\\n",\\"\n`;
    for (const chunks of splits(utf8.encode(text))) {
      expect(read(chunks, dialect).map((r) => r.cells)).toEqual([['a"b', "c\\", '\\d\\"e\\\n', '\\"']]);
    }
    expect(read([utf8.encode('"a""b"\n')], dialect)[0]!.bad).toBe(true);
  });

  test("trim strips spaces and tabs around cells, not within quotes", () => {
    const text = ' a ,\t" b "\t,\t \n  \n"c"  ,d e ,  ';
    for (const chunks of splits(utf8.encode(text))) {
      expect(read(chunks, { ...RFC, trim: true }).map((r) => r.cells)).toEqual([
        ["a", " b ", ""],
        [""],
        ["c", "d e", ""],
      ]);
    }
  });

  test("trim does not join two quoted texts", () => {
    const records = read([utf8.encode('"a" "b",c\n')], { ...RFC, trim: true });
    expect(records.map((r) => r.bad)).toEqual([true]);
  });

  test("trim with a tab delimiter", () => {
    expect(rows("a \t b\t\n", { ...RFC, delimiter: 0x09, trim: true })).toEqual([["a", "b", ""]]);
  });
});

describe("chunk borders", () => {
  test("D63: quotes and CR LF cut at every position", () => {
    const bytes = utf8.encode('a,b\r\n"1\r\nx","say ""hi"""\r\n2,"é, z"\r\n');
    for (const chunks of splits(bytes)) {
      expect(read(chunks).map((r) => r.cells)).toEqual([
        ["a", "b"],
        ["1\r\nx", 'say "hi"'],
        ["2", "é, z"],
      ]);
    }
  });

  test("cells behind one with text after its quotes are not quoted, however they are cut", () => {
    for (const chunks of splits(utf8.encode('a,""b,c,d\n'))) {
      expect(read(chunks).map(({ quoted }) => quoted)).toEqual([[false, true, false, false]]);
    }
  });

  test("any text in any pieces reads like the text at once", () => {
    const text = fc.string({ unit: fc.constantFrom(",", '"', "\n", "\r", "a", " ", "é", "\\"), maxLength: 60 });
    fc.assert(
      fc.property(
        text,
        fc.boolean(),
        fc.constantFrom(0x22, 0x5c),
        fc.array(fc.nat(5)),
        (input, trim, escaping, cuts) => {
          const dialect = { ...RFC, escape: escaping, trim };
          const outcome = (chunks: Uint8Array[]): unknown => {
            try {
              return read(chunks, dialect);
            } catch (error) {
              return (error as Error).message;
            }
          };
          const bytes = utf8.encode(input);
          const chunks: Uint8Array[] = [];
          let from = 0;
          for (const length of cuts) {
            chunks.push(bytes.subarray(from, from + length));
            from += length;
          }
          chunks.push(bytes.subarray(from));
          expect(outcome(chunks)).toEqual(outcome([bytes]));
        },
      ),
      { numRuns: 500 },
    );
  });

  test("records that do not fit the first buffer, in small pieces and whole", () => {
    const long = "x".repeat(1_500_000);
    const text = `a,"${long}",b\n1,2,3\n"${long}${long}",,\n`;
    const bytes = utf8.encode(text);
    const chunks: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; at += 10_007) chunks.push(bytes.subarray(at, at + 10_007));
    for (const input of [[bytes], chunks]) {
      const cells = read(input).map((r) => r.cells.map((c) => c.length));
      expect(cells).toEqual([
        [1, 1_500_000, 1],
        [1, 1, 1],
        [3_000_000, 0, 0],
      ]);
    }
  });

  test("a buffer that is full within any state", () => {
    const record = '"a""b" ,c, "d",';
    for (let shift = 0; shift < 2 * record.length; shift++) {
      const text = `${"x".repeat(shift)}\n${`${record}\n`.repeat(600)}`;
      const records = read(
        Array.from(utf8.encode(text), (byte) => Uint8Array.of(byte)),
        { ...RFC, trim: true },
      );
      expect(records).toHaveLength(601);
      for (const { cells } of records.slice(1)) expect(cells).toEqual(['a"b', "c", "d", ""]);
    }
  });

  test("more records and cells than a block holds", () => {
    const text = Array.from({ length: 5000 }, (_, i) => `${i},${"c,".repeat(20)}${i * 7}\n`).join("");
    const records = read([utf8.encode(text)]);
    expect(records).toHaveLength(5000);
    records.forEach((record, i) => {
      expect([record.line, record.cells.length, record.cells[0], record.cells[21]]).toEqual([
        i + 1,
        22,
        `${i}`,
        `${i * 7}`,
      ]);
    });
  });
});

test("any table comes back from a plain writer", () => {
  const quote = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  const cell = fc.string({ unit: fc.oneof(fc.constantFrom('"', ",", "\n", "\r", "é"), fc.string({ maxLength: 1 })) });
  const table = fc
    .integer({ min: 2, max: 4 })
    .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 5 }));
  fc.assert(
    fc.property(table, fc.constantFrom("\n", "\r\n"), (input, end) => {
      expect(rows(input.map((row) => row.map(quote).join(",") + end).join(""))).toEqual(input);
    }),
    { numRuns: 500 },
  );
});

describe("input that is broken as a whole", () => {
  test("an open quote names the line where it began, however it is cut", () => {
    for (const chunks of splits(utf8.encode('a,b\n1,2\n3,\n"x\n4,"" 5'))) {
      const error = failure(() => read(chunks));
      expect(error.code).toBe("unterminated_quote");
      expect(error.rows).toMatchObject([{ line: 4, code: "unterminated_quote" }]);
    }
  });

  test("an open quote does not eat the memory", () => {
    const filler = utf8.encode("x,y\n".repeat(64 * 1024));
    const error = failure(() => {
      const reader = new CsvReader(RFC, () => {});
      reader.push(utf8.encode('a,b\n1,"'));
      for (let bytes = 0; bytes <= MAX_ROW_BYTES + filler.length; bytes += filler.length) reader.push(filler);
    });
    expect(error.code).toBe("row_too_large");
    expect(error.rows).toMatchObject([{ line: 2 }]);
  });

  test("a record of the greatest size is read, one byte more is refused", () => {
    const record = new Uint8Array(MAX_ROW_BYTES + 1).fill(0x78);
    record[MAX_ROW_BYTES] = 0x0a;
    expect(read([record])[0]!.raw).toHaveLength(MAX_ROW_BYTES);
    record[MAX_ROW_BYTES] = 0x78;
    expect(failure(() => read([record, utf8.encode("\n")])).code).toBe("row_too_large");
  });

  test("a record of a million delimiters", () => {
    expect(failure(() => read([new Uint8Array(1_000_001).fill(0x2c)])).code).toBe("row_too_large");
  });
});
