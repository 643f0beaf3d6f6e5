import { setTimeout as sleep } from "node:timers/promises";
import { CountingStore, FaultStore, MemoryStore, type ObjectStore } from "@eider/storage";
import { makeData, RecordBatch, Table, tableFromArrays, vectorFromArray } from "apache-arrow";
import { type FileMetaData, parquetMetadata } from "hyparquet";
import { describe, expect, it } from "vitest";
import {
  AlreadyExistsError,
  InvalidInputError,
  LimitError,
  type ObjectWriterOptions,
  ParquetObjectWriter,
  StoreError,
  type WriterProgress,
  type WrittenObject,
} from "../src/index.js";
import { bytesOf, keysOf, rowsOf } from "./support/objects.js";

const SCHEMA = { "id!": "int64", "tenant!": "string" };

interface Row {
  readonly id: number;
  readonly tenant: string;
}

/** Rows in turn of tenants `t0`, `t1`, …. */
function rows(count: number, tenants = 1, from = 0): Row[] {
  return Array.from({ length: count }, (_, i) => ({ id: from + i, tenant: `t${(from + i) % tenants}` }));
}

/** The ids in the store, in the order of keys. */
async function ids(store: ObjectStore): Promise<number[]> {
  return (await rowsOf(store)).map(({ id }) => Number(id));
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

function sorted(numbers: readonly number[]): number[] {
  return [...numbers].sort((a, b) => a - b);
}

function streamOf<T>(pieces: readonly T[]): ReadableStream<T> {
  return new ReadableStream<T>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece);
      controller.close();
    },
  });
}

async function open(store: ObjectStore, options: ObjectWriterOptions = {}): Promise<ParquetObjectWriter<Row>> {
  return ParquetObjectWriter.open<Row>(store, { schema: SCHEMA, id: "w", ...options });
}

