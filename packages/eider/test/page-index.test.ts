/**
 * The page index of streamed files, by readers that skip pages through it: hyparquet (`usePageIndex`, filters) and
 * parquet-rs (row ranges). Row groups and pages have sizes around the steps of variable-length integers. What a filter
 * has to find is taken from the source rows.
 */

import { MemoryStore } from "@eider/storage";
import { tableFromIPC } from "apache-arrow";
import { type ParquetQueryFilter, parquetMetadata, parquetReadObjects, readOffsetIndex } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { readParquet } from "parquet-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { type ObjectWriterOptions, ParquetObjectWriter } from "../src/index.js";
import { bytesOf, keysOf } from "./support/objects.js";

interface Row {
  readonly id: bigint;
  readonly s: string | null;
  readonly f: number | null;
  readonly at: Date;
  readonly l: readonly (readonly ({ readonly x: string; readonly y: bigint | null } | null)[] | null)[] | null;
}

const SCHEMA = {
  "id!": "int64",
  s: "string",
  f: "float64",
  "at!": "timestamptz",
  l: "list<list<struct<x!: string, y: int64>>>",
} as const;
const COUNT = 40_000;

/** Every kind of null and empty at every depth; rows 200 to 399 have no text at all, so a page of nulls. */
function rowOf(i: number): Row {
  const struct = { x: `x${i % 7}`, y: i % 3 === 0 ? null : BigInt(i) };
  const shapes: readonly Row["l"][] = [
    null,
    [],
    [null],
    [[]],
    [[null]],
    [[struct]],
    [[struct, null], [], null, [struct]],
  ];
  return {
    id: BigInt(i),
    s: (i >= 200 && i < 400) || i % 11 === 0 ? null : `${"é".repeat(i % 5 === 0 ? 60 : 1)}${i % 1000}`,
    f: i % 13 === 0 ? Number.NaN : i % 17 === 0 ? -0 : i % 19 === 0 ? null : i / 8,
    at: new Date(1_900_000_000_000 + i * 1000),
    l: shapes[i % shapes.length]!,
  };
}

const ROWS = Array.from({ length: COUNT }, (_, i) => rowOf(i));

async function write(options: ObjectWriterOptions): Promise<Uint8Array<ArrayBuffer>> {
  const store = new MemoryStore();
  const writer = await ParquetObjectWriter.open<Row>(store, { schema: SCHEMA, id: "w", ...options });
  for (let at = 0; at < COUNT; at += 777) await writer.write(ROWS.slice(at, at + 777));
  await writer.close();
  const [key, ...others] = await keysOf(store);
  expect(others).toEqual([]);
  return bytesOf(store, key!);
}

/** What of a file was read. */
function counted(bytes: Uint8Array<ArrayBuffer>) {
  const file = {
    byteLength: bytes.length,
    read: 0,
    slice(start: number, end: number = bytes.length) {
      file.read += end - start;
      return bytes.slice(start, end).buffer;
    },
  };
  return file;
}

