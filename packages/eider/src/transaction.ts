/** Several appends, to several tables, as one commit. */

import type { Draft, Receipt } from "@eider/catalog";
import { CatalogError, InvalidInputError } from "@eider/core";
import { makeSql, type Sql } from "@eider/query";
import { type AppendContext, isUnknown, MAX_ATTEMPTS } from "./commit/append.js";
import { batchKey } from "./commit/batch-key.js";
import { assertPlannable } from "./commit/stale.js";
import { planTable, type TablePlan } from "./commit/table-plan.js";
import { type PlannedStep, type Step, TransactionPlan } from "./commit/transaction-plan.js";
import type { OpenLake } from "./open.js";
import { checkAppendOptions, checkCursorMove, checkTableOptions } from "./option-rules.js";
import type { AppendOptions, CursorMove, Source, TableOptions, TypedTableOptions } from "./options.js";
import { openInput } from "./source/input.js";

export interface TransactionOptions {
  /**
   * Commits only if the lake is still at this snapshot: `base`, the one that the transaction reads at, or a number. Else
   * `snapshot_moved`. Default: appends are made on top of what others have committed meanwhile.
   */
  readonly expectSnapshot?: "base" | number;
  /** Text kept with the snapshot, for people and tools. */
  readonly meta?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface TransactionResult<T> {
  /**
   * `duplicate`: all batches were committed before, by one transaction; nothing was written. `empty`: there was nothing to
   * commit.
   */
  readonly status: "committed" | "duplicate" | "empty";
  /** The snapshot that has it; of a transaction without a commit, the one it read at. */
  readonly snapshot: number;
  /** Of its appends, in their order. */
  readonly receipts: readonly Receipt[];
  /** What the callback returned. */
  readonly value: T;
}

/** An append of a transaction: staged, and visible to nobody until the commit. */
export interface StagedAppend {
  readonly batchId: string;
  /** `known`: committed before with the same content. Then all batches of the transaction have to be. */
  readonly status: "staged" | "known";
  readonly rowsAdded: number;
  readonly rowsRejected: number;
}

/** An append of a transaction has its metadata, its cursors and its signal from that. */
export type TransactionAppendOptions = Omit<AppendOptions, "meta" | "cursor" | "signal" | "onSeen">;

/** A table within a transaction. */
export interface TransactionTable<R = object> {
  readonly name: string;
  /** Reads and stages the source at once; what is committed is what it gave. */
  append(source: Source<R>, options?: TransactionAppendOptions): Promise<StagedAppend>;
  create(options?: { readonly ifNotExists?: boolean }): Promise<void>;
  drop(): Promise<void>;
}

export class Transaction {
  /** The snapshot at which the transaction reads. */
  readonly base: number;
  /** Reads at {@link base}: neither what others commit meanwhile nor what the transaction itself stages. */
  readonly sql: Sql;
  readonly #open: OpenLake;
  readonly #context: AppendContext;
  readonly #plan: TransactionPlan;
  readonly #signal: AbortSignal | undefined;
  /** Steps are planned one after the other, in the order of their calls. */
  #last: Promise<unknown> = Promise.resolve();
  #failure: { readonly error: unknown } | undefined;
  #over = false;

