/** Transactions: several appends as one commit, on local and on shared lakes. */

import { MemoryStore, type ObjectStore, StoreWrapper } from "@eider/storage";
import { Lake, type LakeOptions } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

/** A view that its lake may close: the store itself stays. */
class View extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

const KINDS = ["local", "shared"] as const;
type Kind = (typeof KINDS)[number];
/** Where the rows of small appends go, and how many files that makes of each. */
const ROWS = [
  ["in the entry", {}, 0],
  ["in files", FILES, 1],
] as const;

/** Handles that see the same lake: of a shared one each is another host. */
function place(
  kind: Kind,
  rows: LakeOptions,
): { open(options?: LakeOptions): Promise<Lake>; data(): Promise<string[]> } {
  if (kind === "shared") {
    const store = new MemoryStore();
    return {
      open: () => Lake.open({ store: new View(store) }, { cacheDir: temporaryFolder(), stalenessMs: 0, ...rows }),
      data: () => dataKeys(store),
    };
  }
  const folder = temporaryFolder();
  return {
    open: () => Lake.open(folder, rows),
    async data() {
      await using store = await (await import("@eider/storage")).openStore(folder, { readOnly: true });
      return dataKeys(store);
    },
  };
}

async function dataKeys(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("")) if (key.endsWith(".parquet")) keys.push(key);
  return keys;
}

async function* once<T>(...items: T[]): AsyncGenerator<T> {
  yield* items;
}

