/** Checkpoints: a catalog's file copied beside its writers, and an index that becomes what such a copy is. */

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Draft } from "../src/catalog.js";
import { applyCheckpointFile, copyCatalog, renameCatalog } from "../src/checkpoint.js";
import { decodeEntry } from "../src/entry.js";
import { SqliteCatalog } from "../src/sqlite-catalog.js";
import { decodeStub, encodeStub, entryFacts, isStub, stubOf } from "../src/stub.js";
import { append, connect, create, dataFile, draft, statistics, tempFolder } from "./fixtures.js";

/** The log of a lake, made by an index of its own. */
async function makeLog(drafts: readonly Draft[]): Promise<Uint8Array[]> {
  await using index = await openIndex(":memory:");
  const log: Uint8Array[] = [];
  for (const one of drafts) {
    const { entry, outcomes } = await index.propose([one], 1_000_000 + log.length);
    if (!entry) throw new Error(JSON.stringify(outcomes));
    log.push(entry.bytes);
    await index.applyEntry(entry.bytes);
  }
  return log;
}

function openIndex(path: string, lakeId = "lake"): Promise<SqliteCatalog> {
  return SqliteCatalog.open({ path, kind: "shared", lakeId });
}

const DRAFTS = [
  draft(create("t1", "events")),
  draft(
    append("t1", "b1", ["k1"], {
      files: [dataFile("k1", { columns: [statistics(1, { min: -5n, max: 2n ** 62n }), statistics(2)] })],
      rejects: [{ line: 3, code: "bad_value", reason: "no number", raw: "x\u0000€" }],
    }),
  ),
  draft(append("t1", "b2", ["k2"]), { op: "view", name: "v", sql: "SELECT 'ü'" }),
  draft(append("t1", "b3", ["k3"])),
];

/** Everything that an index says of its lake. */
async function contents(index: SqliteCatalog): Promise<unknown> {
  return {
    head: await index.head(),
    snapshots: await index.snapshots(),
    tables: await index.tables(),
    views: await index.views(),
    files: await index.files("t1"),
    batches: await index.batches("t1"),
    rejects: await index.rejects("t1"),
  };
}

describe("a checkpoint", () => {
  it("makes an index that is behind, or empty, what the copied one was; then the log goes on", async () => {
    const folder = tempFolder();
    const log = await makeLog(DRAFTS);
    const copy = join(folder, "copy.sqlite");
    await using first = await openIndex(join(folder, "first.sqlite"));
    for (const bytes of log.slice(0, 3)) await first.applyEntry(bytes);
    await first.begin(); // of that host alone
    const expected = await contents(first);
    expect(copyCatalog(join(folder, "first.sqlite"), copy)).toBe(3);
    for (const known of [0, 1, 3]) {
      await using index = await openIndex(join(folder, `known-${known}.sqlite`));
      for (const bytes of log.slice(0, known)) await index.applyEntry(bytes);
      const { id } = await index.begin();
      await applyCheckpointFile(index, copy);
      expect(await contents(index)).toEqual(expected);
      expect(await index.intents()).toMatchObject([{ id }]);
      expect(await index.replayAfter(0)).toEqual(await first.replayAfter(0));
      await index.applyEntry(log[3]!);
      expect((await index.head()).snapshot).toBe(4);
      expect(await index.replayAfter(3)).toEqual({ entries: 1, bytes: log[3]!.length });
      // Now it is the older of the two, and changes nothing.
      await applyCheckpointFile(index, copy);
      expect((await index.head()).snapshot).toBe(4);
    }
  });

  it("can be an index itself, under a name of its own, without the other host's intents", async () => {
    const folder = tempFolder();
    const copy = join(folder, "copy.sqlite");
    await using first = await openIndex(join(folder, "first.sqlite"));
    for (const bytes of await makeLog(DRAFTS)) await first.applyEntry(bytes);
    await first.begin();
    copyCatalog(join(folder, "first.sqlite"), copy);
    renameCatalog(copy, "mine");
    await using index = await openIndex(copy);
    expect(index.catalogId).toBe("mine");
    expect(await index.intents()).toEqual([]);
    expect(await contents(index)).toEqual(await contents(first));
  });

  it("of another log, or another lake, is refused and changes nothing", async () => {
    const folder = tempFolder();
    const [here, there] = [await makeLog(DRAFTS), await makeLog(DRAFTS)]; // ids are random
    const copy = join(folder, "copy.sqlite");
    await using other = await openIndex(join(folder, "other.sqlite"));
    for (const bytes of there) await other.applyEntry(bytes);
    copyCatalog(join(folder, "other.sqlite"), copy);
    await using index = await openIndex(join(folder, "index.sqlite"));
    for (const bytes of here.slice(0, 2)) await index.applyEntry(bytes);
    const before = await contents(index);
    await expect(applyCheckpointFile(index, copy)).rejects.toMatchObject({ code: "log_replaced" });
    expect(await contents(index)).toEqual(before);
    await using foreign = await openIndex(join(folder, "foreign.sqlite"), "another");
    await expect(applyCheckpointFile(foreign, copy)).rejects.toMatchObject({ code: "bad_checkpoint" });
  });

  it("with other tables than a catalog has is refused", async () => {
    const folder = tempFolder();
    const copy = join(folder, "copy.sqlite");
    await using index = await openIndex(join(folder, "index.sqlite"));
    copyCatalog(join(folder, "index.sqlite"), copy);
    const driver = connect(copy);
    driver.exec("CREATE TABLE more (id INTEGER PRIMARY KEY)");
    driver.close();
    await expect(applyCheckpointFile(index, copy)).rejects.toMatchObject({ code: "bad_checkpoint" });
  });
});

