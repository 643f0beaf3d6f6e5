import { type ChildProcess, execFile, fork } from "node:child_process";
import { chmod, mkdtemp, readdir, readFile, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { AlreadyExistsError } from "@eider/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FileStore } from "../src/index.js";

const run = promisify(execFile);
const script = (name: string): string => fileURLToPath(new URL(`children/${name}.mjs`, import.meta.url));

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "eider-processes-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

interface Answer {
  readonly name: string;
  readonly round?: number;
  readonly won?: boolean;
  readonly code?: string;
}

/** The next message of a child; its end without one is an error. */
function answer(child: ChildProcess): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null): void => reject(new Error(`the child ended with ${code}`));
    child.once("exit", ended);
    child.once("message", (message) => {
      child.off("exit", ended);
      resolve(message as Answer);
    });
  });
}

test("of four processes that create one object at the same instant exactly one wins, 50 times", async () => {
  const names = ["a", "b", "c", "d"];
  const children = names.map((name) => fork(script("racer"), [root, name]));
  const store = new FileStore(root);
  try {
    await Promise.all(children.map(answer));
    const winners = new Set<string>();
    for (let round = 0; round < 50; round++) {
      const answers = Promise.all(children.map(answer));
      // A different one hears it first in each round.
      for (let i = 0; i < children.length; i++) children[(round + i) % children.length]!.send(round);
      const won = (await answers).filter((each) => each.won);
      expect(won, `round ${round}`).toHaveLength(1);
      const lost = (await answers).filter((each) => !each.won);
      expect(lost.map((each) => each.code)).toEqual(["object_exists", "object_exists", "object_exists"]);
      const chunks: Uint8Array[] = [];
      for await (const chunk of (await store.get(`race/${round}/object`)).body) chunks.push(chunk);
      expect(Buffer.concat(chunks).toString()).toBe(`${won[0]!.name} `.repeat(1000));
      winners.add(won[0]!.name);
    }
    expect(await readdir(join(root, "_eider", "tmp"))).toEqual([]);
  } finally {
    for (const child of children) child.kill();
  }
});

describe.runIf(process.platform !== "win32")("a process killed", () => {
  test.each(["1", "8000000", "10000000"])(
    "after %s bytes of a put leaves no object, and the next put succeeds",
    async (when) => {
      await expect(run(process.execPath, [script("killed"), root, when])).rejects.toMatchObject({ signal: "SIGKILL" });
      await using store = new FileStore(root);
      expect(await store.head("a/large")).toBeUndefined();
      const listed: string[] = [];
      for await (const { key } of store.list("")) listed.push(key);
      expect(listed).toEqual([]);
      // The unfinished file waits to be swept.
      expect(await readdir(join(root, "_eider", "tmp"))).toHaveLength(1);
      await store.put("a/large", new Uint8Array(5), { ifAbsent: true });
      expect((await store.head("a/large"))?.size).toBe(5);
    },
  );

  test("between the two names of an object leaves it whole, and sweeping the one leaves the other", async () => {
    await expect(run(process.execPath, [script("killed-linked"), root])).rejects.toMatchObject({ signal: "SIGKILL" });
    const temp = join(root, "_eider", "tmp");
    const [name] = await readdir(temp);
    expect((await stat(join(temp, name!))).ino).toBe((await stat(join(root, "a", "object"))).ino);
    const store = new FileStore(root);
    const listed: string[] = [];
    for await (const { key } of store.list("")) listed.push(key);
    expect(listed).toEqual(["a/object"]);
    await expect(store.put("a/object", new Uint8Array(5), { ifAbsent: true })).rejects.toThrow(AlreadyExistsError);
    // Two days later.
    await utimes(join(temp, name!), Date.now() / 1000 - 172_800, Date.now() / 1000 - 172_800);
    const next = new FileStore(root);
    await next.put("b", new Uint8Array(1));
    await next[Symbol.asyncDispose]();
    expect(await readdir(temp)).toEqual([]);
    expect((await readFile(join(root, "a", "object"))).every((byte) => byte === 7)).toBe(true);
  });

  test("right after a put leaves the whole object, and creating it again is refused", async () => {
    await expect(run(process.execPath, [script("killed"), root, "after"])).rejects.toMatchObject({ signal: "SIGKILL" });
    await using store = new FileStore(root);
    expect((await store.head("a/large"))?.size).toBe(10_000_000);
    await expect(store.put("a/large", new Uint8Array(5), { ifAbsent: true })).rejects.toThrow(AlreadyExistsError);
  });
});

test.runIf(process.platform !== "win32")("what a user may not do is a clear error, not retryable", async () => {
  const store = new FileStore(root);
  await store.put("locked/object", new Uint8Array(1));
  await store.put("secret", new Uint8Array(1));
  await store.put("closed/object", new Uint8Array(1));
  const temp = join(root, "_eider", "tmp");
  for (const path of [root, temp]) await chmod(path, 0o777);
  await chmod(join(root, "locked"), 0o555);
  await chmod(join(root, "secret"), 0o000);
  await chmod(join(root, "closed"), 0o000);
  // Root may do everything, so the child is somebody else: 65534 is `nobody`.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  const { stdout } = await run(process.execPath, [script("denied"), root], user);
  await chmod(join(root, "closed"), 0o755);
  await chmod(join(root, "locked"), 0o755);
  const readOnly = "StoreError store_read_only false";
  const denied = "StoreError store_denied false";
  expect(JSON.parse(stdout)).toEqual({
    put: readOnly,
    create: readOnly,
    "put below": readOnly,
    delete: readOnly,
    get: "ok",
    "get secret": denied,
    "head in a closed folder": denied,
    "get in a closed folder": denied,
    list: denied,
    "no root": readOnly,
  });
  expect(await readdir(temp)).toEqual([]);
  expect((await stat(join(root, "locked", "object"))).size).toBe(1);
});

test.runIf(process.platform !== "win32")("too many open files is retryable, and over when one is closed", async () => {
  await new FileStore(root).put("large", new Uint8Array(3_000_000));
  const command = `ulimit -n 60; exec "$0" "$1" "$2"`;
  const { stdout } = await run("sh", ["-c", command, process.execPath, script("many-files"), root]);
  expect(JSON.parse(stdout)).toEqual({ name: "StoreError", code: "too_many_files", retryable: true, again: 3_000_000 });
});
