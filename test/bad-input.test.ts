import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { inspect } from "node:util";
import { gzipSync } from "node:zlib";
import { EiderError, Lake, type Source } from "eider";
import { describe, expect, it } from "vitest";
import { events } from "./support/events.js";
import { temporaryFolder } from "./support/folder.js";
import { reportUnavailable } from "./support/unavailable.js";

/** A web stream of these values. */
const readable = (values: readonly unknown[]): ReadableStream =>
  new ReadableStream({
    start(controller) {
      for (const value of values) controller.enqueue(value);
      controller.close();
    },
  });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

it("errors about Parquet in bytes name the input, not its temporary copy", async () => {
  await using lake = await Lake.open("memory:");
  const cut = Buffer.concat([Buffer.from("PAR1"), Buffer.alloc(100)]);
  for (const [source, name] of [
    [cut, "the input"],
    [new File([cut], "cut.parquet"), "cut.parquet"],
  ] as const) {
    const error = await lake
      .table("t")
      .append(source)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "bad_parquet", subject: name });
    expect((error as Error).message).toMatch(new RegExp(`^${name} cannot be read as Parquet`));
    expect((error as Error).message).not.toContain("eider-spool");
  }
});

describe("bad input is a clear error and nothing is half-done", () => {
  const folder = temporaryFolder();
  const gz = gzipSync('{"a":1}\n'.repeat(10_000));
  const cases: Record<string, [make: () => Promise<Source> | Source, code: string]> = {
    "a missing file": [() => ({ file: join(folder, "none.csv") }), "file_not_found"],
    "a folder": [() => ({ file: folder }), "bad_source"],
    "a bare string": [() => "rows.csv" as never, "bad_source"],
    "a number": [() => 5 as never, "bad_source"],
    "a single object": [() => ({ a: 1 }) as never, "bad_source"],
    "a stream of strings": [() => readable(["a,b\n"]), "bad_source"],
    "a row that is no object": [() => [{ a: 1 }, 5] as never, "rejected_rows"],
    "text that is no JSON": [() => bytes('{"a":1}\n{"a":\n'), "rejected_rows"],
    "a cut JSON array": [() => bytes('[{"a":1},{"a":2}'), "bad_json"],
    "an unknown format": [() => bytes("hello"), "unknown_format"],
    "bytes that are not UTF-8": [
      () => Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
      "bad_encoding",
    ],
    "a cut-off gzip": [() => gz.subarray(0, gz.length - 12), "truncated_gzip"],
    "a damaged gzip": [
      () => {
        const bad = Buffer.from(gz);
        bad.fill(0x55, 20, 40);
        return bad;
      },
      "bad_gzip",
    ],
    "a file that is called Parquet": [
      async () => {
        await writeFile(join(folder, "x.parquet"), "not parquet at all");
        return { file: join(folder, "x.parquet") };
      },
      "unknown_format",
    ],
    "a cut Parquet file": [
      async () => {
        await writeFile(join(folder, "cut.parquet"), Buffer.concat([Buffer.from("PAR1"), Buffer.alloc(100)]));
        return { file: join(folder, "cut.parquet") };
      },
      "bad_parquet",
    ],
    "an unreachable server": [() => ({ url: "http://127.0.0.1:1/x.csv" }), "url_unreachable"],
    "an ftp URL": [() => ({ url: "ftp://127.0.0.1/x.csv" }), "bad_source"],
    "a URL with a password": [() => ({ url: "http://ada:hush@127.0.0.1:1/x.csv" }), "bad_source"],
    "a response that was read": [
      async () => {
        const response = new Response('{"a":1}\n');
        await response.text();
        return response;
      },
      "bad_source",
    ],
    "a web stream that was read": [
      async () => {
        const stream = readable([bytes('{"a":1}\n')]);
        for await (const _ of stream);
        return stream;
      },
      "bad_source",
    ],
    "a web stream that is being read": [
      () => {
        const stream = readable([bytes('{"a":1}\n')]);
        stream.getReader();
        return stream;
      },
      "bad_source",
    ],
    "a Node.js stream that was read": [
      async () => {
        const stream = Readable.from([bytes('{"a":1}\n')]);
        for await (const _ of stream);
        return stream;
      },
      "bad_source",
    ],
    "bytes that were transferred": [
      () => {
        const lost = bytes('{"a":1}\n');
        structuredClone(lost.buffer, { transfer: [lost.buffer] });
        return lost;
      },
      "bad_source",
    ],
    "a response that breaks off": [
      () =>
        new Response(
          new ReadableStream({
            start: (controller) => controller.enqueue(bytes('{"a":1}\n')),
            pull: (controller) => controller.error(new TypeError("terminated")),
          }),
        ),
      "url_unreachable",
    ],
    "rows without a value": [() => [{ a: null }, {}], "no_columns"],
    "an unsafe integer": [() => [{ a: 2 ** 60 }], "rejected_rows"],
    "a source that fails midway": [
      () =>
        (async function* () {
          yield bytes('{"a":1}\n');
          throw new Error("the disk was pulled");
        })(),
      "",
    ],
  };
  it.each(Object.keys(cases))("%s", async (name) => {
    const [make, code] = cases[name]!;
    const where = await mkdtemp(join(folder, "lake-"));
    await using lake = await Lake.open(where);
    const error: unknown = await lake
      .table("t")
      .append(await make(), { batchId: "b" })
      .catch((e: unknown) => e);
    if (code === "") expect((error as Error).message).toBe("the disk was pulled");
    else {
      expect(error).toBeInstanceOf(EiderError);
      expect(error).toMatchObject({ code });
    }
    expect(await lake.tables()).toEqual([]);
    expect(await lake.snapshots()).toEqual([]);
    expect((await lake.verify()).findings).toEqual([]);
    // The batch id is free: the corrected input commits under it.
    expect(await lake.table("t").append([{ a: 1 }], { batchId: "b" })).toMatchObject({ status: "committed" });
  });

  it("what is left of a stream is taken, and an empty one is an empty batch", async () => {
    await using lake = await Lake.open("memory:");
    const stream = readable([bytes("a preamble"), bytes('{"a":1}\n')]);
    const reader = stream.getReader();
    await reader.read();
    reader.releaseLock();
    expect(await lake.table("t").append(stream)).toMatchObject({ rowsAdded: 1 });
    expect(await lake.table("t").append(readable([]))).toMatchObject({ rowsAdded: 0 });
  });

  it("no password of a URL is in an error", async () => {
    await using lake = await Lake.open("memory:");
    const append = lake.table("t").append({ url: "http://ada:hush@127.0.0.1:1/x.csv" });
    expect(inspect(await append.catch((error: unknown) => error))).not.toContain("hush");
  });

  it("a multi-file batch that fails late leaves no file behind", async () => {
    await using lake = await Lake.open(join(folder, "late"));
    const rows = [...events(150_000)].map((event) => JSON.stringify(event)).join("\n");
    const bad = lake.table("t", { partitionBy: ["type"] }).append(bytes(`${rows}\nbroken\n`));
    await expect(bad).rejects.toMatchObject({ rows: [{ line: 150_001 }] });
    expect((await lake.verify()).findings).toEqual([]);
  });
});

