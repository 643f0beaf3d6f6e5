import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { tableFromIPC } from "apache-arrow";
import { Lake } from "eider";
import { parquetMetadata, parquetReadObjects, parquetSchema } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { beforeAll, describe, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const folder = temporaryFolder();
const lake = join(folder, "lake");

beforeAll(async () => {
  await using made = await Lake.open(lake);
  const schema = {
    "id!": "int64",
    name: "string",
    price: "decimal(10,2)",
    ts: "timestamptz",
    bytes: "binary",
    tags: "list<int64>",
    counts: "map<string,int64>",
    place: 'struct<"a b": string, n: int64>',
  };
  await made.table("t", { schema }).append([
    {
      id: 9007199254740993n,
      name: 'say "hi",\nBob',
      price: "1234.50",
      ts: "2031-02-03T04:05:06.789012Z",
      bytes: Uint8Array.of(0, 255, 16),
      tags: [1n, 9007199254740993n],
      counts: new Map([["x", 2n]]),
      place: { "a b": "Oslo", n: null },
    },
    { id: 2n, name: "" },
    { id: 3n },
  ] as object[]);
  await made.table("t").append([{ id: 4n, name: "later" }]);
});

const sql = async (query: string, ...options: string[]): Promise<string> =>
  (await eiderOk(["sql", lake, query, ...options])).stdout;

/** What hyparquet makes of a Parquet file in memory. */
async function hyparquet(bytes: Buffer): Promise<{ rows: Record<string, unknown>[]; columns: string[] }> {
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length) as ArrayBuffer;
  const columns = parquetSchema(parquetMetadata(file)).children.map(({ element }) => element.name);
  return { rows: await parquetReadObjects({ file, compressors, utf8: false }), columns };
}

describe("--format table", () => {
  it("aligns, keeps numbers exact and to the right, shows null and control characters", async () => {
    expect(await sql("SELECT id, name, price, ts FROM t ORDER BY id")).toBe(
      [
        "              id  name              price  ts",
        "────────────────  ──────────────  ───────  ───────────────────────────",
        "               2                     NULL  NULL",
        "               3  NULL               NULL  NULL",
        "               4  later              NULL  NULL",
        '9007199254740993  say "hi",\\nBob  1234.50  2031-02-03T04:05:06.789012Z',
        "",
      ].join("\n"),
    );
  });

  it("shows bytes as base64 and nested values as JSON", async () => {
    expect(await sql("SELECT bytes, tags, counts, place FROM t WHERE name LIKE 'say%'")).toBe(
      [
        "bytes  tags                    counts   place",
        "─────  ──────────────────────  ───────  ───────────────────────",
        'AP8Q   [1,"9007199254740993"]  {"x":2}  {"a b":"Oslo","n":null}',
        "",
      ].join("\n"),
    );
  });

  it("never lets a value drive the terminal or turn its text around", async () => {
    const text = await sql(
      "SELECT chr(27) || '[31m' || chr(7) || chr(127) || chr(155) || chr(8238) || chr(8232) AS \"h\te\"",
    );
    expect(text).toBe(
      ["h\\te", "─────────────────────────────────────────────", "\\u001b[31m\\u0007\\u007f\\u009b\\u202e\\u2028", ""]
        .join("\n")
        .replace(/─+/, "─".repeat("\\u001b[31m\\u0007\\u007f\\u009b\\u202e\\u2028".length)),
    );
  });

  it("keeps columns straight under wide characters", async () => {
    expect(await sql("SELECT * FROM (VALUES ('東京', 1), ('São Paulo', 22), ('👩‍👩‍👧', 333)) AS v(city, n)")).toBe(
      ["city         n", "─────────  ───", "東京         1", "São Paulo   22", "👩‍👩‍👧         333", ""].join("\n"),
    );
  });

  it("gives columns of one name a name each, and keeps their order whatever they are called", async () => {
    expect(await sql('SELECT 2 AS "2", 1 AS "1", 3 AS a, 4 AS a, 5 AS A')).toBe(
      ["2  1  a  a_1  A_2", "─  ─  ─  ───  ───", "2  1  3    4    5", ""].join("\n"),
    );
  });

  it("has headers where there are no rows", async () => {
    expect(await sql("SELECT id, name FROM t WHERE false")).toBe("id  name\n──  ────\n");
  });

  it("cuts cells to the width of a terminal, and only there", async () => {
    const query = "SELECT 1 AS n, repeat('x', 60) AS long, repeat('é', 50) AS other";
    const narrow = (await eiderOk(["sql", lake, query], { columns: 40 })).stdout;
    expect(narrow).toBe(
      [
        `n  ${"long".padEnd(17)}  other`,
        `─  ${"─".repeat(17)}  ${"─".repeat(17)}`,
        `1  ${"x".repeat(16)}…  ${"é".repeat(16)}…`,
        "",
      ].join("\n"),
    );
    expect(await sql(query)).toContain(`1  ${"x".repeat(60)}  ${"é".repeat(50)}\n`);
  });

  it("shows a row as lines where the terminal is too narrow for its columns", async () => {
    const columns = Array.from({ length: 8 }, (_, i) => `'value ${i}' || repeat('!', 20) AS column_${i}`);
    const text = (await eiderOk(["sql", lake, `SELECT ${columns.join(", ")}`], { columns: 30 })).stdout.split("\n");
    expect(text[0]).toMatch(/^─ row 1 ─+$/);
    expect(text[1]).toBe("column_0  value 0!!!!!!!!!!!!…");
    expect(text).toHaveLength(10);
    for (const line of text) expect([...line].length).toBeLessThanOrEqual(30);
  });

  it("stops at 1,000 rows and says so", async () => {
    const lines = (await sql("FROM range(1001)")).split("\n");
    expect(lines).toHaveLength(2 + 1000 + 2);
    expect(lines.at(-2)).toBe("only the first 1,000 rows: --format csv, json or ndjson prints all");
    expect((await sql("FROM range(1000)")).split("\n")).toHaveLength(2 + 1000 + 1);
  });

  it("prints a plan as DuckDB draws it", async () => {
    expect(await sql("EXPLAIN SELECT 1 AS one")).toMatch(/^┌─+┐\n│.*│\n/);
  });
});

