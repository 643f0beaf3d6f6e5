/**
 * Inputs from public bug reports, each with the result a user must get (named by its number). Answers are checked
 * through SQL and through hyparquet, a second Parquet reader.
 */

import { copyFile, mkdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Lake, type Table } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { readParquet } from "./support/hyparquet.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

async function folderLake(): Promise<{ lake: Lake; where: string }> {
  const where = temporaryFolder();
  return { lake: await Lake.open(where, FILES), where };
}

/** All rows of a table as the second reader sees them, file by file. */
async function secondReader(table: Table, where: string): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for (const file of await table.files()) rows.push(...(await readParquet(join(where, file.key))));
  return rows;
}

describe("keys of JSON", () => {
  it("D07: keys that differ only by case", async () => {
    const { lake, where } = await folderLake();
    const table = lake.table("t");
    // Both in one row: a reject that names both, whatever their order.
    for (const text of ['{"Photo":1,"photo":2,"photo_1":3}', '{"photo_1":3,"photo":2,"Photo":1}']) {
      const error = await table.append(bytes(text)).catch((e) => e);
      expect(error).toMatchObject({ code: "rejected_rows", rows: [{ line: 1, code: "duplicate_key" }] });
      expect(error.rows[0].reason).toMatch(/"Photo".*"photo"|"photo".*"Photo"/);
    }
    expect(await lake.tables()).toEqual([]);
    // One a row: the existing column, whose name stays.
    await table.append(bytes('{"Photo":1,"photo_1":3}'));
    await table.append(bytes('{"PHOTO":4}\n{"photo":5}'));
    await table.append([{ pHOTO: 6 }]);
    await table.append(bytes("photo,PHOTO_1\n7,8\n"), { format: "csv" });
    expect(await lake.sql("SELECT * FROM t ORDER BY photo")).toEqual([
      { Photo: 1n, photo_1: 3n },
      { Photo: 4n, photo_1: null },
      { Photo: 5n, photo_1: null },
      { Photo: 6n, photo_1: null },
      { Photo: 7n, photo_1: 8n },
    ]);
    expect((await secondReader(table, where)).map((row) => row.Photo)).toEqual([1n, 4n, 5n, 6n, 7n]);
    await lake.close();
  });

  it("D09: dotted, blank, spaced, accented and quoted keys", async () => {
    const { lake, where } = await folderLake();
    const table = lake.table("t");
    await table.append(bytes('{"a.b":1,"a":{"b":2},"":3,"k k":4,"\\u00e9":5,"e\\u0301":6,"q\\"q":7}'));
    const expected = { "a.b": 1n, a: { b: 2n }, _empty: 3n, "k k": 4n, "\u00e9": 5n, "e\u0301": 6n, 'q"q': 7n };
    expect(await lake.sql("SELECT * FROM t")).toEqual([expected]);
    expect(await lake.sql('SELECT 1 AS one FROM t WHERE "a.b" = 1')).toEqual([{ one: 1 }]);
    expect(await lake.sql('SELECT 1 AS one FROM t WHERE "a.b" = 2')).toEqual([]);
    expect(await lake.sql('SELECT a.b AS n FROM t WHERE a.b = 2 AND "q""q" = 7')).toEqual([{ n: 2n }]);
    expect(await secondReader(table, where)).toEqual([expected]);
    await lake.close();
  });

  it("D11: a repeated key takes its last value, between good rows", async () => {
    const { lake, where } = await folderLake();
    const table = lake.table("t");
    await table.append(bytes('{"a":0,"b":0}\n{"a":1,"b":0,"a":2}\n{"a":3,"b":0}\n'), { batchId: "b" });
    expect(await lake.sql("SELECT a FROM t ORDER BY a")).toEqual([{ a: 0n }, { a: 2n }, { a: 3n }]);
    expect((await secondReader(table, where)).map((row) => row.a)).toEqual([0n, 2n, 3n]);
    // The hash is over the bytes: the same rows in other bytes are other content.
    await expect(
      table.append(bytes('{"a":0,"b":0}\n{"b":0,"a":2}\n{"a":3,"b":0}\n'), { batchId: "b" }),
    ).rejects.toMatchObject({ code: "batch_conflict" });
    await lake.close();
  });

  it("D80: __proto__ and its kin are data", async () => {
    const { lake, where } = await folderLake();
    const json = lake.table("json");
    await json.append(bytes('{"__proto__":{"x":1},"hasOwnProperty":2,"toString":3,"constructor":"c"}'), {
      batchId: "__proto__",
    });
    const [row] = await lake.sql("SELECT * FROM json");
    expect(Object.keys(row!)).toEqual(["__proto__", "hasOwnProperty", "toString", "constructor"]);
    expect(Object.getOwnPropertyDescriptor(row, "__proto__")?.value).toEqual({ x: 1n });
    expect(await lake.sql('SELECT "__proto__".x AS x, "hasOwnProperty" AS h, "toString" AS t FROM json')).toEqual([
      { x: 1n, h: 2n, t: 3n },
    ]);
    expect(await json.receipt("__proto__")).toMatchObject({ rows: 1 });
    expect(await json.receipt("constructor")).toBeUndefined();
    expect(
      await json.append(bytes('{"__proto__":{"x":1},"hasOwnProperty":2,"toString":3,"constructor":"c"}'), {
        batchId: "__proto__",
      }),
    ).toMatchObject({ status: "duplicate" });

    const csv = lake.table("csv", { partitionBy: ["__proto__"] });
    await csv.append(bytes("__proto__,constructor,__proto__.polluted\n__proto__,c,yes\n"), { format: "csv" });
    expect(await lake.sql('SELECT "__proto__" AS a, "constructor" AS b, "__proto__.polluted" AS c FROM csv')).toEqual([
      { a: "__proto__", b: "c", c: "yes" },
    ]);
    expect(await lake.sql("SELECT 1 AS one FROM csv WHERE \"__proto__\" = '__proto__'")).toEqual([{ one: 1 }]);

    const rows = lake.table("rows");
    await rows.append([JSON.parse('{"__proto__":{"polluted":true},"n":1}')]);
    expect(await lake.sql('SELECT "__proto__".polluted AS p, n FROM rows')).toEqual([{ p: true, n: 1n }]);
    const [file] = await rows.files();
    expect(await readFile(join(where, file!.key), "latin1")).toContain("__proto__");
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect(({} as Record<string, unknown>).x).toBeUndefined();
    await lake.close();
  });
});

