import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { SEED } from "../../../test/support/seed.js";
import { CacheStore, FileStore, readBody } from "../src/index.js";

const script = fileURLToPath(new URL("children/cache-user.mjs", import.meta.url));
const MAX_BYTES = 800_000;
const OBJECTS = 40;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "eider-cache-processes-"));
  const store = new FileStore(join(folder, "store"), { durable: false });
  // 3.1 MB in all: the cache holds a quarter.
  for (let n = 0; n < OBJECTS; n++) await store.put(`o/${n}`, new Uint8Array(20_000 + 3000 * n).fill(n));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

function user(from: number, rounds: number): ChildProcess {
  const args = [script, join(folder, "store"), join(folder, "cache"), String(MAX_BYTES), String(from), String(rounds)];
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
}

/** What the files really take, each inode once. */
async function bytesOnDisk(): Promise<number> {
  const sizes = new Map<number, number>();
  const entries = await readdir(join(folder, "cache"), { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const stats = await stat(join(entry.parentPath, entry.name)).catch(() => undefined);
    if (stats?.isFile()) sizes.set(stats.ino, stats.size);
  }
  return [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0);
}

test("processes that share a cache and are killed in it leave it sound, within its bytes, and swept by the next", async () => {
  let [most, watching] = [0, true];
  const watch = (async () => {
    while (watching) {
      most = Math.max(most, await bytesOnDisk());
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const steady = [user(SEED, 250), user(SEED + 1, 250)];
  const outputs = steady.map((child) => text(child.stdout!));
  // Others come, read for a while and are killed in the middle of whatever they do.
  for (let i = 0; i < 6; i++) {
    const victim = user(SEED + 10 + i, 1e9);
    const said = text(victim.stdout!);
    const ended = once(victim, "exit");
    await new Promise((resolve) => setTimeout(resolve, 500 + ((SEED * (i + 3)) % 400)));
    victim.kill("SIGKILL");
    await ended;
    expect(await said).toBe("");
  }
  expect(await Promise.all(outputs)).toEqual(["done\n", "done\n"]);
  watching = false;
  await watch;
  expect(most).toBeGreaterThan(MAX_BYTES / 2);
  expect(most).toBeLessThanOrEqual(MAX_BYTES);

  const options = { dir: join(folder, "cache"), maxBytes: MAX_BYTES, cacheable: () => true };
  const cache = new CacheStore(new FileStore(join(folder, "store")), options);
  for (let n = 0; n < OBJECTS; n++) {
    const bytes = await readBody((await cache.get(`o/${n}`)).body);
    expect(bytes.length).toBe(20_000 + 3000 * n);
    expect(bytes.every((byte) => byte === n)).toBe(true);
  }
  expect(cache.stats.damaged).toBe(0);
  await cache[Symbol.asyncDispose]();
  // Nothing is left of the killed ones: no unfinished file, no lease.
  expect(await readdir(join(folder, "cache", "eider-cache-2", "processes"))).toEqual([]);
});
