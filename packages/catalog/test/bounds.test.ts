import { CorruptionError } from "@eider/core";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type BoundClass, boundClass, fitsBound, fromOrderedBytes, leafFields, toOrderedBytes } from "../src/bounds.js";

const hex = (kind: BoundClass, value: bigint | number | boolean): string =>
  Buffer.from(toOrderedBytes(kind, value)).toString("hex");

describe("bounds as ordered bytes", () => {
  it.each<[BoundClass, bigint | number | boolean, string]>([
    ["int", -(2n ** 63n), "0000000000000000"],
    ["int", -1n, "7fffffffffffffff"],
    ["int", 0n, "8000000000000000"],
    ["int", 2n ** 63n - 1n, "ffffffffffffffff"],
    ["uint", 0n, "0000000000000000"],
    ["uint", 2n ** 64n - 1n, "ffffffffffffffff"],
    ["decimal2", -1n, "7fffffffffffffffffffffffffffffff"],
    ["decimal2", 12345n, "80000000000000000000000000003039"],
    // IEEE 754: 1 is 3ff0…, −1 is bff0…, −∞ is fff0….
    ["float", 1, "bff0000000000000"],
    ["float", -1, "400fffffffffffff"],
    ["float", Number.NEGATIVE_INFINITY, "000fffffffffffff"],
    ["float", 0, "8000000000000000"],
    ["float", -0, "8000000000000000"],
    ["bool", false, "00"],
    ["bool", true, "01"],
  ])("writes %s %s", (kind, value, bytes) => {
    expect(hex(kind, value)).toBe(bytes);
  });

  const int64 = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
  const uint64 = fc.bigInt(0n, 2n ** 64n - 1n);
  const decimal = fc.bigInt(-(10n ** 38n) + 1n, 10n ** 38n - 1n);
  const double = fc.double({ noNaN: true }).map((x) => x + 0);
  const cases: [BoundClass, fc.Arbitrary<bigint | number>][] = [
    ["int", int64],
    ["uint", uint64],
    ["decimal0", decimal],
    ["float", double],
  ];

  it.each(cases)("keeps the order of %s and gives the value back", (kind, values) => {
    fc.assert(
      fc.property(values, values, (a, b) => {
        expect(Math.sign(Buffer.compare(toOrderedBytes(kind, a), toOrderedBytes(kind, b)))).toBe(
          a < b ? -1 : a > b ? 1 : 0,
        );
        expect(fromOrderedBytes(kind, toOrderedBytes(kind, a))).toBe(a);
      }),
    );
  });

  it("knows what fits", () => {
    expect(fitsBound("int", 2n ** 63n)).toBe(false);
    expect(fitsBound("int", 1)).toBe(false);
    expect(fitsBound("uint", -1n)).toBe(false);
    expect(fitsBound("float", Number.NaN)).toBe(false);
    expect(fitsBound("decimal0", 10n ** 38n)).toBe(true);
    expect(fitsBound("bytes", Uint8Array.of())).toBe(true);
    expect(fitsBound("bool", 1n)).toBe(false);
  });

  it("never compares decimals of two scales, nor signed with unsigned", () => {
    expect(boundClass({ kind: "decimal", precision: 10, scale: 2 })).toBe("decimal2");
    expect(boundClass({ kind: "decimal", precision: 12, scale: 3 })).toBe("decimal3");
    expect(boundClass({ kind: "uint64" })).toBe("uint");
    expect(boundClass({ kind: "uint32" })).toBe("int");
    expect(boundClass({ kind: "unknown" })).toBeUndefined();
  });

  it("refuses bytes of the wrong length", () => {
    expect(() => fromOrderedBytes("int", new Uint8Array(7))).toThrow(CorruptionError);
  });

  it("finds leaves at every depth", () => {
    const leaves = leafFields({
      fields: [
        {
          id: 1,
          name: "l",
          nullable: true,
          type: {
            kind: "list",
            element: {
              id: 2,
              name: "element",
              nullable: true,
              type: { kind: "struct", fields: [{ id: 3, name: "x", nullable: true, type: { kind: "int8" } }] },
            },
          },
        },
        { id: 4, name: "u", nullable: true, type: { kind: "unknown" } },
      ],
    });
    expect([...leaves.keys()]).toEqual([3]);
  });
});
