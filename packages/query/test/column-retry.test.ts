/** A plan that does not name a column that is read all the same: DuckDB's optimizer may learn to. */

import { CountingStore, MemoryStore } from "@eider/storage";
import { expect, test, vi } from "vitest";
import { makeSql } from "../src/index.js";
import { buildScopeEntry } from "./scope-entry.js";
import { TestLake } from "./support.js";

/** Here plans forget a table's second column. */
vi.mock("../src/plan-json.js", async (load) => {
  const real = await load<typeof import("../src/plan-json.js")>();
  const readPlan: typeof real.readPlan = (text) =>
    real.readPlan(text)?.map((scan) => ({
      ...scan,
      columns: (fields) => scan.columns(fields).filter(({ id }) => id !== 2),
    }));
  return { ...real, readPlan };
});

test("is planned again with all columns, before anything is delivered", async () => {
  const seen = new CountingStore(new MemoryStore());
  await using lake = await TestLake.open({ store: seen, wholeFileBytes: 0 });
  await lake.create("t", { a: "int64", b: "int64", s: "string" });
  const rows = Array.from({ length: 5000 }, (_, i) => JSON.stringify({ a: i, b: i * 7919, s: `${Math.sin(i)}` }));
  const file = await lake.appendEncoded("t", [rows]);
  const sum = BigInt((7919 * 4999 * 5000) / 2);
  seen.reset();
  expect(await lake.sql("SELECT count(a) AS n FROM t")).toEqual([{ n: 5000n }]);
  expect(seen.counts.get.bytes).toBeLessThan(file.bytes / 2);
  const query = lake.sql("SELECT sum(b) AS n FROM t");
  expect(await query).toEqual([{ n: sum }]);
  expect(query.stats).toMatchObject({ rows: 1, filesRead: 1, from: { store: { count: 1, bytes: file.bytes } } });
});

test("in a scope too", async () => {
  await using lake = await TestLake.open({ wholeFileBytes: 0, scopeEntry: await buildScopeEntry() });
  await lake.create("t", { a: "int64", b: "int64", s: "string" });
  await lake.appendEncoded("t", [
    Array.from({ length: 5000 }, (_, i) => JSON.stringify({ a: i, b: i, s: `${Math.sin(i)}` })),
  ]);
  const scope = lake.engine.scope({ tables: { t: {} } });
  const ask = makeSql(async () => scope, {});
  expect(await ask("SELECT sum(b) AS n FROM t")).toEqual([{ n: 12_497_500n }]);
});

test("also while its rows are streamed", async () => {
  await using lake = await TestLake.open({ wholeFileBytes: 0 });
  await lake.create("t", { a: "int64", b: "int64", s: "string" });
  await lake.appendEncoded("t", [
    Array.from({ length: 5000 }, (_, i) => JSON.stringify({ a: i, b: i, s: `${Math.sin(i)}` })),
  ]);
  const found: unknown[] = [];
  for await (const { b } of lake.sql("SELECT b FROM t ORDER BY a")) found.push(b);
  expect(found).toEqual(Array.from({ length: 5000 }, (_, i) => BigInt(i)));
});
