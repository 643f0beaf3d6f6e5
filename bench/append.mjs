/**
 * Files of NDJSON and CSV to committed Parquet: an append with one thread and with two workers, against DuckDB's COPY
 * with one and two threads. An append also hashes its input, takes statistics and commits, which COPY does not. Ratios
 * are medians of interleaved rounds; DuckDB with as many threads is 1.00. Needs built packages (`npm run build`).
 *
 *   node bench/append.mjs [--fast] [--rows=1000000] [--rounds=5]
 */

import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
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

const { values: args } = parseArgs({
  options: {
    fast: { type: "boolean", default: false },
    rows: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "5" },
  },
});
const rows = args.fast ? 2000 : Number(args.rows);
const rounds = args.fast ? 1 : Number(args.rounds);
const THREADS = [1, 2];

const folder = mkdtempSync(join(tmpdir(), "eider-bench-"));
try {
  const ndjson = join(folder, "events.ndjson");
  const csv = join(folder, "events.csv");
  const text = makeEvents(rows);
  writeFileSync(ndjson, text);
  writeFileSync(csv, toCsv(makeEvents(rows, { flat: true })));
  await bench(
    "NDJSON",
    ndjson,
    EVENT_TYPES,
    `read_json('${ndjson}', format='newline_delimited', columns=${EVENT_DUCKDB_TYPES})`,
  );
  await bench("CSV", csv, FLAT_EVENT_TYPES, `read_csv('${csv}', header=true, columns=${FLAT_EVENT_DUCKDB_TYPES})`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function bench(title, file, types, reader) {
  const megabytes = statSync(file).size / 1e6;
  console.log(`\n${title}: ${rows} events, ${megabytes.toFixed(1)} MB, ${rounds} rounds`);
  const closing = [];
  const contenders = [];
  for (const threads of THREADS) {
    const instance = await DuckDBInstance.create(":memory:", { threads: String(threads) });
    const connection = await instance.connect();
    const lake = await Lake.open(join(folder, `${title}-${threads}`), { threads });
    closing.push(lake);
    contenders.push(
      { name: `DuckDB COPY, threads: ${threads}`, threads, run: () => copy(connection, reader) },
      { name: `Eider append, threads: ${threads}`, threads, run: (round) => append(lake, round, file, types) },
    );
  }
  const times = new Map(contenders.map(({ name }) => [name, []]));
  const cpus = new Map(contenders.map(({ name }) => [name, []]));
  // The first round warms up the JIT compiler, DuckDB's allocator and the file cache, and does not count.
  for (let round = args.fast ? 0 : -1; round < rounds; round++) {
    for (const { name, run } of contenders) {
      const start = performance.now();
      const cpu = process.cpuUsage();
      const taken = await run(round);
      const { user, system } = process.cpuUsage(cpu);
      if (taken !== rows) throw new Error(`${name} took ${taken} of ${rows} rows`);
      if (round < 0) continue;
      times.get(name).push(performance.now() - start);
      cpus.get(name).push((user + system) / 1000);
    }
  }
  for (const lake of closing) await lake.close();
  for (const { name, threads } of contenders) {
    const reference = `DuckDB COPY, threads: ${threads}`;
    const ratio = (figures) =>
      median(figures.get(name).map((figure, i) => figure / figures.get(reference)[i])).toFixed(2);
    const time = median(times.get(name));
    const rate = ((megabytes / time) * 1000).toFixed(0).padStart(4);
    console.log(
      `${name.padEnd(26)} time ${ratio(times)}   CPU ${ratio(cpus)}   ${time.toFixed(0).padStart(6)} ms ${rate} MB/s`,
    );
  }
}

async function append(lake, round, file, types) {
  const result = await lake.table(`t${round + 1}`, { schema: types }).append({ file });
  return result.rowsAdded;
}

async function copy(connection, reader) {
  const result = await connection.run(
    `COPY (FROM ${reader}) TO '${join(folder, "duckdb.parquet")}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000)`,
  );
  return result.rowsChanged;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
