/**
 * Queries of a lake on S3 whose data files are larger than what is fetched whole: bytes fetched to those of the columns that
 * a query needs, by the catalog's statistics, and requests, of a host's first query, the same again, and one by another
 * process of that host. As the measure of the time, plain DuckDB over the same files on disk. Medians of rounds, each with
 * an empty cache. Needs built packages (`npm run build`) and Ceph's programs, without which a fake S3 stands in.
 *
 *   node bench/s3-reads.mjs [--fast] [--rows=1500000] [--rounds=3]
 */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { CountingStore, openStore, readBody, StoreWrapper } from "@eider/storage";
import { Lake } from "eider";
import { median, options, withFolder } from "./support/measure.mjs";
import { withS3 } from "./support/s3.mjs";

const { fast, rows, rounds } = options({ rows: 1_500_000, rounds: 3 });
const wholeFileBytes = fast ? 50_000 : undefined;

/** The lake's log is not asked for between the queries. */
const STALENESS_MS = 3_600_000;

/** A store that its lakes do not close. */
class Kept extends StoreWrapper {
  async [Symbol.asyncDispose]() {}
}

const QUERIES = [
  ["SELECT sum(a) AS n FROM t", ["a"]],
  ["SELECT count(*) AS n FROM t WHERE x < 0.5 AND kind = 'kind 3'", ["x", "kind"]],
  ["SELECT count(DISTINCT name) AS n FROM t WHERE day > 15", ["name", "day"]],
  ["WITH c AS (SELECT * FROM t) SELECT sum(b) AS n FROM c WHERE a % 7 = 0", ["a", "b"]],
  ["SELECT count(*) AS n FROM t", []],
];

await withS3(fast, ({ server, newLakeUrl }) =>
  withFolder(async (folder) => measure(folder, server, await newLakeUrl())),
);

async function measure(folder, server, url) {
  const store = new CountingStore(await openStore(url));
  const open = (cacheDir) =>
    Lake.open(
      { store: new Kept(store) },
      { cacheDir, stalenessMs: STALENESS_MS, ...(wholeFileBytes && { wholeFileBytes }) },
    );
  const files = await fill(await open(join(folder, "writer")));
  const paths = await download(store, files, join(folder, "files"));
  const sizes = files.map(({ bytes }) => (bytes / 2 ** 20).toFixed(1));
  console.log(`${rows} rows in files of ${sizes.join(", ")} MiB, on ${server}, ${rounds} rounds`);
  const heads = ["gets", "fetched/needed", "again: gets", "other: gets", "× DuckDB", "again ×"];
  console.log(`${"".padEnd(72)}${heads.map((head) => head.padStart(15)).join("")}`);
  const plain = await (await DuckDBInstance.create()).connect();
  for (const [i, [sql, columns]] of QUERIES.entries()) {
    const over = sql.replace("FROM t", `FROM read_parquet([${paths.map((path) => `'${path}'`)}])`);
    const needed = neededBytes(files, columns);
    const figures = [];
    for (let round = 0; round < rounds; round++) {
      const cacheDir = join(folder, `cache-${i}-${round}`);
      const lake = await open(cacheDir);
      await lake.sql("SELECT 1");
      const first = await timed(store, () => lake.sql(sql));
      const again = await timed(store, () => lake.sql(sql));
      await lake.close();
      const other = await open(cacheDir);
      await other.sql("SELECT 1");
      const third = await timed(store, () => other.sql(sql));
      await other.close();
      const reference = await timed(store, async () => (await plain.runAndReadAll(over)).getRowObjects());
      for (const {
        rows: [{ n }],
      } of [first, again, third]) {
        if (String(n) !== String(reference.rows[0].n)) throw new Error(`${sql}: ${n}, not ${reference.rows[0].n}`);
      }
      figures.push({ first, again, third, reference });
    }
    const of = (pick) => median(figures.map(pick));
    const cells = [
      of(({ first }) => first.requests),
      needed === 0 ? "footers only" : of(({ first }) => first.bytes / needed).toFixed(3),
      of(({ again }) => again.requests),
      of(({ third }) => third.requests),
      of(({ first, reference }) => first.ms / reference.ms).toFixed(1),
      of(({ again, reference }) => again.ms / reference.ms).toFixed(1),
    ];
    console.log(`${sql.padEnd(72)}${cells.map((cell) => String(cell).padStart(15)).join("")}`);
  }
  plain.closeSync();
  await store[Symbol.asyncDispose]();
}

/** Numbers, text and a few categories, none of which compress to nothing. */
async function fill(lake) {
  const table = lake.table("t", {
    schema: {
      a: "int64",
      b: "int64",
      x: "float64",
      y: "float64",
      name: "string",
      kind: "string",
      day: "int32",
      note: "string",
    },
  });
  const random = mulberry32(1);
  async function* batches() {
    for (let at = 0; at < rows; ) {
      const lines = [];
      for (let end = Math.min(rows, at + 10_000); at < end; at++) {
        const [a, b] = [Math.floor(random() * 2 ** 40), Math.floor(random() * 2 ** 40)];
        const name = `user ${Math.floor(random() * 1e6)}`;
        const kind = `kind ${Math.floor(random() * 10)}`;
        const note = `${random().toString(36)}${random().toString(36)}`;
        lines.push(JSON.stringify({ a, b, x: random(), y: random(), name, kind, day: at % 31, note }));
      }
      yield Buffer.from(`${lines.join("\n")}\n`);
    }
  }
  await table.append(batches(), { batchId: "all", format: "ndjson" });
  const files = await table.files();
  await lake.close();
  return files;
}

function neededBytes(files, columns) {
  const ids = ["a", "b", "x", "y", "name", "kind", "day", "note"];
  const needed = new Set(columns.map((name) => ids.indexOf(name) + 1));
  return files
    .flatMap((file) => file.columns)
    .filter(({ fieldId }) => needed.has(fieldId))
    .reduce((sum, { storedBytes }) => sum + storedBytes, 0);
}

async function download(store, files, folder) {
  await mkdir(folder);
  return Promise.all(
    files.map(async ({ key }, i) => {
      const path = join(folder, `${i}.parquet`);
      await writeFile(path, await readBody((await store.get(key)).body));
      return path;
    }),
  );
}

async function timed(store, run) {
  store.reset();
  const started = performance.now();
  const result = await run();
  const ms = performance.now() - started;
  const { requests, bytes } = store.counts.get;
  return { rows: result, ms, requests, bytes };
}

function mulberry32(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
