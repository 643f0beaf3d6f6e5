import { CatalogError, CorruptionError } from "@eider/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeEntry, type Entry, encodeEntry, encodeHeader } from "../src/entry.js";
import { append, create, dataFile, FOOTER, hot, part, rearrange, SCHEMA, statistics } from "./fixtures.js";

const ENTRY: Entry = {
  lake: "lake",
  n: 7,
  id: "seven",
  prev: "six",
  writer: "w",
  host: "h",
  time: 1_700_000_000_000,
  floor: 3,
  meta: { source: "test", ["__proto__"]: "kept" },
  operations: [
    create("t1", "events", {
      schema: {
        fields: [
          ...SCHEMA.fields,
          { id: 3, name: "d", nullable: true, type: { kind: "decimal", precision: 38, scale: 2 } },
          {
            id: 4,
            name: "m",
            nullable: true,
            type: {
              kind: "map",
              key: { id: 5, name: "key", nullable: false, type: { kind: "string" } },
              value: {
                id: 6,
                name: "value",
                nullable: true,
                type: { kind: "list", element: { id: 7, name: "element", nullable: true, type: { kind: "uuid" } } },
              },
            },
          },
          { id: 8, name: "__proto__", nullable: true, type: { kind: "fixed", size: 3 } },
        ],
      },
      lastFieldId: 8,
    }),
    append("t1", "b", ["k"], {
      files: [
        dataFile("k", {
          footer: FOOTER,
          partition: [null, "i5", -(2n ** 63n), 1.5, -0, Number.NaN, true, ""],
          columns: [
            statistics(1, { min: -(2n ** 63n), max: 2n ** 63n - 1n }),
            statistics(2, { min: Uint8Array.of(0, 255), max: Uint8Array.of(), minExact: false, maxExact: false }),
            statistics(3, { hasNaN: true, min: Number.NEGATIVE_INFINITY, max: 5e-324 }),
            statistics(4, { min: false, max: true }),
          ],
        }),
      ],
      rejects: [{ line: 2, code: "bad_json", reason: "no", raw: '{"a\ud800' }],
    }),
    { op: "drop", table: "t2" },
    { op: "floor", floor: 3 },
    part("t1", "kafka", 100, 141),
    { op: "rollback", table: "t1", to: 2 },
    { op: "cursor", name: "c", from: "0", to: "6.2" },
    { op: "cursor", name: "d", from: "5" },
    { op: "tag", name: "v1", snapshot: 6 },
    { op: "tag", name: "v0" },
    { op: "view", name: "v", sql: "SELECT 'ü' AS u" },
    { op: "view", name: "w", from: 6, sql: "SELECT 1" },
    { op: "view", name: "x", from: 5 },
  ],
};

/** An entry whose header is this text. */
function frame(header: string): Uint8Array {
  const text = Buffer.from(header);
  const bytes = Buffer.alloc(4 + text.length);
  bytes.writeUInt32LE(text.length);
  text.copy(bytes, 4);
  return bytes;
}

/** With two blobs. */
const HOT: Entry = {
  ...ENTRY,
  operations: [
    hot("t1", "h-1", 2, {
      hot: { data: Buffer.from("first"), bounds: [{ fieldId: 1, min: -(2n ** 63n), max: 2n ** 64n - 1n }] },
    }),
    rearrange("t1", { removeHot: ["h-0"], removeFiles: ["k"], addFiles: [dataFile("f", { partition: [5n] })] }),
    hot("t1", "h-2", 1),
  ],
};

const headerText = (entry: Entry): string => Buffer.from(encodeHeader(entry)).subarray(4).toString();
const BLOBS = Buffer.from("firstrows of h-2");

