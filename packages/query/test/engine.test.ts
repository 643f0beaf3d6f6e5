import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseType, type Schema } from "@eider/core";
import { describe, expect, test } from "vitest";
import { Scratch, TestLake } from "./support.js";

describe("tables of a lake", () => {
  test("are read by their names at one snapshot", async () => {
    await using lake = await TestLake.open();
    await lake.create("events", { id: "int64", name: "string" });
    await lake.append("events", "SELECT 1::BIGINT AS id, 'a' AS name UNION ALL SELECT 2, NULL");
    await lake.append("events", "SELECT 3::BIGINT AS id, 'c' AS name");
    const query = lake.sql<{ id: bigint; name: string | null }>("SELECT * FROM Events ORDER BY id");
    expect(query.stats).toBeUndefined();
    expect(await query).toEqual([
      { id: 1n, name: "a" },
      { id: 2n, name: null },
      { id: 3n, name: "c" },
    ]);
    expect(query.stats).toMatchObject({ snapshot: 3, filesConsidered: 2, filesRead: 2, rows: 3 });
    expect(query.stats!.elapsedMs).toBeGreaterThan(0);
  });

  test("a query sees later appends each time it runs", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { a: "int32" });
    const query = lake.sql<{ n: bigint }>("SELECT count(*) AS n FROM t");
    expect(await query).toEqual([{ n: 0n }]);
    await lake.append("t", "SELECT 1::INT AS a");
    expect(await query).toEqual([{ n: 1n }]);
    await lake.append("t", "SELECT 1::INT AS a");
    expect(await query.first()).toEqual({ n: 2n });
  });

  test("with a namespace: every way to name the columns", async () => {
    await using lake = await TestLake.open();
    await lake.create("ns.events", { a: "int32" });
    await lake.create("shop.events", { a: "int32" });
    await lake.create("events", { a: "int32" });
    await lake.append("ns.events", "SELECT 1::INT AS a");
    await lake.append("shop.events", "SELECT 2::INT AS a");
    await lake.append("events", "SELECT 3::INT AS a");
    expect(await lake.sql("SELECT ns.events.a AS x, e.a AS y FROM ns.events, shop.events AS e")).toEqual([
      { x: 1, y: 2 },
    ]);
    expect(await lake.sql("SELECT events.a FROM NS.Events")).toEqual([{ a: 1 }]);
    expect(await lake.sql("FROM events")).toEqual([{ a: 3 }]);
  });

  test("without files (D33): no rows, but columns and types", async () => {
    await using lake = await TestLake.open();
    await lake.create("empty", { id: "int64", v: "string", l: "list<struct<x: decimal(5,2)>>", u: "unknown" });
    await lake.create("filled", { id: "int64" });
    await lake.append("filled", "SELECT 1::BIGINT AS id");
    expect(await lake.sql("SELECT count(*) AS n, max(v) AS m FROM empty")).toEqual([{ n: 0n, m: null }]);
    expect(await lake.sql("SELECT id, v FROM filled LEFT JOIN empty USING (id)")).toEqual([{ id: 1n, v: null }]);
    expect(await lake.sql("SELECT * FROM filled WHERE id > 5")).toEqual([]);
    expect(await lake.sql("FROM empty").columns()).toEqual([
      { name: "id", type: "BIGINT" },
      { name: "v", type: "VARCHAR" },
      { name: "l", type: 'STRUCT("x" DECIMAL(5,2))[]' },
      { name: "u", type: "VARCHAR" },
    ]);
  });

  test("an empty lake answers what needs no table", async () => {
    await using lake = await TestLake.open();
    const query = lake.sql("SELECT 1 AS one");
    expect(await query).toEqual([{ one: 1 }]);
    expect(query.stats).toMatchObject({ snapshot: 0, filesConsidered: 0 });
    await expect(Promise.resolve(lake.sql("FROM t"))).rejects.toMatchObject({
      code: "unknown_table",
      message: expect.stringContaining("no table at this snapshot"),
    });
  });

  test("of changing schemas (D32): added, widened and nested fields, by id", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { a: "int32", s: "struct<b: int32, c: int32>" });
    await lake.append("t", "SELECT 5::INT AS a, {'b': 1::INT, 'c': 2::INT} AS s");
    const table = (await lake.catalog.table("t"))!;
    const [a, s] = table.schema.fields;
    const [b, c] = (s!.type as { fields: Schema["fields"] }).fields;
    const d = { id: 0, name: "d", type: parseType("int32"), nullable: true };
    await lake.evolve("t", {
      fields: [
        { ...a!, name: "renamed", type: parseType("int64") },
        { ...s!, type: { kind: "struct", fields: [b!, c!, d] } },
        { id: 0, name: "u", type: parseType("unknown"), nullable: true },
        { id: 0, name: "a", type: parseType("string"), nullable: true },
      ],
    });
    await lake.append(
      "t",
      "SELECT 3000000000::BIGINT AS renamed, {'b': NULL::INT, 'c': 3::INT, 'd': 4::INT} AS s, 'new' AS a",
    );
    expect(await lake.sql("SELECT * FROM t ORDER BY renamed")).toEqual([
      { renamed: 5n, s: { b: 1, c: 2, d: null }, u: null, a: null },
      { renamed: 3000000000n, s: { b: null, c: 3, d: 4 }, u: null, a: "new" },
    ]);
    expect(await lake.with({ at: 2 })("SELECT * FROM t")).toEqual([{ a: 5, s: { b: 1, c: 2 } }]);
  });

  test("all types come back as stored", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", {
      b: "bool",
      u64: "uint64",
      d: "decimal(38,3)",
      bin: "binary",
      date: "date",
      time: "time",
      ts: "timestamp",
      tz: "timestamptz",
      id: "uuid",
      j: "json",
      m: "map<string,list<int64>>",
    });
    await lake.append(
      "t",
      `SELECT true AS b, 18446744073709551615::UBIGINT AS u64, 1.5::DECIMAL(38,3) AS d, 'x'::BLOB AS bin,
        DATE '2031-02-03' AS date, TIME '01:02:03.000004' AS time, TIMESTAMP '1969-12-31 23:59:59.999999' AS ts,
        TIMESTAMPTZ '2031-02-03 04:05:06.789012Z' AS tz, 'f79c3e09-677c-4bbd-a479-3f349cb785e7'::UUID AS id,
        '{"a":1}'::JSON AS j, MAP {'k': [1::BIGINT, NULL]} AS m`,
    );
    expect(await lake.sql("FROM t")).toEqual([
      {
        b: true,
        u64: 18446744073709551615n,
        d: "1.500",
        bin: Uint8Array.of(0x78),
        date: "2031-02-03",
        time: "01:02:03.000004",
        ts: "1969-12-31T23:59:59.999999",
        tz: "2031-02-03T04:05:06.789012Z",
        id: "f79c3e09-677c-4bbd-a479-3f349cb785e7",
        j: '{"a":1}',
        m: new Map([["k", [1n, null]]]),
      },
    ]);
    expect((await lake.sql("FROM t").columns()).find((column) => column.name === "j")).toEqual({
      name: "j",
      type: "JSON",
    });
  });

  test("many at once, each query at its own snapshot", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { a: "int64" });
    for (let i = 0; i < 5; i++) await lake.append("t", `SELECT ${i}::BIGINT AS a`);
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        lake.with({ at: 1 + (i % 6) })<{ n: bigint }>("SELECT count(*) AS n FROM t"),
      ),
    );
    expect(results.map(([row]) => row!.n)).toEqual(Array.from({ length: 40 }, (_, i) => BigInt(i % 6)));
  });
});

