/** The entry of worker threads: runs one range after the other. Built as `eider-worker.js`; see `ranges/pool.ts`. */

import { parentPort } from "node:worker_threads";
import { engineReady, parquetReady } from "@eider/core";
import { packFailure } from "./ranges/failure.js";
import { buffersOfResult, type RangeJob, runRange } from "./ranges/job.js";
import type { WorkerAnswer } from "./ranges/pool.js";

/** Waits for the modules, then answers each job; the job's own bytes go back with the answer, to be used again. */
async function serve(port: NonNullable<typeof parentPort>): Promise<void> {
  const post = (answer: WorkerAnswer, buffers: readonly ArrayBuffer[] = []): void => port.postMessage(answer, buffers);
  await Promise.all([parquetReady(), engineReady()]);
  port.on("message", (job: RangeJob) => {
    const { buffer } = job.bytes;
    try {
      const result = runRange(job);
      post({ kind: "result", result, buffer }, [...buffersOfResult(result), buffer]);
    } catch (error) {
      post({ kind: "failure", failure: packFailure(error), buffer }, [buffer]);
    }
  });
  post({ kind: "ready" });
}

if (parentPort) void serve(parentPort);
