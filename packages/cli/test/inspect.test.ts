import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Lake } from "eider";
import { beforeAll, describe, expect, it } from "vitest";
import { eider, eiderOk, temporaryFolder } from "./harness.js";

const folder = temporaryFolder();
const lake = join(folder, "o'neil [lake]");
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Snapshots: 1 and 2 append to `events`, 3 to `sales.eu`, 4 makes `empty`, 5 drops it. */
beforeAll(async () => {
  await using made = await Lake.open(lake, { inlineBytes: 0 });
  const events = made.table("events", { partitionBy: ["day(ts)", "type"], orderBy: ["id desc"] });
  await events.append(
    [
      { id: 1, type: "view", ts: new Date("2031-02-03T04:05:06Z") },
      { id: 2, type: "buy", ts: new Date("2031-02-03T04:05:07Z") },
    ],
    { batchId: "first" },
  );
  await events.append([{ id: 3, type: "view", ts: new Date("2031-02-04T00:00:00Z"), note: "it's\nnew" }], {
    batchId: "second",
  });
  await made
    .table("sales.eu", { schema: { "id!": "int64", price: "decimal(10,2)" } })
    .append([{ id: 1, price: "2.50" }]);
  await made.table("empty").create();
  await made.table("empty").drop();
});

/** A lake of one row, in a file. */
async function makeFile(where: string, batchId: string): Promise<void> {
  await using made = await Lake.open(where, { inlineBytes: 0 });
  await made.table("t").append([{ a: 1 }], { batchId });
}

const text = async (...args: string[]): Promise<string> => (await eiderOk(args)).stdout;
const json = async (...args: string[]): Promise<unknown> => JSON.parse(await text(...args, "--json"));

describe("tables", () => {
  it("lists them", async () => {
    const lines = (await text("tables", lake)).split("\n");
    expect(lines[0]).toMatch(/^table +rows +files +size +hot batches +partitioned by$/);
    expect(lines[2]).toMatch(/^events +3 +3 +[\d.]+ (B|KiB) +0 +day\(ts\), type$/);
    expect(lines[3]).toMatch(/^sales\.eu +1 +1 +[\d.]+ (B|KiB) +0$/);
    expect(lines.slice(4)).toEqual([""]);
  });

  it("--json has each with its schema", async () => {
    expect(await json("tables", lake)).toEqual([
      {
        name: "events",
        schema: {
          fields: [
            { id: 1, name: "id", type: { kind: "int64" }, nullable: true },
            { id: 2, name: "type", type: { kind: "string" }, nullable: true },
            { id: 3, name: "ts", type: { kind: "timestamptz" }, nullable: true },
            { id: 4, name: "note", type: { kind: "string" }, nullable: true },
          ],
        },
        schemaVersion: 2,
        partitionBy: ["day(ts)", "type"],
        orderBy: ["id desc"],
        rows: 3,
        files: 3,
        bytes: expect.any(Number),
        hotBatches: 0,
        hotBytes: 0,
      },
      expect.objectContaining({ name: "sales.eu", rows: 1 }),
    ]);
  });

  it("--at shows an earlier state", async () => {
    expect(await json("tables", lake, "--at", "1")).toMatchObject([{ name: "events", rows: 2, schemaVersion: 1 }]);
    expect(await json("tables", lake, "--at", "4")).toMatchObject([
      { name: "empty" },
      { name: "events" },
      { name: "sales.eu" },
    ]);
    expect(await json("tables", lake, "--at", "0")).toEqual([]);
  });
});

describe("schema", () => {
  it("shows columns, types and layout", async () => {
    expect(await text("schema", lake, "events")).toBe(
      [
        "id  column  type",
        "──  ──────  ───────────",
        " 1  id      int64",
        " 2  type    string",
        " 3  ts      timestamptz",
        " 4  note    string",
        "partitioned by day(ts), type",
        "sorted by id desc",
        "",
      ].join("\n"),
    );
    expect(await text("schema", lake, "sales.eu")).toBe(
      [
        "id  column  type",
        "──  ──────  ─────────────  ────────",
        " 1  id      int64          not null",
        " 2  price   decimal(10,2)",
        "",
      ].join("\n"),
    );
    expect(await json("schema", lake, "events", "--at", "1")).toMatchObject({
      name: "events",
      schemaVersion: 1,
      rows: 2,
    });
  });
});

