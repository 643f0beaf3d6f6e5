import { describe, expect, test } from "vitest";
import { formatWideningTable, widen, wideningTable } from "../src/evolve.js";
import { formatType, parseType } from "../src/schema.js";

function widened(from: string, to: string, bounds?: { min: bigint; max: bigint }): string | undefined {
  const type = widen(parseType(from), parseType(to), bounds);
  return type && formatType(type);
}

describe("widening", () => {
  test.each([
    ["int8", "int8", "int8"],
    ["int16", "int8", "int16"],
    ["int8", "int32", "int32"],
    ["uint8", "int8", "int16"],
    ["int8", "uint8", "int16"],
    ["uint32", "int32", "int64"],
    ["int64", "uint64", "decimal(38,0)"],
    ["uint64", "int8", "decimal(38,0)"],
    ["int32", "float64", "float64"],
    ["int32", "float32", "float64"],
    ["int64", "float64", undefined],
    ["float32", "float64", "float64"],
    ["float64", "float32", "float64"],
    ["float64", "int32", "float64"],
    ["float64", "int64", undefined],
    ["float32", "int8", "float32"],
    ["float32", "int32", "float64"],
    ["int64", "decimal(10,2)", "decimal(21,2)"],
    ["int8", "decimal(4,2)", "decimal(5,2)"],
    ["decimal(10,2)", "decimal(8,4)", "decimal(12,4)"],
    ["decimal(38,0)", "decimal(10,2)", undefined],
    ["decimal(10,2)", "int64", "decimal(21,2)"],
    ["decimal(10,2)", "float64", undefined],
    ["float64", "decimal(10,2)", undefined],
    ["unknown", "list<int64>", "list<int64>"],
    ["string", "unknown", "string"],
    ["string", "string", "string"],
    ["string", "int64", undefined],
    ["int64", "string", undefined],
    ["bool", "int64", undefined],
    ["date", "timestamp", undefined],
    ["timestamp", "timestamptz", undefined],
  ])("%s with %s is %s", (from, to, expected) => {
    expect(widened(from, to)).toBe(expected);
  });

  test("bounds of the stored integers let 64 bits become float64", () => {
    expect(widened("int64", "float64", { min: -5n, max: 2n ** 53n })).toBe("float64");
    expect(widened("int64", "float64", { min: -(2n ** 53n) - 1n, max: 0n })).toBeUndefined();
    // A column of 64 bits is judged by its type where decimals are concerned: its next value may use it all.
    expect(widened("int64", "decimal(10,2)", { min: 0n, max: 1n })).toBe("decimal(21,2)");
  });

  test("the printed table has a row for each entry", () => {
    const lines = formatWideningTable().split("\n");
    expect(lines).toHaveLength(wideningTable.length + 2);
    expect(lines[2]).toBe("| unknown | any type | with the first value |");
  });
});
