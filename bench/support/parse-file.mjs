/** A file into columns, none of which is kept. Run as a worker, on a host that has no WebAssembly: by TypeScript alone. */

import { closeSync, openSync, readSync } from "node:fs";
import { isMainThread, parentPort } from "node:worker_threads";

if (!isMainThread) globalThis.WebAssembly = undefined;
const { assignFieldIds, createTextParser, toSchema } = await import("@eider/core");

const CHUNK_BYTES = 1 << 20;

/** How many rows the file has. */
export function parse(file, { types, format = "ndjson" }) {
  const schema = assignFieldIds(toSchema(types));
  const parser = createTextParser({ schema, format, unknownFields: "misfit", valueMisfits: "misfit" });
  const chunk = new Uint8Array(CHUNK_BYTES);
  const input = openSync(file, "r");
  for (let size = readSync(input, chunk); size > 0; size = readSync(input, chunk)) {
    parser.push(chunk.subarray(0, size));
    while (parser.take() !== undefined);
  }
  closeSync(input);
  parser.end();
  return parser.rows;
}

parentPort?.on("message", ({ file, options }) => parentPort.postMessage(parse(file, options)));
