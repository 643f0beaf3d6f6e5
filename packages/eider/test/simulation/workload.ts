/** What simulated processes are asked to do. */

import type { Choices } from "./choices.js";

/** A batch: `content` tells apart what may come under one id. 1 brings a new column along. */
interface Batch {
  readonly batch: number;
  readonly content: number;
}

export type Work =
  /** With `source`, part `batch` of what a source delivers. */
  | (Batch & { readonly kind: "append"; readonly table: string; readonly source?: boolean })
  /** The same rows to both tables, in one commit; with `expect` only if nothing else was committed meanwhile. */
  | (Batch & { readonly kind: "transaction"; readonly expect?: boolean })
  /** Takes the next change of table `t`, and derives a batch of table `d` from it; in a transaction if it is said. */
  | { readonly kind: "consume"; readonly inTransaction?: boolean }
  /** Takes the next change of table `t`, for something that lies outside of the lake. */
  | { readonly kind: "advance" }
  /** Forgets the cursor of those that advance. */
  | { readonly kind: "end" }
  /** Of the head, of the snapshot that has a tag, or of one so many before the head. */
  | { readonly kind: "query"; readonly tag?: string; readonly back?: number }
  | { readonly kind: "maintain" }
  | { readonly kind: "drop"; readonly table: string }
  /** To so many snapshots before the head; of all tables if none is named. */
  | { readonly kind: "rollback"; readonly table?: string; readonly back: number }
  /** A batch of table `t` of which one row becomes a reject. */
  | { readonly kind: "quarantine"; readonly batch: number }
  /** Takes the first open reject of table `t` in another try, or all of them. */
  | { readonly kind: "replay"; readonly all: boolean }
  /** Takes the text of the first reject of table `t` away that has one. */
  | { readonly kind: "purge" }
  /**
   * Ends snapshots but for so many, and deletes what only ended ones have shown: at once, unless it leaves time for queries
   * that run.
   */
  | { readonly kind: "expire"; readonly keep: number; readonly wait: boolean }
  /** Copies the lake to a place of its own. By a process that does nothing else. */
  | { readonly kind: "copy" }
  /** Moves the lake to the one place where it is shared. By a process that does nothing else. */
  | { readonly kind: "share" }
  /** Names the snapshot so many before the head. */
  | { readonly kind: "tag"; readonly name: string; readonly back: number }
  | { readonly kind: "untag"; readonly name: string };

/** `after`: so many steps of the process after the first of its group. Default 0. */
export type Timed = Work & { readonly after?: number };

/** What each process does: one group after the other, those of a group (three at most) at the same time. */
export type Workload = readonly (readonly (readonly Timed[])[])[];

/** The table that is consumed, and the cursors: of those that derive, and of those that only advance. */
export const CONSUMED = "t";
export const DERIVED = "d";
export const CURSORS = { consume: "c", advance: "a" } as const;

const TABLES = ["t", "t", "t", "u"];
const TAGS = ["v", "w"];

/** Few names, so that they meet. */
export function randomWorkload(choices: Choices, processes: number): Workload[number][] {
  return Array.from({ length: processes }, () =>
    Array.from({ length: 1 + choices.pick("work", 3) }, () => {
      const first = randomWork(choices);
      if (isMove(first)) return [first];
      // What goes on beside it is a query as often as not; several appends may meet in one commit.
      const more: Work[] = [
        () => [],
        () => [besides(randomWork(choices))],
        () => [{ kind: "query" } as const],
        () => [randomAppend(choices), randomAppend(choices)],
      ][choices.rarely("work", 2, 3)]!();
      return [first, ...more.map((work) => ({ ...work, after: choices.pick("work", 12) }))];
    }),
  );
}

/** Less work for which `fails` still holds: without processes, groups or pieces that it does not need. */
export async function leaveOut(workload: Workload, fails: (less: Workload) => Promise<boolean>): Promise<Workload> {
  let best = workload;
  const better = async (less: Workload): Promise<boolean> => {
    if (!(await fails(less))) return false;
    best = less;
    return true;
  };
  // From the end, so that what is left out changes no place that is still to come. A process keeps its number, and its host.
  for (let p = best.length - 1; p >= 0; p--) {
    if (best[p]!.length === 0 || (await better(best.with(p, [])))) continue;
    for (let g = best[p]!.length - 1; g >= 0; g--) {
      const groups = best[p]!;
      if (await better(best.with(p, groups.toSpliced(g, 1)))) continue;
      for (let i = groups[g]!.length - 1; i >= 0 && best[p]![g]!.length > 1; i--)
        await better(best.with(p, best[p]!.with(g, best[p]![g]!.toSpliced(i, 1))));
    }
  }
  return best;
}

