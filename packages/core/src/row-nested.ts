/** JavaScript values → columns, directed by the schema: structs, lists and maps. See `row-values.ts`. */

import type {
  BoolBuilder,
  Builder,
  BytesBuilder,
  DecimalBuilder,
  FixedBuilder,
  Float64Builder,
  Int32Builder,
  Int64Builder,
  ListBuilder,
  MapBuilder,
  NumberBuilder,
  StructBuilder,
} from "./builders.js";
import { type JsKind, keysOf, kindOf, memberOf, tooDeep, unwrap } from "./js-values.js";
import { fieldName, MAX_EXTRA_SPELLINGS } from "./json-keys.js";
import { childPath, duplicateKey, missingValue, unknownField } from "./json-values.js";
import { MAX_DEPTH } from "./row-batches.js";
import {
  BinaryValues,
  BoolValues,
  DecimalValues,
  FloatValues,
  InstantValues,
  Int64Values,
  IntegerValues,
  JsonTextValues,
  type RowContext,
  RowValues,
  StringValues,
  TextValues,
  UnknownValues,
} from "./row-values.js";
import { type Field, nameKey } from "./schema.js";
import { INTEGER_RANGES } from "./text-values.js";

/** A reader for a builder, of any type and depth. */
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
    if (missing !== -1) this.context.pending.note(missingValue(childPath(this.path, this.#names[missing]!)));
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
