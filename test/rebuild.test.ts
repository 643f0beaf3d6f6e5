/** A local lake whose catalog is gone, made again from what its folder has besides. */

import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import { runChild } from "./support/child.js";
import { temporaryFolder } from "./support/folder.js";

/** Everything that can be asked of a lake. */
async function answersOf(where: string): Promise<unknown> {
  await using lake = await Lake.open(where, { mode: "open" });
  const tables = await lake.tables();
  const snapshots = await lake.snapshots();
  return {
    id: lake.id,
    tables,
    snapshots,
    tags: await lake.tags(),
    cursors: await lake.cursors(),
    now: await Promise.all(tables.map(({ name }) => lake.sql(`SELECT * FROM ${name} ORDER BY ALL`))),
    before: await Promise.all(
      snapshots.map(async ({ snapshot: at }) =>
        Promise.all(
          (await lake.tables({ at })).map(({ name }) => lake.with({ at }).sql(`SELECT count(*) FROM ${name}`)),
        ),
      ),
    ),
    receipts: await Promise.all(tables.map(({ name }) => lake.table(name).batches())),
    rejects: await Promise.all(tables.map(({ name }) => lake.table(name).rejects())),
    verified: await lake.verify(),
  };
}

function loseCatalog(where: string): void {
  for (const end of ["", "-wal", "-shm"]) rmSync(`${catalogOf(where)}${end}`, { force: true });
}

const catalogOf = (where: string): string => join(where, "_eider", "catalog.sqlite");
const keysOf = (where: string, folder: "journal" | "checkpoint"): string[] => {
  const path = join(where, "_eider", folder);
  return existsSync(path) ? readdirSync(path).sort() : [];
};

/** A lake with something of everything; closed. */
async function makeLake(where: string): Promise<void> {
  // Data files, hot batches that are folded, and hot ones.
  await using files = await Lake.open(where, { inlineBytes: 0 });
  await using lake = await Lake.open(where);
  for (let i = 0; i < 5; i++) {
    const events = (i < 2 ? files : lake).table("events", { partitionBy: ["day(ts)"], orderBy: ["id"] });
    const rows = [0, 1, 2].map((k) => ({ id: 3 * i + k, ts: `2031-01-0${k + 1}T00:00:00Z`, note: "é".repeat(i) }));
    await events.append(rows, { batchId: `b${i}`, meta: { run: String(i) } });
  }
  await lake.table("events").append([{ id: 100, ts: "2031-02-01T00:00:00Z", more: 1.5 }], { batchId: "evolved" });
  await lake.table("numbers", { schema: { n: "int64" } }).append([{ n: 1 }, { n: "x" }], {
    batchId: "some",
    onReject: "quarantine",
  });
  await lake.transaction(async (tx) => {
    await tx.table("numbers").append([{ n: 2 }], { batchId: "both" });
    await tx.table("names").append([{ name: "a" }], { batchId: "both" });
  });
  await lake
    .table("fed")
    .append([{ x: 1 }], { batchId: { source: "s", sequence: 7 }, cursor: { name: "c", from: "0", to: "4" } });
  await lake.tag("before", { at: 3 });
  await lake.table("names").append([{ name: "b" }], { batchId: "rolled back" });
  await lake.table("names").rollback({ to: 8 });
  await lake.table("gone").append([{ y: 1 }]);
  await lake.table("gone").drop();
  await lake.maintain({ graceMs: 0, fold: "all" });
  await lake.table("numbers").append([{ n: 3 }], { batchId: "hot" });
}

