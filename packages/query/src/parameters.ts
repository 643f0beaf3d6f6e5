/** Parameters of a statement: which value belongs to which mark, and JavaScript values as DuckDB's. */

import { InvalidInputError, QueryError } from "@eider/core";
import type { Native, NativeStatement, NativeType, NativeValue } from "./native.js";
import type { SqlParam } from "./query.js";
import { quoteText } from "./sql-tokens.js";
import type { Parameter } from "./statement.js";

export type ParameterValues = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Values by the name that DuckDB has for the parameter: `1`, `2`, … for positional ones. */
export type BoundParameters = ReadonlyMap<string, SqlParam>;

/**
 * Matches values with parameters: every parameter has a value and every value a parameter.
 * @throws QueryError `bad_parameters`; InvalidInputError `bad_parameter` for a value that SQL has no counterpart of
 */
export function matchParameters(parameters: readonly Parameter[], values: ParameterValues): BoundParameters {
  const named = parameters.filter((p) => p.kind === "named");
  const kind = named[0]?.kind ?? parameters.find((p) => p.kind === "plain")?.kind ?? "numbered";
  const other = parameters.find((p) => p.kind !== kind);
  if (other) {
    throw new QueryError("bad_parameters", "use one kind of parameters in a statement: ?, $1 or $name", {
      position: other.start,
    });
  }
  return Array.isArray(values)
    ? matchPositions(parameters, named[0], values)
    : matchNames(parameters, named, values as Readonly<Record<string, unknown>>);
}

function matchPositions(
  parameters: readonly Parameter[],
  named: Parameter | undefined,
  values: readonly unknown[],
): BoundParameters {
  if (named) {
    throw new QueryError("bad_parameters", `$${named.name} is named: pass the values as { ${named.name}: … }`, {
      position: named.start,
    });
  }
  const numbers = parameters.map((p) => Number(p.name));
  const missing = numbers.findIndex((n) => n < 1 || n > values.length);
  if (missing >= 0) {
    const count = `${values.length} ${values.length === 1 ? "value was" : "values were"}`;
    throw new QueryError("bad_parameters", `parameter ${numbers[missing]} has no value: ${count} passed`, {
      position: parameters[missing]!.start,
    });
  }
  const bound = new Map<string, SqlParam>();
  for (const [i, value] of values.entries()) {
    if (!numbers.includes(i + 1)) {
      throw new QueryError(
        "bad_parameters",
        `value ${i + 1} of ${values.length} is not used by the statement (a parameter inside quotes is text)`,
      );
    }
    bound.set(String(i + 1), checkValue(value, `parameter ${i + 1}`));
  }
  return bound;
}

function matchNames(
  parameters: readonly Parameter[],
  named: readonly Parameter[],
  values: Readonly<Record<string, unknown>>,
): BoundParameters {
  if (parameters.length > 0 && named.length === 0) {
    throw new QueryError("bad_parameters", "the parameters have no names: pass the values as an array", {
      position: parameters[0]!.start,
    });
  }
  for (const { name, start } of named) {
    if (!Object.hasOwn(values, name)) {
      throw new QueryError("bad_parameters", `parameter $${name} has no value`, { position: start });
    }
  }
  const bound = new Map<string, SqlParam>();
  for (const [name, value] of Object.entries(values)) {
    if (!named.some((p) => p.name === name)) {
      throw new QueryError("bad_parameters", `value ${JSON.stringify(name)} is not used by the statement`);
    }
    bound.set(name, checkValue(value, `parameter $${name}`));
  }
  return bound;
}

/** Binds every parameter of a prepared statement. */
export function bindParameters(native: Native, statement: NativeStatement, values: BoundParameters): void {
  const count = native.nparams(statement);
  for (let index = 1; index <= count; index++) {
    const value = values.get(native.parameter_name(statement, index));
    if (value === undefined) throw new Error(`parameter ${index} is not bound`);
    native.bind_value(statement, index, toNative(native, value, typeOf(value)));
  }
}

