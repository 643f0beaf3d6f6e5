/**
 * The worker threads of a lake. They keep no process alive while they have nothing to do. Where there are none to be had
 * (a bundle that left the worker's file behind, a host that allows no threads) everything runs on the caller's.
 */

import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { RangePool, type RangePoolOptions } from "@eider/core/ranges";
import { builtWorker } from "./built-worker.js";
import type { Logger } from "./options.js";

/** Each takes some 40 MB of memory, and all have to wait for the one that reads and hashes the input. */
const MAX_DEFAULT_THREADS = 3;

export interface RangeThreadsOptions extends Pick<RangePoolOptions, "limits" | "minBytes"> {
  /** 1: no worker is ever started. Default: one per core, three at most. */
  readonly threads?: number | undefined;
  readonly logger?: Logger;
  /** The worker's entry. Default: the file beside this one, as built. */
  readonly entry?: URL;
}

export function rangeThreads(options: RangeThreadsOptions = {}): RangePool {
  const { threads, logger, entry = builtWorker(), ...rest } = options;
  return new RangePool({
    ...rest,
    threads: threads ?? Math.min(availableParallelism(), MAX_DEFAULT_THREADS),
    onFallback: (error) => logger?.warn?.("worker threads do not start: appends use one thread", { error }),
    start:
      entry &&
      ((events) => {
        // The process's own arguments may not be a worker's, such as those of `node --input-type`.
        const worker = new Worker(entry, { execArgv: [] })
          .on("message", events.answer)
          .on("error", events.lost)
          .on("exit", (code) => events.lost(new Error(`the thread ended with code ${code}`)));
        return {
          post: (job) => worker.postMessage(job, [job.bytes.buffer]),
          end: () => worker.terminate(),
          hold: (on) => (on ? worker.ref() : worker.unref()),
        };
      }),
  });
}
