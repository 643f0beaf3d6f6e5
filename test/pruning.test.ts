/**
 * Pruning never loses a row: generated queries over generated tables, on every kind of store, answer as plain DuckDB does
 * over the **source rows** (never over our files), with pruning and without it.
 */

import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { type FilePredicate, type ListedFile, SqliteCatalog } from "@eider/catalog";
import { MemoryStore } from "@eider/storage";
import { FakeS3, makeBucket, type S3Access } from "@eider/test-s3";
import { Lake, type Query, type QueryStats, type Table, type TableOptions } from "eider";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { FILES } from "./support/files.js";
import { temporaryFolder } from "./support/folder.js";
import {
  COLUMNS,
  type Condition,
  LAST_SCHEMA,
  literal,
  type Row,
  rowsOf,
  SCHEMA,
  statement,
  withLiterals,
} from "./support/generated-queries.js";
import { realS3 } from "./support/real-s3.js";
import { s3LakeUrl } from "./support/s3-lake.js";
import { randomNumbers, SEED } from "./support/seed.js";

/** Of each table. */
const QUERIES = Number(process.env.EIDER_PRUNING_QUERIES ?? 300);
/** Until one of them catches a planted fault. */
const QUERIES_FOR_FAULTS = 3000;

const engine = vi.hoisted(() => ({ endsStreamsEarly: false }));

/** DuckDB's streams may end as if they were complete; here they do when they are told to. */
vi.mock("@duckdb/node-bindings", async (load) => {
  const { default: native } = await load<{ default: typeof import("@duckdb/node-bindings") }>();
  const fetchChunk: typeof native.fetch_chunk = async (result) =>
    engine.endsStreamsEarly ? null : native.fetch_chunk(result);
  const names = Object.getOwnPropertyNames(native) as (keyof typeof native)[];
  const all = Object.fromEntries(names.map((name) => [name, native[name]]));
  return { default: { ...all, fetch_chunk: fetchChunk } };
});

const OTHER = [
  { k: 42n, v: "ab" },
  { k: 7n, v: "z" },
  { k: null, v: "é" },
  { k: -1n, v: null },
];

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

type Read = (query: Query) => Promise<readonly unknown[]>;

const awaited: Read = (query) => query;
const streamed: Read = async (query) => {
  const rows: unknown[] = [];
  for await (const row of query) rows.push(row);
  return rows;
};

/** How queries are run: pruned ones as streams, the others to their end at once. */
const MODES: readonly (readonly [prune: boolean, read: Read])[] = [
  [true, streamed],
  [false, awaited],
];

/**
 * Every query gives what it gives over the source rows. Returns the share of queries that read fewer files than there are.
 * @param before is called before each query, `after` with what it read
 */
