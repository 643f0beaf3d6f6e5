/** Files that all have the table's own schema are read as they are: DuckDB then believes their footers. */

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
