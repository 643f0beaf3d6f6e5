/** Parts of JSON, Arrow and Parquet: cut between rows, record batches and row groups, the same way each time. */

import { createReadStream, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { DuckDBInstance } from "@duckdb/node-api";
import * as arrow from "apache-arrow";
import { Lake, type Source } from "eider";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chunked } from "./support/bytes.js";
import { runChild } from "./support/child.js";
import { openCounted } from "./support/counted-lake.js";
import { temporaryFolder } from "./support/folder.js";

const ROWS = 10_240;
/** Its rows, whatever they came as: `id` counts from 0, and the sum is that of all numbers below ROWS. */
const TOTAL = "SELECT count(*) AS n, count(DISTINCT id) AS d, sum(id) AS s FROM t";
const ALL = { n: 10_240n, d: 10_240n, s: 52_423_680n };

const text = (id: number): string => `row ${id}, "é"]`;
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const recordBatch = (first: number, rows: number): arrow.RecordBatch => {
  const ids = Array.from({ length: rows }, (_, i) => first + i);
  const column = arrow.vectorFromArray(ids.map(text), new arrow.Utf8());
  return new arrow.Table({ id: arrow.makeVector(Int32Array.from(ids)), text: column }).batches[0]!;
};

const folder = temporaryFolder();
const files = {
  array: join(folder, "array.json"),
  objects: join(folder, "objects.json"),
  stream: join(folder, "stream.arrows"),
  file: join(folder, "file.arrow"),
  parquet: join(folder, "file.parquet"),
};
/** Rows of each part at a `partBytes` that makes five of them, by hand: see where the files are made. */
const PART: Record<keyof typeof files, { partBytes: number; rows: number[] }> = {
  // Rows of one size: a part ends in front of the first that begins 2048 rows behind its begin.
  array: { partBytes: 2048 * 49, rows: [2048, 2048, 2048, 2048, 2048] },
  objects: { partBytes: 2048 * 49, rows: [2048, 2048, 2048, 2048, 2048] },
  // Ten batches of 1024 rows, of which two have reached it.
  stream: { partBytes: 30_000, rows: [2048, 2048, 2048, 2048, 2048] },
  file: { partBytes: 30_000, rows: [2048, 2048, 2048, 2048, 2048] },
  // Five row groups of 2048 rows.
  parquet: { partBytes: 1, rows: [2048, 2048, 2048, 2048, 2048] },
};
const names = Object.keys(files) as (keyof typeof files)[];
let duckdb: DuckDBInstance;

async function sql(statement: string): Promise<void> {
  const connection = await duckdb.connect();
  await connection.run(statement);
  connection.closeSync();
}

beforeAll(async () => {
  duckdb = await DuckDBInstance.create();
  // 49 bytes each, with an é of two and what separates them; the array's first row stands behind its bracket.
  const row = (id: number): string => JSON.stringify({ id, text: text(id) }).padEnd(46);
  const rows = Array.from({ length: ROWS }, (_, id) => row(id));
  writeFileSync(files.array, `[${rows.join(",\n")}]`);
  writeFileSync(files.objects, rows.join(" \n"));
  const batches = Array.from({ length: 10 }, (_, i) => recordBatch(1024 * i, 1024));
  writeFileSync(files.stream, arrow.RecordBatchStreamWriter.writeAll(batches).toUint8Array(true));
  // Without the schema at its front: it has to be read by its footer.
  writeFileSync(files.file, arrow.RecordBatchFileWriter.writeAll(batches).toUint8Array(true));
  await sql(`COPY (SELECT range::INTEGER AS id, 'row ' || range || ', "é"]' AS text FROM range(${ROWS}))
    TO '${files.parquet}' (ROW_GROUP_SIZE 2048, COMPRESSION uncompressed)`);
});
afterAll(() => duckdb.closeSync());

