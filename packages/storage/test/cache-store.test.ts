import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CorruptionError, InvalidInputError, LimitError, NotFoundError, StoreError } from "@eider/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CacheStore,
  type CacheStoreOptions,
  CountingStore,
  FaultStore,
  type GetOptions,
  MemoryStore,
  type ObjectStore,
  readBody,
} from "../src/index.js";
import { Plantation, type PlantedFault } from "./planted.js";

type Cache = typeof CacheStore;

let folder: string;
let folders = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eider-cache-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const pattern = (length: number, salt = 0): Uint8Array =>
  new Uint8Array(length).map((_, i) => (i * 7 + salt + (i >> 8)) % 251);
const equal = (a: Uint8Array, b: Uint8Array): void => expect(Buffer.compare(a, b)).toBe(0);

interface World {
  readonly dir: string;
  readonly inner: MemoryStore;
  /** Counts what reaches the store. */
  readonly seen: CountingStore;
  readonly cache: CacheStore;
  /** Another cache on the same folder and store, as another process has. */
  readonly another: (options?: Partial<CacheStoreOptions>) => CacheStore;
}

function world(Store: Cache, options: Partial<CacheStoreOptions> = {}): World {
  const dir = join(folder, String(++folders));
  const inner = new MemoryStore();
  const seen = new CountingStore(inner);
  const another = (more: Partial<CacheStoreOptions> = {}): CacheStore =>
    new Store(seen, { dir, maxBytes: 10_000_000, cacheable: () => true, namespace: "test", ...options, ...more });
  return { dir, inner, seen, cache: another(), another };
}

const read = async (store: ObjectStore, key: string, options?: GetOptions): Promise<Uint8Array> =>
  readBody((await store.get(key, options)).body);

const objectsIn = (dir: string): Promise<string[]> => readdir(join(dir, "eider-cache-2", "objects"));

