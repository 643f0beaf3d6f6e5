/** Protobuf scalars and enums → columns: one value from where the reader stands. */

import type { BoolBuilder, Builder, BytesBuilder, Float64Builder, Int64Builder, NumberBuilder } from "./builders.js";
import type { ProtobufScalar } from "./protobuf-schema.js";
import { badProtobuf, WIRE, type WireReader } from "./protobuf-wire.js";
import { invalidUtf8 } from "./utf8-check.js";

/** Moves values of one type into their column. */
export interface Scalar {
  readonly builder: Builder;
  /** The wire type of a value that is not packed. */
  readonly wire: number;
  /** Appends the value at the reader's position and moves behind it. Text and bytes go up to the reader's end. */
  read(reader: WireReader): void;
  /** Appends what a message without the field has. */
  appendDefault(): void;
}

/** Bytes of a fixed value on its way to a number; Arrow's and protobuf's byte order is that of every host we run on. */
const scratch = new Uint8Array(8);
const words = new Int32Array(scratch.buffer);
const float32 = new Float32Array(scratch.buffer);
const float64 = new Float64Array(scratch.buffer);

/** Copies a fixed value to the scratch, whatever its alignment. */
function fixed(reader: WireReader, size: number): void {
  const from = reader.at;
  reader.advance(size);
  for (let i = 0; i < size; i++) scratch[i] = reader.bytes[from + i]!;
}

/** A type that is no message. */
export type ScalarType = ProtobufScalar | { readonly enum: Readonly<Record<string, number>> };

export function createScalar(type: ScalarType, builder: Builder): Scalar {
  const number = builder as NumberBuilder;
  const long = builder as Int64Builder;
  const zero = (): void => number.append(0);
  const zeroLong = (): void => long.append(0, 0);
  // What a varint has beyond the 32 bits of its type is cut off, as protobuf's encoding document says.
  const varint = (append: (reader: WireReader) => void, appendDefault: () => void): Scalar => ({
    builder,
    wire: WIRE.varint,
    appendDefault,
    read(reader) {
      reader.varint();
      append(reader);
    },
  });
  const fixed32 = (append: () => void): Scalar => ({
    builder,
    wire: WIRE.fixed32,
    appendDefault: zero,
    read(reader) {
      fixed(reader, 4);
      append();
    },
  });
  const fixed64 = (append: () => void, appendDefault: () => void): Scalar => ({
    builder,
    wire: WIRE.fixed64,
    appendDefault,
    read(reader) {
      fixed(reader, 8);
      append();
    },
  });
  if (typeof type === "object") return enumScalar(type.enum, builder as BytesBuilder);
  switch (type) {
    case "int32":
      return varint(({ low }) => number.append(low), zero);
    case "uint32":
      return varint(({ low }) => number.append(low >>> 0), zero);
    case "sint32":
      return varint(({ low }) => number.append((low >>> 1) ^ -(low & 1)), zero);
    case "int64":
    case "uint64":
      return varint(({ low, high }) => long.append(low, high), zeroLong);
    case "sint64":
      return varint(({ low, high }) => {
        const sign = -(low & 1);
        long.append(((low >>> 1) | (high << 31)) ^ sign, (high >>> 1) ^ sign);
      }, zeroLong);
    case "bool":
      return varint(
        ({ low, high }) => (builder as BoolBuilder).append((low | high) !== 0),
        () => (builder as BoolBuilder).append(false),
      );
    case "fixed32":
      return fixed32(() => number.append(words[0]! >>> 0));
    case "sfixed32":
      return fixed32(() => number.append(words[0]!));
    case "float":
      return fixed32(() => number.append(float32[0]!));
    case "double":
      return fixed64(() => (builder as Float64Builder).append(float64[0]!), zero);
    case "fixed64":
    case "sfixed64":
      return fixed64(() => long.append(words[0]!, words[1]!), zeroLong);
    case "string":
    case "bytes":
      return bytesScalar(type === "string", builder as BytesBuilder);
  }
}

function bytesScalar(isText: boolean, builder: BytesBuilder): Scalar {
  return {
    builder,
    wire: WIRE.bytes,
    appendDefault: () => builder.append(scratch, 0, 0),
    read(reader) {
      const { bytes, at, end } = reader;
      const invalid = isText ? invalidUtf8(bytes, at, end) : -1;
      if (invalid !== -1) throw badProtobuf(invalid, "a string is not UTF-8");
      builder.append(bytes, at, end);
      reader.at = end;
    },
  };
}

/** Enums are their names: the first of those that share a number. A number without a name is its digits. */
function enumScalar(members: Readonly<Record<string, number>>, builder: BytesBuilder): Scalar {
  const encoder = new TextEncoder();
  const names = new Map<number, Uint8Array>();
  for (const [name, number] of Object.entries(members)) {
    if (!names.has(number)) names.set(number, encoder.encode(name));
  }
  const append = (number: number): void => {
    const name = names.get(number) ?? encoder.encode(String(number));
    builder.append(name, 0, name.length);
  };
  return {
    builder,
    wire: WIRE.varint,
    appendDefault: () => append(0),
    read(reader) {
      reader.varint();
      append(reader.low);
    },
  };
}
