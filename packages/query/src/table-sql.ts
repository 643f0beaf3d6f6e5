/** A table at a snapshot as a SELECT that plain DuckDB runs. */

import {
  duckdbType,
  type Field,
  formatType,
  InvalidInputError,
  type Schema,
  storedSchema,
  storedType,
  wideningTable,
} from "@eider/core";
import { quoteName, quoteText } from "./sql-tokens.js";

/** Kinds that a column may have grown to, but for those of nested types. */
const WIDER: ReadonlySet<string> = new Set(
  wideningTable.filter(({ from }) => from !== "unknown" && from !== "struct").flatMap(({ to }) => to),
);

export interface SourceFile {
  /** Absolute. */
  readonly path: string;
  readonly rows: number;
}

/**
 * Columns whose filters DuckDB 1.5 may not push into the files, since some store them in a narrower type. It casts a filter's
 * constant to that type, so that over integers `v > 1.5` means `v > 2`; and what a join knows of the other side's keys
 * (a Bloom filter) it cannot cast at all, and fails. Nothing of that reaches what is within structs.
 * @param others of the files that are not of this schema, undefined where that is not known
 */
export function widenedFields(schema: Schema, others: readonly (Schema | undefined)[]): ReadonlySet<number> {
  const types = others.map(
    (other) => other && new Map(storedSchema(other).fields.map(({ id, type }) => [id, formatType(type)])),
  );
  const isWidened = ({ id, type }: Field): boolean =>
    WIDER.has(type.kind) && types.some((then) => !then || (then.get(id) ?? formatType(type)) !== formatType(type));
  return new Set(schema.fields.filter(isWidened).map(({ id }) => id));
}

export interface TableSqlOptions {
  /**
   * Ids of columns that DuckDB may push no filter on into the files. `greatest` of one value is that value, and no filter is
   * pushed through it as one on a column.
   */
  readonly guarded?: ReadonlySet<number> | undefined;
  /** Names of two more columns: which of the files a row is from, and which of its rows it is. */
  readonly place?: { readonly file: string; readonly row: string };
  /** Whether every file was written with this very schema. Default false. */
  readonly isOwnSchema?: boolean;
}

/**
 * Columns come by field id, so files of every schema version read alike: renamed, widened and later added columns too. By
 * ids DuckDB learns nothing of the columns from the footers, and a query may take twice as long. Files that are all of this
 * very schema are therefore read as they are.
 * Columns of unknown type are `NULL::VARCHAR`. A table without files gives no rows, with its columns and types.
 * `hive_partitioning=false`: what stands in a path is never a value.
 */
export function tableSql(
  schema: Schema,
  files: readonly SourceFile[],
  { guarded = new Set(), place, isOwnSchema = false }: TableSqlOptions = {},
): string {
  const columns = schema.fields.map((field) => ({ field, type: storedType(field.type) }));
  const nullColumn = (field: Field): string =>
    `NULL::${duckdbType(storedType(field.type) ?? { kind: "unknown" })} AS ${quoteName(field.name)}`;
  if (files.length === 0) {
    return `SELECT ${columns.map(({ field }) => nullColumn(field)).join(", ") || "NULL"} WHERE false`;
  }
  const stored = columns.flatMap(({ field, type }) => (type ? [{ field, type }] : []));
  if (stored.length === 0) {
    const rows = files.reduce((sum, file) => sum + file.rows, 0);
    return `SELECT ${columns.map(({ field }) => nullColumn(field)).join(", ") || "NULL"} FROM range(${rows})`;
  }
  const column = (field: Field): string => {
    const name = quoteName(field.name);
    return guarded.has(field.id) ? `greatest(${name}) AS ${name}` : name;
  };
  const selected =
    stored.length === columns.length && !stored.some(({ field }) => guarded.has(field.id))
      ? "*"
      : columns.map(({ field, type }) => (type ? column(field) : nullColumn(field))).join(", ");
  const paths = files.map((file) => `  ${quoteText(literalPath(file.path))}`).join(",\n");
  const fields = stored
    .map(
      ({ field, type }) =>
        `  ${field.id}: {name: ${quoteText(field.name)}, type: ${quoteText(duckdbType(type))}, default_value: NULL}`,
    )
    .join(",\n");
  const placed = place ? `, file_index AS ${place.file}, file_row_number AS ${place.row}` : "";
  const byIds = isOwnSchema ? "" : `, schema=MAP{\n${fields}\n}`;
  return `SELECT ${selected}${placed} FROM read_parquet([\n${paths}\n], hive_partitioning=false${byIds})`;
}

/**
 * A path for DuckDB's file lists, which are globs: each special character becomes a class of itself.
 * @throws InvalidInputError `unreadable_path`
 */
export function literalPath(path: string, platform: NodeJS.Platform = process.platform): string {
  const portable = platform === "win32" ? path.replaceAll("\\", "/") : path;
  const literal = portable.replace(/[[*?]/g, "[$&]");
  // In a glob, but not in a plain path, DuckDB takes a backslash for an escape, and has no way to write the character.
  if (literal !== portable && portable.includes("\\")) {
    throw new InvalidInputError("unreadable_path", `DuckDB cannot name a path with a backslash beside [ * ?: ${path}`, {
      subject: path,
    });
  }
  return literal;
}
