import type { CursorInfo, SnapshotInfo, TagInfo, ViewInfo } from "@eider/catalog";
import { CatalogError } from "@eider/core";
import { makeSql, type QueryOptions, type ScopeOptions, type Sql, type SqlRunner, snapshotOf } from "@eider/query";
import { type ObjectStore, openStore } from "@eider/storage";
import { AutoMaintenance } from "./auto-maintenance.js";
import { rollback } from "./commit/rollback.js";
import { copyLake, shareLake } from "./copy.js";
import { Cursor } from "./cursor.js";
import { traced } from "./diagnostics.js";
import { rebuildLake } from "./local/rebuild.js";
import { foldDue, maintain } from "./maintain.js";
import { type OpenLake, openLake } from "./open.js";
import {
  checkCopyOptions,
  checkCreateViewOptions,
  checkLakeOptions,
  checkMaintainOptions,
  checkQueryOptions,
  checkRebuildOptions,
  checkScopeOptions,
  checkTableOptions,
  checkTransactionOptions,
  checkVerifyOptions,
} from "./option-rules.js";
import type {
  CopyOptions,
  CopyResult,
  LakeLocation,
  LakeOptions,
  MaintainOptions,
  MaintainResult,
  RebuildOptions,
  RebuildResult,
  TableDescription,
  TableOptions,
  TypedTableOptions,
  VerifyOptions,
  VerifyReport,
} from "./options.js";
import { makeScope, type Scope } from "./scope.js";
import { appendContext, describe, Table, type TableHost } from "./table.js";
import { Transaction, type TransactionOptions, type TransactionResult } from "./transaction.js";
import { verify } from "./verify.js";
import { type CreateViewOptions, createView, dropView } from "./views.js";
import { APPEND_LAYOUT } from "./writer/layout.js";

/** A store and a catalog, opened together. Close it, or declare it with `await using`. */
export class Lake implements AsyncDisposable {
  /**
   * Runs one SELECT over the tables of this lake, all of them at one snapshot. As a tagged template its values become
   * parameters; it also takes `(text, params)` and what Kysely's `compile()` and Drizzle's `toSQL()` return.
   */
  readonly sql: Sql;
  readonly #open: OpenLake;
  readonly #host: TableHost;
  readonly #running = new Set<Promise<unknown>>();
  readonly #maintenance: AutoMaintenance | undefined;
  #closed: Promise<void> | undefined;

