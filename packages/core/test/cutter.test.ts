/** The law of cutting: ranges parsed apart give what the whole text gives, wherever it is cut and however it arrives. */

import {
  assignFieldIds,
  batchRows,
  createJsonCutter,
  createTextParser,
  EiderError,
  type Reject,
  type TextParserOptions,
  type TextPart,
  toSchema,
} from "@eider/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Cutter, createCutter, frontBytes, type RangeLimits } from "../src/ranges/cutter.js";

const encoder = new TextEncoder();

interface Outcome {
  readonly rows: unknown[];
  readonly rejects: Reject[];
  readonly ignored: Map<string, number>;
  error?: unknown;
}

const nothing = (): Outcome => ({ rows: [], rejects: [], ignored: new Map() });

/** Parses a text, or a part of one, and adds what it gives. */
function parseInto(outcome: Outcome, text: Uint8Array, options: TextParserOptions): void {
  const parser = createTextParser(options);
  try {
    parser.push(text);
    parser.end();
  } catch (error) {
    if (!(error instanceof EiderError)) throw error;
    outcome.error = { code: error.code, message: error.message };
  }
  for (let batch = parser.take(); batch; batch = parser.take()) outcome.rows.push(...batchRows(batch, "exact"));
  outcome.rejects.push(...parser.rejects);
  for (const [key, count] of parser.ignoredFields) outcome.ignored.set(key, (outcome.ignored.get(key) ?? 0) + count);
}

/** The ranges of a text, with what the cutter says of each. */
function cut(
  text: Uint8Array,
  options: TextParserOptions,
  limits: RangeLimits,
  pieceBytes: number,
): { bytes: Uint8Array; part: Cutter["part"]; csv: Cutter["csv"] }[] {
  const front = frontBytes(options.format);
  const cutter = createCutter(options.format, options.csv, text.subarray(0, front), text.length <= front, limits);
  const ranges: ReturnType<typeof cut> = [];
  if (!cutter) return [{ bytes: text, part: undefined, csv: undefined }];
  let open: number[] = [];
  let { part } = cutter;
  // Sources use the memory of a piece again once the next one is asked for.
  const memory = new Uint8Array(pieceBytes);
  for (let from = 0; from < text.length; from += pieceBytes) {
    const source = text.subarray(from, from + pieceBytes);
    memory.set(source);
    const piece = memory.subarray(0, source.length);
    cutter.begin(piece);
    for (let at = 0; at < piece.length; ) {
      const end = cutter.next();
      open.push(...piece.subarray(at, end === -1 ? piece.length : end));
      if (end === -1) break;
      ranges.push({ bytes: Uint8Array.from(open), part, csv: cutter.csv });
      open = [];
      ({ part } = cutter);
      at = end;
    }
  }
  if (open.length > 0 || ranges.length === 0) ranges.push({ bytes: Uint8Array.from(open), part, csv: cutter.csv });
  return ranges;
}

/** The parts of a JSON text, and what its cutter says against its end. */
function cutJson(
  text: Uint8Array,
  partBytes: number,
  pieceBytes: number,
): { ranges: { bytes: Uint8Array; part: TextPart }[]; error: unknown } {
  const cutter = createJsonCutter(partBytes);
  const ranges: ReturnType<typeof cutJson>["ranges"] = [];
  let open: number[] = [];
  let { part } = cutter;
  let error: unknown;
  const memory = new Uint8Array(pieceBytes);
  try {
    for (let from = 0; from < text.length; from += pieceBytes) {
      const source = text.subarray(from, from + pieceBytes);
      memory.set(source);
      const piece = memory.subarray(0, source.length);
      cutter.begin(piece);
      let at = 0;
      for (let end = cutter.next(); end !== -1; end = cutter.next()) {
        ranges.push({ bytes: Uint8Array.from([...open, ...piece.subarray(at, end)]), part });
        open = [];
        ({ part } = cutter);
        at = end;
      }
      open.push(...piece.subarray(at));
    }
    cutter.end();
  } catch (caught) {
    if (!(caught instanceof EiderError)) throw caught;
    error = { code: caught.code, message: caught.message };
  }
  ranges.push({ bytes: Uint8Array.from(open), part });
  return { ranges, error };
}

