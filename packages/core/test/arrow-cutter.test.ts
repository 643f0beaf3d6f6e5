/** Parts of Arrow IPC, read by the library of Apache Arrow, each by itself. */

import { readFileSync } from "node:fs";
import * as arrow from "apache-arrow";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { batchRows, cutArrowIPC, type KeepFile, readArrowIPC } from "../src/index.js";

async function* pieces(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield Uint8Array.from(bytes.subarray(at, at + size));
}

/** Each part as a stream of its own, and how many rows came up to its end. */
async function cut(
  bytes: Uint8Array,
  partBytes: number,
  { pieceBytes = 1000, keep }: { pieceBytes?: number; keep?: KeepFile } = {},
): Promise<{ part: Uint8Array; rows: number }[]> {
  await using streams = await cutArrowIPC(pieces(bytes, pieceBytes), partBytes, keep);
  const parts: { part: Uint8Array; rows: number }[] = [];
  do {
    const part: Uint8Array[] = [];
    for await (const piece of streams.read()) part.push(piece);
    parts.push({ part: Buffer.concat(part), rows: streams.rows });
  } while (await streams.more());
  return parts;
}

const values = (part: Uint8Array): unknown[] => arrow.tableFromIPC(part).toArray().map(String);
const batch = (first: number, rows: number): arrow.RecordBatch =>
  arrow.tableFromArrays({ a: Int32Array.from({ length: rows }, (_, i) => first + i) }).batches[0]!;
const batches = Array.from({ length: 5 }, (_, i) => batch(10 * i, 10));
const numbers = Array.from({ length: 50 }, (_, i) => `{"a": ${i}}`);
const stream = arrow.RecordBatchStreamWriter.writeAll(batches).toUint8Array(true);
const file = arrow.RecordBatchFileWriter.writeAll(batches).toUint8Array(true);
/** Another writer's: the same for its footer, which holds the stream that it says it holds. */
const held = Buffer.concat([Buffer.from("ARROW1\0\0"), stream, Buffer.from("footer\x06\0\0\0ARROW1")]);

describe("Arrow IPC is cut at record batches", () => {
  it.each([
    ["a stream", stream],
    ["a file", held],
    ["a file that has to be read by its footer", file],
  ])("%s", async (_, bytes) => {
    const parts = await cut(bytes, 1);
    expect(parts.map(({ rows }) => rows)).toEqual([10, 20, 30, 40, 50]);
    expect(parts.map(({ part }) => values(part))).toEqual(
      [0, 10, 20, 30, 40].map((first) => numbers.slice(first, first + 10)),
    );
    expect((await cut(bytes, 1e9)).map(({ part }) => values(part))).toEqual([numbers]);
    for (const pieceBytes of [1, 7, 64]) {
      const again = await cut(bytes, 1, { pieceBytes });
      expect(again.map(({ part }) => [...part])).toEqual(parts.map(({ part }) => [...part]));
    }
  });

  it("where their messages have reached partBytes", async () => {
    // Five equal batches are what a stream has beyond its schema; 8 bytes of each are its prefix.
    const none = arrow.tableToIPC(new arrow.Table(batches[0]!.schema), "stream");
    const bytes = (stream.length - none.length) / 5 - 8;
    const sizes = async (partBytes: number): Promise<number[]> =>
      (await cut(stream, partBytes)).map(({ part }) => arrow.tableFromIPC(part).numRows);
    expect(await sizes(2 * bytes)).toEqual([20, 20, 10]);
    expect(await sizes(2 * bytes + 1)).toEqual([30, 20]);
  });

  it("that are none: one part with the schema", async () => {
    const empty = arrow.tableToIPC(new arrow.Table(batches[0]!.schema), "stream");
    const parts = await cut(empty, 1);
    expect(parts.map(({ part }) => arrow.tableFromIPC(part).schema.fields.map(String))).toEqual([["a: Int32"]]);
  });

  it("and each part has the dictionaries that its batches were written with", async () => {
    // pyarrow's: n and s, then e in a dictionary of its own, then w and e in the same one with w added.
    const bytes = readFileSync(new URL("fixtures/arrow/dictionaries.arrows", import.meta.url));
    const texts = async (part: Uint8Array): Promise<unknown[]> => {
      const found: unknown[] = [];
      for await (const batch of (await readArrowIPC(part)).batches) found.push(...batchRows(batch, "exact"));
      return found.map((row) => (row as { c: string }).c);
    };
    const each = await cut(bytes, 1);
    expect(await Promise.all(each.map(({ part }) => texts(part)))).toEqual([["n", "s"], ["e"], ["w", "e"]]);
    // The third has what was added and what it was added to, and nothing of the first.
    expect(Buffer.from(each[2]!.part).includes("ns")).toBe(false);
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 900 }),
        fc.integer({ min: 1, max: 90 }),
        async (partBytes, pieceBytes) => {
          const parts = await cut(bytes, partBytes, { pieceBytes });
          const rows = await Promise.all(parts.map(({ part }) => texts(part)));
          expect(rows.flat()).toEqual(["n", "s", "e", "w", "e"]);
        },
      ),
      { numRuns: 40 },
    );
  });

  it("cut off, it gives the parts that are whole, and then the error", async () => {
    const streams = await cutArrowIPC(pieces(stream.subarray(0, stream.length - 8), 100), 1);
    for (let i = 0; i < 5; i++) for await (const _ of streams.read());
    await expect(streams.more()).rejects.toMatchObject({ code: "truncated_arrow" });
  });
});