describe("partition values", () => {
  const kinds: Record<string, readonly (readonly string[])[]> = {
    "D27: zero-padded and mixed codes": [
      ["00420", "7B420"],
      ["1", "2"],
      ["-0", "+1"],
    ],
    "D28: date-like text": [["2031-1-1", "2031-02-03"], ["n/a"]],
    "D29: special characters": [["u/v", "50%", "x=y", "h:m", "p+q", "u%2Fv", "sp ace", "ñ", ".", ".."]],
    "more of the kind": [
      [
        "",
        "__HIVE_DEFAULT_PARTITION__",
        "null",
        "NULL",
        "CON",
        "a\\b",
        "*",
        "[x]",
        "?",
        "'",
        '"',
        "#",
        "\u0000",
        "e\u0301",
        "\u00e9",
        "A",
        "a",
        "😀",
        "x".repeat(300),
        `${"x".repeat(300)}y`,
      ],
    ],
  };
  it.each(Object.keys(kinds))("%s", async (name) => {
    const { lake, where } = await folderLake();
    const table = lake.table<{ code: string; n: number }>("t", {
      partitionBy: ["code"],
      schema: { code: "string", n: "int64" },
    });
    const batches = kinds[name]!;
    const all = batches.flat();
    let n = 0;
    for (const batch of batches) await table.append(batch.map((code) => ({ code, n: n++ })));
    expect(await lake.sql("SELECT DISTINCT typeof(code) AS t FROM t")).toEqual([{ t: "VARCHAR" }]);
    expect((await lake.sql<{ code: string }>("SELECT code FROM t ORDER BY n")).map((row) => row.code)).toEqual(all);
    for (const [i, code] of all.entries()) {
      expect(await lake.sql`SELECT n FROM t WHERE code = ${code}`).toEqual([{ n: BigInt(i) }]);
    }
    const files = await table.files();
    const folders = new Set(files.map(({ key }) => key.slice(0, key.lastIndexOf("/"))));
    expect(folders.size).toBe(all.length);
    for (const folder of folders) {
      expect(folder).toMatch(/^[^/]+\/data\/code=[A-Za-z0-9_.%~-]*$/);
      expect(join(where, folder).startsWith(join(where, files[0]!.key.split("/")[0]!))).toBe(true);
    }
    expect((await secondReader(table, where)).map((row) => row.code).sort()).toEqual([...all].sort());
    await lake.close();
  });

  it("null is not the text that stands for it in a path", async () => {
    const { lake } = await folderLake();
    const table = lake.table("t", { partitionBy: ["k"] });
    await table.append([
      { k: null, n: 1 },
      { k: "__HIVE_DEFAULT_PARTITION__", n: 2 },
      { k: "", n: 3 },
    ]);
    expect(await lake.sql("SELECT n FROM t WHERE k IS NULL")).toEqual([{ n: 1n }]);
    expect(await lake.sql("SELECT n FROM t WHERE k = '__HIVE_DEFAULT_PARTITION__'")).toEqual([{ n: 2n }]);
    expect(await lake.sql("SELECT n FROM t WHERE k = ''")).toEqual([{ n: 3n }]);
    expect(await table.files()).toHaveLength(3);
    await lake.close();
  });
});

