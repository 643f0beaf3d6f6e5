/** Views: SELECTs with a name in the catalog. */

import { rmSync } from "node:fs";
import { SqliteCatalog } from "@eider/catalog";
import { MemoryStore } from "@eider/storage";
import { Lake } from "eider";
import { describe, expect, onTestFinished, test } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

async function openLake(): Promise<Lake> {
  const lake = await Lake.open("memory:");
  onTestFinished(() => lake.close());
  await lake.table("events").append([
    { id: 1, type: "view", ms: 12 },
    { id: 2, type: "buy", ms: 40 },
    { id: 3, type: "view", ms: 7 },
  ]);
  return lake;
}

describe("a view", () => {
  test("is read like a table: in joins, over other views, with parameters, by DESCRIBE and COPY", async () => {
    const lake = await openLake();
    const made = await lake.createView("slow", "SELECT id, ms FROM events WHERE ms > 10; ");
    expect(made).toEqual({ name: "slow", sql: "SELECT id, ms FROM events WHERE ms > 10", createdIn: 2 });
    await lake.createView("stats.slowest", "SELECT max(ms) AS ms FROM slow");
    expect(await lake.sql`SELECT * FROM slow WHERE id < ${2}`).toEqual([{ id: 1n, ms: 12n }]);
    expect(await lake.sql`SELECT e.type FROM events e JOIN stats.slowest s ON s.ms = e.ms`).toEqual([{ type: "buy" }]);
    expect(await lake.sql`SELECT type FROM events JOIN SLOW USING (id) ORDER BY id`).toEqual([
      { type: "view" },
      { type: "buy" },
    ]);
    expect((await lake.sql`DESCRIBE slow`).map(({ column_name }) => column_name)).toEqual(["id", "ms"]);
    expect((await lake.sql`SHOW TABLES`).map(({ name }) => name)).toEqual(["events", "slow"]);
    expect(await lake.sql("SELECT * FROM query('FROM slow') WHERE id = 2")).toEqual([{ id: 2n, ms: 40n }]);
    expect(await lake.sql`SELECT name, sql, created_in FROM eider.views`).toEqual([
      { name: "slow", sql: "SELECT id, ms FROM events WHERE ms > 10", created_in: 2n },
      { name: "stats.slowest", sql: "SELECT max(ms) AS ms FROM slow", created_in: 3n },
    ]);
    expect(await lake.views()).toMatchObject([{ name: "slow" }, { name: "stats.slowest", createdIn: 3 }]);
    expect((await lake.snapshots())[1]).toMatchObject({ operations: [{ op: "view", name: "slow" }] });
  });

  test("means the same names as a query, wherever it stands itself", async () => {
    const lake = await openLake();
    await lake.table("stats.events").append([{ id: 99 }]);
    await lake.createView("stats.all", "SELECT events.id, e.id AS other FROM events, stats.events AS e WHERE ms = 7");
    expect(await lake.sql`FROM stats.all`).toEqual([{ id: 3n, other: 99n }]);
    await lake.createView("shadowed", "WITH events AS (SELECT 5 AS id FROM events LIMIT 1) SELECT id FROM events");
    expect(await lake.sql`FROM shadowed`).toEqual([{ id: 5 }]);
    // A column called like a view or a table is none.
    await lake.createView("ms", "SELECT 1 AS slow");
    await lake.createView("slow", "SELECT id AS ms FROM events");
    expect(await lake.sql`SELECT slow FROM ms`).toEqual([{ slow: 1 }]);
    expect(await lake.sql`SELECT count(ms) AS n FROM slow`).toEqual([{ n: 3n }]);
  });

  test("is at each snapshot what it was there, and so are its tables", async () => {
    const lake = await openLake();
    await lake.createView("v", "SELECT count(*) AS n FROM events");
    await lake.table("events").append([{ id: 4, type: "buy", ms: 1 }]);
    await lake.createView("v", "SELECT 'other' AS n", { orReplace: true });
    await lake.tag("then", { at: 3 });
    await lake.dropView("V");
    const n = async (sql: string, at?: number): Promise<unknown> =>
      (
        await lake
          .with(at === undefined ? {} : { at })
          .sql<{ n: unknown }>(sql)
          .first()
      )?.n;
    expect(await n("FROM v", 2)).toBe(3n);
    expect(await n("FROM v", 3)).toBe(4n);
    expect(await n("FROM v", 4)).toBe("other");
    expect(await n("SELECT n FROM v AT (VERSION => 2)")).toBe(3n);
    expect(await n("SELECT n FROM v AT (VERSION => 'then')")).toBe(4n);
    expect(await n("SELECT a.n + b.n AS n FROM v a AT (VERSION => 2), v b AT (VERSION => 3)")).toBe(7n);
    await expect(lake.sql`FROM v`).rejects.toMatchObject({ code: "unknown_table" });
    await expect(lake.sql`FROM v AT (VERSION => 1)`).rejects.toMatchObject({ code: "unknown_table" });
    expect(await lake.views({ at: 2 })).toEqual([{ name: "v", sql: "SELECT count(*) AS n FROM events", createdIn: 2 }]);
    expect(await lake.views()).toEqual([]);
    expect(await lake.with({ at: 3 }).sql`SELECT name, created_in FROM eider.views`).toEqual([
      { name: "v", created_in: 2n },
    ]);
  });

  test("with the same text is made once; with another only where that is wanted", async () => {
    const lake = await openLake();
    const made = await lake.createView("v", "FROM events");
    expect(await lake.createView("v", "FROM events ;")).toEqual(made);
    await expect(lake.createView("V", "SELECT 1 AS a")).rejects.toMatchObject({
      name: "AlreadyExistsError",
      code: "view_exists",
    });
    expect(await lake.createView("v", "SELECT 1 AS a", { orReplace: true })).toMatchObject({ createdIn: 3 });
    await expect(lake.dropView("w")).rejects.toMatchObject({ code: "view_not_found" });
  });

  test("shares its name with no table", async () => {
    const lake = await openLake();
    await expect(lake.createView("Events", "SELECT 1 AS a")).rejects.toMatchObject({ code: "table_exists" });
    await lake.createView("v", "SELECT 1 AS a");
    await expect(lake.table("v").append([{ a: 1 }])).rejects.toMatchObject({ code: "name_taken" });
    await expect(lake.table("V").create()).rejects.toMatchObject({ code: "name_taken" });
    await expect(lake.createView("eider.v", "SELECT 1 AS a")).rejects.toMatchObject({ code: "bad_name" });
    await expect(lake.createView("w", "SELECT 1 AS a", { replace: true } as object)).rejects.toMatchObject({
      code: "bad_option",
    });
  });

  test.each([
    ["nothing", "", "syntax_error"],
    ["no SQL", "SELEC 1", "bad_view"],
    ["a syntax error", "SELECT FROM WHERE", "syntax_error"],
    ["two statements", "SELECT 1; SELECT 2", "multiple_statements"],
    ["what writes", "DROP TABLE events", "read_only_sql"],
    ["a parameter", "SELECT $1", "bad_view"],
    ["AT", "FROM events AT (VERSION => 1)", "bad_view"],
    ["DESCRIBE", "DESCRIBE events", "bad_view"],
    ["EXPLAIN", "EXPLAIN SELECT 1", "bad_view"],
    ["COPY", "COPY (SELECT 1) TO '/tmp/x'", "bad_view"],
    ["PIVOT whose columns are in the data", "FROM (PIVOT events ON type USING count(*))", "bad_view"],
    ["a file", "FROM '/etc/passwd'", "bad_view"],
    ["a function of files", "FROM read_text('/etc/hostname')", "bad_view"],
    ["query()", "FROM query('FROM events')", "bad_view"],
    ["system tables", "FROM eider.tables", "bad_view"],
    ["the environment", "SELECT getenv('HOME')", "bad_view"],
    ["a table that is not there", "FROM evnets", "unknown_table"],
    ["a column that is not there", "SELECT nope FROM events", "unknown_column"],
  ])("cannot be %s", async (_, sql, code) => {
    const lake = await openLake();
    await expect(lake.createView("v", sql)).rejects.toMatchObject({ code });
    expect(await lake.views()).toEqual([]);
  });

  test("says where its text is wrong", async () => {
    const lake = await openLake();
    await expect(lake.createView("v", "SELECT id, nope FROM events")).rejects.toMatchObject({ position: 11 });
    await expect(lake.createView("v", "  SELECT 'ü', getenv('HOME')")).rejects.toMatchObject({ position: 14 });
  });

  test("reads itself nowhere, and is not too deep", async () => {
    const lake = await openLake();
    await expect(lake.createView("v", "FROM v")).rejects.toMatchObject({ code: "unknown_table" });
    await lake.createView("a", "SELECT 1 AS x");
    await lake.createView("b", "FROM a");
    await expect(lake.createView("a", "FROM b", { orReplace: true })).rejects.toMatchObject({
      code: "bad_view",
      message: expect.stringContaining("reads itself"),
    });
    for (let i = 1; i < 16; i++) await lake.createView(`v${i}`, i === 1 ? "FROM a" : `FROM v${i - 1}`);
    await expect(lake.createView("v16", "FROM v15")).rejects.toMatchObject({ code: "bad_view" });
    expect(await lake.sql`FROM v15`).toEqual([{ x: 1 }]);
  });

  test("without its table says so; other statements do not mind", async () => {
    const lake = await openLake();
    await lake.table("other").append([{ v: 1, w: 2 }]);
    await lake.createView("v", "SELECT type FROM events");
    await lake.createView("w", "FROM v");
    await lake.table("events").drop();
    const broken = { code: "view_broken", message: expect.stringContaining('no table "events"') };
    await expect(lake.sql`FROM v`).rejects.toMatchObject({ ...broken, subject: "v" });
    await expect(lake.sql`FROM w`).rejects.toMatchObject({ ...broken, subject: "w" });
    expect(await lake.sql`SELECT v, w FROM other`).toEqual([{ v: 1n, w: 2n }]);
    expect((await lake.sql`SHOW TABLES`).map(({ name }) => name)).toEqual(["other"]);
    expect(await lake.with({ at: 4 }).sql`SELECT count(*) AS n FROM w`).toEqual([{ n: 3n }]);
    // Another table of the name that lacks the column.
    await lake.table("events").append([{ kind: "buy" }]);
    await expect(lake.sql`FROM w`).rejects.toMatchObject({ code: "view_broken" });
    await expect(lake.sql`FROM v`).rejects.toMatchObject({ code: "view_broken", message: /"type" not found/ });
    expect(await lake.sql`SELECT v, w FROM other`).toEqual([{ v: 1n, w: 2n }]);
    await lake.table("events").append([{ kind: "buy", type: "t" }]);
    expect(await lake.sql`SELECT type FROM w ORDER BY ALL`).toEqual([{ type: "t" }, { type: null }]);
  });

  test("whose text nobody judged is not run", async () => {
    const store = new MemoryStore();
    const catalog = await SqliteCatalog.open({ path: ":memory:" });
    await using lake = await Lake.open({ store, catalog });
    await lake.table("t").append([{ evil: 1 }]);
    const texts = [
      "SELECT content FROM read_text('/etc/hostname')",
      "FROM '/etc/passwd'",
      "SELECT getenv('HOME')",
      "SELECT 1; ATTACH '/tmp/x.db' AS x",
      "SELECT 1 AS a) ; ATTACH '/tmp/x.db' AS x; SELECT (1",
      "SELECT $1",
      "'",
      "SELECT * FROM t AT (VERSION => 1)",
    ];
    for (const [i, sql] of texts.entries()) {
      await catalog.commit({ operations: [{ op: "view", name: "evil", sql, ...(i > 0 && { from: i + 1 }) }] });
      await expect(lake.sql("FROM evil"), sql).rejects.toMatchObject({ code: "view_broken" });
      expect(await lake.sql`SELECT evil FROM t`).toEqual([{ evil: 1n }]);
      expect((await lake.sql`SHOW TABLES`).map(({ name }) => name)).toEqual(["t"]);
    }
  });

  test("is brought back by a rollback, dropped by one, or given its old text", async () => {
    const lake = await openLake();
    await lake.createView("kept", "SELECT 1 AS a");
    await lake.createView("changed", "SELECT 1 AS a");
    await lake.createView("dropped", "SELECT 1 AS a");
    await lake.createView("changed", "SELECT 2 AS a", { orReplace: true });
    await lake.dropView("dropped");
    await lake.createView("new", "SELECT 3 AS a");
    expect(await lake.rollback({ to: 4 })).toEqual({ snapshot: 8 });
    expect(await lake.views()).toEqual([
      { name: "changed", sql: "SELECT 1 AS a", createdIn: 8 },
      { name: "dropped", sql: "SELECT 1 AS a", createdIn: 8 },
      { name: "kept", sql: "SELECT 1 AS a", createdIn: 2 },
    ]);
  });
});

