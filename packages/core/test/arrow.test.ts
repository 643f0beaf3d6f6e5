import * as arrow from "apache-arrow";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assignFieldIds,
  batchRows,
  formatType,
  fromArrow,
  isArrowLike,
  type RecordBatch,
  toArrow,
  toArrowSchema,
  toArrowTable,
} from "../src/index.js";
import { exactRow, generatedBatches } from "./arbitrary-batches.js";
import { batchOf } from "./column-builder.js";

type Props = Record<string, unknown>;

/** Data as other writers make it: any type, any buffers. */
function data(props: Props): arrow.Data {
  return arrow.makeData(props as never);
}

function tableOf(columns: Readonly<Record<string, arrow.Data>>, nullable = true): arrow.Table {
  const fields = Object.entries(columns).map(([name, { type }]) => new arrow.Field(name, type, nullable));
  const schema = new arrow.Schema(fields);
  const children = Object.values(columns);
  const struct = data({ type: new arrow.Struct(fields), length: children[0]!.length, nullCount: 0, children });
  return new arrow.Table(schema, [new arrow.RecordBatch(schema, struct as arrow.Data<arrow.Struct>)]);
}

function rowsOf(source: Parameters<typeof fromArrow>[0]): Record<string, unknown>[] {
  return [...fromArrow(source).batches].flatMap((batch) => batchRows(batch, "exact"));
}

/** The values of one column, and its type. */
function read(column: arrow.Data): { type: string; values: unknown[] } {
  const table = tableOf({ c: column });
  const { schema } = fromArrow(table);
  return { type: formatType(schema.fields[0]!.type), values: rowsOf(table).map((row) => row.c) };
}

const bits = (...values: number[]): Uint8Array => Uint8Array.of(values.reduce((byte, bit, i) => byte | (bit << i), 0));

describe("isArrowLike", () => {
  const table = tableOf({ a: data({ type: new arrow.Int32(), data: Int32Array.of(1) }) });

  test("goes by shape: tables and batches of any copy of the library, nothing else", () => {
    expect(isArrowLike(table)).toBe(true);
    expect(isArrowLike(table.batches[0])).toBe(true);
    const foreign = { schema: { fields: [{ name: "a", type: { typeId: 2 } }] }, batches: [], numRows: 0 };
    expect(isArrowLike(foreign)).toBe(true);
    for (const other of [
      null,
      1,
      "x",
      [],
      {},
      { schema: {} },
      { schema: { fields: [] } },
      { schema: { fields: [1] }, batches: [] },
    ]) {
      expect(isArrowLike(other)).toBe(false);
    }
    expect(isArrowLike(table.schema)).toBe(false);
    expect(isArrowLike(table.getChildAt(0))).toBe(false);
  });
});

