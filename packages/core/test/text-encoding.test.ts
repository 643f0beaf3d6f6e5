import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvalidInputError } from "../src/errors.js";
import { type TextEncoding, Utf8Reader } from "../src/text-encoding.js";

/** The decoded text and, if the input is refused, the code and byte offset of the refusal. */
interface Outcome {
  text: string;
  error?: { code: string; line: number | undefined; offset: number };
}

function decode(chunks: Iterable<Uint8Array>, encoding?: TextEncoding): Outcome {
  const out: number[] = [];
  const text = (): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(out));
  const line = (): number => 1 + out.filter((byte) => byte === 0x0a).length;
  const reader = new Utf8Reader({ encoding, sink: (utf8) => out.push(...utf8), line });
  try {
    for (const chunk of chunks) reader.push(chunk);
    reader.end();
    return { text: text() };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    const offset = Number(/byte offset (\d+)/.exec(error.message)?.[1] ?? -1);
    return { text: text(), error: { code: error.code, line: error.rows[0]?.line, offset } };
  }
}

function* splits(bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let cut = 0; cut <= bytes.length; cut++) yield [bytes.subarray(0, cut), bytes.subarray(cut)];
  yield Array.from(bytes, (byte) => Uint8Array.of(byte));
}

const hex = (text: string): Uint8Array => Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
const utf8 = new TextEncoder();
const utf16 = (text: string, little: boolean): Uint8Array => {
  const bytes = new Uint8Array(text.length * 2);
  const view = new DataView(bytes.buffer);
  for (let i = 0; i < text.length; i++) view.setUint16(2 * i, text.charCodeAt(i), little);
  return bytes;
};

describe("byte-order marks", () => {
  test.each<[string, Uint8Array, TextEncoding | undefined, string]>([
    ["none", utf8.encode("id"), undefined, "id"],
    ["nothing at all", new Uint8Array(0), undefined, ""],
    ["UTF-8", hex("efbbbf6964"), undefined, "id"],
    ["UTF-8 alone", hex("efbbbf"), undefined, ""],
    ["UTF-8, an inner one kept", hex("efbbbf61efbbbf"), undefined, "a\ufeff"],
    ["UTF-8 twice, the second kept", hex("efbbbfefbbbf"), undefined, "\ufeff"],
    ["UTF-16LE", hex("fffe6900640020ac"), undefined, "id갠"],
    ["UTF-16BE", hex("feff0069006420ac"), undefined, "id€"],
    ["it outranks what is declared", hex("efbbbfc3a9"), "windows-1252", "é"],
    ["UTF-16LE with another byte order declared", hex("fffe6100"), "utf-16be", "a"],
  ])("%s", (_name, bytes, encoding, text) => {
    for (const chunks of splits(bytes)) expect(decode(chunks, encoding)).toEqual({ text });
  });

  test("UTF-16 without a mark is refused, not read as text full of NULs", () => {
    for (const little of [true, false]) {
      for (const chunks of splits(utf16("a,b\n", little))) {
        expect(decode(chunks)).toMatchObject({ text: "", error: { code: "bad_encoding", line: 1 } });
      }
      expect(decode([utf16("a,b\n", little)], little ? "utf-16le" : "utf-16be")).toEqual({ text: "a,b\n" });
    }
  });
});

