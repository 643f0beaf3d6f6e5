/**
 * Schemas: a list of fields, each with an id that never changes and is never reused within its table.
 * Names may repeat across levels but are unique without regard to case within one level.
 */

import { SchemaError } from "./errors.js";

/** Types without parameters. `unknown` is a column that has had no value yet: it is not stored and reads as null. */
export type SimpleKind =
  | "bool"
  | "int8"
  | "int16"
  | "int32"
  | "int64"
  | "uint8"
  | "uint16"
  | "uint32"
  | "uint64"
  | "float32"
  | "float64"
  | "string"
  | "binary"
  | "date"
  | "time"
  | "timestamp"
  | "timestamptz"
  | "uuid"
  | "json"
  | "unknown";

/**
 * A column type. Times and timestamps count microseconds; `timestamptz` is an instant in UTC, `timestamp` has no zone;
 * `date` counts days since 1970-01-01; `json` is UTF-8 text holding one JSON value.
 */
export type DataType =
  | { readonly kind: SimpleKind }
  | { readonly kind: "decimal"; readonly precision: number; readonly scale: number }
  | { readonly kind: "fixed"; readonly size: number }
  | { readonly kind: "list"; readonly element: Field }
  | { readonly kind: "map"; readonly key: Field; readonly value: Field }
  | { readonly kind: "struct"; readonly fields: readonly Field[] };

export interface Field {
  /** Unique in the table over all levels, from 1; becomes the Parquet field id. 0 means not assigned yet. */
  readonly id: number;
  readonly name: string;
  readonly type: DataType;
  readonly nullable: boolean;
}

export interface Schema {
  readonly fields: readonly Field[];
}

const SIMPLE_KINDS: ReadonlySet<string> = new Set<SimpleKind>([
  "bool",
  "int8",
  "int16",
  "int32",
  "int64",
  "uint8",
  "uint16",
  "uint32",
  "uint64",
  "float32",
  "float64",
  "string",
  "binary",
  "date",
  "time",
  "timestamp",
  "timestamptz",
  "uuid",
  "json",
  "unknown",
]);

/** Schema as users write it: `{ id: "int64", tags: "list<string>", "price!": "decimal(10,2)" }`; `!` means not null. */
export type SchemaInput = Readonly<Record<string, string | DataType>> | Schema;

/** Types in each other, as text or JSON. Far deeper than any schema that a parser fills; a hostile one ends here. */
export const MAX_TYPE_DEPTH = 100;

/** The key that folds names which differ only by case into one. */
export function nameKey(name: string): string {
  return name.toLowerCase();
}

/** Writes a type as text: `int64`, `decimal(10,2)`, `list<string>`, `map<string,int64!>`, `struct<"a b": int64, c!: string>`. */
export function formatType(type: DataType): string {
  switch (type.kind) {
    case "decimal":
      return `decimal(${type.precision},${type.scale})`;
    case "fixed":
      return `fixed(${type.size})`;
    case "list":
      return `list<${formatMember(type.element)}>`;
    case "map":
      return `map<${formatType(type.key.type)},${formatMember(type.value)}>`;
    case "struct":
      return `struct<${type.fields.map((f) => `${formatName(f.name)}${f.nullable ? "" : "!"}: ${formatType(f.type)}`).join(", ")}>`;
    default:
      return type.kind;
  }
}

/** A list's element, a map's value: `!` where it is never null. */
function formatMember({ type, nullable }: Field): string {
  return `${formatType(type)}${nullable ? "" : "!"}`;
}

function formatName(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name);
}

/**
 * Reads a type from text, the inverse of {@link formatType}. Field ids are 0 until {@link assignFieldIds}.
 * @throws SchemaError `bad_type`, with the position
 */
export function parseType(text: string): DataType {
  const parser = new TypeParser(text);
  const type = parser.type();
  parser.end();
  return type;
}

