/** Protobuf messages: bytes written by hand after the encoding document, and messages that protobufjs has encoded. */

import fc from "fast-check";
import protobufjs from "protobufjs";
import { describe, expect, test } from "vitest";
import { createProtobufParser, type ProtobufParserOptions } from "../src/protobuf-parser.js";
import { type ProtobufField, protobufSchema } from "../src/protobuf-schema.js";
import { formatType } from "../src/schema.js";
import { batchRows } from "../src/values.js";

interface Read {
  readonly rows: readonly Record<string, unknown>[];
  readonly rejects: readonly { readonly line: number; readonly code: string; readonly reason: string }[];
  readonly ignored: Readonly<Record<string, number>>;
}

function read(
  fields: readonly ProtobufField[],
  payloads: readonly Uint8Array[],
  options: Omit<ProtobufParserOptions, "fields"> = {},
): Read {
  const parser = createProtobufParser({ fields, ...options });
  parser.push(payloads);
  parser.end();
  const rows: Record<string, unknown>[] = [];
  for (let batch = parser.take(); batch; batch = parser.take()) {
    const read = batchRows(batch, "exact");
    rows.push(...read);
    // A Map would hide a key that is there twice.
    for (const [i, { name, type }] of batch.schema.fields.entries()) {
      if (type.kind !== "map") continue;
      const sizes = read.map((row) => (row[name] as Map<unknown, unknown>).size);
      expect(
        [...batch.columns[i]!.offsets!].slice(1).map((end, row) => end - batch.columns[i]!.offsets![row]!),
      ).toEqual(sizes);
    }
  }
  expect(rows.length).toBe(parser.rows);
  return { rows, rejects: parser.rejects, ignored: Object.fromEntries(parser.ignoredFields) };
}

/** Bytes in hex, or text in quotes. */
function wire(text: string): Uint8Array {
  const parts = [...text.matchAll(/'([^']*)'|([0-9a-f]{2})/g)];
  return Uint8Array.from(
    parts.flatMap(([, quoted, hex]) => (hex ? [Number.parseInt(hex, 16)] : [...Buffer.from(quoted!)])),
  );
}

/** The one row of a message. */
function row(fields: readonly ProtobufField[], text: string): Record<string, unknown> {
  const { rows, rejects } = read(fields, [wire(text)]);
  expect(rejects).toEqual([]);
  return rows[0]!;
}

/** How a message is refused. */
function refusal(fields: readonly ProtobufField[], text: string | Uint8Array): string {
  const { rejects } = read(fields, [typeof text === "string" ? wire(text) : text]);
  return `${rejects[0]?.code}: ${rejects[0]?.reason}`;
}

const D13: readonly ProtobufField[] = [
  { name: "a", number: 1, type: "int64" },
  { name: "b", number: 2, type: "uint64" },
  { name: "c", number: 3, type: "sfixed64" },
  { name: "d", number: 4, type: "string", mapKey: "uint64" },
];

const INNER: readonly ProtobufField[] = [
  { name: "x", number: 1, type: "int32" },
  { name: "y", number: 2, type: "string", presence: "explicit" },
  { name: "z", number: 3, type: "sint32", repeated: true },
];

const list = (type: ProtobufField["type"]): ProtobufField[] => [{ name: "v", number: 1, type, repeated: true }];
const one = (type: ProtobufField["type"]): ProtobufField[] => [{ name: "v", number: 1, type }];