it("D35: stray, partial and temporary files beside committed ones", async () => {
  const { lake, where } = await folderLake();
  const table = lake.table("t");
  await table.append([{ a: 1 }]);
  await table.append([{ a: 2 }]);
  const [one, two] = await table.files();
  const folder = join(where, one!.key, "..");
  await writeFile(join(folder, "magic.parquet"), "PAR1");
  await copyFile(join(where, two!.key), join(folder, "half.parquet"));
  await truncate(join(folder, "half.parquet"), Math.floor(two!.bytes / 2));
  await copyFile(join(where, two!.key), join(folder, "0-00000000-0000-7000-8000-000000000000.parquet"));
  await writeFile(join(folder, ".tmp"), "in flight");
  const sum = (): PromiseLike<unknown> => lake.sql("SELECT sum(a) AS s, count(*) AS n FROM t");
  expect(await sum()).toEqual([{ s: 3n, n: 2n }]);
  await Promise.all([table.append([{ a: 4 }]), sum(), sum()]);
  expect(await sum()).toEqual([{ s: 7n, n: 3n }]);
  const report = await lake.verify();
  expect(report.ok).toBe(true);
  expect(report.findings.map(({ kind, key }) => `${kind} ${key.split("/").at(-1)}`).sort()).toEqual([
    "stray .tmp",
    "stray 0-00000000-0000-7000-8000-000000000000.parquet",
    "stray half.parquet",
    "stray magic.parquet",
  ]);
  expect(await lake.maintain()).toMatchObject({ deleted: [], bytes: 0 });
  // Only what has the form of our own data files may ever be removed.
  expect((await lake.maintain({ graceMs: 0 })).deleted.map((key) => key.split("/").at(-1))).toEqual([
    "0-00000000-0000-7000-8000-000000000000.parquet",
  ]);
  expect(await sum()).toEqual([{ s: 7n, n: 3n }]);
  await lake.close();
});

