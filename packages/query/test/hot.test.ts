import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseType } from "@eider/core";
import { describe, expect, test } from "vitest";
import { batchQuery, makeSql, sql } from "../src/index.js";
import { buildScopeEntry } from "./scope-entry.js";
import { TestLake } from "./support.js";

async function lakeOf(...batches: Parameters<TestLake["appendHot"]>[1][]): Promise<TestLake> {
  const lake = await TestLake.open();
  await lake.create("t", { id: "int64", name: "string" });
  for (const batch of batches) await lake.appendHot("t", batch);
  return lake;
}

const ids = async (lake: TestLake, text = "FROM t ORDER BY id"): Promise<unknown[]> =>
  (await lake.sql<{ id: bigint }>(text)).map(({ id }) => id);

describe("hot batches in SQL", () => {
  test("are rows like those of files, in their order of commit", async () => {
    await using lake = await lakeOf({ a: ['{"id":2,"name":"hot"}', '{"id":3}'] });
    await lake.append("t", "SELECT 1::BIGINT AS id, 'file' AS name");
    await lake.appendHot("t", { b: ['{"id":4,"name":"\u00e9"}'], c: ['{"id":-5}'] });
    expect(await lake.sql("FROM t ORDER BY id")).toEqual([
      { id: -5n, name: null },
      { id: 1n, name: "file" },
      { id: 2n, name: "hot" },
      { id: 3n, name: null },
      { id: 4n, name: "é" },
    ]);
    expect(await ids(lake, "FROM t WHERE id > 2 ORDER BY id")).toEqual([3n, 4n]);
    expect(await lake.sql("SELECT hot_batches, rows FROM eider.tables")).toEqual([{ hot_batches: 3n, rows: 5n }]);
  });

  test("at each snapshot, in any order of asking", async () => {
    await using lake = await lakeOf({ a: ['{"id":1}'] }, { b: ['{"id":2}'] }, { c: ['{"id":3}'] });
    const at = (snapshot: number): Promise<unknown[]> => ids(lake, `FROM t AT (VERSION => ${snapshot}) ORDER BY id`);
    expect(await at(4)).toEqual([1n, 2n, 3n]);
    expect(await at(2)).toEqual([1n]);
    expect(await at(3)).toEqual([1n, 2n]);
    expect(await at(1)).toEqual([]);
    expect(
      await ids(lake, "SELECT t.id FROM t LEFT JOIN t AS u AT (VERSION => 2) USING (id) WHERE u.id IS NULL ORDER BY 1"),
    ).toEqual([2n, 3n]);
  });

  test("one batch of those that an entry has", async () => {
    await using lake = await lakeOf({ a: ['{"id":1}'], b: ['{"id":2}', '{"id":3}'] }, { c: ['{"id":4}'] });
    const rows = (batchId: string, snapshot: number): Promise<unknown[]> =>
      batchQuery(async () => lake.engine, { table: "t", batchId, snapshot }, {}).then((all) =>
        all.map((row) => (row as { id: bigint }).id),
      );
    expect(await rows("b", 2)).toEqual([2n, 3n]);
    expect(await rows("a", 2)).toEqual([1n]);
    expect(await rows("c", 3)).toEqual([4n]);
  });

  test("of older schemas, by field id", async () => {
    await using lake = await lakeOf({ a: ['{"id":1,"name":"x"}'] });
    const nullable = { nullable: true } as const;
    const { fields } = (await lake.catalog.table("t"))!.schema;
    await lake.evolve("t", {
      fields: [
        { ...fields[0]!, type: parseType("float64") },
        { ...fields[1]!, name: "label" },
        { id: 0, name: "more", type: parseType("bool"), ...nullable },
      ],
    });
    await lake.appendHot("t", { b: ['{"id":1.5,"label":"y","more":true}'] });
    expect(await lake.sql("FROM t WHERE id >= 1 ORDER BY id")).toEqual([
      { id: 1, label: "x", more: null },
      { id: 1.5, label: "y", more: true },
    ]);
  });

  test("that were folded count once, and as before at older snapshots", async () => {
    await using lake = await lakeOf({ a: ['{"id":1}'] }, { b: ['{"id":2}'] }, { c: ['{"id":3}'] });
    expect(await ids(lake)).toEqual([1n, 2n, 3n]);
    await lake.fold("t", ["a", "b"], "SELECT range + 1 AS id, NULL::VARCHAR AS name FROM range(2)");
    expect(await ids(lake)).toEqual([1n, 2n, 3n]);
    expect(await ids(lake, "FROM t AT (VERSION => 3) ORDER BY id")).toEqual([1n, 2n]);
    await lake.appendHot("t", { d: ['{"id":4}'] });
    expect(await ids(lake)).toEqual([1n, 2n, 3n, 4n]);
  });

  test("that grow are joined: few files, and each row once", async () => {
    await using lake = await lakeOf();
    for (let i = 0; i < 100; i++) {
      await lake.appendHot("t", { [`b${i}`]: [`{"id":${i}}`] });
      expect(await lake.sql("SELECT count(*) AS n, sum(id) AS s FROM t")).toEqual([
        { n: BigInt(i + 1), s: BigInt((i * (i + 1)) / 2) },
      ]);
    }
    const folder = readdirSync(lake.scratch.path).find((name) =>
      readdirSync(join(lake.scratch.path, name)).includes("hot"),
    )!;
    // At most seven of each size: of one batch, of eight, and of sixty-four; the sessions kept hold some that were joined.
    expect(readdirSync(join(lake.scratch.path, folder, "hot")).length).toBeLessThan(50);
  });

  test("are in no file that plain DuckDB could read", async () => {
    await using lake = await lakeOf({ a: ['{"id":1}'] });
    await expect(lake.engine.filesSql("t")).rejects.toMatchObject({
      code: "hot_rows",
      message: expect.stringMatching(/^1 hot batch of table "t" at snapshot \d+ is in no file: .*they are folded/),
    });
  });

  test("are shown by a scope as it grants them", async () => {
    await using lake = await TestLake.open({ scopeEntry: await buildScopeEntry() });
    await lake.create("t", { id: "int64", name: "string" });
    await lake.append("t", "SELECT 1::BIGINT AS id, 'a' AS name");
    await lake.appendHot("t", { a: ['{"id":2,"name":"a"}', '{"id":3,"name":"b"}'] });
    const scope = lake.engine.scope({ tables: { t: { where: sql`name = ${"a"}`, columns: ["id"] } } });
    expect(await makeSql(async () => scope)("FROM t ORDER BY id")).toEqual([{ id: 1n }, { id: 2n }]);
  });
});
