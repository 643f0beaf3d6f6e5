/** Thrift's compact protocol, as much of it as Parquet's footers, page headers and page indexes need. */

import { InvalidInputError } from "./errors.js";
import { ByteBuffer } from "./parquet-buffer.js";

/** Compact protocol type ids. */
export const ThriftType = {
  stop: 0,
  true: 1,
  false: 2,
  byte: 3,
  i16: 4,
  i32: 5,
  i64: 6,
  double: 7,
  binary: 8,
  list: 9,
  set: 10,
  map: 11,
  struct: 12,
  uuid: 13,
} as const;

const utf8 = new TextEncoder();

/** Writes structs field by field, ids ascending. `begin`/`end` nest; every top-level struct ends with `end` too. */
export class ThriftWriter {
  readonly out: ByteBuffer;
  #last = 0;
  readonly #stack: number[] = [];

  constructor(out: ByteBuffer = new ByteBuffer(1024)) {
    this.out = out;
  }

  /** Starts a struct that is not a field: the whole message, or an element of a list. */
  begin(): void {
    this.#stack.push(this.#last);
    this.#last = 0;
  }

  end(): void {
    this.out.byte(ThriftType.stop);
    this.#last = this.#stack.pop() ?? 0;
  }

  struct(id: number): void {
    this.#field(id, ThriftType.struct);
    this.begin();
  }

  bool(id: number, value: boolean): void {
    this.#field(id, value ? ThriftType.true : ThriftType.false);
  }

  i8(id: number, value: number): void {
    this.#field(id, ThriftType.byte);
    this.out.byte(value & 0xff);
  }

  i16(id: number, value: number): void {
    this.#field(id, ThriftType.i16);
    this.#zigzag(value);
  }

  i32(id: number, value: number): void {
    this.#field(id, ThriftType.i32);
    this.#zigzag(value);
  }

  /** `value` is a safe integer. */
  i64(id: number, value: number): void {
    this.#field(id, ThriftType.i64);
    this.#zigzag(value);
  }

  binary(id: number, value: Uint8Array): void {
    this.#field(id, ThriftType.binary);
    this.elementBinary(value);
  }

  string(id: number, value: string): void {
    this.binary(id, utf8.encode(value));
  }

  list(id: number, elementType: number, size: number): void {
    this.#field(id, ThriftType.list);
    if (size < 15) {
      this.out.byte((size << 4) | elementType);
    } else {
      this.out.byte(0xf0 | elementType);
      this.out.varint(size);
    }
  }

  elementBinary(value: Uint8Array): void {
    this.out.varint(value.length);
    this.out.append(value);
  }

  elementString(value: string): void {
    this.elementBinary(utf8.encode(value));
  }

  /** An i32 or i64 element. */
  elementInt(value: number): void {
    this.#zigzag(value);
  }

  /** A field whose value is encoded already; a bool's is in its type. */
  encoded(id: number, type: number, value: Uint8Array): void {
    this.#field(id, type);
    this.out.append(value);
  }

  /** In lists, unlike in fields, a bool is a byte: 1 is true, 2 is false. */
  elementBool(value: boolean): void {
    this.out.byte(value ? 1 : 2);
  }

  #field(id: number, type: number): void {
    const delta = id - this.#last;
    if (delta > 0 && delta <= 15) {
      this.out.byte((delta << 4) | type);
    } else {
      this.out.byte(type);
      this.#zigzag(id);
    }
    this.#last = id;
  }

  #zigzag(value: number): void {
    this.out.varint(value >= 0 ? value * 2 : -value * 2 - 1);
  }
}

/** A struct as read: values by field id. */
export class ThriftStruct {
  readonly #values: ReadonlyMap<number, ThriftValue>;

  constructor(values: ReadonlyMap<number, ThriftValue>) {
    this.#values = values;
  }

  /** An integer that JavaScript numbers hold exactly. */
  int(id: number): number | undefined {
    const value = this.#values.get(id);
    if (value === undefined) return undefined;
    if (typeof value === "number") return value;
    throw malformed(`field ${id} should be an integer`);
  }

  bool(id: number): boolean | undefined {
    const value = this.#values.get(id);
    if (value === undefined || typeof value === "boolean") return value;
    throw malformed(`field ${id} should be a boolean`);
  }

  binary(id: number): Uint8Array | undefined {
    const value = this.#values.get(id);
    if (value === undefined || value instanceof Uint8Array) return value;
    throw malformed(`field ${id} should be binary`);
  }

  string(id: number): string | undefined {
    const bytes = this.binary(id);
    return bytes && new TextDecoder().decode(bytes);
  }

  struct(id: number): ThriftStruct | undefined {
    const value = this.#values.get(id);
    if (value === undefined || value instanceof ThriftStruct) return value;
    throw malformed(`field ${id} should be a struct`);
  }

