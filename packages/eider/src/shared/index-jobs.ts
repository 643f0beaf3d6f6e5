/**
 * Copying an index out and in: work for a thread of its own. The catalog is loaded when it is needed, so that threads that
 * do other things start without it.
 */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { rm } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGunzip, createGzip } from "node:zlib";
import { CatalogError, CorruptionError, EiderError } from "@eider/core";

/** Paths are absolute, and temporary ones are the caller's to remove. */
export type IndexJob =
  /** The index in `from` into the compressed file `to`. */
  | { readonly job: "write"; readonly from: string; readonly to: string }
  /** The compressed file `from` into the index `to`, which others may have open. */
  | { readonly job: "load"; readonly from: string; readonly to: string; readonly lake: string };

export interface WrittenIndex {
  readonly snapshot: number;
  readonly sha256: string;
  readonly bytes: number;
}

export type IndexJobResult =
  | { readonly done: WrittenIndex | undefined }
  | { readonly failure: { readonly kind: "corruption" | "catalog"; readonly code: string; readonly message: string } };

/** Does the job; errors are part of the result, since they have to pass from one thread to another. */
export async function runIndexJob(job: IndexJob): Promise<IndexJobResult> {
  try {
    return { done: job.job === "write" ? await write(job.from, job.to) : await load(job) };
  } catch (error) {
    const kind = error instanceof CorruptionError ? "corruption" : "catalog";
    const code = error instanceof EiderError ? error.code : "checkpoint_failed";
    return { failure: { kind, code, message: error instanceof Error ? error.message : String(error) } };
  }
}

export function resultOf(result: IndexJobResult): WrittenIndex | undefined {
  if ("done" in result) return result.done;
  const { kind, code, message } = result.failure;
  throw kind === "corruption" ? new CorruptionError(code, message) : new CatalogError(code, message);
}

async function write(from: string, to: string): Promise<WrittenIndex> {
  const { copyCatalog } = await import("@eider/catalog");
  const plain = `${to}.plain`;
  try {
    const snapshot = copyCatalog(from, plain);
    const hash = createHash("sha256");
    let bytes = 0;
    await pipeline(
      createReadStream(plain),
      createGzip(),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          hash.update(chunk);
          bytes += chunk.length;
          yield chunk;
        }
      },
      createWriteStream(to),
    );
    return { snapshot, sha256: hash.digest("hex"), bytes };
  } finally {
    await rm(plain, { force: true });
  }
}

async function load({ from, to, lake }: { from: string; to: string; lake: string }): Promise<undefined> {
  const { applyCheckpointFile, SqliteCatalog } = await import("@eider/catalog");
  const plain = `${from}.plain`;
  try {
    await unpack(from, plain);
    // An older version's file becomes one of this version.
    const copy = await SqliteCatalog.open({ path: plain, mode: "open", kind: "shared", lakeId: lake });
    await copy[Symbol.asyncDispose]();
    await using index = await SqliteCatalog.open({ path: to, kind: "shared", lakeId: lake });
    await applyCheckpointFile(index, plain);
  } finally {
    await Promise.all(["", "-wal", "-shm"].map((end) => rm(plain + end, { force: true })));
  }
  return undefined;
}

/** @throws CorruptionError `bad_checkpoint` */
export async function unpack(from: string, to: string): Promise<void> {
  try {
    await pipeline(createReadStream(from), createGunzip(), createWriteStream(to));
  } catch (cause) {
    if (!/^Z_/.test((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
    throw new CorruptionError("bad_checkpoint", "the checkpoint cannot be unpacked", { cause });
  }
}