describe("--format json and ndjson", () => {
  const expected = [
    { id: 2, name: "", price: null, ts: null, bytes: null, tags: null, counts: null, place: null },
    {
      id: "9007199254740993",
      name: 'say "hi",\nBob',
      price: "1234.50",
      ts: "2031-02-03T04:05:06.789012Z",
      bytes: "AP8Q",
      tags: [1, "9007199254740993"],
      counts: { x: 2 },
      place: { "a b": "Oslo", n: null },
    },
  ];
  const query = "FROM t WHERE id NOT IN (3, 4) ORDER BY id";

  it("are JSON that any reader takes", async () => {
    expect(JSON.parse(await sql(query, "--format", "json"))).toEqual(expected);
    const lines = (await sql(query, "--format", "ndjson")).split("\n");
    expect(lines.pop()).toBe("");
    expect(lines.map((line) => JSON.parse(line))).toEqual(expected);
  });

  it("have no row too many where there is none", async () => {
    expect(await sql("FROM t WHERE false", "--format", "json")).toBe("[]\n");
    expect(await sql("FROM t WHERE false", "--format", "ndjson")).toBe("");
  });

  it("write NaN and infinities, which JSON does not have, as text", async () => {
    expect(
      await sql(
        "SELECT 'nan'::DOUBLE AS a, '-inf'::DOUBLE AS b, 170141183460469231731687303715884105727 AS c",
        "--format",
        "ndjson",
      ),
    ).toBe('{"a":"NaN","b":"-Infinity","c":"170141183460469231731687303715884105727"}\n');
  });
});

describe("--format csv", () => {
  it("tells null from the empty text, and quotes what needs it", async () => {
    expect(await sql("SELECT id, name, price, tags FROM t ORDER BY id", "--format", "csv")).toBe(
      'id,name,price,tags\n2,"",,\n3,,,\n4,later,,\n9007199254740993,"say ""hi"",\nBob",1234.50,"[1,""9007199254740993""]"\n',
    );
    expect(await sql('SELECT chr(13) AS "a,b", \' x \' AS "c""d"', "--format", "csv")).toBe('"a,b","c""d"\n"\r", x \n');
    expect(await sql("SELECT id, name FROM t WHERE false", "--format", "csv")).toBe("id,name\n");
    expect(await sql('SELECT 2 AS "2", 1 AS "1", 3 AS x, 4 AS x', "--format", "csv")).toBe("2,1,x,x_1\n2,1,3,4\n");
  });

  it("comes back as it went out", async () => {
    const text = await sql("SELECT id, name FROM t", "--format", "csv");
    const copy = join(folder, "copy");
    await eiderOk(["append", copy, "t", "-", "--format", "csv"], { stdin: text });
    const both = [];
    for (const where of [lake, copy]) {
      both.push((await eiderOk(["sql", where, "SELECT id, name FROM t ORDER BY id", "--format", "ndjson"])).stdout);
    }
    expect(both[1]).toBe(both[0]);
  });
});

