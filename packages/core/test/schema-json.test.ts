import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatSchema, parseSchema, type Schema, toSchema } from "../src/index.js";

const text = `{"fields":[
  {"id":1,"name":"id","type":{"kind":"int64"},"nullable":false},
  {"id":2,"name":"__proto__","type":{"kind":"decimal","precision":10,"scale":2},"nullable":true},
  {"id":3,"name":"tags","type":{"kind":"list","element":{"id":4,"name":"element","type":{"kind":"string"},"nullable":true}},"nullable":true},
  {"id":9,"name":"m","type":{"kind":"map","key":{"id":10,"name":"key","type":{"kind":"string"},"nullable":false},
    "value":{"id":11,"name":"value","type":{"kind":"struct","fields":[
      {"id":12,"name":"h","type":{"kind":"fixed","size":4},"nullable":false}]},"nullable":true}},"nullable":true}]}`;

const column = (type: unknown): unknown => ({ fields: [{ name: "a", type }] });

describe("schemas as JSON", () => {
  it("are read and written as they are, ids included", () => {
    const schema = parseSchema(text);
    expect(schema).toEqual(JSON.parse(text));
    expect(formatSchema(schema)).toBe(JSON.stringify(JSON.parse(text)));
    expect(parseSchema(JSON.parse(text))).toEqual(schema);
  });

  it("are written the same whatever the order of their keys", () => {
    const shuffled = {
      fields: [{ nullable: true, type: { scale: 2, precision: 10, kind: "decimal" }, name: "a", id: 1 }],
    };
    expect(formatSchema(shuffled as Schema)).toBe(
      '{"fields":[{"id":1,"name":"a","type":{"kind":"decimal","precision":10,"scale":2},"nullable":true}]}',
    );
  });

  it("have short forms for people", () => {
    const expected = toSchema({ "id!": "int64", tags: "list<string>" });
    expect(parseSchema('{"id!":"int64","tags":"list<string>"}')).toEqual(expected);
    expect(parseSchema({ "id!": { kind: "int64" }, tags: "list<string>" })).toEqual(expected);
    expect(
      parseSchema({
        fields: [
          { name: "id", type: "int64", nullable: false },
          { name: "tags", type: "list<string>" },
        ],
      }),
    ).toEqual(expected);
    // A column may be called so.
    expect(parseSchema({ fields: "int64" })).toEqual(toSchema({ fields: "int64" }));
  });

  it.each<[string, unknown, string, RegExp]>([
    ["text that is no JSON", "{", "bad_schema", /not JSON/],
    ["null", null, "bad_schema", /^cannot read the schema: \$ is not an object/],
    ["an array", [], "bad_schema", /\$ is not an object/],
    [
      "a misspelt key",
      { fields: [{ name: "a", type: "int8", nulable: true }] },
      "bad_schema",
      /\$\.fields\[0\].*nulable/,
    ],
    ["a key beside fields", { fields: [], version: 2 }, "bad_schema", /version/],
    ["a field without a name", { fields: [{ type: "int8" }] }, "bad_schema", /\$\.fields\[0\]\.name is not a text/],
    ["a field without a type", { fields: [{ name: "a" }] }, "bad_schema", /\$\.fields\[0\]\.type is not an object/],
    ["a type that is none", column("int65"), "bad_type", /int65/],
    ["a kind that is none", column({ kind: "constructor" }), "bad_type", /constructor/],
    ["a kind with parameters in its name", column({ kind: "list<int8>" }), "bad_schema", /name of a type/],
    ["no precision", column({ kind: "decimal", scale: 1 }), "bad_schema", /precision/],
    ["a scale above the precision", column({ kind: "decimal", precision: 3, scale: 4 }), "bad_schema", /scale/],
    ["a size of 0", column({ kind: "fixed", size: 0 }), "bad_schema", /size/],
    ["a size that is no integer", column({ kind: "fixed", size: 1.5 }), "bad_schema", /size/],
    ["an inherited kind", column(Object.create({ kind: "int8" })), "bad_schema", /kind/],
    ["a list without an element", column({ kind: "list" }), "bad_schema", /element is not an object/],
    ["a struct without fields", column({ kind: "struct" }), "bad_schema", /fields is not a list/],
    ["a negative id", { fields: [{ id: -1, name: "a", type: "int8" }] }, "bad_schema", /id/],
    ["an id beyond 32 bits", { fields: [{ id: 2 ** 31, name: "a", type: "int8" }] }, "bad_schema", /id/],
    ["an id that is text", { fields: [{ id: "1", name: "a", type: "int8" }] }, "bad_schema", /id/],
    ["nullable as a text", { fields: [{ name: "a", type: "int8", nullable: "no" }] }, "bad_schema", /nullable/],
    ["an empty name", { fields: [{ name: "", type: "int8" }] }, "bad_name", /empty/],
    ["half a surrogate pair", '{"\\ud800":"int8"}', "bad_name", /well-formed/],
    ["names equal but for case", { a: "int8", A: "int8" }, "duplicate_field", /"a" and "A"/],
  ])("refuses %s", (_, json, code, message) => {
    expect(() => parseSchema(json)).toThrow(expect.objectContaining({ name: "SchemaError", code }));
    expect(() => parseSchema(json)).toThrow(message);
  });

  it("refuses an id that is there twice, at any depth", () => {
    const twice = text.replace('"id":12', '"id":3');
    expect(() => parseSchema(twice)).toThrow(/field id 3 is there twice/);
  });

  it("refuses what is nested without end before the stack does", () => {
    let type: unknown = "int8";
    for (let i = 0; i < 100_000; i++) type = { kind: "list", element: { type } };
    expect(() => parseSchema(column(type))).toThrow(/nested deeper than 100 levels/);
    const deep = `{"a":${'{"kind":"list","element":{"type":'.repeat(50_000)}"int8"${"}}".repeat(50_000)}}`;
    expect(() => parseSchema(deep)).toThrow(/nested deeper than 100 levels/);
  });

  it("ends any JSON in a schema that is written and read equal, or in a SchemaError", () => {
    const name = fc.constantFrom("a", "b", "A", "", "__proto__", "kind", "fields");
    const kinds = fc.constantFrom("int8", "decimal", "fixed", "list", "map", "struct", "json", "nope");
    const { schema: anySchema } = fc.letrec<{ schema: unknown; field: unknown; type: unknown }>((tie) => ({
      schema: fc.record({ fields: fc.array(tie("field"), { maxLength: 4 }) }, { requiredKeys: [] }),
      field: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue({ maxDepth: 1 }),
        fc.record(
          { id: fc.integer({ min: -1, max: 9 }), name, type: tie("type"), nullable: fc.boolean() },
          { requiredKeys: ["name", "type"] },
        ),
      ),
      type: fc.oneof(
        { maxDepth: 4 },
        kinds,
        fc.record(
          {
            kind: kinds,
            precision: fc.integer({ min: 0, max: 40 }),
            scale: fc.integer({ min: 0, max: 9 }),
            size: fc.integer({ min: 0, max: 9 }),
            element: tie("field"),
            key: tie("field"),
            value: tie("field"),
            fields: fc.array(tie("field"), { maxLength: 3 }),
          },
          { requiredKeys: ["kind"] },
        ),
      ),
    }));
    fc.assert(
      fc.property(anySchema, (json) => {
        let schema: Schema;
        try {
          schema = parseSchema(JSON.stringify(json));
        } catch (error) {
          expect((error as Error).name).toBe("SchemaError");
          return;
        }
        expect(parseSchema(formatSchema(schema))).toEqual(schema);
      }),
      { numRuns: 2000 },
    );
  });
});
