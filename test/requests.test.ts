/** What the lake asks of its store: counted, because each request costs time and money on a remote one. */

import { SqliteCatalog } from "@eider/catalog";
import { CountingStore, FileStore, MemoryStore, type ObjectStore } from "@eider/storage";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./support/folder.js";

async function counted(store: ObjectStore): Promise<{ lake: Lake; requests: () => Record<string, number> }> {
  const counting = new CountingStore(store);
  const lake = await Lake.open({ store: counting, catalog: await SqliteCatalog.open({ path: ":memory:" }) });
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
  it("an append is one put; a duplicate, a receipt and a listing ask for nothing; a query lists nothing", async () => {
    const { lake, requests } = await counted(kind === "memory" ? new MemoryStore() : new FileStore(temporaryFolder()));
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
