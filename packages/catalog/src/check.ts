/**
 * Whether a draft may become the next entry. Pure: a state in, a verdict out. The writer asks before it commits, inside
 * the transaction that commits, and every reader of an entry may assert the same.
 */

import { type Field, nameKey, type Schema, sameSchema } from "@eider/core";
import { boundClass, fitsBound, isIntegerType, leafFields } from "./bounds.js";
import type { DataFile, Draft, Expiry, HotRows, Operation, StaleReason } from "./catalog.js";
import { checkBatches, checkCursors } from "./check-batches.js";
import { quote } from "./names.js";
import type { CatalogState, Extent, TableState } from "./state.js";

/**
 * - `apply`: valid as the next entry.
 * - `duplicate`: all its batches were committed, in one snapshot; there is nothing to do.
 * - `conflict`: a batch id is taken, or a reject replayed by another batch. For ever, so trying again cannot help.
 * - `stale`: valid once, or elsewhere; plan again on this state.
 * - `invalid`: no planning makes it right: the writer is at fault.
 */
export type Verdict =
  | { readonly status: "apply" }
  | { readonly status: "duplicate" }
  | { readonly status: "conflict"; readonly code: string; readonly subject: string; readonly message: string }
  | { readonly status: "stale"; readonly reason: StaleReason; readonly message: string }
  | { readonly status: "invalid"; readonly code: string; readonly subject: string; readonly message: string };

type Append = Extract<Operation, { op: "append" }>;
type Rearrange = Extract<Operation, { op: "rearrange" }>;
type Rollback = Extract<Operation, { op: "rollback" }>;
type Tag = Extract<Operation, { op: "tag" }>;
type View = Extract<Operation, { op: "view" }>;
type Expire = Extract<Operation, { op: "expire" }>;
type SchemaChange = Extract<Operation, { op: "schema" }>;

/**
 * Judges a draft, in the order of the protocol: batches first, so that a retry is answered whatever else has changed. Only a
 * draft that creates a table which is there by now is planned again before, for its batches may be known to that one.
 */
export function check(state: CatalogState, draft: Pick<Draft, "operations" | "expectSnapshot">): Verdict {
  return (
    checkCreations(state, draft.operations) ??
    checkBatches(state, draft.operations) ??
    checkCursors(state, draft.operations) ??
    new Planning(state).check(draft) ?? { status: "apply" }
  );
}

function checkCreations(state: CatalogState, operations: readonly Operation[]): Verdict | undefined {
  const dropped = new Set<string>();
  for (const operation of operations) {
    if (operation.op === "drop") dropped.add(operation.table);
    if (operation.op !== "schema" || !operation.create) continue;
    const { name } = operation.create;
    const found = state.tableByName(nameKey(name));
    if (found !== undefined && !dropped.has(found)) return stale("table_exists", `a table named ${quote(name)} exists`);
  }
  return undefined;
}

/** The state with the draft's own operations so far on top: a batch may fill a table that the same draft creates. */
class Planning {
  readonly #state: CatalogState;
  readonly #tables = new Map<string, TableState>();
  readonly #leaves = new Map<string, ReadonlyMap<number, Field>>();
  readonly #schemas = new Map<string, Schema>();
  readonly #names = new Map<string, string | undefined>();
  /** Views that the draft has made or ended so far. */
  readonly #views = new Map<string, number | undefined>();
  readonly #folders = new Set<string>();
  readonly #keys = new Set<string>();
  /** What the draft has removed so far. */
  readonly #removed = new Set<string>();
  /** Rejects that the draft has replayed so far. */
  readonly #replayed = new Set<string>();
  /** Tables whose live files are not those of the state any more. */
  readonly #rolledBack = new Set<string>();
  #floor: number;
  #expiry: Pick<Expiry, "before" | "unusedSince">;
  #oldest: DataFile | undefined;

  constructor(state: CatalogState) {
    this.#state = state;
    this.#floor = state.head().floor;
    this.#expiry = state.expiry();
  }

  check(draft: Pick<Draft, "operations" | "expectSnapshot">): Verdict | undefined {
    const head = this.#state.head().n;
    if (draft.expectSnapshot !== undefined && draft.expectSnapshot !== head) {
      return stale("snapshot", `snapshot ${draft.expectSnapshot} was expected, the lake is at ${head}`);
    }
    for (const operation of draft.operations) {
      const verdict = this.#operation(operation);
      if (verdict) return verdict;
    }
    const oldest = this.#oldest;
    if (oldest && oldest.base < this.#floor) {
      return stale("floor", `${quote(oldest.key)} was staged at snapshot ${oldest.base}, the floor is ${this.#floor}`);
    }
    return undefined;
  }

