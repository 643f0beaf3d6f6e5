/**
 * The worker threads of a lake. They are started by the first large append, keep no process alive while they have
 * nothing to do, and end after a while of that. Where there are none to be had (a bundle that left the worker's file
 * behind, a host that allows no threads) everything runs on the caller's.
 */

import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { LimitError, parquetReady } from "@eider/core";
import type { Logger } from "../options.js";
import type { RangeLimits } from "./cutter.js";
import { type Failure, unpackFailure } from "./failure.js";
import { type RangeJob, type RangeResult, runRange } from "./job.js";

/** Each takes some 80 MB of memory, and all have to wait for the one that reads and hashes the input. */
const MAX_DEFAULT_THREADS = 3;
/** A row group of the size that readers like. In bytes because a range takes some five times as much memory. */
const LIMITS: RangeLimits = { lines: 100_000, bytes: 16 * 1024 * 1024 };
/** Smaller inputs are done before a worker has started. */
const MIN_BYTES = 32 * 1024 * 1024;
const IDLE_MS = 5000;

/** What a worker says: that it has started, then an answer to each job. `buffer` is the job's own, to be used again. */
export type WorkerAnswer =
  | { readonly kind: "ready" }
  | { readonly kind: "result"; readonly result: RangeResult; readonly buffer: ArrayBuffer }
  | { readonly kind: "failure"; readonly failure: Failure; readonly buffer: ArrayBuffer };

export interface RangePoolOptions {
  /** 1: no worker is ever started. Default: one per core, three at most. */
  readonly threads?: number | undefined;
  readonly logger?: Logger;
  /** Where ranges are cut. */
  readonly limits?: RangeLimits;
  /** Input from which on workers are worth their start. */
  readonly minBytes?: number;
  /** The worker's entry. Default: the file beside this one, as built. */
  readonly entry?: URL;
}

interface Task {
  readonly owner: object;
  readonly job: RangeJob;
  readonly resolve: (result: RangeResult & { readonly buffer: ArrayBuffer }) => void;
  readonly reject: (error: unknown) => void;
}

interface Slot {
  readonly worker: Worker;
  ready: boolean;
  task: Task | undefined;
}

export class RangePool implements AsyncDisposable {
  readonly limits: RangeLimits;
  readonly minBytes: number;
  readonly #logger: Logger;
  readonly #entry: URL | undefined;
  readonly #slots = new Set<Slot>();
  #queue: Task[] = [];
  #threads: number;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: RangePoolOptions = {}) {
    this.limits = options.limits ?? LIMITS;
    this.minBytes = options.minBytes ?? MIN_BYTES;
    this.#logger = options.logger ?? {};
    this.#entry = options.entry ?? builtEntry();
    this.#threads = this.#entry ? (options.threads ?? Math.min(availableParallelism(), MAX_DEFAULT_THREADS)) : 1;
  }

  /** Ranges that are worked on at the same time; 1 where the caller does it all. */
  get threads(): number {
    return this.#threads;
  }

  /**
   * Runs a job on a worker, in the order of the calls; `job.bytes` is handed over, and comes back as `buffer`.
   * @throws SchemaMisfit, InvalidInputError as {@link runRange} does
   * @throws LimitError `worker_failed`
   */
  run(owner: object, job: RangeJob): Promise<RangeResult & { readonly buffer: ArrayBuffer }> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ owner, job, resolve, reject });
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
    await Promise.all(slots.map(({ worker }) => worker.terminate()));
  }

  #assign(): void {
    clearTimeout(this.#idle);
    for (const slot of this.#slots) {
      if (slot.ready && !slot.task && this.#queue.length > 0) this.#start(slot, this.#queue.shift()!);
    }
    const starting = [...this.#slots].filter(({ ready }) => !ready).length;
    for (let i = starting; i < this.#queue.length && this.#slots.size < this.#threads; i++) this.#spawn(this.#entry!);
    if ([...this.#slots].some(({ task, ready }) => task || !ready)) return;
    this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), IDLE_MS).unref();
  }

  #start(slot: Slot, task: Task): void {
    slot.task = task;
    slot.worker.ref();
    slot.worker.postMessage(task.job, [task.job.bytes.buffer]);
  }

  #spawn(entry: URL): void {
    // The process's own arguments may not be a worker's, such as those of `node --input-type`.
    const slot: Slot = { worker: new Worker(entry, { execArgv: [] }), ready: false, task: undefined };
    this.#slots.add(slot);
    slot.worker
      .on("message", (answer: WorkerAnswer) => this.#take(slot, answer))
      .on("error", (error) => this.#lose(slot, error))
      .on("exit", (code) => this.#lose(slot, new Error(`the thread ended with code ${code}`)));
  }

  #take(slot: Slot, answer: WorkerAnswer): void {
    const { task } = slot;
    slot.ready = true;
    slot.task = undefined;
    slot.worker.unref();
    if (answer.kind === "result") task?.resolve({ ...answer.result, buffer: answer.buffer });
    if (answer.kind === "failure") task?.reject(unpackFailure(answer.failure));
    this.#assign();
  }

  /** A worker has ended that should not. If it never began, this host has no workers. */
  #lose(slot: Slot, cause: Error): void {
    if (!this.#slots.delete(slot)) return;
    slot.task?.reject(
      new LimitError(
        "worker_failed",
        "a worker thread ended, perhaps for want of memory: append again, or open the lake with threads: 1",
        { cause },
      ),
    );
    if (slot.ready) {
      this.#assign();
      return;
    }
    this.#logger.warn?.("worker threads do not start: appends use one thread", { error: cause });
    this.#threads = 1;
    if (this.#slots.size === 0) void this.#runHere();
  }

  async #runHere(): Promise<void> {
    await parquetReady();
    for (let task = this.#queue.shift(); task; task = this.#queue.shift()) {
      try {
        task.resolve({ ...runRange(task.job), buffer: task.job.bytes.buffer });
      } catch (error) {
        task.reject(error);
      }
      await new Promise(setImmediate);
    }
  }
}

/** The worker beside the module that this one is in, as built or as bundled; undefined in sources and most bundles. */
function builtEntry(): URL | undefined {
  for (const name of ["./eider-worker.js", "./eider-worker.mjs"]) {
    // A bundle in CommonJS has no URL of its own.
    if (!URL.canParse(name, import.meta.url)) return undefined;
    const url = new URL(name, import.meta.url);
    if (url.protocol === "file:" && existsSync(fileURLToPath(url))) return url;
  }
  return undefined;
}
