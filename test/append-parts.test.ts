/** Sources in parts: cut the same way each time, so that another try appends only what is missing. */

import { createReadStream, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { type AppendPartsOptions, Lake, type Source } from "eider";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunked } from "./support/bytes.js";
import { runChild } from "./support/child.js";
import { openCounted } from "./support/counted-lake.js";
import { events } from "./support/events.js";
import { temporaryFolder } from "./support/folder.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
/** `size` bytes a line, numbered from `first`. */
const lines = (count: number, size = 10, first = 0): string =>
  Array.from({ length: count }, (_, i) => `${`{"a":${first + i}`.padEnd(size - 2)}}\n`).join("");

/** Rows of each part, as its receipt says. */
async function partRows(source: Source, options: Partial<AppendPartsOptions>): Promise<number[]> {
  const { lake, table } = await openCounted();
  const { receipts } = await table.appendParts(source, { batchId: "b", ...options });
  await lake.close();
  return receipts.map(({ rows }) => rows);
}

describe("a source is cut", () => {
  it("at the line that reaches partBytes", async () => {
    // 3 × 10 bytes are the first that reach 25.
    expect(await partRows(bytes(lines(10)), { partBytes: 25 })).toEqual([3, 3, 3, 1]);
    expect(await partRows(bytes(lines(9)), { partBytes: 30 })).toEqual([3, 3, 3]);
    expect(await partRows(bytes(lines(9)), {})).toEqual([9]);
    expect(await partRows(bytes(""), {})).toEqual([0]);
  });

  it("at the end of a CSV record, and every part has the header", async () => {
    const { lake, table } = await openCounted();
    const csv = 'id;text\n1;"a\nb"\n2;c\n3;"d\n"\n4;e\n';
    // `id;text\n1;"a\nb"\n` reaches 9 bytes, as do `2;c\n3;"d\n"\n` and, being the rest, `4;e\n`.
    const result = await table.appendParts(bytes(csv), { batchId: "b", format: "csv", partBytes: 9 });
    expect(result.receipts.map(({ rows }) => rows)).toEqual([1, 2, 1]);
    expect(await lake.sql("SELECT id, text FROM t ORDER BY id")).toEqual([
      { id: 1n, text: "a\nb" },
      { id: 2n, text: "c" },
      { id: 3n, text: "d\n" },
      { id: 4n, text: "e" },
    ]);
    await lake.close();
  });

  it("at rows, by their size as JSON: one in 64 is measured", async () => {
    const rows = Array.from({ length: 200 }, () => ({ a: 1 })); // {"a":1}: 7 bytes, 448 for 64 of them
    expect(await partRows(rows, { partBytes: 448 })).toEqual([64, 64, 64, 8]);
    expect(await partRows(rows, { partBytes: 449 })).toEqual([128, 72]);
    expect(await partRows(Readable.from(rows), { partBytes: 448 })).toEqual([64, 64, 64, 8]);
  });

  it("into one part for each line, where a line is long", async () => {
    expect(await partRows(bytes(lines(3, 5000)), { partBytes: 1 })).toEqual([1, 1, 1]);
  });

  it.each([
    ["UTF-16", Uint8Array.of(0xff, 0xfe, 0x61, 0, 0x0a, 0), { format: "csv" }],
    ["CSV to be trimmed", bytes("a\n1\n"), { format: "csv", csv: { trim: true } }],
    ["CSV with an escape", bytes("a\n1\n"), { format: "csv", csv: { escape: "\\" } }],
  ] as const)("or refused, and nothing is committed: %s", async (_, source, options) => {
    const { lake, table } = await openCounted();
    await expect(table.appendParts(source, { batchId: "b", ...options })).rejects.toMatchObject({
      name: "InvalidInputError",
      code: "not_divisible",
    });
    expect(await lake.tables()).toEqual([]);
    await lake.close();
  });

  it("the same way from a file, a stream, a server and an archive", async () => {
    const all = bytes(lines(1000, 50));
    const file = join(temporaryFolder(), "in.ndjson");
    writeFileSync(file, all);
    const server = createServer((_, answer) => answer.end(gzipSync(all)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { lake, table } = await openCounted();
    const options = { batchId: "b", partBytes: 20_000 };
    const first = await table.appendParts({ file }, options);
    expect(first).toMatchObject({ status: "committed", parts: 3, partsCommitted: 3, rows: 1000, rowsAdded: 1000 });
    const sources: Source[] = [
      createReadStream(file, { highWaterMark: 777 }),
      chunked(gzipSync(all), 1000),
      new Blob([new Uint8Array(all)]),
      { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in.gz` },
      new Response(new Uint8Array(all)),
    ];
    for (const source of sources) {
      expect(await table.appendParts(source, options)).toEqual({
        ...first,
        status: "duplicate",
        partsCommitted: 0,
        rowsAdded: 0,
      });
    }
    expect(await lake.sql("SELECT count(*) AS n, count(DISTINCT a) AS d FROM t")).toEqual([{ n: 1000n, d: 1000n }]);
    server.close();
    await lake.close();
  });
});

describe("parts give what the whole gives, wherever they are cut and however the source arrives", () => {
  const sizes = fc.record({ partBytes: fc.integer({ min: 1, max: 60 }), chunk: fc.integer({ min: 1, max: 40 }) });

  async function outcome(lake: Lake, name: string): Promise<unknown> {
    const rejects = await lake.table(name).rejects();
    return {
      rows: await lake.sql(`SELECT * FROM ${name} ORDER BY ALL`),
      rejects: rejects.map(({ line, code, raw }) => ({ line, code, raw })).sort((a, b) => a.line - b.line),
    };
  }

  let tables = 0;
  let compared = 0;
  async function law(
    lake: Lake,
    text: string,
    format: "ndjson" | "csv" | "json",
    partBytes: number,
    chunk: number,
  ): Promise<void> {
    const schema = { a: "string", b: "int64" };
    const options = { format, onReject: "quarantine", schemaMode: "ignore" } as const;
    const n = tables++;
    try {
      await lake.table(`whole${n}`, { schema }).append(bytes(text), options);
    } catch {
      return; // What the parts before the fault have committed stays.
    }
    const table = lake.table(`parts${n}`, { schema });
    const first = await table.appendParts(bytes(text), { ...options, partBytes, batchId: "b" });
    expect(await outcome(lake, `parts${n}`)).toEqual(await outcome(lake, `whole${n}`));
    compared++;
    const again = await table.appendParts(chunked(bytes(text), chunk), { ...options, partBytes, batchId: "b" });
    expect(again).toEqual({ ...first, status: "duplicate", partsCommitted: 0, rowsAdded: 0, rowsRejected: 0 });
  }

  it.each([
    ["ndjson", ['{"a":"é"}\n', '{"b":7}\r\n', '{"b":"x"}\n', "[1]\n", "\n", " ", '{"a":', "\u{feff}", '{"b":2}']],
    ["csv", ["a,b\n", '"x\ny",1\n', "z,2\r\n", "q\n", '"', '""', ",", "\n", "é,3\n", "\u{feff}"]],
    ["json", ['{"a":"é"}', '\n{"b":7}', '{"b":"x"} ', "[1]", "[{}]", '{"a":"],"}', "7", '{"a":', '"\\""', '{"b":\n2}']],
  ] as const)("%s", async (format, tokens) => {
    const some = fc.array(fc.constantFrom<string>(...tokens), { minLength: 1, maxLength: 12 });
    const texts = some.map((tokens) => (format === "json" ? `[${tokens.join(",")}]` : tokens.join("")));
    await using lake = await Lake.open("memory:");
    await fc.assert(
      fc.asyncProperty(texts, sizes, (text, { partBytes, chunk }) =>
        law(lake, format === "csv" ? `a,b\n${text}` : text, format, partBytes, chunk),
      ),
      { numRuns: 60 },
    );
    // Many of them are texts that can be read.
    expect(compared).toBeGreaterThan(20);
    compared = 0;
  });
});

describe("another try", () => {
  /** Some 100 kB a part: 500 events are 110 kB. */
  const partBytes = 100_000;
  const all = bytes([...events(2000)].map((event) => `${JSON.stringify(event)}\n`).join(""));

  async function* broken(after: number): AsyncIterable<Uint8Array> {
    yield* chunked(all.subarray(0, after), 10_000);
    throw new Error("the line is dead");
  }

  it("goes on with the first part that is missing, and stages nothing of those before", async () => {
    const { lake, table, puts } = await openCounted();
    const options = { batchId: "b", partBytes };
    await expect(table.appendParts(broken(250_000), options)).rejects.toThrow("the line is dead");
    const before = (await table.batches()).map(({ batchId }) => batchId);
    expect(before).toEqual(["b/2", "b/1"]);
    expect(await table.receipt("b")).toBeUndefined();
    puts();
    const result = await table.appendParts(chunked(all, 7000), options);
    expect(result).toMatchObject({ status: "committed", rows: 2000 });
    expect(result.partsCommitted).toBe(result.parts - 2);
    expect(puts()).toBe(result.parts - 2);
    expect(await lake.sql("SELECT count(*) AS n, sum(id) AS s FROM t")).toEqual([{ n: 2000n, s: 1_999_000n }]);
    expect(await table.receipt("b")).toEqual(result.receipt);
    expect(result.receipt).toMatchObject({ rows: 0, contentHash: expect.stringMatching(/^parts:[0-9a-f]{64}$/) });
    await lake.close();
  });

  it("does not read a source of which all is there, if it trusts", async () => {
    const { lake, table } = await openCounted();
    const first = await table.appendParts(all, { batchId: "b", partBytes });
    const options = { batchId: "b", partBytes, onSeen: "trust" } as const;
    expect(await table.appendParts(broken(0), options)).toEqual({
      ...first,
      status: "duplicate",
      partsCommitted: 0,
      rowsAdded: 0,
    });
    await lake.close();
  });

  it("finds what has changed, names the part, and commits nothing", async () => {
    const { lake, table } = await openCounted();
    const source = (count: number, change = ""): Uint8Array => bytes(lines(count) + change);
    const options = { batchId: "b", partBytes: 30 };
    await table.appendParts(source(9), options);
    const conflict = async (source: Source, other: Partial<AppendPartsOptions>, message: RegExp): Promise<void> => {
      const error: unknown = await table.appendParts(source, { ...options, ...other }).catch((error: unknown) => error);
      expect(error).toMatchObject({ name: "BatchConflictError", code: "batch_conflict" });
      expect((error as Error).message).toMatch(message);
    };
    const changed = source(9);
    changed[35] = 0x20 + (changed[35]! === 0x20 ? 1 : 0);
    await conflict(changed, {}, /"b\/2" .* other content/);
    await conflict(source(6), {}, /"b\/3" .* is committed, and the source ends before it/);
    await conflict(source(7), {}, /"b\/3" .* other content/);
    await conflict(source(9), { partBytes: 40 }, /"b" .* \{"partBytes":30\}, not \{"partBytes":40\}/);
    await conflict(source(12), {}, /"b\/4" .* is not among the parts, which are complete/);
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 9n }]);
    expect(await table.batches()).toHaveLength(4);
    await lake.close();
  });

  it("is refused where the id is that of a whole batch, and the other way round", async () => {
    const { lake, table } = await openCounted();
    await table.append([{ a: 1 }], { batchId: "b" });
    const error = { name: "BatchConflictError", code: "batch_conflict" };
    await expect(table.appendParts([{ a: 1 }], { batchId: "b" })).rejects.toMatchObject(error);
    await table.appendParts([{ a: 1 }], { batchId: "c" });
    await expect(table.append([], { batchId: "c" })).rejects.toMatchObject(error);
    expect((await table.batches()).map(({ batchId }) => batchId)).toEqual(["c", "c/1", "b"]);
    await lake.close();
  });

  it("is told what a part cannot take by its line in the source; the parts before stay", async () => {
    const { lake, table } = await openCounted();
    const bad = `${lines(6)}[7]\n${lines(2)}`;
    const options = { batchId: "b", partBytes: 30 };
    await expect(table.appendParts(bytes(bad), options)).rejects.toMatchObject({
      code: "rejected_rows",
      rows: [{ line: 7 }],
    });
    await expect(
      table.appendParts([...Array(130).fill({ a: 1 }), { a: { b: Symbol("no") } }], { ...options, batchId: "rows" }),
    ).rejects.toMatchObject({ code: "rejected_rows", rows: [{ line: 131 }] });
    const mended = bytes(lines(9));
    expect(await table.appendParts(mended, options)).toMatchObject({ parts: 3, partsCommitted: 1, rowsAdded: 3 });
    await lake.close();
  });

  it("begins again in a table that was dropped", async () => {
    const { lake, table } = await openCounted();
    const options = { batchId: "b", partBytes: 30 };
    let dropped: Promise<unknown> | undefined;
    await expect(
      table.appendParts(bytes(lines(9)), {
        ...options,
        onProgress: ({ part, rows }) => {
          if (part === 2 && rows === 6) dropped ??= table.drop();
        },
      }),
    ).rejects.toMatchObject({ code: "table_replaced", retryable: true });
    await dropped;
    expect(await table.appendParts(bytes(lines(9)), options)).toMatchObject({ status: "committed", rows: 9 });
    expect(await lake.sql("SELECT count(*) AS n FROM t")).toEqual([{ n: 9n }]);
    await lake.close();
  });
});

it("reports parts, rows and bytes as they come, and stops when it is told to", async () => {
  const { lake, table } = await openCounted();
  const all = bytes(lines(3000, 100));
  const seen: { part: number; bytes: number; rows: number; totalBytes?: number }[] = [];
  await table.appendParts(all, {
    batchId: "b",
    partBytes: 100_000,
    onProgress: ({ part, bytes, rows, totalBytes }) => seen.push({ part, bytes, rows, totalBytes: totalBytes! }),
  });
  expect(seen.at(-1)).toEqual({ part: 3, bytes: 300_000, rows: 3000, totalBytes: 300_000 });
  for (const key of ["part", "bytes", "rows"] as const) {
    expect(seen.map((report) => report[key])).toEqual(seen.map((report) => report[key]).toSorted((a, b) => a - b));
  }
  const stop = new AbortController();
  const stopped = table.appendParts(all, {
    batchId: "c",
    partBytes: 100_000,
    signal: stop.signal,
    onProgress: ({ part }) => {
      if (part === 2) stop.abort(new Error("enough"));
    },
  });
  await expect(stopped).rejects.toThrow("enough");
  expect(await table.receipt("c/1")).toBeDefined();
  expect(await table.receipt("c/2")).toBeUndefined();
  expect(await table.receipt("c")).toBeUndefined();
  await lake.close();
});

it("asks for a batch id and a size that make sense", async () => {
  const { lake, table } = await openCounted();
  const bad = (options: object, code: string): Promise<void> =>
    expect(table.appendParts([], options as AppendPartsOptions)).rejects.toMatchObject({ code });
  await bad({}, "bad_option");
  await bad({ batchId: "b", partBytes: 0 }, "bad_option");
  await bad({ batchId: "b", partBytes: 1.5 }, "bad_option");
  await bad({ batchId: "b", cursor: { name: "c", from: "0", to: "1" } }, "bad_option");
  await bad({ batchId: { source: "s", sequence: 1 } }, "bad_batch_id");
  await table.create();
  await bad({ batchId: { source: "s", sequence: 1 } }, "bad_batch_id");
  await bad({ batchId: "x".repeat(1020) }, "bad_batch_id");
  await lake.close();
});

describe("processes (D36, D38)", () => {
  const folder = temporaryFolder();
  const file = join(folder, "in.ndjson");
  const rows = 1500;
  writeFileSync(file, [...events(rows)].map((event) => `${JSON.stringify(event)}\n`).join(""));
  /** Some 290 kB are three parts. */
  const argument = { table: "t", file, batchId: "b", partBytes: 100_000 };
  const sum = { n: 1500n, d: 1500n, s: 1_124_250n };

  async function check(where: string): Promise<void> {
    await using lake = await Lake.open(where, { mode: "open" });
    expect(await lake.sql("SELECT count(*) AS n, count(DISTINCT id) AS d, sum(id) AS s FROM t")).toEqual([sum]);
    const table = lake.table("t");
    expect((await table.batches()).map(({ batchId }) => batchId)).toEqual(["b", "b/3", "b/2", "b/1"]);
    expect(await table.files()).toHaveLength(3);
    expect(await table.appendParts({ file }, { batchId: "b", partBytes: 100_000 })).toMatchObject({
      status: "duplicate",
      parts: 3,
      rows,
    });
  }

  it("killed (SIGKILL) within each part and at each of its ends: each try stages what is missing, and rows come once", async () => {
    const where = join(folder, "killed");
    await (await Lake.open(where)).close();
    for (let part = 1; part <= 3; part++) {
      // Read half of it; put its file; before its commit, after it.
      for (const [moment, puts] of [
        ["read", 0],
        ["put", 1],
        ["commit", 1],
        ["committed", 1],
      ] as const) {
        const child = await runChild("append-parts", { ...argument, lake: where, kill: { part, moment } });
        expect(child).toMatchObject({ code: null, signal: "SIGKILL", stderr: "" });
        expect(
          child.lines.filter((line) => line === "put"),
          `${part} ${moment}`,
        ).toHaveLength(puts);
      }
    }
    const last = await runChild("append-parts", { ...argument, lake: where });
    expect(last).toMatchObject({ code: 0, stderr: "" });
    // All three were there; what was missing was the word that they are all.
    expect(last.lines).toEqual([expect.objectContaining({ status: "committed", parts: 3, partsCommitted: 0, rows })]);
    await check(where);
  });

  it("two at once commit each part once", async () => {
    const where = join(folder, "raced");
    await (await Lake.open(where)).close();
    const at = Date.now() + 1500;
    const children = await Promise.all([1, 2].map(() => runChild("append-parts", { ...argument, lake: where, at })));
    for (const child of children) expect(child).toMatchObject({ code: 0, stderr: "" });
    const results = children.map(({ lines }) => lines.at(-1) as { rows: number; partsCommitted: number });
    expect(results.map(({ rows }) => rows)).toEqual([rows, rows]);
    expect(results.reduce((all, { partsCommitted }) => all + partsCommitted, 0)).toBe(3);
    await check(where);
  });
});
