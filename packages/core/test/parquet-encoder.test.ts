import { parquetMetadata, readColumnIndex, readOffsetIndex } from "hyparquet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Compression, parquetReady } from "../src/compression.js";
import { encodeParquet, ParquetEncoder } from "../src/parquet-encoder.js";
import type { ParquetEncoding, ParquetOptions } from "../src/parquet-options.js";
import { assignFieldIds, type Schema, type SchemaInput, toSchema } from "../src/schema.js";
import type { ColumnStatistics } from "../src/statistics.js";
import { batchOf } from "./column-builder.js";
import { arrowRows, asDoubles, DuckReader, hyparquetRows, type Row, uuidBytes } from "./parquet-readers.js";

const duck = new DuckReader();
beforeAll(() => parquetReady());
afterAll(() => {
  duck.close();
});

function encode(
  input: SchemaInput,
  rows: readonly Row[],
  options?: ParquetOptions,
): { schema: Schema; bytes: Uint8Array; statistics: ColumnStatistics[] } {
  const schema = assignFieldIds(toSchema(input));
  return { schema, ...encodeParquet(schema, [batchOf(schema, rows)], options) };
}

/** Reads with all three readers what was written, and expects it back. */
async function expectRows(input: SchemaInput, rows: readonly Row[], options?: ParquetOptions): Promise<Uint8Array> {
  const { schema, bytes } = encode(input, rows, options);
  expect(await duck.rows(bytes)).toEqual(rows);
  expect(await hyparquetRows(bytes, schema)).toEqual(
    rows.map((row) =>
      Object.fromEntries(schema.fields.map((field) => [field.name, asDoubles(field.type, row[field.name] ?? null)])),
    ),
  );
  expect(arrowRows(bytes)).toHaveLength(rows.length);
  return bytes;
}

function metadataOf(bytes: Uint8Array): ReturnType<typeof parquetMetadata> {
  return parquetMetadata(bytes.slice().buffer);
}

/** The page indexes of a column, read by hyparquet at the offsets that the footer gives. */
function pageIndex(bytes: Uint8Array, column: number, group = 0) {
  const metadata = metadataOf(bytes);
  const chunk = metadata.row_groups[group]!.columns[column]!;
  const element = metadata.schema.filter((node) => node.type !== undefined)[column]!;
  const at = (offset: bigint | undefined, length: number | undefined) => ({
    view: new DataView(bytes.buffer, bytes.byteOffset + Number(offset), length),
    offset: 0,
  });
  return {
    columnIndex:
      chunk.column_index_offset === undefined
        ? undefined
        : readColumnIndex(at(chunk.column_index_offset, chunk.column_index_length), element),
    offsetIndex: readOffsetIndex(at(chunk.offset_index_offset, chunk.offset_index_length)),
    chunk: chunk.meta_data!,
  };
}

const N64 = [-(2n ** 63n), -1n, 0n, 1n, 2n ** 53n + 1n, 2n ** 63n - 1n];

describe("types", () => {
  test.each<[string, string, Row[string][]]>([
    ["bool", "bool", [true, false, false, null, true]],
    ["int8", "int8", [-128, 127, null, 0]],
    ["int16", "int16", [-32768, 32767, null, 0]],
    ["int32", "int32", [-(2 ** 31), 2 ** 31 - 1, null, 0]],
    ["int64", "int64", [...N64, null]],
    ["uint8", "uint8", [0, 255, null]],
    ["uint16", "uint16", [0, 65535, null]],
    ["uint32", "uint32", [0, 2 ** 31, 2 ** 32 - 1, null]],
    ["uint64", "uint64", [0n, 2n ** 63n, 2n ** 64n - 1n, null]],
    ["float32", "float32", [0.5, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, null]],
    ["float64", "float64", [0.1, -0, Number.NaN, Number.POSITIVE_INFINITY, 5e-324, 1.7976931348623157e308, null]],
    ["string", "string", ["", "é", "\u{10FFFF}", "a".repeat(1000), null]],
    ["binary", "binary", [new Uint8Array(0), Uint8Array.of(0, 255, 128), null]],
    ["fixed", "fixed(3)", [Uint8Array.of(1, 2, 3), Uint8Array.of(255, 0, 255), null]],
    ["date", "date", [-719162, 0, 2932896, null]],
    ["time", "time", [0n, 86_399_999_999n, null]],
    ["timestamp", "timestamp", [-62_135_596_800_000_000n, 0n, 1_930_000_000_123_456n, null]],
    ["timestamptz", "timestamptz", [-1n, 0n, 1_930_000_000_123_456n, null]],
    ["uuid", "uuid", [uuidBytes("00112233-4455-6677-8899-aabbccddeeff"), uuidBytes("f".repeat(32)), null]],
    ["json", "json", ['{"a":1}', "null", "[]", null]],
    ["decimal in 32 bits", "decimal(9,2)", [-999_999_999n, -1n, 0n, 999_999_999n, null]],
    ["decimal in 64 bits", "decimal(18,4)", [-999_999_999_999_999_999n, -10_000n, 10n ** 18n - 1n, null]],
    ["decimal in 9 bytes", "decimal(19,0)", [-(10n ** 19n) + 1n, -1n, 10n ** 19n - 1n, null]],
    ["decimal in 16 bytes", "decimal(38,10)", [-(10n ** 38n) + 1n, -1n, 10n ** 38n - 1n, null]],
  ])("%s", async (_name, type, values) => {
    const rows = values.map((v) => ({ v }));
    await expectRows({ v: type }, rows);
    // Repeated, so that a dictionary pays; and without one.
    const many = Array.from({ length: 400 }, (_, i) => rows[i % rows.length]!);
    await expectRows({ v: type }, many, { pageRows: 100 });
    await expectRows({ v: type }, many, { dictionary: false, compression: "uncompressed" });
    const required = many.filter(({ v }) => v !== null);
    await expectRows({ "v!": type }, required);
  });

  test("readers see the type that was meant", async () => {
    const { bytes } = encode(
      {
        i8: "int8",
        u16: "uint16",
        u32: "uint32",
        u64: "uint64",
        f: "float32",
        d: "date",
        t: "time",
        ts: "timestamp",
        tz: "timestamptz",
        id: "uuid",
        j: "json",
        s: "string",
        b: "binary",
        x: "fixed(4)",
        dec: "decimal(29,2)",
      },
      [],
    );
    const types = await duck.sql(`SELECT column_type AS t FROM (DESCRIBE SELECT * FROM ${duck.file(bytes)})`);
    expect(types.map(({ t }) => t)).toEqual([
      "TINYINT",
      "USMALLINT",
      "UINTEGER",
      "UBIGINT",
      "FLOAT",
      "DATE",
      "TIME",
      "TIMESTAMP",
      "TIMESTAMP WITH TIME ZONE",
      "UUID",
      "JSON",
      "VARCHAR",
      "BLOB",
      "BLOB",
      "DECIMAL(29,2)",
    ]);
    const schema = metadataOf(bytes).schema;
    const leaf = (name: string) => schema.find((element) => element.name === name);
    expect(leaf("i8")).toMatchObject({
      type: "INT32",
      converted_type: "INT_8",
      logical_type: { type: "INTEGER", bitWidth: 8, isSigned: true },
    });
    expect(leaf("u64")).toMatchObject({
      type: "INT64",
      converted_type: "UINT_64",
      logical_type: { type: "INTEGER", bitWidth: 64, isSigned: false },
    });
    expect(leaf("ts")).toMatchObject({
      converted_type: "TIMESTAMP_MICROS",
      logical_type: { type: "TIMESTAMP", isAdjustedToUTC: false, unit: "MICROS" },
    });
    expect(leaf("tz")).toMatchObject({
      converted_type: "TIMESTAMP_MICROS",
      logical_type: { type: "TIMESTAMP", isAdjustedToUTC: true, unit: "MICROS" },
    });
    expect(leaf("t")).toMatchObject({ logical_type: { type: "TIME", isAdjustedToUTC: false, unit: "MICROS" } });
    // Iceberg: the fewest bytes that hold 29 digits.
    expect(leaf("dec")).toMatchObject({
      type: "FIXED_LEN_BYTE_ARRAY",
      type_length: 13,
      converted_type: "DECIMAL",
      precision: 29,
      scale: 2,
      logical_type: { type: "DECIMAL", precision: 29, scale: 2 },
    });
  });
});

