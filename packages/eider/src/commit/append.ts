/**
 * An append, from its source to its receipt. The steps and their order are the commit protocol's:
 *
 * 1. look the batch id up: what is committed already is only compared
 * 2. announce that files will be staged (an intent), which also fixes their base snapshot
 * 3. read, encode and put data files: nothing of it is visible
 * 4. commit one entry: **the commit point**
 * 5. if the entry lost against another writer's (`stale`), forget what was staged and start again at 1
 *
 * What was staged is deleted only when the outcome is certain.
 */

import type { Catalog, CommitResult, Draft, Operation, Receipt, TableInfo, Timer } from "@eider/catalog";
import {
  BatchConflictError,
  CatalogError,
  childFields,
  type Field,
  InvalidInputError,
  lastFieldId,
  parseOrderBy,
  parsePartitionBy,
  type Schema,
  sameSchema,
  storedSchema,
} from "@eider/core";
import type { RangePool } from "@eider/core/ranges";
import type { ParquetImport } from "@eider/query";
import type { ObjectStore } from "@eider/storage";
import type { AppendOptions, AppendResult, Logger, Progress, Source } from "../options.js";
import { type Input, openInput } from "../source/input.js";
import type { FileLayout } from "../writer/layout.js";
import { type BatchKey, batchKey } from "./batch-key.js";
import type { ReadCounters, ReadOptions, ReadResult } from "./pass.js";
import { hashInput, readInput } from "./read.js";
import { Stage } from "./stage.js";
import { assertPlannable } from "./stale.js";
import {
  assertMatches,
  assertPartitionsKept,
  canonicalLayout,
  newFolder,
  type TablePlan,
  tableOperation,
  withColumns,
} from "./table-plan.js";

/** An append starts over when another writer changed the table meanwhile; so often, and then it says so. */
const MAX_ATTEMPTS = 20;
const NO_VALUES = { min: 0n, max: 0n };

/** What an append needs of its lake. */
export interface AppendContext {
  readonly store: ObjectStore;
  readonly catalog: Catalog;
  readonly tempFolder: string;
  readonly openParquet: (path: string) => Promise<ParquetImport>;
  readonly logger: Logger;
  readonly ranges: RangePool;
  readonly layout: FileLayout;
  readonly timer: Timer;
  /** A random id for a file, a table or a batch; sorts by time. */
  readonly newId: () => string;
}

export async function append(
  context: AppendContext,
  plan: TablePlan,
  source: Source,
  options: AppendOptions,
): Promise<AppendResult> {
  options.signal?.throwIfAborted();
  // Told before the source is read, not after.
  const batch = batchKey(options.batchId ?? context.newId());
  if (options.onSeen === "trust") {
    const table = await context.catalog.table(plan.name);
    const known = table && (await findKnown(context.catalog, table, batch));
    if (known) return duplicate(known.receipt);
  }
  const input = await openInput(source, { tempFolder: context.tempFolder, signal: options.signal });
  return appendInput(context, plan, input, batch, options);
}

/** Appends an input that is open already, and disposes of it. */
export async function appendInput(
  context: AppendContext,
  plan: TablePlan,
  input: Input,
  batch: BatchKey,
  options: AppendOptions,
): Promise<AppendResult> {
  const started = context.timer.now();
  try {
    for (let attempt = 1; ; attempt++) {
      const result = await new Attempt(context, plan, input, batch, options, started).run();
      if (result !== "stale") return result;
      if (attempt === MAX_ATTEMPTS) {
        throw new CatalogError(
          "too_contended",
          `table ${plan.name} changed ${attempt} times during this append: try again`,
          {
            subject: plan.name,
            retryable: true,
          },
        );
      }
    }
  } finally {
    if (input.kind === "bytes") await input.bytes[Symbol.asyncDispose]();
    if (input.kind === "rows") await input.rows[Symbol.asyncDispose]();
    if (input.kind === "batches") await input.batches[Symbol.asyncDispose]();
  }
}

/** What is known of a batch; of one that its source is far beyond, the receipt of the source's last. */
export async function findKnown(
  catalog: Catalog,
  table: TableInfo,
  { id, range }: BatchKey,
): Promise<{ readonly receipt: Receipt; readonly comparable: boolean } | undefined> {
  if (!range) {
    const receipt = await catalog.receipt(table.id, id);
    return receipt && { receipt, comparable: true };
  }
  const mark = await catalog.sourceMark(table.id, range.source);
  if (!mark || BigInt(range.last) > BigInt(mark.last)) return undefined;
  return { receipt: mark.receipt, comparable: mark.receipt.batchId === id };
}