describe("snapshots", () => {
  async function threeSnapshots(): Promise<TestLake> {
    let now = Date.UTC(2031, 0, 1);
    const lake = await TestLake.open({ clock: () => now });
    await lake.create("t", { a: "int32" });
    now = Date.UTC(2031, 0, 2);
    await lake.append("t", "SELECT 1::INT AS a");
    now = Date.UTC(2031, 0, 3);
    await lake.append("t", "SELECT 2::INT AS a");
    return lake;
  }

  test.each([
    [2, 1n],
    ["2", 1n],
    ["2031-01-02", 1n],
    ["2031-01-02T12:00:00Z", 1n],
    ["2031-01-03 08:59:59.999999+09:00", 1n],
    ["2031-01-03T09:00+0900", 2n],
    [new Date(Date.UTC(2031, 0, 3)), 2n],
    ["2031-01-01T23:59:59.999", 0n],
  ])("at %s", async (at, n) => {
    await using lake = await threeSnapshots();
    expect(await lake.with({ at })("SELECT count(*) AS n FROM t")).toEqual([{ n }]);
  });

  test("AT reads one table at another snapshot, beside the head", async () => {
    await using lake = await threeSnapshots();
    const sql = lake.sql<Record<string, unknown>>;
    expect(await sql("SELECT t.a FROM t AT (VERSION => 2)")).toEqual([{ a: 1 }]);
    expect(
      await sql("SELECT count(*) AS n, (SELECT count(*) FROM t AS o AT (VERSION => 2)) AS o FROM t AS new"),
    ).toEqual([{ n: 2n, o: 1n }]);
    expect(await sql("SELECT count(*) AS n FROM t x(b) AT (TIMESTAMP => '2031-01-02') WHERE x.b = 1")).toEqual([
      { n: 1n },
    ]);
    expect(await lake.sql`SELECT ${7} AS c, a FROM t AT (VERSION => ${2}) WHERE a < ${5}`).toEqual([{ c: 7, a: 1 }]);
    expect(await sql("SELECT a FROM t AT (TIMESTAMP => ?) WHERE a = ?", [new Date(Date.UTC(2031, 0, 2)), 1])).toEqual([
      { a: 1 },
    ]);
    expect(await sql("DESCRIBE t AT (VERSION => 1)")).toMatchObject([{ column_name: "a" }]);
  });

  test("that do not exist", async () => {
    await using lake = await threeSnapshots();
    const run = (at: number | string, sql = "FROM t"): Promise<unknown> => Promise.resolve(lake.with({ at })(sql));
    await expect(run(99)).rejects.toMatchObject({ code: "snapshot_not_found" });
    await expect(run("yesterday")).rejects.toMatchObject({ code: "tag_not_found" });
    await expect(run("2031-13-01")).rejects.toMatchObject({ code: "bad_snapshot" });
    await expect(run(-1)).rejects.toMatchObject({ code: "bad_snapshot" });
    await expect(run(3, "FROM t AT (VERSION => 99)")).rejects.toMatchObject({ code: "snapshot_not_found" });
    await expect(run(3, "SELECT 1 FROM  nope AT (VERSION => 1)")).rejects.toMatchObject({
      code: "unknown_table",
      position: 15,
    });
  });

  test("a dropped table is still there before the drop", async () => {
    await using lake = await threeSnapshots();
    await lake.drop("t");
    await lake.create("t", { b: "string" });
    await expect(Promise.resolve(lake.sql("SELECT a FROM t"))).rejects.toMatchObject({ code: "unknown_column" });
    expect(await lake.with({ at: 3 })("SELECT sum(a) AS s FROM t")).toEqual([{ s: 3n }]);
    expect(await lake.sql("SELECT o.a, n.b FROM t AS o AT (VERSION => 2) LEFT JOIN t AS n ON true")).toEqual([
      { a: 1, b: null },
    ]);
  });
});

