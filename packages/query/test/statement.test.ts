import { QueryError } from "@eider/core";
import { describe, expect, test } from "vitest";
import { parseStatement } from "../src/statement.js";
import { TextEdits } from "../src/text-edits.js";

function failure(sql: string): { code: string; position: number | undefined; message: string } {
  try {
    parseStatement(sql);
  } catch (error) {
    expect(error).toBeInstanceOf(QueryError);
    const { code, position, message } = error as QueryError;
    return { code, position, message };
  }
  throw new Error(`accepted: ${sql}`);
}

describe("statements that read", () => {
  test.each([
    "SELECT 1",
    "  select 1 ;; -- done",
    "(SELECT 1)",
    "FROM t",
    "VALUES (1)",
    "TABLE t",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "WITH RECURSIVE a(x) AS (SELECT 1), b AS NOT MATERIALIZED (DELETE) FROM a",
    "WITH a AS (SELECT 1) (SELECT 2)",
    "EXPLAIN SELECT 1",
    "EXPLAIN ANALYZE SELECT 1",
    "EXPLAIN (FORMAT json) SELECT 1",
    "EXPLAIN (SELECT 1)",
    "DESCRIBE t",
    "SUMMARIZE t",
    "SHOW TABLES",
    "PIVOT t ON a USING sum(b)",
    "UNPIVOT t ON a",
    "COPY (SELECT 1 FROM x) TO 'a.csv'",
    "COPY t (a, b) TO 'a.csv'",
    "SELECT 'DELETE; DROP'",
    'SELECT * FROM "insert"',
  ])("%s", (sql) => {
    expect(() => parseStatement(sql)).not.toThrow();
  });

  test.each([
    ["INSERT INTO t VALUES (1)", "INSERT", 0, "table.append"],
    ["  UPDATE t SET a = 1", "UPDATE", 2, "append"],
    ["DELETE FROM t", "DELETE", 0, "drop"],
    ["CREATE TABLE t (a INT)", "CREATE", 0, "lake.table"],
    ["/* x */ drop table t", "DROP", 8, "drop"],
    ["ALTER TABLE t ADD COLUMN b INT", "ALTER", 0, "new field"],
    ["ATTACH 'x.db'", "ATTACH", 0, "read_parquet"],
    ["SET threads = 1", "SET", 0, "Lake.open"],
    ["COPY t FROM 'a.csv'", "COPY", 0, "append"],
    ["COPY FROM DATABASE a TO b", "COPY", 0, "append"],
    ["PRAGMA database_list", "PRAGMA", 0, "DESCRIBE"],
    ["CALL f()", "CALL", 0, "SELECT * FROM"],
    ["INSTALL httpfs", "INSTALL", 0, ""],
    ["BEGIN", "BEGIN", 0, ""],
    ["WITH a AS (SELECT 1) INSERT INTO t FROM a", "INSERT", 21, "append"],
    ["WITH a(x) AS (SELECT 1), b AS (SELECT 2) DELETE FROM t", "DELETE", 41, "drop"],
    ["EXPLAIN ANALYZE DELETE FROM t", "DELETE", 16, "drop"],
    ["EXPLAIN (ANALYZE) INSERT INTO t VALUES (1)", "INSERT", 18, "append"],
  ])("%s is refused", (sql, word, position, advice) => {
    const { code, position: at, message } = failure(sql);
    expect({ code, at }).toEqual({ code: "read_only_sql", at: position });
    expect(message).toContain(word);
    expect(message).toContain(advice);
  });

  test.each([
    ["", "syntax_error", 0],
    [" -- nothing", "syntax_error", 0],
    [";", "syntax_error", 0],
    ["SELECT 1; SELECT 2", "multiple_statements", 10],
    ["SELECT 1;\nDROP TABLE t", "multiple_statements", 10],
    ["SELECT 'a", "syntax_error", 7],
    ["SELECT 1\0; DROP TABLE t", "syntax_error", 8],
    ["SELECT * FROM t AT (VERSION => 1 + 1)", "bad_snapshot", 31],
    ["SELECT * FROM t AT (TIMESTAMP => now())", "bad_snapshot", 33],
  ])("%j fails with %s", (sql, code, position) => {
    expect(failure(sql)).toMatchObject({ code, position });
  });

  test("the text ends at its semicolon", () => {
    expect(parseStatement("SELECT 1 -- a;b\n ; ").text).toBe("SELECT 1 -- a;b\n ");
  });

  test("names are those of words, quoted names and texts, without case", () => {
    expect([...parseStatement(`SELECT "A.b" FROM query_table('Events') -- hidden`).names]).toEqual([
      "select",
      "a.b",
      "from",
      "query_table",
      "events",
    ]);
  });
});

describe("AT", () => {
  test.each([
    ["SELECT * FROM events AT (VERSION => 3)", ["events"], "version", "3"],
    ["SELECT * FROM ns.events e AT (version => '3')", ["ns", "events"], "version", "3"],
    ["SELECT * FROM events AS e(a, b) AT (TIMESTAMP => '2031-01-01')", ["events"], "timestamp", "2031-01-01"],
    ["SELECT * FROM a, events at (TIMESTAMP => TIMESTAMP '2031-01-01')", ["events"], "timestamp", "2031-01-01"],
    ["SELECT * FROM a JOIN events AT (VERSION => 3) USING (x)", ["events"], "version", "3"],
    ['SELECT * FROM "a b" "AT" AT (VERSION => 3)', ["a b"], "version", "3"],
    ["FROM (FROM x.events AT (VERSION => 3))", ["x", "events"], "version", "3"],
  ])("%s", (sql, path, by, value) => {
    const [travel] = parseStatement(sql).timeTravels;
    expect(travel).toMatchObject({ path, by, value });
    expect(sql.slice(travel!.pathStart)).toMatch(new RegExp(`^"?${path[0]}`));
    expect(sql.slice(travel!.start, travel!.end)).toMatch(/^at \(.*\)$/i);
  });

  test("takes a parameter", () => {
    const [travel] = parseStatement("FROM t AT (VERSION => $2)").timeTravels;
    expect(travel!.value).toMatchObject({ name: "2" });
  });

  test("other uses of the word are left alone", () => {
    expect(parseStatement("SELECT at(x), x AT TIME ZONE 'UTC' FROM t").timeTravels).toEqual([]);
  });
});

describe("text edits", () => {
  test("tell where a character was", () => {
    const edits = new TextEdits("0123456789");
    edits.replace(6, 8, "");
    edits.replace(2, 2, "ab");
    expect(edits.apply()).toBe("01ab234589");
    const positions = [..."01ab234589_"].map((_, i) => edits.originalPosition(i));
    expect(positions).toEqual([0, 1, 2, 2, 2, 3, 4, 5, 8, 9, 10]);
  });
});
