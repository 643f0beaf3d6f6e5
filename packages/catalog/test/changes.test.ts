/** Feeds, cursors, tags, sources and rollbacks in SQLite. */

import { describe, expect, it } from "vitest";
import type { Operation } from "../src/catalog.js";
import { parsePosition } from "../src/position.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { append, create, dataFile, draft, FOOTER, part, SCHEMA, statistics } from "./fixtures.js";

const openCatalog = (path = ":memory:"): Promise<SqliteCatalog> =>
  SqliteCatalog.open({ path, clock: () => Date.UTC(2026, 2, 1) });

const short = (change: { kind: string; position: string; receipt?: { batchId: string }; to?: number }): string =>
  `${change.position} ${change.kind} ${change.receipt?.batchId ?? change.to}`;

describe("changes", () => {
  const lake = async (): Promise<SqliteCatalog> => {
    const catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "a"), append("t1", "z", ["k1"]), append("t1", "b", ["k2"]))); // 1
    await catalog.commit(draft(create("t2", "b"), append("t2", "x", []))); // 2
    await catalog.commit({ ...draft(append("t1", "c", [])), meta: { by: "me" } }); // 3
    await catalog.commit(draft({ op: "rollback", table: "t1", to: 1 }, append("t1", "d", ["k3"]))); // 4
    await catalog.commit(draft(part("t1", "s", 1))); // 5
    await catalog.commit(draft(part("t1", "s", 2))); // 6
    return catalog;
  };
  const ALL = [
    "1.1 append z",
    "1 append b",
    "3 append c",
    "4.1 rollback 1",
    "4 append d",
    "5 append s#1",
    "6 append s#2",
  ];

  it("come in order of commit, whatever they are called, without gap or repetition from every position", async () => {
    await using catalog = await lake();
    const all = await catalog.changes("t1", "0");
    expect(all.map(short)).toEqual(ALL);
    expect(all[2]).toEqual({
      kind: "append",
      position: "3",
      meta: { by: "me" },
      receipt: {
        table: "a",
        batchId: "c",
        snapshot: 3,
        rows: 0,
        rejected: 0,
        contentHash: "rows:c",
        committedAt: "2026-03-01T00:00:00.000Z",
      },
    });
    for (const [i, { position }] of all.entries()) {
      expect((await catalog.changes("t1", position)).map(short)).toEqual(ALL.slice(i + 1));
    }
    expect((await catalog.changes("t1", "2")).map(short)).toEqual(ALL.slice(2));
    expect((await catalog.changes("t2", "0")).map(short)).toEqual(["2 append x"]);
  });

  it("come in pages, and up to a snapshot", async () => {
    await using catalog = await lake();
    expect((await catalog.changes("t1", "1.1", { limit: 2 })).map(short)).toEqual(ALL.slice(1, 3));
    expect((await catalog.changes("t1", "0", { until: 3 })).map(short)).toEqual(ALL.slice(0, 3));
  });

  it("are found behind snapshots that changed no rows", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "a"), create("t2", "b")));
    await catalog.commit(draft(append("t2", "x", [])));
    await catalog.commit(draft(append("t1", "x", [])));
    expect((await catalog.changes("t1", "0", { limit: 1 })).map(short)).toEqual(["3 append x"]);
  });

  it("that are kept no longer are an error, never skipped", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "a"), append("t1", "a", []), append("t1", "b", [])));
    for (const id of ["c", "d"]) await catalog.commit(draft(append("t1", id, [])));
    await catalog.commit(draft({ op: "expire", before: 3, unusedSince: 0 }, create("t2", "b"), append("t2", "x", [])));
    expect((await catalog.changes("t1", "2")).map(short)).toEqual(["3 append d"]);
    // A table that came later has lost nothing.
    expect((await catalog.changes("t2", "0")).map(short)).toEqual(["4 append x"]);
    for (const position of ["0", "1", "2.1", "1.1"]) {
      await expect(catalog.changes("t1", position)).rejects.toMatchObject({ code: "cursor_expired" });
    }
  });

  it.each(["", "-1", "1.0", "01", "1.", "0.1", "x", "1.1.1", "9007199254740993"])("%j is no position", (text) => {
    expect(() => parsePosition(text)).toThrow(/is no position/);
  });
});

