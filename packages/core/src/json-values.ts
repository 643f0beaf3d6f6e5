/**
 * JSON text → columns, directed by the schema: each reader takes the value at the cursor into its builder, without an
 * object or a string in between. One class per form of value; those that hold others are in `json-nested.ts`.
 *
 * Where a reader throws, builders may hold part of the row: the caller truncates them.
 */

import type {
  BoolBuilder,
  Builder,
  BytesBuilder,
  DecimalBuilder,
  Float64Builder,
  Int32Builder,
  Int64Builder,
  NumberBuilder,
} from "./builders.js";
import {
  CLOSE_LIST,
  CLOSE_OBJECT,
  COMMA,
  type JsonCursor,
  MINUS,
  OPEN_LIST,
  OPEN_OBJECT,
  outOfRange,
  QUOTE,
} from "./json-cursor.js";
import type { JsonTape } from "./json-tape.js";
import type { ParserOptions } from "./parser.js";
import { type PendingFault, RowFault } from "./row-batches.js";
import { formatType } from "./schema.js";
import { createTextAppender, type TextAppender, toFloat32 } from "./text-values.js";

const ZERO = 0x30;
const NINE = 0x39;
const LOWER_N = 0x6e;

/** What all readers of one parser share. */
export interface JsonContext {
  readonly cursor: JsonCursor;
  /** For values that are only stepped over. */
  readonly tape: JsonTape;
  readonly unknownFields: ParserOptions["unknownFields"];
  /**
   * Also refuse values that fit but might have led inference to another type: `1.0` in an integer column, integers
   * beyond 2^53 in a float column, exponents in a decimal column.
   */
  readonly strict: boolean;
  /** Nulls where none may be, for the end of the row. */
  readonly pending: PendingFault;
  /** Told each key that is dropped. */
  readonly onIgnored: (key: string) => void;
}

/** Reads values of one column. */
export abstract class JsonValues {
  protected readonly cursor: JsonCursor;
  protected readonly context: JsonContext;
  /** The column as messages name it: `p.x`, `tags[]`. */
  protected readonly path: string;
  readonly #builder: Builder;

  constructor(builder: Builder, path: string, context: JsonContext) {
    this.#builder = builder;
    this.path = path;
    this.context = context;
    this.cursor = context.cursor;
  }

