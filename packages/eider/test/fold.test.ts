/** Hot batches become data files: the same rows, whatever happens meanwhile. */

import type { Catalog, Draft } from "@eider/catalog";
import type { ObjectStore } from "@eider/storage";
import { parquetMetadata } from "hyparquet";
import { describe, expect, it } from "vitest";
import { Lake } from "../src/lake.js";
import type { MaintainProgress } from "../src/options.js";
import { appendHot } from "./support/hot-rows.js";
import { opened } from "./support/lake-of-hot-rows.js";
import { bytesOf } from "./support/objects.js";

const HOUR_MS = 3_600_000;

async function keyValues(store: ObjectStore, key: string): Promise<Record<string, string | undefined>> {
  const { key_value_metadata: pairs = [] } = parquetMetadata(Uint8Array.from(await bytesOf(store, key)).buffer);
  return Object.fromEntries(pairs.map(({ key: name, value }) => [name, value]));
}

describe("fold", () => {
  it("makes one file of many batches; every snapshot shows what it did", async () => {
    await using folding = await opened();
    const { lake, store } = folding;
    await folding.append({ a: [{ id: 3, v: "x" }], b: [{ id: 1 }, { id: 2, v: "y" }] });
    const before = await folding.append({ c: [{ id: 4 }] });
    const rows = await folding.rows();
    expect(rows).toEqual([
      { id: 1, v: null },
      { id: 2, v: "y" },
      { id: 3, v: "x" },
      { id: 4, v: null },
    ]);

    const result = await lake.maintain({ fold: "all" });
    expect(result).toMatchObject({ folded: { batches: 3, rows: 4, files: 1 }, finished: true, deleted: [] });
    expect(await folding.hot()).toEqual([]);
    expect(await folding.rows()).toEqual(rows);
    expect(await folding.rows(before)).toEqual(rows);
    expect(await folding.rows(before - 1)).toHaveLength(3);
    const [file, ...others] = await lake.table("t").files();
    expect(others).toEqual([]);
    expect(result.folded.bytes).toBe(file!.bytes);
    expect(await keyValues(store, file!.key)).toMatchObject({
      "eider.table": "t",
      "eider.snapshot": String(before),
      "eider.folded": JSON.stringify({ first: before - 1, last: before }),
    });
    // In the order of their commits.
    expect(await lake.with({ values: "json" }).sql("FROM t")).toEqual([rows[2], rows[0], rows[1], rows[3]]);
    expect(await lake.verify()).toMatchObject({ ok: true, files: 1, findings: [] });
    expect((await lake.maintain({ fold: "all" })).folded).toEqual({ batches: 0, rows: 0, files: 0, bytes: 0 });
  });

  it("leaves receipts and the feed alone, and rows of a change stay readable", async () => {
    await using folding = await opened();
    const { lake } = folding;
    const table = lake.table("t");
    await folding.append({ a: [{ id: 1 }], b: [{ id: 2 }] });
    const receipts = [await table.receipt("a"), await table.receipt("b")];
    await lake.maintain({ fold: "all" });
    expect([await table.receipt("a"), await table.receipt("b")]).toEqual(receipts);
    const changes = [];
    for await (const change of table.changes()) {
      if (change.kind === "append") changes.push([change.batchId, await change.rows({ values: "json" })]);
    }
    expect(changes).toEqual([
      ["a", [{ id: 1, v: null }]],
      ["b", [{ id: 2, v: null }]],
    ]);
    await expect(appendHot(folding.catalog, "t", { a: [{ id: 1 }] })).rejects.toThrow("duplicate");
  });

  it("sorts by the table's order and parts by its partitions", async () => {
    await using folding = await opened({ partitionBy: ["v"], orderBy: ["id desc"] });
    await folding.append({ a: [{ id: 1, v: "x" }], b: [{ id: 2, v: "y" }] });
    await folding.append({ c: [{ id: 3, v: "x" }], d: [{ id: 4 }] });
    expect((await folding.lake.maintain({ fold: "all" })).folded).toMatchObject({ batches: 4, rows: 4, files: 3 });
    const files = await folding.catalog.files((await folding.catalog.table("t"))!.id);
    const byPartition = new Map(files.map((file) => [file.partition[0], file]));
    expect([...byPartition].map(([value, { rows }]) => [value, rows]).sort()).toEqual([
      [null, 1],
      ["x", 2],
      ["y", 1],
    ]);
    const { lake } = folding;
    expect((await lake.sql("SELECT id FROM t WHERE v = 'x'")).map((row) => (row as { id: bigint }).id)).toEqual([
      3n,
      1n,
    ]);
    const query = lake.sql("SELECT id FROM t WHERE v = 'y'");
    expect(await query).toEqual([{ id: 2n }]);
  });

  it("brings batches of older schemas to the table's columns, by field id", async () => {
    await using folding = await opened({ schema: { id: "int32", s: "struct<a: int8>" } });
    const { lake } = folding;
    await folding.append({ a: [{ id: 1, s: { a: 5 } }, { id: 2 }] });
    await lake.table("t").append([{ id: 1.5, s: { a: 300, b: "new" }, more: true }], { batchId: "file" });
    await folding.append({ b: [{ id: 2.5, more: false }] });
    const rows = [
      { id: 1, s: { a: 5, b: null }, more: null },
      { id: 1.5, s: { a: 300, b: "new" }, more: true },
      { id: 2, s: null, more: null },
      { id: 2.5, s: null, more: false },
    ];
    expect(await folding.rows()).toEqual(rows);
    await lake.maintain({ fold: "all" });
    expect(await folding.rows()).toEqual(rows);
    const files = await folding.catalog.files((await folding.catalog.table("t"))!.id);
    expect(files.map(({ rows: n, schemaVersion }) => [n, schemaVersion])).toEqual([
      [1, 2],
      [3, 2],
    ]);
  });

  it("is undone and done again by rollbacks", async () => {
    await using folding = await opened();
    const { lake } = folding;
    const one = await folding.append({ a: [{ id: 1 }] });
    const two = await folding.append({ b: [{ id: 2 }] });
    await lake.maintain({ fold: "all" });
    await lake.rollback({ to: one });
    expect(await folding.rows()).toEqual([{ id: 1, v: null }]);
    expect(await folding.hot()).toEqual(["a"]);
    await lake.maintain({ fold: "all" });
    expect(await folding.rows()).toEqual([{ id: 1, v: null }]);
    await lake.rollback({ to: two });
    expect(await folding.rows()).toHaveLength(2);
    expect((await lake.maintain({ fold: "all" })).folded).toMatchObject({ batches: 2, rows: 2 });
    expect(await folding.rows()).toHaveLength(2);
  });
});