  list(id: number): readonly ThriftValue[] | undefined {
    const value = this.#values.get(id);
    if (value === undefined || Array.isArray(value)) return value;
    throw malformed(`field ${id} should be a list`);
  }

  structs(id: number): readonly ThriftStruct[] | undefined {
    return this.list(id)?.map((value) => {
      if (value instanceof ThriftStruct) return value;
      throw malformed(`field ${id} should be a list of structs`);
    });
  }

  /** The field that is set, of a struct that is a union. */
  arm(): number | undefined {
    return this.#values.keys().next().value;
  }
}

export type ThriftValue = number | boolean | Uint8Array | ThriftStruct | ThriftValue[];

/** Nothing in Parquet nests deeper; hostile input could, until the stack overflows. */
const MAX_DEPTH = 32;

/**
 * Reads one struct. Everything is checked against the bytes that are there: lengths, list sizes, nesting.
 * @throws InvalidInputError `bad_parquet`
 */
export function readThrift(bytes: Uint8Array): ThriftStruct {
  return new ThriftReader(bytes).struct(0);
}

export class ThriftReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  struct(depth: number): ThriftStruct {
    if (depth > MAX_DEPTH) throw malformed("structs nest too deeply");
    const values = new Map<number, ThriftValue>();
    for (let id = 0; ; ) {
      const field = this.field(id);
      if (field === undefined) return new ThriftStruct(values);
      id = field.id;
      values.set(id, this.value(field.type, depth));
    }
  }

  /** The next field's id and type, behind the field `last` of its struct; undefined where the struct ends. */
  field(last: number): { readonly id: number; readonly type: number } | undefined {
    const head = this.#byte();
    const type = head & 0x0f;
    if (type === ThriftType.stop) return undefined;
    const delta = head >> 4;
    return { id: delta === 0 ? this.#zigzag() : last + delta, type };
  }

  /** The type and number of a list's elements, which come next. */
  list(): { readonly type: number; readonly size: number } {
    const head = this.#byte();
    const size = head >> 4 === 15 ? this.#varint() : head >> 4;
    this.#checkSize(size);
    return { type: head & 0x0f, size };
  }

  /** The bytes of a field's value. */
  encoded(type: number, depth: number): Uint8Array {
    const from = this.#at;
    this.value(type, depth);
    return this.#bytes.subarray(from, this.#at);
  }

  value(type: number, depth: number): ThriftValue {
    switch (type) {
      case ThriftType.true:
        return true;
      case ThriftType.false:
        return false;
      case ThriftType.byte:
        return (this.#byte() << 24) >> 24;
      case ThriftType.i16:
      case ThriftType.i32:
      case ThriftType.i64:
        return this.#zigzag();
      case ThriftType.double:
        return this.#take(8);
      case ThriftType.binary:
        return this.#take(this.#varint());
      case ThriftType.list:
      case ThriftType.set:
        return this.#elements(depth + 1);
      case ThriftType.map:
        return this.#map(depth + 1);
      case ThriftType.struct:
        return this.struct(depth + 1);
      case ThriftType.uuid:
        return this.#take(16);
      default:
        throw malformed(`unknown Thrift type ${type}`);
    }
  }

  #elements(depth: number): ThriftValue[] {
    if (depth > MAX_DEPTH) throw malformed("lists nest too deeply");
    const { type, size } = this.list();
    const values: ThriftValue[] = [];
    for (let i = 0; i < size; i++) values.push(this.#element(type, depth));
    return values;
  }

  /** Parquet has no maps today: skipped with care, so that a later version's field does no harm. */
  #map(depth: number): ThriftValue[] {
    const size = this.#varint();
    this.#checkSize(size);
    if (size === 0) return [];
    const types = this.#byte();
    for (let i = 0; i < size; i++) {
      this.#element(types >> 4, depth);
      this.#element(types & 0x0f, depth);
    }
    return [];
  }

  #element(type: number, depth: number): ThriftValue {
    if (type === ThriftType.true || type === ThriftType.false) return this.#byte() === 1;
    return this.value(type, depth);
  }

  /** Each element takes a byte at least, so a size beyond the rest is a lie that would only cost memory. */
  #checkSize(size: number): void {
    if (size > this.#bytes.length - this.#at) throw malformed(`a list claims ${size} elements`);
  }

  #byte(): number {
    const value = this.#bytes[this.#at++];
    if (value === undefined) throw malformed("the footer ends too early");
    return value;
  }

  #take(length: number): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw malformed("a value is longer than the footer");
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }

  #varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 64; scale *= 0x80) {
      const byte = this.#byte();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (!Number.isSafeInteger(value)) throw malformed("an integer is too large");
        return value;
      }
    }
    throw malformed("an integer is too long");
  }

  #zigzag(): number {
    const value = this.#varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

/** The one error for bytes that are not Parquet. */
export function malformed(reason: string): InvalidInputError {
  return new InvalidInputError("bad_parquet", `this is not a readable Parquet file: ${reason}`);
}
