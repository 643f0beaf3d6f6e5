import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { DataType } from "../src/schema.js";
import { type BoundValue, compareBounds, decodeBound, encodeBound } from "../src/statistics.js";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

describe("encodeBound", () => {
  test.each<[DataType, BoundValue, string]>([
    [{ kind: "int64" }, 0n, "8000000000000000"],
    [{ kind: "int64" }, -1n, "7fffffffffffffff"],
    [{ kind: "int64" }, -(2n ** 63n), "0000000000000000"],
    [{ kind: "int8" }, 5n, "8000000000000005"],
    [{ kind: "uint32" }, 2n ** 32n - 1n, "80000000ffffffff"],
    [{ kind: "uint64" }, 2n ** 64n - 1n, "ffffffffffffffff"],
    [{ kind: "date" }, -1n, "7fffffffffffffff"],
    [{ kind: "decimal", precision: 38, scale: 2 }, 1n, "80000000000000000000000000000001"],
    [{ kind: "decimal", precision: 9, scale: 2 }, -1n, "7fffffffffffffffffffffffffffffff"],
    [{ kind: "float64" }, 1, "bff0000000000000"],
    [{ kind: "float64" }, -1, "400fffffffffffff"],
    [{ kind: "float64" }, -0, "8000000000000000"],
    [{ kind: "float32" }, 0, "8000000000000000"],
    [{ kind: "float64" }, Number.NEGATIVE_INFINITY, "000fffffffffffff"],
    [{ kind: "bool" }, true, "01"],
    [{ kind: "bool" }, false, "00"],
    [{ kind: "string" }, new TextEncoder().encode("é"), "c3a9"],
    [{ kind: "uuid" }, new Uint8Array(16).fill(7), "07".repeat(16)],
  ])("%o %s", (type, value, expected) => {
    expect(hex(encodeBound(type, value))).toBe(expected);
  });

  const values: [DataType, fc.Arbitrary<BoundValue>][] = [
    [{ kind: "int64" }, fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
    [{ kind: "int16" }, fc.bigInt({ min: -(2n ** 15n), max: 2n ** 15n - 1n })],
    [{ kind: "timestamptz" }, fc.bigInt({ min: -(2n ** 50n), max: 2n ** 50n })],
    [{ kind: "uint64" }, fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })],
    [{ kind: "decimal", precision: 38, scale: 9 }, fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n })],
    [{ kind: "float64" }, fc.double({ noNaN: true })],
    [{ kind: "float32" }, fc.float({ noNaN: true })],
    [{ kind: "bool" }, fc.boolean()],
    [{ kind: "binary" }, fc.uint8Array({ maxLength: 6 })],
  ];

  test.each(values)("%o: byte order is value order, and the value comes back", (type, value) => {
    fc.assert(
      fc.property(value, value, (a, b) => {
        const x = encodeBound(type, a);
        const y = encodeBound(type, b);
        expect(Math.sign(Buffer.compare(x, y))).toBe(Math.sign(compareBounds(a, b)));
        expect(compareBounds(decodeBound(type, x), a)).toBe(0);
      }),
    );
  });

  test("NaN is above all", () => {
    const type: DataType = { kind: "float64" };
    expect(Buffer.compare(encodeBound(type, Number.NaN), encodeBound(type, Number.POSITIVE_INFINITY))).toBeGreaterThan(
      0,
    );
    expect(decodeBound(type, encodeBound(type, Number.NaN))).toBeNaN();
  });

  test("a value of another type is refused", () => {
    expect(() => encodeBound({ kind: "int64" }, 1)).toThrow(RangeError);
    expect(() => encodeBound({ kind: "string" }, 1n)).toThrow(RangeError);
  });
});