async function compare(
  lake: Lake,
  source: Rows,
  queries: readonly Condition[],
  modes: typeof MODES = MODES,
  { before, after }: { before?: () => Promise<void>; after?: (stats: QueryStats) => void } = {},
): Promise<number> {
  let pruned = 0;
  for (const query of queries) {
    const text = withLiterals(query);
    const expected = await source.query(text);
    for (const [prune, read] of modes) {
      await before?.();
      const running = lake.with({ prune }).sql(query.sql, query.values);
      const rows = (await read(running)).map((row) => Object.values(row as Row).map(plain));
      expect(rows, text).toEqual(expected);
      const { filesRead, filesConsidered } = running.stats!;
      after?.(running.stats!);
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

interface Layout extends Pick<TableOptions, "partitionBy" | "orderBy"> {
  readonly store: "memory" | "folder" | "S3" | "real S3";
  /** Whether only columns of the data files are copied, and nothing of a file is there when a query begins. */
  readonly byColumns?: true;
  /** Whether the schema evolves. Where it does not, DuckDB believes what the footers say of whole columns. Default true. */
  readonly evolves?: boolean;
}

const ceph = await realS3("generated queries over tables on a real S3");

const LAYOUTS: Readonly<Record<string, Layout>> = {
  "in memory": { store: "memory", orderBy: ["id"] },
  "in memory, copied by columns": { store: "memory", byColumns: true },
  "in memory, of one schema, copied by columns": { store: "memory", byColumns: true, evolves: false },
  "in a folder": { store: "folder" },
  "in a folder, of one schema": { store: "folder", evolves: false, partitionBy: ["bucket(2, id)"] },
  "in a folder, partitioned by value and day": { store: "folder", partitionBy: ["b", "day(ts)"] },
  "in a folder, partitioned by bucket, ordered": { store: "folder", partitionBy: ["bucket(4, id)"], orderBy: ["x"] },
  "on S3, partitioned by bucket, copied by columns": {
    store: "S3",
    partitionBy: ["bucket(3, w)"],
    byColumns: true,
  },
  ...(ceph && { "on a real S3, copied by columns": { store: "real S3", byColumns: true } as const }),
};

async function openLake({ store, byColumns }: Layout, s3: S3Access | undefined, cacheDir: string): Promise<Lake> {
  const options = { ...FILES, cacheDir, ...(byColumns && { wholeFileBytes: 0 }) };
  if (store === "memory") return Lake.open("memory:", options);
  if (!s3) return Lake.open(`${temporaryFolder()}/lake`, options);
  return Lake.open(s3LakeUrl(s3, await makeBucket(s3), "lake"), options);
}

/** Removes all copies of data files, by whatever name they are held. */
async function emptyCache(cacheDir: string): Promise<void> {
  for (const entry of await readdir(cacheDir, { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && entry.parentPath.includes("eider-cache-2")) await rm(join(entry.parentPath, entry.name));
  }
}

describe.each(Object.entries(LAYOUTS))(
  "generated queries over a table %s",
  (layout, { store, byColumns, ...options }) => {
    let fake: FakeS3 | undefined;
    let lake: Lake;
    let source: Rows;
    let cacheDir: string;

    beforeAll(async () => {
      fake = store === "S3" ? await FakeS3.start() : undefined;
      cacheDir = temporaryFolder();
      const s3 = store === "real S3" ? ceph : fake;
      lake = await openLake({ store, ...(byColumns && { byColumns }) }, s3, cacheDir);
      source = await sourceRows();
      await fill(lake, source, options);
    });

    afterAll(async () => {
      await lake.close();
      await fake?.[Symbol.asyncDispose]();
      vi.unstubAllEnvs();
      source.connection.closeSync();
    });

    test("answer as over the source rows, with pruning and without", async () => {
      const seed = SEED + Object.keys(LAYOUTS).indexOf(layout);
      // Each of these begins without any copy, so that it asks the server some hundred times.
      const numRuns = byColumns ? Math.ceil(QUERIES / (store === "memory" ? 3 : 10)) : QUERIES;
      const queries = fc.sample(statement, { numRuns, seed });
      const before = byColumns && (() => emptyCache(cacheDir));
      let [files, bytes] = [0, 0];
      const after = ({ filesRead, from }: QueryStats): void => {
        files += filesRead;
        bytes += from.store.bytes;
      };
      const share = await compare(lake, source, queries, byColumns ? [[true, streamed]] : MODES, {
        ...(before && { before }),
        after,
      });
      console.log(`${numRuns} queries (seed ${seed}): ${(100 * share).toFixed(1)}% read fewer files than there are`);
      expect(share).toBeGreaterThan(0.3);
      if (!byColumns) return;
      const [average] = await lake.sql<{ bytes: number }>`SELECT avg(bytes) AS bytes FROM eider.files`;
      const fetched = bytes / (files * average!.bytes);
      console.log(`${(100 * fetched).toFixed(1)}% of the bytes of the files that they read were fetched`);
      expect(fetched).toBeLessThan(0.9);
    }, 600_000);
  },
);

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

/** A lake in memory with the rows of the tests. */
async function plantedLake(catalog: SqliteCatalog): Promise<{ lake: Lake; source: Rows } & AsyncDisposable> {
  const lake = await Lake.open({ store: new MemoryStore(), catalog }, FILES);
  const source = await sourceRows();
  await fill(lake, source, {});
  return {
    lake,
    source,
    [Symbol.asyncDispose]: async () => {
      source.connection.closeSync();
      await lake.close();
    },
  };
}

const queriesForFaults = (): Condition[] => fc.sample(statement, { numRuns: QUERIES_FOR_FAULTS, seed: SEED });

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
    await using planted = await plantedLake(catalog);
    const caught = compare(planted.lake, planted.source, queriesForFaults(), [[true, awaited]]);
    await expect(caught).rejects.toThrow(/deeply equal/i);
  });
});

describe("a planted short stream is caught", () => {
  /** The stream's first half, as if it were all. */
  const cut: Read = async (query) => {
    const rows = await streamed(query);
    return rows.slice(0, Math.ceil(rows.length / 2));
  };

  test("of our own, by the comparison", async () => {
    await using planted = await plantedLake(await SqliteCatalog.open({ path: ":memory:" }));
    const caught = compare(planted.lake, planted.source, queriesForFaults(), [[true, cut]]);
    await expect(caught).rejects.toThrow(/deeply equal/i);
  });

  test("of DuckDB, before the comparison sees it", async () => {
    await using planted = await plantedLake(await SqliteCatalog.open({ path: ":memory:" }));
    engine.endsStreamsEarly = true;
    try {
      const caught = compare(planted.lake, planted.source, queriesForFaults(), [[true, streamed]]);
      await expect(caught).rejects.toMatchObject({ code: "incomplete_result" });
    } finally {
      engine.endsStreamsEarly = false;
    }
  });
});

async function fill(lake: Lake, source: Rows, { evolves = true, ...options }: Omit<Layout, "store">): Promise<void> {
  await lake.table("other", { schema: { k: "int64", v: "string" } }).append(OTHER);
  for (const { k, v } of OTHER) {
    await source.query(`INSERT INTO other VALUES (${literal("BIGINT", k)}, ${literal("VARCHAR", v)})`);
  }
  await fillTable(
    lake.table("t", { schema: { rowid_: "int64", ...(evolves ? SCHEMA : LAST_SCHEMA) }, ...options }),
    source,
  );
}

async function fillTable(table: Table, source: Rows): Promise<void> {
  const random = randomNumbers();
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
