/** Which errors a process may be told, and when. */

import { parsePosition } from "@eider/catalog";
import { AlreadyExistsError, BatchConflictError, CatalogError, EiderError, StoreError } from "@eider/core";
import type { Event } from "./history.js";
import { isKept, isOpen, type Model } from "./model.js";
import type { Told } from "./oracle-events.js";
import { CURSORS, isBatch, isMove, nameOf, type Work } from "./workload.js";

/** Errors that faults of the store or the disk may lead to: all say that trying again helps. */
const EXPECTED: ReadonlySet<string> = new Set([
  "sim_lost",
  "sim_busy",
  "put_unsettled",
  "staged_file_lost",
  "commit_unknown",
  "catalog_io",
]);

/** Why an error should not have come; undefined if it may. */
export function unexpected(event: Event, told: Told, model: Model): string | undefined {
  const { error, work } = event;
  if (work.kind === "replay" && isRejectTaken(error, model)) return undefined;
  if (hasEnded(event, told.asked, model)) return undefined;
  if (error instanceof BatchConflictError) return conflict(error, work, told.asked, model);
  if (error instanceof AlreadyExistsError && isMove(work) && isExplained(error.code, event, told, model))
    return undefined;
  if (!(error instanceof StoreError || error instanceof CatalogError)) return "an error that nobody should see";
  if (error.retryable && EXPECTED.has(error.code)) return undefined;
  return isExplained(error.code, event, told, model) ? undefined : "an error that nobody should see";
}

function conflict(
  { code }: BatchConflictError,
  work: Work,
  asked: readonly Event[],
  { committed, hasDrops }: Model,
): string | undefined {
  if (!isBatch(work)) return "a conflict with nothing";
  // One table of two may be another one by now.
  if (code === "transaction_conflict" && hasDrops && work.kind === "transaction") return undefined;
  const other = asked.some(({ work: w }) => w.kind === work.kind && isOther(w, work));
  const there = committed.some((one) => one.batch === nameOf(work));
  return other && there ? undefined : "a conflict with nothing";
}

/** Whether others have replayed or purged a reject meanwhile, or the table is another one by now. */
function isRejectTaken(error: unknown, { snapshots, hasDrops }: Model): boolean {
  if (!(error instanceof EiderError)) return false;
  const reject = snapshots.at(-1)?.rejects.get(error.subject ?? "");
  switch (error.code) {
    case "reject_replayed":
      return reject?.replayedBy !== undefined;
    case "reject_purged":
      return reject?.purged === true;
    case "reject_not_found":
      return hasDrops;
    default:
      return false;
  }
}

/** Whether the snapshot that was meant ended before or meanwhile, or what lies behind the cursor. */
function hasEnded({ work, error, to, from, ended }: Event, asked: readonly Event[], { snapshots }: Model): boolean {
  const now = snapshots.at(-1)!;
  const code = error instanceof EiderError ? error.code : undefined;
  switch (work.kind) {
    case "query": {
      // One that runs is left its files, unless somebody asks for none to be left.
      const letsGo = asked.some(
        ({ work: other, started }) => other.kind === "expire" && !other.wait && started < (ended ?? Infinity),
      );
      return letsGo && to !== undefined && !isKept(now, to);
    }
    case "rollback":
    case "tag":
      return (code === "snapshot_expired" || code === `bad_${work.kind}`) && to !== undefined && !isOpen(now, to);
    case "consume":
    case "advance":
      // Of one that was there when an expiry began, nothing that lies behind it has ended: see `checkExpiry`.
      return code === "cursor_expired" && from !== undefined && parsePosition(from).snapshot < now.before;
    default:
      return false;
  }
}

/** Whether a piece of work is another content under the same batch id. */
function isOther(a: Work, b: Extract<Work, { kind: "append" | "transaction" }>): boolean {
  if (!isBatch(a) || nameOf(a) !== nameOf(b) || a.content === b.content) return false;
  return a.kind === "transaction" || b.kind === "transaction" || a.table === b.table;
}

/** Whether what others did meanwhile explains it. */
function isExplained(code: string, event: Event, { history, asked, mixed }: Told, model: Model): boolean {
  const { work, base, ended = Number.POSITIVE_INFINITY } = event;
  const { hasDrops, snapshots } = model;
  switch (code) {
    case "cursor_moved":
      // Two consumers take different changes for the next one only where the table is another one by now.
      if (work.kind === "consume") return hasDrops;
      return (
        (work.kind === "advance" || work.kind === "end") &&
        snapshots.some(({ cursors }) => cursors.has(CURSORS.advance))
      );
    case "snapshot_moved":
      return work.kind === "transaction" && work.expect === true && base !== undefined && base < snapshots.length - 1;
    case "sequence_gap":
      return work.kind === "append" && work.source === true && (hasDrops || !hasPartBefore(event, work, history));
    case "reader_too_old":
    case "catalog_too_new":
      return mixed;
    case "place_taken":
      // Who was killed when the copy was there, and its mark gone, could tell nobody.
      return asked.some(
        ({ tag, place, outcome }) => tag !== event.tag && place === event.place && outcome === "unknown",
      );
    case "lake_moved":
      return asked.some(({ work: other, started }) => other.kind === "share" && started < ended);
    case "rollback_dropped":
      return work.kind === "rollback" && hasDrops;
    default:
      return false;
  }
}

/** Whether the part before, or a later one, was acknowledged before an event began. */
function hasPartBefore(event: Event, work: Extract<Work, { kind: "append" }>, history: readonly Event[]): boolean {
  return history.some(
    ({ work: other, outcome, ended }) =>
      other.kind === "append" &&
      other.source === true &&
      other.table === work.table &&
      other.batch >= work.batch - 1 &&
      outcome === "ok" &&
      (ended ?? Number.POSITIVE_INFINITY) < event.started,
  );
}
