/**
 * A state with appends on top of it that are not committed yet: what the members of a shared entry are checked on, each
 * with those before it.
 */

import type { Schema } from "@eider/core";
import type { Expiry, Operation } from "./catalog.js";
import type {
  BatchRecord,
  CatalogState,
  EntryHead,
  Extent,
  MarkState,
  PastTable,
  RejectState,
  TableState,
  Totals,
} from "./state.js";

export class GroupState implements CatalogState {
  readonly #state: CatalogState;
  /** Undefined for one whose place in its source was taken. */
  readonly #batches = new Map<string, BatchRecord | undefined>();
  readonly #marks = new Map<string, MarkState>();
  readonly #keys = new Set<string>();

  constructor(state: CatalogState) {
    this.#state = state;
  }

  /** Adds the appends of a member that may be committed; `time` is the entry's. */
  add(operations: readonly Operation[], time: number): void {
    const snapshot = this.head().n + 1;
    for (const operation of operations) {
      if (operation.op !== "append") throw new Error(`${operation.op} shares no entry`);
      const { table, batch, hash, rows, rejects, files, range } = operation;
      if (range) {
        const before = this.mark(table, range.source);
        if (before) this.#batches.set(keyOf(table, before.batch), undefined);
        this.#marks.set(keyOf(table, range.source), { last: range.last, batch });
      }
      this.#batches.set(keyOf(table, batch), { hash, rows, rejected: rejects.length, snapshot, time });
      for (const { key } of files) this.#keys.add(key);
    }
  }

  batch(table: string, batch: string): BatchRecord | undefined {
    const key = keyOf(table, batch);
    return this.#batches.has(key) ? this.#batches.get(key) : this.#state.batch(table, batch);
  }

  mark(table: string, source: string): MarkState | undefined {
    return this.#marks.get(keyOf(table, source)) ?? this.#state.mark(table, source);
  }

  keyUsed(key: string): boolean {
    return this.#keys.has(key) || this.#state.keyUsed(key);
  }

  // The rest is as before: appends that share an entry replay nothing and change no table, and the entry that they will be in is not there yet.

  head(): EntryHead {
    return this.#state.head();
  }

  table(id: string): TableState | undefined {
    return this.#state.table(id);
  }

  tableByName(key: string): string | undefined {
    return this.#state.tableByName(key);
  }

  viewByName(key: string): number | undefined {
    return this.#state.viewByName(key);
  }

  folderUsed(folder: string): boolean {
    return this.#state.folderUsed(folder);
  }

  schema(table: string, version: number): Schema | undefined {
    return this.#state.schema(table, version);
  }

  reject(table: string, id: string): RejectState | undefined {
    return this.#state.reject(table, id);
  }

  cursor(name: string): string | undefined {
    return this.#state.cursor(name);
  }

  totals(table: string): Totals {
    return this.#state.totals(table);
  }

  changedIn(table: string): number {
    return this.#state.changedIn(table);
  }

  liveFile(table: string, key: string): Extent | undefined {
    return this.#state.liveFile(table, key);
  }

  liveHot(table: string, batch: string): Extent | undefined {
    return this.#state.liveHot(table, batch);
  }

  expiry(): Pick<Expiry, "before" | "unusedSince"> {
    return this.#state.expiry();
  }

  isTagged(snapshot: number): boolean {
    return this.#state.isTagged(snapshot);
  }

  past(table: string, snapshot: number): PastTable | undefined {
    return this.#state.past(table, snapshot);
  }
}

/** Ids of tables have no spaces. */
function keyOf(table: string, name: string): string {
  return `${table} ${name}`;
}
