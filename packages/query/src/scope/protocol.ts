/** What a lake and the process that runs SQL from outside say to each other. One request at a time has one reply. */

import type { RecordBatch } from "@eider/core";
import type { DuckDBError } from "../duckdb-error.js";
import type { SqlParam } from "../query.js";
import type { Databases } from "../rewrite.js";
import type { ResultShape } from "../run.js";
import type { TableView } from "../session.js";
import type { Statement } from "../statement.js";
import type { Refusal } from "./guard.js";

export type ScopeRequest =
  /** Judges a statement, and tells what it reads of each table. */
  | {
      readonly op: "plan";
      readonly statement: Statement;
      readonly parameters: ReadonlyMap<string, SqlParam>;
      /** Snapshot of each `AT`. */
      readonly travels: readonly number[];
      /** What is to run, see `rewrite`: in a session that is alone in its instance. */
      readonly sql: string;
      /** Granted tables, without rows; and those at other snapshots. */
      readonly tables: readonly TableView[];
      readonly others: ReadonlyMap<number, readonly TableView[]>;
    }
  /** Starts a statement that was judged. */
  | {
      readonly op: "run";
      readonly sql: string;
      readonly parameters: ReadonlyMap<string, SqlParam>;
      readonly views: readonly TableView[];
      /** Of other snapshots. */
      readonly others: ReadonlyMap<number, readonly TableView[]>;
      readonly now: string | undefined;
      /** The only files that may be opened. */
      readonly files: readonly string[];
      /** Only names and types are wanted. */
      readonly describeOnly: boolean;
      readonly memoryBytes: number;
      readonly threads: number | undefined;
      readonly spillDir: string;
    }
  | { readonly op: "next" }
  /** Ends the statement, read to its end or not. */
  | { readonly op: "close" };

export type ScopeReply =
  | { readonly reply: "refused"; readonly refusal: Refusal }
  /** `session` is what the tables' databases are called in the plan, `now` the time at which it holds. */
  | {
      readonly reply: "planned";
      readonly plan: string | undefined;
      readonly session: Databases | undefined;
      readonly now: string | undefined;
    }
  | { readonly reply: "started"; readonly shape: ResultShape }
  | { readonly reply: "described"; readonly columns: ResultShape["columns"] }
  | { readonly reply: "rows"; readonly batch: RecordBatch }
  | { readonly reply: "end" }
  | { readonly reply: "closed" }
  /** `prefixBytes` of SQL stood before the statement. */
  | { readonly reply: "failed"; readonly error: DuckDBError; readonly prefixBytes: number };
