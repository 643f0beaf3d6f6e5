import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { CatalogError, CorruptionError, InvalidInputError } from "@eider/core";
import type {
  Catalog,
  CommitResult,
  CursorInfo,
  Draft,
  Expiry,
  FilesOptions,
  Head,
  HotBatch,
  HotOptions,
  IntegerBounds,
  Intent,
  ListedFile,
  ListedIntent,
  ListedReject,
  Receipt,
  RejectsOptions,
  SnapshotInfo,
  SourceMark,
  TableChange,
  TableInfo,
  TableLayout,
  TagInfo,
  ViewInfo,
} from "./catalog.js";
import { checkDraft } from "./draft.js";
import { decodeEntry, type Entry, encodeEntry } from "./entry.js";
import { COMMIT_TRIES, LocalCommits } from "./local-commits.js";
import { findCursor, listChanges, listCursors, listTags, taggedSnapshot } from "./sqlite-changes.js";
import { assertFollows, type GroupPlan, planGroup, writeEntry } from "./sqlite-commit.js";
import { CommitUnknown, SqliteConnection } from "./sqlite-connection.js";
import { dataVersion, type OpenDriver, openSqlite, type SqliteDriver } from "./sqlite-driver.js";
import { assertNotExpired, findExpiry, findKeyUse } from "./sqlite-expiry.js";
import { integerBounds, listFiles } from "./sqlite-files.js";
import { listHot } from "./sqlite-hot.js";
import { type JournalPage, journaledUpTo, readJournal, setJournaled } from "./sqlite-journal.js";
import { findMark, findReceipt, listReceipts } from "./sqlite-receipts.js";
import { DEFAULT_LIMIT, listRejects } from "./sqlite-rejects.js";
import { type CheckpointContent, replaceTables } from "./sqlite-rows.js";
import { listSnapshots, snapshotAt, snapshotAtTime } from "./sqlite-snapshots.js";
import { SqliteState } from "./sqlite-state.js";
import { findTable, listTables } from "./sqlite-tables.js";
import { listViews } from "./sqlite-views.js";
import { decodeStub, isStub } from "./stub.js";
import { TableLayouts } from "./table-layouts.js";
import { realTimer, type Timer } from "./timer.js";

export interface SqliteCatalogOptions {
  /** The file, or `:memory:`. */
  readonly path: string;
  /**
   * Default `create`: open, or create if there is none. `read` never changes the catalog and cannot commit; SQLite may
   * leave an empty log and its index (`-wal`, `-shm`) beside the file.
   */
  readonly mode?: "create" | "open" | "read";
  /**
   * `local` (default): this file is the catalog. `shared`: it is an index of a log in the store, which alone says what is
   * committed; entries come by `applyEntry`.
   */
  readonly kind?: "local" | "shared";
  /** For a new catalog; must be that of an existing one. */
  readonly lakeId?: string;
  /** Milliseconds that a call waits for other processes before `catalog_busy`. Default 30,000. */
  readonly busyTimeoutMs?: number;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly clock?: () => number;
  /** Random bytes for ids. Default Node's. */
  readonly random?: (size: number) => Uint8Array;
  /** Default: the platform's. */
  readonly timer?: Timer;
  /** Told after each commit of this process: for what comes after it and may fail. Must not throw. */
  readonly onCommit?: (draft: Draft) => void;
  /** Another SQLite binding. Default: that of Node.js from version 24 on, else better-sqlite3. */
  readonly driver?: OpenDriver;
}

/** An entry that drafts may become, if nobody else takes its number. */
export interface Proposal extends Omit<GroupPlan, "entry"> {
  readonly entry: { readonly n: number; readonly id: string; readonly bytes: Uint8Array } | undefined;
}

/**
 * A catalog in one SQLite file, shared by any number of processes of one machine: that of a local lake, or the index of
 * a shared one.
 */
export class SqliteCatalog implements Catalog {
  readonly lakeId: string;
  readonly catalogId: string;
  readonly kind: "local" | "shared";
  readonly #connection: SqliteConnection;
  readonly #readonly: boolean;
  readonly #clock: () => number;
  readonly #newId: () => string;
  readonly #writer: string;
  readonly #host: string = hostname();
  readonly #commits: LocalCommits;
  readonly #onCommit: ((draft: Draft) => void) | undefined;
  readonly #layouts = new TableLayouts();

