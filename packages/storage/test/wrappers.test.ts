import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { StoreError } from "@eider/core";
import { describe, expect, test } from "vitest";
import {
  CacheStore,
  CountingStore,
  type FaultRule,
  FaultStore,
  FileStore,
  MemoryStore,
  type ObjectStore,
  PrefixStore,
  RetryStore,
  type StoreCall,
} from "../src/index.js";

const bytes = (length: number): Uint8Array => new Uint8Array(length).fill(1);

async function keysOf(store: ObjectStore, prefix = "", after?: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix, after === undefined ? {} : { after })) keys.push(key);
  return keys;
}

async function readLength(store: ObjectStore, key: string): Promise<number> {
  let length = 0;
  for await (const chunk of (await store.get(key)).body) length += chunk.length;
  return length;
}

describe("every wrapper", () => {
  const wraps: readonly ((inner: ObjectStore) => ObjectStore)[] = [
    (inner) => new PrefixStore(inner, "p"),
    (inner) => new CountingStore(inner),
    (inner) => new FaultStore(inner, {}),
    (inner) => new RetryStore(inner),
    (inner) => new CacheStore(inner, { dir: join(tmpdir(), "eider-unused"), maxBytes: 1, cacheable: () => true }),
  ];

  test("forwards capabilities, and localPath and serverTime only where there are any", () => {
    for (const wrap of wraps) {
      const capabilities = { ...new MemoryStore().capabilities, conditionalPut: false };
      expect(wrap(Object.assign(new MemoryStore(), { capabilities })).capabilities).toBe(capabilities);
      expect(wrap(new MemoryStore()).localPath).toBeUndefined();
      expect(wrap(new FileStore("lake")).localPath?.("a/b")).toMatch(/lake.*b$/);
      expect(wrap(new MemoryStore()).serverTime).toBeUndefined();
      expect(wrap(Object.assign(new MemoryStore(), { serverTime: () => 42 })).serverTime?.()).toBe(42);
    }
  });

  test("closes the store inside", async () => {
    for (const wrap of wraps) {
      const inner = new MemoryStore();
      await wrap(inner)[Symbol.asyncDispose]();
      await expect(inner.head("a")).rejects.toMatchObject({ code: "store_closed" });
    }
  });
});

describe("PrefixStore", () => {
  test("shows only what is below its folder, relative to it", async () => {
    const inner = new MemoryStore();
    const store = new PrefixStore(inner, "lakes/a");
    for (const key of ["lakes/a", "lakes/a/1", "lakes/a/2/x", "lakes/ab/3", "4"]) await inner.put(key, bytes(1));
    expect(await keysOf(store)).toEqual(["1", "2/x"]);
    expect(await keysOf(store, "2")).toEqual(["2/x"]);
    expect(await keysOf(store, "", "1")).toEqual(["2/x"]);
    expect((await store.put("5", bytes(2))).key).toBe("5");
    expect((await inner.head("lakes/a/5"))?.size).toBe(2);
    await store.delete(["1", "5"]);
    expect(await keysOf(inner)).toEqual(["4", "lakes/a", "lakes/a/2/x", "lakes/ab/3"]);
  });

  test("lets no key climb out", async () => {
    const store = new PrefixStore(new MemoryStore(), "lakes/a");
    for (const key of ["../b/x", "", "/x", "x/../../b"]) {
      await expect(store.put(key, bytes(1)), key).rejects.toMatchObject({ code: "bad_key" });
    }
    expect(() => new PrefixStore(new MemoryStore(), "../a")).toThrow("cannot be an object's key");
    expect(() => new PrefixStore(new FileStore("lake"), "p").localPath?.("../x")).toThrow("cannot be an object's key");
  });

  test("names its place and gives its paths", () => {
    expect(new PrefixStore(new MemoryStore(), "p/q").url).toBe("memory:p/q/");
    const files = new PrefixStore(new FileStore("lake"), "p/q");
    expect(files.url).toMatch(/^file:\/\/\/.*\/lake\/p\/q\/$/);
    expect(files.localPath?.("x")).toBe(resolve(join("lake", "p", "q", "x")));
  });
});

describe("CountingStore", () => {
  test("counts requests, bytes and keys by kind, failed calls too", async () => {
    const store = new CountingStore(new MemoryStore());
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield bytes(300);
      yield bytes(700);
    }
    await store.put("a", bytes(10));
    await store.put("b", stream());
    await expect(store.put("a", bytes(5), { ifAbsent: true })).rejects.toThrow("exists");
    await readLength(store, "b");
    await store.get("b");
    const { body } = await store.get("b", { range: { suffix: 4 } });
    for await (const _ of body);
    await expect(store.get("absent")).rejects.toThrow("no object");
    await store.head("a");
    await keysOf(store);
    await keysOf(store, "b");
    const before = store.counts;
    expect(before).toEqual({
      put: { requests: 3, bytes: 1015 },
      get: { requests: 4, bytes: 1004 },
      head: { requests: 1 },
      list: { requests: 2, keys: 3 },
      delete: { requests: 0, keys: 0 },
    });
    await store.delete(["a", "b", "c"]);
    await store.delete("a");
    expect(store.counts.delete).toEqual({ requests: 2, keys: 4 });
    expect(before.delete).toEqual({ requests: 0, keys: 0 });
    store.reset();
    expect(store.counts.put).toEqual({ requests: 0, bytes: 0 });
  });
});