describe("nesting", () => {
  const CASES: Record<string, [SchemaInput, Row[]]> = {
    "null list, empty list, list of null, null struct (D17)": [
      { l: "list<int64>", ll: "list<list<int64>>", s: "struct<u: int64>" },
      [
        { l: [1n, 2n], ll: [[]], s: { u: null } },
        { l: [], ll: [null, [3n]], s: null },
        { l: null, ll: [], s: { u: 1n } },
        { l: [null], ll: null, s: { u: 2n } },
      ],
    ],
    "list of struct and map (D18)": [
      { items: "list<struct<f: string, g: int64>>", props: "map<string,string>" },
      [
        { items: [{ f: "a", g: 1n }], props: [["k", "v"]] },
        { items: [], props: [] },
        { items: null, props: null },
        { items: [null, { f: null, g: null }], props: [["k", null]] },
      ],
    ],
    "struct in struct in list in map": [
      { m: "map<string,list<struct<a: struct<b: list<string>, c: bool>, d: float64>>>" },
      [
        {
          m: [
            ["x", [{ a: { b: ["p", null, ""], c: true }, d: 1.5 }, { a: null, d: null }, null]],
            ["y", []],
            ["z", null],
          ],
        },
        {
          m: [
            [
              "w",
              [
                { a: { b: [], c: null }, d: -0 },
                { a: { b: null, c: false }, d: 2 },
              ],
            ],
          ],
        },
        { m: [] },
        { m: null },
      ],
    ],
    "required levels between optional ones": [
      { "o!": "struct<i!: int64, n: struct<x!: string, l!: list<int32>>>" },
      [
        { o: { i: 1n, n: null } },
        { o: { i: 2n, n: { x: "a", l: [] } } },
        { o: { i: 3n, n: { x: "b", l: [1, null] } } },
      ],
    ],
  };
  test.each(Object.entries(CASES))("%s", async (_name, [schema, rows]) => {
    await expectRows(schema, rows);
    const many = Array.from({ length: 500 }, (_, i) => rows[(i * i) % rows.length]!);
    await expectRows(schema, many, { pageRows: 7 });
  });

  test("sees the difference in SQL (D17)", async () => {
    const [schema, rows] = CASES["null list, empty list, list of null, null struct (D17)"]!;
    const file = duck.file(encode(schema, rows).bytes);
    expect(await duck.sql(`SELECT len(l)::INT n, l[1] IS NULL AS first, s IS NULL AS none FROM ${file}`)).toEqual([
      { n: 2, first: false, none: false },
      { n: 0, first: true, none: true },
      { n: null, first: true, none: false },
      { n: 1, first: true, none: false },
    ]);
  });

  test("three-level lists and maps, ids on every node (D18)", async () => {
    const [input, rows] = CASES["list of struct and map (D18)"]!;
    const { bytes } = encode(input, rows);
    const nodes = metadataOf(bytes).schema.map(({ name, repetition_type, converted_type, field_id, num_children }) =>
      [name, repetition_type, converted_type, field_id, num_children].map((x) => x ?? "-").join(" "),
    );
    expect(nodes).toEqual([
      "schema - - - 2",
      "items OPTIONAL LIST 1 1",
      "list REPEATED - - 1",
      "element OPTIONAL - 2 2",
      "f OPTIONAL UTF8 3 -",
      "g OPTIONAL - 4 -",
      "props OPTIONAL MAP 5 1",
      "key_value REPEATED - - 2",
      "key REQUIRED UTF8 6 -",
      "value OPTIONAL UTF8 7 -",
    ]);
    expect(
      await duck.sql(
        `SELECT * FROM read_parquet([${duck.file(bytes)}], schema = MAP {5: {name: 'p', type: 'MAP(VARCHAR, VARCHAR)', default_value: NULL}})`,
      ),
    ).toEqual(rows.map(({ props }) => ({ p: props })));
  });

  test("columns that are empty everywhere are still there", async () => {
    await expectRows({ items: "list<struct<f: string>>", m: "map<string,int64>", n: "int32" }, [
      { items: [], m: [], n: null },
      { items: null, m: [], n: null },
    ]);
  });

  test("a null where none may be", () => {
    expect(() => encode({ "a!": "int64" }, [{ a: 1n }, { a: null }])).toThrow(
      expect.objectContaining({ code: "null_in_required", subject: "a" }),
    );
    expect(() => encode({ s: "struct<a!: int64>" }, [{ s: null }, { s: { a: null } }])).toThrow(
      expect.objectContaining({ code: "null_in_required" }),
    );
    // Below a null struct there is nothing to require.
    expect(encode({ s: "struct<a!: int64>" }, [{ s: null }, { s: { a: 1n } }]).bytes.length).toBeGreaterThan(0);
  });
});

