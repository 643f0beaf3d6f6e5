/** JavaScript values → columns, directed by the schema. One class per form of value. */

import {
  type BoolBuilder,
  type Builder,
  type BytesBuilder,
  type DecimalBuilder,
  FixedBuilder,
  type Float64Builder,
  type Int32Builder,
  type Int64Builder,
  type NumberBuilder,
} from "./builders.js";
import {
  badDate,
  badText,
  bytesOfValue,
  type JsKind,
  jsonText,
  keysOf,
  kindOf,
  memberOf,
  unsupported,
  unwrap,
} from "./js-values.js";
import { misfit, missingValue } from "./json-values.js";
import { exactFloat } from "./number-profile.js";
import { NumberToken } from "./number-token.js";
import type { ParserOptions } from "./parser.js";
import { type PendingFault, RowFault } from "./row-batches.js";
import { TemporalReader } from "./temporal.js";
import { createTextAppender, type TextAppender, toFloat32 } from "./text-values.js";
import { encodeUtf8 } from "./utf8.js";

/** What all readers of one parser share. */
export interface RowContext {
  /** What is wrong with the row whatever else it holds, for its end. */
  readonly pending: PendingFault;
  readonly unknownFields: ParserOptions["unknownFields"];
  readonly onIgnored: (key: string) => void;
  /** Objects and lists that are open. */
  depth: number;
  /** Estimate of the input bytes of the row so far. */
  bytes: number;
  /** Text as UTF-8. */
  scratch: Uint8Array;
}

/** Appends JavaScript values to one column. */
export abstract class RowValues {
  protected readonly context: RowContext;
  protected readonly path: string;
  readonly #builder: Builder;

  constructor(builder: Builder, path: string, context: RowContext) {
    this.#builder = builder;
    this.path = path;
    this.context = context;
  }

  append(member: unknown): void {
    const value = unwrap(member);
    if (value === null || value === undefined) {
      if (!this.#builder.nullable) this.context.pending.note(missingValue(this.path));
      this.#builder.appendNull();
    } else if (!this.take(value)) throw this.#misfit(value);
  }

  /** Appends the value, which is neither null nor undefined; false if it does not fit. */
  protected abstract take(value: unknown): boolean;

  /** Refuses an integer that is not safe, at the end of the row. */
  protected takeUnsafe(): true {
    this.context.pending.note(unsafeInteger(this.path));
    this.#builder.appendNull();
    return true;
  }

  #misfit(value: unknown): RowFault {
    const kind = kindOf(value);
    if (kind === "other") return unsupported(value);
    return misfit(this.path, this.#builder, DESCRIPTIONS[kind]);
  }

  /** Fits text by its UTF-8, through the appender of the column's type. */
  protected takeText(text: string, appender: TextAppender): boolean {
    const { context } = this;
    if (context.scratch.length < text.length * 3) context.scratch = new Uint8Array(text.length * 6);
    const end = encodeUtf8(text, context.scratch, 0);
    if (end === -1) throw badText();
    context.bytes += end;
    return appender.append(context.scratch, 0, end);
  }
}

const DESCRIPTIONS: Readonly<Record<Exclude<JsKind, "other">, string>> = {
  null: "null",
  bool: "true or false",
  number: "this number",
  bigint: "this bigint",
  text: "this text",
  date: "a Date",
  binary: "bytes",
  list: "an array",
  map: "a Map",
  object: "an object",
};

export class BoolValues extends RowValues {
  readonly #builder: BoolBuilder;

