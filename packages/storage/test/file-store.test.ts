import { execFileSync } from "node:child_process";
import {
  type FileHandle,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { AlreadyExistsError, InvalidInputError, NotFoundError } from "@eider/core";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { assertSafeKey, FileStore, type ListOptions, type ObjectStore } from "../src/index.js";

const POSIX = process.platform !== "win32";
const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));
const text = (value: string): Uint8Array => new TextEncoder().encode(value);

let folder: string;
let root: string;
let outside: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "eider-file-store-"));
  root = join(folder, "root");
  outside = join(folder, "outside");
  await mkdir(outside);
  await writeFile(join(outside, "secret"), "secret");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function keysOf(store: ObjectStore, prefix = "", options: ListOptions = {}): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list(prefix, options)) keys.push(key);
  return keys;
}

async function read(store: ObjectStore, key: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await store.get(key)).body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Files and links below a folder, by Node's own walk. */
async function filesBelow(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1))
    .sort();
}

const refused = (code: string): object => ({ name: "StoreError", code, retryable: false });

describe("the folder", () => {
  test("is not made by opening, reading or deleting, but by the first put, with its parents", async () => {
    root = join(folder, "deep", "er", "root");
    await using store = new FileStore(root);
    expect(await store.head("a")).toBeUndefined();
    expect(await keysOf(store)).toEqual([]);
    await expect(store.get("a")).rejects.toThrow(NotFoundError);
    await store.delete(["a", "b/c"]);
    await expect(lstat(join(folder, "deep"))).rejects.toThrow("ENOENT");
    await store.put("a/b", text("x"));
    expect(await readFile(join(root, "a", "b"), "utf8")).toBe("x");
  });

  test("holds each object as a plain file under its key, at localPath", async () => {
    await using store = new FileStore(root);
    await store.put("events/data/day=2031-02-03/1-x.parquet", text("PAR1"));
    expect(store.localPath("events/data/day=2031-02-03/1-x.parquet")).toBe(
      join(root, "events", "data", "day=2031-02-03", "1-x.parquet"),
    );
    expect(await readFile(store.localPath("events/data/day=2031-02-03/1-x.parquet"), "utf8")).toBe("PAR1");
    expect(store.url).toBe(pathToFileURL(root).href);
  });

  test("may be a relative path, and may be a link itself", async () => {
    await mkdir(root);
    await symlink(root, join(folder, "link"));
    await using store = new FileStore(join(folder, "link"));
    await store.put("a/b", text("x"));
    expect(await keysOf(store)).toEqual(["a/b"]);
    expect(await filesBelow(root)).toEqual(["a/b"]);
    expect(new FileStore("relative").url).toBe(pathToFileURL(join(process.cwd(), "relative")).href);
  });

  test("that is a file, or lies below one, is refused", async () => {
    for (const path of [join(outside, "secret"), join(outside, "secret", "below")]) {
      await using store = new FileStore(path);
      await expect(store.put("a", text("x"))).rejects.toMatchObject(refused("root_not_folder"));
      await expect(store.head("a")).rejects.toMatchObject(refused("root_not_folder"));
      await expect(keysOf(store)).rejects.toMatchObject(refused("root_not_folder"));
    }
  });

  test("may be removed and made anew while the store is open", async () => {
    await using store = new FileStore(root);
    await store.put("a/b", text("1"));
    await rm(root, { recursive: true });
    expect(await keysOf(store)).toEqual([]);
    await store.put("a/b", text("2"));
    expect(await read(store, "a/b")).toBe("2");
  });

  test("needs a name", () => {
    expect(() => new FileStore("")).toThrow(InvalidInputError);
    expect(() => new FileStore("a\0b")).toThrow(InvalidInputError);
  });

  test("opened to read only is never changed", async () => {
    await new FileStore(root).put("a/b", text("x"));
    await using store = new FileStore(root, { readOnly: true });
    await expect(store.put("c", text("x"))).rejects.toMatchObject(refused("store_read_only"));
    await expect(store.delete("a/b")).rejects.toMatchObject(refused("store_read_only"));
    expect(await read(store, "a/b")).toBe("x");
    expect(await filesBelow(root)).toEqual(["a/b"]);
  });
});

