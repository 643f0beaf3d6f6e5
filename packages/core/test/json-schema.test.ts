import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatSchema, formatType, parseSchema, type Schema, schemaFromJsonSchema } from "../src/index.js";

/** The type of one property, `!` where it is never null. */
function typeOf(property: unknown, more: object = {}): string {
  const { fields } = schemaFromJsonSchema({ type: "object", properties: { a: property }, required: ["a"], ...more });
  return `${formatType(fields[0]!.type)}${fields[0]!.nullable ? "" : "!"}`;
}

describe("JSON Schema", () => {
  it.each<[unknown, string]>([
    [{ type: "boolean" }, "bool!"],
    [{ type: "integer", minimum: 0, maximum: 255 }, "int64!"],
    [{ type: "number" }, "float64!"],
    [{ type: "string" }, "string!"],
    [{ type: "string", format: "date-time" }, "timestamptz!"],
    [{ type: "string", format: "date" }, "date!"],
    [{ type: "string", format: "uuid" }, "uuid!"],
    // RFC 3339 times have a zone, which the type time has not.
    [{ type: "string", format: "time" }, "string!"],
    [{ type: "string", format: "email" }, "string!"],
    [{ type: ["string", "null"] }, "string"],
    [{ type: "null" }, "unknown"],
    [{ type: ["string", "integer"] }, "json!"],
    [{ type: ["integer", "number"] }, "float64!"],
    [{ type: "array", items: { type: "integer" } }, "list<int64!>!"],
    [{ type: "array", items: { type: ["integer", "null"] } }, "list<int64>!"],
    [{ type: "array" }, "list<unknown>"],
    [{ type: "array", prefixItems: [{ type: "number" }, { type: "integer" }], items: false }, "list<float64!>!"],
    [{ type: "array", prefixItems: [{ type: "number" }, { type: "string" }], items: false }, "json!"],
    [{ type: "array", prefixItems: [{ type: "string" }], items: { type: "integer" } }, "json!"],
    [{ type: "array", items: [{ type: "string" }], additionalItems: false }, "list<string!>!"],
    [{ type: "object", additionalProperties: { type: "number" } }, "map<string,float64!>!"],
    [{ type: "object", additionalProperties: {} }, "map<string,json>!"],
    [{ type: "object" }, "unknown"],
    [{ type: "object", properties: {} }, "unknown"],
    [
      { type: "object", properties: { x: { type: "integer" }, "y z": { type: "string" } }, required: ["x"] },
      'struct<x!: int64, "y z": string>!',
    ],
    [{ properties: { x: { type: "integer" } } }, "struct<x: int64>!"],
    [{ enum: ["a", "b"] }, "string!"],
    [{ enum: ["a", null] }, "string"],
    [{ type: "number", enum: [1, 2] }, "int64!"],
    [{ enum: [1, 2.5] }, "float64!"],
    [{ enum: ["a", 1] }, "json!"],
    [{ const: true }, "bool!"],
    [{ const: { a: 1 } }, "json!"],
    [{}, "unknown"],
    [true, "unknown"],
    [false, "unknown"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "string"],
    [{ anyOf: [{ type: "string" }, {}] }, "unknown"],
    [
      {
        oneOf: [
          { type: "string", format: "date" },
          { type: "string", format: "date-time" },
        ],
      },
      "string!",
    ],
    [{ oneOf: [{ type: "integer" }, { type: "boolean" }] }, "json!"],
    [
      {
        oneOf: [
          { type: "object", properties: { k: { const: "a" }, x: { type: "integer" } }, required: ["k", "x"] },
          { type: "object", properties: { k: { const: "b" }, x: { type: "number" } }, required: ["k"] },
          { type: "object", properties: { k: { const: "c" }, y: { type: "string" } }, required: ["k", "y"] },
        ],
      },
      "struct<k!: string, x: float64, y: string>!",
    ],
    [
      {
        allOf: [
          { type: "object", properties: { x: { type: ["integer", "null"] } } },
          { type: "object", properties: { y: { type: "string" } }, required: ["y"] },
        ],
      },
      "struct<x: int64, y!: string>!",
    ],
    [{ allOf: [{ type: ["string", "null"] }, { type: "string", format: "uuid" }] }, "uuid!"],
  ])("%j is %s", (property, type) => {
    expect(typeOf(property)).toBe(type);
  });

  it("makes a column nullable that is not required", () => {
    const document = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } }, required: ["b"] };
    expect(schemaFromJsonSchema(document).fields.map(({ nullable }) => nullable)).toEqual([true, false]);
  });

  it("follows references within the document", () => {
    const $defs = { "a/b~c d": { type: "integer" }, list: { type: "array", items: { $ref: "#/$defs/a~1b~0c%20d" } } };
    expect(typeOf({ $ref: "#/$defs/list" }, { $defs })).toBe("list<int64!>!");
  });

  it("keeps as json what contains itself", () => {
    const node = {
      type: "object",
      properties: { v: { type: "integer" }, kids: { type: "array", items: { $ref: "#/$defs/n" } } },
    };
    expect(typeOf({ $ref: "#/$defs/n" }, { $defs: { n: node } })).toBe("struct<v: int64, kids: list<json>>!");
  });

  it("takes rows of a union of objects, and names as they are", () => {
    const { fields } = schemaFromJsonSchema({
      anyOf: [
        { type: "object", properties: { "": { type: "string" } } },
        { type: "object", properties: { constructor: { type: "boolean" } } },
      ],
    });
    expect(fields.map(({ name, type }) => [name, type.kind])).toEqual([
      ["_empty", "string"],
      ["constructor", "bool"],
    ]);
    const proto = schemaFromJsonSchema(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'));
    expect(proto.fields.map(({ name }) => name)).toEqual(["__proto__"]);
  });

  it.each<[string, unknown, RegExp]>([
    ["no object", { type: "array", items: { type: "object" } }, /describes list/],
    ["nothing at all", {}, /describes unknown/],
    ["a text", "object", /neither an object nor a boolean/],
    ["an unknown type", { type: "object", properties: { a: { type: "int" } } }, /the type "int"/],
    ["a reference to elsewhere", { $ref: "https://example.com/s.json" }, /refers to "https:/],
    ["a reference to nothing", { $ref: "#/$defs/x" }, /which is not there/],
    ["a reference into a prototype", { $ref: "#/constructor/prototype" }, /which is not there/],
    ["a reference that is not encoded", { $ref: "#/%" }, /percent-encoded/],
  ])("refuses %s", (_, document, message) => {
    expect(() => schemaFromJsonSchema(document)).toThrow(
      expect.objectContaining({ name: "SchemaError", code: "bad_json_schema" }),
    );
    expect(() => schemaFromJsonSchema(document)).toThrow(message);
  });

  it("ends documents that grow without end", () => {
    const $defs: Record<string, unknown> = { x0: { type: "string" } };
    for (let i = 1; i <= 40; i++) {
      const $ref = `#/$defs/x${i - 1}`;
      $defs[`x${i}`] = { type: "object", properties: { l: { $ref }, r: { $ref } } };
    }
    expect(() => typeOf({ $ref: "#/$defs/x40" }, { $defs })).toThrow(/refers to itself too often/);
    let deep: unknown = { type: "string" };
    for (let i = 0; i < 100_000; i++) deep = { type: "array", items: deep };
    expect(() => typeOf(deep)).toThrow(/nested deeper than 100 levels/);
  });

  it("ends any document in a schema that can be written down, or in a SchemaError", () => {
    const name = fc.constantFrom("a", "b", "A", "", "__proto__", "type", "$defs");
    const { document } = fc.letrec<{ document: unknown }>((tie) => {
      const documents = fc.array(tie("document"), { maxLength: 3 });
      const byName = fc.dictionary(name, tie("document"), { maxKeys: 3 });
      const kind = fc.constantFrom("object", "array", "string", "integer", "number", "boolean", "null", "int");
      return {
        document: fc.oneof(
          { maxDepth: 5 },
          fc.jsonValue({ maxDepth: 1 }),
          fc.record(
            {
              type: fc.oneof(kind, fc.array(kind, { maxLength: 3 }), fc.jsonValue({ maxDepth: 0 })),
              properties: byName,
              required: fc.array(name, { maxLength: 2 }),
              additionalProperties: tie("document"),
              items: fc.oneof(tie("document"), documents),
              prefixItems: documents,
              anyOf: documents,
              allOf: documents,
              enum: fc.array(fc.jsonValue({ maxDepth: 1 }), { maxLength: 3 }),
              const: fc.jsonValue({ maxDepth: 1 }),
              format: fc.constantFrom("date", "uuid", "date-time", "x"),
              $ref: fc.constantFrom("#", "#/properties/a", "#/items", "#/$defs/a", "x"),
              $defs: byName,
            },
            { requiredKeys: [] },
          ),
        ),
      };
    });
    let taken = 0;
    fc.assert(
      fc.property(document, (json) => {
        let schema: Schema;
        try {
          schema = schemaFromJsonSchema(JSON.parse(JSON.stringify({ type: "object", properties: { x: json } })));
        } catch (error) {
          expect((error as Error).name).toBe("SchemaError");
          return;
        }
        taken++;
        expect(parseSchema(formatSchema(schema))).toEqual(schema);
      }),
      { numRuns: 300 },
    );
    expect(taken).toBeGreaterThan(30);
  });
});