describe("input", () => {
  it("takes rows one by one and many at a time; nothing is visible before the end", async () => {
    const store = new MemoryStore();
    const written: WrittenObject[] = [];
    const writer = await open(store, { onWritten: (object) => void written.push(object) });
    await writer.write(rows(1)[0]!);
    await writer.write(rows(4).slice(1));
    await writer.write([]);
    expect(await keysOf(store)).toEqual([]);
    expect([writer.rows, writer.acknowledgedRows]).toEqual([4, 0]);
    const result = await writer.close();
    expect([writer.rows, writer.acknowledgedRows]).toEqual([4, 4]);
    expect(await keysOf(store)).toEqual(["w-00000.parquet"]);
    expect(written).toMatchObject([{ key: "w-00000.parquet", rows: 4, partition: [], existing: false }]);
    expect(written[0]!.statistics).toMatchObject([
      { fieldId: 1, nullCount: 0, min: 0n, max: 3n },
      { fieldId: 2, nullCount: 0 },
    ]);
    expect(result).toEqual({ rows: 4, objects: 1, bytes: written[0]!.bytes });
    expect(await rowsOf(store)).toEqual(range(4).map((id) => ({ id: BigInt(id), tenant: "t0" })));
    expect(await writer.close()).toEqual(result);
  });

  it.each<[string, () => Parameters<ParquetObjectWriter<Row>["writeAll"]>[0]]>([
    ["an array", () => rows(2500)],
    [
      "a generator",
      function* () {
        yield* rows(2500);
      },
    ],
    [
      "an asynchronous generator of rows and arrays",
      async function* () {
        yield* rows(1200);
        yield rows(1000, 1, 1200);
        yield* rows(300, 1, 2200);
      },
    ],
    ["a web stream", () => streamOf(rows(2500))],
  ])("takes all of %s, in order", async (_, source) => {
    const store = new MemoryStore();
    const writer = await open(store);
    await writer.writeAll(source());
    await writer.close();
    expect(await ids(store)).toEqual(range(2500));
  });

  it("is the end of a web stream pipe", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    await streamOf([rows(10), rows(1, 1, 10)[0]!, rows(5, 1, 11)]).pipeTo(writer.writable);
    expect(await writer.close()).toMatchObject({ rows: 16, objects: 1 });
    expect(await ids(store)).toEqual(range(16));
  });

  it("a pipe that is aborted leaves nothing", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    const source = new ReadableStream<Row[]>({
      pull(controller) {
        if (writer.rows < 3000) controller.enqueue(rows(1000));
        else controller.error(new Error("source broke"));
      },
    });
    await expect(source.pipeTo(writer.writable)).rejects.toThrow("source broke");
    expect(await keysOf(store)).toEqual([]);
    await expect(writer.close()).rejects.toMatchObject({ code: "writer_failed" });
  });

  it("hands on rows of a source that rests", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    let release = (): void => {};
    const resting = new Promise<void>((resolve) => (release = resolve));
    const all = writer.writeAll(
      (async function* () {
        yield* rows(3);
        await resting;
        yield* rows(2, 1, 3);
      })(),
    );
    while (writer.rows < 3) await sleep(5);
    release();
    await all;
    await writer.close();
    expect(await ids(store)).toEqual(range(5));
  });

  it("takes Arrow tables and batches between rows, in order", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    await writer.write(rows(3));
    await writer.write(tableFromArrays({ tenant: ["a", "b"], id: BigInt64Array.of(3n, 4n) }) as never);
    const type = vectorFromArray([5n]).type;
    const batch = new RecordBatch({
      id: makeData({ type, length: 1, data: BigInt64Array.of(5n) } as never),
      tenant: vectorFromArray(["c"]).data[0]!,
    });
    await writer.write(batch as never);
    await writer.write(rows(1, 1, 6));
    await writer.close();
    expect(await ids(store)).toEqual(range(7));
    // A column that the schema lacks, and a required one that is missing.
    const strict = await open(new MemoryStore());
    await expect(
      strict.write(new Table(tableFromArrays({ id: BigInt64Array.of(1n), tenant: ["a"], x: [1] }).batches)),
    ).rejects.toMatchObject({ code: "unknown_field" });
    const lacking = await open(new MemoryStore());
    await expect(lacking.write(tableFromArrays({ id: BigInt64Array.of(1n) }))).rejects.toMatchObject({
      code: "missing_column",
    });
  });

  it.each([["text"], [Uint8Array.of(1)], [7], [null]])("refuses %j, and goes on", async (input) => {
    const store = new MemoryStore();
    const writer = await open(store);
    await expect(writer.write(input as never)).rejects.toMatchObject({ code: "bad_source" });
    await expect(writer.writeAll(7 as never)).rejects.toMatchObject({ code: "bad_source" });
    await writer.write(rows(1));
    await writer.close();
    expect(await ids(store)).toEqual([0]);
  });

  it("writes nothing where there is nothing (D21)", async () => {
    const store = new CountingStore(new MemoryStore());
    const writer = await open(store);
    await writer.writeAll([]);
    expect(await writer.close()).toEqual({ rows: 0, objects: 0, bytes: 0 });
    expect(store.counts.put.requests).toBe(0);
  });
});

