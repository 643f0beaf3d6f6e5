import { truncateSync, unlinkSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Scratch, TestLake } from "./support.js";

/** A lake of two files of 300,000 rows each: `i` counts through. */
async function bigLake(root: string): Promise<{ lake: TestLake; second: string }> {
  const lake = await TestLake.open({ root, threads: 2 });
  await lake.create("t", { i: "int64", s: "string" });
  const copy = "ROW_GROUP_SIZE 20000";
  await lake.append("t", "SELECT range AS i, 'row ' || range AS s FROM range(300000)", { copy });
  const key = await lake.append("t", "SELECT 300000 + range AS i, 'row ' || range AS s FROM range(300000)", { copy });
  return { lake, second: lake.store.localPath!(key) };
}

/** Reads to the end; what happened, and how many rows came first. */
async function drain(
  rows: AsyncIterable<unknown>,
  after: number,
  then: () => void,
): Promise<{ rows: number; error: unknown }> {
  let count = 0;
  try {
    for await (const _ of rows) if (++count === after) then();
    return { rows: count, error: undefined };
  } catch (error) {
    return { rows: count, error };
  }
}

describe("a stream", () => {
  test("keeps order and gives every row, whatever the statement", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    const statements: [string, (row: number) => bigint, number][] = [
      ["SELECT i FROM t", (row) => BigInt(row), 600_000],
      ["SELECT i FROM t ORDER BY i DESC", (row) => BigInt(599_999 - row), 600_000],
      ["SELECT i FROM t WHERE i % 2 = 1", (row) => BigInt(2 * row + 1), 300_000],
      ["SELECT i FROM t ORDER BY hash(i) LIMIT 0", () => 0n, 0],
      ["SELECT i FROM t WHERE i >= 5 LIMIT 5000", (row) => BigInt(row + 5), 5000],
      ["SELECT row_number() OVER (ORDER BY i DESC) AS i FROM t", (row) => BigInt(row + 1), 600_000],
      ["(SELECT i FROM t ORDER BY i LIMIT 3) UNION ALL (SELECT 7) -- end", (row) => [0n, 1n, 2n, 7n][row]!, 4],
    ];
    for (const [sql, expected, rows] of statements) {
      let row = 0;
      let wrong = 0;
      for await (const { i } of lake.sql<{ i: bigint }>(sql)) if (i !== expected(row++)) wrong++;
      expect({ sql, row, wrong }).toEqual({ sql, row: rows, wrong: 0 });
    }
  });

  test("throws when a file vanishes midway", async () => {
    using scratch = new Scratch();
    const { lake, second } = await bigLake(scratch.path);
    await using _ = lake;
    const { rows, error } = await drain(lake.sql("SELECT * FROM t"), 10, () => unlinkSync(second));
    expect(rows).toBeLessThan(600_000);
    expect(error).toMatchObject({ name: "CorruptionError", code: "missing_file" });
  });

  test("throws when a file is cut off midway", async () => {
    using scratch = new Scratch();
    const { lake, second } = await bigLake(scratch.path);
    await using _ = lake;
    const { rows, error } = await drain(lake.sql("SELECT * FROM t"), 10, () => truncateSync(second, 100_000));
    expect(rows).toBeLessThan(600_000);
    expect(error).toMatchObject({ name: "CorruptionError", code: "damaged_file" });
  });

  test("throws the error of a late row", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    const sql = "SELECT CASE WHEN i = 570000 THEN error('boom') ELSE i END AS i FROM t WHERE i <> $1";
    const { rows, error } = await drain(lake.sql(sql, [3]), 10, () => undefined);
    expect(rows).toBeLessThan(570_000);
    expect(rows).toBeGreaterThan(50_000);
    expect(error).toMatchObject({ name: "QueryError", code: "sql_error", message: expect.stringContaining("boom") });
  });

  test("rejects with the signal's reason", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    const controller = new AbortController();
    const reason = new Error("no longer wanted");
    const { rows, error } = await drain(lake.with({ signal: controller.signal })("SELECT * FROM t"), 10, () =>
      controller.abort(reason),
    );
    expect(rows).toBeLessThan(100_000);
    expect(error).toBe(reason);
  });

  test("throws when the engine is closed", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    const { rows, error } = await drain(lake.sql("SELECT * FROM t"), 10, () => void lake.engine.close());
    expect(rows).toBeLessThan(100_000);
    expect(error).toMatchObject({ code: "engine_closed" });
  });

  test("computes no more than is read, and a break lets go of everything", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    for (let round = 0; round < 20; round++) {
      for await (const row of lake.sql<{ i: bigint }>("SELECT i FROM t")) {
        expect(row.i).toBe(0n);
        break;
      }
    }
    const [open] = await lake.sql<{ n: bigint }>("SELECT count(*) AS n FROM duckdb_databases()");
    // Those of DuckDB, our base and the idle sessions.
    expect(open!.n).toBeLessThan(8n);
  });

  test("may be read by several at once", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    const sums = await Promise.all(
      Array.from({ length: 6 }, async () => {
        let sum = 0n;
        for await (const { i } of lake.sql<{ i: bigint }>("SELECT i FROM t WHERE i < 200000")) sum += i;
        return sum;
      }),
    );
    expect(sums).toEqual(Array(6).fill(19_999_900_000n));
  });

  test("as Arrow IPC can be cancelled", async () => {
    using scratch = new Scratch();
    const { lake } = await bigLake(scratch.path);
    await using _ = lake;
    const reader = lake.sql("SELECT * FROM t").arrowIPC().getReader();
    expect((await reader.read()).done).toBe(false);
    await reader.cancel();
    const failing = lake.sql("SELECT CASE WHEN i = 570000 THEN error('boom') ELSE i END AS i FROM t").arrowIPC();
    await expect(new Response(failing).arrayBuffer()).rejects.toMatchObject({ code: "sql_error" });
  });
});

