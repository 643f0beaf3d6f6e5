/**
 * NDJSON to Parquet: Eider's parser and encoder against DuckDB's COPY and against JSON.parse with hyparquet-writer.
 * Ratios are medians of interleaved rounds; DuckDB with one thread is 1.00. Needs built packages (`npm run build`).
 *
 *   node bench/encode.mjs [--fast] [--rows=200000] [--rounds=5]
 */

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { DuckDBInstance } from "@duckdb/node-api";
import { assignFieldIds, createTextParser, ParquetEncoder, parquetReady, toSchema } from "@eider/core";
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
const DUCKDB_TYPES = `{event_id: 'VARCHAR', user_id: 'BIGINT', ts: 'TIMESTAMPTZ', event_type: 'VARCHAR', url: 'VARCHAR',
  amount: 'DOUBLE', ok: 'BOOLEAN', session: 'VARCHAR', props: 'STRUCT(plan VARCHAR, n BIGINT, tags VARCHAR[])'}`;

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
  const contenders = {
    "DuckDB COPY, 1 thread, zstd": (output) =>
      connection.run(
        `COPY (SELECT * FROM read_json('${input}', format='newline_delimited', columns=${DUCKDB_TYPES}))
         TO '${output}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 100000)`,
      ),
    "Eider, zstd 1": (output) => eider(input, output),
    "JSON.parse, hyparquet-writer": (output) => hyparquetWriter(input, output),
  };
  const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  const sizes = {};
  // The first round warms up the JIT compiler, DuckDB's allocator and the file cache, and does not count.
  for (let round = args.fast ? 0 : -1; round < rounds; round++) {
    for (const [name, contender] of Object.entries(contenders)) {
      const output = join(folder, `${Object.keys(sizes).length}.parquet`);
      const start = performance.now();
      await contender(output);
      if (round >= 0) times[name].push(performance.now() - start);
      sizes[name] = statSync(output).size;
      await expectRows(connection, output);
    }
  }
  const reference = Object.keys(contenders)[0];
  console.log(`${rows} events, ${megabytes.toFixed(1)} MB of NDJSON, ${rounds} rounds`);
  for (const name of Object.keys(contenders)) {
    const ratio = median(times[name].map((time, i) => time / times[reference][i]));
    const rate = (megabytes / median(times[name])) * 1000;
    const size = sizes[name] / sizes[reference];
    console.log(
      `${name.padEnd(32)} time ${ratio.toFixed(2)}   ${rate.toFixed(0).padStart(4)} MB/s   size ${size.toFixed(2)}`,
    );
  }
  connection.closeSync();
}

function eider(input, output) {
  const schema = assignFieldIds(toSchema(TYPES));
  const parser = createTextParser({ schema, format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" });
  const encoder = new ParquetEncoder(schema);
  const parts = [];
  const take = () => {
    for (let batch = parser.take(); batch !== undefined; batch = parser.take())
      parts.push(...encoder.writeRowGroup(batch));
  };
  const bytes = readFileSync(input);
  for (let at = 0; at < bytes.length; at += 1 << 20) {
    parser.push(bytes.subarray(at, at + (1 << 20)));
    take();
  }
  parser.end();
  take();
  parts.push(...encoder.finish());
  writeFileSync(output, Buffer.concat(parts));
}

function hyparquetWriter(input, output) {
  const objects = readFileSync(input, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const column = (name, type, map = (value) => value) => ({ name, type, data: objects.map((row) => map(row[name])) });
  const buffer = parquetWriteBuffer({
    columnData: [
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
    ],
    rowGroupSize: 100_000,
  });
  writeFileSync(output, new Uint8Array(buffer));
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