describe("a lake that has lost its catalog", () => {
  it("is the same lake again: tables, snapshots, receipts, rejects, tags, rows now and before", async () => {
    const where = temporaryFolder();
    await makeLake(where);
    const before = await answersOf(where);
    loseCatalog(where);
    await expect(Lake.open(where)).rejects.toMatchObject({ code: "catalog_missing", message: /eider rebuild/ });

    const { snapshots } = before as { snapshots: unknown[] };
    expect(await Lake.rebuild(where)).toEqual({
      snapshot: snapshots.length,
      checkpoint: 0,
      entries: snapshots.length,
      unnamed: 0,
    });
    expect(await answersOf(where)).toEqual(before);

    await using lake = await Lake.open(where);
    const events = lake.table("events");
    const rows = [0, 1, 2].map((k) => ({ id: 6 + k, ts: `2031-01-0${k + 1}T00:00:00Z`, note: "éé" }));
    expect(await events.append(rows, { batchId: "b2" })).toMatchObject({
      status: "duplicate",
      receipt: { snapshot: 3 },
    });
    await expect(events.append([{ id: 6 }], { batchId: "b2" })).rejects.toMatchObject({ code: "batch_conflict" });
    expect(await events.append([{ id: 200 }], { batchId: "new" })).toMatchObject({
      status: "committed",
      receipt: { snapshot: snapshots.length + 1 },
    });
  });

  it("begins with a checkpoint where the log got long, and needs no page that it covers", async () => {
    const where = temporaryFolder();
    // Rejects keep some of their text in the entry.
    const bad = Array.from({ length: 20 }, () => ({ n: "x".repeat(60_000) }));
    for (let i = 0; i < 18; i++) {
      await using lake = await Lake.open(where);
      const table = lake.table("t", { schema: { n: "int64" } });
      await table.append([{ n: i }, ...bad], { batchId: `b${i}`, onReject: "quarantine" });
    }
    const checkpoints = keysOf(where, "checkpoint").map((name) => Number(name.slice(0, 20)));
    expect(checkpoints).toHaveLength(2);
    const pages = keysOf(where, "journal");
    // What the older checkpoint has is not there any more, what comes after it is.
    expect(pages.every((name) => Number(name.slice(21, 41)) > checkpoints[0]!)).toBe(true);
    const before = await answersOf(where);
    loseCatalog(where);
    expect(await Lake.rebuild(where)).toEqual({
      snapshot: 18,
      checkpoint: checkpoints[1],
      entries: 18 - checkpoints[1]!,
      unnamed: 0,
    });
    expect(await answersOf(where)).toEqual(before);

    // A damaged checkpoint does no harm: the one before it is as good.
    loseCatalog(where);
    writeFileSync(join(where, "_eider", "checkpoint", keysOf(where, "checkpoint")[1]!), "damaged");
    expect(await Lake.rebuild(where)).toMatchObject({ snapshot: 18, checkpoint: checkpoints[0] });
    expect(await answersOf(where)).toEqual(before);
  });

  it("whose writer was killed has what was written into the store; the next process writes the rest", async () => {
    const where = temporaryFolder();
    await makeLake(where);
    const pages = keysOf(where, "journal");
    // Killed after its commit, at once: within the second that the store may be behind.
    const killed = await runChild(
      "append-batch",
      { lake: where, table: "t", rows: [{ a: 1 }], batchId: "k", at: 0 },
      {
        onLine: (_, child) => child.kill("SIGKILL"),
      },
    );
    expect(killed.lines).toMatchObject([{ status: "committed" }]);
    expect(keysOf(where, "journal").length - pages.length).toBeLessThanOrEqual(1);
    await (await Lake.open(where)).table("t").append([{ a: 2 }], { batchId: "next" });
    await (await Lake.open(where)).close();
    await expect
      .poll(() => keysOf(where, "journal").at(-1)?.slice(21, 41))
      .toBe(String(await head(where)).padStart(20, "0"));
    const before = await answersOf(where);
    loseCatalog(where);
    await Lake.rebuild(where);
    expect(await answersOf(where)).toEqual(before);
  });

  it("after its catalog was put back from a backup: what that does not know of does not come back", async () => {
    const where = temporaryFolder();
    await makeLake(where);
    copyFileSync(catalogOf(where), `${where}-backup`);
    const append = async (batchId: string): Promise<void> => {
      await using lake = await Lake.open(where);
      await lake.table("events").append([{ id: 1, note: batchId }], { batchId });
    };
    for (const batchId of ["forgotten 1", "forgotten 2"]) await append(batchId);
    copyFileSync(`${where}-backup`, catalogOf(where));
    await append("instead");
    const before = await answersOf(where);
    loseCatalog(where);
    await Lake.rebuild(where);
    expect(await answersOf(where)).toEqual(before);
    await using lake = await Lake.open(where);
    expect(await lake.table("events").receipt("forgotten 2")).toBeUndefined();
  });

  it("says of what came after the store's last page that its files are not named", async () => {
    const where = temporaryFolder();
    await makeLake(where);
    const was = await head(where);
    await using lake = await Lake.open(where, { inlineBytes: 0 });
    await lake.table("events").append([{ id: 7, ts: "2031-01-01T00:00:00Z" }], { batchId: "late" });
    await lake.close();
    loseCatalog(where);
    for (const name of keysOf(where, "journal").slice(-1)) rmSync(join(where, "_eider", "journal", name));
    expect(await Lake.rebuild(where)).toMatchObject({ snapshot: was, unnamed: 1 });
    await using again = await Lake.open(where);
    expect(
      await again.table("events").append([{ id: 7, ts: "2031-01-01T00:00:00Z" }], { batchId: "late" }),
    ).toMatchObject({
      status: "committed",
    });
  });
});

