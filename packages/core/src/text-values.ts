/** One value as text → its column. What CSV cells, and JSON strings for the types JSON cannot write itself, go through. */

import type {
  BoolBuilder,
  Builder,
  BytesBuilder,
  DecimalBuilder,
  FixedBuilder,
  Float64Builder,
  Int32Builder,
  Int64Builder,
  NumberBuilder,
} from "./builders.js";
import { NumberToken } from "./number-token.js";
import type { SimpleKind } from "./schema.js";
import { TemporalReader } from "./temporal.js";

/** Appends values of one column from text. */
export interface TextAppender {
  /** Appends the value in `[start, end)`; returns false, and appends nothing, if that is no value of the column's type. */
  append(bytes: Uint8Array, start: number, end: number): boolean;
}

/**
 * Text forms by type, all exact: nothing is rounded but a decimal fraction to the nearest float.
 *
 * | type | text |
 * |---|---|
 * | bool | `true`, `false` |
 * | integers | a JSON number that is an integer in range (`1e3`, `1.0`), but not `-0` |
 * | floats | a JSON number in range, integers only where exact; `NaN`, `Infinity`, `-Infinity` |
 * | decimal | a JSON number with no more digits than the column holds |
 * | string | anything |
 * | binary, fixed | base64 with padding |
 * | date, time, timestamp, timestamptz | see {@link TemporalReader} |
 * | uuid | hexadecimal in groups of 8-4-4-4-12, any case |
 *
 * json, lists, maps and structs have no text form here.
 */
export function createTextAppender(builder: Builder): TextAppender {
  const { type } = builder;
  switch (type.kind) {
    case "bool":
      return new BoolText(builder as BoolBuilder);
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32":
      return new IntegerText(builder as NumberBuilder | Int32Builder, INTEGER_RANGES[type.kind]);
    case "int64":
    case "uint64":
      return new Int64Text(builder as Int64Builder, type.kind === "uint64");
    case "float32":
    case "float64":
      return new FloatText(builder as NumberBuilder | Float64Builder, type.kind === "float32");
    case "decimal":
      return new DecimalText(builder as DecimalBuilder, type.precision, type.scale);
    case "string":
      return new StringText(builder as BytesBuilder);
    case "binary":
      return new BinaryText(builder as BytesBuilder);
    case "fixed":
      return new FixedText(builder as FixedBuilder);
    case "uuid":
      return new UuidText(builder as FixedBuilder);
    case "date":
      return new DateText(builder as Int32Builder);
    case "time":
    case "timestamp":
    case "timestamptz":
      return new MicrosText(builder as Int64Builder, type.kind);
    default:
      return NOTHING_FITS;
  }
}

const NOTHING_FITS: TextAppender = { append: () => false };

/** Smallest and largest value of the integers that are kept in 32 bits or fewer. */
export const INTEGER_RANGES: Readonly<
  Record<Extract<SimpleKind, "int8" | "int16" | "int32" | "uint8" | "uint16" | "uint32">, readonly [number, number]>
> = {
  int8: [-0x80, 0x7f],
  int16: [-0x8000, 0x7fff],
  int32: [-0x8000_0000, 0x7fff_ffff],
  uint8: [0, 0xff],
  uint16: [0, 0xffff],
  uint32: [0, 0xffff_ffff],
};

const MAX_FLOAT32 = 3.4028234663852886e38;

/** The float32 nearest to a float64, or NaN where it would be infinite. */
export function toFloat32(value: number): number {
  const rounded = Math.fround(value);
  return Math.abs(rounded) <= MAX_FLOAT32 ? rounded : Number.NaN;
}

function equals(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) if (bytes[start + i] !== text.charCodeAt(i)) return false;
  return true;
}

class BoolText implements TextAppender {
  readonly #builder: BoolBuilder;

  constructor(builder: BoolBuilder) {
    this.#builder = builder;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    const value = equals(bytes, start, end, "true");
    if (!value && !equals(bytes, start, end, "false")) return false;
    this.#builder.append(value);
    return true;
  }
}

