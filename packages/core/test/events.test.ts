import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { afterAll, describe, expect, test } from "vitest";
import { encodeEvents } from "../src/events.js";
import { DuckReader } from "./parquet-readers.js";

/** See test-vectors/README.md. */
const VECTORS = fileURLToPath(new URL("../../../test-vectors/events/", import.meta.url));
const COLUMNS = "event_type,event,distinct_id,anonymous_id,ts,message_id,properties,context,dt,received_at".split(",");

interface EventVector {
  readonly about: string;
  readonly receivedAt: string;
  readonly unknown: "drop" | "keep";
  readonly unknownProperties: Readonly<Record<string, number>>;
}

const vectors = readdirSync(VECTORS, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => [name, JSON.parse(read(name, "vector.json").toString()) as EventVector] as const);

function read(name: string, file: string): Buffer {
  return readFileSync(join(VECTORS, name, file));
}

const duck = new DuckReader();
afterAll(() => duck.close());

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What two readers find in a file; both have to find the same. As bytes: by themselves both drop a U+FEFF in front. */
async function cellsOf(bytes: Uint8Array): Promise<unknown[][]> {
  const text = (cell: unknown): string | null => (cell instanceof Uint8Array ? decoder.decode(cell) : null);
  const parsers = { stringFromBytes: text, jsonFromBytes: text };
  const objects = await parquetReadObjects({ file: Uint8Array.from(bytes).buffer, parsers });
  const rows = objects.map((row) => Object.values(row).map((cell) => cell ?? null));
  const found = await duck.sql(`SELECT encode(COLUMNS(*)::VARCHAR) FROM ${duck.file(bytes)}`);
  expect(found.map((row) => Object.values(row).map(text))).toEqual(rows);
  return rows;
}

/** What the profile fixes of a file's footer. */
function profileOf(bytes: Uint8Array): unknown {
  const { schema, row_groups } = parquetMetadata(Uint8Array.from(bytes).buffer);
  return {
    columns: schema.slice(1).map(({ name, type, repetition_type, converted_type }) => ({
      name,
      type,
      repetition_type,
      converted_type,
    })),
    codecs: row_groups.flatMap(({ columns }) => columns.map(({ meta_data }) => meta_data?.codec)),
  };
}

describe.each(vectors)("%s", (name, { about, receivedAt, unknown, unknownProperties }) => {
  test(about, async () => {
    const { data } = JSON.parse(read(name, "input.json").toString()) as { data: { events: unknown[] } };
    const cells = JSON.parse(read(name, "cells.json").toString()) as unknown[][];
    const reference = read(name, "reference.parquet");
    const encoded = encodeEvents(data.events, { receivedAt: new Date(receivedAt), unknown });
    expect(await cellsOf(encoded.bytes)).toEqual(cells);
    expect(await cellsOf(reference)).toEqual(cells);
    expect(encoded.rows).toBe(cells.length);
    expect([...encoded.unknownProperties].sort()).toEqual(Object.entries(unknownProperties).sort());
    // A file without rows may or may not have an empty row group.
    if (cells.length > 0) expect(profileOf(encoded.bytes)).toEqual(profileOf(reference));
    const extra = { name: "extra", type: "BYTE_ARRAY", repetition_type: "OPTIONAL", converted_type: "JSON" };
    expect(profileOf(encoded.bytes)).toEqual({
      columns: [
        ...COLUMNS.map((column) => ({
          name: column,
          type: "BYTE_ARRAY",
          repetition_type: "REQUIRED",
          converted_type: "UTF8",
        })),
        ...(unknown === "keep" ? [extra] : []),
      ],
      codecs: cells.length === 0 ? [] : Array(unknown === "keep" ? 11 : 10).fill("UNCOMPRESSED"),
    });
  });
});

const receivedAt = new Date("2031-02-27T23:06:40.123Z");

test("unknown properties are dropped unless asked otherwise", () => {
  const { bytes, unknownProperties } = encodeEvents([{ event: "a", plan: 1 }], { receivedAt });
  expect(
    parquetMetadata(Uint8Array.from(bytes).buffer)
      .schema.slice(1)
      .map(({ name }) => name),
  ).toEqual(COLUMNS);
  expect([...unknownProperties]).toEqual([["plan", 1]]);
});

test("events that cannot be taken are named, all of them at once", () => {
  let deep: unknown = 1;
  for (let i = 0; i < 101; i++) deep = [deep];
  const events = [
    {},
    null,
    "text",
    [],
    7,
    { event: "\ud800" },
    { context: deep },
    { plan: deep },
    { event: "\ud83e\udd86" },
  ];
  const encode = () => encodeEvents(events, { receivedAt, unknown: "keep" });
  expect(encode).toThrow(
    expect.objectContaining({
      name: "InvalidInputError",
      code: "bad_events",
      message: "7 of 9 events cannot be taken; the first is event 2: it is not an object",
      rows: [
        ...[2, 3, 4, 5].map((line) => ({ line, code: "not_an_object", reason: "it is not an object" })),
        { line: 6, code: "bad_text", reason: "its event holds half of a surrogate pair, which UTF-8 cannot express" },
        { line: 7, code: "too_deep", reason: expect.any(String) },
        { line: 8, code: "too_deep", reason: expect.any(String) },
      ],
    }),
  );
});

test("what is dropped is not looked at", () => {
  expect(encodeEvents([{ plan: "\ud800" }], { receivedAt }).rows).toBe(1);
});

test("half of a surrogate pair within JSON stays, as its escape", async () => {
  const { bytes } = encodeEvents([{ properties: { p: "\ud800" } }], { receivedAt });
  expect((await cellsOf(bytes))[0]![6]).toBe('{"p":"\\ud800"}');
});

test("many events make several row groups, in order", async () => {
  const events = Array.from({ length: 100_001 }, (_, i) => ({ message_id: `m-${i}` }));
  const { bytes, rows } = encodeEvents(events, { receivedAt });
  expect(rows).toBe(100_001);
  const { row_groups } = parquetMetadata(Uint8Array.from(bytes).buffer);
  expect(row_groups.map(({ num_rows }) => Number(num_rows))).toEqual([100_000, 1]);
  const found = await duck.sql(
    `SELECT count(*)::INTEGER AS n FROM (SELECT message_id, row_number() OVER () - 1 AS i FROM ${duck.file(bytes)})
     WHERE message_id = 'm-' || i`,
  );
  expect(found).toEqual([{ n: 100_001 }]);
});
