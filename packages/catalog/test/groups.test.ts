/** Commits that come at the same time: one transaction, and each its own answer. */

import { join } from "node:path";
import { BatchConflictError, InvalidInputError } from "@eider/core";
import { describe, expect, it } from "vitest";
import type { Draft } from "../src/catalog.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
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
  it("are one transaction, in their order, each with its own snapshot, receipt and meta", async () => {
    const { catalog, seen } = await openWatched();
    await using _ = catalog;
    const batches = Array.from({ length: 50 }, (_, i) => `b${i}`);
    const results = await Promise.all(batches.map((batch) => catalog.commit(tagged(batch))));
    expect(seen.commits).toBe(1);
    for (const [i, batchId] of batches.entries()) {
      const receipt = await catalog.receipt("t1", batchId);
      expect(receipt).toMatchObject({ table: "events", batchId, snapshot: 2 + i, rows: 1 });
      expect(results[i]).toEqual({ status: "committed", snapshot: 2 + i, receipts: [receipt] });
    }
    const snapshots = await catalog.snapshots({ after: 1 });
    expect(snapshots.map(({ snapshot, meta }) => [snapshot, meta])).toEqual(
      batches.map((tag, i) => [2 + i, { tag }] as const),
    );
    expect(await catalog.tables(11)).toMatchObject([{ rows: 10, files: 10, bytes: 1000 }]);
    expect(await catalog.tables()).toMatchObject([{ rows: 50, files: 50, bytes: 5000 }]);
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
      expect((await catalog.snapshots({ after: 1 })).map(({ meta }) => meta.tag)).toEqual(["a", "b", "c"]);
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
        { status, receipts: [{ snapshot: 3 }] },
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
