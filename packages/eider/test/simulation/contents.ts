/** What data files and hot batches hold, as rows; files by a reader that is not the lake's own. */

import type { HotBatch } from "@eider/catalog";
import { batchRows, decodeRecordBatch, type Schema } from "@eider/core";
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

/** Values by field id: what columns are called, and which there are, the table's schema says. */
type Values = ReadonlyMap<number, unknown>;

/** Of files, by SHA-256: their bytes never change, and schedules make the same ones again and again. */
const decoded = new Map<string, readonly Values[]>();

/** The rows of a data file under the columns of a schema, see {@link rowText}. */
export async function fileRows(bytes: Uint8Array, sha256: string, schema: Schema): Promise<string[]> {
  const rows = decoded.get(sha256) ?? (await decodeFile(bytes));
  decoded.set(sha256, rows);
  return rows.map((values) => under(schema, values));
}

/** The same of a hot batch. */
export function hotRows({ data, schema: written }: HotBatch, schema: Schema): string[] {
  const ids = new Map(written.fields.map(({ name, id }) => [name, id]));
  return batchRows(decodeRecordBatch(written, data), "exact").map((row) =>
    under(schema, new Map(Object.entries(row).map(([name, value]) => [ids.get(name)!, value]))),
  );
}

/** A row as text: nulls left out, which a column that came later has too, and the rest in the order of the names. */
export function rowText(row: Readonly<Record<string, unknown>>): string {
  const cells = Object.entries(row).filter(([, value]) => value !== null && value !== undefined);
  cells.sort(([a], [b]) => (a < b ? -1 : 1));
  // The numbers of the simulation are small.
  return JSON.stringify(Object.fromEntries(cells), (_, value) => (typeof value === "bigint" ? Number(value) : value));
}

async function decodeFile(bytes: Uint8Array): Promise<Values[]> {
  const file = new Uint8Array(bytes).buffer;
  const names = new Map(parquetMetadata(file).schema.map(({ name, field_id: id }) => [name, id ?? -1]));
  const rows = await parquetReadObjects({ file, compressors });
  return rows.map((row) => new Map(Object.entries(row).map(([name, value]) => [names.get(name)!, value])));
}

function under({ fields }: Schema, values: Values): string {
  return rowText(Object.fromEntries(fields.map(({ name, id }) => [name, values.get(id)])));
}
