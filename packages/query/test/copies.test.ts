import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Scratch, TestLake } from "./support.js";

/** Bytes of the copies below an engine's temporary folder, each inode once. */
function copiedBytes(scratch: Scratch): number {
  const sizes = new Map<number, number>();
  for (const entry of readdirSync(scratch.path, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !path.includes("eider-cache-2")) continue;
    const { ino, size } = statSync(path);
    sizes.set(ino, size);
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** Tables a, b, c of 100,000 distinct rows each, in memory: each more than half of 2.5 MB. */
async function threeTables(cacheBytes: number): Promise<{ lake: TestLake; keys: string[] }> {
  const lake = await TestLake.open({ cacheBytes });
  const keys: string[] = [];
  for (const name of ["a", "b", "c"]) {
    await lake.create(name, { s: "string" });
    keys.push(await lake.append(name, `SELECT hash(range || '${name}')::VARCHAR AS s FROM range(100000)`));
  }
  const sizes = await Promise.all(keys.map(async (key) => (await lake.store.head(key))!.size));
  for (const size of sizes) expect(Math.abs(size - 1_800_000)).toBeLessThan(500_000);
  return { lake, keys };
}

const count = (lake: TestLake, from: string): Promise<{ n: bigint } | undefined> =>
  lake.sql<{ n: bigint }>(`SELECT count(DISTINCT s) AS n FROM ${from}`).first();

test("copies of objects in memory take no more than they may, however many tables are read", async () => {
  const { lake } = await threeTables(2_500_000);
  await using _ = lake;
  for (const name of ["a", "b", "c", "a", "a", "c", "b"]) {
    expect(await count(lake, name)).toEqual({ n: 100_000n });
    expect(copiedBytes(lake.scratch)).toBeGreaterThan(0);
    expect(copiedBytes(lake.scratch)).toBeLessThanOrEqual(2_500_000);
  }
  // One at a time, for only one fits.
  expect(await Promise.all(["a", "b", "c"].map((name) => count(lake, name)))).toEqual(Array(3).fill({ n: 100_000n }));
});

test("a query whose files do not fit says so, and those that fit go on", async () => {
  const { lake } = await threeTables(2_500_000);
  await using _ = lake;
  await expect(count(lake, "(FROM a UNION ALL FROM b)")).rejects.toMatchObject({
    name: "LimitError",
    code: "cache_too_small",
  });
  expect(await count(lake, "a")).toEqual({ n: 100_000n });
});

test("a query that waits for room ends by its timeout and its signal", async () => {
  const { lake } = await threeTables(2_500_000);
  await using _ = lake;
  const holding = lake.sql("SELECT s FROM a")[Symbol.asyncIterator]();
  await holding.next();
  await expect(Promise.resolve(lake.with({ timeoutMs: 100 })("FROM b"))).rejects.toMatchObject({ code: "timeout" });
  const reason = new Error("enough");
  const abort = new AbortController();
  setTimeout(() => abort.abort(reason), 100);
  await expect(Promise.resolve(lake.with({ signal: abort.signal })("FROM b"))).rejects.toBe(reason);
  await holding.return?.();
  expect(await count(lake, "b")).toEqual({ n: 100_000n });
});

test("a query reads to its end what is deleted from the store meanwhile", async () => {
  const { lake, keys } = await threeTables(10_000_000);
  await using _ = lake;
  let rows = 0;
  for await (const _row of lake.sql("SELECT s FROM a")) {
    if (rows++ === 10) await lake.store.delete(keys);
  }
  expect(rows).toBe(100_000);
  await expect(count(lake, "c")).rejects.toMatchObject({ code: "missing_file", subject: keys[2] });
});
