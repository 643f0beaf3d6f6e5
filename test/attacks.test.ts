/** Ways in which a lake was once broken; each failed before its fix. */

import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { tableFromArrays } from "apache-arrow";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./support/folder.js";

describe("a query engine that cannot open", () => {
  it("closes with the lake, and opens once what stood in the way is gone", async () => {
    const folder = temporaryFolder();
    const cacheDir = join(folder, "cache");
    await writeFile(cacheDir, "in the way");
    const options = { cacheDir: join(cacheDir, "inner") };
    const first = await Lake.open(join(folder, "lake"), options);
    await first.table("t").append([{ a: 1 }]);
    await expect(first.sql("SELECT a FROM t")).rejects.toMatchObject({ code: "temp_folder" });
    await first.close();

    await using second = await Lake.open(join(folder, "lake"), options);
    await expect(second.sql("SELECT a FROM t")).rejects.toMatchObject({ code: "temp_folder" });
    await rm(cacheDir);
    await mkdir(cacheDir);
    expect(await second.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
  });
});

describe("names that SQL cannot say", () => {
  const sources: Record<string, readonly [source: object[] | Uint8Array, format?: "ndjson" | "csv"]> = {
    rows: [[{ "a\0b": 1, "": 2, s: { "\0": 3 } }]],
    NDJSON: [Buffer.from('{"a\\u0000b":1,"":2,"s":{"\\u0000":3}}')],
    CSV: [Buffer.from("s,_empty,a\0b\n3,2,1\n"), "csv"],
  };
  it.each(Object.keys(sources))("a NUL in a key shows as its picture: %s", async (kind) => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t");
    const [source, format] = sources[kind]!;
    await table.append(source as Uint8Array, format ? { format } : {});
    const s = format === "csv" ? 3n : { "\u2400": 3n };
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ "a\u2400b": 1n, _empty: 2n, s }]);
    expect(await lake.sql('SELECT "a\u2400b" AS v FROM t')).toEqual([{ v: 1n }]);
  });

  it("declared and Arrow columns", async () => {
    await using lake = await Lake.open("memory:");
    expect(() => lake.table("t", { schema: { "a\0b": "int64" } })).toThrow(/NUL/);
    await lake.table("t").append(tableFromArrays({ "a\0b": new Int32Array([1]) }));
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ "a\u2400b": 1 }]);
  });

  it("a namespace of the name of the databases that queries work in is refused", async () => {
    await using lake = await Lake.open("memory:");
    for (const name of ["_eider.t", "_EIDER_1.t"]) {
      expect(() => lake.table(name)).toThrow(/namespace _eider/);
    }
    await lake.table("_eider").append([{ a: 1 }]);
    expect(await lake.sql("SELECT a FROM _eider")).toEqual([{ a: 1n }]);
  });
});

it("columns that a table lacks are counted when they are ignored, from Arrow and from Parquet", async () => {
  await using lake = await Lake.open("memory:");
  const table = lake.table("t");
  await table.append([{ a: 1, s: { x: 1 } }]);
  await lake.table("wide").append([
    { a: 2, s: { x: 2, y: 3 }, b: "x" },
    { a: 3, s: { x: 4 }, b: "y" },
  ]);
  const arrow = await lake.sql("SELECT * FROM wide").arrow();
  const ignored = { b: 2, "s.y": 1 };
  expect((await table.append(arrow, { schemaMode: "ignore" })).ignoredFields).toEqual(ignored);
  const folder = temporaryFolder();
  await lake.sql(`COPY (SELECT * FROM wide) TO '${folder}/wide.parquet'`);
  const file = await table.append({ file: `${folder}/wide.parquet` }, { schemaMode: "ignore" });
  expect(file.ignoredFields).toEqual(ignored);
  expect(await lake.sql("SELECT sum(a) AS a, sum(s.x) AS x FROM t")).toEqual([{ a: 11n, x: 13n }]);
});

describe("a first batch whose columns get their types only at its end", () => {
  const nulls = 300_000;
  const sources: Record<string, () => Iterable<object> | Uint8Array> = {
    NDJSON: () => Buffer.from(`${'{"v":null,"w":[]}\n'.repeat(nulls)}{"v":"x","w":[{"a":1}]}\n`),
    *rows() {
      for (let i = 0; i < nulls; i++) yield { v: null, w: [] };
      yield { v: "x", w: [{ a: 1 }] };
    },
  };
  it.each(Object.keys(sources))("%s", async (kind) => {
    await using lake = await Lake.open("memory:");
    await lake.table("t").append(sources[kind]!());
    const [row] = await lake.sql("SELECT count(*) AS n, max(v) AS v, count(w) AS w, sum(len(w)) AS l FROM t");
    expect(row).toEqual({ n: BigInt(nulls + 1), v: "x", w: BigInt(nulls + 1), l: 1n });
  });

  it("that get none are refused in words that help", async () => {
    await using lake = await Lake.open("memory:");
    await expect(lake.table("t").append([{ v: null }])).rejects.toMatchObject({ code: "no_columns" });
    expect(await lake.tables()).toEqual([]);
  });
});

describe("a folder that changes under an open lake", () => {
  it("a lake that was deleted answers nothing, and a new one in its place is opened as such", async () => {
    const where = join(temporaryFolder(), "lake");
    const old = await Lake.open(where);
    await old.table("t").append([{ a: 1 }], { batchId: "b" });
    await rm(where, { recursive: true });
    await expect(old.table("t").receipt("b")).rejects.toMatchObject({ code: "catalog_replaced" });

    const fresh = await Lake.open(where);
    expect(fresh.id).not.toBe(old.id);
    expect(await fresh.table("t").append([{ a: 1 }], { batchId: "b" })).toMatchObject({ status: "committed" });
    await expect(old.table("t").append([{ a: 1 }], { batchId: "b" })).rejects.toMatchObject({
      code: "catalog_replaced",
    });
    await old.close();
    const again = await Lake.open(where);
    expect(await again.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
    await again.close();
    expect(await fresh.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
    await fresh.close();
  });

  it("relative folders are those of the moment of opening", async () => {
    const folder = temporaryFolder();
    const before = process.cwd();
    process.chdir(folder);
    try {
      await using lake = await Lake.open("memory:", { cacheDir: "cache" });
      await lake.table("t").append([{ a: 1 }]);
      expect(await lake.sql("SELECT 1 AS one")).toEqual([{ one: 1 }]);
      process.chdir(before);
      expect(await lake.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
    } finally {
      process.chdir(before);
    }
  });
});

it("a batch id that cannot be one is refused before the source is read", async () => {
  await using lake = await Lake.open("memory:");
  let read = false;
  const source = (async function* () {
    read = true;
    yield { a: 1 };
  })();
  for (const batchId of ["", "x".repeat(2000), "\ud800", 5 as never]) {
    const append = lake.table("t").append(source, { batchId });
    await expect(append).rejects.toMatchObject({ code: "bad_batch_id" });
  }
  // An object is the place of a batch in a source.
  await expect(lake.table("t").append(source, { batchId: {} as never })).rejects.toMatchObject({ code: "bad_name" });
  expect(read).toBe(false);
});
