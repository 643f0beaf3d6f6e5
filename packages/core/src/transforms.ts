/**
 * Partition transforms: which partition a row belongs to. They are Iceberg's (spec, "Partition Transforms"), in UTC,
 * so that the same tables can be published as Iceberg tables.
 */

import { SchemaError } from "./errors.js";
import { type DataType, type Field, formatType, nameKey, type Schema } from "./schema.js";

/** `width` counts code points of text, bytes of binary, and units (unscaled ones for decimals) of numbers. */
export type Transform =
  | { readonly kind: "identity" | "year" | "month" | "day" | "hour" }
  | { readonly kind: "bucket"; readonly buckets: number }
  | { readonly kind: "truncate"; readonly width: number };

/** One partition expression, resolved against a schema. */
export interface PartitionSpec {
  /** The source column. Its type may still be `unknown`: then every row is in the null partition. */
  readonly field: Field;
  readonly transform: Transform;
  /** Canonical form, for example `day("my ts")`. Parses to an equal spec. */
  readonly text: string;
}

const INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"] as const;

/** Iceberg's source types for each transform. Bucket excludes bool and floats there too. */
const ALLOWED: Readonly<Record<Transform["kind"], readonly DataType["kind"][]>> = {
  identity: [
    "bool",
    ...INTEGERS,
    "float32",
    "float64",
    "decimal",
    "string",
    "binary",
    "fixed",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "uuid",
  ],
  year: ["date", "timestamp", "timestamptz"],
  month: ["date", "timestamp", "timestamptz"],
  day: ["date", "timestamp", "timestamptz"],
  hour: ["timestamp", "timestamptz"],
  bucket: [...INTEGERS, "decimal", "string", "binary", "fixed", "date", "time", "timestamp", "timestamptz", "uuid"],
  truncate: [...INTEGERS, "decimal", "string", "binary"],
};

const FORMS = "col, year(col), month(col), day(col), hour(col), bucket(n, col), truncate(w, col)";

/** A column name in an expression: plain, or in double quotes with `""` for a quote, as in SQL. */
const COLUMN = String.raw`("(?:[^"]|"")*"|[^\s"(),]+)`;
const PLAIN = new RegExp(`^\\s*${COLUMN}\\s*$`);
const CALL = new RegExp(`^\\s*([A-Za-z]+)\\s*\\(\\s*(?:(\\d+)\\s*,\\s*)?${COLUMN}\\s*\\)\\s*$`);

/**
 * Reads `col`, `year|month|day|hour(col)`, `bucket(n, col)` or `truncate(w, col)`. Names match without case.
 * @throws SchemaError `bad_partition`, `unknown_column`, `type_mismatch` naming the column and the types that would do
 */
export function parsePartitionBy(expression: string, schema: Schema): PartitionSpec {
  const plain = PLAIN.exec(expression);
  if (plain) return partitionSpec({ kind: "identity" }, columnNamed(plain[1]!, schema));
  const call = CALL.exec(expression);
  const transform = call && transformNamed(call[1]!.toLowerCase(), call[2]);
  if (!transform) {
    throw new SchemaError(
      "bad_partition",
      `cannot read the partition expression ${JSON.stringify(expression)}: write one of ${FORMS}`,
      { subject: expression },
    );
  }
  return partitionSpec(transform, columnNamed(call[3]!, schema));
}

function transformNamed(name: string, argument: string | undefined): Transform | undefined {
  if (name === "year" || name === "month" || name === "day" || name === "hour") {
    return argument === undefined ? { kind: name } : undefined;
  }
  const count = Number(argument);
  // Iceberg keeps bucket counts and widths as 32-bit integers.
  if (argument === undefined || count < 1 || count > 0x7fffffff) return undefined;
  if (name === "bucket") return { kind: name, buckets: count };
  if (name === "truncate") return { kind: name, width: count };
  return undefined;
}

/** Looks a column up by the name in an expression, quoted or not. */
export function columnNamed(text: string, schema: Schema): Field {
  const name = text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text;
  const key = nameKey(name);
  const field = schema.fields.find((f) => nameKey(f.name) === key);
  if (field) return field;
  throw new SchemaError(
    "unknown_column",
    `there is no column ${JSON.stringify(name)}: the columns are ${schema.fields.map((f) => JSON.stringify(f.name)).join(", ") || "none"}`,
    { subject: name },
  );
}

/** A column name as expressions write it: quoted unless it is plain. */
export function quoteColumn(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

function partitionSpec(transform: Transform, field: Field): PartitionSpec {
  const allowed = ALLOWED[transform.kind];
  if (field.type.kind !== "unknown" && !allowed.includes(field.type.kind)) {
    const what = transform.kind === "identity" ? "partition by" : `partition by ${transform.kind} of`;
    throw new SchemaError(
      "type_mismatch",
      `cannot ${what} the column ${JSON.stringify(field.name)} of type ${formatType(field.type)}: it must be ${allowed.join(", ")}`,
      { subject: field.name },
    );
  }
  return { field, transform, text: formatTransform(transform, field.name) };
}

function formatTransform(transform: Transform, name: string): string {
  const column = quoteColumn(name);
  switch (transform.kind) {
    case "identity":
      return column;
    case "bucket":
      return `bucket(${transform.buckets}, ${column})`;
    case "truncate":
      return `truncate(${transform.width}, ${column})`;
    default:
      return `${transform.kind}(${column})`;
  }
}
