/** Keys of written objects: every one below the root, no two partitions with one key (D29, D77). */

import { mkdirSync, readdirSync, realpathSync, symlinkSync } from "node:fs";
import { join, sep } from "node:path";
import { FileStore, MemoryStore } from "@eider/storage";
import { describe, expect, it } from "vitest";
import { ParquetObjectWriter } from "../src/index.js";
import { temporaryFolder } from "./support/folder.js";
import { keysOf, rowsOf } from "./support/objects.js";

const SCHEMA = { tenant: "string", at: "timestamptz", n: "int64" };
const AT = "2031-02-03T04:05:06Z";

/** Values that leave, or seem to leave, the place of a path part. */
const HOSTILE = [
  "../../out",
  "..",
  ".",
  "/abs",
  "a\u0000b",
  "C:\\x",
  "con",
  "%2e%2e%2f",
  "%63on",
  "x".repeat(300),
  `${"x".repeat(300)}y`,
  "",
  "__EMPTY__",
  "__HIVE_DEFAULT_PARTITION__",
  null,
  "u/v",
  "50%",
  "x=y",
  "h:m",
  "p+q",
  "u%2Fv",
  "sp ace",
  "ñ",
  "a.",
  "{n}",
  "con.txt",
];

async function write(store: MemoryStore | FileStore, path?: string, partitionBy = ["tenant"]): Promise<string[]> {
  const keys: string[] = [];
  const writer = await ParquetObjectWriter.open(store, {
    schema: SCHEMA,
    partitionBy,
    id: "w",
    ...(path !== undefined && { path }),
    onWritten: ({ key }) => void keys.push(key),
  });
  await writer.write(HOSTILE.map((tenant, n) => ({ tenant, at: AT, n })));
  await writer.close();
  return keys;
}

describe.each([[undefined], ["{tenant}/{n}.parquet"], ["in/{tenant}.{n}"], ["{n}-{tenant}"], ["a{tenant}/{id}/{n}"]])(
  "the path %s",
  (path) => {
    it("keeps each tenant apart, and the rows with their tenant", async () => {
      const store = new MemoryStore();
      const keys = await write(store, path);
      expect(new Set(keys).size).toBe(HOSTILE.length);
      expect(keys.every((key) => !key.split("/").some((part) => part === "" || part === "." || part === ".."))).toBe(
        true,
      );
      for (const key of keys) {
        const [row, ...others] = await rowsOf(store, key);
        expect(others).toEqual([]);
        expect(row!.tenant).toBe(HOSTILE[Number(row!.n)]);
      }
    });

    it("puts nothing outside of a folder, whatever names are in it", async () => {
      const around = realpathSync(temporaryFolder());
      const root = join(around, "root");
      mkdirSync(root);
      mkdirSync(join(around, "out"));
      await write(new FileStore(root), path);
      expect(readdirSync(around).sort()).toEqual(["out", "root"]);
      expect(readdirSync(join(around, "out"))).toEqual([]);
      const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      expect(files.length).toBe(HOSTILE.length);
      for (const { parentPath } of files) expect((realpathSync(parentPath) + sep).startsWith(root + sep)).toBe(true);
    });
  },
);

it("a symbolic link below the root that points out is not followed", async () => {
  const around = realpathSync(temporaryFolder());
  mkdirSync(join(around, "root"));
  mkdirSync(join(around, "out"));
  symlinkSync(join(around, "out"), join(around, "root", "linked"));
  const writer = await ParquetObjectWriter.open(new FileStore(join(around, "root")), {
    schema: SCHEMA,
    partitionBy: ["tenant"],
    path: "{tenant}/{n}",
  });
  await writer.write({ tenant: "linked", at: AT, n: 1 });
  await expect(writer.close()).rejects.toThrow();
  expect(readdirSync(join(around, "out"))).toEqual([]);
});

it("placeholders of transforms, evaluated once for each file", async () => {
  const keys = await write(new MemoryStore(), "{bucket(4, n)}/{ day(at) }/{tenant}/{n}.parquet", [
    "tenant",
    "day(at)",
    "bucket(4, n)",
  ]);
  for (const key of keys) expect(key).toMatch(/^[0-3]\/2031-02-03\/[^/]+\/00000\.parquet$/);
});

