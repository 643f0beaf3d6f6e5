import { createHash } from "node:crypto";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parquetReady } from "../src/compression.js";
import { encodeParquet } from "../src/parquet-encoder.js";
import { excerptFooter, readStoredChunks } from "../src/parquet-excerpt.js";
import { parquetFooterBytes } from "../src/parquet-footer.js";
import { assignFieldIds, toSchema } from "../src/schema.js";
import { batchOf } from "./column-builder.js";
import { DuckReader } from "./parquet-readers.js";

beforeAll(() => parquetReady());

const duck = new DuckReader();
afterAll(() => duck.close());

const sha256 = (parts: readonly Uint8Array[]): string => {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
};

/** Two row groups of 1,000 rows: `a`, a struct `p` of two leaves, and `c` (uncompressed; zeros would be read as values). */
function example(): Uint8Array {
  const schema = assignFieldIds(toSchema({ a: "int64", p: "struct<k: int64, v: string>", c: "float64" }));
  const group = (first: number) =>
    batchOf(
      schema,
      Array.from({ length: 1000 }, (_, i) => ({
        a: BigInt(first + i),
        p: i % 7 === 0 ? null : { k: BigInt(i % 3), v: `v${i % 5}` },
        c: (first + i) / 8,
      })),
    );
  const columns = { c: { compression: "uncompressed", encoding: "PLAIN" } } as const;
  return encodeParquet(schema, [group(0), group(1000)], { columns, chunkDigest: (parts) => sha256(parts) }).bytes;
}

/** The chunks of some columns one behind the other, with a footer. */
function excerpt(bytes: Uint8Array, fieldIds: readonly number[]): Uint8Array {
  const footer = bytes.subarray(bytes.length - parquetFooterBytes(bytes));
  const parts: Uint8Array[] = [bytes.subarray(0, 4)];
  let end = 4;
  const offsets = readStoredChunks(footer).map((chunk) => {
    if (!fieldIds.includes(chunk.fieldId)) return undefined;
    parts.push(bytes.subarray(chunk.offset, chunk.offset + chunk.bytes));
    end += chunk.bytes;
    return end - chunk.bytes;
  });
  return Buffer.concat([...parts, excerptFooter(footer, offsets)]);
}

test("chunks are told with their columns, and digests of their very bytes", () => {
  const bytes = example();
  const chunks = readStoredChunks(bytes);
  // `p` has id 2, its fields 3 and 4.
  expect(chunks.map(({ fieldId }) => fieldId)).toEqual([1, 2, 2, 5, 1, 2, 2, 5]);
  let end = 4;
  for (const chunk of chunks) {
    expect(chunk.offset).toBe(end);
    end += chunk.bytes;
    expect(chunk.digest).toBe(sha256([bytes.subarray(chunk.offset, end)]));
  }
});

test("files without digests say so", () => {
  const schema = assignFieldIds(toSchema({ a: "int64" }));
  const { bytes } = encodeParquet(schema, [batchOf(schema, [{ a: 1n }])]);
  expect(readStoredChunks(bytes)).toEqual([{ fieldId: 1, offset: 4, bytes: expect.any(Number), digest: undefined }]);
});

test("an excerpt's columns are read as those of the file, by DuckDB and hyparquet", async () => {
  const bytes = example();
  for (const [fieldIds, columns] of [
    [[1], "a"],
    [[2], "p"],
    [[1, 5], "a, c"],
    [[1, 2, 5], "*"],
  ] as const) {
    const file = duck.file(excerpt(bytes, fieldIds));
    const select = `SELECT ${columns} FROM`;
    expect(await duck.sql(`${select} ${file}`)).toEqual(await duck.sql(`${select} ${duck.file(bytes)}`));
  }
  const part = excerpt(bytes, [2]);
  const file = part.buffer.slice(part.byteOffset, part.byteOffset + part.length) as ArrayBuffer;
  const whole = bytes.slice().buffer;
  expect(await parquetReadObjects({ file, columns: ["p"], compressors })).toEqual(
    await parquetReadObjects({ file: whole, columns: ["p"], compressors }),
  );
});

test("what an excerpt has not cannot be read, and needs not be for counts and statistics", async () => {
  const bytes = example();
  const file = duck.file(excerpt(bytes, [1]));
  for (const wanted of ["sum(c)", "max(p.v)", "count(p)", "count(*) FILTER (WHERE c > 1)"]) {
    await expect(duck.sql(`SELECT ${wanted} FROM ${file}`), wanted).rejects.toThrow(/outside file/);
  }
  await expect(duck.sql(`SELECT a FROM ${file} WHERE c > 1`)).rejects.toThrow(/outside file/);
  expect(await duck.sql(`SELECT count(*)::INT AS n, sum(a)::INT AS s FROM ${file}`)).toEqual([{ n: 2000, s: 1999000 }]);
  expect(await duck.sql(`SELECT a::INT AS a FROM ${duck.file(excerpt(bytes, []))} WHERE c > 1e6`)).toEqual([]);
});

test("schema, statistics, key-values and orders stay; page indexes do not", () => {
  const bytes = example();
  const metadata = (of: Uint8Array) => parquetMetadata(of.slice().buffer);
  const before = metadata(bytes);
  const after = metadata(excerpt(bytes, [5]));
  expect(after).toMatchObject({ schema: before.schema, key_value_metadata: before.key_value_metadata });
  expect(after.num_rows).toBe(2000n);
  for (const [i, group] of after.row_groups.entries()) {
    for (const [j, chunk] of group.columns.entries()) {
      const was = before.row_groups[i]!.columns[j]!;
      expect(was.column_index_offset).toBeDefined();
      expect(chunk.column_index_offset).toBeUndefined();
      expect(chunk.offset_index_offset).toBeUndefined();
      expect(chunk.meta_data?.statistics).toEqual(was.meta_data?.statistics);
      expect(chunk.meta_data?.encodings).toEqual(was.meta_data?.encodings);
    }
  }
});
