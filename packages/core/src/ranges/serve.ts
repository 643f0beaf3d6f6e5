/** The worker's side: runs one range after the other. */

import { parquetReady } from "../index.js";
import { packFailure } from "./failure.js";
import { buffersOfResult, type RangeJob, runRange } from "./job.js";
import type { WorkerAnswer } from "./pool.js";

/** Where jobs come from and answers go to: the global scope of a web worker, or a port. */
export interface RangePort {
  postMessage(message: unknown, transfer: ArrayBuffer[]): void;
  addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

/**
 * Makes a worker of the caller's thread: call it once in a worker's entry, `serveRanges(self)`. The job's own bytes go
 * back as soon as they are parsed, to be used again.
 */
export async function serveRanges(port: RangePort): Promise<void> {
  const post = (answer: WorkerAnswer, buffers: ArrayBuffer[] = []): void => port.postMessage(answer, buffers);
  await parquetReady();
  port.addEventListener("message", ({ data }) => {
    const job = data as RangeJob;
    const { buffer } = job.bytes;
    try {
      const result = runRange(job, () => post({ kind: "parsed", buffer }, [buffer]));
      post({ kind: "result", result }, buffersOfResult(result));
    } catch (error) {
      post({ kind: "failure", failure: packFailure(error) });
    }
  });
  post({ kind: "ready" });
}
