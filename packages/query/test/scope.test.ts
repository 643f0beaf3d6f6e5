import type { Field } from "@eider/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { makeSql, type QueryOptions, type ScopeOptions, type Sql, sql } from "../src/index.js";
import { grantSql } from "../src/scope/scope-planner.js";
import { buildScopeEntry } from "./scope-entry.js";
import { Scratch, TestLake } from "./support.js";

/**
 * Tenants a and b share `visits`. Rows of b hold what is no number, so that a condition which reaches them fails loudly.
 * `secrets` is granted to nobody.
 */
let lake: TestLake;
let paths: string[];
const scratch = new Scratch();

beforeAll(async () => {
  lake = await TestLake.open({ root: scratch.path, scopeEntry: await buildScopeEntry() });
  await lake.create("visits", { id: "int64", tenant: "string", amount: "string", note: "string" });
  await lake.create("shop.orders", { id: "int64", total: "float64" });
  await lake.create("secrets", { id: "int64", word: "string" });
  const keys = [
    await lake.append(
      "visits",
      "SELECT range AS id, CASE WHEN range % 2 = 0 THEN 'a' ELSE 'b' END AS tenant, " +
        "CASE WHEN range % 2 = 0 THEN range::VARCHAR ELSE 'hidden' END AS amount, 'n' || range AS note FROM range(1000)",
    ),
    await lake.append("shop.orders", "SELECT range AS id, range / 2 AS total FROM range(10)"),
    await lake.append("secrets", "SELECT 1::BIGINT AS id, 'swordfish' AS word"),
  ];
  paths = keys.map((key) => lake.store.localPath!(key));
  return async () => {
    await lake[Symbol.asyncDispose]();
    scratch[Symbol.dispose]();
  };
});

const TENANT_A: ScopeOptions = {
  tables: {
    visits: { where: sql`tenant = ${"a"}`, columns: ["id", "amount"] },
    "shop.orders": {},
  },
};

function scoped(scope: Partial<ScopeOptions> = {}, options: QueryOptions = {}): Sql {
  const engine = lake.engine.scope({ ...TENANT_A, ...scope });
  return makeSql(async () => engine, options);
}