describe("values", () => {
  const types = {
    "i8!": "int8",
    i16: "int16",
    i32: "int32",
    i64: "int64",
    f: "float64",
    d: "decimal(9,2)",
    day: "date",
  };

  it.each([
    ["above int8", { i8: 128 }],
    ["below int8", { i8: -129 }],
    ["a fraction in int8", { i8: 1.5 }],
    ["above int16", { i8: 0, i16: 32_768 }],
    ["above int32", { i8: 0, i32: 2_147_483_648 }],
    ["above int64", { i8: 0, i64: 9_223_372_036_854_775_808n }],
    ["a number that is not exact", { i8: 0, i64: 2 ** 53 }],
    ["an integer that float64 would round", { i8: 0, f: 9_007_199_254_740_993n }],
    ["a third digit after the point", { i8: 0, d: "1.005" }],
    ["too many digits", { i8: 0, d: "12345678.90" }],
    ["no such day", { i8: 0, day: "2031-02-29" }],
    ["text in a number", { i8: "1" }],
    ["a missing required value", { i16: 1 }],
    ["a null required value", { i8: null }],
    ["an unknown key", { i8: 1, x: 1 }],
  ])("%s is an error that names the row, not another value", async (_, row) => {
    const store = new MemoryStore();
    const writer = await ParquetObjectWriter.open(store, { schema: types });
    await writer.write({ i8: 1 });
    const error = await writer.write([{ i8: 2 }, row]).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(InvalidInputError);
    expect(error).toMatchObject({ code: "rejected_rows", rows: [{ line: 3 }] });
    await expect(writer.write({ i8: 1 })).rejects.toMatchObject({ code: "writer_failed", cause: error });
    await expect(writer.close()).rejects.toMatchObject({ code: "writer_failed", cause: error });
    expect(await keysOf(store)).toEqual([]);
  });

  it("the limits themselves are kept", async () => {
    const store = new MemoryStore();
    const writer = await ParquetObjectWriter.open(store, { schema: types });
    const row = {
      i8: -128,
      i16: 32_767,
      i32: -2_147_483_648,
      i64: 9_223_372_036_854_775_807n,
      f: 9_007_199_254_740_991,
      d: "9999999.99",
      day: "2032-02-29",
    };
    await writer.write(row);
    await writer.close();
    expect(await rowsOf(store)).toEqual([{ ...row, d: 9_999_999.99, day: new Date("2032-02-29") }]);
  });

  it("unknown keys may be ignored", async () => {
    const store = new MemoryStore();
    const writer = await open(store, { unknownFields: "ignore" });
    await writer.write({ ...rows(1)[0]!, more: 1 } as Row);
    await writer.write(tableFromArrays({ id: BigInt64Array.of(1n), tenant: ["a"], x: [1] }));
    await writer.close();
    expect(await rowsOf(store)).toEqual([
      { id: 0n, tenant: "t0" },
      { id: 1n, tenant: "a" },
    ]);
  });
});

describe("partitions", () => {
  it("routes each row; keys are typed tuples", async () => {
    const store = new MemoryStore();
    const written: WrittenObject[] = [];
    const writer = await ParquetObjectWriter.open(store, {
      schema: { a: "string", b: "string", n: "int64" },
      partitionBy: ["a", "b"],
      id: "w",
      onWritten: (object) => void written.push(object),
    });
    await writer.write([
      { a: "a b", b: "c", n: 1 },
      { a: "a", b: "b c", n: 2 },
      { a: null, b: "", n: 3 },
      { a: "__HIVE_DEFAULT_PARTITION__", b: "", n: 4 },
      { a: "a b", b: "c", n: 5 },
    ]);
    await writer.close();
    expect(await keysOf(store)).toEqual([
      "a=%5F_HIVE_DEFAULT_PARTITION__/b=/w-00000.parquet",
      "a=__HIVE_DEFAULT_PARTITION__/b=/w-00000.parquet",
      "a=a%20b/b=c/w-00000.parquet",
      "a=a/b=b%20c/w-00000.parquet",
    ]);
    expect((await rowsOf(store)).map(({ n }) => Number(n))).toEqual([4, 3, 1, 5, 2]);
    expect(written.map(({ partition }) => partition)).toContainEqual([null, ""]);
  });

  it("never has more files open than it may, ends the least recently used first, and loses no row", async () => {
    const store = new MemoryStore();
    const writer = await open(store, { partitionBy: ["tenant"], maxOpenPartitions: 3, rowGroupRows: 10 });
    let from = 0;
    // Ten rows fill a row group, so that each of these writes to one file.
    for (const tenant of ["a", "b", "c", "a", "d", "c", "b"]) {
      await writer.write(rows(10, 1, from).map((row) => ({ ...row, tenant })));
      from += 10;
      expect(writer.openPartitions).toBeLessThanOrEqual(3);
    }
    await writer.close();
    // d needed a place when b was the oldest; then b needed one when a was.
    expect((await keysOf(store)).map((key) => key.replace("tenant=", ""))).toEqual([
      "a/w-00000.parquet",
      "b/w-00000.parquet",
      "b/w-00001.parquet",
      "c/w-00000.parquet",
      "d/w-00000.parquet",
    ]);
    expect(sorted(await ids(store))).toEqual(range(70));
  });
});

