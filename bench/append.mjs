/**
 * Files of NDJSON and CSV to committed Parquet: an append with one thread and with two workers, against DuckDB's COPY
 * with one and two threads. An append also hashes its input, takes statistics and commits, which COPY does not. Ratios
 * are medians of interleaved rounds; DuckDB with as many threads is 1.00. Needs built packages (`npm run build`).
 *
 *   node bench/append.mjs [--fast] [--rows=1000000] [--rounds=5]
 */

import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Lake } from "eider";
import {
  EVENT_DUCKDB_TYPES,
  EVENT_TYPES,
  FLAT_EVENT_DUCKDB_TYPES,
  FLAT_EVENT_TYPES,
  makeEvents,
  toCsv,
} from "./events.mjs";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";

const { fast, rows, rounds } = options({ rows: 1_000_000, rounds: 5 });
const THREADS = [1, 2];

await withFolder(async (folder) => {
  const ndjson = join(folder, "events.ndjson");
  const csv = join(folder, "events.csv");
  const text = makeEvents(rows);
  writeFileSync(ndjson, text);
  writeFileSync(csv, toCsv(makeEvents(rows, { flat: true })));
  const readJson = `read_json('${ndjson}', format='newline_delimited', columns=${EVENT_DUCKDB_TYPES})`;
  await bench(folder, "NDJSON", ndjson, EVENT_TYPES, readJson);
  const readCsv = `read_csv('${csv}', header=true, columns=${FLAT_EVENT_DUCKDB_TYPES})`;
  await bench(folder, "CSV", csv, FLAT_EVENT_TYPES, readCsv);
});

async function bench(folder, title, file, types, reader) {
  const megabytes = statSync(file).size / 1e6;
  console.log(`\n${title}: ${rows} events, ${megabytes.toFixed(1)} MB, ${rounds} rounds`);
  const lakes = [];
  const contenders = {};
  const references = {};
  for (const threads of THREADS) {
    const instance = await DuckDBInstance.create(":memory:", { threads: String(threads) });
    const connection = await instance.connect();
    const lake = await Lake.open(join(folder, `${title}-${threads}`), { threads });
    lakes.push(lake);
    const reference = `DuckDB COPY, threads: ${threads}`;
    const output = join(folder, "duckdb.parquet");
    contenders[reference] = () => copy(connection, reader, output);
    contenders[`Eider append, threads: ${threads}`] = (round) => append(lake, `t${round + 1}`, file, types);
    contenders[`Eider, schema inferred, threads: ${threads}`] = (round) =>
      append(lake, `i${round + 1}`, file, undefined);
    for (const name of Object.keys(contenders)) references[name] ??= reference;
  }
  const figures = await interleave(contenders, {
    rounds,
    fast,
    after(name, taken) {
      if (taken !== rows) throw new Error(`${name} took ${taken} of ${rows} rows`);
    },
  });
  for (const lake of lakes) await lake.close();
  for (const [name, { times, cpus }] of Object.entries(figures)) {
    const reference = figures[references[name]];
    const time = median(times);
    const rate = ((megabytes / time) * 1000).toFixed(0).padStart(4);
    console.log(
      `${name.padEnd(34)} time ${ratio(times, reference.times).toFixed(2)}   CPU ${ratio(cpus, reference.cpus).toFixed(2)}   ${time.toFixed(0).padStart(6)} ms ${rate} MB/s`,
    );
  }
}

async function append(lake, table, file, types) {
  const result = await lake.table(table, types ? { schema: types } : {}).append({ file });
  return result.rowsAdded;
}

async function copy(connection, reader, output) {
  const result = await connection.run(
    `COPY (FROM ${reader}) TO '${output}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000)`,
  );
  return result.rowsChanged;
}
