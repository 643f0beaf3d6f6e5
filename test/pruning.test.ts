/**
 * Pruning never loses a row: generated queries over generated tables answer as plain DuckDB does over the **source rows**
 * (never over our files), with pruning and without it.
 */

import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { type FilePredicate, type ListedFile, SqliteCatalog } from "@eider/catalog";
import { MemoryStore } from "@eider/storage";
import { Lake, type SqlParam, type Table, type TableOptions } from "eider";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import { mulberry } from "./support/random.js";
import { SEED } from "./support/seed.js";

const QUERIES = Number(process.env.EIDER_PRUNING_QUERIES ?? 300);

type Row = Readonly<Record<string, unknown>>;

/** SQL types of the columns, for the table that holds the source rows. */
const COLUMNS = {
  id: "BIGINT",
  n: "DECIMAL(20,3)",
  x: "DOUBLE",
  f: "FLOAT",
  s: "VARCHAR",
  u: "UBIGINT",
  b: "BOOLEAN",
  d: "DATE",
  ts: "TIMESTAMP WITH TIME ZONE",
  g: "UUID",
  p: "STRUCT(k BIGINT, v VARCHAR)",
  late: "BIGINT",
} as const;
type ColumnName = keyof typeof COLUMNS;

const SCHEMA = {
  id: "int64",
  n: "decimal(20,3)",
  x: "float64",
  f: "float32",
  s: "string",
  u: "uint64",
  b: "bool",
  d: "date",
  ts: "timestamptz",
  g: "uuid",
  p: "struct<k: int64, v: string>",
} as const;

const long = "z".repeat(300);
const INTEGERS = [
  0n,
  1n,
  -1n,
  7n,
  42n,
  43n,
  9_007_199_254_740_993n,
  -9_223_372_036_854_775_808n,
  9_223_372_036_854_775_807n,
];
const FLOATS = [
  0,
  -0,
  0.1,
  0.5,
  -1.5,
  3,
  42,
  1e300,
  -1e300,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
];
const TEXTS = [
  "",
  "a",
  "ab",
  "abc",
  "b",
  "B",
  "z",
  "é",
  "e\u0301",
  "\uffff",
  "\u{1f600}",
  long,
  `${long}a`,
  "it's",
  'q"q',
  "a%b",
  "\u{10ffff}".repeat(70),
];
const DATES = ["1969-12-31", "1970-01-01", "2031-02-03", "2031-02-04"];
const INSTANTS = [
  "1969-12-31T23:59:59.999999Z",
  "2031-02-03T00:00:00Z",
  "2031-02-03T04:05:06.789012Z",
  "2031-02-04T00:00:00Z",
];
const UUIDS = [
  "00000000-0000-0000-0000-000000000000",
  "550e8400-e29b-41d4-a716-446655440000",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
];
const DECIMALS = ["0.000", "-0.001", "1.500", "12345678901234567.891", "-99999999999999999.999"];

/** Values of each column: few, so that comparisons with them meet the bounds. */
const VALUES: Readonly<Record<Exclude<ColumnName, "p">, readonly unknown[]>> = {
  id: INTEGERS,
  n: DECIMALS,
  x: FLOATS,
  f: FLOATS.filter((v) => !Number.isFinite(v) || Math.abs(v) < 1e30),
  s: TEXTS,
  u: [0n, 1n, 42n, 9_223_372_036_854_775_808n, 18_446_744_073_709_551_615n],
  b: [true, false],
  d: DATES,
  ts: INSTANTS,
  g: UUIDS,
  late: [1n, 2n, 3n],
};

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** A value as an SQL literal of the column's type. */
function literal(type: string, value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return `CAST('${Object.is(value, -0) ? "-0.0" : value}' AS ${type})`;
  if (typeof value === "string") return type === "VARCHAR" ? text(value) : `CAST(${text(value)} AS ${type})`;
  if (typeof value === "object") {
    const { k, v } = value as { k: unknown; v: unknown };
    return `{k: ${literal("BIGINT", k)}, v: ${literal("VARCHAR", v)}}::${type}`;
  }
  return typeof value === "bigint" ? `CAST('${value}' AS ${type})` : String(value);
}

/** Files get rows that are near each other, as time makes them, so that there is something to prune. */
function rowsOf(random: () => number, withLate: boolean): Row[] {
  const pick = (values: readonly unknown[]): unknown => values[Math.floor(random() * values.length)];
  // The file's own few values of each column.
  const own = Object.fromEntries(
    Object.entries(VALUES).map(([name, values]) => [
      name,
      [pick(values), pick(values)].slice(0, random() < 0.5 ? 1 : 2),
    ]),
  );
  const nulls = random() < 0.3 ? 0.3 : random() < 0.1 ? 1 : 0;
  const value = (name: string): unknown => (random() < nulls ? null : pick(own[name]!));
  return Array.from({ length: 1 + Math.floor(random() * 5) }, () => {
    const row: Record<string, unknown> = {};
    for (const name of Object.keys(VALUES)) if (name !== "late" || withLate) row[name] = value(name);
    row.p = random() < 0.2 ? null : { k: value("id"), v: value("s") };
    return row;
  });
}

