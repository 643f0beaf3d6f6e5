import { readFileSync, truncateSync, unlinkSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scratch, TestLake } from "./support.js";

let lake: TestLake;
beforeAll(async () => {
  lake = await TestLake.open();
  await lake.create("events", { id: "int64", name: "string" });
  await lake.create("ns.users", { id: "int64" });
  await lake.append("events", "SELECT range AS id, 'secret-' || range AS name FROM range(3)");
});
afterAll(async () => {
  await lake[Symbol.asyncDispose]();
});

/** The error of a statement, the same whether it is awaited or streamed. */
async function failure(
  text: string,
  params: readonly unknown[] = [],
): Promise<Error & { code: string; position?: number }> {
  const query = lake.sql({ sql: text, params });
  const awaited = await Promise.resolve(query).then(
    () => undefined,
    (error: unknown) => error,
  );
  const streamed = await query.first().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(awaited, text).toBeInstanceOf(Error);
  const { name, code, position, message } = awaited as Error & { code: string; position?: number };
  expect(streamed).toMatchObject({ name, code, position, message });
  return awaited as Error & { code: string; position?: number };
}

describe("errors in SQL", () => {
  test.each<[string, string, number | undefined, RegExp]>([
    ["SELEC 1", "syntax_error", 0, /syntax error at or near "SELEC"/],
    ["SELECT 1 +", "syntax_error", 10, /end of input/],
    ["SELECT 'ü', (1", "syntax_error", 13, /end of input/],
    ["SELECT 'ü🦆', nope FROM events", "unknown_column", 14, /"nope" not found/],
    ["SELECT events.nope FROM events", "unknown_column", 7, /"nope"/],
    ["SELECT * FROM event", "unknown_table", 14, /no table "event": did you mean "events"\?/],
    ["SELECT * FROM users", "unknown_table", 14, /did you mean "ns.users"\?/],
    ['SELECT * FROM "ns.users"', "unknown_table", 14, /quote the parts of a name, not the dot in it: "ns"\."users"/],
    ["SELECT * FROM ns.user", "unknown_table", undefined, /did you mean "ns.users"\?/],
    ["SELECT * FROM nowhere.events", "unknown_table", 14, /no table/],
    ["SELECT * FROM a.b.c", "unknown_table", undefined, /no table/],
    ["SELECT foo(1)", "unknown_function", 7, /foo/],
    ["SELECT id + [1] FROM events", "type_error", 10, /No function matches/],
    ["SELECT id FROM events WHERE name > 1 AND id = [1]", "type_error", undefined, /./],
    ["SELECT id, count(*) FROM events", "sql_error", 7, /GROUP BY/],
    ["SELECT 'abc'::INTEGER", "type_error", 12, /Could not convert string 'abc' to INT32/],
    ["SELECT * FROM ns.users AT (VERSION => 1)", "unknown_table", 14, /no table "ns.users" at snapshot 1/],
    ["SELECT * FROM sales", "unknown_table", 14, /there are "events", "ns.users"/],
  ])("%s", async (sql, code, position, message) => {
    const error = await failure(sql);
    expect(error.code).toBe(code);
    if (position !== undefined) expect(error.position).toBe(position);
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/_eider/);
  });

  test.each([
    ["SELECT * FROM $1", ["events"], 14],
    ["SELECT now() - INTERVAL ? DAY", [3], 24],
  ])("%s: where no parameter can stand, the message says what one is", async (sql, params, position) => {
    const error = await failure(sql, params);
    expect(error).toMatchObject({ code: "syntax_error", position });
    expect(error.message).toMatch(
      /^syntax error at or near "(\$1|\?)": a parameter stands for a value, never for the name/,
    );
  });

  test("a position is that in the user's text where AT was rewritten", async () => {
    const sql = "SELECT e.id, nope FROM events e AT (VERSION => 3) WHERE e.id = $1";
    expect(await failure(sql, [1])).toMatchObject({ code: "unknown_column", position: 13 });
  });

  test("a row's values stay out of the message", async () => {
    const error = await failure("SELECT name::INTEGER FROM events");
    expect(error.code).toBe("type_error");
    expect(error.message).not.toContain("secret");
    const range = await failure("SELECT (id + 2147483645)::INTEGER + 1::INTEGER FROM events");
    expect(range.code).toBe("out_of_range");
    expect(range.message).not.toContain("2147483647");
    expect(range.message).toContain("INT32");
  });

  test("division and casts of a user's own literals are shown", async () => {
    expect((await failure("SELECT error('my own words')")).message).toContain("my own words");
  });

  test("foreign files: DuckDB says what is wrong", async () => {
    expect(await failure("FROM read_csv('/nowhere/x.csv')")).toMatchObject({ code: "file_not_found" });
    expect(await failure("FROM read_csv('s3://nowhere/x.csv')")).toMatchObject({ code: "missing_extension" });
  });
});