test("filters go through views to the files; now() is one time in the plan and in the run", async () => {
  const lake = await Lake.open("memory:", FILES);
  onTestFinished(() => lake.close());
  const events = lake.table("events");
  const day = 86_400_000;
  for (const [id, age] of [
    [1, 40],
    [2, 3],
    [3, 0],
  ] as const) {
    await events.append([{ id, ts: new Date(Date.now() - age * day) }]);
  }
  await lake.createView("numbered", "SELECT id, id * 2 AS double, ts FROM events");
  await lake.createView("recent", "SELECT * FROM numbered WHERE ts > now() - INTERVAL 30 DAY");
  const one = lake.sql`SELECT double FROM numbered WHERE id = 2`;
  expect(await one).toEqual([{ double: 4n }]);
  expect(one.stats).toMatchObject({ filesConsidered: 3, filesRead: 1 });
  const recent = lake.sql`SELECT id FROM recent ORDER BY id`;
  expect(await recent).toEqual([{ id: 2n }, { id: 3n }]);
  expect(recent.stats).toMatchObject({ filesConsidered: 3, filesRead: 2 });
  const then = lake.sql`SELECT id FROM recent AT (VERSION => 5) WHERE id < 3`;
  expect(await then).toEqual([{ id: 2n }]);
  expect(then.stats).toMatchObject({ filesRead: 1 });
  // A plan of another moment would leave out what has come since.
  await lake.createView("past", "SELECT * FROM numbered WHERE ts <= now() -- so far");
  expect(await lake.sql`SELECT count(*) AS n FROM past`).toEqual([{ n: 3n }]);
  await events.append([{ id: 4, ts: new Date() }]);
  expect(await lake.sql`SELECT count(*) AS n FROM past`).toEqual([{ n: 4n }]);
  const other = lake.sql`SELECT count(*) AS n FROM numbered WHERE id IS DISTINCT FROM 2`;
  expect(await other).toEqual([{ n: 3n }]);
});

