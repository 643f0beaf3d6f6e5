import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { InvalidInputError } from "@eider/core";
import { describe, expect, test } from "vitest";
import { FileStore, MemoryStore, openStore } from "../src/index.js";
import { parseStoreUrl } from "../src/open.js";

const file = (path: string): object => ({ kind: "file", path });

describe("parseStoreUrl", () => {
  test.each([
    ["memory:", { kind: "memory" }],
    ["MEMORY:", { kind: "memory" }],
    ["./lake", file("lake")],
    ["lake", file("lake")],
    ["../a/./b//c", file("../a/b/c")],
    ["/srv/lake", file("/srv/lake")],
    ["memory", file("memory")],
    ["./s3:x", file("s3:x")],
    ["file:///srv/my%20lake", file("/srv/my lake")],
    ["file:/srv/lake", file("/srv/lake")],
    ["/srv/100%25", file("/srv/100%25")],
  ])("reads %j elsewhere than on Windows", (where, place) => {
    expect(parseStoreUrl(where, false)).toEqual(place);
  });

  test.each([
    ["C:\\data\\lake", file("C:\\data\\lake")],
    ["C:/data/lake", file("C:\\data\\lake")],
    ["c:lake", file("c:lake")],
    ["\\\\server\\share\\lake", file("\\\\server\\share\\lake")],
    ["..\\lake", file("..\\lake")],
    ["data/lake", file("data\\lake")],
    ["file:///C:/my%20data", file("C:\\my data")],
    ["file://server/share/lake", file("\\\\server\\share\\lake")],
    ["memory:", { kind: "memory" }],
  ])("reads %j on Windows", (where, place) => {
    expect(parseStoreUrl(where, true)).toEqual(place);
  });

  test("takes URL objects", () => {
    expect(parseStoreUrl(new URL("file:///srv/a%2525"), false)).toEqual(file("/srv/a%25"));
  });

  test.each([
    ["", "bad_store_url"],
    ["  ", "bad_store_url"],
    ["a\0b", "bad_store_url"],
    ["memory:name", "bad_store_url"],
    ["~", "bad_store_url"],
    ["~/lake", "bad_store_url"],
    ["~\\lake", "bad_store_url"],
    ["C:\\data", "bad_store_url"],
    ["C:/data", "bad_store_url"],
    ["\\\\server\\share", "bad_store_url"],
    ["file:lake", "bad_store_url"],
    ["file://server/share", "bad_store_url"],
    ["file:///a%2Fb", "bad_store_url"],
    ["s3://bucket/prefix", "not_yet"],
    ["S3://bucket", "not_yet"],
    ["https://example.com/lake", "unknown_scheme"],
    ["gs://bucket", "unknown_scheme"],
    ["data:2024", "unknown_scheme"],
  ])("refuses %j with %s", (where, code) => {
    expect(() => parseStoreUrl(where, false)).toThrow(InvalidInputError);
    expect(() => parseStoreUrl(where, false)).toThrow(expect.objectContaining({ code }));
  });

  test.each(["s3://key:hunter2@bucket", "ftp://me:hunter2@host/x", "file://me:hunter2@host/x"])(
    "repeats no credential of %j",
    (where) => {
      let message = "";
      try {
        parseStoreUrl(where, false);
      } catch (error) {
        message = String(error);
      }
      expect(message).toContain("InvalidInputError");
      expect(message).not.toContain("hunter2");
    },
  );
});

describe("openStore", () => {
  test("makes a memory store, new each time", async () => {
    const store = await openStore("memory:");
    expect(store).toBeInstanceOf(MemoryStore);
    await store.put("a", new Uint8Array(1));
    expect(await (await openStore("memory:")).head("a")).toBeUndefined();
  });

  test("opens a folder by path or URL, with its options, and creates nothing", async () => {
    const folder = await mkdtemp(join(tmpdir(), "eider-open-"));
    try {
      const path = join(folder, "a b%20");
      const byPath = await openStore(path);
      expect(byPath).toBeInstanceOf(FileStore);
      const byUrl = await openStore(pathToFileURL(path), { readOnly: true });
      expect(byUrl.url).toBe(byPath.url);
      expect(await readdir(folder)).toEqual([]);
      await byPath.put("x", new Uint8Array(1));
      expect((await byUrl.head("x"))?.size).toBe(1);
      await expect(byUrl.put("y", new Uint8Array(1))).rejects.toMatchObject({ code: "store_read_only" });
      expect((await readdir(folder)).sort()).toEqual(["a b%20"]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
