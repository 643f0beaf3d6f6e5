/**
 * What DuckDB's optimizer pushed down to each scan of a table, read from `json_serialize_plan` (DuckDB 1.5): constants are
 * folded and typed, names are resolved, joins and subqueries are seen through. Only comparisons of a plain column with a
 * constant of the column's own type are understood, and AND, OR and null tests around them; all else says nothing.
 */

import { ANY_FILE, allOf, anyOf, type Comparison, type FilePredicate } from "@eider/catalog";
import { type BoundValue, type DataType, duckdbType, type Field } from "@eider/core";

/** A scan of a table in a plan, by the names it has in the session. */
export interface PlannedScan {
  readonly database: string;
  readonly schema: string;
  readonly table: string;
  /** True for all rows of the table that the statement can use. */
  predicate(fields: readonly Field[]): FilePredicate;
  /** Those of the columns whose values the statement can use. */
  columns(fields: readonly Field[]): readonly Field[];
}

type Json = null | boolean | number | string | readonly Json[] | JsonObject;
interface JsonObject {
  readonly [key: string]: Json | undefined;
}

/** Numbers that JavaScript's would round, and those that JSON has not. In a text a quote would have a backslash. */
const BEYOND_JSON = /(?<=[{,]"(?:value|upper|lower)":)(-?(?:\d{16,}|Infinity)|-?NaN)(?=[,}])/g;

/** The scans of a plan; undefined if DuckDB could not make one. */
export function readPlan(text: string): PlannedScan[] | undefined {
  const plan = JSON.parse(text.replace(BEYOND_JSON, '"$1"')) as JsonObject;
  if (plan.error !== false) return undefined;
  const scans: PlannedScan[] = [];
  for (const root of list(plan.plans)) collect(object(root), [], scans);
  return scans;
}

/** `above` are the expressions of filters that stand directly above the node. */
function collect(node: JsonObject, above: readonly Json[], scans: PlannedScan[]): void {
  const { catalog, schema, table } = object(node.function_data);
  if (node.type === "LOGICAL_GET" && node.name === "seq_scan" && typeof table === "string") {
    scans.push({
      database: String(catalog),
      schema: String(schema),
      table,
      predicate: (fields) => new Scan(node, fields).predicate(above),
      columns: (fields) => new Scan(node, fields).columns(),
    });
  }
  // A function of tables, as `range((SELECT …))`, is a GET too, and has what it reads below it.
  // A filter that drops columns moves those of the filters above it.
  const moved = list(node.projection_map).length > 0;
  const filters = node.type === "LOGICAL_FILTER" ? [...(moved ? [] : above), ...list(node.expressions)] : [];
  for (const child of list(node.children)) collect(object(child), filters, scans);
}

const COMPARISONS: Readonly<Record<string, Comparison>> = {
  COMPARE_EQUAL: "=",
  COMPARE_NOTEQUAL: "<>",
  COMPARE_LESSTHAN: "<",
  COMPARE_LESSTHANOREQUALTO: "<=",
  COMPARE_GREATERTHAN: ">",
  COMPARE_GREATERTHANOREQUALTO: ">=",
  COMPARE_NOT_DISTINCT_FROM: "=",
};

