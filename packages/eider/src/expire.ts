/**
 * Expiry: old snapshots end, and what only they have shown is let go of. In two steps with `queryMaxAgeMs` between them,
 * each an entry: first nobody new may ask for a snapshot; what it alone shows goes when queries that had begun
 * before must have ended.
 */

import { type Catalog, parsePosition } from "@eider/catalog";
import { NotFoundError } from "@eider/core";
import type { MaintainOptions, Retention } from "./options.js";

/** Queries that take longer may lose files. 24 hours. */
const QUERY_MAX_AGE_MS = 24 * 60 * 60 * 1000;
/** Cursors that were moved within so long keep what lies behind them. Seven days. */
const CURSOR_MAX_AGE_MS = 7 * 24 * 60 * 60 * 1000;

/** Operations after which a lake shows what it did before. */
const UPKEEP: ReadonlySet<string> = new Set(["expire", "floor"]);
/** Snapshots looked at together. */
const PAGE = 256;

/** Ends snapshots as `retain` says, and lets go of what is due by then. */
export async function expireSnapshots(
  catalog: Catalog,
  now: number,
  { retain = "all", queryMaxAgeMs, cursorMaxAgeMs = CURSOR_MAX_AGE_MS }: MaintainOptions,
): Promise<void> {
  if (retain !== "all") {
    const { snapshot: head } = await catalog.head();
    const needed = await firstNeeded(catalog, now - cursorMaxAgeMs);
    const kept = Math.min(await firstKept(catalog, head, now, retain), needed);
    const { before, unusedSince } = await catalog.expiry();
    if (kept > before) await catalog.commit({ operations: [{ op: "expire", before: kept, unusedSince }] });
  }
  const { before, purged } = await catalog.expiry();
  if (before === purged) return;
  const waitMs = queryMaxAgeMs ?? (retain === "none" ? 0 : QUERY_MAX_AGE_MS);
  // Without a wait this has to see the entry that was just made.
  const unusedSince = waitMs === 0 ? (await catalog.head()).snapshot : await snapshotAt(catalog, now - waitMs);
  if ((await catalog.expiry(unusedSince)).before === purged) return;
  // What loses to other maintenance is done by that one.
  await catalog.commit({ operations: [{ op: "expire", before, unusedSince }] });
}

async function firstKept(
  catalog: Catalog,
  head: number,
  now: number,
  retain: Exclude<Retention, "all">,
): Promise<number> {
  if (retain === "none") return nthNewest(catalog, head, 1);
  const { snapshots = 1, ageMs = 0 } = retain;
  const aged = ageMs === 0 ? head : await snapshotAt(catalog, now - ageMs);
  return Math.min(await nthNewest(catalog, head, Math.max(1, snapshots)), await nthNewest(catalog, aged, 1));
}

/**
 * The `count`-th snapshot from `last` back that changed something; 0 if there are fewer. Upkeep does not count: else it
 * would push out what a lake shows that nobody writes to, and each run would end the entry of the one before.
 */
async function nthNewest(catalog: Catalog, last: number, count: number): Promise<number> {
  let left = count;
  for (let end = last; end > 0; end -= PAGE) {
    const after = Math.max(0, end - PAGE);
    const page = await catalog.snapshots({ after, limit: end - after });
    for (const { snapshot, operations } of page.reverse()) {
      if (operations.every(({ op }) => UPKEEP.has(op))) continue;
      if (--left === 0) return snapshot;
    }
  }
  return 0;
}

/** The first snapshot that a cursor which was moved since `time` needs. */
async function firstNeeded(catalog: Catalog, time: number): Promise<number> {
  let first = Number.POSITIVE_INFINITY;
  for (const { position, movedIn } of await catalog.cursors()) {
    const [moved] = await catalog.snapshots({ after: movedIn - 1, limit: 1 });
    if (moved && Date.parse(moved.committedAt) >= time) first = Math.min(first, parsePosition(position).snapshot);
  }
  return first;
}

/** The last snapshot up to a time, also if it has ended; 0 if the lake is younger. */
export async function snapshotAt(catalog: Catalog, time: number): Promise<number> {
  try {
    return await catalog.resolveSnapshot(new Date(time), { expired: true });
  } catch (error) {
    if (error instanceof NotFoundError) return 0;
    throw error;
  }
}
