/** Lakes copied and moved to a store that hosts share, and stopped at every call on the way. */

import { copyFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { FileStore, MemoryStore, type ObjectStore, StoreWrapper } from "@eider/storage";
import { describe, expect, it } from "vitest";
import { Lake } from "../src/lake.js";
import { temporaryFolder } from "./support/folder.js";
import { keysOf } from "./support/objects.js";

class View extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

/** Fails for ever from a certain call on; with `effect` that one still does what it should. */
class Stopping extends View {
  calls = 0;
  readonly #last: number;
  readonly #effect: boolean;

  constructor(inner: ObjectStore, last: number, effect: boolean) {
    super(inner);
    this.#last = last;
    this.#effect = effect;
  }

  override put(...args: Parameters<ObjectStore["put"]>): ReturnType<ObjectStore["put"]> {
    return this.#call(() => super.put(...args));
  }

  override head(...args: Parameters<ObjectStore["head"]>): ReturnType<ObjectStore["head"]> {
    return this.#call(() => super.head(...args));
  }

  override delete(...args: Parameters<ObjectStore["delete"]>): ReturnType<ObjectStore["delete"]> {
    return this.#call(() => super.delete(...args));
  }

  async #call<T>(work: () => Promise<T>): Promise<T> {
    this.calls++;
    if (this.calls === this.#last && this.#effect) await work();
    if (this.calls >= this.#last) throw new Error("stopped");
    return work();
  }
}

function openShared(store: ObjectStore): Promise<Lake> {
  return Lake.open({ store: new View(store) }, { mode: "open", cacheDir: temporaryFolder(), stalenessMs: 0 });
}

/** What the catalog says: enough where the same files are looked at again and again. */
async function facts(lake: Lake): Promise<unknown> {
  return [await lake.snapshots(), await lake.tables(), await lake.table("t").batches(), await lake.table("t").files()];
}

/** Every append makes a file. */
const FILES = { inlineBytes: 0 } as const;

/** A lake with a dropped table, two schema versions and a reject. */
async function fill(lake: Lake): Promise<void> {
  for (let i = 0; i < 3; i++) await lake.table("t").append([{ i }], { batchId: `b-${i}` });
  await lake.table("gone").append([{ x: 1 }]);
  await lake.table("gone").drop();
  await lake.table("t").append([{ i: 5, more: "é" }, { i: "no" }], { batchId: "b-5", onReject: "quarantine" });
}

/** What a lake says, now and before. */
async function contents(lake: Lake): Promise<unknown> {
  return {
    rows: await lake.sql("SELECT * FROM t ORDER BY i"),
    before: await lake.with({ at: 2 }).sql("SELECT * FROM t ORDER BY i"),
    dropped: await lake.with({ at: 4 }).sql("SELECT * FROM gone"),
    snapshots: await lake.snapshots(),
    batches: await lake.table("t").batches(),
    rejects: (await lake.table("t").rejects()).map(({ reason, raw }) => [reason, raw]),
  };
}

describe("copyTo", () => {
  it.each([
    ["in files", FILES, 5],
    ["in entries", {}, 0],
  ] as const)(
    "makes another lake of the same content, rows %s, which goes on by itself; also from a shared one",
    async (_, options, files) => {
      const source = await Lake.open(temporaryFolder(), options);
      await fill(source);
      const [first, second] = [new MemoryStore(), new MemoryStore()];
      const result = await source.copyTo(first);
      expect(result).toMatchObject({ snapshot: 6, files });
      await using one = await openShared(first);
      expect(one.id).toBe(result.lake);
      expect(one.id).not.toBe(source.id);
      expect(await contents(one)).toEqual(await contents(source));
      expect(await one.verify()).toMatchObject({ ok: true, findings: [] });
      // The receipts came along, and the numbers go on.
      expect((await one.table("t").append([{ i: 2 }], { batchId: "b-2" })).status).toBe("duplicate");
      expect((await one.table("t").append([{ i: 6 }])).receipt.snapshot).toBe(7);
      await source.table("t").append([{ i: 7 }]);
      expect((await one.copyTo(second)).snapshot).toBe(7);
      await using two = await openShared(second);
      expect(await contents(two)).toEqual(await contents(one));
      expect(await keysOf(second)).not.toContain("_eider/copy.json");
      await source.close();
    },
  );

  it("of an empty lake is an empty lake", async () => {
    await using source = await Lake.open("memory:");
    const store = new MemoryStore();
    expect(await source.copyTo(store)).toMatchObject({ snapshot: 0, files: 0, bytes: 0 });
    await using copy = await openShared(store);
    await copy.table("t").append([{ i: 1 }]);
    expect(await copy.sql("SELECT i FROM t")).toEqual([{ i: 1n }]);
  });

  it("refuses a place that holds anything else, and a file that has changed", async () => {
    const folder = temporaryFolder();
    await using source = await Lake.open(folder, FILES);
    await source.table("t").append([{ i: 1 }]);
    const taken = new MemoryStore();
    await taken.put("photo.jpg", Buffer.from("x"));
    await expect(source.copyTo(taken)).rejects.toMatchObject({ code: "place_taken" });
    expect(await keysOf(taken)).toEqual(["photo.jpg"]);
    await expect(source.copyTo(new FileStore(folder))).rejects.toMatchObject({ code: "place_taken" });
    const other = await Lake.open("memory:");
    const store = new MemoryStore();
    await other.copyTo(store);
    await expect(source.copyTo(store)).rejects.toMatchObject({ code: "place_taken" });
    const files = await source.table("t").files();
    await new FileStore(folder).put(files[0]!.key, Buffer.from("other"));
    await expect(source.copyTo(new MemoryStore())).rejects.toMatchObject({ code: "file_changed" });
    await other.close();
  });

  it.each([false, true])("stopped at any call (whose effect stays: %s), the next try finishes it", async (effect) => {
    await using source = await Lake.open("memory:", FILES);
    await fill(source);
    const expected = await facts(source);
    for (let last = 1; ; last++) {
      const store = new MemoryStore();
      const stopping = new Stopping(store, last, effect);
      const done = await source.copyTo(stopping).then(
        () => true,
        () => false,
      );
      if (!done) {
        // All of it may be there, and only the answer not.
        const made = (await keysOf(store)).includes("_eider/lake.json");
        if (!made) await expect(openShared(store)).rejects.toMatchObject({ code: "lake_not_found" });
        expect(await source.copyTo(store)).toMatchObject({ files: made ? 0 : 5, snapshot: 6 });
        await expect(source.copyTo(store)).rejects.toMatchObject({ code: "place_taken" });
      }
      await using copy = await openShared(store);
      expect(await facts(copy)).toEqual(expected);
      expect(await copy.verify()).toMatchObject({ ok: true, findings: [] });
      if (done && stopping.calls < last) return expect(last).toBeGreaterThan(20);
    }
  });
});

describe("a place whose store answers late", () => {
  it("that the mark of the copy exists, which is its own: the copy goes on", async () => {
    await using source = await Lake.open("memory:", FILES);
    await fill(source);
    class Twice extends View {
      override async put(...args: Parameters<ObjectStore["put"]>): ReturnType<ObjectStore["put"]> {
        const info = await super.put(...args);
        return args[0] === "_eider/copy.json" ? super.put(...args) : info;
      }
    }
    const store = new MemoryStore();
    expect(await source.copyTo(new Twice(store))).toMatchObject({ files: 5 });
    await using copy = await openShared(store);
    expect(await facts(copy)).toEqual(await facts(source));
  });

  it("to what was deleted: what the next try has put stays", async () => {
    await using source = await Lake.open("memory:", FILES);
    await fill(source);
    const late: (() => Promise<void>)[] = [];
    class Late extends View {
      override async delete(...args: Parameters<ObjectStore["delete"]>): ReturnType<ObjectStore["delete"]> {
        if (`${args[0]}`.includes("_eider/probe/")) return super.delete(...args);
        late.push(() => super.delete(...args));
        throw new Error("no answer");
      }
    }
    const store = new MemoryStore();
    // As if stopped before `lake.json`, the last put: everything else is there.
    await source.copyTo(store);
    await store.delete("_eider/lake.json");
    await store.put("_eider/copy.json", Buffer.from(JSON.stringify({ from: source.id, lake: "l" })));
    await source.copyTo(new Late(store)).catch(() => undefined);
    await source.copyTo(store).catch(() => undefined);
    for (const effect of late) await effect();
    await using copy = await openShared(store);
    expect(await facts(copy)).toEqual(await facts(source));
  });
});

describe("share", () => {
  it("moves the lake: the same id, and the old catalog commits nothing any more", async () => {
    const folder = temporaryFolder();
    const backup = join(temporaryFolder(), "catalog.sqlite");
    let source = await Lake.open(folder);
    await fill(source);
    const expected = await contents(source);
    await source.close();
    copyFileSync(join(folder, "_eider", "catalog.sqlite"), backup);
    source = await Lake.open(folder);
    const store = new MemoryStore();
    expect(await source.share(store)).toMatchObject({ lake: source.id, snapshot: 6 });
    await using shared = await openShared(store);
    expect(shared.id).toBe(source.id);
    expect(await contents(shared)).toEqual(expected);
    await expect(source.table("t").append([{ i: 9 }])).rejects.toMatchObject({ code: "lake_moved" });
    await shared.table("t").append([{ i: 9 }]);
    expect(await source.share(store)).toMatchObject({ lake: source.id });
    await source.close();
    for (const restored of [false, true]) {
      if (restored) copyFileSync(backup, join(folder, "_eider", "catalog.sqlite"));
      await using again = await Lake.open(folder);
      expect(await contents(again)).toEqual(expected);
      await expect(again.table("t").append([{ i: 9 }])).rejects.toMatchObject({ code: "lake_moved" });
    }
    await expect(shared.share(new MemoryStore())).rejects.toMatchObject({ code: "lake_is_shared" });
  });

  it("to the lake's own place, by whatever name, is refused, and it goes on", async () => {
    const folder = temporaryFolder();
    const link = join(temporaryFolder(), "link");
    symlinkSync(folder, link, "junction");
    await using lake = await Lake.open(folder);
    await lake.table("t").append([{ i: 1 }]);
    for (const to of [folder, link]) {
      await expect(lake.share(new FileStore(to))).rejects.toMatchObject({ code: "place_taken" });
    }
    expect((await lake.table("t").append([{ i: 2 }])).status).toBe("committed");
  });

  it("moves it to one place alone, also where another was begun with", async () => {
    await using source = await Lake.open(temporaryFolder(), FILES);
    await fill(source);
    const begun = new MemoryStore();
    await expect(source.share(new Stopping(begun, 6, false))).rejects.toThrow("stopped");
    expect(await keysOf(begun)).toContain("_eider/copy.json");
    await source.share(new MemoryStore());
    for (const other of [begun, new MemoryStore()]) {
      await expect(source.share(other)).rejects.toMatchObject({ code: "lake_moved" });
      expect(await keysOf(other)).not.toContain("_eider/lake.json");
    }
  });

  it.each([false, true])(
    "stopped at any call (whose effect stays: %s), the source is valid and the next try finishes it",
    async (effect) => {
      for (let last = 1; ; last++) {
        const folder = temporaryFolder();
        const store = new MemoryStore();
        const stopping = new Stopping(store, last, effect);
        let source = await Lake.open(folder, FILES);
        await fill(source);
        const done = await source.share(stopping).then(
          () => true,
          () => false,
        );
        await source.close();
        source = await Lake.open(folder);
        const appended = await source
          .table("t")
          .append([{ i: 9 }], { batchId: "later" })
          .then(
            () => true,
            () => false,
          );
        const expected = await facts(source);
        // Only one of the two places ever takes appends.
        if ((await keysOf(store)).includes("_eider/lake.json")) expect(appended).toBe(false);
        if (!done) await source.share(store);
        await source.close();
        await using shared = await openShared(store);
        expect(await facts(shared)).toEqual(expected);
        expect(await shared.table("t").receipt("later")).toEqual(appended ? expect.anything() : undefined);
        await shared.table("t").append([{ i: 10 }]);
        expect(await shared.verify()).toMatchObject({ ok: true, findings: [] });
        if (done && stopping.calls < last) return expect(last).toBeGreaterThan(20);
      }
    },
  );
});