describe("batches and receipt", () => {
  it("list what was committed, newest first, by pages", async () => {
    const second = {
      table: "events",
      batchId: "second",
      snapshot: 2,
      rows: 1,
      rejected: 0,
      contentHash: expect.stringMatching(/^rows:[0-9a-f]{64}$/),
      committedAt: expect.stringMatching(TIME),
    };
    expect(await json("batches", lake, "events")).toEqual([
      second,
      expect.objectContaining({ batchId: "first", rows: 2 }),
    ]);
    expect(await json("batches", lake, "events", "--limit", "1")).toEqual([second]);
    expect(await json("batches", lake, "events", "--before", "2")).toMatchObject([{ batchId: "first" }]);
    expect((await text("batches", lake, "events")).split("\n")[2]).toMatch(/^ +2 {2}\S+Z +1 {2}second$/);
    expect(await json("receipt", lake, "events", "second")).toEqual(second);
    expect(await text("receipt", lake, "events", "second")).toMatch(
      /^table +events\nbatchId +second\nsnapshot +2\nrows +1\nrejected +0\ncontentHash +rows:\S+\ncommittedAt +\S+Z\n$/,
    );
  });

  it("a batch that was not committed is a failure, as is a table that is not there", async () => {
    const quoted = `'${lake.replaceAll("'", "'\\''")}'`;
    const batch = await eider(["receipt", lake, "events", "third"]);
    expect(batch).toMatchObject({ code: 1, stdout: "" });
    expect(batch.stderr).toBe(
      `batch_not_found: table events has no batch "third"\nhint: eider batches ${quoted} events lists the batches\n`,
    );
    for (const args of [
      ["receipt", lake, "event", "first"],
      ["batches", lake, "event"],
      ["schema", lake, "event"],
      ["files", lake, "event"],
      ["rejects", lake, "event"],
    ]) {
      const table = await eider(args);
      expect(table).toMatchObject({ code: 1, stdout: "" });
      expect(table.stderr).toBe(
        `table_not_found: there is no table event\nhint: eider tables ${quoted} lists the tables\n`,
      );
    }
  });
});

