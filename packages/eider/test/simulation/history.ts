/** What processes asked for and were told. */

import type { AppendResult, CopyResult } from "../../src/options.js";
import type { Version } from "./sim-store.js";
import type { Work } from "./workload.js";

export interface Event {
  /** In the metadata of the entry that it makes, if it makes one. */
  readonly tag: string;
  readonly process: string;
  readonly work: Work;
  readonly version: Version;
  /** When its process was started. Moments of the schedule. */
  readonly opened: number;
  readonly started: number;
  ended?: number;
  /** The same in milliseconds. */
  readonly startedMs: number;
  endedMs?: number;
  /** `ok` was acknowledged. `fail`: the caller was told that it did not happen. `unknown`: it was told so, or is dead. */
  outcome: "ok" | "fail" | "unknown";
  result?: AppendResult;
  error?: unknown;
  /** Of what commits, and has no receipt: its snapshot. */
  snapshot?: number;
  /** Of a rollback, a tag and a query: the snapshot that it meant. */
  to?: number;
  /** Of a transaction: the snapshot at which it read. Of an expiry: one that it knew of. */
  base?: number;
  /** Of what follows a table: where its cursor was. */
  from?: string;
  /** Of a cursor that was moved. */
  moved?: { readonly name: string; readonly from: string; readonly to: string } | undefined;
  /** Of a replay and of a purge: the rejects that it meant. */
  rejects?: readonly string[];
  /** Of a query: what it saw. */
  seen?: Seen;
  /** Of a copy and of a move: the place, and what came of it. */
  place?: string;
  copied?: CopyResult;
  /** Of maintenance: what it deleted. */
  deleted?: readonly string[];
}

export interface Seen {
  readonly snapshot: number;
  /** See `digestOf`. */
  readonly digest: string;
}
