/** A batch on its way into a commit: read, encoded and staged, as operations that are not committed yet. */

import type { IntegerBounds, Operation, Receipt, TableInfo } from "@eider/catalog";
import {
  BatchConflictError,
  childFields,
  type DataType,
  type Field,
  InvalidInputError,
  lastFieldId,
  type Schema,
  sameSchema,
  storedSchema,
} from "@eider/core";
import type { AppendOptions, Progress } from "../options.js";
import type { Input } from "../source/input.js";
import type { AppendContext } from "./append.js";
import type { BatchKey } from "./batch-key.js";
import { BatchRows } from "./batch-rows.js";
import type { ReadCounters, ReadOptions, ReadResult } from "./pass.js";
import { hashInput, readInput } from "./read.js";
import { type Stage, tableStage } from "./stage.js";
import type { Staging } from "./staging.js";
import {
  assertPartitionsKept,
  canonicalLayout,
  newFolder,
  type TableCreation,
  type TablePlan,
  tableOperation,
  withColumns,
} from "./table-plan.js";

const NO_VALUES = { min: 0n, max: 0n };

/** What is known of stored integers, by field id; undefined where it cannot be told. */
export type KnownBounds = ReadonlyMap<number, IntegerBounds | undefined>;

/** What a batch comes to. */
export interface PreparedBatch {
  /** The table's creation or new schema, where it needs one, and the append. */
  readonly operations: readonly Operation[];
  readonly read: ReadResult;
  /** The table as it will be. */
  readonly after: TableState;
}

/** What preparing a batch needs to know of its table. */
export type TableState = Pick<
  TableInfo,
  "id" | "name" | "folder" | "schema" | "schemaVersion" | "lastFieldId" | "partitionBy" | "orderBy"
>;

export interface PendingBatchOptions {
  readonly context: AppendContext;
  readonly plan: TablePlan;
  readonly input: Input;
  readonly batch: BatchKey;
  readonly append: AppendOptions;
  /** By the context's timer, in milliseconds. */
  readonly started: number;
  /** What is committed before it by the same commit. */
  readonly draft?: readonly Operation[];
}

export class PendingBatch {
  readonly #options: PendingBatchOptions;
  #rows: BatchRows | undefined;
  #phase: Progress["phase"] = "read";
  #counters: ReadCounters = { bytes: 0, rows: 0, rejected: 0 };

  constructor(options: PendingBatchOptions) {
    this.#options = options;
  }

  /**
   * The batch id is taken: the same content is a duplicate, other content a conflict.
   * @returns the hash, which is the known one's
   */
  async compare(known: Receipt, table: TableState): Promise<string> {
    const { batch, input } = this.#options;
    const hash = await hashInput(
      input,
      this.#readOptions(table, async () => new Map()),
    );
    if (hash === known.contentHash) return hash;
    throw new BatchConflictError(
      "batch_conflict",
      `batch ${JSON.stringify(batch.id)} of table ${table.name} was committed in snapshot ${known.snapshot} with other content: choose another batch id`,
      { subject: batch.id },
    );
  }

  /**
   * Reads and encodes the input, and puts its files, if it needs some.
   * @param table as it is; undefined: this batch creates it
   */
  async prepare(
    table: TableState | undefined,
    staging: Staging,
    bounds: (tableId: string) => Promise<KnownBounds>,
  ): Promise<PreparedBatch> {
    const { context, batch, input, append } = this.#options;
    const target = await this.#target(table);
    let lookedAt: number | undefined;
    const lookUp = async (tableId: string): Promise<KnownBounds> => {
      // Before: what is committed in between is looked at too, and makes no difference.
      lookedAt = (await context.catalog.head()).snapshot;
      return bounds(tableId);
    };
    this.#rows = this.#newRows(target, staging);
    const read = await readInput(input, this.#readOptions(table, lookUp), this.#rows);
    this.#assertStorable(read);
    this.#enter("upload");
    const { files, hot } = await this.#rows.finish();
    this.#enter("commit");
    append.signal?.throwIfAborted();
    const { operations, after } = this.#schemaOperations(target, read.schema, lookedAt);
    const { schemaVersion } = after;
    return {
      operations: [
        ...operations,
        {
          op: "append",
          table: target.id,
          batch: batch.id,
          ...(batch.range && { range: batch.range }),
          ...(batch.replays && { replays: batch.replays }),
          hash: read.contentHash,
          rows: read.rows,
          schemaVersion,
          files: files.map((file) => ({ ...file, schemaVersion })),
          ...(hot && { hot }),
          rejects: read.rejects,
        },
      ],
      read,
      after,
    };
  }

  /** Deletes what was staged: only if it is certainly not committed. */
  async discard(): Promise<void> {
    await this.#rows?.discard();
  }

  /** The table to append to: as it is, or as this very commit creates it. */
  async #target(table: TableState | undefined): Promise<Target> {
    if (table) return { id: table.id, folder: table.folder, table };
    const { context, plan, draft } = this.#options;
    const id = context.newId();
    return { id, folder: await newFolder(context.catalog, plan, id, draft), table: undefined };
  }

