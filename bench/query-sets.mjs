/**
 * Sets of queries through `lake.sql`, against plain DuckDB over the very same files with the same threads and settings: 22
 * like those of TPC-H, 43 like those of ClickBench. Each result is compared once. Then one long result as Arrow against the
 * same as rows. Every run is planned anew: a comment makes its text another one. Needs built packages (`npm run build`).
 *
 *   node bench/query-sets.mjs [--fast] [--rows=3000000] [--rounds=7] [--versions=1]
 *
 * `rows` are those of the largest table of each set. With more `versions` each table comes in as many parts, and each part but
 * the first brings a column more, so that its files are of so many schema versions; plain DuckDB then reads as many files of one
 * schema.
 */

import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Lake } from "eider";
import { clicks } from "./support/clicks.mjs";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";
import { tpch } from "./support/tpch.mjs";

const { fast, rows, rounds, versions } = options({ rows: 3_000_000, rounds: 7, versions: 1 });
const THREADS = 2;
const MEMORY_BYTES = 4 * 1024 ** 3;
/** Rows of the result that is taken as rows and as Arrow. */
const LONG = fast ? 1000 : 300_000;

await withFolder(async (folder) => {
  for (const set of [tpch(rows), clicks(rows)]) {
    const where = join(folder, set.name);
    const plain = await openPlain(join(folder, "spill"));
    const lake = await Lake.open(where, {
      threads: THREADS,
      memoryBytes: MEMORY_BYTES,
      cacheDir: join(folder, "cache"),
    });
    await fill(lake, plain, set, { folder, where });
    await measure(lake, plain, set, folder);
    if (set.tables.lineitem) await measureArrow(lake);
    await lake.close();
    plain.closeSync();
  }
});

/** As the engine of a lake is set up. */
async function openPlain(spill) {
  const config = { threads: String(THREADS), memory_limit: `${MEMORY_BYTES}B`, temp_directory: spill };
  const connection = await (await DuckDBInstance.create(":memory:", config)).connect();
  await connection.run("SET GLOBAL parquet_metadata_cache = true");
  await connection.run("SET GLOBAL TimeZone = 'UTC'");
  return connection;
}

async function fill(lake, plain, { name, setup, tables }, folders) {
  const start = performance.now();
  for (const statement of setup) await plain.run(statement);
  let files = 0;
  for (const [table, select] of Object.entries(tables)) {
    const make = versions === 1 ? fillWhole : fillParts;
    const paths = await make(lake, plain, table, select, folders);
    files += paths.length;
    const list = paths.map((path) => `'${path}'`);
    await plain.run(`CREATE VIEW ${table} AS FROM read_parquet([${list}], hive_partitioning = false)`);
  }
  const seconds = (performance.now() - start) / 1000;
  console.log(`${name}: ${Object.keys(tables).length} tables in ${files} files, made in ${seconds.toFixed(0)} s`);
}

/** Makes a table of one schema; gives its files. */
async function fillWhole(lake, plain, table, select, { folder, where }) {
  const file = join(folder, "generated.parquet");
  await plain.run(`COPY (${select}) TO '${file}'`);
  // Small tables too are files, which plain DuckDB can read.
  await lake.table(table).append({ file }, { batchId: table });
  await lake.maintain({ fold: "all" });
  return filesOf(lake, table, where);
}

/**
 * Makes a table whose files are of several schema versions, and beside it one of the same rows in as many files of one schema:
 * gives the files of that one.
 */
async function fillParts(lake, plain, table, select, { folder, where }) {
  const [all, file] = ["all", "generated"].map((name) => join(folder, `${name}.parquet`));
  await plain.run(`COPY (${select}) TO '${all}'`);
  const twin = `${table}_of_one_schema`;
  const part = async (name, number, columns) => {
    const rows = `FROM '${all}' QUALIFY ntile(${versions}) OVER () = ${number}`;
    await plain.run(`COPY (SELECT ${["*", ...columns].join(", ")} ${rows}) TO '${file}'`);
    await lake.table(name).append({ file }, { batchId: `${name}-${number}` });
    // Hot rows of several versions would be folded into one file.
    await lake.maintain({ fold: "all" });
  };
  for (let number = 1; number <= versions; number++) {
    const later = Array.from({ length: versions - 1 }, (_, i) => ({ name: `later_${i + 1}`, isThere: i + 1 < number }));
    await part(
      table,
      number,
      later.filter(({ isThere }) => isThere).map(({ name }) => `1::BIGINT AS ${name}`),
    );
    await part(
      twin,
      number,
      later.map(({ name, isThere }) => `${isThere ? 1 : "NULL"}::BIGINT AS ${name}`),
    );
  }
  if (!(await lake.table(table).filesSql()).includes("schema=MAP")) throw new Error(`${table} is of one version`);
  return filesOf(lake, twin, where);
}