  #operation(operation: Operation): Verdict | undefined {
    switch (operation.op) {
      case "schema":
        return operation.create ? this.#create(operation, operation.create) : this.#evolve(operation);
      case "append":
        return this.#append(operation);
      case "rearrange":
        return this.#rearrange(operation);
      case "drop":
        return this.#drop(operation.table);
      case "rollback":
        return this.#rollback(operation);
      case "cursor":
        return undefined; // looked at before all others
      case "tag":
        return this.#tag(operation);
      case "view":
        return this.#view(operation);
      case "purge":
        return this.#live(operation.table) ? undefined : this.#missing(operation.table);
      case "expire":
        return this.#expire(operation);
      case "floor":
        return this.#raise(operation.floor);
    }
  }

  #create(
    change: SchemaChange,
    { name, folder, partitionBy }: NonNullable<SchemaChange["create"]>,
  ): Verdict | undefined {
    const key = nameKey(name);
    const folderKey = nameKey(folder);
    if (this.#table(change.table) !== undefined) return stale("table_exists", `the table id ${change.table} is taken`);
    if (this.#tableNamed(key) !== undefined) return stale("table_exists", `a table named ${quote(name)} exists`);
    if (this.#viewNamed(key) !== undefined) {
      return invalid("name_taken", name, `there is a view named ${quote(name)}: drop it, or use another name`);
    }
    // A folder is fixed when its table is created and never used again: files of two tables must not mix.
    if (this.#folders.has(folderKey) || this.#state.folderUsed(folder)) {
      return stale("table_exists", `the folder ${quote(folder)} belongs to another table`);
    }
    this.#tables.set(change.table, {
      name,
      partitionBy,
      schemaVersion: 1,
      lastFieldId: change.lastFieldId,
      live: true,
    });
    this.#schemas.set(versionKey(change.table, 1), change.schema);
    this.#names.set(key, change.table);
    this.#folders.add(folderKey);
    return undefined;
  }

  #evolve(change: SchemaChange): Verdict | undefined {
    const table = this.#live(change.table);
    if (!table) return this.#missing(change.table);
    if (change.version !== table.schemaVersion + 1) {
      return stale(
        "schema",
        `the table ${quote(table.name)} is at schema version ${table.schemaVersion}, version ${change.version} was planned`,
      );
    }
    // Whatever else this draft has done to the table, its writer knew.
    const looked = change.valuesOf !== undefined && this.#state.table(change.table) ? change.valuesOf : undefined;
    if (looked !== undefined && this.#state.changedIn(change.table) > looked) {
      return stale(
        "schema",
        `rows were added to ${quote(table.name)} since its values were looked at to widen a column`,
      );
    }
    // Field ids are never reused, so the highest one never falls.
    if (change.lastFieldId < table.lastFieldId) {
      return invalid(
        "bad_schema",
        table.name,
        `lastFieldId of ${quote(table.name)} is ${table.lastFieldId} and never falls`,
      );
    }
    this.#tables.set(change.table, { ...table, schemaVersion: change.version, lastFieldId: change.lastFieldId });
    this.#schemas.set(versionKey(change.table, change.version), change.schema);
    return undefined;
  }

  #drop(id: string): Verdict | undefined {
    const table = this.#live(id);
    if (!table) return this.#missing(id);
    this.#tables.set(id, { ...table, live: false });
    this.#names.set(nameKey(table.name), undefined);
    return undefined;
  }

  /** To where the table was, with the schema that it had there: the draft's own schema operation has brought that back. */
  #rollback({ table: id, to }: Rollback): Verdict | undefined {
    const table = this.#live(id);
    if (!table) return this.#missing(id);
    if (this.#hasEnded(to)) return invalid("bad_rollback", table.name, `snapshot ${to} has expired`);
    const past = this.#state.past(id, to);
    if (!past) {
      return invalid("bad_rollback", table.name, `there was no table ${quote(table.name)} at snapshot ${to}`);
    }
    const [then, now] = [this.#state.schema(id, past.schemaVersion), this.#schema(id, table.schemaVersion)];
    if (!then || !now || !sameSchema(then, now)) {
      return stale("schema", `the table ${quote(table.name)} has another schema than at snapshot ${to}`);
    }
    this.#rolledBack.add(id);
    return undefined;
  }

  #tag({ name, snapshot }: Tag): Verdict | undefined {
    const { n } = this.#state.head();
    if (snapshot !== undefined && (snapshot < 1 || snapshot > n)) {
      const has = n === 0 ? "nothing was committed yet" : `the lake has snapshots 1 to ${n}`;
      return invalid("bad_tag", name, `there is no snapshot ${snapshot} to tag: ${has}`);
    }
    if (snapshot !== undefined && this.#hasEnded(snapshot)) {
      return invalid("bad_tag", name, `snapshot ${snapshot} has expired and cannot be tagged any more`);
    }
    return undefined;
  }

  /** Tables and views share their names. */
  #view({ name, from, sql }: View): Verdict | undefined {
    const key = nameKey(name);
    const found = this.#viewNamed(key);
    if (found !== from) {
      return stale("view", `the view ${quote(name)} is ${found === undefined ? "not there" : `of snapshot ${found}`}`);
    }
    if (sql !== undefined && this.#tableNamed(key) !== undefined) {
      return invalid("name_taken", name, `there is a table named ${quote(name)}: use another name`);
    }
    this.#views.set(key, sql === undefined ? undefined : this.#state.head().n + 1);
    return undefined;
  }

  #tableNamed(key: string): string | undefined {
    return this.#names.has(key) ? this.#names.get(key) : this.#state.tableByName(key);
  }

  #viewNamed(key: string): number | undefined {
    return this.#views.has(key) ? this.#views.get(key) : this.#state.viewByName(key);
  }

  #hasEnded(snapshot: number): boolean {
    return snapshot < this.#expiry.before && !this.#state.isTagged(snapshot);
  }

  #expire({ before, unusedSince }: Expire): Verdict | undefined {
    const { n } = this.#state.head();
    if (before > n || unusedSince > n) {
      return invalid("bad_expiry", String(before), `the lake has snapshots 1 to ${n}: they end before one of them`);
    }
    const now = this.#expiry;
    const back = before < now.before || unusedSince < now.unusedSince;
    if (back || (before === now.before && unusedSince === now.unusedSince)) {
      return stale("expired", `snapshots before ${now.before} have ended already`);
    }
    this.#expiry = { before, unusedSince };
    return undefined;
  }

  #raise(floor: number): Verdict | undefined {
    const { n } = this.#state.head();
    if (floor > n) return invalid("bad_floor", String(floor), `the floor ${floor} is beyond the head, snapshot ${n}`);
    if (floor <= this.#floor) return stale("floor", `the floor is at ${this.#floor} already`);
    this.#floor = floor;
    return undefined;
  }

  #append(append: Append): Verdict | undefined {
    const table = this.#live(append.table);
    if (!table) return this.#missing(append.table);
    if (append.schemaVersion !== table.schemaVersion) {
      return stale(
        "schema",
        `the table ${quote(table.name)} is at schema version ${table.schemaVersion}, the batch has version ${append.schemaVersion}`,
      );
    }
    const replay = append.replays && this.#replay(append, append.replays);
    if (replay) return replay;
    if (append.hot) return this.#hot(append, append.hot);
    const added = this.#files(append.table, table, append.files);
    if (typeof added !== "number") return added;
    if (added !== append.rows) {
      return invalid(
        "bad_batch",
        append.batch,
        `the batch ${quote(append.batch)} has ${append.rows} rows, its files ${added}`,
      );
    }
    return undefined;
  }

  /** Each reject is taken once, and each of them is a row of the batch. */
  #replay({ table, batch, rows, rejects }: Append, replays: readonly string[]): Verdict | undefined {
    for (const id of replays) {
      const reject = this.#state.reject(table, id);
      if (!reject) return invalid("reject_not_found", id, `the table has no reject ${quote(id)}`);
      const other = reject.replayedBy ?? (this.#replayed.has(id) ? "another batch of this transaction" : undefined);
      if (other !== undefined) {
        return {
          status: "conflict",
          code: "reject_replayed",
          subject: id,
          message: `the reject ${quote(id)} was replayed before, by ${quote(other)}: leave it out`,
        };
      }
      if (reject.purged) {
        return invalid("reject_purged", id, `the text of reject ${quote(id)} was purged: it cannot be replayed`);
      }
      this.#replayed.add(id);
    }
    if (rows + rejects.length === replays.length) return undefined;
    return invalid(
      "replay_rows",
      batch,
      `${replays.length} rejects were read as ${rows + rejects.length} rows: the text of each has to be one row`,
    );
  }

  #hot({ table, batch, schemaVersion }: Append, { bounds }: HotRows): Verdict | undefined {
    const leaves = this.#leavesOf(table, schemaVersion);
    for (const { fieldId, min, max } of bounds) {
      const type = leaves?.get(fieldId)?.type;
      const kind = type && isIntegerType(type) ? boundClass(type) : undefined;
      if (!kind || !fitsBound(kind, min) || !fitsBound(kind, max)) {
        return invalid("bad_batch", batch, `the batch ${quote(batch)} has bounds that field ${fieldId} cannot have`);
      }
    }
    return undefined;
  }

  /** Rows may only move: what is removed must be live, and what is added has as many rows. */
  #rearrange({ table: id, removeHot, removeFiles, addFiles }: Rearrange): Verdict | undefined {
    const table = this.#live(id);
    if (!table) return this.#missing(id);
    let rows = 0;
    const remove = (what: string, name: string, extent: Extent | undefined): Verdict | undefined => {
      const key = JSON.stringify([id, what, name]);
      if (!extent || this.#removed.has(key) || this.#rolledBack.has(id)) {
        return stale("removed", `the ${what} ${quote(name)} of table ${quote(table.name)} is not live any more`);
      }
      this.#removed.add(key);
      rows += extent.rows;
      return undefined;
    };
    for (const batch of removeHot) {
      const verdict = remove("hot batch", batch, this.#state.liveHot(id, batch));
      if (verdict) return verdict;
    }
    for (const key of removeFiles) {
      const verdict = remove("file", key, this.#state.liveFile(id, key));
      if (verdict) return verdict;
    }
    const added = this.#files(id, table, addFiles);
    if (typeof added !== "number") return added;
    if (added === rows) return undefined;
    return invalid(
      "bad_rearrangement",
      table.name,
      `a rearrangement of table ${quote(table.name)} has ${rows} rows before and ${added} after`,
    );
  }

  /** The rows of files that are to be added. */
  #files(id: string, table: TableState, files: readonly DataFile[]): Verdict | number {
    let rows = 0;
    for (const file of files) {
      const verdict = this.#file(id, table, file);
      if (verdict) return verdict;
      rows += file.rows;
    }
    return rows;
  }

  #file(id: string, table: TableState, file: DataFile): Verdict | undefined {
    const bad = (reason: string): Verdict => invalid("bad_file", file.key, `the file ${quote(file.key)} ${reason}`);
    if (this.#keys.has(file.key) || this.#state.keyUsed(file.key))
      return bad("was committed before: keys are never reused");
    this.#keys.add(file.key);
    if (file.base > this.#state.head().n) return bad(`was staged at snapshot ${file.base}, which does not exist`);
    if (this.#oldest === undefined || file.base < this.#oldest.base) this.#oldest = file;
    if (file.partition.length !== table.partitionBy.length) {
      return bad(`has ${file.partition.length} partition values, the table has ${table.partitionBy.length}`);
    }
    const leaves = this.#leavesOf(id, file.schemaVersion);
    if (!leaves) return bad(`has schema version ${file.schemaVersion}, which does not exist`);
    for (const column of file.columns) {
      const type = leaves.get(column.fieldId)?.type;
      const kind = type && boundClass(type);
      if (!kind) return bad(`has statistics of field ${column.fieldId}, which holds no values`);
      for (const bound of [column.min, column.max]) {
        if (bound !== undefined && !fitsBound(kind, bound))
          return bad(`has a bound that field ${column.fieldId} cannot have`);
      }
    }
    return undefined;
  }

  #table(id: string): TableState | undefined {
    return this.#tables.get(id) ?? this.#state.table(id);
  }

  #live(id: string): TableState | undefined {
    const table = this.#table(id);
    return table?.live ? table : undefined;
  }

  #missing(id: string): Verdict {
    const name = this.#table(id)?.name;
    return stale(
      "table_missing",
      name === undefined ? `there is no table ${id}` : `the table ${quote(name)} was dropped`,
    );
  }

  #leavesOf(table: string, version: number): ReadonlyMap<number, Field> | undefined {
    const key = versionKey(table, version);
    const known = this.#leaves.get(key);
    if (known) return known;
    const schema = this.#schema(table, version);
    const leaves = schema && leafFields(schema);
    if (leaves) this.#leaves.set(key, leaves);
    return leaves;
  }

  #schema(table: string, version: number): Schema | undefined {
    return this.#schemas.get(versionKey(table, version)) ?? this.#state.schema(table, version);
  }
}

function versionKey(table: string, version: number): string {
  return `${version} ${table}`;
}

function stale(reason: StaleReason, message: string): Verdict {
  return { status: "stale", reason, message };
}

function invalid(code: string, subject: string, message: string): Verdict {
  return { status: "invalid", code, subject, message };
}
