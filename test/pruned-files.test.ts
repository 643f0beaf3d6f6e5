/** Which statements read how many files, by hand. That no row is lost is `pruning.test.ts`'s to say. */

import { SqliteCatalog } from "@eider/catalog";
import { MemoryStore } from "@eider/storage";
import { Lake, type QueryStats } from "eider";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FILES } from "./support/files.js";

let lake: Lake;

/** Four files of ten rows: ids 0–9, 10–19, 20–29, 30–39; the later columns of each follow the file's number. */
beforeAll(async () => {
  lake = await Lake.open("memory:", FILES);
  const table = lake.table("t", {
    schema: {
      id: "int64",
      big: "uint64",
      d: "decimal(30,2)",
      x: "float64",
      s: "string",
      ok: "bool",
      day: "date",
      ts: "timestamptz",
      g: "uuid",
      p: 'struct<k: int64, "q r": string>',
      maybe: "int64",
    },
  });
  for (let file = 0; file < 4; file++) {
    const rows = Array.from({ length: 10 }, (_, i) => ({
      id: file * 10 + i,
      big: 18_446_744_073_709_551_600n + BigInt(file * 4),
      d: `1234567890123456789012345${file}.50`,
      x: file === 3 && i === 0 ? Number.NaN : file + i / 10,
      s: `${"abcd"[file]}${i}`,
      ok: file < 2,
      day: `2031-02-0${file + 1}`,
      ts: `2031-02-0${file + 1}T12:00:0${i}.123456Z`,
      g: `0000000${file}-0000-4000-8000-00000000000${i}`,
      p: { k: file * 10 + i, "q r": "abcd"[file] },
      maybe: file === 1 ? null : file === 2 && i > 4 ? null : file,
    }));
    await table.append(rows);
  }
  await table.append([{ id: 100, later: 1 }]);
  await lake.table("ns.u").append([{ k: 5, v: "a" }]);
  await lake.table("ns.u").append([{ k: 105, v: "b" }]);
});

afterAll(() => lake.close());

/** Files read of the five of `t` (and of the two of `ns.u`, where it is named). */
async function filesRead(sql: string, params: readonly never[] | readonly unknown[] = []): Promise<number> {
  const query = lake.sql(sql, params as never);
  await query;
  return query.stats!.filesRead;
}

async function statsOf(sql: string, n: bigint): Promise<QueryStats> {
  const query = lake.sql(sql);
  expect(await query).toEqual([{ n }]);
  return query.stats!;
}

describe("a condition on one column", () => {
  test.each([
    ["id = 15", 1],
    ["15 = id", 1],
    ["id <> 15", 5],
    ["id < 10", 1],
    ["id <= 10", 2],
    ["id > 39", 1],
    ["id >= 39", 2],
    ["9 < id AND id < 20", 1],
    ["id BETWEEN 12 AND 25", 2],
    ["id IN (1, 2, 35)", 2],
    ["id NOT IN (100)", 5],
    ["id = 3 OR id = 33", 2],
    ["NOT (id < 30)", 2],
    ["id + 1 = 16", 1],
    ["id = -1", 0],
    ["id = 15 AND s = 'a0'", 0],
    ["id = 15 OR x < 0.5", 2],
    ["id IS NOT DISTINCT FROM 15", 1],
    // Casts of the column and other functions say nothing.
    ["id::VARCHAR = '15'", 5],
    ["id % 10 = 3", 5],
    ["id = 15.5", 5],
    // Above 2^63, and beyond a double's digits.
    ["big = 18446744073709551604", 1],
    ["big > 18446744073709551611", 1],
    ["d = 12345678901234567890123452.50", 1],
    ["d < 12345678901234567890123451", 1],
    // NaN is above all.
    ["x < 1", 1],
    ["x > 2.95", 1],
    ["x > 100", 1],
    ["x = 'NaN'::DOUBLE", 5],
    ["s = 'b3'", 1],
    ["s >= 'c'", 2],
    ["s LIKE 'b%'", 1],
    ["s LIKE '%b'", 5],
    ["starts_with(s, 'b')", 5],
    ["s = 'B3' COLLATE NOCASE", 5],
    ["ok", 2],
    ["NOT ok", 2],
    ["ok = true", 2],
    ["day = '2031-02-03'", 1],
    ["day > DATE '2031-02-03'", 1],
    ["ts >= '2031-02-03 12:00:00Z'", 2],
    ["ts < '2031-02-02T00:00:00+09:00'", 1],
    ["ts::DATE = '2031-02-02'", 5],
    ["date_trunc('day', ts) = '2031-02-02'", 1],
    ["g = '00000002-0000-4000-8000-000000000005'", 1],
    ["p.k = 15", 1],
    ["p.\"q r\" = 'c'", 1],
    ["maybe IS NULL", 3],
    ["maybe IS NOT NULL", 3],
    ["maybe = 2", 1],
    ["later = 1", 1],
    ["later IS NULL", 4],
    ["later IS NOT NULL", 1],
    ["1 = 0", 0],
  ] as const)("%s reads %i files", async (condition, files) => {
    expect(await filesRead(`SELECT * FROM t WHERE ${condition}`)).toBe(files);
  });
});

