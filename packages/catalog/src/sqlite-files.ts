/** The data files of a snapshot, and what their statistics say together. */

import { type ColumnStatistics, parsePartitionBy } from "@eider/core";
import { type BoundClass, boundClass, fromOrderedBytes, isIntegerType, leafFields } from "./bounds.js";
import type { IntegerBounds, ListedFile } from "./catalog.js";
import { readPartitionValue } from "./entry.js";
import type { FilePredicate } from "./file-predicate.js";
import type { SqliteDriver, SqliteValue } from "./sqlite-driver.js";
import { corrupt, readJson } from "./sqlite-json.js";
import { type PredicateContext, predicateCondition } from "./sqlite-predicate.js";
import { LIVE } from "./sqlite-schema.js";
import { storedSchemaOf } from "./sqlite-schemas.js";
import { tableNumber } from "./sqlite-tables.js";

/**
 * Files of a table that are live at a snapshot: takes the table's number, then the snapshot twice. The index leads to the
 * live ones and those removed since, past no others.
 */
const FILES_AT = "f.table_no = ? AND f.removed_in > ? AND f.added_in <= ?";

interface FileRow {
  readonly id: number;
  readonly key: string;
  readonly added_in: number;
  readonly batch: string | null;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: Uint8Array;
  readonly base: number;
  readonly schema_version: number;
  readonly partition: string;
  readonly footer_bytes: number | null;
  readonly footer_sha256: Uint8Array | null;
}

/** One row of `column_stats` as SQLite writes it in JSON; bounds in hex. */
type StatisticsJson = readonly [
  fieldId: number,
  kind: BoundClass,
  min: string | null,
  max: string | null,
  valueCount: number,
  nullCount: number,
  hasNaN: number,
  minExact: number,
  maxExact: number,
  storedBytes: number,
];

export interface ListFilesOptions {
  readonly statistics: boolean;
  /** Only files that may have rows for which it is true. */
  readonly where?: FilePredicate;
}

export function listFiles(
  driver: SqliteDriver,
  tableId: string,
  at: number,
  { statistics, where: predicate }: ListFilesOptions,
): ListedFile[] {
  const table = tableNumber(driver, tableId);
  if (table === undefined || (table.dropped_in ?? LIVE) <= at) return [];
  const columns = statistics ? listStatistics(driver, table.no, at) : undefined;
  const condition = predicate && predicateCondition(predicate, predicateContext(driver, table.no));
  // Most tables have no partitions, or the same few over and over.
  const partitions = new Map<string, ListedFile["partition"]>();
  const partition = (json: string): ListedFile["partition"] => {
    let values = partitions.get(json);
    if (!values) {
      values = readJson(json).list().map(readPartitionValue);
      partitions.set(json, values);
    }
    return values;
  };
  const values: SqliteValue[] = [table.no, at, at, ...(condition?.values ?? [])];
  // The `+` keeps SQLite from walking over all live files where a few are named.
  const where = condition ? `${condition.seeks ? "+" : ""}${FILES_AT} AND ${condition.sql}` : FILES_AT;
  return driver
    .all<FileRow>(
      `SELECT f.id, f.key, f.added_in, f.batch, f.rows, f.bytes, f.sha256, f.base, f.schema_version, f.partition,
         f.footer_bytes, f.footer_sha256
       FROM files f WHERE ${where} ORDER BY f.id`,
      ...values,
    )
    .map((row) => ({
      key: row.key,
      bytes: row.bytes,
      rows: row.rows,
      sha256: Buffer.from(row.sha256).toString("hex"),
      base: row.base,
      schemaVersion: row.schema_version,
      partition: partition(row.partition),
      columns: columns?.get(row.id) ?? [],
      ...footerOf(row),
      addedIn: row.added_in,
      batchId: row.batch ?? undefined,
    }));
}

