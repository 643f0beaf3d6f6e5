/**
 * Schemas written in TypeScript, whose rows the compiler knows: what may be appended ({@link Row}) and what a query
 * returns ({@link ResultRow}). The schema itself is a plain {@link Schema}; nothing of the types is there at run time.
 */

import { SchemaError } from "./errors.js";
import { type DataType, type Field, parseType, type Schema, type SimpleKind, toSchema } from "./schema.js";

/**
 * The type of a column, or of something in one. Values may be null, and absent from an object, unless `required()`.
 * `In` is what may be appended, `Out` what a query returns with `values: "exact"`.
 */
export interface ColumnType<In = unknown, Out = unknown, Nullable extends boolean = boolean> {
  readonly type: DataType;
  readonly nullable: Nullable;
  /** The same type, of values that are never null. */
  required(): ColumnType<In, Out, false>;
  /** For the compiler only. */
  readonly "~values"?: { readonly in: In; readonly out: Out };
}

/** Columns of a table, or fields of a struct, in order. */
export type Shape = Readonly<Record<string, ColumnType>>;

/** A schema whose row types the compiler knows. */
export interface TypedSchema<In extends object = object, Out extends object = object> extends Schema {
  /** For the compiler only. */
  readonly "~rows"?: { readonly in: In; readonly out: Out };
}

/** A row as it may be appended to a table of the schema: `Row<typeof events>`. */
export type Row<S extends TypedSchema> = NonNullable<S["~rows"]>["in"];

/** A row as a query returns it, with `values: "exact"`: `ResultRow<typeof events>`. */
export type ResultRow<S extends TypedSchema> = NonNullable<S["~rows"]>["out"];

/** One object type instead of an intersection: that is what editors and error messages show. */
type Flat<T> = { [K in keyof T]: T[K] } & unknown;

type RequiredNames<S extends Shape> = { [K in keyof S]: S[K]["nullable"] extends false ? K : never }[keyof S];

/** What may be appended where the column or element is. */
export type InputValue<C extends ColumnType> =
  C extends ColumnType<infer In, unknown, infer Nullable>
    ? Nullable extends false
      ? In
      : In | null | undefined
    : never;

/** What a query returns for it. */
export type ResultValue<C extends ColumnType> =
  C extends ColumnType<unknown, infer Out, infer Nullable> ? (Nullable extends false ? Out : Out | null) : never;

/** Absent and `undefined` are null. */
export type InputObject<S extends Shape> = Flat<
  { readonly [K in RequiredNames<S>]: InputValue<S[K]> } & {
    readonly [K in Exclude<keyof S, RequiredNames<S>>]?: InputValue<S[K]>;
  }
>;

export type ResultObject<S extends Shape> = Flat<{ [K in keyof S]: ResultValue<S[K]> }>;

type NumberArray = Int8Array | Int16Array | Int32Array | Uint16Array | Uint32Array | Float32Array | Float64Array;
type BigIntArray = BigInt64Array | BigUint64Array;

/** Arrays of what the elements may be; typed arrays where those are numbers. */
export type InputList<E> =
  | readonly E[]
  | (number extends E ? NumberArray : never)
  | (bigint extends E ? BigIntArray : never);

/** A `Map`, or an object where its keys may be text. */
export type InputMap<K, V> = ReadonlyMap<K, V> | (string extends K ? Readonly<Record<string, V>> : never);