function duplicate(receipt: Receipt): AppendResult {
  return { status: "duplicate", rowsAdded: 0, rowsRejected: 0, receipt };
}

/** One try: from a look at the head to a committed entry, or `stale`. */
class Attempt {
  readonly #context: AppendContext;
  readonly #plan: TablePlan;
  readonly #input: Input;
  readonly #batch: BatchKey;
  readonly #options: AppendOptions;
  readonly #started: number;
  #phase: Progress["phase"] = "read";
  #counters: ReadCounters = { bytes: 0, rows: 0, rejected: 0 };

  constructor(
    context: AppendContext,
    plan: TablePlan,
    input: Input,
    batch: BatchKey,
    options: AppendOptions,
    started: number,
  ) {
    this.#context = context;
    this.#plan = plan;
    this.#input = input;
    this.#batch = batch;
    this.#options = options;
    this.#started = started;
  }

  async run(): Promise<AppendResult | "stale"> {
    const { catalog } = this.#context;
    const table = await this.#find();
    if (table) {
      assertMatches(this.#plan, table);
      const known = await findKnown(catalog, table, this.#batch);
      if (known) return known.comparable ? this.#compare(known.receipt, table) : duplicate(known.receipt);
    }
    const intent = await catalog.begin();
    let stage: Stage | undefined;
    let settled = false;
    try {
      const target = await this.#target(table);
      const read = await readInput(this.#input, this.#readOptions(table), {
        restart: async (schema) => {
          await stage?.discard();
          stage = this.#newStage(target, schema, intent.base);
          return stage.keepsOrder ? "rowGroups" : "batches";
        },
        add: (batch) => stage!.add(batch),
        addRowGroup: (group) => stage!.addRowGroup(group),
      });
      this.#assertStorable(read);
      this.#enter("upload");
      const files = await stage!.finish();
      this.#enter("commit");
      this.#options.signal?.throwIfAborted();
      const { operations, schemaVersion } = this.#schemaOperations(target, read.schema);
      const { cursor } = this.#options;
      const { id: batch, range } = this.#batch;
      const draft: Draft = {
        operations: [
          ...operations,
          {
            op: "append",
            table: target.id,
            batch,
            ...(range && { range }),
            hash: read.contentHash,
            rows: read.rows,
            schemaVersion,
            files: files.map((file) => ({ ...file, schemaVersion })),
            rejects: read.rejects,
          },
          ...(cursor ? [{ op: "cursor" as const, ...cursor }] : []),
        ],
        intent: intent.id,
        ...(this.#options.meta && { meta: this.#options.meta }),
      };
      const outcome = await catalog.commit(draft);
      settled = outcome.status === "committed";
      return this.#answer(outcome, read);
    } catch (error) {
      // Nobody knows yet whether the entry is there: its files must stay. A retry with the same batch id settles it.
      settled = error instanceof CatalogError && error.code === "commit_unknown";
      throw error;
    } finally {
      if (!settled) await this.#giveUp(stage, intent.id);
    }
  }

  /** Asks the other hosts only where it costs little: before a table is made that may exist. */
  async #find(): Promise<TableInfo | undefined> {
    const { catalog } = this.#context;
    const table = await catalog.table(this.#plan.name);
    if (table || catalog.kind === "local") return table;
    await catalog.refresh();
    return catalog.table(this.#plan.name);
  }

  /** Deletes what was staged. Where that fails too, the files are orphans, which `maintain` removes in time. */
  async #giveUp(stage: Stage | undefined, intent: string): Promise<void> {
    try {
      await stage?.discard();
      await this.#context.catalog.abandon(intent);
    } catch (error) {
      this.#context.logger.warn?.("staged files could not be removed and are left for maintenance", {
        table: this.#plan.name,
        batchId: this.#batch.id,
        error,
      });
    }
  }

  /** The batch id is taken: the same content is a duplicate, other content a conflict. */
  async #compare(known: Receipt, table: TableInfo): Promise<AppendResult> {
    const hash = await hashInput(this.#input, this.#readOptions(table));
    if (hash !== known.contentHash) {
      throw new BatchConflictError(
        "batch_conflict",
        `batch ${JSON.stringify(this.#batch.id)} of table ${table.name} was committed in snapshot ${known.snapshot} with other content: choose another batch id`,
        { subject: this.#batch.id },
      );
    }
    return duplicate(known);
  }

  #answer(outcome: CommitResult, read: ReadResult): AppendResult | "stale" {
    switch (outcome.status) {
      case "stale":
        assertPlannable(outcome);
        return "stale";
      case "duplicate":
        return duplicate(outcome.receipts[0]!);
      case "committed":
        return {
          status: "committed",
          rowsAdded: read.rows,
          rowsRejected: read.rejects.length,
          ...(read.ignoredFields.size > 0 && { ignoredFields: Object.fromEntries(read.ignoredFields) }),
          receipt: outcome.receipts[0]!,
        };
    }
  }