describe("unfinished files", () => {
  test("lie in _eider/tmp during a put, are never listed, and are gone after it", async () => {
    await using store = new FileStore(root);
    await store.put("first", text("x"));
    async function* watched(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(400_000);
      expect(await readdir(join(root, "_eider", "tmp"))).toHaveLength(1);
      expect(await keysOf(store)).toEqual(["first"]);
      expect(await keysOf(store, "_eider/")).toEqual([]);
      expect(await keysOf(store, "_eider/tmp/")).toEqual([]);
      yield new Uint8Array(400_000);
    }
    await store.put("a/b", watched());
    expect(await filesBelow(root)).toEqual(["a/b", "first"]);
  });

  test("are removed after a put that fails, and so are no folders made for it", async () => {
    await using store = new FileStore(root);
    await store.put("first", text("x"));
    const abort = new AbortController();
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield new Uint8Array(400_000);
      abort.abort();
      throw new Error("the source broke");
    }
    await expect(store.put("a/b", broken())).rejects.toThrow("the source broke");
    await expect(store.put("a/b", text("x"), { signal: abort.signal })).rejects.toThrow("abort");
    await expect(store.put("first", text("y"), { ifAbsent: true })).rejects.toThrow(AlreadyExistsError);
    expect(await filesBelow(root)).toEqual(["first"]);
    await expect(lstat(join(root, "a"))).rejects.toThrow("ENOENT");
  });

  test("of another lake below the root are not listed either", async () => {
    await using store = new FileStore(root);
    await mkdir(join(root, "other", "_eider", "tmp"), { recursive: true });
    await writeFile(join(root, "other", "_eider", "tmp", "x"), "");
    await writeFile(join(root, "other", "_eider", "lake.json"), "{}");
    expect(await keysOf(store)).toEqual(["other/_eider/lake.json"]);
  });

  test("of killed processes are removed a day later by the next process that puts", async () => {
    await using store = new FileStore(root);
    await store.put("kept", text("x"));
    const temp = join(root, "_eider", "tmp");
    const day = 24 * 60 * 60;
    const now = Date.now() / 1000;
    for (const [name, age] of [
      ["fresh", 60],
      ["yesterday", day - 600],
      ["old", day + 600],
    ] as const) {
      await writeFile(join(temp, name), "half");
      await utimes(join(temp, name), now - age, now - age);
    }
    const next = new FileStore(root);
    await next.put("another", text("x"));
    await next[Symbol.asyncDispose]();
    expect(await readdir(temp)).toEqual(["fresh", "yesterday"]);
  });
});