describe("the wire", () => {
  test("D13: 64-bit integers are exact, as keys of maps too", () => {
    const bytes = `08 bf 99 8a aa db a7 d5 c9 0f  10 ff ff ff ff ff ff ff ff ff 01
      19 41 73 bd 4a c2 aa 6c f0  22 0c 08 81 80 80 80 80 80 80 10 12 01 'x'`;
    expect(row(D13, bytes)).toEqual({
      a: 1122334455667788991n,
      b: 18446744073709551615n,
      c: -1122334455667788991n,
      d: new Map([[9007199254740993n, "x"]]),
    });
  });

  test("numbers of all kinds", () => {
    expect(row(list("int32"), "08 fb ff ff ff ff ff ff ff ff 01 08 87 80 80 80 10")).toEqual({ v: [-5, 7] });
    expect(row(list("uint32"), "08 ff ff ff ff 0f")).toEqual({ v: [4294967295] });
    expect(row(list("sint32"), "0a 0d 00 01 02 ff ff ff ff 0f fe ff ff ff 0f")).toEqual({
      v: [0, -1, 1, -2147483648, 2147483647],
    });
    expect(row(list("sint64"), "08 01 08 ff ff ff ff ff ff ff ff ff 01 08 fe ff ff ff ff ff ff ff ff 01")).toEqual({
      v: [-1n, -(2n ** 63n), 2n ** 63n - 1n],
    });
    expect(row(list("fixed32"), "0d ff ff ff ff")).toEqual({ v: [4294967295] });
    expect(row(list("sfixed32"), "0d fe ff ff ff")).toEqual({ v: [-2] });
    expect(row(list("fixed64"), "09 ff ff ff ff ff ff ff ff")).toEqual({ v: [2n ** 64n - 1n] });
    expect(row(list("float"), "0d 00 00 c0 3f")).toEqual({ v: [1.5] });
    expect(row(list("double"), "09 9a 99 99 99 99 99 b9 bf")).toEqual({ v: [-0.1] });
    expect(row(list("bool"), "08 00 08 01 08 80 80 80 80 80 80 80 80 80 01")).toEqual({ v: [false, true, true] });
    expect(row(list("bytes"), "0a 00 0a 02 ff 00")).toEqual({ v: [new Uint8Array(0), Uint8Array.of(255, 0)] });
  });

  test("packed, unpacked and both", () => {
    expect(row(list("int32"), "0a 02 01 02 08 03 0a 00 0a 02 80 01")).toEqual({ v: [1, 2, 3, 128] });
    expect(row(list("fixed32"), "0a 08 01 00 00 00 02 00 00 00 0d 03 00 00 00")).toEqual({ v: [1, 2, 3] });
    expect(row(list("string"), "0a 01 'a' 0a 01 'b'")).toEqual({ v: ["a", "b"] });
  });

  test("the last value counts, wherever it comes", () => {
    const fields: ProtobufField[] = [...one("int32"), { name: "w", number: 2, type: "string" }];
    expect(row(fields, "12 01 'a' 08 01 12 02 'bc' 08 02")).toEqual({ v: 2, w: "bc" });
  });

  test("embedded messages in pieces are merged, elements of lists are not", () => {
    const inner = { message: INNER };
    expect(row(one(inner), "0a 04 08 01 18 02  0a 05 12 01 'q' 18 04  0a 02 08 03")).toEqual({
      v: { x: 3, y: "q", z: [1, 2] },
    });
    expect(row(list(inner), "0a 02 08 01 0a 00 0a 03 12 01 'q'")).toEqual({
      v: [
        { x: 1, y: null, z: [] },
        { x: 0, y: null, z: [] },
        { x: 0, y: "q", z: [] },
      ],
    });
    const deep = one({ message: one({ message: INNER }) });
    expect(row(deep, "0a 04 0a 02 08 01 0a 05 0a 03 12 01 'q'")).toEqual({ v: { v: { x: 1, y: "q", z: [] } } });
  });

  test("what is absent", () => {
    const fields: ProtobufField[] = [
      { name: "a", number: 1, type: "int64" },
      { name: "b", number: 2, type: "int64", presence: "explicit" },
      { name: "c", number: 3, type: "string" },
      { name: "d", number: 4, type: "bool" },
      { name: "e", number: 5, type: { enum: { NOTHING: 0 } } },
      { name: "f", number: 6, type: { enum: { ONE: 1 } }, presence: "explicit" },
      { name: "g", number: 7, type: { message: INNER } },
      { name: "h", number: 8, type: "int32", repeated: true },
      { name: "i", number: 9, type: "int32", mapKey: "string" },
      { name: "j", number: 10, type: "double" },
    ];
    expect(row(fields, "")).toEqual({
      ...{ a: 0n, b: null, c: "", d: false, e: "NOTHING", f: null, g: null, h: [], i: new Map(), j: 0 },
    });
    expect(row(fields, "10 00")).toMatchObject({ b: 0n });
  });

  test("enums are names, the first of a number; those without are digits", () => {
    const type = { enum: { A: 0, B: 1, ALSO_B: 1, NEGATIVE: -1 } };
    expect(row(list(type), "0a 0d 00 01 07 ff ff ff ff ff ff ff ff ff 01")).toEqual({ v: ["A", "B", "7", "NEGATIVE"] });
  });

  test("of a oneof the last member counts", () => {
    const fields: ProtobufField[] = [
      { name: "a", number: 1, type: "int32", oneof: "o" },
      { name: "b", number: 2, type: { message: INNER }, oneof: "o" },
      { name: "c", number: 3, type: "int32" },
    ];
    expect(row(fields, "08 01 12 02 08 05")).toEqual({ a: null, b: { x: 5, y: null, z: [] }, c: 0 });
    // What b had is gone when it comes again.
    expect(row(fields, "12 02 08 05 08 00 12 03 12 01 'q'")).toMatchObject({ a: null, b: { x: 0, y: "q" } });
    expect(row(fields, "12 02 08 05 08 00")).toMatchObject({ a: 0, b: null });
  });

  test("maps: the last entry of a key, however it is written; absent key and value", () => {
    const map = (mapKey: ProtobufField["mapKey"] & string, type: ProtobufField["type"]): ProtobufField[] => [
      { name: "v", number: 1, type, mapKey },
    ];
    expect(row(map("string", "int32"), "0a 05 0a 01 'k' 10 01 0a 05 0a 01 'l' 10 02 0a 05 10 03 0a 01 'k'")).toEqual({
      v: new Map([
        ["l", 2],
        ["k", 3],
      ]),
    });
    expect(row(map("uint64", "int32"), "0a 04 08 01 10 01 0a 05 08 81 00 10 02")).toEqual({ v: new Map([[1n, 2]]) });
    expect(row(map("uint64", "int32"), "0a 02 10 01 0a 04 08 00 10 02")).toEqual({ v: new Map([[0n, 2]]) });
    expect(row(map("int32", "int32"), "0a 02 10 01 0a 04 08 05 10 02")).toEqual({
      v: new Map([
        [0, 1],
        [5, 2],
      ]),
    });
    expect(row(map("string", "int32"), "0a 02 10 01 0a 04 0a 00 10 02")).toEqual({ v: new Map([["", 2]]) });
    expect(row(map("bool", "int32"), "0a 04 08 01 10 01 0a 04 08 05 10 02")).toEqual({ v: new Map([[true, 2]]) });
    expect(row(map("sint64", "int32"), "0a 06 08 81 80 00 10 01 0a 0b 08 81 80 80 80 80 80 80 80 80 01")).toEqual({
      v: new Map([
        [-1n, 1],
        [-(2n ** 62n) - 1n, 0],
      ]),
    });
    expect(row(map("fixed64", "string"), "0a 09 09 01 00 00 00 01 00 00 00 0a 09 09 01 00 00 00 00 00 00 00")).toEqual({
      v: new Map([
        [4294967297n, ""],
        [1n, ""],
      ]),
    });
    expect(row(map("string", { message: INNER }), "0a 03 0a 01 'k'")).toEqual({
      v: new Map([["k", { x: 0, y: null, z: [] }]]),
    });
  });

  test("a map of very many keys, and a small one after it", () => {
    const fields: ProtobufField[] = [{ name: "v", number: 1, type: "int32", mapKey: "fixed32" }];
    const entry = (key: number, value: number): number[] => [10, 7, 13, key & 255, (key >> 8) & 255, 0, 0, 16, value];
    const many = Array.from({ length: 6000 }, (_, i) => entry(i % 3000, i < 3000 ? 1 : 2)).flat();
    const { rows } = read(fields, [Uint8Array.from(many), Uint8Array.from([...entry(1, 3), ...entry(1, 4)])]);
    const [first, second] = rows as unknown as { v: Map<number, number> }[];
    expect([first!.v.size, ...new Set(first!.v.values())]).toEqual([3000, 2]);
    expect(second!.v).toEqual(new Map([[1, 4]]));
  });

  test("D80: __proto__ is a key of a map like any other, and a name", () => {
    const fields: ProtobufField[] = [
      { name: "__proto__", number: 1, type: "string", mapKey: "string" },
      { name: "constructor", number: 2, type: { enum: { toString: 3 } } },
    ];
    const read = row(fields, "0a 10 0a 09 '__proto__' 12 03 'bad' 10 03");
    expect(Object.entries(read)).toEqual([
      ["__proto__", new Map([["__proto__", "bad"]])],
      ["constructor", "toString"],
    ]);
    expect(({} as Record<string, unknown>).bad).toBeUndefined();
  });

  test("unknown fields, groups and other wire types are skipped and counted", () => {
    const fields: ProtobufField[] = [...one("int32"), { name: "m", number: 2, type: { message: one("int32") } }];
    const { rows, ignored } = read(fields, [
      wire("18 05 08 01 22 02 ff ff 29 00 00 00 00 00 00 00 00 35 00 00 00 00 18 06"),
      wire("3b 08 09 43 44 12 01 '!' 3c 08 02"),
      wire("08 03 0a 01 09 12 04 10 01 08 04"),
    ]);
    expect(rows).toEqual([
      { v: 1, m: null },
      { v: 2, m: null },
      { v: 3, m: { v: 4 } },
    ]);
    expect(ignored).toEqual({ 1: 1, 3: 2, 4: 1, 5: 1, 6: 1, 7: 1, "2.2": 1 });
  });

  test("unknown fields in entries of maps count once, and only where the entry counts", () => {
    const map: ProtobufField[] = [{ name: "v", number: 1, type: "int32", mapKey: "string" }];
    const { ignored } = read(map, [wire("0a 05 0a 01 'k' 18 01 0a 05 0a 01 'k' 18 01 0a 05 0a 01 'l' 18 01")]);
    expect(ignored).toEqual({ "1.3": 2 });
  });

  test("of unknown fields a thousand are told apart", () => {
    const numbers = Array.from({ length: 1500 }, (_, i) => i + 16);
    const bytes = Uint8Array.from(numbers.flatMap((n) => [((n << 3) & 127) | 128, (n << 3) >> 7, 0]));
    const { ignored } = read(one("int32"), [bytes, bytes]);
    expect([Object.keys(ignored).length, ignored[16], ignored.other]).toEqual([1001, 2, 1000]);
  });
});