class TypeParser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  type(): DataType {
    if (++this.#depth > MAX_TYPE_DEPTH) this.#fail(`types are nested deeper than ${MAX_TYPE_DEPTH} levels`);
    const type = this.#type();
    this.#depth--;
    return type;
  }

  #type(): DataType {
    const kind = this.#match(/\s*([a-z0-9_]+)/y)?.[1];
    switch (kind) {
      case "decimal": {
        const m = this.#match(/\s*\(\s*(\d{1,2})\s*,\s*(\d{1,2})\s*\)/y);
        if (!m) this.#fail("decimal needs (precision,scale)");
        const precision = Number(m[1]);
        const scale = Number(m[2]);
        if (precision < 1 || precision > 38 || scale > precision)
          this.#fail("decimal precision is 1 to 38, scale 0 to precision");
        return { kind, precision, scale };
      }
      case "fixed": {
        const m = this.#match(/\s*\(\s*(\d{1,9})\s*\)/y);
        if (!m || Number(m[1]) < 1) this.#fail("fixed needs (size) in bytes");
        return { kind, size: Number(m[1]) };
      }
      case "list": {
        this.#expect("<");
        const element = this.#member("element");
        this.#expect(">");
        return { kind, element };
      }
      case "map": {
        this.#expect("<");
        const key: Field = { id: 0, name: "key", type: this.type(), nullable: false };
        this.#expect(",");
        const value = this.#member("value");
        this.#expect(">");
        return { kind, key, value };
      }
      case "struct": {
        this.#expect("<");
        const fields: Field[] = [];
        if (!this.#match(/\s*>/y)) {
          do fields.push(this.#field());
          while (this.#match(/\s*,/y));
          this.#expect(">");
        }
        return { kind, fields };
      }
      default:
        if (kind !== undefined && SIMPLE_KINDS.has(kind)) return { kind: kind as SimpleKind };
        return this.#fail(
          `unknown type; known are ${[...SIMPLE_KINDS].join(" ")} decimal(p,s) fixed(n) list<T> map<K,V> struct<…>`,
        );
    }
  }

  end(): void {
    if (this.#text.slice(this.#at).trim() !== "") this.#fail("text after the type");
  }

  #member(name: string): Field {
    return { id: 0, name, type: this.type(), nullable: this.#match(/\s*!/y) === null };
  }

  #field(): Field {
    const m = this.#match(/\s*(?:([A-Za-z_][A-Za-z0-9_]*)|("(?:[^"\\]|\\.)*"))(!?)\s*:/y);
    if (!m) return this.#fail("a struct field is written name: type");
    const name = m[1] ?? this.#quoted(m[2]!);
    return { id: 0, name, type: this.type(), nullable: m[3] !== "!" };
  }

  #quoted(text: string): string {
    try {
      return JSON.parse(text) as string;
    } catch {
      return this.#fail("a name in quotes is written as a JSON string");
    }
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const m = pattern.exec(this.#text);
    if (m) this.#at = pattern.lastIndex;
    return m;
  }

  #expect(token: string): void {
    if (!this.#match(new RegExp(`\\s*${token}`, "y"))) this.#fail(`expected ${token}`);
  }

  #fail(reason: string): never {
    throw new SchemaError("bad_type", `cannot read the type ${JSON.stringify(this.#text)} at ${this.#at}: ${reason}`);
  }
}

/**
 * Makes a schema from what a user wrote; ids are 0 where the input has none.
 * @throws SchemaError `bad_type`, `bad_name`, `duplicate_field`
 */
export function toSchema(input: SchemaInput): Schema {
  if (isSchema(input)) {
    checkNames(input.fields);
    return input;
  }
  const fields = Object.entries(input).map(([key, value]): Field => {
    const required = key.endsWith("!");
    return {
      id: 0,
      name: required ? key.slice(0, -1) : key,
      type: typeof value === "string" ? parseType(value) : value,
      nullable: !required,
    };
  });
  checkNames(fields);
  return { fields };
}

function isSchema(input: SchemaInput): input is Schema {
  return Array.isArray((input as { fields?: unknown }).fields);
}

