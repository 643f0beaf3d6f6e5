/** A schema that JavaScript gives is checked where it is given, whatever it is. */

import { Lake, ParquetObjectWriter, type SchemaInput } from "eider";
import { expect, test } from "vitest";

const int64 = { kind: "int64" };

test.each<[unknown, RegExp]>([
  [{ p: { k: "int64" } }, /\$\.p has the key "k"/],
  [{ p: 5 }, /\$\.p is not an object/],
  [{ p: null }, /\$\.p is not an object/],
  [{ p: undefined }, /\$\.p is not an object/],
  [{ p: { kind: "nope" } }, /unknown type/],
  [{ p: { kind: "list" } }, /\$\.p\.element is not an object/],
  [{ p: { kind: "decimal", precision: 99, scale: 100 } }, /precision is not an integer from 1 to 38/],
  [{ p: { kind: "fixed", size: -1 } }, /size is not a number of bytes/],
  [{ fields: [{ name: "a" }] }, /\$\.fields\[0\]\.type is not an object/],
  [{ fields: [null] }, /\$\.fields\[0\] is not an object/],
  [{ fields: [{ id: -2, name: "a", type: int64, nullable: true }] }, /id is not an integer/],
  [
    { fields: ["a", "b"].map((name) => ({ id: 2, name, type: int64, nullable: true })) },
    /the field id 2 is there twice/,
  ],
  ["id: int64", /not JSON/],
  [5, /not an object/],
  [null, /not an object/],
])("%j is refused", async (schema, reason) => {
  const refused = expect.objectContaining({ name: "SchemaError", message: expect.stringMatching(reason) });
  await using lake = await Lake.open("memory:");
  expect(() => lake.table("t", { schema: schema as SchemaInput })).toThrow(refused);
  await expect(ParquetObjectWriter.open("memory:", { schema: schema as SchemaInput })).rejects.toEqual(refused);
});

test("field ids that are given stay, and others are new", async () => {
  await using lake = await Lake.open("memory:");
  const fields = [2, 0, 0].map((id, i) => ({ id, name: "abc"[i]!, type: { kind: "int64" as const }, nullable: true }));
  await lake.table("t", { schema: { fields } }).append([{ a: 1, b: 2, c: 3 }]);
  expect(await lake.sql("SELECT * FROM t")).toEqual([{ a: 1n, b: 2n, c: 3n }]);
});
