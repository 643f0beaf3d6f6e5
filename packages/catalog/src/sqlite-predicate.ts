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
import { type BoundClass, toOrderedBytes } from "./bounds.js";
import { valueToJson } from "./entry.js";
import { type Comparison, type FilePredicate, saysNothing } from "./file-predicate.js";
import { type Compare, classOf, type Points, type Range, withPoints, withRanges } from "./predicate-ranges.js";
import type { SqliteValue } from "./sqlite-driver.js";

export interface Condition {
  readonly sql: string;
  readonly values: readonly SqliteValue[];
}

/** A condition on `files f`. */
export interface FileCondition extends Condition {
  /** Whether it names files by `f.id`, so that a search can start from it. */
  readonly seeks: boolean;
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

/** Ends of a list of values are searched for in so many groups: each search may walk over half of an index. */
const MAX_GROUPS = 16;

/** A condition on `files f`; undefined where the predicate says nothing. */
export function predicateCondition(predicate: FilePredicate, context: PredicateContext): FileCondition | undefined {
  const condition = translate(predicate, context, 0);
  return condition === undefined || condition.values.length > MAX_VALUES ? undefined : condition;
}

function translate(
  predicate: FilePredicate | Range | Points,
  context: PredicateContext,
  depth: number,
): FileCondition | undefined {
  if (depth > MAX_DEPTH) return undefined;
  switch (predicate.kind) {
    case "and": {
      if (saysNothing(predicate)) return undefined;
      const known = withRanges(predicate.operands).flatMap((operand) => translate(operand, context, depth + 1) ?? []);
      return known.length === 0 ? undefined : all(known);
    }
    case "or": {
      const known = withPoints(predicate.operands).map((operand) => translate(operand, context, depth + 1));
      if (known.length === 0) return { sql: "0", values: [], seeks: false };
      return known.every((condition) => condition !== undefined) ? any(known) : undefined;
    }
    case "compare":
      return compare(predicate, context);
    case "range":
      return range(predicate, context);
    case "points":
      return points(predicate, context);
    case "null":
      return nulls(predicate.field.id, context);
    case "present":
      return present(predicate.field.id, context);
  }
}

function all(conditions: readonly FileCondition[]): FileCondition {
  return { ...join(conditions, " AND "), seeks: conditions.some(({ seeks }) => seeks) };
}

function any(conditions: readonly FileCondition[]): FileCondition {
  return { ...join(conditions, " OR "), seeks: conditions.every(({ seeks }) => seeks) };
}

function join(conditions: readonly Condition[], operator: string): Condition {
  return {
    sql: `(${conditions.map(({ sql }) => sql).join(operator)})`,
    values: conditions.flatMap(({ values }) => values),
  };
}

/** On one row of `column_stats` with bounds `min` and `max` of the value's class. */
const WITHIN_BOUNDS: Readonly<Record<Exclude<Comparison, "=">, string>> = {
  "<": "s.min < ?",
  "<=": "s.min <= ?",
  ">": "s.max > ?",
  ">=": "s.max >= ?",
  // A bound that was cut is not a value of the column.
  "<>": "NOT (s.min = ? AND s.max = ? AND s.min_exact AND s.max_exact)",
};

/** NaN is above every number, and differs from every number. */
const NAN_SATISFIES: ReadonlySet<Comparison> = new Set([">", ">=", "<>"]);

const STATISTICS = "SELECT s.file FROM column_stats s WHERE s.table_no = ? AND s.field = ?";

function compare(predicate: Compare, context: PredicateContext): FileCondition | undefined {
  const { field, comparison, value } = predicate;
  const kind = classOf(predicate);
  if (kind === undefined) return undefined;
  if (comparison === "=") return points({ kind: "points", operands: [predicate] }, context);
  const sql = WITHIN_BOUNDS[comparison];
  const values = Array<SqliteValue>(sql.split("?").length - 1).fill(toOrderedBytes(kind, value));
  const parts = boundedFiles(field.id, kind, [{ sql, values }], context);
  if (kind === "float" && NAN_SATISFIES.has(comparison)) {
    parts.push({ sql: `${STATISTICS} AND s.has_nan = 1`, values: [context.table, field.id] });
  }
  return filesIn(parts);
}

function range({ lower, upper }: Range, context: PredicateContext): FileCondition {
  const kind = classOf(lower)!;
  const ends = [lower, upper].map(({ value }) => toOrderedBytes(kind, value));
  // No NaN is below the upper end.
  const within = between(lower.comparison, ends[0]!, upper.comparison, ends[1]!);
  return filesIn(boundedFiles(lower.field.id, kind, [within], context));
}

function points({ operands }: Points, context: PredicateContext): FileCondition {
  const [{ field }] = operands;
  const kind = classOf(operands[0])!;
  const bounds = operands.map(({ value }) => toOrderedBytes(kind, value)).sort(Buffer.compare);
  const size = Math.ceil(bounds.length / MAX_GROUPS);
  const groups: Condition[] = [];
  for (let first = 0; first < bounds.length; first += size) {
    const last = Math.min(first + size, bounds.length) - 1;
    groups.push(between(">=", bounds[first]!, "<=", bounds[last]!));
  }
  return all([...inBuckets(operands, kind, context), filesIn(boundedFiles(field.id, kind, groups, context))]);
}

/**
 * The search goes by `max` (the `+` keeps `min` from the index): what is asked for is mostly of late, and so at the end of it.
 */
function between(above: Comparison, low: Uint8Array, below: Comparison, high: Uint8Array): Condition {
  return { sql: `s.max ${above} ? AND +s.min ${below} ?`, values: [low, high] };
}

/** Files within some of the bounds, and those whose bounds cannot be compared with them. */
function boundedFiles(
  field: number,
  kind: BoundClass,
  within: readonly Condition[],
  { table }: PredicateContext,
): Condition[] {
  return [
    ...within.map(({ sql, values }) => ({
      sql: `${STATISTICS} AND s.class = ? AND ${sql}`,
      values: [table, field, kind, ...values],
    })),
    // Two ranges of the index instead of a walk past all rows of the class.
    { sql: `${STATISTICS} AND s.class < ?`, values: [table, field, kind] },
    { sql: `${STATISTICS} AND s.class > ?`, values: [table, field, kind] },
    { sql: "SELECT file FROM unbounded WHERE table_no = ? AND field = ?", values: [table, field] },
  ];
}

/** Only files whose rows are in the buckets of the values. */
function inBuckets(operands: Points["operands"], kind: BoundClass, { bucketsOf }: PredicateContext): FileCondition[] {
  const [{ field }] = operands;
  return bucketsOf(field.id, kind).flatMap(({ position, buckets }) => {
    const wanted = new Set(operands.map(({ value }) => bucketOfBound(field.type, value, buckets)));
    const values = [...wanted].flatMap((bucket) => (bucket === undefined ? [] : valueToJson(BigInt(bucket))));
    if (values.length < wanted.size) return [];
    const sql = `json_extract(f.partition, '$[${position}]') IN (${values.map(() => "?").join(", ")})`;
    return [{ sql, values, seeks: false }];
  });
}

function filesIn(parts: readonly Condition[]): FileCondition {
  const { sql, values } = join(parts, " UNION ALL ");
  return { sql: `f.id IN ${sql}`, values, seeks: true };
}

function nulls(field: number, { table, since }: PredicateContext): FileCondition {
  const found = filesIn([
    {
      sql: "SELECT s.file FROM column_stats s WHERE s.table_no = ? AND s.field = ? AND s.null_count > 0",
      values: [table, field],
    },
    { sql: "SELECT file FROM unbounded WHERE table_no = ? AND field = ?", values: [table, field] },
  ]);
  return any([{ sql: "f.schema_version < ?", values: [since(field)], seeks: false }, found]);
}

function present(field: number, { table, since }: PredicateContext): FileCondition {
  const sql =
    "(f.schema_version >= ? AND f.id NOT IN (SELECT s.file FROM column_stats s" +
    " WHERE s.table_no = ? AND s.field = ? AND s.null_count > 0 AND s.null_count = s.value_count))";
  return { sql, values: [since(field), table, field], seeks: false };
}