describe("a scope shows", () => {
  test("wide integers, wherever their bytes are in a message", async () => {
    for (const name of ["n", "sum", "total", "a longer one"]) {
      const rows = await scoped()(
        `SELECT sum(id) AS "${name}", 170141183460469231731687303715884105727 AS m FROM visits`,
      );
      expect(rows).toEqual([{ [name]: 249500n, m: 2n ** 127n - 1n }]);
    }
  });

  test("granted rows and columns, and nothing else", async () => {
    const q = scoped();
    expect(await q`SELECT count(*) AS n, sum(amount::INT) AS s FROM visits`).toEqual([{ n: 500n, s: 249500n }]);
    expect(await q("FROM visits ORDER BY id LIMIT 2")).toEqual([
      { id: 0n, amount: "0" },
      { id: 2n, amount: "2" },
    ]);
    expect(await q("FROM visits").columns()).toEqual([
      { name: "id", type: "BIGINT" },
      { name: "amount", type: "VARCHAR" },
    ]);
    await expect(q("SELECT tenant FROM visits")).rejects.toMatchObject({ code: "unknown_column" });
    await expect(q("SELECT * FROM visits WHERE note = 'n1'")).rejects.toMatchObject({ code: "unknown_column" });
  });

  test("tables in namespaces, joins, CTEs, windows, parameters of every kind", async () => {
    const q = scoped();
    expect(
      await q(
        "WITH v AS (SELECT id, amount::INT AS x FROM visits WHERE id < $1) SELECT v.id, total, " +
          "row_number() OVER (ORDER BY v.id) AS r FROM v JOIN shop.orders o USING (id) ORDER BY id",
        [5],
      ),
    ).toEqual([
      { id: 0n, total: 0, r: 1n },
      { id: 2n, total: 1, r: 2n },
      { id: 4n, total: 2, r: 3n },
    ]);
    expect(await q`SELECT ${[1, 2]} AS l, ${{ a: 1 }} AS o`).toEqual([{ l: [1, 2], o: { a: 1 } }]);
    expect(await q("WITH secrets AS (SELECT 7 AS id) SELECT id FROM secrets")).toEqual([{ id: 7 }]);
    expect((await q("SUMMARIZE shop.orders")).map(({ column_name }) => column_name)).toEqual(["id", "total"]);
    expect(await q("SELECT x FROM range(3) t(x) WHERE x > 1")).toEqual([{ x: 2n }]);
  });

  test("other snapshots by option; empty and later tables", async () => {
    expect(await scoped({}, { at: 1 })("SELECT count(*) AS n FROM visits")).toEqual([{ n: 0n }]);
    await expect(scoped({}, { at: 1 })("FROM shop.orders")).rejects.toMatchObject({ code: "scope_refused" });
    await expect(scoped({ tables: { later: {} } })("FROM later")).rejects.toMatchObject({ code: "scope_refused" });
  });

  test("files are chosen by the grant and by the statement", async () => {
    const q = scoped()("SELECT count(*) AS n FROM visits WHERE id = 4");
    expect(await q).toEqual([{ n: 1n }]);
    expect(q.stats).toMatchObject({ snapshot: 6, filesConsidered: 1, filesRead: 1, rows: 1 });
  });

  test("what conditions on the time say, of the statement and of the grant", async () => {
    await lake.create("times", { ts: "timestamptz" });
    for (const days of [40, 3, 0]) await lake.append("times", `SELECT now() - INTERVAL ${days} DAY AS ts`);
    const tables = { times: { where: sql`ts > now() - INTERVAL 30 DAY` } };
    const recent = scoped({ tables })("SELECT count(*) AS n FROM times WHERE ts > now() - INTERVAL 1 DAY");
    expect(await recent).toEqual([{ n: 1n }]);
    const all = scoped({ tables })("SELECT count(*) AS n, min(ts) < current_date AS old FROM times WHERE ts <= now()");
    expect(await all).toEqual([{ n: 2n, old: true }]);
    expect(await all.columns()).toMatchObject([{ name: "n" }, { name: "old" }]);
    await expect(scoped({ tables })("SELECT system.main.now() FROM times").first()).resolves.toBeDefined();
  });
});