describe("FaultStore", () => {
  const faulty = (...rules: FaultRule[]): { store: FaultStore; inner: MemoryStore } => {
    const inner = new MemoryStore();
    return { store: new FaultStore(inner, { rules }), inner };
  };

  test("fails before the effect: nothing happened", async () => {
    const { store, inner } = faulty({ on: "put", fault: { type: "fail" } });
    await expect(store.put("a", bytes(1))).rejects.toMatchObject({ code: "injected_fault", retryable: true });
    expect(await inner.head("a")).toBeUndefined();
    await store.put("a", bytes(1));
    expect((await inner.head("a"))?.size).toBe(1);
  });

  test("fails after the effect: the answer is lost", async () => {
    const lost = new StoreError("timeout", "no answer", { retryable: true });
    const { store, inner } = faulty({ on: "put", at: "after", fault: { type: "fail", error: lost } });
    await expect(store.put("a", bytes(1), { ifAbsent: true })).rejects.toBe(lost);
    expect((await inner.head("a"))?.size).toBe(1);
    await expect(store.put("a", bytes(1), { ifAbsent: true })).rejects.toMatchObject({ code: "object_exists" });
  });

  test("chooses calls by kind, key, count", async () => {
    const { store } = faulty({ on: "head", key: /^b\//g, skip: 1, times: 2, fault: { type: "fail" } });
    const failed: string[] = [];
    for (const key of ["a", "b/1", "b/2", "a", "b/3", "b/4"]) {
      await store.head(key).catch(() => failed.push(key));
      await store.put(key, bytes(1));
    }
    expect(failed).toEqual(["b/2", "b/3"]);
    const exact = faulty({ key: "a", times: Number.POSITIVE_INFINITY, fault: { type: "fail" } }).store;
    await expect(exact.delete(["b", "a"])).rejects.toThrow("delete b, a failed");
    await exact.head("ab");
    await expect(exact.get("a")).rejects.toThrow("get a failed");
  });

  test("hangs until the signal aborts or the store closes", async () => {
    const { store } = faulty({ times: 2, fault: { type: "hang" } });
    const abort = new AbortController();
    const hanging = store.head("a", { signal: abort.signal });
    const closed = store.head("a");
    abort.abort(new Error("enough"));
    await expect(hanging).rejects.toThrow("enough");
    const closing = store[Symbol.asyncDispose]();
    await expect(closed).rejects.toMatchObject({ code: "store_closed" });
    await closing;
  });

  test("delays, and then goes on", async () => {
    const { store } = faulty({ on: "put", fault: { type: "delay", milliseconds: 5 } });
    const order: string[] = [];
    await Promise.all([
      store.put("slow", bytes(1)).then(() => order.push("slow")),
      store.put("fast", bytes(1)).then(() => order.push("fast")),
    ]);
    expect(order).toEqual(["fast", "slow"]);
  });

  test("cuts the body of a get", async () => {
    const { store, inner } = faulty({ on: "get", fault: { type: "cut", bytes: 1_500_000 } });
    await inner.put("a", bytes(4_000_000));
    let length = 0;
    const reading = (async () => {
      for await (const chunk of (await store.get("a")).body) length += chunk.length;
    })();
    await expect(reading).rejects.toMatchObject({ code: "injected_fault" });
    expect(length).toBe(1_500_000);
    expect(await readLength(store, "a")).toBe(4_000_000);
  });

  test("fails a listing before it and after its last key", async () => {
    const before = faulty({ on: "list", fault: { type: "fail" } });
    await expect(keysOf(before.store)).rejects.toThrow("list");
    const { store, inner } = faulty({ on: "list", key: "p/", at: "after", fault: { type: "fail" } });
    await inner.put("p/a", bytes(1));
    const seen: string[] = [];
    const listing = (async () => {
      for await (const { key } of store.list("p/")) seen.push(key);
    })();
    await expect(listing).rejects.toThrow("list p/ failed");
    expect(seen).toEqual(["p/a"]);
  });

  test("tells hooks of each call, before, during and after", async () => {
    const told: string[] = [];
    const tell = (when: string) => (call: StoreCall) => {
      told.push(`${when} ${call.number} ${call.kind} ${call.keys}`);
    };
    const store = new FaultStore(new MemoryStore(), {
      before: tell("before"),
      after: tell("after"),
      during: (call, done) => told.push(`during ${call.number} ${done}`),
    });
    async function* stream(): AsyncGenerator<Uint8Array> {
      yield bytes(2);
      yield bytes(3);
    }
    await store.put("a", stream());
    await keysOf(store, "x");
    await expect(store.get("b")).rejects.toThrow("no object");
    expect(told).toEqual([
      "before 1 put a",
      "during 1 2",
      "during 1 5",
      "after 1 put a",
      "before 2 list x",
      "after 2 list x",
      "before 3 get b",
    ]);
  });

  test("fails a put whose hook throws during it, and leaves nothing", async () => {
    const store = new FaultStore(new MemoryStore(), {
      during: (_, done) => {
        if (done > 1_000_000) throw new Error("enough");
      },
    });
    await expect(store.put("a", bytes(3_000_000))).rejects.toThrow("enough");
    expect(await store.head("a")).toBeUndefined();
  });
});
