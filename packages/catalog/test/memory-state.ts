/** The lake's state in plain collections: a second implementation, to hold the one in SQLite against. */

import { nameKey, type Reject, type Schema } from "@eider/core";
import type { Change } from "../src/apply.js";
import type { DataFile, HotRows } from "../src/catalog.js";
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
} from "../src/state.js";

interface Table {
  readonly id: string;
  readonly name: string;
  readonly folder: string;
  readonly partitionBy: readonly string[];
  readonly createdIn: number;
  droppedIn: number;
  readonly versions: { snapshot: number; schema: Schema; lastFieldId: number }[];
  readonly totals: { snapshot: number; totals: Totals }[];
  readonly batches: Map<string, BatchRecord>;
  readonly marks: Map<string, MarkState>;
  readonly files: { addedIn: number; removedIn: number; batch: string | undefined; file: DataFile }[];
  readonly hot: {
    addedIn: number;
    removedIn: number;
    batch: string;
    rows: number;
    schemaVersion: number;
    rowsOf: HotRows;
  }[];
  readonly rollbacks: number[];
  readonly rejects: {
    id: string;
    batch: string;
    of: Reject;
    replayed?: [by: string, snapshot: number];
    purgedIn?: number;
  }[];
}

export class MemoryState implements CatalogState {
  #head: EntryHead = { n: 0, id: "", time: 0, floor: 0 };
  readonly #tables = new Map<string, Table>();
  readonly cursors = new Map<string, string>();
  readonly tags = new Map<string, number>();
  readonly #views: { name: string; sql: string; createdIn: number; droppedIn: number }[] = [];
  readonly #endedTags: { snapshot: number; endedIn: number }[] = [];
  readonly expiries: { n: number; before: number; unusedSince: number; purged: number }[] = [];

  head(): EntryHead {
    return this.#head;
  }

  table(id: string): TableState | undefined {
    const table = this.#tables.get(id);
    return (
      table && {
        name: table.name,
        partitionBy: table.partitionBy,
        schemaVersion: table.versions.length,
        lastFieldId: table.versions.at(-1)!.lastFieldId,
        live: table.droppedIn === Infinity,
      }
    );
  }

