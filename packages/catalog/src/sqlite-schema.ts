/** The tables of the catalog file, and how a file of an older version becomes one of this version. */

import { CatalogError, NotFoundError } from "@eider/core";
import type { SqliteDriver } from "./sqlite-driver.js";

/** `EIDR`: marks the file as ours in SQLite's header. */
const APPLICATION_ID = 0x45494452;

/** `removed_in` of a file that is live. */
export const LIVE: number = Number.MAX_SAFE_INTEGER;

/** An integer that stays exact in a JavaScript number. */
const count = (name: string): string => `${name} INTEGER NOT NULL CHECK (${name} BETWEEN 0 AND ${LIVE})`;

/**
 * Step i makes version i + 1 of the file (SQLite's `user_version`) from version i. Steps are never edited once released.
 *
 * Tables have a small number here beside their id, since it is repeated in every row. A file is live from `added_in` on
 * and before `removed_in`, and no longer than its table; one that a rollback brings back has another row. Bounds compare as blobs within one `class`, see `bounds.ts`;
 * An entry's `header` is kept where it is nowhere else, on local lakes; `log_end` is the bytes of all entries up to it.
 * `unbounded` has the files that may hold values of a column without telling between which bounds, so that a search by
 * bounds is complete with them.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    lake_id TEXT NOT NULL,
    catalog_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    ${count("created")}
  ) STRICT;

  CREATE TABLE entries (
    n INTEGER PRIMARY KEY CHECK (n BETWEEN 1 AND ${LIVE}),
    id TEXT NOT NULL UNIQUE,
    prev TEXT NOT NULL,
    ${count("time")},
    ${count("floor")},
    writer TEXT NOT NULL,
    host TEXT NOT NULL,
    summary TEXT NOT NULL,
    header BLOB NOT NULL,
    ${count("log_end")}
  ) STRICT;
  CREATE INDEX entries_by_time ON entries (time, n);

  CREATE TABLE tables (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    folder TEXT NOT NULL,
    folder_key TEXT NOT NULL UNIQUE,
    partition_by TEXT NOT NULL,
    order_by TEXT NOT NULL,
    created_in INTEGER NOT NULL REFERENCES entries,
    dropped_in INTEGER REFERENCES entries
  ) STRICT;
  CREATE UNIQUE INDEX tables_live ON tables (name_key) WHERE dropped_in IS NULL;
  CREATE INDEX tables_by_name ON tables (name_key);

  CREATE TABLE schema_versions (
    table_no INTEGER NOT NULL REFERENCES tables,
    ${count("version")},
    snapshot INTEGER NOT NULL REFERENCES entries,
    ${count("last_field_id")},
    schema TEXT NOT NULL,
    PRIMARY KEY (table_no, version)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE table_totals (
    table_no INTEGER NOT NULL REFERENCES tables,
    snapshot INTEGER NOT NULL REFERENCES entries,
    ${count("rows")},
    ${count("files")},
    ${count("bytes")},
    PRIMARY KEY (table_no, snapshot)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE receipts (
    table_no INTEGER NOT NULL REFERENCES tables,
    batch TEXT NOT NULL,
    hash TEXT NOT NULL,
    ${count("rows")},
    snapshot INTEGER NOT NULL REFERENCES entries,
    ${count("time")},
    PRIMARY KEY (table_no, batch)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX receipts_by_snapshot ON receipts (table_no, snapshot);

  CREATE TABLE files (
    id INTEGER PRIMARY KEY,
    table_no INTEGER NOT NULL REFERENCES tables,
    key TEXT NOT NULL,
    added_in INTEGER NOT NULL REFERENCES entries,
    ${count("removed_in")} DEFAULT ${LIVE},
    batch TEXT,
    ${count("rows")},
    ${count("bytes")},
    sha256 BLOB NOT NULL,
    ${count("base")},
    ${count("schema_version")},
    partition TEXT NOT NULL
  ) STRICT;
  CREATE INDEX files_by_key ON files (key);
  CREATE INDEX files_by_table ON files (table_no, removed_in, added_in);

  CREATE TABLE column_stats (
    file INTEGER NOT NULL REFERENCES files,
    field INTEGER NOT NULL,
    table_no INTEGER NOT NULL,
    class TEXT NOT NULL,
    min BLOB,
    max BLOB,
    ${count("value_count")},
    ${count("null_count")},
    has_nan INTEGER NOT NULL,
    min_exact INTEGER NOT NULL,
    max_exact INTEGER NOT NULL,
    ${count("stored_bytes")},
    PRIMARY KEY (file, field)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX column_stats_by_min ON column_stats (table_no, field, class, min, max);
  CREATE INDEX column_stats_by_max ON column_stats (table_no, field, class, max, min);

  CREATE TABLE unbounded (
    table_no INTEGER NOT NULL,
    field INTEGER NOT NULL,
    file INTEGER NOT NULL REFERENCES files,
    PRIMARY KEY (table_no, field, file)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE rejects (
    snapshot INTEGER NOT NULL REFERENCES entries,
    ordinal INTEGER NOT NULL,
    table_no INTEGER NOT NULL REFERENCES tables,
    batch TEXT NOT NULL,
    ${count("line")},
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    raw TEXT NOT NULL,
    PRIMARY KEY (snapshot, ordinal)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX rejects_by_table ON rejects (table_no, batch);

  CREATE TABLE intents (
    id TEXT PRIMARY KEY,
    ${count("base")},
    writer TEXT NOT NULL,
    host TEXT NOT NULL,
    ${count("started")}
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX intents_by_base ON intents (base);
  `,
  // The few files that hold nulls or NaN, for predicates that these satisfy.
  `
  CREATE INDEX column_stats_nulls ON column_stats (table_no, field, null_count, value_count) WHERE null_count > 0;
  CREATE INDEX column_stats_nan ON column_stats (table_no, field) WHERE has_nan = 1;
  `,
  // Places that are kept: how far sources, consumers and people have come.
  `
  CREATE TABLE sources (
    table_no INTEGER NOT NULL REFERENCES tables,
    source TEXT NOT NULL,
    last TEXT NOT NULL,
    batch TEXT NOT NULL,
    PRIMARY KEY (table_no, source)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE cursors (
    name TEXT PRIMARY KEY,
    position TEXT NOT NULL,
    ${count("moved_in")}
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE tags (
    name TEXT PRIMARY KEY,
    ${count("snapshot")}
  ) STRICT, WITHOUT ROWID;
  `,
  // Small batches, live like files from `added_in` on and before `removed_in`. `hot_bounds` covers the integers of all that
  // there ever were, since a rollback may bring them back.
  `
  CREATE TABLE hot_batches (
    id INTEGER PRIMARY KEY,
    table_no INTEGER NOT NULL REFERENCES tables,
    batch TEXT NOT NULL,
    added_in INTEGER NOT NULL REFERENCES entries,
    ${count("removed_in")} DEFAULT ${LIVE},
    ${count("rows")},
    ${count("schema_version")},
    data BLOB NOT NULL
  ) STRICT;
  CREATE INDEX hot_batches_by_batch ON hot_batches (table_no, batch);
  CREATE INDEX hot_batches_by_table ON hot_batches (table_no, removed_in, added_in);

  CREATE TABLE hot_bounds (
    table_no INTEGER NOT NULL,
    field INTEGER NOT NULL,
    class TEXT NOT NULL,
    min BLOB NOT NULL,
    max BLOB NOT NULL,
    PRIMARY KEY (table_no, field, class)
  ) STRICT, WITHOUT ROWID;

  ALTER TABLE table_totals ADD COLUMN ${count("hot_batches")} DEFAULT 0;
  ALTER TABLE table_totals ADD COLUMN ${count("hot_bytes")} DEFAULT 0;
  ALTER TABLE table_totals ADD COLUMN ${count("hot_since")} DEFAULT 0;
  `,
  // What became of rejects: taken in another try, or their texts gone. Receipts say how many there were.
  `
  ALTER TABLE rejects ADD COLUMN replayed_in INTEGER;
  ALTER TABLE rejects ADD COLUMN replayed_by TEXT;
  ALTER TABLE rejects ADD COLUMN purged_in INTEGER;
  CREATE INDEX rejects_in_order ON rejects (table_no, snapshot, ordinal);

  ALTER TABLE receipts ADD COLUMN ${count("rejected")} DEFAULT 0;
  UPDATE receipts SET rejected =
    (SELECT count(*) FROM rejects r WHERE r.table_no = receipts.table_no AND r.batch = receipts.batch);
  `,
  // Snapshots before `before` have ended; what only those before `purged` show was let go of. Tags that ended since
  // `unused_since` still keep what they kept.
  `
  CREATE TABLE expiries (
    n INTEGER PRIMARY KEY REFERENCES entries,
    ${count("before")},
    ${count("unused_since")},
    ${count("purged")}
  ) STRICT;

  CREATE TABLE ended_tags (
    snapshot INTEGER PRIMARY KEY,
    ${count("ended_in")}
  ) STRICT;
  `,
  // How far a local catalog's entries were written into its store, see `sqlite-journal.ts`.
  `
  ALTER TABLE meta ADD COLUMN ${count("journaled")} DEFAULT 0;
  `,
  // Named SELECTs. One that is replaced, or comes back, has another row.
  `
  CREATE TABLE views (
    no INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    sql TEXT NOT NULL,
    created_in INTEGER NOT NULL REFERENCES entries,
    dropped_in INTEGER REFERENCES entries
  ) STRICT;
  CREATE UNIQUE INDEX views_live ON views (name_key) WHERE dropped_in IS NULL;
  `,
  // The ends of files, by which their parts can be checked; null of files that have no digests in them.
  `
  ALTER TABLE files ADD COLUMN footer_bytes INTEGER;
  ALTER TABLE files ADD COLUMN footer_sha256 BLOB;
  `,
  // Of a lake that goes on elsewhere: which copy of it is the one that does.
  `
  ALTER TABLE meta ADD COLUMN moved_to TEXT;
  `,
];

/** Version of the file that this code reads and writes. */
const CATALOG_VERSION: number = MIGRATIONS.length;

