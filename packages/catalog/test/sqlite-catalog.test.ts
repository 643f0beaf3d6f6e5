import { existsSync } from "node:fs";
import { join } from "node:path";
import { BatchConflictError, CatalogError, InvalidInputError, NotFoundError } from "@eider/core";
import { describe, expect, it } from "vitest";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { append, create, dataFile, draft, FOOTER, hot, rearrange, SCHEMA, statistics, tempFolder } from "./fixtures.js";

/** A catalog in memory whose clock stands at `time`. */
async function openCatalog(time = { now: Date.parse("2026-03-01T12:00:00.123Z") }): Promise<SqliteCatalog> {
  return SqliteCatalog.open({ path: ":memory:", clock: () => time.now });
}

const x = { id: 3, name: "x", type: { kind: "int32" as const }, nullable: true };
const evolved = {
  op: "schema" as const,
  table: "t1",
  version: 2,
  schema: { fields: [...SCHEMA.fields, x] },
  lastFieldId: 3,
};

describe("a commit", () => {
  it("answers with its snapshot and receipts, and the same receipts for ever (D36)", async () => {
    await using catalog = await openCatalog();
    const first = await catalog.commit(draft(create("t1", "events"), append("t1", "b-1", ["k1", "k2"])));
    const receipt = {
      table: "events",
      batchId: "b-1",
      snapshot: 1,
      rows: 2,
      rejected: 0,
      contentHash: "rows:b-1",
      committedAt: "2026-03-01T12:00:00.123Z",
    };
    expect(first).toEqual({ status: "committed", snapshot: 1, receipts: [receipt] });
    // A retry has new files under new keys; they are not committed.
    const again = await Promise.all(
      Array.from({ length: 20 }, (_, i) => catalog.commit(draft(append("t1", "b-1", [`retry-${i}`, `more-${i}`])))),
    );
    for (const result of again) expect(result).toEqual({ status: "duplicate", receipts: [receipt] });
    expect(await catalog.head()).toMatchObject({ snapshot: 1 });
    expect((await catalog.files("t1")).map(({ key }) => key)).toEqual(["k1", "k2"]);
    expect(await catalog.receipt("t1", "b-1")).toEqual(receipt);
    expect(await catalog.receipt("t1", "b-2")).toBeUndefined();
    expect(await catalog.receipt("t2", "b-1")).toBeUndefined();
  });

  it("of racing batches takes each once", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "events")));
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => catalog.commit(draft(append("t1", `b-${i % 10}`, [`k${i}`])))),
    );
    expect(results.filter(({ status }) => status === "committed")).toHaveLength(10);
    expect(results.filter(({ status }) => status === "duplicate")).toHaveLength(40);
    const batches = (await catalog.batches("t1")).map(({ batchId }) => batchId);
    expect(batches.toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => `b-${i}`));
  });

  it("of the same id with other content fails and says which; the first batch stays, also once the schema moved", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "events"), append("t1", "b-1", ["k1"])));
    await catalog.commit(draft(evolved));
    const conflict = catalog.commit(draft(append("t1", "b-1", ["k2"], { hash: "rows:other" })));
    await expect(conflict).rejects.toThrow(BatchConflictError);
    await expect(conflict).rejects.toMatchObject({ code: "batch_conflict", subject: "b-1" });
    await expect(conflict).rejects.toThrow(/"b-1" of table "events" was committed in snapshot 1 /);
    expect(await catalog.receipt("t1", "b-1")).toMatchObject({ contentHash: "rows:b-1" });
    expect(await catalog.head()).toMatchObject({ snapshot: 2 });
  });

  it("of several tables is one snapshot, with receipts in the order of the draft", async () => {
    await using catalog = await openCatalog();
    const both = draft(
      create("t1", "one"),
      create("t2", "two"),
      append("t2", "b", ["k1"]),
      append("t1", "b", []),
      append("t1", "a", ["k2"]),
    );
    const result = await catalog.commit({ ...both, meta: { by: "test", ["__proto__"]: "kept" } });
    expect(result).toMatchObject({
      status: "committed",
      receipts: [
        { table: "two", batchId: "b" },
        { table: "one", batchId: "b" },
        { table: "one", batchId: "a" },
      ],
    });
    expect(await catalog.snapshots()).toEqual([
      {
        snapshot: 1,
        committedAt: "2026-03-01T12:00:00.123Z",
        operations: [
          { op: "schema", table: "one" },
          { op: "schema", table: "two" },
          { op: "append", table: "two", batchId: "b", rows: 1 },
          { op: "append", table: "one", batchId: "b", rows: 0 },
          { op: "append", table: "one", batchId: "a", rows: 1 },
        ],
        meta: { by: "test", ["__proto__"]: "kept" },
      },
    ]);
  });

  it("takes any text as a batch id, and keeps it as it is (D80)", async () => {
    await using catalog = await openCatalog();
    const ids = [
      "__proto__",
      "constructor",
      "'; DROP TABLE receipts; --",
      "a\0b",
      "a\0c",
      " b",
      "b ",
      "B",
      "b",
      "\u00e9",
      "e\u0301",
    ];
    await catalog.commit(draft(create("t1", "events"), ...ids.map((id, i) => append("t1", id, [`k${i}`]))));
    for (const id of ids)
      expect(await catalog.receipt("t1", id)).toMatchObject({ batchId: id, contentHash: `rows:${id}` });
    expect((await catalog.batches("t1")).map(({ batchId }) => batchId).sort()).toEqual([...ids].sort());
  });

  it.each<[string, ReturnType<typeof draft>, string]>([
    ["without operations", draft(), "bad_draft"],
    ["with a bad table name", draft(create("t1", "eider.x")), "bad_name"],
    ["with an empty batch id", draft(append("t1", "", [])), "bad_batch_id"],
    ["with a batch twice", draft(append("t1", "b", []), append("t1", "b", [])), "duplicate_batch"],
    ["with a fraction of a row", draft(append("t1", "b", [], { rows: 0.5 })), "bad_draft"],
    ["with rows beyond 2^53", draft(append("t1", "b", [], { rows: 2 ** 53 })), "bad_draft"],
    [
      "with a bad hash of a file",
      draft(append("t1", "b", [], { files: [dataFile("k", { sha256: "00" })] })),
      "bad_draft",
    ],
    [
      "with a bad hash of a footer",
      draft(append("t1", "b", [], { files: [dataFile("k", { footer: { ...FOOTER, sha256: "00" } })] })),
      "bad_draft",
    ],
    [
      "with statistics of a field twice",
      draft(append("t1", "b", [], { files: [dataFile("k", { columns: [statistics(1), statistics(1)] })] })),
      "bad_draft",
    ],
    ["with a field id above the last", draft(create("t1", "t", { lastFieldId: 1 })), "bad_draft"],
    ["with a key that UTF-8 cannot hold", draft(append("t1", "b", ["a\ud800"])), "bad_draft"],
    ["creating at version 2", draft(create("t1", "t", { version: 2 })), "bad_draft"],
  ])("%s is refused", async (_, bad, code) => {
    await using catalog = await openCatalog();
    const refused = catalog.commit(bad);
    await expect(refused).rejects.toThrow(InvalidInputError);
    await expect(refused).rejects.toMatchObject({ code });
    expect(await catalog.head()).toMatchObject({ snapshot: 0 });
  });

  it("never goes back in time", async () => {
    const time = { now: 5000 };
    await using catalog = await openCatalog(time);
    await catalog.commit(draft(create("t1", "events")));
    time.now = 3000;
    await catalog.commit(draft(append("t1", "b", [])));
    expect((await catalog.head()).time).toBe(5000);
    time.now = 9000;
    await catalog.commit(draft(append("t1", "c", [])));
    expect((await catalog.head()).time).toBe(9000);
    expect(await catalog.resolveSnapshot(new Date(8999))).toBe(2);
    expect(await catalog.resolveSnapshot(new Date(9000))).toBe(3);
    await expect(catalog.resolveSnapshot(new Date(4999))).rejects.toMatchObject({ code: "snapshot_not_found" });
    await expect(catalog.resolveSnapshot(new Date(Number.NaN))).rejects.toThrow(InvalidInputError);
  });
});

