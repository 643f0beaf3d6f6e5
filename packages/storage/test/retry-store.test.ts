import { NotFoundError, StoreError } from "@eider/core";
import { afterAll, expect, test } from "vitest";
import {
  CountingStore,
  type FaultRule,
  FaultStore,
  MemoryStore,
  type ObjectStore,
  type RetryOptions,
  RetryStore,
  readBody,
} from "../src/index.js";
import { Plantation, type PlantedFault } from "./planted.js";

type Retry = typeof RetryStore;

const text = (value: string): Uint8Array => new TextEncoder().encode(value);
const pattern = (length: number): Uint8Array => new Uint8Array(length).map((_, i) => i % 251);
const busy = (): StoreError => new StoreError("store_busy", "busy", { retryable: true });
const unsettled = (): StoreError => new StoreError("put_unsettled", "no answer");
const noWait: RetryOptions = { clock: { now: Date.now, sleep: async () => undefined } };

const lost = (rule: Partial<FaultRule> = {}): FaultRule => ({
  on: "put",
  at: "after",
  fault: { type: "fail", error: unsettled() },
  ...rule,
});
const failed = (rule: Partial<FaultRule> = {}): FaultRule => ({ fault: { type: "fail", error: busy() }, ...rule });

function layers(
  Store: Retry,
  rules: readonly FaultRule[],
  options: RetryOptions = noWait,
): { store: ObjectStore; seen: CountingStore; inner: MemoryStore } {
  const inner = new MemoryStore();
  const seen = new CountingStore(new FaultStore(inner, { rules }));
  return { store: new Store(seen, options), seen, inner };
}

const read = async (store: ObjectStore, key: string): Promise<Uint8Array> => readBody((await store.get(key)).body);

async function keysOf(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("")) keys.push(key);
  return keys;
}