describe("files", () => {
  it("are listed by key, also as of a snapshot", async () => {
    const files = (await json("files", lake, "events")) as {
      key: string;
      rows: number;
      sha256: string;
      addedIn: number;
    }[];
    expect(files.map(({ rows, addedIn }) => [rows, addedIn])).toEqual([
      [1, 1],
      [1, 1],
      [1, 2],
    ]);
    for (const { key } of files) expect(existsSync(join(lake, key))).toBe(true);
    const lines = (await text("files", lake, "events")).trimEnd().split("\n");
    expect(lines.slice(2).map((line) => line.split(/ +/).at(-1))).toEqual(files.map(({ key }) => key));
    expect(await json("files", lake, "events", "--at", "1")).toHaveLength(2);
  });

  it("--sql gives plain DuckDB the rows of lake.sql", async () => {
    const instance = await DuckDBInstance.create(":memory:");
    const connection = await instance.connect();
    try {
      for (const at of [[], ["--at", "1"]]) {
        const printed = await text("files", lake, "events", "--sql", ...at);
        const reader = await connection.runAndReadAll(
          `SELECT id, type, epoch_us(ts) AS us, to_json(t) AS all FROM (${printed}) t ORDER BY id`,
        );
        const query = "SELECT id, type, epoch_us(ts) AS us, to_json(t) AS all FROM events t ORDER BY id";
        const expected = (await eiderOk(["sql", lake, query, "--format", "ndjson", ...at])).stdout
          .trimEnd()
          .split("\n");
        expect(expected).toHaveLength(at.length === 0 ? 3 : 2);
        expect(
          reader
            .getRowObjects()
            .map(
              (row) =>
                JSON.parse(JSON.stringify(row, (_, v: unknown) => (typeof v === "bigint" ? Number(v) : v))) as unknown,
            ),
        ).toEqual(expected.map((line) => JSON.parse(line) as unknown));
      }
      expect(await json("files", lake, "sales.eu", "--sql")).toEqual({
        sql: (await text("files", lake, "sales.eu", "--sql")).trimEnd(),
      });
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
  });
});

describe("snapshots", () => {
  it("tell what was committed when, by pages", async () => {
    expect(await json("snapshots", lake)).toEqual([
      {
        snapshot: 1,
        committedAt: expect.stringMatching(TIME),
        operations: [
          { op: "schema", table: "events" },
          { op: "append", table: "events", batchId: "first", rows: 2 },
        ],
        meta: {},
      },
      expect.objectContaining({ snapshot: 2 }),
      expect.objectContaining({ snapshot: 3 }),
      expect.objectContaining({ snapshot: 4, operations: [{ op: "schema", table: "empty" }] }),
      expect.objectContaining({ snapshot: 5, operations: [{ op: "drop", table: "empty" }] }),
    ]);
    const lines = (await text("snapshots", lake)).split("\n");
    expect(lines[2]).toMatch(/^ +1 {2}\S+Z {2}schema events; append events: 2 rows \(first\)$/);
    expect(lines[3]).toMatch(/append events: 1 row \(second\)$/);
    expect(await json("snapshots", lake, "--after", "1", "--limit", "2")).toMatchObject([
      { snapshot: 2 },
      { snapshot: 3 },
    ]);
  });
});

describe("verify and maintain", () => {
  it("name what is lost, and what nobody names", async () => {
    const where = join(folder, "broken");
    await makeFile(where, "first");
    expect(await json("verify", where)).toEqual({
      ok: true,
      files: 1,
      bytes: expect.any(Number),
      hotBatches: 0,
      findings: [],
    });
    expect(await text("verify", where)).toMatch(/^1 file, [\d.]+ B checked\n$/);

    const [{ key }] = (await json("files", where, "t")) as [{ key: string }];
    const stray = key.replace(/[^/]+$/, "stray.parquet");
    writeFileSync(join(where, stray), "x");
    expect(await text("verify", where)).toMatch(new RegExp(`^stray  ${stray}: .*\n1 file, `));
    const nothing = { batches: 0, rows: 0, files: 0, bytes: 0 };
    const result = { folded: nothing, finished: true, oldestSnapshot: 1, deleted: [], bytes: 0 };
    expect(await json("maintain", where, "--grace-hours", "0", "--fold", "all")).toEqual(result);
    expect(await text("maintain", where)).toBe("0 hot batches folded, 0 files removed, 0 B\n");
    expect(await json("maintain", where, "--retain-snapshots", "1")).toMatchObject({ oldestSnapshot: 1 });

    rmSync(join(where, key));
    const outcome = await eider(["verify", where, "--no-hashes"]);
    expect(outcome.code).toBe(1);
    expect(outcome.stdout).toContain(`missing  ${key}: `);
    expect(outcome.stderr).toBe(
      "verify_failed: 1 data file or batch lost or changed: restore from a backup what is listed\n",
    );
  });
});

describe("hot batches", () => {
  const where = join(folder, "hot");
  beforeAll(async () => {
    await using made = await Lake.open(where);
    await made.table("t").append([{ a: 1 }]);
    await made.table("t").append([{ a: 2 }]);
  });

  it("are told of where files are listed, until they are folded", async () => {
    expect((await text("tables", where)).split("\n")[2]).toMatch(/^t +2 +0 +0 B +2$/);
    expect(await json("tables", where)).toMatchObject([{ rows: 2, files: 0, bytes: 0, hotBatches: 2 }]);
    const hint = `2 hot batches are in no file yet: eider maintain ${where} --fold all makes files\n`;
    expect(await eider(["files", where, "t"])).toMatchObject({ code: 0, stderr: hint });
    expect(await eider(["files", where, "t", "--json"])).toMatchObject({ code: 0, stdout: "[]\n", stderr: "" });
    expect(await eider(["files", where, "t", "--at", "1"])).toMatchObject({
      stderr: "1 hot batch is in no file there\n",
    });
    const refused = await eider(["files", where, "t", "--at", "1", "--sql"]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/^hot_rows: 1 hot batch .*\nhint: eider maintain \S+ --fold all /);

    expect(await text("maintain", where, "--fold", "all")).toMatch(/^2 hot batches folded into 1 file, /);
    expect((await text("tables", where)).split("\n")[2]).toMatch(/^t +2 +1 +\d+ B +0$/);
    expect(await eider(["files", where, "t"])).toMatchObject({ code: 0, stderr: "" });
    expect((await text("snapshots", where)).split("\n")[4]).toMatch(/ fold t$/);
    expect(await text("maintain", where, "--retain-snapshots", "1")).toBe(
      "0 hot batches folded, 0 files removed, 0 B, snapshots from 3 on kept\n",
    );
  });
});

describe("copy and share", () => {
  it("make the lake another one at a new place, and move it there", async () => {
    const where = join(folder, "to-move");
    const [copy, moved] = [join(folder, "copy"), join(folder, "moved")];
    await makeFile(where, "first");
    expect(await text("copy", where, copy)).toMatch(/^copied to .*copy at snapshot 1: 1 file, [\d.]+ B\n$/);
    expect(await json("share", where, moved)).toMatchObject({ snapshot: 1, files: 1 });
    const receipt = await json("receipt", where, "t", "first");
    for (const place of [copy, moved]) {
      expect(await json("receipt", place, "t", "first")).toEqual(receipt);
      await eiderOk(["append", place, "t", "-"], { stdin: '{"a":2}\n' });
      expect(await text("sql", place, "SELECT sum(a) AS s FROM t", "--format", "csv")).toBe("s\n3\n");
    }
    const refused = await eider(["append", where, "t", "-"], { stdin: '{"a":2}\n' });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^lake_moved: /) });
    const taken = await eider(["copy", where, copy]);
    expect(taken).toMatchObject({ code: 1, stderr: expect.stringMatching(/^place_taken: /) });
  });
});

