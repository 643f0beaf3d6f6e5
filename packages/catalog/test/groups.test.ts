/** Commits that come at the same time: one transaction, and each its own answer. */

import { join } from "node:path";
import { BatchConflictError, InvalidInputError } from "@eider/core";
import { describe, expect, it } from "vitest";
import type { Draft } from "../src/catalog.js";
import { decodeEntry } from "../src/entry.js";
import { GroupQueue } from "../src/group-queue.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { sharesEntry } from "../src/sqlite-commit.js";
import { type OpenDriver, openSqlite } from "../src/sqlite-driver.js";
import { append, create, draft, tempFolder } from "./fixtures.js";

/** The real driver; counts writing COMMITs, lets them fail as planned, and fails what `breaks` says. */
function watched(
  options: { plan?: ("ok" | "before" | "after")[]; breaks?: (params: readonly unknown[]) => boolean } = {},
) {
  const seen = { commits: 0 };
  const driver: OpenDriver = (...args) => {
    const real = openSqlite(...args);
    let writing = false;
    return {
      ...real,
      exec(sql) {
        if (sql.startsWith("BEGIN")) writing = sql === "BEGIN IMMEDIATE";
        const commits = sql === "COMMIT" && writing;
        if (commits) seen.commits++;
        const fault = commits ? (options.plan?.shift() ?? "ok") : "ok";
        if (fault !== "before") real.exec(sql);
        if (fault !== "ok") throw Object.assign(new Error("fsync"), { code: "SQLITE_IOERR_FSYNC" });
      },
      run(sql, ...params) {
        if (options.breaks?.(params)) throw Object.assign(new Error("too big"), { code: "SQLITE_TOOBIG" });
        return real.run(sql, ...params);
      },
    };
  };
  return { driver, seen };
}

/** A catalog with a table, and commits counted from there. */
async function openWatched(options: Parameters<typeof watched>[0] = {}) {
  const { driver, seen } = watched(options);
  const catalog = await SqliteCatalog.open({ path: join(tempFolder(), "c.sqlite"), driver });
  await catalog.commit(draft(create("t1", "events")));
  seen.commits = 0;
  return { catalog, seen };
}

const tagged = (batch: string): Draft => ({ ...draft(append("t1", batch, [`k-${batch}`])), meta: { tag: batch } });