function expectSame(source: string, options: TextParserOptions, limits: RangeLimits, pieceBytes: number): void {
  const text = encoder.encode(source);
  const whole = nothing();
  parseInto(whole, text, options);
  const parts = nothing();
  for (const { bytes, part, csv } of cut(text, options, limits, pieceBytes)) {
    parseInto(parts, bytes, part ? { ...options, ...(csv && { csv }), part } : options);
    if (parts.error) break;
  }
  // What a parser took before it failed depends on the batches it had finished.
  if (whole.error) expect(parts.error).toEqual(whole.error);
  else expect(parts).toEqual(whole);
}

const schema = assignFieldIds(toSchema({ a: "string", b: "int64" }), 0);
const limits = fc.record({ lines: fc.integer({ min: 1, max: 4 }), bytes: fc.integer({ min: 1, max: 40 }) });
const pieceBytes = fc.integer({ min: 1, max: 30 });

function law(tokens: readonly string[], options: TextParserOptions): void {
  const text = fc.array(fc.constantFrom(...tokens), { maxLength: 60 }).map((parts) => parts.join(""));
  fc.assert(
    fc.property(text, limits, pieceBytes, (text, limits, pieceBytes) => expectSame(text, options, limits, pieceBytes)),
    { numRuns: 1000 },
  );
}

describe("ranges parsed apart give what the whole gives", () => {
  const parse = { schema, unknownFields: "ignore", valueMisfits: "reject" } as const;

  it("NDJSON", () => {
    const tokens = ["\n", "\r\n", " ", "[", "\u{feff}", '{"a":"é"}\n', '{"b":7,"c":1}\n', '{"b":"x"}\n', "{", "\0"];
    law(tokens, { ...parse, format: "ndjson" });
  });

  const jsonTokens = [
    "[",
    "]",
    ",",
    ",",
    '{"a":"é"}',
    '{"b":7}',
    '{"b":\n"x"}',
    "[{}]",
    '"]"',
    "1",
    "\n",
    " ",
    "{",
    "\u{feff}",
    "\0",
  ];
  it.each([
    [
      "an array",
      fc
        .array(fc.constantFrom('{"a":"é,"}', '{"b":\n7}', '{"b":"x"}', "[1]", "1", '"\\""'), { maxLength: 9 })
        .map((rows) => `[${rows.join(" ,\n")}]`),
    ],
    [
      "objects",
      fc.array(fc.constantFrom('{"a":"é"}', '{"b":\n7}', '{"b":"x"}'), { maxLength: 9 }).map((rows) => rows.join("\n")),
    ],
    [
      "what may be neither",
      fc.array(fc.constantFrom(...jsonTokens), { maxLength: 20 }).map((parts) => `[${parts.join("")}`),
    ],
  ])("JSON: %s", (_, text) => {
    const options = { ...parse, format: "json" } as const;
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 40 }), pieceBytes, (source, partBytes, pieceBytes) => {
        const bytes = encoder.encode(source);
        const whole = nothing();
        parseInto(whole, bytes, options);
        const parts = nothing();
        const { ranges, error } = cutJson(bytes, partBytes, pieceBytes);
        for (const { bytes, part } of ranges) if (!parts.error) parseInto(parts, bytes, { ...options, part });
        parts.error ??= error;
        if (parts.error === undefined) delete parts.error;
        if (whole.error) expect(parts.error).toEqual(whole.error);
        else expect(parts).toEqual(whole);
      }),
      { numRuns: 1000 },
    );
  });

  const csvTokens = ['"', '"', '""', ",", ",", "\n", "\n", "\r", "\r\n", "a", "7", " ", "é", "\u{feff}", "\\", "a,b\n"];
  it.each([
    ["detected", {}],
    ["with a delimiter", { delimiter: "," }],
    ["without a header", { header: false, ragged: "pad" }],
    ["with names", { header: ["a", "x"], delimiter: ",", ragged: "pad" }],
    ["without quotes", { quote: "", delimiter: "," }],
    ["with another quote", { quote: "a", delimiter: "7", ragged: "pad" }],
    ["with an escape of its own", { escape: "\\", delimiter: "," }],
    ["trimmed", { trim: true, delimiter: "," }],
  ] as const)("CSV %s", (_, csv) => {
    law(csvTokens, { ...parse, format: "csv", csv });
  });
});