describe("names", () => {
  test.each([`a"; DROP TABLE b; --`, "it's", "x-y.z", "select", "größe 🦆", "a.b.c", "__proto__"])(
    "table %s (D78)",
    async (name) => {
      await using lake = await TestLake.open();
      await lake.create(name, { 'c"d': "string", "it's": "int32" });
      await lake.create("b", { a: "int32" });
      await lake.append("b", "SELECT 7::INT AS a");
      await lake.append(name, `SELECT 'v' AS "c""d", 1::INT AS "it's"`);
      const quoted = `"${name.replaceAll('"', '""')}"`;
      expect(await lake.sql(`SELECT * FROM ${quoted}`)).toEqual([{ 'c"d': "v", "it's": 1 }]);
      expect(await lake.sql(`SELECT "c""d" FROM ${quoted} AT (VERSION => 4)`)).toEqual([{ 'c"d': "v" }]);
      expect(await lake.sql("FROM b")).toEqual([{ a: 7 }]);
    },
  );

  test("columns: dotted, spaced, composed and decomposed accents (D09), DuckDB's own words", async () => {
    await using lake = await TestLake.open();
    const names = ["a.b", "k k", "\u00e9", "e\u0301", 'q"q', "filename", "file_row_number", "rowid", "q", "c0"];
    await lake.create("t", Object.fromEntries(names.map((name) => [name, "int32"])));
    const columns = names.map((name, i) => `${i}::INT AS "${name.replaceAll('"', '""')}"`).join(", ");
    await lake.append("t", `SELECT ${columns}`);
    const expected = Object.fromEntries(names.map((name, i) => [name, i]));
    expect(await lake.sql("FROM t")).toEqual([expected]);
    expect(await lake.sql("FROM t").first()).toEqual(expected);
    expect(await lake.sql(`SELECT "a.b" FROM t WHERE "a.b" = 0`)).toEqual([{ "a.b": 0 }]);
    expect(await lake.sql(`SELECT "a.b" FROM t WHERE "a.b" = 2`)).toEqual([]);
  });

  test.each(["o'neil", "[x]", "a*b", "q?x", "back\\slash", "{a,b}", "h#1", "p%20q", "t=1", "c:d", "ein ordner", "ü"])(
    "a store in a folder %s (D53)",
    async (folder) => {
      using scratch = new Scratch();
      // Beside it, what a glob would also match.
      await using other = await TestLake.open({ root: join(scratch.path, "axb") });
      await other.create("t", { a: "int32" });
      await other.append("t", "SELECT 666::INT AS a", { key: "t1/data/0-1.parquet" });
      await using lake = await TestLake.open({ root: join(scratch.path, folder) });
      await lake.create("t", { a: "int32" });
      await lake.append("t", "SELECT 7::INT AS a", { key: "t1/data/0-1.parquet" });
      expect(await lake.sql("FROM t")).toEqual([{ a: 7 }]);
    },
  );

  test.each([
    "in/t=1/a:b+c.parquet",
    "in/q?x=1.parquet",
    "in/h#1.parquet",
    "in/p%20q.parquet",
    "in/[1]*.parquet",
    "in/code=00420/x.parquet",
  ])("an object %s (D27, D28, D53): its key is literal, and what is in it is no value", async (key) => {
    using scratch = new Scratch();
    for (const root of [undefined, scratch.path]) {
      await using lake = await TestLake.open(root === undefined ? {} : { root });
      await lake.create("t", { a: "int32", code: "string" });
      await lake.append("t", "SELECT 7::INT AS a, '007' AS code", { key });
      await lake.append("t", "SELECT 8::INT AS a, '2031-1-1' AS code", { key: "in/p q.parquet" });
      expect(await lake.sql("SELECT *, typeof(code) AS t FROM t ORDER BY a")).toEqual([
        { a: 7, code: "007", t: "VARCHAR" },
        { a: 8, code: "2031-1-1", t: "VARCHAR" },
      ]);
      expect(await lake.sql("SELECT a FROM t WHERE code = '007'")).toEqual([{ a: 7 }]);
    }
  });

  test("strays beside committed files are not read (D35)", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { a: "int32" });
    const key = await lake.append("t", "SELECT 1::INT AS a");
    await lake.store.put(`${key}.tmp`, Buffer.from("PAR1"));
    await lake.store.put(key.replace(".parquet", "0.parquet"), Buffer.from("PAR1"));
    expect(await lake.sql("FROM t")).toEqual([{ a: 1 }]);
  });
});