describe("commits that come at the same time", () => {
  it("are one entry in their order, each with its own receipt and meta", async () => {
    const { catalog, seen } = await openWatched();
    await using _ = catalog;
    const batches = Array.from({ length: 50 }, (_, i) => `b${i}`);
    const results = await Promise.all(batches.map((batch) => catalog.commit(tagged(batch))));
    expect(seen.commits).toBe(1);
    for (const [i, batchId] of batches.entries()) {
      const receipt = await catalog.receipt("t1", batchId);
      expect(receipt).toMatchObject({ table: "events", batchId, snapshot: 2, rows: 1 });
      expect(results[i]).toEqual({ status: "committed", snapshot: 2, receipts: [receipt] });
    }
    const snapshots = await catalog.snapshots({ after: 1 });
    expect(snapshots).toMatchObject([
      { snapshot: 2, meta: {}, operations: batches.map((batchId) => ({ batchId, meta: { tag: batchId } })) },
    ]);
    expect(await catalog.tables(1)).toMatchObject([{ rows: 0, files: 0, bytes: 0 }]);
    expect(await catalog.tables()).toMatchObject([{ rows: 50, files: 50, bytes: 5000 }]);
  });

  it("have an entry each where they do more than append, in their order with those that share one", async () => {
    const { catalog, seen } = await openWatched();
    await using _ = catalog;
    const results = await Promise.all([
      catalog.commit(tagged("a")),
      catalog.commit(tagged("b")),
      catalog.commit({ ...tagged("c"), expectSnapshot: 2 }),
      catalog.commit(tagged("d")),
      catalog.commit(draft(create("t2", "other"))),
      catalog.commit(tagged("e")),
      catalog.commit(tagged("f")),
    ]);
    expect(seen.commits).toBe(1);
    expect(results.map((result) => "snapshot" in result && result.snapshot)).toEqual([2, 2, 3, 4, 5, 6, 6]);
    expect((await catalog.snapshots({ after: 2 })).map(({ meta }) => meta)).toEqual([
      { tag: "c" },
      { tag: "d" },
      {},
      {},
    ]);
  });

  it("leave the group one by one where they fail; the others go on", async () => {
    const { catalog, seen } = await openWatched();
    await using _ = catalog;
    await catalog.commit(draft(append("t1", "old", ["k-old"])));
    seen.commits = 0;
    const results = await Promise.allSettled([
      catalog.commit(draft(append("t1", "a", ["k1"]))),
      catalog.commit(draft(append("t1", "old", ["k2"], { hash: "rows:other" }))), // conflict with what is committed
      catalog.commit(draft(append("t1", "a", ["k3"]))), // of the same group: a duplicate
      catalog.commit(draft(append("t1", "a", ["k4"], { hash: "rows:other" }))), // a conflict within the group
      catalog.commit(draft(append("t1", "b", ["k1"]))), // its file is taken by the group's first
      catalog.commit(draft(append("t9", "b", ["k5"]))), // no such table
      catalog.commit({ ...draft(append("t1", "c", ["k6"])), intent: "gone" }),
      catalog.commit({ ...draft(append("t1", "d", ["k7"])), expectSnapshot: 2 }), // 3, by the group's first
      catalog.commit({ ...draft(append("t1", "e", ["k8"])), expectSnapshot: 3 }),
      catalog.commit(draft({ op: "drop", table: "t1" })),
      catalog.commit(draft(append("t1", "f", ["k9"]))), // dropped just before
    ]);
    expect(seen.commits).toBe(1);
    const first = { table: "events", batchId: "a", snapshot: 3, rows: 1, contentHash: "rows:a" };
    expect(results).toMatchObject([
      { value: { status: "committed", snapshot: 3, receipts: [first] } },
      { reason: { code: "batch_conflict", subject: "old" } },
      { value: { status: "duplicate", receipts: [first] } },
      { reason: { code: "batch_conflict", subject: "a" } },
      { reason: { code: "bad_file", subject: "k1" } },
      { value: { status: "stale", reason: "table_missing" } },
      { value: { status: "stale", reason: "intent" } },
      { value: { status: "stale", reason: "snapshot" } },
      { value: { status: "committed", snapshot: 4 } },
      { value: { status: "committed", snapshot: 5 } },
      { value: { status: "stale", reason: "table_missing" } },
    ]);
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason as unknown] : []));
    expect(reasons.map((reason) => reason instanceof BatchConflictError)).toEqual([true, true, false]);
    expect(reasons[2]).toBeInstanceOf(InvalidInputError);
    expect(await catalog.snapshots()).toHaveLength(5);
  });

  it("that create one table: the first does, the others are told to plan again", async () => {
    await using catalog = await SqliteCatalog.open({ path: ":memory:" });
    const results = await Promise.all(
      ["x", "y", "z"].map((id) => catalog.commit(draft(create(id, "events"), append(id, "b", [`k-${id}`])))),
    );
    expect(results).toMatchObject([
      { status: "committed", snapshot: 1, receipts: [{ table: "events", batchId: "b" }] },
      { status: "stale", reason: "table_exists" },
      { status: "stale", reason: "table_exists" },
    ]);
  });

  it("are all committed once when their COMMIT fails after its effect, or before it", async () => {
    for (const fault of ["after", "before"] as const) {
      const { catalog } = await openWatched({ plan: ["ok", "ok", fault] });
      await using _ = catalog;
      const results = await Promise.all(["a", "b", "b", "c"].map((batch) => catalog.commit(tagged(batch))));
      expect(results.map(({ status }) => status)).toEqual(["committed", "committed", "duplicate", "committed"]);
      expect(await catalog.snapshots({ after: 1 })).toMatchObject([
        { snapshot: 2, operations: ["a", "b", "c"].map((tag) => ({ meta: { tag } })) },
      ]);
    }
  });

  it("are all unknown when their COMMIT is, and settled by retries", async () => {
    for (const fault of ["after", "before"] as const) {
      const { catalog } = await openWatched({ plan: ["ok", "ok", fault, "before", "before", "before"] });
      await using _ = catalog;
      const commits = ["a", "b", "b"].map((batch) => catalog.commit(tagged(batch)));
      for (const result of await Promise.allSettled(commits)) {
        expect(result).toMatchObject({ reason: { code: "commit_unknown", retryable: true } });
      }
      const again = await Promise.all(["a", "b"].map((batch) => catalog.commit(tagged(batch))));
      const status = fault === "after" ? "duplicate" : "committed";
      expect(again).toMatchObject([
        { status, receipts: [{ snapshot: 2 }] },
        { status, receipts: [{ snapshot: 2 }] },
      ]);
    }
  });

  it("are committed without the one that SQLite cannot take", async () => {
    const { catalog, seen } = await openWatched({ breaks: (params) => params.includes("huge") });
    await using _ = catalog;
    const results = await Promise.allSettled(["a", "huge", "b"].map((batch) => catalog.commit(tagged(batch))));
    expect(results).toMatchObject([
      { value: { status: "committed", snapshot: 2 } },
      { reason: { code: "catalog_failed" } },
      { value: { status: "committed", snapshot: 3 } },
    ]);
    expect(seen.commits).toBe(2);
  });

  it("are answered before the catalog closes", async () => {
    const { catalog } = await openWatched();
    const commits = ["a", "b"].map((batch) => catalog.commit(tagged(batch)));
    await catalog[Symbol.asyncDispose]();
    expect((await Promise.all(commits)).map(({ status }) => status)).toEqual(["committed", "committed"]);
  });
});

