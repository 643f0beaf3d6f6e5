/** Old snapshots end, and in time what only they have shown; nothing else does. */

import { MemoryStore } from "@eider/storage";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/support/folder.js";
import { Lake } from "../src/lake.js";
import { appendHot } from "./support/hot-rows.js";
import { type Opened, opened } from "./support/lake-of-hot-rows.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const EXPIRED = { code: "snapshot_expired" };

/** Rows `1`, `2` and `3` of three batches, folded: snapshots 2 to 5, an hour between them. */
async function folded(): Promise<Opened> {
  const lake = await opened();
  for (const [i, batch] of ["a", "b", "c"].entries()) {
    await lake.append({ [batch]: [{ id: i + 1 }] });
    lake.now += HOUR_MS;
  }
  await lake.lake.maintain({ fold: "all" });
  lake.now += HOUR_MS;
  return lake;
}

async function hotRows({ catalog }: Opened): Promise<number> {
  // Of all snapshots that can still be read.
  const { id } = (await catalog.table("t"))!;
  const found = new Set<string>();
  const { snapshot } = await catalog.head();
  for (let at = (await catalog.expiry()).purged; at <= snapshot; at++) {
    for (const { batchId } of await catalog.hotBatches(id, { at })) found.add(batchId);
  }
  return found.size;
}

