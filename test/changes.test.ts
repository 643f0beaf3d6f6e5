/** Feeds, durable cursors, tags, rollbacks and sources, on local and on shared lakes. */

import { setImmediate } from "node:timers/promises";
import { MemoryStore, StoreWrapper } from "@eider/storage";
import { type AppendChange, type Change, Lake, type Table } from "eider";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "./support/folder.js";

/** A view that its lake may close: the store itself stays. */
class View extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

const KINDS = ["local", "shared"] as const;
type Kind = (typeof KINDS)[number];

/** A lake that can be opened again and again; a shared one each time by a new host. */
function place(kind: Kind): () => Promise<Lake> {
  if (kind === "local") {
    const folder = temporaryFolder();
    return () => Lake.open(folder);
  }
  const store = new MemoryStore();
  return () => Lake.open({ store: new View(store) }, { cacheDir: temporaryFolder(), stalenessMs: 0 });
}

async function all(changes: AsyncIterable<Change>): Promise<string[]> {
  const lines: string[] = [];
  for await (const change of changes) lines.push(await line(change));
  return lines;
}

async function line(change: Change): Promise<string> {
  if (change.kind === "rollback") return `${change.position} back to ${change.to}`;
  const rows = await change.rows<{ id: bigint }>();
  return `${change.position} ${change.batchId}: ${rows.map(({ id }) => id).join()}`;
}

const ids = async (lake: Lake, at?: number | string): Promise<bigint[]> =>
  (await lake.with(at === undefined ? {} : { at }).sql<{ id: bigint }>("SELECT id FROM t ORDER BY id")).map(
    ({ id }) => id,
  );