/** Why no field can be called so: SQL could not name it. */
function nameFault(name: string): string | undefined {
  if (name === "") return "empty";
  if (/\p{Surrogate}/u.test(name)) return "not well-formed text";
  return name.includes("\0") ? "a text with a NUL character" : undefined;
}

function checkNames(fields: readonly Field[]): void {
  const seen = new Map<string, string>();
  for (const field of fields) {
    const what = nameFault(field.name);
    if (what !== undefined) {
      throw new SchemaError("bad_name", `the name of a field is ${what}: give it another`);
    }
    const other = seen.get(nameKey(field.name));
    if (other !== undefined) {
      throw new SchemaError(
        "duplicate_field",
        `the fields ${JSON.stringify(other)} and ${JSON.stringify(field.name)} differ at most by case`,
        { subject: field.name },
      );
    }
    seen.set(nameKey(field.name), field.name);
    checkNames(childFields(field.type));
  }
}

/** The fields directly below a type: struct fields, the list element, the map's key and value. */
export function childFields(type: DataType): readonly Field[] {
  switch (type.kind) {
    case "list":
      return [type.element];
    case "map":
      return [type.key, type.value];
    case "struct":
      return type.fields;
    default:
      return [];
  }
}

/** The same type with other children, in the order of {@link childFields}. */
export function withChildren(type: DataType, children: readonly Field[]): DataType {
  switch (type.kind) {
    case "list":
      return { kind: "list", element: children[0]! };
    case "map":
      return { kind: "map", key: children[0]!, value: children[1]! };
    case "struct":
      return { kind: "struct", fields: children };
    default:
      return type;
  }
}

/** The highest field id in use, 0 for none. */
export function lastFieldId(schema: Schema): number {
  let last = 0;
  const visit = (field: Field): void => {
    last = Math.max(last, field.id);
    childFields(field.type).forEach(visit);
  };
  schema.fields.forEach(visit);
  return last;
}

/** Gives every field without an id (0) the next one after `last`, breadth last: parent, then its children. */
export function assignFieldIds(schema: Schema, last: number = lastFieldId(schema)): Schema {
  let next = last;
  const visit = (field: Field): Field => {
    const id = field.id === 0 ? ++next : field.id;
    return {
      id,
      name: field.name,
      type: withChildren(field.type, childFields(field.type).map(visit)),
      nullable: field.nullable,
    };
  };
  return { fields: schema.fields.map(visit) };
}

/**
 * What of a type can be stored: unknown fields are left out, and a struct, list or map that holds nothing known is
 * unknown itself (Parquet groups need a child). Undefined where nothing is left.
 */
export function storedType(type: DataType): DataType | undefined {
  if (type.kind === "unknown") return undefined;
  const children = childFields(type);
  const stored = children.map(storedField).filter((f) => f !== undefined);
  if (type.kind === "struct" ? stored.length === 0 : stored.length < children.length) return undefined;
  return withChildren(type, stored);
}

function storedField(field: Field): Field | undefined {
  const type = storedType(field.type);
  return type && { id: field.id, name: field.name, type, nullable: field.nullable };
}

/** The part of a schema that Parquet files carry; see {@link storedType}. */
export function storedSchema(schema: Schema): Schema {
  return { fields: schema.fields.map(storedField).filter((f) => f !== undefined) };
}

/** The same schema with every field nullable; only the keys of maps never are. */
export function withoutRequired(schema: Schema): Schema {
  const relax = (field: Field): Field => {
    const [first, ...others] = childFields(field.type);
    const isMap = field.type.kind === "map";
    const children = first ? [isMap ? { ...relax(first), nullable: false } : relax(first), ...others.map(relax)] : [];
    return { ...field, type: withChildren(field.type, children), nullable: true };
  };
  return { fields: schema.fields.map(relax) };
}

/** Equal in names, types, nullability and ids, in the same order. */
export function sameSchema(a: Schema, b: Schema): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}