function footerOf({ footer_bytes: bytes, footer_sha256: sha256 }: FileRow): Pick<ListedFile, "footer"> {
  return bytes === null || sha256 === null ? {} : { footer: { bytes, sha256: Buffer.from(sha256).toString("hex") } };
}

/** Reads what a predicate turns out to need. */
function predicateContext(driver: SqliteDriver, table: number): PredicateContext {
  const schemas = lazily(() =>
    driver
      .all<{ version: number; schema: string }>(
        "SELECT version, schema FROM schema_versions WHERE table_no = ? ORDER BY version",
        table,
      )
      .map(({ version, schema: json }) => {
        const schema = storedSchemaOf(json);
        return { version, schema, leaves: leafFields(schema) };
      }),
  );
  const partitions = lazily(() => {
    const row = driver.get<{ partition_by: string }>("SELECT partition_by FROM tables WHERE no = ?", table);
    const specs = readJson(row?.partition_by ?? "[]").list();
    return specs.map((text) => parsePartitionBy(text.text(), schemas().at(-1)!.schema));
  });
  return {
    table,
    since: (field) => {
      const first = schemas().find(({ leaves }) => leaves.has(field));
      return first?.version ?? corrupt(`no version of the table ${table} has a field ${field}`);
    },
    bucketsOf: (field, kind) =>
      partitions().flatMap((spec, position) => {
        if (spec.transform.kind !== "bucket" || spec.field.id !== field) return [];
        // Values of other classes, which were widened since, have other buckets.
        const types = schemas().flatMap(({ leaves }) => leaves.get(field)?.type ?? []);
        return types.every((type) => boundClass(type) === kind) ? [{ position, buckets: spec.transform.buckets }] : [];
      }),
  };
}

/** Does work once, if at all. */
function lazily<T>(work: () => T): () => T {
  let done: { readonly value: T } | undefined;
  return () => {
    done ??= { value: work() };
    return done.value;
  };
}

/** By file id. One row of JSON per file: less than half the time of a row per column. */
function listStatistics(driver: SqliteDriver, table: number, at: number): Map<number, ColumnStatistics[]> {
  const rows = driver.all<{ file: number; columns: string }>(
    `SELECT s.file, json_group_array(json_array(s.field, s.class, iif(s.min IS NULL, NULL, hex(s.min)),
       iif(s.max IS NULL, NULL, hex(s.max)), s.value_count, s.null_count, s.has_nan, s.min_exact, s.max_exact,
       s.stored_bytes) ORDER BY s.field) AS columns
     FROM files f JOIN column_stats s ON s.file = f.id WHERE ${FILES_AT} GROUP BY s.file`,
    table,
    at,
    at,
  );
  return new Map(
    rows.map(({ file, columns }) => [file, (JSON.parse(columns) as StatisticsJson[]).map(toStatistics)] as const),
  );
}

function toStatistics(row: StatisticsJson): ColumnStatistics {
  const [fieldId, kind, min, max, valueCount, nullCount, hasNaN, minExact, maxExact, storedBytes] = row;
  return {
    fieldId,
    valueCount,
    nullCount,
    hasNaN: hasNaN === 1,
    ...(min !== null && { min: fromOrderedBytes(kind, Buffer.from(min, "hex")) }),
    ...(max !== null && { max: fromOrderedBytes(kind, Buffer.from(max, "hex")) }),
    minExact: minExact === 1,
    maxExact: maxExact === 1,
    storedBytes,
  };
}

