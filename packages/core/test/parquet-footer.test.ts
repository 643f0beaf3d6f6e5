import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { parquetReady } from "../src/compression.js";
import { encodeParquet } from "../src/parquet-encoder.js";
import { parquetFooterBytes, readParquetFooter } from "../src/parquet-footer.js";
import { readParquetRowGroups } from "../src/parquet-row-groups.js";
import { assignFieldIds, formatType, toSchema } from "../src/schema.js";
import { batchOf } from "./column-builder.js";

beforeAll(() => parquetReady());

function example(): Uint8Array {
  const schema = assignFieldIds(toSchema({ "a!": "int64", s: "struct<t: string, l: list<float64>>" }));
  const rows = [
    { a: 1n, s: { t: "x", l: [1.5, null] } },
    { a: 3n, s: null },
  ];
  return encodeParquet(schema, [batchOf(schema, rows)], { keyValues: { "eider.table": "events" } }).bytes;
}

describe("our own files", () => {
  test("from the tail alone", () => {
    const bytes = example();
    const size = parquetFooterBytes(bytes.subarray(-8));
    const footer = readParquetFooter(bytes.subarray(-size));
    expect(footer).toMatchObject({ rows: 2, rowGroups: [{ rows: 2 }], createdBy: expect.stringMatching(/^eider /) });
    expect([...footer.keyValues]).toEqual([["eider.table", "events"]]);
    expect(footer.schema.fields.map((field) => [field.id, field.name, field.nullable, formatType(field.type)])).toEqual(
      [
        [1, "a", false, "int64"],
        [2, "s", true, "struct<t: string, l: list<float64>>"],
      ],
    );
    expect(footer.statistics).toMatchObject([
      { fieldId: 1, valueCount: 2, nullCount: 0, min: 1n, max: 3n, minExact: true, maxExact: true },
      { fieldId: 3, valueCount: 2, nullCount: 1, min: Uint8Array.of(0x78), max: Uint8Array.of(0x78) },
      { fieldId: 5, valueCount: 3, nullCount: 2, hasNaN: false, min: 1.5, max: 1.5 },
    ]);
  });
});