/** Bytes of all files below, each inode once: what the disk really holds. */
async function bytesIn(dir: string): Promise<number> {
  const inodes = new Map<number, number>();
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (!entry.isFile()) continue;
    const stats = await stat(join(entry.parentPath, entry.name)).catch(() => undefined);
    if (stats !== undefined) inodes.set(stats.ino, stats.size);
  }
  return [...inodes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/** Each is run with the cache, and with caches that have a fault which one of them must notice. */
const checks: Readonly<Record<string, (Store: Cache) => Promise<void>>> = {
  "an object is fetched once, and then read without the store, by other processes too": async (Store) => {
    const { cache, inner, seen, another } = world(Store);
    const bytes = pattern(3_000_000);
    const put = await inner.put("a", bytes);
    for (const store of [cache, cache, another()]) {
      const { body, ...info } = await store.get("a");
      expect(info).toEqual(put);
      equal(await readBody(body), bytes);
    }
    for (const range of [{ start: 5, end: 1_500_000 }, { suffix: 9 }, { start: 2_999_999 }, { start: 9_000_000 }]) {
      equal(await read(cache, "a", { range }), await read(inner, "a", { range }));
    }
    expect(seen.counts.get).toEqual({ requests: 1, bytes: 3_000_000 });
    expect(cache.stats).toEqual({ hits: 5, misses: 1, bypassed: 0, evicted: 0, damaged: 0 });
  },

  "racing reads of one object fetch it once": async (Store) => {
    const { cache, inner, seen } = world(Store, { wholeBytes: 2_000_000, blockBytes: 100_000 });
    const [small, large] = [pattern(1_000_000), pattern(5_000_000)];
    await inner.put("small", small);
    await inner.put("large", large);
    for (const body of await Promise.all(Array.from({ length: 20 }, () => read(cache, "small")))) equal(body, small);
    expect(seen.counts.get.requests).toBe(1);
    await read(cache, "large", { range: { start: 0, end: 1 } });
    seen.reset();
    const range = { start: 1_000_000, end: 2_000_000 };
    const reads = Array.from({ length: 20 }, () => read(cache, "large", { range }));
    for (const body of await Promise.all(reads)) equal(body, large.slice(1_000_000, 2_000_000));
    expect(seen.counts.get).toEqual({ requests: 1, bytes: 1_000_000 });
  },

  "of a large object only the blocks that are needed are fetched, each once": async (Store) => {
    const { cache, inner, seen } = world(Store, { wholeBytes: 500_000, blockBytes: 100_000 });
    const bytes = pattern(2_050_000);
    await inner.put("a", bytes);
    const expectBytes = async (range: NonNullable<GetOptions["range"]>, requests: number, fetched: number) => {
      seen.reset();
      equal(await read(cache, "a", { range }), await read(inner, "a", { range }));
      expect(seen.counts.get).toEqual({ requests, bytes: fetched });
    };
    // The length is not known yet: enough for the last two blocks, the second of 50,000.
    await expectBytes({ suffix: 8 }, 1, 100_008);
    await expectBytes({ start: 2_000_000, end: 2_050_000 }, 0, 0);
    await expectBytes({ start: 150_000, end: 250_001 }, 1, 200_000);
    await expectBytes({ start: 100_000, end: 300_000 }, 0, 0);
    // Those before and after what is there.
    await expectBytes({ start: 50_000, end: 350_000 }, 2, 200_000);
    await expectBytes({ start: 0, end: 400_000 }, 0, 0);
    // Longer than what is worth keeping: past the cache.
    await expectBytes({ start: 0, end: 600_000 }, 1, 600_000);
    await expectBytes({ start: 0 }, 1, 2_050_000);
    expect(cache.stats.bypassed).toBe(2);
  },

  "keys that may change always come from the store": async (Store) => {
    const { cache, inner, dir } = world(Store, { cacheable: (key) => !key.startsWith("_") });
    for (const value of [1, 2]) {
      await inner.put("_head", pattern(10, value));
      equal(await read(cache, "_head"), pattern(10, value));
      await using copies = await cache.localize(["_head"]);
      equal(await readFile(copies.paths[0]!), pattern(10, value));
    }
    await cache.put("_head", pattern(10, 3));
    equal(await read(cache, "_head"), pattern(10, 3));
    await inner.put("a", pattern(10));
    expect(existsSync(dir)).toBe(true);
  },

  "what is put or deleted through it is never read as it was": async (Store) => {
    const { cache, inner, another } = world(Store, { wholeBytes: 1000, blockBytes: 100 });
    for (const size of [500, 5000]) {
      const range = { start: 0, end: 300 };
      await cache.put("a", pattern(size, 1));
      await read(cache, "a", { range });
      await read(another(), "a", { range });
      await cache.put("a", pattern(size, 2));
      equal(await read(cache, "a", { range }), pattern(size, 2).slice(0, 300));
      await cache.delete(["a"]);
      await expect(cache.get("a")).rejects.toThrow(NotFoundError);
      await expect(cache.get("a", { range })).rejects.toThrow(NotFoundError);
      expect(await cache.head("a")).toBeUndefined();
      await cache.put("a", pattern(size, 3), { ifAbsent: true });
      equal(await read(cache, "a", { range }), pattern(size, 3).slice(0, 300));
    }
    expect((await inner.head("a"))?.size).toBe(5000);
  },

  "a read that was under way when its object was put is kept for nobody": async (Store) => {
    const { inner, another } = world(Store);
    await inner.put("a", pattern(2_500_000, 1));
    const get: MemoryStore["get"] = async (key, options) => {
      const object = await inner.get(key, options);
      async function* slow(): AsyncGenerator<Uint8Array> {
        let first = true;
        for await (const chunk of object.body) {
          yield chunk;
          if (first) await overwrite();
          first = false;
        }
      }
      return { ...object, body: slow() };
    };
    const slowStore = Object.assign(new FaultStore(inner, {}), { get });
    const cache = new Store(slowStore, { dir: join(folder, String(++folders)), maxBytes: 9e6, cacheable: () => true });
    let overwritten = false;
    const overwrite = async (): Promise<void> => {
      if (overwritten) return;
      overwritten = true;
      await cache.put("a", pattern(2_500_000, 2));
    };
    await read(cache, "a");
    equal(await read(cache, "a"), pattern(2_500_000, 2));
    await another()[Symbol.asyncDispose]();
  },

  "an etag that was asked for is what is given, whatever is cached": async (Store) => {
    const { cache, inner } = world(Store);
    const old = await inner.put("a", pattern(1000, 1));
    await read(cache, "a");
    const now = await inner.put("a", pattern(1000, 2));
    await using copies = await cache.localize([{ key: "a", etag: now.etag }]);
    equal(await readFile(copies.paths[0]!), pattern(1000, 2));
    equal(await read(cache, "a"), pattern(1000, 2));
    await expect(cache.localize([{ key: "a", etag: old.etag }])).rejects.toMatchObject({ code: "object_changed" });
  },

  "blocks of two versions are never joined": async (Store) => {
    const { cache, inner } = world(Store, { wholeBytes: 1000, blockBytes: 100 });
    await inner.put("a", pattern(5000, 1));
    await read(cache, "a", { range: { start: 0, end: 200 } });
    await inner.put("a", pattern(5000, 2));
    equal(await read(cache, "a", { range: { start: 0, end: 400 } }), pattern(5000, 2).slice(0, 400));
    equal(await read(cache, "a", { range: { start: 0, end: 100 } }), pattern(5000, 2).slice(0, 100));
  },

  "a damaged file is fetched again and never served": async (Store) => {
    const damages: Readonly<Record<string, (path: string) => Promise<void>>> = {
      cut: (path) => truncate(path, 700),
      longer: async (path) => writeFile(path, "more", { flag: "a" }),
      flipped: async (path) => {
        const bytes = await readFile(path);
        bytes[500]! ^= 1;
        await writeFile(path, bytes);
      },
      emptied: (path) => truncate(path, 0),
    };
    for (const damage of Object.values(damages)) {
      for (const fresh of [false, true]) {
        for (const range of [undefined, { start: 400, end: 600 }]) {
          const small = range === undefined ? 10_000 : 100;
          const { cache, inner, dir, another } = world(Store, { wholeBytes: small, blockBytes: 1000 });
          await inner.put("a", pattern(5000));
          const options = range === undefined ? {} : { range };
          const expected = pattern(5000).slice(range?.start, range?.end);
          equal(await read(cache, "a", options), expected);
          const [name] = await objectsIn(dir);
          await damage(join(dir, "eider-cache-2", "objects", name!));
          const reader = fresh ? another() : cache;
          equal(await read(reader, "a", options), expected);
          expect(reader.stats.damaged).toBe(1);
          equal(await read(reader, "a", options), expected);
        }
      }
      const { cache, inner, dir } = world(Store);
      await inner.put("a", pattern(5000));
      await (await cache.localize(["a"])).release();
      const [name] = await objectsIn(dir);
      await damage(join(dir, "eider-cache-2", "objects", name!));
      await using copies = await cache.localize(["a"]);
      equal(await readFile(copies.paths[0]!), pattern(5000));
    }
  },

  "a bit that rotted unseen is found by the next process": async (Store) => {
    const { cache, inner, dir, another } = world(Store);
    await inner.put("a", pattern(5000));
    await read(cache, "a");
    const path = join(dir, "eider-cache-2", "objects", (await objectsIn(dir))[0]!);
    const { atime, mtime } = await stat(path);
    const bytes = await readFile(path);
    bytes[7]! ^= 4;
    await writeFile(path, bytes);
    await utimes(path, atime, mtime);
    equal(await read(another(), "a"), pattern(5000));
  },

  "it never holds more than its bytes, and lets go what was not used for longest": async (Store) => {
    const { cache, inner, seen, dir } = world(Store, { maxBytes: 3500 });
    for (const key of ["a", "b", "c", "d"]) await inner.put(key, pattern(1000, key.charCodeAt(0)));
    for (const key of ["a", "b", "c", "a", "d"]) {
      await read(cache, key);
      expect(await bytesIn(dir)).toBeLessThanOrEqual(3500);
    }
    expect(cache.stats.evicted).toBe(1);
    seen.reset();
    for (const key of ["a", "c", "d"]) await read(cache, key);
    expect(seen.counts.get.requests).toBe(0);
    await read(cache, "b");
    expect(seen.counts.get.requests).toBe(1);
    // Larger than all of it.
    await inner.put("e", pattern(4000));
    equal(await read(cache, "e"), pattern(4000));
    expect(await bytesIn(dir)).toBeLessThanOrEqual(3500);
    await expect(cache.localize(["e"])).rejects.toMatchObject({ name: "LimitError", code: "cache_too_small" });
  },

  "several caches on one folder share its bytes": async (Store) => {
    const { inner, dir, another } = world(Store, { maxBytes: 20_000, waitMs: 0 });
    for (let i = 0; i < 30; i++) await inner.put(`k${i}`, pattern(1000 + i * 50, i));
    const caches = [another(), another(), another(), another()];
    let [most, reading] = [0, true];
    const watching = (async () => {
      while (reading) {
        most = Math.max(most, await bytesIn(dir));
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const one = async (cache: CacheStore, i: number): Promise<void> => {
      const key = `k${(i * 7) % 30}`;
      equal(await read(cache, key), await read(inner, key));
      const copies = await cache.localize([key]).catch((error: unknown) => error);
      if (copies instanceof LimitError) return;
      if (copies instanceof Error) throw copies;
      const { paths, release } = copies as { paths: string[]; release: () => Promise<void> };
      equal(await readFile(paths[0]!), await read(inner, key));
      await release();
    };
    const walk = async (cache: CacheStore, from: number): Promise<void> => {
      for (let i = from; i < from + 40; i++) await one(cache, i);
    };
    await Promise.all(caches.map((cache, i) => walk(cache, i * 3)));
    reading = false;
    await watching;
    expect(most).toBeGreaterThan(10_000);
    expect(most).toBeLessThanOrEqual(20_000);
  },

  "localized files stay whatever is evicted, overwritten, purged or deleted, until they are released": async (
    Store,
  ) => {
    const { cache, inner, dir, another } = world(Store, { maxBytes: 4000 });
    for (const key of ["a.parquet", "b.parquet", "c", "d", "e"]) await inner.put(key, pattern(1000, key.charCodeAt(0)));
    const copies = await cache.localize(["a.parquet", "b.parquet", "a.parquet"]);
    expect(copies.paths[0]).toBe(copies.paths[2]);
    for (const path of copies.paths) expect(path).toMatch(/\.parquet$/);
    const other = another();
    for (const key of ["c", "d", "e"]) await read(other, key);
    await cache.put("a.parquet", pattern(1000, 1));
    await other.purge();
    await cache.delete("b.parquet");
    equal(await readFile(copies.paths[0]!), pattern(1000, 97));
    equal(await readFile(copies.paths[1]!), pattern(1000, 98));
    for (const key of ["c", "d", "e"]) await read(other, key);
    // Two in use and two cached.
    expect(await bytesIn(dir)).toBe(4000);
    await copies.release();
    for (const path of copies.paths) expect(existsSync(path)).toBe(false);
    await read(other, "c");
    expect(await bytesIn(dir)).toBeLessThanOrEqual(3000);
  },

  "localizing waits for room that others hold, and says so when it takes too long": async (Store) => {
    const { cache, inner, another } = world(Store, { maxBytes: 2500 });
    for (const key of ["a", "b", "c"]) await inner.put(key, pattern(1000, key.charCodeAt(0)));
    const first = await cache.localize(["a", "b"]);
    const impatient = another({ waitMs: 0 });
    await expect(impatient.localize(["c"])).rejects.toMatchObject({ name: "LimitError", code: "cache_full" });
    // What is read meanwhile comes from the store.
    equal(await read(impatient, "c"), pattern(1000, 99));
    expect(impatient.stats.bypassed).toBe(1);
    let full = 0;
    const onFull = async (): Promise<void> => {
      if (++full === 2) await first.release();
    };
    await using copies = await another().localize(["c", "a"], { onFull });
    expect(full).toBe(2);
    equal(await readFile(copies.paths[0]!), pattern(1000, 99));
    const abort = new AbortController();
    const reason = new Error("stop");
    const stuck = cache.localize(["b", "a", "c"].slice(0, 2), { signal: abort.signal });
    setTimeout(() => abort.abort(reason), 30);
    await expect(stuck).rejects.toBe(reason);
  },

  "two that localize more than fits together do not block each other": async (Store) => {
    const { inner, another } = world(Store, { maxBytes: 2000, waitMs: 3000 });
    const [first, second] = [another(), another()];
    for (const key of ["a", "b", "c", "d"]) await inner.put(key, pattern(1000, key.charCodeAt(0)));
    // Each finds one of its own there, and needs the room of the other's.
    await read(first, "a");
    await read(first, "c");
    const work = async (cache: CacheStore, keys: readonly string[]): Promise<void> => {
      await using copies = await cache.localize(keys);
      for (const [i, key] of keys.entries()) equal(await readFile(copies.paths[i]!), pattern(1000, key.charCodeAt(0)));
    };
    await Promise.all([work(first, ["a", "b"]), work(second, ["c", "d"]), work(first, ["b", "c"])]);
  },

  "localized objects are what was committed": async (Store) => {
    const { cache, inner } = world(Store);
    const bytes = pattern(1000);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    await inner.put("a", bytes);
    await inner.put("b", pattern(1000, 9));
    await using copies = await cache.localize([{ key: "a", size: 1000, sha256 }]);
    equal(await readFile(copies.paths[0]!), bytes);
    expect([...copies.fetched]).toEqual([["a", 1000]]);
    await using both = await cache.localize(["b", "a"]);
    expect([...both.fetched]).toEqual([["b", 1000]]);
    await both.release();
    await cache.purge(["b"]);
    for (const wrong of [{ size: 1000, sha256 }, { size: 999 }, { size: 1001 }]) {
      await expect(cache.localize([{ key: "b", ...wrong }])).rejects.toThrow(CorruptionError);
    }
    // One that was cached without being asked for it.
    await read(cache, "b");
    await expect(cache.localize([{ key: "b", size: 1000, sha256 }])).rejects.toThrow(CorruptionError);
    await expect(cache.localize(["a", "absent"])).rejects.toThrow(NotFoundError);
  },

  "localizing fetches several at once, each once, and tells how far it is": async (Store) => {
    const { inner, dir } = world(Store);
    let [now, most] = [0, 0];
    const slow = new FaultStore(inner, {
      before: async ({ kind }) => {
        if (kind !== "get") return;
        most = Math.max(most, ++now);
        await new Promise((resolve) => setTimeout(resolve, 5));
        now--;
      },
    });
    const seen = new CountingStore(slow);
    const cache = new Store(seen, { dir, maxBytes: 10_000_000, cacheable: () => true, concurrency: 3 });
    const keys = Array.from({ length: 12 }, (_, i) => `k${i}`);
    for (const key of keys) await inner.put(key, pattern(1000));
    const told: number[] = [];
    const both = await Promise.all([
      cache.localize(keys, { onProgress: (bytes) => told.push(bytes) }),
      cache.localize(keys),
    ]);
    expect(seen.counts.get.requests).toBe(12);
    expect(most).toBe(3);
    expect(told.at(-1)).toBe(12_000);
    for (const copies of both) await copies.release();
  },

  "an abort leaves its caller at once, and ends what nobody waits for any more": async (Store) => {
    const { inner, dir } = world(Store);
    await inner.put("a", pattern(100));
    let aborted = 0;
    const get: MemoryStore["get"] = (key, options) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => resolve(inner.get(key)), 300);
        options?.signal?.addEventListener("abort", () => {
          aborted++;
          clearTimeout(timer);
          reject(options.signal?.reason);
        });
      });
    const slow = Object.assign(new FaultStore(inner, {}), { get });
    const cache = new Store(slow, { dir, maxBytes: 10_000, cacheable: () => true });
    const reason = new Error("stop");
    const [first, second] = [new AbortController(), new AbortController()];
    const leaving = read(cache, "a", { signal: first.signal });
    const staying = read(cache, "a", { signal: second.signal });
    setTimeout(() => first.abort(reason), 20);
    await expect(leaving).rejects.toBe(reason);
    equal(await staying, pattern(100));
    expect(aborted).toBe(0);
    await cache.purge();
    const alone = read(cache, "a", { signal: second.signal });
    const copying = cache.localize(["a"], { signal: second.signal });
    setTimeout(() => second.abort(reason), 20);
    await Promise.all([expect(alone).rejects.toBe(reason), expect(copying).rejects.toBe(reason)]);
    expect(aborted).toBe(1);
    expect(await bytesIn(dir)).toBe(0);
  },

  "a fetch that fails leaves nothing, and the next one succeeds": async (Store) => {
    const { inner, dir } = world(Store);
    const rules = [
      { on: "get" as const, fault: { type: "cut" as const, bytes: 1_500_000 } },
      { on: "get" as const, skip: 1, fault: { type: "fail" as const } },
    ];
    const cache = new Store(new FaultStore(inner, { rules }), { dir, maxBytes: 9e6, cacheable: () => true });
    await inner.put("a", pattern(3_000_000));
    for (let i = 0; i < 2; i++) await expect(cache.localize(["a"])).rejects.toMatchObject({ code: "injected_fault" });
    expect(await bytesIn(dir)).toBe(0);
    equal(await read(cache, "a"), pattern(3_000_000));
    const processes = await readdir(join(dir, "eider-cache-2", "processes"));
    for (const process of processes) {
      expect(await readdir(join(dir, "eider-cache-2", "processes", process))).toEqual([]);
    }
  },

  "purge removes from the cache what must not stay, for all that share it": async (Store) => {
    const { cache, inner, seen, dir, another } = world(Store);
    for (const key of ["a", "b"]) await inner.put(key, pattern(1000));
    const other = another();
    await other.get("b");
    for (const key of ["a", "b"]) await read(other, key);
    await cache.purge(["a"]);
    expect(await objectsIn(dir)).toHaveLength(1);
    seen.reset();
    await read(other, "b");
    expect(seen.counts.get.requests).toBe(0);
    await read(other, "a");
    expect(seen.counts.get.requests).toBe(1);
    await cache.purge();
    expect(await bytesIn(dir)).toBe(0);
  },

  "stores that share a folder do not share keys": async (Store) => {
    const { dir } = world(Store);
    for (const value of [1, 2]) {
      const inner = new MemoryStore();
      await inner.put("a", pattern(100, value));
      const cache = new Store(inner, { dir, maxBytes: 10_000, cacheable: () => true });
      equal(await read(cache, "a"), pattern(100, value));
    }
  },

  "closing ends what is under way and leaves only what is cached": async (Store) => {
    const { inner, dir } = world(Store);
    await inner.put("a", pattern(100));
    await inner.put("b", pattern(3_000_000));
    const hanging = new FaultStore(inner, { rules: [{ on: "get", key: "c", fault: { type: "hang" } }] });
    const cache = new Store(hanging, { dir, maxBytes: 9e6, cacheable: () => true });
    await cache.localize(["a"]);
    const { body } = await cache.get("b");
    const stuck = read(cache, "c").catch((error: unknown) => error);
    await cache[Symbol.asyncDispose]();
    expect(await stuck).toMatchObject({ name: "StoreError", code: "store_closed" });
    await expect(readBody(body)).rejects.toMatchObject({ code: "store_closed" });
    await expect(cache.get("a")).rejects.toMatchObject({ code: "store_closed" });
    await expect(cache.localize(["a"])).rejects.toMatchObject({ code: "store_closed" });
    expect(await readdir(join(dir, "eider-cache-2", "processes"))).toEqual([]);
    expect(await objectsIn(dir)).toHaveLength(2);
  },

  "a cache that cannot write reads from the store": async (Store) => {
    const { cache, inner, dir } = world(Store);
    await inner.put("a", pattern(100));
    await inner.put("b", pattern(200));
    await read(cache, "a");
    await rm(join(dir, "eider-cache-2"), { recursive: true });
    await writeFile(join(dir, "eider-cache-2"), "a file");
    equal(await read(cache, "a"), pattern(100));
    equal(await read(cache, "b"), pattern(200));
    await expect(cache.localize(["a"])).rejects.toThrow(StoreError);
    await expect(new Store(inner, { dir, maxBytes: 1, cacheable: () => true }).get("a")).rejects.toThrow(StoreError);
  },

  "options that mean nothing are refused": async (Store) => {
    for (const wrong of [{ maxBytes: 0 }, { maxBytes: Number.NaN }, { blockBytes: 0 }, { concurrency: 0.5 }]) {
      expect(() => world(Store, wrong)).toThrow(InvalidInputError);
    }
  },
};

test.each(Object.entries(checks))("%s", (_, check) => check(CacheStore));

const faults: readonly PlantedFault[] = [
  {
    fault: "serves an object that was overwritten to who asks for an etag",
    check: "an etag that was asked for is what is given, whatever is cached",
    file: "cache-copies.ts",
    from: "if (etag !== undefined && etag !== facts.etag) return false;",
    to: "",
  },
  {
    fault: "keeps what it read while the object was overwritten",
    check: "a read that was under way when its object was put is kept for nobody",
    file: "flights.ts",
    from: "flight.spoiled = true;",
    to: "",
  },
  {
    fault: "joins blocks of two versions",
    check: "blocks of two versions are never joined",
    file: "cache-store.ts",
    from: "pieces.some(({ facts }) => facts.etag !== first.facts.etag)",
    to: "pieces.length < 0",
  },
  {
    fault: "serves a cut file",
    check: "a damaged file is fetched again and never served",
    file: "cache-folder.ts",
    from: "if (!untouched || !this.#index.isVerified(piece)) {",
    to: "if (!this.#index.isVerified(piece)) {",
  },
  {
    fault: "compares no bytes",
    check: "a bit that rotted unseen is found by the next process",
    file: "cache-folder.ts",
    from: "stats.size !== piece.bytes || (await hashFile(handle)) !== piece.sha256",
    to: "stats.size !== piece.bytes",
  },
  {
    fault: "counts only its own files, and so grows",
    check: "several caches on one folder share its bytes",
    file: "cache-folder.ts",
    from: "for (const { id, bytes } of pieces) sizes.set(id, bytes);",
    to: "for (const { id, bytes, name } of pieces) if (this.#index.isVerified({ name } as CachePiece)) sizes.set(id, bytes);",
  },
  {
    fault: "does not count what is being written",
    check: "several caches on one folder share its bytes",
    file: "cache-folder.ts",
    from: "sizes.set(own.id, own.bytes);",
    to: "",
  },
  {
    fault: "does not count leases whose objects are gone",
    check: "localized files stay whatever is evicted, overwritten, purged or deleted, until they are released",
    file: "cache-folder.ts",
    from: "sizes.set(own.id, own.bytes);",
    to: "if (pinned.size < 0) sizes.set(own.id, own.bytes);",
  },
  {
    fault: "evicts in any order",
    check: "it never holds more than its bytes, and lets go what was not used for longest",
    file: "cache-folder.ts",
    from: "(a, b) => a.at - b.at",
    to: "(a, b) => b.at - a.at",
  },
  {
    fault: "gives out the cached file itself, which may be evicted",
    check: "localized files stay whatever is evicted, overwritten, purged or deleted, until they are released",
    file: "cache-folder.ts",
    from: "if (await this.check(piece, path)) return path;",
    to: "if (await this.check(piece, path)) return this.path(piece);",
  },
  {
    fault: "never releases",
    check: "localized files stay whatever is evicted, overwritten, purged or deleted, until they are released",
    file: "cache-copies.ts",
    from: "await this.#parts.folder.release(paths);",
    to: "",
  },
  {
    fault: "keeps its leases while it waits for room",
    check: "two that localize more than fits together do not block each other",
    file: "cache-copies.ts",
    from: "await release();\n      await options.onFull?.();",
    to: "await options.onFull?.();",
  },
  {
    fault: "fetches for each reader",
    check: "racing reads of one object fetch it once",
    file: "flights.ts",
    from: "for (const name of names) this.#byName.set(name, flight);",
    to: "",
  },
  {
    fault: "loses the signal",
    check: "an abort leaves its caller at once, and ends what nobody waits for any more",
    file: "flights.ts",
    from: "if (--this.#waiting === 0) this.abort(signal?.reason);",
    to: "--this.#waiting;",
  },
  {
    fault: "ends everybody's fetch with the first who leaves",
    check: "an abort leaves its caller at once, and ends what nobody waits for any more",
    file: "flights.ts",
    from: "if (--this.#waiting === 0) this.abort(signal?.reason);",
    to: "--this.#waiting;\n      if (signal?.aborted) this.abort(signal.reason);",
  },
  {
    fault: "caches what may change",
    check: "keys that may change always come from the store",
    file: "cache-store.ts",
    from: "if (!this.#options.cacheable(key)) return this.inner.get(key, options);",
    to: "",
  },
  {
    fault: "copies what may change only once",
    check: "keys that may change always come from the store",
    file: "cache-store.ts",
    from: "object.etag !== undefined || this.#options.cacheable(object.key)",
    to: "true",
  },
  {
    fault: "does not check what it copies",
    check: "localized objects are what was committed",
    file: "cache-fetch.ts",
    from: `expected.sha256 !== undefined && digest.toString("hex") !== expected.sha256`,
    to: "false",
  },
  {
    fault: "fails when its disk does",
    check: "a cache that cannot write reads from the store",
    file: "cache-store.ts",
    from: "if (!(error instanceof CacheFileError)) throw error;",
    to: "throw error;",
  },
];

const plantation = new Plantation();
afterAll(() => plantation.remove());

test.each(faults)("a cache that $fault is found", async (planted) => {
  const { CacheStore: Faulty } = await plantation.plant(planted);
  const check = checks[planted.check];
  if (check === undefined) throw new Error(`no check is called ${planted.check}`);
  const late = new Promise((_, reject) => setTimeout(reject, 15_000, new Error("not done in time")));
  await expect(Promise.race([check(Faulty), late])).rejects.toThrow();
});
