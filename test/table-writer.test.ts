/** `table.writer()`: rows that come little by little, committed as batches. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SqliteCatalog } from "@eider/catalog";
import { type FaultRule, FaultStore, MemoryStore } from "@eider/storage";
import { tableFromArrays } from "apache-arrow";
import { type AppendResult, BatchConflictError, Lake, type TableWriterOptions } from "eider";
import { describe, expect, it } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

interface Row {
  readonly id: number;
  readonly day: string;
}

function rows(count: number, from = 0): Row[] {
  return Array.from({ length: count }, (_, i) => ({ id: from + i, day: `d${(from + i) % 3}` }));
}

async function count(lake: Lake, table = "t"): Promise<{ n: bigint; s: unknown }> {
  return (await lake.sql<{ n: bigint; s: unknown }>(`SELECT count(*) AS n, sum(id) AS s FROM ${table}`).first())!;
}

/** What rows 0 to n − 1 come to. */
function sum(n: number): { n: bigint; s: unknown } {
  return { n: BigInt(n), s: BigInt((n * (n - 1)) / 2) };
}

async function faulty(rules: readonly FaultRule[]): Promise<{ lake: Lake; inner: MemoryStore }> {
  const inner = new MemoryStore();
  const catalog = await SqliteCatalog.open({ path: ":memory:" });
  return { inner, lake: await Lake.open({ store: new FaultStore(inner, { rules }), catalog }, FILES) };
}

async function dataKeys(store: MemoryStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("")) if (key.endsWith(".parquet")) keys.push(key);
  return keys;
}

