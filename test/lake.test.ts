import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { sql as drizzleSql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/sqlite-proxy";
import { Lake, type Source } from "eider";
import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from "kysely";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { readParquet } from "./support/hyparquet.js";

const NDJSON = '{"id":1,"v":"é"}\n{"id":2,"v":null}\n';
/** A web stream of these values. */
const readable = (values: readonly unknown[]): ReadableStream =>
  new ReadableStream({
    start(controller) {
      for (const value of values) controller.enqueue(value);
      controller.close();
    },
  });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const EXPECTED = [
  { id: 1n, v: "é" },
  { id: 2n, v: null },
];
/** NDJSON above, compressed by the `zstd` command line tool 1.5.4 (`zstd -3 --no-progress`). */
const ZSTD = Buffer.from("KLUv/SQkDQEAyHsiaWQiOjEsInYiOiLDqSJ9CjJudWxsfQoCAEAINcwwsFFGeg==", "base64");

describe("every source appends", () => {
  const folder = temporaryFolder();
  const sources: Record<string, () => Source | Promise<Source>> = {
    "an array of rows": () => [
      { id: 1, v: "é" },
      { id: 2, v: null },
    ],
    "an iterable of rows": () => new Set([{ id: 1, v: "é" }, { id: 2 }]),
    "an async iterable of rows": () =>
      (async function* () {
        yield { id: 1, v: "é" };
        yield { id: 2, v: undefined };
      })(),
    bytes: () => bytes(NDJSON),
    "a Buffer": () => Buffer.from(NDJSON),
    "an async iterable of bytes, cut inside a character": () =>
      (async function* () {
        const all = bytes(NDJSON);
        for (let i = 0; i < all.length; i++) yield all.subarray(i, i + 1);
      })(),
    "a node stream": async () => {
      await writeFile(join(folder, "stream.ndjson"), NDJSON);
      return createReadStream(join(folder, "stream.ndjson"));
    },
    "a web stream of bytes": () => new Blob([NDJSON]).stream(),
    "a web stream of rows": () => readable([{ id: 1, v: "é" }, { id: 2 }]),
    "a Blob": () => new Blob([NDJSON]),
    "a File": () => new File(["id,v\n1,é\n2,\n"], "rows.csv"),
    "a Response": () => new Response(NDJSON),
    "a file": async () => {
      await writeFile(join(folder, "rows.ndjson"), NDJSON);
      return { file: join(folder, "rows.ndjson") };
    },
    "a file URL": async () => {
      await writeFile(join(folder, "rows 2.json"), `[${NDJSON.trim().replace("\n", ",")}]`);
      return { url: pathToFileURL(join(folder, "rows 2.json")).href };
    },
    "a CSV file": async () => {
      await writeFile(join(folder, "rows.csv"), "id,v\r\n1,é\r\n2,\r\n");
      return { file: join(folder, "rows.csv") };
    },
    "a TSV file": async () => {
      await writeFile(join(folder, "rows.tsv"), "id\tv\n1\té\n2\t\n");
      return { file: join(folder, "rows.tsv") };
    },
    "gzip, whatever its name": async () => {
      await writeFile(join(folder, "rows.bin"), gzipSync(NDJSON));
      return { file: join(folder, "rows.bin") };
    },
    "zstd, whatever its name": () => ZSTD,
    "an Arrow table": () => tableFromArrays({ id: BigInt64Array.of(1n, 2n), v: ["é", null] }),
    "an Arrow IPC stream": () =>
      tableToIPC(tableFromArrays({ id: BigInt64Array.of(1n, 2n), v: ["é", null] }), "stream"),
    "an Arrow IPC file": () => tableToIPC(tableFromArrays({ id: BigInt64Array.of(1n, 2n), v: ["é", null] }), "file"),
  };
  it.each(Object.keys(sources))("%s", async (name) => {
    await using lake = await Lake.open("memory:");
    const result = await lake.table("t").append(await sources[name]!());
    expect(result).toMatchObject({ status: "committed", rowsAdded: 2, rowsRejected: 0 });
    expect(await lake.sql("SELECT * FROM t ORDER BY id")).toEqual(EXPECTED);
  });

  it("an http URL", async () => {
    const server = createServer((request, response) => {
      if (request.url === "/rows.csv?secret=1") response.end("id,v\n1,é\n2,\n");
      else response.writeHead(404).end();
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      await using lake = await Lake.open("memory:");
      await lake.table("t").append({ url: `http://127.0.0.1:${port}/rows.csv?secret=1` });
      expect(await lake.sql("SELECT * FROM t ORDER BY id")).toEqual(EXPECTED);
      const error = lake.table("t").append({ url: `http://127.0.0.1:${port}/none?secret=1` });
      await expect(error).rejects.toMatchObject({ code: "url_not_found" });
      await expect(error).rejects.not.toThrow(/secret/);
    } finally {
      server.close();
    }
  });

  it("our own Parquet, and Parquet that is compressed again", async () => {
    await using lake = await Lake.open(join(folder, "parquet-lake"), FILES);
    await lake.table("t").append(bytes(NDJSON));
    const [file] = await lake.table("t").files();
    const path = join(folder, "parquet-lake", file!.key);
    expect(await lake.table("u").append({ file: path })).toMatchObject({ rowsAdded: 2 });
    const { readFile } = await import("node:fs/promises");
    expect(await lake.table("w").append(gzipSync(await readFile(path)))).toMatchObject({ rowsAdded: 2 });
    expect(await lake.sql("SELECT * FROM u UNION ALL SELECT * FROM w ORDER BY id")).toEqual([
      EXPECTED[0],
      EXPECTED[0],
      EXPECTED[1],
      EXPECTED[1],
    ]);
  });
});

describe("schemas", () => {
  it("are inferred over every value, wherever the odd ones sit (D01)", async () => {
    const common = '{"n":7}\n'.repeat(25_000);
    const odd = '{"n":1.5}\n{"n":null}\n{"n":8,"late":"z"}\n';
    for (const text of [common + odd, odd + common, common.slice(0, 80_000) + odd + common.slice(80_000)]) {
      await using lake = await Lake.open("memory:");
      await lake.table("t").append(bytes(text));
      expect(
        await lake.sql(
          "SELECT sum(n) s, count(*) - count(n) AS nulls, count(late) late, any_value(typeof(n)) t FROM t",
        ),
      ).toEqual([{ s: 175_009.5, nulls: 1n, late: 1n, t: "DOUBLE" }]);
      await expect(lake.table("t").append(bytes('{"n":true}\n'))).rejects.toMatchObject({
        code: "rejected_rows",
        rows: [{ line: 1 }],
      });
    }
  });

  it("evolve: new columns, and integers that widen (D02)", async () => {
    await using lake = await Lake.open(temporaryFolder());
    for (const id of ["9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616"]) {
      await lake.table("t").append(bytes(`{"id":${id}}`));
    }
    await lake.table("t").append([{ id: 5, extra: { deep: [1] } }]);
    expect(await lake.sql("SELECT CAST(id AS VARCHAR) AS id, extra FROM t ORDER BY t.id")).toEqual([
      { id: "5", extra: { deep: [1n] } },
      { id: "9007199254740993", extra: null },
      { id: "9223372036854775807", extra: null },
      { id: "9223372036854775808", extra: null },
      { id: "18446744073709551616", extra: null },
    ]);
    expect((await lake.table("t").describe()).schemaVersion).toBe(3);
  });

  it("strict refuses and ignore counts unknown fields", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: { a: "int64" } });
    await expect(table.append([{ a: 1, b: 2 }], { schemaMode: "strict" })).rejects.toMatchObject({
      code: "rejected_rows",
      rows: [{ line: 1, code: "unknown_field" }],
    });
    expect(
      await table.append(
        [
          { a: 1, b: 2 },
          { a: 2, b: 3, c: 4 },
        ],
        { schemaMode: "ignore" },
      ),
    ).toMatchObject({
      rowsAdded: 2,
      ignoredFields: { b: 2, c: 1 },
    });
    expect(await lake.sql("SELECT * FROM t ORDER BY a")).toEqual([{ a: 1n }, { a: 2n }]);
  });

  it("quarantine keeps bad rows aside with their reason", async () => {
    await using lake = await Lake.open(temporaryFolder());
    const table = lake.table("t", { schema: { n: "int32" } });
    const text = '{"n":1}\n{"n":"x"}\nnot json\n{"n":3000000000}\n{"n":2}\n';
    await expect(table.append(bytes(text), { schemaMode: "strict" })).rejects.toMatchObject({
      rows: [{ line: 2 }, { line: 3 }, { line: 4 }],
    });
    expect(await lake.tables()).toEqual([]);
    const result = await table.append(bytes(text), { batchId: "b", schemaMode: "strict", onReject: "quarantine" });
    expect(result).toMatchObject({ rowsAdded: 2, rowsRejected: 3, receipt: { rows: 2 } });
    const rejects = await table.rejects({ batchId: "b" });
    expect(rejects.map(({ line, raw }) => ({ line, raw }))).toEqual([
      { line: 2, raw: '{"n":"x"}' },
      { line: 3, raw: "not json" },
      { line: 4, raw: '{"n":3000000000}' },
    ]);
    expect(await lake.sql("SELECT sum(n) AS s FROM t")).toEqual([{ s: 3n }]);
  });

  it("options of an existing table must match", async () => {
    await using lake = await Lake.open("memory:");
    await lake.table("t", { partitionBy: ["k"] }).append([{ k: 1, v: 2 }]);
    await lake.table("t").append([{ k: 2, v: 3 }]);
    await lake.table("t", { partitionBy: ["K"] }).append([{ k: 2, v: 3 }]);
    await expect(lake.table("t", { partitionBy: ["v"] }).append([{ k: 1 }])).rejects.toMatchObject({
      code: "table_differs",
    });
    await expect(lake.table("t", { orderBy: ["v"] }).append([{ k: 1 }])).rejects.toMatchObject({
      code: "table_differs",
    });
    await expect(lake.table("t", { schema: { v: "string" } }).append([{ k: 1 }])).rejects.toMatchObject({
      code: "table_differs",
    });
    await expect(lake.table("t", { schema: { other: "string" } }).append([{ k: 1 }])).rejects.toMatchObject({
      code: "table_differs",
    });
  });
});

