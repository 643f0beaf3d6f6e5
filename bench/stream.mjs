/**
 * Memory of one long append: gigabytes of NDJSON that come as a stream, with one thread and with two. Each runs in a
 * process of its own, whose resident memory is printed as it goes, with its peak at the end. The input is a block of
 * events again and again. A stream is kept in a temporary file as it is read, so that it can be read again: that much
 * disk is needed. Needs built packages (`npm run build`).
 *
 *   node bench/stream.mjs [--fast] [--gb=5] [--threads=1,2]
 */

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Lake } from "eider";
import { EVENT_TYPES, makeEvents } from "./events.mjs";

const { values: args } = parseArgs({
  options: {
    fast: { type: "boolean", default: false },
    gb: { type: "string", default: "5" },
    threads: { type: "string", default: "1,2" },
    child: { type: "boolean", default: false },
  },
});
const bytes = (args.fast ? 0.05 : Number(args.gb)) * 1e9;
const BLOCK_EVENTS = args.fast ? 2000 : 30_000;
const PIECE_BYTES = 64 * 1024;
const SAMPLES = 10;

if (args.child) await append(Number(args.threads));
else {
  console.log(`${bytes / 1e9} GB of NDJSON as a stream; resident memory in MiB`);
  for (const threads of args.threads.split(",")) {
    const own = process.argv.slice(2).filter((arg) => !arg.startsWith("--threads"));
    const script = fileURLToPath(import.meta.url);
    const child = spawnSync(process.execPath, [script, ...own, "--child", `--threads=${threads}`], {
      stdio: ["ignore", "inherit", "inherit"],
    });
    if (child.status !== 0) process.exit(1);
  }
}

async function append(threads) {
  const folder = mkdtempSync(join(tmpdir(), "eider-bench-"));
  try {
    const block = Buffer.from(makeEvents(BLOCK_EVENTS));
    const blocks = Math.ceil(bytes / block.length);
    const lake = await Lake.open(join(folder, "lake"), { threads, cacheDir: folder });
    const samples = [];
    const result = await lake.table("events", { schema: EVENT_TYPES }).append(repeated(block, blocks), {
      format: "ndjson",
      onProgress: (progress) => {
        if (progress.bytes >= (samples.length / SAMPLES) * blocks * block.length) {
          samples.push(mebibytes(process.memoryUsage.rss()));
        }
      },
    });
    // Of the whole process: its worker threads are part of it.
    const peak = mebibytes(process.resourceUsage().maxRSS * 1024);
    await lake.close();
    if (result.rowsAdded !== blocks * BLOCK_EVENTS) throw new Error(`took ${result.rowsAdded} rows`);
    console.log(`threads: ${threads}   peak ${peak}   while it ran ${samples.join(" ")}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function* repeated(block, count) {
  for (let i = 0; i < count; i++) {
    for (let at = 0; at < block.length; at += PIECE_BYTES) yield block.subarray(at, at + PIECE_BYTES);
  }
}

function mebibytes(size) {
  return Math.round(size / 1024 / 1024);
}