describe('commit: "close"', () => {
  it("is one batch, visible when it is closed; the same rows again are a duplicate, others a conflict", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table<Row>("t");
    const write = async (all: readonly Row[], piece: number) => {
      await using writer = table.writer({ batchId: "b" });
      for (let at = 0; at < all.length; at += piece) await writer.write(all.slice(at, at + piece));
      expect(writer.rows).toBe(all.length);
      expect(writer.acknowledgedRows).toBe(0);
      const result = await writer.close();
      expect(writer.acknowledgedRows).toBe(all.length);
      return result;
    };
    const before = table.writer({ batchId: "other" });
    await before.write(rows(5000));
    expect(await lake.tables()).toEqual([]);
    await before.abort();

    const result = await write(rows(5000), 700);
    expect(result).toMatchObject({ status: "committed", batches: 1, rowsAdded: 5000, rowsRejected: 0 });
    expect(result.receipt).toEqual(await table.receipt("b"));
    expect(await count(lake)).toEqual(sum(5000));
    expect(await write(rows(5000), 1)).toMatchObject({ status: "duplicate", rowsAdded: 0, receipt: result.receipt });
    // An append of the same rows is the same batch.
    expect(await table.append(rows(5000), { batchId: "b" })).toMatchObject({ status: "duplicate" });
    await expect(write(rows(4999), 1000)).rejects.toBeInstanceOf(BatchConflictError);
    expect(await count(lake)).toEqual(sum(5000));
    expect((await lake.verify()).findings).toEqual([]);
  });

  it("of nothing is a batch without rows (D21)", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table<Row>("t");
    expect(await table.writer({ batchId: "b" }).close()).toMatchObject({ status: "committed", rowsAdded: 0 });
    expect(await table.receipt("b")).toMatchObject({ rows: 0 });
    expect(await table.writer({ batchId: "b" }).close()).toMatchObject({ status: "duplicate" });
  });

  it("keeps to partitions and order of the table, and to the writer's row groups and files", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table<Row>("t", { partitionBy: ["day"], orderBy: ["id desc"] });
    const writer = table.writer({ rotate: { rows: 1000 }, rowGroupRows: 100 });
    await writer.writeAll(rows(6000));
    await writer.close();
    const files = await table.files();
    expect(files.map(({ partition, rows }) => [partition[0], rows]).sort()).toEqual(
      ["d0", "d1", "d2"].flatMap((day) => [
        [day, 1000],
        [day, 1000],
      ]),
    );
    expect(await count(lake)).toEqual(sum(6000));
    expect((await lake.verify()).ok).toBe(true);
  });

  it("infers over every row, and evolves the table as an append does (D01)", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t");
    const writer = table.writer();
    await writer.write(Array.from({ length: 25_000 }, () => ({ n: 7 })));
    await writer.write([{ n: 1.5 }, { n: null }, { n: 8, late: "z" }]);
    expect(await writer.close()).toMatchObject({ rowsAdded: 25_003 });
    expect(await lake.sql("SELECT sum(n) AS s, count(late) AS l FROM t")).toEqual([{ s: 175_009.5, l: 1n }]);
    const more = table.writer();
    await more.write({ n: 1, more: true });
    await more.close();
    expect((await table.describe()).schema.fields.map(({ name }) => name)).toEqual(["n", "late", "more"]);
    const strict = table.writer({ schemaMode: "strict" });
    await strict.write({ n: 1, other: 1 });
    await expect(strict.close()).rejects.toMatchObject({ code: "rejected_rows" });
  });

  it("a change of the schema by others meanwhile costs nothing but another pass", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t");
    await table.append([{ id: 1 }]);
    const writer = table.writer({ batchId: "w" });
    await writer.write(rows(30_000));
    await table.append([{ id: 2, more: "x" }]);
    expect(await writer.close()).toMatchObject({ status: "committed", rowsAdded: 30_000 });
    expect(await lake.sql("SELECT count(*) AS n, count(more) AS m, count(day) AS d FROM t")).toEqual([
      { n: 30_002n, m: 1n, d: 30_000n },
    ]);
  });

  it("rejects are named, or kept aside", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table<object>("t", { schema: { "id!": "int64" } });
    const failing = table.writer();
    await failing.write([{ id: 1 }, { id: "x" }]);
    await expect(failing.close()).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: 2 }] });
    const keeping = table.writer({ onReject: "quarantine", batchId: "q" });
    await keeping.write([{ id: 1 }, { id: "x" }, {}]);
    expect(await keeping.close()).toMatchObject({ rowsAdded: 1, rowsRejected: 2 });
    expect((await table.rejects({ batchId: "q" })).map(({ line }) => line)).toEqual([2, 3]);
  });

  it("takes Arrow data, and the same data in other pieces is the same batch", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t");
    const data = (from: number, to: number) =>
      tableFromArrays({ id: BigInt64Array.from({ length: to - from }, (_, i) => BigInt(from + i)) });
    const write = async (...cuts: number[]) => {
      const writer = table.writer({ batchId: "a" });
      for (let i = 1; i < cuts.length; i++) await writer.write(data(cuts[i - 1]!, cuts[i]!));
      return writer.close();
    };
    expect(await write(0, 1000, 1500)).toMatchObject({ status: "committed", rowsAdded: 1500 });
    expect(await write(0, 10, 1500)).toMatchObject({ status: "duplicate" });
    expect(await count(lake)).toEqual(sum(1500));
    const mixed = table.writer();
    await mixed.write(data(0, 1));
    await expect(mixed.write([{ id: 1n }])).rejects.toMatchObject({ code: "mixed_input" });
  });

  it("cannot be flushed, and cannot rotate by age", async () => {
    await using lake = await Lake.open("memory:");
    const writer = lake.table("t").writer();
    await expect(writer.flush()).rejects.toMatchObject({ code: "nothing_to_flush" });
    await writer.write([{ id: 1 }]);
    await writer.close();
    const bad = (options: TableWriterOptions) => () => lake.table("t").writer(options);
    expect(bad({ rotate: { ageMs: 5 } })).toThrow(/commit: "rotate"/);
    expect(bad({ rotate: { rows: 0 } })).toThrow(/rotate.rows/);
    expect(bad({ batchId: "" })).toThrow();
    expect(bad({ batchID: "x" } as never)).toThrow(/batchID/);
  });
});

