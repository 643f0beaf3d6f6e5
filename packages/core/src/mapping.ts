/** One table of what each of our types is elsewhere. */

import { type DataType, formatType, parseType } from "./schema.js";

export interface TypeMapping {
  /** Arrow, as its specification names types. */
  readonly arrow: string;
  /** Parquet's physical type. */
  readonly parquet: string;
  /** Parquet's logical type annotation, `""` for none. */
  readonly logical: string;
  /** Parquet's older converted type, `""` for none. */
  readonly converted: string;
  readonly duckdb: string;
  readonly iceberg: string;
}

/** What a type is in Arrow, Parquet, DuckDB and Iceberg. Iceberg types are the smallest that hold every value. */
export function typeMapping(type: DataType): TypeMapping {
  switch (type.kind) {
    case "bool":
      return row("Bool", "BOOLEAN", "", "", "BOOLEAN", "boolean");
    case "int8":
      return row("Int8", "INT32", "INTEGER(8, signed)", "INT_8", "TINYINT", "int");
    case "int16":
      return row("Int16", "INT32", "INTEGER(16, signed)", "INT_16", "SMALLINT", "int");
    case "int32":
      return row("Int32", "INT32", "", "", "INTEGER", "int");
    case "int64":
      return row("Int64", "INT64", "", "", "BIGINT", "long");
    case "uint8":
      return row("UInt8", "INT32", "INTEGER(8, unsigned)", "UINT_8", "UTINYINT", "int");
    case "uint16":
      return row("UInt16", "INT32", "INTEGER(16, unsigned)", "UINT_16", "USMALLINT", "int");
    case "uint32":
      return row("UInt32", "INT32", "INTEGER(32, unsigned)", "UINT_32", "UINTEGER", "long");
    case "uint64":
      return row("UInt64", "INT64", "INTEGER(64, unsigned)", "UINT_64", "UBIGINT", "decimal(20,0)");
    case "float32":
      return row("Float32", "FLOAT", "", "", "FLOAT", "float");
    case "float64":
      return row("Float64", "DOUBLE", "", "", "DOUBLE", "double");
    case "decimal": {
      const { precision, scale } = type;
      // Parquet format, "DECIMAL": INT32 up to 9 digits, INT64 up to 18, else bytes.
      const physical = precision <= 9 ? "INT32" : precision <= 18 ? "INT64" : "FIXED_LEN_BYTE_ARRAY(16)";
      const text = `(${precision},${scale})`;
      return row(`Decimal128${text}`, physical, `DECIMAL${text}`, "DECIMAL", `DECIMAL${text}`, `decimal${text}`);
    }
    case "string":
      return row("Utf8", "BYTE_ARRAY", "STRING", "UTF8", "VARCHAR", "string");
    case "json":
      return row("Utf8 (arrow.json)", "BYTE_ARRAY", "JSON", "JSON", "JSON", "string");
    case "binary":
      return row("Binary", "BYTE_ARRAY", "", "", "BLOB", "binary");
    case "fixed":
      return row(
        `FixedSizeBinary(${type.size})`,
        `FIXED_LEN_BYTE_ARRAY(${type.size})`,
        "",
        "",
        "BLOB",
        `fixed[${type.size}]`,
      );
    case "uuid":
      return row("FixedSizeBinary(16) (arrow.uuid)", "FIXED_LEN_BYTE_ARRAY(16)", "UUID", "", "UUID", "uuid");
    case "date":
      return row("Date32", "INT32", "DATE", "DATE", "DATE", "date");
    case "time":
      return row("Time64(us)", "INT64", "TIME(micros, local)", "", "TIME", "time");
    case "timestamp":
      return row("Timestamp(us)", "INT64", "TIMESTAMP(micros, local)", "", "TIMESTAMP", "timestamp");
    case "timestamptz":
      return row(
        "Timestamp(us, UTC)",
        "INT64",
        "TIMESTAMP(micros, UTC)",
        "TIMESTAMP_MICROS",
        "TIMESTAMP WITH TIME ZONE",
        "timestamptz",
      );
    case "list": {
      const element = typeMapping(type.element.type);
      return row(`List<${element.arrow}>`, "group", "LIST", "LIST", `${element.duckdb}[]`, `list<${element.iceberg}>`);
    }
    case "map": {
      const key = typeMapping(type.key.type);
      const value = typeMapping(type.value.type);
      return row(
        `Map<${key.arrow}, ${value.arrow}>`,
        "group",
        "MAP",
        "MAP",
        `MAP(${key.duckdb}, ${value.duckdb})`,
        `map<${key.iceberg}, ${value.iceberg}>`,
      );
    }
    case "struct": {
      const fields = type.fields.map((field) => ({ name: field.name, mapping: typeMapping(field.type) }));
      const list = (of: (field: (typeof fields)[number]) => string): string => fields.map(of).join(", ");
      return row(
        `Struct<${list((f) => `${f.name}: ${f.mapping.arrow}`)}>`,
        "group",
        "",
        "",
        `STRUCT(${list((f) => `${quoteIdentifier(f.name)} ${f.mapping.duckdb}`)})`,
        `struct<${list((f) => `${f.name}: ${f.mapping.iceberg}`)}>`,
      );
    }
    case "unknown":
      // Not stored anywhere; a query sees a column of nulls.
      return row("Null", "", "", "", "VARCHAR", "unknown");
  }
}

function row(
  arrow: string,
  parquet: string,
  logical: string,
  converted: string,
  duckdb: string,
  iceberg: string,
): TypeMapping {
  return { arrow, parquet, logical, converted, duckdb, iceberg };
}

/** A type as DuckDB SQL writes it: `BIGINT`, `STRUCT("a b" BIGINT, "c" VARCHAR[])`. */
export function duckdbType(type: DataType): string {
  return typeMapping(type).duckdb;
}

/** An SQL identifier in double quotes. */
function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** One of each type. */
const EXAMPLES: readonly string[] = [
  "bool",
  "int8",
  "int16",
  "int32",
  "int64",
  "uint8",
  "uint16",
  "uint32",
  "uint64",
  "float32",
  "float64",
  "decimal(9,2)",
  "decimal(18,2)",
  "decimal(38,2)",
  "string",
  "binary",
  "fixed(8)",
  "date",
  "time",
  "timestamp",
  "timestamptz",
  "uuid",
  "json",
  "list<int64>",
  "map<string,int64>",
  'struct<"a b": int64>',
];

/** The table as Markdown, for the documentation. */
export function formatTypeMapping(): string {
  const lines = EXAMPLES.map((text) => {
    const type = parseType(text);
    const { arrow, parquet, logical, converted, duckdb, iceberg } = typeMapping(type);
    return [formatType(type), arrow, parquet, logical, converted, duckdb, iceberg];
  });
  const format = (cells: readonly string[]): string =>
    `| ${cells.map((c) => (c === "" ? "" : `\`${c}\``)).join(" | ")} |`;
  return [
    "| Eider | Arrow | Parquet | logical | converted | DuckDB | Iceberg |",
    "|---|---|---|---|---|---|---|",
    ...lines.map(format),
  ].join("\n");
}