describe.runIf(POSIX)("symbolic links", () => {
  test("to folders are followed by no call", async () => {
    await using store = new FileStore(root);
    await store.put("in/side", text("x"));
    await symlink(outside, join(root, "link"));
    await symlink(join(root, "in"), join(root, "in", "loop"));
    for (const key of ["link/secret", "link/deeper/new", "in/loop/side"]) {
      await expect(store.put(key, text("x")), `put ${key}`).rejects.toMatchObject(refused("symlink_refused"));
      await expect(store.put(key, text("x"), { ifAbsent: true })).rejects.toMatchObject(refused("symlink_refused"));
    }
    for (const key of ["link/secret", "in/loop/side"]) {
      await expect(store.get(key), `get ${key}`).rejects.toMatchObject(refused("symlink_refused"));
      await expect(store.head(key), `head ${key}`).rejects.toMatchObject(refused("symlink_refused"));
      await expect(store.delete(key), `delete ${key}`).rejects.toMatchObject(refused("symlink_refused"));
    }
    expect(await keysOf(store)).toEqual(["in/side"]);
    await expect(keysOf(store, "link/")).rejects.toMatchObject(refused("symlink_refused"));
    expect(await filesBelow(outside)).toEqual(["secret"]);
    expect(await readFile(join(outside, "secret"), "utf8")).toBe("secret");
    expect(await read(store, "in/side")).toBe("x");
  });

  test("to files are no objects; put and delete act on the link, not on its target", async () => {
    await using store = new FileStore(root);
    await store.put("a/b", text("x"));
    await symlink(join(outside, "secret"), join(root, "a", "link"));
    await expect(store.get("a/link")).rejects.toMatchObject(refused("symlink_refused"));
    await expect(store.head("a/link")).rejects.toMatchObject(refused("symlink_refused"));
    await expect(store.put("a/link", text("x"), { ifAbsent: true })).rejects.toThrow(AlreadyExistsError);
    expect(await keysOf(store)).toEqual(["a/b"]);
    await store.put("a/link", text("mine"));
    expect(await read(store, "a/link")).toBe("mine");
    await symlink(join(outside, "secret"), join(root, "a", "link2"));
    await store.delete("a/link2");
    expect(await filesBelow(root)).toEqual(["a/b", "a/link"]);
    expect(await readFile(join(outside, "secret"), "utf8")).toBe("secret");
  });

  test("that lead nowhere or to themselves make no endless loop", async () => {
    await using store = new FileStore(root);
    await store.put("a", text("x"));
    await symlink(join(folder, "nowhere"), join(root, "dangling"));
    await symlink(join(root, "self"), join(root, "self"));
    await expect(store.put("dangling/x", text("x"))).rejects.toMatchObject(refused("symlink_refused"));
    await expect(store.put("self/x", text("x"))).rejects.toMatchObject(refused("symlink_refused"));
    await expect(store.get("self")).rejects.toMatchObject(refused("symlink_refused"));
    expect(await keysOf(store)).toEqual(["a"]);
    await expect(lstat(join(folder, "nowhere"))).rejects.toThrow("ENOENT");
  });

  test("in place of the folder of unfinished files are refused", async () => {
    for (const link of ["_eider", "_eider/tmp"]) {
      const path = join(root, link);
      await mkdir(dirname(path), { recursive: true });
      await symlink(outside, path);
      await using store = new FileStore(root);
      await expect(store.put("a", text("x"))).rejects.toMatchObject(refused("symlink_refused"));
      expect(await filesBelow(outside)).toEqual(["secret"]);
      await rm(path);
    }
  });
});

describe("files that others put there", () => {
  test("are objects when they are plain files with safe names", async () => {
    await using store = new FileStore(root);
    await mkdir(join(root, "by", "hand"), { recursive: true });
    await writeFile(join(root, "by", "hand", "x.parquet"), "PAR1");
    expect(await keysOf(store)).toEqual(["by/hand/x.parquet"]);
    expect(await read(store, "by/hand/x.parquet")).toBe("PAR1");
  });

  test.runIf(POSIX)("are left out when no key can name them, and a named pipe hangs nobody", async () => {
    await using store = new FileStore(root);
    await store.put("ok", text("x"));
    for (const name of ["back\\slash", "trailing.", "trailing ", "nul", "line\nbreak"]) {
      await writeFile(join(root, name), "");
    }
    await writeFile(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff])]), "");
    execFileSync("sh", ["-c", 'mkfifo "$0"', join(root, "pipe")]);
    expect(await keysOf(store)).toEqual(["ok"]);
    await expect(store.get("pipe")).rejects.toThrow(NotFoundError);
    expect(await store.head("pipe")).toBeUndefined();
  });
});