describe("SQL", () => {
  it("errors have a code and a position in the text", async () => {
    await using lake = await Lake.open("memory:");
    await lake.table("events").append([{ id: 1, name: "x" }]);
    await expect(lake.sql("SELECT id FROM evnts")).rejects.toMatchObject({
      code: "unknown_table",
      message: expect.stringContaining("events"),
    });
    await expect(lake.sql("SELECT id, nme FROM events")).rejects.toMatchObject({
      code: "unknown_column",
      position: 11,
    });
    await expect(lake.sql("SELEC 1")).rejects.toMatchObject({ code: "syntax_error", position: 0 });
    await expect(lake.sql("SELECT 1; SELECT 2")).rejects.toMatchObject({ name: "QueryError" });
    await expect(lake.sql("")).rejects.toMatchObject({ name: "QueryError" });
    await expect(lake.sql("SELECT name::INT FROM events")).rejects.toMatchObject({ name: "QueryError" });
    await expect(lake.sql`SELECT ${undefined as never}`).rejects.toMatchObject({ name: "InvalidInputError" });
  });
});

describe("places that are no lake", () => {
  const folder = temporaryFolder();

  it("a folder of other files, a file, and nothing at all", async () => {
    await writeFile(join(folder, "notes.txt"), "mine");
    for (const mode of ["create", "open", "read"] as const) {
      await expect(Lake.open(folder, { mode })).rejects.toMatchObject({ code: "not_a_lake" });
    }
    expect(await readdir(folder)).toEqual(["notes.txt"]);
    await expect(Lake.open(join(folder, "notes.txt"))).rejects.toMatchObject({ name: "NotFoundError" });
    await expect(Lake.open(join(folder, "none"), { mode: "open" })).rejects.toMatchObject({ code: "lake_not_found" });
    await expect(Lake.open(join(folder, "none"), { mode: "read" })).rejects.toMatchObject({ code: "lake_not_found" });
    expect(await readdir(folder)).toEqual(["notes.txt"]);
    await expect(Lake.open("ftp://x")).rejects.toBeInstanceOf(EiderError);
    await expect(Lake.open("")).rejects.toBeInstanceOf(EiderError);
  });

  it("a lake of a newer format, without its catalog, or with another's", async () => {
    const where = join(folder, "a");
    await (await Lake.open(where)).close();
    await (await Lake.open(join(folder, "b"))).close();
    const file = join(where, "_eider", "lake.json");
    const own = await import(file, { with: { type: "json" } }).then(
      (module) => module.default as Record<string, unknown>,
    );
    await writeFile(file, JSON.stringify({ ...own, format: 99 }));
    await expect(Lake.open(where)).rejects.toMatchObject({ code: "lake_too_new" });
    await writeFile(file, "{");
    await expect(Lake.open(where)).rejects.toMatchObject({ code: "bad_lake_file" });
    await writeFile(file, JSON.stringify({ ...own, catalog: "another" }));
    await expect(Lake.open(where)).rejects.toMatchObject({ code: "catalog_mismatch" });
    await writeFile(file, JSON.stringify(own));
    for (const name of ["catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm"])
      await rm(join(where, "_eider", name), { force: true });
    await expect(Lake.open(where)).rejects.toMatchObject({ code: "catalog_missing" });
    expect((await readdir(join(where, "_eider"))).filter((name) => name.startsWith("catalog"))).toEqual([]);
  });

  it("mode read reads and refuses to write", async () => {
    const where = join(folder, "c");
    const writer = await Lake.open(where);
    await writer.table("t").append([{ a: 1 }]);
    await using reader = await Lake.open(where, { mode: "read" });
    expect(await reader.sql("SELECT * FROM t")).toEqual([{ a: 1n }]);
    await writer.table("t").append([{ a: 2 }]);
    expect(await reader.sql("SELECT sum(a) AS s FROM t")).toEqual([{ s: 3n }]);
    for (const write of [
      () => reader.table("t").append([{ a: 1 }]),
      () => reader.table("t").drop(),
      () => reader.table("u").create(),
      () => reader.maintain(),
    ]) {
      await expect(write()).rejects.toMatchObject({ code: "read_only" });
    }
    await writer.close();
  });
});