describe("--format parquet", () => {
  it("is read by hyparquet, with the types of the table", async () => {
    const { bytes } = await eiderOk(["sql", lake, "FROM t WHERE id <> 4 ORDER BY id DESC", "--format", "parquet"]);
    const { rows, columns } = await hyparquet(bytes);
    expect(columns).toEqual(["id", "name", "price", "ts", "bytes", "tags", "counts", "place"]);
    const empty = { price: null, ts: null, bytes: null, tags: null, counts: null, place: null };
    expect(rows.map((row) => ({ ...empty, ...row }))).toEqual([
      {
        id: 9007199254740993n,
        name: 'say "hi",\nBob',
        price: 1234.5,
        ts: new Date("2031-02-03T04:05:06.789Z"),
        bytes: Uint8Array.of(0, 255, 16),
        tags: [1n, 9007199254740993n],
        counts: { x: 2n },
        place: { "a b": "Oslo", n: null },
      },
      { id: 3n, name: null, ...empty },
      { id: 2n, name: "", ...empty },
    ]);
  });

  it("has columns where there are no rows, a name for each column, and many row groups", async () => {
    const none = await eiderOk(["sql", lake, "SELECT id, name FROM t WHERE false", "--format", "parquet"]);
    expect(await hyparquet(none.bytes)).toEqual({ rows: [], columns: ["id", "name"] });
    const twice = await eiderOk(["sql", lake, "SELECT 1 AS a, 2 AS a, NULL AS b", "--format", "parquet"]);
    expect(await hyparquet(twice.bytes)).toEqual({ rows: [{ a: 1, a_1: 2, b: null }], columns: ["a", "a_1", "b"] });
    const many = await eiderOk(["sql", lake, "SELECT range AS n FROM range(150000)", "--format", "parquet"]);
    const { rows } = await hyparquet(many.bytes);
    expect(rows).toHaveLength(150_000);
    expect(rows.reduce((sum, row) => sum + (row.n as bigint), 0n)).toBe(11_249_925_000n);
  });
});

describe("--format arrow", () => {
  it("is an IPC stream that apache-arrow reads", async () => {
    const { bytes } = await eiderOk(["sql", lake, "SELECT id, name FROM t ORDER BY id", "--format", "arrow"]);
    const table = tableFromIPC(bytes);
    expect(table.schema.fields.map(({ name, type }) => [name, String(type)])).toEqual([
      ["id", "Int64"],
      ["name", "Utf8"],
    ]);
    expect(table.toArray().map((row) => (row as { toJSON(): object }).toJSON())).toEqual([
      { id: 2n, name: "" },
      { id: 3n, name: null },
      { id: 4n, name: "later" },
      { id: 9007199254740993n, name: 'say "hi",\nBob' },
    ]);
  });

  it("has columns where there are no rows, and a name for each column", async () => {
    const none = tableFromIPC((await eiderOk(["sql", lake, "FROM t WHERE false", "--format", "arrow"])).bytes);
    expect(none.numRows).toBe(0);
    expect(none.schema.fields.map(({ name }) => name).slice(0, 2)).toEqual(["id", "name"]);
    const twice = tableFromIPC((await eiderOk(["sql", lake, "SELECT 1 AS a, 2 AS a", "--format", "arrow"])).bytes);
    expect(twice.schema.fields.map(({ name }) => name)).toEqual(["a", "a_1"]);
  });
});

it.each(["parquet", "arrow"])("--format %s is not poured over a terminal", async (format) => {
  const outcome = await eider(["sql", lake, "FROM t", "--format", format], { columns: 80 });
  expect(outcome).toMatchObject({ code: 2, stdout: "" });
  expect(outcome.stderr).toMatch(/^error: (parquet|arrow) is binary: send it to a file with > name\n/);
});