describe("keys", () => {
  test("with hostile values stay below the root or are refused", async () => {
    await using store = new FileStore(root);
    const tenants = [
      "../../out",
      "..",
      "/abs",
      "a\u0000b",
      "C:\\x",
      "con",
      "%2e%2e%2f",
      "t".repeat(300),
      "",
      "a",
      "A.",
    ];
    const put: string[] = [];
    for (const tenant of tenants) {
      for (const key of [`${tenant}/day/x`, tenant]) {
        try {
          assertSafeKey(key);
        } catch {
          await expect(store.put(key, text(tenant))).rejects.toMatchObject({
            name: "InvalidInputError",
            code: "bad_key",
          });
          continue;
        }
        if (key === tenant && put.includes(`${tenant}/day/x`)) continue;
        await store.put(key, text(tenant));
        put.push(key);
      }
    }
    expect(put).toEqual(["%2e%2e%2f/day/x", "a/day/x"]);
    expect(await filesBelow(folder)).toEqual(["outside/secret", "root/%2e%2e%2f/day/x", "root/a/day/x"]);
  });

  test("that need a folder where an object is, or the reverse, are refused and change nothing", async () => {
    await using store = new FileStore(root);
    await store.put("a", text("object"));
    await store.put("b/c", text("below"));
    for (const ifAbsent of [false, true]) {
      await expect(store.put("a/x", text("x"), { ifAbsent })).rejects.toMatchObject(refused("key_conflict"));
      await expect(store.put("a/x/y", text("x"), { ifAbsent })).rejects.toMatchObject(refused("key_conflict"));
      await expect(store.put("b", text("x"), { ifAbsent })).rejects.toMatchObject(refused("key_conflict"));
    }
    expect(await filesBelow(root)).toEqual(["a", "b/c"]);
  });

  test("that end in folders left empty by a crash can be put", async () => {
    await using store = new FileStore(root);
    await mkdir(join(root, "a"), { recursive: true });
    await mkdir(join(root, "b"));
    await store.put("a", text("x"));
    await store.put("b", text("x"), { ifAbsent: true });
    expect(await filesBelow(root)).toEqual(["a", "b"]);
  });

  test.runIf(POSIX)("too long together with the root are refused clearly", async () => {
    const long = join(root, ...Array.from({ length: 16 }, () => "d".repeat(200)));
    await using store = new FileStore(long);
    await store.put("short", text("x"));
    const key = Array.from({ length: 4 }, () => "k".repeat(250)).join("/");
    await expect(store.put(key, text("x"))).rejects.toMatchObject(refused("name_too_long"));
    expect(await keysOf(store)).toEqual(["short"]);
  });
});

describe("reading", () => {
  test("a file that is cut during the read throws instead of ending", async () => {
    await using store = new FileStore(root);
    await store.put("large", new Uint8Array(5_000_000).fill(1));
    const { body } = await store.get("large");
    let bytes = 0;
    const reading = (async () => {
      for await (const chunk of body) {
        bytes += chunk.length;
        await truncate(store.localPath("large"), 2_500_000);
      }
    })();
    await expect(reading).rejects.toMatchObject({ name: "StoreError", code: "short_read", retryable: true });
    expect(bytes).toBeLessThan(5_000_000);
  });

  test.runIf(process.platform === "linux")(
    "leaves no file open: not after the end, a break, an error, or a close",
    async () => {
      const openFiles = async (): Promise<string[]> => {
        const links = (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => ""));
        return (await Promise.all(links)).filter((path) => path.startsWith(root));
      };
      const store = new FileStore(root);
      await store.put("large", new Uint8Array(3_000_000));
      await store.put("small", text("x"));
      await store.get("small");
      await read(store, "large");
      for await (const _ of (await store.get("large")).body) break;
      const abort = new AbortController();
      const { body } = await store.get("large", { signal: abort.signal });
      await expect(
        (async () => {
          for await (const _ of body) abort.abort();
        })(),
      ).rejects.toThrow("abort");
      expect(await openFiles()).toEqual([]);

      const unread = await store.get("large");
      expect(await openFiles()).toHaveLength(1);
      await store[Symbol.asyncDispose]();
      expect(await openFiles()).toEqual([]);
      const late = unread.body[Symbol.asyncIterator]().next();
      await expect(late).rejects.toMatchObject({ name: "StoreError", code: "store_closed" });
    },
  );
});

