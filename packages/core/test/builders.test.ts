import { describe, expect, test } from "vitest";
import {
  type BoolBuilder,
  type BytesBuilder,
  createBuilder,
  type DecimalBuilder,
  type Int64Builder,
  type ListBuilder,
  type NumberBuilder,
  type StructBuilder,
} from "../src/builders.js";
import { type Field, parseType } from "../src/schema.js";

function field(type: string): Field {
  return { id: 1, name: "f", type: parseType(type), nullable: true };
}

describe("builders", () => {
  test("integers of 64 bits are written as halves", () => {
    const builder = createBuilder(field("int64")) as Int64Builder;
    builder.append(-1, -1);
    builder.appendNumber(-(2 ** 53 - 1));
    builder.appendNumber(2 ** 32);
    builder.appendBigInt(-(2n ** 63n));
    builder.appendBigInt(9007199254740993n);
    builder.appendNull();
    const column = builder.finish();
    expect(column.values).toEqual(
      BigInt64Array.of(-1n, -9007199254740991n, 4294967296n, -9223372036854775808n, 9007199254740993n, 0n),
    );
    expect(column).toMatchObject({ length: 6, nullCount: 1, validity: Uint8Array.of(0b011111), offsets: undefined });
  });

  test("uint64 beyond 2^63", () => {
    const builder = createBuilder(field("uint64")) as Int64Builder;
    builder.appendBigInt(18446744073709551615n);
    expect(builder.finish().values).toEqual(BigUint64Array.of(18446744073709551615n));
  });

  test("decimals are 16 bytes, two's complement, little-endian", () => {
    const builder = createBuilder(field("decimal(10,2)")) as DecimalBuilder;
    builder.append(-2, -1, -1, -1);
    expect(builder.finish().values).toEqual(Uint8Array.from([0xfe, ...new Array<number>(15).fill(0xff)]));
  });

  test("truncate takes back nulls, bits and bytes", () => {
    const bools = createBuilder(field("bool")) as BoolBuilder;
    for (const value of [true, false, true]) bools.append(value);
    bools.appendNull();
    bools.append(true);
    bools.truncate(2);
    bools.append(false);
    const column = bools.finish();
    expect(column).toMatchObject({ length: 3, nullCount: 0, validity: undefined, values: Uint8Array.of(0b001) });

    const strings = createBuilder(field("string")) as BytesBuilder;
    const bytes = Uint8Array.from([97, 98, 99]);
    strings.append(bytes, 0, 2);
    strings.append(bytes, 0, 3);
    strings.appendNull();
    strings.truncate(1);
    strings.append(bytes, 2, 3);
    expect(strings.finish()).toMatchObject({
      length: 2,
      nullCount: 0,
      values: Uint8Array.from([97, 98, 99]),
      offsets: Int32Array.of(0, 2, 3),
    });
  });

  test("nulls before and after a truncated row of many keep their bits", () => {
    const builder = createBuilder(field("int8")) as NumberBuilder;
    for (let i = 0; i < 100; i++) {
      if (i % 3 === 0) builder.appendNull();
      else builder.append(i);
    }
    builder.truncate(50);
    for (let i = 0; i < 14; i++) builder.append(7);
    builder.appendNull();
    const { validity, nullCount } = builder.finish();
    const valid = Array.from({ length: 65 }, (_, i) => ((validity![i >> 3]! >> (i & 7)) & 1) === 1);
    expect(valid).toEqual(Array.from({ length: 65 }, (_, i) => (i < 50 ? i % 3 !== 0 : i < 64)));
    expect(nullCount).toBe(18);
  });

  test("a null struct is null in its children; a half-filled one is taken back at every depth", () => {
    const builder = createBuilder(field("struct<a: int64, l: list<struct<x: int64, y: string>>>")) as StructBuilder;
    const [a, l] = builder.children as [Int64Builder, ListBuilder];
    const element = l.element as StructBuilder;
    const x = element.children[0] as Int64Builder;
    builder.appendNull();
    a.appendNumber(1);
    x.appendNumber(5);
    expect(element.fill()).toBe(-1);
    element.append();
    l.append();
    builder.append();
    // A row that fails inside its second element.
    a.appendNumber(2);
    x.appendNumber(6);
    expect(element.fill()).toBe(-1);
    element.append();
    x.appendNumber(7);
    builder.truncate(2);
    builder.appendNull();
    const column = builder.finish();
    expect(column).toMatchObject({ length: 3, nullCount: 2, validity: Uint8Array.of(0b010) });
    expect(column.children[0]).toMatchObject({ length: 3, nullCount: 2, values: BigInt64Array.of(0n, 1n, 0n) });
    const list = column.children[1]!;
    expect(list).toMatchObject({ length: 3, nullCount: 2, offsets: Int32Array.of(0, 0, 1, 1) });
    expect(list.children[0]).toMatchObject({ length: 1, nullCount: 0 });
    expect(list.children[0]!.children[0]).toMatchObject({ length: 1, values: BigInt64Array.of(5n) });
    expect(list.children[0]!.children[1]).toMatchObject({ length: 1, nullCount: 1 });
  });

  test("fill names the child that may not be null", () => {
    const builder = createBuilder(field("struct<a: int64, b!: int64>")) as StructBuilder;
    expect(builder.fill()).toBe(1);
  });

  test("a finished column does not share memory with the next one", () => {
    const builder = createBuilder(field("list<string>")) as ListBuilder;
    const strings = builder.element as BytesBuilder;
    const bytes = Uint8Array.from([97, 98]);
    strings.append(bytes, 0, 1);
    builder.append();
    builder.appendNull();
    const first = builder.finish();
    expect(builder.length).toBe(0);
    strings.append(bytes, 1, 2);
    strings.appendNull();
    builder.append();
    const second = builder.finish();
    expect(first.offsets).toEqual(Int32Array.of(0, 1, 1));
    expect(first.validity).toEqual(Uint8Array.of(0b01));
    expect(first.children[0]!.values).toEqual(Uint8Array.of(97));
    expect(second.offsets).toEqual(Int32Array.of(0, 2));
    expect(second.nullCount).toBe(0);
    expect(second.children[0]).toMatchObject({ nullCount: 1, values: Uint8Array.of(98) });
  });

  test("unknown parts are not stored", () => {
    const builder = createBuilder(field("struct<a: unknown, b: bool, c: list<unknown>>")) as StructBuilder;
    (builder.children[1] as BoolBuilder).append(true);
    expect(builder.fill()).toBe(-1);
    builder.append();
    const column = builder.finish();
    expect(column.children).toHaveLength(1);
    expect(column.type).toEqual({
      kind: "struct",
      fields: [{ id: 0, name: "b", type: { kind: "bool" }, nullable: true }],
    });
  });
});
