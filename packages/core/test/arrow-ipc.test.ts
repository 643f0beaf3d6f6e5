import { readFileSync } from "node:fs";
import * as arrow from "apache-arrow";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assignFieldIds,
  batchRows,
  formatType,
  readArrowIPC,
  sliceBatch,
  toArrowIPC,
  toArrowSchema,
} from "../src/index.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf } from "./column-builder.js";

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts);
}

async function rowsOf(source: Parameters<typeof readArrowIPC>[0]): Promise<Record<string, unknown>[]> {
  const { batches } = await readArrowIPC(source);
  const rows: Record<string, unknown>[] = [];
  for await (const batch of batches) rows.push(...batchRows(batch, "exact"));
  return rows;
}

async function* chunked(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const size = sizes[i % sizes.length]!;
    // A copy of its own, so that chunks lie on any byte.
    yield Uint8Array.from(bytes.subarray(at, at + size));
    at += size;
  }
}

/** A message with a dictionary, as the Arrow writer would not write it by itself. */
class Messages extends arrow.RecordBatchStreamWriter {
  dictionary(id: number, values: readonly string[], isDelta: boolean): void {
    this._writeDictionaryBatch(arrow.vectorFromArray(values, new arrow.Utf8()).data[0]!, id, isDelta);
  }
  batch(schema: arrow.Schema, indices: readonly number[]): void {
    const type = schema.fields[0]!.type;
    const column = arrow.makeData({ type, data: Int32Array.from(indices) } as never);
    const struct = arrow.makeData({
      type: new arrow.Struct(schema.fields),
      length: indices.length,
      children: [column],
    } as never);
    const { byteLength, nodes, bufferRegions, buffers } = this._assembleRecordBatch(
      new arrow.RecordBatch(schema, struct as unknown as arrow.Data<arrow.Struct>),
    );
    const { RecordBatch: Header } = messageHeaders;
    const header = new Header(indices.length, nodes, bufferRegions, null);
    this._writeMessage(arrow.Message.from(header as never, byteLength));
    this._writeBodyBuffers(buffers);
  }
}

/** The header class is not exported: take it from a message. */
const messageHeaders = ((): { RecordBatch: new (...args: unknown[]) => unknown } => {
  const table = arrow.tableFromArrays({ a: Int32Array.of(1) });
  let headerClass: unknown;
  class Spy extends arrow.RecordBatchStreamWriter {
    protected override _writeMessage<T extends arrow.MessageHeader>(message: arrow.Message<T>): this {
      if (message.isRecordBatch()) headerClass = message.header()!.constructor;
      return super._writeMessage(message);
    }
  }
  new Spy().writeAll(table);
  return { RecordBatch: headerClass as new (...args: unknown[]) => unknown };
})();

const dictionarySchema = new arrow.Schema([
  new arrow.Field("c", new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32(), 1), true),
]);