describe("a statement", () => {
  test.each([
    ["WITH c AS (SELECT * FROM t) SELECT count(*) FROM c WHERE id = 15", 1],
    ["SELECT * FROM (SELECT id AS n, s FROM t) WHERE n = 15", 1],
    ["FROM t WHERE id = 15", 1],
    ["SELECT * FROM t WHERE id = 3 UNION ALL SELECT * FROM t WHERE id = 33", 2],
    ["SELECT * FROM t a JOIN t b ON a.id = b.id WHERE a.id = 3", 1],
    ["SELECT * FROM t JOIN ns.u ON t.id = u.k WHERE u.k = 5", 2],
    ["SELECT * FROM t JOIN ns.u ON t.id = u.k WHERE u.v = 'b' AND t.id > 39", 2],
    ["SELECT * FROM ns.u LEFT JOIN t ON t.id = u.k AND t.id < 10 WHERE u.k < 100", 2],
    ["SELECT (SELECT count(*) FROM t WHERE id < 10) AS n", 1],
    ["SELECT * FROM t WHERE id = 15 AND id IN (SELECT k FROM ns.u)", 3],
    ["WITH t AS (SELECT 15 AS id) SELECT * FROM t WHERE id = 15", 0],
    ["EXPLAIN SELECT * FROM t WHERE id = 15", 1],
    ["SELECT count(*) FILTER (WHERE id = 15) FROM t", 5],
    ["SELECT * FROM query('SELECT * FROM t WHERE id = 15')", 7],
    ["SELECT * FROM t AT (VERSION => 2) WHERE id = 15", 1],
    ["SELECT * FROM t AT (VERSION => 2) o JOIN t USING (id) WHERE o.id = 15 AND t.id = 15", 2],
    ["PIVOT (SELECT ok, id FROM t WHERE id < 5) ON ok USING count(*)", 5],
    // Functions that DuckDB gives another value each time.
    ["SELECT * FROM t WHERE s = current_schema()", 5],
    ["SELECT * FROM t WHERE ts > '2001-01-01'::TIMESTAMP + age('1990-01-01'::TIMESTAMP)", 5],
    // Past what stands in for its clock.
    ["SELECT * FROM t WHERE ts > system.main.now()", 5],
  ] as const)("%s reads %i files", async (sql, files) => {
    expect(await filesRead(sql)).toBe(files);
  });

  test("with parameters of each kind", async () => {
    expect(await filesRead("SELECT * FROM t WHERE id = ?", [15])).toBe(1);
    expect(await filesRead("SELECT * FROM t WHERE id >= $1 AND id < $2 LIMIT $3", [10n, 20, 5])).toBe(1);
    expect(await filesRead("SELECT * FROM t WHERE s = ? AND x < ?", ["b3", 3.5])).toBe(1);
    expect(await filesRead("SELECT * FROM t WHERE ts >= ?", [new Date("2031-02-04T00:00:00Z")])).toBe(1);
    expect(await filesRead("SELECT * FROM t WHERE ok = ?", [false])).toBe(2);
    expect(await filesRead("SELECT * FROM t WHERE id = ?", [null])).toBe(0);
    expect(await filesRead("SELECT * FROM t WHERE id > ?", [14.5])).toBe(5);
    const named = lake.sql("SELECT count(*) AS n FROM t WHERE id = $id", { id: 15 });
    expect(await named).toEqual([{ n: 1n }]);
    expect(named.stats).toMatchObject({ filesConsidered: 5, filesRead: 1 });
  });

  test("that calls a function of a table reads what is in the call", async () => {
    const query = lake.sql`SELECT count(*) AS n, max(range) AS last FROM range((SELECT max(id) FROM t WHERE id < 15))`;
    expect(await query).toEqual([{ n: 14n, last: 13n }]);
    expect(query.stats).toMatchObject({ filesConsidered: 5, filesRead: 2 });
    const list = "SELECT sum(u) AS n FROM unnest((SELECT list(id) FROM t WHERE id >= 38 AND id < 40)) AS l(u)";
    expect(await lake.sql(list)).toEqual([{ n: 77n }]);
  });

  test("that was planned before is planned again for another table of the same name", async () => {
    await using other = await Lake.open("memory:", FILES);
    const sql = "SELECT count(*) AS n FROM e WHERE a = 1";
    for (const schema of [
      { a: "int64", b: "int64" },
      { b: "int64", a: "int64" },
    ]) {
      const table = other.table("e", { schema });
      for (const [a, b] of [
        [1, 7],
        [2, 1],
        [1, 9],
      ]) {
        await table.append([{ a, b }]);
      }
      for (let again = 0; again < 2; again++) {
        const query = other.sql(sql);
        expect(await query).toEqual([{ n: 2n }]);
        expect(query.stats).toMatchObject({ filesConsidered: 3, filesRead: 2 });
      }
      await table.drop();
    }
  });

  test("with prune: false reads all, and says the same", async () => {
    const query = lake.with({ prune: false }).sql`SELECT s FROM t WHERE id = 15`;
    expect(await query).toEqual([{ s: "b5" }]);
    expect(query.stats).toMatchObject({ filesConsidered: 5, filesRead: 5 });
  });
});