it("verify finds lost, cut and changed data files; queries fail and never answer less", async () => {
  const { lake, where } = await folderLake();
  const table = lake.table("t");
  for (const a of [1, 2, 3]) await table.append([{ a, v: "x".repeat(200) }]);
  const [one, two, three] = await table.files();
  const data = await readFile(join(where, two!.key));
  data[20]! ^= 0xff;
  await writeFile(join(where, two!.key), data);
  await truncate(join(where, three!.key), 50);
  const { rm } = await import("node:fs/promises");
  await rm(join(where, one!.key));
  const report = await lake.verify();
  expect(report.ok).toBe(false);
  expect(report.findings.map(({ kind, key }) => ({ kind, key }))).toEqual([
    { kind: "missing", key: one!.key },
    { kind: "hash", key: two!.key },
    { kind: "size", key: three!.key },
  ]);
  await expect(lake.sql("SELECT count(a) AS n FROM t")).rejects.toMatchObject({ name: "CorruptionError" });
  await lake.close();
});

describe("CSV", () => {
  async function csv(text: string | Uint8Array, options: object = {}): Promise<unknown> {
    await using lake = await Lake.open("memory:");
    await lake.table("t").append(typeof text === "string" ? bytes(text) : text, { format: "csv", ...options });
    return await lake.sql("SELECT * FROM t");
  }

  it("D62: a byte-order mark", async () => {
    expect(await csv("\ufeffid,v\n1,x\n")).toEqual([{ id: 1n, v: "x" }]);
    expect(await csv('\ufeff"id",v\n1,x\ufeffy\n')).toEqual([{ id: 1n, v: "x\ufeffy" }]);
    await using lake = await Lake.open("memory:");
    const all = bytes("\ufeffid,v\n1,x\n");
    const split = (async function* () {
      yield all.subarray(0, 1);
      yield all.subarray(1, 2);
      yield all.subarray(2);
    })();
    await lake.table("t").append(split, { format: "csv" });
    await lake.table("n").append(bytes('\ufeff{"id":1,"v":"\ufeff"}\n'));
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ id: 1n, v: "x" }]);
    expect(await lake.sql("SELECT * FROM n")).toEqual([{ id: 1n, v: "\ufeff" }]);
  });

  it("D63: CRLF and quotes cut at every position", async () => {
    const all = bytes('a,b\r\n"1\r\nx","say ""hi"""\r\n2,"é, z"\r\n');
    await using lake = await Lake.open("memory:");
    for (let cut = 0; cut <= all.length; cut++) {
      const table = lake.table(`t${cut}`);
      const pieces = (async function* () {
        yield all.subarray(0, cut);
        yield all.subarray(cut);
      })();
      await table.append(pieces, { format: "csv" });
    }
    const every = Array.from({ length: all.length + 1 }, (_, cut) => `SELECT * FROM t${cut}`).join(" UNION ALL ");
    expect(await lake.sql(`SELECT a, b, count(*) AS n FROM (${every}) GROUP BY ALL ORDER BY a`)).toEqual([
      { a: "1\r\nx", b: 'say "hi"', n: BigInt(all.length + 1) },
      { a: "2", b: "é, z", n: BigInt(all.length + 1) },
    ]);
  });

  it("D65: leading zeros", async () => {
    await using lake = await Lake.open("memory:");
    await lake.table("t").append(bytes("zip\n00501\n94107\n"), { format: "csv" });
    await lake.table("t").append(bytes("zip\n60601\n"), { format: "csv" });
    expect(await lake.sql("SELECT zip, typeof(zip) AS t FROM t ORDER BY zip")).toEqual([
      { zip: "00501", t: "VARCHAR" },
      { zip: "60601", t: "VARCHAR" },
      { zip: "94107", t: "VARCHAR" },
    ]);
    for (const text of ["-0", "+7", "1_000", "1e3", "0x10"]) expect(await csv(`v\n${text}\n`)).toEqual([{ v: text }]);
    expect(await csv("v\n0\n")).toEqual([{ v: 0n }]);
    expect(await csv("v\n0.5\n")).toEqual([{ v: 0.5 }]);
  });

  it("D67: ragged rows", async () => {
    const text = "a,b,c\n1,2,3\n4,5\n6,7,8,9\n10,11,12,\n,,\n";
    await using lake = await Lake.open("memory:");
    const table = lake.table("t");
    // Strict: the short row, the over-long one, and the one with a cell too many that is empty.
    await expect(table.append(bytes(text), { format: "csv" })).rejects.toMatchObject({
      code: "rejected_rows",
      rows: [
        { line: 3, code: "ragged_row" },
        { line: 4, code: "ragged_row" },
        { line: 5, code: "ragged_row" },
      ],
    });
    expect(await lake.tables()).toEqual([]);
    const lenient = { format: "csv", csv: { ragged: "pad" }, onReject: "quarantine" } as const;
    expect(await table.append(bytes(text), lenient)).toMatchObject({ rowsAdded: 4, rowsRejected: 1 });
    expect(await lake.sql("SELECT * FROM t ORDER BY a NULLS LAST")).toEqual([
      { a: 1n, b: 2n, c: 3n },
      { a: 4n, b: 5n, c: null },
      { a: 10n, b: 11n, c: 12n },
      { a: null, b: null, c: null },
    ]);
    expect(await table.rejects()).toMatchObject([{ line: 4, raw: "6,7,8,9" }]);
  });

  it("D68: repeated and empty headers", async () => {
    const [row] = (await csv("k,k,k,k_1,,\n1,2,3,4,5,6\n")) as Record<string, bigint>[];
    expect(Object.values(row!)).toEqual([1n, 2n, 3n, 4n, 5n, 6n]);
    expect(row!.k_1).toBe(4n);
    expect(Object.keys(row!)).toEqual(["k", "k_2", "k_3", "k_1", "column_5", "column_6"]);
  });

  it("D70: bytes that are not UTF-8", async () => {
    const bad = Buffer.from([0x61, 0x0a, 0x78, 0x0a, 0x31, 0x20, 0x96, 0x20, 0x32, 0x0a]);
    await expect(csv(bad)).rejects.toMatchObject({
      code: "bad_encoding",
      message: expect.stringMatching(/line 3.*|.*offset 6/),
    });
    expect(await csv(bad, { csv: { encoding: "windows-1252" } })).toEqual([{ a: "x" }, { a: "1 – 2" }]);
    expect(await csv(Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("a\né\n", "utf16le")]))).toEqual([
      { a: "é" },
    ]);
  });
});