describe("entries", () => {
  it("come back as they were", () => {
    expect(decodeEntry(encodeEntry(ENTRY))).toStrictEqual(ENTRY);
    expect(decodeEntry(encodeEntry(HOT))).toStrictEqual(HOT);
  });

  it("are a length and JSON, with exact values as tagged text", () => {
    const bytes = Buffer.from(encodeEntry(ENTRY));
    expect(bytes.readUInt32LE()).toBe(bytes.length - 4);
    const header = JSON.parse(bytes.subarray(4).toString());
    expect(header).toMatchObject({ format: 1, minReader: 2, n: 7, prev: "six", blobs: [] });
    const file = header.operations[1].files[0];
    expect(file.partition).toEqual([null, "si5", "i-9223372036854775808", "f1.5", "f-0", "fNaN", "b1", "s"]);
    expect(file.columns.map((c: { min: string; max: string }) => [c.min, c.max])).toEqual([
      ["i-9223372036854775808", "i9223372036854775807"],
      ["x00ff", "x"],
      ["f-Infinity", "f5e-324"],
      ["b0", "b1"],
    ]);
  });

  it("need a reader that knows views only where they have one", () => {
    const readerOf = (entry: Entry): unknown => JSON.parse(headerText(entry)).minReader;
    expect(readerOf(HOT)).toBe(1);
    expect(readerOf({ ...HOT, operations: [...HOT.operations, { op: "view", name: "v", sql: "SELECT 1" }] })).toBe(2);
  });

  it("have the rows of hot batches behind the header, with length and SHA-256", () => {
    const bytes = Buffer.from(encodeEntry(HOT));
    const end = 4 + bytes.readUInt32LE();
    expect(bytes.subarray(end).toString()).toBe("firstrows of h-2");
    // By sha256sum(1).
    expect(JSON.parse(bytes.subarray(4, end).toString()).blobs).toEqual([
      { bytes: 5, sha256: "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e" },
      { bytes: 11, sha256: "7aca850aa713db8b10687137302535a759f8556199e65ed4007852412f8dfd93" },
    ]);
    expect(Buffer.from(encodeHeader(HOT))).toEqual(bytes.subarray(0, end));
  });

  it("that need a newer reader are refused, never skipped", () => {
    const newer = frame(headerText(ENTRY).replace('"minReader":2', '"minReader":3'));
    expect(() => decodeEntry(newer)).toThrow(CatalogError);
    expect(() => decodeEntry(newer)).toThrow(/needs reader 3, this one is 2/);
  });

  it.each([
    ["nothing", Uint8Array.of()],
    ["a length alone", Uint8Array.of(9, 0, 0, 0)],
    ["a length beyond the end", Uint8Array.of(255, 255, 255, 255, 123, 125)],
    ["invalid UTF-8", Uint8Array.of(3, 0, 0, 0, 34, 255, 34)],
    ["no JSON", frame("{")],
    ["another kind of JSON", frame("[]")],
    ["null", frame("null")],
    ["no fields", frame("{}")],
    ["bytes after it", Buffer.concat([encodeEntry(ENTRY), Uint8Array.of(0)])],
    ["an unknown operation", frame(headerText(ENTRY).replace('"op":"drop"', '"op":"burn"'))],
    ["an unknown type", frame(headerText(ENTRY).replace('"kind":"uuid"', '"kind":"uuid7"'))],
    ["a type with parameters for a name", frame(headerText(ENTRY).replace('"kind":"uuid"', '"kind":"decimal(3,1)"'))],
    ["a fraction for a count", frame(headerText(ENTRY).replace('"n":7', '"n":7.5'))],
    ["a count beyond 2^53", frame(headerText(ENTRY).replace('"n":7', '"n":9007199254740993'))],
    ["entry 0", frame(headerText(ENTRY).replace('"n":7', '"n":0'))],
    ["a number for a text", frame(headerText(ENTRY).replace('"prev":"six"', '"prev":6'))],
    ["an untagged bound", frame(headerText(ENTRY).replace("i-9223372036854775808", "-9223372036854775808"))],
    ["a bound that is no integer", frame(headerText(ENTRY).replace("i-9223372036854775808", "i1.5"))],
    ["a position that is none", frame(headerText(ENTRY).replace('"to":"6.2"', '"to":"6.0"'))],
    ["a sequence beyond 2^63", frame(headerText(ENTRY).replace('"last":"141"', '"last":"9223372036854775808"'))],
    ["odd hex", frame(headerText(ENTRY).replace("x00ff", "x00f"))],
    ["a blob less", encodeHeader(HOT)],
    ["a blob that is cut off", encodeEntry(HOT).subarray(0, -1)],
    ["a byte after its blobs", Buffer.concat([encodeEntry(HOT), Uint8Array.of(0)])],
    ["another blob", Buffer.concat([encodeHeader(HOT), Buffer.from("Firstrows of h-2")])],
    ["a blob that nothing names", Buffer.concat([frame(headerText(HOT).replace('"hot":', '"hat":')), BLOBS])],
    ["a hot batch without a blob", frame(headerText(HOT).replace(/"blobs":\[.*?\]/, '"blobs":[]'))],
    ["bounds that are no integers", Buffer.concat([frame(headerText(HOT).replace('"min":"i', '"min":"f')), BLOBS])],
    ["an endless type", frame(headerText(ENTRY).replace('{"kind":"uuid"}', nested(5000)))],
  ])("with %s are corrupt", (_, bytes) => {
    expect(() => decodeEntry(bytes)).toThrow(CorruptionError);
  });

  it("survive any damage without another kind of error", () => {
    const entries = [encodeEntry(ENTRY), encodeEntry(HOT)];
    fc.assert(
      fc.property(fc.nat(1), fc.nat(2000), fc.nat(255), fc.nat(2000), (which, at, byte, end) => {
        const good = entries[which]!;
        const length = Math.min(end, good.length);
        const bad = good.slice(0, length);
        if (at < length) bad[at] = byte;
        try {
          decodeEntry(bad);
        } catch (error) {
          if (!(error instanceof CorruptionError || error instanceof CatalogError)) throw error;
        }
      }),
      { numRuns: 1000 },
    );
  });
});

function nested(depth: number): string {
  const field = (type: string): string => `{"id":9,"name":"element","nullable":true,"type":${type}}`;
  let type = '{"kind":"uuid"}';
  for (let i = 0; i < depth; i++) type = `{"kind":"list","element":${field(type)}}`;
  return type;
}
