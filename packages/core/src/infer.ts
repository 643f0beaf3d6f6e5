/**
 * What type takes all values of a column. Each value is noted in an {@link Observation}; notes only ever add up, so
 * that their order does not matter.
 *
 * | values of one column | type of a new column |
 * |---|---|
 * | true, false | bool |
 * | integers | int64; beyond that decimal(38,0); beyond 38 digits json |
 * | numbers with fractions or exponents, too | float64 if it holds every integer exactly, else the decimal that holds all, else json |
 * | text | string; timestamptz if all of it is ISO 8601 with a zone (unless `inferTimestamps: false`) |
 * | JavaScript dates, also with such text | timestamptz |
 * | bytes (JavaScript only) | binary |
 * | objects | struct of their keys; json if there are more than 1,000 (`maxStructKeys`) or two differ only by case within one object |
 * | arrays | list of what their elements have in common |
 * | only null, `{}` and `[]` | unknown, until a value gives it a type |
 * | kinds of several rows of this table | json |
 *
 * A column that has a type keeps its kind. It widens by the widening table; values of another kind are rejects.
 */

import { InvalidInputError } from "./errors.js";
import { type IntegerBounds, inferNumber, needOf, widenNumber } from "./evolve.js";
import { fieldName, JsonKeys, MAX_EXTRA_SPELLINGS } from "./json-keys.js";
import { NumberProfile } from "./number-profile.js";
import type { InferrerOptions } from "./parser.js";
import type { DataType, Field, Schema } from "./schema.js";

/** Keys that an object may have over all rows and still be a struct; with more it is kept as json. */
const DEFAULT_STRUCT_KEYS = 1000;
/** Columns of a table, and fields over all its levels. */
export const DEFAULT_MAX_COLUMNS = 10_000;
const MAX_FIELDS = 100_000;

/** Kinds of value, as bits. */
const BOOL = 1;
const NUMBER = 2;
const TEXT = 4;
/** Text that is ISO 8601 with a zone. */
const INSTANT_TEXT = 8;
const DATE = 16;
const BINARY = 32;
const OBJECT = 64;
const EMPTY_OBJECT = 128;
const LIST = 256;
const EMPTY_LIST = 512;
/** Only json holds all values. */
const ANYTHING = 1024;

/** What all observations of one inferrer share. */
export interface InferContext {
  readonly options: InferrerOptions;
  /** Observations made. */
  fields: number;
}

/** What is known of the values of one column. */
export class Observation {
  readonly #context: InferContext;
  /** The type that the column has already. */
  readonly #base: DataType | undefined;
  #kinds = 0;
  #numbers: NumberProfile | undefined;
  #fields: ObservedFields | undefined;
  #element: Observation | undefined;

  constructor(context: InferContext, base: DataType | undefined) {
    this.#context = context;
    this.#base = base?.kind === "unknown" ? undefined : base;
  }

  noteBool(): void {
    this.#kinds |= BOOL;
  }