describe("readArrowIPC", () => {
  test("a dictionary replaced in mid-stream, then added to: each batch has the one it was written with", async () => {
    const writer = new Messages();
    writer.reset(undefined, dictionarySchema);
    writer.dictionary(1, ["n", "s"], false);
    writer.batch(dictionarySchema, [0, 1]);
    writer.dictionary(1, ["e"], false);
    writer.batch(dictionarySchema, [0]);
    writer.dictionary(1, ["w"], true);
    writer.batch(dictionarySchema, [1, 0]);
    writer.finish();
    const rows = await rowsOf(writer.toUint8Array(true));
    expect(rows.map((row) => row.c)).toEqual(["n", "s", "e", "w", "e"]);
  });

  test("a delta for a dictionary that was never sent, and indices into none, are errors", async () => {
    const delta = new Messages();
    delta.reset(undefined, dictionarySchema);
    delta.dictionary(1, ["w"], true);
    delta.batch(dictionarySchema, [0]);
    delta.finish();
    await expect(rowsOf(delta.toUint8Array(true))).rejects.toMatchObject({
      code: "bad_arrow",
      message: expect.stringContaining("dictionary 1"),
    });
    const none = new Messages();
    none.reset(undefined, dictionarySchema);
    none.batch(dictionarySchema, [0]);
    none.finish();
    await expect(rowsOf(none.toUint8Array(true))).rejects.toMatchObject({ code: "bad_arrow" });
  });

  const table = arrow.tableFromArrays({ a: Int32Array.of(1, 2, 3), b: ["x", null, "z"] });
  const expected = [
    { a: 1, b: "x" },
    { a: 2, b: null },
    { a: 3, b: "z" },
  ];

  /** As other writers make files: with the schema, the dictionaries and the batches of a stream before the footer. */
  function fileOf(stream: Uint8Array, tail = "footer"): Uint8Array {
    return Buffer.concat([Buffer.from("ARROW1\0\0"), stream, Buffer.from(`${tail}\x06\0\0\0ARROW1`)]);
  }

  const stream = arrow.tableToIPC(table, "stream");
  const inputs = {
    stream,
    "file that holds a stream": fileOf(stream),
    "file of the JavaScript library, which lacks the schema message": arrow.tableToIPC(table, "file"),
  };

  for (const [name, bytes] of Object.entries(inputs)) {
    test(`${name}: read whole, and in any chunks`, async () => {
      expect(await rowsOf(bytes)).toEqual(expected);
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 70 }), { minLength: 1 }), async (sizes) => {
          expect(await rowsOf(chunked(bytes, sizes))).toEqual(expected);
        }),
        { numRuns: 40 },
      );
    });

    test(`${name}: cut off anywhere is an error, never a shorter result`, async () => {
      for (let length = 0; length < bytes.length; length++) {
        await expect(rowsOf(bytes.slice(0, length)), `${length} bytes`).rejects.toMatchObject({
          name: "InvalidInputError",
          code: "truncated_arrow",
        });
      }
    });
  }

  test("bytes after the end marker are an error", async () => {
    await expect(rowsOf(Buffer.concat([stream, Uint8Array.of(0)]))).rejects.toMatchObject({ code: "bad_arrow" });
    await expect(rowsOf(Buffer.concat([stream, stream]))).rejects.toMatchObject({ code: "bad_arrow" });
  });

  test("what is not Arrow is an error that says so", async () => {
    for (const text of ['{"a":1}\n{"a":2}\n', "PAR1 and so on", "\xff".repeat(100), "a,b\n1,2\n"]) {
      await expect(rowsOf(Buffer.from(text, "latin1"))).rejects.toMatchObject({ name: "InvalidInputError" });
    }
  });

  test("any damaged byte gives rows or an InvalidInputError or SchemaError, no other error and no hang", async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(stream.length - 1), fc.integer({ min: 1, max: 255 }), async (at, change) => {
        const bytes = Uint8Array.from(stream);
        bytes[at]! ^= change;
        try {
          await rowsOf(bytes);
        } catch (error) {
          expect(["InvalidInputError", "SchemaError", "LimitError"]).toContain((error as Error).name);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("an error of the source passes unchanged, and an early end closes the source", async () => {
    const reason = new Error("the socket closed");
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield stream.subarray(0, stream.length - 20);
      throw reason;
    }
    await expect(rowsOf(failing())).rejects.toBe(reason);
    let closed = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        yield stream.subarray(0, stream.length - 8);
        for (;;) yield stream.subarray(0, 0);
      } finally {
        closed = true;
      }
    }
    for await (const _ of (await readArrowIPC(endless())).batches) break;
    expect(closed).toBe(true);
  });

  test("no batches, and batches without rows", async () => {
    const empty = new arrow.Table(table.schema);
    const { schema, batches } = await readArrowIPC(arrow.tableToIPC(empty, "stream"));
    expect(schema.fields.map((field) => formatType(field.type))).toEqual(["int32", "string"]);
    for await (const _ of batches) expect.unreachable();
  });

  test("buffers compressed with zstd", async () => {
    const { compress, isLoaded } = await import("@foxglove/wasm-zstd");
    await isLoaded;
    arrow.compressionRegistry.set(arrow.CompressionType.ZSTD, { encode: (bytes) => Uint8Array.from(compress(bytes)) });
    const many = arrow.tableFromArrays({ a: Int32Array.from({ length: 1000 }, (_, i) => i % 3) });
    const writer = new arrow.RecordBatchStreamWriter({ compressionType: arrow.CompressionType.ZSTD });
    writer.writeAll(many);
    const bytes = writer.toUint8Array(true);
    expect(bytes.length).toBeLessThan(1000);
    expect((await rowsOf(bytes)).map((row) => row.a)).toEqual(Array.from({ length: 1000 }, (_, i) => i % 3));
  });
});