describe("disks", () => {
  /** A file system of its own on a folder; only root may mount. */
  async function mounted(name: string, options: string, work: (path: string) => Promise<void>): Promise<void> {
    const path = await mkdtemp(join(tmpdir(), "eider-mount-"));
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path], { stdio: "ignore" });
    } catch {
      await rm(path, { recursive: true });
      reportUnavailable(name, "mounting a tmpfs needs root on Linux", "sudo npm test -- test/bad-input.test.ts");
      return;
    }
    try {
      await work(path);
    } finally {
      execFileSync("umount", ["-l", path]);
      await rm(path, { recursive: true });
    }
  }

  it("a full disk: a clear error, the lake goes on when there is room", async () => {
    await mounted("full disk", "size=3m", async (path) => {
      const where = join(path, "lake");
      await using lake = await Lake.open(where);
      await lake.table("t").append([{ a: 1 }]);
      const big = [...events(400_000)];
      await expect(lake.table("t2").append(big, { batchId: "b" })).rejects.toMatchObject({
        name: "StoreError",
        code: "store_full",
      });
      expect((await lake.tables()).map(({ name }) => name)).toEqual(["t"]);
      expect((await lake.verify()).findings).toEqual([]);
      expect(await lake.table("t").append([{ a: 2 }])).toMatchObject({ status: "committed" });
      expect(await lake.sql("SELECT sum(a) AS s FROM t")).toEqual([{ s: 3n }]);
    });
  });

  it("a read-only folder: reading works, writing and creating are clear errors", async () => {
    await mounted("read-only folder", "size=16m", async (path) => {
      await using first = await Lake.open(join(path, "lake"));
      await first.table("t").append([{ a: 1 }]);
      await first.close();
      await mkdir(join(path, "empty"));
      execFileSync("mount", ["-o", "remount,ro", path]);
      await expect(Lake.open(join(path, "empty"))).rejects.toMatchObject({ code: "store_read_only" });
      await using reader = await Lake.open(join(path, "lake"), { mode: "read" });
      expect(await reader.sql("SELECT * FROM t")).toEqual([{ a: 1n }]);
      const writing = (async () => {
        await using lake = await Lake.open(join(path, "lake"));
        await lake.table("t").append([{ a: 2 }]);
      })();
      await expect(writing).rejects.toMatchObject({ code: "catalog_unavailable" });
    });
  });
});