const comparison = fc.constantFrom("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM");
const columnName = fc.constantFrom(...(Object.keys(VALUES) as Exclude<ColumnName, "p">[]));

/** A condition, and what is bound to its parameters `$0`, `$1` … in order of appearance. */
interface Condition {
  readonly sql: string;
  readonly values: readonly SqlParam[];
}

const operand = columnName.chain((name) =>
  fc.constantFrom(...VALUES[name]).map((value) => ({ name, type: COLUMNS[name] as string, value })),
);

const parameterOf = (name: string, value: unknown): SqlParam =>
  name === "ts" && !String(value).includes("789012") ? new Date(String(value)) : (value as SqlParam);

const leaf: fc.Arbitrary<Condition> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(operand, comparison, fc.boolean(), fc.constantFrom("t.", ""))
      .map(([{ name, type, value }, op, flip]) => {
        const sql = literal(type, value);
        return { sql: flip ? `${sql} ${op} ${name}` : `${name} ${op} ${sql}`, values: [] };
      }),
  },
  {
    weight: 3,
    arbitrary: fc.tuple(operand, fc.constantFrom("=", "<", ">=", ">")).map(([{ name, type, value }, op]) => ({
      sql: `${name} ${op} ${["x", "f", "id", "s", "b", "ts"].includes(name) ? "?" : `CAST(? AS ${type})`}`,
      values: [parameterOf(name, value)],
    })),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(columnName, fc.boolean(), fc.array(fc.nat(20), { minLength: 1, maxLength: 4 }))
      .map(([name, not, picks]) => ({
        sql: `${name} ${not ? "NOT " : ""}IN (${picks.map((i) => literal(COLUMNS[name], VALUES[name][i % VALUES[name].length])).join(", ")})`,
        values: [],
      })),
  },
  columnName.chain((name) =>
    fc.tuple(fc.constantFrom(...VALUES[name]), fc.constantFrom(...VALUES[name])).map(([low, high]) => ({
      sql: `${name} BETWEEN ${literal(COLUMNS[name], low)} AND ${literal(COLUMNS[name], high)}`,
      values: [],
    })),
  ),
  fc.tuple(columnName, fc.boolean()).map(([name, not]) => ({ sql: `${name} IS ${not ? "NOT " : ""}NULL`, values: [] })),
  fc
    .constantFrom("a%", "%", "z%", "_b%", "é%", "a\\%b", "%b", "it''s%")
    .map((pattern) => ({ sql: `s LIKE '${pattern}'`, values: [] })),
  fc
    .constantFrom(
      "b",
      "NOT b",
      "b = false",
      "p.k = 42",
      "p.k > 7",
      "p.v = 'ab'",
      "p IS NULL",
      "p.k IS NULL",
      "p.v IS NOT NULL",
      "struct_extract(p, 'k') < 0",
    )
    .map((sql) => ({ sql, values: [] })),
  fc
    .constantFrom(
      "id + 0 = 42",
      "id // 2 > 10",
      "id = 42.5",
      "id > 42.5",
      "id::VARCHAR = '42'",
      "TRY_CAST(x AS BIGINT) = 3",
      "f = 0.1",
      "f = 0.1::FLOAT",
      "f > 0.1::DOUBLE",
      "s COLLATE NOCASE = 'b'",
      "lower(s) = 'b'",
      "s > 'a' COLLATE NOACCENT",
      "ts::DATE = '2031-02-03'",
      "d = '2031-02-03 04:05:06'::TIMESTAMP",
      "ts > '2031-02-03 00:00:00+09:00'",
      "date_trunc('day', ts) = '2031-02-03'",
      "n = 1.5",
      "n > 1",
      "n::DOUBLE < 0.5",
      "u > 42",
      "u = 42",
      "u < -1",
      "isnan(x)",
      "x = 'NaN'::DOUBLE",
      "x <> 'NaN'::DOUBLE",
      "x > 100",
      "x >= 'Infinity'::DOUBLE",
      "coalesce(late, 0) = 0",
      "late IS NULL",
      "late = 2",
      "id = 42 OR x > 5",
      "NOT (id = 42 OR x > 5)",
      "(id, b) = (42, true)",
      "id % 2 = 1",
      "s = ''",
      "s > repeat('z', 299)",
      "1 = 0",
      "NULL",
      "s IN (SELECT v FROM other)",
      "id = (SELECT max(id) FROM t)",
      "EXISTS (SELECT 1 FROM other WHERE other.k = t.id)",
      "id IN (SELECT k FROM other WHERE k > 1)",
      "ts > now()",
      "d < current_date",
      "g >= '550e8400-e29b-41d4-a716-446655440000'",
    )
    .map((sql) => ({ sql, values: [] })),
);

