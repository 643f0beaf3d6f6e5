/** Protobuf messages as plain data, and the schema of the columns that they fill. */

import { SchemaError } from "./errors.js";
import { MAX_DEPTH } from "./row-batches.js";
import { assignFieldIds, type DataType, type Field, type Schema, type SimpleKind, toSchema } from "./schema.js";

export type ProtobufScalar = ProtobufKey | "float" | "double" | "bytes";

/** Scalar types, and the columns that they become. */
const COLUMN_KINDS: Readonly<Record<ProtobufScalar, SimpleKind>> = {
  int32: "int32",
  sint32: "int32",
  sfixed32: "int32",
  uint32: "uint32",
  fixed32: "uint32",
  int64: "int64",
  sint64: "int64",
  sfixed64: "int64",
  uint64: "uint64",
  fixed64: "uint64",
  float: "float32",
  double: "float64",
  bool: "bool",
  string: "string",
  bytes: "binary",
};

/** What the keys of a map may be. */
export type ProtobufKey =
  | "int32"
  | "sint32"
  | "sfixed32"
  | "uint32"
  | "fixed32"
  | "int64"
  | "sint64"
  | "sfixed64"
  | "uint64"
  | "fixed64"
  | "bool"
  | "string";

/** A scalar, an enum (its names and numbers), or a message. */
export type ProtobufType =
  | ProtobufScalar
  | { readonly enum: Readonly<Record<string, number>> }
  | { readonly message: readonly ProtobufField[] };

/** One field of a message, as its `.proto` file has it. */
export interface ProtobufField {
  /** The column's name. */
  readonly name: string;
  readonly number: number;
  /** The type of the value; of each value where the field is repeated or a map. */
  readonly type: ProtobufType;
  /** The field is `repeated`: a list. Packed or not, both are read. */
  readonly repeated?: boolean;
  /** The field is `map<mapKey, type>`. */
  readonly mapKey?: ProtobufKey;
  /**
   * What a scalar or enum is that a message does not have. `implicit` (default), as in proto3: 0, false or empty.
   * `explicit`, as `optional` and proto2: null. Members of a oneof and messages are always explicit.
   */
  readonly presence?: "implicit" | "explicit";
  /** Name of the oneof that the field belongs to: only the member that came last has a value. */
  readonly oneof?: string;
}

const MAX_FIELD_NUMBER = 0x1fff_ffff;

/**
 * The schema that messages of these fields have, in their order, ids assigned: enums are their names, messages structs,
 * repeated fields lists. All but the keys of maps are nullable, so that later messages may have fewer fields.
 * @throws SchemaError `bad_protobuf` for what no `.proto` file could say, `bad_name`, `duplicate_field`
 */
export function protobufSchema(fields: readonly ProtobufField[]): Schema {
  return assignFieldIds(toSchema({ fields: columnsOf(fields, 1) }));
}

function columnsOf(fields: readonly ProtobufField[], depth: number): Field[] {
  const numbers = new Set<number>();
  return fields.map((field) => {
    const { name, number, mapKey, repeated, oneof } = field;
    if (!Number.isInteger(number) || number < 1 || number > MAX_FIELD_NUMBER) {
      throw fault(field, `has a number that is no integer from 1 to ${MAX_FIELD_NUMBER}`);
    }
    if (numbers.has(number)) throw fault(field, `has the number ${number}, as another field has`);
    numbers.add(number);
    if (Number(repeated ?? false) + Number(mapKey !== undefined) + Number(oneof !== undefined) > 1) {
      throw fault(field, "is more than one of repeated, a map, and a member of a oneof");
    }
    return column(name, columnType(field, depth));
  });
}

function columnType(field: ProtobufField, depth: number): DataType {
  if (depth > MAX_DEPTH) throw fault(field, `is nested deeper than ${MAX_DEPTH} levels`);
  if (field.repeated === true) return { kind: "list", element: column("element", valueType(field, depth + 1)) };
  if (field.mapKey === undefined) return valueType(field, depth);
  const kind = Object.hasOwn(COLUMN_KINDS, field.mapKey) ? COLUMN_KINDS[field.mapKey] : undefined;
  if (kind === undefined || kind === "float32" || kind === "float64" || kind === "binary") {
    throw fault(field, "has keys of a type that keys of maps cannot have");
  }
  return {
    kind: "map",
    key: { ...column("key", { kind }), nullable: false },
    value: column("value", valueType(field, depth + 1)),
  };
}

function valueType(field: ProtobufField, depth: number): DataType {
  const { type } = field;
  if (typeof type === "object") {
    if ("message" in type) return { kind: "struct", fields: columnsOf(type.message, depth + 1) };
    for (const number of Object.values(type.enum)) {
      if ((number | 0) !== number) throw fault(field, "is of an enum with a number that is no 32-bit integer");
    }
    return { kind: "string" };
  }
  if (!Object.hasOwn(COLUMN_KINDS, type)) {
    throw fault(
      field,
      `has an unknown type; known are ${Object.keys(COLUMN_KINDS).join(" ")}, { enum } and { message }`,
    );
  }
  return { kind: COLUMN_KINDS[type] };
}

function column(name: string, type: DataType): Field {
  return { id: 0, name, type, nullable: true };
}

function fault({ name }: ProtobufField, what: string): SchemaError {
  return new SchemaError("bad_protobuf", `the protobuf field ${JSON.stringify(name)} ${what}`, { subject: name });
}
