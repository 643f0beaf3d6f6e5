/** Checkpoints and stubs with real files: a worker's, and without one. */

import { existsSync, mkdirSync, readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { realTimer, SqliteCatalog } from "@eider/catalog";
import { CountingStore, MemoryStore, type ObjectStore, StoreWrapper } from "@eider/storage";
import { beforeAll, describe, expect, it } from "vitest";
import { isStub } from "../../catalog/src/stub.js";
import { Lake } from "../src/lake.js";
import { CHECKPOINT_LIMITS, type CheckpointLimits, type Replay } from "../src/shared/checkpoints.js";
import { indexCopies } from "../src/shared/index-copies.js";
import { SharedCatalog } from "../src/shared/shared-catalog.js";
import { temporaryFolder } from "./support/folder.js";
import { bytesOf } from "./support/objects.js";
import { buildWorker, writeWorker } from "./support/worker-entry.js";

class View extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

const LIMITS: CheckpointLimits = { isDue: ({ entries }) => entries >= 10, replayEntries: 50, stubBytes: 0 };

let worker: URL;
beforeAll(async () => {
  worker = await buildWorker();
});

/** A host whose index is in `folder`. */
async function openHost(
  store: ObjectStore,
  folder = temporaryFolder(),
  { entry = undefined as URL | undefined, limits = LIMITS } = {},
): Promise<Lake> {
  const path = join(folder, "index.sqlite");
  const index = await SqliteCatalog.open({ path, kind: "shared", lakeId: "lake" });
  const view = new View(store);
  const catalog = await SharedCatalog.open({
    store: view,
    index,
    copies: indexCopies({ path, lake: "lake", ...(entry && { entry }) }),
    limits,
    timer: realTimer,
    clock: Date.now,
    random: (size) => crypto.getRandomValues(new Uint8Array(size)),
    readOnly: false,
  });
  return Lake.open({ store: view, catalog });
}

async function appendMany(lake: Lake, from: number, to: number): Promise<void> {
  for (let i = from; i < to; i++) await lake.table("t").append([{ i }], { batchId: `b-${i}` });
}

async function keys(store: ObjectStore, prefix: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of store.list(prefix)) found.push(key);
  return found;
}

const SUM = "SELECT count(*) AS n, sum(i)::BIGINT AS s FROM t";
const sumTo = (n: number): unknown => [{ n: BigInt(n), s: BigInt((n * (n - 1)) / 2) }];

describe.each(["a worker", "no worker"])("with %s", (kind) => {
  const options = (): { entry?: URL } => (kind === "a worker" ? { entry: worker } : {});

  it("a host writes a checkpoint every 10 entries, keeps two, and leaves no file behind", async () => {
    const store = new MemoryStore();
    const folder = temporaryFolder();
    // By a process that was killed the day before yesterday.
    const left = join(folder, "checkpoint-left");
    mkdirSync(left);
    utimesSync(left, 1, Date.now() / 1000 - 2 * 24 * 3600);
    {
      await using lake = await openHost(store, folder, options());
      for (let i = 0; i < 3; i++) {
        await appendMany(lake, 12 * i, 12 * (i + 1));
        await untilCheckpoints(store, Math.min(i + 1, 2));
      }
    }
    expect(await keys(store, "_eider/checkpoint/")).toHaveLength(2);
    expect(readdirSync(folder)).toEqual(["index.sqlite"]);
  });

  it("a host far behind, and one that meets stubs, go on from the newest checkpoint", async () => {
    const store = new MemoryStore();
    const behind = temporaryFolder();
    {
      await using lake = await openHost(store, behind, options());
      await appendMany(lake, 0, 1);
    }
    await using writer = await openHost(store, undefined, options());
    await appendMany(writer, 1, 25);
    await untilCheckpoints(store, 1);
    await appendMany(writer, 25, 45);
    await untilCheckpoints(store, 2);
    await writer.maintain({ graceMs: 0 });
    const log = await keys(store, "_eider/log/");
    expect(log).toHaveLength(45);
    const stubs = await Promise.all(log.map(async (key) => isStub(await bytesOf(store, key))));
    const older = Number((await keys(store, "_eider/checkpoint/"))[0]!.split("/")[2]!.slice(0, 20));
    expect(older).toBeGreaterThanOrEqual(10);
    expect(stubs).toEqual(log.map((_, i) => i < older));
    // Its next append finds its number taken by a stub.
    await using lake = await openHost(store, behind, options());
    await lake.table("t").append([{ i: 45 }], { batchId: "b-45" });
    expect(await lake.sql(SUM)).toEqual(sumTo(46));
    expect((await lake.table("t").append([{ i: 7 }], { batchId: "b-7" })).status).toBe("duplicate");
    await using fresh = await openHost(store, undefined, options());
    expect(await fresh.sql(SUM)).toEqual(sumTo(46));
    expect(await fresh.table("t").batches()).toEqual(await writer.table("t").batches());
    expect(await fresh.verify()).toMatchObject({ ok: true, findings: [] });
  });
});

