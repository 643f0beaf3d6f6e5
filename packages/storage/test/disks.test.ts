import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import fs, { mkdir, readdir } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { reportUnavailable } from "../../../test/support/unavailable.js";
import { FileStore } from "../src/index.js";

const folder = mkdtempSync(join(tmpdir(), "eider-disks-"));
const disk = join(folder, "disk");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function mount(...options: string[]): void {
  execFileSync("mount", ["-t", "tmpfs", ...options, "eider-test", disk], { stdio: "pipe" });
}
function unmount(): void {
  execFileSync("umount", [disk], { stdio: "pipe" });
}

/** Whether this user may mount a small disk. */
function canMount(): boolean {
  try {
    execFileSync("mkdir", ["-p", disk]);
    mount("-o", "size=1m");
    unmount();
    return true;
  } catch {
    return false;
  }
}

const mountable = canMount();
if (!mountable) {
  const command = "sudo npm test -- packages/storage/test/disks.test.ts";
  reportUnavailable("full and read-only disks", "mounting a small tmpfs needs Linux and root", command);
}

const refused = (code: string): object => ({ name: "StoreError", code, retryable: false });

async function* stream(bytes: number): AsyncGenerator<Uint8Array> {
  for (let left = bytes; left > 0; left -= 50_000) yield new Uint8Array(Math.min(left, 50_000)).fill(1);
}

async function keysOf(store: FileStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("")) keys.push(key);
  return keys;
}

describe.runIf(mountable)("a small disk", () => {
  beforeEach(() => mount("-o", "size=1m,nr_inodes=30"));
  afterEach(unmount);

  test("that is full refuses a put, keeps all objects and frees the space of the unfinished one", async () => {
    await using store = new FileStore(join(disk, "lake"));
    await store.put("first", stream(500_000));
    for (const body of [new Uint8Array(700_000), stream(700_000)]) {
      await expect(store.put("a/second", body)).rejects.toMatchObject(refused("store_full"));
    }
    await expect(store.put("first", stream(700_000), { ifAbsent: true })).rejects.toMatchObject(refused("store_full"));
    expect(await store.head("a/second")).toBeUndefined();
    expect(await readdir(join(disk, "lake", "_eider", "tmp"))).toEqual([]);
    expect((await store.head("first"))?.size).toBe(500_000);
    // What was freed is enough for a smaller one, and a delete for the large one.
    await store.put("a/second", stream(300_000));
    await store.delete(["first", "a/second"]);
    await store.put("a/second", stream(700_000), { ifAbsent: true });
    expect(await keysOf(store)).toEqual(["a/second"]);
  });

  test("that holds no more files refuses a put, in new folders too", async () => {
    await using store = new FileStore(join(disk, "lake"));
    let count = 0;
    const error = await (async () => {
      for (; count < 100; count++) await store.put(`f/${count}`, new Uint8Array(1));
    })().catch((failure: unknown) => failure);
    expect(error).toMatchObject(refused("store_full"));
    expect(await keysOf(store)).toHaveLength(count);
    await store.delete("f/0");
    await expect(store.put("g/h/i", new Uint8Array(1))).rejects.toMatchObject(refused("store_full"));
    expect(await keysOf(store)).toHaveLength(count - 1);
  });

  test("mounted to read only refuses to put and delete, and reads", async () => {
    await using store = new FileStore(join(disk, "lake"));
    await store.put("a/b", stream(1000));
    execFileSync("mount", ["-o", "remount,ro", disk]);
    await expect(store.put("a/c", new Uint8Array(1))).rejects.toMatchObject(refused("store_read_only"));
    await expect(store.put("a/c", new Uint8Array(1), { ifAbsent: true })).rejects.toMatchObject(
      refused("store_read_only"),
    );
    await expect(store.delete("a/b")).rejects.toMatchObject(refused("store_read_only"));
    expect((await store.head("a/b"))?.size).toBe(1000);
    expect(await keysOf(store)).toEqual(["a/b"]);
    const other = new FileStore(join(disk, "other"));
    await expect(other.put("a", new Uint8Array(1))).rejects.toMatchObject(refused("store_read_only"));
  });

  test("below a root on another disk is refused, because nothing can be moved onto it in one step", async () => {
    await using store = new FileStore(folder);
    for (const ifAbsent of [true, false]) {
      await expect(store.put("disk/a", new Uint8Array(1), { ifAbsent })).rejects.toMatchObject(refused("other_drive"));
    }
    expect(await readdir(disk)).toEqual([]);
    expect(await readdir(join(folder, "_eider", "tmp"))).toEqual([]);
  });
});

describe("a file system without hard links", () => {
  const { link } = fs;
  afterEach(() => {
    fs.link = link;
    syncBuiltinESMExports();
  });

  // No such file system can be mounted everywhere; only its one answer is put in place of the real call.
  test.each(["EPERM", "ENOTSUP", "ENOSYS"])(
    "that answers %s refuses to create, leaves nothing, and overwrites",
    async (code) => {
      const root = join(folder, `no-links-${code}`);
      await mkdir(root);
      fs.link = () => Promise.reject(Object.assign(new Error(code), { code }));
      syncBuiltinESMExports();
      await using store = new FileStore(root);
      await expect(store.put("a/b", new Uint8Array(1), { ifAbsent: true })).rejects.toMatchObject(
        refused("no_hard_links"),
      );
      expect(await keysOf(store)).toEqual([]);
      expect(await readdir(join(root, "_eider", "tmp"))).toEqual([]);
      await store.put("a/b", new Uint8Array(2));
      await store.put("a/b", new Uint8Array(3));
      expect((await store.head("a/b"))?.size).toBe(3);
    },
  );
});