  private constructor(open: OpenLake, { maintenance = "manual" }: LakeOptions) {
    this.#open = open;
    if (maintenance === "auto" && !open.readOnly) {
      const context = appendContext(open, APPEND_LAYOUT);
      const { timer, logger } = open;
      this.#maintenance = new AutoMaintenance({ timer, logger, work: (signal) => foldDue(open, context, { signal }) });
    }
    this.#host = {
      open,
      run: (work) => this.#run(work),
      assertWritable: () => this.#assertWritable(),
      appended: () => this.#maintenance?.appended(),
      writers: new Set(),
    };
    this.sql = this.with({}).sql;
  }

  /**
   * Opens a lake, and makes it if there is none (see `mode`).
   * @param where a folder (`./lake`, `file:///…`, `C:\lake`), `memory:`, a store and a catalog of your own, or a store alone, which
   * makes a lake that any number of hosts share
   * @throws NotFoundError `lake_not_found`, `not_a_lake`
   * @throws InvalidInputError `bad_store_url`, `bad_option`
   * @throws CatalogError `lake_too_new`, `catalog_missing`, `catalog_mismatch`
   */
  static async open(where: LakeLocation, options: LakeOptions = {}): Promise<Lake> {
    checkLakeOptions(options);
    return new Lake(await openLake(where, options), options);
  }

  /**
   * Makes the catalog of a local lake again that has lost it, from what is kept in the lake's folder besides: the same
   * tables, snapshots, receipts and rows, up to the last commits that were written there. That is done within a second after a
   * commit, and when a lake is closed.
   * @param where the lake's folder or `file:` URL
   * @throws AlreadyExistsError `catalog_exists`; NotFoundError `lake_not_found`; CorruptionError `journal_gap`,
   * `bad_journal`; CatalogError `lake_is_shared`, `lake_moved`
   */
  static async rebuild(where: string | URL, options: RebuildOptions = {}): Promise<RebuildResult> {
    checkRebuildOptions(options);
    return rebuildLake(where, options);
  }

  /** The lake's own id, the same for ever. */
  get id(): string {
    return this.#open.catalog.lakeId;
  }

  /** A handle to a table, which need not exist yet. Its rows are those of the schema, where that has types. */
  table<R extends object>(name: string, options: TypedTableOptions<R>): Table<R>;
  table<R = object>(name: string, options?: TableOptions): Table<R>;
  table<R = object>(name: string, options: TableOptions = {}): Table<R> {
    checkTableOptions(options);
    return new Table<R>(this.#host, name, options);
  }

  /** Live tables, by name; `at` a snapshot number, a tag or an instant. */
  tables(options: { readonly at?: number | string | Date } = {}): Promise<TableDescription[]> {
    return this.#run(async () => {
      const { catalog } = this.#open;
      const at = options.at === undefined ? undefined : await snapshotOf(catalog, options.at);
      if (at === undefined) await catalog.refresh();
      return (await catalog.tables(at)).map(describe);
    });
  }

  /**
   * Gives a SELECT over tables and other views a name, which SQL reads like a table: at each snapshot as it was then. With a
   * text that the view has already, nothing is committed.
   * @throws AlreadyExistsError `table_exists`; `view_exists`, unless with `orReplace`
   * @throws QueryError `bad_view`, and whatever is wrong with the text as a query
   */
  createView(name: string, sql: string, options: CreateViewOptions = {}): Promise<ViewInfo> {
    return this.#run(async () => {
      checkCreateViewOptions(options);
      this.#assertWritable();
      return createView(this.#open, name, sql, options);
    });
  }

  /** Ends a view; older snapshots keep it. @throws NotFoundError `view_not_found` */
  dropView(name: string): Promise<{ readonly snapshot: number }> {
    return this.#run(async () => {
      this.#assertWritable();
      return dropView(this.#open, name);
    });
  }

  /** Live views, by name; `at` a snapshot number, a tag or an instant. */
  views(options: { readonly at?: number | string | Date } = {}): Promise<ViewInfo[]> {
    return this.#run(async () => {
      const { catalog } = this.#open;
      const at = options.at === undefined ? undefined : await snapshotOf(catalog, options.at);
      if (at === undefined) await catalog.refresh();
      return catalog.views(at);
    });
  }

  /** Snapshots in order, `limit` (default 1000) at a time, after a number. */
  snapshots(page: { readonly after?: number; readonly limit?: number } = {}): Promise<SnapshotInfo[]> {
    return this.#run(async () => {
      await this.#open.catalog.refresh();
      return this.#open.catalog.snapshots(page);
    });
  }

  /** The same lake with options for its queries: `lake.with({ at: 12, values: "json" }).sql("…")`. */
  with(options: QueryOptions): SqlRunner {
    checkQueryOptions(options);
    return {
      sql: makeSql(async () => {
        this.#assertOpen();
        return this.#open.engine();
      }, options),
    };
  }

  /**
   * Names a snapshot, for `lake.with({ at: "name" })` and `AT (VERSION => 'name')`. A tag that exists moves there.
   * @param options.at a snapshot's number, another tag or an instant; default: now
   * @throws InvalidInputError `bad_name` if it begins with a digit; `bad_tag` while the lake is empty
   */
  tag(name: string, options: { readonly at?: number | string | Date } = {}): Promise<TagInfo> {
    return this.#run(async () => {
      this.#assertWritable();
      const { catalog } = this.#open;
      const snapshot = await snapshotOf(catalog, options.at);
      await catalog.commit({ operations: [{ op: "tag", name, snapshot }] });
      return { name, snapshot };
    });
  }

  /** @throws NotFoundError `tag_not_found` */
  untag(name: string): Promise<void> {
    return this.#run(async () => {
      this.#assertWritable();
      const { catalog } = this.#open;
      await catalog.resolveSnapshot({ tag: name });
      await catalog.commit({ operations: [{ op: "tag", name }] });
    });
  }

  /** By name. */
  tags(): Promise<TagInfo[]> {
    return this.#run(async () => {
      await this.#open.catalog.refresh();
      return this.#open.catalog.tags();
    });
  }

  /** The place of a consumer in a feed, kept in the lake. It need not exist yet. */
  cursor(name: string): Cursor {
    return new Cursor(this.#host, name);
  }

  /** All cursors that were moved and have not ended, by name. */
  cursors(): Promise<CursorInfo[]> {
    return this.#run(async () => {
      await this.#open.catalog.refresh();
      return this.#open.catalog.cursors();
    });
  }

  /**
   * Makes all tables what they were at a snapshot, by one new commit; see `table.rollback`. Tables that were created since are
   * dropped.
   * @throws CatalogError `rollback_dropped` if a table was dropped since: it does not come back
   */
  rollback(options: { readonly to: number | string | Date }): Promise<{ readonly snapshot: number }> {
    return this.#run(async () => {
      this.#assertWritable();
      return rollback(this.#open.catalog, options.to);
    });
  }

  /**
   * Appends to several tables, creates and drops some, and moves cursors, in one commit: one snapshot has all of it, none has
   * a part. The callback stages; nothing is visible before it returns, and if it throws, nothing happened. A transaction
   * that is repeated with the same batch ids commits once.
   * @throws BatchConflictError `transaction_conflict` if some of its batches are known and others are not
   * @throws CatalogError `snapshot_moved` with `expectSnapshot`; `cursor_moved`; `commit_unknown`: repeat it to learn
   */
  transaction<T>(
    work: (tx: Transaction) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<TransactionResult<T>> {
    return this.#run(async () => {
      checkTransactionOptions(options);
      this.#assertWritable();
      const result = await Transaction.run(this.#open, appendContext(this.#open, APPEND_LAYOUT), work, options);
      this.#host.appended();
      return result;
    });
  }

  /**
   * SQL for people you do not trust with the lake: one SELECT over granted rows and columns, within limits, in a process
   * of its own. Its queries can do nothing else; see the documentation of scopes.
   * @throws InvalidInputError `bad_option`; `bad_scope` with the first query
   */
  scope(options: ScopeOptions): Scope {
    checkScopeOptions(options);
    return makeScope(options, () => {
      this.#assertOpen();
      return this.#open.engine();
    });
  }

  /**
   * Folds hot batches into data files, and removes what writers left behind. Safe at any time, while others read and
   * write; nothing that a query of any snapshot sees changes.
   */
  maintain(options: MaintainOptions = {}): Promise<MaintainResult> {
    return this.#run(() => {
      checkMaintainOptions(options);
      this.#assertWritable();
      return traced("maintain", {}, () => maintain(this.#open, appendContext(this.#open, APPEND_LAYOUT), options));
    });
  }

  /** Checks every live data file against the catalog, and finds objects that no snapshot names. Changes nothing. */
  verify(options: VerifyOptions = {}): Promise<VerifyReport> {
    return this.#run(async () => {
      checkVerifyOptions(options);
      return verify(this.#open, options);
    });
  }

  /**
   * Copies the lake into a new or empty store, where it is another lake that hosts share, with all that this one has:
   * snapshots, receipts, history. It may be stopped at any point and called again; this lake is only read.
   * @param to a URL, or a store, which stays open
   * @throws AlreadyExistsError `place_taken`; StoreError `not_shareable`; CorruptionError `file_changed`
   */
  copyTo(to: string | URL | ObjectStore, options: CopyOptions = {}): Promise<CopyResult> {
    return this.#run(async () => {
      checkCopyOptions("copyTo", options);
      return withStore(to, (store) => copyLake(this.#open, store, options));
    });
  }

  /**
   * Moves a local lake into a new or empty store, where any number of hosts share it from then on; it stays the same
   * lake. What is here can still be read, and commits nothing any more (`lake_moved`). It may be stopped at any point and
   * called again. Stop before that writers that would only fail.
   * @param to a URL, or a store, which stays open
   * @throws AlreadyExistsError `place_taken`; StoreError `not_shareable`; CorruptionError `file_changed`; CatalogError
   * `lake_is_shared`
   */
  share(to: string | URL | ObjectStore, options: CopyOptions = {}): Promise<CopyResult> {
    return this.#run(async () => {
      checkCopyOptions("share", options);
      this.#assertWritable();
      return withStore(to, (store) => shareLake(this.#open, store, options));
    });
  }

  /**
   * Waits for appends in progress, gives up writers that are not closed and maintenance in the background, then lets go of everything. Calls after it fail
   * with `lake_closed`.
   */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      const reason = new CatalogError("lake_closed", "the lake was closed before this writer");
      for (const writer of this.#host.writers) void writer.abort(reason);
      await Promise.allSettled([...this.#running, this.#maintenance?.[Symbol.asyncDispose]()]);
      await this.#open.release();
    })();
    return this.#closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  #assertOpen(): void {
    if (this.#closed) throw new CatalogError("lake_closed", "the lake is closed: open it again");
  }

  #assertWritable(): void {
    if (this.#open.readOnly) {
      throw new CatalogError("read_only", 'the lake was opened with mode: "read": open it without to write');
    }
  }
}

async function withStore<T>(to: string | URL | ObjectStore, work: (store: ObjectStore) => Promise<T>): Promise<T> {
  if (typeof to !== "string" && !(to instanceof URL)) return work(to);
  await using store = await openStore(to);
  return await work(store);
}
