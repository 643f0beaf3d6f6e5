/** Small drafts to commit. */

import type { ColumnStatistics, Schema } from "@eider/core";
import type { DataFile, Draft, FileEnd, Operation } from "../src/catalog.js";
import { rangeBatchId } from "../src/names.js";

export const SCHEMA: Schema = {
  fields: [
    { id: 1, name: "id", type: { kind: "int64" }, nullable: false },
    { id: 2, name: "name", type: { kind: "string" }, nullable: true },
  ],
};

export function statistics(fieldId: number, more: Partial<ColumnStatistics> = {}): ColumnStatistics {
  return {
    fieldId,
    valueCount: 1,
    nullCount: 0,
    hasNaN: false,
    minExact: true,
    maxExact: true,
    storedBytes: 10,
    ...more,
  };
}

/** The end of a file. */
export const FOOTER: FileEnd = { bytes: 20, sha256: "fedcba9876543210".repeat(4) };

export function dataFile(key: string, more: Partial<DataFile> = {}): DataFile {
  return {
    key,
    bytes: 100,
    rows: 1,
    sha256: "0123456789abcdef".repeat(4),
    base: 0,
    schemaVersion: 1,
    partition: [],
    columns: [],
    ...more,
  };
}

type SchemaChange = Extract<Operation, { op: "schema" }>;
type Append = Extract<Operation, { op: "append" }>;

export function create(table: string, name: string, more: Partial<SchemaChange> = {}): SchemaChange {
  return {
    op: "schema",
    table,
    version: 1,
    schema: SCHEMA,
    lastFieldId: 2,
    create: { name, folder: `${name}-${table}`, partitionBy: [], orderBy: [] },
    ...more,
  };
}

/** One file of one row per key. */
export function append(table: string, batch: string, keys: readonly string[], more: Partial<Append> = {}): Append {
  return {
    op: "append",
    table,
    batch,
    hash: `rows:${batch}`,
    rows: keys.length,
    schemaVersion: 1,
    files: keys.map((key) => dataFile(key)),
    rejects: [],
    ...more,
  };
}

/** Bytes that the catalog keeps and never reads. */
export function hot(table: string, batch: string, rows: number, more: Partial<Append> = {}): Append {
  return append(table, batch, [], { rows, hot: { data: Buffer.from(`rows of ${batch}`), bounds: [] }, ...more });
}

type Rearrange = Extract<Operation, { op: "rearrange" }>;

export function rearrange(table: string, more: Partial<Rearrange>): Rearrange {
  return { op: "rearrange", table, removeHot: [], removeFiles: [], addFiles: [], ...more };
}

export function draft(...operations: Operation[]): Draft {
  return { operations };
}

/** Part `first` to `last` of a source, without rows. */
export function part(table: string, source: string, first: number, last = first, more: Partial<Append> = {}): Append {
  const range = { source, first: String(first), last: String(last) };
  return append(table, rangeBatchId(range), [], { range, ...more });
}
