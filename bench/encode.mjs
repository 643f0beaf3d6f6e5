/**
 * NDJSON to Parquet: Eider's parser and encoder against DuckDB's COPY and against JSON.parse with hyparquet-writer.
 * Ratios of time and CPU are medians of interleaved rounds; DuckDB with one thread is 1.00. Then small batches: JS
 * objects to the bytes of a file, in milliseconds once warm. Needs built packages (`npm run build`).
 *
 *   node bench/encode.mjs [--fast] [--rows=200000] [--rounds=5]
 */

import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writevSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { DuckDBInstance } from "@duckdb/node-api";
import {
  assignFieldIds,
  createRowParser,
  createTextParser,
  encodeParquet,
  ParquetEncoder,
  parquetReady,
  toSchema,
} from "@eider/core";
import { parquetWriteBuffer } from "hyparquet-writer";

const { values: args } = parseArgs({
  options: {
    fast: { type: "boolean", default: false },
    rows: { type: "string", default: "200000" },
    rounds: { type: "string", default: "5" },
  },
});
const rows = args.fast ? 2000 : Number(args.rows);
const rounds = args.fast ? 1 : Number(args.rounds);

const TYPES = {
  event_id: "string",
  user_id: "int64",
  ts: "timestamptz",
  event_type: "string",
  url: "string",
  amount: "float64",
  ok: "bool",
  session: "string",
  props: "struct<plan: string, n: int64, tags: list<string>>",
};
const SCHEMA = assignFieldIds(toSchema(TYPES));
const DUCKDB_TYPES = `{event_id: 'VARCHAR', user_id: 'BIGINT', ts: 'TIMESTAMPTZ', event_type: 'VARCHAR', url: 'VARCHAR',
  amount: 'DOUBLE', ok: 'BOOLEAN', session: 'VARCHAR', props: 'STRUCT(plan VARCHAR, n BIGINT, tags VARCHAR[])'}`;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