describe("pages", () => {
  test("cuts at rows, with absolute offsets and first rows", async () => {
    const rows = Array.from({ length: 1000 }, (_, i) => ({ a: BigInt(i), l: i % 3 === 0 ? [] : [`v${i}`, "x"] }));
    const schema = assignFieldIds(toSchema({ a: "int64", l: "list<string>" }));
    const { bytes } = encodeParquet(schema, [batchOf(schema, rows.slice(0, 600)), batchOf(schema, rows.slice(600))], {
      pageRows: 128,
    });
    expect(await duck.rows(bytes)).toEqual(rows);
    expect(metadataOf(bytes).row_groups.map((group) => Number(group.num_rows))).toEqual([600, 400]);
    for (const [group, starts] of [
      [0, [0, 128, 256, 384, 512]],
      [1, [0, 128, 256, 384]],
    ] as const) {
      for (const column of [0, 1]) {
        const { offsetIndex, chunk } = pageIndex(bytes, column, group);
        expect(offsetIndex.page_locations.map((page) => Number(page.first_row_index))).toEqual(starts);
        expect(offsetIndex.page_locations[0]!.offset).toBe(chunk.data_page_offset);
        // Pages follow each other and fill the chunk.
        let at = chunk.data_page_offset;
        for (const page of offsetIndex.page_locations) {
          expect(page.offset).toBe(at);
          at += BigInt(page.compressed_page_size);
        }
        expect(at).toBe((chunk.dictionary_page_offset ?? chunk.data_page_offset) + chunk.total_compressed_size);
      }
    }
    // PageIndex.md: column indexes come before offset indexes.
    const chunks = metadataOf(bytes).row_groups.flatMap((group) => group.columns);
    const lastColumnIndex = Math.max(...chunks.map((chunk) => Number(chunk.column_index_offset)));
    const firstOffsetIndex = Math.min(...chunks.map((chunk) => Number(chunk.offset_index_offset)));
    expect(lastColumnIndex).toBeLessThan(firstOffsetIndex);
    // A reader that skips by the page index ends up at the right rows.
    expect(arrowRows(bytes, { offset: 555, limit: 90 }).map((row) => row.a)).toEqual(
      rows.slice(555, 645).map((row) => row.a),
    );
  });

  test("cuts at any row where there are nulls and lists", () => {
    const rows = Array.from({ length: 200 }, (_, i) => ({
      n: i % 3 === 0 ? null : BigInt(i),
      l: Array.from({ length: i % 4 }, (_, k) => `${i} ${k}`),
      // Pages of about a mebibyte: 21 texts of 50,000 bytes, as every other value is null.
      s: i % 2 === 0 ? null : `${i}`.padEnd(50_000, "x"),
    }));
    const { bytes } = encode({ n: "int64", l: "list<string>", s: "string" }, rows, { pageRows: 37, dictionary: false });
    const firstRows = [0, 1, 2].map((column) =>
      pageIndex(bytes, column).offsetIndex.page_locations.map((page) => Number(page.first_row_index)),
    );
    const byRows = [0, 37, 74, 111, 148, 185];
    expect(firstRows).toEqual([byRows, byRows, byRows]);
    const wide = encode(
      { s: "string" },
      rows.map(({ s }) => ({ s })),
      { pageRows: 150, dictionary: false },
    );
    expect(pageIndex(wide.bytes, 0).offsetIndex.page_locations.map((page) => Number(page.first_row_index))).toEqual([
      0, 42, 84, 126, 168,
    ]);
  });

  test("large values make small pages", () => {
    const rows = Array.from({ length: 64 }, (_, i) => ({ s: String(i).padEnd(100_000, "ab") }));
    const { bytes } = encode({ s: "string" }, rows, { dictionary: false });
    expect(pageIndex(bytes, 0).offsetIndex.page_locations.map((page) => Number(page.first_row_index))).toEqual([
      0, 11, 22, 33, 44, 55,
    ]);
  });

  test("column index: null pages, bounds, order", () => {
    const rows = [5, 7, null, null, 9, 9, null, 12].map((a) => ({ a, b: a === null ? null : -a, c: a === 9 ? 1 : a }));
    const { bytes } = encode({ a: "int32", b: "int32", c: "int32" }, rows, { pageRows: 2 });
    expect(pageIndex(bytes, 0).columnIndex).toMatchObject({
      null_pages: [false, true, false, false],
      min_values: [5, new Uint8Array(0), 9, 12],
      max_values: [7, new Uint8Array(0), 9, 12],
      boundary_order: "ASCENDING",
      null_counts: [0n, 2n, 0n, 1n],
    });
    expect(pageIndex(bytes, 1).columnIndex).toMatchObject({
      max_values: [-5, new Uint8Array(0), -9, -12],
      boundary_order: "DESCENDING",
    });
    expect(pageIndex(bytes, 2).columnIndex).toMatchObject({ boundary_order: "UNORDERED" });
  });

  test("no page index when it is off", async () => {
    const { bytes } = encode({ a: "int64" }, [{ a: 1n }], { pageIndex: false });
    const column = metadataOf(bytes).row_groups[0]!.columns[0]!;
    expect([column.offset_index_offset, column.column_index_offset]).toEqual([undefined, undefined]);
    expect(await duck.rows(bytes)).toEqual([{ a: 1n }]);
  });

  test("statistics of chunks only", () => {
    const { bytes } = encode({ a: "int64" }, [{ a: 1n }, { a: 3n }], { statistics: "chunk" });
    const column = metadataOf(bytes).row_groups[0]!.columns[0]!;
    expect(column.meta_data!.statistics).toMatchObject({ min_value: 1n, max_value: 3n });
    expect(column.column_index_offset).toBeUndefined();
    expect(column.offset_index_offset).toBeDefined();
  });

  test("bounds of wide decimals, page by page", () => {
    const { bytes } = encode({ a: "decimal(30,0)" }, [{ a: -5n }, { a: 7n }, { a: 10n ** 29n }, { a: -(10n ** 29n) }], {
      pageRows: 2,
    });
    expect(pageIndex(bytes, 0).columnIndex).toMatchObject({ min_values: [-5, -1e29], max_values: [7, 1e29] });
  });

  test("no statistics when they are off, but they are returned", () => {
    const { bytes, statistics } = encode({ a: "int64" }, [{ a: 1n }, { a: 3n }], { statistics: "none" });
    const column = metadataOf(bytes).row_groups[0]!.columns[0]!;
    expect(column.meta_data!.statistics).toBeUndefined();
    expect(column.column_index_offset).toBeUndefined();
    expect(column.offset_index_offset).toBeDefined();
    expect(statistics[0]).toMatchObject({ min: 1n, max: 3n });
  });
});