describe("NaN, infinities and −0 (D12)", () => {
  test("are found by what they are", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { x: "float64" });
    await lake.append("t", "SELECT unnest(['NaN', 'Infinity', '-Infinity', '-0', NULL]::DOUBLE[]) AS x");
    expect(
      await lake.sql(
        `SELECT count(*) FILTER (isnan(x)) AS nan, count(*) FILTER (isinf(x)) AS inf, count(*) FILTER (x = 0) AS zero,
           count(*) FILTER (x IS NULL) AS "null" FROM t`,
      ),
    ).toEqual([{ nan: 1n, inf: 2n, zero: 1n, null: 1n }]);
    expect(await lake.with({ values: "json" })("FROM t")).toEqual(
      ["NaN", "Infinity", "-Infinity", -0, null].map((x) => ({ x })),
    );
  });
});

describe("kinds of statements", () => {
  test("DESCRIBE, SUMMARIZE, EXPLAIN, VALUES, SHOW, PIVOT, UNPIVOT", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { k: "string", v: "int32" });
    await lake.create("ns.u", { k: "string" });
    await lake.append("t", "SELECT 'a' AS k, 1::INT AS v UNION ALL SELECT 'b', 2");
    expect(await lake.sql("DESCRIBE t")).toMatchObject([
      { column_name: "k", column_type: "VARCHAR" },
      { column_name: "v", column_type: "INTEGER" },
    ]);
    expect(await lake.sql("SUMMARIZE t")).toMatchObject([{ column_name: "k", max: "b" }, { column_name: "v" }]);
    const [plan] = await lake.sql<{ explain_value: string }>("EXPLAIN SELECT * FROM t WHERE v > $1", [1]);
    expect(plan!.explain_value).toContain("READ_PARQUET");
    expect((await lake.sql("EXPLAIN ANALYZE SELECT 1")).length).toBe(1);
    expect(await lake.sql("VALUES (1, 'a'), (2, 'b')")).toEqual([
      { col0: 1, col1: "a" },
      { col0: 2, col1: "b" },
    ]);
    expect(await lake.sql("SHOW TABLES")).toEqual([{ name: "t" }]);
    expect((await lake.sql<{ name: string }>("SHOW ALL TABLES")).map((row) => row.name).sort()).toEqual(["t", "u"]);
    expect(await lake.sql("PIVOT t ON k USING sum(v)")).toEqual([{ a: 1n, b: 2n }]);
    expect(await lake.sql("PIVOT t ON k USING sum(v)").first()).toEqual({ a: 1n, b: 2n });
    expect(await lake.sql("PIVOT t ON k USING first(to_days(v))")).toEqual([{ a: "1 day", b: "2 days" }]);
    expect(await lake.sql("SELECT * FROM (UNPIVOT (SELECT 1 AS x, 2 AS y) ON x, y) ORDER BY value")).toEqual([
      { name: "x", value: 1 },
      { name: "y", value: 2 },
    ]);
    expect(await lake.sql("FROM query_table('t') ORDER BY k")).toMatchObject([{ k: "a" }, { k: "b" }]);
    expect(await lake.sql("FROM query('SELECT count(*) AS n FROM ns.u')")).toEqual([{ n: 0n }]);
    expect(await lake.sql("SELECT 1 AS x -- a comment")).toEqual([{ x: 1 }]);
    expect(await lake.sql("SELECT 1 AS x -- a comment").first()).toEqual({ x: 1 });
  });

  test.each([
    "DESCRIBE t",
    "SUMMARIZE t",
    "SHOW TABLES",
    "EXPLAIN FROM t",
    "VALUES (1), (2)",
    "TABLE t",
    "(SELECT k FROM t ORDER BY k DESC)",
    "WITH a AS (FROM t) FROM a ORDER BY k",
    "WITH RECURSIVE a(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM a WHERE i < 5000) SELECT * FROM a ORDER BY i",
    "PIVOT t ON k USING sum(v)",
    "UNPIVOT t ON v",
    "FROM t SELECT k LIMIT 1",
    "SELECT k, v FROM t ORDER BY ALL DESC",
  ])("%s gives the same rows streamed as awaited", async (text) => {
    await using lake = await TestLake.open();
    await lake.create("t", { k: "string", v: "int32" });
    await lake.append("t", "SELECT 'a' AS k, 1::INT AS v UNION ALL SELECT 'b', 2");
    // EXPLAIN says which files are copied by then.
    await lake.sql(text);
    const rows: unknown[] = [];
    for await (const row of lake.sql(text)) rows.push(row);
    expect(rows.length).toBeGreaterThan(0);
    expect(rows).toEqual(await lake.sql(text));
  });

  test("COPY … TO writes a file", async () => {
    await using lake = await TestLake.open();
    using out = new Scratch();
    expect(await lake.sql(`COPY (SELECT 1 AS a UNION ALL SELECT 2) TO '${out.path}/o.csv'`)).toEqual([{ Count: 2n }]);
    expect(readdirSync(out.path)).toEqual(["o.csv"]);
  });
});