describe("what was read, and from where,", () => {
  const NONE = { count: 0, bytes: 0 };

  test("is in the statistics: from the store once, then from the cache", async () => {
    await using memory = await Lake.open("memory:", FILES);
    const table = memory.table("e", { schema: { k: "int64" } });
    for (let k = 0; k < 3; k++) await table.append([{ k }]);
    const sizes = (await table.files()).map(({ bytes }) => bytes);
    expect(sizes.length).toBe(3);
    const fromOf = async (sql: string): Promise<QueryStats["from"]> => {
      const query = memory.sql(sql);
      await query;
      return query.stats!.from;
    };
    const first = { count: 1, bytes: sizes[0] };
    expect(await fromOf("FROM e WHERE k = 0")).toEqual({ store: first, cache: NONE, hot: NONE });
    expect(await fromOf("FROM e WHERE k = 0")).toEqual({ store: NONE, cache: first, hot: NONE });
    expect(await fromOf("FROM e")).toEqual({
      store: { count: 2, bytes: sizes[1]! + sizes[2]! },
      cache: first,
      hot: NONE,
    });
  });

  test("counts hot batches, which are in the catalog", async () => {
    await using small = await Lake.open("memory:");
    for (let k = 0; k < 3; k++) await small.table("e", { schema: { k: "int64" } }).append([{ k }]);
    const query = small.sql("FROM e WHERE k = 0");
    expect(await query).toEqual([{ k: 0n }]);
    const [{ bytes }] = (await small.sql("SELECT hot_bytes AS bytes FROM eider.tables")) as [{ bytes: bigint }];
    const hot = { count: 3, bytes: Number(bytes) };
    expect(query.stats).toMatchObject({ filesRead: 0, from: { store: NONE, cache: NONE, hot } });
    const [, files] = await small.sql("EXPLAIN FROM e");
    expect(files!.explain_value).toContain(`from the catalog 3 hot batches of ${bytes} bytes`);
  });

  test("is the last row of EXPLAIN, for each table and snapshot", async () => {
    const rows = await lake.sql<{ explain_key: string; explain_value: string }>(
      "EXPLAIN SELECT * FROM t JOIN t AT (VERSION => 2) old USING (id) WHERE t.id = ? AND old.id < 20",
      [15],
    );
    expect(rows.length).toBe(2);
    expect(rows[0]!.explain_value).toContain("READ_PARQUET");
    const [{ explain_key: key, explain_value: text }] = rows.slice(-1) as [(typeof rows)[0]];
    expect(key).toBe("files");
    expect(text).toMatch(
      /^t at snapshot \d+: 1 of 5 files, 4 left out; from the store .*\nt at snapshot 2: 1 of 2 files, /,
    );
    expect((await lake.sql("EXPLAIN ANALYZE SELECT count(*) FROM t WHERE id < 10")).at(-1)).toMatchObject({
      explain_value: expect.stringContaining("1 of 5 files, 4 left out"),
    });
    expect((await lake.sql("EXPLAIN SELECT 1")).length).toBe(1);
  });
});

