/** Rows of a table `t` whose files are worth pruning, and statements over it; as SQL for plain DuckDB, and as the lake takes them. */

import type { SqlParam } from "eider";
import fc from "fast-check";

export type Row = Readonly<Record<string, unknown>>;

/** SQL types of the columns, for the table that holds the source rows. */
export const COLUMNS = {
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
  o: "STRUCT(i STRUCT(a BIGINT))",
  l: "BIGINT[]",
  w: "BIGINT",
  r: "DOUBLE",
  late: "BIGINT",
} as const;
type ColumnName = keyof typeof COLUMNS;
type PlainName = Exclude<ColumnName, "p" | "o" | "l">;

/** Of the table's first rows: later ones widen `w` and `r`, and bring `late`. */
export const SCHEMA = {
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
  o: "struct<i: struct<a: int64>>",
  l: "list<int64>",
  w: "int32",
  r: "int64",
} as const;

/** Of all rows, from the first on. */
export const LAST_SCHEMA = { ...SCHEMA, w: "int64", r: "float64", late: "int64" } as const;

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
const VALUES: Readonly<Record<PlainName, readonly unknown[]>> = {
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
  w: [-5n, 0n, 42n, 5_000_000_000n, -5_000_000_000n],
  r: [-2, 0, 1, 2, 0.5, 1.5, -1.5],
  late: [1n, 2n, 3n],
};

/** What the columns hold before they are widened. */
const NARROW: Readonly<Record<string, readonly unknown[]>> = { w: [-5n, 0n, 42n], r: [-2, 0, 1, 2] };

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`;

/** A value as an SQL literal of the column's type. */
export function literal(type: string, value: unknown): string {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return `CAST('${Object.is(value, -0) ? "-0.0" : value}' AS ${type})`;
  if (typeof value === "string") return type === "VARCHAR" ? text(value) : `CAST(${text(value)} AS ${type})`;
  if (Array.isArray(value)) return `[${value.map((element) => literal("BIGINT", element)).join(", ")}]::${type}`;
  if (typeof value === "object" && "i" in value) {
    const { a } = value.i as { a: unknown };
    return `{i: {a: ${literal("BIGINT", a)}}}::${type}`;
  }
  if (typeof value === "object") {
    const { k, v } = value as { k: unknown; v: unknown };
    return `{k: ${literal("BIGINT", k)}, v: ${literal("VARCHAR", v)}}::${type}`;
  }
  return typeof value === "bigint" ? `CAST('${value}' AS ${type})` : String(value);
}

/** Files get rows that are near each other, as time makes them, so that there is something to prune. */
export function rowsOf(random: () => number, isLate: boolean): Row[] {
  const pick = (values: readonly unknown[]): unknown => values[Math.floor(random() * values.length)];
  // The file's own few values of each column.
  const own = Object.fromEntries(
    Object.entries({ ...VALUES, ...(!isLate && NARROW) }).map(([name, values]) => [
      name,
      [pick(values), pick(values)].slice(0, random() < 0.5 ? 1 : 2),
    ]),
  );
  const nulls = random() < 0.3 ? 0.3 : random() < 0.1 ? 1 : 0;
  const value = (name: string): unknown => (random() < nulls ? null : pick(own[name]!));
  return Array.from({ length: 1 + Math.floor(random() * 5) }, () => {
    const row: Record<string, unknown> = {};
    for (const name of Object.keys(VALUES)) if (name !== "late" || isLate) row[name] = value(name);
    row.p = random() < 0.2 ? null : { k: value("id"), v: value("s") };
    row.o = { i: { a: value("id") } };
    row.l = random() < 0.2 ? null : Array.from({ length: Math.floor(random() * 3) }, () => value("w"));
    return row;
  });
}

const comparison = fc.constantFrom("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM");
const columnName = fc.constantFrom(...(Object.keys(VALUES) as PlainName[]));

/** A condition, and what is bound to its parameters `$0`, `$1` … in order of appearance. */
export interface Condition {
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
      sql: `${name} ${op} ${["x", "f", "id", "s", "b", "ts", "w", "r"].includes(name) ? "?" : `CAST(? AS ${type})`}`,
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
      "t.o.i.a = 42",
      "t.o.i.a > 7",
      "t.o.i.a IS NULL",
      "list_contains(l, 42)",
      "l[1] = 42",
      "len(l) > 1",
      "l IS NULL",
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
      "ts < now() - INTERVAL 1 DAY",
      "ts BETWEEN '2000-01-01'::DATE AND now()",
      "d >= current_date - 7",
      "w > 42.5",
      "w = 5000000000",
      "w IN (42, 5000000000)",
      "r > 1",
      "r > 1.5",
      "r IN (1, 2)",
      "r = 0.5 OR w < 0",
      "id IN (0, 7, 42)",
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
export const statement: fc.Arbitrary<Condition> = fc
  .tuple(condition, fc.nat(7))
  .map(([{ sql, values }, shape]): Condition => {
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
          sql: `SELECT t.rowid_, other.v FROM t JOIN other ON t.id = other.k WHERE ${sql.replaceAll(/(?<!\.)\bp\./g, "t.p.")} ORDER BY ALL`,
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
          sql: `SELECT rowid_, w, r, to_json(l)::VARCHAR AS l, to_json(o)::VARCHAR AS o, p.v FROM t WHERE ${sql} ORDER BY rowid_`,
          values,
        };
      case 6:
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

/** JavaScript values as a person would write them in SQL. */
export function withLiterals({ sql, values }: Condition): string {
  let i = 0;
  return sql.replaceAll("?", () => {
    const value = values[i++];
    if (value instanceof Date) return literal("TIMESTAMPTZ", value.toISOString());
    return literal(typeof value === "bigint" ? "HUGEINT" : typeof value === "number" ? "DOUBLE" : "VARCHAR", value);
  });
}