describe.each(names)("%s", (name) => {
  const { partBytes, rows } = PART[name];
  const file = files[name];
  const options = { batchId: "b", partBytes };

  it("is cut by its content, from wherever it comes, and gives its rows", async () => {
    const { lake, table } = await openCounted();
    const first = await table.appendParts({ file }, options);
    expect(first.receipts.map((receipt) => receipt.rows)).toEqual(rows);
    expect(first).toMatchObject({ status: "committed", parts: 5, partsCommitted: 5, rows: ROWS, rowsAdded: ROWS });
    expect(await lake.sql(TOTAL)).toEqual([ALL]);
    expect(await lake.sql("SELECT text FROM t WHERE id IN (0, 2047, 2048, 10239) ORDER BY id")).toEqual(
      [0, 2047, 2048, 10_239].map((id) => ({ text: text(id) })),
    );
    const all = readFileSync(file);
    const sources: Source[] = [
      createReadStream(file, { highWaterMark: 777 }),
      chunked(gzipSync(all), 1000),
      new Uint8Array(all),
      new Blob([new Uint8Array(all)]),
    ];
    for (const source of sources) {
      expect(await table.appendParts(source, options)).toEqual({
        ...first,
        status: "duplicate",
        partsCommitted: 0,
        rowsAdded: 0,
      });
    }
    await lake.close();
  });

  it("goes on where it broke off, and stages nothing of what is there", async () => {
    const { lake, table, puts } = await openCounted();
    const stop = new AbortController();
    const stopped = table.appendParts(createReadStream(file), {
      ...options,
      signal: stop.signal,
      onProgress: ({ part }) => {
        if (part === 3) stop.abort(new Error("enough"));
      },
    });
    await expect(stopped).rejects.toThrow("enough");
    expect((await table.batches()).map(({ batchId }) => batchId)).toEqual(["b/2", "b/1"]);
    puts();
    expect(await table.appendParts({ file }, options)).toMatchObject({ parts: 5, partsCommitted: 3, rowsAdded: 6144 });
    expect(puts()).toBe(3);
    expect(await lake.sql(TOTAL)).toEqual([ALL]);
    await lake.close();
  });

  it("is compared: what has changed is a conflict of its part", async () => {
    const { lake, table } = await openCounted();
    await table.appendParts({ file }, options);
    const changed = new Uint8Array(readFileSync(file));
    // A byte of the text of row 5000, which is the third part's.
    const at = Buffer.from(changed).indexOf("row 5000,");
    changed[at] = "R".charCodeAt(0);
    await expect(table.appendParts(changed, options)).rejects.toThrow(/"b\/3" .* other content/);
    await expect(table.appendParts({ file }, { ...options, partBytes: partBytes * 2 })).rejects.toMatchObject({
      code: "batch_conflict",
    });
    expect(await lake.sql(TOTAL)).toEqual([ALL]);
    await lake.close();
  });

  it("killed (SIGKILL) when a part's file was put and when it is committed: another try has all rows once", async () => {
    const where = join(folder, `killed-${name}`);
    await (await Lake.open(where)).close();
    const argument = { lake: where, table: "t", file, ...options };
    for (const kill of [
      { part: 2, moment: "put" },
      { part: 3, moment: "committed" },
    ]) {
      const child = await runChild("append-parts", { ...argument, kill });
      expect(child).toMatchObject({ code: null, signal: "SIGKILL", stderr: "" });
    }
    const last = await runChild("append-parts", argument);
    expect(last).toMatchObject({ code: 0, stderr: "" });
    expect(last.lines.at(-1)).toMatchObject({ status: "committed", parts: 5, partsCommitted: 2, rows: ROWS });
    await using lake = await Lake.open(where, { mode: "open" });
    expect(await lake.sql(TOTAL)).toEqual([ALL]);
  });
});

describe("JSON", () => {
  it("is what append takes: objects, and arrays of whatever is in them", async () => {
    const { lake, table } = await openCounted();
    const one = { batchId: "object", partBytes: 1, format: "json" } as const;
    expect(await table.appendParts(bytes('{"id":\n1}'), one)).toMatchObject({ parts: 1, rows: 1 });
    const nothing = { batchId: "nothing", partBytes: 1 };
    expect(await table.appendParts(bytes(" [ ]\n"), nothing)).toMatchObject({ parts: 1, rows: 0 });
    // Elements that are no objects are rejects, each by its line in the whole source.
    const mixed = bytes('[{"id":2},\n[{"id":3}],\n\n4,{"id":5}]');
    const bad = { batchId: "mixed", partBytes: 1 };
    await expect(table.appendParts(mixed, bad)).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: 2 }] });
    const kept = await table.appendParts(mixed, { ...bad, onReject: "quarantine" });
    expect(kept).toMatchObject({ parts: 4, partsCommitted: 3, rowsAdded: 1, rowsRejected: 2 });
    expect((await table.rejects()).map(({ line }) => line).sort()).toEqual([2, 4]);
    expect(await lake.sql("SELECT id FROM t ORDER BY id")).toEqual([{ id: 1n }, { id: 2n }, { id: 5n }]);
    await lake.close();
  });

  it.each([
    ["cut off", '[{"id":1},{"id":2}', "the input ends within the array: a closing bracket is missing"],
    ["with a comma too many", '[{"id":1},]', "expected a value, found a comma or bracket too many"],
    ["with text behind its end", '[{"id":1}] x', "there is text after the end of the array"],
    ["with an element that is cut off", '[{"id":1},{"id":', "the input ends within the value that begins here"],
  ])("%s is refused as append refuses it; the parts before stay", async (_, json, reason) => {
    const { lake, table } = await openCounted();
    const error = { code: "bad_json", message: expect.stringContaining(reason) };
    await expect(table.append(bytes(json))).rejects.toMatchObject(error);
    await expect(table.appendParts(bytes(json), { batchId: "b", partBytes: 1 })).rejects.toMatchObject(error);
    expect(await table.receipt("b")).toBeUndefined();
    await lake.close();
  });
});