describe("a scope keeps to its limits", () => {
  test("rows", async () => {
    const q = scoped({ limits: { rows: 10 } });
    expect(await q("FROM visits LIMIT 10")).toHaveLength(10);
    await expect(q("FROM visits")).rejects.toMatchObject({ name: "LimitError", code: "too_many_rows" });
    const cut = scoped({ limits: { rows: 10 }, onLimit: "truncate" })("FROM visits ORDER BY id");
    expect((await cut).map(({ id }) => id)).toEqual([0n, 2n, 4n, 6n, 8n, 10n, 12n, 14n, 16n, 18n]);
    expect(cut.stats).toMatchObject({ rows: 10, truncated: true });
    const whole = scoped({ limits: { rows: 500 }, onLimit: "truncate" })("FROM visits");
    expect(await whole).toHaveLength(500);
    expect(whole.stats?.truncated).toBeUndefined();
  });

  test("bytes", async () => {
    const q = scoped({ limits: { bytes: 100_000 } });
    await expect(q("SELECT repeat('x', 1000) AS t FROM range(1000)")).rejects.toMatchObject({ code: "too_many_bytes" });
    const cut = await scoped({ limits: { bytes: 100_000 }, onLimit: "truncate" })(
      "SELECT repeat('x', 1000) AS t FROM range(1000)",
    );
    expect(cut.length).toBeGreaterThan(10);
    expect(cut.length).toBeLessThan(100);
  });

  test("time, and signals", async () => {
    const q = scoped({ limits: { timeoutMs: 300 } });
    await expect(q("SELECT count(*) FROM range(1000000000) a, range(1000000000) b")).rejects.toMatchObject({
      name: "LimitError",
      code: "timeout",
    });
    expect(await scoped()("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    const abort = new AbortController();
    const running = scoped(
      {},
      { signal: abort.signal },
    )("SELECT count(*) FROM range(1000000000) a, range(1000000000) b");
    setTimeout(() => abort.abort(new Error("enough")), 100);
    await expect(running).rejects.toThrow("enough");
  });

  test("at the same time", async () => {
    const q = scoped({ limits: { concurrency: 2 } });
    const answers = await Promise.all(Array.from({ length: 7 }, (_, i) => q`SELECT ${i} + count(*) AS n FROM visits`));
    expect(answers.map(([row]) => row!.n)).toEqual([500n, 501n, 502n, 503n, 504n, 505n, 506n]);
  });

  test("a stream that is left early costs nobody his turn", async () => {
    const q = scoped({ limits: { concurrency: 1 } });
    for (let i = 0; i < 3; i++) expect(await q("FROM range(10000000)").first()).toEqual({ range: 0n });
  });
});

describe("SHOW and DESCRIBE", () => {
  test("tell of what is granted, and there", async () => {
    expect(await scoped()`SHOW TABLES`).toEqual([{ name: "shop.orders" }, { name: "visits" }]);
    expect(await scoped({}, { at: 1 })("/* all */ show tables;")).toEqual([{ name: "visits" }]);
    expect(await scoped({ tables: { later: {} } })`SHOW TABLES`).toEqual([]);
    const described = await scoped()`DESCRIBE visits`;
    expect(described.map(({ column_name, column_type }) => [column_name, column_type])).toEqual([
      ["id", "BIGINT"],
      ["amount", "VARCHAR"],
    ]);
    expect((await scoped()`DESCRIBE SELECT total FROM shop.orders`).map(({ column_name }) => column_name)).toEqual([
      "total",
    ]);
    expect((await scoped()`SHOW visits`).map(({ column_name }) => column_name)).toEqual(["id", "amount"]);
  });
});

describe("AT", () => {
  /** Snapshots: 1 makes `notes`, 2 and 3 append, 4 drops `words`'s namesake, see below. */
  let past: TestLake;
  const grants: ScopeOptions = {
    tables: { notes: { where: sql`tenant = ${"a"}`, columns: ["id", "note"] }, "ns.t": {} },
    history: true,
  };
  const q = (scope: Partial<ScopeOptions> = {}, options: QueryOptions = {}): Sql => {
    const engine = past.engine.scope({ ...grants, ...scope });
    return makeSql(async () => engine, options);
  };

  beforeAll(async () => {
    past = await TestLake.open({ scopeEntry: await buildScopeEntry() });
    await past.create("notes", { id: "int64", tenant: "string", note: "string" }); // 1
    await past.append("notes", "FROM (VALUES (1::BIGINT, 'a', 'one'), (2, 'b', 'hidden')) t(id, tenant, note)"); // 2
    await past.append("notes", "FROM (VALUES (3::BIGINT, 'a', 'three'), (4, 'b', 'hidden')) t(id, tenant, note)"); // 3
    await past.create("ns.t", { x: "int64" }); // 4
    await past.appendHot("ns.t", { h: ['{"x":1}'] }); // 5
    await past.create("secrets", { word: "string" }); // 6
    await past.append("secrets", "SELECT 'swordfish' AS word"); // 7
    return () => past[Symbol.asyncDispose]();
  });

  test("shows granted rows and columns of other snapshots", async () => {
    expect(await q()("SELECT * FROM notes AT (VERSION => 2)")).toEqual([{ id: 1n, note: "one" }]);
    expect(await q()("SELECT count(*) AS n FROM notes AT (VERSION => 1)")).toEqual([{ n: 0n }]);
    expect(
      await q()`SELECT n.id FROM notes n ANTI JOIN "Notes" o AT (VERSION => ${2}) USING (id) WHERE n.id < ${9}`,
    ).toEqual([{ id: 3n }]);
    expect(await q()("SELECT x FROM ns.t AS t AT (VERSION => 5) WHERE x > ?", [0])).toEqual([{ x: 1n }]);
    expect(await q()("SELECT x FROM ns.t AT (TIMESTAMP => '2999-01-01')")).toEqual([{ x: 1n }]);
    expect(await q({}, { at: 2 })("SELECT count(*) AS n FROM notes, notes b AT (VERSION => 3)")).toEqual([{ n: 2n }]);
    expect((await q()("DESCRIBE FROM notes AT (VERSION => 2)")).map(({ column_name }) => column_name)).toEqual([
      "id",
      "note",
    ]);
    const one = q()("SELECT note FROM notes AT (VERSION => 3) WHERE id = 3");
    expect(await one).toEqual([{ note: "three" }]);
    expect(one.stats).toMatchObject({ snapshot: 7, filesRead: 2 });
    expect(await one.columns()).toEqual([{ name: "note", type: "VARCHAR" }]);
  });

  test.each([
    ["without history", "FROM notes AT (VERSION => 2)", { history: false }],
    ["a table that is not granted", "FROM secrets AT (VERSION => 7)", {}],
    [
      "a table that is not granted, by the database of another",
      "FROM notes AT (VERSION => 7), _eider_alone_at_7.main.secrets",
      {},
    ],
    ["the lake's own database", "FROM notes AT (VERSION => 7), _eider_alone.main.secrets", {}],
    ["the database of a snapshot that is not named", "FROM _eider_alone_at_7.main.notes", {}],
    ["a table that was not there", "FROM ns.t AT (VERSION => 3)", {}],
    [
      "a column's table in a namespace of a database",
      "FROM notes AT (VERSION => 7), _eider_alone_at_7.information_schema.tables",
      {},
    ],
    ["a name of WITH", "WITH secrets AS (SELECT 1) SELECT * FROM secrets AT (VERSION => 7)", {}],
    ["a file", "FROM '/etc/passwd' AT (VERSION => 2)", {}],
    ["a snapshot that is to come", "FROM notes AT (VERSION => 8)", {}],
    ["a tag that is not there", "FROM notes AT (VERSION => 'v')", {}],
    ["a time before all", "FROM notes AT (TIMESTAMP => '1999-01-01')", {}],
    ["what is computed", "FROM notes AT (VERSION => (SELECT 2))", {}],
    ["hidden in another clause", "FROM notes AT (VERSION => 2), read_text('/etc/passwd')", {}],
  ] as const)("refuses %s", async (_, text, more) => {
    const code = text.includes("SELECT 2")
      ? "bad_snapshot"
      : text.includes("'/etc/passwd' AT")
        ? "syntax_error"
        : "scope_refused";
    await expect(q(more)(text)).rejects.toMatchObject({ name: "QueryError", code });
    const error = await q(more)(text).then(
      () => undefined,
      (reason: Error) => reason,
    );
    // How many snapshots there are, and what else, is nobody's business.
    expect(error?.message).not.toMatch(/swordfish|tenant|snapshots? \d|_eider/);
  });

  test("sees no column that is not granted, and no row by an error", async () => {
    await expect(q()("SELECT tenant FROM notes AT (VERSION => 2)")).rejects.toMatchObject({
      code: "unknown_column",
      position: 7,
    });
    expect(
      await q()(
        "SELECT count(*) AS n FROM notes AT (VERSION => 3) WHERE CASE WHEN note = 'hidden' THEN error('seen') ELSE true END",
      ),
    ).toEqual([{ n: 2n }]);
  });

  test("says nothing of a condition that does not fit the table of then", async () => {
    await past.drop("notes"); // 8
    await past.create("notes", { id: "int64", owner: "string", note: "string" }); // 9
    await past.append("notes", "SELECT 5::BIGINT AS id, 'a' AS owner, 'five' AS note"); // 10
    const owner = q({ tables: { notes: { where: sql`owner = ${"a"}` } } });
    expect(await owner("SELECT id FROM notes")).toEqual([{ id: 5n }]);
    await expect(owner("SELECT id FROM notes AT (VERSION => 3)")).rejects.toMatchObject({
      code: "scope_refused",
      message: "a table cannot be shown at this snapshot as it is granted",
    });
    expect(await owner("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });
});

test("a view cannot be granted", async () => {
  await using own = await TestLake.open({ scopeEntry: await buildScopeEntry() });
  await own.catalog.commit({ operations: [{ op: "view", name: "v", sql: "SELECT 1 AS a" }] });
  const engine = own.engine.scope({ tables: { V: {} } });
  await expect(makeSql(async () => engine)("FROM v")).rejects.toMatchObject({ code: "bad_scope", subject: "v" });
});

describe("bad grants", () => {
  test.each([
    [{ tables: { visits: { where: sql`tenant = '${"a"}'` } } }, "not used by the statement"],
    [{ tables: { visits: { where: sql`tenant = ${{ a: 1 }}` } } }, "no literal"],
  ] as const)("%#", (scope, message) => {
    expect(() => lake.engine.scope(scope)).toThrow(message);
  });
});

describe("attacks", () => {
  const ends: { readonly q: Sql } = { q: undefined as never };
  beforeAll(() => {
    Object.assign(ends, { q: scoped({ limits: { timeoutMs: 5000, memoryBytes: 64 * 1024 ** 2 } }) });
  });
  afterAll(async () => {
    expect(await ends.q("SELECT count(*) AS n FROM visits")).toEqual([{ n: 500n }]);
  });

  const secret = (): string => paths[2]!.replaceAll("'", "''");

  test.each([
    ["a table that is not granted", "FROM secrets"],
    ["by its database", "FROM _eider_alone.main.visits"],
    ["by another database", "FROM system.main.duckdb_settings"],
    ["a file by its name", "FROM '/etc/passwd'"],
    ["a file by a quoted name", 'FROM "/etc/passwd.csv"'],
    ["a file that a CTE is called like", `WITH "/etc/passwd" AS (SELECT 1) FROM "/etc/passwd"`],
    ["read_text", "FROM read_text('/etc/passwd')"],
    ["read_parquet", "FROM read_parquet('/tmp/*.parquet')"],
    ["READ_CSV in capitals", "SELECT * FROM READ_CSV('/etc/passwd')"],
    ["glob", "FROM glob('/*')"],
    ["a function behind a schema", "FROM main.read_text('/etc/passwd')"],
    ["query", "FROM query('FROM secrets')"],
    ["query_table", "FROM query_table('secrets')"],
    ["a table function in a scalar subquery", "SELECT (SELECT content FROM read_text('/etc/passwd'))"],
    ["a table function in a lambda", "SELECT list_transform([1], x -> (SELECT content FROM read_text('/etc/passwd')))"],
    ["in a CTE that is not used", "WITH x AS (FROM read_text('/etc/passwd')) SELECT 1"],
    ["in a set operation", "SELECT 'a' UNION ALL SELECT content FROM read_text('/etc/passwd')"],
    ["in ORDER BY", "SELECT 1 ORDER BY (SELECT content FROM read_text('/etc/passwd'))"],
    ["in LIMIT", "SELECT 1 LIMIT (SELECT count(*) FROM read_text('/etc/passwd'))"],
    ["in FILTER", "SELECT count(*) FILTER (WHERE getvariable('x') IS NULL) FROM visits"],
    ["in a window", "SELECT sum(1) OVER (ORDER BY current_setting('memory_limit')) FROM visits"],
    ["in VALUES", "VALUES (current_setting('memory_limit'))"],
    ["in PIVOT", "FROM (PIVOT visits ON (current_setting('memory_limit')) USING count(*))"],
    ["getenv", "SELECT getenv('HOME')"],
    ["settings", "SELECT current_setting('temp_directory')"],
    ["settings as a table", "FROM duckdb_settings()"],
    ["views and their SQL", "FROM duckdb_views()"],
    ["the catalog", "FROM information_schema.tables"],
    ["pg_catalog", "FROM pg_catalog.pg_class"],
    ["sqlite_master", "FROM sqlite_master"],
    ["secrets of DuckDB", "FROM duckdb_secrets()"],
    ["other queries", "SELECT current_query()"],
    ["logs", "FROM duckdb_logs"],
    ["serialized SQL", "FROM json_execute_serialized_sql('{}')"],
    ["sleep", "SELECT sleep_ms(10)"],
    ["SHOW ALL TABLES", "SHOW ALL TABLES"],
    ["SHOW TABLES of a database", "SHOW TABLES FROM system"],
    ["SHOW TABLES in a query", "FROM (SHOW TABLES)"],
    ["SHOW DATABASES", "SHOW DATABASES"],
    ["SHOW", "SHOW"],
    ["DESCRIBE of nothing", "DESCRIBE"],
    ["DESCRIBE of a table that is not granted", "DESCRIBE secrets"],
    ["DESCRIBE of a file", "DESCRIBE FROM read_text('/etc/passwd')"],
    ["SHOW of a table that is not granted", "SHOW secrets"],
    ["changes of a granted table", "FROM eider.changes('visits', 0)"],
    ["system tables of the lake", "FROM eider.tables"],
    ["another snapshot", "FROM visits AT (VERSION => 2)"],
    ["EXPLAIN", "EXPLAIN SELECT 1"],
    ["EXPLAIN ANALYZE", "EXPLAIN ANALYZE FROM visits"],
    ["PIVOT as a statement", "PIVOT visits ON amount"],
  ])("%s: refused", async (_, text) => {
    await expect(ends.q(text)).rejects.toMatchObject({ name: "QueryError", code: "scope_refused" });
  });

  test.each([
    ["two statements", "SELECT 1; SELECT 2", "multiple_statements"],
    ["two behind a comment", "SELECT 1 --\n; DROP VIEW visits", "multiple_statements"],
    ["ATTACH", "ATTACH '/tmp/x.db' AS x", "read_only_sql"],
    ["COPY", "COPY (SELECT 1) TO '/tmp/x.csv'", "scope_refused"],
    ["COPY FROM", "COPY visits FROM '/tmp/x.csv'", "read_only_sql"],
    ["SET", "SET memory_limit = '10GB'", "read_only_sql"],
    ["PRAGMA", "PRAGMA database_list", "read_only_sql"],
    ["INSTALL", "INSTALL httpfs", "read_only_sql"],
    ["LOAD", "LOAD httpfs", "read_only_sql"],
    ["CREATE MACRO", "CREATE MACRO f() AS 1", "read_only_sql"],
    ["CALL", "CALL pragma_version()", "read_only_sql"],
    ["DML", "INSERT INTO visits VALUES (1)", "read_only_sql"],
    ["DML in a CTE", "WITH x AS (INSERT INTO visits VALUES (1)) SELECT 1", "scope_refused"],
    ["a comment in a comment", "/* /* */ SELECT 1", "syntax_error"],
    ["NUL", "SELECT 1 \0 FROM secrets", "syntax_error"],
    ["a very long statement", `SELECT '${"x".repeat(200_000)}'`, "sql_too_long"],
  ])("%s: %s", async (_, text, code) => {
    await expect(ends.q(text)).rejects.toMatchObject({ code });
  });

  test("what cannot be parsed is told so", async () => {
    const nested = `SELECT ${"(1+".repeat(1100)}1${")".repeat(1100)}`;
    await expect(ends.q(nested)).rejects.toMatchObject({ message: expect.stringContaining("expression depth") });
    await expect(ends.q("SELECT FROM")).rejects.toMatchObject({ message: expect.stringContaining("syntax error") });
  });

  test("a granted file by its path, which would show all its rows", async () => {
    const path = paths[0]!.replaceAll("'", "''");
    await expect(ends.q(`FROM '${path}'`)).rejects.toMatchObject({ code: "scope_refused" });
    await expect(ends.q(`FROM read_parquet('${path}')`)).rejects.toMatchObject({ code: "scope_refused" });
    await expect(ends.q(`FROM read_parquet('${secret()}')`)).rejects.toMatchObject({ code: "scope_refused" });
  });

  test("errors do not tell of rows that are not granted", async () => {
    // Before the grant's condition the cast would meet 'hidden'.
    const q = scoped({ tables: { ...TENANT_A.tables, visits: { where: sql`lower(tenant) = ${"a"}` } } });
    for (const text of [
      "SELECT count(*) AS n FROM visits WHERE CAST(amount AS INT) >= 0",
      "SELECT count(*) AS n FROM visits v JOIN shop.orders o ON CAST(v.amount AS INT) >= o.id - 1000 WHERE o.id = 0",
      "SELECT count(*) AS n FROM visits WHERE amount::INT IN (SELECT range::INT FROM range(1000))",
    ]) {
      expect(await q(text)).toEqual([{ n: 500n }]);
    }
  });

  test("no condition of theirs moves below the grant's", async () => {
    const fields: Field[] = ["id", "amount"].map((name, i) => ({
      id: i + 1,
      name,
      type: { kind: "string" },
      nullable: true,
    }));
    const granted = grantSql({ fields, where: "lower(tenant) = 'a'" }, `SELECT * FROM '${paths[0]}'`);
    const explained = await lake.plain.runAndReadAll(`EXPLAIN SELECT * FROM (${granted}) WHERE id > 7`);
    const plan = String(explained.getRows()[0]![1]);
    const [theirs, barrier, ours] = [plan.indexOf("id > 7"), plan.indexOf("LIMIT"), plan.indexOf("lower(tenant)")];
    expect(theirs).toBeGreaterThan(0);
    expect(barrier).toBeGreaterThan(theirs);
    expect(ours).toBeGreaterThan(barrier);
  });

  test.each([
    ["a giant cross join", "SELECT count(*) FROM visits a, visits b, visits c, visits d, visits e"],
    ["an endless recursion", "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT x FROM t) SELECT count(*) FROM t"],
    [
      "quadratic time in one call",
      "SELECT levenshtein(string_agg(range::VARCHAR, ''), string_agg((range * 7)::VARCHAR, '')) FROM range(100000)",
    ],
  ])("%s: ended in time", { timeout: 60_000 }, async (_, text) => {
    await expect(ends.q(text)).rejects.toMatchObject({ name: "LimitError", code: "timeout" });
  });

  test.each([
    ["one giant text", "SELECT length(repeat('x', 1000000000))"],
    ["many large texts", "SELECT string_agg(repeat('x', 1000000), '') FROM range(2000)"],
    ["a giant list", "SELECT length(range(300000000))"],
    ["padding", "SELECT length(lpad('x', 1000000000, 'y'))"],
    ["printf", "SELECT length(printf('%1000000000d', 1))"],
    ["a resized list", "SELECT len(list_resize([1], 300000000))"],
    ["a giant result", "SELECT repeat('x', 100000) FROM range(100000)"],
    [
      "a doubling recursion",
      "WITH RECURSIVE t AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM t WHERE length(s) < 1000000000) SELECT max(length(s)) FROM t",
    ],
  ])("%s: ended within memory", { timeout: 60_000 }, async (_, text) => {
    const before = process.memoryUsage.rss();
    await expect(ends.q(text)).rejects.toMatchObject({ name: "LimitError" });
    // The caller's process never held any of it.
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 ** 2);
  });
});