  private constructor(open: OpenLake, context: AppendContext, base: number, signal: AbortSignal | undefined) {
    this.#open = open;
    this.#context = context;
    this.#plan = new TransactionPlan(context);
    this.#signal = signal;
    this.base = base;
    this.sql = makeSql(() => this.#open.engine(), { at: base, ...(signal && { signal }) });
  }

  /** Runs the callback, then commits what it has staged. If anything fails, nothing is committed. */
  static async run<T>(
    open: OpenLake,
    context: AppendContext,
    work: (tx: Transaction) => Promise<T>,
    options: TransactionOptions,
  ): Promise<TransactionResult<T>> {
    options.signal?.throwIfAborted();
    await open.catalog.refresh();
    const { snapshot: base } = await open.catalog.head();
    const tx = new Transaction(open, context, base, options.signal);
    let settled = false;
    try {
      const value = await work(tx);
      await tx.#last;
      tx.#over = true;
      if (tx.#failure) throw tx.#failure.error;
      const result = await tx.#commit(options);
      settled = result.status === "committed";
      return { ...result, value };
    } catch (error) {
      // Nobody knows yet whether the entry is there: its files must stay.
      settled = isUnknown(error);
      throw error;
    } finally {
      tx.#over = true;
      await tx.#last;
      await tx.#plan.end(settled);
    }
  }

  /** A handle to a table, within this transaction. */
  table<R extends object>(name: string, options: TypedTableOptions<R>): TransactionTable<R>;
  table<R = object>(name: string, options?: TableOptions): TransactionTable<R>;
  table<R = object>(name: string, options: TableOptions = {}): TransactionTable<R> {
    checkTableOptions(options);
    const plan = planTable(name, options);
    return {
      name: plan.name,
      append: (source, append = {}) => this.#append(plan, source as Source, append),
      create: async ({ ifNotExists = false } = {}) => {
        await this.#step(async () => ({ kind: "create", plan, ifNotExists }));
      },
      drop: async () => {
        await this.#step(async () => ({ kind: "drop", plan }));
      },
    };
  }

  /** Moves a durable cursor in the same commit; `cursor_moved` if it is not at `from` then. */
  async advance(move: CursorMove): Promise<void> {
    await this.#step(async () => {
      checkCursorMove("tx.advance", move);
      return { kind: "cursor", move };
    });
  }

  async #append(plan: TablePlan, source: Source, options: TransactionAppendOptions): Promise<StagedAppend> {
    const { newId, tempFolder } = this.#context;
    const batchId = options.batchId ?? newId();
    const planned = await this.#step(async () => {
      checkAppendOptions(options);
      const batch = batchKey(batchId);
      const input = await openInput(source, { tempFolder, signal: this.#signal });
      return {
        kind: "append",
        plan,
        batch,
        input,
        options: { ...options, ...(this.#signal && { signal: this.#signal }) },
      };
    });
    return { batchId: batchKey(batchId).id, ...planned };
  }

  /** What fails once fails the transaction, whether anybody waits for it or not. */
  async #step(step: () => Promise<Step>): Promise<PlannedStep> {
    if (this.#over)
      throw new InvalidInputError("transaction_over", "the transaction is over: its callback has returned");
    const planning = this.#last.then(async () => {
      if (this.#failure) throw this.#failure.error;
      try {
        this.#signal?.throwIfAborted();
        return await this.#plan.add(await step());
      } catch (error) {
        this.#failure = { error };
        throw error;
      }
    });
    this.#last = planning.catch(() => undefined);
    return planning;
  }

  async #commit({
    expectSnapshot,
    meta,
    signal,
  }: TransactionOptions): Promise<Omit<TransactionResult<never>, "value">> {
    const { catalog } = this.#open;
    if (this.#plan.draft.operations.length === 0) return { status: "empty", snapshot: this.base, receipts: [] };
    for (let tries = 1; tries <= MAX_ATTEMPTS; tries++) {
      signal?.throwIfAborted();
      const draft: Draft = {
        ...this.#plan.draft,
        ...(meta && { meta }),
        ...(expectSnapshot !== undefined && { expectSnapshot: expectSnapshot === "base" ? this.base : expectSnapshot }),
      };
      const result = await catalog.commit(draft);
      if (result.status === "committed") return result;
      if (result.status === "duplicate") {
        return { ...result, snapshot: result.receipts[0]!.snapshot };
      }
      assertPlannable(result);
      await this.#plan.again(result.reason);
    }
    throw new CatalogError(
      "too_contended",
      `its tables changed ${MAX_ATTEMPTS} times during this transaction: try again`,
      {
        retryable: true,
      },
    );
  }
}
