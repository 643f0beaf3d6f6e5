/** Large data files of stores that are no folders: the footer and the columns that a query reads, and no more. */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { DataFile } from "@eider/catalog";
import {
  CountingStore,
  type FaultScript,
  FaultStore,
  type GetOptions,
  MemoryStore,
  readBody,
  type StoredObject,
  StoreWrapper,
} from "@eider/storage";
import { parquetMetadata } from "hyparquet";
import { expect, test } from "vitest";
import { makeSql, QueryEngine, sql } from "../src/index.js";
import { buildScopeEntry } from "./scope-entry.js";
import { TestLake, type TestLakeOptions } from "./support.js";

const GROUPS = 3;
const GROUP_ROWS = 4000;
const ROWS = GROUPS * GROUP_ROWS;

/** Not to be compressed to nothing. */
const noise = (i: number): number => Math.imul(i + 1, 0x9e3779b1) >>> 0;

/** Row groups of a table whose columns are about equally large; `late` is in no file of it. */
function groups(first = 0): string[][] {
  return Array.from({ length: GROUPS }, (_, group) =>
    Array.from({ length: GROUP_ROWS }, (_, i) => {
      const id = first + group * GROUP_ROWS + i;
      const [a, b] = [noise(id), noise(id * 31 + 7)];
      const p = id % 5 === 0 ? null : { k: a, v: `v${b}` };
      return JSON.stringify({ id, a, b, x: a / 7, s: `${a} ${b}`, p, l: [a % 100, b % 100] });
    }),
  );
}

/** Keeps the signals that the store was given with its reads. */
class Listening extends StoreWrapper {
  readonly signals: (AbortSignal | undefined)[] = [];

  override get(key: string, options?: GetOptions): Promise<StoredObject> {
    this.signals.push(options?.signal);
    return super.get(key, options);
  }
}

interface World extends AsyncDisposable {
  readonly lake: TestLake;
  readonly memory: MemoryStore;
  readonly seen: CountingStore;
  readonly signals: readonly (AbortSignal | undefined)[];
  readonly file: DataFile;
  /** Bytes of the chunks of leaf columns, by hyparquet. */
  readonly bytesOf: (...leaves: string[]) => number;
  /** Files in the cache. */
  readonly copies: () => string[];
}

const SCHEMA = {
  id: "int64",
  a: "int64",
  b: "int64",
  x: "float64",
  s: "string",
  p: "struct<k: int64, v: string>",
  l: "list<int64>",
} as const;

async function world(options: TestLakeOptions = {}, script: FaultScript = {}): Promise<World> {
  const memory = new MemoryStore();
  const listening = new Listening(new FaultStore(memory, script));
  const { signals } = listening;
  const seen = new CountingStore(listening);
  const lake = await TestLake.open({ store: seen, wholeFileBytes: 0, ...options });
  await lake.create("t", SCHEMA);
  const file = await lake.appendEncoded("t", groups());
  seen.reset();
  const bytes = await readBody((await memory.get(file.key)).body);
  const { row_groups } = parquetMetadata(bytes.slice().buffer as ArrayBuffer);
  const chunks = row_groups.flatMap(({ columns }) => columns.map(({ meta_data }) => meta_data!));
  const bytesOf = (...leaves: string[]): number =>
    chunks
      .filter(({ path_in_schema: [name] }) => leaves.includes(name!))
      .reduce((sum, { total_compressed_size: size }) => sum + Number(size), 0);
  const copies = (): string[] => {
    const folder = join(cacheOf(lake), "objects");
    return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  };
  return {
    lake,
    memory,
    seen,
    signals,
    file,
    bytesOf,
    copies,
    [Symbol.asyncDispose]: () => lake[Symbol.asyncDispose](),
  };
}

/** The folder of an engine's own cache. */
function cacheOf(lake: TestLake): string {
  const [own] = readdirSync(lake.scratch.path).filter((name) => name.startsWith("eider-query-"));
  return join(lake.scratch.path, own!, "cache", "eider-cache-2");
}

