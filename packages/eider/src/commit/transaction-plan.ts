/**
 * What a transaction is to commit: its steps in order, each planned on top of those before it. A plan that came too late
 * is made again from the inputs, which are kept until the end; what was staged for a table that is as it was is used again.
 */

import type { Draft, IntegerBounds, Operation, StaleReason } from "@eider/catalog";
import { AlreadyExistsError, NotFoundError, nameKey } from "@eider/core";
import type { AppendOptions, CursorMove } from "../options.js";
import { disposeInput, type Input } from "../source/input.js";
import { type AppendContext, findKnown, findTable, giveUp } from "./append.js";
import type { BatchKey } from "./batch-key.js";
import { MAX_INLINE_BYTES } from "./batch-rows.js";
import { createdTable, type KnownBounds, PendingBatch, type PreparedBatch, type TableState } from "./pending-batch.js";
import { Staging } from "./staging.js";
import { assertMatches, newFolder, type TablePlan, tableOperation } from "./table-plan.js";

export type Step =
  | {
      readonly kind: "append";
      readonly plan: TablePlan;
      readonly batch: BatchKey;
      readonly input: Input;
      readonly options: AppendOptions;
    }
  | { readonly kind: "create"; readonly plan: TablePlan; readonly ifNotExists: boolean }
  | { readonly kind: "drop"; readonly plan: TablePlan }
  | { readonly kind: "cursor"; readonly move: CursorMove };

/** What a step comes to. */
export interface PlannedStep {
  /** `known`: the batch was committed before, with the same content. */
  readonly status: "staged" | "known";
  readonly rowsAdded: number;
  readonly rowsRejected: number;
}

const NOTHING: PlannedStep = { status: "staged", rowsAdded: 0, rowsRejected: 0 };

/** A batch that is staged, and the table that it was staged for: with the same one it can be used again. */
interface Staged {
  readonly pending: PendingBatch;
  readonly prepared: PreparedBatch;
  /** Id and schema version; empty for a table that the batch creates. */
  readonly table: string;
}

export class TransactionPlan {
  readonly #context: AppendContext;
  readonly #steps: Step[] = [];
  readonly #staged = new Map<Step, Staged>();
  /** Staged for a table that has changed since. */
  readonly #outdated: PendingBatch[] = [];
  /** Tables as the steps so far leave them; undefined: dropped. By name. */
  readonly #tables = new Map<string, TableState | undefined>();
  #operations: Operation[] = [];
  readonly #staging: Staging;

  constructor(context: AppendContext) {
    this.#context = context;
    this.#staging = new Staging(context.catalog);
  }

  /** What is to be committed, as far as it is planned. */
  get draft(): Pick<Draft, "operations" | "intent"> {
    return { operations: this.#operations, ...this.#staging.draft };
  }

  async add(step: Step): Promise<PlannedStep> {
    this.#steps.push(step);
    return this.#plan(step);
  }

  /** Plans all steps anew, on what others have committed. */
  async again(reason: StaleReason): Promise<void> {
    const { catalog } = this.#context;
    await catalog.refresh();
    this.#tables.clear();
    this.#operations = [];
    const all = reason === "intent" || reason === "floor";
    for (const [step, { pending, prepared, table }] of this.#staged) {
      // A table that was to be created is there by now, or its folder is another's; or there are values that nobody has
      // looked at, and a column was to be widened.
      const outdated = (reason === "table_exists" && table === "") || (reason === "schema" && widens(prepared));
      if (!all && !outdated) continue;
      this.#outdated.push(pending);
      this.#staged.delete(step);
    }
    if (all) await this.#staging.abandon();
    for (const step of this.#steps) await this.#plan(step);
  }

  /** Lets go of everything. @param settled whether what was staged is committed, or may be */
  async end(settled: boolean): Promise<void> {
    const unused = settled ? this.#outdated : [...this.#outdated, ...[...this.#staged.values()].map((s) => s.pending)];
    await giveUp(this.#context, unused, settled ? undefined : this.#staging);
    for (const step of this.#steps) if (step.kind === "append") await disposeInput(step.input);
  }

  async #plan(step: Step): Promise<PlannedStep> {
    switch (step.kind) {
      case "append":
        return this.#append(step);
      case "create":
        await this.#create(step.plan, step.ifNotExists);
        return NOTHING;
      case "drop":
        await this.#drop(step.plan);
        return NOTHING;
      case "cursor":
        this.#operations.push({ op: "cursor", ...step.move });
        return NOTHING;
    }
  }

  async #append(step: Extract<Step, { kind: "append" }>): Promise<PlannedStep> {
    const { catalog } = this.#context;
    const { plan, batch } = step;
    const table = await this.#find(plan);
    const known = table && (await findKnown(catalog, table, batch));
    if (table && known) {
      const hash = known.comparable
        ? await this.#pending(step).compare(known.receipt, table)
        : known.receipt.contentHash;
      // Only its id and its hash are looked at: it is known.
      const nothing = { rows: 0, schemaVersion: table.schemaVersion, files: [], rejects: [] };
      this.#operations.push({
        op: "append",
        table: table.id,
        batch: batch.id,
        ...(batch.range && { range: batch.range }),
        hash,
        ...nothing,
      });
      return { status: "known", rowsAdded: 0, rowsRejected: 0 };
    }
    const { read, operations, after } = await this.#stage(step, table);
    this.#operations.push(...operations);
    this.#tables.set(nameKey(plan.name), after);
    return { status: "staged", rowsAdded: read.rows, rowsRejected: read.rejects.length };
  }

