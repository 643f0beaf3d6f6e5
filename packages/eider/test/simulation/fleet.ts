/** Schedules on all cores: each thread takes one job after the other. */

import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { buildWith, type Fault } from "./bundle.js";
import type { Bounds } from "./choices.js";
import { Coverage } from "./coverage.js";
import type { Failure, WorldKind } from "./simulate.js";
import type { Mode } from "./world.js";

/** Schedules that are run by one thread: random ones, or with `scenario` those of its workload within bounds. */
export interface Job {
  readonly mode: Mode;
  /** First seed. */
  readonly from?: number;
  /** How many seeds. */
  readonly count?: number;
  /** Of those seeds. */
  readonly only?: WorldKind | undefined;
  readonly scenario?: string;
  readonly bounds?: Bounds;
}

export interface Answer {
  /** Up to the one that failed, if one did. */
  readonly schedules: number;
  readonly hits: readonly (readonly [string, number])[];
  readonly failure: Failure | undefined;
}

export interface FleetReport {
  readonly schedules: number;
  readonly coverage: Coverage;
  /** The first one that was found, with its seed if it is of a random schedule. */
  readonly failure: (Failure & { readonly seed?: number }) | undefined;
}

/** So many random schedules, a few in each job. */
export function randomJobs(mode: Mode, seed: number, count: number, each: number, only?: WorldKind): Job[] {
  return Array.from({ length: Math.ceil(count / each) }, (_, i) => ({
    mode,
    only,
    from: seed + i * each,
    count: Math.min(each, count - i * each),
  }));
}

export class Fleet implements AsyncDisposable {
  readonly #bundle: string;
  readonly #shrinks: boolean;
  /** Threads without a job. They are kept: code that has run for a while runs twice as fast. */
  readonly #idle: Worker[] = [];

  private constructor(bundle: string, shrinks: boolean) {
    this.#bundle = bundle;
    this.#shrinks = shrinks;
  }

  /** @param faults planted in the sources */
  static async create(
    name: string,
    faults: readonly Fault[] = [],
    { shrink = true }: { readonly shrink?: boolean } = {},
  ): Promise<Fleet> {
    return new Fleet(await buildWith(name, faults), shrink);
  }

  /** Runs jobs in their order, on so many threads, until one finds a failure: then the others are given up. */
  async run(jobs: readonly Job[], threads: number = availableParallelism()): Promise<FleetReport> {
    const left = [...jobs];
    const coverage = new Coverage();
    const busy = new Set<Worker>();
    let schedules = 0;
    let failure: FleetReport["failure"];
    const work = async (): Promise<void> => {
      const worker = this.#idle.pop() ?? new Worker(this.#bundle, { workerData: { shrink: this.#shrinks } });
      busy.add(worker);
      for (let job = left.shift(); job && !failure; job = left.shift()) {
        const answer = await ask(worker, job);
        if (failure) return;
        if (!answer) throw new Error("a thread of the simulation ended by itself");
        schedules += answer.schedules;
        coverage.add(answer.hits);
        if (answer.failure) failure = { ...answer.failure, ...(job.from && { seed: job.from + answer.schedules - 1 }) };
      }
      busy.delete(worker);
      this.#idle.push(worker);
      if (failure) await Promise.all([...busy].map((other) => other.terminate()));
    };
    try {
      await Promise.all(Array.from({ length: Math.min(threads, jobs.length) }, work));
    } finally {
      await Promise.all([...busy].map((worker) => worker.terminate()));
    }
    return { schedules, coverage, failure };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#idle.map((worker) => worker.terminate()));
    rmSync(this.#bundle, { force: true });
  }
}

/** Undefined if the thread has ended. */
function ask(worker: Worker, job: Job): Promise<Answer | undefined> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void): void => {
      worker.off("message", answered).off("error", failed).off("exit", ended);
      end();
    };
    const answered = (answer: Answer): void => settle(() => resolve(answer));
    const failed = (error: unknown): void => settle(() => reject(error));
    const ended = (): void => settle(() => resolve(undefined));
    worker.on("message", answered).on("error", failed).on("exit", ended);
    worker.postMessage(job);
  });
}