/** What a query fetches, in requests and bytes, as the store sees it and as it says itself. */
async function fetched({ lake, seen }: World, sql: string): Promise<{ rows: unknown[]; gets: number; bytes: number }> {
  seen.reset();
  const query = lake.sql(sql);
  const rows = await query;
  const { requests, bytes } = seen.counts.get;
  expect(query.stats!.from.store.bytes).toBe(bytes);
  return { rows, gets: requests, bytes };
}

test("a query fetches the footer and its columns, the next one nothing, another one what is new to it", async () => {
  await using it = await world();
  const { file, bytesOf } = it;
  const sum = BigInt((ROWS * (ROWS - 1)) / 2);
  const first = await fetched(it, "SELECT sum(id) AS n FROM t WHERE a >= 0");
  expect(first.rows).toEqual([{ n: sum }]);
  expect(first.bytes).toBe(file.footer!.bytes + bytesOf("id", "a"));
  // `id` and `a` are side by side.
  expect(first.gets).toBe(1 + GROUPS);
  for (const sql of ["SELECT sum(id) AS n FROM t WHERE a >= 0", "SELECT sum(id) AS n FROM t"]) {
    expect(await fetched(it, sql)).toEqual({ rows: [{ n: sum }], gets: 0, bytes: 0 });
  }
  const more = await fetched(it, "SELECT sum(id) AS n FROM t WHERE s <> ''");
  expect(more).toEqual({ rows: [{ n: sum }], gets: GROUPS, bytes: bytesOf("s") });
  expect(it.copies()).toHaveLength(1);
});

test.each([
  ["SELECT count(*) FROM t", []],
  ["SELECT count(DISTINCT p.v) FROM t", ["p"]],
  ["SELECT count(*) FROM t WHERE p.k > 5", ["p"]],
  ["SELECT l[1] FROM t ORDER BY x LIMIT 1", ["l", "x"]],
  ["WITH c AS (SELECT * FROM t) SELECT sum(a) FROM c WHERE b > 1", ["a", "b"]],
  ["WITH c AS MATERIALIZED (SELECT * FROM t) SELECT count(u.a) FROM c u JOIN c v USING (id)", ["a", "id"]],
  ["SELECT sum(a) FROM (SELECT *, row_number() OVER (ORDER BY id) AS n FROM t) WHERE n < 9", ["a", "id"]],
  ["SELECT a FROM t WHERE id = (SELECT max(id) FROM t)", ["a", "id"]],
  ["SELECT u.a FROM t u WHERE EXISTS (FROM t v WHERE v.b = u.id)", ["a", "b", "id"]],
  ["SELECT u.a FROM t u AT (VERSION => 2) JOIN t USING (id)", ["a", "id"]],
  ["FROM t SELECT a UNION ALL FROM t SELECT b ORDER BY 1 LIMIT 1", ["a", "b"]],
  ["EXPLAIN SELECT a FROM t", ["a"]],
  ["COPY (SELECT a FROM t) TO '/dev/null' (FORMAT csv)", ["a"]],
  ["SELECT a FROM t WHERE id > now()::DATE - DATE '2031-01-01'", ["a", "id"]],
] as const)("%s reads the columns %j", async (sql, columns) => {
  await using it = await world();
  expect((await fetched(it, sql)).bytes).toBe(it.file.footer!.bytes + it.bytesOf(...columns));
});

test.each([
  "SELECT * FROM t LIMIT 1",
  "SELECT t FROM t LIMIT 1",
  "SELECT count(*) FROM (SELECT DISTINCT * FROM t)",
  "FROM query('SELECT a FROM t LIMIT 1')",
  "PIVOT (SELECT a % 2 AS r FROM t) ON r USING count(*)",
])("%s reads the whole file, by one request", async (sql) => {
  await using it = await world();
  const { gets, bytes } = await fetched(it, sql);
  expect([gets, bytes]).toEqual([1, it.file.bytes]);
});

test("small files, and files whose parts cannot be checked, are fetched whole", async () => {
  await using small = await world({ wholeFileBytes: 1_000_000 });
  expect(await fetched(small, "SELECT count(a) FROM t")).toMatchObject({ gets: 1, bytes: small.file.bytes });
  await using foreign = await world();
  await foreign.lake.create("f", { a: "int64", b: "string" });
  const key = await foreign.lake.append("f", "SELECT range AS a, uuid()::VARCHAR AS b FROM range(1000)");
  const { size } = (await foreign.memory.head(key))!;
  expect(await fetched(foreign, "SELECT count(a) FROM f")).toMatchObject({ gets: 1, bytes: size });
});

