/**
 * A checkpoint: a catalog's own file, without what is of one host, to be kept elsewhere and made a catalog again. The
 * calls block the thread for as long as SQLite takes, seconds for gigabytes: they are for a worker.
 */

import { CorruptionError } from "@eider/core";
import type { EntryFacts } from "./entry.js";
import type { SqliteCatalog } from "./sqlite-catalog.js";
import { type OpenDriver, openSqlite, type SqliteDriver } from "./sqlite-driver.js";
import { findKeyUse } from "./sqlite-expiry.js";
import { carriedTables, HOST_TABLES } from "./sqlite-rows.js";
import { encodeStub, type StubReceipt } from "./stub.js";

/**
 * Copies the catalog in `from`, as it is at one moment and while others go on with it, to `to`, which must not exist.
 * Returns the snapshot it is of, 0 if there is none yet.
 */
export function copyCatalog(from: string, to: string, open: OpenDriver = openSqlite): number {
  use(open, from, (driver) => driver.run("VACUUM INTO ?", to));
  return use(open, to, (driver) => {
    for (const table of HOST_TABLES) driver.run(`DELETE FROM ${table}`);
    return driver.get<{ n: number | null }>("SELECT max(n) AS n FROM entries")?.n ?? 0;
  });
}

/** Gives the catalog in `path` a name of its own: it was another's checkpoint. */
export function renameCatalog(path: string, catalogId: string, open: OpenDriver = openSqlite): void {
  use(open, path, (driver) => driver.run("UPDATE meta SET catalog_id = ?", catalogId));
}

/** What a shared lake has to be given, besides the index that it begins with. */
export interface SharedCopy {
  /** 0: nothing was committed yet. */
  readonly snapshot: number;
  /** Of the last entry, encoded; undefined if there is none. */
  readonly stub: Uint8Array | undefined;
  /** Everything that a snapshot names, in order of commit. */
  readonly files: readonly { readonly key: string; readonly bytes: number; readonly sha256: string }[];
}

/** Makes a copy of a catalog, local or not, the index of a shared lake. */
export function shareCopy(path: string, lake: string, open: OpenDriver = openSqlite): SharedCopy {
  return use(open, path, (driver) => {
    driver.run("UPDATE meta SET lake_id = ?, mode = 'shared'", lake);
    driver.run("UPDATE entries SET header = x''");
    const head = driver.get<EntryFacts>(
      "SELECT n, id, prev, writer, host, time, floor FROM entries ORDER BY n DESC LIMIT 1",
    );
    const receipts = driver.all<StubReceipt>(
      `SELECT t.id AS "table", r.batch, r.hash, r.rows FROM receipts r JOIN tables t ON t.no = r.table_no
       WHERE r.snapshot = ?`,
      head?.n ?? 0,
    );
    const files = driver.all<{ key: string; bytes: number; sha256: Uint8Array }>(
      "SELECT key, bytes, sha256 FROM files ORDER BY id",
    );
    const { used } = findKeyUse(
      driver,
      files.map(({ key }) => key),
    );
    return {
      snapshot: head?.n ?? 0,
      stub: head && encodeStub({ ...head, lake, receipts }),
      files: files
        .filter(({ key }) => used.has(key))
        .map(({ sha256, ...file }) => ({ ...file, sha256: Buffer.from(sha256).toString("hex") })),
    };
  });
}

/**
 * Makes an open index what the checkpoint in `path` is.
 * @throws as `SqliteCatalog.applyCheckpoint`
 */
export async function applyCheckpointFile(
  index: SqliteCatalog,
  path: string,
  open: OpenDriver = openSqlite,
): Promise<void> {
  const driver = open(path, { readonly: true, create: false, blockMs: 0, copy: false });
  try {
    const lake = driver.get<{ lake_id: string }>("SELECT lake_id FROM meta")?.lake_id;
    if (lake !== index.lakeId) throw new CorruptionError("bad_checkpoint", `the checkpoint is of lake ${lake}`);
    await index.applyCheckpoint({
      entryId: (n) => driver.get<{ id: string }>("SELECT id FROM entries WHERE n = ?", n)?.id,
      tables: () => carriedTables(driver),
    });
  } finally {
    driver.close();
  }
}

function use<T>(open: OpenDriver, path: string, body: (driver: SqliteDriver) => T): T {
  const driver = open(path, { readonly: false, create: false, blockMs: 5000, copy: false });
  try {
    return body(driver);
  } finally {
    driver.close();
  }
}