const folder = mkdtempSync(join(tmpdir(), "eider-bench-"));
try {
  await run();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function run() {
  const input = join(folder, "events.ndjson");
  writeFileSync(input, makeEvents(rows));
  const megabytes = statSync(input).size / 1e6;
  await parquetReady();
  const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  const batches = parse(readFileSync(input));
  const contenders = {
    "DuckDB COPY, 1 thread, zstd": (output) =>
      connection.run(
        `COPY (SELECT * FROM read_json('${input}', format='newline_delimited', columns=${DUCKDB_TYPES}))
         TO '${output}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000)`,
      ),
    "Eider, zstd 1": (output) => eider(input, output),
    "Eider, columns to Parquet alone": (output) => writeFileSync(output, encodeParquet(SCHEMA, batches).bytes),
    "JSON.parse, hyparquet-writer": (output) => hyparquetWriter(input, output),
  };
  const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  const cpus = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  const sizes = {};
  // The first round warms up the JIT compiler, DuckDB's allocator and the file cache, and does not count.
  for (let round = args.fast ? 0 : -1; round < rounds; round++) {
    for (const [name, contender] of Object.entries(contenders)) {
      const output = join(folder, `${Object.keys(sizes).length}.parquet`);
      // What the one before left behind is not this one's cost.
      collectGarbage();
      const start = performance.now();
      const cpu = process.cpuUsage();
      await contender(output);
      const { user, system } = process.cpuUsage(cpu);
      if (round >= 0) {
        times[name].push(performance.now() - start);
        cpus[name].push((user + system) / 1000);
      }
      sizes[name] = statSync(output).size;
      await expectRows(connection, output);
    }
  }
  const reference = Object.keys(contenders)[0];
  console.log(`${rows} events, ${megabytes.toFixed(1)} MB of NDJSON, ${rounds} rounds`);
  for (const name of Object.keys(contenders)) {
    const ratio = (figures) => median(figures[name].map((figure, i) => figure / figures[reference][i])).toFixed(2);
    const rate = (megabytes / median(times[name])) * 1000;
    const size = sizes[name] / sizes[reference];
    console.log(
      `${name.padEnd(32)} time ${ratio(times)}   CPU ${ratio(cpus)}   ${rate.toFixed(0).padStart(4)} MB/s   size ${size.toFixed(2)}`,
    );
  }
  connection.closeSync();
  smallBatches(readFileSync(input, "utf8"));
}

/** JS objects to the bytes of a Parquet file. */
function smallBatches(text) {
  const objects = text
    .split("\n", 1000)
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
  for (const count of [10, 1000]) {
    const some = objects.slice(0, count);
    const contenders = {
      Eider: () => encodeParquet(SCHEMA, parseRows(some)).bytes,
      "hyparquet-writer": () => parquetWriteBuffer({ columnData: columnsOf(some) }),
    };
    const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
    const repeats = args.fast ? 5 : 300;
    for (let round = -repeats; round < repeats; round++) {
      for (const [name, contender] of Object.entries(contenders)) {
        const start = performance.now();
        contender();
        // The first half warms up.
        if (round >= 0) times[name].push(performance.now() - start);
      }
    }
    const figures = Object.keys(contenders).map((name) => `${name} ${median(times[name]).toFixed(2)} ms`);
    console.log(`${count} objects: ${figures.join(", ")}`);
  }
}

function parseRows(objects) {
  const parser = createRowParser({ schema: SCHEMA, unknownFields: "misfit", valueMisfits: "misfit" });
  parser.push(objects);
  parser.end();
  return taken(parser);
}

function parse(bytes) {
  const parser = createTextParser({
    schema: SCHEMA,
    format: "ndjson",
    unknownFields: "misfit",
    valueMisfits: "misfit",
  });
  parser.push(bytes);
  parser.end();
  return taken(parser);
}

function taken(parser) {
  const batches = [];
  for (let batch = parser.take(); batch !== undefined; batch = parser.take()) batches.push(batch);
  return batches;
}

/** Reads a mebibyte at a time and writes row groups as they come: memory does not grow with the file. */
function eider(input, output) {
  const parser = createTextParser({
    schema: SCHEMA,
    format: "ndjson",
    unknownFields: "misfit",
    valueMisfits: "misfit",
  });
  const encoder = new ParquetEncoder(SCHEMA);
  const source = openSync(input, "r");
  const target = openSync(output, "w");
  const writeBatches = () => {
    for (const batch of taken(parser)) writevSync(target, encoder.writeRowGroup(batch));
  };
  const chunk = new Uint8Array(1 << 20);
  for (let read = readSync(source, chunk); read > 0; read = readSync(source, chunk)) {
    parser.push(chunk.subarray(0, read));
    writeBatches();
  }
  parser.end();
  writeBatches();
  writevSync(target, encoder.finish());
  closeSync(source);
  closeSync(target);
}

function hyparquetWriter(input, output) {
  const objects = readFileSync(input, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const buffer = parquetWriteBuffer({ columnData: columnsOf(objects), rowGroupSize: 100_000 });
  writeFileSync(output, new Uint8Array(buffer));
}

function columnsOf(objects) {
  const column = (name, type, map = (value) => value) => ({ name, type, data: objects.map((row) => map(row[name])) });
  return [
    column("event_id", "STRING"),
    column("user_id", "INT64", BigInt),
    column("ts", "TIMESTAMP", (text) => new Date(text)),
    column("event_type", "STRING"),
    column("url", "STRING"),
    column("amount", "DOUBLE"),
    column("ok", "BOOLEAN"),
    column("session", "STRING"),
    // It writes no structs with lists from objects alone: as JSON text.
    column("props", "STRING", JSON.stringify),
  ];
}

async function expectRows(connection, file) {
  const reader = await connection.runAndReadAll(`SELECT count(*), count(DISTINCT event_id) FROM '${file}'`);
  const counts = reader.getRows()[0].map(Number);
  if (counts.some((count) => count !== rows)) throw new Error(`${file} holds ${counts} of ${rows} rows`);
}

/** Events with randomness that does not flatter dictionaries: splitmix32, seeded. */
function makeEvents(count) {
  let state = 42;
  const random = () => {
    state = (state + 0x9e3779b9) | 0;
    let z = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return ((z ^ (z >>> 15)) >>> 0) / 2 ** 32;
  };
  const below = (n) => Math.floor(random() * n);
  const hex = () =>
    below(2 ** 32)
      .toString(16)
      .padStart(8, "0");
  const lines = [];
  let time = Date.UTC(2031, 0, 1);
  for (let i = 0; i < count; i++) {
    time += below(1000);
    const event = {
      event_id: hex() + hex() + hex() + hex(),
      user_id: below(50_000),
      ts: new Date(time).toISOString(),
      event_type: ["view", "click", "scroll", "purchase", "log\u00efn"][below(5)],
      url: `https://example.com/${["shop", "docs", "blog"][below(3)]}/${below(20_000)}?ref=${hex()}`,
      amount: random() < 0.3 ? Math.round(random() * 100_000) / 100 : null,
      ok: random() < 0.9,
      session: `s-${below(100_000)}`,
      props: {
        plan: ["free", "pro", 'a "quoted" plan'][below(3)],
        n: below(1000),
        tags: Array.from({ length: below(4) }, () => `tag${below(30)}`),
      },
    };
    lines.push(JSON.stringify(event));
  }
  return `${lines.join("\n")}\n`;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1];
}