  constructor(builder: BoolBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(value: unknown): boolean {
    if (typeof value !== "boolean") return false;
    this.#builder.append(value);
    return true;
  }
}

/** Whether a number is an integer that its form as a `number` may have rounded. */
function isUnsafe(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

function unsafeInteger(path: string): RowFault {
  const reason = `the column ${path} got an integer beyond 2^53 as a number, which may be rounded: pass a bigint`;
  return new RowFault("form", "unsafe_integer", reason);
}

export class IntegerValues extends RowValues {
  readonly #builder: NumberBuilder | Int32Builder;
  readonly #min: number;
  readonly #max: number;

  constructor(
    builder: NumberBuilder | Int32Builder,
    range: readonly [number, number],
    path: string,
    context: RowContext,
  ) {
    super(builder, path, context);
    this.#builder = builder;
    [this.#min, this.#max] = range;
  }

  protected override take(value: unknown): boolean {
    if (isUnsafe(value)) return this.takeUnsafe();
    if (typeof value !== "bigint" && (typeof value !== "number" || !Number.isInteger(value))) return false;
    if (value < this.#min || value > this.#max) return false;
    this.#builder.append(Number(value));
    return true;
  }
}

export class Int64Values extends RowValues {
  readonly #builder: Int64Builder;
  readonly #unsigned: boolean;

  constructor(builder: Int64Builder, unsigned: boolean, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#unsigned = unsigned;
  }

  protected override take(value: unknown): boolean {
    if (isUnsafe(value)) return this.takeUnsafe();
    if (typeof value === "number") {
      if (!Number.isInteger(value) || (this.#unsigned && value < 0)) return false;
      this.#builder.appendNumber(value);
      return true;
    }
    if (typeof value !== "bigint") return false;
    if ((this.#unsigned ? BigInt.asUintN(64, value) : BigInt.asIntN(64, value)) !== value) return false;
    this.#builder.appendBigInt(value);
    return true;
  }
}

export class FloatValues extends RowValues {
  readonly #builder: NumberBuilder | Float64Builder;
  readonly #single: boolean;

  constructor(builder: NumberBuilder | Float64Builder, single: boolean, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#single = single;
  }

  protected override take(value: unknown): boolean {
    const number = typeof value === "bigint" ? exactFloat(value, this.#single) : value;
    if (typeof number !== "number") return false;
    if (this.#single && Number.isFinite(number)) {
      const single = toFloat32(number);
      if (Number.isNaN(single) || (Number.isSafeInteger(number) && single !== number)) return false;
    }
    this.#builder.append(number);
    return true;
  }
}

export class DecimalValues extends RowValues {
  readonly #builder: DecimalBuilder;
  readonly #precision: number;
  readonly #scale: number;
  readonly #token = new NumberToken();
  readonly #text: TextAppender;
  readonly #digits: TextAppender = { append: (bytes, start, end) => this.#appendDigits(bytes, start, end) };

  constructor(builder: DecimalBuilder, precision: number, scale: number, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#precision = precision;
    this.#scale = scale;
    this.#text = createTextAppender(builder);
  }

  protected override take(value: unknown): boolean {
    if (typeof value === "string") return this.takeText(value, this.#text);
    if (isUnsafe(value)) return this.takeUnsafe();
    if (typeof value !== "number" && typeof value !== "bigint") return false;
    // A number means the shortest decimal that is read back as it, which is how it prints.
    return this.takeText(String(value), this.#digits);
  }

  #appendDigits(bytes: Uint8Array, start: number, end: number): boolean {
    return (
      this.#token.read(bytes, start, end) === end &&
      this.#token.appendDecimal(this.#builder, this.#precision, this.#scale)
    );
  }
}

export class InstantValues extends RowValues {
  readonly #builder: Int64Builder;
  readonly #text: TextAppender;
  readonly #reader = new TemporalReader();

  constructor(builder: Int64Builder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#text = createTextAppender(builder);
  }

  protected override take(value: unknown): boolean {
    if (typeof value === "string") return this.takeText(value, this.#text);
    if (kindOf(value) !== "date") return false;
    if (!this.#reader.milliseconds((value as Date).getTime())) throw badDate();
    this.#builder.append(this.#reader.low, this.#reader.high);
    return true;
  }
}

/** Types that come as text only: date, time, timestamp, uuid. */
export class TextValues extends RowValues {
  readonly #text: TextAppender;

  constructor(builder: Builder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#text = createTextAppender(builder);
  }

  protected override take(value: unknown): boolean {
    return typeof value === "string" && this.takeText(value, this.#text);
  }
}

/** Writes text into a column without a copy in between; returns its bytes. */
function appendText(builder: BytesBuilder, text: string): number {
  const start = builder.open(text.length * 3);
  const end = encodeUtf8(text, builder.data, start);
  if (end === -1) throw badText();
  builder.close(end);
  return end - start;
}

export class StringValues extends RowValues {
  readonly #builder: BytesBuilder;

  constructor(builder: BytesBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(value: unknown): boolean {
    if (typeof value !== "string") return false;
    this.context.bytes += appendText(this.#builder, value);
    return true;
  }
}

export class JsonTextValues extends RowValues {
  readonly #builder: BytesBuilder;

  constructor(builder: BytesBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(value: unknown): boolean {
    this.context.bytes += appendText(this.#builder, jsonText(value, this.context.depth));
    return true;
  }
}

export class BinaryValues extends RowValues {
  readonly #builder: BytesBuilder | FixedBuilder;
  readonly #text: TextAppender;

  constructor(builder: BytesBuilder | FixedBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#text = createTextAppender(builder);
  }

  protected override take(value: unknown): boolean {
    if (typeof value === "string") return this.takeText(value, this.#text);
    if (kindOf(value) !== "binary") return false;
    const bytes = bytesOfValue(value);
    if (!(this.#builder instanceof FixedBuilder)) this.#builder.append(bytes, 0, bytes.length);
    else if (bytes.length === this.#builder.size) this.#builder.append(bytes, 0);
    else return false;
    this.context.bytes += bytes.length;
    return true;
  }
}

/** A column without a type: takes what holds no value, which is null, `{}` and `[]`. */
export class UnknownValues extends RowValues {
  readonly #builder: Builder;

  constructor(builder: Builder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(value: unknown): boolean {
    const kind = kindOf(value);
    if (kind === "list" ? (value as ArrayLike<unknown>).length > 0 : kind !== "object" && kind !== "map") return false;
    if (kind !== "list" && keysOf(value, kind).some((key) => memberOf(value, kind, key) !== undefined)) return false;
    this.#builder.appendNull();
    return true;
  }
}