describe("what is refused", () => {
  test("names the row and the byte, and the messages around it are taken", () => {
    const fields = [...list("string"), { name: "w", number: 2, type: "int32", mapKey: "string" } as const];
    const good = wire("0a 01 'a' 12 05 0a 01 'k' 10 01");
    const { rows, rejects } = read(fields, [good, wire("0a 01 'b' 12 05 0a 01 'l' 10 80"), good]);
    const expected = { v: ["a"], w: new Map([["k", 1]]) };
    expect(rows).toEqual([expected, expected]);
    expect(rejects).toEqual([
      { line: 2, code: "truncated", reason: "byte 9: the message ends within a value", raw: "CgFiEgUKAWwQgA==" },
    ]);
    expect(() => read(fields, [good, wire("0a")], { maxRejects: 0 })).toThrow(/line 2: byte 1: the message ends/);
  });

  test("what breaks off", () => {
    for (const text of ["08", "08 80", "80", "0d 00 00 00", "09 00", "1b", "1b 08", "0a 05 'abcd'", "22 02 00"]) {
      expect(refusal(one("int32"), text), text).toMatch(/^truncated: byte \d+: /);
    }
    expect(refusal(list("int32"), "0a 01 80")).toBe("truncated: byte 2: the message ends within a value");
    expect(refusal(list("fixed64"), "0a 09 00 00 00 00 00 00 00 00 00")).toMatch(/^truncated: byte 10/);
    // The embedded message ends before its field does, although the outer one goes on.
    expect(refusal(one({ message: INNER }), "0a 01 08 08 01")).toMatch(/^truncated: byte 3/);
  });

  test("length bombs", () => {
    const reason = "truncated: byte 1: a length is more than is left of the message";
    for (const length of [
      "ff ff ff ff 07",
      "ff ff ff ff 0f",
      "80 80 80 80 10",
      "ff ff ff ff ff ff ff ff ff 01",
      "03",
    ]) {
      for (const type of ["string", "bytes", { message: INNER }] as const) {
        expect(refusal(list(type), `0a ${length} 00 00`)).toBe(reason);
      }
      expect(refusal(list("double"), `0a ${length} 00 00`)).toBe(reason);
      expect(refusal(one("double"), `22 ${length} 00 00`)).toBe(reason);
    }
  });

  test("what is no protobuf", () => {
    const bad = (text: string, type: ProtobufField["type"] = "int64"): string => refusal(one(type), text);
    expect(bad("00 01")).toBe("bad_protobuf: byte 0: there is no field of such a number");
    expect(bad("88 80 80 80 10 01")).toBe("bad_protobuf: byte 0: there is no field of such a number");
    expect(bad("0e 01")).toBe("bad_protobuf: byte 1: there is no such wire type");
    expect(bad("0c")).toBe("bad_protobuf: byte 1: a group ends that did not begin");
    expect(bad("1b 24")).toBe("bad_protobuf: byte 1: a group ends with another one's number");
    expect(bad("08 ff ff ff ff ff ff ff ff ff 02")).toBe("bad_protobuf: byte 1: a varint has more than 64 bits");
    expect(bad("08 80 80 80 80 80 80 80 80 80 80 01")).toBe("bad_protobuf: byte 1: a varint has more than 64 bits");
    for (const text of ["ff", "c0 80", "ed a0 80", "f4 90 80 80", "e2 82"]) {
      const size = wire(text).length + 1;
      expect(bad(`0a 0${size} 'a' ${text}`, "string")).toBe("bad_protobuf: byte 3: a string is not UTF-8");
    }
  });

  test("nesting, size and what is no bytes", () => {
    const groups = (n: number): Uint8Array => Uint8Array.from([...Array(n).fill(0x1b), ...Array(n).fill(0x1c)]);
    expect(read(one("int32"), [groups(100)]).rejects).toEqual([]);
    expect(refusal(one("int32"), groups(101))).toBe("too_deep: byte 100: groups are nested deeper than 100 levels");
    expect(refusal(one("bytes"), new Uint8Array(2 ** 24 + 1))).toMatch(/^row_too_large/);
    expect(read(one("bytes"), ["0a 00" as never]).rejects).toMatchObject([{ line: 1, code: "not_bytes" }]);
    expect(read(one("int32"), [wire("08 05").buffer as never]).rows).toEqual([{ v: 5 }]);
    // One message alone is no list of messages of a byte each.
    expect(() => read(one("int32"), wire("08 05") as never)).toThrow("push([message])");
    // Two bytes each make a thousand values.
    const wide = Array.from(
      { length: 1000 },
      (_, i): ProtobufField => ({ name: `c${i}`, number: i + 1, type: "int32" }),
    );
    const bomb = Uint8Array.from({ length: 40_000 }, (_, i) => (i % 2 === 0 ? 10 : 0));
    expect(refusal(list({ message: wide }), bomb)).toMatch(/^row_too_large/);
    expect(refusal(list({ message: one({ message: wide }) }), bomb)).toMatch(/^row_too_large/);
  });

  test("fields that no message can have", () => {
    const code = (...fields: unknown[]): unknown => {
      try {
        return protobufSchema(fields as ProtobufField[]);
      } catch (error) {
        return (error as { code: unknown }).code;
      }
    };
    const a = { name: "a", number: 1, type: "int32" };
    expect(code({ ...a, number: 0 })).toBe("bad_protobuf");
    expect(code({ ...a, number: 2 ** 29 })).toBe("bad_protobuf");
    expect(code(a, { ...a, name: "b" })).toBe("bad_protobuf");
    expect(code({ ...a, type: "toString" })).toBe("bad_protobuf");
    expect(code({ ...a, mapKey: "double" })).toBe("bad_protobuf");
    expect(code({ ...a, mapKey: "string", repeated: true })).toBe("bad_protobuf");
    expect(code({ ...a, type: { enum: { A: 2 ** 31 } } })).toBe("bad_protobuf");
    expect(code(a, { ...a, name: "A", number: 2 })).toBe("duplicate_field");
    const cyclic: { name: string; number: number; type: unknown } = { ...a };
    cyclic.type = { message: [cyclic] };
    expect(code(cyclic)).toBe("bad_protobuf");
  });
});