describe("D71: NDJSON lines", () => {
  const cases: [text: string, expected: number | { line: number }][] = [
    ['{"a":1}\r\n\r\n   \n{"a":2}\n\n', 2],
    ['{"a":1}\n{"a":', { line: 2 }],
    ['{"a":1},\n{"a":2}', { line: 1 }],
    ['[{"a":1},{"a":2}]', 2],
    ['{"a":1}\n3\n', { line: 2 }],
    ['{"a":"x\u2028y"}', 1],
  ];
  it.each(cases)("%j", async (text, expected) => {
    await using lake = await Lake.open("memory:");
    const result = lake.table("t").append(bytes(text), { format: "ndjson" });
    if (typeof expected === "number") {
      expect(await result).toMatchObject({ rowsAdded: expected });
      if (text.includes("\u2028")) expect(await lake.sql("SELECT a FROM t")).toEqual([{ a: "x\u2028y" }]);
    } else {
      await expect(result).rejects.toMatchObject({ code: "rejected_rows", rows: [expected] });
      expect(await lake.tables()).toEqual([]);
    }
  });
  it("a bare value is no row", async () => {
    await using lake = await Lake.open("memory:");
    await expect(lake.table("t").append(bytes("3"), { format: "ndjson" })).rejects.toMatchObject({
      rows: [{ line: 1 }],
    });
  });
});

