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
  type ListBuilder,
  type MapBuilder,
  type NumberBuilder,
  type StructBuilder,
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
  tooDeep,
  unsupported,
  unwrap,
} from "./js-values.js";
import { fieldName, MAX_EXTRA_SPELLINGS } from "./json-keys.js";
import { childPath, duplicateKey, misfit, missingValue, unknownField } from "./json-values.js";
import { NumberToken } from "./number-token.js";
import type { ParserOptions } from "./parser.js";
import { MAX_DEPTH, RowFault } from "./row-batches.js";
import { type Field, nameKey } from "./schema.js";
import { TemporalReader } from "./temporal.js";
import { createTextAppender, INTEGER_RANGES, type TextAppender, toFloat32 } from "./text-values.js";
import { encodeUtf8 } from "./utf8.js";

/** What all readers of one parser share. */
export interface RowContext {
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
abstract class RowValues {
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
      if (!this.#builder.nullable) throw missingValue(this.path);
      this.#builder.appendNull();
    } else if (!this.take(value)) throw this.#misfit(value);
  }

  /** Appends the value, which is neither null nor undefined; false if it does not fit. */
  protected abstract take(value: unknown): boolean;

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

function createRowValues(builder: Builder, path: string, context: RowContext): RowValues {
  const { type } = builder;
  switch (type.kind) {
    case "bool":
      return new BoolValues(builder as BoolBuilder, path, context);
    case "int8":
    case "int16":
    case "int32":
    case "uint8":
    case "uint16":
    case "uint32":
      return new IntegerValues(builder as NumberBuilder | Int32Builder, INTEGER_RANGES[type.kind], path, context);
    case "int64":
    case "uint64":
      return new Int64Values(builder as Int64Builder, type.kind === "uint64", path, context);
    case "float32":
    case "float64":
      return new FloatValues(builder as NumberBuilder | Float64Builder, type.kind === "float32", path, context);
    case "decimal":
      return new DecimalValues(builder as DecimalBuilder, type.precision, type.scale, path, context);
    case "timestamptz":
      return new InstantValues(builder as Int64Builder, path, context);
    case "string":
      return new StringValues(builder as BytesBuilder, path, context);
    case "json":
      return new JsonTextValues(builder as BytesBuilder, path, context);
    case "binary":
    case "fixed":
      return new BinaryValues(builder as BytesBuilder | FixedBuilder, path, context);
    case "struct":
      return new StructValues(builder as StructBuilder, path, context);
    case "list":
      return new ListValues(builder as ListBuilder, path, context);
    case "map":
      return new MapValues(builder as MapBuilder, path, context);
    case "unknown":
      return new UnknownValues(builder, path, context);
    default:
      return new TextValues(builder, path, context);
  }
}

class BoolValues extends RowValues {
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

/** @throws RowFault for an integer that its `number` may not hold exactly */
function checkSafe(value: number, path: string): void {
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    const reason = `the column ${path} got an integer beyond 2^53 as a number, which may be rounded: pass a bigint`;
    throw new RowFault("form", "unsafe_integer", reason);
  }
}

class IntegerValues extends RowValues {
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
    if (typeof value === "number") {
      checkSafe(value, this.path);
      if (!Number.isInteger(value)) return false;
    } else if (typeof value !== "bigint") return false;
    if (value < this.#min || value > this.#max) return false;
    this.#builder.append(Number(value));
    return true;
  }
}

class Int64Values extends RowValues {
  readonly #builder: Int64Builder;
  readonly #unsigned: boolean;

  constructor(builder: Int64Builder, unsigned: boolean, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#unsigned = unsigned;
  }

