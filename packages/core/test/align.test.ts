import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  alignBatch,
  assignFieldIds,
  batchRows,
  type DataType,
  parseType,
  type RecordBatch,
  type Schema,
  storedSchema,
} from "../src/index.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf, type Value } from "./column-builder.js";

function schemaOf(types: Readonly<Record<string, string>>): Schema {
  return assignFieldIds({
    fields: Object.entries(types).map(([key, type]) => {
      const required = key.endsWith("!");
      return { id: 0, name: required ? key.slice(0, -1) : key, type: parseType(type), nullable: !required };
    }),
  });
}

/** Aligns one column; gives what is left and the lines of what is not. */
function convert(from: string, to: string, values: readonly Value[]): { values: unknown[]; lines: number[] } {
  const batch = batchOf(
    schemaOf({ c: from }),
    values.map((c) => ({ c })),
  );
  const { batch: aligned, rejects } = alignBatch(batch, schemaOf({ C: to }));
  expect(rejects.every((reject) => reject.code === "type_mismatch")).toBe(true);
  return { values: batchRows(aligned, "exact").map((row) => row.C), lines: rejects.map((reject) => reject.line) };
}

const buffersOf = (batch: RecordBatch): unknown[] =>
  batch.columns.flatMap(function visit(column): unknown[] {
    return [column.values, column.offsets, column.validity, ...column.children.flatMap(visit)];
  });

