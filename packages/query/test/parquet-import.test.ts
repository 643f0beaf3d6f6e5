import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { batchRows, formatType, type RecordBatch } from "@eider/core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Scratch, TestLake } from "./support.js";

let lake: TestLake;
let scratch: Scratch;
let count = 0;
beforeAll(async () => {
  lake = await TestLake.open();
  scratch = new Scratch();
});
afterAll(async () => {
  await lake[Symbol.asyncDispose]();
  scratch[Symbol.dispose]();
});

/** A Parquet file that plain DuckDB wrote, without field ids. */
async function written(select: string, options = ""): Promise<string> {
  const path = join(scratch.path, `${++count}.parquet`);
  await lake.plain.run(`COPY (${select}) TO '${path}' (FORMAT parquet${options})`);
  return path;
}

async function rowsOf(batches: AsyncIterable<RecordBatch>): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const batch of batches) rows.push(...batchRows(batch, "exact"));
  return rows;
}

describe("a foreign Parquet file", () => {
  test("of every type", async () => {
    const path = await written(
      `SELECT true AS b, (-1)::TINYINT AS i8, 1::USMALLINT AS u16, 3000000000::UINTEGER AS u32, (-5)::BIGINT AS i64,
        18446744073709551615::UBIGINT AS u64, 1.5::FLOAT AS f, 2.5::DOUBLE AS d, 12.34::DECIMAL(9,2) AS dec,
        123456789012345678901234567890.5::DECIMAL(38,1) AS wide, 'text' AS s, 'x'::BLOB AS bin, DATE '1969-12-31' AS day,
        TIME '01:02:03.000004' AS t, TIMETZ '01:02:03+00' AS ttz, TIMESTAMP '1969-12-31 23:59:59.999999' AS ts,
        TIMESTAMPTZ '2031-02-03 04:05:06.000007Z' AS tz, TIMESTAMP_NS '1969-12-31 23:59:59.999999999' AS ns,
        TIMESTAMP_S '2031-01-01' AS sec, TIMESTAMP_MS '2031-01-01 00:00:00.001' AS ms,
        'f79c3e09-677c-4bbd-a479-3f349cb785e7'::UUID AS id, '{"a":1}'::JSON AS j, 'sad'::ENUM('happy','sad') AS e,
        [1::BIGINT, NULL] AS l, {'a': 1::INTEGER, 'b': ['x']} AS st, MAP {'k': 1::BIGINT} AS m
       UNION ALL SELECT ${Array(26).fill("NULL").join(", ")}`,
    );
    const file = await lake.engine.openParquet(path);
    expect(file.rows).toBe(2);
    expect(Object.fromEntries(file.schema.fields.map((field) => [field.name, formatType(field.type)]))).toEqual({
      b: "bool",
      i8: "int8",
      u16: "uint16",
      u32: "uint32",
      i64: "int64",
      u64: "uint64",
      f: "float32",
      d: "float64",
      dec: "decimal(9,2)",
      wide: "decimal(38,1)",
      s: "string",
      bin: "binary",
      day: "date",
      t: "time",
      ttz: "time",
      ts: "timestamp",
      tz: "timestamptz",
      ns: "timestamp",
      sec: "timestamp",
      ms: "timestamp",
      id: "uuid",
      j: "json",
      e: "string",
      l: "list<int64>",
      st: "struct<a: int32, b: list<string>>",
      m: "map<string,int64>",
    });
    expect(file.schema.fields.every((field) => field.id === 0 && field.nullable)).toBe(true);
    const [row, nulls] = await rowsOf(file.batches());
    expect(row).toEqual({
      b: true,
      i8: -1,
      u16: 1,
      u32: 3000000000,
      i64: -5n,
      u64: 18446744073709551615n,
      f: 1.5,
      d: 2.5,
      dec: "12.34",
      wide: "123456789012345678901234567890.5",
      s: "text",
      bin: Uint8Array.of(0x78),
      day: "1969-12-31",
      t: "01:02:03.000004",
      ttz: "01:02:03.000000",
      ts: "1969-12-31T23:59:59.999999",
      tz: "2031-02-03T04:05:06.000007Z",
      ns: "1969-12-31T23:59:59.999999",
      sec: "2031-01-01T00:00:00.000000",
      ms: "2031-01-01T00:00:00.001000",
      id: "f79c3e09-677c-4bbd-a479-3f349cb785e7",
      j: '{"a":1}',
      e: "sad",
      l: [1n, null],
      st: { a: 1, b: ["x"] },
      m: new Map([["k", 1n]]),
    });
    expect(Object.values(nulls!)).toEqual(Array(26).fill(null));
  });

  test("comes in batches of about 100,000 rows, all of them, in order, each time it is read", async () => {
    const path = await written(
      "SELECT range AS i, CASE WHEN range % 3 > 0 THEN 'row ' || range END AS s FROM range(250000)",
      ", ROW_GROUP_SIZE 20000",
    );
    const file = await lake.engine.openParquet(path);
    for (let round = 0; round < 2; round++) {
      const lengths: number[] = [];
      let next = 0n;
      let wrong = 0;
      for await (const batch of file.batches()) {
        lengths.push(batch.length);
        for (const { i, s } of batchRows(batch, "exact") as { i: bigint; s: string | null }[]) {
          if (i !== next || s !== (next % 3n > 0n ? `row ${next}` : null)) wrong++;
          next++;
        }
      }
      expect({ wrong, next }).toEqual({ wrong: 0, next: 250_000n });
      expect(lengths).toEqual([102_400, 102_400, 45_200]);
    }
  });

  test("with a path that DuckDB would take for a pattern or a partition", async () => {
    const path = join(scratch.path, "code=00420 [x]*?'.parquet");
    writeFileSync(path, readFileSync(await written("SELECT 7 AS a")));
    const file = await lake.engine.openParquet(path);
    expect(await rowsOf(file.batches())).toEqual([{ a: 7 }]);
  });

  test("without rows", async () => {
    const file = await lake.engine.openParquet(await written("SELECT 7 AS a WHERE false"));
    expect(file.rows).toBe(0);
    expect(await rowsOf(file.batches())).toEqual([]);
  });

  test("can be left early, and stopped by a signal", async () => {
    const file = await lake.engine.openParquet(await written("SELECT range AS i FROM range(500000)"));
    for await (const batch of file.batches()) {
      expect(batch.length).toBe(102_400);
      break;
    }
    const controller = new AbortController();
    const reading = (async () => {
      for await (const _ of file.batches({ signal: controller.signal })) controller.abort("stop");
    })();
    await expect(reading).rejects.toBe("stop");
  });
});