/** Written by pyarrow; see `fixtures/arrow/make.py`. */
describe("files of another implementation", () => {
  const fixture = (name: string): Uint8Array => readFileSync(new URL(`fixtures/arrow/${name}`, import.meta.url));

  async function jsonRows(name: string): Promise<Record<string, unknown>[]> {
    const { batches } = await readArrowIPC(chunked(fixture(name), [1000]));
    const rows: Record<string, unknown>[] = [];
    for await (const batch of batches) rows.push(...batchRows(batch, "json"));
    return rows;
  }

  test.each(["types.arrow", "types.arrows", "types-lz4.arrow", "types-zstd.arrows"])(
    "%s: every type that can be stored",
    async (name) => {
      expect(await jsonRows(name)).toEqual(JSON.parse(Buffer.from(fixture("types.json")).toString()));
    },
  );

  test("types.arrow has the types that are meant", async () => {
    const { schema, batches } = await readArrowIPC(fixture("types.arrow"));
    await batches[Symbol.asyncIterator]().return?.();
    const types = Object.fromEntries(schema.fields.map((field) => [field.name, formatType(field.type)]));
    expect(types).toEqual({
      b: "bool",
      i8: "int8",
      u32: "uint32",
      i64: "int64",
      u64: "uint64",
      f16: "float32",
      f32: "float32",
      f64: "float64",
      d32: "decimal(9,2)",
      d64: "decimal(18,4)",
      d128: "decimal(29,2)",
      d256: "decimal(38,2)",
      s: "string",
      ls: "string",
      sv: "string",
      bin: "binary",
      lbin: "binary",
      binv: "binary",
      fsb: "fixed(3)",
      uuid: "uuid",
      json: "json",
      date32: "date",
      date64: "date",
      t32s: "time",
      t32ms: "time",
      t64us: "time",
      t64ns: "time",
      ts_s: "timestamptz",
      ts_ms: "timestamptz",
      ts_us: "timestamp",
      ts_ns: "timestamp",
      l: "list<int64>",
      ll: "list<string>",
      fsl: "list<int8>",
      st: "struct<x: int32, y: list<string>>",
      m: "map<int32,string>",
      dict: "string",
      ldict: "list<string>",
      null: "unknown",
    });
  });

  test("a replaced dictionary and a delta", async () => {
    expect((await jsonRows("dictionaries.arrows")).map((row) => row.c)).toEqual(["n", "s", "e", "w", "e"]);
  });

  test("LZ4 with matches that overlap and reach back over blocks", async () => {
    const expected = Array.from({ length: 4000 }, (_, n) => ({ i: n % 7, s: `row ${n % 100}` }));
    expect(await jsonRows("repeated-lz4.arrows")).toEqual(expected);
  });

  test("a type below all numbers of the format is an error, though we use one for dictionaries", async () => {
    const bytes = Uint8Array.from(fixture("types-zstd.arrows"));
    bytes[1722]! ^= 240;
    await expect(rowsOf(bytes)).rejects.toMatchObject({ name: "InvalidInputError", code: "bad_arrow" });
  });

  test.each(["types.arrows", "types-lz4.arrow", "types-zstd.arrows", "dictionaries.arrows"])(
    "%s with damaged bytes: rows or one of our errors, soon",
    async (name) => {
      const bytes = fixture(name);
      const damage = fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }));
      await fc.assert(
        fc.asyncProperty(fc.array(damage, { minLength: 1, maxLength: 3 }), async (damages) => {
          const copy = Uint8Array.from(bytes);
          for (const [at, change] of damages) copy[at]! ^= change;
          try {
            await rowsOf(copy);
          } catch (error) {
            expect(["InvalidInputError", "SchemaError", "LimitError"], String(error)).toContain((error as Error).name);
          }
        }),
        { numRuns: 150 },
      );
    },
  );
});

describe("toArrowIPC", () => {
  test("is read by the Arrow library and by us, for all types and any number of batches", async () => {
    await fc.assert(
      fc.asyncProperty(generatedBatches(), fc.nat(), async ({ schema, rows }, cut) => {
        const batch = batchOf(assignFieldIds(schema), rows);
        const middle = cut % (rows.length + 1);
        const batches = [sliceBatch(batch, 0, middle), sliceBatch(batch, middle, rows.length)];
        const bytes = await collect(toArrowIPC(batch.schema, batches));
        expect(await rowsOf(bytes)).toEqual(rows.map((row) => exactRow(schema.fields, row)));
        const table = arrow.tableFromIPC(bytes);
        expect(table.numRows).toBe(rows.length);
        expect(table.schema.fields.map(String)).toEqual((await toArrowSchema(batch.schema)).fields.map(String));
      }),
      { numRuns: 60 },
    );
  });

  test("without batches: a schema and an end", async () => {
    const schema = { fields: [{ id: 1, name: "a", type: { kind: "int64" }, nullable: true }] } as const;
    const bytes = await collect(toArrowIPC(schema, []));
    expect(await rowsOf(bytes)).toEqual([]);
    expect(arrow.tableFromIPC(bytes).schema.fields.map(String)).toEqual(["a: Int64"]);
  });
});