describe("what is folded when", () => {
  it.each([
    ["bytes", { bytes: 1 }, 1],
    ["number", { batches: 2 }, 1],
    ["age", { ageMs: HOUR_MS }, 1],
    ["neither", { bytes: 1_000_000, batches: 3, ageMs: HOUR_MS + 1 }, 0],
    ["nothing", "none", 0],
  ] as const)("by %s", async (_, fold, files) => {
    await using folding = await opened();
    await folding.append({ a: [{ id: 1 }], b: [{ id: 2 }] });
    folding.now += HOUR_MS;
    expect((await folding.lake.maintain({ fold })).folded.files).toBe(files);
  });

  it("by default an hour after the oldest batch", async () => {
    await using folding = await opened();
    await folding.append({ a: [{ id: 1 }] });
    folding.now += HOUR_MS - 1;
    await folding.append({ b: [{ id: 2 }] });
    expect((await folding.lake.maintain()).folded.batches).toBe(0);
    folding.now += 1;
    expect((await folding.lake.maintain()).folded.batches).toBe(2);
  });

  it("tells how far it is, and begins nothing after its budget", async () => {
    await using folding = await opened();
    for (let i = 0; i < 3; i++) {
      await folding.append(Object.fromEntries(Array.from({ length: 100 }, (_, j) => [`${i}-${j}`, [{ id: j }]])));
    }
    expect(await folding.lake.maintain({ fold: "all", budgetMs: 0 })).toMatchObject({
      finished: false,
      folded: { batches: 0 },
    });
    const seen: MaintainProgress[] = [];
    await folding.lake.maintain({ fold: "all", onProgress: (progress) => seen.push(progress) });
    expect(seen.map(({ phase, table, batches, rows }) => [phase, table, batches, rows])).toEqual([
      ["fold", "t", 0, 0],
      ["fold", "t", 200, 200],
      ["fold", "t", 300, 300],
      ["expire", undefined, 300, 300],
      ["orphans", undefined, 300, 300],
    ]);
  });
});

