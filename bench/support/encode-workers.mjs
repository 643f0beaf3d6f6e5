/**
 * NDJSON to Parquet with workers, as an append does it but for the hash and the store: ranges that end with a line go to
 * the worker that is free, row groups come back and are written in order.
 */

import { closeSync, openSync, readSync, writevSync } from "node:fs";
import { parentPort, Worker } from "node:worker_threads";
import { createTextParser, ParquetEncoder, parquetReady } from "@eider/core";

const RANGE_BYTES = 16 * 1024 * 1024;
const LF = 0x0a;

/** The worker's side: answers each range with its row groups. */
export async function serveRanges() {
  await parquetReady();
  parentPort.on("message", ({ schema, bytes }) => {
    const encoder = new ParquetEncoder(schema);
    const groups = [];
    const options = { schema, format: "ndjson", unknownFields: "misfit", valueMisfits: "misfit" };
    // A range is a batch: the parser foresees what its columns will need.
    const parser = createTextParser({ ...options, batchBytes: RANGE_BYTES }, (batch) =>
      groups.push(encoder.encodeRowGroup(batch)),
    );
    parser.push(bytes);
    parser.end();
    const parts = groups.flatMap(({ chunks }) => chunks.flatMap(({ parts }) => parts));
    parentPort.postMessage({ groups, bytes }, [...new Set([...parts, bytes].map(({ buffer }) => buffer))]);
  });
  parentPort.postMessage("ready");
}

export class EncodeWorkers {
  #workers;
  #free = [];
  ready;

  constructor(entry, count) {
    this.#workers = Array.from({ length: count }, () => new Worker(entry));
    this.ready = Promise.all(this.#workers.map((worker) => new Promise((resolve) => worker.once("message", resolve))));
  }

  async close() {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  async encode(input, output, schema) {
    const encoder = new ParquetEncoder(schema);
    const source = openSync(input, "r");
    const target = openSync(output, "w");
    const idle = [...this.#workers];
    const running = [];
    const collect = async () => {
      for (const group of (await running.shift()).groups) writevSync(target, encoder.addRowGroup(group));
    };
    let rest = new Uint8Array(0);
    for (let isLast = false; !isLast; ) {
      const buffer = this.#free.pop() ?? new Uint8Array(RANGE_BYTES);
      buffer.set(rest);
      const length = rest.length + readSync(source, buffer, rest.length, RANGE_BYTES - rest.length);
      isLast = length < RANGE_BYTES;
      const end = isLast ? length : Buffer.from(buffer.buffer, 0, length).lastIndexOf(LF) + 1;
      rest = buffer.slice(end, length);
      while (idle.length === 0) await collect();
      running.push(this.#run(idle, schema, buffer.subarray(0, end)));
    }
    while (running.length > 0) await collect();
    writevSync(target, encoder.finish());
    closeSync(source);
    closeSync(target);
  }

  #run(idle, schema, bytes) {
    const worker = idle.pop();
    return new Promise((resolve, reject) => {
      worker.once("error", reject);
      worker.once("message", (answer) => {
        worker.off("error", reject);
        this.#free.push(new Uint8Array(answer.bytes.buffer));
        idle.push(worker);
        resolve(answer);
      });
      worker.postMessage({ schema, bytes }, [bytes.buffer]);
    });
  }
}
