/**
 * The lake as it has to be: what the entries of the log make of rows, columns, tags, cursors and sources, told by hand and
 * from what the processes were asked for. It knows no files: where rows lie changes nothing.
 */

import type { Operation } from "@eider/catalog";
import { draftsOf, type Entry } from "../../../catalog/src/entry.js";
import { rowText } from "./contents.js";
import type { Event } from "./history.js";
import { derivedFrom, isBatch, mended, quarantined, rowsOf, type Work } from "./workload.js";

/** A batch that an entry has committed. */
export interface Committed {
  readonly entry: Entry;
  /** Of the work that made it. */
  readonly tag: string;
  readonly table: string;
  readonly batch: string;
  readonly hash: string;
  readonly rows: readonly string[];
  /** Of a part of a source. */
  readonly sequence: number | undefined;
}

export interface ModelTable {
  readonly id: string;
  readonly name: string;
  readonly columns: string;
  /** See `rowText`; in no order. */
  readonly rows: readonly string[];
}

/** A row that was kept aside, and what became of it. */
export interface ModelReject {
  readonly table: string;
  readonly replayedBy?: string;
  readonly purged?: true;
}

export interface ModelSnapshot {
  readonly tables: ReadonlyMap<string, ModelTable>;
  readonly tags: ReadonlyMap<string, number>;
  readonly cursors: ReadonlyMap<string, string>;
  /** By table and source: the last part. */
  readonly marks: ReadonlyMap<string, Committed>;
  /** By id. */
  readonly rejects: ReadonlyMap<string, ModelReject>;
  /** The first snapshot that has not ended. */
  readonly before: number;
  /** Of those before it nothing is kept any more: they had ended when queries that read them still ran. */
  readonly purged: number;
  /** Snapshots that had a tag, and in which entry that was taken away: kept for queries that run. */
  readonly untagged: ReadonlyMap<number, number>;
}

/** Whether one may still ask for a snapshot, tag it and go back to it. */
export function isOpen({ before, tags }: ModelSnapshot, snapshot: number): boolean {
  return snapshot === 0 || snapshot >= before || [...tags.values()].includes(snapshot);
}

/** Whether all that a snapshot shows is there, for who has asked for it while one might. */
export function isKept(now: ModelSnapshot, snapshot: number): boolean {
  return snapshot >= now.purged || isOpen(now, snapshot) || now.untagged.has(snapshot);
}

export interface Model {
  /** By number, from the empty lake on. */
  readonly snapshots: readonly ModelSnapshot[];
  readonly committed: readonly Committed[];
  /** By tag: the entries that have what was asked for. */
  readonly made: ReadonlyMap<string, readonly number[]>;
  /** Entries that are more than upkeep. */
  readonly changed: readonly number[];
  /** Whether a table was ever dropped, by a rollback too. */
  readonly hasDrops: boolean;
}

const EMPTY: ModelSnapshot = {
  tables: new Map(),
  tags: new Map(),
  cursors: new Map(),
  marks: new Map(),
  rejects: new Map(),
  before: 0,
  purged: 0,
  untagged: new Map(),
};

/** @param problems what is wrong with the log itself is added */
export function replay(log: readonly Entry[], history: readonly Event[], problems: string[]): Model {
  const asked = new Map(history.map((event) => [event.tag, event]));
  const snapshots: ModelSnapshot[] = [EMPTY];
  const committed: Committed[] = [];
  const made = new Map<string, number[]>();
  for (const entry of log) {
    const next = new NextSnapshot(snapshots, entry, asked, problems);
    for (const { operations, meta } of draftsOf(entry)) {
      const { tag = "" } = meta;
      made.set(tag, [...(made.get(tag) ?? []), entry.n]);
      for (const operation of operations) next.apply(operation, tag);
    }
    snapshots.push(next);
    committed.push(...next.committed);
  }
  const hasDrops = log.some(({ operations }) => operations.some(({ op }) => op === "drop"));
  const changed = log
    .filter(({ operations }) => !operations.every(({ op }) => op === "expire" || op === "floor"))
    .map(({ n }) => n);
  return { snapshots, committed, made, changed, hasDrops };
}

/** One snapshot while its entry is applied. */
class NextSnapshot implements ModelSnapshot {
  readonly tables: Map<string, ModelTable>;
  readonly tags: Map<string, number>;
  readonly cursors: Map<string, string>;
  readonly marks: Map<string, Committed>;
  readonly rejects: Map<string, ModelReject>;
  readonly untagged: Map<number, number>;
  before: number;
  purged: number;
  readonly committed: Committed[] = [];
  readonly #before: readonly ModelSnapshot[];
  readonly #entry: Entry;
  readonly #asked: ReadonlyMap<string, Event>;
  readonly #problems: string[];
  /** Rejects of this entry so far. */
  #ordinal = 0;

  constructor(before: readonly ModelSnapshot[], entry: Entry, asked: ReadonlyMap<string, Event>, problems: string[]) {
    const last = before.at(-1)!;
    this.tables = new Map(last.tables);
    this.tags = new Map(last.tags);
    this.cursors = new Map(last.cursors);
    this.marks = new Map(last.marks);
    this.rejects = new Map(last.rejects);
    this.untagged = new Map(last.untagged);
    this.before = last.before;
    this.purged = last.purged;
    this.#before = before;
    this.#entry = entry;
    this.#asked = asked;
    this.#problems = problems;
  }