async function* stream(...chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

/** Each is run with the store, and with stores that have a fault which one of them must notice. */
const checks: Readonly<Record<string, (Store: Retry) => Promise<void>>> = {
  "every call is tried again after a retryable failure": async (Store) => {
    const each = (["put", "get", "head", "delete"] as const).map((on) => failed({ on, times: 2 }));
    const { store, seen } = layers(Store, [...each, failed({ on: "list", times: 2 })]);
    await store.put("a", text("x"));
    expect(await read(store, "a")).toEqual(text("x"));
    expect((await store.head("a"))?.size).toBe(1);
    expect(await keysOf(store)).toEqual(["a"]);
    await store.delete("a");
    const { put, get, head, list } = seen.counts;
    const requests = [put, get, head, list, seen.counts.delete].map((count) => count.requests);
    expect(requests).toEqual([3, 3, 3, 3, 3]);
  },

  "what is not retryable is tried once": async (Store) => {
    const full = new StoreError("store_full", "full");
    const { store, seen } = layers(Store, [{ fault: { type: "fail", error: full } }]);
    await expect(store.put("a", text("x"))).rejects.toBe(full);
    await expect(store.get("absent")).rejects.toThrow(NotFoundError);
    await expect(store.put("../a", text("x"))).rejects.toMatchObject({ code: "bad_key" });
    expect([seen.counts.put.requests, seen.counts.get.requests]).toEqual([2, 1]);
  },

  "the tries end, with the last error": async (Store) => {
    const error = busy();
    const rules = [{ times: Number.POSITIVE_INFINITY, fault: { type: "fail", error } }] as const;
    const { store, seen, inner } = layers(Store, rules, { ...noWait, attempts: 4 });
    await expect(store.put("a", text("x"))).rejects.toBe(error);
    await expect(store.head("a")).rejects.toBe(error);
    expect([seen.counts.put.requests, seen.counts.head.requests]).toEqual([4, 4]);
    expect(await inner.head("a")).toBeUndefined();
  },

  "a create whose answer was lost is the caller's own success, whatever way it was lost": async (Store) => {
    for (const error of [unsettled(), busy()]) {
      for (const body of [() => text("mine"), () => stream(text("mi"), text("ne"))]) {
        const { store, inner } = layers(Store, [lost({ fault: { type: "fail", error } })]);
        const info = await store.put("a", body(), { ifAbsent: true });
        expect(info).toEqual(await inner.head("a"));
        expect(await read(inner, "a")).toEqual(text("mine"));
      }
    }
  },

  "a create that another writer won is refused, also at the same size": async (Store) => {
    const { store, inner } = layers(Store, [failed({ on: "put" })]);
    await inner.put("a", text("theirs"));
    for (const body of [text("mine"), text("mine-2")]) {
      await expect(store.put("a", body, { ifAbsent: true })).rejects.toMatchObject({ code: "object_exists" });
    }
    const late = layers(Store, [lost({ at: "before" })]);
    await late.inner.put("a", text("theirs"));
    await expect(late.store.put("a", text("mine-2"), { ifAbsent: true })).rejects.toMatchObject({
      code: "object_exists",
    });
    expect(await read(late.inner, "a")).toEqual(text("theirs"));
  },

  "a first create that is refused is not asked about again, though the bytes are the same": async (Store) => {
    const { store, seen, inner } = layers(Store, []);
    await inner.put("a", text("same"));
    await expect(store.put("a", text("same"), { ifAbsent: true })).rejects.toMatchObject({ code: "object_exists" });
    expect([seen.counts.put.requests, seen.counts.head.requests]).toEqual([1, 0]);
  },

  "a put that cannot be settled stays unsettled, whatever failed last": async (Store) => {
    const offline = new StoreError("store_offline", "offline", { retryable: true });
    const later = failed({ skip: 1, times: Number.POSITIVE_INFINITY, fault: { type: "fail", error: offline } });
    for (const options of [{}, { ifAbsent: true }]) {
      const { store, inner } = layers(Store, [lost({ on: "put" }), later]);
      await expect(store.put("a", text("x"), options)).rejects.toMatchObject({ code: "put_unsettled" });
      expect((await inner.head("a"))?.size).toBe(1);
    }
    // A create whose loser cannot look at what is there does not know whether it lost.
    const blind = layers(Store, [
      lost({ fault: { type: "fail", error: busy() } }),
      failed({ on: "head", times: Number.POSITIVE_INFINITY }),
    ]);
    await expect(blind.store.put("a", text("x"), { ifAbsent: true })).rejects.toMatchObject({ code: "put_unsettled" });
  },

  "an unsettled replacement that was replaced again is not called a failure": async (Store) => {
    const { store, inner } = layers(Store, [lost()]);
    const old = await inner.put("a", text("old"));
    const mine = await store.put("a", text("mine"), { ifMatch: old.etag });
    expect(mine).toEqual(await inner.head("a"));
    // Another writer comes between the put, whose answer is lost, and the look.
    const racing = new FaultStore(inner, {
      rules: [lost()],
      before: async ({ kind }) => void (kind === "head" && (await inner.put("a", text("theirs")))),
    });
    const again = new Store(racing, noWait).put("a", text("again"), { ifMatch: mine.etag });
    await expect(again).rejects.toMatchObject({ code: "put_unsettled" });
    // A first try that is refused is an answer.
    const stale = new Store(inner, noWait).put("a", text("x"), { ifMatch: mine.etag });
    await expect(stale).rejects.toMatchObject({ code: "etag_mismatch" });
  },

  "a stream is tried again only before it was opened": async (Store) => {
    const before = layers(Store, [failed({ on: "put" })]);
    await before.store.put("a", stream(text("x"), text("y")));
    expect(await read(before.inner, "a")).toEqual(text("xy"));
    const error = busy();
    const after = layers(Store, [failed({ on: "put", at: "after", fault: { type: "fail", error } })]);
    const inner = new FaultStore(after.inner, {
      during: () => {
        throw error;
      },
    });
    let opened = 0;
    const source = {
      [Symbol.asyncIterator]: () => {
        opened++;
        return stream(text("x"), text("y"));
      },
    };
    await expect(new Store(inner, noWait).put("b", source)).rejects.toBe(error);
    expect(opened).toBe(1);
    expect(await after.inner.head("b")).toBeUndefined();
  },

  "a failing source is the caller's failure, though it calls itself retryable": async (Store) => {
    const error = busy();
    const { store, seen } = layers(Store, []);
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield text("x");
      throw error;
    }
    await expect(store.put("a", broken())).rejects.toBe(error);
    expect(seen.counts.put.requests).toBe(1);
  },

  "a put that must be sent once is": async (Store) => {
    for (const error of [unsettled(), busy()]) {
      const { store, seen } = layers(Store, [lost({ fault: { type: "fail", error } })]);
      await expect(store.put("a", text("x"), { ifAbsent: true, retries: "none" })).rejects.toBe(error);
      expect([seen.counts.put.requests, seen.counts.head.requests, seen.counts.get.requests]).toEqual([1, 0, 0]);
    }
  },

  "a body that breaks goes on where it was, also in a range": async (Store) => {
    const bytes = pattern(3_000_000);
    const cuts = [1, 1_000_000, 1_700_000].map((at, i) =>
      failed({ on: "get", skip: i, fault: { type: "cut", bytes: at } }),
    );
    const { store, seen, inner } = layers(Store, cuts);
    await inner.put("a", bytes);
    expect(Buffer.compare(await read(store, "a"), bytes)).toBe(0);
    // 1 + 1,000,000 + 1,700,000 bytes, and the rest.
    expect(seen.counts.get).toEqual({ requests: 4, bytes: 3_000_000 });
    for (const range of [{ start: 5, end: 2_000_000 }, { start: 7 }, { suffix: 2_500_000 }]) {
      const ranged = layers(Store, [failed({ on: "get", fault: { type: "cut", bytes: 1_200_000 } })]);
      await ranged.inner.put("a", bytes);
      const expected = "suffix" in range ? bytes.slice(-range.suffix) : bytes.slice(range.start, range.end);
      const got = await readBody((await ranged.store.get("a", { range })).body);
      expect(Buffer.compare(got, expected)).toBe(0);
    }
  },

  "a body that ends early without an error is not taken for whole": async (Store) => {
    const inner = new MemoryStore();
    const bytes = pattern(2_000_000);
    await inner.put("a", bytes);
    let gets = 0;
    const get: MemoryStore["get"] = async (key, options) => {
      const object = await inner.get(key, options);
      if (++gets > 1) return object;
      const chunk = (await readBody(object.body)).slice(0, 700_000);
      return { ...object, body: stream(chunk) };
    };
    const short = Object.assign(new FaultStore(inner, {}), { get });
    expect(Buffer.compare(await read(new Store(short, noWait), "a"), bytes)).toBe(0);
    expect(gets).toBe(2);
  },

  "bytes of two objects are never joined": async (Store) => {
    for (const change of ["put", "delete"] as const) {
      const { store, inner } = layers(Store, [failed({ on: "get", fault: { type: "cut", bytes: 1_500_000 } })]);
      await inner.put("a", pattern(3_000_000));
      const { body } = await store.get("a");
      await (change === "put" ? inner.put("a", new Uint8Array(3_000_000)) : inner.delete("a"));
      await expect(readBody(body)).rejects.toMatchObject({ name: "StoreError", code: "object_changed" });
    }
  },

  "a listing that breaks goes on after its last key": async (Store) => {
    const inner = new MemoryStore();
    for (const key of ["a", "b", "c", "d"]) await inner.put(key, text(key));
    let breaks = 0;
    const list: MemoryStore["list"] = async function* (prefix, options) {
      for await (const info of inner.list(prefix, options)) {
        yield info;
        if (breaks++ < 3) throw busy();
      }
    };
    const breaking = Object.assign(new FaultStore(inner, {}), { list });
    expect(await keysOf(new Store(breaking, { ...noWait, attempts: 2 }))).toEqual(["a", "b", "c", "d"]);
  },

  "an abort ends a wait at once": async (Store) => {
    const abort = new AbortController();
    const reason = new Error("stop");
    const waits = { baseMs: 3_600_000, maxMs: 3_600_000, onRetry: () => queueMicrotask(() => abort.abort(reason)) };
    const signal = abort.signal;
    const calls: readonly ((store: ObjectStore) => Promise<unknown>)[] = [
      (store) => store.put("a", text("x"), { signal }),
      (store) => store.get("a", { signal }),
      (store) => store.head("a", { signal }),
      (store) => store.delete("a", { signal }),
      (store) => store.list("", { signal })[Symbol.asyncIterator]().next(),
    ];
    for (const call of calls) {
      const { store } = layers(Store, [failed({ times: Number.POSITIVE_INFINITY })], waits);
      const late = new Promise((resolve) => setTimeout(resolve, 2000, "still waiting"));
      expect(await Promise.race([call(store).catch((error: unknown) => error), late])).toBe(reason);
    }
  },

  "progress never goes back": async (Store) => {
    const { store } = layers(Store, [failed({ on: "put", at: "after" })]);
    const told: number[] = [];
    await store.put("a", pattern(2_500_000), { onProgress: (bytes) => told.push(bytes) });
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.at(-1)).toBe(2_500_000);
  },
};