/** Whether it makes another lake. */
export function isMove({ kind }: Work): boolean {
  return kind === "copy" || kind === "share";
}

/** What another piece of work may go on beside. */
function besides(work: Work): Work {
  return isMove(work) ? { kind: "query" } : work;
}

function randomWork(choices: Choices): Work {
  const kind = choices.pick("work", 37);
  if (kind < 14) return randomAppend(choices);
  if (kind < 17) return randomQuery(choices);
  if (kind < 20) return { kind: "maintain" };
  if (kind < 22) {
    const batch = { batch: choices.pick("work", 2), content: choices.rarely("work", 4, 1) };
    return { kind: "transaction", ...batch, expect: choices.rarely("work", 3, 1) === 1 };
  }
  if (kind < 24) return { kind: "consume", inTransaction: choices.rarely("work", 3, 1) === 1 };
  if (kind < 25) return choices.rarely("work", 4, 1) === 1 ? { kind: "end" } : { kind: "advance" };
  if (kind < 26) return { kind: "drop", table: randomTable(choices) };
  if (kind < 28) {
    const table = choices.rarely("work", 3, 1) === 1 ? undefined : randomTable(choices);
    return { kind: "rollback", ...(table && { table }), back: choices.pick("work", 4) };
  }
  if (kind < 30) return randomTag(choices);
  if (kind < 32) return { kind: "quarantine", batch: choices.pick("work", 3) };
  if (kind < 33) return { kind: "replay", all: choices.pick("work", 2) === 1 };
  if (kind < 34) return { kind: "purge" };
  // Which takes as long as all else of a schedule.
  if (kind < 35) return choices.rarely("work", 4, 1) === 1 ? { kind: "copy" } : { kind: "query" };
  return { kind: "expire", keep: 1 + choices.pick("work", 3), wait: choices.pick("work", 2) === 1 };
}

function randomTag(choices: Choices): Work {
  const name = TAGS[choices.pick("work", TAGS.length)]!;
  return choices.rarely("work", 4, 1) === 1
    ? { kind: "untag", name }
    : { kind: "tag", name, back: choices.pick("work", 3) };
}

export function randomAppend(choices: Choices): Work {
  const table = randomTable(choices);
  const batch = { batch: choices.pick("work", 4), content: choices.rarely("work", 4, 1) };
  return { kind: "append", table, ...batch, ...(choices.rarely("work", 4, 1) === 1 && { source: true }) };
}

function randomQuery(choices: Choices): Work {
  switch (choices.rarely("work", 3, 2)) {
    case 1:
      return { kind: "query", tag: TAGS[choices.pick("work", TAGS.length)]! };
    case 2:
      return { kind: "query", back: 1 + choices.pick("work", 3) };
    default:
      return { kind: "query" };
  }
}

function randomTable(choices: Choices): string {
  return TABLES[choices.pick("work", TABLES.length)]!;
}

type BatchWork = Extract<Work, { kind: "append" | "transaction" }>;

export function isBatch(work: Work): work is BatchWork {
  return work.kind === "append" || work.kind === "transaction";
}

/** The name of the source in {@link Work}. */
export const SOURCE = "s";

/** The id of a batch, as receipts have it. */
export function nameOf(work: BatchWork): string {
  if (work.kind === "transaction") return `x${work.batch}`;
  return work.source ? `${SOURCE}#${work.batch}` : `b${work.batch}`;
}

/** The batch that comes of a change. */
export function derivedFrom(position: string): { readonly batchId: string; readonly rows: Record<string, unknown>[] } {
  return { batchId: `d:${position}`, rows: [{ at: position }] };
}

/** The batch of a quarantine: a row that is taken, and one that no table takes. */
export function quarantined(batch: number): {
  readonly batchId: string;
  readonly taken: Record<string, unknown>;
  readonly rejected: Record<string, unknown>;
} {
  return { batchId: `q${batch}`, taken: { id: 100 + batch, v: "q" }, rejected: { id: batch, ID: batch } };
}

/** What a reject is read as in another try. */
export function mended(id: string): Record<string, unknown> {
  return { id: 200, v: id };
}

/** The rows of a batch, by hand: what the lake must give back. */
export function rowsOf(work: BatchWork): Record<string, unknown>[] {
  const { batch, content } = work;
  const row = { id: 10 * batch + content, v: nameOf(work) };
  return content === 0 ? [row] : [{ ...row, w: 0.5 }, { id: -batch }];
}
