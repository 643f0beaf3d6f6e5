/** Web workers for a pool. */

import { RangePool, type RangePoolOptions } from "./pool.js";

/** What a worker tells of an error: declared in browsers' libraries alone. */
type ErrorEventThere = typeof globalThis extends { ErrorEvent: { prototype: infer E } }
  ? E
  : { readonly message: string };

/** What this needs of a `Worker`. */
interface WebWorker {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  terminate(): void;
  onmessage: ((event: MessageEvent) => void) | null;
  onerror: ((event: ErrorEventThere) => void) | null;
}

export interface WebWorkerOptions extends Omit<RangePoolOptions, "start" | "threads"> {
  /** Default: one per core, as the browser tells, three at most. */
  readonly threads?: number;
}

/** Each takes some 40 MB of memory, and all have to wait for the one that reads the input. */
const MAX_DEFAULT_THREADS = 3;

/**
 * A pool of web workers for `encodeText`. End it with `await pool[Symbol.asyncDispose]()` or `await using`.
 * @param create makes a worker whose entry calls `serveRanges(self)`, such as
 *   `() => new Worker(new URL("./ranges.worker.js", import.meta.url), { type: "module" })`
 */
export function webWorkers(create: () => WebWorker, options: WebWorkerOptions = {}): RangePool {
  const cores = (globalThis as { navigator?: Partial<Navigator> }).navigator?.hardwareConcurrency ?? 1;
  return new RangePool({
    ...options,
    threads: options.threads ?? Math.min(cores, MAX_DEFAULT_THREADS),
    start: (events) => {
      const worker = create();
      worker.onmessage = ({ data }) => events.answer(data);
      worker.onerror = (event) => {
        // What is handled here is no error of the page.
        event.preventDefault();
        worker.terminate();
        events.lost(new Error(event.message || "the worker's script could not be loaded"));
      };
      return {
        post: (job) => worker.postMessage(job, [job.bytes.buffer]),
        end: () => worker.terminate(),
      };
    },
  });
}