describe("a stub", () => {
  it("says whose entry it was and what that acknowledged", async () => {
    const [, bytes] = await makeLog(DRAFTS);
    const entry = decodeEntry(bytes!);
    const stub = encodeStub(stubOf(entry));
    expect([isStub(bytes!), isStub(stub)]).toEqual([false, true]);
    const { meta: _meta, operations: _operations, ...facts } = entry;
    const [operation] = entry.operations;
    if (operation?.op !== "append") throw new Error("no append");
    const receipts = [{ table: "t1", batch: "b1", hash: operation.hash, rows: 1 }];
    expect(decodeStub(stub)).toEqual({ ...facts, receipts });
    expect([entryFacts(bytes!).id, entryFacts(stub).id]).toEqual([entry.id, entry.id]);
    expect(stub.length).toBeLessThan(bytes!.length);
  });

  it("of an entry that is known is compared, of another is news that an index cannot follow", async () => {
    const log = await makeLog(DRAFTS);
    const stubs = log.map((bytes) => encodeStub(stubOf(decodeEntry(bytes))));
    await using index = await openIndex(":memory:");
    expect(await index.applyEntry(stubs[0]!)).toBe("stub");
    expect((await index.head()).snapshot).toBe(0);
    await index.applyEntry(log[0]!);
    expect(await index.applyEntry(stubs[0]!)).toBe("known");
    const foreign = encodeStub(stubOf(decodeEntry((await makeLog(DRAFTS))[0]!)));
    await expect(index.applyEntry(foreign)).rejects.toMatchObject({ code: "log_replaced" });
  });

  it("that is cut off or not one is corruption", async () => {
    const stub = encodeStub(stubOf(decodeEntry((await makeLog(DRAFTS))[1]!)));
    for (const bytes of [stub.subarray(0, -1), Buffer.concat([stub.subarray(0, 40), stub.subarray(41)])]) {
      expect(() => decodeStub(bytes)).toThrow(expect.objectContaining({ code: "bad_entry" }));
    }
    const newer = Buffer.from(Buffer.from(stub).toString("latin1").replace('"stub":1', '"stub":2'), "latin1");
    expect(() => decodeStub(newer)).toThrow(expect.objectContaining({ code: "reader_too_old" }));
  });
});
