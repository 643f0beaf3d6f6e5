/**
 * NDJSON and CSV to columns, the file read included: Eider's engine against JSON.parse per line, DuckDB's read_json and
 * read_csv, and Eider's parser in TypeScript, each on one thread. Rates are medians of interleaved rounds. Needs built
 * packages (`npm run build`).
 *
 *   node bench/parse.mjs [--fast] [--rows=1000000] [--rounds=7]
 */

import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { DuckDBInstance } from "@duckdb/node-api";
import {
  EVENT_DUCKDB_TYPES,
  EVENT_TYPES,
  FLAT_EVENT_DUCKDB_TYPES,
  FLAT_EVENT_TYPES,
  makeEvents,
  sparseRows,
  toCsv,
  wideRows,
} from "./events.mjs";
import { interleave, median, options, ratio } from "./support/measure.mjs";
import { parse } from "./support/parse-file.mjs";

const { fast, rows, rounds } = options({ rows: 1_000_000, rounds: 7 });

const folder = mkdtempSync(join(tmpdir(), "eider-bench-"));
try {
  const connection = await (await DuckDBInstance.create(":memory:", { threads: "1" })).connect();
  const duckdb = async (file) => {
    // All columns are read, and none of them is kept.
    const reader = await connection.runAndReadAll(
      `SELECT count(COLUMNS(*)) FROM read_json('${file}', format='newline_delimited', columns=${EVENT_DUCKDB_TYPES})`,
    );
    return Number(reader.getRows()[0][0]);
  };
  const eider = (file) => parse(file, { types: EVENT_TYPES });
  for (const [name, shape] of [
    ["events", {}],
    ["events, keys in any order", { shuffled: 1 }],
    ["events, with spaces", { spaces: true }],
  ]) {
    await bench(name, makeEvents(rows, shape), {
      Eider: eider,
      "JSON.parse": parseLines,
      "DuckDB read_json": duckdb,
    });
  }
  const typescript = new Worker(new URL("support/parse-file.mjs", import.meta.url));
  const flat = makeEvents(rows, { flat: true });
  const flatFile = join(folder, "flat.ndjson");
  writeFileSync(flatFile, flat);
  const csv = { types: FLAT_EVENT_TYPES, format: "csv" };
  const quoted = toCsv(flat).replaceAll(/(?<=^|,)[^",\n]+(?=,|$)/gm, '"$&"');
  for (const [name, text] of [
    ["events as CSV", toCsv(flat)],
    ["events as CSV, all cells in quotes", quoted],
  ]) {
    await bench(
      name,
      text,
      {
        Eider: (file) => parse(file, csv),
        "Eider, NDJSON of it": () => parse(flatFile, { types: FLAT_EVENT_TYPES }),
        "Eider, TypeScript": async (file) => {
          typescript.postMessage({ file, options: csv });
          const [found] = await once(typescript, "message");
          return found;
        },
        "DuckDB read_csv": async (file) => {
          const reader = await connection.runAndReadAll(
            `SELECT count(*), count(COLUMNS(*)) FROM read_csv('${file}', header=true, columns=${FLAT_EVENT_DUCKDB_TYPES})`,
          );
          return Number(reader.getRows()[0][0]);
        },
      },
      rows,
    );
  }
  await typescript.terminate();
  const wide = wideRows(Math.ceil(rows / 40), 300);
  await bench("300 columns of int64", wide.text, {
    Eider: (file) => parse(file, wide),
    "JSON.parse": parseLines,
  });
  const sparse = sparseRows(Math.ceil(rows / 100), 10_000);
  await bench("10 of 10,000 columns", sparse.text, {
    Eider: (file) => parse(file, sparse),
    "JSON.parse": parseLines,
  });
  connection.closeSync();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function bench(name, text, contenders, count = text.split("\n").length - 1) {
  const file = join(folder, "rows");
  writeFileSync(file, text);
  const bytes = statSync(file).size;
  const figures = await interleave(
    Object.fromEntries(Object.entries(contenders).map(([key, contender]) => [key, () => contender(file)])),
    {
      rounds,
      fast,
      after(key, found) {
        if (found !== count) throw new Error(`${key} found ${found} of ${count} rows`);
      },
    },
  );
  console.log(`${name}: ${count} rows of ${(bytes / count).toFixed(0)} bytes, ${rounds} rounds`);
  for (const [key, { times, cpus }] of Object.entries(figures)) {
    const rate = bytes / 1000 / median(times);
    const perRow = (median(times) / count) * 1e6;
    const [time, cpu] = [ratio(times, figures.Eider.times), ratio(cpus, figures.Eider.cpus)];
    console.log(
      `  ${key.padEnd(19)} ${rate.toFixed(0).padStart(5)} MB/s  ${perRow.toFixed(0).padStart(7)} ns/row  ${time.toFixed(2).padStart(5)}×  CPU ${cpu.toFixed(2).padStart(5)}×`,
    );
  }
}

function parseLines(file) {
  const lines = readFileSync(file, "utf8").split("\n");
  let count = 0;
  for (const line of lines) if (line !== "" && JSON.parse(line) !== null) count++;
  return count;
}
