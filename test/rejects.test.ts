/** Rejects from their batch to their replay, or to their end. Spec B: "kept, listable, replayable". */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { SqliteCatalog } from "@eider/catalog";
import { FileStore, MemoryStore, type ObjectStore, StoreWrapper } from "@eider/storage";
import { Lake, type LakeOptions, type Table } from "eider";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { temporaryFolder } from "./support/folder.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A view that its lake may close: the store itself stays. */
class View extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

function openHost(store: ObjectStore, options: LakeOptions = {}): Promise<Lake> {
  return Lake.open({ store: new View(store) }, { cacheDir: temporaryFolder(), stalenessMs: 0, ...options });
}

const SCHEMA = { id: "int64", v: "string" } as const;
/** Lines 2 and 4 are rejects: 1-0 and 1-1. */
const INPUT = '{"id":1,"v":"a"}\n{"id":"2","v":"b"}\n{"id":3,"v":"c"}\n{"id":4,"v":"d"\n';

async function fill(lake: Lake, batchId = "first"): Promise<Table> {
  const table = lake.table("events", { schema: SCHEMA });
  const result = await table.append(bytes(INPUT), { batchId, format: "ndjson", onReject: "quarantine" });
  expect(result).toMatchObject({ rowsAdded: 2, rowsRejected: 2, receipt: { rows: 2, rejected: 2 } });
  return table as Table;
}

/** What somebody would do who looked at them. */
const mend = (raw: string): string => raw.replace('"2"', "2").replace(/"d"$/, '"d"}');

const rows = async (lake: Lake): Promise<unknown[]> =>
  lake.with({ values: "json" }).sql("SELECT id, v FROM events ORDER BY id");