test("lakes have them again when they are opened, rebuilt and copied, and hosts share them", async () => {
  const folder = temporaryFolder();
  {
    await using lake = await Lake.open(`${folder}/lake`);
    await lake.table("events").append([{ id: 1 }]);
    await lake.createView("v", "SELECT id + 1 AS x FROM events");
    await lake.createView("gone", "SELECT 1 AS a");
    await lake.dropView("gone");
  }
  const check = async (where: string): Promise<void> => {
    await using lake = await Lake.open(where);
    expect(await lake.views()).toMatchObject([{ name: "v", createdIn: 2 }]);
    expect(await lake.sql`FROM v`).toEqual([{ x: 2n }]);
    expect(await lake.with({ at: 3 }).sql`FROM gone`).toEqual([{ a: 1 }]);
  };
  await check(`${folder}/lake`);
  {
    await using lake = await Lake.open(`${folder}/lake`, { mode: "read" });
    await expect(lake.createView("w", "SELECT 1 AS a")).rejects.toMatchObject({ code: "read_only" });
    expect(await lake.sql`FROM v`).toEqual([{ x: 2n }]);
  }
  for (const suffix of ["", "-wal", "-shm"]) rmSync(`${folder}/lake/_eider/catalog.sqlite${suffix}`, { force: true });
  await Lake.rebuild(`${folder}/lake`);
  await check(`${folder}/lake`);
  // Hosts that share it: one makes a view, the other reads it, a third begins with the copy's checkpoint.
  const store = new MemoryStore();
  {
    await using lake = await Lake.open(`${folder}/lake`);
    await lake.copyTo(store);
  }
  await using first = await Lake.open({ store }, { cacheDir: `${folder}/first`, stalenessMs: 0 });
  await using second = await Lake.open({ store }, { cacheDir: `${folder}/second`, stalenessMs: 0 });
  await Promise.all([
    first.createView("w", "SELECT x FROM v"),
    second.createView("w", "SELECT x FROM v"),
    first.createView("u", "SELECT 2 AS x"),
  ]);
  expect((await second.views()).map(({ name }) => name)).toEqual(["u", "v", "w"]);
  expect(await second.sql`FROM w`).toEqual([{ x: 2n }]);
  const both = await Promise.allSettled([first.dropView("w"), second.dropView("w")]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
});