describe("damaged data", () => {
  async function fileLake(root: string): Promise<{ lake: TestLake; path: string; key: string }> {
    const own = await TestLake.open({ root });
    await own.create("t", { id: "int64", s: "string" });
    await own.append("t", "SELECT range AS id, 'text ' || range AS s FROM range(1000)");
    const key = await own.append("t", "SELECT range AS id, 'text ' || hash(range) AS s FROM range(100000)");
    return { lake: own, path: own.store.localPath!(key), key };
  }

  test.each(["await", "stream"])("a missing file (%s)", async (how) => {
    using scratch = new Scratch();
    const { lake: own, path, key } = await fileLake(scratch.path);
    await using _ = own;
    unlinkSync(path);
    const query = own.sql("SELECT sum(id) FROM t");
    await expect(how === "await" ? Promise.resolve(query) : query.first()).rejects.toMatchObject({
      name: "CorruptionError",
      code: "missing_file",
      subject: key,
    });
  });

  test("a missing first file", async () => {
    using scratch = new Scratch();
    await using own = await TestLake.open({ root: scratch.path });
    await own.create("t", { id: "int64" });
    const key = await own.append("t", "SELECT 1::BIGINT AS id");
    unlinkSync(own.store.localPath!(key));
    for (const sql of ["FROM t", "SELECT count(*) FROM t", "EXPLAIN ANALYZE FROM t"]) {
      await expect(Promise.resolve(own.sql(sql)), sql).rejects.toMatchObject({ code: "missing_file" });
    }
  });

  test("a truncated file", async () => {
    using scratch = new Scratch();
    const { lake: own, path, key } = await fileLake(scratch.path);
    await using _ = own;
    truncateSync(path, 5000);
    await expect(Promise.resolve(own.sql("SELECT sum(id) FROM t"))).rejects.toMatchObject({
      name: "CorruptionError",
      code: "damaged_file",
      subject: key,
    });
  });

  test.each([0.1, 0.5, 0.9])("bytes overwritten at %d of the file: an error, or the right answer", async (part) => {
    using scratch = new Scratch();
    const { lake: own, path } = await fileLake(scratch.path);
    await using _ = own;
    const bytes = readFileSync(path);
    bytes.fill(0xa5, Math.floor(bytes.length * part), Math.floor(bytes.length * part) + 2000);
    writeFileSync(path, bytes);
    await expect(Promise.resolve(own.sql("SELECT max(s), sum(id) FROM t"))).rejects.toMatchObject({
      name: "CorruptionError",
      code: "damaged_file",
    });
  });

  test("not Parquet any more, of the same size", async () => {
    using scratch = new Scratch();
    const { lake: own, path } = await fileLake(scratch.path);
    await using _ = own;
    writeFileSync(path, Buffer.alloc(readFileSync(path).length));
    await expect(Promise.resolve(own.sql("SELECT sum(id) FROM t"))).rejects.toMatchObject({ code: "damaged_file" });
  });

  test("in a store without paths", async () => {
    await using own = await TestLake.open();
    await own.create("t", { id: "int64" });
    const gone = await own.append("t", "SELECT 1::BIGINT AS id");
    await own.store.delete(gone);
    await expect(Promise.resolve(own.sql("FROM t"))).rejects.toMatchObject({ code: "missing_file", subject: gone });
    await own.store.put(gone, Buffer.from("PAR1"));
    await expect(Promise.resolve(own.sql("FROM t"))).rejects.toMatchObject({ code: "damaged_file", subject: gone });
    // The other tables are not touched by it.
    await own.create("u", { id: "int64" });
    expect(await own.sql("FROM u")).toEqual([]);
  });
});