describe("replay", () => {
  it("appends the rejects as one batch, and marks them in the same snapshot", async () => {
    await using lake = await Lake.open(temporaryFolder());
    const table = await fill(lake);
    const found = await table.rejects({ open: true });
    expect(found.map(({ id, line, raw }) => [id, line, raw])).toEqual([
      ["1-0", 2, '{"id":"2","v":"b"}'],
      ["1-1", 4, '{"id":4,"v":"d"'],
    ]);
    const seen: string[] = [];
    const result = await table.replay(["1-1", "1-0", "1-1"], {
      map: (raw, { id }) => {
        seen.push(id);
        return mend(raw);
      },
      meta: { by: "hand" },
    });
    expect(seen).toEqual(["1-0", "1-1"]);
    // printf '1-0\n1-1' | sha256sum
    const batchId = "replay:5224697588052e88435e886ff391c8facd9b08411842e1bf8e0e4f6aa83fbb7c";
    expect(result).toMatchObject({ status: "committed", rowsAdded: 2, rowsRejected: 0, receipt: { batchId, rows: 2 } });
    expect(await rows(lake)).toEqual([1, 2, 3, 4].map((id) => ({ id, v: "abcd"[id - 1] })));
    expect(await table.rejects({ open: true })).toEqual([]);
    expect(await table.rejects()).toMatchObject([
      { id: "1-0", raw: '{"id":"2","v":"b"}', replayedBy: batchId, replayedIn: 2 },
      { id: "1-1", replayedBy: batchId, replayedIn: 2 },
    ]);
    const sql = "SELECT id, replayed_by IS NULL AS open, replayed_in FROM eider.rejects ORDER BY id";
    expect(await lake.sql(sql)).toEqual([
      { id: "1-0", open: false, replayed_in: 2n },
      { id: "1-1", open: false, replayed_in: 2n },
    ]);
    expect(await lake.with({ at: 1 }).sql(sql)).toMatchObject([{ open: true }, { open: true }]);
    expect(await lake.sql`SELECT rows, rejected FROM eider.batches ORDER BY snapshot`).toEqual([
      { rows: 2n, rejected: 2n },
      { rows: 2n, rejected: 0n },
    ]);
  });

  it("of the same rejects is a duplicate, with other texts or other rejects a conflict", async () => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    const first = await table.replay(["1-0"], { map: mend });
    expect(await table.replay(["1-0"], { map: mend })).toEqual({
      status: "duplicate",
      rowsAdded: 0,
      rowsRejected: 0,
      receipt: first.receipt,
    });
    await expect(table.replay(["1-0"], { map: () => '{"id":9}' })).rejects.toMatchObject({
      name: "BatchConflictError",
      code: "batch_conflict",
    });
    await expect(table.replay(["1-0", "1-1"], { map: mend })).rejects.toMatchObject({
      name: "BatchConflictError",
      code: "reject_replayed",
      subject: "1-0",
    });
    expect(await table.replay(["1-1"], { map: mend })).toMatchObject({ status: "committed" });
    expect((await rows(lake)).length).toBe(4);
  });

  it("that fails again names the rows and changes nothing, or makes them rejects of its own", async () => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    await expect(table.replay(["1-0", "1-1"])).rejects.toMatchObject({
      code: "rejected_rows",
      rows: [{ line: 1 }, { line: 2, code: "bad_json" }],
    });
    expect(await table.rejects({ open: true })).toHaveLength(2);
    const half = (raw: string): string => raw.replace(/"d"$/, '"d"}');
    const result = await table.replay(["1-0", "1-1"], { map: half, onReject: "quarantine" });
    expect(result).toMatchObject({ rowsAdded: 1, rowsRejected: 1, receipt: { rows: 1, rejected: 1 } });
    expect(await table.rejects({ open: true })).toMatchObject([
      { id: "2-0", batchId: result.receipt.batchId, line: 1, raw: '{"id":"2","v":"b"}' },
    ]);
    expect(await table.replay(["2-0"], { map: mend })).toMatchObject({ rowsAdded: 1 });
    expect(await rows(lake)).toEqual([1, 2, 3, 4].map((id) => ({ id, v: "abcd"[id - 1] })));
  });

  it("may bring new columns, or drop them", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: { id: "int64" } });
    const append = { batchId: "b", schemaMode: "strict", onReject: "quarantine" } as const;
    await table.append(bytes('{"id":1}\n{"id":2,"w":5}\n{"id":3,"w":6}\n'), append);
    expect(await table.replay(["1-0"], { schemaMode: "ignore" })).toMatchObject({ ignoredFields: { w: 1 } });
    await table.replay(["1-1"]);
    expect(await lake.sql("SELECT * FROM t ORDER BY id")).toEqual([
      { id: 1n, w: null },
      { id: 2n, w: null },
      { id: 3n, w: 6n },
    ]);
  });

  it.each<[string, readonly string[], object, string]>([
    ["no reject", [], {}, "bad_replay"],
    ["what is no id", ["1-0", "x"], {}, "bad_replay"],
    ["a text in place of ids", "1-0" as never, {}, "bad_replay"],
    ["a reject that is not there", ["1-0", "1-7"], { map: mend }, "reject_not_found"],
    ["CSV without names for its columns", ["1-0"], { format: "csv" }, "bad_option"],
    ["a map that gives no text", ["1-0"], { map: () => undefined }, "bad_replay"],
    ["a map that gives no row", ["1-0", "1-1"], { map: () => "" }, "replay_rows"],
    [
      "a map that gives several rows",
      ["1-0"],
      { format: "csv", csv: { header: ["id"] }, map: () => "1\n2" },
      "reject_lines",
    ],
    ["several rows on one line", ["1-0"], { map: () => '{"id":1}\n{"id":2}' }, "rejected_rows"],
    ["an option that does not exist", ["1-0"], { batchId: "b" }, "bad_option"],
  ])("refuses %s", async (_, ids, options, code) => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    await expect(table.replay(ids, options)).rejects.toMatchObject({ code });
    expect(await table.rejects({ open: true })).toHaveLength(2);
    expect((await lake.snapshots()).length).toBe(1);
    expect(await lake.verify()).toMatchObject({ findings: [] });
  });

  it("takes more than 10,000 only in several calls", async () => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    const ids = Array.from({ length: 10_001 }, (_, i) => `1-${i}`);
    await expect(table.replay(ids)).rejects.toMatchObject({ name: "LimitError", code: "replay_too_large" });
  });

  it("goes page by page through thousands, in their order, on a table that sorts and parts its rows", async () => {
    await using lake = await Lake.open(temporaryFolder());
    const table = lake.table("t", { schema: { id: "int64" }, orderBy: ["id"], partitionBy: ["bucket(2, id)"] });
    const text = Array.from({ length: 1600 }, (_, i) => `{"id":"${i}"}\n`).join("");
    const add = (batchId: string) => table.append(bytes(text), { batchId, onReject: "quarantine" });
    await add("a");
    await add("b");
    const ids: string[] = [];
    for (let after: string | undefined; ; after = ids.at(-1)) {
      const page = await table.rejects({ limit: 700, ...(after !== undefined && { after }) });
      ids.push(...page.map(({ id }) => id));
      if (page.length < 700) break;
    }
    expect(ids).toEqual([1, 2].flatMap((n) => Array.from({ length: 1600 }, (_, i) => `${n}-${i}`)));
    const result = await table.replay(ids, { map: (raw) => raw.replaceAll('"', "").replace("id", '"id"') });
    expect(result).toMatchObject({ rowsAdded: 3200 });
    // Twice 0 + 1 + … + 1599.
    expect(await lake.sql("SELECT count(*) AS n, sum(id)::BIGINT AS s FROM t")).toEqual([{ n: 3200n, s: 2_558_400n }]);
  });

  it("reads CSV by the names that are given for its columns", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: { id: "int64", name: "string", n: "float64" } });
    const csv = 'id,name,n\n1,"a, b",0.5\n2,b\n"x",c,1\n';
    await table.append(bytes(csv), { batchId: "b", format: "csv", onReject: "quarantine" });
    expect((await table.rejects()).map(({ raw }) => raw)).toEqual(["2,b", '"x",c,1']);
    const header = ["id", "name", "n"];
    await table.replay(["1-0", "1-1"], {
      format: "csv",
      csv: { header },
      map: (raw) => (raw.startsWith('"') ? raw.replace('"x"', "3") : `${raw},`),
    });
    expect(await lake.sql("SELECT * FROM t ORDER BY id")).toEqual([
      { id: 1n, name: "a, b", n: 0.5 },
      { id: 2n, name: "b", n: null },
      { id: 3n, name: "c", n: 1 },
    ]);
  });

  it("never lets a quote that stays open take the next reject with it", async () => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    const texts = ['5,"e', '6,"f'];
    const options = { format: "csv", csv: { header: ["id", "v"] }, map: () => texts.shift()! } as const;
    await expect(table.replay(["1-0", "1-1"], options)).rejects.toMatchObject({ name: "InvalidInputError" });
    expect(await table.rejects({ open: true })).toHaveLength(2);
  });

  it("takes elements of a JSON array that had several lines, digit by digit", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: { id: "int64", v: "int64" } });
    const json = '[\n{"id": 9007199254740993,\n "v": "7"},\n{"id": 2, "v": 8}]';
    await table.append(bytes(json), { batchId: "b", format: "json", onReject: "quarantine" });
    await table.replay(["1-0"], { map: (raw) => raw.replace('"7"', "7") });
    expect(await lake.sql("SELECT * FROM t ORDER BY v")).toEqual([
      { id: 9007199254740993n, v: 7n },
      { id: 2n, v: 8n },
    ]);
  });

  it("asks a table's validator again", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: z.object({ id: z.number(), v: z.string().max(2) }) });
    await table.append(
      [
        { id: 1, v: "long" },
        { id: 2, v: "ok" },
      ] as never,
      { batchId: "b", onReject: "quarantine" },
    );
    await expect(table.replay(["1-0"])).rejects.toMatchObject({
      code: "rejected_rows",
      rows: [{ code: "invalid_row" }],
    });
    await expect(table.replay(["1-0"], { map: () => "{" })).rejects.toMatchObject({ code: "rejected_rows" });
    await table.replay(["1-0"], { map: () => '{"id":1,"v":"lo"}' });
    expect(await lake.sql("SELECT * FROM t ORDER BY id")).toMatchObject([{ v: "lo" }, { v: "ok" }]);
  });

  it("refuses a text that may have been cut, and one that was never there, unless it is mapped", async () => {
    await using lake = await Lake.open("memory:");
    const table = lake.table("t", { schema: { id: "int64", v: "string" } });
    const long = `{"id":"1","v":"${"é".repeat(40_000)}"}\n`;
    await table.append(bytes(long), { batchId: "b", onReject: "quarantine" });
    await expect(table.replay(["1-0"])).rejects.toMatchObject({ code: "reject_incomplete", subject: "1-0" });
    await table.replay(["1-0"], { map: () => '{"id":1,"v":"short"}' });
    expect(await lake.sql("SELECT * FROM t")).toEqual([{ id: 1n, v: "short" }]);
  });

  it("stops when it is told to, and leaves nothing", async () => {
    await using lake = await Lake.open(temporaryFolder());
    const table = await fill(lake);
    const stop = new AbortController();
    const never = (): Promise<string> => {
      queueMicrotask(() => stop.abort(new Error("enough")));
      return new Promise(() => {});
    };
    await expect(table.replay(["1-0"], { map: never, signal: stop.signal })).rejects.toThrow("enough");
    expect(await table.rejects({ open: true })).toHaveLength(2);
    expect(await lake.verify()).toMatchObject({ findings: [] });
  });
});