describe("a snapshot", () => {
  it("shows the lake as it was", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "events"), append("t1", "b-1", ["k1"])));
    await catalog.commit(draft(evolved, append("t1", "b-2", ["k2", "k3"], { schemaVersion: 2 })));
    await catalog.commit(draft({ op: "drop", table: "t1" }));
    await catalog.commit(draft(create("t2", "EVENTS"), append("t2", "b-1", ["k4"])));

    expect(await catalog.tables(0)).toEqual([]);
    expect(await catalog.table("Events", 1)).toEqual({
      id: "t1",
      name: "events",
      folder: "events-t1",
      schema: SCHEMA,
      schemaVersion: 1,
      lastFieldId: 2,
      partitionBy: [],
      orderBy: [],
      createdIn: 1,
      rows: 1,
      files: 1,
      bytes: 100,
      hotBatches: 0,
      hotBytes: 0,
      hotSince: 0,
    });
    expect(await catalog.table("events", 2)).toMatchObject({ schemaVersion: 2, lastFieldId: 3, rows: 3, files: 3 });
    expect(await catalog.tables(3)).toEqual([]);
    expect(await catalog.tables()).toMatchObject([{ id: "t2", name: "EVENTS", rows: 1 }]);

    const keys = async (id: string, at?: number): Promise<string[]> =>
      (await catalog.files(id, at)).map(({ key, addedIn }) => `${key}@${addedIn}`);
    expect(await keys("t1", 1)).toEqual(["k1@1"]);
    expect(await keys("t1", 2)).toEqual(["k1@1", "k2@2", "k3@2"]);
    expect(await keys("t1", 3)).toEqual([]);
    expect(await keys("t1")).toEqual([]);
    expect(await keys("t2", 3)).toEqual([]);
    expect(await keys("t2")).toEqual(["k4@4"]);

    // Receipts outlive the drop and belong to the table's id, not to its name.
    expect(await catalog.receipt("t1", "b-1")).toMatchObject({ snapshot: 1 });
    expect(await catalog.receipt("t2", "b-1")).toMatchObject({ snapshot: 4 });
    expect(await catalog.referencedKeys(["k1", "k4", "k5"])).toEqual(new Set(["k1", "k4"]));
    await expect(catalog.tables(5)).rejects.toThrow(NotFoundError);
    await expect(catalog.files("t1", -1)).rejects.toMatchObject({ code: "snapshot_not_found" });
    await expect(catalog.resolveSnapshot(1.5)).rejects.toMatchObject({ code: "snapshot_not_found" });
    expect(await catalog.resolveSnapshot(4)).toBe(4);
  });

  it("lists files with everything that was committed of them", async () => {
    await using catalog = await openCatalog();
    const file = dataFile("k", {
      bytes: 2 ** 53 - 1,
      rows: 7,
      footer: FOOTER,
      partition: ["5", 5n, 2n ** 64n, 0.1, null, true],
      columns: [
        statistics(1, { valueCount: 7, nullCount: 1, min: -(2n ** 63n), max: 2n ** 53n + 1n, storedBytes: 9 }),
        statistics(2, { min: Uint8Array.of(97), max: Uint8Array.of(255, 0), minExact: false, maxExact: false }),
      ],
    });
    const partitionBy = ["a", "b", "c", "d", "e", "f"];
    const table = create("t1", "events", {
      create: { name: "events", folder: "f", partitionBy, orderBy: ["id desc"] },
    });
    await catalog.commit(draft(table, append("t1", "b", [], { rows: 7, files: [file] })));
    expect(await catalog.files("t1")).toEqual([{ ...file, addedIn: 1, batchId: "b" }]);
    expect(await catalog.files("t1", 1, { statistics: false })).toEqual([
      { ...file, columns: [], addedIn: 1, batchId: "b" },
    ]);
    expect(await catalog.table("events")).toMatchObject({ partitionBy, orderBy: ["id desc"], bytes: 2 ** 53 - 1 });
  });

  it("pages through snapshots, batches and rejects", async () => {
    await using catalog = await openCatalog();
    const reject = (line: number) => ({ line, code: "bad", reason: "because", raw: "…" });
    await catalog.commit(draft(create("t1", "events")));
    await catalog.commit(draft(append("t1", "a", [], { rejects: [reject(4), reject(9)] }), append("t1", "b", [])));
    await catalog.commit(draft(append("t1", "c", [], { rejects: [reject(1)] })));
    await catalog.commit(draft(append("t1", "d", [])));

    const numbers = async (page?: { after?: number; limit?: number }): Promise<number[]> =>
      (await catalog.snapshots(page)).map(({ snapshot }) => snapshot);
    expect(await numbers({ limit: 3 })).toEqual([1, 2, 3]);
    expect(await numbers({ after: 3, limit: 3 })).toEqual([4]);

    const ids = async (options?: { at?: number; before?: number; limit?: number }): Promise<string[]> =>
      (await catalog.batches("t1", options)).map(({ batchId }) => batchId);
    expect(await ids()).toEqual(["d", "c", "a", "b"]);
    expect(await ids({ limit: 1 })).toEqual(["d"]);
    expect(await ids({ before: 4, limit: 1 })).toEqual(["c"]);
    // Both batches of snapshot 2, so that `before: 2` misses none.
    expect(await ids({ before: 3, limit: 1 })).toEqual(["a", "b"]);
    expect(await ids({ at: 2 })).toEqual(["a", "b"]);
    expect(await ids({ before: 2 })).toEqual([]);

    expect(await catalog.rejects("t1", { limit: 2 })).toEqual([
      { id: "2-0", table: "events", batchId: "a", snapshot: 2, ...reject(4) },
      { id: "2-1", table: "events", batchId: "a", snapshot: 2, ...reject(9) },
    ]);
    expect(await catalog.rejects("t1", { batchId: "c" })).toMatchObject([{ id: "3-0", line: 1 }]);
    expect(await catalog.rejects("t2")).toEqual([]);
  });
});