/** Whether a token is written with a minus and means zero: as an integer it would lose its sign. */
function minusZero(token: NumberToken): boolean {
  return token.negative && token.digits === 0;
}

class IntegerText implements TextAppender {
  readonly #builder: NumberBuilder | Int32Builder;
  readonly #min: number;
  readonly #max: number;
  readonly #token = new NumberToken();

  constructor(builder: NumberBuilder | Int32Builder, range: readonly [number, number]) {
    this.#builder = builder;
    [this.#min, this.#max] = range;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    if (this.#token.read(bytes, start, end) !== end || minusZero(this.#token)) return false;
    const value = this.#token.toInteger(this.#min, this.#max);
    if (Number.isNaN(value)) return false;
    this.#builder.append(value);
    return true;
  }
}

class Int64Text implements TextAppender {
  readonly #builder: Int64Builder;
  readonly #unsigned: boolean;
  readonly #token = new NumberToken();

  constructor(builder: Int64Builder, unsigned: boolean) {
    this.#builder = builder;
    this.#unsigned = unsigned;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    const token = this.#token;
    if (token.read(bytes, start, end) !== end || minusZero(token)) return false;
    if (!(this.#unsigned ? token.toUint64() : token.toInt64())) return false;
    this.#builder.append(token.low, token.high);
    return true;
  }
}

class FloatText implements TextAppender {
  readonly #builder: NumberBuilder | Float64Builder;
  readonly #single: boolean;
  readonly #token = new NumberToken();

  constructor(builder: NumberBuilder | Float64Builder, single: boolean) {
    this.#builder = builder;
    this.#single = single;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    const value = this.#value(bytes, start, end);
    if (value === undefined) return false;
    this.#builder.append(value);
    return true;
  }

  #value(bytes: Uint8Array, start: number, end: number): number | undefined {
    const token = this.#token;
    if (token.read(bytes, start, end) !== end) {
      if (equals(bytes, start, end, "NaN")) return Number.NaN;
      if (equals(bytes, start, end, "Infinity")) return Number.POSITIVE_INFINITY;
      if (equals(bytes, start, end, "-Infinity")) return Number.NEGATIVE_INFINITY;
      return undefined;
    }
    if (token.integer && !token.fitsBits(this.#single ? 24 : 53)) return undefined;
    const value = this.#single ? toFloat32(token.toNumber()) : token.toNumber();
    return Number.isFinite(value) ? value : undefined;
  }
}

class DecimalText implements TextAppender {
  readonly #builder: DecimalBuilder;
  readonly #precision: number;
  readonly #scale: number;
  readonly #token = new NumberToken();

  constructor(builder: DecimalBuilder, precision: number, scale: number) {
    this.#builder = builder;
    this.#precision = precision;
    this.#scale = scale;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    return (
      this.#token.read(bytes, start, end) === end &&
      this.#token.appendDecimal(this.#builder, this.#precision, this.#scale)
    );
  }
}

class StringText implements TextAppender {
  readonly #builder: BytesBuilder;

  constructor(builder: BytesBuilder) {
    this.#builder = builder;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    this.#builder.append(bytes, start, end);
    return true;
  }
}

class DateText implements TextAppender {
  readonly #builder: Int32Builder;
  readonly #reader = new TemporalReader();

  constructor(builder: Int32Builder) {
    this.#builder = builder;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    if (!this.#reader.date(bytes, start, end)) return false;
    this.#builder.append(this.#reader.days);
    return true;
  }
}

class MicrosText implements TextAppender {
  readonly #builder: Int64Builder;
  readonly #kind: "time" | "timestamp" | "timestamptz";
  readonly #reader = new TemporalReader();

  constructor(builder: Int64Builder, kind: "time" | "timestamp" | "timestamptz") {
    this.#builder = builder;
    this.#kind = kind;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    const reader = this.#reader;
    const fits =
      this.#kind === "timestamptz"
        ? reader.instant(bytes, start, end)
        : this.#kind === "timestamp"
          ? reader.timestamp(bytes, start, end)
          : reader.time(bytes, start, end);
    if (fits) this.#builder.append(reader.low, reader.high);
    return fits;
  }
}

/** Values of hexadecimal digits by byte; 255 for all others. */
const HEX: Uint8Array = digitTable("0123456789abcdef");
for (let i = 10; i < 16; i++) HEX["ABCDEF".charCodeAt(i - 10)] = i;

const BASE64: Uint8Array = digitTable("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");

function digitTable(digits: string): Uint8Array {
  const table = new Uint8Array(256).fill(255);
  for (let i = 0; i < digits.length; i++) table[digits.charCodeAt(i)] = i;
  return table;
}

class UuidText implements TextAppender {
  readonly #builder: FixedBuilder;
  readonly #value = new Uint8Array(16);

  constructor(builder: FixedBuilder) {
    this.#builder = builder;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    if (end - start !== 36) return false;
    let at = start;
    for (let i = 0; i < 16; i++) {
      if ((i === 4 || i === 6 || i === 8 || i === 10) && bytes[at++] !== 0x2d) return false;
      const high = HEX[bytes[at++]!]!;
      const low = HEX[bytes[at++]!]!;
      if (high === 255 || low === 255) return false;
      this.#value[i] = (high << 4) | low;
    }
    this.#builder.append(this.#value, 0);
    return true;
  }
}

/** Decodes base64 (RFC 4648, section 4: padded, canonical) into `target`; returns the number of bytes, or -1. */
function decodeBase64(bytes: Uint8Array, start: number, end: number, target: Uint8Array, to: number): number {
  const size = end - start;
  if (size % 4 !== 0) return -1;
  const padding = size === 0 || bytes[end - 1] !== 0x3d ? 0 : bytes[end - 2] !== 0x3d ? 1 : 2;
  let out = to;
  for (let at = start; at < end; at += 4) {
    const pad = at + 4 === end ? padding : 0;
    const a = BASE64[bytes[at]!]!;
    const b = BASE64[bytes[at + 1]!]!;
    const c = pad === 2 ? 0 : BASE64[bytes[at + 2]!]!;
    const d = pad > 0 ? 0 : BASE64[bytes[at + 3]!]!;
    if (a === 255 || b === 255 || c === 255 || d === 255) return -1;
    // Bits that the padding cuts off must be zero, or two texts would mean one value.
    if ((pad === 2 && (b & 15) !== 0) || (pad === 1 && (c & 3) !== 0)) return -1;
    target[out++] = (a << 2) | (b >> 4);
    if (pad < 2) target[out++] = (b << 4) | (c >> 2);
    if (pad < 1) target[out++] = (c << 6) | d;
  }
  return out - to;
}

class BinaryText implements TextAppender {
  readonly #builder: BytesBuilder;

  constructor(builder: BytesBuilder) {
    this.#builder = builder;
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    const at = this.#builder.open(end - start);
    const size = decodeBase64(bytes, start, end, this.#builder.data, at);
    if (size === -1) return false;
    this.#builder.close(at + size);
    return true;
  }
}

class FixedText implements TextAppender {
  readonly #builder: FixedBuilder;
  /** Base64 of `size` bytes may decode to two bytes more before its padding is counted. */
  readonly #value: Uint8Array;

  constructor(builder: FixedBuilder) {
    this.#builder = builder;
    this.#value = new Uint8Array(builder.size + 2);
  }

  append(bytes: Uint8Array, start: number, end: number): boolean {
    const { size } = this.#builder;
    if (end - start !== Math.ceil(size / 3) * 4 || decodeBase64(bytes, start, end, this.#value, 0) !== size)
      return false;
    this.#builder.append(this.#value, 0);
    return true;
  }
}
