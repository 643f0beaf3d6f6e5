/** What simulated processes are asked to do. */

import type { Choices } from "./choices.js";

export type Work =
  /** `content` tells apart what may come under one batch id. 1 brings a new column along. */
  | { readonly kind: "append"; readonly table: string; readonly batch: number; readonly content: number }
  /** The same rows to both tables, in one commit. */
  | { readonly kind: "transaction"; readonly batch: number; readonly content: number }
  /** Takes the next change of table `t`, and derives a batch of table `d` from it. */
  | { readonly kind: "consume" }
  | { readonly kind: "query" }
  | { readonly kind: "maintain" }
  | { readonly kind: "drop"; readonly table: string };

/** `after`: so many steps of the process after the first of its group. Default 0. */
export type Timed = Work & { readonly after?: number };

/** What each process does: one group after the other, those of a group (three at most) at the same time. */
export type Workload = readonly (readonly (readonly Timed[])[])[];

const TABLES = ["t", "t", "t", "u"];

/** Few names, so that they meet. */
export function randomWorkload(choices: Choices, processes: number): Workload {
  return Array.from({ length: processes }, () =>
    Array.from({ length: 1 + choices.pick("work", 3) }, () => {
      const first = randomWork(choices);
      // What goes on beside it is a query as often as not; several appends may meet in one commit.
      const more: Work[] = [
        () => [],
        () => [randomWork(choices)],
        () => [{ kind: "query" } as const],
        () => [randomAppend(choices), randomAppend(choices)],
      ][choices.rarely("work", 2, 3)]!();
      return [first, ...more.map((work) => ({ ...work, after: choices.pick("work", 12) }))];
    }),
  );
}

function randomWork(choices: Choices): Work {
  const kind = choices.pick("work", 24);
  if (kind < 13) return randomAppend(choices);
  if (kind < 16) return { kind: "query" };
  if (kind < 19) return { kind: "maintain" };
  if (kind < 21) return { kind: "transaction", batch: choices.pick("work", 2), content: choices.rarely("work", 4, 1) };
  if (kind < 23) return { kind: "consume" };
  return { kind: "drop", table: randomTable(choices) };
}

function randomAppend(choices: Choices): Work {
  const table = randomTable(choices);
  return { kind: "append", table, batch: choices.pick("work", 4), content: choices.rarely("work", 4, 1) };
}

function randomTable(choices: Choices): string {
  return TABLES[choices.pick("work", TABLES.length)]!;
}

/** The batch that comes of a change. */
export function derivedFrom(position: string): { readonly batchId: string; readonly rows: Record<string, unknown>[] } {
  return { batchId: `d:${position}`, rows: [{ at: position }] };
}

/** The rows of a batch, by hand: what the lake must give back. */
export function rowsOf({ batch, content }: { batch: number; content: number }): Record<string, unknown>[] {
  const row = { id: 10 * batch + content, v: `b${batch}` };
  return content === 0 ? [row] : [{ ...row, w: 0.5 }, { id: -batch }];
}
