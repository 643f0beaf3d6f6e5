import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { MemoryStore } from "@eider/storage";
import { parquetMetadata } from "hyparquet";
import { beforeAll, describe, expect, it } from "vitest";
import { ParquetObjectWriter, type SchemaField } from "../src/index.js";
import { temporaryFolder } from "./support/folder.js";
import { bytesOf, keysOf, rowsOf } from "./support/objects.js";

const YAML = `
schema:
  - { name: flag, type: BOOLEAN }
  - { name: i8, type: INT8 }
  - { name: i16, type: INT16, optional: true }
  - { name: i32, type: INT32 }
  - { name: i64, type: INT64 }
  - { name: f, type: FLOAT }
  - { name: d, type: DOUBLE }
  - { name: d32, type: DECIMAL32, decimal_precision: 5, decimal_scale: 2 }
  - { name: d64, type: DECIMAL64 }
  - { name: d128, type: DECIMAL128, decimal_scale: 10 }
  - { name: raw, type: BYTE_ARRAY }
  - { name: text, type: UTF8 }
  - { name: at, type: TIMESTAMP }
  - { name: day, type: DATE }
  - { name: id, type: UUID }
  - { name: doc, type: JSON }
  - name: list
    type: LIST
    fields: [{ name: element, type: UTF8, optional: true }]
  - name: map
    type: MAP
    optional: true
    fields:
      - { name: key, type: UTF8 }
      - { name: value, type: INT64, optional: true }
  - name: struct
    optional: true
    fields:
      - { name: x, type: DOUBLE }
      - { name: inner, type: STRUCT, fields: [{ name: y, type: INT32, optional: true }] }
  - { name: many, type: INT32, repeated: true }
  - { name: own, type: "time", optional: true }
`;

const ROW = {
  flag: true,
  i8: -128,
  i16: null,
  i32: 5,
  i64: 9_007_199_254_740_993n,
  f: 0.5,
  d: 0.1,
  d32: "123.45",
  d64: "123456789012345678",
  d128: "1.0000000001",
  raw: Uint8Array.of(0, 255),
  text: "é",
  at: new Date("2031-02-03T04:05:06.789Z"),
  day: "2031-02-03",
  id: "00112233-4455-6677-8899-aabbccddeeff",
  doc: { a: [1] },
  list: ["a", null],
  map: { k: 1n, n: null },
  struct: { x: 1.5, inner: { y: null } },
  many: [1, 2],
  own: "12:34:56",
};

let folder: string;
beforeAll(() => {
  folder = temporaryFolder();
});

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

/** A schema as the footer has it: name, repetition, physical type, converted and logical type. */
async function columns(store: MemoryStore): Promise<string[]> {
  const [key] = await keysOf(store);
  const { schema } = parquetMetadata((await bytesOf(store, key!)).buffer);
  return schema
    .slice(1)
    .map(({ name, repetition_type, type, converted_type, logical_type, precision, scale, field_id }) =>
      [
        `${field_id ?? "-"} ${name}`,
        repetition_type,
        type ?? "group",
        converted_type ?? "-",
        (logical_type as { type?: string } | undefined)?.type ?? "-",
        ...(precision === undefined ? [] : [`${precision},${scale}`]),
      ].join(" "),
    );
}

it("every type, optional or required, with logical and converted types and field ids", async () => {
  const store = new MemoryStore();
  const writer = await ParquetObjectWriter.open(store, { schemaFile: file("all.yaml", YAML) });
  await writer.write(ROW);
  await writer.close();
  expect(await columns(store)).toEqual([
    "1 flag REQUIRED BOOLEAN - -",
    "2 i8 REQUIRED INT32 INT_8 INTEGER",
    "3 i16 OPTIONAL INT32 INT_16 INTEGER",
    "4 i32 REQUIRED INT32 - -",
    "5 i64 REQUIRED INT64 - -",
    "6 f REQUIRED FLOAT - -",
    "7 d REQUIRED DOUBLE - -",
    "8 d32 REQUIRED INT32 DECIMAL DECIMAL 5,2",
    "9 d64 REQUIRED INT64 DECIMAL DECIMAL 18,0",
    "10 d128 REQUIRED FIXED_LEN_BYTE_ARRAY DECIMAL DECIMAL 38,10",
    "11 raw REQUIRED BYTE_ARRAY - -",
    "12 text REQUIRED BYTE_ARRAY UTF8 STRING",
    "13 at REQUIRED INT64 TIMESTAMP_MICROS TIMESTAMP",
    "14 day REQUIRED INT32 DATE DATE",
    "15 id REQUIRED FIXED_LEN_BYTE_ARRAY - UUID",
    "16 doc REQUIRED BYTE_ARRAY JSON JSON",
    "17 list REQUIRED group LIST LIST",
    "- list REPEATED group - -",
    "18 element OPTIONAL BYTE_ARRAY UTF8 STRING",
    "19 map OPTIONAL group MAP MAP",
    "- key_value REPEATED group - -",
    "20 key REQUIRED BYTE_ARRAY UTF8 STRING",
    "21 value OPTIONAL INT64 - -",
    "22 struct OPTIONAL group - -",
    "23 x REQUIRED DOUBLE - -",
    "24 inner REQUIRED group - -",
    "25 y OPTIONAL INT32 - -",
    "26 many REQUIRED group LIST LIST",
    "- list REPEATED group - -",
    "27 element REQUIRED INT32 - -",
    "28 own OPTIONAL INT64 TIME_MICROS TIME",
  ]);
  const [row] = await rowsOf(store);
  expect(row).toMatchObject({
    ...ROW,
    d32: 123.45,
    d64: 123456789012345680,
    d128: 1.0000000001,
    day: new Date("2031-02-03"),
    own: expect.anything(),
    id: expect.anything(),
    raw: expect.anything(),
  });
});