describe("names in SQL (D78)", () => {
  it.each([['a"; DROP TABLE b; --'], ["it's"], ["x-y.z"], ["ns.events"], ["__proto__"], ["%"], ["_"]])(
    "takes %j as a table name like any other",
    async (name) => {
      await using catalog = await openCatalog();
      await catalog.commit(draft(create("b", "b"), append("b", "b-1", ["b-1"])));
      await catalog.commit(draft(create("t1", name), append("t1", "'); --", ["'); COPY (SELECT 1) TO 'x"])));
      expect(await catalog.table(name)).toMatchObject({ id: "t1", name, rows: 1 });
      expect((await catalog.tables()).map((t) => t.name).sort()).toEqual(["b", name].sort());
      expect(await catalog.receipt("t1", "'); --")).toMatchObject({ table: name });
      expect(await catalog.referencedKeys(["'); COPY (SELECT 1) TO 'x"])).toHaveProperty("size", 1);
      expect(await catalog.table("c")).toBeUndefined();
    },
  );
});

describe("intents and the floor", () => {
  it("end with the commit that they staged for, which is stale without them", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "events")));
    const intent = await catalog.begin();
    expect(intent.base).toBe(1);
    expect(await catalog.intents()).toMatchObject([{ id: intent.id, base: 1, started: 1772366400123 }]);
    const staged = { ...draft(append("t1", "b", [])), intent: intent.id };
    expect(await catalog.commit(staged)).toMatchObject({ status: "committed" });
    expect(await catalog.intents()).toEqual([]);
    // A retry of the same batch is a duplicate, intent or not; another batch without its intent is stale.
    expect(await catalog.commit(staged)).toMatchObject({ status: "duplicate" });
    expect(await catalog.commit({ ...draft(append("t1", "c", [])), intent: intent.id })).toMatchObject({
      status: "stale",
      reason: "intent",
    });
    expect(await catalog.head()).toMatchObject({ snapshot: 2 });
  });

  it("stay when the commit is a duplicate or stale, until they are abandoned", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "events"), append("t1", "b", ["k"])));
    const { id } = await catalog.begin();
    await catalog.commit({ ...draft(append("t1", "b", ["k2"])), intent: id });
    await catalog.commit({ ...draft(append("t9", "b", ["k3"])), intent: id });
    expect(await catalog.intents()).toHaveLength(1);
    await catalog.abandon(id);
    await catalog.abandon(id);
    expect(await catalog.intents()).toEqual([]);
  });

  it("are ended by a floor above their base, and their files are stale", async () => {
    await using catalog = await openCatalog();
    const old = await catalog.begin();
    await catalog.commit(draft(create("t1", "events")));
    const young = await catalog.begin();
    expect((await catalog.intents(1)).map(({ id }) => id)).toEqual([old.id]);
    expect(await catalog.commit(draft({ op: "floor", floor: 1 }))).toMatchObject({ status: "committed" });
    expect(await catalog.head()).toMatchObject({ floor: 1 });
    expect((await catalog.intents()).map(({ id }) => id)).toEqual([young.id]);
    expect(await catalog.commit({ ...draft(append("t1", "b", ["k"])), intent: old.id })).toMatchObject({
      status: "stale",
      reason: "floor",
    });
    expect(await catalog.commit({ ...draft(append("t1", "b", [])), intent: old.id })).toMatchObject({
      status: "stale",
      reason: "intent",
    });
  });
});