describe("alignBatch", () => {
  test("the same types: the same buffers and values, with the ids of the table", () => {
    fc.assert(
      fc.property(generatedBatches(), ({ schema, rows }) => {
        const batch = batchOf(schema, rows);
        const target = assignFieldIds(schema, 40);
        const { batch: aligned, rejects } = alignBatch(batch, target);
        expect(rejects).toEqual([]);
        expect(aligned.schema).toEqual(target);
        expect(aligned.columns.map((column) => column.type)).toEqual(target.fields.map((field) => field.type));
        const buffers = buffersOf(batch);
        expect(buffersOf(aligned).every((buffer, i) => buffer === buffers[i])).toBe(true);
        expect(batchRows(aligned, "exact")).toEqual(rows.map((row) => exactRow(schema.fields, row)));
      }),
    );
  });

  test("columns in the table's order and spelling; absent ones null, others left out", () => {
    const batch = batchOf(schemaOf({ B: "string", extra: "int8", s: "struct<y: int8, Z: int8>" }), [
      { B: "x", extra: 1, s: { y: 1, Z: 2 } },
      { B: null, extra: 2, s: null },
    ]);
    const { batch: aligned } = alignBatch(
      batch,
      schemaOf({ a: "list<int64>", b: "string", s: "struct<z: int8, new: string>" }),
    );
    expect(batchRows(aligned, "exact")).toStrictEqual([
      { a: null, b: "x", s: { z: 2, new: null } },
      { a: null, b: null, s: null },
    ]);
  });

  test("stored rows by field id at every level, whatever their names are by now", () => {
    const stored = schemaOf({ a: "int8", s: "struct<x: int8, y: string>", gone: "int8" });
    const rows = [{ a: 1, s: { x: 2, y: "z" }, gone: 3 }];
    const [a, s] = stored.fields;
    const [x, y] = (s!.type as Extract<DataType, { kind: "struct" }>).fields;
    const target: Schema = {
      fields: [
        {
          ...s!,
          name: "a",
          type: {
            kind: "struct",
            fields: [
              { ...y!, name: "x" },
              { ...x!, name: "y" },
            ],
          },
        },
        { ...a!, name: "s", type: parseType("int64") },
        { id: 90, name: "gone", type: parseType("int8"), nullable: true },
      ],
    };
    const { batch: aligned, rejects } = alignBatch(batchOf(stored, rows), target, "id");
    expect(rejects).toEqual([]);
    expect(batchRows(aligned, "exact")).toStrictEqual([{ a: { x: "z", y: 2 }, s: 1n, gone: null }]);
  });

  test.each([
    ["int8", "int64", [-128, 127, null], [-128n, 127n, null], []],
    ["uint32", "int64", [4_294_967_295], [4_294_967_295n], []],
    ["int64", "int8", [127n, 128n, -129n, null, -128n], [127, null, -128], [2, 3]],
    ["int64", "uint64", [2n ** 63n - 1n, -1n, 0n], [2n ** 63n - 1n, 0n], [2]],
    ["uint64", "int64", [2n ** 63n, 2n ** 63n - 1n], [2n ** 63n - 1n], [1]],
    ["uint64", "uint8", [255n, 256n, 2n ** 64n - 1n], [255], [2, 3]],
    ["int64", "float64", [2n ** 53n, 2n ** 53n + 1n, -(2n ** 63n)], [2 ** 53, -(2 ** 63)], [2]],
    ["int64", "float32", [16_777_216n, 16_777_217n], [16_777_216], [2]],
    ["int64", "decimal(5,0)", [99_999n, 100_000n, -99_999n], ["99999", "-99999"], [2]],
    ["int64", "decimal(21,2)", [-(2n ** 63n)], ["-9223372036854775808.00"], []],
    ["int32", "decimal(5,2)", [999, 1000, -1], ["999.00", "-1.00"], [2]],
    [
      "float64",
      "int64",
      [1, -0, 1.5, Number.NaN, 2 ** 62, 2 ** 63, -(2 ** 63)],
      [1n, 0n, 2n ** 62n, -(2n ** 63n)],
      [3, 4, 6],
    ],
    ["float64", "uint8", [255, 256, -1], [255], [2, 3]],
    ["float32", "float64", [0.5, Number.NaN], [0.5, Number.NaN], []],
    ["float64", "float32", [0.5, 0.1, Number.NEGATIVE_INFINITY, -0], [0.5, Number.NEGATIVE_INFINITY, -0], [2]],
    [
      "float64",
      "decimal(4,2)",
      [0.1, 12.34, 0.125, 99.99, 100, 1e-7, Number.NaN],
      ["0.10", "12.34", "99.99"],
      [3, 5, 6, 7],
    ],
    ["decimal(9,2)", "decimal(12,4)", [-7005n, 1n], ["-70.0500", "0.0100"], []],
    ["decimal(12,4)", "decimal(9,2)", [10_000n, 10_001n, -10_100n], ["1.00", "-1.01"], [2]],
    ["decimal(38,0)", "decimal(38,38)", [0n, 1n], ["0.00000000000000000000000000000000000000"], [2]],
    ["decimal(9,2)", "int8", [100n, 150n, 12_800n, -12_800n], [1, -128], [2, 3]],
    ["decimal(38,2)", "float64", [1n, -7005n, 12_345_678_901_234_567_891n], [0.01, -70.05], [3]],
    ["string", "json", ['{"a": [1]}', "x", "null", null, ""], ['{"a": [1]}', "null", null], [2, 5]],
    ["json", "string", ['"x"'], ['"x"'], []],
  ] as const)("%s into %s: what fits exactly is taken, the rest reported", (from, to, values, expected, lines) => {
    expect(convert(from, to, values)).toEqual({ values: expected, lines });
  });

  test("garbage under nulls is not judged", () => {
    const batch = batchOf(schemaOf({ c: "int64" }), [{ c: null }, { c: 1n }]);
    (batch.columns[0]!.values as BigInt64Array)[0] = 2n ** 60n;
    const { batch: aligned, rejects } = alignBatch(batch, schemaOf({ c: "int8" }));
    expect([batchRows(aligned, "exact"), rejects]).toEqual([[{ c: null }, { c: 1 }], []]);
  });

  test("a value deep inside takes its whole row with it, once", () => {
    const batch = batchOf(schemaOf({ id: "int8", l: "list<struct<m: map<string,int64>>>" }), [
      { id: 1, l: [{ m: [["a", 1n]] }, { m: [["b", 2n]] }] },
      {
        id: 2,
        l: [
          { m: [["a", 1n]] },
          null,
          {
            m: [
              ["b", 300n],
              ["c", 400n],
            ],
          },
        ] as unknown as Value,
      },
      { id: 3, l: [] },
      { id: 4, l: null },
      { id: 5, l: [{ m: [["b", 5n]] }] },
    ]);
    const { batch: aligned, rejects } = alignBatch(
      batch,
      schemaOf({ id: "int8", l: "list<struct<m: map<string,int8>>>" }),
    );
    expect(rejects).toEqual([
      {
        line: 2,
        code: "type_mismatch",
        reason: 'the column "l"."element"."m"."value" holds a value that does not fit int8',
      },
    ]);
    expect(batchRows(aligned, "exact").map((row) => row.id)).toEqual([1, 3, 4, 5]);
  });

  test("nulls where there may be none are reported, but not under a null struct", () => {
    const batch = batchOf(schemaOf({ a: "int8", s: "struct<x: int8>", l: "list<int8>" }), [
      { a: 1, s: { x: 1 }, l: [1] },
      { a: null, s: { x: 1 }, l: [1] },
      { a: 3, s: null, l: [1] },
      { a: 4, s: { x: null }, l: [1] },
      { a: 5, s: { x: 5 }, l: [1, null] },
    ]);
    const target = assignFieldIds({
      fields: [
        { id: 0, name: "a", type: { kind: "int8" }, nullable: false },
        { id: 0, name: "s", type: parseType("struct<x!: int8>"), nullable: true },
        {
          id: 0,
          name: "l",
          type: { kind: "list", element: { id: 0, name: "element", type: { kind: "int8" }, nullable: false } },
          nullable: true,
        },
      ],
    });
    const { batch: aligned, rejects } = alignBatch(batch, target);
    expect(rejects.map(({ line, code, reason }) => [line, code, reason])).toEqual([
      [2, "missing_value", 'the column "a" may not be null'],
      [4, "missing_value", 'the column "s"."x" may not be null'],
      [5, "missing_value", 'the column "l"."element" may not be null'],
    ]);
    expect(batchRows(aligned, "exact")).toEqual([
      { a: 1, s: { x: 1 }, l: [1] },
      { a: 3, s: null, l: [1] },
    ]);
  });

  test("an absent column that may not be null rejects every row", () => {
    const { batch, rejects } = alignBatch(
      batchOf(schemaOf({ a: "int8" }), [{ a: 1 }, { a: 2 }]),
      schemaOf({ a: "int8", "b!": "int8" }),
    );
    expect([batch.length, rejects.map((reject) => reject.line)]).toEqual([0, [1, 2]]);
  });

  test("a column without a type takes only nulls, and is not stored", () => {
    const target = schemaOf({ a: "int8", u: "unknown" });
    const { batch, rejects } = alignBatch(
      batchOf(schemaOf({ u: "string", a: "int8" }), [
        { u: null, a: 1 },
        { u: "x", a: 2 },
      ]),
      target,
    );
    expect(batch.schema).toEqual(storedSchema(target));
    expect(batchRows(batch, "exact")).toEqual([{ a: 1 }]);
    expect(rejects).toMatchObject([{ line: 2, code: "type_mismatch" }]);
  });

  test("a change of kind is an error of the schema", () => {
    expect(() => alignBatch(batchOf(schemaOf({ c: "string" }), []), schemaOf({ c: "int8" }))).toThrow(
      expect.objectContaining({ code: "type_mismatch", subject: "c" }),
    );
  });
});
