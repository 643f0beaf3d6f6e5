import { describe, expect, test } from "vitest";
import { TestLake } from "./support.js";

describe("tables of a lake", () => {
  test("are read by their names at one snapshot", async () => {
    await using lake = await TestLake.open();
    await lake.create("events", { id: "int64", name: "string" });
    await lake.append("events", "SELECT 1::BIGINT AS id, 'a' AS name UNION ALL SELECT 2, NULL");
    await lake.append("events", "SELECT 3::BIGINT AS id, 'c' AS name");
    const query = lake.sql<{ id: bigint; name: string | null }>("SELECT * FROM events ORDER BY id");
    expect(await query).toEqual([
      { id: 1n, name: "a" },
      { id: 2n, name: null },
      { id: 3n, name: "c" },
    ]);
    expect(query.stats).toMatchObject({ snapshot: 3, filesConsidered: 2, filesRead: 2, rows: 3 });
  });

  test("stream", async () => {
    await using lake = await TestLake.open();
    await lake.create("n", { i: "int64" });
    await lake.append("n", "SELECT range AS i FROM range(10000)");
    let sum = 0n;
    for await (const row of lake.sql<{ i: bigint }>("SELECT i FROM n")) sum += row.i;
    expect(sum).toBe(49_995_000n);
  });
});
