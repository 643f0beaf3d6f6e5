/**
 * NDJSON to Parquet, without a store and without hashes: Eider's parser and encoder, with one thread and with two
 * workers, against DuckDB's COPY with as many threads and against JSON.parse with hyparquet-writer. Then keys in any
 * order; then what a value costs in tables of 9, 300 and 10,000 columns; then small batches: JS objects to the bytes of
 * a file, in milliseconds once warm. Ratios of time and CPU are medians of interleaved rounds. Needs built packages
 * (`npm run build`).
 *
 *   node bench/encode.mjs [--fast] [--rows=200000] [--rounds=5]
 */

import { closeSync, openSync, readFileSync, readSync, statSync, writeFileSync, writevSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";
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
import { EVENT_DUCKDB_TYPES, EVENT_TYPES, makeEvents, sparseRows, wideRows } from "./events.mjs";
import { EncodeWorkers, serveRanges } from "./support/encode-workers.mjs";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";

const COPY_OPTIONS = "(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000)";
const CHUNK_BYTES = 1 << 20;
const EVENT_SCHEMA = assignFieldIds(toSchema(EVENT_TYPES));

if (!isMainThread) await serveRanges();
else {
  const { fast, rows, rounds } = options({ rows: 200_000, rounds: 5 });
  setFlagsFromString("--expose-gc");
  // What the contender before left behind is not this one's cost.
  const settings = { fast, rounds, before: runInNewContext("gc") };
  await parquetReady();
  const duckdb = [await connect(1), await connect(2)];
  const workers = new EncodeWorkers(new URL(import.meta.url), 2);
  await workers.ready;
  await withFolder(async (folder) => {
    const input = join(folder, "events.ndjson");
    writeFileSync(input, makeEvents(rows));
    await events(folder, input, rows, duckdb, workers, settings);
    writeFileSync(input, makeEvents(rows, { shuffled: 1 }));
    await shuffled(folder, input, rows, duckdb[0], settings);
    await columns(folder, rows, duckdb[0], settings);
    smallBatches(makeEvents(1000), fast ? 5 : 300);
  });
  await workers.close();
  for (const connection of duckdb) connection.closeSync();
}

async function connect(threads) {
  return (await DuckDBInstance.create(":memory:", { threads: String(threads) })).connect();
}

async function events(folder, input, rows, [one, two], workers, settings) {
  const parser = createTextParser(parse(EVENT_SCHEMA));
  parser.push(readFileSync(input));
  parser.end();
  const batches = taken(parser);
  await race(folder, `${rows} events`, input, rows, settings, {
    "DuckDB COPY, 1 thread": [0, (output) => copy(one, input, EVENT_DUCKDB_TYPES, output)],
    "Eider, 1 thread": [0, (output) => encode(input, output, EVENT_SCHEMA)],
    "Eider, columns to Parquet alone": [
      0,
      (output) => writeFileSync(output, encodeParquet(EVENT_SCHEMA, batches).bytes),
    ],
    "JSON.parse, hyparquet-writer": [0, (output) => hyparquetWriter(input, output)],
    "DuckDB COPY, 2 threads": [4, (output) => copy(two, input, EVENT_DUCKDB_TYPES, output)],
    "Eider, 2 workers": [4, (output) => workers.encode(input, output, EVENT_SCHEMA)],
  });
}

async function shuffled(folder, input, rows, duckdb, settings) {
  await race(folder, `${rows} events, the keys of each in another order`, input, rows, settings, {
    "DuckDB COPY, 1 thread": [0, (output) => copy(duckdb, input, EVENT_DUCKDB_TYPES, output)],
    "Eider, 1 thread": [0, (output) => encode(input, output, EVENT_SCHEMA)],
  });
}

/** @param contenders by name: the place of the one that is 1.00, and what writes a file */
async function race(folder, title, input, rows, settings, contenders) {
  const megabytes = statSync(input).size / 1e6;
  const output = join(folder, "out.parquet");
  const check = await connect(1);
  const sizes = {};
  const figures = await interleave(
    Object.fromEntries(Object.entries(contenders).map(([name, [, write]]) => [name, () => write(output)])),
    {
      ...settings,
      async after(name) {
        sizes[name] = statSync(output).size;
        await expectRows(check, output, rows);
      },
    },
  );
  check.closeSync();
  const names = Object.keys(contenders);
  console.log(`${title}: ${megabytes.toFixed(1)} MB of NDJSON, ${settings.rounds} rounds`);
  for (const [name, [place]] of Object.entries(contenders)) {
    const { times, cpus } = figures[name];
    const reference = figures[names[place]];
    const rate = (megabytes / median(times)) * 1000;
    console.log(
      `  ${name.padEnd(32)} time ${ratio(times, reference.times).toFixed(2)}   CPU ${ratio(cpus, reference.cpus).toFixed(2)}   ${rate.toFixed(0).padStart(4)} MB/s   size ${(sizes[name] / sizes[names[place]]).toFixed(2)}`,
    );
  }
}

/** What a value costs, and what a place for one costs, null or not, where there are many columns. */
async function columns(folder, rows, duckdb, settings) {
  const shapes = {
    "9 columns": [wideRows(rows, 9), 9, 9],
    "300 columns": [wideRows(Math.ceil((rows * 9) / 300), 300), 300, 300],
    "10 of 10,000 columns": [sparseRows(Math.ceil(rows / 40), 10_000), 10, 10_000],
  };
  const output = join(folder, "out.parquet");
  const contenders = {};
  const cells = {};
  for (const [shape, [{ types, text }, values, width]] of Object.entries(shapes)) {
    const input = join(folder, `${width}.ndjson`);
    writeFileSync(input, text);
    const count = text.split("\n").length - 1;
    const schema = assignFieldIds(toSchema(types));
    const own = `{${Object.keys(types).map((name) => `${name}: 'BIGINT'`)}}`;
    contenders[`Eider, ${shape}`] = () => encode(input, output, schema);
    contenders[`DuckDB COPY, ${shape}`] = () => copy(duckdb, input, own, output);
    for (const name of [`Eider, ${shape}`, `DuckDB COPY, ${shape}`]) cells[name] = [count * values, count * width];
  }
  const figures = await interleave(contenders, { ...settings, rounds: Math.min(settings.rounds, 3) });
  console.log("integers in tables of many columns, 1 thread");
  for (const [name, { times }] of Object.entries(figures)) {
    const [values, places] = cells[name];
    const cost = (count) => ((median(times) / count) * 1e6).toFixed(1).padStart(8);
    console.log(`  ${name.padEnd(32)} ${cost(values)} ns a value   ${cost(places)} ns a place`);
  }
}

/** JS objects to the bytes of a Parquet file. */
function smallBatches(text, repeats) {
  const objects = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  for (const count of [10, 1000]) {
    const some = objects.slice(0, count);
    const contenders = {
      Eider: () => encodeParquet(EVENT_SCHEMA, parseRows(some)).bytes,
      "hyparquet-writer": () => parquetWriteBuffer({ columnData: columnsOf(some) }),
    };
    const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
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

function parse(schema) {
  return { schema, format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" };
}

function parseRows(objects) {
  const parser = createRowParser({ schema: EVENT_SCHEMA, unknownFields: "misfit", valueMisfits: "misfit" });
  parser.push(objects);
  parser.end();
  return taken(parser);
}

function taken(parser) {
  const batches = [];
  for (let batch = parser.take(); batch !== undefined; batch = parser.take()) batches.push(batch);
  return batches;
}

/** Reads a mebibyte at a time and writes row groups as they come: memory does not grow with the file. */
function encode(input, output, schema) {
  const encoder = new ParquetEncoder(schema);
  const source = openSync(input, "r");
  const target = openSync(output, "w");
  const parser = createTextParser(parse(schema), (batch) => writevSync(target, encoder.writeRowGroup(batch)));
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (let read = readSync(source, chunk); read > 0; read = readSync(source, chunk)) {
    parser.push(chunk.subarray(0, read));
  }
  parser.end();
  writevSync(target, encoder.finish());
  closeSync(source);
  closeSync(target);
}

async function copy(connection, input, types, output) {
  // A table of many columns is one object of 100 KB and more.
  const reader = `read_json('${input}', format='newline_delimited', columns=${types}, maximum_object_size=67108864)`;
  await connection.run(`COPY (FROM ${reader}) TO '${output}' ${COPY_OPTIONS}`);
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

async function expectRows(connection, file, rows) {
  const reader = await connection.runAndReadAll(`SELECT count(*), count(DISTINCT event_id) FROM '${file}'`);
  const counts = reader.getRows()[0].map(Number);
  if (counts.some((count) => count !== rows)) throw new Error(`${file} holds ${counts} of ${rows} rows`);
}
