/** Schemas as JSON, from anywhere: every step is checked, and a failure names the place. */

import { SchemaError } from "./errors.js";
import { type DataType, type Field, MAX_TYPE_DEPTH, parseType, type Schema, toSchema } from "./schema.js";

/** Parquet's field ids are 32-bit integers. */
const MAX_FIELD_ID = 0x7fff_ffff;

/**
 * Writes a schema as JSON, field ids included. {@link parseSchema} reads it back equal.
 * @throws SchemaError `bad_schema` if it is none
 */
export function formatSchema(schema: Schema): string {
  return JSON.stringify(readSchema(schema));
}

/**
 * Reads a schema from JSON, as text or as `JSON.parse` gave it: what {@link formatSchema} wrote, or by hand
 *
 * - `{ "id!": "int64", "tags": "list<string>" }`, or
 * - `{ "fields": [{ "name": "id", "type": "int64", "nullable": false }] }`, where a type is text or an object
 *   (`{ "kind": "decimal", "precision": 10, "scale": 2 }`), `nullable` is true and `id` 0 (not assigned) by default.
 *
 * @throws SchemaError `bad_schema`, `bad_type`, `bad_name`, `duplicate_field`
 */
export function parseSchema(json: unknown): Schema {
  return readSchema(typeof json === "string" ? parseJson(json) : json);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new SchemaError("bad_schema", "the schema is not JSON", { cause });
  }
}

function readSchema(json: unknown): Schema {
  const object = objectOf(json, "$");
  const fields = Object.hasOwn(object, "fields") ? object.fields : undefined;
  if (!Array.isArray(fields)) return toSchema(readShort(object));
  checkKeys(object, ["fields"], "$");
  const schema = { fields: fields.map((field, i) => readField(field, `$.fields[${i}]`, 0)) };
  checkIds(schema.fields, new Set());
  return toSchema(schema);
}

/** `{ "id!": "int64" }`. */
function readShort(object: Readonly<Record<string, unknown>>): Schema {
  const fields = Object.entries(object).map(([key, value]): Field => {
    const required = key.endsWith("!");
    const name = required ? key.slice(0, -1) : key;
    return { id: 0, name, type: readType(value, `$.${key}`, 1), nullable: !required };
  });
  return { fields };
}

/** Child fields of lists and maps have names that never vary. */
function readField(json: unknown, path: string, depth: number, fixedName?: string): Field {
  const object = objectOf(json, path);
  checkKeys(object, ["id", "name", "type", "nullable"], path);
  const name = fixedName ?? own(object, "name");
  const id = own(object, "id") ?? 0;
  const nullable = own(object, "nullable") ?? true;
  if (typeof name !== "string") fail(`${path}.name`, "is not a text");
  if (!isInteger(id, 0, MAX_FIELD_ID)) fail(`${path}.id`, "is not an integer from 0");
  if (typeof nullable !== "boolean") fail(`${path}.nullable`, "is not true or false");
  return { id, name, type: readType(own(object, "type"), `${path}.type`, depth + 1), nullable };
}

function readType(json: unknown, path: string, depth: number): DataType {
  if (depth > MAX_TYPE_DEPTH) fail(path, `is nested deeper than ${MAX_TYPE_DEPTH} levels`);
  if (typeof json === "string") return parseType(json);
  const object = objectOf(json, path);
  const kind = own(object, "kind");
  switch (kind) {
    case "decimal": {
      checkKeys(object, ["kind", "precision", "scale"], path);
      const { precision, scale } = object;
      if (!isInteger(precision, 1, 38)) fail(`${path}.precision`, "is not an integer from 1 to 38");
      if (!isInteger(scale, 0, precision)) fail(`${path}.scale`, "is not an integer from 0 to the precision");
      return { kind, precision, scale };
    }
    case "fixed": {
      checkKeys(object, ["kind", "size"], path);
      const { size } = object;
      if (!isInteger(size, 1, MAX_FIELD_ID)) fail(`${path}.size`, "is not a number of bytes");
      return { kind, size };
    }
    case "list":
      checkKeys(object, ["kind", "element"], path);
      return { kind, element: readField(own(object, "element"), `${path}.element`, depth, "element") };
    case "map": {
      checkKeys(object, ["kind", "key", "value"], path);
      const key = readField(own(object, "key"), `${path}.key`, depth, "key");
      return {
        kind,
        key: { ...key, nullable: false },
        value: readField(own(object, "value"), `${path}.value`, depth, "value"),
      };
    }
    case "struct": {
      checkKeys(object, ["kind", "fields"], path);
      const { fields } = object;
      if (!Array.isArray(fields)) return fail(`${path}.fields`, "is not a list");
      return { kind, fields: fields.map((field, i) => readField(field, `${path}.fields[${i}]`, depth)) };
    }
  }
  checkKeys(object, ["kind"], path);
  if (typeof kind !== "string") return fail(`${path}.kind`, "is not a text");
  const type = parseType(kind);
  return type.kind === kind ? type : fail(`${path}.kind`, "is not the name of a type");
}

function checkIds(fields: readonly Field[], seen: Set<number>): void {
  for (const { id, name, type } of fields) {
    if (id !== 0 && seen.has(id)) {
      throw new SchemaError("bad_schema", `the field id ${id} is there twice: give each field its own`, {
        subject: name,
      });
    }
    seen.add(id);
    if (type.kind === "struct") checkIds(type.fields, seen);
    else if (type.kind === "list") checkIds([type.element], seen);
    else if (type.kind === "map") checkIds([type.key, type.value], seen);
  }
}

function isInteger(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

/** Own keys only: `__proto__` is a key like any other. */
function own(object: Readonly<Record<string, unknown>>, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function objectOf(json: unknown, path: string): Readonly<Record<string, unknown>> {
  if (typeof json !== "object" || json === null || Array.isArray(json)) return fail(path, "is not an object");
  return json as Readonly<Record<string, unknown>>;
}

/** What is not understood is not skipped: it could be a misspelt `nullable`. */
function checkKeys(object: Readonly<Record<string, unknown>>, known: readonly string[], path: string): void {
  const other = Object.keys(object).find((key) => !known.includes(key));
  if (other !== undefined) fail(path, `has the key ${JSON.stringify(other)}; known here are ${known.join(", ")}`);
}

function fail(path: string, reason: string): never {
  throw new SchemaError("bad_schema", `cannot read the schema: ${path} ${reason}`, { subject: path });
}