describe("what cannot be imported", () => {
  test.each([
    ["SELECT INTERVAL 1 DAY AS i", /"i" holds INTERVAL/],
    ["SELECT {'a': [INTERVAL 1 DAY]} AS s", /"s" holds INTERVAL/],
    ["SELECT 'POINT(1 2)'::GEOMETRY AS g", /"g" holds GEOMETRY/],
  ])("%s", async (select, message) => {
    const path = await written(select);
    await expect(lake.engine.openParquet(path)).rejects.toMatchObject({
      name: "SchemaError",
      code: "unsupported_type",
      message: expect.stringMatching(message),
    });
  });

  test("columns that differ by case only", async () => {
    // Two columns of one length, one renamed in the file's bytes.
    const path = await written("SELECT 1 AS abcd, 2 AS wxyz");
    const bytes = readFileSync(path);
    for (let at = bytes.indexOf("wxyz"); at >= 0; at = bytes.indexOf("wxyz", at)) bytes.write("ABCD", at);
    writeFileSync(path, bytes);
    await expect(lake.engine.openParquet(path)).rejects.toMatchObject({ name: "SchemaError", code: "duplicate_field" });
  });

  test.each<[string, (path: string) => void]>([
    ["text", (path) => writeFileSync(path, "id,name\n1,a\n")],
    ["nothing", (path) => writeFileSync(path, "")],
    ["four bytes", (path) => writeFileSync(path, "PAR1")],
    ["zeros", (path) => writeFileSync(path, Buffer.alloc(10_000))],
    ["a cut-off file", (path) => truncateSync(path, 1000)],
  ])("%s", async (_name, damage) => {
    const path = await written("SELECT range AS i FROM range(10000)");
    damage(path);
    await expect(lake.engine.openParquet(path)).rejects.toMatchObject({
      name: "InvalidInputError",
      code: "bad_parquet",
      subject: path,
    });
  });

  test("a missing file", async () => {
    await expect(lake.engine.openParquet(join(scratch.path, "nope.parquet"))).rejects.toMatchObject({
      code: "bad_parquet",
    });
  });

  test("pages overwritten, or the file cut off while it is read: never fewer rows", async () => {
    const path = await written("SELECT range AS i, hash(range) AS h FROM range(1000000)", ", ROW_GROUP_SIZE 20000");
    const bytes = readFileSync(path);
    bytes.fill(0xa5, Math.floor(bytes.length * 0.6), Math.floor(bytes.length * 0.6) + 50_000);
    writeFileSync(path, bytes);
    const damaged = await lake.engine.openParquet(path);
    await expect(rowsOf(damaged.batches())).rejects.toMatchObject({ code: "bad_parquet" });

    const cut = await written("SELECT range AS i, hash(range) AS h FROM range(1000000)", ", ROW_GROUP_SIZE 20000");
    const file = await lake.engine.openParquet(cut);
    const reading = (async () => {
      let rows = 0;
      for await (const batch of file.batches()) {
        if (rows === 0) truncateSync(cut, 2_000_000);
        rows += batch.length;
      }
    })();
    await expect(reading).rejects.toMatchObject({ code: "bad_parquet" });
  });
});