describe("partitions and order", () => {
  it("put rows into folders by transform, sorted within files, and keep the columns in the files", async () => {
    const where = temporaryFolder();
    await using lake = await Lake.open(where, FILES);
    const table = lake.table("events", { partitionBy: ["day(ts)", "app"], orderBy: ["n desc"] });
    const rows = [
      { ts: new Date("2031-02-03T23:59:59.999Z"), app: "a/b", n: 1 },
      { ts: new Date("2031-02-04T00:00:00Z"), app: "a/b", n: 2 },
      { ts: new Date("2031-02-03T00:00:00Z"), app: "a/b", n: 3 },
      { ts: null, app: null, n: 4 },
      { ts: new Date("1969-12-31T23:00:00Z"), app: "", n: 5 },
    ];
    await table.append(rows);
    const files = await table.files();
    expect(files.map(({ key }) => key.replace(/^[^/]+\/data\//, "").replace(/\/[^/]+$/, "")).sort()).toEqual(
      [
        "ts_day=1969-12-31/app=",
        "ts_day=2031-02-03/app=a%2Fb",
        "ts_day=2031-02-04/app=a%2Fb",
        "ts_day=__HIVE_DEFAULT_PARTITION__/app=__HIVE_DEFAULT_PARTITION__",
      ].map((path) => path),
    );
    const two = files.find((file) => file.rows === 2)!;
    expect((await readParquet(join(where, two.key))).map((row) => row.n)).toEqual([3n, 1n]);
    expect(await lake.sql("SELECT app, n FROM events ORDER BY n")).toEqual([
      { app: "a/b", n: 1n },
      { app: "a/b", n: 2n },
      { app: "a/b", n: 3n },
      { app: null, n: 4n },
      { app: "", n: 5n },
    ]);
  });

  it("refuse a column that is not there or cannot be transformed", async () => {
    await using lake = await Lake.open("memory:");
    await expect(lake.table("t", { partitionBy: ["day(v)"] }).append([{ v: "x" }])).rejects.toMatchObject({
      name: "SchemaError",
    });
    await expect(lake.table("t", { partitionBy: ["nope"] }).append([{ v: "x" }])).rejects.toMatchObject({
      name: "SchemaError",
    });
    expect(await lake.tables()).toEqual([]);
  });
});

describe("snapshots", () => {
  it("AT (VERSION => n), AT (TIMESTAMP => …), with({ at }), drop and re-creation", async () => {
    let now = Date.parse("2031-01-01T00:00:00Z");
    await using lake = await Lake.open(temporaryFolder(), { clock: () => now });
    const table = lake.table("t");
    await table.append([{ v: 1 }]);
    now += 60_000;
    await table.append([{ v: 2, w: "x" }]);
    now += 60_000;
    expect((await table.drop()).snapshot).toBe(3);
    await expect(lake.sql("SELECT * FROM t")).rejects.toMatchObject({ code: "unknown_table" });
    await table.append([{ other: true }], { batchId: "b" });
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ other: true }]);
    expect(await lake.sql("SELECT * FROM t AT (VERSION => 1)")).toEqual([{ v: 1n }]);
    expect(
      await lake.sql("SELECT a.v, b.w FROM t AS a AT (VERSION => 1) JOIN t b AT (VERSION => 2) USING (v)"),
    ).toEqual([{ v: 1n, w: null }]);
    expect(await lake.sql("SELECT count(*) AS n FROM t AT (TIMESTAMP => '2031-01-01 00:01:00')")).toEqual([{ n: 2n }]);
    expect(await lake.with({ at: 2 }).sql("SELECT sum(v) AS s FROM t")).toEqual([{ s: 3n }]);
    expect(await lake.with({ at: new Date("2031-01-01T00:00:30Z") }).sql("SELECT sum(v) AS s FROM t")).toEqual([
      { s: 1n },
    ]);
    await expect(lake.with({ at: 9 }).sql("SELECT 1")).rejects.toMatchObject({ code: "snapshot_not_found" });
    expect((await lake.snapshots()).map(({ operations }) => operations.map(({ op }) => op).join("+"))).toEqual([
      "schema+append",
      "schema+append",
      "drop",
      "schema+append",
    ]);
    await expect(lake.table("none").drop()).rejects.toMatchObject({ code: "table_not_found" });
  });

  it("a table without files reads as empty, with its types (D33)", async () => {
    await using lake = await Lake.open(temporaryFolder());
    await lake.table("t", { schema: { id: "int64", v: "string" } }).create();
    await lake.table("u").append([{ id: 1 }]);
    expect(await lake.sql("SELECT count(*) AS n, max(v) AS m FROM t")).toEqual([{ n: 0n, m: null }]);
    expect(await lake.sql("SELECT u.id, t.v FROM u LEFT JOIN t USING (id)")).toEqual([{ id: 1n, v: null }]);
    expect(await lake.sql("SELECT * FROM t").columns()).toEqual([
      { name: "id", type: "BIGINT" },
      { name: "v", type: "VARCHAR" },
    ]);
    await expect(lake.table("t").create()).rejects.toMatchObject({ code: "table_exists" });
    await lake.table("t").create({ ifNotExists: true });
    expect(await lake.sql("SELECT * FROM u WHERE id > 5")).toEqual([]);
  });

  it("append([]) commits a receipt of no rows (D21)", async () => {
    await using lake = await Lake.open(temporaryFolder());
    expect(await lake.table("t").append([], { batchId: "empty" })).toMatchObject({ status: "committed", rowsAdded: 0 });
    expect(await lake.table("t").append([], { batchId: "empty" })).toMatchObject({ status: "duplicate" });
    expect(await lake.table("t").append([{ a: 1 }])).toMatchObject({ rowsAdded: 1 });
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ a: 1n }]);
    expect(await lake.table("t").batches()).toMatchObject([{ rows: 1 }, { batchId: "empty", rows: 0 }]);
  });
});

