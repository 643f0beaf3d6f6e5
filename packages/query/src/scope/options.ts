/** What `lake.scope` takes. */

import type { SqlParam } from "../query.js";

/** A piece of SQL with its values apart from it, as the tag {@link sql} makes it. */
export interface SqlFragment {
  readonly text: string;
  readonly params: readonly SqlParam[];
}

/** What of a table is granted. */
export interface TableGrant {
  /** Only rows for which it is true; written by you, with the values of whoever asks. Default: all rows. */
  readonly where?: SqlFragment;
  /** Only these columns. Default: all of them, also those that the table gets later. */
  readonly columns?: readonly string[];
}

export interface ScopeLimits {
  /** Rows of a result. Default 100,000. */
  readonly rows?: number;
  /** Bytes of a result as Arrow columns. Default 64 MiB. */
  readonly bytes?: number;
  /** Milliseconds from the start of a query to its last row. Default 30,000. */
  readonly timeoutMs?: number;
  /** Bytes of memory that a query may take, beyond which it spills to disk or fails. Default 256 MiB. */
  readonly memoryBytes?: number;
  /** Queries of this scope at the same time; more wait. Default 2. */
  readonly concurrency?: number;
}

export interface ScopeOptions {
  /** By name. Whatever is not here does not exist for the scope. */
  readonly tables: Readonly<Record<string, TableGrant>>;
  readonly limits?: ScopeLimits;
  /**
   * A result that is larger than its limits: an error (default), or what fits, and `stats.truncated` says so. Time and
   * memory are errors in any case.
   */
  readonly onLimit?: "error" | "truncate";
  /**
   * Whether `AT` may name other snapshots, at which the tables show what the grants say. Default false: rows that were rolled
   * back, or were of a dropped table of the same name, stay unseen.
   */
  readonly history?: boolean;
  /** Threads of a query. Default 1. */
  readonly threads?: number;
}