describe("Lake.rebuild refuses", () => {
  it("a lake that has its catalog, one that is shared, no lake, and a bad option", async () => {
    const where = temporaryFolder();
    await makeLake(where);
    const { size } = statSync(catalogOf(where));
    await expect(Lake.rebuild(where)).rejects.toMatchObject({ code: "catalog_exists" });
    expect(statSync(catalogOf(where)).size).toBe(size);
    await expect(Lake.rebuild(temporaryFolder())).rejects.toMatchObject({ code: "lake_not_found" });
    await expect(Lake.rebuild("memory:")).rejects.toMatchObject({ code: "bad_location" });
    await expect(Lake.rebuild(where, { force: true } as never)).rejects.toMatchObject({ code: "bad_option" });
    const to = join(temporaryFolder(), "shared");
    await using lake = await Lake.open(where);
    await lake.share(to);
    await expect(Lake.rebuild(to)).rejects.toMatchObject({ code: "lake_is_shared" });
    await lake.close();
    loseCatalog(where);
    await expect(Lake.rebuild(where)).rejects.toMatchObject({ code: "lake_moved" });
  });

  it("pages with a gap, and damaged ones", async () => {
    const where = temporaryFolder();
    for (let i = 0; i < 3; i++) {
      await using lake = await Lake.open(where);
      await lake.table("t").append([{ i }]);
    }
    loseCatalog(where);
    const [first, second, third] = keysOf(where, "journal").map((name) => join(where, "_eider", "journal", name));
    renameSync(second!, `${where}-second`);
    await expect(Lake.rebuild(where)).rejects.toMatchObject({
      code: "journal_gap",
      subject: expect.stringContaining("journal"),
    });
    renameSync(`${where}-second`, second!);
    writeFileSync(third!, "damaged");
    await expect(Lake.rebuild(where)).rejects.toMatchObject({ code: "bad_journal" });
    expect(existsSync(catalogOf(where))).toBe(false);
    rmSync(third!);
    expect(await Lake.rebuild(where)).toMatchObject({ snapshot: 2 });
    expect(existsSync(first!)).toBe(true);
  });
});

it("a log that the lost catalog has left behind is put aside, not taken for the new one's", async () => {
  const where = temporaryFolder();
  await makeLake(where);
  const before = await answersOf(where);
  loseCatalog(where);
  writeFileSync(`${catalogOf(where)}-wal`, "of another file");
  await Lake.rebuild(where);
  expect(await answersOf(where)).toEqual(before);
  expect(existsSync(`${catalogOf(where)}-wal-lost`)).toBe(true);
});

it("a reject's text that was purged is in nothing that a lake would be rebuilt from", async () => {
  const where = temporaryFolder();
  const withText = (): boolean[] =>
    (["journal", "checkpoint"] as const).flatMap((folder) =>
      keysOf(where, folder).map((name) => {
        const bytes = readFileSync(join(where, "_eider", folder, name));
        return (folder === "checkpoint" ? gunzipSync(bytes) : bytes).includes("a private text");
      }),
    );
  const lake = await Lake.open(where);
  const rows = [{ n: 1 }, { n: "a private text" }];
  await lake.table("t", { schema: { n: "int64" } }).append(rows, { batchId: "b", onReject: "quarantine" });
  await lake.close();
  expect(withText()).toEqual([true]);
  await using again = await Lake.open(where);
  expect(await again.table("t").purgeRejects({ batchId: "b" })).toEqual({ purged: 1 });
  await again.close();
  expect(withText()).toEqual([false]);
  const before = await answersOf(where);
  loseCatalog(where);
  expect(await Lake.rebuild(where)).toMatchObject({ snapshot: 2, checkpoint: 2 });
  expect(await answersOf(where)).toEqual(before);
});

async function head(where: string): Promise<number> {
  await using lake = await Lake.open(where, { mode: "read" });
  return (await lake.snapshots()).length;
}