describe("Arrow", () => {
  const tables = (): arrow.Table => new arrow.Table(Array.from({ length: 3 }, (_, i) => recordBatch(10 * i, 10)));

  it("objects are cut at their record batches", async () => {
    const { lake, table } = await openCounted();
    // 10 integers of 4 bytes, 11 offsets of 4, texts of 12 bytes or more.
    const options = { batchId: "b", partBytes: 204 };
    expect(await table.appendParts(tables(), options)).toMatchObject({ parts: 3, rows: 30, partsCommitted: 3 });
    expect(await table.appendParts(tables(), options)).toMatchObject({ status: "duplicate", parts: 3 });
    expect(await lake.sql("SELECT count(*) AS n, sum(id) AS s FROM t")).toEqual([{ n: 30n, s: 435n }]);
    const more = new arrow.Table([...tables().batches, recordBatch(30, 10)]);
    await expect(table.appendParts(more, options)).rejects.toThrow(/"b\/4" .* not among the parts/);
    await lake.close();
  });

  it("and Parquet: a value at fault is named by its row in the whole source", async () => {
    const { lake } = await openCounted();
    const table = lake.table("small", { schema: { id: "int8" } });
    const row = { code: "rejected_rows", rows: [{ line: 129 }] };
    const ids = Array.from({ length: 129 }, (_, id) => id);
    const batches = [0, 100].map((first) => {
      return new arrow.Table({ id: arrow.makeVector(Int32Array.from(ids.slice(first, first + 100))) }).batches[0]!;
    });
    const options = { schemaMode: "strict", partBytes: 1 } as const;
    const ipc = arrow.RecordBatchStreamWriter.writeAll(batches).toUint8Array(true);
    await expect(table.appendParts(ipc, { ...options, batchId: "ipc" })).rejects.toMatchObject(row);
    await expect(table.appendParts(new arrow.Table(batches), { ...options, batchId: "object" })).rejects.toMatchObject(
      row,
    );
    const path = join(folder, "small.parquet");
    await sql(`COPY (SELECT (range % 3000)::SMALLINT AS id FROM range(2048, 6000)) TO '${path}' (ROW_GROUP_SIZE 2048)`);
    const wide = lake.table("wide", { schema: { id: "int8" } });
    const parquet = wide.appendParts({ file: path }, { ...options, batchId: "b", onReject: "quarantine" });
    // 952 rows of 2048 to 2999 and then 128 good ones: all others are at fault, in the first part and in the second.
    expect(await parquet).toMatchObject({ parts: 2, rowsAdded: 128, rowsRejected: 3824 });
    const lines = await lake.sql(
      "SELECT min(line) AS a, max(line) AS z, count(*) AS n FROM eider.rejects WHERE line < 953",
    );
    expect(lines).toEqual([{ a: 1n, z: 952n, n: 952n }]);
    expect(await lake.sql("SELECT max(line) AS z FROM eider.rejects")).toEqual([{ z: 3952n }]);
    await lake.close();
  });
});

describe("Parquet", () => {
  it("whose footer has changed is another file from its first part on", async () => {
    const { lake, table } = await openCounted();
    const options = { batchId: "b", partBytes: 1 };
    const all = new Uint8Array(readFileSync(files.parquet));
    await table.appendParts(all, options);
    all[Buffer.from(all).lastIndexOf("text")] = "T".charCodeAt(0);
    await expect(table.appendParts(all, options)).rejects.toThrow(/"b\/1" .* other content/);
    await lake.close();
  });

  it("without rows is one part, which makes the table", async () => {
    const { lake, table } = await openCounted();
    const path = join(folder, "empty.parquet");
    await sql(`COPY (SELECT 1 AS id WHERE false) TO '${path}'`);
    expect(await table.appendParts({ file: path }, { batchId: "b" })).toMatchObject({ parts: 1, rows: 0 });
    expect((await table.describe()).schema.fields.map(({ name }) => name)).toEqual(["id"]);
    await lake.close();
  });

  it("that cannot be read, or not in parts, is refused before anything is committed", async () => {
    const { lake, table } = await openCounted();
    const refused = (source: Source, code: string): Promise<void> =>
      expect(table.appendParts(source, { batchId: "b", partBytes: 1 })).rejects.toMatchObject({
        name: "InvalidInputError",
        code,
      });
    const all = readFileSync(files.parquet);
    await refused(new Uint8Array(all.subarray(0, all.length - 1)), "bad_parquet");
    await refused(bytes("PAR1"), "bad_parquet");
    const path = join(folder, "numbered.parquet");
    await sql(`COPY (SELECT range AS "File_Row_Number" FROM range(5000)) TO '${path}' (ROW_GROUP_SIZE 2048)`);
    await refused({ file: path }, "not_divisible");
    expect(await lake.tables()).toEqual([]);
    expect(await table.appendParts({ file: path }, { batchId: "b" })).toMatchObject({ parts: 1, rows: 5000 });
    await lake.close();
  });
});