const condition: fc.Arbitrary<Condition> = fc.letrec<{ node: Condition }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 3, depthSize: "small" },
    { weight: 3, arbitrary: leaf },
    {
      weight: 2,
      arbitrary: fc.tuple(tie("node"), fc.constantFrom("AND", "AND", "OR"), tie("node")).map(([a, op, b]) => ({
        sql: `(${a.sql} ${op} ${b.sql})`,
        values: [...a.values, ...b.values],
      })),
    },
    { weight: 1, arbitrary: tie("node").map(({ sql, values }) => ({ sql: `NOT (${sql})`, values })) },
  ),
})).node;

/** A statement around a condition on `t`. */
const statement = fc.tuple(condition, fc.nat(6)).map(([{ sql, values }, shape]): Condition => {
  switch (shape) {
    case 0:
      return { sql: `SELECT rowid_ FROM t WHERE ${sql} ORDER BY ALL`, values };
    case 1:
      return {
        sql: `WITH c AS (SELECT * FROM t WHERE ${sql}) SELECT count(*) AS n, min(rowid_) AS a, max(s) AS b FROM c`,
        values,
      };
    case 2:
      return {
        sql: `SELECT t.rowid_, other.v FROM t JOIN other ON t.id = other.k WHERE ${sql.replaceAll(/\bp\./g, "t.p.")} ORDER BY ALL`,
        values,
      };
    case 3:
      return {
        sql: `SELECT t.rowid_, other.v FROM other LEFT JOIN t ON t.id = other.k AND ${sql} ORDER BY ALL`,
        values,
      };
    case 4:
      return { sql: `SELECT count(*) FILTER (WHERE ${sql}) AS n FROM t`, values };
    case 5:
      return {
        sql: `SELECT rowid_ FROM t WHERE ${sql} UNION ALL SELECT rowid_ FROM t WHERE id = 42 ORDER BY ALL`,
        values,
      };
    default:
      return {
        sql: `SELECT a.rowid_ AS l, b.rowid_ AS r FROM (SELECT * FROM t WHERE ${sql}) a JOIN t b ON a.id = b.id ORDER BY ALL`,
        values,
      };
  }
});

const OTHER = [
  { k: 42n, v: "ab" },
  { k: 7n, v: "z" },
  { k: null, v: "é" },
  { k: -1n, v: null },
];

/** JavaScript values as a person would write them in SQL. */
function withLiterals({ sql, values }: Condition): string {
  let i = 0;
  return sql.replaceAll("?", () => {
    const value = values[i++];
    if (value instanceof Date) return literal("TIMESTAMPTZ", value.toISOString());
    return literal(typeof value === "bigint" ? "HUGEINT" : typeof value === "number" ? "DOUBLE" : "VARCHAR", value);
  });
}

class Rows {
  readonly connection: DuckDBConnection;
  constructor(connection: DuckDBConnection) {
    this.connection = connection;
  }
  async query(sql: string): Promise<unknown[][]> {
    return (await this.connection.runAndReadAll(sql)).getRows().map((row) => row.map(plain));
  }
}

const plain = (value: unknown): unknown => (typeof value === "bigint" ? Number(value) : value);

/** Every query gives what it gives over the source rows. Returns the share of queries that read fewer files than there are. */
async function compare(
  lake: Lake,
  source: Rows,
  queries: readonly Condition[],
  modes: readonly boolean[],
): Promise<number> {
  let pruned = 0;
  for (const query of queries) {
    const expected = await source.query(withLiterals(query));
    for (const prune of modes) {
      const running = lake.with({ prune }).sql(query.sql, query.values);
      const rows = (await running).map((row) => Object.values(row as Row).map(plain));
      expect(rows, withLiterals(query)).toEqual(expected);
      const { filesRead, filesConsidered } = running.stats!;
      if (!prune) expect(filesRead).toBe(filesConsidered);
      else if (filesRead < filesConsidered) pruned++;
    }
  }
  return pruned / queries.length;
}

async function sourceRows(): Promise<Rows> {
  const source = new Rows(await (await DuckDBInstance.create()).connect());
  await source.query("SET TimeZone = 'UTC'");
  const columns = Object.entries(COLUMNS).map(([name, type]) => `${name} ${type}`);
  await source.query(`CREATE TABLE t (rowid_ BIGINT, ${columns.join(", ")})`);
  await source.query("CREATE TABLE other (k BIGINT, v VARCHAR)");
  return source;
}