it("values that are equal as text but not as types are told apart where a column could hold both", async () => {
  const store = new MemoryStore();
  const writer = await ParquetObjectWriter.open(store, {
    schema: { a: "float64", n: "int64" },
    partitionBy: ["a"],
    path: "{a}/{n}",
  });
  await writer.write([0, -0, Number.NaN, 1, null, Number.POSITIVE_INFINITY].map((a, n) => ({ a, n })));
  await writer.close();
  expect(await keysOf(store)).toEqual([
    "0/00000",
    "1/00000",
    "Infinity/00000",
    "NaN/00000",
    "__HIVE_DEFAULT_PARTITION__/00000",
  ]);
});

describe("a path that could give two partitions one key, or no key at all, is refused before anything is written", () => {
  it.each([
    ["{tenant}/x.parquet", ["tenant"], /\{n\} once/],
    ["{tenant}/{n}/{n}", ["tenant"], /\{n\} once/],
    ["{n}", ["tenant"], /put \{tenant\} in it/],
    ["{tenant}/{n}", ["tenant", "day(at)"], /put \{day\(at\)\} in it/],
    ["{tenant}{day(at)}/{n}", ["tenant", "day(at)"], /run into each other/],
    ["{tenant}-{day(at)}/{n}", ["tenant", "day(at)"], /run into each other/],
    ["{tenant}_{day(at)}={n}", ["tenant", "day(at)"], /run into each other/],
    ["{tenant},{day(at)}-{n}", ["tenant", "day(at)"], /run into each other/],
    ["{tenant}{n}", ["tenant"], /run into each other/],
    ["{n}7{tenant}", ["tenant"], /run into each other/],
    ["x{partition}/{n}", ["tenant"], /a part of its own/],
    ["{partition}/{n}", [], /no partitionBy/],
    ["{nowhere}/{n}", ["tenant"], /known are \{partition\}, \{tenant\}, \{id\}, \{n\}/],
    ["{at}/{n}", ["day(at)"], /is not known/],
    ["{tenant/{n}", ["tenant"], /a brace/],
    ["{tenant}/{n}}", ["tenant"], /a brace/],
    ["../{tenant}/{n}", ["tenant"], /no store takes/],
    ["/{tenant}/{n}", ["tenant"], /no store takes/],
    ["a//{tenant}/{n}", ["tenant"], /no store takes/],
    ["{tenant}/{n}/", ["tenant"], /no store takes/],
    ["a\\{tenant}/{n}", ["tenant"], /no store takes/],
    ["_eider/tmp/{tenant}/{n}", ["tenant"], /no store takes/],
    ["", [], /\{n\} once/],
  ])("%s of %j", async (path, partitionBy, message) => {
    const store = new MemoryStore();
    const opening = ParquetObjectWriter.open(store, { schema: SCHEMA, partitionBy, path });
    await expect(opening).rejects.toMatchObject({ code: "bad_path", message: expect.stringMatching(message) });
    expect(await keysOf(store)).toEqual([]);
  });

  it.each([
    ["{tenant}={day(at)}/{n}", ["tenant", "day(at)"]],
    ["{tenant},{day(at)},{n}", ["tenant", "day(at)"]],
    ["{tenant}/{day(at)}-{id}-{n}.pq", ["tenant", "day(at)"]],
    ["{partition}/{n}-of-{id}", ["tenant"]],
    ["{id}{n}", []],
  ])("%s of %j is not", async (path, partitionBy) => {
    await expect(
      ParquetObjectWriter.open(new MemoryStore(), { schema: SCHEMA, partitionBy, path }),
    ).resolves.toBeDefined();
  });
});

it("an id is encoded as values are", async () => {
  const store = new MemoryStore();
  const writer = await ParquetObjectWriter.open(store, { schema: SCHEMA, id: "../upload 42/7" });
  await writer.write({ n: 1 });
  await writer.close();
  expect(await keysOf(store)).toEqual(["%2E.%2Fupload%2042%2F7-00000.parquet"]);
});
