import fc from "fast-check";
import { expect, test } from "vitest";
import { SchemaMisfit } from "../src/parser.js";
import { assignFieldIds, type DataType, type Schema } from "../src/schema.js";
import { inferRows, parseRows } from "./text.js";

const leaf = fc.oneof(
  fc.constantFrom<unknown>(null, undefined, true, 0, -0, 1, -5, 0.5, 300, 2 ** 53, 1e300, Number.NaN, Infinity),
  fc.constantFrom<unknown>(1n, 2n ** 53n + 1n, 2n ** 63n, 10n ** 38n, -(2n ** 70n)),
  fc.constantFrom<unknown>("", "x", "é😀", "2031-02-03T04:05:06Z", "\ud800"),
  fc.constantFrom<unknown>(new Date(0), new Date(1e12), new Date(Number.NaN), Uint8Array.of(1), () => 1),
  fc.double(),
  fc.bigInt(),
);
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "B", ""), tie("value"), { maxKeys: 3 }),
    fc.array(fc.tuple(fc.constantFrom("a", "k"), tie("value")), { maxLength: 2 }).map((entries) => new Map(entries)),
  ),
})).value;
const rows = fc.array(fc.dictionary(fc.constantFrom("a", "b", "B", "__proto__"), value, { maxKeys: 2 }), {
  maxLength: 5,
});

/** Rejects that no schema avoids: by the row's form, and what a number has lost. */
const FORM = new Set(["unsupported_value", "bad_date", "bad_text", "duplicate_key", "unsafe_integer"]);

/** A schema without regard to the order and the spelling of its fields. */
function folded(schema: Schema): unknown {
  const fold = (type: DataType): unknown => {
    if (type.kind === "list") return [fold(type.element.type)];
    if (type.kind !== "struct") return type;
    return Object.fromEntries(type.fields.map((f) => [`.${f.name.toLowerCase()}`, fold(f.type)] as const).sort());
  };
  return fold({ kind: "struct", fields: schema.fields });
}

test("the inferred schema takes every row that can be taken, in any order, and a sample's schema is it or is refused", () => {
  fc.assert(
    fc.property(rows, fc.nat(5), (table, cut) => {
      const all = inferRows(table);
      expect(folded(inferRows(table.toReversed()))).toEqual(folded(all));
      const { rejects, rows: taken } = parseRows(table, assignFieldIds(all));
      for (const { code, reason } of rejects) if (!reason.includes("knows no NaN")) expect(FORM).toContain(code);
      expect(taken.length + rejects.length).toBe(table.length);
      const sample = inferRows(table.slice(0, cut));
      try {
        parseRows(table, assignFieldIds(sample), { unknownFields: "misfit", valueMisfits: "misfit" });
      } catch (error) {
        if (error instanceof SchemaMisfit) return;
        throw error;
      }
      expect(folded(all)).toEqual(folded(sample));
    }),
    { numRuns: 2000 },
  );
});