describe("replay from two places at once", () => {
  it.each<[string, () => Promise<Lake[]>]>([
    [
      "on one local lake",
      async () => {
        const folder = temporaryFolder();
        return [await Lake.open(folder), await Lake.open(folder)];
      },
    ],
    [
      "on two hosts of a shared lake",
      async () => {
        const store = new MemoryStore();
        return [await openHost(store), await openHost(store)];
      },
    ],
  ])("%s commits each reject once: the same receipt for the same rejects, a conflict for others", async (_, open) => {
    const lakes = await open();
    await fill(lakes[0]!);
    const tables = lakes.map((lake) => lake.table("events"));
    const same = await Promise.all([...tables, ...tables].map((table) => table.replay(["1-0"], { map: mend })));
    expect(new Set(same.map(({ receipt }) => JSON.stringify(receipt))).size).toBe(1);
    expect(same.filter(({ status }) => status === "committed")).toHaveLength(1);
    await fill(lakes[1]!, "second");
    const [first, second] = (await tables[1]!.rejects({ batchId: "second" })).map(({ id }) => id);
    const raced = await Promise.allSettled([
      tables[0]!.replay([first!, second!], { map: mend }),
      tables[1]!.replay([second!, "1-1"], { map: mend }),
    ]);
    expect(raced.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const lost = raced.find((one) => one.status === "rejected");
    expect(lost?.reason).toMatchObject({ code: "reject_replayed", subject: second });
    for (const lake of lakes) {
      // 1 and 3 twice, 2 once, and two of the other three.
      expect(await lake.sql("SELECT count(*) AS n FROM events")).toEqual([{ n: 7n }]);
      expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
    }
    for (const lake of lakes) await lake.close();
  });
});

describe("purgeRejects", () => {
  it("takes texts away at all snapshots, while everything else about them stays", async () => {
    const folder = temporaryFolder();
    await using lake = await Lake.open(folder);
    const table = await fill(lake);
    await fill(lake, "second");
    await table.replay(["1-0"], { map: mend });
    const seen: unknown[] = [];
    expect(await table.purgeRejects({ batchId: "first", onProgress: (p) => seen.push(p) })).toEqual({ purged: 2 });
    expect(seen).toEqual([{ rejects: 2, purged: 2 }]);
    expect(await table.rejects()).toMatchObject([
      { id: "1-0", line: 2, code: "type_mismatch", raw: "", replayedIn: 3, purgedIn: 4 },
      { id: "1-1", line: 4, code: "bad_json", raw: "", purgedIn: 4 },
      { id: "2-0", raw: '{"id":"2","v":"b"}' },
      { id: "2-1" },
    ]);
    expect(await lake.with({ at: 1 }).sql`SELECT raw, purged_in FROM eider.rejects`).toEqual([
      { raw: null, purged_in: 4n },
      { raw: null, purged_in: 4n },
    ]);
    expect(await table.receipt("first")).toMatchObject({ rows: 2, rejected: 2 });
    expect(await table.purgeRejects({ ids: ["1-0", "2-1"] })).toEqual({ purged: 1 });
    expect(await table.purgeRejects({ before: 3 })).toEqual({ purged: 1 });
    expect(await table.purgeRejects({ before: new Date() })).toEqual({ purged: 0 });
    // The unfinished object is in no file of the lake any more: nothing but the rejects had it.
    const catalog = join(folder, "_eider", "catalog.sqlite");
    for (const file of [catalog, `${catalog}-wal`]) expect(readFileSync(file).includes('{"id":4,"v":"d"')).toBe(false);
  });

  it("has taken them out of the lake's folder when it returns, also where a process was killed before that", async () => {
    const folder = temporaryFolder();
    const left = (): string[] =>
      readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => {
        const path = join(folder, name);
        return statSync(path).isFile() && readFileSync(path).includes('\\"id\\":4,');
      });
    {
      await using lake = await Lake.open(folder);
      await fill(lake);
    }
    expect(left()).not.toEqual([]);
    // As a process that is killed behind the commit leaves it.
    await using catalog = await SqliteCatalog.open({ path: join(folder, "_eider", "catalog.sqlite") });
    const { id } = (await catalog.table("events"))!;
    await catalog.commit({ operations: [{ op: "purge", table: id, rejects: ["1-0", "1-1"] }] });
    await using lake = await Lake.open(folder);
    expect(await lake.table("events").purgeRejects({ batchId: "first" })).toEqual({ purged: 0 });
    expect(left()).toEqual([]);
  });

  it("leaves a replay known, and what was not replayed lost", async () => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    const { receipt } = await table.replay(["1-0"], { map: mend });
    await table.purgeRejects({ batchId: "first" });
    expect(await table.replay(["1-0"], { map: mend })).toMatchObject({ status: "duplicate", receipt });
    await expect(table.replay(["1-1"], { map: mend })).rejects.toMatchObject({
      code: "reject_purged",
      subject: "1-1",
    });
  });

  it("by instant takes what was committed before it", async () => {
    let now = Date.UTC(2031, 0, 1);
    await using lake = await Lake.open("memory:", { clock: () => now });
    const table = await fill(lake);
    now += 1000;
    await fill(lake, "second");
    expect(await table.purgeRejects({ before: new Date(Date.UTC(2031, 0, 1)) })).toEqual({ purged: 0 });
    expect(await table.purgeRejects({ before: new Date(now) })).toEqual({ purged: 2 });
    expect(await table.rejects({ open: true })).toMatchObject([{ batchId: "second" }, { batchId: "second" }]);
  });

  it.each<[string, object, string]>([
    ["nothing that says which", {}, "bad_option"],
    ["two things that say which", { batchId: "first", before: 2 }, "bad_option"],
    ["a reject that is not there", { ids: ["1-0", "1-9"] }, "reject_not_found"],
    ["what is no id", { ids: ["1"] }, "bad_option"],
    ["an instant that is none", { before: new Date(Number.NaN) }, "bad_option"],
  ])("refuses %s", async (_, options, code) => {
    await using lake = await Lake.open("memory:");
    const table = await fill(lake);
    await expect(table.purgeRejects(options)).rejects.toMatchObject({ code });
    expect(await table.rejects({ open: true })).toHaveLength(2);
  });

  it("reaches the log in the store, the other host, and a host that comes new", async () => {
    const folder = temporaryFolder();
    const store = new FileStore(folder);
    const [cacheA, cacheB] = [temporaryFolder(), temporaryFolder()];
    await using a = await openHost(store, { cacheDir: cacheA });
    const table = await fill(a);
    await using b = await openHost(store, { cacheDir: cacheB });
    expect(await b.table("events").rejects()).toHaveLength(2);
    const entry = (n: number): Buffer => readFileSync(join(folder, "_eider/log", String(n).padStart(20, "0")));
    const text = JSON.stringify('{"id":4,"v":"d"').slice(1, -1);
    expect(entry(1).includes(text)).toBe(true);
    expect(await table.purgeRejects({ ids: ["1-1"] })).toEqual({ purged: 1 });
    expect(entry(1).includes(text)).toBe(false);
    expect(entry(1).includes("type_mismatch")).toBe(true);
    await using late = await openHost(store);
    for (const lake of [a, b, late]) {
      const found = await lake.table("events").rejects();
      expect(found.map(({ id, raw, purgedIn }) => [id, raw, purgedIn])).toEqual([
        ["1-0", '{"id":"2","v":"b"}', undefined],
        ["1-1", "", 2],
      ]);
      expect(await lake.sql("SELECT count(*) AS n FROM events")).toEqual([{ n: 2n }]);
    }
    // An entry that was overwritten is the same entry: writers and readers go on.
    await b.table("events").append([{ id: 7 }], { batchId: "more" });
    expect(await a.sql("SELECT count(*) AS n FROM events")).toEqual([{ n: 3n }]);
  });
});
