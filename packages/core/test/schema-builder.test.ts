import { describe, expect, expectTypeOf, it } from "vitest";
import {
  assignFieldIds,
  batchRows,
  createRowParser,
  formatType,
  parseType,
  type ResultRow,
  type Row,
  schema,
  t,
  toSchema,
} from "../src/index.js";

const events = schema({
  id: t.int64().required(),
  tags: t.list(t.string()),
  price: t.decimal(10, 2),
  shop: t.struct({ name: t.string().required(), open: t.bool() }).required(),
  stock: t.map(t.string(), t.int32().required()),
});

describe("a schema from the builder", () => {
  it.each([
    ["text", "int64"],
    ["nothing", undefined],
    ["null", null],
    ["a type", { kind: "int64" }],
  ])("refuses %s in place of a column, anywhere", (_, column) => {
    const any = column as never;
    for (const make of [
      () => schema({ a: any }),
      () => t.list(any),
      () => t.map(t.string(), any),
      () => t.struct({ a: any }),
    ]) {
      expect(make).toThrow(expect.objectContaining({ name: "SchemaError", code: "bad_schema" }));
    }
  });

  it("is a plain schema, with nothing of the types in it", () => {
    expect(events).toEqual({
      fields: [
        { id: 0, name: "id", type: { kind: "int64" }, nullable: false },
        {
          id: 0,
          name: "tags",
          type: { kind: "list", element: { id: 0, name: "element", type: { kind: "string" }, nullable: true } },
          nullable: true,
        },
        { id: 0, name: "price", type: { kind: "decimal", precision: 10, scale: 2 }, nullable: true },
        {
          id: 0,
          name: "shop",
          type: {
            kind: "struct",
            fields: [
              { id: 0, name: "name", type: { kind: "string" }, nullable: false },
              { id: 0, name: "open", type: { kind: "bool" }, nullable: true },
            ],
          },
          nullable: false,
        },
        {
          id: 0,
          name: "stock",
          type: {
            kind: "map",
            key: { id: 0, name: "key", type: { kind: "string" }, nullable: false },
            value: { id: 0, name: "value", type: { kind: "int32" }, nullable: false },
          },
          nullable: true,
        },
      ],
    });
    expect(Object.keys(events)).toEqual(["fields"]);
  });

  it("is the one that the text form makes, for each type", () => {
    const simple = {
      bool: t.bool(),
      int8: t.int8(),
      int16: t.int16(),
      int32: t.int32(),
      int64: t.int64(),
      uint8: t.uint8(),
      uint16: t.uint16(),
      uint32: t.uint32(),
      uint64: t.uint64(),
      float32: t.float32(),
      float64: t.float64(),
      string: t.string(),
      binary: t.binary(),
      date: t.date(),
      time: t.time(),
      timestamp: t.timestamp(),
      timestamptz: t.timestamptz(),
      uuid: t.uuid(),
      json: t.json(),
    };
    expect(schema(simple)).toEqual(toSchema(Object.fromEntries(Object.keys(simple).map((kind) => [kind, kind]))));
    expect(schema({ a: t.fixed(4), b: t.list(t.list(t.int8().required())) })).toEqual(
      toSchema({ a: "fixed(4)", b: "list<list<int8!>>" }),
    );
    expect(schema({ a: t.map(t.int64(), t.struct({ "b c": t.date().required() })) })).toEqual(
      toSchema({ a: 'map<int64, struct<"b c"!: date>>' }),
    );
  });

  it("refuses what no column can be", () => {
    expect(() => t.decimal(39, 0)).toThrow(expect.objectContaining({ name: "SchemaError", code: "bad_type" }));
    expect(() => t.decimal(4, 5)).toThrow(expect.objectContaining({ code: "bad_type" }));
    expect(() => t.decimal(1.5, 0)).toThrow(expect.objectContaining({ code: "bad_type" }));
    expect(() => t.fixed(0)).toThrow(expect.objectContaining({ code: "bad_type" }));
    expect(() => schema({ a: t.bool(), A: t.bool() })).toThrow(expect.objectContaining({ code: "duplicate_field" }));
    expect(() => schema({ s: t.struct({ "": t.bool() }) })).toThrow(expect.objectContaining({ code: "bad_name" }));
    expect(() => schema({ "\ud800": t.bool() })).toThrow(expect.objectContaining({ code: "bad_name" }));
  });

  it("takes __proto__ and constructor as names", () => {
    const odd = schema({ ["__proto__"]: t.int8(), constructor: t.int8() });
    expect(odd.fields.map(({ name }) => name)).toEqual(["__proto__", "constructor"]);
  });
});

