/** Lakes that several hosts share: a store without a catalog of its own, an index per host. Hosts are folders here. */

import { rmSync } from "node:fs";
import { realTimer } from "@eider/catalog";
import { StoreError } from "@eider/core";
import { CountingStore, FileStore, MemoryStore, type ObjectStore, StoreWrapper } from "@eider/storage";
import { BatchConflictError, Lake, type LakeOptions } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

/** A view that its lake may close: the store itself stays. */
class View extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

/** A host of its own, opening the lake in `store`. */
function openHost(store: ObjectStore, options: LakeOptions = {}): Promise<Lake> {
  return Lake.open({ store: new View(store) }, { cacheDir: temporaryFolder(), stalenessMs: 0, ...options });
}

describe("two hosts", () => {
  it("see each other's appends at once, by the same numbers", async () => {
    const store = new MemoryStore();
    await using a = await openHost(store);
    await using b = await openHost(store);
    expect(b.id).toBe(a.id);
    await a.table("t").append([{ id: 1, v: "x" }], { batchId: "a-1" });
    expect(await b.sql("SELECT id, v FROM t")).toEqual([{ id: 1n, v: "x" }]);
    await b.table("t").append([{ id: 2, v: "y", w: 0.5 }], { batchId: "b-1" });
    expect(await a.sql("SELECT * FROM t ORDER BY id")).toEqual([
      { id: 1n, v: "x", w: null },
      { id: 2n, v: "y", w: 0.5 },
    ]);
    expect(await a.sql("SELECT count(*) AS n FROM t AT (VERSION => 1)")).toEqual([{ n: 1n }]);
    expect((await a.snapshots()).map(({ snapshot }) => snapshot)).toEqual([1, 2]);
    expect(await a.snapshots()).toEqual(await b.snapshots());
    expect(await b.table("t").receipt("a-1")).toEqual(await a.table("t").receipt("a-1"));
  });

  it("commit one batch id once, whoever is first; other content is a conflict", async () => {
    const store = new MemoryStore();
    const hosts = await Promise.all([openHost(store, FILES), openHost(store, FILES), openHost(store)]);
    const rows = [{ id: 1 }, { id: 2 }];
    const results = await Promise.all(
      hosts.flatMap((host) => [1, 2].map(() => host.table("t").append(rows, { batchId: "b" }))),
    );
    expect(results.filter(({ status }) => status === "committed")).toHaveLength(1);
    expect(new Set(results.map(({ receipt }) => JSON.stringify(receipt))).size).toBe(1);
    for (const host of hosts) {
      expect(await host.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2n }]);
      await expect(host.table("t").append([{ id: 3 }], { batchId: "b" })).rejects.toBeInstanceOf(BatchConflictError);
      // What the losers had staged is gone too.
      const [first] = await host.tables();
      expect(await host.verify()).toMatchObject({ ok: true, files: first!.files, findings: [] });
    }
    await Promise.all(hosts.map((host) => host.close()));
  });

  it("commit 30 batches each at the same time: dense numbers, one answer", async () => {
    const store = new MemoryStore();
    const hosts = await Promise.all([openHost(store), openHost(store)]);
    await Promise.all(
      hosts.flatMap((host, h) =>
        Array.from({ length: 30 }, (_, i) => host.table("t").append([{ h, i }], { batchId: `${h}-${i}` })),
      ),
    );
    for (const host of hosts) {
      expect(await host.sql("SELECT count(*) AS n, count(DISTINCT (h, i)) AS d FROM t")).toEqual([{ n: 60n, d: 60n }]);
      const snapshots = await host.snapshots();
      expect(snapshots.map(({ snapshot }) => snapshot)).toEqual(snapshots.map((_, i) => i + 1));
      const appends = snapshots.flatMap(({ operations }) => operations.filter(({ op }) => op === "append"));
      expect(new Set(appends.map(({ batchId }) => batchId)).size).toBe(60);
    }
    await Promise.all(hosts.map((host) => host.close()));
  });
});

