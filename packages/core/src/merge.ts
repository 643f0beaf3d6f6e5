/** The schema of a table after data that comes with a schema of its own: Arrow, Parquet. */

import { SchemaError } from "./errors.js";
import { type IntegerBounds, needOf, widen } from "./evolve.js";
import { type DataType, type Field, formatType, nameKey, type Schema } from "./schema.js";

export interface MergeOptions {
  /**
   * `evolve`: new fields are added and numbers widen. `strict`: a field that the table lacks is an error. `ignore`: it
   * is left out. The last two never change the schema.
   */
  readonly mode: "evolve" | "strict" | "ignore";
  /** Bounds of the integers already stored, by field id: decides int64 → float64. A missing entry refuses it. */
  readonly integerBounds?: ReadonlyMap<number, IntegerBounds>;
}

/**
 * The schema that takes the incoming data, by names without case. New fields have id 0 and are nullable. Numeric
 * columns widen by the widening table; where they cannot, the column keeps its type and `alignBatch` judges each
 * value. Text may go into json (each value is checked) and json into text; no other change of kind is allowed.
 * @throws SchemaError `duplicate_field`, `type_mismatch`, `unknown_field`, `missing_column`, naming the column
 */
export function mergeSchema(base: Schema | undefined, incoming: Schema, options: MergeOptions): Schema {
  checkNames(incoming.fields, []);
  if (base === undefined) return incoming;
  const named = new Set(incoming.fields.map((field) => nameKey(field.name)));
  for (const field of base.fields) {
    if (field.nullable || named.has(nameKey(field.name))) continue;
    throw new SchemaError(
      "missing_column",
      `the data lacks the column ${JSON.stringify(field.name)}, which may not be null: add it to the data`,
      { subject: field.name },
    );
  }
  return { fields: new Merge(options).fields(base.fields, incoming.fields, []) };
}

function checkNames(fields: readonly Field[], path: readonly string[]): void {
  const seen = new Map<string, string>();
  for (const { name, type } of fields) {
    const other = seen.get(nameKey(name));
    if (other !== undefined) {
      throw new SchemaError(
        "duplicate_field",
        `the data has the columns ${columnName([...path, other])} and ${columnName([...path, name])}, which differ at most by case: rename one`,
        { subject: name },
      );
    }
    seen.set(nameKey(name), name);
    checkTypeNames(type, [...path, name]);
  }
}

function checkTypeNames(type: DataType, path: readonly string[]): void {
  if (type.kind === "struct") checkNames(type.fields, path);
  else if (type.kind === "list") checkTypeNames(type.element.type, path);
  else if (type.kind === "map") {
    checkTypeNames(type.key.type, path);
    checkTypeNames(type.value.type, path);
  }
}

function columnName(path: readonly string[]): string {
  return path.map((name) => JSON.stringify(name)).join(".");
}

class Merge {
  readonly #options: MergeOptions;

  constructor(options: MergeOptions) {
    this.#options = options;
  }

  fields(base: readonly Field[], incoming: readonly Field[], path: readonly string[]): Field[] {
    const merged = [...base];
    const places = new Map(base.map((field, i) => [nameKey(field.name), i]));
    for (const field of incoming) {
      const place = places.get(nameKey(field.name));
      if (place !== undefined) {
        merged[place] = this.field(base[place]!, field, [...path, base[place]!.name]);
      } else if (this.#options.mode === "evolve") {
        // Rows that are stored already have no value for it.
        merged.push({ ...field, id: 0, nullable: true });
      } else if (this.#options.mode === "strict") {
        const column = columnName([...path, field.name]);
        throw new SchemaError(
          "unknown_field",
          `the table has no column ${column}: leave it out, or append with schemaMode "evolve" to add it or "ignore" to drop it`,
          { subject: field.name },
        );
      }
    }
    return merged;
  }

  field(base: Field, incoming: Field, path: readonly string[]): Field {
    return { ...base, type: this.type(base, incoming.type, path) };
  }

  type(base: Field, incoming: DataType, path: readonly string[]): DataType {
    const { type } = base;
    if (type.kind === "struct" && incoming.kind === "struct") {
      return { kind: "struct", fields: this.fields(type.fields, incoming.fields, path) };
    }
    if (type.kind === "list" && incoming.kind === "list") {
      return { kind: "list", element: this.field(type.element, incoming.element, [...path, "element"]) };
    }
    if (type.kind === "map" && incoming.kind === "map") {
      return {
        kind: "map",
        key: this.field(type.key, incoming.key, [...path, "key"]),
        value: this.field(type.value, incoming.value, [...path, "value"]),
      };
    }
    if (this.#options.mode === "evolve") {
      // A float of text fits both; a column of doubles says that it needs them.
      if (type.kind === "float32" && incoming.kind === "float64") return incoming;
      const wider = widen(type, incoming, this.#options.integerBounds?.get(base.id));
      if (wider) return wider;
    }
    if (convertible(incoming, type)) return type;
    throw typeMismatch(path, type, incoming);
  }
}

/** Whether values of one scalar type may be judged one by one for a column of another. */
export function convertible(from: DataType, to: DataType): boolean {
  if (from.kind === "unknown" || to.kind === "unknown") return true;
  if (isText(from) && isText(to)) return true;
  if (needOf(from) !== undefined && needOf(to) !== undefined) return true;
  return formatType(from) === formatType(to);
}

function isText(type: DataType): boolean {
  return type.kind === "string" || type.kind === "json";
}

export function typeMismatch(path: readonly string[], table: DataType, data: DataType): SchemaError {
  return new SchemaError(
    "type_mismatch",
    `the column ${columnName(path)} is ${formatType(table)} in the table and ${formatType(data)} in the data: cast it in the data, or give it another name`,
    { subject: path[0]! },
  );
}
