import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestLake } from "./support.js";

let lake: TestLake;
beforeAll(async () => {
  lake = await TestLake.open();
});
afterAll(() => lake[Symbol.asyncDispose]());

describe("a query is a promise of its rows", () => {
  test("that TypeScript takes for one", async () => {
    const ask = (): Promise<{ a: number }[]> => lake.sql<{ a: number }>("SELECT 1 AS a");
    expect(await ask()).toEqual([{ a: 1 }]);
    expect(await Promise.all([ask(), ask()])).toEqual([[{ a: 1 }], [{ a: 1 }]]);
  });

  test("with catch", async () => {
    expect(await lake.sql("SELECT 1 AS a").catch(() => "failed")).toEqual([{ a: 1 }]);
    expect(await lake.sql("SELECT nope").catch((error: unknown) => (error as Error).name)).toBe("QueryError");
  });

  test("with finally, which passes on what came", async () => {
    let ended = 0;
    const count = (): void => void ended++;
    expect(await lake.sql("SELECT 1 AS a").finally(count)).toEqual([{ a: 1 }]);
    await expect(lake.sql("SELECT nope").finally(count)).rejects.toMatchObject({ code: "unknown_column" });
    expect(ended).toBe(2);
  });

  test("that has not begun where nobody awaited it, and says so", async () => {
    const query = lake.sql("SELECT 1 AS a");
    expect(String(query)).toBe("[object Query]");
    await new Promise(setImmediate);
    expect(query.stats).toBeUndefined();
    await query;
    expect(query.stats?.rows).toBe(1);
  });
});