it("the same list inline, as JSON, as a bare list, and by a URL", async () => {
  const list: SchemaField[] = [
    { name: "id", type: "INT64" },
    { name: "tags", type: "LIST", optional: true, fields: [{ name: "element", type: "UTF8" }] },
  ];
  const expected = [
    "1 id REQUIRED INT64 - -",
    "2 tags OPTIONAL group LIST LIST",
    "- list REPEATED group - -",
    "3 element REQUIRED BYTE_ARRAY UTF8 STRING",
  ];
  for (const options of [
    { schema: list },
    { schemaFile: file("a.json", JSON.stringify({ schema: list })) },
    { schemaFile: file("b.json", JSON.stringify(list)) },
    {
      schemaFile: pathToFileURL(
        file(
          "c.yaml",
          "- {name: id, type: INT64}\n- {name: tags, type: LIST, optional: true, fields: [{name: element, type: UTF8}]}\n",
        ),
      ),
    },
  ]) {
    const store = new MemoryStore();
    const writer = await ParquetObjectWriter.open(store, options);
    await writer.write({ id: 1 });
    await writer.close();
    expect(await columns(store)).toEqual(expected);
  }
});

describe("what is wrong is named", () => {
  it.each<[string, RegExp]>([
    ["{", /neither YAML nor JSON/],
    ["7", /holds no list/],
    ["schema: {}", /holds no list/],
    ["schema: []\nmore: 1", /the key "more"/],
    ["- 7", /schema\[0\] is not a field/],
    ["- {type: INT64}", /schema\[0\]\.name is not a text/],
    ["- {name: a}", /\(a\) has no type/],
    ["- {name: a, type: INT63}", /has the type INT63; known are BOOLEAN/],
    ["- {name: a, type: int63}", /unknown type/],
    ["- {name: a, type: INT64, nullable: true}", /the key "nullable"/],
    ["- {name: a, type: INT64, optional: yes please}", /optional is not true or false/],
    ["- {name: a, type: INT64, repeated: true, optional: true}", /both optional and repeated/],
    ["- {name: a, type: INT64, fields: []}", /which only LIST, MAP, STRUCT have/],
    ["- {name: a, type: INT64, decimal_scale: 1}", /no precision/],
    ["- {name: a, type: DECIMAL32, decimal_precision: 10}", /from 1 to 9/],
    ["- {name: a, type: DECIMAL32, decimal_precision: 2, decimal_scale: 3}", /a scale/],
    ["- {name: a, type: LIST}", /a LIST without fields/],
    ["- {name: a, type: LIST, fields: [{name: x, type: INT8}, {name: y, type: INT8}]}", /exactly one/],
    ["- {name: a, type: MAP, fields: [{name: key, type: UTF8}]}", /key and value/],
    ["- {name: a, type: MAP, fields: [{name: key, type: INT8}, {name: value, type: INT8}]}", /required UTF8/],
    [
      "- {name: a, type: MAP, fields: [{name: key, type: UTF8, optional: true}, {name: value, type: INT8}]}",
      /required UTF8/,
    ],
    ["- {name: a, type: INT8}\n- {name: A, type: INT8}", /differ at most by case/],
    ["- &x {name: a, type: STRUCT, fields: [*x]}", /neither YAML nor JSON|not a field|nested|resolve/i],
  ])("%s", async (text, message) => {
    const opening = ParquetObjectWriter.open(new MemoryStore(), { schemaFile: file("bad.yaml", text) });
    await expect(opening).rejects.toThrow(message);
    await expect(opening).rejects.toMatchObject({ name: "SchemaError" });
  });

  it("a file that is not there, or not a file", async () => {
    const opening = (schemaFile: string) => ParquetObjectWriter.open(new MemoryStore(), { schemaFile });
    await expect(opening(join(folder, "none.yaml"))).rejects.toMatchObject({ code: "file_not_found" });
    await expect(opening(folder)).rejects.toMatchObject({ code: "file_unreadable" });
  });

  it("both, or neither", async () => {
    for (const options of [{}, { schema: { a: "int8" }, schemaFile: "x" }]) {
      await expect(ParquetObjectWriter.open(new MemoryStore(), options)).rejects.toMatchObject({ code: "bad_option" });
    }
  });
});
