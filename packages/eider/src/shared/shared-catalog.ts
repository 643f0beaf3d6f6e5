/**
 * The catalog of a shared lake: a log in the store, which alone says what is committed, and on this host an index of it in
 * SQLite, which answers everything. An index may be behind, lost or made again: that changes no answer but the next
 * ones.
 */

import {
  type Catalog,
  type CommitResult,
  type CursorInfo,
  checkDraft,
  type Draft,
  type Expiry,
  type FilesOptions,
  GroupQueue,
  type Head,
  type HotBatch,
  type HotOptions,
  type IntegerBounds,
  type Intent,
  type ListedFile,
  type ListedIntent,
  type ListedReject,
  type Outcome,
  type Proposal,
  type Receipt,
  type RejectsOptions,
  type SnapshotInfo,
  type SourceMark,
  type SqliteCatalog,
  sharesEntry,
  type TableChange,
  type TableInfo,
  type TableLayout,
  type TagInfo,
  type Timer,
  type ViewInfo,
} from "@eider/catalog";
import { CatalogError, CorruptionError, InvalidInputError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import type { Logger } from "../options.js";
import {
  CHECKPOINT_LIMITS,
  type Checkpoint,
  type CheckpointLimits,
  coveredSnapshot,
  type IndexCopies,
  listCheckpoints,
  loadCheckpoint,
  putCheckpoint,
} from "./checkpoints.js";
import { Fairness } from "./fairness.js";
import { FETCHES, Log, type Settled } from "./log.js";
import { logGone, SameLog } from "./same-log.js";

export interface SharedCatalogOptions {
  readonly store: ObjectStore;
  /** Of kind `shared`. Closed with this. */
  readonly index: SqliteCatalog;
  readonly timer: Timer;
  /** Milliseconds since the epoch, where the store does not tell the time. */
  readonly clock: () => number;
  readonly random: (size: number) => Uint8Array;
  readonly readOnly: boolean;
  readonly logger?: Logger;
  /** Milliseconds for which a query does without looking for entries of other hosts. Default 0. */
  readonly stalenessMs?: number;
  readonly copies: IndexCopies;
  readonly limits?: CheckpointLimits;
  /** Milliseconds for which a commit whose fate is not known is pursued. Default 60,000. */
  readonly patienceMs?: number;
  /** Milliseconds between two looks whether the store still has the log that the index is of. Default 60,000. */
  readonly sameLogMs?: number;
}

/** Most appends in one entry. */
const GROUP_LIMIT = 256;
const FAR_BEHIND: Outcome<CommitResult> = {
  answer: { status: "stale", reason: "floor", message: "this host was far behind the log: plan again" },
};

export class SharedCatalog implements Catalog {
  readonly kind = "shared";
  readonly lakeId: string;
  readonly catalogId: string;
  readonly #options: SharedCatalogOptions;
  readonly #index: SqliteCatalog;
  readonly #log: Log;
  readonly #fairness: Fairness;
  readonly #sameLog: SameLog;
  /** By the timer: no entry that was committed before is unknown to the index. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The refresh that runs, and the one that begins when it ends. */
  #refreshing: Promise<void> | undefined;
  #nextRefresh: Promise<void> | undefined;
  /** Bytes and snapshot of the newest checkpoint that this process knows of. */
  #checkpoint: Pick<Checkpoint, "snapshot" | "bytes"> = { snapshot: 0, bytes: 0 };
  /** Ends when it is seen whether one is due, and that one is written; `wanted`: there was a commit since. */
  #wanted = false;
  #writing: Promise<void> | undefined;
  /** One entry of this process at a time: they would only race each other. */
  readonly #commits: GroupQueue<Draft, CommitResult>;
  /** Entries that were lost to others since one was won. */
  #losses = 0;

  private constructor(options: SharedCatalogOptions) {
    this.#options = options;
    this.#index = options.index;
    this.lakeId = options.index.lakeId;
    this.catalogId = options.index.catalogId;
    const { store, timer, logger } = options;
    const jitter = (): number => (options.random(1)[0] ?? 0) / 256;
    this.#log = new Log({ store, timer, jitter, patienceMs: options.patienceMs ?? 60_000 });
    const everyMs = options.sameLogMs ?? 60_000;
    this.#sameLog = new SameLog({ log: this.#log, index: this.#index, timer, everyMs });
    this.#fairness = new Fairness({ store, timer, jitter, host: this.catalogId, now: () => this.#now(), logger });
    this.#commits = new GroupQueue({
      turn: () => timer.turn(),
      limit: GROUP_LIMIT,
      joins: sharesEntry,
      commit: (drafts) => this.#commit(drafts),
    });
  }

  /**
   * @throws CatalogError `log_replaced` if the store's log is not the one that the index is of
   */
  static async open(options: SharedCatalogOptions): Promise<SharedCatalog> {
    const catalog = new SharedCatalog(options);
    await catalog.#sameLog.assert();
    return catalog;
  }

  /**
   * What this process has committed, or was told of, is always part of it; what others have committed since the last look
   * only if that was longer ago than `stalenessMs`.
   */
  async head(): Promise<Head> {
    const { timer, stalenessMs = 0 } = this.#options;
    if (stalenessMs === 0 || timer.now() - this.#lookedAt > stalenessMs) await this.refresh();
    return this.#index.head();
  }

  /**
   * Whoever calls while a refresh runs waits for the next one: the one that runs may have looked before this call, and
   * what was acknowledged in between has to be seen.
   */
  refresh(): Promise<void> {
    if (!this.#refreshing) {
      this.#refreshing = this.#catchUp().finally(() => {
        this.#refreshing = undefined;
      });
      return this.#refreshing;
    }
    const again = (): Promise<void> => {
      this.#nextRefresh = undefined;
      return this.refresh();
    };
    this.#nextRefresh ??= this.#refreshing.then(again, again);
    return this.#nextRefresh;
  }

  async resolveSnapshot(
    at: number | Date | { readonly tag: string },
    options?: { readonly expired?: boolean },
  ): Promise<number> {
    if (typeof at !== "number" || at > (await this.#index.head()).snapshot) await this.refresh();
    return this.#index.resolveSnapshot(at, options);
  }

  expiry(at?: number): Promise<Expiry> {
    return this.#index.expiry(at);
  }

  /**
   * Commits a draft at the first free number, in one entry with others that come meanwhile, if it only appends.
   * @throws CatalogError `commit_unknown`; `log_replaced` once it was seen that the store is another one
   */
  async commit(draft: Draft): Promise<CommitResult> {
    if (this.#options.readOnly) {
      throw new CatalogError("catalog_read_only", "the lake is open for reading only: open it without mode `read`");
    }
    checkDraft(draft);
    this.#sameLog.assertFound();
    return this.#commits.join(draft);
  }

  /** Nothing is announced: the floor alone says which files may still be committed. */
  async begin(): Promise<Intent> {
    return { id: "", base: (await this.#index.head()).snapshot };
  }

  async abandon(): Promise<void> {}

  async intents(): Promise<ListedIntent[]> {
    return [];
  }

  snapshots(page?: { after?: number; limit?: number }): Promise<SnapshotInfo[]> {
    return this.#index.snapshots(page);
  }

  tables(at?: number, options?: { readonly expired?: boolean }): Promise<TableInfo[]> {
    return this.#index.tables(at, options);
  }

  table(name: string, at?: number): Promise<TableInfo | undefined> {
    return this.#index.table(name, at);
  }

  layout(name: string): Promise<TableLayout | undefined> {
    return this.#index.layout(name);
  }

  views(at?: number): Promise<ViewInfo[]> {
    return this.#index.views(at);
  }

  files(tableId: string, at?: number, options?: FilesOptions): Promise<ListedFile[]> {
    return this.#index.files(tableId, at, options);
  }

  hotBatches(tableId: string, options?: HotOptions): Promise<HotBatch[]> {
    return this.#index.hotBatches(tableId, options);
  }

  integerBounds(tableId: string): Promise<Map<number, IntegerBounds | undefined>> {
    return this.#index.integerBounds(tableId);
  }

  receipt(tableId: string, batchId: string): Promise<Receipt | undefined> {
    return this.#index.receipt(tableId, batchId);
  }

  batches(tableId: string, options?: { at?: number; before?: number; limit?: number }): Promise<Receipt[]> {
    return this.#index.batches(tableId, options);
  }

  rejects(tableId: string, options?: RejectsOptions): Promise<ListedReject[]> {
    return this.#index.rejects(tableId, options);
  }

  /** Other hosts purge their indexes when they follow; the log is one for all. */
  async scrub(rejects: readonly string[], signal?: AbortSignal): Promise<void> {
    await this.#index.scrub();
    await this.#log.scrub(rejects, signal);
  }

  sourceMark(tableId: string, source: string): Promise<SourceMark | undefined> {
    return this.#index.sourceMark(tableId, source);
  }

  changes(tableId: string, after: string, options?: { until?: number; limit?: number }): Promise<TableChange[]> {
    return this.#index.changes(tableId, after, options);
  }

  cursors(): Promise<CursorInfo[]> {
    return this.#index.cursors();
  }

  cursor(name: string): Promise<CursorInfo | undefined> {
    return this.#index.cursor(name);
  }

  tags(): Promise<TagInfo[]> {
    return this.#index.tags();
  }

  /** Overwrites entries that no host needs any more by stubs. */
  async tidy(before: number, signal?: AbortSignal): Promise<void> {
    const covered = await coveredSnapshot(this.#options.store);
    if (covered > 0) await this.#log.stub(covered, { leastBytes: this.#limits.stubBytes, before, signal });
  }

  async exportTo(path: string): Promise<void> {
    await this.refresh();
    await this.#index.exportTo(path);
  }

  async retire(): Promise<boolean> {
    throw new CatalogError("lake_is_shared", "the lake is shared already");
  }

  folderUsed(folder: string): Promise<boolean> {
    return this.#index.folderUsed(folder);
  }

  referencedKeys(keys: readonly string[]): Promise<Set<string>> {
    return this.#index.referencedKeys(keys);
  }

  unusedKeys(keys: readonly string[]): Promise<Set<string>> {
    return this.#index.unusedKeys(keys);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commits.idle();
    await this.#writing;
    await this.#refreshing?.catch(() => undefined);
    await this.#index[Symbol.asyncDispose]();
  }

  /** One try of drafts that wait. Those that lost to another entry are asked for again, on top of it. */
  async #commit(drafts: readonly Draft[]): Promise<readonly Outcome<CommitResult>[]> {
    await this.#fairness.enter();
    const { entry, outcomes, firm } = await this.#index.propose(drafts, this.#now());
    if (!entry) return (await this.#isOld(outcomes)) ? outcomes.map(() => "again") : outcomes;
    const started = this.#options.timer.now();
    const settled = await this.#settle(entry);
    if ("failure" in settled) {
      // Whoever was refused for the sake of a member has no answer yet.
      return outcomes.map((outcome, i) => (i < firm ? outcome : isCommitted(outcome) ? settled : "again"));
    }
    if (settled.won) {
      this.#losses = 0;
      this.#sameLog.put(entry.n);
      await this.#takeOver(settled.bytes, started);
      this.#fairness.won();
      this.#checkpointSoon();
      return outcomes;
    }
    const stands = (outcome: Outcome<CommitResult>, i: number): boolean => i < firm && !mayBeAllowedLater(outcome);
    if (await this.#apply(settled.bytes, entry.n)) {
      return outcomes.map((outcome, i) => (stands(outcome, i) ? outcome : isCommitted(outcome) ? FAR_BEHIND : "again"));
    }
    await this.#fairness.lost(++this.#losses);
    if (this.#losses > 1) await this.refresh();
    return outcomes.map((outcome, i) => (stands(outcome, i) ? outcome : "again"));
  }

  /**
   * Whether drafts were refused by an index that did not know what others have committed. Whoever is told that something is
   * not there yet may have seen it on another host; whatever else is refused, later entries cannot allow.
   */
  async #isOld(outcomes: readonly Outcome<CommitResult>[]): Promise<boolean> {
    if (!outcomes.some(mayBeAllowedLater)) return false;
    const { snapshot } = await this.#index.head();
    await this.refresh();
    return (await this.#index.head()).snapshot > snapshot;
  }

  /** The commit point of all members lies in here: the moment at which the store has the entry. */
  async #settle({ n, id, bytes }: NonNullable<Proposal["entry"]>): Promise<Settled | { readonly failure: unknown }> {
    try {
      return await this.#log.settle(n, id, bytes);
    } catch (failure) {
      return { failure };
    }
  }

  /** The index follows. What keeps it from that now changes nothing of what is committed: it is caught up later. */
  async #takeOver(bytes: Uint8Array, started: number): Promise<void> {
    try {
      await this.#index.applyEntry(bytes);
      this.#lookedAt = started; // the number was free then
    } catch (error) {
      this.#lookedAt = Number.NEGATIVE_INFINITY; // the next query has to see it
      this.#options.logger?.warn?.("a commit could not be entered into this host's index yet", { error });
    }
  }

  async #catchUp(): Promise<void> {
    const now = this.#options.timer.now();
    await this.#readLog();
    await this.#sameLog.assertNowAndThen();
    this.#lookedAt = now;
  }

  async #readLog(): Promise<void> {
    const { snapshot: head } = await this.#index.head();
    const next = await this.#log.read(head + 1);
    if (!next) return;
    const { replayEntries } = this.#limits;
    const more = await this.#log.countAfter(head + 1, replayEntries);
    if (more >= replayEntries && (await this.#loadCheckpoint(head + 1))) return this.#readLog();
    if (await this.#apply(next, head + 1)) return this.#readLog();
    let first = head + 2;
    const last = head + 1 + (more < replayEntries ? more : await this.#log.countAfter(head + 1));
    while (first <= last) {
      const numbers = Array.from({ length: Math.min(FETCHES, last - first + 1) }, (_, i) => first + i);
      for (const [i, bytes] of (await Promise.all(numbers.map((n) => this.#log.read(n)))).entries()) {
        if (!bytes) throw logGone();
        if (await this.#apply(bytes, first + i)) return this.#readLog();
      }
      first += numbers.length;
    }
  }

  /** Takes over entry n, or if only its stub is left a checkpoint that has it: then true. */
  async #apply(bytes: Uint8Array, n: number): Promise<boolean> {
    const applied = await this.#index.applyEntry(bytes).catch(async (error: unknown) => {
      // One that follows another entry than this index's last: then that one may not be the log's any more.
      if (error instanceof CorruptionError) await this.#sameLog.assert();
      throw error;
    });
    if (applied === "known") return false;
    if (await this.#loadCheckpoint(n)) return true;
    throw new CorruptionError(
      "checkpoint_lost",
      `entry ${n} of the log is a stub, and no checkpoint of snapshot ${n} or later can be read: restore the store`,
      { subject: String(n) },
    );
  }

  /** Whether a checkpoint of snapshot `least` or later was taken over. */
  async #loadCheckpoint(least: number): Promise<boolean> {
    const { store, copies, logger } = this.#options;
    const loaded = await loadCheckpoint(store, least, (body) => copies.load(body), logger);
    if (loaded) this.#checkpoint = loaded;
    return loaded !== undefined;
  }

  /** After a commit, beside whatever comes next. */
  #checkpointSoon(): void {
    this.#wanted = true;
    this.#writing ??= (async () => {
      while (this.#wanted) {
        this.#wanted = false;
        await this.#checkpointIfDue();
      }
      this.#writing = undefined;
    })();
  }

  /** That it fails changes nothing of what is committed. */
  async #checkpointIfDue(): Promise<void> {
    const { store, copies, logger } = this.#options;
    try {
      await this.#sameLog.assertNowAndThen();
      if (!(await this.#isCheckpointDue())) return;
      // It is the first thing that a new host believes.
      await this.#sameLog.assert();
      // Another host may have been first.
      const [newest] = await listCheckpoints(store);
      if (newest && newest.snapshot > this.#checkpoint.snapshot) this.#checkpoint = newest;
      if (!(await this.#isCheckpointDue())) return;
      await using copy = await copies.write();
      this.#checkpoint = await putCheckpoint(store, copy);
    } catch (error) {
      logger?.warn?.("a checkpoint could not be written: a later commit tries again", { error });
    }
  }

  async #isCheckpointDue(): Promise<boolean> {
    const { snapshot, bytes } = this.#checkpoint;
    const replay = await this.#index.replayAfter(snapshot);
    return this.#limits.isDue({ ...replay, checkpointBytes: bytes });
  }

  get #limits(): CheckpointLimits {
    return this.#options.limits ?? CHECKPOINT_LIMITS;
  }

  /** Milliseconds since the epoch: the store's clock is one for all hosts. */
  #now(): number {
    const { store, clock } = this.#options;
    return store.serverTime?.() ?? clock();
  }
}

function isCommitted(outcome: Outcome<CommitResult>): boolean {
  return outcome !== "again" && "answer" in outcome && outcome.answer.status === "committed";
}

function mayBeAllowedLater(outcome: Outcome<CommitResult>): boolean {
  if (outcome === "again") return false;
  if ("failure" in outcome) return outcome.failure instanceof InvalidInputError; // a position or a tag of a snapshot to come
  return outcome.answer.status === "stale";
}
