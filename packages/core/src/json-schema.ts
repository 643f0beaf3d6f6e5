/**
 * JSON Schema (draft 2020-12; drafts 7 and later agree in what is used here) → columns.
 *
 * | JSON Schema | type |
 * |---|---|
 * | `boolean` | bool |
 * | `integer` | int64 |
 * | `number`, also with `integer` | float64 |
 * | `string` | string; by `format` `date-time` timestamptz, `date` date, `uuid` uuid |
 * | `array` of `items`; tuples of one type | list |
 * | `object` with `properties` | struct of them |
 * | `object` with `additionalProperties` alone | map<string, …> |
 * | `enum`, `const` | what their values have in common |
 * | `anyOf`, `oneOf`, several `type`s | what the alternatives have in common; objects share their properties |
 * | `allOf` | all properties together |
 * | `$ref` within the document | what it refers to; json where it contains itself |
 * | nothing, `true`, `{}` | unknown: the first values decide |
 * | alternatives of different kinds | json |
 *
 * A property is not null if it is `required` and may not be `null`.
 */

import { SchemaError } from "./errors.js";
import { fieldName } from "./json-keys.js";
import {
  type DataType,
  type Field,
  formatType,
  MAX_TYPE_DEPTH,
  nameKey,
  type Schema,
  storedType,
  toSchema,
} from "./schema.js";

/** Schemas visited: a small document can refer to itself in ways that grow without end. */
const MAX_VISITS = 20_000;

const UNKNOWN: DataType = { kind: "unknown" };
const JSON_TYPE: DataType = { kind: "json" };

/** A type and whether null is among its values. `undefined` is the type of null alone. */
interface Described {
  readonly type: DataType | undefined;
  readonly nullable: boolean;
}

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The columns that a JSON Schema of objects describes; ids are 0.
 * @throws SchemaError `bad_json_schema` if it does not describe an object with properties, or refers to what is not there
 * @throws SchemaError `duplicate_field`, `bad_name`
 */
export function schemaFromJsonSchema(document: unknown): Schema {
  const { type } = new JsonSchemaReader(document).read();
  if (type?.kind !== "struct") {
    throw new SchemaError(
      "bad_json_schema",
      `the JSON Schema describes ${type ? formatType(type) : "null"}, and rows are objects: give it type "object" and properties`,
    );
  }
  return toSchema({ fields: type.fields });
}

class JsonSchemaReader {
  readonly #document: unknown;
  /** References that are being followed. */
  readonly #open = new Set<string>();
  #visits = 0;
  #depth = 0;

  constructor(document: unknown) {
    this.#document = document;
  }

  read(): Described {
    return this.#describe(this.#document);
  }