describe("integer bounds", () => {
  const columns = {
    op: "schema" as const,
    table: "t1",
    version: 1,
    lastFieldId: 4,
    schema: {
      fields: [
        { id: 1, name: "i", type: { kind: "int32" as const }, nullable: true },
        { id: 2, name: "s", type: { kind: "string" as const }, nullable: true },
        { id: 3, name: "u", type: { kind: "uint64" as const }, nullable: true },
        { id: 4, name: "t", type: { kind: "timestamp" as const }, nullable: true },
      ],
    },
    create: { name: "events", folder: "f", partitionBy: [], orderBy: [] },
  };
  const file = (key: string, i: [bigint, bigint] | "nulls" | "unknown" | "none") =>
    dataFile(key, {
      columns: [
        ...(i === "none"
          ? []
          : [statistics(1, i === "nulls" ? { nullCount: 1 } : i === "unknown" ? {} : { min: i[0], max: i[1] })]),
        statistics(2, { min: Uint8Array.of(1) }),
        statistics(3, { min: 2n ** 63n, max: 2n ** 64n - 1n }),
        statistics(4, { min: 1n, max: 2n }),
      ],
    });
  const bounds = async (...files: ReturnType<typeof file>[]) => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(columns, append("t1", "b", [], { files, rows: files.length })));
    return catalog.integerBounds("t1");
  };
  const u = [3, { min: 2n ** 63n, max: 2n ** 64n - 1n }] as const;

  it("cover all live files", async () => {
    expect(await bounds(file("a", [-5n, 3n]), file("b", [2n, 40n]))).toEqual(new Map([[1, { min: -5n, max: 40n }], u]));
  });

  it("cover hot batches, also once they are folded", async () => {
    await using catalog = await openCatalog();
    const bounds = async () => (await catalog.integerBounds("t1")).get(1);
    const hotBatch = (id: string, min: bigint, max: bigint) =>
      hot("t1", id, 1, { hot: { data: Uint8Array.of(1), bounds: [{ fieldId: 1, min, max }] } });
    await catalog.commit(draft(columns, hotBatch("a", 5n, 6n)));
    expect(await bounds()).toEqual({ min: 5n, max: 6n });
    await catalog.commit(draft(append("t1", "b", [], { files: [file("b", [-1n, 2n])], rows: 1 })));
    await catalog.commit(draft(hotBatch("c", 256n, 256n)));
    expect(await bounds()).toEqual({ min: -1n, max: 256n });
    const [one, both] = [file("one", [5n, 6n]), file("both", [-1n, 100n])];
    await catalog.commit(draft(rearrange("t1", { removeHot: ["a"], addFiles: [one] })));
    expect(await bounds()).toEqual({ min: -1n, max: 256n });
    await catalog.commit(
      draft(rearrange("t1", { removeHot: ["c"], removeFiles: ["b"], addFiles: [{ ...both, rows: 2 }] })),
    );
    // They may come back by a rollback.
    expect(await bounds()).toEqual({ min: -1n, max: 256n });
  });

  it("are not disturbed by files with nulls alone, and absent where there is no value", async () => {
    expect(await bounds(file("a", [1n, 3n]), file("b", "nulls"))).toEqual(new Map([[1, { min: 1n, max: 3n }], u]));
    expect(await bounds(file("b", "nulls"))).toEqual(new Map([u]));
    expect(await bounds()).toEqual(new Map());
  });

  it("are unknown if one file does not tell them", async () => {
    expect(await bounds(file("a", [1n, 3n]), file("b", "unknown"))).toEqual(new Map([[1, undefined], u]));
    expect(await bounds(file("a", [1n, 3n]), file("b", "none"))).toEqual(new Map([[1, undefined], u]));
  });

  it("of a column that came later cover the files that have it, across a widening", async () => {
    await using catalog = await openCatalog();
    const later = (version: number, kind: "int32" | "int64") => ({
      op: "schema" as const,
      table: "t1",
      version,
      lastFieldId: 3,
      schema: { fields: [...SCHEMA.fields, { id: 3, name: "x", type: { kind }, nullable: true }] },
    });
    const of = (key: string, schemaVersion: number, value: bigint) =>
      dataFile(key, {
        schemaVersion,
        columns: [statistics(1, { min: 0n, max: 0n }), statistics(3, { min: value, max: value })],
      });
    const first = dataFile("a", { columns: [statistics(1, { min: 0n, max: 0n })] });
    await catalog.commit(draft(create("t1", "events"), append("t1", "a", [], { files: [first], rows: 1 })));
    await catalog.commit(
      draft(later(2, "int32"), append("t1", "b", [], { schemaVersion: 2, files: [of("b", 2, -7n)], rows: 1 })),
    );
    await catalog.commit(
      draft(later(3, "int64"), append("t1", "c", [], { schemaVersion: 3, files: [of("c", 3, 2n ** 62n)], rows: 1 })),
    );
    expect((await catalog.integerBounds("t1")).get(3)).toEqual({ min: -7n, max: 2n ** 62n });
  });
});