const MIRRORED: Readonly<Record<Comparison, Comparison>> = {
  "=": "=",
  "<>": "<>",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

class Scan {
  readonly #node: JsonObject;
  readonly #fields: readonly Field[];

  constructor(node: JsonObject, fields: readonly Field[]) {
    this.#node = node;
    this.#fields = fields;
  }

  predicate(above: readonly Json[]): FilePredicate {
    const pushed = list(object(this.#node.table_filters).filters).map((entry) => {
      const { key, value } = object(entry);
      return this.#filter(object(value), this.#fields[Number(key)]);
    });
    const columns = this.#outputs();
    return allOf([...pushed, ...above.map((expression) => this.#expression(object(expression), columns))]);
  }

  /** Whatever is read of a column, be it a field of a struct, all of it counts. Columns that are none, as `rowid`, do not. */
  columns(): readonly Field[] {
    const ids = list(this.#node.column_indexes).map((id) => object(id).index);
    const indexes = [...ids, ...list(object(this.#node.table_filters).filters).map((entry) => object(entry).key)];
    // Of a plan that has no columns where it should have, nothing is known.
    if (ids.length === 0 || indexes.some((index) => typeof index !== "number")) return this.#fields;
    return indexes.flatMap((index) => this.#fields[Number(index)] ?? []);
  }

  /** The table's column behind each column that the scan gives. */
  #outputs(): (Field | undefined)[] {
    const ids = list(this.#node.column_indexes).map((id) => {
      const { index, has_index: isColumn, index_type: type } = object(id);
      return isColumn === true && type === "FULL_READ" ? this.#fields[Number(index)] : undefined;
    });
    const projected = list(this.#node.projection_ids);
    return projected.length === 0 ? ids : projected.map((i) => ids[Number(i)]);
  }

  /** A pushed-down filter on one column. */
  #filter(filter: JsonObject, field: Field | undefined): FilePredicate {
    if (field === undefined) return ANY_FILE;
    switch (filter.filter_type) {
      case "CONSTANT_COMPARISON":
        return compare(field, COMPARISONS[String(filter.comparison_type)], object(filter.constant));
      case "CONJUNCTION_AND":
        return allOf(list(filter.child_filters).map((child) => this.#filter(object(child), field)));
      case "CONJUNCTION_OR":
        return anyOf(list(filter.child_filters).map((child) => this.#filter(object(child), field)));
      case "OPTIONAL_FILTER":
        return this.#filter(object(filter.child_filter), field);
      case "IN_FILTER":
        return anyOf(list(filter.values).map((value) => compare(field, "=", object(value))));
      case "STRUCT_EXTRACT": {
        if (field.type.kind !== "struct") return ANY_FILE;
        const child = field.type.fields.find(({ name }) => name === filter.child_name);
        // Of a field's nulls the catalog does not tell whether the struct around it is null.
        return withoutNullTests(this.#filter(object(filter.child_filter), child));
      }
      case "EXPRESSION_FILTER":
        return this.#expression(object(filter.expr), [field]);
      default:
        return ANY_FILE;
    }
  }

  /** An expression over the given columns. */
  #expression(expression: JsonObject, columns: readonly (Field | undefined)[]): FilePredicate {
    const children = (): FilePredicate[] =>
      list(expression.children).map((child) => this.#expression(object(child), columns));
    switch (expression.type) {
      case "CONJUNCTION_AND":
        return allOf(children());
      case "CONJUNCTION_OR":
        return anyOf(children());
      case "BOUND_REF":
        return compareBool(columnOf(expression, columns), true);
      case "OPERATOR_NOT":
        return compareBool(columnOf(object(list(expression.children)[0]), columns), false);
      case "OPERATOR_IS_NULL":
      case "OPERATOR_IS_NOT_NULL": {
        const field = columnOf(object(list(expression.children)[0]), columns);
        if (field === undefined || !isLeaf(field.type)) return ANY_FILE;
        return { kind: expression.type === "OPERATOR_IS_NULL" ? "null" : "present", field };
      }
      case "COMPARE_IN": {
        const [column, ...values] = list(expression.children).map(object);
        const field = columnOf(column ?? {}, columns);
        return field === undefined
          ? ANY_FILE
          : anyOf(values.map((value) => (isConstant(value) ? compare(field, "=", object(value.value)) : ANY_FILE)));
      }
      default: {
        const comparison = COMPARISONS[String(expression.type)];
        const [left, right] = [object(expression.left), object(expression.right)];
        if (comparison === undefined) return ANY_FILE;
        if (isConstant(right)) return compare(columnOf(left, columns), comparison, object(right.value));
        if (isConstant(left)) return compare(columnOf(right, columns), MIRRORED[comparison], object(left.value));
        return ANY_FILE;
      }
    }
  }
}

function columnOf(expression: JsonObject, columns: readonly (Field | undefined)[]): Field | undefined {
  return expression.type === "BOUND_REF" ? columns[Number(expression.index)] : undefined;
}

function isConstant(expression: JsonObject): boolean {
  return expression.type === "VALUE_CONSTANT";
}

function compareBool(field: Field | undefined, value: boolean): FilePredicate {
  return field?.type.kind === "bool" ? { kind: "compare", field, comparison: "=", value } : ANY_FILE;
}

/** `column <comparison> constant`, if the constant is of the column's type: DuckDB casts it so, where that is exact. */
function compare(field: Field | undefined, comparison: Comparison | undefined, constant: JsonObject): FilePredicate {
  if (field === undefined || comparison === undefined || constant.is_null !== false) return ANY_FILE;
  if (typeName(object(constant.type)) !== typeOf(field.type)) return ANY_FILE;
  const value = boundValue(field.type, constant.value);
  return value === undefined ? ANY_FILE : { kind: "compare", field, comparison, value };
}

function typeName(type: JsonObject): string {
  if (type.id !== "DECIMAL") return String(type.id);
  const { width, scale } = object(type.type_info);
  return `DECIMAL(${width},${scale ?? 0})`;
}

/** What a constant of the type is called; undefined for types whose constants are not read. */
function typeOf(type: DataType): string | undefined {
  switch (type.kind) {
    case "timestamptz":
      return "TIMESTAMP WITH TIME ZONE";
    case "json":
    case "binary":
    case "fixed":
      return undefined;
    default:
      return isLeaf(type) ? duckdbType(type) : undefined;
  }
}

function isLeaf(type: DataType): boolean {
  return !["unknown", "list", "map", "struct"].includes(type.kind);
}

const SIGN_64 = 1n << 63n;

/** A constant as a bound of the type; undefined for what has no order among bounds, such as NaN. */
function boundValue(type: DataType, value: Json | undefined): BoundValue | undefined {
  switch (type.kind) {
    case "bool":
      return typeof value === "boolean" ? value : undefined;
    case "float32":
    case "float64":
      return typeof value === "number" || value === "Infinity" || value === "-Infinity" ? Number(value) : undefined;
    case "string":
      return typeof value === "string" ? new TextEncoder().encode(value) : undefined;
    case "uuid": {
      const bits = wideInteger(value);
      if (bits === undefined) return undefined;
      const bytes = new Uint8Array(16);
      const view = new DataView(bytes.buffer);
      view.setBigUint64(0, BigInt.asUintN(64, bits >> 64n) ^ SIGN_64);
      view.setBigUint64(8, BigInt.asUintN(64, bits));
      return bytes;
    }
    case "decimal":
      return typeof value === "object" ? wideInteger(value) : integer(value);
    default:
      return integer(value);
  }
}

function integer(value: Json | undefined): bigint | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : undefined;
  return typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : undefined;
}

/** 128 bits: a signed upper and an unsigned lower half. */
function wideInteger(value: Json | undefined): bigint | undefined {
  const { upper, lower } = object(value);
  const [high, low] = [integer(upper), integer(lower)];
  return high === undefined || low === undefined ? undefined : (high << 64n) | low;
}

function withoutNullTests(predicate: FilePredicate): FilePredicate {
  switch (predicate.kind) {
    case "null":
    case "present":
      return ANY_FILE;
    case "and":
      return allOf(predicate.operands.map(withoutNullTests));
    case "or":
      return anyOf(predicate.operands.map(withoutNullTests));
    default:
      return predicate;
  }
}

function object(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