  apply(operation: Operation, tag: string): void {
    switch (operation.op) {
      case "schema": {
        const { table: id, create, schema } = operation;
        const columns = schema.fields.map(({ name }) => name).join();
        if (create) this.tables.set(id, { id, name: create.name, columns, rows: [] });
        else this.#change(id, { columns });
        return;
      }
      case "append":
        this.#append(operation, tag);
        return;
      case "drop":
        if (!this.tables.delete(operation.table)) this.#wrong(`drops ${operation.table}, which is not there`);
        return;
      case "rollback":
        this.#rollback(operation.table, operation.to);
        return;
      case "cursor": {
        const { name, from, to } = operation;
        const position = this.cursors.get(name) ?? "0";
        if (from !== position) this.#wrong(`moves the cursor ${name} from ${from}, it was at ${position}`);
        if (to === undefined) this.cursors.delete(name);
        else this.cursors.set(name, to);
        return;
      }
      case "tag":
        this.#tag(operation.name, operation.snapshot);
        return;
      case "expire":
        this.#expire(operation.before, operation.unusedSince);
        return;
      case "purge":
        for (const id of operation.rejects) {
          const reject = this.rejects.get(id);
          if (reject?.table === operation.table) this.rejects.set(id, { ...reject, purged: true });
        }
        return;
      case "view": // the simulated lakes have none
      case "rearrange": // changes places, and no rows
      case "floor":
        return;
    }
  }

  #append(operation: Extract<Operation, { op: "append" }>, tag: string): void {
    const { table, batch, hash, rows: count, range, rejects, replays = [] } = operation;
    const rows = sourceOf(operation, this.#asked.get(tag)?.work).map(rowText);
    for (const _ of rejects) this.rejects.set(`${this.#entry.n}-${this.#ordinal++}`, { table });
    for (const id of replays) this.#replay(table, batch, id);
    if (rows.length !== count) this.#wrong(`has ${count} rows of ${batch}, asked for were ${rows.length}`);
    const sequence = range && Number(range.last);
    const one = { entry: this.#entry, tag, table, batch, hash, rows, sequence };
    this.committed.push(one);
    if (range) {
      const key = `${table} ${range.source}`;
      const last = this.marks.get(key)?.sequence;
      if (last !== undefined && Number(range.first) !== last + 1)
        this.#wrong(`has part ${range.first} of a source of which ${last} was the last`);
      this.marks.set(key, one);
    }
    this.#change(table, { rows: [...(this.tables.get(table)?.rows ?? []), ...rows] });
  }

  /** Each reject is taken once, while it has its text. */
  #replay(table: string, batch: string, id: string): void {
    const reject = this.rejects.get(id);
    if (reject?.table !== table) this.#wrong(`replays ${id}, which is not there`);
    else if (reject.replayedBy !== undefined) this.#wrong(`replays ${id}, as ${reject.replayedBy} did`);
    else if (reject.purged) this.#wrong(`replays ${id}, which was purged`);
    this.rejects.set(id, { ...reject, table, replayedBy: batch });
  }

  #tag(name: string, snapshot: number | undefined): void {
    const last = this.tags.get(name);
    if (snapshot !== undefined && !isOpen(this, snapshot)) this.#wrong(`tags ${snapshot}, which has ended`);
    if (last !== undefined) this.untagged.set(last, this.#entry.n);
    if (snapshot === undefined) this.tags.delete(name);
    else this.tags.set(name, snapshot);
  }

  #expire(before: number, unusedSince: number): void {
    if (before < this.before) this.#wrong(`brings back snapshots from ${before} on, after ${this.before}`);
    // What had ended by then.
    const purged = this.#before[unusedSince]?.before ?? 0;
    if (purged < this.purged) this.#wrong(`keeps snapshots from ${purged} on, after ${this.purged}`);
    this.before = before;
    this.purged = purged;
    for (const [snapshot, n] of this.untagged) if (n <= unusedSince) this.untagged.delete(snapshot);
  }

  #rollback(table: string, to: number): void {
    if (!isOpen(this, to)) this.#wrong(`takes ${table} back to ${to}, which has ended`);
    const then = this.#before[to]?.tables.get(table);
    if (!then) {
      this.#wrong(`takes ${table} back to ${to}, where it was not`);
      return;
    }
    const columns = this.tables.get(table)?.columns;
    if (columns !== then.columns) this.#wrong(`takes ${table} back to columns ${then.columns} and has ${columns}`);
    this.#change(table, { rows: then.rows });
  }

  #change(id: string, change: Partial<ModelTable>): void {
    const table = this.tables.get(id);
    if (table) this.tables.set(id, { ...table, ...change });
    else this.#wrong(`changes ${id}, which is not there`);
  }

  #wrong(what: string): void {
    this.#problems.push(`entry ${this.#entry.n} ${what}`);
  }
}

/** The rows that an append is to have. */
function sourceOf(
  { batch, replays }: Extract<Operation, { op: "append" }>,
  work: Work | undefined,
): Record<string, unknown>[] {
  const derived = /^d:(.*)$/.exec(batch)?.[1];
  if (derived !== undefined) return derivedFrom(derived).rows;
  if (replays) return replays.map(mended);
  if (work?.kind === "quarantine") return [quarantined(work.batch).taken];
  return work && isBatch(work) ? rowsOf(work) : [];
}

/** All that a snapshot says of its tables, as text: the same on every host. */
export function digestOf(tables: Iterable<ModelTable>): string {
  const lines = [...tables].map(
    ({ id, name, columns, rows }) => `${name} ${id} (${columns}): ${[...rows].sort().join()}`,
  );
  return lines.sort().join("\n");
}