describe.each(KINDS.flatMap((kind) => ROWS.map((rows) => [kind, ...rows] as const)))(
  "%s lake, rows %s",
  (kind, _, rows, files) => {
    it("commits appends to several tables, old and new, in one snapshot", async () => {
      await using lake = await place(kind, rows).open();
      await lake.table("a").append([{ id: 1 }], { batchId: "a1" });
      const result = await lake.transaction(
        async (tx) => {
          const staged = await tx.table("a").append([{ id: 2 }], { batchId: "a2" });
          expect(staged).toEqual({ batchId: "a2", status: "staged", rowsAdded: 1, rowsRejected: 0 });
          await tx
            .table("b", { partitionBy: ["k"] })
            .append(once({ k: "x", v: 1 }, { k: "y", v: 2 }), { batchId: "b1" });
          await tx.table("empty", { schema: { id: "int64" } }).create();
          // Nothing of it is there yet, for anybody.
          expect((await lake.tables()).map(({ name, rows }) => [name, rows])).toEqual([["a", 1]]);
          expect(await tx.sql("SELECT count(*) AS n FROM a")).toEqual([{ n: 1n }]);
          return "value";
        },
        { meta: { by: "test" } },
      );
      expect(result).toMatchObject({
        status: "committed",
        snapshot: 2,
        value: "value",
        receipts: [
          { table: "a", batchId: "a2", snapshot: 2, rows: 1 },
          { table: "b", batchId: "b1", snapshot: 2, rows: 2 },
        ],
      });
      expect(await lake.sql("SELECT (SELECT sum(id) FROM a) AS a, (SELECT sum(v) FROM b) AS b")).toEqual([
        { a: 3n, b: 3n },
      ]);
      expect((await lake.tables()).map(({ name }) => name)).toEqual(["a", "b", "empty"]);
      const [snapshot] = await lake.snapshots({ after: 1 });
      expect(snapshot).toMatchObject({ meta: { by: "test" } });
      expect(await lake.sql("SELECT meta['by'] AS by FROM eider.snapshots WHERE snapshot = 2")).toEqual([
        { by: "test" },
      ]);
    });

    it("leaves nothing behind if its callback throws, one of its appends fails, or it is aborted", async () => {
      const { open, data } = place(kind, rows);
      await using lake = await open();
      await lake.table("a").append([{ id: 1 }]);
      const before = await data();
      const thrown = lake.transaction(async (tx) => {
        await tx.table("a").append([{ id: 2 }]);
        await tx.table("b").append([{ id: 2 }]);
        throw new Error("no");
      });
      await expect(thrown).rejects.toThrow("no");
      const caught = lake.transaction(async (tx) => {
        await tx.table("a").append([{ id: 2 }]);
        await tx
          .table("a")
          .append([{ id: "x", ID: 1 }])
          .catch(() => {});
      });
      await expect(caught).rejects.toMatchObject({ code: "rejected_rows" });
      const abort = new AbortController();
      const aborted = lake.transaction(
        async (tx) => {
          await tx.table("a").append([{ id: 2 }]);
          abort.abort(new Error("enough"));
        },
        { signal: abort.signal },
      );
      await expect(aborted).rejects.toThrow("enough");
      let late: unknown;
      await lake.transaction(async (tx) => {
        late = tx;
      });
      await expect(
        (late as { table(name: string): { drop(): Promise<void> } }).table("a").drop(),
      ).rejects.toMatchObject({
        code: "transaction_over",
      });
      expect(await data()).toEqual(before);
      expect((await lake.tables()).map(({ name, rows }) => [name, rows])).toEqual([["a", 1]]);
      expect(await lake.snapshots()).toHaveLength(1);
    });

    it("is committed once when it is repeated, and is a conflict with half of itself", async () => {
      const { open, data } = place(kind, rows);
      await using lake = await open();
      await using other = await open();
      const run = (on: Lake, ids: readonly string[], v = 1) =>
        on.transaction(async (tx) => {
          for (const id of ids) await tx.table(id).append(once({ v }), { batchId: "b" });
        });
      const first = await run(lake, ["a", "b"]);
      expect(first.status).toBe("committed");
      const keys = await data();
      expect(await run(other, ["a", "b"])).toEqual({ ...first, status: "duplicate" });
      expect(await run(other, ["b"])).toMatchObject({ status: "duplicate", snapshot: 1 });
      await expect(run(other, ["a", "c"])).rejects.toMatchObject({ code: "transaction_conflict" });
      await expect(run(other, ["a", "b"], 2)).rejects.toMatchObject({ code: "batch_conflict" });
      await run(lake, ["c"]);
      await expect(run(other, ["a", "c"])).rejects.toMatchObject({ code: "transaction_conflict" });
      expect((await data()).length).toBe(keys.length + files);
      expect((await run(lake, [])).status).toBe("empty");
    });

    it("plans each step on the ones before it", async () => {
      await using lake = await place(kind, rows).open();
      await lake.table("old").append([{ id: 1 }]);
      await lake.transaction(async (tx) => {
        const t = tx.table("t");
        // Not waited for: still in this order.
        const all = [
          t.append([{ id: 9_007_199_254_740_993n }]),
          t.append([{ id: 1, more: "x" }]),
          t.append(once({ id: 0.5 })),
          tx.table("old").drop(),
          tx.table("old").append([{ other: true }]),
        ];
        await all.at(-1);
      });
      // The integer of the first batch is not exact in a float64: so the column became json.
      expect((await lake.table("t").describe()).schema.fields.map(({ name, type }) => [name, type.kind])).toEqual([
        ["id", expect.stringMatching(/decimal|json/)],
        ["more", "string"],
      ]);
      expect(await lake.sql("SELECT id::VARCHAR AS id FROM t ORDER BY more NULLS FIRST, id::VARCHAR")).toHaveLength(3);
      expect((await lake.sql("SELECT max(id::VARCHAR) AS id FROM t"))[0]!.id).toContain("9007199254740993");
      expect(await lake.sql("FROM old")).toEqual([{ other: true }]);
      expect(await lake.snapshots()).toHaveLength(2);
    });

    it("creates, drops and creates tables of one name", async () => {
      await using lake = await place(kind, rows).open();
      await lake.transaction(async (tx) => {
        const n = tx.table("n");
        await n.append([{ a: 1 }]);
        await n.drop();
        await n.append([{ b: "x" }]);
        await n.drop();
        await n.create();
        await n.append([{ c: true }]);
      });
      expect(await lake.sql("FROM n")).toEqual([{ c: true }]);
      expect((await lake.tables()).map(({ name }) => name)).toEqual(["n"]);
    });

    it("is planned again on what others have committed, and stages again only what that changed", async () => {
      const { open, data } = place(kind, rows);
      await using lake = await open();
      await using other = await open();
      await lake.table("a").append([{ id: 1 }]);
      await lake.table("b").append([{ id: 1 }]);
      let callbacks = 0;
      let keys: string[] = [];
      const result = await lake.transaction(async (tx) => {
        callbacks++;
        await tx.table("a").append(once({ id: 2 }), { batchId: "a" });
        await tx.table("b").append(once({ id: 2 }), { batchId: "b" });
        await tx.table("new").append(once({ id: 2 }), { batchId: "n" });
        keys = await data();
        await other.table("a").append([{ id: 3, wider: 1 }]);
        await other.table("new").append([{ id: 3, wider: 1 }]);
      });
      expect(result.snapshot).toBe(5);
      expect(callbacks).toBe(1);
      expect(await lake.sql("SELECT id, wider FROM a ORDER BY id")).toEqual([
        { id: 1n, wider: null },
        { id: 2n, wider: null },
        { id: 3n, wider: 1n },
      ]);
      expect(await other.sql("SELECT id FROM new ORDER BY id")).toEqual([{ id: 2n }, { id: 3n }]);
      // Three were staged for it; what is not of the commit is gone.
      const left = await data();
      expect(left).toHaveLength(7 * files);
      const b = (await lake.table("b").files()).at(-1);
      if (files > 0) expect(keys).toContain(b!.key);
    });

    it("commits only on the snapshot that it was begun at, if that is expected", async () => {
      const { open } = place(kind, rows);
      await using lake = await open();
      await using other = await open();
      await lake.table("a").append([{ n: 1 }]);
      const increment = (between: () => Promise<unknown>) =>
        lake.transaction(
          async (tx) => {
            const [row] = await tx.sql<{ n: number }>("SELECT max(n)::INTEGER AS n FROM a");
            await between();
            await tx.table("a").append([{ n: row!.n + 1 }]);
          },
          { expectSnapshot: "base" },
        );
      await expect(increment(() => other.table("a").append([{ n: 2 }]))).rejects.toMatchObject({
        code: "snapshot_moved",
        retryable: true,
      });
      await increment(async () => {});
      expect(await other.sql("SELECT n FROM a ORDER BY n")).toEqual([{ n: 1n }, { n: 2n }, { n: 3n }]);
      await expect(lake.transaction(async () => {}, { expectSnapshot: "bass" as "base" })).rejects.toMatchObject({
        code: "bad_option",
      });
    });

    it("moves the cursor of its consumer, or does nothing", async () => {
      const { open } = place(kind, rows);
      await using lake = await open();
      await using other = await open();
      await lake.table("in").append([{ id: 1 }]);
      const consume = (on: Lake, batchId: string) =>
        on.transaction(async (tx) => {
          await tx.table("x").append([{ id: 1 }], { batchId });
          await tx.table("y").append([{ id: 1 }], { batchId });
          await tx.advance({ name: "c", from: "0", to: "1" });
        });
      await consume(lake, "one");
      expect((await consume(other, "one")).status).toBe("duplicate");
      await expect(consume(other, "two")).rejects.toMatchObject({ code: "cursor_moved" });
      expect(await other.sql("SELECT (SELECT count(*) FROM x) AS x, (SELECT count(*) FROM y) AS y")).toEqual([
        { x: 1n, y: 1n },
      ]);
      expect(await other.cursor("c").position()).toBe("1");
    });
  },
);

it("of many processes' worth of handles at once, each is there as a whole", async () => {
  const store = new MemoryStore();
  const hosts = await Promise.all(
    [1, 2, 3].map(() => Lake.open({ store: new View(store) }, { cacheDir: temporaryFolder(), stalenessMs: 0 })),
  );
  await Promise.all(
    Array.from({ length: 12 }, (_, i) =>
      hosts[i % 3]!.transaction(async (tx) => {
        await tx.table("x").append([{ i }], { batchId: `b${i % 6}/${i}` });
        await tx.table("y").append([{ i }], { batchId: `b${i % 6}/${i}` });
      }),
    ),
  );
  const [host] = hosts;
  const query = "SELECT count(*) AS n FROM x JOIN y USING (i)";
  expect(await host!.sql(query)).toEqual([{ n: 12n }]);
  for (const { snapshot } of await host!.snapshots()) {
    if (snapshot < 1) continue;
    const counts = (await host!.tables({ at: snapshot })).map(({ rows }) => rows);
    expect(new Set(counts).size).toBe(1);
  }
  for (const one of hosts) await one.close();
});