test("a value of a column that buckets spread reads the files of its bucket", async () => {
  const table = lake.table("spread", {
    schema: { id: "int64", name: "string" },
    partitionBy: ["bucket(8, id)", "bucket(4, name)"],
  });
  // Every file has the smallest and the largest value of its partition: bounds alone leave out few.
  const rows = Array.from({ length: 4000 }, (_, i) => ({ id: i, name: `n${i % 500}` }));
  await table.append(rows);
  const { filesConsidered } = await statsOf("SELECT count(*) AS n FROM spread", 4000n);
  expect(filesConsidered).toBe(32);
  expect((await statsOf("SELECT count(*) AS n FROM spread WHERE id = 1234", 1n)).filesRead).toBeLessThanOrEqual(4);
  expect((await statsOf("SELECT count(*) AS n FROM spread WHERE name = 'n7'", 8n)).filesRead).toBeLessThanOrEqual(8);
  const both = await statsOf("SELECT count(*) AS n FROM spread WHERE id IN (7, 507) AND name = 'n7'", 2n);
  expect(both.filesRead).toBeLessThanOrEqual(2);
  expect((await statsOf("SELECT count(*) AS n FROM spread WHERE id > 100 AND id < 3000", 2899n)).filesRead).toBe(32);
});

describe("a condition on the time", () => {
  const HOUR = 3_600_000;
  /** Hours ago, one file each. */
  const AGES = [720, 240, 30, 6, 0];
  let recent: Lake;

  beforeAll(async () => {
    recent = await Lake.open("memory:", FILES);
    const table = recent.table("r", { schema: { ts: "timestamptz", local: "timestamp", day: "date" } });
    for (const age of AGES) {
      const ts = new Date(Date.now() - age * HOUR).toISOString();
      await table.append([{ ts, local: ts.slice(0, -1), day: ts.slice(0, 10) }]);
    }
  });

  afterAll(() => recent.close());

  test.each([
    ["ts > now() - INTERVAL 1 DAY", 2],
    ["ts > now() - ?::INTERVAL", 3, ["31 hours"]],
    ["ts > CURRENT_TIMESTAMP - to_days(11)", 4],
    ["ts >= transaction_timestamp() - INTERVAL 7 HOUR", 2],
    ["ts < ago(INTERVAL 11 DAY)", 1],
    ["ts BETWEEN get_current_timestamp() - INTERVAL 11 DAY AND now() - INTERVAL 1 DAY", 2],
    ["ts > now()", 0],
    ["ts <= now()", 5],
    ["local < localtimestamp - INTERVAL 11 DAY", 1],
    ["local < current_localtimestamp() - INTERVAL 11 DAY", 1],
    ["day < current_date - 11", 1],
    ["day < today() - 11", 1],
    ["day = current_date + 1", 0],
    ["date_trunc('day', ts) < date_trunc('day', now() - INTERVAL 11 DAY)", 1],
  ] as const)("%s reads %i files", async (condition, files, params: readonly string[] = []) => {
    const query = recent.sql(`SELECT count(*) AS n FROM r WHERE ${condition}`, params);
    expect(await query).toEqual([{ n: BigInt(files) }]);
    expect(query.stats!.filesRead).toBe(files);
  });

  test("has columns of the names and types that it would have without pruning", async () => {
    const sql =
      "SELECT now(), current_timestamp, CURRENT_DATE, today(), localtime, current_time, localtimestamp FROM r WHERE ts < now()";
    expect(await recent.sql(sql).columns()).toEqual(await recent.with({ prune: false }).sql(sql).columns());
  });

  test("means one time in the plan and in the run, however long the plan takes", async () => {
    const catalog = await SqliteCatalog.open({ path: ":memory:" });
    await using lake = await Lake.open({ store: new MemoryStore(), catalog }, FILES);
    for (const ts of ["2001-02-03T00:00:00Z", "2001-02-04T00:00:00Z"]) await lake.table("r").append([{ ts }]);
    // The first plan takes long by itself.
    await lake.sql("SELECT * FROM r WHERE ts > now()");
    const soon = Date.now() + 400;
    await lake.table("r").append([{ ts: new Date(soon).toISOString() }]);
    const files = catalog.files.bind(catalog);
    catalog.files = async (...of) => {
      while (Date.now() <= soon) await new Promise((resolve) => setTimeout(resolve, 10));
      return files(...of);
    };
    const query = lake.sql<{ now: string; rows: bigint }>(
      "SELECT now() AS now, (SELECT count(*) FROM r WHERE ts <= now()) AS rows",
    );
    const [{ now, rows }] = (await query) as [{ now: string; rows: bigint }];
    expect(rows).toBe(Date.parse(now) < soon ? 2n : 3n);
    expect(BigInt(query.stats!.filesRead)).toBe(rows);
  });
});
