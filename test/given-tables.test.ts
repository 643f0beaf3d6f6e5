/** Rows and Arrow data as tables of a query: `lake.with({ tables })`. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import {
  Decimal,
  Float64,
  Int32,
  makeVector,
  Table,
  tableFromArrays,
  tableFromIPC,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from "apache-arrow";
import { Lake } from "eider";
import { expect, onTestFinished, test } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

async function openLake(): Promise<Lake> {
  const lake = await Lake.open("memory:", { ...FILES, cacheDir: temporaryFolder() });
  onTestFinished(() => lake.close());
  for (const id of [1, 2, 3]) await lake.table("orders").append([{ id, person: id * 10, total: id * 1.5 }]);
  return lake;
}

const PEOPLE = [
  { id: 10, name: "Ada" },
  { id: 30, name: "it's" },
];

test("are joined with tables of the lake, whose files are still chosen", async () => {
  const lake = await openLake();
  const { sql } = lake.with({ tables: { people: PEOPLE, "ref.rates": [{ rate: 2 }] } });
  const joined = sql`SELECT o.id, p.name, total * rate AS total FROM orders o JOIN People p ON p.id = o.person, ref.rates WHERE o.id = ${3}`;
  expect(await joined).toEqual([{ id: 3n, name: "it's", total: 9 }]);
  expect(joined.stats).toMatchObject({ filesConsidered: 3, filesRead: 1 });
  expect(await sql`SELECT count(*) AS n FROM people WHERE id NOT IN (SELECT person FROM orders)`).toEqual([{ n: 0n }]);
  expect((await sql`SHOW TABLES`).map(({ name }) => name)).toEqual(["orders", "people"]);
  expect((await sql`DESCRIBE people`).map(({ column_type }) => column_type)).toEqual(["BIGINT", "VARCHAR"]);
  // As the array is when the query runs.
  const rows = [{ a: 1 }];
  const given = lake.with({ tables: { rows } });
  const query = given.sql`SELECT count(*) AS n FROM rows`;
  rows.push({ a: 2 });
  expect([await query, await query]).toEqual([[{ n: 2n }], [{ n: 2n }]]);
  rows.push({ a: 3 });
  expect(await query).toEqual([{ n: 3n }]);
  for await (const row of given.sql`SELECT max(a) AS a FROM rows`) expect(row).toEqual({ a: 3n });
  // Others do not see it.
  await expect(lake.sql`FROM people`).rejects.toMatchObject({ code: "unknown_table" });
});

test("have the types that a table would have of the same rows", async () => {
  const lake = await openLake();
  const rows = [
    {
      i: 1,
      big: 2n ** 63n - 1n,
      huge: 2n ** 64n,
      f: 0.1,
      b: true,
      s: "é",
      d: new Date("2031-02-03T04:05:06.789Z"),
      bytes: Uint8Array.of(0, 255),
      list: [1, 2],
      struct: { a: { b: "x" } },
      mixed: 1,
      none: null,
      iso: "2031-02-03T04:05:06+01:00",
    },
    { i: 2 ** 53 - 1, f: Number.NaN, mixed: "two", list: [], struct: { a: null, c: 1n } },
  ];
  const { sql } = lake.with({ tables: { t: rows } });
  const types = await sql`SELECT column_name AS name, column_type AS type FROM (DESCRIBE t)`;
  expect(Object.fromEntries(types.map(({ name, type }) => [name, type]))).toEqual({
    i: "BIGINT",
    big: "BIGINT",
    huge: "DECIMAL(38,0)",
    f: "DOUBLE",
    b: "BOOLEAN",
    s: "VARCHAR",
    d: "TIMESTAMP WITH TIME ZONE",
    bytes: "BLOB",
    list: "BIGINT[]",
    struct: "STRUCT(a STRUCT(b VARCHAR), c BIGINT)",
    mixed: "JSON",
    none: "VARCHAR",
    iso: "TIMESTAMP WITH TIME ZONE",
  });
  expect(await sql`FROM t`).toEqual([
    {
      i: 1n,
      big: 9223372036854775807n,
      huge: "18446744073709551616",
      f: 0.1,
      b: true,
      s: "é",
      d: "2031-02-03T04:05:06.789000Z",
      bytes: Uint8Array.of(0, 255),
      list: [1n, 2n],
      struct: { a: { b: "x" }, c: null },
      mixed: "1",
      none: null,
      iso: "2031-02-03T03:05:06.000000Z",
    },
    {
      i: 9007199254740991n,
      big: null,
      huge: null,
      f: Number.NaN,
      b: null,
      s: null,
      d: null,
      bytes: null,
      list: [],
      struct: { a: null, c: 1n },
      mixed: '"two"',
      none: null,
      iso: null,
    },
  ]);
});

test("may be Arrow tables and record batches, of several batches and with dictionaries", async () => {
  const lake = await openLake();
  const one = new Table({
    x: makeVector(Int32Array.of(1, 2)),
    s: vectorFromArray(["a", null]),
    plain: vectorFromArray(["p", "q"], new Utf8()),
    money: vectorFromArray([null, null], new Decimal(2, 10, 128)),
  });
  const copy = tableFromIPC(tableToIPC(one));
  const twice = one.concat(one);
  const { sql } = lake.with({
    tables: { twice, copy, batch: one.batches[0]!, floats: tableFromArrays({ y: Float64Array.of(0.5) }) },
  });
  expect(await sql`SELECT typeof(x) AS t, sum(x) AS n, count(s) AS s FROM twice GROUP BY ALL`).toEqual([
    { t: "INTEGER", n: 6n, s: 2n },
  ]);
  expect(await sql`SELECT count(*) AS n FROM twice JOIN copy USING (x)`).toEqual([{ n: 4n }]);
  expect(await sql`SELECT x, s, plain, typeof(money) AS m, y FROM batch, floats`).toEqual([
    { x: 1, s: "a", plain: "p", m: "DECIMAL(10,2)", y: 0.5 },
    { x: 2, s: null, plain: "q", m: "DECIMAL(10,2)", y: 0.5 },
  ]);
  const empty = new Table({
    i: makeVector({ type: new Int32(), length: 0, data: new Int32Array() }),
    f: makeVector({ type: new Float64(), length: 0, data: new Float64Array() }),
  });
  expect(await lake.with({ tables: { empty } }).sql`SELECT count(*) AS n, sum(i) AS i FROM empty`).toEqual([
    { n: 0n, i: null },
  ]);
});

test("many rows come by parts, and other work gets its turn", async () => {
  const lake = await openLake();
  const rows = Array.from({ length: 250_001 }, (_, i) => ({ i, s: `row ${i}` }));
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  const { sql } = lake.with({ tables: { rows } });
  expect(await sql`SELECT count(*) AS n, sum(i) AS total, max(s) AS s FROM rows WHERE i >= 1`).toEqual([
    { n: 250_000n, total: 31250125000n, s: "row 99999" },
  ]);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(10);
});

test("without rows need a schema; a schema may be given for any", async () => {
  const lake = await openLake();
  const none = lake.with({ tables: { none: [] } });
  await expect(none.sql`FROM none`).rejects.toMatchObject({ code: "bad_tables", subject: "none" });
  expect(await none.sql`SELECT count(*) AS n FROM orders`).toEqual([{ n: 3n }]);
  const { sql } = lake.with({
    tables: {
      none: { rows: [], schema: { id: "int64", at: "date" } },
      given: { rows: [{ id: 1 }, { id: 2, at: "2031-02-03" }], schema: { id: "uint8", at: "date" } },
    },
  });
  expect(await sql`SELECT s.id, typeof(s.id) AS t, s.at FROM given s LEFT JOIN none USING (id) ORDER BY id`).toEqual([
    { id: 1, t: "UTINYINT", at: null },
    { id: 2, t: "UTINYINT", at: "2031-02-03" },
  ]);
  const wrong = lake.with({ tables: { given: { rows: [{ id: 1 }, { id: 256 }], schema: { id: "uint8" } } } });
  await expect(wrong.sql`FROM given`).rejects.toMatchObject({
    name: "InvalidInputError",
    code: "rejected_rows",
    subject: "given",
    rows: [{ line: 2 }],
  });
});

test("take no name that the lake has at the query's snapshot, or that is none", async () => {
  const lake = await openLake();
  await lake.createView("v", "FROM orders");
  for (const name of ["orders", "ORDERS", "V"]) {
    const { sql } = lake.with({ tables: { [name]: PEOPLE } });
    await expect(sql`SELECT 1 AS one`).rejects.toMatchObject({
      name: "AlreadyExistsError",
      code: "name_taken",
      subject: name,
    });
  }
  expect(await lake.with({ at: 3, tables: { v: PEOPLE } }).sql`SELECT count(*) AS n FROM v`).toEqual([{ n: 2n }]);
  const refused = (tables: unknown): Promise<unknown> =>
    Promise.resolve().then(() => lake.with({ tables } as never).sql`FROM x`);
  await expect(refused({ "eider.x": PEOPLE })).rejects.toMatchObject({ code: "bad_name" });
  await expect(refused({ x: PEOPLE, X: PEOPLE })).rejects.toMatchObject({ code: "name_taken" });
  await expect(refused({ x: "text" })).rejects.toMatchObject({ code: "bad_tables" });
  await expect(refused({ x: null })).rejects.toMatchObject({ code: "bad_tables" });
  await expect(refused({ x: [1, 2] })).rejects.toMatchObject({ code: "rejected_rows" });
  await expect(refused([PEOPLE])).rejects.toMatchObject({ code: "bad_option" });
  await expect(lake.with({ tables: { people: PEOPLE } }).sql`FROM people AT (VERSION => 1)`).rejects.toMatchObject({
    code: "unknown_table",
  });
  await expect(lake.with({ tables: { people: PEOPLE } }).sql`FROM peeple`).rejects.toMatchObject({
    message: expect.stringContaining('"people"'),
  });
  expect(() => lake.scope({ tables: { orders: {} } }).with({ tables: { x: PEOPLE } } as object)).toThrow(
    /no option "tables"/,
  );
});

test("leave nothing behind: not when the query ends, fails, is stopped or never read to its end", async () => {
  const folder = temporaryFolder();
  const temp = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  onTestFinished(() => {
    if (temp === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = temp;
  });
  await using lake = await Lake.open("memory:");
  await lake.table("orders").append([{ id: 1 }]);
  await lake.sql`FROM orders`;
  const files = (): string[] =>
    readdirSync(folder, { recursive: true })
      .map(String)
      .filter((path) => path.includes(`${join("/", "given", "/").slice(1)}`) && path.endsWith(".parquet"));
  const rows = Array.from({ length: 20_000 }, (_, i) => ({ i }));
  const given = lake.with({ tables: { rows } });
  const stream = given.sql`SELECT r.i FROM rows r`[Symbol.asyncIterator]();
  await stream.next();
  expect(files()).toHaveLength(1);
  await stream.return?.();
  await given.sql`SELECT count(*) FROM rows`;
  await expect(given.sql`SELECT nope FROM rows`).rejects.toMatchObject({ code: "unknown_column" });
  await expect(given.sql`SELECT error(i::VARCHAR) FROM rows`).rejects.toThrow();
  await expect(given.sql`FROM rows, orders AT (VERSION => 7)`).rejects.toThrow();
  await expect(lake.with({ tables: { rows, bad: [1] as never } }).sql`FROM rows, bad`).rejects.toThrow();
  const stopped = lake.with({ tables: { rows }, signal: AbortSignal.timeout(5) });
  await expect(stopped.sql`SELECT count(*) FROM rows a, rows b WHERE a.i + b.i = -1`).rejects.toThrow(/timeout/);
  await expect(
    lake.with({ tables: { rows }, signal: AbortSignal.abort(new Error("no")) }).sql`FROM rows`,
  ).rejects.toThrow("no");
  await expect.poll(files).toEqual([]);
});