describe("files of DuckDB", () => {
  test("where their row groups lie", async () => {
    const folder = mkdtempSync(join(tmpdir(), "eider-footer-"));
    try {
      const path = join(folder, "groups.parquet");
      const connection = await (await DuckDBInstance.create()).connect();
      await connection.run(`COPY (SELECT range AS i, range % 3 AS dictionary, range::VARCHAR AS s FROM range(5000))
        TO '${path}' (ROW_GROUP_SIZE 2048)`);
      const groups = readParquetRowGroups(readFileSync(path));
      expect(groups.map(({ rows }) => rows)).toEqual([2048, 2048, 904]);
      // DuckDB's own reading of the footer.
      const told = await connection.runAndReadAll(`
        SELECT min(least(coalesce(dictionary_page_offset, data_page_offset), data_page_offset)) AS s,
          max(least(coalesce(dictionary_page_offset, data_page_offset), data_page_offset) + total_compressed_size) AS e
        FROM parquet_metadata('${path}') GROUP BY row_group_id ORDER BY row_group_id`);
      expect(groups.map(({ start, end }) => [start, end])).toEqual(
        told.getRows().map(([start, end]) => [Number(start), Number(end)]),
      );
      // DuckDB writes one behind the other, from the magic on.
      expect([groups[0]!.start, groups[1]!.start, groups[2]!.start]).toEqual([4, groups[0]!.end, groups[1]!.end]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("types, and no trust in what floats hide", async () => {
    const folder = mkdtempSync(join(tmpdir(), "eider-footer-"));
    try {
      const path = join(folder, "a.parquet");
      const connection = await (await DuckDBInstance.create()).connect();
      await connection.run(`COPY (SELECT 1::TINYINT i8, 2::UBIGINT u64, 3.5::DOUBLE f, 'x' s, 'y'::BLOB b, DATE '2031-02-03' d,
        TIME '01:02:03' t, TIMESTAMP '2031-02-03 00:00:00' ts, TIMESTAMPTZ '2031-02-03 00:00:00Z' tz,
        TIMESTAMP_MS '1970-01-01 00:00:01.5' ms, TIMESTAMP_NS '1970-01-01 00:00:01.5' ns, 1.25::DECIMAL(5,2) AS dec,
        -1.5::DECIMAL(30,1) wide, uuid() id, '{}'::JSON j, [1, 2] l, MAP {'k': 1} m, {a: 1, b: 'z'} st)
        TO '${path}' (FORMAT parquet)`);
      connection.closeSync();
      const footer = readParquetFooter(readFileSync(path));
      expect(footer.schema.fields.map((field) => `${field.name} ${formatType(field.type)}`)).toEqual([
        "i8 int8",
        "u64 uint64",
        "f float64",
        "s string",
        "b binary",
        "d date",
        "t time",
        "ts timestamp",
        "tz timestamptz",
        "ms timestamp",
        "ns timestamp",
        "dec decimal(5,2)",
        "wide decimal(30,1)",
        "id uuid",
        "j json",
        "l list<int32>",
        "m map<string,int32>",
        "st struct<a: int32, b: string>",
      ]);
      const statistics = (name: string) => footer.statistics[footer.schema.fields.findIndex((f) => f.name === name)];
      expect(statistics("i8")).toMatchObject({ min: 1n, max: 1n, nullCount: 0, hasNaN: false });
      expect(statistics("u64")).toMatchObject({ min: 2n, max: 2n });
      expect(statistics("f")).toMatchObject({ min: 3.5, max: 3.5, hasNaN: true });
      expect(statistics("dec")).toMatchObject({ min: 125n, max: 125n });
      expect(statistics("ms")).toMatchObject({ min: 1_500_000n, max: 1_500_000n });
      expect(statistics("ns")).not.toHaveProperty("min");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("what is not Parquet", () => {
  test.each<[string, (bytes: Uint8Array) => Uint8Array]>([
    ["nothing", () => new Uint8Array(0)],
    ["text", () => new TextEncoder().encode("a,b\n1,2\n3,4\n")],
    ["the start of a file", (bytes) => bytes.subarray(0, 40)],
    ["an encrypted file", (bytes) => Uint8Array.of(...bytes.subarray(0, -1), 0x45)],
    ["a footer that is not all there", (bytes) => bytes.subarray(-20)],
  ])("%s", (_name, change) => {
    expect(() => readParquetFooter(change(example()))).toThrow(expect.objectContaining({ code: "bad_parquet" }));
  });

  test("any damage ends in an answer or one of our errors", () => {
    const bytes = example();
    const size = parquetFooterBytes(bytes);
    const footer = bytes.subarray(-size);
    const damage = fc.record({ at: fc.nat({ max: footer.length - 9 }), byte: fc.nat({ max: 255 }) });
    fc.assert(
      fc.property(fc.array(damage, { minLength: 1, maxLength: 6 }), (places) => {
        const broken = footer.slice();
        for (const { at, byte } of places) broken[at] = byte;
        try {
          readParquetFooter(broken);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(bad_parquet|unsupported_type)$/) });
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("sizes that lie cost no memory", () => {
    // A list of 2^31 structs, a string of 2^40 bytes, structs in structs without end.
    for (const body of [
      [0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f],
      [0x68, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
      Array.from({ length: 100_000 }, () => 0x1c),
    ]) {
      const trailer = new Uint8Array(8);
      new DataView(trailer.buffer).setUint32(0, body.length, true);
      trailer.set([0x50, 0x41, 0x52, 0x31], 4);
      expect(() => readParquetFooter(Uint8Array.from([...body, ...trailer]))).toThrow(
        expect.objectContaining({ code: "bad_parquet" }),
      );
    }
  });
});