describe.each([
  [127, 16_383],
  [128, 16_384],
  [129, 16_385],
  [64, 128],
])("pages of %i rows, row groups of %i", (pageRows, rowGroupRows) => {
  let bytes: Uint8Array<ArrayBuffer>;
  beforeAll(async () => {
    bytes = await write({ pageRows, rowGroupRows });
  });

  it("has at least three row groups, absolute offsets in each, and column indexes before offset indexes", () => {
    const { row_groups: groups } = parquetMetadata(bytes.buffer);
    expect(
      groups
        .map(({ num_rows }) => Number(num_rows))
        .slice(0, -1)
        .every((rows) => rows === rowGroupRows),
    ).toBe(true);
    expect(groups.length).toBeGreaterThanOrEqual(3);
    const chunks = groups.flatMap(({ columns }) => columns);
    const offsets = chunks.map(({ offset_index_offset }) => Number(offset_index_offset));
    expect(Math.min(...offsets)).toBeGreaterThan(Math.max(...chunks.map((c) => Number(c.column_index_offset ?? 0n))));
    expect(offsets).toEqual([...offsets].sort((a, b) => a - b));
  });

  it("says where each page is: they follow each other and fill their column chunk", () => {
    for (const { columns, num_rows } of parquetMetadata(bytes.buffer).row_groups) {
      for (const { meta_data: chunk, offset_index_offset: at, offset_index_length: length } of columns) {
        const view = new DataView(bytes.buffer, Number(at), length);
        const { page_locations: pages } = readOffsetIndex({ view, offset: 0 });
        const starts = pages.map(({ first_row_index }) => Number(first_row_index));
        expect(starts).toEqual(Array.from({ length: Math.ceil(Number(num_rows) / pageRows) }, (_, i) => i * pageRows));
        let next = chunk!.data_page_offset;
        for (const page of pages) {
          expect(page.offset).toBe(next);
          next += BigInt(page.compressed_page_size);
        }
        expect(next).toBe((chunk!.dictionary_page_offset ?? chunk!.data_page_offset) + chunk!.total_compressed_size);
      }
    }
  });

  it("reads back equal: every null and empty at every depth", async () => {
    const read = await parquetReadObjects({ file: counted(bytes), compressors });
    expect(read.length).toBe(COUNT);
    for (let i = 0; i < COUNT; i++) if (i < 500 || i % 97 === 0) expect(read[i]).toEqual(ROWS[i]);
  });

  it.each<[string, ParquetQueryFilter, (row: Row) => boolean]>([
    ["a value", { id: { $eq: 16_384n } }, ({ id }) => id === 16_384n],
    ["the last row", { id: { $eq: BigInt(COUNT - 1) } }, ({ id }) => id === BigInt(COUNT - 1)],
    ["a range over row groups", { id: { $gte: 16_300n, $lt: 16_500n } }, ({ id }) => id >= 16_300n && id < 16_500n],
    ["nothing", { id: { $gt: BigInt(COUNT) } }, () => false],
    ["text that was cut in the index", { s: { $eq: `${"é".repeat(60)}995` } }, ({ s }) => s === `${"é".repeat(60)}995`],
    ["text behind a page of nulls", { s: { $eq: "é401" } }, ({ s }) => s === "é401"],
    ["floats beside NaN", { f: { $gt: 4990 } }, ({ f }) => f !== null && f > 4990],
    ["zero of either sign", { f: { $eq: 0 } }, ({ f }) => f === 0],
    ["instants", { at: { $lt: new Date(1_900_000_003_000) } }, ({ at }) => at < new Date(1_900_000_003_000)],
  ])("a reader that prunes by it finds %s", async (_, filter, expected) => {
    const file = counted(bytes);
    const found = await parquetReadObjects({ file, compressors, filter, usePageIndex: true, columns: ["id"] });
    expect(found.map(({ id }) => id)).toEqual(ROWS.filter(expected).map(({ id }) => id));
  });

  it("lets a reader leave pages out", async () => {
    const few = counted(bytes);
    const filter = { id: { $eq: 20_000n } };
    const found = await parquetReadObjects({
      file: few,
      compressors,
      columns: ["id", "at"],
      filter,
      usePageIndex: true,
    });
    expect(found).toEqual([{ id: 20_000n, at: ROWS[20_000]!.at }]);
    // By statistics of row groups alone, the two column chunks of a row group are read. The smallest files are indexes for the most part.
    const grouped = counted(bytes);
    await parquetReadObjects({ file: grouped, compressors, columns: ["id", "at"], filter });
    if (rowGroupRows > 1000) expect(few.read).toBeLessThan(grouped.read);
  });

  it.each([
    [0, 1],
    [126, 4],
    [16_380, 10],
    [32_760, 20],
    [COUNT - 3, 3],
  ])("parquet-rs skips by it to row %i", (offset, limit) => {
    const table = tableFromIPC(readParquet(bytes, { offset, limit }).intoIPCStream());
    expect(table.toArray().map((row) => row.id)).toEqual(ROWS.slice(offset, offset + limit).map(({ id }) => id));
    expect(table.toArray().map((row) => row.s)).toEqual(ROWS.slice(offset, offset + limit).map(({ s }) => s));
  });
});

describe("an index that is off", () => {
  it.each<[ObjectWriterOptions, boolean, boolean]>([
    [{ pageIndex: false }, false, false],
    [{ pageIndex: true, statistics: "chunk" }, true, false],
    [{ pageIndex: true, statistics: "none" }, true, false],
    [{ pageIndex: true, statistics: "page" }, true, true],
  ])("%j leaves no offset behind", async (options, hasOffsets, hasColumns) => {
    const bytes = await write({ ...options, rowGroupRows: 16_384, pageRows: 128 });
    const { row_groups: groups } = parquetMetadata(bytes.buffer);
    for (const { columns } of groups) {
      const [id] = columns;
      expect(id!.offset_index_offset !== undefined).toBe(hasOffsets);
      expect(id!.column_index_offset !== undefined).toBe(hasColumns);
      // NaN: a reader would take bounds for those of all values.
      expect(columns[2]!.column_index_offset).toBeUndefined();
    }
    const filter = { id: { $eq: 20_000n } };
    const found = await parquetReadObjects({ file: counted(bytes), compressors, filter, usePageIndex: true });
    expect(found).toEqual([ROWS[20_000]]);
  });
});
