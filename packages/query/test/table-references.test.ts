import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { beforeAll, expect, test } from "vitest";
import { tableReferences } from "../src/table-references.js";

let plain: DuckDBConnection;

beforeAll(async () => {
  plain = await (await DuckDBInstance.create()).connect();
  return () => plain.closeSync();
});

async function references(sql: string): Promise<string[]> {
  const reader = await plain.runAndReadAll("SELECT json_serialize_sql($1::VARCHAR)", [sql]);
  return tableReferences(String(reader.getRows()[0]![0])).map(({ path, position }) => `${path.join(".")}@${position}`);
}

/** The text, and where in it a table begins: written `‹`. */
test.each([
  ["SELECT * FROM ‹t"],
  ["FROM ‹t"],
  ["TABLE ‹t"],
  ["SELECT 'ü', t.x FROM ‹ns.t AS t, ‹\"A b\" JOIN ‹u ON u.x = t.x"],
  ["SELECT (SELECT max(x) FROM ‹u WHERE u.x = t.x) FROM ‹t WHERE EXISTS (FROM ‹v) OR x IN (SELECT y FROM ‹w)"],
  // A name of WITH is no table behind it, and one before it.
  ["WITH a AS (SELECT * FROM ‹b), b AS (SELECT * FROM A) SELECT * FROM a, b, ‹ns.a"],
  ["WITH t AS (SELECT * FROM ‹t) FROM t"],
  ["SELECT * FROM (WITH t AS (SELECT 1 AS x) FROM t), ‹t"],
  ["WITH t AS (SELECT 1 AS x) SELECT (SELECT count(*) FROM t) FROM (FROM t UNION ALL FROM ‹u)"],
  ["WITH RECURSIVE r AS (SELECT x FROM ‹t UNION ALL SELECT x + 1 FROM r, ‹u WHERE x < 3) FROM r"],
  ["WITH RECURSIVE r AS (SELECT x FROM ‹r UNION ALL SELECT x + 1 FROM r WHERE x < 3) FROM r"],
  ["WITH m AS MATERIALIZED (FROM ‹t) FROM m m1, m m2"],
  ["FROM ‹t UNION ALL (FROM ‹u EXCEPT FROM ‹v)"],
  ["SELECT * FROM ‹t, LATERAL (SELECT t.x + 1 FROM ‹u)"],
  ["SELECT unnest([1]) FROM range(3), ‹t ORDER BY (SELECT 1 FROM ‹u)"],
])("%s", async (marked) => {
  const starts = [...marked.matchAll(/‹/g)].map(({ index }, i) => index - i);
  const sql = marked.replaceAll("‹", "");
  const found = await references(sql);
  const expected = starts.map((start) => {
    const path = /^(?:"[^"]*"|[\w.]+)/.exec(sql.slice(start))![0].replaceAll('"', "");
    return `${path}@${Buffer.byteLength(sql.slice(0, start))}`;
  });
  expect(found.sort()).toEqual(expected.sort());
  // DuckDB's own list of the tables that a statement needs.
  const needed = plain.getTableNames(sql, true).map((name) => name.replaceAll('"', "").replace(/ AS .*/, ""));
  expect([...new Set(found.map((one) => one.replace(/@\d+$/, "")))].sort()).toEqual([...needed].sort());
});