describe('commit: "rotate"', () => {
  async function write(lake: Lake, all: readonly Row[], options: TableWriterOptions, piece = 1000) {
    const committed: [string, string, number][] = [];
    const writer = lake.table<Row>("t").writer({
      batchId: "w",
      commit: "rotate",
      onCommitted: ({ receipt, status, rowsAdded }: AppendResult) =>
        void committed.push([receipt.batchId, status, rowsAdded]),
      ...options,
    });
    for (let at = 0; at < all.length; at += piece) await writer.write(all.slice(at, at + piece));
    return { result: await writer.close(), committed };
  }

  it("commits a batch for each so many rows; written again, all are duplicates, and what is new is added", async () => {
    await using lake = await Lake.open("memory:");
    const first = await write(lake, rows(2500), { rotate: { rows: 1000 } }, 300);
    expect(first.committed).toEqual([
      ["w/1", "committed", 1000],
      ["w/2", "committed", 1000],
      ["w/3", "committed", 500],
    ]);
    expect(first.result).toMatchObject({ status: "committed", batches: 3, rowsAdded: 2500 });
    expect(first.result.receipt).toMatchObject({ batchId: "w/3" });
    // With other limits the batches that are known stay as they are.
    const again = await write(lake, rows(2500), { rotate: { rows: 7 } }, 11);
    expect(again.committed.map(([id, status]) => [id, status])).toEqual([
      ["w/1", "duplicate"],
      ["w/2", "duplicate"],
      ["w/3", "duplicate"],
    ]);
    expect(again.result).toMatchObject({ status: "duplicate", batches: 3, rowsAdded: 0 });
    const longer = await write(lake, rows(2600), { rotate: { rows: 1000 } });
    expect(longer.committed.at(-1)).toEqual(["w/4", "committed", 100]);
    expect(longer.result).toMatchObject({ status: "committed", rowsAdded: 100 });
    expect(await count(lake)).toEqual(sum(2600));
    // Other rows, and too few of them.
    await expect(write(lake, rows(2600, 1), {})).rejects.toMatchObject({ code: "batch_conflict" });
    await expect(write(lake, rows(2000), {})).rejects.toMatchObject({ code: "batch_conflict" });
    await expect(write(lake, rows(2100), {})).rejects.toMatchObject({ code: "batch_conflict" });
    expect(await count(lake)).toEqual(sum(2600));
  });

  it("by bytes, by age and by flush, wherever that cuts, a repetition finds the same batches", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table<Row>("t");
    const committed: AppendResult[] = [];
    const options: TableWriterOptions = {
      batchId: "w",
      commit: "rotate",
      onCommitted: (result) => void committed.push(result),
    };
    const writer = table.writer({ ...options, rotate: { ageMs: 40, bytes: 20_000 } });
    await writer.write(rows(10));
    expect(writer.acknowledgedRows).toBe(0);
    while (committed.length < 1) await sleep(5);
    expect(writer.acknowledgedRows).toBe(10);
    expect(await count(lake)).toEqual(sum(10));
    await writer.write(rows(3, 10));
    await writer.flush();
    expect(writer.acknowledgedRows).toBe(13);
    expect(await count(lake)).toEqual(sum(13));
    // Some 20 bytes each.
    await writer.write(rows(4000, 13));
    await writer.close();
    expect(committed.length).toBeGreaterThanOrEqual(5);
    expect(committed.length).toBeLessThanOrEqual(8);
    expect(await count(lake)).toEqual(sum(4013));

    const first = committed.splice(0);
    const again = table.writer(options);
    await again.write(rows(5));
    // In the middle of a batch that is known, a flush does not cut it.
    await again.flush();
    expect(again.acknowledgedRows).toBe(0);
    await again.write(rows(4008, 5));
    expect(await again.close()).toMatchObject({ status: "duplicate", rowsAdded: 0 });
    expect(committed.map(({ receipt }) => receipt)).toEqual(first.map(({ receipt }) => receipt));
    expect(await count(lake)).toEqual(sum(4013));
  });

  it("counts rejected rows when it repeats a batch", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table<object>("t", { schema: { "id!": "int64" } });
    const write = async () => {
      const writer = table.writer({ batchId: "w", commit: "rotate", rotate: { rows: 4 }, onReject: "quarantine" });
      await writer.write([{ id: 1 }, { id: "x" }, { id: 2 }, {}, { id: 3 }, { id: "y" }]);
      return writer.close();
    };
    expect(await write()).toMatchObject({ status: "committed", batches: 2, rowsAdded: 3, rowsRejected: 3 });
    expect(await write()).toMatchObject({ status: "duplicate", batches: 2, rowsAdded: 0 });
  });

  it("of nothing commits nothing", async () => {
    await using lake = await Lake.open("memory:");
    const { result, committed } = await write(lake, [], {});
    expect(result).toEqual({ status: "committed", batches: 0, rowsAdded: 0, rowsRejected: 0, receipt: undefined });
    expect(committed).toEqual([]);
  });

  it("a failure leaves the batches before it, and a new writer goes on from them", async () => {
    const { lake, inner } = await faulty([{ on: "put", key: /\.parquet$/, skip: 2, fault: { type: "fail" } }]);
    await expect(write(lake, rows(3500), { rotate: { rows: 1000 } })).rejects.toMatchObject({ code: "injected_fault" });
    expect(await count(lake)).toEqual(sum(2000));
    expect(await dataKeys(inner)).toHaveLength(2);
    const { committed } = await write(lake, rows(3500), { rotate: { rows: 1000 } });
    expect(committed.map(([, status]) => status)).toEqual(["duplicate", "duplicate", "committed", "committed"]);
    expect(await count(lake)).toEqual(sum(3500));
    expect((await lake.verify()).findings).toEqual([]);
    await lake.close();
  });
});

