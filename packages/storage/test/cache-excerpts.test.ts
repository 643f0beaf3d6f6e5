import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  CacheStore,
  type CacheStoreOptions,
  type Excerpt,
  type ExcerptPlan,
  type LocalObject,
  MemoryStore,
} from "../src/index.js";

let folder: string;
let folders = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eider-excerpts-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface World {
  readonly dir: string;
  readonly inner: MemoryStore;
  readonly open: (options?: Partial<CacheStoreOptions>) => CacheStore;
  /** Excerpts that were written, and where from: `ab` or `ab<a`. */
  readonly written: string[];
  /** The object `key`, of which some letters are wanted. */
  readonly letters: (key: string, letters: string) => LocalObject;
}

/** Objects of letters, each 100 bytes of itself. An excerpt has some of these letters, and is called by them. */
function world(options: Partial<CacheStoreOptions> = {}): World {
  const dir = join(folder, String(++folders));
  const inner = new MemoryStore();
  const written: string[] = [];
  const open = (more: Partial<CacheStoreOptions> = {}): CacheStore =>
    new CacheStore(inner, { dir, maxBytes: 10_000, cacheable: () => true, namespace: "test", ...options, ...more });
  const letters = (key: string, wanted: string): LocalObject => {
    const excerpt: Excerpt = {
      suits: (name) => [...wanted].every((letter) => name.includes(letter)),
      async plan(there) {
        const all = [...new Set([wanted, ...there.map(({ name }) => name)].join(""))].sort();
        const old = there[0];
        return {
          kind: "excerpt",
          name: all.join(""),
          bytes: 100 * all.length,
          replaces: there.map(({ name }) => name),
          async write(put, signal) {
            signal.throwIfAborted();
            written.push(old ? `${all.join("")}<${old.name}` : all.join(""));
            for (const [i, letter] of all.entries()) await put(Buffer.alloc(100, letter), 100 * i);
            if (old) expect((await readFile(old.path)).length).toBe(100 * old.name.length);
            return 100 * [...wanted].filter((letter) => !old?.name.includes(letter)).length;
          },
        };
      },
    };
    return { key, size: 2600, excerpt };
  };
  return { dir, inner, open, written, letters };
}

const text = async (path: string | undefined): Promise<string> =>
  (await readFile(path!, "utf8")).replaceAll(/(.)\1{99}/g, "$1");
const objectsIn = (dir: string): Promise<string[]> => readdir(join(dir, "eider-cache-2", "objects"));

test("an excerpt is made once, and serves whoever needs no more, in other processes too", async () => {
  const { open, written, letters } = world();
  await using cache = open();
  await using first = await cache.localize([letters("o", "ab")]);
  expect(await text(first.paths[0])).toBe("ab");
  expect([...first.fetched]).toEqual([["o", 200]]);
  await using other = open();
  for (const wanted of ["b", "ab", ""]) {
    await using copies = await other.localize([letters("o", wanted)]);
    expect(await text(copies.paths[0])).toBe("ab");
    expect(copies.fetched.size).toBe(0);
  }
  expect(written).toEqual(["ab"]);
});

test("who needs more gets a larger one, which takes the old one's place; who reads that goes on", async () => {
  const { dir, open, written, letters } = world();
  await using cache = open();
  await using first = await cache.localize([letters("o", "ab")]);
  await using second = await cache.localize([letters("o", "bc")]);
  expect([...second.fetched]).toEqual([["o", 100]]);
  expect(await text(second.paths[0])).toBe("abc");
  expect(await text(first.paths[0])).toBe("ab");
  expect(written).toEqual(["ab", "abc<ab"]);
  expect(await objectsIn(dir)).toHaveLength(1);
});

test("racing calls make one file of each excerpt", async () => {
  const { open, written, letters } = world();
  await using cache = open();
  const all = await Promise.all(Array.from({ length: 5 }, () => cache.localize([letters("o", "xy")])));
  expect(written).toEqual(["xy"]);
  expect(new Set(all.map(({ paths }) => paths[0])).size).toBe(1);
  expect(all.reduce((sum, { fetched }) => sum + (fetched.get("o") ?? 0), 0)).toBe(200);
  for (const copies of all) await copies.release();
});

test("an excerpt stands for no whole object, and a whole object for any excerpt", async () => {
  const { open, inner, written, letters } = world();
  await using cache = open();
  const whole = Buffer.alloc(2600, "z");
  await inner.put("o", whole);
  await (await cache.localize([letters("o", "a")])).release();
  await using copies = await cache.localize([{ key: "o", size: 2600 }]);
  expect((await readFile(copies.paths[0]!)).equals(whole)).toBe(true);
  const { body } = await cache.get("o", { range: { start: 0, end: 3 } });
  for await (const chunk of body) expect(Buffer.from(chunk).toString()).toBe("zzz");
  await using _ = await cache.localize([letters("o", "q")]);
  expect(written).toEqual(["a"]);
});