/** The types of columns. Each makes a nullable column; `.required()` one that is not. */
export interface ColumnTypes {
  bool(): ColumnType<boolean, boolean, true>;
  int8(): ColumnType<number | bigint, number, true>;
  int16(): ColumnType<number | bigint, number, true>;
  int32(): ColumnType<number | bigint, number, true>;
  /** A `number` must be a safe integer; results are bigint. */
  int64(): ColumnType<number | bigint, bigint, true>;
  uint8(): ColumnType<number | bigint, number, true>;
  uint16(): ColumnType<number | bigint, number, true>;
  uint32(): ColumnType<number | bigint, number, true>;
  /** A `number` must be a safe integer; results are bigint. */
  uint64(): ColumnType<number | bigint, bigint, true>;
  /** Fractions are rounded to the nearest float32. */
  float32(): ColumnType<number | bigint, number, true>;
  float64(): ColumnType<number | bigint, number, true>;
  /**
   * Exact decimals: `precision` digits (1 to 38), `scale` of them after the point. Results are text.
   * @throws SchemaError `bad_type`
   */
  decimal(precision: number, scale: number): ColumnType<string | number | bigint, string, true>;
  string(): ColumnType<string, string, true>;
  /** Text is base64. */
  binary(): ColumnType<Uint8Array | ArrayBuffer | DataView | string, Uint8Array, true>;
  /**
   * `size` bytes. Text is base64.
   * @throws SchemaError `bad_type`
   */
  fixed(size: number): ColumnType<Uint8Array | ArrayBuffer | DataView | string, Uint8Array, true>;
  /** `YYYY-MM-DD`. */
  date(): ColumnType<string, string, true>;
  /** `HH:MM:SS`, to the microsecond. */
  time(): ColumnType<string, string, true>;
  /** `YYYY-MM-DDTHH:MM:SS` without a zone, to the microsecond. */
  timestamp(): ColumnType<string, string, true>;
  /** An instant: a `Date`, or ISO 8601 text with a zone. Results are text in UTC with six digits of a second. */
  timestamptz(): ColumnType<Date | string, string, true>;
  uuid(): ColumnType<string, string, true>;
  /** Anything that JSON can express, `T` if you say so. Results are its text. */
  json<T = unknown>(): ColumnType<T, string, true>;
  list<E extends ColumnType>(element: E): ColumnType<InputList<InputValue<E>>, ResultValue<E>[], true>;
  /** Keys are never null. */
  map<K extends ColumnType, V extends ColumnType>(
    key: K,
    value: V,
  ): ColumnType<
    InputMap<NonNullable<InputValue<K>>, InputValue<V>>,
    Map<NonNullable<ResultValue<K>>, ResultValue<V>>,
    true
  >;
  struct<S extends Shape>(fields: S): ColumnType<InputObject<S>, ResultObject<S>, true>;
}

/** The types of columns: `t.int64()`, `t.list(t.string())`, `t.decimal(10, 2).required()`. */
export const t: ColumnTypes = {
  bool: () => simple("bool"),
  int8: () => simple("int8"),
  int16: () => simple("int16"),
  int32: () => simple("int32"),
  int64: () => simple("int64"),
  uint8: () => simple("uint8"),
  uint16: () => simple("uint16"),
  uint32: () => simple("uint32"),
  uint64: () => simple("uint64"),
  float32: () => simple("float32"),
  float64: () => simple("float64"),
  // The text form says what precision, scale and size may be.
  decimal: (precision, scale) => column(parseType(`decimal(${precision},${scale})`)),
  string: () => simple("string"),
  binary: () => simple("binary"),
  fixed: (size) => column(parseType(`fixed(${size})`)),
  date: () => simple("date"),
  time: () => simple("time"),
  timestamp: () => simple("timestamp"),
  timestamptz: () => simple("timestamptz"),
  uuid: () => simple("uuid"),
  json: () => simple("json"),
  list: (element) => column({ kind: "list", element: field("element", element) }),
  map: (key, value) =>
    column({ kind: "map", key: { ...field("key", key), nullable: false }, value: field("value", value) }),
  struct: (shape) => column({ kind: "struct", fields: fields(shape) }),
};

/**
 * A schema from columns, in their order: `schema({ id: t.int64().required(), tags: t.list(t.string()) })`. Field ids are
 * assigned when a table is created with it.
 * @throws SchemaError `duplicate_field`, `bad_name`, `bad_schema`
 */
export function schema<S extends Shape>(columns: S): TypedSchema<InputObject<S>, ResultObject<S>> {
  return toSchema({ fields: fields(columns) });
}

function simple<In, Out>(kind: SimpleKind): ColumnType<In, Out, true> {
  return column({ kind });
}

function column<In, Out>(type: DataType): ColumnType<In, Out, true> {
  const required: ColumnType<In, Out, false> = { type, nullable: false, required: () => required };
  return { type, nullable: true, required: () => required };
}

/** Without TypeScript, anything may stand in place of a column. */
function field(name: string, column: Partial<ColumnType> | undefined): Field {
  const { type, nullable } = column ?? {};
  if (typeof type === "object" && typeof nullable === "boolean") return { id: 0, name, type, nullable };
  throw new SchemaError("bad_schema", `${JSON.stringify(name)} is not given a type by t: write t.int64(), say`, {
    subject: name,
  });
}

function fields(shape: Shape): Field[] {
  return Object.entries(shape).map(([name, of]) => field(name, of));
}