describe("UTF-8", () => {
  test("D70: a windows-1252 byte is refused with line and byte offset, after the good text before it", () => {
    for (const chunks of splits(hex("610a62620a312096203220"))) {
      expect(decode(chunks)).toEqual({
        text: "a\nbb\n1 ",
        error: { code: "bad_encoding", line: 3, offset: 7 },
      });
    }
  });

  // Unicode 16, table 3-7 and section 3.9: the first offset that no well-formed sequence begins at.
  test.each<[string, string, number]>([
    ["a lone continuation", "6180", 1],
    ["overlong of two", "c0af", 0],
    ["overlong of two, last", "c1bf", 0],
    ["overlong of three", "61e09f80", 1],
    ["overlong of four", "f08f8080", 0],
    ["a surrogate", "eda080", 0],
    ["above U+10FFFF", "f4908080", 0],
    ["a lead that never occurs", "f5808080", 0],
    ["0xff", "6161ff", 2],
    ["a sequence broken by ASCII", "61e2826162", 1],
    ["a sequence broken by a lead", "f09f98c3a9", 0],
    ["cut off", "6161e282", 2],
    ["cut off after the lead", "616161f0", 3],
  ])("%s is refused where it begins", (_name, bytes, offset) => {
    for (const chunks of splits(hex(bytes)))
      expect(decode(chunks).error).toMatchObject({ code: "bad_encoding", offset });
  });

  test("accepts and refuses what TextDecoder does, in any pieces and at any alignment", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.string({ unit: "binary", maxLength: 40 }).map((s) => utf8.encode(s)),
      fc
        .tuple(fc.string({ unit: "binary", minLength: 30, maxLength: 60 }), fc.nat(40), fc.nat(255))
        .map(([s, at, byte]) => {
          const encoded = utf8.encode(s);
          encoded[at] = byte;
          return encoded;
        }),
    );
    fc.assert(
      fc.property(bytes, fc.nat(40), (input, cut) => {
        fc.pre(!(input[0] === 0xff && input[1] === 0xfe) && !(input[0] === 0xfe && input[1] === 0xff));
        fc.pre(input.length < 2 || (input[0] === 0) === (input[1] === 0));
        let expected: string | undefined;
        try {
          expected = new TextDecoder("utf-8", { fatal: true }).decode(input);
        } catch {
          // not UTF-8
        }
        for (const chunks of [[input], [input.subarray(0, cut), input.subarray(cut)]]) {
          const { text, error } = decode(chunks);
          expect(error === undefined ? text : undefined).toBe(expected);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe("UTF-16", () => {
  test.each([true, false])("any text, little-endian %s", (little) => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.nat(60), (text, cut) => {
        const bytes = utf16(`\ufeff${text}`, little);
        expect(decode([bytes.subarray(0, cut), bytes.subarray(cut)])).toEqual({ text });
      }),
    );
  });

  test.each<[string, string, number]>([
    ["a lone low surrogate", "fffe610000dc", 4],
    ["a high surrogate before a letter", "fffe00d86100", 2],
    ["a high surrogate at the end", "fffe610000d8", 4],
    ["half a unit at the end", "fffe610062", 4],
    ["a high surrogate and half a unit", "fffe00d862", 2],
  ])("%s is refused", (_name, bytes, offset) => {
    for (const chunks of splits(hex(bytes))) {
      expect(decode(chunks).error).toEqual({ code: "bad_encoding", line: 1, offset });
    }
  });
});

describe("windows-1252", () => {
  test("reads the quotation marks and the euro that ISO 8859-1 lacks", () => {
    expect(decode([hex("6180939499e9ff0a")], "windows-1252")).toEqual({ text: "a€“”™éÿ\n" });
  });

  test("defines what Python's cp1252 does", () => {
    // python3 -c "print(bytes(b for b in range(0x80, 0xa0) if b not in (0x81, 0x8d, 0x8f, 0x90, 0x9d)).decode('cp1252'))"
    const high = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ";
    const undefinedBytes = [0x81, 0x8d, 0x8f, 0x90, 0x9d];
    let defined = "";
    for (let byte = 0; byte < 256; byte++) {
      const { text, error } = decode([Uint8Array.of(0x61, byte)], "windows-1252");
      if (undefinedBytes.includes(byte)) expect(error).toEqual({ code: "bad_encoding", line: 1, offset: 1 });
      else if (byte < 0x80 || byte > 0x9f) expect(text).toBe(`a${String.fromCharCode(byte)}`);
      else defined += text.slice(1);
    }
    expect(defined).toBe(high);
  });
});