describe("lake.sql", () => {
  it("takes tagged templates, parameters, Kysely and Drizzle", async () => {
    await using lake = await Lake.open("memory:");
    await lake.table("t").append([
      { id: 1, v: "it's" },
      { id: 2, v: "b" },
    ]);
    const v = "it's";
    expect(await lake.sql<{ id: bigint }>`SELECT id FROM t WHERE v = ${v} AND id < ${10n}`).toEqual([{ id: 1n }]);
    expect(await lake.sql("SELECT id FROM t WHERE id = ?", [2])).toEqual([{ id: 2n }]);
    expect(await lake.sql("SELECT id FROM t WHERE id = $id", { id: 2 })).toEqual([{ id: 2n }]);
    const kysely = new Kysely<{ t: { id: number; v: string } }>({
      dialect: {
        createAdapter: () => new SqliteAdapter(),
        createDriver: () => new DummyDriver(),
        createIntrospector: (db) => new SqliteIntrospector(db),
        createQueryCompiler: () => new SqliteQueryCompiler(),
      },
    });
    expect(await lake.sql(kysely.selectFrom("t").select("id").where("v", "=", "b").compile())).toEqual([{ id: 2n }]);
    const db = drizzle(async () => ({ rows: [] }));
    const built = db.select({ id: drizzleSql`id` }).from(drizzleSql`t`).where(drizzleSql`v = ${"b"}`).toSQL();
    expect(await lake.sql(built)).toEqual([{ id: 2n }]);
  });

  it("refuses to write, with the method to call", async () => {
    await using lake = await Lake.open("memory:");
    await lake.table("t").append([{ id: 1 }]);
    for (const text of ["INSERT INTO t VALUES (2)", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE x (a int)"]) {
      await expect(lake.sql(text)).rejects.toMatchObject({ code: "read_only_sql" });
    }
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 1n }]);
  });

  it("shares one engine between two handles of the same folder, and closes with the last", async () => {
    const where = temporaryFolder();
    const one = await Lake.open(where);
    const two = await Lake.open(join(where, "..", where.split(/[\\/]/).at(-1)!));
    await one.table("t").append([{ a: 1 }]);
    expect(await two.sql("SELECT * FROM t")).toEqual([{ a: 1n }]);
    await one.close();
    await expect(one.sql("SELECT 1")).rejects.toMatchObject({ code: "lake_closed" });
    await expect(one.table("t").append([{ a: 2 }])).rejects.toMatchObject({ code: "lake_closed" });
    expect(await two.sql("SELECT * FROM t")).toEqual([{ a: 1n }]);
    await two.close();
  });
});