test("a column that was not fetched cannot be read from the copy: no other value comes instead", async () => {
  await using it = await world();
  await it.lake.sql("SELECT sum(a) FROM t");
  const [copy] = it.copies();
  const plain = async (sql: string) => (await it.lake.plain.runAndReadAll(sql)).getRowObjects();
  expect(await plain(`SELECT count(DISTINCT a)::INT AS n FROM read_parquet('${copy}')`)).toEqual([{ n: ROWS }]);
  for (const column of ["b", "x", "s", "p.k", "l"]) {
    await expect(plain(`SELECT count(DISTINCT ${column}) FROM read_parquet('${copy}')`), column).rejects.toThrow(
      /outside file/,
    );
  }
});

test("a scope fetches what its statement and its condition read", async () => {
  const scopeEntry = await buildScopeEntry();
  const condition = sql`b >= ${0} AND l[1] < ${100}`;
  for (const [text, columns] of [
    ["SELECT sum(id) AS n FROM t", ["id", "b", "l"]],
    ["SELECT count(*) AS n FROM t", ["b", "l"]],
    ["SELECT max(x) > 0 AS n FROM (SELECT id, x FROM t WHERE id > 3)", ["id", "x", "b", "l"]],
  ] as const) {
    await using it = await world({ scopeEntry });
    const { lake, seen, file, bytesOf } = it;
    const scope = lake.engine.scope({ tables: { t: { where: condition, columns: ["id", "x", "s"] } } });
    const query = makeSql(async () => scope, {})(text);
    const [row] = await query;
    expect(row).toEqual({
      n: text.includes("sum") ? BigInt((ROWS * (ROWS - 1)) / 2) : text.includes("count") ? BigInt(ROWS) : true,
    });
    expect(seen.counts.get.bytes).toBe(file.footer!.bytes + bytesOf(...columns));
    expect(query.stats!.from.store.bytes).toBe(seen.counts.get.bytes);
  }
});

test("columns that a file does not have are null, and are not looked for", async () => {
  await using it = await world();
  const { lake, file, bytesOf } = it;
  const { schema } = (await lake.catalog.table("t"))!;
  const late = { id: 0, name: "late", nullable: true, type: { kind: "string" } } as const;
  await lake.evolve("t", { fields: [...schema.fields, late] });
  const sql = "SELECT count(late) AS n, count(a) AS m FROM t";
  expect(await fetched(it, sql)).toMatchObject({
    rows: [{ n: 0n, m: BigInt(ROWS) }],
    bytes: file.footer!.bytes + bytesOf("a"),
  });
  expect(await fetched(it, sql)).toMatchObject({ rows: [{ n: 0n, m: BigInt(ROWS) }], gets: 0 });
  await lake.appendEncoded("t", [['{"id":1,"late":"yes"}']]);
  expect((await fetched(it, sql)).rows).toEqual([{ n: 1n, m: BigInt(ROWS) }]);
});

test("stats and EXPLAIN tell what was fetched", async () => {
  await using it = await world();
  const { lake, file, bytesOf } = it;
  const bytes = file.footer!.bytes + bytesOf("b");
  const explain = async (): Promise<string> => {
    const rows = await lake.sql<{ explain_key: string; explain_value: string }>("EXPLAIN SELECT b FROM t");
    return rows.find(({ explain_key: key }) => key === "files")!.explain_value;
  };
  expect(await explain()).toBe(
    `t at snapshot 2: 1 of 1 files, 0 left out; from the store 1 file of ${bytes} bytes, from the cache none`,
  );
  expect(await explain()).toMatch(/from the store none, from the cache 1 file of \d+ bytes$/);
});

/** Flips a bit of an object. */
async function damage(store: MemoryStore, key: string, at: number): Promise<void> {
  const bytes = await readBody((await store.get(key)).body);
  bytes[at]! ^= 1;
  await store.put(key, bytes);
}

