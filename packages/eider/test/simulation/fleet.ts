/** Schedules on all cores: each thread takes one job after the other. */

import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { buildWith, type Fault } from "./bundle.js";
import type { Bounds } from "./choices.js";
import { Coverage } from "./coverage.js";
import type { Failure } from "./simulate.js";
import type { Mode } from "./world.js";

/** Schedules that are run by one thread: random ones, or with `scenario` those of its workload within bounds. */
export interface Job {
  readonly mode: Mode;
  /** First seed. */
  readonly from?: number;
  /** How many seeds. */
  readonly count?: number;
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
export function randomJobs(mode: Mode, seed: number, count: number, each: number): Job[] {
  return Array.from({ length: Math.ceil(count / each) }, (_, i) => ({
    mode,
    from: seed + i * each,
    count: Math.min(each, count - i * each),
  }));
}

export class Fleet implements Disposable {
  readonly #bundle: string;
  readonly #shrinks: boolean;

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

  /** Runs jobs in their order, on so many threads, until one finds a failure. */
  async run(jobs: readonly Job[], threads: number = availableParallelism()): Promise<FleetReport> {
    const left = [...jobs];
    const coverage = new Coverage();
    let schedules = 0;
    let failure: FleetReport["failure"];
    const work = async (): Promise<void> => {
      const worker = new Worker(this.#bundle, { workerData: { shrink: this.#shrinks } });
      try {
        for (let job = left.shift(); job && !failure; job = left.shift()) {
          const answer = await ask(worker, job);
          schedules += answer.schedules;
          coverage.add(answer.hits);
          if (answer.failure) {
            failure ??= { ...answer.failure, ...(job.from && { seed: job.from + answer.schedules - 1 }) };
          }
        }
      } finally {
        await worker.terminate();
      }
    };
    await Promise.all(Array.from({ length: Math.min(threads, jobs.length) }, work));
    return { schedules, coverage, failure };
  }

  [Symbol.dispose](): void {
    rmSync(this.#bundle, { force: true });
  }
}

function ask(worker: Worker, job: Job): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ended = (code: number): void => reject(new Error(`a thread of the simulation ended with ${code}`));
    worker.once("error", reject);
    worker.once("exit", ended);
    worker.once("message", (answer: Answer) => {
      worker.off("error", reject);
      worker.off("exit", ended);
      resolve(answer);
    });
    worker.postMessage(job);
  });
}