describe("a rollback", () => {
  const stats = statistics(1, { min: 5n, max: 6n });
  const files = (key: string) => [dataFile(key, { columns: [stats], footer: FOOTER })];

  it("brings files back with their statistics, and can be rolled back itself", async () => {
    await using catalog = await openCatalog();
    await catalog.commit(draft(create("t1", "a"), append("t1", "a", ["k1"]))); // 1
    await catalog.commit(draft(append("t1", "b", ["k2"], { files: files("k2") }))); // 2
    await catalog.commit(draft({ op: "rollback", table: "t1", to: 1 })); // 3
    await catalog.commit(draft(append("t1", "c", ["k3"]))); // 4
    await catalog.commit(draft({ op: "rollback", table: "t1", to: 2 })); // 5
    const keysAt = async (at: number): Promise<string[]> => (await catalog.files("t1", at)).map(({ key }) => key);
    expect(await Promise.all([1, 2, 3, 4, 5].map(keysAt))).toEqual([
      ["k1"],
      ["k1", "k2"],
      ["k1"],
      ["k1", "k3"],
      ["k1", "k2"],
    ]);
    expect((await catalog.files("t1"))[1]).toMatchObject({
      key: "k2",
      batchId: "b",
      addedIn: 5,
      columns: [stats],
      footer: FOOTER,
    });
    expect((await catalog.tables()).map(({ rows, files: n, bytes }) => [rows, n, bytes])).toEqual([[2, 2, 200]]);
    // One file of the two does not tell its bounds.
    expect((await catalog.integerBounds("t1")).get(1)).toBeUndefined();
    expect(await catalog.commit(draft(append("t1", "c", [])))).toMatchObject({ status: "duplicate" });
    await expect(catalog.commit(draft(append("t1", "d", ["k2"])))).rejects.toMatchObject({ code: "bad_file" });
  });

  it("never gives a field id out again", async () => {
    await using catalog = await openCatalog();
    const wider: Operation = {
      op: "schema",
      table: "t1",
      version: 2,
      schema: { fields: [...SCHEMA.fields, { id: 3, name: "x", type: { kind: "float64" }, nullable: true }] },
      lastFieldId: 3,
    };
    await catalog.commit(draft(create("t1", "a")));
    await catalog.commit(draft(wider));
    const back: Operation = { op: "schema", table: "t1", version: 3, schema: SCHEMA, lastFieldId: 2 };
    const rollback: Operation = { op: "rollback", table: "t1", to: 1 };
    await expect(catalog.commit(draft(back, rollback))).rejects.toMatchObject({ code: "bad_schema" });
    await catalog.commit(draft({ ...back, lastFieldId: 3 }, rollback));
    expect(await catalog.table("a")).toMatchObject({ schema: SCHEMA, schemaVersion: 3, lastFieldId: 3 });
  });
});

it("a source leaves one receipt, however many parts it has", async () => {
  await using catalog = await openCatalog();
  await catalog.commit(draft(create("t1", "a"), append("t1", "plain", [])));
  for (let i = 0; i < 50; i++) await catalog.commit(draft(part("t1", "s", 10 * i, 10 * i + 9)));
  expect((await catalog.batches("t1")).map(({ batchId }) => batchId)).toEqual(["s#490-499", "plain"]);
  expect(await catalog.sourceMark("t1", "s")).toMatchObject({ last: "499", receipt: { snapshot: 51 } });
  expect(await catalog.commit(draft(part("t1", "s", 20, 29)))).toMatchObject({
    status: "duplicate",
    receipts: [{ batchId: "s#490-499" }],
  });
});

it("tags and cursors are found by name, and end", async () => {
  await using catalog = await openCatalog();
  await catalog.commit(draft(create("t1", "a")));
  await catalog.commit(draft({ op: "tag", name: "v1", snapshot: 1 }, { op: "cursor", name: "c", from: "0", to: "1" }));
  expect(await catalog.resolveSnapshot({ tag: "v1" })).toBe(1);
  expect(await catalog.cursor("c")).toEqual({ name: "c", position: "1", movedIn: 2 });
  expect((await catalog.snapshots({ after: 1 }))[0]?.operations).toEqual([
    { op: "tag", name: "v1" },
    { op: "cursor", name: "c" },
  ]);
  await catalog.commit(draft({ op: "tag", name: "v1" }, { op: "cursor", name: "c", from: "1" }));
  await expect(catalog.resolveSnapshot({ tag: "v1" })).rejects.toMatchObject({ code: "tag_not_found" });
  expect(await catalog.cursor("c")).toBeUndefined();
  await expect(catalog.commit(draft({ op: "tag", name: "1st", snapshot: 1 }))).rejects.toMatchObject({
    code: "bad_name",
  });
});