describe("fromArrow", () => {
  test("integers of all widths, at their ends, and floats", () => {
    expect(read(data({ type: new arrow.Int8(), data: Int8Array.of(-128, 127) }))).toEqual({
      type: "int8",
      values: [-128, 127],
    });
    expect(read(data({ type: new arrow.Uint16(), data: Uint16Array.of(65_535) }))).toEqual({
      type: "uint16",
      values: [65_535],
    });
    expect(read(data({ type: new arrow.Int64(), data: BigInt64Array.of(-(2n ** 63n)) }))).toEqual({
      type: "int64",
      values: [-(2n ** 63n)],
    });
    expect(read(data({ type: new arrow.Uint64(), data: BigUint64Array.of(2n ** 64n - 1n) }))).toEqual({
      type: "uint64",
      values: [2n ** 64n - 1n],
    });
    // 1.5, −0, 2^-24 (the least subnormal), 65504 (the most), −∞, NaN
    const half = Uint16Array.of(0x3e00, 0x8000, 0x0001, 0x7bff, 0xfc00, 0x7e00);
    expect(read(data({ type: new arrow.Float16(), data: half }))).toEqual({
      type: "float32",
      values: [1.5, -0, 2 ** -24, 65_504, Number.NEGATIVE_INFINITY, Number.NaN],
    });
  });

  test("timestamps of all units become microseconds; garbage under nulls is not scaled", () => {
    const nullBitmap = bits(1, 0);
    const timestamp = (type: arrow.Timestamp, value: bigint): unknown =>
      read(data({ type, data: BigInt64Array.of(value, 2n ** 63n - 1n), nullBitmap, nullCount: 1 })).values;
    expect(timestamp(new arrow.TimestampSecond("UTC"), 1_930_000_000n)).toEqual(["2031-02-27T23:06:40.000000Z", null]);
    expect(timestamp(new arrow.TimestampMillisecond("Europe/Berlin"), 1_930_000_000_123n)).toEqual([
      "2031-02-27T23:06:40.123000Z",
      null,
    ]);
    expect(timestamp(new arrow.TimestampMicrosecond(), 1_930_000_000_123_456n)).toEqual([
      "2031-02-27T23:06:40.123456",
      null,
    ]);
    expect(timestamp(new arrow.TimestampNanosecond("UTC"), 1_930_000_000_123_456_789n)).toEqual([
      "2031-02-27T23:06:40.123456Z",
      null,
    ]);
    // Rounded down, not toward zero; beyond 2^53 milliseconds of seconds, exactly.
    expect(timestamp(new arrow.TimestampNanosecond("UTC"), -1n)).toEqual(["1969-12-31T23:59:59.999999Z", null]);
    expect(timestamp(new arrow.TimestampMillisecond("UTC"), 9_223_372_036_854_775n)).toEqual([
      "+294247-01-10T04:00:54.775000Z",
      null,
    ]);
  });

  test("nanoseconds are divided as integers", () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (value) => {
        const batch = [
          ...fromArrow(tableOf({ c: data({ type: new arrow.TimestampNanosecond(), data: BigInt64Array.of(value) }) }))
            .batches,
        ][0]!;
        expect((batch.columns[0]!.values as BigInt64Array)[0]).toBe(
          (value - (((value % 1000n) + 1000n) % 1000n)) / 1000n,
        );
      }),
    );
  });

  test("dates and times of all units", () => {
    expect(read(data({ type: new arrow.DateDay(), data: Int32Array.of(-1) }))).toEqual({
      type: "date",
      values: ["1969-12-31"],
    });
    expect(
      read(data({ type: new arrow.DateMillisecond(), data: BigInt64Array.of(-86_400_000n, 86_400_000n) })),
    ).toEqual({
      type: "date",
      values: ["1969-12-31", "1970-01-02"],
    });
    expect(read(data({ type: new arrow.TimeSecond(), data: Int32Array.of(86_399) })).values).toEqual([
      "23:59:59.000000",
    ]);
    expect(read(data({ type: new arrow.TimeMillisecond(), data: Int32Array.of(1) })).values).toEqual([
      "00:00:00.001000",
    ]);
    expect(read(data({ type: new arrow.TimeMicrosecond(), data: BigInt64Array.of(86_399_999_999n) })).values).toEqual([
      "23:59:59.999999",
    ]);
    expect(read(data({ type: new arrow.TimeNanosecond(), data: BigInt64Array.of(1_999n) })).values).toEqual([
      "00:00:00.000001",
    ]);
  });

  test.each([
    ["a time of 24 hours", data({ type: new arrow.TimeSecond(), data: Int32Array.of(0, 86_400) }), "value 2"],
    ["a negative time", data({ type: new arrow.TimeNanosecond(), data: BigInt64Array.of(-1n) }), "a time of day"],
    [
      "seconds beyond 64 bits of microseconds",
      data({ type: new arrow.TimestampSecond(), data: BigInt64Array.of(2n ** 62n) }),
      "microseconds",
    ],
    [
      "a day beyond 32 bits",
      data({ type: new arrow.DateMillisecond(), data: BigInt64Array.of(2n ** 62n) }),
      "32-bit day",
    ],
    [
      "a decimal beyond its precision",
      data({ type: new arrow.Decimal(2, 4, 128), data: Uint32Array.of(10_000, 0, 0, 0) }),
      "its precision",
    ],
    [
      "a decimal beyond 128 bits",
      data({ type: new arrow.Decimal(0, 38, 256), data: Uint32Array.of(0, 0, 0, 0, 1, 0, 0, 0) }),
      "its precision",
    ],
    [
      "a 256-bit decimal whose low half has another sign",
      data({ type: new arrow.Decimal(0, 38, 256), data: Uint32Array.of(0, 0, 0, 0x80000000, 0, 0, 0, 0) }),
      "its precision",
    ],
  ])("%s is an error, never wrapped", (_, column, message) => {
    expect(() => read(column)).toThrow(
      expect.objectContaining({
        name: "InvalidInputError",
        code: "out_of_range",
        message: expect.stringContaining(message),
      }),
    );
  });

  test("decimals of 32, 64, 128 and 256 bits, with their sign", () => {
    const decimal = (scale: number, precision: number, width: number, ...words: number[]): unknown =>
      read(data({ type: new arrow.Decimal(scale, precision, width), data: Uint32Array.from(words), length: 1 }));
    const negative = -7005 >>> 0;
    const ones = 0xffffffff;
    expect(decimal(2, 9, 32, negative)).toEqual({ type: "decimal(9,2)", values: ["-70.05"] });
    expect(decimal(2, 18, 64, negative, ones)).toEqual({ type: "decimal(18,2)", values: ["-70.05"] });
    expect(decimal(2, 29, 128, negative, ones, ones, ones)).toEqual({ type: "decimal(29,2)", values: ["-70.05"] });
    expect(decimal(2, 38, 256, negative, ones, ones, ones, ones, ones, ones, ones)).toEqual({
      type: "decimal(38,2)",
      values: ["-70.05"],
    });
    // 12345678901234567890123456789 = 0x27E41B3246BEC9B16E398115
    expect(decimal(2, 29, 128, 0x6e398115, 0x46bec9b1, 0x27e41b32, 0)).toEqual({
      type: "decimal(29,2)",
      values: ["123456789012345678901234567.89"],
    });
  });

  test("text and binary with 32-bit and 64-bit offsets, and views", () => {
    const values = Buffer.from("xxabécd");
    for (const [type, offsets] of [
      [new arrow.Utf8(), Int32Array.of(2, 3, 3, 6, 8)],
      [new arrow.LargeUtf8(), BigInt64Array.of(2n, 3n, 3n, 6n, 8n)],
    ] as const) {
      // Not from 0, and with bytes under a null.
      expect(
        read(data({ type, valueOffsets: offsets, data: values, nullBitmap: bits(1, 1, 1, 0), nullCount: 1 })),
      ).toEqual({
        type: "string",
        values: ["a", "", "bé", null],
      });
    }
    expect(
      read(
        data({ type: new arrow.LargeBinary(), valueOffsets: BigInt64Array.of(0n, 2n), data: Uint8Array.of(1, 255) }),
      ),
    ).toEqual({
      type: "binary",
      values: [Uint8Array.of(1, 255)],
    });
    const views = arrow.vectorFromArray(
      ["short", null, "longer than twelve bytes, so out of line", "ñ"],
      new arrow.Utf8View(),
    );
    expect(read(views.data[0]!)).toEqual({
      type: "string",
      values: ["short", null, "longer than twelve bytes, so out of line", "ñ"],
    });
    const sliced = views.slice(1, 4).data[0]!;
    expect(read(sliced).values).toEqual([null, "longer than twelve bytes, so out of line", "ñ"]);
  });

  test.each([
    ["a lone byte", [0xff]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["an overlong form", [0xc0, 0xaf]],
    ["beyond U+10FFFF", [0xf4, 0x90, 0x80, 0x80]],
    ["a cut character", [0xe2, 0x82]],
  ])("text that is not UTF-8 is an error: %s", (_, bytes) => {
    const column = data({
      type: new arrow.Utf8(),
      valueOffsets: Int32Array.of(0, 1, 1 + bytes.length),
      data: Uint8Array.of(0x61, ...bytes),
    });
    expect(() => read(column)).toThrow(
      expect.objectContaining({ code: "bad_encoding", message: expect.stringContaining("value 2") }),
    );
  });

  test("bytes under a null need not be text", () => {
    const column = data({
      type: new arrow.Utf8(),
      valueOffsets: Int32Array.of(0, 1, 2),
      data: Uint8Array.of(0xff, 0x61),
      nullBitmap: bits(0, 1),
      nullCount: 1,
    });
    expect(read(column).values).toEqual([null, "a"]);
  });

  test("offsets that cut a character in two are an error, though the bytes together are UTF-8", () => {
    const column = data({
      type: new arrow.Utf8(),
      valueOffsets: Int32Array.of(0, 1, 2),
      data: Uint8Array.of(0xc3, 0xb1),
    });
    expect(() => read(column)).toThrow(expect.objectContaining({ code: "bad_encoding" }));
  });

  test("sliced vectors whose bitmaps begin within a byte", () => {
    const bools = arrow.vectorFromArray(
      [true, null, false, true, null, true, false, null, true, true, false],
      new arrow.Bool(),
    );
    expect(read(bools.slice(3, 11).data[0]!).values).toEqual([true, null, true, false, null, true, true, false]);
    const structs = arrow.vectorFromArray(
      Array.from({ length: 11 }, (_, i) => (i % 3 === 0 ? null : { n: BigInt(i), t: `t${i}` })),
      new arrow.Struct([
        new arrow.Field("n", new arrow.Int64(), true),
        new arrow.Field("t", new arrow.Utf8(), true),
      ]) as arrow.Struct,
    );
    expect(read(structs.slice(2, 7).data[0]!).values).toEqual([
      { n: 2n, t: "t2" },
      null,
      { n: 4n, t: "t4" },
      { n: 5n, t: "t5" },
      null,
    ]);
  });

  test("a null struct's children are null, whatever lies there", () => {
    const children = [data({ type: new arrow.Int32(), data: Int32Array.of(1, 2) })];
    const type = new arrow.Struct([new arrow.Field("n", new arrow.Int32(), true)]);
    const column = data({ type, length: 2, nullCount: 1, nullBitmap: bits(0, 1), children });
    const [batch] = fromArrow(tableOf({ c: column })).batches;
    expect(batch!.columns[0]!.children[0]!.nullCount).toBe(1);
    expect(read(column).values).toEqual([null, { n: 2 }]);
  });

  test("lists of 32-bit, 64-bit and fixed size, null ones and empty ones", () => {
    const child = data({ type: new arrow.Int32(), data: Int32Array.of(1, 2, 3, 4, 5, 6) });
    const element = new arrow.Field("item", new arrow.Int32(), true);
    const nullBitmap = bits(1, 0, 1, 1);
    // The second list has elements under its null.
    for (const [type, valueOffsets] of [
      [new arrow.List(element), Int32Array.of(1, 2, 4, 4, 6)],
      [new arrow.LargeList(element), BigInt64Array.of(1n, 2n, 4n, 4n, 6n)],
    ] as const) {
      expect(read(data({ type, valueOffsets, child, nullBitmap, nullCount: 1 }))).toEqual({
        type: "list<int32>",
        values: [[2], null, [], [5, 6]],
      });
    }
    const fixed = data({
      type: new arrow.FixedSizeList(2, element),
      length: 3,
      child,
      nullBitmap: bits(1, 0, 1),
      nullCount: 1,
    });
    expect(read(fixed)).toEqual({ type: "list<int32>", values: [[1, 2], null, [5, 6]] });
    expect(read(fixed.slice(1, 2)).values).toEqual([null, [5, 6]]);
  });

  test("maps", () => {
    const type = new arrow.Map_(
      new arrow.Field(
        "entries",
        new arrow.Struct([
          new arrow.Field("key", new arrow.Utf8(), false),
          new arrow.Field("value", new arrow.Int64(), true),
        ]) as never,
        false,
      ),
    );
    const maps = arrow.vectorFromArray(
      [
        new Map([
          ["a", 1n],
          ["__proto__", 2n],
        ]),
        null,
        new Map(),
      ],
      type as never,
    );
    expect(read(maps.data[0]!)).toEqual({
      type: "map<string,int64>",
      values: [
        new Map([
          ["a", 1n],
          ["__proto__", 2n],
        ]),
        null,
        new Map(),
      ],
    });
  });

  test("dictionaries are their values, with nulls in the indices and in the dictionary", () => {
    const dictionary = arrow.vectorFromArray(["n", null, "s"], new arrow.Utf8());
    for (const [indices, values] of [
      [new arrow.Int8(), Int8Array.of(2, 0, 1, 0)],
      [new arrow.Uint16(), Uint16Array.of(2, 0, 1, 0)],
      [new arrow.Int64(), BigInt64Array.of(2n, 0n, 1n, 0n)],
    ] as const) {
      const type = new arrow.Dictionary(new arrow.Utf8(), indices as unknown as arrow.Int32, 7);
      const column = data({ type, data: values, dictionary, nullBitmap: bits(1, 1, 1, 0), nullCount: 1 });
      expect(read(column)).toEqual({ type: "string", values: ["s", "n", null, null] });
    }
    const type = new arrow.Dictionary(new arrow.Utf8(), new arrow.Int32(), 8);
    for (const index of [3, -1]) {
      const column = data({ type, data: Int32Array.of(index), dictionary });
      expect(() => read(column)).toThrow(expect.objectContaining({ code: "bad_arrow" }));
    }
  });

  test("columns of nulls have no type yet and are not in the batches", () => {
    const table = tableOf({
      n: data({ type: new arrow.Null(), length: 2 }),
      a: data({ type: new arrow.Int32(), data: Int32Array.of(1, 2) }),
    });
    const { schema, batches } = fromArrow(table);
    expect(schema.fields.map((field) => field.type.kind)).toEqual(["unknown", "int32"]);
    expect([...batches].map((batch) => batch.schema.fields.map((field) => field.name))).toEqual([["a"]]);
  });

  test.each([
    ["interval", new arrow.IntervalDayTime(), "months, days or microseconds"],
    ["duration", new arrow.DurationSecond(), "int64"],
    ["union", new arrow.SparseUnion([0], [new arrow.Field("a", new arrow.Int32())]), "struct"],
    ["decimal of 39 digits", new arrow.Decimal(0, 39, 256), "decimal(38,s)"],
    ["decimal(5,-2)", new arrow.Decimal(-2, 5, 128), "scale"],
  ])("%s is refused with advice", (what, type, advice) => {
    const nested = new arrow.Struct([new arrow.Field("x", type, true)]);
    const schema = new arrow.Schema([new arrow.Field("c", nested, true)]);
    expect(() => fromArrow(new arrow.Table(schema))).toThrow(
      expect.objectContaining({
        code: "unsupported_type",
        message: expect.stringMatching(
          new RegExp(`"c"\\."x".*${what.replace(/[()]/g, ".")}.*${advice.replace(/[()]/g, ".")}`),
        ),
      }),
    );
  });

  test.each([
    ["too few values", data({ type: new arrow.Int32(), data: Int32Array.of(1), length: 2 })],
    ["too few bits", data({ type: new arrow.Bool(), data: Uint8Array.of(1), length: 9 })],
    [
      "too few validity bits",
      data({ type: new arrow.Int8(), data: new Int8Array(9), nullBitmap: Uint8Array.of(0), nullCount: 9 }),
    ],
    [
      "too few offsets",
      data({ type: new arrow.Utf8(), valueOffsets: Int32Array.of(0), data: new Uint8Array(4), length: 2 }),
    ],
    [
      "offsets beyond the bytes",
      data({ type: new arrow.Utf8(), valueOffsets: Int32Array.of(0, 9), data: new Uint8Array(4) }),
    ],
    [
      "offsets backwards",
      data({ type: new arrow.Binary(), valueOffsets: Int32Array.of(0, 3, 1), data: new Uint8Array(4) }),
    ],
    [
      "negative offsets",
      data({ type: new arrow.Binary(), valueOffsets: Int32Array.of(-2, 1), data: new Uint8Array(4) }),
    ],
  ])("damaged buffers are an error: %s", (_, column) => {
    expect(() => read(column)).toThrow(expect.objectContaining({ name: "InvalidInputError", code: "bad_arrow" }));
  });

  test("a column shorter than its batch", () => {
    const table = tableOf({ a: data({ type: new arrow.Int32(), data: Int32Array.of(1, 2) }) });
    const batch = table.batches[0]!;
    const broken = { schema: batch.schema, numRows: 3, data: batch.data } as unknown as arrow.RecordBatch;
    expect(() => rowsOf(broken)).toThrow(expect.objectContaining({ code: "bad_arrow" }));
  });

  test("names as they are; the empty one becomes _empty", () => {
    const one = data({ type: new arrow.Int8(), data: Int8Array.of(1) });
    const names = ["a.b", "k k", "é", "e\u0301", 'q"q', "__proto__", "constructor", ""];
    const table = tableOf(Object.fromEntries(names.map((name) => [name, one])));
    expect(fromArrow(table).schema.fields.map((field) => field.name)).toEqual([...names.slice(0, -1), "_empty"]);
    expect(Object.keys(rowsOf(table)[0]!)).toEqual([...names.slice(0, -1), "_empty"]);
  });
});