describe("rotation", () => {
  it("by rows: files of exactly so many, whatever the pieces", async () => {
    for (const piece of [1, 7, 1000]) {
      const store = new MemoryStore();
      const counts: number[] = [];
      const writer = await open(store, { rotate: { rows: 100 }, onWritten: ({ rows }) => void counts.push(rows) });
      for (let at = 0; at < 350; at += piece) await writer.write(rows(Math.min(piece, 350 - at), 1, at));
      await writer.close();
      expect(sorted(counts)).toEqual([50, 100, 100, 100]);
      expect(await ids(store)).toEqual(range(350));
    }
  });

  it("by rows of each partition", async () => {
    const store = new MemoryStore();
    const writer = await open(store, { rotate: { rows: 10 }, partitionBy: ["tenant"], path: "{tenant}/{n}" });
    await writer.write(rows(50, 2));
    await writer.close();
    expect(await keysOf(store)).toEqual(["t0/00000", "t0/00001", "t0/00002", "t1/00000", "t1/00001", "t1/00002"]);
  });

  it("by bytes: no file is larger, but for a row group that is", async () => {
    const store = new MemoryStore();
    const sizes: number[] = [];
    const writer = await open(store, {
      rotate: { bytes: 200_000 },
      rowGroupRows: 10_000,
      compression: "uncompressed",
      dictionary: false,
      columns: { id: { encoding: "PLAIN" } },
      onWritten: ({ bytes }) => void sizes.push(bytes),
    });
    // A row group has 80,000 bytes of ids, and a little less of tenants.
    await writer.write(rows(100_000));
    await writer.close();
    expect(sizes.length).toBe(10);
    const small = await open(new MemoryStore(), {
      rotate: { bytes: 200_000 },
      rowGroupRows: 3000,
      compression: "uncompressed",
      dictionary: false,
      columns: { id: { encoding: "PLAIN" } },
      onWritten: ({ bytes }) => void sizes.push(bytes),
    });
    sizes.length = 0;
    await small.write(rows(100_000));
    await small.close();
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200_000);
    expect(Math.max(...sizes)).toBeGreaterThan(140_000);
    expect(await ids(store)).toEqual(range(100_000));
  });

  it("by age, without another call", async () => {
    const store = new MemoryStore();
    const written: number[] = [];
    const writer = await open(store, { rotate: { ageMs: 30 }, onWritten: ({ rows }) => void written.push(rows) });
    await writer.write(rows(3));
    expect(await keysOf(store)).toEqual([]);
    while (written.length === 0) await sleep(5);
    expect(written).toEqual([3]);
    expect(writer.acknowledgedRows).toBe(3);
    await writer.write(rows(2, 1, 3));
    while (written.length === 1) await sleep(5);
    await writer.close();
    expect(written).toEqual([3, 2]);
    expect(await ids(store)).toEqual(range(5));
  });

  it("by age also while rows keep coming", async () => {
    const store = new MemoryStore();
    let written = 0;
    const writer = await open(store, { rotate: { ageMs: 30 }, onWritten: () => void written++ });
    let count = 0;
    while (written < 2) {
      await writer.write(rows(1, 1, count++));
      await sleep(2);
    }
    await writer.close();
    expect(await ids(store)).toEqual(range(count));
  });

  it("before a store's largest object is reached (D46)", async () => {
    const store = limited(new MemoryStore(), 40_000);
    const writer = await open(store, { rowGroupRows: 500, compression: "uncompressed", dictionary: false });
    await writer.write(rows(20_000));
    await writer.close();
    expect(await ids(store)).toEqual(range(20_000));
    for await (const { size } of store.list("")) expect(size).toBeLessThanOrEqual(40_000);
    const large = await open(limited(new MemoryStore(), 1000), { compression: "uncompressed", dictionary: false });
    await large.write(rows(1000));
    await expect(large.close()).rejects.toBeInstanceOf(LimitError);
  });
});

