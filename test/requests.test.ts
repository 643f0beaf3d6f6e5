/** What the lake asks of its store: counted, because each request costs time and money on a remote one. */

import { SqliteCatalog } from "@eider/catalog";
import { CountingStore, FileStore, MemoryStore, type ObjectStore } from "@eider/storage";
import { Lake, type LakeOptions } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

async function counted(
  store: ObjectStore,
  options: LakeOptions = {},
): Promise<{ lake: Lake; requests: () => Record<string, number> }> {
  const counting = new CountingStore(store);
  const lake = await Lake.open({ store: counting, catalog: await SqliteCatalog.open({ path: ":memory:" }) }, options);
  counting.reset();
  return {
    lake,
    requests() {
      const { counts } = counting;
      counting.reset();
      return Object.fromEntries(
        Object.entries(counts)
          .map(([kind, { requests }]) => [kind, requests] as const)
          .filter(([, requests]) => requests > 0),
      );
    },
  };
}

describe.each(["memory", "folder"])("on a %s store", (kind) => {
  const newStore = (): ObjectStore => (kind === "memory" ? new MemoryStore() : new FileStore(temporaryFolder()));

  it("a small append asks for nothing, and neither does a query of it", async () => {
    const { lake, requests } = await counted(newStore());
    const table = lake.table("t", { partitionBy: ["bucket(4, p)"], orderBy: ["a"] });
    await table.append([{ a: 1, p: "x" }], { batchId: "b" });
    await table.append([{ a: 1, p: "x" }], { batchId: "b" });
    await table.append(Buffer.from('{"a":3}\n{"a":4.5}\n'));
    await lake.transaction(async (tx) => {
      await tx.table("t").append([{ a: 5, late: "x" }]);
      await tx.table("u").append([{ b: true }]);
    });
    expect(await lake.sql("SELECT count(*) AS n, sum(a) AS s FROM t")).toEqual([{ n: 4n, s: 13.5 }]);
    expect(requests()).toEqual({});
    await lake.close();
  });

  it("an append of more is one put; a duplicate, a receipt and a listing ask for nothing; a query lists nothing", async () => {
    const { lake, requests } = await counted(newStore(), FILES);
    const table = lake.table("t");
    await table.append([{ a: 1 }], { batchId: "b" });
    expect(requests()).toEqual({ put: 1 });
    await table.append([{ a: 1 }], { batchId: "b" });
    expect(requests()).toEqual({});
    await table.append([{ a: 2, late: "x" }]);
    await table.append(Buffer.from('{"a":3}\n{"a":4.5}\n'));
    expect(requests()).toEqual({ put: 2 });
    await table.receipt("b");
    await table.files();
    await lake.tables();
    await lake.snapshots();
    expect(requests()).toEqual({});

    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 4n }]);
    // Files of a folder are read in place; those of a store without paths are fetched, once each.
    expect(requests()).toEqual(kind === "memory" ? { get: 3 } : {});
    expect(await lake.sql("SELECT sum(a) AS s FROM t")).toEqual([{ s: 10.5 }]);
    expect(requests()).toEqual({});
    await lake.close();
  });
});