/** Over the live files at the head, and the hot batches. A few steps in an index per column, however many files there are. */
export function integerBounds(driver: SqliteDriver, tableId: string): Map<number, IntegerBounds | undefined> {
  const bounds = new Map<number, IntegerBounds | undefined>();
  const table = tableNumber(driver, tableId);
  if (!table || table.dropped_in !== null) return bounds;
  const last = driver.get<{ schema: string }>(
    "SELECT schema FROM schema_versions WHERE table_no = ? ORDER BY version DESC LIMIT 1",
    table.no,
  );
  if (!last) return corrupt(`the table ${tableId} has no schema`);
  for (const [field, { type }] of leafFields(storedSchemaOf(last.schema))) {
    if (!isIntegerType(type)) continue;
    const unbounded = driver.get(
      `SELECT 1 FROM unbounded u JOIN files f ON f.id = u.file
       WHERE u.table_no = ? AND u.field = ? AND f.removed_in = ? LIMIT 1`,
      table.no,
      field,
      LIVE,
    );
    if (unbounded) {
      bounds.set(field, undefined);
      continue;
    }
    // Files from before a widening may hold the other class.
    const ends = (["int", "uint"] as const).flatMap((kind) => [
      ...extreme(driver, table.no, field, kind, "min"),
      ...extreme(driver, table.no, field, kind, "max"),
    ]);
    ends.sort((a, b) => (a < b ? -1 : 1));
    if (ends.length > 0) bounds.set(field, { min: ends[0]!, max: ends.at(-1)! });
  }
  return bounds;
}

/** In files and in hot batches, where there are any. CROSS JOIN keeps SQLite from starting with the files: the first live one in the index's order is the answer. */
function extreme(
  driver: SqliteDriver,
  table: number,
  field: number,
  kind: "int" | "uint",
  end: "min" | "max",
): bigint[] {
  const ofFiles = driver.get<{ bound: Uint8Array }>(
    `SELECT s.${end} AS bound FROM column_stats s CROSS JOIN files f ON f.id = s.file
     WHERE s.table_no = ? AND s.field = ? AND s.class = ? AND s.${end} IS NOT NULL AND f.removed_in = ?
     ORDER BY s.${end} ${end === "min" ? "ASC" : "DESC"} LIMIT 1`,
    table,
    field,
    kind,
    LIVE,
  );
  const ofHot = driver.get<{ bound: Uint8Array }>(
    `SELECT ${end} AS bound FROM hot_bounds WHERE table_no = ? AND field = ? AND class = ?`,
    table,
    field,
    kind,
  );
  return [ofFiles, ofHot].flatMap((row) => {
    if (!row) return [];
    const bound = fromOrderedBytes(kind, row.bound);
    return typeof bound === "bigint" ? bound : corrupt("a bound of an integer column is no integer");
  });
}

/** The files of a table become those of an earlier snapshot again, as of snapshot `n`. */
export function rollBackFiles(driver: SqliteDriver, table: number, n: number, to: number): void {
  driver.run(
    "UPDATE files SET removed_in = ? WHERE table_no = ? AND removed_in = ? AND added_in > ?",
    n,
    table,
    LIVE,
    to,
  );
  const gone = driver.all<{ id: number }>(
    "SELECT id FROM files WHERE table_no = ? AND removed_in > ? AND removed_in < ? AND added_in <= ? ORDER BY id",
    table,
    to,
    LIVE,
    to,
  );
  for (const { id } of gone) {
    const copy = driver.get<{ id: number }>(
      `INSERT INTO files (table_no, key, added_in, batch, rows, bytes, sha256, base, schema_version, partition,
         footer_bytes, footer_sha256)
       SELECT table_no, key, ?, batch, rows, bytes, sha256, base, schema_version, partition, footer_bytes, footer_sha256
       FROM files WHERE id = ?
       RETURNING id`,
      n,
      id,
    )?.id;
    if (copy === undefined) corrupt("a file was not brought back");
    driver.run(
      `INSERT INTO column_stats (file, field, table_no, class, min, max, value_count, null_count, has_nan, min_exact,
         max_exact, stored_bytes)
       SELECT ?, field, table_no, class, min, max, value_count, null_count, has_nan, min_exact, max_exact, stored_bytes
       FROM column_stats WHERE file = ?`,
      copy,
      id,
    );
    driver.run(
      "INSERT INTO unbounded (table_no, field, file) SELECT table_no, field, ? FROM unbounded WHERE file = ?",
      copy,
      id,
    );
  }
}