describe("D78: names and paths", () => {
  it.each(['a"; DROP TABLE b; --', "it's", "x-y.z", "../t", "select", "ünï", "a b", "CON", "t.u"])(
    "table %j",
    async (name) => {
      const root = join(temporaryFolder(), "o'neil [x] 50% #?");
      await mkdir(root, { recursive: true });
      const lake = await Lake.open(root, FILES);
      await lake.table("b").append([{ keep: 1 }]);
      const table = lake.table(name, { partitionBy: ["p"] });
      const value = "'); COPY (SELECT 1) TO 'x";
      await table.append([{ 'c"d': 7, p: value }]);
      const quoted = name === "t.u" ? "t.u" : `"${name.replaceAll('"', '""')}"`;
      expect(await lake.sql(`SELECT "c""d" AS n, p FROM ${quoted}`)).toEqual([{ n: 7n, p: value }]);
      expect(await lake.sql(`SELECT count(*) AS n FROM ${quoted} WHERE p = $1`, [value])).toEqual([{ n: 1n }]);
      expect(await lake.sql("SELECT keep FROM b")).toEqual([{ keep: 1n }]);
      const [file] = await table.files();
      expect(join(root, file!.key).startsWith(root)).toBe(true);
      expect(file!.key.split("/")).not.toContain("..");
      // What `eider files --sql` prints is as safe.
      const instance = await DuckDBInstance.create(":memory:");
      const connection = await instance.connect();
      const reader = await connection.runAndReadAll(await table.filesSql());
      expect(reader.getRowObjects()).toEqual([{ 'c"d': 7n, p: value }]);
      connection.closeSync();
      instance.closeSync();
      await lake.close();
    },
  );
});

it("D78: with sqlAccess: lake, SQL touches nothing outside the lake's folder, and writes nothing", async () => {
  const folder = temporaryFolder();
  const secret = join(folder, "secret.csv");
  await writeFile(secret, "secret\n42\n");
  const root = join(folder, "lake");
  // A sibling whose name begins like the lake's.
  await mkdir(join(folder, "lake-of-others"));
  await copyFile(secret, join(folder, "lake-of-others", "secret.csv"));
  await using lake = await Lake.open(root, { sqlAccess: "lake", ...FILES });
  await lake.table("t").append([{ a: 1 }]);
  expect(await lake.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
  const attempts = [
    `SELECT * FROM '${secret}'`,
    `SELECT * FROM read_text('${secret}')`,
    `SELECT * FROM read_csv('${root}/../secret.csv')`,
    `SELECT * FROM read_csv('${folder}/lake-of-others/secret.csv')`,
    `SELECT * FROM glob('${folder}/*')`,
    "SELECT * FROM read_text('/etc/hostname')",
    "SELECT getenv('HOME')",
    `COPY (SELECT 1) TO '${join(folder, "out.csv")}'`,
    `COPY (SELECT 1) TO '${join(root, "out.csv")}'`,
    `EXPLAIN ANALYZE COPY (SELECT 1) TO '${join(root, "out.csv")}'`,
    "SET enable_external_access = true",
    "SELECT * FROM query('SET enable_external_access = true')",
    `ATTACH '${join(folder, "x.duckdb")}'`,
    "INSTALL httpfs",
    `SELECT * FROM t; SELECT * FROM '${secret}'`,
  ];
  for (const sql of attempts) {
    await expect(lake.sql(sql), sql).rejects.toMatchObject({ name: "QueryError" });
  }
  const { readdir } = await import("node:fs/promises");
  expect((await readdir(folder)).sort()).toEqual(["lake", "lake-of-others", "secret.csv"]);
  expect((await readdir(root)).sort()).toEqual(["_eider", "t"]);
  // Spilling and large sorts still work.
  expect(
    await lake.sql("SELECT max(r) AS m FROM (SELECT range AS r FROM range(1000000) ORDER BY hash(range))"),
  ).toEqual([{ m: 999_999n }]);
  expect(await lake.sql("SELECT a FROM t")).toEqual([{ a: 1n }]);
});
