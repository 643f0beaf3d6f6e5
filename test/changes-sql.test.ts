/** `eider.changes(…)`: what was committed between two snapshots, as rows. */

import { type Change, Lake } from "eider";
import { describe, expect, onTestFinished, test } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";

async function openLake(where: string | undefined = undefined, options: { inlineBytes?: number } = {}): Promise<Lake> {
  const lake = await Lake.open(where ?? "memory:", options);
  onTestFinished(() => lake.close());
  return lake;
}

/** Snapshots: 1 to 3 append to `t`, 4 to `u`, 5 adds a column, 6 goes back to 2, 7 appends, 8 has two batches. */
async function fill(lake: Lake): Promise<void> {
  const t = lake.table("t", { partitionBy: ["id"] });
  await t.append([{ id: 1 }, { id: 2 }], { batchId: "it's" });
  await t.append([{ id: 3 }], { batchId: "b2" });
  await t.append([{ id: 4 }], { batchId: "b3" });
  await lake.table("u").append([{ id: 99 }]);
  await t.append([{ id: 5, note: "n" }], { batchId: "b5" });
  await t.rollback({ to: 2 });
  await t.append([{ id: 6, note: "m" }], { batchId: "b7" });
  await lake.transaction(async (tx) => {
    await tx.table("t").append([{ id: 7 }], { batchId: "b8a" });
    await tx.table("t").append([{ id: 8 }], { batchId: "b8b" });
  });
}

const ALL = [
  { _snapshot: 1n, _batch_id: "it's", _kind: "append", _to: null, id: 1n, note: null },
  { _snapshot: 1n, _batch_id: "it's", _kind: "append", _to: null, id: 2n, note: null },
  { _snapshot: 2n, _batch_id: "b2", _kind: "append", _to: null, id: 3n, note: null },
  { _snapshot: 3n, _batch_id: "b3", _kind: "append", _to: null, id: 4n, note: null },
  { _snapshot: 5n, _batch_id: "b5", _kind: "append", _to: null, id: 5n, note: null },
  { _snapshot: 6n, _batch_id: null, _kind: "rollback", _to: 2n, id: null, note: null },
  { _snapshot: 7n, _batch_id: "b7", _kind: "append", _to: null, id: 6n, note: "m" },
  { _snapshot: 8n, _batch_id: "b8a", _kind: "append", _to: null, id: 7n, note: null },
  { _snapshot: 8n, _batch_id: "b8b", _kind: "append", _to: null, id: 8n, note: null },
];

const changes = (lake: Lake, call: string): Promise<unknown[]> =>
  lake.sql(`SELECT * FROM ${call} ORDER BY _snapshot, _batch_id, id`).then((rows) => rows);

describe.each([
  ["of hot batches", {}, false],
  ["of files", FILES, false],
  ["of folded batches", {}, true],
  ["of some that were folded", { inlineBytes: 0 }, true],
] as const)("changes %s", (_, options, folds) => {
  test("are the rows of each batch between two snapshots, with where they came from", async () => {
    const lake = await openLake(undefined, options);
    await fill(lake);
    if (folds) await lake.maintain({ fold: "all" });
    expect(await changes(lake, "eider.changes('t', 0)")).toEqual(ALL);
    expect(await changes(lake, "eider.changes('t', 0, 8)")).toEqual(ALL);
    expect(await changes(lake, "eider.changes('t', 1, 3)")).toEqual(ALL.slice(2, 4).map(({ note: __, ...row }) => row));
    expect(await changes(lake, "eider.changes('t', 5)")).toEqual(ALL.slice(5));
    expect(await changes(lake, "eider.changes('t', 6, 7)")).toEqual(ALL.slice(6, 7));
    expect(await changes(lake, "eider.changes('t', 8)")).toEqual([]);
    expect((await lake.sql("FROM eider.changes('t', 8)").columns()).map(({ type }) => type)).toEqual([
      "BIGINT",
      "VARCHAR",
      "VARCHAR",
      "BIGINT",
      "BIGINT",
      "VARCHAR",
    ]);
  });
});

