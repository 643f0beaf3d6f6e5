import { describe, expect, test } from "vitest";
import { type Field, formatType, type MergeOptions, mergeSchema, parseType, type Schema } from "../src/index.js";

/** `{ "a!": "int64" }`; ids from 1 if wanted. */
function schemaOf(types: Readonly<Record<string, string>>, ids = false): Schema {
  return {
    fields: Object.entries(types).map(([key, type], i): Field => {
      const required = key.endsWith("!");
      return {
        id: ids ? i + 1 : 0,
        name: required ? key.slice(0, -1) : key,
        type: parseType(type),
        nullable: !required,
      };
    }),
  };
}

function merge(
  base: Readonly<Record<string, string>>,
  incoming: Readonly<Record<string, string>>,
  options: MergeOptions = { mode: "evolve" },
): Record<string, string> {
  const { fields } = mergeSchema(schemaOf(base, true), schemaOf(incoming), options);
  return Object.fromEntries(fields.map((f) => [`${f.id}:${f.name}${f.nullable ? "" : "!"}`, formatType(f.type)]));
}

const fails = (code: string, ...parts: string[]) =>
  expect.objectContaining({
    name: "SchemaError",
    code,
    message: expect.stringMatching(
      new RegExp(parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")),
    ),
  });

describe("mergeSchema", () => {
  test("without a table the data's schema is taken as it is", () => {
    const incoming = schemaOf({ "a!": "int64", b: "unknown" });
    expect(mergeSchema(undefined, incoming, { mode: "evolve" })).toEqual(incoming);
  });

  test("matches names without case, keeps the table's, and adds nullable fields without an id", () => {
    expect(merge({ Id: "int64", "name!": "string" }, { "b!": "date", NAME: "string", id: "int64" })).toEqual({
      "1:Id": "int64",
      "2:name!": "string",
      "0:b": "date",
    });
  });

  test.each([
    ["int8", "int32", "int32"],
    ["int64", "int8", "int64"],
    ["uint32", "int32", "int64"],
    ["int32", "uint32", "int64"],
    ["float32", "float64", "float64"],
    ["int32", "float64", "float64"],
    ["int64", "decimal(10,2)", "decimal(21,2)"],
    ["decimal(10,2)", "decimal(12,4)", "decimal(12,4)"],
    ["decimal(10,2)", "decimal(6,4)", "decimal(12,4)"],
    ["unknown", "struct<a: int32>", "struct<a: int32>"],
    ["date", "unknown", "date"],
    // Not lossless for every value: the column stays, and each value is judged.
    ["float64", "int64", "float64"],
    ["int64", "float64", "int64"],
    ["float64", "decimal(10,2)", "float64"],
    ["json", "string", "json"],
    ["string", "json", "string"],
  ])("%s and %s become %s", (base, incoming, expected) => {
    expect(merge({ c: base }, { c: incoming })).toEqual({ "1:c": expected });
  });

  test("the bounds of stored integers decide whether they may become float64", () => {
    const bounds = (max: bigint) => ({ mode: "evolve" as const, integerBounds: new Map([[1, { min: 0n, max }]]) });
    expect(merge({ c: "int64" }, { c: "float64" }, bounds(2n ** 53n))).toEqual({ "1:c": "float64" });
    expect(merge({ c: "int64" }, { c: "float64" }, bounds(2n ** 53n + 1n))).toEqual({ "1:c": "int64" });
  });

  test("goes into structs, lists and maps", () => {
    expect(
      merge(
        { s: "struct<a: int8, b: string>", l: "list<struct<x: int32>>", m: "map<string,int8>" },
        { s: "struct<A: int16, c: bool>", l: "list<struct<y: bool>>", m: "map<string,int64>" },
      ),
    ).toEqual({
      "1:s": "struct<a: int16, b: string, c: bool>",
      "2:l": "list<struct<x: int32, y: bool>>",
      "3:m": "map<string,int64>",
    });
  });

  test.each([
    ["int64", "string", 'the column "c" is int64 in the table and string in the data: cast it'],
    ["string", "int64", 'the column "c" is string in the table and int64 in the data'],
    ["date", "timestamp", "date in the table and timestamp"],
    ["timestamp", "timestamptz", "timestamp in the table and timestamptz"],
    ["bool", "int8", "bool in the table and int8"],
    ["list<int64>", "int64", "list<int64> in the table"],
    ["struct<a: int64>", "json", "struct<a: int64> in the table and json"],
    ["struct<a: date>", "struct<a: bool>", 'the column "c"."a" is date'],
    ["list<date>", "list<bool>", 'the column "c"."element" is date'],
    ["fixed(3)", "fixed(4)", "fixed(3) in the table and fixed(4)"],
  ])("refuses to turn %s into %s", (base, incoming, message) => {
    for (const mode of ["evolve", "strict", "ignore"] as const) {
      expect(() => merge({ c: base }, { c: incoming }, { mode })).toThrow(fails("type_mismatch", message));
    }
  });

  test("names that differ only by case are refused, both named, at any level", () => {
    expect(() => mergeSchema(undefined, schemaOf({ Id: "int64", iD: "int64" }), { mode: "evolve" })).toThrow(
      fails("duplicate_field", '"Id" and "iD"'),
    );
    expect(() => merge({ s: "bool" }, { s: "list<struct<a: int8, A: int8>>" })).toThrow(
      fails("duplicate_field", '"s"."a" and "s"."A"'),
    );
  });

  test("dotted, spaced, accented and reserved names are ordinary and distinct", () => {
    const types = {
      "a.b": "int8",
      a: "struct<b: int8>",
      "k k": "int8",
      é: "int8",
      "e\u0301": "int8",
      'q"q': "int8",
      constructor: "int8",
    };
    const incoming: Schema = {
      fields: [...schemaOf(types).fields, { id: 0, name: "__proto__", type: { kind: "int8" }, nullable: true }],
    };
    const merged = mergeSchema(mergeSchema({ fields: [] }, incoming, { mode: "evolve" }), incoming, { mode: "strict" });
    expect(merged.fields.map((field) => field.name)).toEqual([...Object.keys(types), "__proto__"]);
  });

  test("strict refuses new fields, and never widens", () => {
    expect(() => merge({ a: "int8" }, { a: "int8", b: "int8" }, { mode: "strict" })).toThrow(
      fails("unknown_field", 'no column "b"', "evolve", "ignore"),
    );
    expect(() => merge({ s: "struct<a: int8>" }, { s: "struct<b: int8>" }, { mode: "strict" })).toThrow(
      fails("unknown_field", '"s"."b"'),
    );
    expect(merge({ a: "int8" }, { a: "int64" }, { mode: "strict" })).toEqual({ "1:a": "int8" });
  });

  test("ignore leaves new fields out, and never widens", () => {
    expect(
      merge({ a: "int8", s: "struct<a: int8>" }, { a: "int64", b: "int8", s: "struct<b: bool>" }, { mode: "ignore" }),
    ).toEqual({
      "1:a": "int8",
      "2:s": "struct<a: int8>",
    });
  });

  test("data without a column that may not be null is refused at once", () => {
    expect(() => merge({ "a!": "int64", b: "int64" }, { b: "int64" })).toThrow(fails("missing_column", '"a"'));
  });
});