  private constructor(
    connection: SqliteConnection,
    ids: { lakeId: string; catalogId: string },
    options: {
      kind: "local" | "shared";
      readonly: boolean;
      clock: () => number;
      newId: () => string;
      timer: Timer;
    } & Pick<SqliteCatalogOptions, "onCommit">,
  ) {
    this.kind = options.kind;
    this.#connection = connection;
    this.lakeId = ids.lakeId;
    this.catalogId = ids.catalogId;
    this.#readonly = options.readonly;
    this.#clock = options.clock;
    this.#newId = options.newId;
    this.#writer = options.newId();
    this.#onCommit = options.onCommit;
    this.#commits = new LocalCommits({
      lakeId: ids.lakeId,
      write: (body) => this.#writeAside(body),
      author: (id) => this.#author(id, this.#clock()),
      turn: () => options.timer.turn(),
      onEntry: (operations) => this.#layouts.changed(operations),
    });
  }

  /**
   * Opens a catalog file. Several processes may create the same one at once: all end up with one catalog.
   * @throws NotFoundError `catalog_not_found`, unless mode is `create`
   * @throws CatalogError `not_a_catalog`, `catalog_too_new`, `catalog_too_old`, `wrong_lake`, `catalog_busy`,
   * `catalog_read_only`, `catalog_unavailable`, `native_module_missing`
   * @throws CorruptionError `catalog_corrupt`
   */
  static async open(options: SqliteCatalogOptions): Promise<SqliteCatalog> {
    const { path, mode = "create", kind = "local", random = randomBytes, timer = realTimer } = options;
    const clock = (): number => Math.trunc((options.clock ?? Date.now)());
    const newId = (): string => Buffer.from(random(16)).toString("hex");
    const connection = await SqliteConnection.open({
      path: path === ":memory:" ? undefined : resolve(path),
      mode,
      busyTimeoutMs: options.busyTimeoutMs ?? 30_000,
      openDriver: options.driver ?? openSqlite,
      timer,
      clock,
      random,
      identity: () => ({ lakeId: options.lakeId ?? newId(), catalogId: newId(), mode: kind, created: clock() }),
    });
    try {
      const ids = await connection.read((driver) =>
        driver.get<{ lakeId: string; catalogId: string }>(
          "SELECT lake_id AS lakeId, catalog_id AS catalogId FROM meta",
        ),
      );
      if (!ids) throw new CorruptionError("catalog_corrupt", `the catalog ${path} does not say which lake it is of`);
      if (options.lakeId !== undefined && options.lakeId !== ids.lakeId) {
        throw new CatalogError(
          "wrong_lake",
          `the catalog ${path} is of lake ${ids.lakeId}, not of ${options.lakeId}: it was moved or restored to the wrong place`,
          { subject: path },
        );
      }
      const { onCommit } = options;
      return new SqliteCatalog(connection, ids, {
        kind,
        readonly: mode === "read",
        clock,
        newId,
        timer,
        ...(onCommit && { onCommit }),
      });
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  async head(): Promise<Head> {
    return this.#connection.read((driver) => {
      const { n, time, floor } = new SqliteState(driver).head();
      return { snapshot: n, time, floor };
    });
  }

  async resolveSnapshot(
    at: number | Date | { readonly tag: string },
    options: { readonly expired?: boolean } = {},
  ): Promise<number> {
    if (at instanceof Date && Number.isNaN(at.getTime())) {
      throw new InvalidInputError("bad_snapshot", "the instant to look at is an invalid Date");
    }
    return this.#connection.read((driver) => {
      if (typeof at === "object" && "tag" in at) return taggedSnapshot(driver, at.tag);
      const found = typeof at === "number" ? snapshotAt(driver, at) : snapshotAtTime(driver, at.getTime());
      if (!options.expired) assertNotExpired(driver, found, "before");
      return found;
    });
  }

  async expiry(at?: number): Promise<Expiry> {
    return this.#connection.read((driver) => findExpiry(driver, at));
  }

  async snapshots(page: { after?: number; limit?: number } = {}): Promise<SnapshotInfo[]> {
    const { after = 0, limit = DEFAULT_LIMIT } = page;
    return this.#connection.read((driver) => listSnapshots(driver, after, limit));
  }

  async tables(at?: number, options: { readonly expired?: boolean } = {}): Promise<TableInfo[]> {
    return this.#connection.read((driver) => listTables(driver, snapshotAt(driver, at, options)));
  }

  async table(name: string, at?: number): Promise<TableInfo | undefined> {
    return this.#connection.read((driver) => findTable(driver, name, snapshotAt(driver, at)));
  }

  async layout(name: string): Promise<TableLayout | undefined> {
    const known = await this.#connection.readOne((driver) => this.#layouts.find(driver, dataVersion(driver), name));
    if (known) return known;
    return this.#connection.read((driver) => {
      const table = findTable(driver, name, snapshotAt(driver, undefined));
      if (table) this.#layouts.keep(driver, dataVersion(driver), table);
      return table;
    });
  }

  async views(at?: number): Promise<ViewInfo[]> {
    return this.#connection.read((driver) => listViews(driver, snapshotAt(driver, at)));
  }

  async files(tableId: string, at?: number, options: FilesOptions = {}): Promise<ListedFile[]> {
    return this.#connection.read((driver) =>
      listFiles(driver, tableId, snapshotAt(driver, at), { ...options, statistics: options.statistics ?? true }),
    );
  }

  async hotBatches(tableId: string, options: HotOptions = {}): Promise<HotBatch[]> {
    const { at, after = 0, limit, data = true } = options;
    return this.#connection.read((driver) =>
      listHot(driver, tableId, { at: snapshotAt(driver, at), after, limit, data }),
    );
  }

  async integerBounds(tableId: string): Promise<Map<number, IntegerBounds | undefined>> {
    return this.#connection.read((driver) => integerBounds(driver, tableId));
  }

  async receipt(tableId: string, batchId: string): Promise<Receipt | undefined> {
    return this.#connection.read((driver) => findReceipt(driver, tableId, batchId));
  }

  async batches(tableId: string, options: { at?: number; before?: number; limit?: number } = {}): Promise<Receipt[]> {
    const { before = Number.MAX_SAFE_INTEGER, limit = DEFAULT_LIMIT } = options;
    return this.#connection.read((driver) =>
      listReceipts(driver, tableId, Math.min(snapshotAt(driver, options.at), before - 1), limit),
    );
  }

  async rejects(tableId: string, options: RejectsOptions = {}): Promise<ListedReject[]> {
    return this.#connection.read((driver) => listRejects(driver, tableId, options));
  }

  async scrub(): Promise<void> {
    await this.#connection.rewrite();
  }

  async sourceMark(tableId: string, source: string): Promise<SourceMark | undefined> {
    return this.#connection.read((driver) => findMark(driver, tableId, source));
  }

  async changes(
    tableId: string,
    after: string,
    options: { until?: number; limit?: number } = {},
  ): Promise<TableChange[]> {
    const { until = Number.MAX_SAFE_INTEGER, limit = DEFAULT_LIMIT } = options;
    return this.#connection.read((driver) => listChanges(driver, tableId, after, until, limit));
  }

  async cursors(): Promise<CursorInfo[]> {
    return this.#connection.read(listCursors);
  }

  async cursor(name: string): Promise<CursorInfo | undefined> {
    return this.#connection.read((driver) => findCursor(driver, name));
  }

  async tags(): Promise<TagInfo[]> {
    return this.#connection.read(listTags);
  }

  async begin(): Promise<Intent> {
    const id = this.#newId();
    // Need not survive a power cut, which ends the writer too.
    return this.#writeLocal((driver) => {
      const base = new SqliteState(driver).head().n;
      driver.run(
        "INSERT INTO intents (id, base, writer, host, started) VALUES (?, ?, ?, ?, ?)",
        id,
        base,
        this.#writer,
        this.#host,
        this.#clock(),
      );
      return { id, base };
    });
  }

  async abandon(intentId: string): Promise<void> {
    await this.#writeLocal((driver) => driver.run("DELETE FROM intents WHERE id = ?", intentId));
  }

  async intents(olderThan: number = Number.MAX_SAFE_INTEGER): Promise<ListedIntent[]> {
    return this.#connection.read((driver) =>
      driver.all<ListedIntent>(
        "SELECT id, base, writer, host, started FROM intents WHERE base < ? ORDER BY base, started, id",
        olderThan,
      ),
    );
  }

  async folderUsed(folder: string): Promise<boolean> {
    return this.#connection.read((driver) => new SqliteState(driver).folderUsed(folder));
  }

  async referencedKeys(keys: readonly string[]): Promise<Set<string>> {
    return this.#connection.read((driver) => findKeyUse(driver, keys).used);
  }

  async unusedKeys(keys: readonly string[]): Promise<Set<string>> {
    return this.#connection.read((driver) => findKeyUse(driver, keys).unused);
  }

  async commit(draft: Draft): Promise<CommitResult> {
    checkDraft(draft);
    const result = await this.#commits.commit(draft, this.#newId());
    if (result.status === "committed") this.#onCommit?.(draft);
    return result;
  }

  /** A local catalog is all there is. */
  async refresh(): Promise<void> {}

  async exportTo(path: string): Promise<void> {
    await this.#connection.copyTo(path);
  }

  async retire(snapshot: number, copy?: string): Promise<boolean> {
    return this.#surely((driver) => {
      const state = new SqliteState(driver);
      if (state.mode() !== "moved") {
        state.checkMode(this.lakeId, "local");
        if (state.head().n !== snapshot) return false;
        driver.run("UPDATE meta SET mode = 'moved', moved_to = ?", copy ?? null);
        return true;
      }
      const movedTo = driver.get<{ moved_to: string | null }>("SELECT moved_to FROM meta")?.moved_to;
      if (copy !== undefined && copy !== movedTo) state.checkMode(this.lakeId, "local");
      return state.head().n === snapshot;
    });
  }

  /** It keeps nothing there. */
  async tidy(): Promise<void> {}

  /**
   * Of an index: the entry that drafts may become together after the entries that are known here, and what becomes of
   * each. Nothing is written.
   * @param drafts several only if each of them {@link sharesEntry}
   * @param now milliseconds since the epoch
   */
  async propose(drafts: readonly Draft[], now: number): Promise<Proposal> {
    const id = this.#newId();
    return this.#connection.read((driver) => {
      const state = new SqliteState(driver);
      state.checkMode(this.lakeId, "shared");
      const { entry, ...plan } = planGroup(state, drafts, this.#author(id, Math.trunc(now)));
      return { ...plan, entry: entry && { n: entry.n, id, bytes: encodeEntry(entry) } };
    });
  }

  /** Of a local catalog: the next entries that {@link setJournaled} does not cover, up to so many bytes and at least one. */
  async journalPage(maxBytes: number): Promise<JournalPage | undefined> {
    return this.#connection.read((driver) => readJournal(driver, maxBytes));
  }

  /** The entry up to which all are kept in the store too. */
  async journaled(): Promise<number> {
    return this.#connection.read(journaledUpTo);
  }

  /** Losing this is harmless: entries are written again. */
  async setJournaled(n: number): Promise<void> {
    await this.#writeLocal((driver) => setJournaled(driver, n));
  }

  /**
   * Of an index, or of a local catalog that is rebuilt: takes over an entry of the log. One that is known already, because another process of this host was
   * first, is compared instead. `stub`: nothing was done, since only a stub is left of an entry that is not known here.
   * @throws CatalogError `log_replaced` if another entry is known under its number
   * @throws CorruptionError `bad_entry`
   */
  async applyEntry(bytes: Uint8Array): Promise<"known" | "stub"> {
    if (isStub(bytes)) {
      const { n, id, lake } = decodeStub(bytes);
      const known = await this.entryId(n);
      if (lake !== this.lakeId || (known !== undefined && known !== id)) throw logReplaced(n);
      return known === undefined ? "stub" : "known";
    }
    const entry = decodeEntry(bytes);
    await this.#follow((driver) => this.#takeOver(driver, entry));
    return "known";
  }

  /**
   * Of an index: takes over a checkpoint, unless it is older than what is known here.
   * @throws CatalogError `log_replaced` if it is of another log
   * @throws CorruptionError `bad_checkpoint`
   */
  async applyCheckpoint(checkpoint: CheckpointContent): Promise<void> {
    await this.#follow((driver) => {
      const state = new SqliteState(driver);
      state.checkMode(this.lakeId, "shared");
      const { n, id } = state.head();
      const theirs = n === 0 ? id : checkpoint.entryId(n);
      if (theirs === undefined) return; // older
      if (theirs !== id) throw logReplaced(n);
      replaceTables(driver, checkpoint.tables());
      this.#layouts.clear();
    });
  }

  /** Entries after entry n, and their bytes: what a checkpoint of n leaves to be read. */
  async replayAfter(n: number): Promise<{ readonly entries: number; readonly bytes: number }> {
    return this.#connection.read((driver) => {
      const head = new SqliteState(driver).head().n;
      return { entries: head - n, bytes: logEnd(driver, head) - logEnd(driver, n) };
    });
  }

  /** The id of an entry; undefined if there is none. */
  async entryId(n: number): Promise<string | undefined> {
    return this.#connection.read((driver) => entryId(driver, n));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#commits.idle();
    await this.#connection.close();
  }

  /** Writes to an index what the log has and can give again: no fsync. */
  async #follow(body: (driver: SqliteDriver) => void): Promise<void> {
    return this.#surely(body, false);
  }

  /** Writes what may be written twice: a COMMIT that failed is tried again, whether or not it took effect. */
  async #surely<T>(body: (driver: SqliteDriver) => T, durable?: boolean): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#write(body, durable);
      } catch (error) {
        if (!(error instanceof CommitUnknown)) throw error;
        if (tries === COMMIT_TRIES) throw error.cause;
      }
    }
  }

  /** Writes what is of this host alone: losing it is harmless, so it costs no fsync. */
  async #writeLocal<T>(body: (driver: SqliteDriver) => T): Promise<T> {
    try {
      return await this.#writeAside(body, false);
    } catch (error) {
      throw error instanceof CommitUnknown ? error.cause : error;
    }
  }

  async #write<T>(body: (driver: SqliteDriver) => T, durable?: boolean): Promise<T> {
    return this.#writeAside((driver) => {
      this.#commits.forget();
      return body(driver);
    }, durable);
  }

  /** Writes what commits of this process know of, or do not depend on. */
  async #writeAside<T>(body: (driver: SqliteDriver) => T, durable?: boolean): Promise<T> {
    if (this.#readonly) {
      throw new CatalogError(
        "catalog_read_only",
        "the lake is open for reading only: open it with mode `open` to write",
      );
    }
    return this.#connection.write(body, durable);
  }

  #takeOver(driver: SqliteDriver, entry: Entry): void {
    const state = new SqliteState(driver);
    state.checkMode(this.lakeId, this.kind);
    if (entry.n > state.head().n) {
      assertFollows(state, entry, this.lakeId);
      writeEntry(driver, state, entry);
      this.#layouts.changed(entry.operations);
    } else if (entryId(driver, entry.n) !== entry.id) throw logReplaced(entry.n);
  }

  #author(id: string, now: number) {
    return { lake: this.lakeId, id, writer: this.#writer, host: this.#host, now };
  }
}

function entryId(driver: SqliteDriver, n: number): string | undefined {
  return driver.get<{ id: string }>("SELECT id FROM entries WHERE n = ?", n)?.id;
}

/** Bytes of all entries up to n. */
function logEnd(driver: SqliteDriver, n: number): number {
  return driver.get<{ log_end: number }>("SELECT log_end FROM entries WHERE n = ?", n)?.log_end ?? 0;
}

/** The log has another entry than the one that was applied: it is another log. */
function logReplaced(n: number): CatalogError {
  return new CatalogError(
    "log_replaced",
    `entry ${n} of the log is not the one that this host knows: the store was replaced or restored. ` +
      "Delete this host's index to go on with what the store has now",
    { subject: String(n) },
  );
}