describe("filesSql", () => {
  test("equals the table in plain DuckDB", async () => {
    using scratch = new Scratch();
    await using lake = await TestLake.open({ root: join(scratch.path, "o'neil [x]") });
    await lake.create("t", { a: "int64", u: "unknown", s: "struct<x: string, y: list<date>>" });
    const select = (): Promise<unknown[]> => lake.engine.filesSql("T").then((sql) => readPlain(lake, sql));
    expect(await select()).toEqual([]);
    await lake.append("t", "SELECT 1::BIGINT AS a, {'x': 'q', 'y': [DATE '2031-01-01']} AS s");
    await lake.append("t", "SELECT 2::BIGINT AS a, NULL::STRUCT(x VARCHAR, y DATE[]) AS s");
    expect(await select()).toEqual([
      ["1", null, { x: "q", y: ["2031-01-01"] }],
      ["2", null, null],
    ]);
    expect((await readPlain(lake, await lake.engine.filesSql("t", 2))).length).toBe(1);
    await expect(lake.engine.filesSql("tt")).rejects.toMatchObject({ name: "NotFoundError", code: "unknown_table" });
  });

  async function readPlain(lake: TestLake, sql: string): Promise<unknown[]> {
    return (await lake.plain.runAndReadAll(sql)).getRowsJson();
  }
});

describe("the engine", () => {
  test("removes its temporary files when it closes, and refuses more", async () => {
    const lake = await TestLake.open();
    await lake.create("t", { a: "int32" });
    await lake.append("t", "SELECT 1::INT AS a");
    await lake.sql("FROM t");
    const folders = (): string[] => readdirSync(lake.scratch.path).filter((name) => name.startsWith("eider-query-"));
    expect(folders().length).toBe(1);
    await lake.engine.close();
    expect(folders()).toEqual([]);
    await expect(Promise.resolve(lake.sql("SELECT 1"))).rejects.toMatchObject({ code: "lake_closed" });
    await lake[Symbol.asyncDispose]();
  });

  test("fetches an object of a store without paths once", async () => {
    await using lake = await TestLake.open();
    await lake.create("t", { a: "int32" });
    await lake.append("t", "SELECT 1::INT AS a");
    let gets = 0;
    const { get } = lake.store;
    lake.store.get = (...args) => {
      gets++;
      return get.apply(lake.store, args);
    };
    await Promise.all([lake.sql("FROM t"), lake.sql("FROM t"), lake.sql("FROM t")]);
    await lake.append("t", "SELECT 2::INT AS a");
    await lake.sql("FROM t");
    expect(gets).toBe(2);
  });
});