  #newRows(target: Target, staging: Staging): BatchRows {
    const { context, plan } = this.#options;
    const { partitionBy = [], orderBy = [] } = target.table ?? plan;
    return new BatchRows({
      inlineBytes: context.inlineBytes,
      keepsOrder: partitionBy.length === 0 && orderBy.length === 0,
      newStage: async (schema) => this.#newStage(target, schema, await staging.base()),
    });
  }

  #newStage(target: Target, schema: Schema, base: number): Stage {
    const { context, plan, batch, append } = this.#options;
    const { partitionBy, orderBy } =
      target.table ?? canonicalLayout(plan.partitionBy ?? [], plan.orderBy ?? [], schema);
    const table = { name: plan.name, folder: target.folder, partitionBy, orderBy };
    const keyValues = { "eider.batch": batch.id };
    return tableStage(context, table, schema, { base, keyValues, signal: append.signal });
  }

  #readOptions(table: TableState | undefined, bounds: (tableId: string) => Promise<KnownBounds>): ReadOptions {
    const { context, plan, append } = this.#options;
    const { described } = plan;
    const evolves = (append.schemaMode ?? "evolve") === "evolve";
    const existing = table && described && evolves ? withColumns(table, described) : table?.schema;
    const declared = existing ?? plan.schema;
    return {
      append,
      schema: declared && declared.fields.length > 0 ? declared : undefined,
      lastFieldId: Math.max(table?.lastFieldId ?? 0, declared ? lastFieldId(declared) : 0),
      validator: plan.validator,
      integerBounds: async () => (table ? integerBounds(table.schema, await bounds(table.id)) : new Map()),
      openParquet: context.openParquet,
      tempFolder: context.tempFolder,
      ranges: context.ranges,
      timer: context.timer,
      onCounters: (counters) => {
        this.#counters = counters;
        this.#report();
      },
    };
  }

  /**
   * The operations that bring the table to `schema`: its creation, a new version, or none.
   * @param lookedAt snapshot whose values decided what may be widened, if any had to
   */
  #schemaOperations(
    { id, folder, table }: Target,
    schema: Schema,
    lookedAt: number | undefined,
  ): { readonly operations: readonly Operation[]; readonly after: TableState } {
    if (!table) {
      const { plan } = this.#options;
      const operation = tableOperation(plan, id, folder, schema);
      return { operations: [operation], after: createdTable(operation) };
    }
    if (sameSchema(table.schema, schema)) return { operations: [], after: table };
    assertPartitionsKept(table, schema);
    const version = table.schemaVersion + 1;
    const newest = Math.max(table.lastFieldId, lastFieldId(schema));
    return {
      operations: [
        {
          op: "schema",
          table: id,
          version,
          schema,
          lastFieldId: newest,
          ...(lookedAt !== undefined && widensIntegers(table.schema, schema) && { valuesOf: lookedAt }),
        },
      ],
      after: { ...table, schema, schemaVersion: version, lastFieldId: newest },
    };
  }

  /** A Parquet file needs a column to count its rows by. */
  #assertStorable(read: ReadResult): void {
    if (read.rows > 0 && storedSchema(read.schema).fields.length === 0) {
      throw new InvalidInputError(
        "no_columns",
        "no column has a value yet, so none has a type: declare a schema, or append rows with values first",
        { subject: this.#options.plan.name },
      );
    }
  }

  #enter(phase: Progress["phase"]): void {
    this.#phase = phase;
    this.#report();
  }

  #report(): void {
    const { input, append, context, started } = this.#options;
    const total = input.kind === "bytes" ? input.totalBytes : undefined;
    append.onProgress?.({
      phase: this.#phase,
      ...this.#counters,
      ...(total !== undefined && { totalBytes: total }),
      elapsedMs: context.timer.now() - started,
    });
  }
}

/** A table that exists, or the id and folder of the one this commit creates. */
interface Target {
  readonly id: string;
  readonly folder: string;
  readonly table: TableState | undefined;
}

/** Whether a column of integers becomes one that holds only some integers exactly. */
function widensIntegers(before: Schema, after: Schema): boolean {
  const types = new Map<number, DataType>();
  const note = ({ id, type }: Field): void => {
    types.set(id, type);
    childFields(type).forEach(note);
  };
  after.fields.forEach(note);
  const widens = ({ id, type }: Field): boolean =>
    (/^u?int/.test(type.kind) && /^(float|decimal)/.test(types.get(id)?.kind ?? "")) || childFields(type).some(widens);
  return before.fields.some(widens);
}

/** What is stored in integer columns, where that is known: decides whether they may become float64. */
function integerBounds(schema: Schema, stored: KnownBounds): Awaited<ReturnType<ReadOptions["integerBounds"]>> {
  const known = new Map<number, IntegerBounds>();
  const visit = (field: Field): void => {
    // A column without an entry holds no value yet: nothing of it stands in the way.
    const bounds = stored.has(field.id) ? stored.get(field.id) : NO_VALUES;
    if (bounds) known.set(field.id, bounds);
    childFields(field.type).forEach(visit);
  };
  schema.fields.forEach(visit);
  return known;
}

/** The table that an operation of {@link tableOperation} creates. */
export function createdTable(operation: TableCreation): TableState {
  const { table: id, schema, version, lastFieldId: newest, create } = operation;
  return { id, ...create, schema, schemaVersion: version, lastFieldId: newest };
}