  tableByName(key: string): string | undefined {
    return [...this.#tables.values()].find((t) => nameKey(t.name) === key && t.droppedIn === Infinity)?.id;
  }

  viewByName(key: string): number | undefined {
    return this.#views.find((view) => nameKey(view.name) === key && view.droppedIn === Infinity)?.createdIn;
  }

  folderUsed(folder: string): boolean {
    return [...this.#tables.values()].some((t) => nameKey(t.folder) === nameKey(folder));
  }

  schema(table: string, version: number): Schema | undefined {
    return this.#tables.get(table)?.versions[version - 1]?.schema;
  }

  batch(table: string, batch: string): BatchRecord | undefined {
    return this.#tables.get(table)?.batches.get(batch);
  }

  reject(table: string, id: string): RejectState | undefined {
    const found = this.#tables.get(table)?.rejects.find((reject) => reject.id === id);
    return found && { replayedBy: found.replayed?.[0], purged: found.purgedIn !== undefined };
  }

  mark(table: string, source: string): MarkState | undefined {
    return this.#tables.get(table)?.marks.get(source);
  }

  cursor(name: string): string | undefined {
    return this.cursors.get(name);
  }

  keyUsed(key: string): boolean {
    return [...this.#tables.values()].some((t) => t.files.some(({ file }) => file.key === key));
  }

  liveFile(table: string, key: string): Extent | undefined {
    return this.#tables.get(table)?.files.find(({ file, removedIn }) => file.key === key && removedIn === Infinity)
      ?.file;
  }

  liveHot(table: string, batch: string): Extent | undefined {
    const found = this.#tables.get(table)?.hot.find((hot) => hot.batch === batch && hot.removedIn === Infinity);
    return found && { rows: found.rows, bytes: found.rowsOf.data.length };
  }

  changedIn(table: string): number {
    return this.#tables.get(table)!.totals.at(-1)!.snapshot;
  }

  totals(table: string): Totals {
    return this.#tables.get(table)!.totals.at(-1)!.totals;
  }

  expiry(): { before: number; unusedSince: number; purged: number } {
    return this.expiries.at(-1) ?? { before: 0, unusedSince: 0, purged: 0 };
  }

  isTagged(snapshot: number): boolean {
    return [...this.tags.values()].includes(snapshot);
  }

  /** Snapshots at which queries may still read. */
  readable(): number[] {
    const { purged, unusedSince } = this.expiry();
    const kept = [
      ...this.tags.values(),
      ...this.#endedTags.filter((t) => t.endedIn > unusedSince).map((t) => t.snapshot),
    ];
    return Array.from({ length: this.#head.n }, (_, i) => i + 1).filter((n) => n >= purged || kept.includes(n));
  }

  /** Keys of files that no snapshot which may be read shows, nor one that is to come. */
  unusedKeys(): string[] {
    const readable = this.readable();
    const { purged } = this.expiry();
    const all = new Set<string>();
    const used = new Set<string>();
    for (const { files, droppedIn } of this.#tables.values()) {
      for (const { file, addedIn, removedIn } of files) {
        const end = Math.min(removedIn, droppedIn);
        all.add(file.key);
        if (end > purged || readable.some((n) => n >= addedIn && n < end)) used.add(file.key);
      }
    }
    return [...all].filter((key) => !used.has(key));
  }

  past(id: string, at: number): PastTable | undefined {
    const table = this.#tables.get(id);
    const totals = table?.totals.findLast(({ snapshot }) => snapshot <= at);
    return totals && { schemaVersion: table!.versions.filter((v) => v.snapshot <= at).length, totals: totals.totals };
  }

  apply(changes: readonly Change[]): void {
    for (const change of changes) this.#apply(change);
  }

  #apply(change: Change): void {
    const snapshot = this.#head.n;
    switch (change.change) {
      case "entry": {
        const { n, id, time, floor } = change.entry;
        this.#head = { n, id, time, floor };
        return;
      }
      case "create": {
        const { table: id, name, folder, partitionBy } = change;
        const empty = {
          versions: [],
          totals: [],
          batches: new Map(),
          marks: new Map(),
          files: [],
          hot: [],
          rollbacks: [],
          rejects: [],
        };
        this.#tables.set(id, { id, name, folder, partitionBy, createdIn: snapshot, droppedIn: Infinity, ...empty });
        return;
      }
      case "version":
        this.#tables.get(change.table)!.versions.push({ snapshot, ...change });
        return;
      case "drop":
        this.#tables.get(change.table)!.droppedIn = snapshot;
        return;
      case "batch": {
        const { hash, rows, rejected, time, range } = change;
        const { batches, marks } = this.#tables.get(change.table)!;
        if (range) {
          batches.delete(marks.get(range.source)?.batch ?? "");
          marks.set(range.source, { last: range.last, batch: change.batch });
        }
        batches.set(change.batch, { hash, rows, rejected, time, snapshot });
        return;
      }
      case "file":
        this.#tables
          .get(change.table)!
          .files.push({ addedIn: snapshot, removedIn: Infinity, batch: change.batch, file: change.file });
        return;
      case "rollback": {
        const { files, hot, rollbacks } = this.#tables.get(change.table)!;
        const batches = hot.filter((h) => h.addedIn <= change.to && h.removedIn > change.to);
        const missing = batches.filter((h) => h.removedIn !== Infinity);
        for (const h of hot) if (h.removedIn === Infinity && !batches.includes(h)) h.removedIn = snapshot;
        for (const h of missing) hot.push({ ...h, addedIn: snapshot, removedIn: Infinity });
        rollbacks.push(snapshot);
        const then = files.filter((f) => f.addedIn <= change.to && f.removedIn > change.to);
        const now = files.filter((f) => f.removedIn === Infinity);
        for (const file of now) if (!then.includes(file)) file.removedIn = snapshot;
        for (const { batch, file } of then.filter((f) => !now.includes(f))) {
          files.push({ addedIn: snapshot, removedIn: Infinity, batch, file });
        }
        return;
      }
      case "cursor":
        if (change.position === undefined) this.cursors.delete(change.name);
        else this.cursors.set(change.name, change.position);
        return;
      case "view": {
        const { name, sql } = change;
        const before = this.#views.find((view) => nameKey(view.name) === nameKey(name) && view.droppedIn === Infinity);
        if (before) before.droppedIn = snapshot;
        if (sql !== undefined) this.#views.push({ name, sql, createdIn: snapshot, droppedIn: Infinity });
        return;
      }
      case "expire": {
        const { before, unusedSince } = change;
        const purged = this.expiries.findLast(({ n }) => n <= unusedSince)?.before ?? 0;
        this.expiries.push({ n: snapshot, before, unusedSince, purged });
        return;
      }
      case "tag":
        if (this.tags.has(change.name))
          this.#endedTags.push({ snapshot: this.tags.get(change.name)!, endedIn: snapshot });
        if (change.snapshot === undefined) this.tags.delete(change.name);
        else this.tags.set(change.name, change.snapshot);
        return;
      case "hot": {
        const { batch, rows, schemaVersion, hot: rowsOf } = change;
        const hot = { addedIn: snapshot, removedIn: Infinity, batch, rows, schemaVersion, rowsOf };
        this.#tables.get(change.table)!.hot.push(hot);
        return;
      }
      case "removeFile":
        this.#tables
          .get(change.table)!
          .files.find((f) => f.file.key === change.key && f.removedIn === Infinity)!.removedIn = snapshot;
        return;
      case "removeHot":
        this.#tables
          .get(change.table)!
          .hot.find((h) => h.batch === change.batch && h.removedIn === Infinity)!.removedIn = snapshot;
        return;
      case "reject": {
        const { batch, ordinal, reject: of } = change;
        this.#tables.get(change.table)!.rejects.push({ id: `${snapshot}-${ordinal}`, batch, of });
        return;
      }
      case "replay":
        for (const id of change.rejects) {
          this.#tables.get(change.table)!.rejects.find((r) => r.id === id)!.replayed = [change.batch, snapshot];
        }
        return;
      case "purge":
        for (const reject of this.#tables.get(change.table)!.rejects) {
          if (change.rejects.includes(reject.id)) reject.purgedIn ??= snapshot;
        }
        return;
      case "totals":
        this.#tables.get(change.table)!.totals.push({ snapshot, totals: change.totals });
        return;
    }
  }

  /** Everything about the tables that are live at a snapshot, by name. Rows, files and bytes are counted anew. */
  tablesAt(at: number): unknown[] {
    return [...this.#tables.values()]
      .filter((t) => t.createdIn <= at && at < t.droppedIn)
      .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
      .map((t) => {
        const versions = t.versions.filter(({ snapshot }) => snapshot <= at);
        const isLive = (part: { addedIn: number; removedIn: number }): boolean =>
          part.addedIn <= at && at < part.removedIn;
        const files = t.files.filter(isLive);
        const hot = t.hot.filter(isLive);
        const changed = [...t.hot.map(({ removedIn }) => removedIn), ...t.rollbacks].filter((n) => n <= at);
        const sum = (of: (file: DataFile) => number): number => files.reduce((n, { file }) => n + of(file), 0);
        return {
          id: t.id,
          name: t.name,
          schema: versions.at(-1)!.schema,
          schemaVersion: versions.length,
          createdIn: t.createdIn,
          rows: sum(({ rows }) => rows) + hot.reduce((n, { rows }) => n + rows, 0),
          files: files.length,
          bytes: sum(({ bytes }) => bytes),
          hotBatches: hot.length,
          hotBytes: hot.reduce((n, { rowsOf }) => n + rowsOf.data.length, 0),
          hotSince: Math.max(0, ...changed),
          hot: hot.map(({ addedIn, batch, rows, schemaVersion, rowsOf }) => ({
            addedIn,
            batchId: batch,
            rows,
            bytes: rowsOf.data.length,
            schemaVersion,
            schema: t.versions[schemaVersion - 1]!.schema,
            data: Buffer.from(rowsOf.data),
          })),
          list: files.map(({ addedIn, batch, file }) => ({ ...file, addedIn, batchId: batch })),
          batches: [...t.batches]
            .filter(([, record]) => record.snapshot <= at)
            .map(([batchId, { hash, rows, snapshot }]) => ({ batchId, hash, rows, snapshot })),
        };
      });
  }

  /** By name. */
  viewsAt(at: number): unknown[] {
    return this.#views
      .filter((view) => view.createdIn <= at && at < view.droppedIn)
      .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
      .map(({ droppedIn: _, ...view }) => view);
  }

  /** All files and hot batches that the table ever had. */
  parts(table: string): Readonly<Record<"files" | "hotBatches", { name: string; rows: number }[]>> {
    const { files = [], hot = [] } = this.#tables.get(table) ?? {};
    return {
      files: files.map(({ file }) => ({ name: file.key, rows: file.rows })),
      hotBatches: hot.map(({ batch, rows }) => ({ name: batch, rows })),
    };
  }

  /** As listed, without their texts where these are gone. */
  rejects(table: string): unknown[] {
    const { name, rejects } = this.#tables.get(table)!;
    return rejects.map(({ id, batch, of, replayed, purgedIn }) => ({
      id,
      table: name,
      batchId: batch,
      snapshot: Number.parseInt(id, 10),
      ...of,
      ...(replayed && { replayedBy: replayed[0], replayedIn: replayed[1] }),
      ...(purgedIn !== undefined && { raw: "", purgedIn }),
    }));
  }

  /** Of every table ever. */
  tableIds(): string[] {
    return [...this.#tables.keys()];
  }
}
