import { BatchConflictError, Lake } from "eider";
import { describe, expect, it } from "vitest";
import { runChild } from "./support/child.js";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

const ROWS = [
  { id: 1, v: "a" },
  { id: 2, v: "b" },
  { id: 3, v: "c" },
];

/** Where the rows of a small append go: into its entry, or into a file. */
const PLACES = [
  ["in the entry", {}, 0],
  ["in files", FILES, 1],
] as const;

describe.each(PLACES)("a batch id commits once, rows %s (D36)", (_, options, files) => {
  it.each(["memory", "folder"])("repeated in one process (%s)", async (kind) => {
    await using lake = await Lake.open(kind === "memory" ? "memory:" : temporaryFolder(), options);
    const table = lake.table("t");
    const first = await table.append(ROWS, { batchId: "b-1" });
    expect(first).toMatchObject({ status: "committed", rowsAdded: 3, rowsRejected: 0 });
    expect(first.receipt).toMatchObject({ table: "t", batchId: "b-1", snapshot: 1, rows: 3 });
    expect(first.receipt.contentHash).toMatch(/^rows:[0-9a-f]{64}$/);
    for (let i = 0; i < 2; i++) {
      const again = await table.append(ROWS, { batchId: "b-1" });
      expect(again).toEqual({ status: "duplicate", rowsAdded: 0, rowsRejected: 0, receipt: first.receipt });
    }
    expect(await lake.sql("SELECT count(*) AS n, sum(id) AS s FROM t")).toEqual([{ n: 3n, s: 6n }]);
    expect(await table.files()).toHaveLength(files);
    expect(await lake.snapshots()).toHaveLength(1);
  });

  it("50 appends racing in one process", async () => {
    await using lake = await Lake.open(temporaryFolder(), options);
    const results = await Promise.all(
      Array.from({ length: 50 }, () => lake.table("t").append(ROWS, { batchId: "race" })),
    );
    const committed = results.filter((result) => result.status === "committed");
    expect(committed).toHaveLength(1);
    for (const result of results) expect(result.receipt).toEqual(committed[0]!.receipt);
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 3n }]);
    expect(await lake.table("t").files()).toHaveLength(files);
    expect(await lake.snapshots()).toHaveLength(1);
    // The losers' files are gone too, not only unnamed.
    expect(await lake.verify()).toMatchObject({ ok: true, files, findings: [] });
  });

  it("six processes at once, a fresh lake", async () => {
    const where = temporaryFolder();
    const at = Date.now() + 1500;
    const children = await Promise.all(
      Array.from({ length: 6 }, () =>
        runChild("append-batch", { lake: where, table: "t", rows: ROWS, batchId: "b", at, repeat: 3, options }),
      ),
    );
    for (const child of children) expect(child).toMatchObject({ code: 0, stderr: "" });
    const results = children.flatMap((child) => child.lines as { status: string; receipt: unknown }[]);
    expect(results).toHaveLength(18);
    expect(results.filter((result) => result.status === "committed")).toHaveLength(1);
    expect(new Set(results.map((result) => JSON.stringify(result.receipt))).size).toBe(1);
    await using lake = await Lake.open(where, { mode: "open" });
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 3n }]);
    expect(await lake.snapshots()).toHaveLength(1);
    expect(await lake.verify()).toMatchObject({ ok: true, files, findings: [] });
  });

  it("two processes, five rounds of different batches into one partition (D41)", async () => {
    const where = temporaryFolder();
    await (await Lake.open(where, options)).close();
    const at = Date.now() + 1000;
    const children = await Promise.all(
      [0, 1].flatMap((process) =>
        Array.from({ length: 5 }, (_, round) =>
          runChild("append-batch", {
            lake: where,
            table: "t",
            rows: [{ process, round }],
            batchId: `p${process}-r${round}`,
            at: at + round * 200,
            options,
          }),
        ),
      ),
    );
    for (const child of children) expect(child).toMatchObject({ code: 0, stderr: "" });
    await using lake = await Lake.open(where, { mode: "open" });
    expect(await lake.sql("SELECT count(*) AS n, count(DISTINCT (process, round)) AS d FROM t")).toEqual([
      { n: 10n, d: 10n },
    ]);
    const snapshots = (await lake.snapshots()).map(({ snapshot }) => snapshot);
    expect(snapshots).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
    expect(new Set((await lake.table("t").files()).map(({ key }) => key)).size).toBe(10 * files);
  });

  it("after a restart", async () => {
    const where = temporaryFolder();
    const before = await Lake.open(where, options);
    const first = await before.table("t").append(ROWS, { batchId: "b" });
    await before.close();
    await using after = await Lake.open(where, options);
    expect(await after.table("t").append(ROWS, { batchId: "b" })).toMatchObject({
      status: "duplicate",
      receipt: first.receipt,
    });
    expect(await after.table("t").receipt("b")).toEqual(first.receipt);
    expect(await after.table("t").receipt("other")).toBeUndefined();
  });

  it("rows in another shape but of the same content are the same batch", async () => {
    await using lake = await Lake.open("memory:", options);
    const first = await lake.table("t").append([{ a: 1, b: { x: 1, y: 2 } }], { batchId: "b" });
    const again = await lake.table("t").append(new Set([{ b: { y: 2, x: 1 }, a: 1n, c: undefined }]), { batchId: "b" });
    expect(again).toMatchObject({ status: "duplicate", receipt: first.receipt });
  });
});