describe("opening", () => {
  it("creates once and finds it again, with the folders above", async () => {
    const path = join(tempFolder(), "deep", "er", "o'neil [x] ä.sqlite");
    const first = await SqliteCatalog.open({ path, lakeId: "lake-1" });
    await first.commit(draft(create("t1", "events"), append("t1", "b", ["k"])));
    await first[Symbol.asyncDispose]();
    expect(existsSync(`${path}-wal`)).toBe(false);
    await using second = await SqliteCatalog.open({ path, mode: "open" });
    expect(second.lakeId).toBe("lake-1");
    expect(second.catalogId).toBe(first.catalogId);
    expect(await second.table("events")).toMatchObject({ rows: 1 });
    await expect(SqliteCatalog.open({ path, lakeId: "lake-2" })).rejects.toMatchObject({ code: "wrong_lake" });
  });

  it.each(["open", "read"] as const)("in mode %s creates nothing", async (mode) => {
    const path = join(tempFolder(), "none", "c.sqlite");
    const opening = SqliteCatalog.open({ path, mode });
    await expect(opening).rejects.toThrow(NotFoundError);
    await expect(opening).rejects.toMatchObject({ code: "catalog_not_found" });
    expect(existsSync(join(path, ".."))).toBe(false);
    await expect(SqliteCatalog.open({ path: ":memory:", mode })).rejects.toThrow(NotFoundError);
  });

  it("for reading sees every commit and makes none", async () => {
    const path = join(tempFolder(), "c.sqlite");
    await using writer = await SqliteCatalog.open({ path });
    await using reader = await SqliteCatalog.open({ path, mode: "read" });
    await writer.commit(draft(create("t1", "events")));
    expect(await reader.head()).toMatchObject({ snapshot: 1 });
    await expect(reader.commit(draft(append("t1", "b", [])))).rejects.toMatchObject({ code: "catalog_read_only" });
    await expect(reader.begin()).rejects.toThrow(CatalogError);
    await writer.commit(draft(append("t1", "b", [])));
    expect(await reader.head()).toMatchObject({ snapshot: 2 });
  });

  it("once closed says so", async () => {
    const catalog = await openCatalog();
    await catalog[Symbol.asyncDispose]();
    await catalog[Symbol.asyncDispose]();
    await expect(catalog.head()).rejects.toMatchObject({ code: "catalog_closed" });
    await expect(catalog.commit(draft(create("t1", "t")))).rejects.toMatchObject({ code: "catalog_closed" });
  });

  it("takes its ids from the random source given", async () => {
    await using catalog = await SqliteCatalog.open({
      path: ":memory:",
      random: (size) => new Uint8Array(size).fill(7),
    });
    expect(catalog.lakeId).toBe("07".repeat(16));
  });
});