/** A store that takes objects of so many bytes, and streams of them only without a condition. */
function limited(inner: MemoryStore, maxObjectBytes: number): ObjectStore {
  const capabilities = { ...inner.capabilities, maxObjectBytes, maxConditionalBytes: maxObjectBytes };
  return new Proxy(inner, {
    get(target, name) {
      if (name === "capabilities") return capabilities;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

describe("delivery", () => {
  it("flush makes all rows durable, and the writer goes on", async () => {
    const store = new MemoryStore();
    const writer = await open(store, { partitionBy: ["tenant"] });
    await writer.write(rows(10, 3));
    await writer.flush();
    expect(writer.acknowledgedRows).toBe(10);
    expect(sorted(await ids(store))).toEqual(range(10));
    await writer.write(rows(2, 3, 10));
    expect(writer.acknowledgedRows).toBe(10);
    await writer.close();
    expect(sorted(await ids(store))).toEqual(range(12));
  });

  it("acknowledges rows only from the front, and only in whole objects", async () => {
    const acknowledged: number[] = [];
    const writer = await open(new MemoryStore(), {
      partitionBy: ["tenant"],
      rotate: { rows: 4 },
      // One batch of the parser for each write.
      rowGroupRows: 4,
      onWritten: () => void acknowledged.push(writer.acknowledgedRows),
    });
    const of = (tenant: string, from: number): Row[] => rows(4, 1, from).map((row) => ({ ...row, tenant }));
    await writer.write([...of("a", 0).slice(0, 3), ...of("b", 3).slice(0, 1)]);
    await writer.write(of("b", 4));
    // b has had its four rows 3 to 6, but 0 to 2 of a wait.
    expect(acknowledged).toEqual([0]);
    await writer.write(of("c", 8));
    expect(writer.acknowledgedRows).toBe(0);
    await writer.write(of("a", 12));
    await writer.close();
    expect(writer.acknowledgedRows).toBe(16);
  });

  it("progress tells rows taken and acknowledged", async () => {
    const seen: WriterProgress[] = [];
    const writer = await open(new MemoryStore(), { onProgress: (progress) => void seen.push(progress) });
    await writer.write(rows(5));
    await writer.close();
    expect(seen.at(0)).toMatchObject({ rows: 5, acknowledgedRows: 0 });
    expect(seen.at(-1)).toMatchObject({ rows: 5, acknowledgedRows: 5 });
    expect(seen.at(-1)!.elapsedMs).toBeGreaterThanOrEqual(0);
  });

  it("calls that are not awaited keep their order, and close waits for them", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    const calls = range(50).map((i) => writer.write(rows(1, 1, i)));
    await writer.close();
    await Promise.all(calls);
    expect(await ids(store)).toEqual(range(50));
    await expect(writer.write(rows(1))).rejects.toMatchObject({ code: "writer_closed" });
    await expect(writer.flush()).rejects.toMatchObject({ code: "writer_closed" });
  });

  it("waits for a store that is slow instead of taking more and more", async () => {
    const held: (() => void)[] = [];
    const store = new FaultStore(new MemoryStore(), {
      before: ({ kind }) => (kind === "put" ? new Promise<void>((resolve) => held.push(resolve)) : undefined),
    });
    const writer = await open(store, { rotate: { rows: 100 }, rowGroupRows: 100, maxOpenPartitions: 2 });
    let settled = false;
    const writing = writer.write(rows(2000)).then(() => (settled = true));
    await sleep(100);
    expect(settled).toBe(false);
    expect(held.length).toBe(2);
    const letGo = setInterval(() => {
      for (const resolve of held.splice(0)) resolve();
    }, 1);
    await writing;
    await writer.close();
    clearInterval(letGo);
    expect(await ids(store)).toEqual(range(2000));
  });

  it("the same rows under the same id are the same objects, and others are refused", async () => {
    const store = new MemoryStore();
    const write = async (count: number, piece: number): Promise<boolean[]> => {
      const existing: boolean[] = [];
      const writer = await open(store, {
        partitionBy: ["tenant"],
        rotate: { rows: 30 },
        onWritten: (object) => void existing.push(object.existing),
      });
      for (let at = 0; at < count; at += piece) await writer.write(rows(Math.min(piece, count - at), 3, at));
      await writer.close();
      return existing;
    };
    expect(await write(200, 200)).toEqual(Array(9).fill(false));
    const before = await keysOf(store);
    expect(await write(200, 7)).toEqual(Array(9).fill(true));
    expect(await keysOf(store)).toEqual(before);
    expect(sorted(await ids(store))).toEqual(range(200));
    // The last objects would have other rows.
    await expect(write(199, 50)).rejects.toMatchObject({ code: "object_differs" });
    await expect(write(199, 50)).rejects.toBeInstanceOf(AlreadyExistsError);
    expect(sorted(await ids(store))).toEqual(range(200));
  });

  it("a partition that fails does not double the others when all is written again", async () => {
    const inner = new MemoryStore();
    const broken = new FaultStore(inner, {
      rules: [{ on: "put", key: /tenant=t1/, fault: { type: "fail" } }],
    });
    const first = await open(broken, { partitionBy: ["tenant"] });
    await first.write(rows(30, 3));
    await expect(first.close()).rejects.toMatchObject({ code: "injected_fault" });
    const again = await open(inner, { partitionBy: ["tenant"] });
    await again.write(rows(30, 3));
    await again.close();
    expect(sorted(await ids(inner))).toEqual(range(30));
  });

  it("what onWritten throws fails the writer", async () => {
    const writer = await open(new MemoryStore(), {
      onWritten: () => {
        throw new Error("not noted");
      },
    });
    await writer.write(rows(1));
    await expect(writer.close()).rejects.toThrow("not noted");
    await expect(writer.close()).rejects.toThrow("not noted");
    await expect(writer.write(rows(1))).rejects.toBeInstanceOf(StoreError);
  });
});

describe("abort", () => {
  it.each(["by its signal", "by abort()", "by leaving its scope"])("%s: nothing is left", async (how) => {
    const store = new MemoryStore();
    const controller = new AbortController();
    {
      await using writer = await open(store, { signal: controller.signal, rowGroupRows: 1000 });
      await writer.write(rows(50_000));
      if (how === "by its signal") controller.abort(new Error("enough"));
      if (how === "by abort()") await writer.abort(new Error("enough"));
      if (how === "by leaving its scope") continueWith(writer);
      else {
        const expected = how === "by its signal" ? { message: "enough" } : { code: "writer_failed" };
        await expect(writer.write(rows(1))).rejects.toMatchObject(expected);
        await expect(writer.close()).rejects.toMatchObject({ code: "writer_failed", cause: { message: "enough" } });
      }
    }
    expect(await keysOf(store)).toEqual([]);
  });

  it("ends a put that hangs", async () => {
    const inner = new MemoryStore();
    const store = new FaultStore(inner, { rules: [{ on: "put", fault: { type: "hang" } }] });
    const controller = new AbortController();
    const writer = await open(store, { signal: controller.signal });
    await writer.write(rows(10));
    const closing = writer.close();
    setTimeout(() => controller.abort(new Error("too long")), 20);
    await expect(closing).rejects.toThrow("too long");
    expect(await keysOf(inner)).toEqual([]);
  });

  it("before the first row", async () => {
    const store = new MemoryStore();
    const writer = await open(store, { signal: AbortSignal.abort(new Error("never")) });
    await expect(writer.write(rows(1))).rejects.toThrow("never");
    await expect(writer.close()).rejects.toMatchObject({ code: "writer_failed" });
    expect(await keysOf(store)).toEqual([]);
  });

  it("ends a source that keeps it waiting", async () => {
    const controller = new AbortController();
    const writer = await open(new MemoryStore(), { signal: controller.signal });
    let closed = false;
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise<IteratorResult<Row>>(() => {}),
        return: async () => {
          closed = true;
          return { done: true as const, value: undefined };
        },
      }),
    };
    const writing = writer.writeAll(source);
    controller.abort(new Error("waited enough"));
    await expect(writing).rejects.toThrow("waited enough");
    expect(closed).toBe(true);
  });

  it("a source that fails fails the writer (D43)", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    const source = async function* (): AsyncIterable<Row> {
      yield* rows(10);
      throw new Error("the source broke");
    };
    await expect(writer.writeAll(source())).rejects.toThrow("the source broke");
    await expect(writer.close()).rejects.toMatchObject({ code: "writer_failed" });
    expect(await keysOf(store)).toEqual([]);
  });

  it("after it is closed changes nothing", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    await writer.write(rows(3));
    const result = await writer.close();
    await writer.abort();
    expect(await writer.close()).toEqual(result);
    expect(await ids(store)).toEqual(range(3));
  });
});

