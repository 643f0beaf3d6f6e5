/** Reads a snapshot as a query does: it plans which files, opens each of them, and reads them, at its own pace. */

import { createHash } from "node:crypto";
import type { Catalog, HotBatch, ListedFile, TableInfo } from "@eider/catalog";
import type { ObjectStore } from "@eider/storage";
import { fileRows, hotRows } from "./contents.js";
import type { Seen } from "./history.js";
import { digestOf } from "./model.js";

/** By what was hashed: bytes in a store never change, and most are read many times. */
const hashes = new WeakMap<Uint8Array, string>();

function sha256Of(bytes: Uint8Array): string {
  const known = hashes.get(bytes);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(bytes).digest("hex");
  hashes.set(bytes, hash);
  return hash;
}

interface PlannedTable {
  readonly table: TableInfo;
  readonly files: readonly ListedFile[];
  readonly hot: readonly HotBatch[];
}

/** @throws Error if a file is not what the catalog says */
export async function readSnapshot(
  { catalog, store }: { readonly catalog: Catalog; readonly store: ObjectStore },
  snapshot: number,
): Promise<Seen> {
  const plan = await planSnapshot(catalog, snapshot);
  for (const { key, bytes } of plan.flatMap(({ files }) => files)) {
    if ((await store.head(key))?.size !== bytes) throw new Error(`${key} is gone, or is not what was committed`);
  }
  const digest = await readPlan(plan, async (key) => {
    // The simulated store sends an object in one piece, as it has it.
    for await (const bytes of (await store.get(key)).body) return bytes;
    return new Uint8Array();
  });
  return { snapshot, digest };
}

export async function planSnapshot(catalog: Catalog, snapshot: number): Promise<PlannedTable[]> {
  const plan: PlannedTable[] = [];
  for (const table of snapshot === 0 ? [] : await catalog.tables(snapshot)) {
    plan.push({
      table,
      files: await catalog.files(table.id, snapshot, { statistics: false }),
      hot: table.hotBatches > 0 ? await catalog.hotBatches(table.id, { at: snapshot }) : [],
    });
  }
  return plan;
}

/**
 * What a plan's files and hot batches hold.
 * @throws Error if a file is not what the catalog says
 */
export async function readPlan(
  plan: readonly PlannedTable[],
  read: (key: string) => Promise<Uint8Array>,
): Promise<string> {
  const tables = [];
  for (const { table, files, hot } of plan) {
    const { id, name, schema } = table;
    const rows = hot.flatMap((batch) => hotRows(batch, schema));
    for (const { key, sha256 } of files) {
      const bytes = await read(key);
      if (sha256Of(bytes) !== sha256) throw new Error(`${key} is not what was committed`);
      rows.push(...(await fileRows(bytes, sha256, schema)));
    }
    if (rows.length !== table.rows) throw new Error(`${name} has ${rows.length} rows, and says ${table.rows}`);
    tables.push({ id, name, columns: schema.fields.map((field) => field.name).join(), rows });
  }
  return digestOf(tables);
}