describe("statistics", () => {
  test("NaN, infinities and zeros (D12)", async () => {
    const rows = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, null].map((x) => ({ x }));
    const { bytes, statistics } = encode({ x: "float64" }, rows);
    const file = duck.file(bytes);
    const counts = await duck.sql(
      `SELECT count(*) FILTER (isnan(x)) nan, count(*) FILTER (isinf(x)) inf, count(*) FILTER (x = 0) zero,
        count(*) FILTER (x IS NULL) AS missing FROM ${file}`,
    );
    expect(counts).toEqual([{ nan: 1n, inf: 2n, zero: 1n, missing: 1n }]);
    // DuckDB sorts NaN above all: a footer maximum that ignores it would lose the row.
    expect(await duck.sql(`SELECT count(*) n FROM ${file} WHERE x > 100`)).toEqual([{ n: 2n }]);
    expect(statistics[0]).toEqual({
      fieldId: 1,
      valueCount: 5,
      nullCount: 1,
      hasNaN: true,
      min: Number.NEGATIVE_INFINITY,
      max: Number.POSITIVE_INFINITY,
      minExact: true,
      maxExact: true,
      storedBytes: statistics[0]!.storedBytes,
    });
    const { chunk, columnIndex } = pageIndex(bytes, 0);
    expect(chunk.statistics).toEqual({ null_count: 1n });
    expect(columnIndex).toBeUndefined();
  });

  test("a chunk of only NaN has no bounds, its neighbour has", () => {
    const schema = assignFieldIds(toSchema({ x: "float32" }));
    const { bytes, statistics } = encodeParquet(schema, [
      batchOf(schema, [{ x: Number.NaN }]),
      batchOf(schema, [{ x: 1.5 }, { x: 2.5 }]),
    ]);
    expect(statistics[0]).toMatchObject({ hasNaN: true, min: 1.5, max: 2.5 });
    expect(pageIndex(bytes, 0, 0).chunk.statistics?.max_value).toBeUndefined();
    expect(pageIndex(bytes, 0, 1).chunk.statistics).toMatchObject({ min_value: 1.5, max_value: 2.5 });
  });

  test.each([
    [0, 3],
    [-0, 3],
    [-3, 0],
    [-3, -0],
  ])("a bound of zero covers both zeros: %d to %d", (low, high) => {
    const { bytes } = encode({ x: "float64" }, [{ x: low }, { x: high }]);
    const { min_value, max_value } = pageIndex(bytes, 0).chunk.statistics!;
    expect(min_value).toBe(low === 0 ? -0 : low);
    expect(max_value).toBe(high === 0 ? 0 : high);
  });

  test("unsigned integers have unsigned bounds", () => {
    const rows = [
      { a: 1, b: 1n },
      { a: 2 ** 32 - 1, b: 2n ** 64n - 1n },
    ];
    const { bytes, statistics } = encode({ a: "uint32", b: "uint64" }, rows);
    expect(statistics).toMatchObject([
      { min: 1n, max: 2n ** 32n - 1n },
      { min: 1n, max: 2n ** 64n - 1n },
    ]);
    expect(pageIndex(bytes, 0).chunk.statistics).toMatchObject({ min_value: 1, max_value: 2 ** 32 - 1 });
    expect(pageIndex(bytes, 1).chunk.statistics).toMatchObject({ min_value: 1n, max_value: 2n ** 64n - 1n });
  });

  test("negative and wide decimals (D23)", async () => {
    const rows = [
      { d: -7005n, e: -10_000n },
      { d: -1n, e: null },
      { d: 12345678901234567890123456789n, e: null },
      { d: null, e: 1n },
    ];
    const { bytes, statistics } = encode({ d: "decimal(29,2)", e: "decimal(18,4)" }, rows);
    const file = duck.file(bytes);
    expect(await duck.sql(`SELECT d::VARCHAR d, e::VARCHAR e FROM ${file}`)).toEqual([
      { d: "-70.05", e: "-1.0000" },
      { d: "-0.01", e: null },
      { d: "123456789012345678901234567.89", e: null },
      { d: null, e: "0.0001" },
    ]);
    expect(await duck.sql(`SELECT count(*) n FROM ${file} WHERE d < 0`)).toEqual([{ n: 2n }]);
    expect(await duck.sql(`SELECT stats_min_value a, stats_max_value b FROM parquet_metadata(${file})`)).toEqual([
      { a: "-70.05", b: "123456789012345678901234567.89" },
      { a: "-1.0000", b: "0.0001" },
    ]);
    expect(statistics).toMatchObject([
      { min: -7005n, max: 12345678901234567890123456789n },
      { min: -10_000n, max: 1n },
    ]);
  });

  test("long text bounds (D16)", async () => {
    const z = "z".repeat(300);
    const top = "\u{10FFFF}".repeat(100);
    const accents = "é".repeat(200);
    const rows = [{ v: z }, { v: `${z}a` }, { v: top }, { v: accents }];
    const { bytes, statistics } = encode({ v: "string" }, rows);
    const file = duck.file(bytes);
    expect(await duck.sql(`SELECT min(v) a, max(v) b FROM ${file}`)).toEqual([{ a: z, b: top }]);
    expect(await duck.sql(`SELECT count(*) n FROM ${file} WHERE v > repeat('z', 299)`)).toEqual([{ n: 4n }]);
    // All U+10FFFF: nothing of 64 bytes is above it, so there is no maximum.
    expect(statistics[0]).toMatchObject({ min: new TextEncoder().encode("z".repeat(64)), minExact: false });
    expect(statistics[0]!.max).toBeUndefined();
    expect(pageIndex(bytes, 0).columnIndex).toBeUndefined();

    const without = encode({ v: "string" }, [{ v: z }, { v: accents }]);
    // 64 bytes are 32 characters; the last of them is raised by one code point.
    expect(without.statistics[0]).toMatchObject({
      max: new TextEncoder().encode(`${"é".repeat(31)}ê`),
      maxExact: false,
    });
  });

  test("long binary bounds (D16)", () => {
    const ff = new Uint8Array(300).fill(0xff);
    const almost = ff.slice();
    almost[63] = 0x7f;
    expect(encode({ v: "binary" }, [{ v: ff }]).statistics[0]!.max).toBeUndefined();
    const raised = ff.slice(0, 64);
    raised[63] = 0x80;
    expect(encode({ v: "binary" }, [{ v: almost }]).statistics[0]).toMatchObject({ max: raised, maxExact: false });
    expect(encode({ v: "binary" }, [{ v: ff.slice(0, 64) }]).statistics[0]).toMatchObject({ maxExact: true });
  });

  test("never cuts a character", () => {
    const text = `a${"é".repeat(40)}`; // byte 64 is in the middle of a character
    const { statistics } = encode({ v: "string" }, [{ v: text }]);
    expect(statistics[0]!.min).toEqual(new TextEncoder().encode(`a${"é".repeat(31)}`));
    expect(statistics[0]!.max).toEqual(new TextEncoder().encode(`a${"é".repeat(30)}ê`));
  });

  test("surrogates are skipped on the way up", () => {
    const { statistics } = encode({ v: "string" }, [{ v: "\uD7FF".repeat(30) }], { statisticsTruncateBytes: 6 });
    expect(statistics[0]!.max).toEqual(new TextEncoder().encode("\uD7FF\uE000"));
  });

  test("text bounds are in byte order", () => {
    // U+FF5E sorts above U+1F986 by UTF-16, below it by UTF-8.
    const { statistics } = encode({ v: "string" }, [{ v: "\uFF5E" }, { v: "\u{1F986}" }]);
    expect(statistics[0]).toMatchObject({
      min: new TextEncoder().encode("\uFF5E"),
      max: new TextEncoder().encode("\u{1F986}"),
    });
  });

  test("all null", () => {
    const { bytes, statistics } = encode({ v: "string" }, [{ v: null }, { v: null }]);
    expect(statistics[0]).toMatchObject({ valueCount: 2, nullCount: 2, hasNaN: false });
    expect(statistics[0]).not.toHaveProperty("min");
    expect(pageIndex(bytes, 0).columnIndex?.null_pages).toEqual([true]);
  });
});