/** What a new catalog is told about itself. */
export interface Identity {
  readonly lakeId: string;
  readonly catalogId: string;
  readonly mode: string;
  /** Milliseconds since the epoch. */
  readonly created: number;
}

/**
 * The file's version: 0 for an empty one.
 * @throws CatalogError `not_a_catalog` for another program's SQLite file, `catalog_too_new`
 */
function fileVersion(driver: SqliteDriver, path: string): number {
  const application = driver.get<{ application_id: number }>("PRAGMA application_id")?.application_id;
  const version = driver.get<{ user_version: number }>("PRAGMA user_version")?.user_version ?? 0;
  if (application !== APPLICATION_ID) {
    const objects = driver.get<{ n: number }>("SELECT count(*) AS n FROM sqlite_schema")?.n ?? 0;
    if (application === 0 && version === 0 && objects === 0) return 0;
    throw new CatalogError("not_a_catalog", `${path} is a SQLite file of another program: check the path`, {
      subject: path,
    });
  }
  if (version > CATALOG_VERSION) {
    throw new CatalogError(
      "catalog_too_new",
      `the catalog ${path} has version ${version}, this version of Eider knows up to ${CATALOG_VERSION}: update Eider`,
      { subject: path },
    );
  }
  return version;
}

/**
 * Whether the file is a catalog of this version already.
 * @throws NotFoundError `catalog_not_found` for an empty file unless it may be created
 * @throws CatalogError `catalog_too_old` if it would have to be changed but may not
 */