  /** Takes the value at the cursor. */
  read(): void {
    const c = this.cursor.bytes[this.cursor.at]!;
    if (this.take(c)) return;
    if (c !== LOWER_N) throw this.misfit(c);
    this.cursor.literal("null");
    if (!this.#builder.nullable) this.context.pending.note(missingValue(this.path));
    this.#builder.appendNull();
  }

  /** Takes the value at the cursor, which begins with `c`; false if no value of this column begins so. */
  protected abstract take(c: number): boolean;

  /** The value that begins with `c` does not fit. */
  protected misfit(c: number): RowFault {
    const what = describe(c);
    if (what === undefined) return this.cursor.expected("a value");
    return misfit(this.path, this.#builder, what);
  }

  protected numberMisfit(): RowFault {
    return misfit(this.path, this.#builder, "this number, which it cannot hold exactly");
  }
}

function describe(c: number): string | undefined {
  switch (c) {
    case OPEN_OBJECT:
      return "an object";
    case OPEN_LIST:
      return "an array";
    case QUOTE:
      return "this text";
    case 0x74:
    case 0x66:
      return "true or false";
    default:
      return c === MINUS || (c >= ZERO && c <= NINE) ? "a number" : undefined;
  }
}

/** A value of a kind that the column does not take; `what` describes it without its content. */
export function misfit(path: string, builder: Builder, what: string): RowFault {
  const type = builder.type.kind === "unknown" ? "only null so far" : formatType(builder.type);
  return new RowFault("value", "type_mismatch", `the column ${path} takes ${type}, not ${what}`);
}

export function missingValue(path: string): RowFault {
  return new RowFault("form", "missing_value", `the column ${path} may not be null or missing`);
}

/** Two keys of one object that go to the same field. `about`: `form` for the row's own fields, else `value`. */
export function duplicateKey(about: "form" | "value", path: string, one: string, other: string): RowFault {
  const where = path === "" ? "" : ` of ${path}`;
  return new RowFault(
    about,
    "duplicate_key",
    `the keys ${JSON.stringify(one)} and ${JSON.stringify(other)}${where} would go to the same column`,
  );
}

export function unknownField(path: string): RowFault {
  return new RowFault("field", "unknown_field", `the table has no column ${path}`);
}

/** The path of a field below another; the row itself has the empty path. */
export function childPath(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

export class BoolValues extends JsonValues {
  readonly #builder: BoolBuilder;

  constructor(builder: BoolBuilder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(c: number): boolean {
    if (c === 0x74) this.cursor.literal("true");
    else if (c === 0x66) this.cursor.literal("false");
    else return false;
    this.#builder.append(c === 0x74);
    return true;
  }
}

/** Whether a number begins with `c`. */
function beginsNumber(c: number): boolean {
  return (c >= ZERO && c <= NINE) || c === MINUS;
}

export class IntegerValues extends JsonValues {
  readonly #builder: NumberBuilder | Int32Builder;
  readonly #min: number;
  readonly #max: number;

  constructor(
    builder: NumberBuilder | Int32Builder,
    range: readonly [number, number],
    path: string,
    context: JsonContext,
  ) {
    super(builder, path, context);
    this.#builder = builder;
    [this.#min, this.#max] = range;
  }

  protected override take(c: number): boolean {
    if (!beginsNumber(c)) return false;
    const { cursor } = this;
    cursor.readNumber();
    const { number } = cursor;
    const value = this.context.strict && !number.integer ? Number.NaN : number.toInteger(this.#min, this.#max);
    if (Number.isNaN(value)) throw number.infinite ? outOfRange() : this.numberMisfit();
    this.#builder.append(value);
    return true;
  }
}

export class Int64Values extends JsonValues {
  readonly #builder: Int64Builder;
  readonly #unsigned: boolean;

  constructor(builder: Int64Builder, unsigned: boolean, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#unsigned = unsigned;
  }

  protected override take(begin: number): boolean {
    const { cursor } = this;
    const { bytes } = cursor;
    const first = cursor.at;
    let at = first;
    let c = begin;
    // Up to 15 digits after a first that is not 0: exact as a `number`, without looking at the token again.
    if (c > ZERO && c <= NINE) {
      let value = c - ZERO;
      c = bytes[++at]!;
      while (c >= ZERO && c <= NINE && at - first < 15) {
        value = value * 10 + (c - ZERO);
        c = bytes[++at]!;
      }
      if (c === COMMA || c === CLOSE_OBJECT || c === CLOSE_LIST) {
        this.#builder.appendNumber(value);
        cursor.at = at;
        return true;
      }
    } else if (!beginsNumber(c)) return false;
    cursor.readNumber();
    const { number } = cursor;
    const fits = (number.integer || !this.context.strict) && (this.#unsigned ? number.toUint64() : number.toInt64());
    if (!fits) throw number.infinite ? outOfRange() : this.numberMisfit();
    this.#builder.append(number.low, number.high);
    return true;
  }
}

export class FloatValues extends JsonValues {
  readonly #builder: NumberBuilder | Float64Builder;
  readonly #single: boolean;

  constructor(builder: NumberBuilder | Float64Builder, single: boolean, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#single = single;
  }

  protected override take(c: number): boolean {
    if (!beginsNumber(c)) return false;
    const { cursor } = this;
    cursor.readNumber();
    const { number } = cursor;
    if (number.integer && !this.#exact()) throw this.numberMisfit();
    const value = number.toNumber();
    if (!Number.isFinite(value)) throw outOfRange();
    const stored = this.#single ? toFloat32(value) : value;
    if (Number.isNaN(stored)) throw this.numberMisfit();
    this.#builder.append(stored);
    return true;
  }

  /** Whether the integer is exact in the column's type. */
  #exact(): boolean {
    const { number } = this.cursor;
    if (this.#single) return number.fitsBits(24);
    return number.small || number.fitsBits(53);
  }
}

export class DecimalValues extends JsonValues {
  readonly #builder: DecimalBuilder;
  readonly #precision: number;
  readonly #scale: number;
  readonly #text: TextAppender;

  constructor(builder: DecimalBuilder, precision: number, scale: number, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#precision = precision;
    this.#scale = scale;
    this.#text = createTextAppender(builder);
  }

  protected override take(c: number): boolean {
    const { cursor } = this;
    if (c === QUOTE) {
      if (!appendString(cursor, this.#text)) throw this.misfit(QUOTE);
      return true;
    }
    if (!beginsNumber(c)) return false;
    cursor.readNumber();
    const { number } = cursor;
    // Inference makes float64 of integers beyond 64 bits among which one is written with a fraction or exponent.
    if (this.context.strict && (number.exponent || (this.#scale === 0 && !number.integer))) throw this.numberMisfit();
    if (!number.appendDecimal(this.#builder, this.#precision, this.#scale)) {
      throw number.infinite ? outOfRange() : this.numberMisfit();
    }
    return true;
  }
}

/** Reads the string at the cursor and appends it; false if it does not fit. */
function appendString(cursor: JsonCursor, appender: TextAppender): boolean {
  cursor.string();
  const { stringStart, stringEnd } = cursor;
  if (!cursor.escaped) return appender.append(cursor.bytes, stringStart, stringEnd);
  const size = cursor.unescapeToScratch(stringStart, stringEnd);
  return appender.append(cursor.scratch, 0, size);
}

/** Types that JSON writes as strings: dates, times, timestamps, uuid, binary, fixed. */
export class TextValues extends JsonValues {
  readonly #text: TextAppender;

  constructor(builder: Builder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#text = createTextAppender(builder);
  }

  protected override take(c: number): boolean {
    if (c !== QUOTE) return false;
    if (!appendString(this.cursor, this.#text)) throw this.misfit(QUOTE);
    return true;
  }
}

export class StringValues extends JsonValues {
  readonly #builder: BytesBuilder;

  constructor(builder: BytesBuilder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(c: number): boolean {
    if (c !== QUOTE) return false;
    copyString(this.cursor, this.#builder);
    return true;
  }
}

/** Takes the string at the cursor into a column: copied and checked in one pass while it has no escapes. */
function copyString(cursor: JsonCursor, builder: BytesBuilder): void {
  const { bytes, end } = cursor;
  let at = cursor.at + 1;
  let to = builder.open(end - at);
  const { data } = builder;
  while (at < end) {
    const c = bytes[at]!;
    if (c === QUOTE) {
      builder.close(to);
      cursor.at = at + 1;
      return;
    }
    if (c === 0x5c || c < 0x20) break;
    data[to++] = c;
    at++;
  }
  cursor.string();
  to = builder.open(end - at);
  builder.close(cursor.unescape(cursor.stringStart, cursor.stringEnd, builder.data, to));
}

/** json: the text of the value as it is written. */
export class VerbatimValues extends JsonValues {
  readonly #builder: BytesBuilder;

  constructor(builder: BytesBuilder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(c: number): boolean {
    if (c === LOWER_N) return false;
    const { cursor } = this;
    const start = cursor.at;
    this.context.tape.read();
    this.#builder.append(cursor.bytes, start, cursor.at);
    return true;
  }
}

/** A column without a type: takes what holds no value, which is null, `{}` and `[]`. */
export class UnknownValues extends JsonValues {
  readonly #builder: Builder;

  constructor(builder: Builder, path: string, context: JsonContext) {
    super(builder, path, context);
    this.#builder = builder;
  }

  protected override take(c: number): boolean {
    if (c !== OPEN_OBJECT && c !== OPEN_LIST) return false;
    const { cursor } = this;
    cursor.open();
    if (cursor.next() !== (c === OPEN_OBJECT ? CLOSE_OBJECT : CLOSE_LIST)) throw this.misfit(c);
    cursor.close();
    this.#builder.appendNull();
    return true;
  }
}
