import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { InvalidInputError } from "@eider/core";
import { describe, expect, test } from "vitest";
import { FileStore, MemoryStore, openStore } from "../src/index.js";
import { parseStoreUrl } from "../src/open.js";
import { S3Store } from "../src/s3.js";

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

  test.each([
    ["s3://bucket", { bucket: "bucket" }],
    ["S3://bucket/", { bucket: "bucket" }],
    ["s3://my.bucket/lakes/one/", { bucket: "my.bucket", prefix: "lakes/one" }],
    ["s3://bucket/a%20b+c", { bucket: "bucket", prefix: "a b+c" }],
    ["s3://bucket?region=eu-west-1", { bucket: "bucket", region: "eu-west-1" }],
    [
      "s3://bucket/p?endpoint=http%3A%2F%2F127.0.0.1%3A9000&path-style=false&anonymous=true&checksums=when-supported",
      {
        bucket: "bucket",
        prefix: "p",
        endpoint: "http://127.0.0.1:9000",
        forcePathStyle: false,
        anonymous: true,
        checksums: "when-supported",
      },
    ],
    [
      "s3://bucket/p?endpoint=https://minio.example:9000",
      { bucket: "bucket", prefix: "p", endpoint: "https://minio.example:9000" },
    ],
  ])("reads %j everywhere", (where, options) => {
    for (const windows of [false, true]) expect(parseStoreUrl(where, windows)).toEqual({ kind: "s3", options });
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
    ["s3:bucket", "bad_store_url"],
    ["s3:///prefix", "bad_store_url"],
    ["s3://bucket#x", "bad_store_url"],
    ["s3://bucket?secret=x", "bad_store_url"],
    ["s3://bucket?anonymous=yes", "bad_store_url"],
    ["s3://bucket/%zz", "bad_store_url"],
    ["s3://key:secret@bucket/x", "bad_store_url"],
    ["https://example.com/lake", "unknown_scheme"],
    ["gs://bucket", "unknown_scheme"],
    ["data:2024", "unknown_scheme"],
  ])("refuses %j with %s", (where, code) => {
    expect(() => parseStoreUrl(where, false)).toThrow(InvalidInputError);
    expect(() => parseStoreUrl(where, false)).toThrow(expect.objectContaining({ code }));
  });

  test.each([
    "s3://key:hunter2@bucket",
    "s3://bucket?secret=hunter2",
    "ftp://me:hunter2@host/x",
    "file://me:hunter2@host/x",
  ])("repeats no credential of %j", (where) => {
    let message = "";
    try {
      parseStoreUrl(where, false);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain("InvalidInputError");
    expect(message).not.toContain("hunter2");
  });
});

describe("openStore", () => {
  test("makes a memory store, new each time", async () => {
    const store = await openStore("memory:");
    expect(store).toBeInstanceOf(MemoryStore);
    await store.put("a", new Uint8Array(1));
    expect(await (await openStore("memory:")).head("a")).toBeUndefined();
  });

  test("opens an S3 store without a request, read-only if asked, and refuses settings that are none", async () => {
    await using store = await openStore("s3://bucket/a?endpoint=http://127.0.0.1:1", { readOnly: true });
    expect(store).toBeInstanceOf(S3Store);
    expect(store.url).toBe("s3://bucket/a");
    await expect(store.put("x", new Uint8Array(1))).rejects.toMatchObject({ code: "store_read_only" });
    await expect(store.delete("x")).rejects.toMatchObject({ code: "store_read_only" });
    for (const where of ["s3://b", "s3://bucket?endpoint=host", "s3://bucket?endpoint=https://me:hunter2@host"]) {
      const error = await openStore(where).catch((thrown: unknown) => thrown as InvalidInputError);
      expect(error).toMatchObject({ code: "bad_store_options" });
      expect(String(error)).not.toContain("hunter2");
    }
    await expect(openStore("s3://bucket?checksums=never")).rejects.toMatchObject({ code: "bad_store_options" });
    await expect(openStore("s3://bucket/../x")).rejects.toMatchObject({ code: "bad_key" });
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