/**
 * A value as SQL of the type that {@link bindParameters} gives it; undefined for values that have no short form. DuckDB
 * cannot serialize a plan that has parameters.
 */
export function literalOf(value: SqlParam): string | undefined {
  const type = typeOf(value);
  const cast = (text: string, name: string): string => `CAST(${quoteText(text)} AS ${name})`;
  switch (type.kind) {
    case "null":
      return "NULL";
    case "bool":
      return String(value);
    case "int32":
      return cast(String(value), "INTEGER");
    case "int64":
      return cast(String(value), "BIGINT");
    case "hugeint":
      return cast(String(value), "HUGEINT");
    case "double":
      return cast(Object.is(value, -0) ? "-0.0" : String(value), "DOUBLE");
    case "text":
      // C strings end at NUL.
      return String(value).includes("\0") ? undefined : cast(String(value), "VARCHAR");
    case "instant": {
      const iso = (value as Date).toISOString();
      return /^\d{4}-/.test(iso) ? cast(iso, "TIMESTAMPTZ") : undefined;
    }
    case "list": {
      const elements = (value as readonly SqlParam[]).map(literalOf);
      return elements.every((element) => element !== undefined) ? `[${elements.join(", ")}]` : undefined;
    }
    default:
      return undefined;
  }
}

const LONE_SURROGATE = /\p{Surrogate}/u;
const HUGEINT_LIMIT = 2n ** 127n;

function checkValue(value: unknown, what: string): SqlParam {
  const fail = (reason: string): never => {
    throw new InvalidInputError("bad_parameter", `${what} ${reason}`);
  };
  switch (typeof value) {
    case "boolean":
    case "number":
      return value;
    case "bigint":
      return value >= -HUGEINT_LIMIT && value < HUGEINT_LIMIT ? value : fail("does not fit in 128 bits");
    case "string":
      return LONE_SURROGATE.test(value) ? fail("is not valid Unicode") : value;
    case "undefined":
      return fail("is undefined: pass null for NULL");
    case "object":
      break;
    default:
      return fail(`is a ${typeof value}, which is no SQL value`);
  }
  if (value === null || value instanceof Uint8Array) return value;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? fail("is an invalid Date") : value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) checkValue(value[i], `element ${i} of ${what}`);
    typeOf(value);
    return value as SqlParam;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    return fail(`is a ${value.constructor?.name ?? "class instance"}, which is no SQL value: pass a plain object`);
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return fail("is an object without fields, which SQL has no type for");
  for (const [key, field] of entries) {
    if (key === "") return fail("has a field without a name");
    checkValue(field, `field ${JSON.stringify(key)} of ${what}`);
  }
  return value as SqlParam;
}

type ParameterType =
  | { readonly kind: "null" | "bool" | "int32" | "int64" | "hugeint" | "double" | "text" | "instant" | "blob" }
  | { readonly kind: "list"; readonly element: ParameterType }
  | { readonly kind: "struct"; readonly fields: ReadonlyMap<string, ParameterType> };

/** Integers take the narrowest of INTEGER, BIGINT, HUGEINT; other numbers, and −0, are DOUBLE. */
function typeOf(value: SqlParam): ParameterType {
  if (value === null) return { kind: "null" };
  switch (typeof value) {
    case "boolean":
      return { kind: "bool" };
    case "number":
      if (!Number.isSafeInteger(value) || Object.is(value, -0)) return { kind: "double" };
      return { kind: (value | 0) === value ? "int32" : "int64" };
    case "bigint":
      return { kind: BigInt.asIntN(64, value) === value ? "int64" : "hugeint" };
    case "string":
      return { kind: "text" };
  }
  if (value instanceof Date) return { kind: "instant" };
  if (value instanceof Uint8Array) return { kind: "blob" };
  if (Array.isArray(value)) {
    return { kind: "list", element: (value as readonly SqlParam[]).map(typeOf).reduce(common, { kind: "null" }) };
  }
  return { kind: "struct", fields: new Map(Object.entries(value).map(([key, field]) => [key, typeOf(field)])) };
}