test("say the same as the feed", async () => {
  const lake = await openLake();
  await fill(lake);
  const told: unknown[] = [];
  const tell = async (change: Change): Promise<void> => {
    if (change.kind === "rollback") told.push([change.snapshot, "rollback", change.to]);
    else for (const { id } of await change.rows<{ id: bigint }>()) told.push([change.snapshot, change.batchId, id]);
  };
  for await (const change of lake.table("t").changes()) await tell(change);
  const rows = await lake.sql<{ _snapshot: bigint; _batch_id: string; _to: bigint; id: bigint }>(
    "FROM eider.changes('t', 0) ORDER BY _snapshot, _batch_id, id",
  );
  expect(rows.map((row) => [Number(row._snapshot), row._batch_id ?? "rollback", row.id ?? Number(row._to)])).toEqual(
    told,
  );
});

test("stand where a table may: with filters, joins, aliases, parameters, beside the table itself, in COPY and EXPLAIN", async () => {
  const lake = await openLake();
  await fill(lake);
  expect(await lake.sql`SELECT c.id FROM eider.changes(${"t"}, ${1}, ${3}) AS c WHERE c.id > ${3}`).toEqual([
    { id: 4n },
  ]);
  expect(
    await lake.sql('SELECT changes.id FROM Eider . "changes" ( $t , $from ) WHERE _batch_id = $b', {
      t: "T",
      from: 6,
      b: "b7",
    }),
  ).toEqual([{ id: 6n }]);
  expect(
    await lake.sql(
      "SELECT a.id, b.id AS other FROM eider.changes('t', ?, ?) a, eider.changes('u', 3) b, t WHERE a.id = t.id AND t.id < ?",
      [1, 2, 9],
    ),
  ).toEqual([{ id: 3n, other: 99n }]);
  expect(await lake.sql`SELECT count(*) AS n FROM t WHERE id NOT IN (SELECT id FROM eider.changes('t', 6))`).toEqual([
    { n: 3n },
  ]);
  expect(
    await lake.sql`WITH c AS (FROM eider.changes('t', 6)) SELECT _kind, count(*) AS n FROM c GROUP BY ALL`,
  ).toEqual([{ _kind: "append", n: 3n }]);
  expect(
    await lake.sql`SELECT id FROM t AT (VERSION => 1) EXCEPT SELECT id FROM eider.changes('t', 1) ORDER BY id LIMIT 1`,
  ).toEqual([{ id: 1n }]);
  const out = `${temporaryFolder()}/out.csv`;
  await lake.sql(`COPY (SELECT id FROM eider.changes('t', 7) ORDER BY id) TO '${out}'`);
  expect(await lake.sql(`SELECT id FROM '${out}' ORDER BY id`)).toEqual([{ id: 7n }, { id: 8n }]);
  expect(JSON.stringify(await lake.sql`EXPLAIN FROM eider.changes('t', 7)`)).toContain(
    "from the catalog 2 hot batches",
  );
  expect(await lake.sql`PIVOT eider.changes('t', 6) ON _kind USING count(*) GROUP BY _snapshot ORDER BY ALL`).toEqual([
    { _snapshot: 7n, append: 1n },
    { _snapshot: 8n, append: 2n },
  ]);
  // Text that looks like a call is none.
  expect(await lake.sql`SELECT 'eider.changes(1)' AS "eider.changes(2)" -- eider.changes(3)`).toEqual([
    { "eider.changes(2)": "eider.changes(1)" },
  ]);
});

test("end at the query's snapshot, and begin at tags and times", async () => {
  const lake = await openLake();
  await fill(lake);
  await lake.tag("v2", { at: 2 });
  const ids = async (call: string, at?: number): Promise<unknown[]> =>
    (await lake.with(at === undefined ? {} : { at }).sql<{ id: bigint }>(`SELECT id FROM ${call} ORDER BY id`)).map(
      ({ id }) => id,
    );
  expect(await ids("eider.changes('t', 1)", 3)).toEqual([3n, 4n]);
  expect(await ids("eider.changes('t', 'v2', 3)")).toEqual([4n]);
  expect(await ids("eider.changes('t', 1, 'v2')")).toEqual([3n]);
  expect(await ids("eider.changes('t', '7', '2999-01-01')")).toEqual([7n, 8n]);
});