/** The same as Arrow data, which goes to its files at once. */
function arrow(count: number) {
  const all = rows(count);
  return tableFromArrays({ id: BigInt64Array.from(all, ({ id }) => BigInt(id)), day: all.map(({ day }) => day) });
}

/** Waits until the writer has put a file. */
async function untilPut(store: MemoryStore): Promise<void> {
  for (let i = 0; (await dataKeys(store)).length === 0; i++) {
    if (i === 1000) throw new Error("no file was put");
    await sleep(5);
  }
}

describe("an end that is not a close", () => {
  it.each(["abort", "signal", "scope", "source"])("by %s: nothing is committed and no file is left", async (how) => {
    const { lake, inner } = await faulty([]);
    const controller = new AbortController();
    const table = lake.table<Row>("t", { partitionBy: ["day"] });
    {
      await using writer = table.writer({ signal: controller.signal, rotate: { rows: 500 }, rowGroupRows: 100 });
      await writer.write(arrow(9000));
      await untilPut(inner);
      if (how === "abort") await writer.abort();
      if (how === "signal") {
        controller.abort(new Error("enough"));
        await expect(writer.write(arrow(1))).rejects.toThrow("enough");
      }
      if (how === "source") {
        const source = async function* () {
          yield arrow(10);
          throw new Error("the source broke");
        };
        await expect(writer.writeAll(source())).rejects.toThrow("the source broke");
      }
      if (how !== "scope") await expect(writer.close()).rejects.toMatchObject({ code: "writer_failed" });
    }
    expect(await lake.tables()).toEqual([]);
    expect(await dataKeys(inner)).toEqual([]);
    await lake.close();
  });

  it("closing the lake gives up writers that are open, and waits for those that are being closed", async () => {
    const folder = temporaryFolder();
    const where = join(folder, "lake");
    const lake = await Lake.open(where);
    const open = lake.table<Row>("a").writer();
    await open.write(rows(10));
    const closing = lake.table<Row>("b").writer();
    void closing.write(rows(10));
    const result = closing.close();
    await lake.close();
    expect(await result).toMatchObject({ status: "committed", rowsAdded: 10 });
    await expect(open.close()).rejects.toMatchObject({ code: "writer_failed", cause: { code: "lake_closed" } });
    await using again = await Lake.open(where);
    expect((await again.tables()).map(({ name }) => name)).toEqual(["b"]);
    expect((await again.verify()).findings).toEqual([]);
  });

  it("a lake that is open to read refuses a writer", async () => {
    const where = join(temporaryFolder(), "lake");
    await (await Lake.open(where)).close();
    await using lake = await Lake.open(where, { mode: "read" });
    expect(() => lake.table("t").writer()).toThrow(/mode: "read"/);
  });

  it("maintenance leaves the files of a writer that is at work", async () => {
    const { lake, inner } = await faulty([]);
    const writer = lake.table<Row>("t").writer({ rotate: { rows: 500 }, rowGroupRows: 100 });
    await writer.write(arrow(5000));
    await untilPut(inner);
    expect(await lake.maintain()).toMatchObject({ deleted: [], bytes: 0 });
    // Even one that waits for nobody: then the writer starts again with new files.
    await lake.table("other").append([{ a: 1 }]);
    await lake.maintain({ graceMs: 0 });
    expect(await writer.close()).toMatchObject({ rowsAdded: 5000 });
    expect(await count(lake)).toEqual(sum(5000));
    expect((await lake.verify()).ok).toBe(true);
    await lake.close();
  });
});

describe("options", () => {
  it.each(["close", "rotate"] as const)(
    "limits that nothing reaches, or nothing fits, are refused: commit %s",
    async (commit) => {
      await using lake = await Lake.open("memory:");
      for (const rotate of [{ rows: 0 }, { bytes: 0 }, { ageMs: 0 }, { rows: 1.5 }]) {
        expect(() => lake.table("t").writer({ commit, rotate })).toThrow(
          expect.objectContaining({ name: "InvalidInputError", code: "bad_option" }),
        );
      }
    },
  );
});
