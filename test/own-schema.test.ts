/**
 * Files that all have the table's own schema are read as they are: DuckDB then believes their footers. Files of several
 * versions are read by field id, through every change.
 */

import { Lake } from "eider";
import { expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

const SCHEMA = { x: "float64", s: "string", u: "uint64", n: "decimal(20,3)", d: "date", j: "json", g: "uuid" };
const LONG = "y".repeat(300);
const LOW = "00000000-0000-0000-0000-000000000001";
const HIGH = "ffffffff-ffff-ffff-ffff-fffffffffffe";

it("what footers say of whole columns is what their rows say", async () => {
  await using lake = await Lake.open(temporaryFolder(), FILES);
  const t = lake.table("t", { schema: SCHEMA });
  const nothing = { x: null, s: null, u: null, n: null, d: null, j: null, g: null };
  await t.append([
    { x: 1, s: `${LONG}a`, u: 18_446_744_073_709_551_615n, n: "0.001", d: "2031-02-03", j: { a: 1 }, g: HIGH },
    { x: Number.NaN, s: "é", u: 0n, n: "-99999999999999999.999", d: "1969-12-31", j: [], g: LOW },
    nothing,
  ]);
  await t.append([{ ...nothing, x: -5, s: `${LONG}b`, u: 9_007_199_254_740_993n }]);
  expect(await t.filesSql()).not.toContain("schema=MAP");

  const ask = (sql: string): PromiseLike<unknown[]> => lake.sql(sql);
  const answers = async (): Promise<unknown> => ({
    // NaN is above all numbers; é is above all letters of ASCII.
    bounds: await ask("SELECT min(x) a, max(x) b, min(s) c, max(s) = 'é' e, min(u) f, max(u) g FROM t"),
    others: await ask("SELECT min(n) a, max(n) b, min(d) c, max(d) e, min(g) f, max(g) h FROM t"),
    counts: await ask("SELECT count(*) a, count(x) b, count(s) c, count(n) e, count(j) f FROM t"),
    nan: await ask("SELECT count(*) n FROM t WHERE x > 100"),
    none: await ask("SELECT count(*) n FROM t WHERE u > 18446744073709551614 AND n > 0.001"),
    long: await ask(`SELECT count(*) n FROM t WHERE s > '${LONG}' AND s < '${LONG}aa'`),
    types: (await lake.sql("FROM t").columns()).map(({ type }) => type),
  });
  const expected = {
    bounds: [{ a: -5, b: Number.NaN, c: `${LONG}a`, e: true, f: 0n, g: 18_446_744_073_709_551_615n }],
    others: [{ a: "-99999999999999999.999", b: "0.001", c: "1969-12-31", e: "2031-02-03", f: LOW, h: HIGH }],
    counts: [{ a: 4n, b: 3n, c: 3n, e: 2n, f: 2n }],
    nan: [{ n: 1n }],
    none: [{ n: 0n }],
    long: [{ n: 1n }],
    types: ["DOUBLE", "VARCHAR", "UBIGINT", "DECIMAL(20,3)", "DATE", "JSON", "UUID"],
  };
  expect(await answers()).toEqual(expected);

  // A column more: the files before are read by the ids of their columns, and say the same.
  await t.append([{ ...nothing, later: 1 }]);
  expect(await t.filesSql()).toContain("schema=MAP");
  expect(await answers()).toEqual({
    ...expected,
    counts: [{ a: 5n, b: 3n, c: 3n, e: 2n, f: 2n }],
    types: [...expected.types, "BIGINT"],
  });
});

/** `k` grows from int32 to int64, `x` from int32 to float64, `n` to decimal, `p` by a field; `late` and `y` come later, and `y` grows. */
const GROWING = { k: "int32", x: "int32", n: "int64", p: "struct<a: int32>", same: "int64" };
const GROWN = [
  [
    { k: 1, x: 1, n: 1, p: { a: 1 }, same: 1 },
    { k: 2, x: 2, n: 2, p: { a: 2 }, same: 2 },
    { k: null, x: null, n: null, p: null, same: null },
  ],
  [{ k: 3, x: 3, n: 3, p: { a: 3, b: "three" }, same: 3, late: 30, y: 1 }],
  [
    {
      k: 5_000_000_000,
      x: 1.5,
      n: 100_000_000_000_000_000_000n,
      p: { a: 5_000_000_000, b: "five" },
      same: 4,
      late: 40,
      y: 1.5,
    },
  ],
];

it("conditions hold in files from before a column grew or came as they do in those after", async () => {
  await using lake = await Lake.open(temporaryFolder(), FILES);
  const t = lake.table("t", { schema: GROWING });
  for (const rows of GROWN) await t.append(rows);
  const same = async (condition: string): Promise<unknown> =>
    (await lake.sql(`SELECT same FROM t WHERE ${condition} ORDER BY same`)).map((row) => Number(row.same));
  expect((await lake.sql("FROM t").columns()).map(({ type }) => type)).toEqual([
    "BIGINT",
    "DOUBLE",
    "DECIMAL(38,0)",
    'STRUCT("a" BIGINT, "b" VARCHAR)',
    "BIGINT",
    "BIGINT",
    "DOUBLE",
  ]);
  expect(await same("k > 1")).toEqual([2, 3, 4]);
  expect(await same("k = 5000000000")).toEqual([4]);
  expect(await same("k < 5000000000")).toEqual([1, 2, 3]);
  expect(await same("k <> 705032704")).toEqual([1, 2, 3, 4]); // 5,000,000,000 in 32 bits
  expect(await same("x > 1.5")).toEqual([2, 3]);
  expect(await same("x >= 1.5 AND x < 2.5")).toEqual([2, 4]);
  expect(await same("x < 'NaN'::DOUBLE")).toEqual([1, 2, 3, 4]);
  expect(await same("n > 1.5")).toEqual([2, 3, 4]);
  expect(await same("n < 2.5 OR n = 100000000000000000000")).toEqual([1, 2, 4]);
  expect(await same("p.a > 2")).toEqual([3, 4]);
  expect(await same("p.a < 5000000000 AND p.b IS NULL")).toEqual([1, 2]);
  expect(await same("late > 30")).toEqual([4]);
  expect(await same("late IS NULL AND same IS NOT NULL")).toEqual([1, 2]);
  expect(await same("y > 1")).toEqual([4]);
  expect(await same("y <= 1.25")).toEqual([3]);
  expect(
    await lake.sql("SELECT count(*) a, count(k) b, count(late) c, min(k) d, max(k) e, min(x) f, max(n) g FROM t"),
  ).toEqual([{ a: 5n, b: 4n, c: 2n, d: 1n, e: 5_000_000_000n, f: 1, g: "100000000000000000000" }]);
  expect(await lake.sql("SELECT same, k FROM t ORDER BY k DESC NULLS LAST LIMIT 2")).toEqual([
    { same: 4n, k: 5_000_000_000n },
    { same: 3n, k: 3n },
  ]);

  // At the first of the appends, and of each, what it brought.
  expect(await lake.sql("SELECT k, x FROM t AT (VERSION => 1) WHERE x > 1.5")).toEqual([{ k: 2, x: 2 }]);
  expect(await lake.sql("SELECT _snapshot s, k FROM eider.changes('t', 0) WHERE x > 1.5 ORDER BY k")).toEqual([
    { s: 1n, k: 2n },
    { s: 2n, k: 3n },
  ]);
});

it("joins hold on a column that grew", async () => {
  await using lake = await Lake.open(temporaryFolder(), FILES);
  const t = lake.table("t", { schema: { k: "int32" } });
  await t.append(Array.from({ length: 20_000 }, (_, k) => ({ k })));
  await t.append([{ k: 5_000_000_000 }]);
  // Every seventh number: enough of them that DuckDB filters t's files by what it has seen of them.
  const d = lake.table("d", { schema: { k: "int64", s: "int64" } });
  await d.append(Array.from({ length: 3000 }, (_, i) => ({ k: i * 7, s: i % 10 })));
  // 7, 77, 147, … up to 19,957.
  const wanted = "SELECT k FROM d WHERE s = 1";
  expect(await lake.sql(`SELECT count(*) n FROM t WHERE k IN (${wanted})`)).toEqual([{ n: 286n }]);
  expect(await lake.sql(`SELECT count(*) n FROM t JOIN (${wanted}) USING (k)`)).toEqual([{ n: 286n }]);
  expect(await lake.sql(`SELECT count(*) n FROM t ANTI JOIN (${wanted}) USING (k)`)).toEqual([{ n: 19_715n }]);
});