test("keep types: widened columns, nested values", async () => {
  const lake = await openLake(undefined, FILES);
  const t = lake.table("t", { schema: { x: "int64", p: "struct<k: list<int64>>" } });
  await t.append([{ x: 2, p: { k: [1] } }], { batchId: "a" });
  await t.append([{ x: 1.5 }], { batchId: "b" });
  expect(await lake.sql`SELECT _batch_id AS b, x, p FROM eider.changes('t', 0) WHERE x > 1.5`).toEqual([
    { b: "a", x: 2, p: { k: [1n] } },
  ]);
  expect(await lake.sql`SELECT _batch_id AS b FROM eider.changes('t', 0) WHERE x IS DISTINCT FROM 2`).toEqual([
    { b: "b" },
  ]);
});

test("of a table that went back to having no columns", async () => {
  const lake = await openLake();
  const t = lake.table("t");
  await t.create();
  await t.append([{ a: 1 }, { a: 2 }], { batchId: "b" });
  await t.rollback({ to: 1 });
  expect(await lake.sql`FROM eider.changes('t', 0) ORDER BY ALL`).toEqual([
    { _snapshot: 2n, _batch_id: "b", _kind: "append", _to: null },
    { _snapshot: 2n, _batch_id: "b", _kind: "append", _to: null },
    { _snapshot: 3n, _batch_id: null, _kind: "rollback", _to: 1n },
  ]);
  expect(await lake.sql`SELECT a FROM eider.changes('t', 0, 2) ORDER BY a`).toEqual([{ a: 1n }, { a: 2n }]);
});

test("of expired snapshots are refused, never skipped", async () => {
  const lake = await openLake(undefined, FILES);
  for (const id of [1, 2, 3]) await lake.table("t").append([{ id }]);
  await lake.maintain({ retain: { snapshots: 1 } });
  await expect(lake.sql`FROM eider.changes('t', 1)`).rejects.toMatchObject({ code: "cursor_expired" });
  expect(await lake.sql`SELECT id FROM eider.changes('t', 3)`).toEqual([]);
});

test.each([
  ["FROM eider.changes()", "bad_changes"],
  ["FROM eider.changes('t')", "bad_changes"],
  ["FROM eider.changes('t', 1, 2, 3)", "bad_changes"],
  ["FROM eider.changes('t', 1 + 1)", "bad_changes"],
  ["FROM eider.changes('t', (SELECT 1))", "bad_changes"],
  ["FROM eider.changes(t, 1)", "bad_changes"],
  ["FROM eider.changes('t', -1)", "bad_changes"],
  ["FROM eider.changes('t', 1.5)", "bad_changes"],
  ["FROM eider.changes(12, 1)", "unknown_table"],
  ["FROM eider.changes('t', 3, 2)", "bad_changes"],
  ["FROM eider.changes('nope', 1)", "unknown_table"],
  ["FROM eider.changes('t', 1, 99)", "snapshot_not_found"],
  ["FROM eider.changes('t', 99)", "bad_changes"],
  ["FROM eider.changes('t', 'nope')", "tag_not_found"],
  ["FROM eider.changes('clash', 0)", "bad_changes"],
  ["SELECT eider.changes('t', 1)", "bad_changes"],
  ["FROM eider.change('t', 1)", "unknown_function"],
])("%s is %s", async (sql, code) => {
  const lake = await openLake();
  await lake.table("t").append([{ id: 1 }]);
  await lake.table("t").append([{ id: 2 }]);
  await lake.table("clash").append([{ _Kind: 1 }]);
  await expect(lake.sql(sql)).rejects.toMatchObject({ code });
});