describe("files", () => {
  test("without rows (D21)", async () => {
    const schema = assignFieldIds(toSchema({ a: "int64", l: "list<string>" }));
    for (const batches of [[], [batchOf(schema, [])]]) {
      const { bytes, rows } = encodeParquet(schema, batches);
      expect(rows).toBe(0);
      expect(metadataOf(bytes).row_groups).toEqual([]);
      expect(await duck.rows(bytes)).toEqual([]);
      const columns = await duck.sql(`DESCRIBE SELECT * FROM ${duck.file(bytes)}`);
      expect(columns.map((column) => [column.column_name, column.column_type])).toEqual([
        ["a", "BIGINT"],
        ["l", "VARCHAR[]"],
      ]);
      expect(arrowRows(bytes)).toEqual([]);
    }
  });

  test("empty row groups are left out (D21)", () => {
    const schema = assignFieldIds(toSchema({ a: "int64" }));
    const encoder = new ParquetEncoder(schema);
    expect(encoder.writeRowGroup(batchOf(schema, []))).toEqual([]);
    expect(encoder.bytesWritten).toBe(0);
    encoder.writeRowGroup(batchOf(schema, [{ a: 1n }]));
    encoder.writeRowGroup(batchOf(schema, []));
    encoder.finish();
    expect(encoder.rows).toBe(1);
  });

  test("no columns (D05, D21)", () => {
    expect(() => encode({}, [])).toThrow(expect.objectContaining({ code: "no_columns" }));
    expect(() => encode({ x: { kind: "struct", fields: [] } }, [])).toThrow(
      expect.objectContaining({ code: "unknown_type" }),
    );
    expect(() => new ParquetEncoder(toSchema({ x: "unknown" }))).toThrow(
      expect.objectContaining({ code: "unknown_type" }),
    );
  });

  test("key-values and creator", async () => {
    const { bytes } = encode({ a: "int64" }, [{ a: 1n }], {
      keyValues: { "eider.table": "events", "eider.batch": 'upload-42 "é"' },
      createdBy: "test",
    });
    expect(metadataOf(bytes)).toMatchObject({
      created_by: "test",
      key_value_metadata: [
        { key: "eider.table", value: "events" },
        { key: "eider.batch", value: 'upload-42 "é"' },
      ],
    });
  });

  test("bytes come as they are made", () => {
    const schema = assignFieldIds(toSchema({ a: "int64" }));
    const encoder = new ParquetEncoder(schema);
    const first = encoder.writeRowGroup(batchOf(schema, [{ a: 1n }]));
    expect(new TextDecoder().decode(first[0])).toBe("PAR1");
    expect(encoder.bytesWritten).toBe(first.reduce((sum, part) => sum + part.length, 0));
    const last = encoder.finish();
    expect(encoder.bytesWritten).toBe([...first, ...last].reduce((sum, part) => sum + part.length, 0));
    expect(() => encoder.finish()).toThrow(/finished/);
  });

  test("a failing row group leaves the file as it was", async () => {
    const schema = assignFieldIds(toSchema({ a: "int64", "b!": "int64" }));
    const encoder = new ParquetEncoder(schema);
    const parts = encoder.writeRowGroup(batchOf(schema, [{ a: 1n, b: 1n }]));
    expect(() => encoder.writeRowGroup(batchOf(schema, [{ a: 2n, b: null }]))).toThrow();
    parts.push(...encoder.writeRowGroup(batchOf(schema, [{ a: 3n, b: 3n }])), ...encoder.finish());
    const bytes = new Uint8Array(Buffer.concat(parts));
    expect(await duck.rows(bytes)).toEqual([
      { a: 1n, b: 1n },
      { a: 3n, b: 3n },
    ]);
    expect(encoder.statistics()[0]).toMatchObject({ min: 1n, max: 3n, valueCount: 2 });
  });

  test("a batch of another shape is refused", () => {
    const schema = assignFieldIds(toSchema({ a: "int64" }));
    const other = assignFieldIds(toSchema({ a: "string" }));
    const encoder = new ParquetEncoder(schema);
    expect(() => encoder.writeRowGroup(batchOf(other, [{ a: "x" }]))).toThrow(
      expect.objectContaining({ code: "batch_mismatch" }),
    );
    const wide = assignFieldIds(toSchema({ a: "struct<d: decimal(9,2)>" }));
    const narrow = assignFieldIds(toSchema({ a: "struct<d: decimal(9,1)>" }));
    expect(() => new ParquetEncoder(wide).writeRowGroup(batchOf(narrow, [{ a: { d: 1n } }]))).toThrow(
      expect.objectContaining({ code: "batch_mismatch", message: expect.stringContaining("decimal(9,1)") }),
    );
    expect(() => encoder.writeRowGroup({ schema, length: 1, columns: [] })).toThrow(
      expect.objectContaining({ code: "batch_mismatch" }),
    );
  });
});