describe("snapshots that end", () => {
  it("are none unless that is asked for", async () => {
    await using lake = await folded();
    lake.now += 1000 * DAY_MS;
    expect(await lake.lake.maintain()).toMatchObject({ oldestSnapshot: 1, deleted: [] });
    expect(await lake.rows(2)).toEqual([{ id: 1, v: null }]);
  });

  it("by age and number; what is kept is what it was", async () => {
    await using lake = await folded();
    const retain = { snapshots: 2, ageMs: 2 * HOUR_MS };
    // Snapshot 3 is of three hours ago and no longer among the newest two; 4 is just two hours old.
    expect(await lake.lake.maintain({ retain })).toMatchObject({ oldestSnapshot: 4, deleted: [] });
    await expect(lake.rows(3)).rejects.toMatchObject(EXPIRED);
    await expect(lake.lake.sql("FROM t AT (VERSION => 3)")).rejects.toMatchObject(EXPIRED);
    await expect(lake.lake.with({ at: new Date(lake.now - 4 * HOUR_MS) }).sql("FROM t")).rejects.toMatchObject(EXPIRED);
    await expect(lake.lake.rollback({ to: 3 })).rejects.toMatchObject(EXPIRED);
    await expect(lake.lake.tag("v", { at: 3 })).rejects.toMatchObject(EXPIRED);
    expect(await lake.rows(4)).toHaveLength(3);
    expect(await lake.rows()).toHaveLength(3);
    expect(await lake.lake.table("t").receipt("a")).toMatchObject({ snapshot: 2, rows: 1 });
    await expect(appendHot(lake.catalog, "t", { a: [{ id: 1 }] })).rejects.toThrow("duplicate");
    // Once more changes nothing.
    const { snapshot } = await lake.catalog.head();
    expect(await lake.lake.maintain({ retain })).toMatchObject({ oldestSnapshot: 4 });
    expect((await lake.catalog.head()).snapshot).toBe(snapshot);
  });

  it("are not all because nothing was said of what to keep", async () => {
    await using lake = await folded();
    const nothing = async () => lake.lake.maintain({ retain: {} });
    await expect(nothing()).rejects.toMatchObject({ code: "bad_option", subject: "retain" });
    expect(await lake.rows(2)).toHaveLength(1);
  });

  it("are not those of upkeep: run again and again, it ends nothing more", async () => {
    await using lake = await folded();
    const oldest: number[] = [];
    for (let run = 0; run < 5; run++) {
      lake.now += 3 * DAY_MS;
      oldest.push((await lake.lake.maintain({ retain: { snapshots: 2, ageMs: DAY_MS } })).oldestSnapshot);
    }
    expect(oldest).toEqual([4, 4, 4, 4, 4]);
    // The fold is 5; the first run ended snapshots, the second let go of what they alone had shown.
    expect((await lake.catalog.head()).snapshot).toBe(7);
    expect(await lake.rows(4)).toHaveLength(3);
  });

  it("leave their rows and files to queries that run, for a day", async () => {
    await using lake = await folded();
    const { lake: own, catalog } = lake;
    await own.table("t").append([{ id: 4 }]);
    const [file] = await own.table("t").files();
    await own.rollback({ to: 4 });
    expect(await own.maintain({ retain: { snapshots: 1 } })).toMatchObject({ oldestSnapshot: 7, deleted: [] });
    // As a query does that has begun before.
    expect(await catalog.hotBatches((await catalog.table("t"))!.id, { at: 3 })).toHaveLength(2);
    lake.now += DAY_MS - 1;
    expect(await own.maintain()).toMatchObject({ deleted: [] });
    lake.now += 1;
    const { deleted, bytes } = await own.maintain();
    expect(deleted).toHaveLength(2);
    expect(deleted).toContain(file!.key);
    expect(bytes).toBeGreaterThan(file!.bytes);
    await expect(catalog.hotBatches((await catalog.table("t"))!.id, { at: 3 })).rejects.toMatchObject(EXPIRED);
    expect(await lake.rows()).toHaveLength(3);
    expect(await own.verify()).toMatchObject({ ok: true, findings: [] });
  });

  it("all at once: what is left is the table as plain files", async () => {
    await using lake = await folded();
    await lake.append({ d: [{ id: 4 }] });
    const before = await hotRows(lake);
    expect(before).toBe(4);
    const { folded: folds, deleted } = await lake.lake.maintain({ retain: "none" });
    expect(folds).toMatchObject({ batches: 1, files: 1 });
    expect(deleted).toEqual([]);
    expect(await hotRows(lake)).toBe(0);
    expect(await lake.keys()).toEqual((await lake.lake.table("t").files()).map(({ key }) => key).sort());
    expect(await lake.rows()).toHaveLength(4);
    await lake.lake.table("t").drop();
    expect((await lake.lake.maintain({ retain: "none" })).deleted).toHaveLength(2);
    expect(await lake.keys()).toEqual([]);
  });

  it("stay where they have a tag, and as long", async () => {
    await using lake = await folded();
    const { lake: own } = lake;
    await own.tag("audit", { at: 3 });
    await own.maintain({ retain: "none" });
    expect(await lake.rows(3)).toHaveLength(2);
    expect(await own.with({ at: "audit", values: "json" }).sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2 }]);
    await expect(lake.rows(2)).rejects.toMatchObject(EXPIRED);
    await own.tag("other", { at: 3 });
    await own.untag("audit");
    await own.maintain({ retain: "none" });
    expect(await lake.rows(3)).toHaveLength(2);
    await own.untag("other");
    await expect(lake.rows(3)).rejects.toMatchObject(EXPIRED);
    await own.maintain({ retain: "none" });
    const { id } = (await lake.catalog.table("t"))!;
    await expect(lake.catalog.hotBatches(id, { at: 3 })).rejects.toMatchObject(EXPIRED);
  });

  it("can be rolled back to by their tag", async () => {
    await using lake = await folded();
    const { lake: own } = lake;
    await own.tag("audit", { at: 3 });
    await own.maintain({ retain: "none" });
    await own.table("t").rollback({ to: "audit" });
    expect(await lake.rows()).toEqual(await lake.rows(3));
    await own.table("t").append([{ id: 4 }]);
    await own.maintain({ retain: "none" });
    await own.rollback({ to: "audit" });
    expect(await lake.rows()).toEqual(await lake.rows(3));
    await expect(own.table("t").rollback({ to: 2 })).rejects.toMatchObject(EXPIRED);
  });

  it("stay for a cursor that has still to read them, up to an age", async () => {
    await using lake = await folded();
    const { lake: own } = lake;
    const table = own.table("t");
    const cursor = own.cursor("c");
    await cursor.advance({ from: "0", to: "2" });
    const retain = { snapshots: 1 };
    expect(await own.maintain({ retain })).toMatchObject({ oldestSnapshot: 2 });
    const read = async (after: string): Promise<unknown[]> => {
      const rows: unknown[] = [];
      for await (const change of table.changes({ after })) {
        if (change.kind === "append") rows.push(...(await change.rows({ values: "json" })));
      }
      return rows;
    };
    expect(await read("2")).toEqual([
      { id: 2, v: null },
      { id: 3, v: null },
    ]);
    await expect(read("0")).rejects.toMatchObject({ code: "cursor_expired" });
    lake.now += 7 * DAY_MS + 1;
    expect((await own.maintain({ retain })).oldestSnapshot).toBeGreaterThan(5);
    await expect(read("2")).rejects.toMatchObject({ code: "cursor_expired" });
  });

  it("leave files readable whose columns were widened since, also to who opens the lake later", async () => {
    const root = temporaryFolder();
    {
      await using lake = await Lake.open(root, { inlineBytes: 0 });
      await lake.table("t").append([{ id: 1, v: 1 }]);
      await lake.table("t").append([{ id: 2, v: 1.5, w: "x" }]);
      await lake.maintain({ retain: "none" });
      expect(await lake.sql("SELECT id FROM t WHERE v > 1.2")).toEqual([{ id: 2n }]);
    }
    await using lake = await Lake.open(root, { mode: "read" });
    expect(await lake.sql("SELECT id, w FROM t WHERE v > 0.5 ORDER BY id")).toEqual([
      { id: 1n, w: null },
      { id: 2n, w: "x" },
    ]);
    await expect(lake.with({ at: 1 }).sql("FROM t")).rejects.toMatchObject(EXPIRED);
  });

  it("have ended in a copy of the lake, too", async () => {
    await using lake = await folded();
    await lake.lake.table("t").append([{ id: 4 }]);
    await lake.lake.rollback({ to: 5 });
    await lake.lake.maintain({ retain: "none" });
    const store = new MemoryStore();
    expect(await lake.lake.copyTo(store)).toMatchObject({ files: 1 });
    await using copy = await Lake.open({ store });
    expect(await copy.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 3n }]);
    await expect(copy.with({ at: 3 }).sql("FROM t")).rejects.toMatchObject(EXPIRED);
    expect(await copy.verify()).toMatchObject({ ok: true, findings: [] });
  });
});