describe("deleting", () => {
  test("removes folders that it empties, but neither others nor the root", async () => {
    await using store = new FileStore(root);
    await store.put("a/b/c/1", text("x"));
    await store.put("a/b/c/2", text("x"));
    await store.put("a/d", text("x"));
    await mkdir(join(root, "empty"));
    await store.delete("a/b/c/1");
    expect(await readdir(join(root, "a", "b"))).toEqual(["c"]);
    await store.delete("a/b/c/2");
    expect(await readdir(join(root, "a"))).toEqual(["d"]);
    await store.delete(["a/d", "empty/x"]);
    expect((await readdir(root)).sort()).toEqual(["_eider", "empty"]);
  });
});

describe("syncing", () => {
  /** The paths that are synced while `run` runs, in order, by watching the real calls. */
  async function synced(run: () => Promise<unknown>): Promise<string[]> {
    const handle = await open(folder, "r");
    const prototype = Object.getPrototypeOf(handle) as { sync: (this: { fd: number }) => Promise<void> };
    await handle.close();
    const real = prototype.sync;
    const paths: string[] = [];
    prototype.sync = async function (this: { fd: number }): Promise<void> {
      const path = (await readlink(`/proc/self/fd/${this.fd}`)).slice(folder.length);
      await real.call(this);
      paths.push(path.replace(/[0-9a-f-]{36}$/, "*"));
    };
    try {
      await run();
    } finally {
      prototype.sync = real;
    }
    return paths;
  }

  test.runIf(process.platform === "linux")(
    "a put syncs the file, every new folder's parent, and its folder last",
    async () => {
      await using store = new FileStore(join(root, "lake"));
      // The first put also makes the root and the folder of unfinished files.
      expect(await synced(() => store.put("a/b/c", text("x")))).toEqual([
        "",
        "/root",
        "/root/lake",
        "/root/lake/_eider",
        "/root/lake/_eider/tmp/*",
        "/root/lake",
        "/root/lake/a",
        "/root/lake/a/b",
      ]);
      expect(await synced(() => store.put("a/b/d", text("x"), { ifAbsent: true }))).toEqual([
        "/root/lake/_eider/tmp/*",
        "/root/lake/a/b",
      ]);
      // Emptied folders go; the one that stays is synced.
      expect(await synced(() => store.delete(["a/b/c", "a/b/d"]))).toEqual(["/root/lake"]);
      expect(await synced(() => store.put("a/x", text("x")))).toEqual([
        "/root/lake/_eider/tmp/*",
        "/root/lake",
        "/root/lake/a",
      ]);
    },
  );

  test.runIf(process.platform === "linux")("a folder that another process made is settled too", async () => {
    await mkdir(join(root, "a"), { recursive: true });
    await using store = new FileStore(root);
    await store.put("other", text("x"));
    expect(await synced(() => store.put("a/b", text("x")))).toEqual(["/root/_eider/tmp/*", "/root", "/root/a"]);
  });

  test.runIf(process.platform === "linux")(
    "racing puts into a folder share its syncs, each after its own file is there",
    async () => {
      await using store = new FileStore(root);
      await store.put("a/first", text("x"));
      const paths = await synced(() =>
        Promise.all(Array.from({ length: 40 }, (_, i) => store.put(`a/${i}`, text("x"), { ifAbsent: true }))),
      );
      const folders = paths.filter((path) => path === "/root/a").length;
      expect(paths.length - folders).toBe(40);
      expect(folders).toBeGreaterThan(0);
      expect(folders).toBeLessThan(40);
    },
  );

  test.runIf(POSIX)("a put that the disk does not confirm says so, and leaves no unfinished file", async () => {
    await using store = new FileStore(root);
    await store.put("a/first", text("x"));
    const handle = await open(folder, "r");
    const prototype = Object.getPrototypeOf(handle) as { sync: (this: FileHandle) => Promise<void> };
    await handle.close();
    const real = prototype.sync;
    let failing = "";
    prototype.sync = async function (this: FileHandle): Promise<void> {
      const kind = (await this.stat()).isDirectory() ? "folder" : "file";
      if (kind === failing) throw Object.assign(new Error("EIO"), { code: "EIO" });
      await real.call(this);
    };
    try {
      for (const ifAbsent of [true, false]) {
        failing = "file";
        await expect(store.put("a/new", text("x"), { ifAbsent })).rejects.toMatchObject({ code: "store_io" });
        expect(await filesBelow(root)).toEqual(["a/first"]);
        failing = "folder";
        await expect(store.put("a/new", text("x"), { ifAbsent })).rejects.toMatchObject(refused("put_unsettled"));
        expect(await filesBelow(root)).toEqual(["a/first", "a/new"]);
        failing = "";
        await store.delete("a/new");
        await store.put("a/first", text("x"));
      }
    } finally {
      prototype.sync = real;
    }
  });

  test.runIf(POSIX)("a put never relies on a sync that began before its file was there", async () => {
    await using store = new FileStore(root);
    await store.put("a/first", text("x"));
    const handle = await open(folder, "r");
    const prototype = Object.getPrototypeOf(handle) as { sync: (this: FileHandle) => Promise<void> };
    await handle.close();
    const real = prototype.sync;
    let folderSyncs = 0;
    prototype.sync = async function (this: FileHandle): Promise<void> {
      const isFolder = (await this.stat()).isDirectory();
      // The first sync of the folder lasts until the second file is there.
      if (isFolder && ++folderSyncs === 1) while (!(await filesBelow(root)).includes("a/2")) await turn();
      await real.call(this);
    };
    try {
      const first = store.put("a/1", text("x"));
      while (folderSyncs === 0) await turn();
      await Promise.all([first, store.put("a/2", text("x"))]);
    } finally {
      prototype.sync = real;
    }
    expect(folderSyncs).toBe(2);
  });

  test.runIf(process.platform === "linux")("durable: false syncs nothing", async () => {
    await using store = new FileStore(root, { durable: false });
    expect(await synced(() => store.put("a/b/c", text("x")))).toEqual([]);
    expect(await synced(() => store.delete("a/b/c"))).toEqual([]);
  });
});