  async #stage(step: Extract<Step, { kind: "append" }>, table: TableState | undefined): Promise<PreparedBatch> {
    const key = table ? JSON.stringify([table.id, table.schemaVersion]) : "";
    const before = this.#staged.get(step);
    if (before?.table === key) return before.prepared;
    if (before) this.#outdated.push(before.pending);
    this.#staged.delete(step);
    const pending = this.#pending(step);
    try {
      const prepared = await pending.prepare(table, this.#staging, (id) => this.#bounds(id));
      this.#staged.set(step, { pending, prepared, table: key });
      return prepared;
    } catch (error) {
      this.#outdated.push(pending);
      throw error;
    }
  }

  #pending({ plan, input, batch, options }: Extract<Step, { kind: "append" }>): PendingBatch {
    const inlineBytes = Math.min(this.#context.inlineBytes, Math.max(0, MAX_INLINE_BYTES - this.#inlineBytes()));
    const context = { ...this.#context, inlineBytes };
    const draft = this.#operations;
    return new PendingBatch({ context, plan, input, batch, append: options, started: context.timer.now(), draft });
  }

  /** Bytes of the steps so far that are part of the entry itself. */
  #inlineBytes(): number {
    return this.#operations.reduce((sum, one) => sum + ((one.op === "append" && one.hot?.data.length) || 0), 0);
  }

  async #create(plan: TablePlan, ifNotExists: boolean): Promise<void> {
    const found = await this.#find(plan);
    if (found && ifNotExists) return;
    if (found) throw new AlreadyExistsError("table_exists", `table ${plan.name} exists`, { subject: plan.name });
    const id = this.#context.newId();
    const operation = tableOperation(plan, id, await newFolder(this.#context.catalog, plan, id, this.#operations));
    this.#operations.push(operation);
    this.#tables.set(nameKey(plan.name), createdTable(operation));
  }

  async #drop(plan: TablePlan): Promise<void> {
    const found = await this.#find(plan);
    if (!found) {
      throw new NotFoundError("table_not_found", `there is no table ${plan.name}`, { subject: plan.name });
    }
    this.#operations.push({ op: "drop", table: found.id });
    this.#tables.set(nameKey(plan.name), undefined);
  }

  /** The table as the steps so far leave it. */
  async #find(plan: TablePlan): Promise<TableState | undefined> {
    const key = nameKey(plan.name);
    const table = this.#tables.has(key) ? this.#tables.get(key) : await findTable(this.#context.catalog, plan.name);
    if (table) assertMatches(plan, table);
    return table;
  }

  /** What is stored in integer columns, what the steps so far will store included. */
  async #bounds(tableId: string): Promise<KnownBounds> {
    const bounds = new Map(await this.#context.catalog.integerBounds(tableId));
    for (const operation of this.#operations) {
      if (operation.op !== "append" || operation.table !== tableId) continue;
      const add = (fieldId: number, own: IntegerBounds | undefined): void => {
        bounds.set(fieldId, bounds.has(fieldId) ? union(bounds.get(fieldId), own) : own);
      };
      for (const { fieldId, min, max } of operation.hot?.bounds ?? []) add(fieldId, { min, max });
      for (const { fieldId, min, max, nullCount, valueCount } of operation.files.flatMap(({ columns }) => columns)) {
        if (nullCount === valueCount) continue;
        add(fieldId, typeof min === "bigint" && typeof max === "bigint" ? { min, max } : undefined);
      }
    }
    return bounds;
  }
}

/** Whether the batch is right only as long as no other values come. */
function widens({ operations }: PreparedBatch): boolean {
  return operations.some((operation) => operation.op === "schema" && operation.valuesOf !== undefined);
}

/** Of both; nothing is known if it is not known of one. */
function union(a: IntegerBounds | undefined, b: IntegerBounds | undefined): IntegerBounds | undefined {
  if (!a || !b) return undefined;
  const [min, max] = [
    [a.min, b.min],
    [a.max, b.max],
  ].map((ends) => ends.sort((x, y) => (x < y ? -1 : 1)));
  return { min: min![0]!, max: max![1]! };
}
