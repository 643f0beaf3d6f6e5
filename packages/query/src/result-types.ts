/** DuckDB's types as text, and what becomes of those that have no column type of ours. */

import { SchemaError } from "@eider/core";
import type { Native, NativeType } from "./native.js";
import { quoteName, quoteText } from "./sql-tokens.js";

/**
 * How a column's JavaScript values differ from what its column type says: integers wider than 64 bits are kept as
 * decimals or text, and come out as integers.
 */
export type Shape =
  | { readonly kind: "plain" }
  | { readonly kind: "integer" }
  | { readonly kind: "list"; readonly element: Shape }
  | { readonly kind: "map"; readonly key: Shape; readonly value: Shape }
  | { readonly kind: "struct"; readonly fields: ReadonlyMap<string, Shape> };

export const PLAIN: Shape = { kind: "plain" };

/** A type as DuckDB writes it: `DECIMAL(10,2)`, `STRUCT("a" INTEGER)[]`. */
export function typeText(native: Native, type: NativeType): string {
  return formatType(native, type, () => undefined);
}

/**
 * The type to cast to where a type, or one within it, has no layout that we read: `VARCHAR` in place of each such.
 * Undefined where there is none.
 */
export function castTarget(native: Native, type: NativeType): string | undefined {
  const { Type } = native;
  let found = false;
  let unnamed = false;
  const target = formatType(native, type, (child, id) => {
    if (id === Type.STRUCT && native.struct_type_child_name(child, 0) === "") unnamed = true;
    if (!isReadAsText(native, id)) return undefined;
    found = true;
    return "VARCHAR";
  });
  if (!found) return undefined;
  // No type text names the fields of an unnamed struct.
  return unnamed ? "VARCHAR" : target;
}

/**
 * For a column of a foreign Parquet file: the type to cast to, undefined to take it as it is.
 * @param instants for each primitive column of it, depth first, whether its timestamps are instants although DuckDB takes
 *   them for local times
 * @throws SchemaError `unsupported_type`
 */
export function importTarget(
  native: Native,
  type: NativeType,
  column: string,
  instants: readonly boolean[],
): string | undefined {
  const { Type } = native;
  let found = false;
  let leaf = 0;
  const target = formatType(native, type, (child, id) => {
    if (id === Type.LIST || id === Type.STRUCT || id === Type.MAP) return undefined;
    if (instants[leaf++] && id === Type.TIMESTAMP) {
      found = true;
      return "TIMESTAMP WITH TIME ZONE";
    }
    if (id === Type.TIME_NS || id === Type.TIME_TZ) {
      found = true;
      return "TIME";
    }
    if (!isReadAsText(native, id)) return undefined;
    throw new SchemaError(
      "unsupported_type",
      `the column ${JSON.stringify(column)} holds ${typeText(native, child)}, which cannot be stored: convert it to text, numbers or binary first`,
      { subject: column },
    );
  });
  return found ? target : undefined;
}

export function shapeOf(native: Native, type: NativeType): Shape {
  const { Type } = native;
  switch (native.get_type_id(type)) {
    case Type.HUGEINT:
    case Type.UHUGEINT:
    case Type.BIGNUM:
      return { kind: "integer" };
    case Type.LIST:
      return listShape(shapeOf(native, native.list_type_child_type(type)));
    case Type.ARRAY:
      return listShape(shapeOf(native, native.array_type_child_type(type)));
    case Type.MAP: {
      const key = shapeOf(native, native.map_type_key_type(type));
      const value = shapeOf(native, native.map_type_value_type(type));
      return key === PLAIN && value === PLAIN ? PLAIN : { kind: "map", key, value };
    }
    case Type.STRUCT: {
      const shapes = structTypes(native, type).map((child) => shapeOf(native, child));
      if (shapes.every((shape) => shape === PLAIN)) return PLAIN;
      return { kind: "struct", fields: new Map(structNames(native, type).map((name, i) => [name, shapes[i]!])) };
    }
    default:
      return PLAIN;
  }
}

function listShape(element: Shape): Shape {
  return element === PLAIN ? PLAIN : { kind: "list", element };
}

export function structTypes(native: Native, type: NativeType): NativeType[] {
  return Array.from({ length: native.struct_type_child_count(type) }, (_, i) => native.struct_type_child_type(type, i));
}

/** A struct's field names, made usable as keys: unnamed ones (of `row(…)`) become `field_1`, …. */
export function structNames(native: Native, type: NativeType): string[] {
  const count = native.struct_type_child_count(type);
  return uniqueNames(
    Array.from({ length: count }, (_, i) => native.struct_type_child_name(type, i) || `field_${i + 1}`),
  );
}

/** Gives each name that came before, without regard to case, the next free suffix: `a`, `A` → `a`, `A_1`. As DuckDB does. */
export function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>();
  const counts = new Map<string, number>();
  return names.map((name) => {
    const key = name.toLowerCase();
    let count = counts.get(key) ?? 0;
    let unique = name;
    while (used.has(unique.toLowerCase())) unique = `${name}_${++count}`;
    counts.set(key, count);
    used.add(unique.toLowerCase());
    return unique;
  });
}

function isReadAsText(native: Native, id: number): boolean {
  const { Type } = native;
  switch (id) {
    case Type.UHUGEINT:
    case Type.BIGNUM:
    case Type.VARIANT:
    case Type.INTERVAL:
    case Type.BIT:
    case Type.UNION:
    case Type.TIME_TZ:
    case Type.TIME_NS:
    case Type.GEOMETRY:
      return true;
    default:
      return false;
  }
}

/** `leaf` may give the text for a type, and for all that is within it. */
function formatType(
  native: Native,
  type: NativeType,
  leaf: (type: NativeType, id: number) => string | undefined,
): string {
  const { Type } = native;
  const id = native.get_type_id(type);
  const own = leaf(type, id);
  if (own !== undefined) return own;
  const text = (child: NativeType): string => formatType(native, child, leaf);
  const members = (names: readonly string[], types: readonly NativeType[]): string =>
    names.map((name, i) => `${quoteName(name)} ${text(types[i]!)}`).join(", ");
  switch (id) {
    case Type.LIST:
      return `${text(native.list_type_child_type(type))}[]`;
    case Type.ARRAY:
      return `${text(native.array_type_child_type(type))}[${native.array_type_array_size(type)}]`;
    case Type.MAP:
      return `MAP(${text(native.map_type_key_type(type))}, ${text(native.map_type_value_type(type))})`;
    case Type.STRUCT: {
      const types = structTypes(native, type);
      return `STRUCT(${members(
        types.map((_, i) => native.struct_type_child_name(type, i)),
        types,
      )})`;
    }
    case Type.UNION: {
      const count = native.union_type_member_count(type);
      const at = Array.from({ length: count }, (_, i) => i);
      return `UNION(${members(
        at.map((i) => native.union_type_member_name(type, i)),
        at.map((i) => native.union_type_member_type(type, i)),
      )})`;
    }
    case Type.ENUM: {
      const words = Array.from({ length: native.enum_dictionary_size(type) }, (_, i) =>
        quoteText(native.enum_dictionary_value(type, i)),
      );
      return `ENUM(${words.join(", ")})`;
    }
    case Type.DECIMAL:
      return `DECIMAL(${native.decimal_width(type)},${native.decimal_scale(type)})`;
    case Type.TIMESTAMP_TZ:
      return "TIMESTAMP WITH TIME ZONE";
    case Type.TIME_TZ:
      return "TIME WITH TIME ZONE";
    default:
      return native.logical_type_get_alias(type) ?? Type[id] ?? "UNKNOWN";
  }
}