describe("compression", () => {
  const rows = Array.from({ length: 3000 }, (_, i) => ({ s: `value ${i % 50} and some more text`, n: BigInt(i) }));

  const codecsOf = (bytes: Uint8Array): (string | undefined)[] =>
    metadataOf(bytes).row_groups[0]!.columns.map((column) => column.meta_data!.codec);

  test.each<[Compression, number | undefined, string]>([
    ["uncompressed", undefined, "UNCOMPRESSED"],
    ["snappy", undefined, "SNAPPY"],
    ["gzip", undefined, "GZIP"],
    ["gzip", 1, "GZIP"],
    ["brotli", undefined, "BROTLI"],
    ["brotli", 9, "BROTLI"],
    ["zstd", 1, "ZSTD"],
    ["zstd", 3, "ZSTD"],
    ["lz4raw", undefined, "LZ4_RAW"],
  ])("%s, level %s", async (compression, compressionLevel, name) => {
    const options = { compression, ...(compressionLevel === undefined ? {} : { compressionLevel }) };
    await parquetReady(options);
    const bytes = await expectRows({ s: "string", n: "int64" }, rows, { ...options, dictionary: false });
    expect(codecsOf(bytes)).toEqual([name, name]);
  });

  test("may differ from column to column", async () => {
    await parquetReady({ compression: "gzip" });
    const columns = { s: { compression: "gzip" }, "p.x": { compression: "uncompressed" } } as const;
    const nested = rows.map(({ s, n }) => ({ s, p: { x: n, y: s } }));
    const bytes = await expectRows({ s: "string", p: "struct<x: int64, y: string>" }, nested, {
      compression: "snappy",
      columns,
    });
    expect(codecsOf(bytes)).toEqual(["GZIP", "UNCOMPRESSED", "SNAPPY"]);
  });

  test.each<[Compression, number]>([
    ["zstd", 0],
    ["zstd", 23],
    ["gzip", 10],
    ["brotli", 1.5],
  ])("%s has no level %s", (compression, compressionLevel) => {
    expect(() => encode({ a: "int64" }, [], { compression, compressionLevel })).toThrow(
      expect.objectContaining({ code: "bad_option" }),
    );
  });

  test("a column that does not shrink is left alone", () => {
    // A linear congruential generator is random enough for zstd.
    let seed = 1n;
    const noise = Array.from({ length: 2000 }, () => {
      seed = (seed * 6364136223846793005n + 1442695040888963407n) % 2n ** 64n;
      return { n: seed - 2n ** 63n, s: "same" };
    });
    const { bytes } = encode({ n: "int64", s: "string" }, noise, { dictionary: false });
    expect(metadataOf(bytes).row_groups[0]!.columns.map((column) => column.meta_data!.codec)).toEqual([
      "UNCOMPRESSED",
      "ZSTD",
    ]);
  });

  test.each(["lz4", "lzo", "nonsense"])("%s is refused (D26)", (compression) => {
    expect(() => encode({ a: "int64" }, [], { compression: compression as "zstd" })).toThrow(
      expect.objectContaining({
        code: "unsupported_compression",
        message: expect.stringMatching(/uncompressed.*zstd/),
      }),
    );
  });
});

