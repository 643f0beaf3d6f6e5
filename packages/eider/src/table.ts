import {
  checkBatchId,
  type Draft,
  type ListedFile,
  type ListedReject,
  type Receipt,
  type TableInfo,
} from "@eider/catalog";
import { AlreadyExistsError, NotFoundError } from "@eider/core";
import { snapshotOf } from "@eider/query";
import { type AppendContext, append, appendInput, findKnown } from "./commit/append.js";
import { appendParts } from "./commit/append-parts.js";
import { batchKey } from "./commit/batch-key.js";
import { foldTable } from "./commit/fold.js";
import { replay } from "./commit/replay.js";
import { rollback } from "./commit/rollback.js";
import { assertMatches, newFolder, planTable, type TablePlan, tableOperation } from "./commit/table-plan.js";
import { traced } from "./diagnostics.js";
import { type Change, type FeedOptions, feed } from "./feed.js";
import type { OpenLake } from "./open.js";
import {
  checkAppendOptions,
  checkAppendPartsOptions,
  checkFeedOptions,
  checkPurgeRejectsOptions,
  checkRejectsOptions,
  checkReplayOptions,
  checkTableWriterOptions,
} from "./option-rules.js";
import type {
  AppendOptions,
  AppendPartsOptions,
  AppendPartsResult,
  AppendResult,
  PurgeRejectsOptions,
  PurgeRejectsResult,
  RejectsOptions,
  ReplayOptions,
  Source,
  SourceBatch,
  TableDescription,
  TableOptions,
} from "./options.js";
import { purgeRejects } from "./purge-rejects.js";
import { assertRejectId } from "./reject-pages.js";
import { APPEND_LAYOUT, type FileLayout, fileLayout } from "./writer/layout.js";
import { filesReady } from "./writer/object-writer.js";
import { TableWriter, type TableWriterOptions } from "./writer/table-writer.js";

/** What a table needs of its lake: the parts, while it is open. */
export interface TableHost {
  readonly open: OpenLake;
  /** Runs work that the lake's `close` waits for. @throws CatalogError `lake_closed` */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** @throws CatalogError `read_only` */
  assertWritable(): void;
  /** Something may have been appended. Never waits, never fails. */
  appended(): void;
  /** Writers that are neither closed nor given up; the lake's `close` gives them up. */
  readonly writers: Set<{ abort(reason: unknown): Promise<void> }>;
}

/**
 * A handle to a table, from `lake.table(…)`. Making one costs nothing and touches nothing: the table is created by its
 * first append. `R` is a row as it is appended.
 */
export class Table<R = object> {
  readonly name: string;
  readonly #host: TableHost;
  readonly #plan: TablePlan;

  /** Use `lake.table(…)`. */
  constructor(host: TableHost, name: string, options: TableOptions) {
    this.#host = host;
    this.#plan = planTable(name, options);
    this.name = this.#plan.name;
  }