test("damage in what is fetched is found, and elsewhere does not matter", async () => {
  await using it = await world();
  const { lake, memory, file, copies } = it;
  const bytes = await readBody((await memory.get(file.key)).body);
  const { row_groups } = parquetMetadata(bytes.slice().buffer as ArrayBuffer);
  const chunk = row_groups[1]!.columns.find(({ meta_data }) => meta_data!.path_in_schema[0] === "x")!.meta_data!;
  // In the pages' bytes, and in a page's header.
  for (const at of [
    Number(chunk.data_page_offset) + Number(chunk.total_compressed_size) - 1,
    Number(chunk.data_page_offset),
  ]) {
    await damage(memory, file.key, at);
    await expect(Promise.resolve(lake.sql("SELECT sum(x) FROM t"))).rejects.toMatchObject({
      name: "CorruptionError",
      code: "damaged_file",
      subject: file.key,
    });
    expect(await lake.sql("SELECT count(b) AS n FROM t")).toEqual([{ n: BigInt(ROWS) }]);
    await damage(memory, file.key, at);
  }
  expect(await lake.sql("SELECT count(x) AS n FROM t")).toEqual([{ n: BigInt(ROWS) }]);
  expect(copies()).toHaveLength(1);
});

test("names and types of a result need nothing of a file", async () => {
  await using it = await world();
  const { lake, seen } = it;
  expect(await lake.sql("SELECT * FROM t WHERE a > 5").columns()).toEqual([
    ...["id", "a", "b"].map((name) => ({ name, type: "BIGINT" })),
    { name: "x", type: "DOUBLE" },
    { name: "s", type: "VARCHAR" },
    { name: "p", type: 'STRUCT("k" BIGINT, "v" VARCHAR)' },
    { name: "l", type: "BIGINT[]" },
  ]);
  expect(seen.counts.get.requests).toBe(0);
  // The same statement is not taken to have no rows since.
  expect(await lake.sql("SELECT * FROM t WHERE a > 5 LIMIT 3")).toHaveLength(3);
  expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: BigInt(ROWS) }]);
});

test("damage in one part ends the requests for the others", async () => {
  // The footer, and of three parts the first; the others never come.
  await using it = await world({}, { rules: [{ on: "get", skip: 2, times: 2, fault: { type: "hang" } }] });
  const { lake, memory, file, signals } = it;
  await damage(memory, file.key, 4);
  const damaged = { code: "damaged_file", subject: file.key };
  await expect(Promise.resolve(lake.sql("SELECT sum(id) FROM t"))).rejects.toMatchObject(damaged);
  expect(signals.map((signal) => signal?.aborted).slice(2)).toEqual([true, true]);
});

test("a footer that is not what was committed is found", async () => {
  await using it = await world();
  const { lake, memory, file } = it;
  await damage(memory, file.key, file.bytes - file.footer!.bytes + 100);
  const damaged = { name: "CorruptionError", code: "damaged_file", subject: file.key };
  await expect(Promise.resolve(lake.sql("SELECT count(*) FROM t"))).rejects.toMatchObject(damaged);
});

test("an object that is gone, or another one, also between two requests, is told", async () => {
  let gets = 0;
  let between = async (): Promise<void> => undefined;
  await using it = await world(
    {},
    {
      before: async ({ kind }) => {
        if (kind === "get" && ++gets === 2) await between();
      },
    },
  );
  const { lake, memory, file } = it;
  const whole = await readBody((await memory.get(file.key)).body);
  const asked = async (): Promise<unknown> => {
    gets = 0;
    return lake.sql("SELECT sum(x) FROM t").then(
      () => "answered",
      ({ code }: { code: string }) => code,
    );
  };
  between = () => memory.delete(file.key);
  expect(await asked()).toBe("missing_file");
  expect(await asked()).toBe("missing_file");
  await memory.put(file.key, whole);
  between = async () => void (await memory.put(file.key, whole.subarray(1)));
  expect(await asked()).toBe("damaged_file");
  expect(await asked()).toBe("damaged_file");
  await memory.put(file.key, whole);
  between = async () => undefined;
  expect(await asked()).toBe("answered");
});