describe("toArrow", () => {
  test("and back is the same, for all types", async () => {
    await fc.assert(
      fc.asyncProperty(generatedBatches(), async ({ schema, rows }) => {
        const batch = batchOf(assignFieldIds(schema), rows);
        const table = await toArrowTable([batch], batch.schema);
        expect(rowsOf(table)).toEqual(rows.map((row) => exactRow(schema.fields, row)));
        const types = (of: RecordBatch["schema"]): string[] => of.fields.map((field) => formatType(field.type));
        expect(types(fromArrow(table).schema)).toEqual(types(schema));
      }),
    );
  });

  test("Arrow's own getters see the values", async () => {
    const schema = {
      fields: [
        { id: 1, name: "i", type: { kind: "int64" }, nullable: true },
        { id: 2, name: "s", type: { kind: "string" }, nullable: true },
        { id: 3, name: "d", type: { kind: "decimal", precision: 9, scale: 2 }, nullable: true },
        { id: 4, name: "t", type: { kind: "timestamptz" }, nullable: true },
        { id: 5, name: "b", type: { kind: "bool" }, nullable: true },
        {
          id: 6,
          name: "l",
          type: { kind: "list", element: { id: 7, name: "element", type: { kind: "float64" }, nullable: true } },
          nullable: true,
        },
        { id: 8, name: "f", type: { kind: "fixed", size: 2 }, nullable: true },
      ],
    } as const;
    const batch = await toArrow(
      batchOf(schema, [
        { i: 2n ** 62n, s: "ñ", d: -7005n, t: 1_930_000_000_123_000n, b: true, l: [1.5, null], f: Uint8Array.of(1, 2) },
        { i: null, s: null, d: null, t: null, b: null, l: null, f: null },
      ]),
    );
    const [first, second] = batch.toArray();
    expect(first!.i).toBe(2n ** 62n);
    expect(first!.s).toBe("ñ");
    expect(String(first!.d)).toBe("-7005");
    expect(first!.t).toBe(1_930_000_000_123);
    expect(first!.b).toBe(true);
    expect([...first!.l]).toEqual([1.5, null]);
    expect([...first!.f]).toEqual([1, 2]);
    expect(Object.values(second!.toJSON())).toEqual([null, null, null, null, null, null, null]);
  });

  test("copies no values", async () => {
    const batch = batchOf({ fields: [{ id: 1, name: "a", type: { kind: "float64" }, nullable: true }] }, [{ a: 1 }]);
    const { data: struct } = await toArrow(batch);
    expect(struct.children[0]!.values.buffer).toBe(batch.columns[0]!.values!.buffer);
  });

  test("field ids, extension types and zones are in the schema", async () => {
    const schema = await toArrowSchema({
      fields: [
        { id: 4, name: "u", type: { kind: "uuid" }, nullable: false },
        { id: 5, name: "j", type: { kind: "json" }, nullable: true },
        { id: 6, name: "t", type: { kind: "timestamptz" }, nullable: true },
        { id: 7, name: "n", type: { kind: "unknown" }, nullable: true },
      ],
    });
    expect(schema.fields.map((field) => [field.name, String(field.type), field.nullable])).toEqual([
      ["u", "FixedSizeBinary[16]", false],
      ["j", "Utf8", true],
      ["t", "Timestamp<MICROSECOND, UTC>", true],
      ["n", "Null", true],
    ]);
    expect(Object.fromEntries(schema.fields[0]!.metadata)).toEqual({
      "PARQUET:field_id": "4",
      "ARROW:extension:name": "arrow.uuid",
      "ARROW:extension:metadata": "",
    });
    expect(schema.fields[1]!.metadata.get("ARROW:extension:name")).toBe("arrow.json");
  });
});