describe.each(KINDS)("%s lake", (kind) => {
  it("tells each batch once, in order, with its own rows", async () => {
    const open = place(kind);
    await using lake = await open();
    const t = lake.table("t");
    await t.append([{ id: 1 }, { id: 2 }], { batchId: "z" });
    await lake.table("other").append([{ id: 9 }]);
    await t.append([{ id: 3, more: "x" }], { batchId: "a", meta: { by: "me" } });
    await t.append([{ id: 3, more: "x" }], { batchId: "a" });
    expect(await all(t.changes())).toEqual(["1 z: 1,2", "3 a: 3"]);
    expect(await all(t.changes({ after: "1" }))).toEqual(["3 a: 3"]);
    expect(await all(t.changes({ after: "2" }))).toEqual(["3 a: 3"]);
    expect(await all(t.changes({ after: "3" }))).toEqual([]);
    expect(await all(t.changes({ until: 1 }))).toEqual(["1 z: 1,2"]);
    const [first, second] = (await collect(t)) as AppendChange[];
    // As they were committed: without the column that came later.
    expect(await first!.rows()).toEqual([{ id: 1n }, { id: 2n }]);
    expect(await second!.rows({ values: "json" })).toEqual([{ id: 3, more: "x" }]);
    expect(second).toMatchObject({ meta: { by: "me" }, receipt: await t.receipt("a") });
    expect((await second!.rows().arrow()).numRows).toBe(1);
  });

  it("follows what is committed while it runs, by whatever process, and ends with the table", async () => {
    const open = place(kind);
    await using lake = await open();
    await using other = await open();
    await other.table("t").append([{ id: 0 }], { batchId: "b0" });
    const seen: string[] = [];
    const following = (async () => {
      for await (const change of lake.table("t").changes({ follow: true, pollMs: 1 })) seen.push(await line(change));
    })();
    for (let i = 1; i <= 20; i++) await (i % 2 ? other : lake).table("t").append([{ id: i }], { batchId: `b${i}` });
    await setImmediate();
    await lake.table("t").drop();
    await following;
    expect(seen).toEqual(Array.from({ length: 21 }, (_, i) => `${i + 1} b${i}: ${i}`));
  });

  it("does not take a table for another one that had its name", async () => {
    await using lake = await place(kind)();
    const t = lake.table("t");
    await t.append([{ id: 1 }], { batchId: "a" });
    await t.append([{ id: 2 }], { batchId: "b" });
    await t.drop();
    await t.append([{ id: 3 }], { batchId: "c" });
    for (const follow of [false, true])
      await expect(all(t.changes({ after: "1", follow }))).rejects.toMatchObject({ code: "table_replaced" });
    // From before all of them, and from where there was none.
    for (const after of ["0", "3"]) expect(await all(t.changes({ after }))).toEqual(["4 c: 3"]);
    expect(await all(t.changes({ after: "4" }))).toEqual([]);
  });

  it("stops waiting when its signal does, and when the lake is closed", async () => {
    const lake = await place(kind)();
    const t = lake.table("t");
    await t.append([{ id: 1 }]);
    const abort = new AbortController();
    const seen = collect(t, { follow: true, pollMs: 600_000, signal: abort.signal }, () =>
      abort.abort(new Error("enough")),
    );
    await expect(seen).rejects.toThrow("enough");
    const closed = collect(t, { follow: true, pollMs: 1 });
    closed.catch(() => {});
    await lake.close();
    await expect(closed).rejects.toMatchObject({ code: "lake_closed" });
  });

  it("of a table that is not there is an error, unless it is waited for", async () => {
    await using lake = await place(kind)();
    await expect(all(lake.table("t").changes())).rejects.toMatchObject({ code: "table_not_found" });
    await lake.table("u").append([{ id: 1 }]);
    for (const follow of [false, true])
      await expect(all(lake.table("u").changes({ after: "2", follow }))).rejects.toMatchObject({
        code: "bad_position",
      });
    expect(await all(lake.table("u").changes({ after: "1" }))).toEqual([]);
    await expect(all(lake.table("t").changes({ after: "x" }))).rejects.toMatchObject({ code: "bad_position" });
    expect(() => lake.table("t").changes({ form: "1" } as object)).toThrow(/has no option "form"/);
  });

  it("D59: an aggregate that is derived from a feed has each row once, wherever its consumer is restarted", async () => {
    const open = place(kind);
    {
      await using lake = await open();
      for (const [i, user] of ["u", "v", "u"].entries()) {
        await lake.table("clicks").append([{ user, minute: 0 }], { batchId: `c${i}` });
      }
    }
    // Killed before, and after, every single commit of its own: it never gets further than one change.
    for (let restart = 0; restart < 8; restart++) {
      await using lake = await open();
      const cursor = lake.cursor("clicks-per-minute");
      const from = await cursor.position();
      for await (const change of lake.table("clicks").changes({ after: from })) {
        if (change.kind !== "append") continue;
        if (restart % 2 === 0) break; // before the append
        const rows = await change.rows({ values: "json" });
        const derived = () =>
          lake.table("derived").append(rows, {
            batchId: `derived/${change.position}`,
            cursor: { name: cursor.name, from, to: change.position },
          });
        expect((await derived()).status).toBe("committed");
        // The answer was lost: the same again.
        expect((await derived()).status).toBe("duplicate");
        break;
      }
    }
    await using lake = await open();
    expect(await lake.sql("SELECT count(*) AS n, count(DISTINCT user) AS users FROM derived")).toEqual([
      { n: 3n, users: 2n },
    ]);
    expect(await lake.cursor("clicks-per-minute").position()).toBe("3");
  });

  it("D59: a consumer that saves its place by itself, and is restarted before it has, appends nothing twice", async () => {
    const open = place(kind);
    {
      await using lake = await open();
      const clicks = [
        ["u", 5],
        ["v", 30],
        ["u", 59],
        ["v", 61],
      ] as const;
      await lake.table("clicks").append(
        clicks.slice(0, 1).map(([user, second]) => ({ user, second })),
        { batchId: "1" },
      );
      await lake.table("clicks").append(
        clicks.slice(1).map(([user, second]) => ({ user, second })),
        { batchId: "2" },
      );
    }
    const statuses: string[] = [];
    // Restarted after each derived append, and once more after each place that is saved.
    for (let restart = 0; restart < 4; restart++) {
      await using lake = await open();
      const cursor = lake.cursor("minutes");
      const from = await cursor.position();
      for await (const change of lake.table("clicks").changes({ after: from })) {
        if (change.kind !== "append") continue;
        // All windows as of this change: what is derived again is the same, under the same batch id.
        const windows = await lake
          .with({ at: Number(change.position), values: "json" })
          .sql(`SELECT second // 60 AS minute, count(*) AS n, count(DISTINCT user) AS users FROM clicks
            GROUP BY ALL ORDER BY ALL`);
        const rows = windows.map((window) => ({ ...window, upTo: Number(change.position) }));
        statuses.push((await lake.table("derived").append(rows, { batchId: `minutes/${change.position}` })).status);
        if (restart % 2 === 0) break; // The place is lost.
        await cursor.advance({ from, to: change.position });
        break;
      }
    }
    expect(statuses).toEqual(["committed", "duplicate", "committed", "duplicate"]);
    await using lake = await open();
    expect(await lake.sql("SELECT minute, n, users FROM derived WHERE upTo = 2 ORDER BY minute")).toEqual([
      { minute: 0n, n: 3n, users: 2n },
      { minute: 1n, n: 1n, users: 1n },
    ]);
    expect(await lake.sql("SELECT count(*) AS n FROM derived WHERE upTo = 1")).toEqual([{ n: 1n }]);
  });

  it("lets one of two consumers with the same cursor through, and tells the other", async () => {
    const open = place(kind);
    await using one = await open();
    await using two = await open();
    await one.table("t").append([{ id: 1 }], { batchId: "b" });
    const move = { name: "c", from: "0", to: "1" };
    await one.table("out").append([{ id: 1 }], { batchId: "x", cursor: move });
    await expect(two.table("out").append([{ id: 1 }], { batchId: "y", cursor: move })).rejects.toMatchObject({
      code: "cursor_moved",
    });
    expect(await two.table("out").receipt("y")).toBeUndefined();
    expect(await two.sql("SELECT count(*) AS n FROM out")).toEqual([{ n: 1n }]);
  });

  it("moves cursors by themselves, and forgets them", async () => {
    await using lake = await place(kind)();
    await lake.table("t").append([{ id: 1 }]);
    const cursor = lake.cursor("c");
    await cursor.advance({ from: "0", to: "1" });
    await cursor.advance({ from: "0", to: "1" }); // its answer was lost
    await expect(cursor.advance({ from: "0", to: "2" })).rejects.toMatchObject({ code: "cursor_moved" });
    await expect(cursor.advance({ from: "1", to: "7" })).rejects.toMatchObject({ code: "bad_position" });
    expect(await lake.cursors()).toEqual([{ name: "c", position: "1", movedIn: 2 }]);
    await cursor.end();
    expect(await lake.cursors()).toEqual([]);
    expect(await cursor.position()).toBe("0");
  });

  it("reads snapshots by their tags", async () => {
    const open = place(kind);
    await using lake = await open();
    const t = lake.table("t");
    await t.append([{ id: 1 }]);
    expect(await lake.tag("before it's wider")).toEqual({ name: "before it's wider", snapshot: 1 });
    await t.append([{ id: 2, more: 1 }]);
    await using other = await open();
    expect(await ids(other, "before it's wider")).toEqual([1n]);
    expect(
      await other.sql(
        "SELECT (SELECT count(*) FROM t) AS now, count(*) AS n FROM t AT (VERSION => 'before it''s wider')",
      ),
    ).toEqual([{ now: 2n, n: 1n }]);
    expect((await other.table("t").describe({ at: "before it's wider" })).rows).toBe(1);
    await lake.tag("before it's wider", { at: 3 });
    expect(await ids(other, "before it's wider")).toEqual([1n, 2n]);
    await other.untag("before it's wider");
    await expect(ids(lake, "before it's wider")).rejects.toMatchObject({ code: "tag_not_found" });
    await expect(lake.untag("x")).rejects.toMatchObject({ code: "tag_not_found" });
    await expect(lake.tag("2")).rejects.toMatchObject({ code: "bad_name" });
    await expect(lake.sql("FROM t AT (TIMESTAMP => 'x')")).rejects.toMatchObject({ code: "bad_snapshot" });
    expect(await lake.tags()).toEqual([]);
  });

  it("rolls a table back, rows and columns, and forward again", async () => {
    await using lake = await place(kind)();
    const t = lake.table("t");
    await t.append([{ id: 1 }], { batchId: "a" });
    await t.append([{ id: 2, more: "x" }], { batchId: "b" });
    expect(await t.rollback({ to: 1 })).toEqual({ snapshot: 3 });
    expect(await lake.sql("FROM t")).toEqual([{ id: 1n }]);
    expect(await ids(lake, 2)).toEqual([1n, 2n]);
    // What was rolled back is known all the same, and the ids of its columns are taken.
    expect((await t.append([{ id: 2, more: "x" }], { batchId: "b" })).status).toBe("duplicate");
    await t.append([{ id: 3, more: 0.5 }], { batchId: "c" });
    expect(await lake.sql("FROM t ORDER BY id")).toEqual([
      { id: 1n, more: null },
      { id: 3n, more: 0.5 },
    ]);
    await t.rollback({ to: 2 });
    expect(await lake.sql("FROM t WHERE id > 1")).toEqual([{ id: 2n, more: "x" }]);
    expect(await t.rollback({ to: 5 })).toEqual({ snapshot: 5 });
    expect(await all(t.changes())).toEqual(["1 a: 1", "2 b: 2", "3 back to 1", "4 c: 3", "5 back to 2"]);
    expect(await t.rollback({ to: 4 })).toEqual({ snapshot: 6 });
    expect(await lake.sql("FROM t WHERE more > 0.25")).toEqual([{ id: 3n, more: 0.5 }]);
    expect((await lake.verify()).ok).toBe(true);
    await expect(lake.table("no").rollback({ to: 1 })).rejects.toMatchObject({ code: "table_not_found" });
  });

  it("rolls a lake back, and says which table does not come back", async () => {
    await using lake = await place(kind)();
    await lake.table("t").append([{ id: 1 }]);
    await lake.table("u").append([{ id: 1 }]);
    await lake.tag("good");
    await lake.table("t").append([{ id: 2 }]);
    await lake.table("new").append([{ id: 1 }]);
    expect(await lake.rollback({ to: "good" })).toEqual({ snapshot: 6 });
    expect((await lake.tables()).map(({ name, rows }) => [name, rows])).toEqual([
      ["t", 1],
      ["u", 1],
    ]);
    await lake.table("u").drop();
    await expect(lake.rollback({ to: "good" })).rejects.toMatchObject({ code: "rollback_dropped", subject: "u" });
  });

  it("takes the parts of a source once, in order, and remembers only the last", async () => {
    await using lake = await place(kind)();
    const t = lake.table("t");
    const part = (sequence: number | bigint, first?: number, id = 1) =>
      t.append([{ id }], { batchId: { source: "kafka-0", sequence, ...(first !== undefined && { first }) } });
    expect((await part(141n, 100)).receipt.batchId).toBe("kafka-0#100-141");
    expect(await part(150, 142)).toMatchObject({ status: "committed" });
    expect(await part(141, 100)).toMatchObject({ status: "duplicate", receipt: { batchId: "kafka-0#142-150" } });
    expect(await part(150, 142)).toMatchObject({ status: "duplicate" });
    await expect(part(150, 142, 2)).rejects.toMatchObject({ code: "batch_conflict" });
    await expect(part(160, 150)).rejects.toMatchObject({ code: "sequence_overlap" });
    await expect(part(160, 152)).rejects.toMatchObject({ code: "sequence_gap", retryable: true });
    await expect(part(-1)).rejects.toMatchObject({ code: "bad_batch_id" });
    expect((await t.batches()).map(({ batchId }) => batchId)).toEqual(["kafka-0#142-150"]);
    expect(await t.receipt({ source: "kafka-0", sequence: 150, first: 142 })).toMatchObject({ snapshot: 2 });
    expect(await t.receipt({ source: "kafka-0", sequence: 151 })).toBeUndefined();
    expect(await all(t.changes())).toEqual(["1 kafka-0#100-141: 1", "2 kafka-0#142-150: 1"]);
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 2n }]);
  });
});

async function collect(table: Table, options = {}, onChange = (_: Change): void => {}): Promise<Change[]> {
  const changes: Change[] = [];
  for await (const change of table.changes(options)) {
    changes.push(change);
    onChange(change);
  }
  return changes;
}
