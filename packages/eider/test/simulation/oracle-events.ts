/** What a piece of work was told, against what came of it. */

import { parsePosition } from "../../../catalog/src/position.js";
import type { Event } from "./history.js";
import { digestOf, type Model, type ModelSnapshot } from "./model.js";
import { acknowledgedBefore } from "./oracle-answers.js";
import { unexpected } from "./oracle-errors.js";
import { isBatch, nameOf } from "./workload.js";
import type { World } from "./world.js";

export type Wrong = (what: string) => void;

/** What an event is looked at beside. */
export interface Told extends Pick<World, "mixed" | "bucket"> {
  /** What others were told, as far as it still holds. */
  readonly history: readonly Event[];
  /** All that was ever asked for. */
  readonly asked: readonly Event[];
}

export function checkEvent(event: Event, world: Told, model: Model, wrong: Wrong): void {
  const { history, bucket } = world;
  const reason = event.error && unexpected(event, world, model);
  if (reason) wrong(`${reason}: ${String(event.error)}`);
  const entries = model.made.get(event.tag) ?? [];
  // Snapshots end by one entry, and what they have shown goes by another.
  const isSteps = event.work.kind === "expire";
  if (entries.length > (isSteps ? 2 : 1)) wrong(`it is committed in entries ${entries.join()}`);
  if (event.outcome === "fail" && entries.length > 0 && !isSteps) wrong(`it failed, and is in entry ${entries[0]}`);
  checkExpiry(event, entries, model, wrong);
  checkBatches(event, model, wrong);
  const snapshot = event.seen?.snapshot ?? event.result?.receipt.snapshot ?? event.snapshot ?? 0;
  if (event.version === "this" && snapshot >= bucket.firstNewer)
    wrong(`it goes on behind entry ${bucket.firstNewer}, which it cannot read`);
  if (event.outcome !== "ok") return;
  if (event.result) checkAcknowledged(event, event.result, history, model, wrong);
  else checkDone(event, history, model, wrong);
}

/** What an event has committed is what it asked for. */
function checkBatches({ tag, work }: Event, { committed }: Model, wrong: Wrong): void {
  const own = committed.filter((one) => one.tag === tag);
  const parts = work.kind === "transaction" ? 2 : 1;
  if (own.length > 0 && own.length !== parts) wrong(`${own.length} batches of it are committed`);
  const other = isBatch(work) && own.find(({ batch }) => batch !== nameOf(work));
  if (other) wrong(`it is committed as batch ${other.batch}`);
}

/** As many snapshots that changed something are kept as were asked for, whatever cursors need, and what queries need that run. */
function checkExpiry(
  { work, base = 0 }: Event,
  entries: readonly number[],
  { snapshots, changed }: Model,
  wrong: Wrong,
): void {
  if (work.kind !== "expire") return;
  for (const n of entries) {
    const [last, now] = [snapshots[n - 1]!, snapshots[n]!];
    if (work.wait && now.purged > last.purged) wrong(`entry ${n} leaves no time to queries that run`);
    if (now.before === last.before) continue;
    const kept = changed.filter((snapshot) => snapshot >= now.before && snapshot < n).length;
    const all = changed.filter((snapshot) => snapshot < n).length;
    if (kept < Math.min(work.keep, all)) wrong(`entry ${n} keeps ${kept} snapshots, asked for were ${work.keep}`);
    for (const [name, position] of last.cursors) {
      const since = snapshots.slice(base, n);
      if (since.every(({ cursors }) => cursors.has(name)) && parsePosition(position).snapshot < now.before)
        wrong(`entry ${n} ends what lies behind the cursor ${name} at ${position}`);
    }
  }
}

function checkAcknowledged(
  event: Event,
  { receipt, status }: NonNullable<Event["result"]>,
  history: readonly Event[],
  { committed, made }: Model,
  wrong: Wrong,
): void {
  const { work, tag, base } = event;
  const [entry] = made.get(tag) ?? [];
  const { snapshot, batchId, contentHash } = receipt;
  const found = committed.find(
    ({ entry: { n }, batch, hash }) => n === snapshot && batch === batchId && hash === contentHash,
  );
  if (!found) wrong(`its receipt is of entry ${snapshot}, which does not have it`);
  if (status === "duplicate") {
    if (entry !== undefined) wrong("it was told to be a duplicate of what it has committed itself");
    const known = work.kind === "append" && work.source ? (found?.sequence ?? -1) >= work.batch : true;
    if (!known) wrong(`its part is told to be known, and ${batchId} is the last one`);
    return;
  }
  if (entry !== snapshot) wrong("it was acknowledged, and is not there");
  if (work.kind === "transaction" && work.expect && base !== undefined && snapshot !== base + 1)
    wrong(`it expected to be behind snapshot ${base}, and is ${snapshot}`);
  // What was acknowledged before this one began comes before it.
  const later = acknowledgedBefore(event, history, 0);
  if (later > snapshot) wrong(`it comes before snapshot ${later}, which was there first`);
}

/** What was acknowledged without a receipt has come about. */
function checkDone(event: Event, history: readonly Event[], { made, snapshots }: Model, wrong: Wrong): void {
  const { work, tag, snapshot = 0, to } = event;
  const after = snapshots[snapshot];
  switch (work.kind) {
    case "rollback": {
      if (to === undefined || event.snapshot === undefined) return;
      const [entry] = made.get(tag) ?? [];
      if (entry !== undefined && entry !== snapshot) wrong(`it is entry ${entry}, and was told ${snapshot}`);
      const [now, then] = [after, snapshots[to]].map((at) => at && contentOf(at, work.table));
      if (now === undefined || now !== then) wrong(`at snapshot ${snapshot} is\n${now}\nand at ${to} was\n${then}`);
      return;
    }
    case "drop": {
      if (event.snapshot === undefined) return;
      const before = [...(snapshots[snapshot - 1]?.tables.values() ?? [])].find(({ name }) => name === work.table);
      if (!before || after?.tables.has(before.id)) wrong(`snapshot ${snapshot} does not drop it`);
      return;
    }
    case "purge": {
      const kept = event.rejects?.find((id) => !snapshots.at(-1)?.rejects.get(id)?.purged);
      if (kept !== undefined) wrong(`the text of ${kept} was not taken away`);
      return;
    }
    case "tag": {
      const since = snapshots.slice(acknowledgedBefore(event, history, 0));
      if (to !== undefined && !since.some(({ tags }) => tags.get(work.name) === to)) wrong(`${to} has no such tag`);
      return;
    }
    case "advance": {
      const { moved } = event;
      if (moved && !snapshots.some(({ cursors }) => cursors.get(moved.name) === moved.to))
        wrong(`its cursor was never at ${moved.to}`);
    }
  }
}

/** Of all tables, or those of a name. */
function contentOf({ tables }: ModelSnapshot, name: string | undefined): string {
  return digestOf([...tables.values()].filter((table) => name === undefined || table.name === name));
}
