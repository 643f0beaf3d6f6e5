/**
 * SQL that one of many data files can answer, against plain DuckDB: over that one file, and over the glob of all.
 * Also what planning costs, and opening the lake with its first query. Medians of interleaved rounds. Needs built packages
 * (`npm run build`).
 *
 *   node bench/prune.mjs [--fast] [--files=10000] [--rounds=7]
 */

import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Lake } from "eider";
import { interleave, median, options, withFolder } from "./support/measure.mjs";

const { fast, rounds, ...given } = options({ files: 10_000, rounds: 7 });
const files = fast ? 50 : given.files;
const ROWS_PER_FILE = 100;

await withFolder(async (folder) => {
  const root = join(folder, "lake");
  await fill(root);
  const wanted = Math.floor(files / 2) * ROWS_PER_FILE + 7;
  const sql = `SELECT count(*) AS n, sum(v) AS v FROM t WHERE id BETWEEN ${wanted} AND ${wanted + 20}`;

  const openings = [];
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    const lake = await Lake.open(root);
    await lake.sql(sql);
    openings.push(performance.now() - started);
    await lake.close();
  }

  const lake = await Lake.open(root);
  const warm = lake.sql(sql);
  const expected = JSON.stringify(await warm, (_, v) => (typeof v === "bigint" ? String(v) : v));
  const { filesConsidered, filesRead } = warm.stats;
  console.log(`${filesConsidered} files of ${ROWS_PER_FILE} rows, ${filesRead} read, ${rounds} rounds`);

  const connection = await (await DuckDBInstance.create()).connect();
  await connection.run("SET parquet_metadata_cache = true");
  const firstId = ({ columns }) => Number(columns.find(({ fieldId }) => fieldId === 1).min);
  const byPart = new Map((await lake.table("t").files()).map((file) => [firstId(file) / ROWS_PER_FILE, file.key]));
  const fileOf = (id) => join(root, byPart.get(Math.floor(id / ROWS_PER_FILE)));
  const over = (paths) => sql.replace("FROM t", `FROM read_parquet('${paths}', hive_partitioning = false)`);
  const plain = async (text) => (await connection.runAndReadAll(text)).getRowObjectsJson();
  const one = over(fileOf(wanted));
  const glob = over(join(root, "t", "data", "**", "*.parquet"));
  /** Ids in files that neither has read yet, as long as there are so many. */
  const literals = () => {
    let literal = wanted;
    return () => {
      literal = (literal + 7919 * ROWS_PER_FILE) % (files * ROWS_PER_FILE);
      return literal;
    };
  };
  const [next, nextPlain] = [literals(), literals()];
  const figures = await interleave(
    {
      "plain DuckDB, the one file": () => plain(one),
      "plain DuckDB, another file each time": () => {
        const literal = nextPlain();
        return plain(over(fileOf(literal)).replace(/BETWEEN .*/, `BETWEEN ${literal} AND ${literal + 20}`));
      },
      "lake.sql, the same query again": () => lake.sql(sql),
      "lake.sql, another file each time": () => {
        const literal = next();
        return lake.sql`SELECT count(*) AS n, sum(v) AS v FROM t WHERE id BETWEEN ${literal} AND ${literal + 20}`;
      },
      "plain DuckDB, the glob": () => plain(glob),
    },
    { rounds, fast },
  );
  const medians = Object.entries(figures).map(([name, { times }]) => [name, median(times)]);
  const [[, plainAgain], [, plainOther], [, again], [, other]] = medians;
  for (const [name, ms] of medians) {
    const ratio = (ms / plainAgain).toFixed(2).padStart(8);
    console.log(`${name.padEnd(38)} time ${ratio}   ${ms.toFixed(1).padStart(8)} ms`);
  }
  console.log(
    `beyond plain DuckDB over the file: ${(again - plainAgain).toFixed(1)} ms when repeated, ` +
      `${(other - plainOther).toFixed(1)} ms when planned anew`,
  );
  console.log(`opening and first query: ${median(openings).toFixed(0)} ms`);
  const answer = JSON.stringify(await lake.with({ prune: false }).sql(sql), (_, v) =>
    typeof v === "bigint" ? String(v) : v,
  );
  if (answer !== expected) throw new Error(`pruned ${expected}, all files ${answer}`);
  await lake.close();
});

/** One file for each value of the partition's column. */
async function fill(root) {
  const lake = await Lake.open(root);
  const table = lake.table("t", { schema: { id: "int64", part: "int32", v: "float64" }, partitionBy: ["part"] });
  const perBatch = 500;
  for (let first = 0; first < files; first += perBatch) {
    const rows = [];
    for (let part = first; part < Math.min(files, first + perBatch); part++) {
      for (let i = 0; i < ROWS_PER_FILE; i++) rows.push({ id: part * ROWS_PER_FILE + i, part, v: Math.random() });
    }
    await table.append(rows, { batchId: `b${first}` });
  }
  await lake.close();
}
