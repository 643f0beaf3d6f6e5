import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { duckdbType, formatTypeMapping, parseType, typeMapping } from "../src/index.js";

test("every DuckDB type is one that DuckDB itself names so", async () => {
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  for (const text of [
    ..."bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 string binary fixed(4) date time".split(
      " ",
    ),
    ..."timestamp timestamptz uuid json decimal(9,2) decimal(38,10) list<list<int8>> map<string,uint64>".split(" "),
    'struct<"a b": int64, "q\\"d": list<json>, c: struct<x: uuid>>',
  ]) {
    const type = duckdbType(parseType(text));
    const reader = await connection.runAndReadAll(`SELECT typeof(CAST(NULL AS ${type}))`);
    // Names that need no quotes come back without them.
    expect(String(reader.getRows()[0]![0]).replace(/(?<=[(,] ?)(\w+)(?= )/g, '"$1"')).toBe(
      type.replace(/(?<=[(,] ?)(\w+)(?= )/g, '"$1"'),
    );
  }
  connection.closeSync();
  instance.closeSync();
});

test("nested types carry their children", () => {
  expect(typeMapping(parseType('struct<"a b": list<int64>, m: map<string,uint64>>'))).toEqual({
    arrow: "Struct<a b: List<Int64>, m: Map<Utf8, UInt64>>",
    parquet: "group",
    logical: "",
    converted: "",
    duckdb: 'STRUCT("a b" BIGINT[], "m" MAP(VARCHAR, UBIGINT))',
    iceberg: "struct<a b: list<long>, m: map<string, decimal(20,0)>>",
  });
});

test("the table for the documentation has a line for each type", () => {
  const lines = formatTypeMapping().split("\n");
  expect(lines[0]).toBe("| Eider | Arrow | Parquet | logical | converted | DuckDB | Iceberg |");
  expect(lines).toContain("| `int8` | `Int8` | `INT32` | `INTEGER(8, signed)` | `INT_8` | `TINYINT` | `int` |");
  expect(lines).toContain("| `float64` | `Float64` | `DOUBLE` |  |  | `DOUBLE` | `double` |");
  expect(lines).toHaveLength(28);
});