describe("row types", () => {
  it("say what may be appended", () => {
    expectTypeOf<Row<typeof events>>().toEqualTypeOf<{
      readonly id: number | bigint;
      readonly shop: { readonly name: string; readonly open?: boolean | null | undefined };
      readonly tags?: readonly (string | null | undefined)[] | null | undefined;
      readonly price?: string | number | bigint | null | undefined;
      readonly stock?:
        | ReadonlyMap<string, number | bigint>
        | Readonly<Record<string, number | bigint>>
        | null
        | undefined;
    }>();
    const vectors = schema({ v: t.list(t.float32()).required(), j: t.json<{ a: 1 }>().required(), x: t.json() });
    expectTypeOf<Float32Array>().toExtend<Row<typeof vectors>["v"]>();
    expectTypeOf<BigInt64Array>().toExtend<Row<typeof vectors>["v"]>();
    expectTypeOf<Row<typeof vectors>["j"]>().toEqualTypeOf<{ a: 1 }>();
    expectTypeOf<Row<typeof vectors>["x"]>().toEqualTypeOf<unknown>();
    // A Map's keys may be of any type, an object's are text.
    const numbered = schema({ m: t.map(t.int64(), t.bool()).required() });
    expectTypeOf<Row<typeof numbered>["m"]>().toEqualTypeOf<ReadonlyMap<number | bigint, boolean | null | undefined>>();
  });

  it("say what a query returns", () => {
    expectTypeOf<ResultRow<typeof events>>().toEqualTypeOf<{
      id: bigint;
      tags: (string | null)[] | null;
      price: string | null;
      shop: { name: string; open: boolean | null };
      stock: Map<string, number> | null;
    }>();
  });

  it("are what the parser takes and what values: exact gives, for each type", () => {
    const all = schema({
      bool: t.bool().required(),
      int8: t.int8().required(),
      int16: t.int16().required(),
      int32: t.int32().required(),
      int64: t.int64().required(),
      uint8: t.uint8().required(),
      uint16: t.uint16().required(),
      uint32: t.uint32().required(),
      uint64: t.uint64().required(),
      float32: t.float32().required(),
      float64: t.float64().required(),
      decimal: t.decimal(6, 3).required(),
      string: t.string().required(),
      binary: t.binary().required(),
      fixed: t.fixed(2).required(),
      date: t.date().required(),
      time: t.time().required(),
      timestamp: t.timestamp().required(),
      timestamptz: t.timestamptz().required(),
      uuid: t.uuid().required(),
      json: t.json().required(),
      list: t.list(t.int64()).required(),
      map: t.map(t.string(), t.bool()).required(),
      struct: t.struct({ a: t.date(), b: t.string() }).required(),
    });
    const one: Row<typeof all> = {
      bool: true,
      int8: -1,
      int16: 2n,
      int32: 3,
      int64: 4,
      uint8: 5,
      uint16: 6,
      uint32: 7,
      uint64: 2n ** 64n - 1n,
      float32: 0.5,
      float64: 1n,
      decimal: 1.25,
      string: "s",
      binary: "AQI=",
      fixed: new Uint8Array([3, 4]).buffer,
      date: "2026-02-01",
      time: "10:11:12.5",
      timestamp: "2026-02-01T10:11:12",
      timestamptz: new Date("2026-02-01T10:11:12.345Z"),
      uuid: "00000000-0000-4000-8000-00000000000A",
      json: { a: [1n, null] },
      list: new BigInt64Array([1n, 2n]),
      map: { a: true, b: null },
      struct: { b: "x" },
    };
    const expected: ResultRow<typeof all> = {
      bool: true,
      int8: -1,
      int16: 2,
      int32: 3,
      int64: 4n,
      uint8: 5,
      uint16: 6,
      uint32: 7,
      uint64: 18446744073709551615n,
      float32: 0.5,
      float64: 1,
      decimal: "1.250",
      string: "s",
      binary: new Uint8Array([1, 2]),
      fixed: new Uint8Array([3, 4]),
      date: "2026-02-01",
      time: "10:11:12.500000",
      timestamp: "2026-02-01T10:11:12.000000",
      timestamptz: "2026-02-01T10:11:12.345000Z",
      uuid: "00000000-0000-4000-8000-00000000000a",
      json: '{"a":[1,null]}',
      list: [1n, 2n],
      map: new Map<string, boolean | null>([
        ["a", true],
        ["b", null],
      ]),
      struct: { a: null, b: "x" },
    };
    const parser = createRowParser({
      schema: assignFieldIds(all),
      unknownFields: "reject",
      valueMisfits: "reject",
    });
    const others: Partial<Row<typeof all>>[] = [
      { binary: new Uint8Array([1, 2]), fixed: "AwQ=", timestamptz: "2026-02-01T11:11:12.345+01:00" },
      { decimal: "1.25", list: [1, 2n], map: new Map<string, boolean | null>(Object.entries({ a: true, b: null })) },
      { binary: new DataView(new Uint8Array([1, 2]).buffer), list: new Int32Array([1, 2]) },
    ];
    parser.push([one, ...others.map((other) => ({ ...one, ...other }))]);
    parser.end();
    expect(parser.rejects).toEqual([]);
    expect(batchRows(parser.take()!, "exact")).toEqual(Array.from({ length: 4 }, () => expected));
  });
});

describe("the text form of types", () => {
  it("says which elements and values are never null", () => {
    for (const text of ["list<int64!>", "map<string,list<bool!>!>", "list<struct<a!: int8>!>"]) {
      expect(formatType(parseType(text))).toBe(text);
    }
    expect(parseType(" list < int64 ! > ")).toEqual(parseType("list<int64!>"));
  });

  it("ends hostile text with our error", () => {
    for (const text of [`${"list<".repeat(100_000)}int8`, 'struct<"\\x": int8>', "struct<a: int8", "int64!", ""]) {
      expect(() => parseType(text)).toThrow(expect.objectContaining({ name: "SchemaError", code: "bad_type" }));
    }
  });
});