/** Uses a writer no further. */
function continueWith(_: unknown): void {}

describe("what is acknowledged after a failure", () => {
  it.each([1, 3])("rows from the front up to the first whose file failed, of %i partitions", async (tenants) => {
    const inner = new MemoryStore();
    const store = new FaultStore(inner, {
      rules: [{ on: "put", key: /w-00001/, fault: { type: "fail" } }],
    });
    const told: number[] = [];
    const writer = await open(store, {
      ...(tenants > 1 && { partitionBy: ["tenant"] }),
      rotate: { rows: 10 },
      onProgress: ({ acknowledgedRows }) => void told.push(acknowledgedRows),
    });
    const failed = writer
      .writeAll([rows(10 * tenants), rows(90 * tenants, tenants, 10 * tenants)])
      .then(() => writer.close());
    await expect(failed).rejects.toMatchObject({ code: "injected_fault" });
    expect(await ids(inner)).toEqual(expect.arrayContaining(range(writer.acknowledgedRows)));
    expect(writer.acknowledgedRows).toBeLessThanOrEqual(10 * tenants);
    expect(Math.max(...told)).toBeLessThanOrEqual(10 * tenants);
  });

  it.each(["abort", "signal", "bad row"])("none that no object has: %s", async (how) => {
    const store = new MemoryStore();
    const controller = new AbortController();
    const writer = await open(store, { signal: controller.signal, rowGroupRows: 5 });
    await writer.write(rows(12));
    if (how === "abort") await writer.abort();
    if (how === "signal") controller.abort(new Error("enough"));
    if (how === "bad row") await expect(writer.write({ id: "x", tenant: "t" } as never)).rejects.toThrow();
    await expect(writer.close()).rejects.toThrow();
    expect(await keysOf(store)).toEqual([]);
    expect(writer.acknowledgedRows).toBe(0);
  });

  it("those of objects that were complete before", async () => {
    const store = new MemoryStore();
    const writer = await open(store);
    await writer.write(rows(7));
    await writer.flush();
    await writer.write(rows(5, 1, 7));
    await writer.abort();
    expect(writer.acknowledgedRows).toBe(7);
  });
});

