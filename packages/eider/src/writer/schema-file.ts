/**
 * Schemas as lists of fields under the names that Parquet's own types have, inline or in a YAML or JSON file:
 *
 * ```yaml
 * schema:
 *   - { name: id, type: INT64 }
 *   - { name: price, type: DECIMAL64, decimal_precision: 12, decimal_scale: 2, optional: true }
 *   - { name: tags, type: LIST, fields: [{ name: element, type: UTF8 }] }
 * ```
 *
 * A field is required unless it is `optional`. Types are those below, or Eider's own in lower case: `timestamptz`.
 */

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import {
  assignFieldIds,
  type DataType,
  type Field,
  InvalidInputError,
  NotFoundError,
  parseSchema,
  parseType,
  type Schema,
  SchemaError,
  type SchemaInput,
} from "@eider/core";

/** One column, or one level of a nested one. */
export interface SchemaField {
  readonly name: string;
  /** `BOOLEAN INT8 INT16 INT32 INT64 FLOAT DOUBLE DECIMAL32 DECIMAL64 DECIMAL128 BYTE_ARRAY UTF8 TIMESTAMP DATE UUID JSON LIST MAP STRUCT`. */
  readonly type?: string;
  /** Default false: a missing or null value is an error. */
  readonly optional?: boolean;
  /** The column is a list of such values. Default false. */
  readonly repeated?: boolean;
  /** Of STRUCT; the one element of LIST; `key` and `value` of MAP. */
  readonly fields?: readonly SchemaField[];
  /** Digits of a decimal. Default: as many as its width holds. */
  readonly decimal_precision?: number;
  /** Digits after the point. Default 0. */
  readonly decimal_scale?: number;
}

const SIMPLE: Readonly<Record<string, string>> = {
  BOOLEAN: "bool",
  INT8: "int8",
  INT16: "int16",
  INT32: "int32",
  INT64: "int64",
  FLOAT: "float32",
  DOUBLE: "float64",
  BYTE_ARRAY: "binary",
  UTF8: "string",
  // An instant, in microseconds, which all engines read; Parquet calls it adjusted to UTC.
  TIMESTAMP: "timestamptz",
  DATE: "date",
  UUID: "uuid",
  JSON: "json",
};
/** The most digits of each width. */
const DECIMALS: Readonly<Record<string, number>> = { DECIMAL32: 9, DECIMAL64: 18, DECIMAL128: 38 };
const GROUPS = ["LIST", "MAP", "STRUCT"];
const KEYS = ["name", "type", "optional", "repeated", "fields", "decimal_precision", "decimal_scale"];
/** Groups in each other: a hostile file ends here. */
const MAX_DEPTH = 100;

/**
 * The schema that a writer was given, ids assigned.
 * @throws InvalidInputError `bad_option` unless there is exactly one of the two
 * @throws NotFoundError `file_not_found`
 * @throws SchemaError `bad_schema`, naming the place
 */
export async function writerSchema(
  schema: SchemaInput | readonly SchemaField[] | undefined,
  schemaFile: string | URL | undefined,
): Promise<Schema> {
  if ((schema === undefined) === (schemaFile === undefined)) {
    throw new InvalidInputError("bad_option", "a writer takes either schema or schemaFile, exactly one of the two");
  }
  const given = schemaFile === undefined ? schema! : await readSchemaFile(schemaFile);
  const read = isList(given) ? { fields: readFields(given, "schema", 0) } : given;
  return assignFieldIds(parseSchema(read));
}

function isList(schema: SchemaInput | readonly SchemaField[]): schema is readonly SchemaField[] {
  return Array.isArray(schema);
}

async function readSchemaFile(file: string | URL): Promise<readonly SchemaField[]> {
  const path = String(file).startsWith("file:") ? fileURLToPath(file) : String(file);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new NotFoundError("file_not_found", `there is no schema file ${path}`, { subject: path, cause });
    }
    const reason = `cannot read the schema file ${path} (${code ?? "unknown error"})`;
    throw new InvalidInputError("file_unreadable", reason, { subject: path, cause });
  }
  // Loaded only here: it would be a third of what importing this library costs every process.
  const { parse } = await import("yaml");
  let content: unknown;
  try {
    // JSON is YAML too.
    content = parse(text);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split("\n")[0]! : String(cause);
    throw new SchemaError("bad_schema", `the schema file ${path} is neither YAML nor JSON: ${reason}`, {
      subject: path,
      cause,
    });
  }
  if (typeof content === "object" && content !== null && !Array.isArray(content)) {
    const others = Object.keys(content).filter((key) => key !== "schema");
    if (others.length > 0) fail(path, `has the key ${JSON.stringify(others[0])}; only schema is known`);
    content = (content as { schema?: unknown }).schema;
  }
  if (!Array.isArray(content)) fail(path, "holds no list of fields under schema:");
  return content;
}