describe("an index", () => {
  it("is made again from the log: the same answer", async () => {
    const store = new MemoryStore();
    const cacheDir = temporaryFolder();
    const first = await openHost(store, { cacheDir });
    for (let i = 0; i < 40; i++) await first.table("t").append([{ i }], { batchId: `b-${i}` });
    const receipts = await first.table("t").batches();
    await first.close();
    rmSync(cacheDir, { recursive: true });
    for (const folder of [cacheDir, temporaryFolder()]) {
      await using again = await openHost(store, { cacheDir: folder });
      expect(await again.sql("SELECT count(*) AS n, sum(i) AS s FROM t")).toEqual([{ n: 40n, s: 780n }]);
      expect(await again.table("t").batches()).toEqual(receipts);
    }
  });

  it("of another log than the store's is refused", async () => {
    const cacheDir = temporaryFolder();
    const store = new MemoryStore();
    const first = await openHost(store, { cacheDir });
    await first.table("t").append([{ i: 1 }]);
    await first.table("t").append([{ i: 2 }]);
    await first.close();
    // As a bucket that was restored to an earlier day.
    await store.delete("_eider/log/00000000000000000002");
    await expect(openHost(store, { cacheDir })).rejects.toMatchObject({ code: "log_replaced" });
    await using fresh = await openHost(store);
    expect(await fresh.sql("SELECT sum(i) AS s FROM t")).toEqual([{ s: 1n }]);
    await fresh.table("t").append([{ i: 3 }]);
    await expect(openHost(store, { cacheDir })).rejects.toMatchObject({ code: "log_replaced" });
  });
});

describe("a query within stalenessMs", () => {
  /** By the timer of the lake, which a test moves. */
  function movedTimer() {
    let now = 0;
    return {
      pass(ms: number): void {
        now += ms;
      },
      timer: { ...realTimer, now: () => now },
    };
  }

  it("asks for nothing and sees what it saw, then sees what others have committed", async () => {
    const store = new MemoryStore();
    await using other = await openHost(store, FILES);
    await other.table("t").append([{ i: 1 }]);
    const counting = new CountingStore(new View(store));
    const { pass, timer } = movedTimer();
    await using lake = await openHost(counting, { stalenessMs: 500, timer });
    const gets = (): number => counting.counts.get.requests;
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 1n }]);
    await other.table("t").append([{ i: 2 }]);
    pass(500);
    const before = gets();
    expect(await lake.sql("SELECT count(*) AS n FROM eider.files")).toEqual([{ n: 1n }]);
    expect(gets()).toBe(before);
    pass(1);
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2n }]);
  });

  it("sees what this process has committed, and what it was told of", async () => {
    const store = new MemoryStore();
    const { timer } = movedTimer();
    await using other = await openHost(store);
    await using lake = await openHost(store, { stalenessMs: 1e9, timer });
    await lake.table("t").append([{ i: 1 }], { batchId: "a" });
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 1n }]);
    await other.table("t").append([{ i: 2 }], { batchId: "b" });
    // The answer to this one is of the other's commit.
    expect((await lake.table("t").append([{ i: 2 }], { batchId: "b" })).status).toBe("duplicate");
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2n }]);
    await other.table("t").append([{ i: 3 }]);
    expect(await lake.with({ at: 3 }).sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 3n }]);
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 3n }]);
  });
});

it.each([
  ["small", "one put, its entry", 1, {}],
  ["larger", "two puts, its file and its entry", 2, FILES],
] as const)("a lone %s append is %s, and asks for nothing", async (_size, _what, puts, options) => {
  const store = new MemoryStore();
  const counting = new CountingStore(new View(store));
  await using lake = await openHost(counting, options);
  await lake.table("t").append([{ i: 1 }]);
  const before = counting.counts;
  await lake.table("t").append([{ i: 2 }]);
  const after = counting.counts;
  expect(after.put.requests - before.put.requests).toBe(puts);
  for (const call of ["get", "head", "list", "delete"] as const) {
    expect(after[call].requests - before[call].requests, call).toBe(0);
  }
});