describe("--at", () => {
  const count = "SELECT count(*) AS n FROM t";

  it("reads a snapshot, by its number or by a time", async () => {
    const [first, second] = JSON.parse((await eiderOk(["snapshots", lake, "--json"])).stdout) as {
      committedAt: string;
    }[];
    expect(await sql(count, "--at", "1", "--format", "ndjson")).toBe('{"n":3}\n');
    expect(await sql(count, "--at", "2", "--format", "ndjson")).toBe('{"n":4}\n');
    expect(await sql(count, "--at", first!.committedAt, "--format", "ndjson")).toBe('{"n":3}\n');
    expect(await sql(count, "--at", second!.committedAt.replace("T", " "), "--format", "ndjson")).toBe('{"n":4}\n');
    expect(await sql(count, "--at", "2999-01-01", "--format", "ndjson")).toBe('{"n":4}\n');
    expect(await sql("SELECT count(*) AS n FROM t AT (VERSION => 1)", "--format", "ndjson")).toBe('{"n":3}\n');
  });

  it("of another kind is refused", async () => {
    for (const at of ["-1", "1.5", "2031-13-01", "2031-02-03T25:00", ""]) {
      const outcome = await eider(["sql", lake, count, `--at=${at}`]);
      expect(outcome).toMatchObject({ code: 2, stdout: "" });
    }
    const missing = await eider(["sql", lake, count, "--at", "9"]);
    expect(missing).toMatchObject({ code: 1, stdout: "" });
    expect(missing.stderr).toBe(
      `snapshot_not_found: there is no snapshot 9: the lake has snapshots 1 to 2\nhint: eider snapshots ${lake} lists the snapshots\n`,
    );
  });
});

describe("the query", () => {
  it("comes from standard input as -", async () => {
    const stdin = "-- how many\nSELECT count(*) AS n FROM t;\n";
    expect((await eiderOk(["sql", lake, "-", "--format", "ndjson"], { stdin })).stdout).toBe('{"n":4}\n');
  });

  it("that is wrong is shown with its place", async () => {
    const outcome = await eider(["sql", lake, "SELECT id,\n\t東 + nme\nFROM t"]);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    const lines = outcome.stderr.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^unknown_column: Referenced column "東" not found/);
    expect(lines.slice(-2)).toEqual(["2 |  東 + nme", "     ^"]);

    const syntax = await eider(["sql", lake, "SELECT * FORM t"]);
    expect(syntax.stderr).toMatch(/^syntax_error: .*\n1 \| SELECT \* FORM t\n {18}\^\n$/s);
    const table = await eider(["sql", lake, "SELECT * FROM tt"]);
    expect(table.stderr).toMatch(/^unknown_table: there is no table "tt": did you mean "t"\?\n/);
    expect(table.stderr).toContain("\n1 | SELECT * FROM tt\n                  ^\n");
  });

  it("that would change something is refused", async () => {
    for (const query of ["DROP TABLE t", "INSERT INTO t VALUES (1)", "SELECT 1; SELECT 2"]) {
      expect((await eider(["sql", lake, query])).code).toBe(1);
    }
    expect(await sql("SELECT count(*) AS n FROM t", "--format", "ndjson")).toBe('{"n":4}\n');
  });

  it("that computes for hours stops at Ctrl-C", async () => {
    const query = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range % 7 = b.range % 11";
    const outcome = await eider(["sql", lake, query], { interruptAfterMs: 300 });
    expect(outcome).toMatchObject({ code: 130, stdout: "", stderr: "interrupted\n" });
  });

  it("that fails midway has printed no end", async () => {
    const outcome = await eider(["sql", lake, "SELECT error('no') FROM t", "--format", "json"]);
    expect(outcome.code).toBe(1);
    expect(outcome.stdout).not.toContain("]");
    expect(outcome.stderr).toMatch(/^\w+: .*no/);
  });
});

it("a lake that is not there is not made", async () => {
  const nowhere = join(folder, "nowhere");
  const outcome = await eider(["sql", nowhere, "SELECT 1"]);
  expect(outcome.code).toBe(1);
  expect(outcome.stderr).toMatch(/^lake_not_found: there is no lake at .*nowhere: the first append makes one\n$/);
  expect(existsSync(nowhere)).toBe(false);
});

it("in a shell, --format csv goes through the tools of one", async () => {
  const text = await sql("SELECT id, name FROM t WHERE id < 5 ORDER BY id", "--format", "csv");
  const cut = spawnSync("cut", ["-d,", "-f2"], { input: text, encoding: "utf8" });
  expect(cut.stdout).toBe('name\n""\n\nlater\n');
});
