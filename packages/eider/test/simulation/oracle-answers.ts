/** What processes see, against the model: queries while others went on, and every snapshot in the end. */

import { EiderError } from "@eider/core";
import type { Event } from "./history.js";
import { type Committed, digestOf, isKept, isOpen, type Model, type ModelSnapshot } from "./model.js";
import { planSnapshot, readPlan } from "./reader.js";
import type { SimBucket } from "./sim-store.js";
import type { Opened } from "./tasks.js";
import { SOURCE } from "./workload.js";
import type { World } from "./world.js";

/** What a snapshot that has ended is answered by. */
const EXPIRED = "snapshot_expired";

/** What a query saw; nothing of other work. */
export function checkQuery(
  event: Event,
  { history, stalenessMs }: Pick<World, "history" | "stalenessMs">,
  { snapshots }: Model,
  wrong: (what: string) => void,
): void {
  const { seen, work } = event;
  if (work.kind !== "query" || event.outcome !== "ok") return;
  if (work.tag !== undefined) checkTag(event, work.tag, history, snapshots, wrong);
  if (!seen) return; // there was no such tag
  const { snapshot, digest } = seen;
  const model = snapshots[snapshot];
  if (!model) {
    wrong(`saw snapshot ${snapshot}, which does not exist`);
    return;
  }
  const expected = digestOf(model.tables.values());
  if (expected !== digest) wrong(`snapshot ${snapshot} is\n${expected}\nand was seen as\n${digest}`);
  if (work.tag !== undefined) return;
  const acknowledged = acknowledgedBefore(event, history, stalenessMs) - (work.back ?? 0);
  if (snapshot < acknowledged) wrong(`saw snapshot ${snapshot} after ${acknowledged} was acknowledged`);
}

/** A tag is looked for in the log, however old queries may be: it is what it was at some moment of the query. */
function checkTag(
  event: Event,
  tag: string,
  history: readonly Event[],
  snapshots: Model["snapshots"],
  wrong: (what: string) => void,
): void {
  const named = snapshots.slice(acknowledgedBefore(event, history, 0)).map(({ tags }) => tags.get(tag));
  if (!named.includes(event.seen?.snapshot))
    wrong(`saw snapshot ${event.seen?.snapshot} as ${tag}, which was ${named}`);
}

/** The last snapshot that was acknowledged before an event began, by whoever it has to know of. */
export function acknowledgedBefore(event: Event, history: readonly Event[], stalenessMs: number): number {
  const snapshots = history
    .filter(({ outcome, ended }) => outcome === "ok" && (ended ?? Number.POSITIVE_INFINITY) < event.started)
    // What others have committed may be overlooked for a while, what the same process was told of may not.
    .filter((other) => other.process === event.process || (other.endedMs ?? 0) + stalenessMs <= event.startedMs)
    .map(({ result, snapshot }) => result?.receipt.snapshot ?? snapshot ?? 0);
  return Math.max(0, ...snapshots);
}

/** What a process says of every snapshot, and of what is known now: the same on every host, live or made anew. */
export async function checkAnswers(
  { catalog }: Opened,
  { objects }: SimBucket,
  { snapshots, committed }: Model,
  problems: string[],
): Promise<void> {
  const { snapshot: head } = await catalog.head();
  const last = snapshots.length - 1;
  if (head !== last) problems.push(`the head is ${head}, the log has ${last} entries`);
  const read = async (key: string): Promise<Uint8Array> => {
    const object = objects.get(key);
    if (!object) throw new Error(`${key} is gone`);
    return object.bytes;
  };
  const model = snapshots[Math.min(head, last)]!;
  for (let n = 1; n <= Math.min(head, last); n++) {
    const expected = isKept(model, n) ? digestOf(snapshots[n]!.tables.values()) : EXPIRED;
    const digest = await planSnapshot(catalog, n)
      .then((plan) => readPlan(plan, read))
      .catch(codeOf);
    if (digest !== expected) problems.push(`snapshot ${n} is\n${expected}\nand was read as\n${digest}`);
    if (n >= model.before) continue;
    const found = await catalog.resolveSnapshot(n).catch(codeOf);
    if (found !== (isOpen(model, n) ? n : EXPIRED)) problems.push(`of ended snapshots, ${n} is answered by ${found}`);
  }
  const tags = (await catalog.tags()).map(({ name, snapshot }) => `${name} ${snapshot}`);
  if (
    tags.join() !==
    [...model.tags]
      .map((tag) => tag.join(" "))
      .sort()
      .join()
  )
    problems.push(`the tags are ${tags}`);
  const cursors = (await catalog.cursors()).map(({ name, position }) => `${name} ${position}`);
  if (
    cursors.join() !==
    [...model.cursors]
      .map((cursor) => cursor.join(" "))
      .sort()
      .join()
  )
    problems.push(`the cursors are ${cursors}`);
  await checkRejects(catalog, model, problems);
  for (const one of committed) await checkReceipt(catalog, one, model.marks.get(`${one.table} ${SOURCE}`), problems);
}

/** What became of each reject, and that a text is there if and only if it was not purged. */
async function checkRejects(
  catalog: Opened["catalog"],
  { rejects, tables }: ModelSnapshot,
  problems: string[],
): Promise<void> {
  for (const table of tables.keys()) {
    const told = (await catalog.rejects(table)).map(
      ({ id, replayedBy, raw }) => `${id} ${replayedBy ?? "open"} ${raw === "" ? "purged" : "kept"}`,
    );
    const expected = [...rejects]
      .filter(([, reject]) => reject.table === table)
      .map(([id, { replayedBy, purged }]) => `${id} ${replayedBy ?? "open"} ${purged ? "purged" : "kept"}`);
    if (told.join() !== expected.join()) problems.push(`the rejects are ${expected}\nand are told as ${told}`);
  }
}

function codeOf(error: unknown): string {
  return error instanceof EiderError ? error.code : String(error);
}

async function checkReceipt(
  catalog: Opened["catalog"],
  { table, batch, entry, hash, sequence }: Committed,
  mark: Committed | undefined,
  problems: string[],
): Promise<void> {
  // Of a source only the last part has one.
  if (sequence !== undefined && mark?.batch !== batch) return;
  const receipt =
    sequence === undefined ? await catalog.receipt(table, batch) : (await catalog.sourceMark(table, SOURCE))?.receipt;
  if (receipt?.snapshot !== entry.n || receipt.contentHash !== hash || receipt.batchId !== batch)
    problems.push(`no receipt for ${batch}`);
}