  /**
   * Appends a batch: all of its rows, or nothing. With a `batchId` it may be retried, raced or repeated freely: it is
   * committed once.
   * @throws InvalidInputError the input or some rows of it cannot be taken; nothing was committed
   * @throws SchemaError the table's schema or options do not allow it
   * @throws BatchConflictError the batch id was committed with other content
   * @throws CatalogError `commit_unknown`: append again with the same batch id to learn the outcome
   */
  append(source: Source<R>, options: AppendOptions = {}): Promise<AppendResult> {
    return this.#host.run(() => {
      checkAppendOptions(options);
      this.#host.assertWritable();
      const context = appendContext(this.#host.open, APPEND_LAYOUT);
      const { batchId } = options;
      const id = batchId === undefined ? undefined : batchKey(batchId).id;
      return this.#traced(id, () => append(context, this.#plan, source as Source, options));
    });
  }

  /**
   * Appends a source too long to be begun again: in parts, each a batch `<batchId>/<n>` that is visible once it is
   * committed, and at the end an empty batch `<batchId>`, which says that all are there. Called again with the same source,
   * `batchId` and `partBytes` after whatever ended it, it goes on with the first part that is missing; those before are
   * read and compared, or with `onSeen: "trust"`, once all are there, not even that. Text is cut between rows, Arrow between record batches,
   * Parquet between row groups.
   * @throws InvalidInputError `not_divisible` the input cannot be cut: append it whole. Or a part cannot be taken: those
   * before it are committed
   * @throws BatchConflictError the source or `partBytes` is not what it was; the message names the part
   */
  appendParts(source: Source<R>, options: AppendPartsOptions): Promise<AppendPartsResult> {
    return this.#host.run(() => {
      checkAppendPartsOptions(options);
      this.#host.assertWritable();
      const context = appendContext(this.#host.open, APPEND_LAYOUT);
      return this.#traced(options.batchId, () => appendParts(context, this.#plan, source as Source, options));
    });
  }

  /**
   * A writer for rows that come little by little, or are many. They are one batch, visible once the writer is closed, or
   * with `commit: "rotate"` one batch after the other. A writer that is neither closed nor aborted is given up when the
   * lake is closed.
   * @throws InvalidInputError `bad_option`, `bad_batch_id`
   */
  writer(options: TableWriterOptions = {}): TableWriter<R> {
    checkTableWriterOptions(options);
    this.#host.assertWritable();
    const { open, writers } = this.#host;
    const batchId = options.batchId ?? open.newId();
    // The longest id that a part may get.
    checkBatchId(options.commit === "rotate" ? `${batchId}/${Number.MAX_SAFE_INTEGER}` : batchId);
    const {
      batchId: _,
      commit,
      rotate,
      schemaMode,
      onReject,
      maxRejects,
      meta,
      signal,
      onCommitted,
      onProgress,
      ...files
    } = options;
    // Checked in both cases: a batch of no rows would never be full.
    const cutFiles = fileLayout(files, rotate);
    const layout = commit === "rotate" ? fileLayout(files) : cutFiles;
    const ofFiles = commit === "rotate" ? files : { ...files, ...rotate };
    const wantsFiles = Object.values(ofFiles).some((value) => value !== undefined);
    const context = appendContext(open, layout, wantsFiles ? 0 : open.inlineBytes);
    const ready = filesReady(context.layout.parquet);
    ready.catch(() => {});
    let end = (): void => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const writer: TableWriter<R> = new TableWriter<R>(
      {
        tempFolder: open.tempFolder,
        append: async (input, id, append) => {
          await ready;
          return this.#traced(id, () => appendInput(context, this.#plan, input, { id }, append));
        },
        committedRows: (id) => this.#committedRows(id),
        onClosing: () => writers.delete(writer),
        onEnd: () => {
          writers.delete(writer);
          end();
        },
      },
      batchId,
      options,
    );
    writers.add(writer);
    // The lake's `close` waits for it.
    this.#host.run(() => ended).catch(() => {});
    return writer;
  }

  /**
   * Creates the table without rows. A table made by its first append needs no such call.
   * @throws AlreadyExistsError `table_exists`, unless `ifNotExists`
   * @throws SchemaError with `ifNotExists`: the existing table has other options
   */
  create(options: { readonly ifNotExists?: boolean } = {}): Promise<TableDescription> {
    return this.#host.run(async () => {
      this.#host.assertWritable();
      const { catalog, newId } = this.#host.open;
      await catalog.refresh();
      const found = await catalog.table(this.name);
      if (found && !options.ifNotExists) {
        throw new AlreadyExistsError("table_exists", `table ${this.name} exists`, { subject: this.name });
      }
      if (found) assertMatches(this.#plan, found);
      else {
        const id = newId();
        const draft: Draft = { operations: [tableOperation(this.#plan, id, await newFolder(catalog, this.#plan, id))] };
        const result = await catalog.commit(draft);
        if (result.status === "stale" && !options.ifNotExists) {
          throw new AlreadyExistsError("table_exists", `table ${this.name} exists`, { subject: this.name });
        }
      }
      return describe(await this.#info());
    });
  }

  /**
   * Drops the table. Its rows stay readable at earlier snapshots; a new table of the same name starts fresh.
   * @throws NotFoundError `table_not_found`
   */
  drop(): Promise<{ readonly snapshot: number }> {
    return this.#host.run(async () => {
      this.#host.assertWritable();
      const table = await this.#info();
      const result = await this.#host.open.catalog.commit({ operations: [{ op: "drop", table: table.id }] });
      if (result.status !== "committed") throw this.#missing();
      return { snapshot: result.snapshot };
    });
  }

  /** Schema, options and size. @throws NotFoundError `table_not_found` */
  describe(options: { readonly at?: number | string | Date } = {}): Promise<TableDescription> {
    return this.#host.run(async () => describe(await this.#info(await this.#snapshot(options.at))));
  }

  /**
   * The receipt of a batch, for ever; undefined when no such batch was committed. For a part of a source that others have
   * followed, the receipt of its last part.
   */
  receipt(batchId: string | SourceBatch): Promise<Receipt | undefined> {
    return this.#host.run(async () => {
      const { catalog } = this.#host.open;
      const batch = batchKey(batchId);
      await catalog.refresh();
      const table = await catalog.table(this.name);
      return table && (await findKnown(catalog, table, batch))?.receipt;
    });
  }

  /**
   * What was committed to the table, one batch after the other, in order, without gap or repetition: from a position on
   * (default: the beginning) up to now, or with `follow` for as long as the table is there. Rows are read when they are
   * asked for, as they were committed.
   * @throws NotFoundError `table_not_found`, unless it is followed
   * @throws InvalidInputError `bad_position` for one that the lake has not come to
   * @throws CatalogError `table_replaced` for one in an earlier table of this name; `cursor_expired` where what lies behind
   * the position is kept no longer
   */
  changes(options: FeedOptions = {}): AsyncIterable<Change> {
    checkFeedOptions(options);
    return feed(this.#host, this.name, options);
  }

  /**
   * Makes the table what it was at a snapshot, rows and columns, by a new commit: whatever came since stays readable at its
   * own snapshots, and batches that are rolled back are known all the same.
   * @param options.to a snapshot's number, a tag or an instant
   * @throws NotFoundError `table_not_found` if it is not there now, or was not then
   */
  rollback(options: { readonly to: number | string | Date }): Promise<{ readonly snapshot: number }> {
    return this.#host.run(async () => {
      this.#host.assertWritable();
      return rollback(this.#host.open.catalog, options.to, this.name);
    });
  }

  /** Receipts, newest first, `limit` (default 1000) at a time; `before` continues after the last snapshot of a page. */
  batches(options: { readonly before?: number; readonly limit?: number } = {}): Promise<Receipt[]> {
    return this.#host.run(async () => this.#host.open.catalog.batches((await this.#info()).id, options));
  }

  /**
   * Rows kept aside by `onReject: "quarantine"`, in the order of their commits, `limit` (default 1000) at a time; `after`
   * continues behind the last one of a page.
   * @throws NotFoundError `table_not_found`
   */
  rejects(options: RejectsOptions = {}): Promise<ListedReject[]> {
    return this.#host.run(async () => {
      checkRejectsOptions(options);
      if (options.after !== undefined) assertRejectId(options.after);
      return this.#host.open.catalog.rejects((await this.#info()).id, options);
    });
  }

  /**
   * Appends rejects in another try, at most 10,000 at a time: their texts, or what `map` makes of them, as one batch whose
   * id is made of theirs. Each reject is taken once: the same ones again are a duplicate, whoever was first. Rows that cannot
   * be taken this time either fail the replay, which names them by their place, or become rejects of the new batch.
   * @throws NotFoundError `reject_not_found`
   * @throws BatchConflictError `reject_replayed` one of them was replayed together with others; `batch_conflict` they were
   * replayed with other texts
   * @throws InvalidInputError `reject_purged`, `reject_incomplete` the text is not there or not whole; as for `append`
   */
  replay(ids: readonly string[], options: ReplayOptions = {}): Promise<AppendResult> {
    return this.#host.run(() => {
      checkReplayOptions(options);
      this.#host.assertWritable();
      const context = appendContext(this.#host.open, APPEND_LAYOUT);
      return this.#traced(undefined, () => replay(context, this.#plan, ids, options));
    });
  }

  /**
   * Takes the texts of rejects away, for good and at all snapshots; what was wrong with them stays, and receipts still
   * count them. May block for seconds while the catalog's file is written anew. Call it again where it was stopped.
   * @throws NotFoundError `table_not_found`, `reject_not_found`
   */
  purgeRejects(options: PurgeRejectsOptions): Promise<PurgeRejectsResult> {
    return this.#host.run(async () => {
      checkPurgeRejectsOptions(options);
      this.#host.assertWritable();
      return purgeRejects(this.#host.open, await this.#info(), options);
    });
  }

  /** The data files at a snapshot (default: now), in order of commit. */
  files(options: { readonly at?: number | string | Date } = {}): Promise<ListedFile[]> {
    return this.#host.run(async () => {
      const at = await this.#snapshot(options.at);
      return this.#host.open.catalog.files((await this.#info(at)).id, at);
    });
  }

  /**
   * A `read_parquet([…])` text that any DuckDB runs, and that gives the rows of this table. Without `at`, on a lake that is
   * open for writing, hot batches are folded into files first.
   * @throws QueryError `hot_rows` if some rows are in no file
   */
  filesSql(options: { readonly at?: number | string | Date } = {}): Promise<string> {
    return this.#host.run(async () => {
      const { open } = this.#host;
      const at = await this.#snapshot(options.at);
      if (at === undefined && !open.readOnly) {
        const { id } = await this.#info();
        await foldTable(appendContext(open, APPEND_LAYOUT), id, { until: (await open.catalog.head()).snapshot });
      }
      return (await open.engine()).filesSql(this.name, at);
    });
  }

  async #traced<T>(batchId: string | undefined, work: () => Promise<T>): Promise<T> {
    const result = await traced("append", { table: this.name, ...(batchId !== undefined && { batchId }) }, work);
    this.#host.appended();
    return result;
  }

  /** Rows that went into a batch, rejected ones included. */
  async #committedRows(batchId: string): Promise<number | undefined> {
    const { catalog } = this.#host.open;
    const table = await catalog.table(this.name);
    const receipt = table && (await catalog.receipt(table.id, batchId));
    return receipt && receipt.rows + receipt.rejected;
  }

  async #snapshot(at: number | string | Date | undefined): Promise<number | undefined> {
    return at === undefined ? undefined : snapshotOf(this.#host.open.catalog, at);
  }

  async #info(at?: number): Promise<TableInfo> {
    if (at === undefined) await this.#host.open.catalog.refresh();
    const table = await this.#host.open.catalog.table(this.name, at);
    if (!table) throw this.#missing(at);
    return table;
  }

  #missing(at?: number): NotFoundError {
    const when = at === undefined ? "" : ` at snapshot ${at}`;
    return new NotFoundError("table_not_found", `there is no table ${this.name}${when}`, { subject: this.name });
  }
}

/** What an append needs of a lake. */
export function appendContext(
  open: OpenLake,
  layout: FileLayout,
  inlineBytes: number = open.inlineBytes,
): AppendContext {
  return {
    store: open.store,
    catalog: open.catalog,
    tempFolder: open.tempFolder,
    openParquet: async (path: string, name: string) => (await open.engine()).openParquet(path, name),
    newId: open.newId,
    logger: open.logger,
    ranges: open.ranges,
    timer: open.timer,
    layout,
    inlineBytes,
  };
}

/** What users see of a table. */
export function describe(table: TableInfo): TableDescription {
  const { name, schema, schemaVersion, partitionBy, orderBy, rows, files, bytes, hotBatches, hotBytes } = table;
  return { name, schema, schemaVersion, partitionBy, orderBy, rows, files, bytes, hotBatches, hotBytes };
}
