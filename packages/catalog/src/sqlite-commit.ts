/** From a draft to an entry, and from an entry to what the tables say: what both modes of a lake have in common. */

import { BatchConflictError, CorruptionError, InvalidInputError } from "@eider/core";
import { apply, floorAfter } from "./apply.js";
import type { CommitResult, Draft, Receipt } from "./catalog.js";
import { check } from "./check.js";
import { draftsOf, type Entry } from "./entry.js";
import type { Outcome } from "./group-queue.js";
import { GroupState } from "./group-state.js";
import { quote } from "./names.js";
import type { SqliteDriver } from "./sqlite-driver.js";
import { corrupt } from "./sqlite-json.js";
import { toReceipt } from "./sqlite-receipts.js";
import type { SqliteState } from "./sqlite-state.js";
import type { CatalogState } from "./state.js";

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
function refusal(state: CatalogState, draft: Draft): Refusal | undefined {
  const verdict = check(state, draft);
  switch (verdict.status) {
    case "duplicate":
      return { answer: { status: "duplicate", receipts: receiptsOf(state, draft) } };
    case "conflict":
      return { failure: new BatchConflictError(verdict.code, verdict.message, { subject: verdict.subject }) };
    case "invalid":
      return { failure: new InvalidInputError(verdict.code, verdict.message, { subject: verdict.subject }) };
    case "stale":
      return { answer: verdict };
    case "apply":
      return undefined;
  }
}

/** The entry that drafts become on this state: several only if each of them {@link sharesEntry}. */
function nextEntry(state: CatalogState, drafts: readonly Draft[], { now, ...author }: Author): Entry {
  const head = state.head();
  const operations = drafts.flatMap((draft) => draft.operations);
  const several = drafts.length > 1;
  return {
    ...author,
    n: head.n + 1,
    prev: head.id,
    time: Math.max(head.time, now),
    floor: floorAfter(head.floor, operations),
    meta: (several ? undefined : drafts[0]?.meta) ?? {},
    operations,
    ...(several && {
      members: drafts.map((draft) => ({ operations: draft.operations.length, meta: draft.meta ?? {} })),
    }),
  };
}

/** Whether a draft may be in an entry with others: if all that it does is to append what is new. */
export function sharesEntry({ operations, expectSnapshot }: Draft): boolean {
  return expectSnapshot === undefined && operations.every((one) => one.op === "append" && !one.replays);
}

/** An entry that some of the drafts may become, and what becomes of each of them if it is committed. */
export interface GroupPlan {
  readonly entry: Entry | undefined;
  readonly outcomes: readonly Outcome<CommitResult>[];
  /** So many of them stand whatever becomes of the entry: those of the drafts before its first member. */
  readonly firm: number;
}

/**
 * Checks drafts in their order, each with those before it that may be committed. One that may not leaves the group.
 * @param admit the last word on a draft that may: it is in the entry unless this refuses it
 */
export function planGroup(
  state: CatalogState,
  drafts: readonly Draft[],
  author: Author,
  admit: (draft: Draft) => Refusal | undefined = () => undefined,
): GroupPlan {
  const { n, time } = nextEntry(state, [], author);
  const group = new GroupState(state);
  const members: Draft[] = [];
  let firm = 0;
  const outcomes = drafts.map((draft): Outcome<CommitResult> => {
    const refused = refusal(group, draft) ?? admit(draft);
    if (refused) {
      if (members.length === 0) firm++;
      return refused;
    }
    const receipts = receiptsTo(state, draft, { n, time });
    members.push(draft);
    if (drafts.length > 1) group.add(draft.operations, time);
    return { answer: { status: "committed", snapshot: n, receipts } };
  });
  return { entry: members.length === 0 ? undefined : nextEntry(state, members, author), outcomes, firm };
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
  const group = entry.members && new GroupState(state);
  for (const draft of draftsOf(entry)) {
    const verdict = check(group ?? state, draft);
    if (verdict.status !== "apply") {
      fail(`is not valid there (${verdict.status === "duplicate" ? "its batches are known" : verdict.message})`);
    }
    group?.add(draft.operations, entry.time);
  }
}

/** Of the draft's appends, in their order, all of them known; for an earlier part of a source, that of its last. */
function receiptsOf(state: CatalogState, draft: Pick<Draft, "operations">): Receipt[] {
  return appendsOf(draft).map(({ table, batch, range }) => {
    const name = state.table(table)?.name ?? corrupt(`there is no table ${table}`);
    const record = state.batch(table, batch);
    if (record) return toReceipt(name, batch, record);
    const last = range && state.mark(table, range.source)?.batch;
    const known = last !== undefined ? state.batch(table, last) : undefined;
    if (last === undefined || !known) return corrupt(`the batch ${quote(batch)} has no receipt`);
    return toReceipt(name, last, known);
  });
}

/** The receipts that a draft will have made with an entry, before that is applied. */
function receiptsTo(
  state: CatalogState,
  { operations }: Pick<Draft, "operations">,
  { n, time }: Pick<Entry, "n" | "time">,
): Receipt[] {
  const created = new Map(
    operations.flatMap((operation) =>
      operation.op === "schema" && operation.create ? [[operation.table, operation.create.name] as const] : [],
    ),
  );
  return appendsOf({ operations }).map(({ table, batch, rows, rejects, hash }) => {
    const name = created.get(table) ?? state.table(table)?.name ?? corrupt(`there is no table ${table}`);
    return toReceipt(name, batch, { hash, rows, rejected: rejects.length, snapshot: n, time });
  });
}

function appendsOf({ operations }: Pick<Draft, "operations">) {
  return operations.filter((operation) => operation.op === "append");
}