describe("SQL for plain DuckDB", () => {
  it("folds the table first, and only that one", async () => {
    await using folding = await opened();
    const { lake, catalog } = folding;
    await lake.table("other", { schema: { id: "int64" } }).create();
    await folding.append({ a: [{ id: 1 }] });
    const hot = await appendHot(catalog, "other", { b: [{ id: 2 }] });
    const rows = await folding.rows();
    expect(await lake.with({ values: "json" }).sql(await lake.table("t").filesSql())).toEqual(rows);
    expect(await folding.hot()).toEqual([]);
    expect(await catalog.table("other")).toMatchObject({ hotBatches: 1 });
    await expect(lake.table("t").filesSql({ at: hot })).rejects.toMatchObject({ code: "hot_rows" });
    await expect(lake.table("none").filesSql()).rejects.toMatchObject({ code: "table_not_found" });
  });

  it("says what to do where it may not fold", async () => {
    await using folding = await opened();
    await folding.append({ a: [{ id: 1 }] });
    const { store, catalog } = folding;
    const reader = await Lake.open({ store, catalog }, { mode: "read" });
    await expect(reader.table("t").filesSql()).rejects.toMatchObject({
      code: "hot_rows",
      message: expect.stringContaining("open for writing"),
    });
    expect(await folding.hot()).toEqual(["a"]);
  });
});

describe("a fold that is disturbed", () => {
  /** Does something between staging and commit, once. */
  function beforeCommit(catalog: Catalog, work: () => Promise<unknown>): void {
    const commit = catalog.commit.bind(catalog);
    let done = false;
    catalog.commit = async (draft: Draft) => {
      if (!done && draft.operations[0]?.op === "rearrange") {
        done = true;
        await work();
      }
      return commit(draft);
    };
  }

  it("by another fold: each row once, and the file of the loser goes", async () => {
    await using folding = await opened();
    const { lake, catalog } = folding;
    await folding.append({ a: [{ id: 1 }], b: [{ id: 2 }] });
    beforeCommit(catalog, () => lake.maintain({ fold: "all" }));
    expect(await lake.maintain({ fold: "all" })).toMatchObject({ folded: { batches: 0, files: 0 }, finished: true });
    expect(await folding.rows()).toHaveLength(2);
    expect(await folding.keys()).toHaveLength(1);
    expect(await catalog.intents()).toEqual([]);
  });

  it("by appends and a new column: they stay, and what was hot before is folded", async () => {
    await using folding = await opened();
    const { lake, catalog } = folding;
    await folding.append({ a: [{ id: 1 }] });
    beforeCommit(catalog, async () => {
      await lake.table("t").append([{ id: 2, more: 1 }]);
      await folding.append({ c: [{ id: 3, more: 2 }] });
    });
    expect((await lake.maintain({ fold: "all" })).folded.batches).toBe(1);
    expect(await folding.hot()).toEqual(["c"]);
    expect(await folding.rows()).toEqual([
      { id: 1, v: null, more: null },
      { id: 2, v: null, more: 1 },
      { id: 3, v: null, more: 2 },
    ]);
  });

  it("by a rollback: what is not there any more is not brought back", async () => {
    await using folding = await opened();
    const { lake, catalog } = folding;
    const one = await folding.append({ a: [{ id: 1 }] });
    await folding.append({ b: [{ id: 2 }] });
    beforeCommit(catalog, () => lake.rollback({ to: one }));
    await lake.maintain({ fold: "all" });
    expect(await folding.rows()).toEqual([{ id: 1, v: null }]);
    expect(await folding.keys()).toHaveLength(1);
  });

  it("by a drop: nothing is left to do", async () => {
    await using folding = await opened();
    const { lake, catalog } = folding;
    await folding.append({ a: [{ id: 1 }] });
    beforeCommit(catalog, () => lake.table("t").drop());
    expect(await lake.maintain({ fold: "all" })).toMatchObject({ folded: { batches: 0 }, finished: true });
    expect(await folding.keys()).toEqual([]);
  });

  it("by its signal: the batches are hot as before, and nothing is left in the store", async () => {
    await using folding = await opened();
    const { lake, catalog } = folding;
    await folding.append({ a: [{ id: 1 }] });
    const abort = new AbortController();
    const running = lake.maintain({
      fold: "all",
      signal: abort.signal,
      onProgress: ({ batches }) => batches > 0 && abort.abort(new Error("enough")),
    });
    await expect(running).rejects.toThrow("enough");
    expect(await folding.hot()).toEqual(["a"]);
    expect(await folding.keys()).toEqual([]);
    expect(await catalog.intents()).toEqual([]);
  });

  it("by a store that fails: it says so, and the next one folds", async () => {
    await using folding = await opened();
    const { lake, store } = folding;
    await folding.append({ a: [{ id: 1 }] });
    const put = store.put.bind(store);
    store.put = async () => {
      throw new Error("no room");
    };
    await expect(lake.maintain({ fold: "all" })).rejects.toThrow("no room");
    expect(await folding.hot()).toEqual(["a"]);
    store.put = put;
    expect((await lake.maintain({ fold: "all" })).folded.batches).toBe(1);
  });
});