describe("a text is cut", () => {
  const lines = (count: number): string => '{"a":"x"}\n'.repeat(count);
  const sizes = (text: string, options: Partial<TextParserOptions>, limits: RangeLimits): number[] =>
    cut(
      encoder.encode(text),
      { schema, unknownFields: "ignore", valueMisfits: "reject", format: "ndjson", ...options },
      limits,
      7,
    ).map(({ bytes }) => bytes.length);

  it("at the line that reaches the lines or the bytes", () => {
    expect(sizes(lines(5), {}, { lines: 2, bytes: 1000 })).toEqual([20, 20, 10]);
    expect(sizes(lines(5), {}, { lines: 100, bytes: 11 })).toEqual([20, 20, 10]);
    expect(sizes(`${lines(2)}{}`, {}, { lines: 2, bytes: 1000 })).toEqual([20, 2]);
  });

  it("with the line and the offset of each range", () => {
    const ranges = cut(
      encoder.encode('a,b\r\n"x\r\ny",1\r\nz,2\r\n'),
      { schema, unknownFields: "ignore", valueMisfits: "reject", format: "csv" },
      { lines: 1, bytes: 1000 },
      3,
    );
    expect(ranges.map(({ bytes }) => new TextDecoder().decode(bytes))).toEqual([
      "a,b\r\n",
      '"x\r\ny",1\r\n',
      "z,2\r\n",
    ]);
    expect(ranges.map(({ part }) => part)).toEqual([undefined, { line: 2, offset: 5 }, { line: 4, offset: 15 }]);
    expect(ranges[1]!.csv).toEqual({ delimiter: ",", header: ["a", "b"] });
  });

  it("from where a part begins that is no array and has no mark, as the whole would be", () => {
    const one = { lines: 1, bytes: 1 };
    const part = { line: 7, offset: 100 };
    const cutter = createCutter("ndjson", undefined, encoder.encode("["), true, one, part)!;
    expect(cutter.part).toEqual(part);
    cutter.begin(encoder.encode("[1]\n{}\n"));
    expect(cutter.next()).toBe(4);
    expect(cutter.part).toEqual({ line: 8, offset: 104 });
    // Behind a mark a quote would open a cell; here it is text, and the line feed ends the record.
    const csv = { delimiter: ",", header: ["a"] };
    const text = encoder.encode('\u{feff}"x\n"y\n');
    const later = createCutter("csv", csv, text, true, one, part)!;
    later.begin(text);
    expect(later.next()).toBe(6);
  });

  it("in front of the first element that begins partBytes behind the part", () => {
    const parts = (text: string, partBytes: number): [string, TextPart][] =>
      cutJson(encoder.encode(text), partBytes, 4).ranges.map(({ bytes, part }) => [
        new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
        part,
      ]);
    // The second element begins at byte 10, the third 8 bytes behind it.
    const array = '[{"a":1},\n{"a":2},{"a":3} ]';
    const first = ['[{"a":1},\n', { line: 1, offset: 0, json: "front" }];
    expect(parts(array, 8)).toEqual([
      first,
      ['{"a":2},', { line: 2, offset: 10, json: "array" }],
      ['{"a":3} ]', { line: 2, offset: 18, json: "array" }],
    ]);
    expect(parts(array, 9)).toEqual([first, ['{"a":2},{"a":3} ]', { line: 2, offset: 10, json: "array" }]]);
    expect(parts('\u{feff}{"a":\n1} {"a":2}', 1)).toEqual([
      ['\u{feff}{"a":\n1} ', { line: 1, offset: 0, json: "front" }],
      ['{"a":2}', { line: 2, offset: 12, json: "objects" }],
    ]);
  });

  it("nowhere: an array, another encoding, blank lines before an array", () => {
    const one = { lines: 1, bytes: 1 };
    expect(sizes("[\n1,\n2\n]\n", {}, one)).toHaveLength(1);
    expect(sizes("\n \n[\n1,\n2\n]\n", {}, one)).toHaveLength(1);
    expect(sizes("a\nb\nc\n", { format: "csv", csv: { encoding: "windows-1252" } }, one)).toHaveLength(1);
    const utf16 = Uint8Array.of(0xff, 0xfe, 0x61, 0, 0x0a, 0, 0x62, 0, 0x0a, 0);
    expect(createCutter("csv", undefined, utf16, true, one)).toBeUndefined();
  });
});