/** All that a message can hold, as its `.proto` file says it … */
const PROTO = `syntax = "proto3";
  enum Color { RED = 0; GREEN = 1; BLUE = -7; }
  message Leaf {
    int32 int32 = 1; sint32 sint32 = 2; sfixed32 sfixed32 = 3; uint32 uint32 = 4; fixed32 fixed32 = 5;
    int64 int64 = 6; sint64 sint64 = 7; sfixed64 sfixed64 = 8; uint64 uint64 = 9; fixed64 fixed64 = 10;
    float float = 11; double double = 12; bool bool = 13; string string = 14; bytes bytes = 15; Color color = 16;
  }
  message Lists {
    repeated sint32 packed = 1; repeated int64 unpacked = 2 [packed = false]; repeated double doubles = 3;
    repeated string strings = 4; repeated Color colors = 5; repeated Leaf leaves = 536870911;
  }
  message All {
    Leaf leaf = 3; Lists lists = 1; map<string, Leaf> byText = 2; map<uint64, string> byNumber = 100;
    map<sint32, Color> bySigned = 7; map<bool, bytes> byBool = 8; optional int64 maybe = 9;
  }`;

/** … and as we are told. */
const COLOR = { enum: { RED: 0, GREEN: 1, BLUE: -7 } };
const KINDS = ["int32", "sint32", "sfixed32", "uint32", "fixed32", "int64", "sint64", "sfixed64", "uint64", "fixed64"];
const LEAF: readonly ProtobufField[] = [
  ...[...KINDS, "float", "double", "bool", "string", "bytes"].map(
    (type, i): ProtobufField => ({ name: type, number: i + 1, type: type as "int32" }),
  ),
  { name: "color", number: 16, type: COLOR },
];
const LISTS: readonly ProtobufField[] = [
  { name: "packed", number: 1, type: "sint32", repeated: true },
  { name: "unpacked", number: 2, type: "int64", repeated: true },
  { name: "doubles", number: 3, type: "double", repeated: true },
  { name: "strings", number: 4, type: "string", repeated: true },
  { name: "colors", number: 5, type: COLOR, repeated: true },
  { name: "leaves", number: 536870911, type: { message: LEAF }, repeated: true },
];
const ALL: readonly ProtobufField[] = [
  { name: "leaf", number: 3, type: { message: LEAF } },
  { name: "lists", number: 1, type: { message: LISTS } },
  { name: "byText", number: 2, type: { message: LEAF }, mapKey: "string" },
  { name: "byNumber", number: 100, type: "string", mapKey: "uint64" },
  { name: "bySigned", number: 7, type: COLOR, mapKey: "sint32" },
  { name: "byBool", number: 8, type: "bytes", mapKey: "bool" },
  { name: "maybe", number: 9, type: "int64", presence: "explicit" },
];

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const text = fc.oneof(fc.string({ unit: "binary", maxLength: 40 }), fc.constant("__proto__"));
const bytes = fc.uint8Array({ maxLength: 10 });
const color = fc.constantFrom("RED", "GREEN", "BLUE");
const leaf = fc.record({
  ...{ int32, sint32: int32, sfixed32: int32, uint32, fixed32: uint32, int64, sint64: int64, sfixed64: int64 },
  ...{
    uint64,
    fixed64: uint64,
    float: fc.float(),
    double: fc.double(),
    bool: fc.boolean(),
    string: text,
    bytes,
    color,
  },
});
const message = fc.record({
  leaf: fc.option(leaf),
  lists: fc.option(
    fc.record({
      packed: fc.array(int32, { maxLength: 4 }),
      unpacked: fc.array(int64, { maxLength: 4 }),
      doubles: fc.array(fc.double(), { maxLength: 4 }),
      strings: fc.array(text, { maxLength: 4 }),
      colors: fc.array(color, { maxLength: 4 }),
      leaves: fc.array(leaf, { maxLength: 3 }),
    }),
  ),
  byText: fc.array(fc.tuple(text, leaf), { maxLength: 3 }).map((entries) => new Map(entries)),
  byNumber: fc.array(fc.tuple(uint64, text), { maxLength: 3 }).map((entries) => new Map(entries)),
  bySigned: fc.array(fc.tuple(int32, color), { maxLength: 3 }).map((entries) => new Map(entries)),
  byBool: fc.array(fc.tuple(fc.boolean(), bytes), { maxLength: 3 }).map((entries) => new Map(entries)),
  maybe: fc.option(int64),
});