  /** The table to append to: as it is, or as this very commit creates it. */
  async #target(table: TableInfo | undefined): Promise<Target> {
    if (table) return { id: table.id, folder: table.folder, table };
    const id = this.#context.newId();
    return { id, folder: await newFolder(this.#context.catalog, this.#plan, id), table: undefined };
  }

  #newStage(target: Target, schema: Schema, base: number): Stage {
    const stored = storedSchema(schema);
    const { partitionBy, orderBy } =
      target.table ?? canonicalLayout(this.#plan.partitionBy ?? [], this.#plan.orderBy ?? [], schema);
    return new Stage({
      store: this.#context.store,
      folder: target.folder,
      base,
      schema: stored,
      partitionBy: partitionBy.map((text) => parsePartitionBy(text, schema)),
      orderBy: parseOrderBy(orderBy, schema),
      layout: this.#context.layout,
      keyValues: {
        "eider.table": this.#plan.name,
        "eider.batch": this.#batch.id,
        "eider.snapshot": String(base),
        "eider.schema": JSON.stringify(schema),
      },
      newId: this.#context.newId,
      signal: this.#options.signal,
    });
  }

  #readOptions(table: TableInfo | undefined): ReadOptions {
    const { described } = this.#plan;
    const evolves = (this.#options.schemaMode ?? "evolve") === "evolve";
    const existing = table && described && evolves ? withColumns(table, described) : table?.schema;
    const declared = existing ?? this.#plan.schema;
    return {
      append: this.#options,
      schema: declared && declared.fields.length > 0 ? declared : undefined,
      lastFieldId: Math.max(table?.lastFieldId ?? 0, declared ? lastFieldId(declared) : 0),
      validator: this.#plan.validator,
      integerBounds: () => this.#integerBounds(table),
      openParquet: this.#context.openParquet,
      tempFolder: this.#context.tempFolder,
      ranges: this.#context.ranges,
      timer: this.#context.timer,
      onCounters: (counters) => {
        this.#counters = counters;
        this.#report();
      },
    };
  }

  /** The operations that bring the table to `schema`: its creation, a new version, or none. */
  #schemaOperations(
    { id, folder, table }: Target,
    schema: Schema,
  ): { operations: readonly Operation[]; schemaVersion: number } {
    if (!table) return { operations: [tableOperation(this.#plan, id, folder, schema)], schemaVersion: 1 };
    if (sameSchema(table.schema, schema)) return { operations: [], schemaVersion: table.schemaVersion };
    assertPartitionsKept(table, schema);
    const version = table.schemaVersion + 1;
    const newest = Math.max(table.lastFieldId, lastFieldId(schema));
    return {
      operations: [{ op: "schema", table: id, version, schema, lastFieldId: newest }],
      schemaVersion: version,
    };
  }

  /** What is stored in integer columns, where that is known: decides whether they may become float64. */
  async #integerBounds(table: TableInfo | undefined): ReturnType<ReadOptions["integerBounds"]> {
    const known = new Map<number, { readonly min: bigint; readonly max: bigint }>();
    if (!table) return known;
    const stored = await this.#context.catalog.integerBounds(table.id);
    const visit = (field: Field): void => {
      // A column without an entry holds no value yet: nothing of it stands in the way.
      const bounds = stored.has(field.id) ? stored.get(field.id) : NO_VALUES;
      if (bounds) known.set(field.id, bounds);
      childFields(field.type).forEach(visit);
    };
    table.schema.fields.forEach(visit);
    return known;
  }

  /** A Parquet file needs a column to count its rows by. */
  #assertStorable(read: ReadResult): void {
    if (read.rows > 0 && storedSchema(read.schema).fields.length === 0) {
      throw new InvalidInputError(
        "no_columns",
        "no column has a value yet, so none has a type: declare a schema, or append rows with values first",
        { subject: this.#plan.name },
      );
    }
  }

  #enter(phase: Progress["phase"]): void {
    this.#phase = phase;
    this.#report();
  }

  #report(): void {
    const total = this.#input.kind === "bytes" ? this.#input.totalBytes : undefined;
    this.#options.onProgress?.({
      phase: this.#phase,
      ...this.#counters,
      ...(total !== undefined && { totalBytes: total }),
      elapsedMs: this.#context.timer.now() - this.#started,
    });
  }
}

/** A table that exists, or the id and folder of the one this commit creates. */
interface Target {
  readonly id: string;
  readonly folder: string;
  readonly table: TableInfo | undefined;
}