test.each(Object.entries(checks))("%s", (_, check) => check(RetryStore));

const faults: readonly PlantedFault[] = [
  {
    fault: "tries what is not retryable again",
    check: "what is not retryable is tried once",
    file: "backoff.ts",
    from: "return error instanceof StoreError && error.retryable;",
    to: "return error instanceof StoreError;",
  },
  {
    fault: "tries without an end",
    check: "the tries end, with the last error",
    file: "backoff.ts",
    from: "|| attempt >= attempts",
    to: "|| attempt >= attempts * 100",
  },
  {
    fault: "turns its own success into AlreadyExists",
    check: "a create whose answer was lost is the caller's own success, whatever way it was lost",
    file: "retry-store.ts",
    from: "if (stored !== undefined) return stored;",
    to: "",
  },
  {
    fault: "takes an object of the same size for its own",
    check: "a create that another writer won is refused, also at the same size",
    file: "put-attempt.ts",
    from: `hash.digest("hex") === wanted?.digest("hex")`,
    to: "wanted !== undefined",
  },
  {
    fault: "takes any object that is there for its own",
    check: "a first create that is refused is not asked about again, though the bytes are the same",
    file: "retry-store.ts",
    from: "(failed && isRefused(error))",
    to: "isRefused(error)",
  },
  {
    fault: "swallows that the outcome is unknown",
    check: "a put that cannot be settled stays unsettled, whatever failed last",
    file: "retry-store.ts",
    from: "throw answered ? final : stillUnsettled(key, final);",
    to: "throw final;",
  },
  {
    fault: "calls an etag's mismatch after an unknown outcome a failure",
    check: "an unsettled replacement that was replaced again is not called a failure",
    file: "retry-store.ts",
    from: "isUnsettled(final) || final instanceof AlreadyExistsError",
    to: "isUnsettled(final) || isRefused(final)",
  },
  {
    fault: "gives the rest of a stream to a second try",
    check: "a stream is tried again only before it was opened",
    file: "put-attempt.ts",
    from: "this.#body instanceof Uint8Array || !this.#opened",
    to: "true",
  },
  {
    fault: "tries again what must be sent once",
    check: "a put that must be sent once is",
    file: "retry-store.ts",
    from: `if (options.retries === "none")`,
    to: "if (options.retries === undefined && false)",
  },
  {
    fault: "begins a broken body again",
    check: "a body that breaks goes on where it was, also in a range",
    file: "retry-store.ts",
    from: "{ start: next, end: range.end }",
    to: "{ start: range.start, end: range.end }",
  },
  {
    fault: "takes a short body for whole",
    check: "a body that ends early without an error is not taken for whole",
    file: "retry-store.ts",
    from: "if (next === range.end) return;",
    to: "return;",
  },
  {
    fault: "joins bytes of two objects",
    check: "bytes of two objects are never joined",
    file: "retry-store.ts",
    from: "if (rest.etag === object.etag)",
    to: "if (rest.size === object.size)",
  },
  {
    fault: "lists from the start again",
    check: "a listing that breaks goes on after its last key",
    file: "retry-store.ts",
    from: "from = { ...options, after: info.key };",
    to: "",
  },
  {
    fault: "waits though it was aborted",
    check: "an abort ends a wait at once",
    file: "backoff.ts",
    from: "await clock.sleep(delayMs, signal);",
    to: "await clock.sleep(delayMs);",
  },
];

const plantation = new Plantation();
afterAll(() => plantation.remove());

test.each(faults)("a store that $fault is found", async (planted) => {
  const { RetryStore: Faulty } = await plantation.plant(planted);
  const check = checks[planted.check];
  if (check === undefined) throw new Error(`no check is called ${planted.check}`);
  await expect(check(Faulty)).rejects.toThrow();
});