  #describe(schema: unknown): Described {
    if (schema === true || schema === undefined) return { type: UNKNOWN, nullable: true };
    // Nothing is valid: there will never be a value.
    if (schema === false) return { type: undefined, nullable: true };
    if (!isObject(schema)) throw bad("a schema in it is neither an object nor a boolean");
    if (++this.#visits > MAX_VISITS) throw bad("it refers to itself too often");
    if (++this.#depth > MAX_TYPE_DEPTH) throw bad(`it is nested deeper than ${MAX_TYPE_DEPTH} levels`);
    const described = this.#parts(schema).reduce(both, { type: UNKNOWN, nullable: true });
    this.#depth--;
    return described;
  }

  /** What each keyword says; all of it holds. */
  #parts(schema: JsonObject): Described[] {
    const parts: Described[] = [];
    const { $ref, type, allOf } = schema;
    if (typeof $ref === "string") parts.push(this.#reference($ref));
    if (Array.isArray(allOf)) parts.push(...allOf.map((part) => this.#describe(part)));
    for (const alternatives of [schema.anyOf, schema.oneOf]) {
      if (Array.isArray(alternatives)) parts.push(either(alternatives.map((one) => this.#describe(one))));
    }
    if (Object.hasOwn(schema, "const")) parts.push(either([valueType(schema.const)]));
    else if (Array.isArray(schema.enum)) parts.push(either(schema.enum.map(valueType)));
    if (typeof type === "string") parts.push(this.#ofType(type, schema));
    else if (Array.isArray(type)) parts.push(either(type.map((name) => this.#ofType(name, schema))));
    else if (isObject(schema.properties)) parts.push(this.#ofType("object", schema));
    return parts;
  }

  #ofType(name: unknown, schema: JsonObject): Described {
    switch (name) {
      case "null":
        return { type: undefined, nullable: true };
      case "boolean":
        return present({ kind: "bool" });
      case "integer":
        return present({ kind: "int64" });
      case "number":
        return present({ kind: "float64" });
      case "string":
        return present(textType(schema.format));
      case "array":
        return present(this.#array(schema));
      case "object":
        return present(this.#object(schema));
      default:
        throw bad(`it has the type ${JSON.stringify(name)}`);
    }
  }

  #array({ items, prefixItems, additionalItems }: JsonObject): DataType {
    // Draft 7 wrote tuples as a list of items.
    const tuple = Array.isArray(prefixItems) ? prefixItems : Array.isArray(items) ? items : [];
    const rest = Array.isArray(items) ? additionalItems : items;
    const all = tuple.map((item) => this.#describe(item));
    if (tuple.length === 0 || isObject(rest)) all.push(this.#describe(rest));
    const { type, nullable } = either(all);
    // Elements of several kinds: nobody asks for the third of them by type.
    if (type?.kind === "json" && all.length > 1) return JSON_TYPE;
    return { kind: "list", element: field("element", { type, nullable }) };
  }

  #object({ properties, required, additionalProperties }: JsonObject): DataType {
    const members = isObject(properties) ? Object.entries(properties) : [];
    if (members.length === 0 && isObject(additionalProperties)) {
      const { type, nullable } = this.#describe(additionalProperties);
      const value = type === undefined || storedType(type) === undefined ? JSON_TYPE : type;
      return {
        kind: "map",
        key: { id: 0, name: "key", type: { kind: "string" }, nullable: false },
        value: { id: 0, name: "value", type: value, nullable },
      };
    }
    if (members.length === 0) return UNKNOWN;
    const needed = new Set(Array.isArray(required) ? required : []);
    const fields = members.map(([name, schema]) => {
      const { type, nullable } = this.#describe(schema);
      return field(fieldName(name), { type, nullable: nullable || !needed.has(name) });
    });
    return { kind: "struct", fields };
  }

  /** RFC 6901 pointers as URI fragments; other documents are not fetched. */
  #reference(reference: string): Described {
    if (this.#open.has(reference)) return { type: JSON_TYPE, nullable: true };
    this.#open.add(reference);
    const described = this.#describe(this.#lookUp(reference));
    this.#open.delete(reference);
    return described;
  }

  #lookUp(reference: string): unknown {
    if (reference !== "#" && !reference.startsWith("#/")) throw bad(`it refers to ${JSON.stringify(reference)}`);
    let found: unknown = this.#document;
    for (const part of reference.split("/").slice(1)) {
      const key = unescapePointer(part);
      const inside = (isObject(found) || Array.isArray(found)) && Object.hasOwn(found, key);
      if (!inside) throw bad(`it refers to ${JSON.stringify(reference)}, which is not there`);
      found = (found as JsonObject)[key];
    }
    return found;
  }
}

function unescapePointer(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    throw bad(`it has a reference with ${JSON.stringify(part)}, which is not percent-encoded`);
  }
}

function textType(format: unknown): DataType {
  switch (format) {
    // RFC 3339 date-times have a zone. Its times have one too, which our time has not: they stay text.
    case "date-time":
      return { kind: "timestamptz" };
    case "date":
    case "uuid":
      return { kind: format };
    default:
      return { kind: "string" };
  }
}

function valueType(value: unknown): Described {
  switch (typeof value) {
    case "boolean":
      return present({ kind: "bool" });
    case "string":
      return present({ kind: "string" });
    case "number":
      return present({ kind: Number.isSafeInteger(value) ? "int64" : "float64" });
    default:
      return value === null ? { type: undefined, nullable: true } : present(JSON_TYPE);
  }
}

function present(type: DataType): Described {
  return { type, nullable: false };
}

/** A field; null where nothing is known of its type, because then nothing is stored. */
function field(name: string, { type = UNKNOWN, nullable }: Described): Field {
  return { id: 0, name, type, nullable: nullable || storedType(type) === undefined };
}

/** One of several descriptions holds. */
function either(alternatives: readonly Described[]): Described {
  let type: DataType | undefined;
  for (const one of alternatives) type = type && one.type ? common(type, one.type) : (type ?? one.type);
  return { type, nullable: alternatives.length === 0 || alternatives.some((one) => one.nullable) };
}

/** Two descriptions hold at once; the one that says more about the type wins. */
function both(a: Described, b: Described): Described {
  const nullable = a.nullable && b.nullable;
  if (a.type === undefined || b.type === undefined) return { type: undefined, nullable };
  if (a.type.kind === "unknown" || a.type.kind === "json") return { type: b.type, nullable };
  if (a.type.kind !== "struct" || b.type.kind !== "struct") return { type: narrower(a.type, b.type), nullable };
  const fields = mergeFields(a.type.fields, b.type.fields, (x, y) =>
    field(x.name, both({ type: x.type, nullable: x.nullable }, { type: y.type, nullable: y.nullable })),
  );
  return { type: { kind: "struct", fields }, nullable };
}

/** `{ "type": "number", "enum": [1, 2] }` is of integers, `{ "type": "string", "format": "date", "const": … }` of dates. */
function narrower(a: DataType, b: DataType): DataType {
  if (b.kind === "unknown" || b.kind === "json") return a;
  return a.kind === "float64" || a.kind === "string" ? b : a;
}

/** The type that holds the values of both. */
function common(a: DataType, b: DataType): DataType {
  if (formatType(a) === formatType(b)) return a;
  if (a.kind === "unknown" || b.kind === "unknown") return UNKNOWN;
  if (isNumber(a) && isNumber(b)) return { kind: "float64" };
  if (isText(a) && isText(b)) return { kind: "string" };
  if (a.kind === "list" && b.kind === "list") {
    return { kind: "list", element: commonField(a.element, b.element) };
  }
  if (a.kind === "struct" && b.kind === "struct") {
    const inBoth = new Set(a.fields.map(({ name }) => nameKey(name)));
    for (const key of [...inBoth]) if (!b.fields.some(({ name }) => nameKey(name) === key)) inBoth.delete(key);
    const fields = mergeFields(a.fields, b.fields, commonField);
    return {
      kind: "struct",
      fields: fields.map((one) => (inBoth.has(nameKey(one.name)) ? one : { ...one, nullable: true })),
    };
  }
  return JSON_TYPE;
}

function commonField(a: Field, b: Field): Field {
  return field(a.name, { type: common(a.type, b.type), nullable: a.nullable || b.nullable });
}

function mergeFields(a: readonly Field[], b: readonly Field[], merge: (a: Field, b: Field) => Field): Field[] {
  const others = new Map(b.map((one) => [one.name, one]));
  const merged = a.map((one) => {
    const other = others.get(one.name);
    others.delete(one.name);
    return other ? merge(one, other) : one;
  });
  return [...merged, ...others.values()];
}

function isNumber(type: DataType): boolean {
  return type.kind === "int64" || type.kind === "float64";
}

/** Their values are strings in JSON. */
function isText(type: DataType): boolean {
  return type.kind === "string" || type.kind === "timestamptz" || type.kind === "date" || type.kind === "uuid";
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function bad(reason: string): SchemaError {
  return new SchemaError("bad_json_schema", `cannot make columns from the JSON Schema: ${reason}`);
}