const LAYOUTS: Readonly<Record<string, { partitionBy?: string[]; orderBy?: string[]; memory?: boolean }>> = {
  "in memory": { memory: true },
  "in a folder": {},
  "partitioned by value and day": { partitionBy: ["b", "day(ts)"] },
  "partitioned by bucket, ordered": { partitionBy: ["bucket(4, id)"], orderBy: ["x"] },
};

describe.each(Object.entries(LAYOUTS))("generated queries over a table %s", (layout, { memory, ...options }) => {
  const folder = temporaryFolder();
  let lake: Lake;
  let source: Rows;

  beforeAll(async () => {
    lake = await Lake.open(memory ? "memory:" : `${folder}/lake`, FILES);
    source = await sourceRows();
    await fill(lake, source, options);
  });

  afterAll(async () => {
    await lake.close();
    source.connection.closeSync();
  });

  test("answer as over the source rows, with pruning and without", async () => {
    const seed = SEED + Object.keys(LAYOUTS).indexOf(layout);
    const share = await compare(lake, source, fc.sample(statement, { numRuns: QUERIES, seed }), [true, false]);
    console.log(`${QUERIES} queries (seed ${seed}): ${(100 * share).toFixed(1)}% read fewer files than there are`);
    expect(share).toBeGreaterThan(0.3);
  }, 600_000);
});

interface FalsePrune {
  /** What a catalog that prunes too much makes of each part of a predicate. */
  readonly predicate?: (part: FilePredicate) => FilePredicate;
  /** Whether it loses a file that its statistics show. */
  readonly loses?: (file: ListedFile, part: FilePredicate) => boolean;
}

const FALSE_PRUNES: Readonly<Record<string, FalsePrune>> = {
  "a bound taken as exclusive": {
    predicate: (p) => (p.kind === "compare" && p.comparison === ">=" ? { ...p, comparison: ">" } : p),
  },
  "NaN, which is above all numbers, forgotten": {
    loses: (file, p) =>
      p.kind === "compare" &&
      p.comparison === ">" &&
      file.columns.some((c) => c.fieldId === p.field.id && c.hasNaN && !(c.max !== undefined && c.max > p.value)),
  },
  "OR taken for AND": {
    predicate: (p) => (p.kind === "or" && p.operands.length > 0 ? { ...p, kind: "and" } : p),
  },
  "a file with some nulls taken to have none": {
    loses: (file, p) =>
      p.kind === "null" && file.columns.some((c) => c.fieldId === p.field.id && c.nullCount < c.valueCount),
  },
};

describe("a planted false prune is caught", () => {
  test.each(Object.entries(FALSE_PRUNES))("%s", async (_, { predicate = (p) => p, loses = () => false }) => {
    const operands = (p: FilePredicate): readonly FilePredicate[] => ("operands" in p ? p.operands : []);
    const faulty = (p: FilePredicate): FilePredicate =>
      predicate("operands" in p ? { ...p, operands: p.operands.map(faulty) } : p);
    const loser = (file: ListedFile, p: FilePredicate): boolean =>
      loses(file, p) || operands(p).some((operand) => loser(file, operand));
    const catalog = await SqliteCatalog.open({ path: ":memory:" });
    const files = catalog.files.bind(catalog);
    catalog.files = async (id, at, { where } = {}) =>
      where ? (await files(id, at, { where: faulty(where) })).filter((file) => !loser(file, where)) : files(id, at);
    await using lake = await Lake.open({ store: new MemoryStore(), catalog }, FILES);
    const source = await sourceRows();
    await fill(lake, source, {});
    const queries = fc.sample(statement, { numRuns: QUERIES, seed: SEED });
    await expect(compare(lake, source, queries, [true])).rejects.toThrow(/deeply equal/i);
    source.connection.closeSync();
  });
});

async function fill(lake: Lake, source: Rows, options: TableOptions): Promise<void> {
  await lake.table("other", { schema: { k: "int64", v: "string" } }).append(OTHER);
  for (const { k, v } of OTHER) {
    await source.query(`INSERT INTO other VALUES (${literal("BIGINT", k)}, ${literal("VARCHAR", v)})`);
  }
  await fillTable(lake.table("t", { schema: { rowid_: "int64", ...SCHEMA }, ...options }), source);
}

async function fillTable(table: Table, source: Rows): Promise<void> {
  const random = mulberry(SEED);
  let id = 0;
  for (let batch = 0; batch < 24; batch++) {
    const rows = rowsOf(random, batch >= 12).map((row) => ({ rowid_: BigInt(id++), ...row }));
    await table.append(rows, { batchId: `b${batch}` });
    const values = rows.map((row) => {
      const cells = Object.entries(COLUMNS).map(([name, type]) => literal(type, (row as Row)[name]));
      return `(${row.rowid_}, ${cells.join(", ")})`;
    });
    await source.query(`INSERT INTO t VALUES ${values.join(", ")}`);
  }
}