const INTEGERS = ["int32", "int64", "hugeint"];

/** The type that holds values of both. */
function common(a: ParameterType, b: ParameterType): ParameterType {
  if (a.kind === "null") return b;
  if (b.kind === "null") return a;
  const [ia, ib] = [INTEGERS.indexOf(a.kind), INTEGERS.indexOf(b.kind)];
  if (ia >= 0 && ib >= 0) return ia > ib ? a : b;
  if (a.kind === "double" && ib >= 0) return a;
  if (b.kind === "double" && ia >= 0) return b;
  if (a.kind === "list" && b.kind === "list") return { kind: "list", element: common(a.element, b.element) };
  if (a.kind === "struct" && b.kind === "struct") {
    const fields = new Map(a.fields);
    for (const [name, type] of b.fields) fields.set(name, common(fields.get(name) ?? { kind: "null" }, type));
    return { kind: "struct", fields };
  }
  if (a.kind === b.kind) return a;
  throw new InvalidInputError(
    "bad_parameter",
    `a list parameter mixes ${a.kind} and ${b.kind}: SQL lists have one type`,
  );
}

function toNative(native: Native, value: SqlParam | undefined, type: ParameterType): NativeValue {
  if (value === null || value === undefined) return native.create_null_value();
  switch (type.kind) {
    case "null":
      return native.create_null_value();
    case "bool":
      return native.create_bool(value as boolean);
    case "int32":
      return native.create_int32(value as number);
    case "int64":
      return native.create_int64(BigInt(value as number | bigint));
    case "hugeint":
      return native.create_hugeint(BigInt(value as number | bigint));
    case "double":
      return native.create_double(exactDouble(value as number | bigint));
    case "text":
      return native.create_varchar(value as string);
    case "blob":
      return native.create_blob(value as Uint8Array);
    case "instant":
      return native.create_timestamp_tz({ micros: BigInt((value as Date).getTime()) * 1000n });
    case "list":
      return native.create_list_value(
        toNativeType(native, type.element),
        (value as readonly SqlParam[]).map((element) => toNative(native, element, type.element)),
      );
    case "struct": {
      const fields = value as Readonly<Record<string, SqlParam>>;
      return native.create_struct_value(
        toNativeType(native, type),
        [...type.fields].map(([name, field]) =>
          toNative(native, Object.hasOwn(fields, name) ? fields[name] : null, field),
        ),
      );
    }
  }
}

function exactDouble(value: number | bigint): number {
  const double = Number(value);
  if (typeof value === "bigint" && BigInt(double) !== value) {
    throw new InvalidInputError("bad_parameter", "a list parameter mixes fractions and a bigint that no double holds");
  }
  return double;
}

function toNativeType(native: Native, type: ParameterType): NativeType {
  const { Type } = native;
  switch (type.kind) {
    case "null":
      return native.create_logical_type(Type.SQLNULL);
    case "bool":
      return native.create_logical_type(Type.BOOLEAN);
    case "int32":
      return native.create_logical_type(Type.INTEGER);
    case "int64":
      return native.create_logical_type(Type.BIGINT);
    case "hugeint":
      return native.create_logical_type(Type.HUGEINT);
    case "double":
      return native.create_logical_type(Type.DOUBLE);
    case "text":
      return native.create_logical_type(Type.VARCHAR);
    case "blob":
      return native.create_logical_type(Type.BLOB);
    case "instant":
      return native.create_logical_type(Type.TIMESTAMP_TZ);
    case "list":
      return native.create_list_type(toNativeType(native, type.element));
    case "struct":
      return native.create_struct_type(
        [...type.fields.values()].map((field) => toNativeType(native, field)),
        [...type.fields.keys()],
      );
  }
}
