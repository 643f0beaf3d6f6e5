import { stat } from "node:fs/promises";
import { join } from "node:path";
import { FileStore } from "@eider/storage";
import { Lake } from "eider";
import { beforeAll, describe, expect, it } from "vitest";
import { runChild } from "./support/child.js";
import { type Written, writeEvents } from "./support/events.js";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

/** What a second process sees of the lake. */
async function seen(
  lake: string,
  sql: string,
): Promise<{ tables: string[]; rows?: unknown; error?: string; findings: string[] }> {
  const child = await runChild("query", { lake, sql });
  expect(child).toMatchObject({ code: 0, stderr: "" });
  return child.lines[0] as never;
}

describe("killed (SIGKILL) between put and commit (D38)", () => {
  it.each([
    ["after the only data file", 1, undefined],
    ["halfway through a batch of two partitions", 1, ["type"]],
  ])("%s: nothing visible, a retry commits once, maintain removes the rest", async (_, killAfterPut, partitionBy) => {
    const folder = temporaryFolder();
    const where = join(folder, "lake");
    const file = join(folder, "in.ndjson");
    const written = await writeEvents(file, "ndjson", 100_000);
    await (await Lake.open(where)).close();

    const argument = { lake: where, table: "t", file, batchId: "b", killAfterPut, partitionBy };
    expect(await runChild("killed-append", argument)).toMatchObject({ code: null, signal: "SIGKILL", lines: [] });
    const before = await seen(where, "SELECT count(*) AS n FROM t");
    expect(before.tables).toEqual([]);
    // Partitions are put side by side: one at least is there, and one at least is not.
    const strays = before.findings.length;
    expect(new Set(before.findings)).toEqual(new Set(["stray"]));

    await using lake = await Lake.open(where);
    const table = lake.table("t", partitionBy ? { partitionBy } : {});
    expect(await table.append({ file }, { batchId: "b" })).toMatchObject({
      status: "committed",
      rowsAdded: written.rows,
      receipt: { snapshot: 1 },
    });
    expect(await table.append({ file }, { batchId: "b" })).toMatchObject({ status: "duplicate" });
    expect(await lake.sql("SELECT count(*) AS n, sum(amount) AS s FROM t")).toEqual([
      { n: BigInt(written.rows), s: written.amount },
    ]);
    // Young orphans stay: their writer may be at work. Old ones go, and only they.
    expect(await lake.maintain()).toMatchObject({ deleted: [], bytes: 0 });
    expect((await lake.verify()).findings).toHaveLength(strays);
    expect((await lake.maintain({ graceMs: 0 })).deleted).toHaveLength(strays);
    if (partitionBy) expect(strays).toBeLessThan((await table.files()).length);
    else expect(strays).toBe(1);
    expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: BigInt(written.rows) }]);
  });
});

/** Where a batch of two partitions goes: into its entry, or into two files. */
const PLACES = [
  ["in the entry", {}, 0],
  ["in files", FILES, 2],
] as const;

describe.each(PLACES)("killed (SIGKILL) around the commit of rows %s (D38)", (_, options, files) => {
  const rows = [
    { id: 1, part: "a" },
    { id: 2, part: "b" },
    { id: 3, part: "a" },
  ];

  it.each([
    ["on a local lake", false],
    ["on a shared lake", true],
  ])("%s: before it nothing is there, after it everything is, and a retry makes it once", async (_, shared) => {
    for (const moment of ["before", "after"]) {
      const where = temporaryFolder();
      const argument = { lake: where, shared, options, partitionBy: ["part"], rows, batchId: "b" };
      const child = await runChild("killed-commit", { ...argument, cacheDir: temporaryFolder(), moment });
      expect(child).toMatchObject({ code: null, signal: "SIGKILL", lines: [], stderr: "" });

      const place = shared ? { store: new FileStore(where) } : where;
      await using lake = await Lake.open(place, { ...options, cacheDir: temporaryFolder() });
      const table = lake.table("t", { partitionBy: ["part"] });
      const count = () => lake.sql("SELECT count(*) AS n, count(DISTINCT id) AS d, sum(id) AS s FROM t");
      const strays = async () => (await lake.verify()).findings.map(({ kind }) => kind);
      if (moment === "before") {
        expect(await lake.tables()).toEqual([]);
        // Of rows in the entry nothing at all is left.
        expect(await strays()).toEqual(Array(files).fill("stray"));
      } else {
        expect(await count()).toEqual([{ n: 3n, d: 3n, s: 6n }]);
        expect(await strays()).toEqual([]);
      }
      const retry = await table.append(rows, { batchId: "b" });
      expect(retry).toMatchObject({
        status: moment === "before" ? "committed" : "duplicate",
        receipt: { batchId: "b", snapshot: 1, rows: 3 },
      });
      expect(await table.receipt("b")).toEqual(retry.receipt);
      expect(await count()).toEqual([{ n: 3n, d: 3n, s: 6n }]);
      expect(await table.files()).toHaveLength(files);
      // Partitions of one batch are there together, folded or not.
      await lake.maintain({ fold: "all" });
      expect(await lake.sql("SELECT part, count(*) AS n FROM t GROUP BY ALL ORDER BY ALL")).toEqual([
        { part: "a", n: 2n },
        { part: "b", n: 1n },
      ]);
      expect(await table.append(rows, { batchId: "b" })).toEqual({ ...retry, status: "duplicate", rowsAdded: 0 });
    }
  });
});

describe("killed at 80% of a 1 GB append", () => {
  const folder = temporaryFolder();
  const file = join(folder, "big.ndjson");
  let written: Written;

  beforeAll(async () => {
    written = await writeEvents(file, "ndjson", 1_000_000_000);
  }, 300_000);

  it("nothing visible from a second process, a retry commits once", { timeout: 600_000 }, async () => {
    const where = join(folder, "lake");
    await (await Lake.open(where)).close();
    const { size } = await stat(file);
    expect(size).toBe(written.bytes);
    const argument = { lake: where, table: "t", file, batchId: "big", killAtBytes: size * 0.8 };
    expect(await runChild("killed-append", argument)).toMatchObject({ code: null, signal: "SIGKILL", lines: [] });
    expect(await seen(where, "SELECT 1 AS one")).toMatchObject({ tables: [], rows: [{ one: 1 }] });

    const retry = await runChild("append-memory", { lake: where, table: "t", file, batchId: "big" });
    expect(retry).toMatchObject({ code: 0, stderr: "" });
    const [result] = retry.lines as { status: string; rowsAdded: number; peak: number; native: string[] }[];
    expect(result).toMatchObject({ status: "committed", rowsAdded: written.rows });
    // The budget of the whole process, with SQLite and the WebAssembly modules in it.
    expect(result!.peak).toBeLessThan(250 * 1024 * 1024);
    // A process that only appends never loads DuckDB.
    expect(result!.native).toEqual([]);
    const after = await seen(where, "SELECT count(*) AS n, sum(amount) AS s FROM t");
    expect(after.rows).toEqual([{ n: written.rows, s: Number(written.amount) }]);
  });
});
