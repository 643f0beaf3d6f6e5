/** How processes do what they are asked for: through a lake, as its users do. */

import type { Catalog } from "@eider/catalog";
import { CatalogError, NotFoundError } from "@eider/core";
import { rollback } from "../../src/commit/rollback.js";
import { expireSnapshots } from "../../src/expire.js";
import type { Lake } from "../../src/lake.js";
import type { Event } from "./history.js";
import { readSnapshot } from "./reader.js";
import type { SimStore } from "./sim-store.js";
import {
  CONSUMED,
  CURSORS,
  DERIVED,
  derivedFrom,
  mended,
  nameOf,
  quarantined,
  rowsOf,
  SOURCE,
  type Work,
} from "./workload.js";

/** A lake as a process has opened it. */
export interface Opened {
  readonly lake: Lake;
  readonly catalog: Catalog;
  readonly store: SimStore;
  readonly clock: () => number;
  /** Another place for a lake, by name. */
  readonly elsewhere: (name: string) => SimStore;
}

/** Longer than any schedule, by clocks that differ by an hour. */
const FOREVER_MS = 1_000_000_000;

/** Does what an event asks for, and enters what came of it. */
export async function perform(opened: Opened, event: Event): Promise<void> {
  const { work, tag } = event;
  const { lake, catalog } = opened;
  const meta = { tag };
  switch (work.kind) {
    case "append": {
      const batchId = work.source ? { source: SOURCE, sequence: work.batch } : nameOf(work);
      event.result = await lake.table(work.table).append(rowsOf(work), { batchId, meta });
      return;
    }
    case "transaction":
      return transact(lake, work, event);
    case "consume":
      return ifThere(() => consume(lake, work, event));
    case "advance":
      return ifThere(() => advance(lake, event));
    case "end":
      return lake.cursor(CURSORS.advance).end();
    case "query":
      return ifThere(() => query(opened, work, event));
    case "maintain":
      event.deleted = (await lake.maintain({ graceMs: 0, fold: "all" })).deleted;
      return;
    case "copy":
      event.copied = await lake.copyTo(opened.elsewhere(event.place!));
      return;
    case "share":
      event.copied = await lake.share(opened.elsewhere(event.place!));
      return;
    case "expire":
      return expire(opened, work, event);
    case "drop":
      return ifThere(async () => {
        event.snapshot = (await lake.table(work.table).drop()).snapshot;
      });
    case "rollback":
      return ifThere(async () => {
        event.to = await before(catalog, work.back);
        // What `lake.rollback` and `table.rollback` call, with a tag to know it by.
        event.snapshot = (await rollback(tagging(catalog, tag), event.to, work.table)).snapshot;
      });
    case "quarantine": {
      const { batchId, taken, rejected } = quarantined(work.batch);
      event.result = await lake.table("t").append([taken, rejected], { batchId, onReject: "quarantine", meta });
      return;
    }
    case "replay":
      return ifThere(async () => {
        const table = lake.table("t");
        const ids = (await table.rejects({ open: true, ...(!work.all && { limit: 1 }) })).map(({ id }) => id);
        if (ids.length === 0) return;
        event.rejects = ids;
        event.result = await table.replay(ids, { map: (_, { id }) => JSON.stringify(mended(id)), meta });
      });
    case "purge":
      return ifThere(async () => {
        const table = lake.table("t");
        const [first] = (await table.rejects()).filter(({ purgedIn }) => purgedIn === undefined);
        if (!first) return;
        await table.purgeRejects({ ids: [first.id] });
        event.rejects = [first.id]; // and not where the table was dropped meanwhile
      });
    case "tag": {
      const at = await before(catalog, work.back);
      if (at === 0) return;
      event.to = at;
      await lake.tag(work.name, { at });
      return;
    }
    case "untag":
      return ifThere(() => lake.untag(work.name));
  }
}

/** What `lake.maintain` does, with a tag to know its entries by. */
async function expire(
  { lake, catalog, clock }: Opened,
  { keep, wait }: Extract<Work, { kind: "expire" }>,
  event: Event,
): Promise<void> {
  event.base = (await catalog.head()).snapshot;
  const options = { retain: { snapshots: keep }, queryMaxAgeMs: wait ? FOREVER_MS : 0 };
  await expireSnapshots(tagging(catalog, event.tag), clock(), options);
  event.deleted = (await lake.maintain({ graceMs: 0, fold: "all" })).deleted;
}

async function transact(lake: Lake, work: Extract<Work, { kind: "transaction" }>, event: Event): Promise<void> {
  const { status, receipts } = await lake.transaction(
    async (tx) => {
      event.base = tx.base;
      for (const table of ["t", "u"]) await tx.table(table).append(rowsOf(work), { batchId: nameOf(work) });
    },
    { meta: { tag: event.tag }, ...(work.expect && { expectSnapshot: "base" }) },
  );
  if (status !== "empty") event.result = { status, rowsAdded: 0, rowsRejected: 0, receipt: receipts[0]! };
}

/** One step of a consumer: what it derives, and that it has come so far, are one commit. */
async function consume(lake: Lake, work: Extract<Work, { kind: "consume" }>, event: Event): Promise<void> {
  const move = await nextMove(lake, CURSORS.consume, event);
  if (!move) return;
  const { batchId, rows } = derivedFrom(move.to);
  const meta = { tag: event.tag };
  if (!work.inTransaction) {
    event.result = await lake.table(DERIVED).append(rows, { batchId, cursor: move, meta });
    return;
  }
  const { status, receipts } = await lake.transaction(
    async (tx) => {
      await tx.table(DERIVED).append(rows, { batchId });
      await tx.advance(move);
    },
    { meta },
  );
  if (status !== "empty") event.result = { status, rowsAdded: 0, rowsRejected: 0, receipt: receipts[0]! };
}

async function advance(lake: Lake, event: Event): Promise<void> {
  const move = await nextMove(lake, CURSORS.advance, event);
  if (!move) return;
  await lake.cursor(move.name).advance(move);
  event.moved = move;
}

/** From where a cursor is to behind the next change. */
async function nextMove(lake: Lake, name: string, event: Event): Promise<Event["moved"]> {
  const from = await lake.cursor(name).position();
  event.from = from;
  const first = async (after: string): Promise<Event["moved"]> => {
    for await (const { position } of lake.table(CONSUMED).changes({ after })) return { name, from, to: position };
    return undefined;
  };
  try {
    return await first(from);
  } catch (error) {
    // Another table has the name: all of it is new.
    if (!(error instanceof CatalogError && error.code === "table_replaced")) throw error;
    return first("0");
  }
}

async function query({ catalog, store }: Opened, work: Extract<Work, { kind: "query" }>, event: Event): Promise<void> {
  const { tag, back } = work;
  const at = tag !== undefined ? await catalog.resolveSnapshot({ tag }) : await before(catalog, back ?? 0);
  event.to = at;
  event.seen = await readSnapshot({ catalog, store }, at);
}

async function before(catalog: Catalog, back: number): Promise<number> {
  return Math.max(0, (await catalog.head()).snapshot - back);
}

/** A table or a tag that is not there is an answer too. */
async function ifThere(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof NotFoundError) || !/^(table|tag)_not_found$/.test(error.code)) throw error;
  }
}

/** A catalog whose commits are known by a tag. */
function tagging(catalog: Catalog, tag: string): Catalog {
  return new Proxy(catalog, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (name === "commit")
        return (draft: Parameters<Catalog["commit"]>[0]) => target.commit({ ...draft, meta: { tag } });
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