export function isCurrent(driver: SqliteDriver, path: string, may: { create: boolean; migrate: boolean }): boolean {
  const version = fileVersion(driver, path);
  if (version === 0 && !may.create) {
    throw new NotFoundError("catalog_not_found", `there is no catalog in ${path} yet`, { subject: path });
  }
  if (version < CATALOG_VERSION && !may.migrate) {
    throw new CatalogError(
      "catalog_too_old",
      `the catalog ${path} has version ${version}, this version of Eider reads ${CATALOG_VERSION}: open it for writing once`,
      { subject: path },
    );
  }
  return version === CATALOG_VERSION;
}

/**
 * Makes the file a catalog of this version. Inside a write transaction that looks at the version itself: of two processes
 * that create or migrate at once, the second finds the work done.
 */
export function migrate(driver: SqliteDriver, path: string, identity: () => Identity): void {
  const version = fileVersion(driver, path);
  for (const step of MIGRATIONS.slice(version)) driver.exec(step);
  if (version === 0) {
    const { lakeId, catalogId, mode, created } = identity();
    driver.run(
      "INSERT INTO meta (one, lake_id, catalog_id, mode, created) VALUES (1, ?, ?, ?, ?)",
      lakeId,
      catalogId,
      mode,
      created,
    );
  }
  if (version < CATALOG_VERSION) {
    driver.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${CATALOG_VERSION}`);
  }
}