it("a new host by its URL reads the newest checkpoint and what came after, not the log", async () => {
  const store = new MemoryStore();
  const made = await Lake.open({ store: new View(store) }, { cacheDir: temporaryFolder() });
  await made.close();
  const id = made.id;
  const path = join(temporaryFolder(), "index.sqlite");
  const index = await SqliteCatalog.open({ path, kind: "shared", lakeId: id });
  const view = new View(store);
  const copies = indexCopies({ path, lake: id });
  const parts = { store: view, index, copies, limits: LIMITS, timer: realTimer, clock: Date.now, readOnly: false };
  const catalog = await SharedCatalog.open({ ...parts, random: (n) => crypto.getRandomValues(new Uint8Array(n)) });
  await using writer = await Lake.open({ store: view, catalog });
  await appendMany(writer, 0, 15);
  await untilCheckpoints(store, 1);
  await appendMany(writer, 15, 30);
  await untilCheckpoints(store, 2);
  await writer.maintain({ graceMs: 0 });
  const counting = new CountingStore(new View(store));
  const cacheDir = temporaryFolder();
  await using fresh = await Lake.open({ store: counting }, { cacheDir });
  expect(await fresh.sql(SUM)).toEqual(sumTo(30));
  expect(existsSync(join(cacheDir, id, "index.sqlite"))).toBe(true);
  expect(readdirSync(join(cacheDir, id)).filter((name) => name.startsWith("checkpoint"))).toEqual([]);
  expect(counting.counts.list.requests).toBeLessThanOrEqual(3);
});

it("a damaged or missing checkpoint: the one before it; none at all: the lake says so", async () => {
  const store = new MemoryStore();
  await using writer = await openHost(store);
  await appendMany(writer, 0, 15);
  await untilCheckpoints(store, 1);
  await appendMany(writer, 15, 30);
  await untilCheckpoints(store, 2);
  await writer.maintain({ graceMs: 0 });
  const [older, newest] = await keys(store, "_eider/checkpoint/");
  const bytes = Uint8Array.from(await bytesOf(store, newest!));
  bytes[bytes.length >> 1]! ^= 1;
  for (const damage of [bytes, bytes.subarray(0, -1), undefined]) {
    if (damage) await store.put(newest!, damage);
    else await store.delete(newest!);
    await using host = await openHost(store);
    expect(await host.sql(SUM)).toEqual(sumTo(30));
  }
  await store.delete(older!);
  await using host = await openHost(store);
  await expect(host.sql(SUM)).rejects.toMatchObject({ code: "checkpoint_lost" });
  // Who knows the lake goes on.
  expect(await writer.sql(SUM)).toEqual(sumTo(30));
});

it("a worker that dies is a warning, and the commit stands", async () => {
  const store = new MemoryStore();
  await using lake = await openHost(store, undefined, { entry: writeWorker("process.exit(3)") });
  await appendMany(lake, 0, 12);
  expect(await lake.sql(SUM)).toEqual(sumTo(12));
  expect(await keys(store, "_eider/checkpoint/")).toEqual([]);
});

it.each<[Replay, boolean]>([
  [{ entries: 1e6, bytes: 8 * 2 ** 20, checkpointBytes: 0 }, false],
  [{ entries: 1, bytes: 8 * 2 ** 20 + 1, checkpointBytes: 0 }, true],
  [{ entries: 1, bytes: 50e6, checkpointBytes: 100e6 }, false],
  [{ entries: 1, bytes: 50e6 + 1, checkpointBytes: 100e6 }, true],
])("%o: due %s", (replay, due) => {
  expect(CHECKPOINT_LIMITS.isDue(replay)).toBe(due);
});

/** They are written beside the commits. */
async function untilCheckpoints(store: ObjectStore, count: number): Promise<void> {
  while ((await keys(store, "_eider/checkpoint/")).length < count) await realTimer.sleep(5);
}