/** Paths of a table's data files. */
async function filesOf(lake, table, where) {
  const files = await lake.table(table).files();
  return files.map(({ key }) => join(where, key));
}

async function measure(lake, plain, { name, queries }, folder) {
  const ratios = [];
  const cpus = [];
  for (const [i, query] of queries.entries()) {
    await assertSame(lake, plain, query, folder);
    const figures = await interleave(
      {
        lake: (round) => lake.sql(`${query.sql} -- ${round}`),
        duckdb: async (round) => (await plain.runAndReadAll(`${query.sql} -- ${round}`)).getRowObjects(),
      },
      { rounds, fast },
    );
    const times = ratio(figures.lake.times, figures.duckdb.times);
    ratios.push(times);
    cpus.push(ratio(figures.lake.cpus, figures.duckdb.cpus));
    const [ours, theirs] = [figures.lake, figures.duckdb].map(({ times }) => median(times).toFixed(1).padStart(8));
    console.log(`  ${String(i + 1).padStart(2)}  lake.sql ${ours} ms, DuckDB ${theirs} ms, × ${times.toFixed(2)}`);
  }
  const mean = (of) => Math.exp(of.reduce((sum, one) => sum + Math.log(one), 0) / of.length).toFixed(3);
  const worst = Math.max(...ratios).toFixed(2);
  console.log(
    `${name}: geometric mean × ${mean(ratios)} of the time, × ${mean(cpus)} of the CPU; median × ${median(ratios).toFixed(3)}, worst × ${worst}`,
  );
}

/** The same rows; sums of floats, which depend on the order of threads, to nine digits. */
async function assertSame(lake, plain, { sql, anyRows }, folder) {
  const [ours, theirs] = ["ours", "theirs"].map((name) => join(folder, `${name}.parquet`));
  await lake.sql(`COPY (${sql}) TO '${ours}'`);
  await plain.run(`COPY (${sql}) TO '${theirs}'`);
  const one = async (statement) => (await plain.runAndReadAll(statement)).getRowObjectsJson();
  const columns = await one(`DESCRIBE FROM '${theirs}'`);
  const selected = columns.map(({ column_name, column_type }) => {
    const name = `"${column_name.replaceAll('"', '""')}"`;
    return column_type === "DOUBLE" ? `format('{:.9e}', ${name}) AS ${name}` : name;
  });
  const [a, b] = [ours, theirs].map((file) => `SELECT ${anyRows ? "1" : selected} FROM '${file}'`);
  const [{ different }] = await one(
    `SELECT (SELECT count(*) FROM (${a} EXCEPT ALL ${b})) + (SELECT count(*) FROM (${b} EXCEPT ALL ${a})) AS different`,
  );
  if (Number(different) !== 0) throw new Error(`the answers differ: ${sql}`);
}

async function measureArrow(lake) {
  const sql = `SELECT l_orderkey, l_partkey, l_linenumber, l_quantity, l_extendedprice, l_shipdate, l_returnflag, l_comment
    FROM lineitem LIMIT ${LONG}`;
  const figures = await interleave(
    {
      arrow: async () => (await lake.sql(sql).arrow()).numRows,
      rows: async () => (await lake.sql(sql)).length,
    },
    {
      rounds,
      fast,
      after: (name, length) => {
        if (length !== LONG) throw new Error(`${name} gave ${length} rows`);
      },
    },
  );
  const times = Object.entries(figures).map(([name, { times }]) => `${name} ${median(times).toFixed(0)} ms`);
  const faster = ratio(figures.rows.times, figures.arrow.times);
  console.log(`${LONG} rows of 8 columns: ${times.join(", ")}; Arrow is ${faster.toFixed(1)} times as fast`);
}