test("an excerpt that had better be the whole object is that", async () => {
  const { open, inner } = world();
  await using cache = open();
  await inner.put("o", Buffer.alloc(2600, "z"));
  const plan = async () => ({ kind: "whole", fetchedBytes: 7 }) as const;
  await using copies = await cache.localize([{ key: "o", size: 2600, excerpt: { suits: () => false, plan } }]);
  expect(await text(copies.paths[0])).toBe("z".repeat(26));
  expect([...copies.fetched]).toEqual([["o", 2607]]);
});

test("where there is no room for what is there besides, the excerpt is made of what is needed", async () => {
  const { open, written, letters } = world({ maxBytes: 500 });
  await using cache = open();
  await (await cache.localize([letters("o", "abcd")])).release();
  await using copies = await cache.localize([letters("o", "xy")]);
  expect(await text(copies.paths[0])).toBe("xy");
  expect(written).toEqual(["abcd", "xy"]);
  // What is held is not moved.
  await expect(cache.localize([letters("p", "abcdef")])).rejects.toMatchObject({ code: "cache_too_small" });
});

test("a damaged excerpt is made again, also while its path is held", async () => {
  const { dir, open, written, letters } = world({ keepMs: 60_000 });
  await using cache = open();
  const first = await cache.localize([letters("o", "ab")]);
  await writeFile(first.paths[0]!, "damage");
  await first.release();
  await using second = await cache.localize([letters("o", "ab")]);
  expect(await text(second.paths[0])).toBe("ab");
  expect(written).toEqual(["ab", "ab"]);
  expect(await objectsIn(dir)).toHaveLength(1);
});

test("purging and deleting take excerpts too", async () => {
  const { dir, open, letters } = world();
  await using cache = open();
  for (const remove of [() => cache.purge(["o"]), () => cache.delete("o"), () => cache.put("o", Buffer.from("new"))]) {
    await (await cache.localize([letters("o", "ab")])).release();
    expect(await objectsIn(dir)).toHaveLength(1);
    await remove();
    expect(await objectsIn(dir)).toEqual([]);
  }
});

test("an excerpt that is not made leaves nothing behind", async () => {
  const { dir, open, letters } = world();
  await using cache = open();
  const reason = new Error("no more");
  const failing = letters("o", "ab");
  const { suits, plan } = failing.excerpt!;
  const planned = async (...args: Parameters<Excerpt["plan"]>) => (await plan(...args)) as ExcerptPlan;
  const wrong = async (): Promise<never> => {
    throw reason;
  };
  const failPlan: LocalObject = { ...failing, excerpt: { suits, plan: wrong } };
  const failWrite: LocalObject = {
    ...failing,
    excerpt: { suits, plan: async (...args) => ({ ...(await planned(...args)), write: wrong }) },
  };
  const tooShort: LocalObject = {
    ...failing,
    excerpt: { suits, plan: async (...args) => ({ ...(await planned(...args)), write: async () => 0 }) },
  };
  await expect(cache.localize([failPlan])).rejects.toBe(reason);
  await expect(cache.localize([letters("p", "ab"), failWrite])).rejects.toBe(reason);
  await expect(cache.localize([tooShort])).rejects.toThrow(/has not the 200 bytes/);
  await using copies = await cache.localize([letters("p", "ab")]);
  await copies.release();
  expect((await objectsIn(dir)).length).toBeLessThanOrEqual(1);
  const [process] = await readdir(join(dir, "eider-cache-2", "processes"));
  expect(await readdir(join(dir, "eider-cache-2", "processes", process!))).toEqual([]);
});

test("paths stay for who comes again soon, but not for ever, nor where their room is needed", async () => {
  const { open, letters } = world({ keepMs: 100, maxBytes: 300 });
  await using cache = open();
  const localize = async (key: string, wanted: string): Promise<string> => {
    const copies = await cache.localize([letters(key, wanted)]);
    await copies.release();
    return copies.paths[0]!;
  };
  const path = await localize("o", "ab");
  expect(await localize("o", "a")).toBe(path);
  expect(await text(path)).toBe("ab");
  await localize("p", "xyz");
  await expect(readFile(path)).rejects.toMatchObject({ code: "ENOENT" });
  const last = await localize("p", "x");
  await expect.poll(() => readFile(last).catch(() => "gone"), { timeout: 5000 }).toBe("gone");
  expect(await localize("p", "x")).not.toBe(last);
});

test("files that one process keeps for later give way to another process in time", async () => {
  const { open, letters } = world({ keepMs: 200, maxBytes: 300, waitMs: 5000 });
  await using cache = open();
  await using other = open();
  await (await cache.localize([letters("o", "abc")])).release();
  await using copies = await other.localize([letters("p", "xyz")]);
  expect(await text(copies.paths[0])).toBe("xyz");
});
