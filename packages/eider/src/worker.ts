/** The entry of worker threads. Built as `eider-worker.js`; see `range-threads.ts`. */

import { parentPort } from "node:worker_threads";
import { serveRanges } from "@eider/core/ranges";

const port = parentPort;
if (port) {
  void serveRanges({
    postMessage: (message, transfer) => port.postMessage(message, transfer),
    addEventListener: (type, listener) => void port.on(type, (data: unknown) => listener({ data })),
  });
}
