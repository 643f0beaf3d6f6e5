import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { batchRows, concatBatches, type RecordBatch, sliceBatch, takeRows } from "../src/index.js";
import { maskNulls } from "../src/nulls.js";
import type { DataType } from "../src/schema.js";
import { NULL_ROW, takeValues } from "../src/take.js";
import { valueReader } from "../src/values.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf, columnOf } from "./column-builder.js";

const field = (type: DataType) => ({ id: 1, name: "c", type, nullable: true });

/** What every column promises: see `Column`. */
function checkLayout(column: RecordBatch["columns"][number]): void {
  expect(column.validity === undefined).toBe(column.nullCount === 0);
  if (column.offsets) {
    expect(column.offsets.length).toBe(column.length + 1);
    expect(column.offsets[0]).toBe(0);
  }
  const isNull = (i: number): boolean =>
    column.validity !== undefined && ((column.validity[i >> 3]! >> (i & 7)) & 1) === 0;
  let nulls = 0;
  for (let i = 0; i < column.length; i++) {
    if (!isNull(i)) continue;
    nulls++;
    if (column.offsets) expect(column.offsets[i + 1]).toBe(column.offsets[i]);
    if (column.type.kind === "struct") {
      for (const child of column.children) expect(valueReader(child, "exact")(i)).toBe(null);
    }
  }
  expect(column.nullCount).toBe(nulls);
  for (const child of column.children) {
    expect(child.length).toBe(column.offsets ? column.offsets[column.length] : column.length);
    checkLayout(child);
  }
}

describe("takeRows", () => {
  test("gathers rows in any order, with repeats, as reading them one by one does", () => {
    fc.assert(
      fc.property(generatedBatches(), fc.array(fc.nat()), ({ schema, rows }, picks) => {
        const positions = rows.length === 0 ? [] : picks.map((pick) => pick % rows.length);
        const taken = takeRows(batchOf(schema, rows), Uint32Array.from(positions));
        taken.columns.forEach(checkLayout);
        expect(batchRows(taken, "exact")).toEqual(positions.map((at) => exactRow(schema.fields, rows[at]!)));
      }),
    );
  });

  test("a null row gives a null of every type, and leaves the values around it", () => {
    const list = field({ kind: "list", element: field({ kind: "string" }) });
    const taken = takeValues(columnOf(list, [["a", "b"], ["c"]]), Uint32Array.of(1, NULL_ROW, 0));
    checkLayout(taken);
    const read = valueReader(taken, "exact");
    expect([read(0), read(1), read(2)]).toEqual([["c"], null, ["a", "b"]]);
  });

  test("keeps the bits of a signalling NaN and of −0", () => {
    const bits = BigUint64Array.of(0x7ff0_0000_0000_0001n, 0x8000_0000_0000_0000n);
    const column = { ...columnOf(field({ kind: "float64" }), [0, 0]), values: new Float64Array(bits.buffer) };
    const taken = takeValues(column, Uint32Array.of(1, 0, 1)).values as Float64Array;
    expect([...new BigUint64Array(taken.buffer)]).toEqual([bits[1], bits[0], bits[1]]);
  });
});

describe("sliceBatch", () => {
  test("cuts rows, also where bitmaps do not lie on a byte", () => {
    fc.assert(
      fc.property(generatedBatches(), fc.nat(), fc.nat(), ({ schema, rows }, a, b) => {
        const [start, end] = [a % (rows.length + 1), b % (rows.length + 1)].sort((x, y) => x - y) as [number, number];
        const slice = sliceBatch(batchOf(schema, rows), start, end);
        slice.columns.forEach(checkLayout);
        expect(batchRows(slice, "exact")).toEqual(rows.slice(start, end).map((row) => exactRow(schema.fields, row)));
      }),
    );
  });

  test("shares fixed-width values with the batch", () => {
    const batch = batchOf({ fields: [field({ kind: "int64" })] }, [{ c: 1n }, { c: 2n }, { c: 3n }]);
    expect(sliceBatch(batch, 1, 3).columns[0]!.values!.buffer).toBe(batch.columns[0]!.values!.buffer);
  });
});

describe("concatBatches", () => {
  test("joins what was cut, at any places", () => {
    fc.assert(
      fc.property(generatedBatches(), fc.array(fc.nat(), { maxLength: 4 }), ({ schema, rows }, cuts) => {
        const batch = batchOf(schema, rows);
        const places = [0, ...cuts.map((cut) => cut % (rows.length + 1)).sort((a, b) => a - b), rows.length];
        const parts = places.slice(1).map((end, i) => sliceBatch(batch, places[i]!, end));
        const joined = concatBatches(parts);
        expect(joined.length).toBe(rows.length);
        joined.columns.forEach(checkLayout);
        expect(batchRows(joined, "exact")).toEqual(rows.map((row) => exactRow(schema.fields, row)));
      }),
    );
  });

  test("refuses to join nothing", () => {
    expect(() => concatBatches([])).toThrow(expect.objectContaining({ code: "no_batches" }));
  });
});

test("values under a null struct become null, and text there goes away", () => {
  const struct = field({
    kind: "struct",
    fields: [
      { id: 2, name: "n", type: { kind: "int32" }, nullable: true },
      { id: 3, name: "t", type: { kind: "string" }, nullable: true },
    ],
  });
  const column = columnOf(struct, [
    { n: 1, t: "one" },
    { n: 2, t: "two" },
    { n: 3, t: "three" },
  ]);
  const masked = maskNulls(column, Uint8Array.of(0b101));
  checkLayout(masked);
  const read = valueReader(masked, "exact");
  expect([read(0), read(1), read(2)]).toEqual([{ n: 1, t: "one" }, null, { n: 3, t: "three" }]);
  expect(Buffer.from(masked.children[1]!.values as Uint8Array).toString()).toBe("onethree");
});
