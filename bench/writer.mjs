/**
 * Writers: peak memory by number of rows and partitions, each in a process of its own, and throughput into a real S3
 * server (Ceph's gateway) against encoding alone and against encoding all before the upload.
 *
 *   node bench/writer.mjs [--fast] [--rows=10000000]
 *
 * The figures to hold: peak memory of 1 and 10 million rows within 10%; under 60 MB for each open partition; 2,000
 * partitions with 64 open under 500 MB; into S3 at least 80% of the throughput of encoding alone.
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { MemoryStore } from "@eider/storage";
import { ParquetObjectWriter } from "eider";

const MB = 1e6;
const PIECE = 1000;
const fast = process.argv.includes("--fast");
const script = fileURLToPath(import.meta.url);
const job = process.argv.find((argument) => argument.startsWith("--job="));

/** A store that takes bytes and keeps none, so that memory is the writer's alone. */
class NullStore extends MemoryStore {
  bytes = 0;
  async put(key, body) {
    let size = 0;
    if (body instanceof Uint8Array) size = body.length;
    else for await (const chunk of body) size += chunk.length;
    this.bytes += size;
    return { key, size, etag: "-", modifiedAt: 0 };
  }
}

/** xoshiro-like noise of 32 bits. */
function generator(seed) {
  let state = seed | 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
}

const SCHEMA = { "id!": "int64", "part!": "string", user: "string", at: "timestamptz", amount: "float64" };

function* pieces(rows, partitions) {
  const random = generator(7);
  for (let from = 0; from < rows; from += PIECE) {
    const piece = [];
    for (let id = from; id < Math.min(rows, from + PIECE); id++) {
      piece.push({
        id,
        part: `p${random() % partitions}`,
        user: `${random().toString(16)}${random().toString(16)}`,
        at: new Date(1_900_000_000_000 + id * 37),
        amount: (random() % 1_000_000) / 100,
      });
    }
    yield piece;
  }
}

async function write(store, { rows, partitions, options = {} }) {
  const writer = await ParquetObjectWriter.open(store, {
    schema: SCHEMA,
    ...(partitions > 1 && { partitionBy: ["part"] }),
    ...options,
  });
  for (const piece of pieces(rows, partitions)) await writer.write(piece);
  return writer.close();
}

if (job) {
  const spec = JSON.parse(job.slice("--job=".length));
  // Everything is loaded and compiled before idle is measured.
  await write(new NullStore(), { ...spec, rows: 1000 });
  globalThis.gc?.();
  const idle = process.memoryUsage.rss();
  let peak = idle;
  const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20);
  const started = process.cpuUsage();
  const result = await write(new NullStore(), spec);
  clearInterval(timer);
  peak = Math.max(peak, process.resourceUsage().maxRSS * 1024);
  const { user, system } = process.cpuUsage(started);
  console.log(JSON.stringify({ ...result, idle, peak, cpuMs: (user + system) / 1000 }));
} else {
  measureMemory();
  await measureThroughput();
}

function run(spec) {
  const child = spawnSync(process.execPath, ["--expose-gc", script, `--job=${JSON.stringify(spec)}`], {
    encoding: "utf8",
  });
  if (child.status !== 0) throw new Error(child.stderr);
  return JSON.parse(child.stdout);
}

function measureMemory() {
  const million = fast ? 20_000 : 1_000_000;
  const mb = (bytes) => `${(bytes / MB).toFixed(0)} MB`;
  const above = ({ peak, idle }) => peak - idle;
  const one = run({ rows: million, partitions: 1 });
  const ten = run({ rows: 10 * million, partitions: 1 });
  console.log(`1 partition, ${million} rows: ${mb(above(one))} above idle (${mb(one.idle)}), peak ${mb(one.peak)}`);
  console.log(
    `1 partition, ${10 * million} rows: ${mb(above(ten))} above idle, peak ${mb(ten.peak)}; ${(above(ten) / above(one)).toFixed(2)} of that`,
  );
  const hundred = run({ rows: 2 * million, partitions: 100, options: { maxOpenPartitions: 100 } });
  console.log(
    `100 partitions open, ${2 * million} rows: ${mb(above(hundred))} above idle, ${mb(above(hundred) / 100)} each`,
  );
  const many = run({ rows: 2 * million, partitions: 2000, options: { maxOpenPartitions: 64 } });
  console.log(`2,000 partitions, 64 open, ${2 * million} rows: peak ${mb(many.peak)}, ${many.objects} objects`);
}

async function measureThroughput() {
  const { missingRealS3, startRealS3, makeBucket } = await import("../packages/test-s3/dist/index.js").catch(
    () => ({}),
  );
  if (!startRealS3 || missingRealS3()) {
    console.log(`throughput into S3 is not measured: ${missingRealS3?.() ?? "packages/test-s3 is not built"}`);
    return;
  }
  const { S3Store } = await import("@eider/storage/s3");
  const rows = fast ? 20_000 : 1_000_000;
  const folder = mkdtempSync(join(tmpdir(), "eider-bench-"));
  const s3 = await startRealS3();
  try {
    const bucket = await makeBucket(s3);
    const { endpoint, region, accessKeyId, secretAccessKey } = s3;
    const store = new S3Store({ bucket, endpoint, region, credentials: { accessKeyId, secretAccessKey } });
    const contenders = {
      "encoding alone": () => write(new NullStore(), { rows, partitions: 1 }),
      "streamed into S3": () => write(store, { rows, partitions: 1 }),
      async "all encoded, then uploaded"() {
        const memory = new MemoryStore();
        const result = await write(memory, { rows, partitions: 1 });
        for await (const { key } of memory.list("")) {
          const chunks = [];
          for await (const chunk of (await memory.get(key)).body) chunks.push(chunk);
          await store.put(`whole/${key}`, Buffer.concat(chunks));
        }
        return result;
      },
    };
    const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
    for (let round = 0; round < (fast ? 1 : 5); round++) {
      for (const [name, work] of Object.entries(contenders)) {
        const started = performance.now();
        await work();
        times[name].push(performance.now() - started);
      }
    }
    const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
    const alone = median(times["encoding alone"]);
    for (const [name, values] of Object.entries(times)) {
      const ms = median(values);
      console.log(`${name}: ${ms.toFixed(0)} ms, ${(alone / ms).toFixed(2)} of the throughput of encoding alone`);
    }
    await store[Symbol.asyncDispose]();
  } finally {
    await s3.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