describe("options", () => {
  it.each<[object, string]>([
    [{ schemaFile: "x.yaml" }, "bad_option"],
    [{ schema: undefined }, "bad_option"],
    [{ rowGroupRows: 0 }, "bad_option"],
    [{ rowGroupBytes: 1.5 }, "bad_option"],
    [{ maxOpenPartitions: 0 }, "bad_option"],
    [{ bufferBytes: -1 }, "bad_option"],
    [{ rotate: { rows: 0 } }, "bad_option"],
    [{ rotate: { hours: 1 } }, "bad_option"],
    [{ compresion: "zstd" }, "bad_option"],
    [{ compression: "lz4" }, "unsupported_compression"],
    [{ compressionLevel: 23 }, "bad_option"],
    [{ columns: { nowhere: {} } }, "no_such_column"],
    [{ columns: { id: { encoding: "DELTA_LENGTH_BYTE_ARRAY" } } }, "unsupported_encoding"],
    [{ partitionBy: ["nowhere"] }, "unknown_column"],
    [{ partitionBy: ["day(tenant)"] }, "type_mismatch"],
    [{ schema: {} }, "no_columns"],
  ])("%j is refused when the writer is opened: %s", async (options, code) => {
    await expect(open(new MemoryStore(), options as ObjectWriterOptions)).rejects.toMatchObject({ code });
  });

  it("says how it is opened, and where it writes to", async () => {
    const Constructor = ParquetObjectWriter as unknown as new (...args: unknown[]) => object;
    for (const args of [[], ["./objects", { schema: SCHEMA }]]) {
      expect(() => new Constructor(...args)).toThrow(/await ParquetObjectWriter\.open/);
    }
    for (const store of [undefined, null, 5, {}]) {
      await expect(open(store as never)).rejects.toMatchObject({ name: "InvalidInputError", code: "bad_option" });
    }
  });

  it.each(["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4raw"] as const)(
    "compression %s",
    async (compression) => {
      const store = new MemoryStore();
      const writer = await open(store, { compression });
      await writer.write(rows(1000));
      await writer.close();
      expect(await ids(store)).toEqual(range(1000));
    },
  );

  it("a column may differ in compression and encoding", async () => {
    const store = new MemoryStore();
    const writer = await open(store, {
      compression: "uncompressed",
      columns: { tenant: { compression: "gzip", encoding: "DELTA_LENGTH_BYTE_ARRAY" }, id: { encoding: "PLAIN" } },
    });
    await writer.write(rows(1000));
    await writer.close();
    const { columns } = (await footerOf(store)).row_groups[0]!;
    expect(columns.map(({ meta_data: m }) => [m!.path_in_schema[0], m!.codec, m!.encodings])).toEqual([
      ["id", "UNCOMPRESSED", ["RLE", "PLAIN"]],
      ["tenant", "GZIP", ["RLE", "DELTA_LENGTH_BYTE_ARRAY"]],
    ]);
  });

  it("row groups by rows and by bytes; key-values; no page index; no statistics", async () => {
    const store = new MemoryStore();
    const writer = await open(store, {
      rowGroupRows: 100,
      pageIndex: false,
      statistics: "none",
      keyValues: { origin: "here" },
    });
    await writer.write(rows(250));
    await writer.close();
    const footer = await footerOf(store);
    expect(footer.row_groups.map(({ num_rows }) => Number(num_rows))).toEqual([100, 100, 50]);
    expect(footer.key_value_metadata).toContainEqual({ key: "origin", value: "here" });
    for (const { columns } of footer.row_groups) {
      for (const column of columns) {
        expect(column.offset_index_offset).toBeUndefined();
        expect(column.column_index_offset).toBeUndefined();
        expect(column.meta_data!.statistics).toBeUndefined();
      }
    }
    const bytes = new MemoryStore();
    // 16 bytes and a little more for each row.
    const small = await open(bytes, { rowGroupBytes: 2000 });
    for (let at = 0; at < 1000; at += 50) {
      await small.write(
        tableFromArrays({ id: BigInt64Array.from(range(50).map((i) => BigInt(at + i))), tenant: Array(50).fill("t0") }),
      );
    }
    await small.close();
    const groups = (await footerOf(bytes)).row_groups.map(({ num_rows }) => Number(num_rows));
    expect(Math.max(...groups)).toBeLessThanOrEqual(125);
    expect(groups.length).toBeGreaterThan(7);
    expect(await ids(bytes)).toEqual(range(1000));
  });
});

async function footerOf(store: ObjectStore): Promise<FileMetaData> {
  const [key] = await keysOf(store);
  const bytes = await bytesOf(store, key!);
  return parquetMetadata(bytes.buffer);
}