function readFields(list: readonly unknown[], path: string, depth: number): Field[] {
  if (depth > MAX_DEPTH) fail(path, `is nested deeper than ${MAX_DEPTH} levels`);
  return list.map((item, i) => readField(item, `${path}[${i}]`, depth));
}

function readField(item: unknown, path: string, depth: number): Field {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return fail(path, "is not a field");
  const other = Object.keys(item).find((key) => !KEYS.includes(key));
  if (other !== undefined) fail(path, `has the key ${JSON.stringify(other)}; known are ${KEYS.join(", ")}`);
  const field = item as SchemaField;
  if (typeof field.name !== "string") fail(`${path}.name`, "is not a text");
  for (const key of ["optional", "repeated"] as const) {
    if (field[key] !== undefined && typeof field[key] !== "boolean") fail(`${path}.${key}`, "is not true or false");
  }
  const place = `${path} (${field.name})`;
  const type = readType(field, place, depth);
  if (field.repeated && field.optional) fail(place, "is both optional and repeated: make it a LIST, which may be null");
  const element: Field = { id: 0, name: "element", type, nullable: false };
  return {
    id: 0,
    name: field.name,
    type: field.repeated ? { kind: "list", element } : type,
    nullable: field.optional ?? false,
  };
}

function readType(field: SchemaField, place: string, depth: number): DataType {
  const { type, fields, decimal_precision: precision, decimal_scale: scale } = field;
  if (type === undefined && fields !== undefined) return readGroup("STRUCT", field, place, depth);
  if (typeof type !== "string") return fail(place, "has no type");
  if (GROUPS.includes(type)) return readGroup(type, field, place, depth);
  if (fields !== undefined) fail(place, `is ${type} and has fields, which only ${GROUPS.join(", ")} have`);
  if (Object.hasOwn(DECIMALS, type)) return readDecimal(type, precision, scale, place);
  if (precision !== undefined || scale !== undefined) fail(place, `is ${type}, which has no precision and no scale`);
  if (Object.hasOwn(SIMPLE, type)) return { kind: SIMPLE[type] } as DataType;
  if (type === type.toLowerCase()) return parseType(type);
  return fail(
    place,
    `has the type ${type}; known are ${Object.keys({ ...SIMPLE, ...DECIMALS }).join(", ")}, ${GROUPS.join(", ")}`,
  );
}

function readDecimal(type: string, precision: unknown, scale: unknown, place: string): DataType {
  const most = DECIMALS[type]!;
  const digits = precision ?? most;
  const after = scale ?? 0;
  if (!isWhole(digits, 1, most))
    return fail(place, `has a precision that ${type} has not: a whole number from 1 to ${most}`);
  if (!isWhole(after, 0, digits)) return fail(place, "has a scale that is not a whole number from 0 to its precision");
  return { kind: "decimal", precision: digits, scale: after };
}

function readGroup(type: string, field: SchemaField, place: string, depth: number): DataType {
  if (!Array.isArray(field.fields)) return fail(place, `is a ${type} without fields`);
  const fields = readFields(field.fields, `${place}.fields`, depth + 1);
  if (type === "STRUCT") return { kind: "struct", fields };
  if (type === "LIST") {
    const [element, ...others] = fields;
    if (!element || others.length > 0) return fail(place, "is a LIST, whose fields are exactly one: its element");
    return { kind: "list", element: { ...element, name: "element" } };
  }
  const key = fields.find(({ name }) => name === "key");
  const value = fields.find(({ name }) => name === "value");
  if (!key || !value || fields.length !== 2) return fail(place, "is a MAP, whose fields are key and value");
  if (key.type.kind !== "string" || key.nullable) return fail(place, "is a MAP, whose key is a required UTF8");
  return { kind: "map", key, value };
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

function fail(place: string, reason: string): never {
  throw new SchemaError("bad_schema", `cannot read the schema: ${place} ${reason}`, { subject: place });
}
