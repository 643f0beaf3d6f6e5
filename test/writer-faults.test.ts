/**
 * Every request that a writer makes, failing before its effect, after it (the answer is lost), and never answered: no
 * half object is visible, no upload is left, the error says what happened, and writing again completes.
 */

import { SqliteCatalog } from "@eider/catalog";
import { FaultStore, MemoryStore, type ObjectStore } from "@eider/storage";
import { S3Store } from "@eider/storage/s3";
import { FakeS3, type FaultRule } from "@eider/test-s3";
import { EiderError, Lake, ParquetObjectWriter } from "eider";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const MIB = 1024 * 1024;
/** Rows of the larger partition: 11 MiB that do not shrink, so three parts of 5 MiB. */
const LARGE = 110;
const SMALL = 3;
const SCHEMA = { "id!": "int64", "part!": "string", "text!": "string" };

interface Row {
  readonly id: number;
  readonly part: string;
  readonly text: string;
}

/** Text that no compression shrinks much: xorshift32. */
function noise(seed: number): string {
  let state = seed + 1;
  const bytes = Buffer.alloc(76_800);
  for (let i = 0; i < bytes.length; i += 4) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes.writeInt32LE(state, i);
  }
  return bytes.toString("base64");
}

const ROWS: readonly Row[] = Array.from({ length: LARGE + SMALL }, (_, id) => ({
  id,
  part: id < LARGE ? "large" : "small",
  text: noise(id),
}));

type Mode = "before" | "after" | "hang";
const MODES: readonly Mode[] = ["before", "after", "hang"];

/** For requests that are never answered. Others may be slow on a busy machine. */
const TIMEOUT_MS: Readonly<Record<Mode, number>> = { before: 60_000, after: 60_000, hang: 1000 };

/** What a fake S3 does with the n-th request of an operation. */
function rule(operation: string, nth: number, mode: Mode): FaultRule {
  const match = { operation, nth };
  if (mode === "before") return { match, do: { effect: "never", answer: { status: 403, code: "AccessDenied" } } };
  if (mode === "after") return { match, do: { effect: "now", answer: "reset" } };
  return { match, do: { effect: "never", answer: "hang" } };
}

let s3: FakeS3;
beforeAll(async () => {
  s3 = await FakeS3.start();
});
afterAll(() => s3[Symbol.asyncDispose]());

function open(bucket: string, timeoutMs = 60_000): S3Store {
  const { endpoint, region, accessKeyId, secretAccessKey } = s3;
  return new S3Store({
    bucket,
    endpoint,
    region,
    credentials: { accessKeyId, secretAccessKey },
    partBytes: 5 * MIB,
    timeoutMs,
    // What happens when its own tries are used up.
    retry: { attempts: 1 },
  });
}

async function writeObjects(store: ObjectStore): Promise<void> {
  const writer = await ParquetObjectWriter.open<Row>(store, {
    schema: SCHEMA,
    partitionBy: ["part"],
    id: "w",
    rowGroupRows: 20,
    compression: "uncompressed",
  });
  await writer.writeAll(ROWS);
  await writer.close();
}

async function writeTable(store: ObjectStore, catalog: SqliteCatalog): Promise<void> {
  await using lake = await Lake.open({ store: unclosed(store), catalog: unclosed(catalog) });
  const writer = lake.table<Row>("t", { schema: SCHEMA, partitionBy: ["part"] }).writer({
    batchId: "w",
    rowGroupRows: 20,
    compression: "uncompressed",
  });
  await writer.writeAll(ROWS);
  await writer.close();
}