  /** The profile to add a number to; undefined where numbers do not matter. */
  noteNumber(): NumberProfile | undefined {
    this.#kinds |= NUMBER;
    if (!this.#numbers) {
      if (this.#base && !needOf(this.#base)) return undefined;
      this.#numbers = new NumberProfile(this.#base);
    }
    return this.#numbers;
  }

  /** Whether text need still be told apart into instants and others, by {@link noteText}. */
  get asksForInstants(): boolean {
    return this.#base === undefined && (this.#kinds & TEXT) === 0;
  }

  noteText(isInstant: boolean): void {
    this.#kinds |= isInstant ? INSTANT_TEXT : TEXT;
  }

  noteDate(): void {
    this.#kinds |= DATE;
  }

  noteBinary(): void {
    this.#kinds |= BINARY;
  }

  /** An object. Returns where its members are noted; undefined where they do not matter. */
  noteObject(empty: boolean): ObservedFields | undefined {
    this.#kinds |= empty ? EMPTY_OBJECT : OBJECT;
    if (empty || !this.#descends("struct")) return undefined;
    this.#fields ??= new ObservedFields(this.#context, this.#base?.kind === "struct" ? this.#base.fields : []);
    return this.#fields;
  }

  /** Whether objects are maps here, all values of which are noted in {@link noteElements}. */
  get isMap(): boolean {
    return this.#base?.kind === "map";
  }

  /** A list or map. Returns where its elements are noted; undefined where they do not matter. */
  noteElements(empty: boolean): Observation | undefined {
    this.#kinds |= empty ? EMPTY_LIST : LIST;
    if (empty || !this.#descends(this.isMap ? "map" : "list")) return undefined;
    const base =
      this.#base?.kind === "list" ? this.#base.element : this.#base?.kind === "map" ? this.#base.value : undefined;
    this.#element ??= new Observation(this.#context, base?.type);
    return this.#element;
  }

  /** Two keys of an object would go to the same field: no struct holds both. */
  noteCollision(): void {
    this.#giveUp();
  }

  /** To be called when the members of an object were noted. */
  settle(): void {
    const size = this.#fields?.size ?? 0;
    const { maxStructKeys = DEFAULT_STRUCT_KEYS } = this.#context.options;
    if (size <= maxStructKeys) return;
    if (this.#base) {
      // A struct declared so wide is what its owner wanted.
      if (this.#base.kind === "struct" && size <= this.#base.fields.length) return;
      throw tooMany(`an object would have ${size} fields, and the limit is ${maxStructKeys}`);
    }
    this.#giveUp();
  }

  #giveUp(): void {
    if (this.#base) return;
    this.#kinds |= ANYTHING;
    this.#context.fields -= this.#fields?.size ?? 0;
    this.#fields = undefined;
    this.#element = undefined;
  }

  /** Whether what is inside objects or lists matters: not if it will be json in any case. */
  #descends(kind: "struct" | "list" | "map"): boolean {
    if (this.#base) return this.#base.kind === kind;
    return (this.#kinds & ANYTHING) === 0;
  }

  /** The column's type. `id` is its field id, 0 for a new one. */
  type(id: number): DataType {
    const base = this.#base;
    if (!base) return this.#newType();
    switch (base.kind) {
      case "struct":
        return this.#fields ? { kind: "struct", fields: this.#fields.merged() } : base;
      case "list":
        return this.#element ? { kind: "list", element: this.#element.#field(base.element) } : base;
      case "map":
        return this.#element ? { kind: "map", key: base.key, value: this.#element.#field(base.value) } : base;
      default:
        return this.#numbers
          ? (this.#widened(base, this.#numbers, this.#context.options.integerBounds?.get(id)) ?? base)
          : base;
    }
  }

  #field(base: Field): Field {
    return { ...base, type: this.type(base.id) };
  }

  #widened(base: DataType, numbers: NumberProfile, stored: IntegerBounds | undefined): DataType | undefined {
    if (base.kind !== "float32") return widenNumber(base, numbers.need, stored);
    if (numbers.single) return base;
    return numbers.need.exact ? { kind: "float64" } : base;
  }

  #newType(): DataType {
    const kinds = this.#kinds;
    const { inferTimestamps = true } = this.#context.options;
    switch (kinds) {
      case 0:
      case EMPTY_OBJECT:
      case EMPTY_LIST:
      case EMPTY_OBJECT | EMPTY_LIST:
        return { kind: "unknown" };
      case BOOL:
        return { kind: "bool" };
      case NUMBER:
        return (this.#numbers && inferNumber(this.#numbers.need)) ?? { kind: "json" };
      case INSTANT_TEXT:
        return { kind: inferTimestamps ? "timestamptz" : "string" };
      case TEXT:
      case TEXT | INSTANT_TEXT:
        return { kind: "string" };
      case DATE:
        return { kind: "timestamptz" };
      case DATE | INSTANT_TEXT:
        return { kind: inferTimestamps ? "timestamptz" : "json" };
      case BINARY:
        return { kind: "binary" };
      case OBJECT:
      case OBJECT | EMPTY_OBJECT:
        return { kind: "struct", fields: this.#fields?.merged() ?? [] };
      case LIST:
      case LIST | EMPTY_LIST: {
        const type = this.#element?.type(0) ?? { kind: "unknown" };
        return { kind: "list", element: { id: 0, name: "element", type, nullable: true } };
      }
      default:
        return { kind: "json" };
    }
  }
}

/** What is known of the members of one kind of object, or of the rows themselves. */
export class ObservedFields {
  readonly keys: JsonKeys = new JsonKeys();
  readonly #context: InferContext;
  readonly #base: readonly Field[];
  readonly #values: Observation[] = [];
  /** Fields by key as spelled before. */
  readonly #known: Map<string, number> = new Map();
  /** By field: the object in which it was last met, by which entry of the tape and which spelling. */
  #metIn: Int32Array = new Int32Array(16);
  #metAt: Int32Array = new Int32Array(16);
  #metBy: Int32Array = new Int32Array(16);
  /** Number of the object that is being noted. */
  #object = 0;

  constructor(context: InferContext, base: readonly Field[]) {
    this.#context = context;
    this.#base = base;
    for (const field of base) this.#add(field.name, field.type);
  }

  get size(): number {
    return this.#values.length;
  }

  value(field: number): Observation {
    return this.#values[field]!;
  }

  /** The field of a key, added if there is none. */
  fieldOf(key: string): number {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const name = fieldName(key);
    let field = this.keys.field(name);
    if (field === -1) field = this.#add(name, undefined);
    if (this.#known.size > this.size + MAX_EXTRA_SPELLINGS) this.#known.clear();
    this.#known.set(key, field);
    return field;
  }

  /** Another object begins. */
  begin(): void {
    this.#object = (this.#object + 1) | 0;
  }

  /** A field is met in the object; returns where and how it was met there before. */
  meet(field: number, entry: number, spelling: number): { entry: number; spelling: number } | undefined {
    if (field >= this.#metIn.length) this.#grow();
    const earlier =
      this.#metIn[field] === this.#object ? { entry: this.#metAt[field]!, spelling: this.#metBy[field]! } : undefined;
    this.#metIn[field] = this.#object;
    this.#metAt[field] = entry;
    this.#metBy[field] = spelling;
    return earlier;
  }

  #grow(): void {
    const grown = (old: Int32Array): Int32Array => {
      const next = new Int32Array(Math.max(this.size, old.length * 2));
      next.set(old);
      return next;
    };
    this.#metIn = grown(this.#metIn);
    this.#metAt = grown(this.#metAt);
    this.#metBy = grown(this.#metBy);
  }

  /** Removes the fields from `size` on, which a row has added that does not count. */
  truncate(size: number): void {
    if (size === this.size) return;
    this.keys.truncate(size);
    this.#known.clear();
    this.#context.fields -= this.#values.splice(size).length;
  }

  /** The base's fields, evolved, and after them the new ones. */
  merged(): Field[] {
    return this.#values.map((value, i): Field => {
      const base = this.#base[i];
      if (base) return { ...base, type: value.type(base.id) };
      return { id: 0, name: this.keys.name(i), type: value.type(0), nullable: true };
    });
  }

  #add(name: string, base: DataType | undefined): number {
    if (++this.#context.fields > MAX_FIELDS) {
      throw tooMany(`the table would have more than ${MAX_FIELDS} fields over all levels`);
    }
    this.#values.push(new Observation(this.#context, base));
    return this.keys.add(name);
  }
}

/** What is known of the rows. */
export class ObservedRows {
  readonly fields: ObservedFields;
  readonly context: InferContext;
  #rows = 0;

  constructor(options: InferrerOptions) {
    this.context = { options, fields: 0 };
    this.fields = new ObservedFields(this.context, options.base?.fields ?? []);
  }

  get rows(): number {
    return this.#rows;
  }

  /** To be called when the members of a row were noted. */
  settle(): void {
    this.#rows++;
    const { maxColumns = DEFAULT_MAX_COLUMNS } = this.context.options;
    if (this.fields.size > maxColumns) {
      throw tooMany(`the table would have ${this.fields.size} columns, and the limit is ${maxColumns}`);
    }
  }

  schema(): Schema {
    return { fields: this.fields.merged() };
  }
}

function tooMany(reason: string): InvalidInputError {
  return new InvalidInputError(
    "too_many_fields",
    `${reason}: are ids used as keys? Declare the column as json or map<string, …>, or make rows of its entries.`,
  );
}
