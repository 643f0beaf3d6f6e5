/** Appends by worker threads: the same files, rejects and errors as by one thread, whatever happens to the threads. */

import { createHash } from "node:crypto";
import type { RangePool } from "@eider/core/ranges";
import { makeSql } from "@eider/query";
import {
  type AppendOptions,
  formatType,
  type InvalidInputError,
  LimitError,
  type Logger,
  type TableOptions,
} from "eider";
import { beforeAll, describe, expect, it } from "vitest";
import { type OpenLake, openLake } from "../src/open.js";
import { type RangeThreadsOptions, rangeThreads } from "../src/range-threads.js";
import { Table } from "../src/table.js";
import { buildWorker, writeWorker } from "./support/worker-entry.js";

const encoder = new TextEncoder();
const LIMITS = { lines: 50, bytes: 4096 };

let entry: URL;
beforeAll(async () => {
  entry = await buildWorker();
});

interface Case {
  readonly text: string | Uint8Array;
  readonly append?: AppendOptions;
  readonly table?: TableOptions;
  readonly pool?: RangeThreadsOptions;
}

interface Appended {
  readonly lake: OpenLake;
  readonly table: Table;
  readonly pool: RangePool;
  readonly outcome: unknown;
}

async function appended({ text, append, table, pool: options }: Case): Promise<Appended> {
  const pool = rangeThreads({ entry, limits: LIMITS, minBytes: 0, ...options });
  const lake = { ...(await openLake("memory:", {})), ranges: pool };
  const host = {
    open: lake,
    run: <T>(work: () => Promise<T>) => work(),
    appended: () => undefined,
    assertWritable: () => {},
    writers: new Set<never>(),
  };
  const handle = new Table(host, "t", table ?? {});
  const bytes = typeof text === "string" ? encoder.encode(text) : text;
  // In small pieces, that end anywhere.
  const pieces = async function* (): AsyncIterable<Uint8Array> {
    for (let at = 0; at < bytes.length; at += 1009) yield bytes.subarray(at, at + 1009);
  };
  const outcome = await handle.append(pieces(), { batchId: "b", ...append }).catch((error: unknown) => error);
  return { lake, table: handle, pool, outcome };
}

async function storedFiles(lake: OpenLake): Promise<string[]> {
  const found: string[] = [];
  for await (const { key } of lake.store.list("t/")) {
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await lake.store.get(key)).body) chunks.push(chunk);
    found.push(createHash("sha256").update(Buffer.concat(chunks)).digest("hex"));
  }
  return found.sort();
}

/** All that an append leaves, but for ids and times. */
async function remains(given: Case): Promise<unknown> {
  const { lake, table, pool, outcome } = await appended(given);
  try {
    if (outcome instanceof Error) {
      const { name, message, code, rows } = outcome as InvalidInputError;
      return { name, message, code, rows, files: await storedFiles(lake) };
    }
    const { receipt, ...result } = outcome as Awaited<ReturnType<Table["append"]>>;
    const rejects = (await table.rejects()).map(({ line, code, reason, raw }) => ({ line, code, reason, raw }));
    const { schema } = await table.describe();
    return { ...result, hash: receipt.contentHash, rejects, schema, files: await storedFiles(lake) };
  } finally {
    await pool[Symbol.asyncDispose]();
    await lake.release();
  }
}

const numbered = (count: number, line: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => line(i)).join("");

/** `count` lines of NDJSON: bad ones and blank ones among them, other keys, other line ends, text beyond ASCII. */
const events = numbered(997, (i) => {
  if (i % 101 === 60) return `{"id":${i},\n`;
  if (i % 97 === 30) return i % 2 ? "\r\n" : "  \n";
  return `{"id":${i},"name":"Zoë ${i * 7}","tags":["${i % 5}"]${i % 13 ? "" : ',"at":"2031-01-01T00:00:00Z"'}}${i % 3 ? "\n" : "\r\n"}`;
});

/** CSV with line ends, quotes and delimiters inside quotes, and ragged records. */
const orders = `id,note,price\r\n${numbered(900, (i) => {
  if (i % 83 === 50) return `${i},ragged\r\n`;
  return `${i},"said ""${i}"",\r\nand left\n",${(i * 3) % 100}.5\r\n`;
})}`;

