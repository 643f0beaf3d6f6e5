import { Lake } from "eider";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FILES } from "./support/files.js";

let lake: Lake;

beforeAll(async () => {
  lake = await Lake.open("memory:", FILES);
  const events = lake.table("events", {
    schema: { id: "int64", "a b": "string", p: "struct<k: list<int64>>" },
    partitionBy: ["id"],
    orderBy: ['"a b"'],
  });
  await events.append([{ id: 1 }, { id: 2, "a b": "it's" }], { batchId: "one", meta: { source: "test" } });
  await events.append([{ id: 3 }], { batchId: "two" });
  await events.append(new TextEncoder().encode('{"id":4}\n{"id":"it\'s"}\n'), {
    batchId: "three",
    format: "ndjson",
    onReject: "quarantine",
  });
  await lake.table("ns.other").append([{ x: 1 }]);
});

afterAll(() => lake.close());

test("eider.tables", async () => {
  expect(
    await lake.sql`SELECT name, rows, files, partition_by, order_by, created_in FROM eider.tables ORDER BY name`,
  ).toEqual([
    { name: "events", rows: 4n, files: 4n, partition_by: ["id"], order_by: ['"a b"'], created_in: 1n },
    { name: "ns.other", rows: 1n, files: 1n, partition_by: [], order_by: [], created_in: 4n },
  ]);
});

test("eider.columns has nested fields too", async () => {
  expect(
    await lake.sql`SELECT path, type, position FROM eider.columns WHERE "table" = 'events' ORDER BY field_id`,
  ).toEqual([
    { path: ["id"], type: "int64", position: 1n },
    { path: ["a b"], type: "string", position: 2n },
    { path: ["p"], type: "struct<k: list<int64>>", position: 3n },
    { path: ["p", "k"], type: "list<int64>", position: 1n },
    { path: ["p", "k", "element"], type: "int64", position: 1n },
  ]);
});

test("eider.snapshots, .batches and .files tell what was committed, at the query's snapshot", async () => {
  expect(
    await lake.sql`SELECT snapshot, meta['source'] AS source, typeof(committed_at) AS t FROM eider.snapshots LIMIT 1`,
  ).toEqual([{ snapshot: 1n, source: "test", t: "TIMESTAMP WITH TIME ZONE" }]);
  expect(await lake.sql`SELECT operations->'$[*].table' AS names FROM eider.snapshots WHERE snapshot = 4`).toEqual([
    { names: ["ns.other", "ns.other"].map((name) => JSON.stringify(name)) },
  ]);
  const batches = "SELECT batch_id, rows, snapshot FROM eider.batches WHERE \"table\" = 'events' ORDER BY snapshot";
  expect(await lake.sql(batches)).toEqual([
    { batch_id: "one", rows: 2n, snapshot: 1n },
    { batch_id: "two", rows: 1n, snapshot: 2n },
    { batch_id: "three", rows: 1n, snapshot: 3n },
  ]);
  expect(await lake.with({ at: 1 }).sql(batches)).toHaveLength(1);
  const files = "SELECT batch_id, rows, key FROM eider.files WHERE \"table\" = 'events' ORDER BY added_in, key";
  expect(await lake.sql(files)).toMatchObject([
    { batch_id: "one", rows: 1n, key: expect.stringContaining("id=1/") },
    { batch_id: "one", rows: 1n },
    { batch_id: "two", rows: 1n },
    { batch_id: "three", rows: 1n },
  ]);
  expect(await lake.with({ at: 1 }).sql(files)).toHaveLength(2);
  expect(await lake.with({ at: 0 }).sql`SELECT * FROM eider.snapshots`).toEqual([]);
});

test("eider.rejects has the rows that were not taken", async () => {
  expect(await lake.sql`SELECT batch_id, line, raw FROM eider.rejects`).toEqual([
    { batch_id: "three", line: 2n, raw: '{"id":"it\'s"}' },
  ]);
});

test("join with tables, whose files are still chosen", async () => {
  const query = lake.sql`SELECT b.batch_id, e.id FROM events e, eider.batches b WHERE e.id = 2 AND b.rows = 2`;
  expect(await query).toEqual([{ batch_id: "one", id: 2n }]);
  expect(query.stats).toMatchObject({ filesConsidered: 4, filesRead: 1 });
});

test("are read-only, and one that is not there is named", async () => {
  await expect(Promise.resolve(lake.sql("DELETE FROM eider.tables"))).rejects.toMatchObject({ code: "read_only_sql" });
  await expect(Promise.resolve(lake.sql("SELECT * FROM eider.nothing"))).rejects.toMatchObject({
    code: "unknown_table",
  });
});
