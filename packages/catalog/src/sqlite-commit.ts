/** From a draft to an entry, and from an entry to what the tables say: what both modes of a lake have in common. */

import { BatchConflictError, CorruptionError, InvalidInputError } from "@eider/core";
import { apply, floorAfter } from "./apply.js";
import type { CommitResult, Draft, Receipt } from "./catalog.js";
import { check } from "./check.js";
import type { Entry } from "./entry.js";
import { quote } from "./names.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { corrupt } from "./sqlite-json.js";
import { findMark, findReceipt } from "./sqlite-receipts.js";
import type { SqliteState } from "./sqlite-state.js";

/** Who commits, and when. */
export interface Author {
  readonly lake: string;
  readonly id: string;
  readonly writer: string;
  readonly host: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export type Refusal =
  | { readonly answer: Exclude<CommitResult, { status: "committed" }> }
  | { readonly failure: BatchConflictError | InvalidInputError };

/** Why a draft is not to become the next entry; undefined if it may. */
export function refusal(driver: SqliteDriver, state: SqliteState, draft: Draft): Refusal | undefined {
  const verdict = check(state, draft);
  switch (verdict.status) {
    case "duplicate":
      return { answer: { status: "duplicate", receipts: receiptsOf(driver, draft) } };
    case "conflict":
      return { failure: new BatchConflictError(verdict.code, verdict.message, { subject: verdict.batch }) };
    case "invalid":
      return { failure: new InvalidInputError(verdict.code, verdict.message, { subject: verdict.subject }) };
    case "stale":
      return { answer: verdict };
    case "apply":
      return undefined;
  }
}

/** The entry that a draft becomes on this state. */
export function nextEntry(state: SqliteState, draft: Draft, { now, ...author }: Author): Entry {
  const head = state.head();
  return {
    ...author,
    n: head.n + 1,
    prev: head.id,
    time: Math.max(head.time, now),
    floor: floorAfter(head.floor, draft.operations),
    meta: draft.meta ?? {},
    operations: draft.operations,
  };
}

/** Writes what an entry changes; the entry must be valid on the state. */
export function writeEntry(driver: SqliteDriver, state: SqliteState, entry: Entry): void {
  const { floor } = state.head();
  state.write(apply(state, entry));
  if (entry.floor > floor) driver.run("DELETE FROM intents WHERE base < ?", entry.floor);
}

/**
 * An entry that somebody else wrote, on the state that it says it follows: every reader asserts what its writer checked.
 * @throws CorruptionError `bad_entry`
 */
export function assertFollows(state: SqliteState, entry: Entry, lake: string): void {
  const head = state.head();
  const fail = (reason: string): never => {
    throw new CorruptionError("bad_entry", `entry ${entry.n} of the log ${reason}: stop writing and run verify`, {
      subject: String(entry.n),
    });
  };
  if (entry.lake !== lake) fail(`is of lake ${entry.lake}, not of ${lake}`);
  if (entry.n !== head.n + 1) fail(`does not come after entry ${head.n}`);
  if (entry.prev !== head.id) fail("follows another entry than the one before it");
  if (entry.time < head.time) fail("is older than the one before it");
  if (entry.floor !== floorAfter(head.floor, entry.operations)) fail("has a floor that nothing in it explains");
  const verdict = check(state, entry);
  if (verdict.status !== "apply") {
    fail(`is not valid there (${verdict.status === "duplicate" ? "its batches are known" : verdict.message})`);
  }
}

/** Of the draft's appends, in their order, once they are committed; for an earlier part of a source, that of its last. */
export function receiptsOf(driver: SqliteDriver, draft: Pick<Draft, "operations">): Receipt[] {
  return appendsOf(draft).map(
    ({ table, batch, range }) =>
      findReceipt(driver, table, batch) ??
      (range && findMark(driver, table, range.source)?.receipt) ??
      corrupt(`the batch ${quote(batch)} has no receipt`),
  );
}

/** The receipts that an entry will have made, before it is applied. */
export function receiptsTo(state: SqliteState, entry: Entry): Receipt[] {
  const created = new Map(
    entry.operations.flatMap((operation) =>
      operation.op === "schema" && operation.create ? [[operation.table, operation.create.name] as const] : [],
    ),
  );
  return appendsOf(entry).map(({ table, batch, rows, hash }) => ({
    table: created.get(table) ?? state.table(table)?.name ?? corrupt(`there is no table ${table}`),
    batchId: batch,
    snapshot: entry.n,
    rows,
    contentHash: hash,
    committedAt: new Date(entry.time).toISOString(),
  }));
}

function appendsOf({ operations }: Pick<Draft, "operations">) {
  return operations.filter((operation) => operation.op === "append");
}