describe("an entry that appends share", () => {
  /** An index with a table. */
  async function openIndex() {
    const index = await SqliteCatalog.open({ path: ":memory:", kind: "shared", lakeId: "lake" });
    const { entry } = await index.propose([draft(create("t1", "events"))], 1000);
    await index.applyEntry(entry!.bytes);
    return index;
  }

  it("has those that may be committed; the others have their own answers", async () => {
    await using index = await openIndex();
    const old = await index.propose([draft(append("t1", "old", ["k-old"]))], 2000);
    await index.applyEntry(old.entry!.bytes);
    const drafts = [
      draft(append("t1", "old", ["k0"], { hash: "rows:other" })), // a conflict, whatever becomes of the entry
      draft(append("t1", "old", ["k1"])), // a duplicate, likewise
      tagged("a"),
      tagged("a"), // a duplicate of what is not committed yet
      draft(append("t1", "x", ["k-a"])), // takes its file
      draft(append("t1", "p-1", ["k2"], { range: { source: "p", first: "1", last: "1" } })),
      draft(append("t1", "p-2", ["k3"], { range: { source: "p", first: "2", last: "2" } })),
      draft(append("t1", "p-4", ["k4"], { range: { source: "p", first: "4", last: "4" } })), // 3 is missing
      { ...tagged("b"), intent: "" },
    ];
    const { entry, outcomes, firm } = await index.propose(drafts, 3000);
    const committed = { answer: { status: "committed", snapshot: 3 } };
    expect(firm).toBe(2);
    expect(outcomes).toMatchObject([
      { failure: { code: "batch_conflict" } },
      { answer: { status: "duplicate", receipts: [{ snapshot: 2 }] } },
      { answer: { status: "committed", receipts: [{ table: "events", batchId: "a", snapshot: 3, rows: 1 }] } },
      { answer: { status: "duplicate", receipts: [{ batchId: "a", snapshot: 3 }] } },
      { failure: { code: "bad_file" } },
      committed,
      committed,
      { answer: { status: "stale", reason: "sequence" } },
      committed,
    ]);
    expect(decodeEntry(entry!.bytes)).toMatchObject({
      n: 3,
      meta: {},
      members: [
        { operations: 1, meta: { tag: "a" } },
        { operations: 1, meta: {} },
        { operations: 1, meta: {} },
        { operations: 1, meta: { tag: "b" } },
      ],
    });
    await index.applyEntry(entry!.bytes);
    expect(await index.tables()).toMatchObject([{ rows: 5, files: 5 }]);
    for (const outcome of outcomes) {
      if (outcome === "again" || !("answer" in outcome) || outcome.answer.status === "stale") continue;
      const [receipt] = outcome.answer.receipts;
      // Part 1 of p gave its place to part 2.
      const kept = receipt!.batchId === "p-1" ? undefined : receipt;
      expect(await index.receipt("t1", receipt!.batchId)).toEqual(kept);
    }
    const operations = (await index.snapshots({ after: 2 })).flatMap((snapshot) => snapshot.operations);
    expect(operations.map(({ batchId, meta }) => [batchId, meta?.tag])).toEqual([
      ["a", "a"],
      ["p-1", undefined],
      ["p-2", undefined],
      ["b", "b"],
    ]);
    expect((await index.changes("t1", "2")).map(({ meta }) => meta)).toEqual([{ tag: "a" }, {}, {}, { tag: "b" }]);
  });

  it("is one without members when one may be committed, and none when none may", async () => {
    await using index = await openIndex();
    const one = await index.propose([draft(append("t9", "x", ["k"])), tagged("a")], 2000);
    expect(decodeEntry(one.entry!.bytes)).toMatchObject({ meta: { tag: "a" } });
    expect(decodeEntry(one.entry!.bytes).members).toBeUndefined();
    const none = await index.propose([draft(append("t9", "x", ["k"]))], 2000);
    expect(none).toMatchObject({ entry: undefined, firm: 1, outcomes: [{ answer: { status: "stale" } }] });
  });

  it("is refused by readers where its members contradict each other or share it out wrongly", async () => {
    await using index = await openIndex();
    const { entry } = await index.propose([tagged("a"), tagged("b")], 2000);
    const text = Buffer.from(entry!.bytes.subarray(4)).toString();
    const [first, second] = (JSON.parse(text) as { operations: Record<string, unknown>[] }).operations;
    const meta = {};
    const changed = (change: object): Uint8Array => {
      const header = Buffer.from(JSON.stringify({ ...(JSON.parse(text) as object), ...change }));
      const length = Buffer.alloc(4);
      length.writeUInt32LE(header.length);
      return Buffer.concat([length, header]);
    };
    const drop = { op: "drop", table: "t1" };
    for (const wrong of [
      { operations: [first, { ...second, batch: "a", hash: "rows:a" }] },
      { operations: [first, { ...second, files: first!.files }] },
      { operations: [first, drop] },
      { members: [{ operations: 1, meta }] },
      { members: [{ operations: 2, meta }] },
      { members: [1, 2].map((operations) => ({ operations, meta })) },
    ]) {
      await expect(index.applyEntry(changed(wrong)), JSON.stringify(wrong)).rejects.toMatchObject({
        code: "bad_entry",
      });
    }
    await index.applyEntry(changed({}));
    expect(await index.head()).toMatchObject({ snapshot: 2 });
  });
});