describe("rebuild", () => {
  it("makes a lost catalog again, and leaves one alone that is there", async () => {
    const where = join(folder, "lost");
    await eiderOk(["append", where, "t", "-", "--batch-id", "first"], { stdin: '{"a":1}\n' });
    const receipt = await json("receipt", where, "t", "first");
    const there = await eider(["rebuild", where]);
    expect(there).toMatchObject({ code: 1, stderr: expect.stringMatching(/^catalog_exists: /) });
    rmSync(join(where, "_eider", "catalog.sqlite"));
    const lost = await eider(["tables", where]);
    expect(lost).toMatchObject({ code: 1, stderr: expect.stringMatching(/^catalog_missing: .*eider rebuild/) });
    expect(await text("rebuild", where)).toBe("rebuilt at snapshot 1 from 1 commit\n");
    expect(await json("receipt", where, "t", "first")).toEqual(receipt);
    rmSync(join(where, "_eider", "catalog.sqlite"));
    expect(await json("rebuild", where)).toEqual({ snapshot: 1, checkpoint: 0, entries: 1, unnamed: 0 });
  });
});

describe("commands that look", () => {
  const nowhere = join(folder, "nowhere");
  it.each([
    ["tables", nowhere],
    ["schema", nowhere, "t"],
    ["batches", nowhere, "t"],
    ["receipt", nowhere, "t", "b"],
    ["rejects", nowhere, "t"],
    ["replay", nowhere, "t", "--all"],
    ["purge-rejects", nowhere, "t", "1-0"],
    ["files", nowhere, "t"],
    ["files", nowhere, "t", "--sql"],
    ["snapshots", nowhere],
    ["types", nowhere],
    ["sql", nowhere, "SELECT 1"],
    ["verify", nowhere],
    ["maintain", nowhere],
    ["copy", nowhere, join(folder, "copy-of-nothing")],
    ["share", nowhere, join(folder, "copy-of-nothing")],
    ["rebuild", nowhere],
  ])("%s never makes a lake", async (...args) => {
    const outcome = await eider(args);
    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toMatch(/^lake_not_found: /);
    expect(existsSync(nowhere)).toBe(false);
  });

  it("leave an empty folder empty", async () => {
    const before = readdirSync(folder);
    const outcome = await eider(["tables", folder]);
    expect(outcome.stderr).toMatch(/^not_a_lake: /);
    expect(readdirSync(folder)).toEqual(before);
  });
});