describe("partition columns", () => {
  it("may be all null at first, and hold NaN and infinities apart", async () => {
    await using lake = await Lake.open(temporaryFolder(), FILES);
    const table = lake.table("t", { partitionBy: ["p"], orderBy: ["o"] });
    await table.append([{ p: null, o: null, n: 1 }]);
    await table.append([{ p: "x", o: 2, n: 2 }]);
    expect(await lake.sql("SELECT p, o, n FROM t ORDER BY n")).toEqual([
      { p: null, o: null, n: 1n },
      { p: "x", o: 2n, n: 2n },
    ]);
    const floats = lake.table("f", { partitionBy: ["v"], schema: { v: "float64", n: "int64" } });
    const values = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, null, 0, -0];
    await floats.append(values.map((v, n) => ({ v, n })));
    expect(await floats.files()).toHaveLength(5);
    expect(await lake.sql("SELECT n FROM f WHERE v = 'NaN'::DOUBLE")).toEqual([{ n: 0n }]);
    expect(await lake.sql("SELECT n FROM f WHERE v = 0 ORDER BY n")).toEqual([{ n: 4n }, { n: 5n }]);
  });

  it("cannot turn into another kind of number", async () => {
    await using lake = await Lake.open(temporaryFolder());
    const table = lake.table("t", { partitionBy: ["p"] });
    await table.append([{ p: 1 }]);
    await expect(table.append([{ p: 1.5 }])).rejects.toMatchObject({ code: "partition_column" });
    await table.append([{ p: 2 ** 40, q: 1.5 }]);
    expect(await lake.sql("SELECT p FROM t ORDER BY p")).toEqual([{ p: 1n }, { p: 2n ** 40n }]);
  });

  it("tables have plain folders; a recreated one gets its own", async () => {
    await using lake = await Lake.open(temporaryFolder(), FILES);
    const keys: string[] = [];
    for (let i = 0; i < 2; i++) {
      const table = lake.table("ns.events");
      await table.append([{ a: i }]);
      keys.push((await table.files())[0]!.key);
      await table.drop();
    }
    expect(keys[0]).toMatch(/^ns\.events\/data\/0-[0-9a-f-]{36}\.parquet$/);
    expect(keys[1]).toMatch(/^ns\.events~[0-9a-f-]{36}\/data\/2-[0-9a-f-]{36}\.parquet$/);
    expect(await lake.sql("SELECT a FROM ns.events AT (VERSION => 1)")).toEqual([{ a: 0n }]);
  });
});

it.each([
  ["NDJSON", 100_000, (n: number) => `{"a":${n}}\n`, ""],
  ["NDJSON", 200_000, (n: number) => `{"a":${n}}\n`, ""],
  ["CSV", 100_000, (n: number) => `${n}\n`, "a\n"],
  ["CSV", 99_999, (n: number) => `${n}\n`, "a\n"],
])("%s input of %d rows, which may end where a row group does", async (format, count, line, head) => {
  await using lake = await Lake.open("memory:");
  const text = head + Array.from({ length: count }, (_, n) => line(n)).join("");
  const result = await lake.table("t").append(bytes(text), { format: format.toLowerCase() as "csv" | "ndjson" });
  expect(result).toMatchObject({ status: "committed", rowsAdded: count });
  // Gauss: the sum of 0 … n−1.
  expect(await lake.sql("SELECT count(*) AS n, sum(a) AS s FROM t")).toEqual([
    { n: BigInt(count), s: (BigInt(count) * BigInt(count - 1)) / 2n },
  ]);
});