test("an abort ends the requests, and leaves nothing behind", async () => {
  const abort = new AbortController();
  const reason = new Error("enough");
  let gets = 0;
  await using it = await world(
    {},
    {
      rules: [{ on: "get", skip: 1, times: 3, fault: { type: "hang" } }],
      before: ({ kind }) => {
        if (kind === "get" && ++gets === 3) setTimeout(() => abort.abort(reason), 10);
      },
    },
  );
  const { lake, copies } = it;
  const query = lake.with({ signal: abort.signal })("SELECT sum(a) FROM t WHERE x > 0");
  await expect(Promise.resolve(query)).rejects.toBe(reason);
  expect(copies()).toEqual([]);
  const processes = join(cacheOf(lake), "processes");
  await expect.poll(() => readdirSync(processes).flatMap((name) => readdirSync(join(processes, name)))).toEqual([]);
  expect(await lake.sql("SELECT count(a) AS n FROM t")).toEqual([{ n: BigInt(ROWS) }]);
});

test("the second query reads the same paths: no link is made for it", async () => {
  await using it = await world();
  const { lake } = it;
  const processes = join(cacheOf(lake), "processes");
  const links = (): string[] => readdirSync(processes).flatMap((name) => readdirSync(join(processes, name)));
  await lake.sql("SELECT sum(a) FROM t");
  const [link, ...others] = links();
  expect(others).toEqual([]);
  for (const sql of ["SELECT sum(a) FROM t", "SELECT min(a) FROM t WHERE a > 5"]) {
    await lake.sql(sql);
    expect(links()).toEqual([link]);
  }
});

test("engines that share a folder share the copies", async () => {
  await using it = await world();
  const { lake, seen, file, bytesOf } = it;
  const shared = {
    catalog: lake.catalog,
    store: lake.store,
    wholeFileBytes: 0,
    cacheFolder: join(lake.scratch.path, "shared"),
  };
  const ask = async (engine: QueryEngine, text: string) => {
    seen.reset();
    const rows = await engine.query({ text, params: [] });
    return { rows, bytes: seen.counts.get.bytes };
  };
  await using first = await QueryEngine.open({ ...shared, tempDir: lake.scratch.path });
  await using second = await QueryEngine.open({ ...shared, tempDir: lake.scratch.path });
  const n = BigInt(ROWS);
  expect(await ask(first, "SELECT count(a) AS n FROM t")).toEqual({
    rows: [{ n }],
    bytes: file.footer!.bytes + bytesOf("a"),
  });
  expect(await ask(second, "SELECT count(a) AS n FROM t")).toEqual({ rows: [{ n }], bytes: 0 });
  expect(await ask(second, "SELECT count(b) AS n FROM t")).toEqual({ rows: [{ n }], bytes: bytesOf("b") });
  // It knows the file that the other has made in place of its own.
  expect(await ask(first, "SELECT count(b) AS n, count(a) AS m FROM t")).toEqual({ rows: [{ n, m: n }], bytes: 0 });
});

test("queries that evict each other's copies all answer right", async () => {
  await using it = await world({ cacheBytes: 400_000 });
  const { lake } = it;
  for (const name of ["u", "v"]) {
    await lake.create(name, SCHEMA);
    await lake.appendEncoded(name, groups());
  }
  const sums: Record<string, bigint> = { id: 0n, a: 0n, b: 0n };
  for (let id = 0; id < ROWS; id++) {
    sums.id! += BigInt(id);
    sums.a! += BigInt(noise(id));
    sums.b! += BigInt(noise(id * 31 + 7));
  }
  const work = async (seed: number): Promise<void> => {
    for (let round = 0; round < 8; round++) {
      const table = ["t", "u", "v"][(seed + round) % 3];
      const column = ["id", "a", "b"][(seed * 7 + round * 5) % 3]!;
      const sql = `SELECT sum(${column})::VARCHAR AS n FROM ${table}`;
      expect(await lake.sql(sql), sql).toEqual([{ n: String(sums[column]) }]);
    }
  };
  await Promise.all([0, 1, 2, 3].map(work));
}, 60_000);
