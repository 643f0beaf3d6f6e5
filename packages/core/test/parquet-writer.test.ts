import { parquetMetadata } from "hyparquet";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parquetReady } from "../src/compression.js";
import { ParquetWriter, type ParquetWriterOptions } from "../src/parquet-writer.js";
import { assignFieldIds, toSchema } from "../src/schema.js";
import { batchOf } from "./column-builder.js";
import { DuckReader } from "./parquet-readers.js";

const duck = new DuckReader();
beforeAll(() => parquetReady());
afterAll(() => {
  duck.close();
});

const schema = assignFieldIds(toSchema({ n: "int64", s: "string" }));

/** Batches of the given sizes with rows 0, 1, 2, … whose texts have `length` characters. */
function write(sizes: readonly number[], options: ParquetWriterOptions, length: (row: number) => number = () => 10) {
  const writer = new ParquetWriter(schema, options);
  const parts: Uint8Array[] = [];
  let row = 0;
  for (const size of sizes) {
    const rows = Array.from({ length: size }, () => ({ n: BigInt(row), s: "x".repeat(length(row++)) }));
    parts.push(...writer.write(batchOf(schema, rows)));
    expect(writer.rows).toBe(row);
    expect(writer.bytesWritten).toBe(parts.reduce((sum, part) => sum + part.length, 0));
  }
  parts.push(...writer.finish());
  const bytes = new Uint8Array(Buffer.concat(parts));
  expect(writer.bytesWritten).toBe(bytes.length);
  const groups = parquetMetadata(bytes.buffer).row_groups.map((group) => Number(group.num_rows));
  return { bytes, groups, statistics: writer.statistics() };
}

test.each([
  ["small batches are joined", [3, 3, 3, 3], [5, 5, 2]],
  ["a large batch is cut", [12], [5, 5, 2]],
  ["batches that fit leave nothing", [5, 5], [5, 5]],
  ["empty batches count for nothing", [0, 4, 0, 1, 0], [5]],
  ["no rows", [0], []],
])("row groups by rows: %s", async (_name, sizes, expected) => {
  const { bytes, groups, statistics } = write(sizes, { rowGroupRows: 5 });
  expect(groups).toEqual(expected);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  expect(await duck.sql(`SELECT count(*) c, sum(n)::BIGINT s FROM ${duck.file(bytes)}`)).toEqual([
    { c: BigInt(total), s: total === 0 ? null : BigInt((total * (total - 1)) / 2) },
  ]);
  if (total > 0) expect(statistics[0]).toMatchObject({ min: 0n, max: BigInt(total - 1) });
});

test("row groups by bytes", () => {
  // 8 bytes of n, 4 of offset and 100 of text: eight rows are below 1,000, nine are not.
  const { groups } = write([4, 4, 4, 4], { rowGroupBytes: 1000 }, () => 100);
  expect(groups).toEqual([8, 8]);
});

test("a row larger than a row group has one of its own", async () => {
  const { bytes, groups } = write([1, 1, 1], { rowGroupBytes: 50 }, (row) => (row === 1 ? 5000 : 1));
  expect(groups).toEqual([1, 1, 1]);
  expect(await duck.sql(`SELECT list(length(s) ORDER BY n) l FROM ${duck.file(bytes)}`)).toEqual([
    { l: [1n, 5000n, 1n] },
  ]);
});

test.each([0, -1, 1.5, Number.NaN])("%s rows or bytes are refused", (value) => {
  for (const option of ["rowGroupRows", "rowGroupBytes", "pageRows", "statisticsTruncateBytes"]) {
    expect(() => new ParquetWriter(schema, { [option]: value })).toThrow(
      expect.objectContaining({ code: "bad_option", message: expect.stringContaining(option) }),
    );
  }
});