describe("encodings", () => {
  const encodingsOf = (bytes: Uint8Array): (string | undefined)[] =>
    metadataOf(bytes).row_groups[0]!.columns.map(
      (column) => column.meta_data!.encoding_stats?.find((stats) => stats.page_type === "DATA_PAGE")?.encoding,
    );

  test("are chosen by what is smaller", async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => ({
      rising: BigInt(i) * 1000n,
      few: `status ${i % 5}`,
      unique: `id ${Math.imul(i, 0x9e3779b1) >>> 0}`,
      few_floats: (i % 4) / 4,
      floats: Math.sin(i),
      codes: [200, 404, 500][i % 3]!,
    }));
    const bytes = await expectRows(
      { rising: "int64", few: "string", unique: "string", few_floats: "float64", floats: "float64", codes: "int32" },
      rows,
    );
    expect(encodingsOf(bytes)).toEqual([
      "DELTA_BINARY_PACKED",
      "RLE_DICTIONARY",
      "DELTA_LENGTH_BYTE_ARRAY",
      "RLE_DICTIONARY",
      "PLAIN",
      "RLE_DICTIONARY",
    ]);
  });

  test("a dictionary that grows too large is given up", async () => {
    // Under the limit of 65,536 entries a sample would still think it pays: half of the values are one value.
    const numbers = Array.from({ length: 140_000 }, (_, i) => ({ n: i % 2 === 0 ? 0.5 : i }));
    const many = encode({ n: "float64" }, numbers);
    expect(encodingsOf(many.bytes)).toEqual(["BYTE_STREAM_SPLIT"]);
    expect(await duck.sql(`SELECT sum(n) s, count(DISTINCT n) d FROM ${duck.file(many.bytes)}`)).toEqual([
      { s: 70_000 * 0.5 + 70_000 * 70_000, d: 70_001n },
    ]);
    const texts = Array.from({ length: 8000 }, (_, i) => ({ s: `${i % 4000}`.padEnd(400, "x") }));
    const large = encode({ s: "string" }, texts);
    expect(encodingsOf(large.bytes)).toEqual(["DELTA_LENGTH_BYTE_ARRAY"]);
    expect(await duck.rows(large.bytes)).toEqual(texts);
  });

  const texts = [..."abcdefghijkl"].map((c, i) => `${"the same beginning ".repeat(i % 3)}${c.repeat(i % 5)}`);
  test.each<[ParquetEncoding, string, Row[string][]]>([
    ["PLAIN", "string", texts],
    ["PLAIN", "int64", N64],
    ["RLE_DICTIONARY", "string", texts],
    ["RLE_DICTIONARY", "int32", [5, -5, 2 ** 31 - 1]],
    ["RLE_DICTIONARY", "float64", [0.5, -0, 1e300]],
    ["RLE_DICTIONARY", "uuid", [uuidBytes("00112233-4455-6677-8899-aabbccddeeff"), uuidBytes("f".repeat(32))]],
    ["DELTA_BINARY_PACKED", "int8", [-128, 127, 0]],
    ["DELTA_BINARY_PACKED", "date", [-719162, 0, 2932896]],
    ["DELTA_BINARY_PACKED", "uint64", [0n, 2n ** 63n, 2n ** 64n - 1n]],
    ["DELTA_LENGTH_BYTE_ARRAY", "binary", [new Uint8Array(0), Uint8Array.of(0, 255)]],
    ["DELTA_BYTE_ARRAY", "string", texts],
    ["DELTA_BYTE_ARRAY", "json", ['{"a":1}', '{"a":2}', "[]"]],
    ["BYTE_STREAM_SPLIT", "float32", [0.5, -1.25, 2 ** 127]],
    ["BYTE_STREAM_SPLIT", "float64", [0.1, -0, 5e-324, Number.POSITIVE_INFINITY]],
  ])("%s of %s can be asked for", async (encoding, type, values) => {
    for (const count of [1, 2, 9, 400]) {
      const rows = Array.from({ length: count }, (_, i) => ({ v: i % 7 === 3 ? null : values[i % values.length]! }));
      const bytes = await expectRows({ v: type }, rows, { columns: { v: { encoding } }, pageRows: 150 });
      expect(encodingsOf(bytes)).toEqual([encoding]);
    }
  });

  test("what a type does not have is refused, and what would be possible is named", () => {
    const ask = (encoding: string): unknown =>
      encode({ a: "float64" }, [], { columns: { a: { encoding: encoding as ParquetEncoding } } });
    for (const encoding of ["DELTA_BINARY_PACKED", "DELTA_BYTE_ARRAY", "BIT_PACKED", "toString"]) {
      expect(() => ask(encoding)).toThrow(
        expect.objectContaining({
          code: "unsupported_encoding",
          message: expect.stringMatching(/PLAIN, RLE_DICTIONARY, BYTE_STREAM_SPLIT$/),
        }),
      );
    }
    expect(() => encode({ a: "int64" }, [], { columns: { b: {} } })).toThrow(
      expect.objectContaining({ code: "no_such_column", subject: "b" }),
    );
  });

  test("floats are split into streams where that makes them smaller", async () => {
    // Measurements that move slowly share their high bytes; the bytes of a sine are noise but for a few bits.
    const rows = Array.from({ length: 3000 }, (_, i) => ({ slow: (i * 7919) / 100, noise: Math.sin(i) }));
    const bytes = await expectRows({ slow: "float64", noise: "float64" }, rows);
    expect(encodingsOf(bytes)).toEqual(["BYTE_STREAM_SPLIT", "PLAIN"]);
    const stored = await expectRows({ slow: "float64", noise: "float64" }, rows, { compression: "uncompressed" });
    expect(encodingsOf(stored)).toEqual(["PLAIN", "PLAIN"]);
  });

  test("large dictionaries keep their values apart", async () => {
    // The same lengths and last bytes, which is what entries are told apart by first.
    const rows = Array.from({ length: 9000 }, (_, i) => ({
      s: `${String(i % 3000).padStart(8, "0")} the same end`,
      n: BigInt(i % 3000) << 40n,
      k: (i * 7) % 3000,
    }));
    const asked = { encoding: "RLE_DICTIONARY" } as const;
    const bytes = await expectRows({ s: "string", n: "int64", k: "int32" }, rows, {
      columns: { s: asked, n: asked, k: asked },
    });
    expect(encodingsOf(bytes)).toEqual(["RLE_DICTIONARY", "RLE_DICTIONARY", "RLE_DICTIONARY"]);
  });

  test("dictionaries can be forbidden", () => {
    const rows = Array.from({ length: 1000 }, () => ({ s: "same" }));
    expect(encodingsOf(encode({ s: "string" }, rows, { dictionary: false }).bytes)).toEqual([
      "DELTA_LENGTH_BYTE_ARRAY",
    ]);
  });

  test("runs of any length, of levels and of entries", async () => {
    // Values 0, 1, 1, 2, 2, 2, … and between them nulls in runs that begin anywhere within an eight.
    const rows = Array.from({ length: 40 }, (_, n) => n).flatMap((n) => [
      ...Array.from({ length: n + 1 }, () => ({ v: `entry ${n}`, k: 300 - n, l: n % 2 ? [n] : [n, n, n] })),
      ...Array.from({ length: (n * 5) % 21 }, () => ({ v: null, k: 300 - n, l: null })),
    ]);
    // 300 more entries first: their numbers take more than a byte, also where they are repeated.
    const before = Array.from({ length: 300 }, (_, i) => ({ v: `first ${i}`, k: i + 1000, l: [] }));
    const asked = { encoding: "RLE_DICTIONARY" } as const;
    await expectRows({ v: "string", k: "int32", l: "list<int32>" }, [...before, ...rows], {
      columns: { v: asked, k: asked },
    });
  });

  test("deltas wrap around", async () => {
    const rows = Array.from({ length: 300 }, (_, i) => ({
      a: i % 2 === 0 ? -(2 ** 31) : 2 ** 31 - 1,
      b: [-(2n ** 63n), 2n ** 63n - 1n, 0n, -1n][i % 4]!,
      c: BigInt(i % 40 === 0 ? 2n ** 40n : i),
      // Differences of 2³¹ − 1 and −2³¹ in turn, which differ by all that 32 bits hold.
      d: i % 2 === 0 ? 0 - i / 2 : 2 ** 31 - 1 - (i - 1) / 2,
      e: i % 2 === 0 ? -BigInt(i / 2) : 2n ** 63n - 1n - BigInt((i - 1) / 2),
    }));
    const schema = { a: "int32", b: "int64", c: "int64", d: "int32", e: "int64" } as const;
    await expectRows(schema, rows, { dictionary: false });
    const asked = { encoding: "DELTA_BINARY_PACKED" } as const;
    await expectRows(schema, rows, { columns: { a: asked, b: asked, c: asked, d: asked, e: asked } });
  });

  test("pages of nulls between pages of values", async () => {
    const rows = Array.from({ length: 300 }, (_, i) => ({
      a: i >= 100 && i < 200 ? null : BigInt(i),
      s: i >= 100 && i < 200 ? null : `v${i % 3}`,
    }));
    await expectRows({ a: "int64", s: "string" }, rows, { pageRows: 50 });
    await expectRows({ a: "int64", s: "string" }, rows, { pageRows: 50, dictionary: false });
  });
});