  protected override take(value: unknown): boolean {
    if (typeof value === "number") {
      checkSafe(value, this.path);
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

class FloatValues extends RowValues {
  readonly #builder: NumberBuilder | Float64Builder;
  readonly #single: boolean;

  constructor(builder: NumberBuilder | Float64Builder, single: boolean, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#single = single;
  }

  protected override take(value: unknown): boolean {
    const number = typeof value === "bigint" ? Number(value) : value;
    if (typeof number !== "number") return false;
    if (typeof value === "bigint" && (!Number.isFinite(number) || BigInt(number) !== value)) return false;
    if (this.#single && Number.isFinite(number)) {
      const single = toFloat32(number);
      const mustBeExact = typeof value === "bigint" || Number.isSafeInteger(number);
      if (Number.isNaN(single) || (mustBeExact && single !== number)) return false;
    }
    this.#builder.append(number);
    return true;
  }
}

class DecimalValues extends RowValues {
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
    if (typeof value === "number") checkSafe(value, this.path);
    else if (typeof value !== "bigint") return false;
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

class InstantValues extends RowValues {
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
class TextValues extends RowValues {
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

class StringValues extends RowValues {
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

class JsonTextValues extends RowValues {
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

class BinaryValues extends RowValues {
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
class UnknownValues extends RowValues {
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

class ListValues extends RowValues {
  readonly #builder: ListBuilder;
  readonly #element: RowValues;

  constructor(builder: ListBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#element = createRowValues(builder.element, `${path}[]`, context);
  }

  protected override take(value: unknown): boolean {
    if (kindOf(value) !== "list") return false;
    open(this.context);
    const elements = value as ArrayLike<unknown>;
    for (let i = 0; i < elements.length; i++) this.#element.append(elements[i]);
    this.context.depth--;
    this.#builder.append();
    this.context.bytes += elements.length;
    return true;
  }
}

/** An object or list begins. */
function open(context: RowContext): void {
  if (++context.depth > MAX_DEPTH) throw tooDeep();
}

class MapValues extends RowValues {
  readonly #builder: MapBuilder;
  readonly #key: RowValues;
  readonly #value: RowValues;

  constructor(builder: MapBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    this.#key = createRowValues(builder.key, `${path} (its keys)`, context);
    this.#value = createRowValues(builder.value, `${path}[]`, context);
  }

  protected override take(value: unknown): boolean {
    const kind = kindOf(value);
    if (kind !== "object" && kind !== "map") return false;
    open(this.context);
    // Keys of a Map may differ and yet be stored alike, such as 1 and 1n.
    const seen = new Set<string>();
    const entries = kind === "map" ? (value as Map<unknown, unknown>) : Object.entries(value as object);
    for (const [key, member] of entries) {
      if (member === undefined) continue;
      const text = kindOf(key) === "date" ? (key as Date).toJSON() : String(unwrap(key));
      if (seen.has(text)) throw duplicateKey("value", this.path, text, text);
      seen.add(text);
      this.#key.append(key);
      this.#value.append(member);
    }
    this.context.depth--;
    this.#builder.append();
    return true;
  }
}

/** struct, and the row itself. */
export class StructValues extends RowValues {
  readonly #builder: StructBuilder;
  readonly #names: readonly string[];
  readonly #fields: readonly RowValues[];
  /** Fields by name without case, and by key as spelled before. */
  readonly #byName: Map<string, number> = new Map();
  readonly #byKey: Map<string, number> = new Map();
  /** By field: the object in which it was last filled, and the key that did it. */
  readonly #filledIn: Int32Array;
  readonly #filledBy: string[] = [];
  /** Number of the object that is being read. */
  #object = 0;

  constructor(builder: StructBuilder, path: string, context: RowContext) {
    super(builder, path, context);
    this.#builder = builder;
    const { fields } = builder.type as { readonly fields: readonly Field[] };
    this.#names = fields.map(({ name }) => name);
    this.#fields = fields.map(({ name }, i) => createRowValues(builder.children[i]!, childPath(path, name), context));
    for (const [i, { name }] of fields.entries()) {
      this.#byName.set(nameKey(name), i);
      this.#byKey.set(name, i);
    }
    this.#filledIn = new Int32Array(fields.length);
  }

  protected override take(value: unknown): boolean {
    const kind = kindOf(value);
    if (kind !== "object" && kind !== "map") return false;
    this.appendMembers(value, kind);
    this.#builder.append();
    return true;
  }

  /** Appends the members of an object to the children; `append` of the struct itself is left to the caller. */
  appendMembers(value: unknown, kind: JsKind): void {
    open(this.context);
    this.#object = (this.#object + 1) | 0;
    let filled = 0;
    const keys = keysOf(value, kind);
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const member = memberOf(value, kind, key);
      // Rows mostly have their keys in the order of the columns.
      if (member !== undefined) filled += this.#member(key, member, this.#names[i] === key ? i : -1);
    }
    this.context.depth--;
    if (filled === this.#fields.length) return;
    const missing = this.#builder.fill();
    if (missing !== -1) throw missingValue(childPath(this.path, this.#names[missing]!));
  }

  /** Appends a member; returns 1 if it filled a field, 0 if it was dropped. */
  #member(key: string, member: unknown, guess: number): number {
    const field = guess === -1 ? this.#find(key) : guess;
    if (field === -1) return 0;
    if (this.#filledIn[field] === this.#object) {
      throw duplicateKey(this.path === "" ? "form" : "value", this.path, this.#filledBy[field]!, key);
    }
    this.#filledIn[field] = this.#object;
    this.#filledBy[field] = key;
    this.#fields[field]!.append(member);
    return 1;
  }

  #find(key: string): number {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const name = fieldName(key);
    const field = this.#byName.get(nameKey(name));
    if (field === undefined) {
      const path = childPath(this.path, name);
      if (this.context.unknownFields !== "ignore") throw unknownField(path);
      this.context.onIgnored(path);
      return -1;
    }
    if (this.#byKey.size < this.#names.length + MAX_EXTRA_SPELLINGS) this.#byKey.set(key, field);
    return field;
  }
}