it.each([
  ["in the entry", 0, {}],
  ["in files", 32, FILES],
] as const)(
  "appends at the same time share the put of their entry, rows %s; each keeps its receipt and its meta",
  async (_where, files, options) => {
    const counting = new CountingStore(new View(new MemoryStore()));
    await using lake = await openHost(counting, options);
    const table = lake.table("t");
    await table.append([{ i: 0 }], { batchId: "first" });
    const before = counting.counts.put.requests;
    const results = await Promise.all(
      Array.from({ length: 32 }, (_, i) => table.append([{ i }], { batchId: `b-${i}`, meta: { tag: `${i}` } })),
    );
    const entries = new Set(results.map(({ receipt }) => receipt.snapshot)).size;
    expect(entries).toBeLessThan(8);
    expect(counting.counts.put.requests - before).toBe(files + entries);
    const tags = new Map<string | undefined, string | undefined>();
    for (const { operations, meta } of await lake.snapshots({ after: 1 })) {
      for (const operation of operations) tags.set(operation.batchId, (operation.meta ?? meta).tag);
    }
    for (const [i, { status, receipt }] of results.entries()) {
      expect(status).toBe("committed");
      expect(await table.receipt(`b-${i}`)).toEqual(receipt);
      expect(tags.get(`b-${i}`)).toBe(`${i}`);
    }
    expect(await lake.sql("SELECT count(*) AS n, sum(i) AS s FROM t")).toEqual([{ n: 33n, s: 496n }]);
    // A host that only has the log finds the same.
    await using other = await openHost(counting);
    expect(await other.table("t").batches()).toEqual(await table.batches());
    expect(await other.snapshots()).toEqual(await lake.snapshots());
  },
);

describe("opening", () => {
  it("to read changes nothing in the store, and follows it", async () => {
    const store = new MemoryStore();
    await expect(openHost(store, { mode: "read" })).rejects.toMatchObject({ code: "lake_not_found" });
    await using writer = await openHost(store);
    const counting = new CountingStore(new View(store));
    await using reader = await openHost(counting, { mode: "read" });
    await writer.table("t").append([{ i: 1 }]);
    expect(await reader.sql("SELECT i FROM t")).toEqual([{ i: 1n }]);
    await expect(reader.table("t").append([{ i: 2 }])).rejects.toMatchObject({ code: "read_only" });
    await expect(reader.maintain()).rejects.toMatchObject({ code: "read_only" });
    expect(await reader.verify()).toMatchObject({ ok: true });
    expect(counting.counts).toMatchObject({ put: { requests: 0 }, delete: { requests: 0 } });
  });

  it("to read needs a store that gives and lists, and nothing else", async () => {
    class Given extends View {
      override async put(): Promise<never> {
        throw new StoreError("access_denied", "PUT is not allowed");
      }
      override async delete(): Promise<never> {
        throw new StoreError("access_denied", "DELETE is not allowed");
      }
    }
    const store = new MemoryStore();
    await using writer = await openHost(store);
    for (let i = 0; i < 20; i++) await writer.table("t").append([{ i }]);
    const given = new Given(store);
    await using reader = await openHost(given, { mode: "read" });
    expect(await reader.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 20n }]);
    await writer.table("t").append([{ i: 20 }]);
    expect(await reader.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 21n }]);
    expect(await reader.with({ at: 5 }).sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 5n }]);
    // Who wants to write there hears why it cannot.
    await using refused = await openHost(given);
    await expect(refused.table("t").append([{ i: 21 }])).rejects.toMatchObject({ code: "access_denied" });
  });

  it("a place that holds something else is refused", async () => {
    const store = new MemoryStore();
    await store.put("photos/1.jpg", Buffer.from("x"));
    await expect(openHost(store)).rejects.toMatchObject({ code: "not_a_lake" });
  });

  it("a local lake as a shared one is refused", async () => {
    const folder = temporaryFolder();
    await (await Lake.open(folder)).close();
    await expect(openHost(new FileStore(folder))).rejects.toMatchObject({ code: "lake_is_local" });
  });

  it("a store whose racing creations all succeed is refused, and says why", async () => {
    class Overwriting extends View {
      override put(...[key, body]: Parameters<ObjectStore["put"]>): ReturnType<ObjectStore["put"]> {
        return super.put(key, body);
      }
    }
    const opening = openHost(new Overwriting(new MemoryStore()));
    await expect(opening).rejects.toMatchObject({ code: "not_shareable" });
    await expect(opening).rejects.toThrow(/4 of 4 racing creations of one object succeeded/);
  });

  it("maintenance on one host sweeps what another left behind, and nothing else", async () => {
    const store = new MemoryStore();
    await using a = await openHost(store, FILES);
    await using b = await openHost(store);
    await a.table("t").append([{ i: 1 }]);
    const stray = "t/data/0-01890000-0000-7000-8000-000000000000.parquet";
    await store.put(stray, Buffer.from("PAR1"));
    expect(await b.maintain({ graceMs: 0 })).toMatchObject({ deleted: [stray] });
    expect(await a.verify()).toMatchObject({ ok: true, files: 1, findings: [] });
  });
});