test("aborts at any moment: all rows or the reason, and nothing stays behind", async () => {
  using scratch = new Scratch();
  const { lake } = await bigLake(scratch.path);
  await using _ = lake;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          delayMs: fc.integer({ min: 0, max: 60 }),
          streamed: fc.boolean(),
          breakAfter: fc.integer({ min: 1, max: 200_000 }),
        }),
        { minLength: 1, maxLength: 8 },
      ),
      async (runs) => {
        await Promise.all(
          runs.map(async ({ delayMs, streamed, breakAfter }) => {
            const controller = new AbortController();
            const timer = setTimeout(() => controller.abort("stop"), delayMs);
            const query = lake.with({ signal: controller.signal })<{ i: bigint }>("SELECT i FROM t WHERE i < 100000");
            try {
              let rows = 0;
              if (streamed) {
                for await (const { i } of query) {
                  expect(i).toBe(BigInt(rows));
                  if (++rows === breakAfter) return;
                }
              } else rows = (await query).length;
              expect(rows).toBe(100_000);
            } catch (error) {
              expect(error).toBe("stop");
            } finally {
              clearTimeout(timer);
            }
          }),
        );
      },
    ),
    { numRuns: 15 },
  );
  const [open] = await lake.sql<{ n: bigint }>("SELECT count(*) AS n FROM duckdb_databases()");
  expect(open!.n).toBeLessThan(8n);
});

describe("limits", () => {
  const ENDLESS = "SELECT count(*) FROM range(1000000000) a, range(1000000) b WHERE hash(a.range + b.range) = 42";

  test.each(["await", "stream", "columns"])("a signal that is already aborted (%s)", async (how) => {
    await using lake = await TestLake.open();
    const query = lake.with({ signal: AbortSignal.abort("stop") })("SELECT 1");
    await expect(
      how === "await" ? Promise.resolve(query) : how === "stream" ? query.first() : query.columns(),
    ).rejects.toBe("stop");
  });

  test.each(["await", "stream"])("an abort while it runs (%s)", async (how) => {
    await using lake = await TestLake.open();
    const controller = new AbortController();
    const query = lake.with({ signal: controller.signal })(ENDLESS);
    setTimeout(() => controller.abort("enough"), 50);
    await expect(how === "await" ? Promise.resolve(query) : query.first()).rejects.toBe("enough");
    expect(await lake.sql("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test.each(["await", "stream"])("a time limit (%s)", async (how) => {
    await using lake = await TestLake.open();
    const query = lake.with({ timeoutMs: 50 })(ENDLESS);
    await expect(how === "await" ? Promise.resolve(query) : query.first()).rejects.toMatchObject({
      name: "LimitError",
      code: "timeout",
    });
  });

  test("a time limit that no timer can hold is none", async () => {
    await using lake = await TestLake.open();
    expect(await lake.with({ timeoutMs: 1e12 })("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("memory", async () => {
    await using lake = await TestLake.open({ memoryBytes: 64 * 1024 * 1024, threads: 1 });
    await expect(Promise.resolve(lake.sql("SELECT list(range) AS l FROM range(50000000)"))).rejects.toMatchObject({
      name: "LimitError",
      code: "out_of_memory",
    });
    expect(await lake.sql("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("a sort larger than memory spills", async () => {
    await using lake = await TestLake.open({ memoryBytes: 80 * 1024 * 1024, threads: 2 });
    const sql = "SELECT max(r) AS r FROM (SELECT row_number() OVER (ORDER BY hash(range)) AS r FROM range(6000000))";
    expect(await lake.sql(sql)).toEqual([{ r: 6_000_000n }]);
  });

  test("settings of the instance", async () => {
    await using lake = await TestLake.open({ memoryBytes: 256 * 1024 * 1024, threads: 1 });
    const [settings] = await lake.sql(
      `SELECT current_setting('TimeZone') AS tz, current_setting('threads') AS threads,
         current_setting('memory_limit') AS memory, current_setting('autoinstall_known_extensions') AS install`,
    );
    expect(settings).toEqual({ tz: "UTC", threads: 1n, memory: "256.0 MiB", install: false });
  });
});