describe.each(PLACES)("the same id with other content, rows %s", (_, options, files) => {
  it("is a conflict, and the first batch stays", async () => {
    await using lake = await Lake.open(temporaryFolder(), options);
    const table = lake.table("t");
    const first = await table.append(ROWS, { batchId: "b" });
    const error = await table.append([{ id: 9, v: "z" }], { batchId: "b" }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(BatchConflictError);
    expect(error).toMatchObject({ code: "batch_conflict", subject: "b" });
    expect((error as Error).message).not.toContain("z");
    expect(await lake.sql("SELECT sum(id) AS s FROM t")).toEqual([{ s: 6n }]);
    expect(await table.receipt("b")).toEqual(first.receipt);
    expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
  });

  it("also after the schema evolved between the tries; equal content stays a duplicate", async () => {
    await using lake = await Lake.open(temporaryFolder(), options);
    const table = lake.table("t");
    const first = await table.append([{ a: 1 }], { batchId: "b" });
    await table.append([{ a: 2.5, extra: "new" }], { batchId: "c" });
    expect(await table.append([{ a: 1 }], { batchId: "b" })).toMatchObject({
      status: "duplicate",
      receipt: first.receipt,
    });
    await expect(table.append([{ a: 1, extra: "x" }], { batchId: "b" })).rejects.toBeInstanceOf(BatchConflictError);
    expect(await lake.sql("SELECT sum(a) AS s, count(extra) AS e FROM t")).toEqual([{ s: 3.5, e: 1n }]);
  });

  it("racing with different contents: one commits, the others conflict", async () => {
    await using lake = await Lake.open(temporaryFolder(), options);
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => lake.table("t").append([{ i }], { batchId: "b" })),
    );
    const won = results.filter((result) => result.status === "fulfilled");
    expect(won).toHaveLength(1);
    for (const result of results) {
      if (result.status === "rejected") expect(result.reason).toBeInstanceOf(BatchConflictError);
    }
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 1n }]);
    expect(await lake.verify()).toMatchObject({ ok: true, files, findings: [] });
  });

  it("`onSeen: trust` answers without reading", async () => {
    await using lake = await Lake.open("memory:", options);
    const first = await lake.table("t").append(ROWS, { batchId: "b" });
    const unread = (async function* () {
      yield* [];
      throw new Error("was read");
    })();
    expect(await lake.table("t").append(unread, { batchId: "b", onSeen: "trust" })).toMatchObject({
      status: "duplicate",
      receipt: first.receipt,
    });
  });
});

it("an append without a batch id gets one, and is not idempotent", async () => {
  await using lake = await Lake.open("memory:");
  const one = await lake.table("t").append(ROWS);
  const two = await lake.table("t").append(ROWS);
  expect(one.receipt.batchId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(two.receipt.batchId > one.receipt.batchId || two.receipt.batchId !== one.receipt.batchId).toBe(true);
  expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 6n }]);
});

it("racing first appends with different schemas all land in one table", async () => {
  await using lake = await Lake.open(temporaryFolder());
  await Promise.all(Array.from({ length: 8 }, (_, i) => lake.table("t").append([{ id: i, [`f${i}`]: i }])));
  const [row] = await lake.sql("SELECT count(*) AS n, sum(id) AS s, count(f0) + count(f7) AS f FROM t");
  expect(row).toEqual({ n: 8n, s: 28n, f: 2n });
  const { schema } = await lake.table("t").describe();
  expect(new Set(schema.fields.map((field) => field.id)).size).toBe(9);
});
