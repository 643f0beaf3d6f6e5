/** Copies of the index that is a file: made and read by a worker thread where there is one. */

import { createReadStream, createWriteStream } from "node:fs";
import { link, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { Worker } from "node:worker_threads";
import { renameCatalog, SqliteCatalog } from "@eider/catalog";
import { CatalogError } from "@eider/core";
import { builtWorker } from "../built-worker.js";
import type { IndexCopies } from "./checkpoints.js";
import { type IndexJob, type IndexJobResult, resultOf, runIndexJob, unpack, type WrittenIndex } from "./index-jobs.js";

const TEMPORARY = "checkpoint-";
/** A day: longer than any checkpoint takes. */
const LEFT_MS = 24 * 60 * 60 * 1000;

export interface IndexFilesOptions {
  /** The index's file. Temporary ones are beside it. */
  readonly path: string;
  readonly lake: string;
  /** The worker's entry. Default: the file beside this one, as built. */
  readonly entry?: URL;
}

/** The copies of an index that is open. */
export function indexCopies(options: IndexFilesOptions): IndexCopies {
  const { path, lake, entry = builtWorker() } = options;
  return {
    async write() {
      const folder = await temporary(path);
      try {
        const to = join(folder, "checkpoint.gz");
        const written = resultOf(await run(entry, { job: "write", from: path, to }));
        if (!written) throw new CatalogError("checkpoint_failed", "the thread that writes checkpoints has no result");
        return copyIn(folder, to, written);
      } catch (error) {
        await rm(folder, { recursive: true, force: true });
        throw error;
      }
    },
    async load(body) {
      const folder = await temporary(path);
      try {
        const from = join(folder, "checkpoint.gz");
        await pipeline(body, createWriteStream(from));
        resultOf(await run(entry, { job: "load", from, to: path, lake }));
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
  };
}

/** Makes a copy the index's file, if there is none yet: much faster than taking its tables over. */
export async function makeIndex(
  { path, lake }: IndexFilesOptions,
  body: AsyncIterable<Uint8Array>,
  catalogId: string,
): Promise<void> {
  const folder = await temporary(path);
  try {
    const packed = join(folder, "checkpoint.gz");
    const plain = join(folder, "index.sqlite");
    await pipeline(body, createWriteStream(packed));
    await unpack(packed, plain);
    // It is of this lake, and an older version's becomes one of this version.
    const catalog = await SqliteCatalog.open({ path: plain, mode: "open", kind: "shared", lakeId: lake });
    await catalog[Symbol.asyncDispose]();
    renameCatalog(plain, catalogId);
    await link(plain, path).catch((error: NodeJS.ErrnoException) => {
      // Another process of this host was faster: its index is as good.
      if (error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function copyIn(folder: string, path: string, written: WrittenIndex): Awaited<ReturnType<IndexCopies["write"]>> {
  return {
    ...written,
    body: createReadStream(path),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A new folder beside the index. Those that a killed process has left there are removed. */
async function temporary(path: string): Promise<string> {
  const parent = dirname(path);
  for (const name of await readdir(parent)) {
    if (!name.startsWith(TEMPORARY)) continue;
    const left = join(parent, name);
    const age = Date.now() - ((await stat(left).catch(() => undefined))?.mtimeMs ?? Date.now());
    if (age > LEFT_MS) await rm(left, { recursive: true, force: true });
  }
  return mkdtemp(join(parent, TEMPORARY));
}

/** In a thread of its own; in this one where a bundle left the worker's file behind or the host allows no threads. */
async function run(entry: URL | undefined, job: IndexJob): Promise<IndexJobResult> {
  if (!entry) return runIndexJob(job);
  // The process's own arguments may not be a worker's, such as those of `node --input-type`.
  const worker = new Worker(entry, { execArgv: [], workerData: job });
  return new Promise((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", (code) =>
      reject(new CatalogError("checkpoint_failed", `the thread of a checkpoint ended with code ${code}`)),
    );
  });
}
