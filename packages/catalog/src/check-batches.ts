/**
 * Whether the batches of a draft are known, and whether its cursors are where their consumers believe them to be. In this
 * order, before anything else: a consumer that repeats what was committed is told so, though its cursor has moved.
 */

import type { Operation } from "./catalog.js";
import type { Verdict } from "./check.js";
import { quote } from "./names.js";
import { START } from "./position.js";
import type { CatalogState } from "./state.js";

type Append = Extract<Operation, { op: "append" }>;

/** A batch that was committed before; in which snapshot is known no more of a part that its source is far beyond. */
interface Known {
  readonly append: Append;
  readonly snapshot: number | undefined;
}

/** A transaction retried: all its batches are duplicates of one snapshot, or all are new; else it is a conflict. */
export function checkBatches(state: CatalogState, operations: readonly Operation[]): Verdict | undefined {
  const appends = operations.filter((operation) => operation.op === "append");
  const sources = new Sources(state);
  const known: Known[] = [];
  for (const append of appends) {
    const found = sources.find(append) ?? findBatch(state, append);
    if (found === undefined) continue;
    if ("status" in found) return found;
    known.push(found);
  }
  const [first] = known;
  if (first === undefined) return undefined;
  const snapshots = known.filter(({ snapshot }) => snapshot !== undefined);
  const other = snapshots.find(({ snapshot }) => snapshot !== snapshots[0]!.snapshot);
  if (known.length === appends.length && other === undefined) return { status: "duplicate" };
  const one = snapshots[0] ?? first;
  return {
    status: "conflict",
    code: "transaction_conflict",
    subject: one.append.batch,
    message:
      `the batch ${quote(one.append.batch)} was committed in ${one.snapshot === undefined ? "an earlier snapshot" : `snapshot ${one.snapshot}`}, ` +
      `${other ? `${quote(other.append.batch)} in snapshot ${other.snapshot}` : "other batches of this transaction were not"}: ` +
      "a transaction commits all its batches or none; choose other batch ids",
  };
}

function findBatch(state: CatalogState, append: Append): Known | Verdict | undefined {
  const record = state.batch(append.table, append.batch);
  if (record === undefined) return undefined;
  if (record.hash === append.hash) return { append, snapshot: record.snapshot };
  return {
    status: "conflict",
    code: "batch_conflict",
    subject: append.batch,
    message:
      `the batch ${quote(append.batch)} of table ${tableName(state, append)} was committed in snapshot ${record.snapshot} with other content ` +
      `(${shortHash(record.hash)}, now ${shortHash(append.hash)}): choose another batch id`,
  };
}

/** How far each source has come, the draft's own batches so far included. */
class Sources {
  readonly #state: CatalogState;
  readonly #last = new Map<string, bigint>();

  constructor(state: CatalogState) {
    this.#state = state;
  }

  /**
   * A part at or before the mark is known; only the last one's content can still be compared. A part that begins right
   * behind it is new, and any other would lose rows or take some twice.
   */
  find(append: Append): Known | Verdict | undefined {
    const { table, range, batch } = append;
    if (!range) return undefined;
    const key = JSON.stringify([table, range.source]);
    const mark = this.#state.mark(table, range.source);
    const last = this.#last.get(key) ?? (mark && BigInt(mark.last));
    const [from, to] = [BigInt(range.first), BigInt(range.last)];
    if (last !== undefined && to <= last && !this.#last.has(key)) {
      return mark!.batch === batch ? findBatch(this.#state, append) : { append, snapshot: undefined };
    }
    if (last !== undefined && from <= last) {
      return {
        status: "conflict",
        code: "sequence_overlap",
        subject: batch,
        message:
          `source ${quote(range.source)} of table ${tableName(this.#state, append)} was taken up to ${last}, in the middle of ` +
          `the batch ${quote(batch)}: begin at ${last + 1n}`,
      };
    }
    if (last !== undefined && from > last + 1n) {
      return {
        status: "stale",
        reason: "sequence",
        message:
          `source ${quote(range.source)} of table ${tableName(this.#state, append)} was taken up to ${last}, and the batch ` +
          `${quote(batch)} begins at ${from}: append what lies between first`,
      };
    }
    this.#last.set(key, to);
    return undefined;
  }
}

/** Each cursor stands where the draft says, its own moves so far included, and goes to a place that exists. */
export function checkCursors(state: CatalogState, operations: readonly Operation[]): Verdict | undefined {
  const moved = new Map<string, string>();
  for (const operation of operations) {
    if (operation.op !== "cursor") continue;
    const { name, from, to } = operation;
    const position = moved.get(name) ?? state.cursor(name) ?? START;
    if (position !== from) {
      return {
        status: "stale",
        reason: "cursor",
        message: `the cursor ${quote(name)} is at ${position}, not at ${from}: somebody else moved it`,
      };
    }
    const head = state.head().n;
    if (to !== undefined && Number.parseInt(to, 10) > head) {
      const message = `the cursor ${quote(name)} is to go to ${to}, the lake is at snapshot ${head}`;
      return { status: "invalid", code: "bad_position", subject: name, message };
    }
    moved.set(name, to ?? START);
  }
  return undefined;
}

function tableName(state: CatalogState, { table }: Append): string {
  return quote(state.table(table)?.name ?? table);
}

/** `bytes:12345678…`: enough of a hash to tell two apart. */
function shortHash(hash: string): string {
  const digits = hash.indexOf(":") + 9;
  return hash.length > digits ? `${hash.slice(0, digits)}…` : hash;
}