/** The same, but for its end. */
function unclosed<T extends AsyncDisposable>(inner: T): T {
  return new Proxy(inner, {
    get(target, name) {
      if (name === Symbol.asyncDispose) return async () => {};
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The ids of all Parquet objects, each of which has to be whole. */
async function idsOf(objects: ReadonlyMap<string, Uint8Array>): Promise<number[]> {
  const ids: number[] = [];
  for (const [key, bytes] of objects) {
    if (!key.endsWith(".parquet")) continue;
    const copy = new Uint8Array(bytes);
    const file = { byteLength: copy.length, slice: (start: number, end?: number) => copy.slice(start, end).buffer };
    for (const { id } of await parquetReadObjects({ file, columns: ["id"], compressors })) ids.push(Number(id));
  }
  return ids.sort((a, b) => a - b);
}

const ALL = ROWS.map(({ id }) => id);

/** An attempt either succeeds or says why not, in time and in words of our own. */
async function outcome(work: Promise<void>): Promise<unknown> {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  );
  if (error !== undefined) {
    expect(error).toBeInstanceOf(EiderError);
    expect((error as EiderError).code).not.toBe("writer_failed");
    expect((error as EiderError).message).not.toMatch(/fake-secret/);
  }
  return error;
}

describe("objects into S3", () => {
  it("survive every request × failure", { timeout: 300_000 }, async () => {
    const clean = await s3.makeBucket();
    const from = s3.log.requests.length;
    await writeObjects(open(clean));
    const requests = s3.log.requests.slice(from).map(({ operation }) => operation);
    expect(new Set(requests)).toEqual(
      new Set(["HeadObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload", "PutObject"]),
    );
    expect(requests.filter((operation) => operation === "UploadPart").length).toBe(3);
    const counted = new Map<string, number>();
    const hit: string[] = [];
    for (const operation of requests) {
      const nth = (counted.get(operation) ?? 0) + 1;
      counted.set(operation, nth);
      for (const mode of MODES) {
        const bucket = await s3.makeBucket();
        s3.script(rule(operation, nth, mode));
        const error = await outcome(writeObjects(open(bucket, TIMEOUT_MS[mode])));
        s3.script();
        const name = `${operation} ${nth} ${mode}`;
        hit.push(`${name}: ${error === undefined ? "written" : (error as EiderError).code}`);
        await settled(bucket);
        expect(s3.uploads(bucket), name).toEqual([]);
        const first = await idsOf(s3.objects(bucket));
        if (error === undefined) expect(first, name).toEqual(ALL);
        expect(new Set(first).size, name).toBe(first.length);
        expect(await outcome(writeObjects(open(bucket))), name).toBeUndefined();
        expect(await idsOf(s3.objects(bucket)), name).toEqual(ALL);
        expect(s3.uploads(bucket), name).toEqual([]);
      }
    }
    console.log(`${requests.length} requests × ${MODES.length} failures:\n${hit.join("\n")}`);
    expect(hit.filter((line) => !line.endsWith(": written")).length).toBeGreaterThan(10);
  });
});

describe("a table in S3", () => {
  it("survives every request × failure", { timeout: 300_000 }, async () => {
    const hit: string[] = [];
    const run = async (bucket: string, timeoutMs?: number, ...rules: readonly FaultRule[]) => {
      const catalog = await SqliteCatalog.open({ path: ":memory:" });
      await writeLake(open(bucket), catalog);
      const from = s3.log.requests.length;
      s3.script(...rules);
      const error = await outcome(writeTable(open(bucket, timeoutMs), catalog));
      const requests = s3.log.requests.slice(from).map(({ operation }) => operation);
      s3.script();
      return { catalog, error, requests };
    };
    const { requests } = await run(await s3.makeBucket());
    const puts = requests.filter((operation) => operation !== "GetObject");
    expect(puts.filter((operation) => operation === "UploadPart").length).toBe(3);
    const counted = new Map<string, number>();
    for (const operation of puts) {
      const nth = (counted.get(operation) ?? 0) + 1;
      counted.set(operation, nth);
      for (const mode of MODES) {
        const bucket = await s3.makeBucket();
        const { catalog, error } = await run(bucket, TIMEOUT_MS[mode], rule(operation, nth, mode));
        const name = `${operation} ${nth} ${mode}`;
        hit.push(`${name}: ${error === undefined ? "committed" : (error as EiderError).code}`);
        await settled(bucket);
        expect(s3.uploads(bucket), name).toEqual([]);
        expect(await outcome(writeTable(open(bucket), catalog)), name).toBeUndefined();
        await using lake = await Lake.open({ store: open(bucket), catalog });
        const table = lake.table("t");
        expect(
          (await table.batches()).map(({ batchId, rows }) => [batchId, rows]),
          name,
        ).toEqual([["w", ALL.length]]);
        const live = new Set((await table.files()).map(({ key }) => key));
        const objects = s3.objects(bucket);
        expect(await idsOf(new Map([...objects].filter(([key]) => live.has(key)))), name).toEqual(ALL);
        expect((await lake.verify()).ok, name).toBe(true);
      }
    }
    console.log(`${puts.length} requests × ${MODES.length} failures:\n${hit.join("\n")}`);
    expect(hit.filter((line) => !line.endsWith(": committed")).length).toBeGreaterThan(8);
  });
});

/** Makes the lake, so that what a writer asks for is only its own. */
async function writeLake(store: ObjectStore, catalog: SqliteCatalog): Promise<void> {
  await (await Lake.open({ store, catalog: unclosed(catalog) })).close();
}

/** Requests that were cut off may still be at work in the server. */
async function settled(bucket: string): Promise<void> {
  for (let i = 0; i < 40 && s3.uploads(bucket).length > 0; i++) await new Promise((wake) => setTimeout(wake, 25));
}

describe("an abort in S3 (D43)", () => {
  it("while a part is held leaves no upload and no object", async () => {
    const bucket = await s3.makeBucket();
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    s3.script({ match: { operation: "UploadPart", partNumber: 2 }, do: { wait: held } });
    const controller = new AbortController();
    const writer = await ParquetObjectWriter.open<Row>(open(bucket), {
      schema: SCHEMA,
      rowGroupRows: 20,
      compression: "uncompressed",
      signal: controller.signal,
    });
    const writing = writer.writeAll(ROWS).then(() => writer.close());
    setTimeout(() => controller.abort(new Error("enough")), 150);
    await expect(writing).rejects.toThrow("enough");
    release();
    s3.script();
    await settled(bucket);
    expect([s3.uploads(bucket), [...s3.objects(bucket).keys()]]).toEqual([[], []]);
  });
});

describe("objects into any store", () => {
  it.each(MODES)("each put, failing %s, one after the other", async (mode) => {
    for (let nth = 0; nth < 2; nth++) {
      const inner = new MemoryStore();
      const at = mode === "after" ? "after" : "before";
      const type = mode === "hang" ? "hang" : "fail";
      const store = new FaultStore(inner, { rules: [{ on: "put", skip: nth, at, fault: { type } }] });
      const signal = AbortSignal.timeout(mode === "hang" ? 1500 : 60_000);
      const writer = await ParquetObjectWriter.open<Row>(store, {
        schema: SCHEMA,
        partitionBy: ["part"],
        id: "w",
        signal,
      });
      const writing = writer.writeAll(ROWS.slice(LARGE - 5)).then(() => writer.close());
      if (mode === "hang") await expect(writing).rejects.toMatchObject({ name: "TimeoutError" });
      else await expect(writing).rejects.toMatchObject({ code: "injected_fault" });
      const again = await ParquetObjectWriter.open<Row>(inner, { schema: SCHEMA, partitionBy: ["part"], id: "w" });
      await again.writeAll(ROWS.slice(LARGE - 5));
      expect(await again.close()).toMatchObject({ rows: 5 + SMALL, objects: 2 });
      const objects = new Map<string, Uint8Array>();
      for await (const { key } of inner.list("")) {
        const chunks: Uint8Array[] = [];
        for await (const chunk of (await inner.get(key)).body) chunks.push(chunk);
        objects.set(key, Buffer.concat(chunks));
      }
      expect(await idsOf(objects)).toEqual(ALL.slice(LARGE - 5));
    }
  });
});
