/**
 * A file predicate as a condition of SQLite. Bounds are compared as blobs within one class (see `bounds.ts`), through the
 * indices over `column_stats`, so that the work grows with the files that match.
 *
 * What may never be left out: files that do not tell a column's bounds (`unbounded`), files whose bounds are of another
 * class because the column was widened since, and for comparisons that NaN satisfies, files that hold one.
 *
 * A value that must be equal is also in one bucket of a column that the table is partitioned by so, whatever the bounds.
 */

import { bucketOfBound } from "@eider/core";
import { type BoundClass, boundClass, fitsBound, toOrderedBytes } from "./bounds.js";
import { valueToJson } from "./entry.js";
import { type Comparison, type FilePredicate, saysNothing } from "./file-predicate.js";
import type { SqliteValue } from "./sqlite-driver.js";

export interface Condition {
  readonly sql: string;
  readonly values: readonly SqliteValue[];
}

/** A part of the table's partitioning: files say which bucket of a column their rows are in. */
export interface BucketColumn {
  /** Among a file's partition values. */
  readonly position: number;
  readonly buckets: number;
}

/** What the condition needs to know of a table. */
export interface PredicateContext {
  /** The table's number. */
  readonly table: number;
  /** The first schema version that stores a column: files of older ones have only nulls in it. */
  readonly since: (field: number) => number;
  /** How the table's rows are spread by a column whose values have bounds of the class in every file. */
  readonly bucketsOf: (field: number, kind: BoundClass) => readonly BucketColumn[];
}

/** Deeper than any predicate of a person; SQLite stops at 1,000. */
const MAX_DEPTH = 50;
/** Values that one statement may bind, of SQLite's 32,766; beyond it the predicate is not used. */
const MAX_VALUES = 10_000;

/** A condition on `files f`; undefined where the predicate says nothing. */
export function predicateCondition(predicate: FilePredicate, context: PredicateContext): Condition | undefined {
  const condition = translate(predicate, context, 0);
  return condition === undefined || condition.values.length > MAX_VALUES ? undefined : condition;
}

function translate(predicate: FilePredicate, context: PredicateContext, depth: number): Condition | undefined {
  if (depth > MAX_DEPTH || saysNothing(predicate)) return undefined;
  switch (predicate.kind) {
    case "and": {
      const known = predicate.operands.flatMap((operand) => translate(operand, context, depth + 1) ?? []);
      return known.length === 0 ? undefined : join(known, " AND ");
    }
    case "or": {
      const known = predicate.operands.map((operand) => translate(operand, context, depth + 1));
      if (known.length === 0) return { sql: "0", values: [] };
      return known.every((condition) => condition !== undefined) ? join(known, " OR ") : undefined;
    }
    case "compare":
      return compare(predicate, context);
    case "null":
      return nulls(predicate.field.id, context);
    case "present":
      return present(predicate.field.id, context);
  }
}

function join(conditions: readonly Condition[], operator: string): Condition {
  return {
    sql: `(${conditions.map(({ sql }) => sql).join(operator)})`,
    values: conditions.flatMap(({ values }) => values),
  };
}

/** On one row of `column_stats` with bounds `min` and `max` of the value's class; `?1` is the value. */
const WITHIN_BOUNDS: Readonly<Record<Comparison, string>> = {
  "=": "s.min <= ? AND s.max >= ?",
  "<": "s.min < ?",
  "<=": "s.min <= ?",
  ">": "s.max > ?",
  ">=": "s.max >= ?",
  // A bound that was cut is not a value of the column.
  "<>": "NOT (s.min = ? AND s.max = ? AND s.min_exact AND s.max_exact)",
};

/** NaN is above every number, and differs from every number. */
const NAN_SATISFIES: ReadonlySet<Comparison> = new Set([">", ">=", "<>"]);

function compare(
  { field, comparison, value }: Extract<FilePredicate, { kind: "compare" }>,
  { table, bucketsOf }: PredicateContext,
): Condition | undefined {
  const kind = boundClass(field.type);
  if (kind === undefined || !fitsBound(kind, value)) return undefined;
  const bound = toOrderedBytes(kind, value);
  const rows = "SELECT s.file FROM column_stats s WHERE s.table_no = ? AND s.field = ?";
  const parts: Condition[] = [
    {
      sql: `${rows} AND s.class = ? AND ${WITHIN_BOUNDS[comparison]}`,
      values: [table, field.id, kind, ...Array(WITHIN_BOUNDS[comparison].split("?").length - 1).fill(bound)],
    },
    // Two ranges of the index instead of a walk past all rows of the class.
    { sql: `${rows} AND s.class < ?`, values: [table, field.id, kind] },
    { sql: `${rows} AND s.class > ?`, values: [table, field.id, kind] },
    { sql: "SELECT file FROM unbounded WHERE table_no = ? AND field = ?", values: [table, field.id] },
  ];
  if (kind === "float" && NAN_SATISFIES.has(comparison)) {
    parts.push({ sql: `${rows} AND s.has_nan = 1`, values: [table, field.id] });
  }
  const within = filesIn(parts);
  if (comparison !== "=") return within;
  const inBucket = bucketsOf(field.id, kind).flatMap(({ position, buckets }): Condition[] => {
    const bucket = bucketOfBound(field.type, value, buckets);
    if (bucket === undefined) return [];
    const sql = `json_extract(f.partition, '$[${position}]') = ?`;
    return [{ sql, values: [valueToJson(BigInt(bucket))] }];
  });
  return inBucket.length === 0 ? within : join([...inBucket, within], " AND ");
}

function filesIn(parts: readonly Condition[]): Condition {
  const { sql, values } = join(parts, " UNION ALL ");
  return { sql: `f.id IN ${sql}`, values };
}

function nulls(field: number, { table, since }: PredicateContext): Condition {
  const found = filesIn([
    {
      sql: "SELECT s.file FROM column_stats s WHERE s.table_no = ? AND s.field = ? AND s.null_count > 0",
      values: [table, field],
    },
    { sql: "SELECT file FROM unbounded WHERE table_no = ? AND field = ?", values: [table, field] },
  ]);
  return join([{ sql: "f.schema_version < ?", values: [since(field)] }, found], " OR ");
}

function present(field: number, { table, since }: PredicateContext): Condition {
  const sql =
    "(f.schema_version >= ? AND f.id NOT IN (SELECT s.file FROM column_stats s" +
    " WHERE s.table_no = ? AND s.field = ? AND s.null_count > 0 AND s.null_count = s.value_count))";
  return { sql, values: [since(field), table, field] };
}