describe("listing", () => {
  test("is what sorting all keys by their bytes gives, for any tree, prefix and after", async () => {
    // Letters around '/' (0x2f), two-, three- and four-byte characters, and U+FF5E, which UTF-16 sorts last.
    const name = fc.string({
      unit: fc.constantFrom("a", "b", "-", "!", "0", "é", "～", "😀"),
      minLength: 1,
      maxLength: 3,
    });
    const key = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));
    const probe = fc.oneof(
      key,
      key.map((k) => `${k}/`),
      fc.constant(""),
      name,
    );
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(key, { maxLength: 25 }), probe, fc.option(probe), async (keys, prefix, after) => {
        await using store = new FileStore(join(folder, `list-${run++}`), { durable: false });
        const stored: string[] = [];
        for (const each of keys) {
          // A file's name cannot be a folder's too.
          if (stored.some((other) => other.startsWith(`${each}/`) || each.startsWith(`${other}/`))) continue;
          await store.put(each, text(each));
          stored.push(each);
        }
        const bytes = (value: string): Buffer => Buffer.from(value);
        const expected = stored
          .filter((each) => bytes(each).subarray(0, bytes(prefix).length).equals(bytes(prefix)))
          .filter((each) => after === null || Buffer.compare(bytes(each), bytes(after)) > 0)
          .sort((a, b) => Buffer.compare(bytes(a), bytes(b)));
        expect(await keysOf(store, prefix, after === null ? {} : { after })).toEqual(expected);
      }),
      { numRuns: 150 },
    );
  });
});
