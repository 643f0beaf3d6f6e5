/** The entry of worker threads. Built as `eider-worker.js`; see `range-threads.ts` and `shared/index-copies.ts`. */

import { parentPort, workerData } from "node:worker_threads";
import { serveRanges } from "@eider/core/ranges";
import { type IndexJob, runIndexJob } from "./shared/index-jobs.js";

const port = parentPort;
if (port) {
  const job = workerData as IndexJob | null;
  if (job) {
    void runIndexJob(job).then((result) => {
      port.postMessage(result);
    });
  } else {
    void serveRanges({
      postMessage: (message, transfer) => port.postMessage(message, transfer),
      addEventListener: (type, listener) => void port.on(type, (data: unknown) => listener({ data })),
    });
  }
}