it("drafts that do more than append, or expect a snapshot, share no entry", () => {
  const plain = draft(append("t1", "a", []));
  expect(sharesEntry(plain)).toBe(true);
  expect(sharesEntry({ ...plain, expectSnapshot: 1 })).toBe(false);
  expect(sharesEntry(draft(create("t1", "events"), append("t1", "a", [])))).toBe(false);
  expect(sharesEntry(draft({ op: "drop", table: "t1" }))).toBe(false);
});

describe("a queue of commits", () => {
  /** Records groups; answers a number with its double, `again` the first time for odd ones. */
  function recorded(limit: number, joins?: (n: number) => boolean) {
    const groups: number[][] = [];
    const asked = new Set<number>();
    const queue = new GroupQueue<number, number>({
      turn: () => Promise.resolve(),
      limit,
      ...(joins && { joins }),
      commit: async (members) => {
        groups.push([...members]);
        if (members.includes(13)) throw new Error("all of them");
        return members.map((n) => {
          if (n % 2 === 0 || asked.has(n)) return { answer: 2 * n };
          asked.add(n);
          return "again" as const;
        });
      },
    });
    return { queue, groups };
  }

  it("asks those who have no answer once more, before all others", async () => {
    const { queue, groups } = recorded(3);
    expect(await Promise.all([1, 2, 3, 4, 5].map((n) => queue.join(n)))).toEqual([2, 4, 6, 8, 10]);
    expect(groups).toEqual([[1, 2, 3], [1, 3, 4], [5], [5]]);
  });

  it("keeps those apart that join no group", async () => {
    const { queue, groups } = recorded(10, (n) => n < 100);
    await Promise.all([2, 4, 100, 102, 6, 8].map((n) => queue.join(n)));
    expect(groups).toEqual([[2, 4], [100], [102], [6, 8]]);
  });

  it("goes on after a group that failed as a whole", async () => {
    const { queue } = recorded(2);
    const results = await Promise.allSettled([13, 2, 4].map((n) => queue.join(n)));
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
    await queue.idle();
    expect(await queue.join(6)).toBe(12);
  });
});