const All = protobufjs.parse(PROTO, { keepCase: true }).root.lookupType("All");

/** The value as protobufjs wants it: halves for bigints, numbers for enums, objects for maps. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") {
    return { low: Number(BigInt.asIntN(32, value)), high: Number(BigInt.asIntN(32, value >> 32n)), unsigned: false };
  }
  if (typeof value === "string") return Object.hasOwn(COLOR.enum, value) ? COLOR.enum[value as "RED"] : value;
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(plain);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return Object.fromEntries(entries.map(([key, member]) => [String(key), plain(member)]));
}

/** What proto3 does not write leaves what was there. */
function mergedLeaf(first: object, second: object): object {
  const written = Object.entries(second).filter(
    ([, v]) =>
      !(v === "RED" || (v instanceof Uint8Array ? v.length === 0 : !v && !Number.isNaN(v) && !Object.is(v, -0))),
  );
  return { ...first, ...Object.fromEntries(written) };
}

const encode = (value: object): Uint8Array => All.encode(plain(value) as object).finish();

describe("protobufjs", () => {
  test("types of columns", () => {
    expect(protobufSchema(ALL).fields.map(({ name, type }) => `${name}: ${formatType(type)}`)[1]).toBe(
      "lists: struct<packed: list<int32>, unpacked: list<int64>, doubles: list<float64>, strings: list<string>, " +
        "colors: list<string>, leaves: list<struct<int32: int32, sint32: int32, sfixed32: int32, uint32: uint32, " +
        "fixed32: uint32, int64: int64, sint64: int64, sfixed64: int64, uint64: uint64, fixed64: uint64, " +
        "float: float32, double: float64, bool: bool, string: string, bytes: binary, color: string>>>",
    );
  });

  test("what it encodes is read as it was", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 4 }), fc.integer({ min: 1, max: 3 }), (messages, batchRows) => {
        const { rows, rejects, ignored } = read(ALL, messages.map(encode), { batchRows });
        expect({ rows, rejects, ignored }).toEqual({ rows: messages, rejects: [], ignored: {} });
      }),
      { numRuns: 300 },
    );
  });

  test("what is cut or changed is refused or read, and leaves nothing in the rows around it", () => {
    const damage = fc.record({ cut: fc.nat(), at: fc.nat(), byte: fc.integer({ min: 0, max: 255 }) });
    let refused = 0;
    fc.assert(
      fc.property(message, message, damage, (first, second, { cut, at, byte }) => {
        const bad = encode(second).slice();
        if (bad.length > 0) bad[at % bad.length] = byte;
        const end = cut % 2 === 0 ? bad.length : cut % (bad.length + 1);
        const { rows, rejects } = read(ALL, [encode(first), bad.subarray(0, end), encode(first)]);
        expect(rows.length + rejects.length).toBe(3);
        expect([rows[0], rows.at(-1)]).toEqual([first, first]);
        for (const { line, reason } of rejects)
          expect([line, Number(/^byte (\d+):/.exec(reason)?.[1]) <= end]).toEqual([2, true]);
        refused += rejects.length;
      }),
      { numRuns: 500 },
    );
    expect(refused).toBeGreaterThan(50);
  });

  test("one after the other, two messages are merged", () => {
    fc.assert(
      fc.property(message, message, (first, second) => {
        const { rows } = read(ALL, [Uint8Array.from([...encode(first), ...encode(second)])]);
        const merged = {
          leaf: first.leaf && second.leaf ? mergedLeaf(first.leaf, second.leaf) : (second.leaf ?? first.leaf),
          lists:
            first.lists && second.lists
              ? Object.fromEntries(
                  Object.entries(first.lists).map(([k, v]) => [k, [...v, ...second.lists![k as "packed"]]]),
                )
              : (second.lists ?? first.lists),
          byText: new Map([...first.byText, ...second.byText]),
          byNumber: new Map([...first.byNumber, ...second.byNumber]),
          bySigned: new Map([...first.bySigned, ...second.bySigned]),
          byBool: new Map([...first.byBool, ...second.byBool]),
          maybe: second.maybe ?? first.maybe,
        };
        expect(rows).toEqual([merged]);
      }),
      { numRuns: 200 },
    );
  });
});
