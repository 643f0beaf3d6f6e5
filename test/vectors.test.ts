/**
 * Every vector through core alone: its inputs are parsed, encoded, and read back by plain DuckDB with the SQL that
 * `eider files --sql` prints.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { batchRows, formatType, parquetReady, type Schema, storedSchema } from "@eider/core";
import { parquetMetadata, readOffsetIndex } from "hyparquet";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tableSql } from "../packages/query/src/table-sql.js";
import { VectorTable } from "./vector-table.js";
import { duckRows, loadVectors, type ParquetFacts, type Vector, type VectorInput } from "./vectors.js";

const folder = mkdtempSync(join(tmpdir(), "eider-vectors-"));
let duck: DuckDBConnection;
beforeAll(async () => {
  await parquetReady();
  duck = await (await DuckDBInstance.create()).connect();
});
afterAll(() => {
  duck.closeSync();
  rmSync(folder, { recursive: true, force: true });
});

const vectors = loadVectors();

test("there are vectors of every topic", () => {
  expect([...new Set(vectors.map((vector) => vector.name.split("/")[0]))]).toEqual([
    "csv",
    "evolution",
    "json",
    "parquet-options",
    "types",
  ]);
});

describe.each(vectors.map((vector) => [vector.name, vector] as const))("%s", (_name, vector) => {
  test(vector.about, async () => {
    const table = new VectorTable(vector);
    const files = vector.inputs.map((input, i) => append(table, vector, input, i));
    const types = table.schema.fields.map((field) => [
      field.name + (field.nullable ? "" : "!"),
      formatType(field.type),
    ]);
    expect(types).toEqual(Object.entries(vector.schema));
    expect(await duckRows(duck, tableSql(table.schema, files), table.schema)).toEqual(vector.rows);
  });
});

/** Encodes an input as the next file of a vector's table, and checks what is expected of it alone. */
function append(table: VectorTable, vector: Vector, input: VectorInput, file: number): { path: string; rows: number } {
  const { bytes, batches, rows, rejects } = table.append(input);
  expect(rejects.map(({ line, code }) => ({ line, code }))).toEqual(input.rejects);
  expect(Number(parquetMetadata(bytes).num_rows)).toBe(rows);
  if (input.facts !== undefined) checkFacts(bytes, input.facts);
  if (vector.inputs.length === 1) {
    // Before it was Parquet it was the same.
    const stored = batches.flatMap((batch) => batchRows(batch, "json"));
    expect(stored).toEqual(vector.rows.map((row) => pick(row, storedSchema(table.schema))));
  }
  const path = join(folder, `${vector.name.replace("/", "-")}-${file}.parquet`);
  writeFileSync(path, bytes);
  return { path, rows };
}

function pick(row: unknown, schema: Schema): unknown {
  return Object.fromEntries(schema.fields.map(({ name }) => [name, (row as Record<string, unknown>)[name]]));
}

/** Compares what hyparquet finds in the footer with what is listed. */
function checkFacts(bytes: Uint8Array, facts: ParquetFacts): void {
  const metadata = parquetMetadata(bytes);
  if (facts.rowGroups !== undefined) {
    expect(metadata.row_groups.map((group) => Number(group.num_rows))).toEqual(facts.rowGroups);
  }
  const leaves = metadata.schema.filter((element) => element.type !== undefined);
  for (const [path, expected] of Object.entries(facts.columns ?? {})) {
    const index = metadata.row_groups[0]!.columns.findIndex((c) => c.meta_data!.path_in_schema.join(".") === path);
    const chunk = metadata.row_groups[0]!.columns[index];
    const leaf = leaves[index];
    if (chunk === undefined || leaf === undefined) throw new Error(`the file has no column ${path}`);
    const { meta_data: meta, offset_index_offset: offset } = chunk;
    const statistics = meta!.statistics;
    const found: Record<string, unknown> = {
      type: leaf.type,
      repetition: leaf.repetition_type,
      converted: leaf.converted_type ?? null,
      logical: leaf.logical_type ?? null,
      id: leaf.field_id ?? null,
      codec: meta!.codec,
      encoding: meta!.encoding_stats?.find((stats) => stats.page_type === "DATA_PAGE")?.encoding,
      nulls: fact(statistics?.null_count),
      min: fact(statistics?.min_value),
      max: fact(statistics?.max_value),
      minExact: fact(statistics?.is_min_value_exact),
      maxExact: fact(statistics?.is_max_value_exact),
      pages: offset === undefined ? null : firstRows(bytes, Number(offset)),
    };
    expect(Object.fromEntries(Object.keys(expected).map((name) => [name, found[name]]))).toEqual(expected);
  }
}

function firstRows(bytes: Uint8Array, offset: number): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset);
  return readOffsetIndex({ view, offset: 0 }).page_locations.map((page) => Number(page.first_row_index));
}

function fact(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value !== "bigint") return value;
  return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
}
