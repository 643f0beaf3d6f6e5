/**
 * Workers that parse and encode ranges. They are started by the first large input and end after a while without work.
 * What a worker is, its host knows: a thread, or a web worker. Where none starts, everything runs on the caller's thread.
 */

import { LimitError, parquetReady } from "../index.js";
import type { RangeLimits } from "./cutter.js";
import { type Failure, unpackFailure } from "./failure.js";
import { type RangeJob, type RangeResult, runRange } from "./job.js";

/** A row group of the size that readers like. In bytes because a range takes some three times as much memory. */
const LIMITS: RangeLimits = { lines: 100_000, bytes: 16 * 1024 * 1024 };
/** Smaller inputs are done before a worker has started. */
const MIN_BYTES = 32 * 1024 * 1024;
const IDLE_MS = 5000;

/** What a worker says: that it has started; of each job, that its bytes are parsed, unless that fails, and the answer. */
export type WorkerAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "parsed"; readonly buffer: ArrayBuffer }
  | { readonly kind: "result"; readonly result: RangeResult }
  | { readonly kind: "failure"; readonly failure: Failure };

/** A worker as the pool sees it. */
export interface RangeWorker {
  /** Gives it a job, with the memory of its bytes. */
  post(job: RangeJob): void;
  end(): unknown;
  /** Whether it keeps the process alive; asked for while it has something to do. */
  hold?(on: boolean): void;
}

export interface WorkerEvents {
  answer(answer: WorkerAnswer): void;
  /** It has ended, or could not begin. */
  lost(cause: Error): void;
}

export interface RangePoolOptions {
  /** Starts a worker that runs `serveRanges`. Absent: this host has none. */
  readonly start: ((events: WorkerEvents) => RangeWorker) | undefined;
  /** Ranges that are worked on at the same time. 1: no worker is ever started. */
  readonly threads: number;
  /** Is told why workers do not start, and that the caller's thread does it all. */
  readonly onFallback?: (cause: Error) => void;
  /** Where ranges are cut. */
  readonly limits?: RangeLimits;
  /** Input from which on workers are worth their start, in bytes. Default 32 MiB. */
  readonly minBytes?: number;
}

interface Task {
  readonly owner: object;
  readonly job: RangeJob;
  readonly onParsed: (buffer: ArrayBuffer) => void;
  readonly resolve: (result: RangeResult) => void;
  readonly reject: (error: unknown) => void;
}

interface Slot {
  worker: RangeWorker | undefined;
  ready: boolean;
  task: Task | undefined;
}

export class RangePool implements AsyncDisposable {
  readonly limits: RangeLimits;
  readonly minBytes: number;
  readonly #start: RangePoolOptions["start"];
  readonly #onFallback: (cause: Error) => void;
  readonly #slots: Set<Slot> = new Set();
  #queue: Task[] = [];
  #threads: number;
  #idle: ReturnType<typeof setTimeout> | undefined;

  constructor({ start, threads, onFallback, limits, minBytes }: RangePoolOptions) {
    this.limits = limits ?? LIMITS;
    this.minBytes = minBytes ?? MIN_BYTES;
    this.#start = start;
    this.#onFallback = onFallback ?? (() => {});
    this.#threads = start ? Math.max(1, threads) : 1;
  }

  /** Ranges that are worked on at the same time; 1 where the caller does it all. */
  get threads(): number {
    return this.#threads;
  }

  /** Starts the workers, so that they are there when the first job comes. */
  warm(): void {
    // One that cannot begin leaves the caller as the only thread.
    while (this.#threads > 1 && this.#slots.size < this.#threads) this.#spawn();
  }

  /**
   * Runs a job on a worker, in the order of the calls; `job.bytes` is handed over, and comes back by `onParsed` unless
   * the job fails before.
   * @throws SchemaMisfit, InvalidInputError as `runRange` does
   * @throws LimitError `worker_failed`
   */
  run(owner: object, job: RangeJob, onParsed: (buffer: ArrayBuffer) => void): Promise<RangeResult> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ owner, job, onParsed, resolve, reject });
      this.#assign();
    });
  }

  /** Drops the jobs of an owner that have not begun, to which there will be no answer. */
  forget(owner: object): void {
    this.#queue = this.#queue.filter((task) => task.owner !== owner);
  }

  /** Ends the workers. Nothing may be running. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle);
    const slots = [...this.#slots];
    this.#slots.clear();
    await Promise.all(slots.map(({ worker }) => worker?.end()));
  }

  #assign(): void {
    clearTimeout(this.#idle);
    for (const slot of this.#slots) {
      if (slot.ready && !slot.task && this.#queue.length > 0) this.#give(slot, this.#queue.shift()!);
    }
    const starting = [...this.#slots].filter(({ ready }) => !ready).length;
    for (let i = starting; i < this.#queue.length && this.#slots.size < this.#threads; i++) this.#spawn();
    if ([...this.#slots].some(({ task, ready }) => task || !ready)) return;
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), IDLE_MS);
    // Node.js only: nothing waits for this.
    (this.#idle as Partial<NodeJS.Timeout>).unref?.();
  }

  #give(slot: Slot, task: Task): void {
    slot.task = task;
    slot.worker!.hold?.(true);
    slot.worker!.post(task.job);
  }

  #spawn(): void {
    const slot: Slot = { worker: undefined, ready: false, task: undefined };
    this.#slots.add(slot);
    try {
      slot.worker = this.#start!({
        answer: (answer) => this.#take(slot, answer),
        lost: (cause) => this.#lose(slot, cause),
      });
    } catch (error) {
      this.#lose(slot, error instanceof Error ? error : new Error(String(error)));
    }
  }

  #take(slot: Slot, answer: WorkerAnswer): void {
    const { task } = slot;
    if (answer.kind === "parsed") {
      task?.onParsed(answer.buffer);
      return;
    }
    slot.ready = true;
    slot.task = undefined;
    slot.worker!.hold?.(false);
    if (answer.kind === "result") task?.resolve(answer.result);
    if (answer.kind === "failure") task?.reject(unpackFailure(answer.failure));
    this.#assign();
  }

  /** A worker has ended that should not. If it never began, this host has no workers. */
  #lose(slot: Slot, cause: Error): void {
    if (!this.#slots.delete(slot)) return;
    slot.task?.reject(
      new LimitError("worker_failed", "a worker ended, perhaps for want of memory: try again, or with threads: 1", {
        cause,
      }),
    );
    if (slot.ready) {
      this.#assign();
      return;
    }
    this.#onFallback(cause);
    this.#threads = 1;
    if (this.#slots.size === 0) void this.#runHere();
  }

  async #runHere(): Promise<void> {
    await parquetReady();
    for (let task = this.#queue.shift(); task; task = this.#queue.shift()) {
      try {
        const { job, onParsed } = task;
        task.resolve(runRange(job, () => onParsed(job.bytes.buffer)));
      } catch (error) {
        task.reject(error);
      }
      // Other work gets its turn.
      await new Promise((resolve) => setTimeout(resolve));
    }
  }
}