describe("two and three workers leave exactly what one thread leaves", () => {
  const quarantine = { append: { onReject: "quarantine" } } as const;
  it.each<[string, Case]>([
    ["NDJSON with rejects in several ranges", { text: events, ...quarantine }],
    ["NDJSON without a last line end", { text: events.slice(0, -1), ...quarantine }],
    ["NDJSON with a byte-order mark", { text: `\u{feff}${events}`, ...quarantine }],
    ["NDJSON of which a later row is an array", { text: `${events}[1]\n${events}`, ...quarantine }],
    ["NDJSON that fails for its rejects", { text: events }],
    ["NDJSON with an odd value in its last line", { text: `${events}{"id":"x","new":1}`, ...quarantine }],
    [
      "NDJSON with fields that are dropped",
      { text: `${events}{"other":1}`, ...quarantine, table: { schema: { id: "int64" } } },
    ],
    ["NDJSON that is one array", { text: `[${numbered(400, (i) => `${i ? ",\n" : ""}{"id":${i}}`)}]` }],
    ["CSV with rejects in several ranges", { text: orders, append: { format: "csv", onReject: "quarantine" } }],
    ["CSV by strange rules", { text: orders, append: { format: "csv", csv: { trim: true }, onReject: "quarantine" } }],
    ["too many rejects, in all ranges together", { text: events, append: { onReject: "quarantine", maxRejects: 5 } }],
    [
      "text that is not UTF-8, far behind",
      { text: Buffer.concat([encoder.encode(events), Uint8Array.of(0x22, 0xc3, 0x28, 0x0a)]), ...quarantine },
    ],
    ["CSV with an open quote, far behind", { text: `${orders}1,"`, append: { format: "csv", onReject: "quarantine" } }],
    ["rows that are sorted", { text: events, ...quarantine, table: { orderBy: ["name"] } }],
    ["rows in partitions", { text: events, ...quarantine, table: { partitionBy: ["bucket(3, id)"], orderBy: ["id"] } }],
  ])("%s", async (_, given) => {
    const one = await remains({ ...given, pool: { threads: 1 } });
    expect(await remains({ ...given, pool: { threads: 2 } })).toEqual(one);
    expect(await remains({ ...given, pool: { threads: 3 } })).toEqual(one);
  });

  it("with a row larger than a range, and one larger than any row may be", { timeout: 120_000 }, async () => {
    const text = `${events}{"id":1,"name":"${"x".repeat(2 ** 21)}"}\n${events}{"name":"${"y".repeat(2 ** 24)}"}\n${events}`;
    const given: Case = { text, append: { onReject: "quarantine" } };
    const one = await remains({ ...given, pool: { threads: 1 } });
    expect(one).toMatchObject({ status: "committed" });
    expect(await remains({ ...given, pool: { threads: 2 } })).toEqual(one);
  });
});

it("what workers leave is what went in", async () => {
  const { lake, table, pool, outcome } = await appended({
    text: events,
    append: { onReject: "quarantine" },
    pool: { threads: 2 },
  });
  expect(pool.threads).toBe(2);
  const rejected = Array.from({ length: 997 }, (_, i) => i).filter((i) => i % 101 === 60);
  const blank = Array.from({ length: 997 }, (_, i) => i).filter((i) => i % 101 !== 60 && i % 97 === 30);
  expect(outcome).toMatchObject({
    status: "committed",
    rowsAdded: 997 - rejected.length - blank.length,
    rowsRejected: rejected.length,
  });
  expect((await table.rejects()).map(({ line }) => line)).toEqual(rejected.map((i) => i + 1));
  const { schema } = await table.describe();
  expect(schema.fields.map(({ name, type }) => `${name}: ${formatType(type)}`)).toEqual([
    "id: int64",
    "name: string",
    "tags: list<string>",
    "at: timestamptz",
  ]);
  const kept = Array.from({ length: 997 }, (_, i) => i).filter((i) => !rejected.includes(i) && !blank.includes(i));
  const sql = makeSql(() => lake.engine());
  expect(await sql`SELECT id, name, tags FROM t`).toEqual(
    kept.map((i) => ({ id: BigInt(i), name: `Zoë ${i * 7}`, tags: [String(i % 5)] })),
  );
  await pool[Symbol.asyncDispose]();
  await lake.release();
});

describe("threads that fail", () => {
  it("are a clear error, not a wait, and the next append gets new ones", async () => {
    const dies = writeWorker(`
      import { parentPort } from "node:worker_threads";
      parentPort.on("message", () => process.exit(7));
      parentPort.postMessage({ kind: "ready" });
    `);
    const { lake, pool, outcome, table } = await appended({ text: events, pool: { threads: 2, entry: dies } });
    expect(outcome).toBeInstanceOf(LimitError);
    expect(outcome).toMatchObject({ code: "worker_failed", message: expect.stringContaining("threads: 1") });
    expect(await storedFiles(lake)).toEqual([]);
    expect(await table.append([{ id: 1 }])).toMatchObject({ status: "committed" });
    await pool[Symbol.asyncDispose]();
    await lake.release();
  });

  it("to start: everything runs here, and the lake's log says so", async () => {
    const broken = writeWorker("throw new Error('no threads here')");
    const warnings: string[] = [];
    const logger: Logger = { warn: (message) => void warnings.push(message) };
    const given: Case = { text: events, append: { onReject: "quarantine" } };
    const one = await remains({ ...given, pool: { threads: 1 } });
    expect(await remains({ ...given, pool: { threads: 2, entry: broken, logger } })).toEqual(one);
    expect(warnings[0]).toMatch(/one thread/);
  });

  it("are not missed where their file is not there, as in a bundle", () => {
    // The sources have none beside them.
    expect(rangeThreads({ threads: 4 }).threads).toBe(1);
  });
});

it("an abort ends an append that waits for its workers", async () => {
  const hangs = writeWorker(`
    import { parentPort } from "node:worker_threads";
    parentPort.on("message", () => {});
    parentPort.postMessage({ kind: "ready" });
  `);
  const reason = new Error("enough");
  const { lake, pool, outcome } = await appended({
    text: events,
    append: { signal: AbortSignal.any([timeout(300, reason)]) },
    pool: { threads: 2, entry: hangs },
  });
  expect(outcome).toBe(reason);
  expect(await storedFiles(lake)).toEqual([]);
  await pool[Symbol.asyncDispose]();
  await lake.release();
});

function timeout(ms: number, reason: Error): AbortSignal {
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), ms);
  return controller.signal;
}
