/**
 * A lake at another place, as a shared one: with its history, snapshots and receipts. First the data files, then a
 * checkpoint and the last entry's stub, and last `lake.json`, which makes it a lake. Whatever stops it before that leaves a
 * place that is no lake yet, and can be gone on with; the source is only read.
 */

import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { type Catalog, type SharedCopy, shareCopy } from "@eider/catalog";
import { AlreadyExistsError, CatalogError, CorruptionError, StoreError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { COPY_MARK, type LakeFile, markMoved, readLakeFile, writeLakeFile } from "./lake-file.js";
import type { CopyOptions, CopyResult } from "./options.js";
import { findObject } from "./read-object.js";
import { checkpointKey, type IndexCopy, listCheckpoints, putCheckpoint } from "./shared/checkpoints.js";
import { LOG, logKey } from "./shared/log.js";
import { assertShareable } from "./shared/probe.js";

/** Data files copied at the same time. */
const COPIES = 8;
/** Times that a local lake is looked at again because others have committed meanwhile. */
const LOOKS = 20;
/** What an unfinished copy says of itself. */
interface Mark {
  /** Of which lake it is, and which it will be. */
  readonly from: string;
  readonly lake: string;
  /** Random: of two copies of a lake, one goes on. */
  readonly id: string;
}

export interface CopySource {
  readonly store: ObjectStore;
  readonly catalog: Catalog;
  readonly tempFolder: string;
  readonly newId: () => string;
}

/**
 * Copies a lake into an empty store, as another lake.
 * @throws AlreadyExistsError `place_taken`
 */
export async function copyLake(source: CopySource, to: ObjectStore, options: CopyOptions): Promise<CopyResult> {
  const mark = await beginCopy(source, to, source.newId());
  const progress = new CopyProgress(options);
  if (await readLakeFile(to)) return { lake: mark.lake, snapshot: await endCopy(to), ...progress.result };
  const copy = await exportCopy(source, mark.lake);
  await copyFiles(source.store, to, copy.content, progress);
  return { lake: mark.lake, snapshot: await finishCopy(to, mark, copy), ...progress.result };
}

/**
 * Moves a local lake into an empty store, where hosts share it from then on. It stays the same lake; its old catalog
 * commits nothing any more from the moment when the rest of it is copied.
 * @throws AlreadyExistsError `place_taken`; CatalogError `lake_is_shared`, `lake_moved` to another place, `too_contended`
 */
export async function shareLake(source: CopySource, to: ObjectStore, options: CopyOptions): Promise<CopyResult> {
  const { catalog, store } = source;
  if (catalog.kind === "shared")
    throw new CatalogError("lake_is_shared", "the lake is shared already: copy it instead");
  const finished = await readLakeFile(to);
  // The lake itself is no place to go on with, by whatever name it was given.
  const isThere = finished?.lake === catalog.lakeId && finished.mode === "shared";
  const mark = isThere ? undefined : await beginCopy(source, to, catalog.lakeId);
  const progress = new CopyProgress(options);
  for (let looks = 1; ; looks++) {
    const copy = await exportCopy(source, catalog.lakeId);
    if (mark) await copyFiles(store, to, copy.content, progress);
    options.signal?.throwIfAborted();
    // From here on only the other place may commit.
    if (await catalog.retire(copy.content.snapshot, mark?.id)) {
      await markMoved(store);
      if (mark) await finishCopy(to, mark, copy);
      return { lake: catalog.lakeId, snapshot: copy.content.snapshot, ...progress.result };
    }
    if (looks === LOOKS) {
      throw new CatalogError("too_contended", "the lake changes faster than it can be copied: stop its writers", {
        retryable: true,
      });
    }
  }
}

class CopyProgress {
  readonly #options: CopyOptions;
  #files = 0;
  #bytes = 0;
  readonly #seen = new Set<string>();

  constructor(options: CopyOptions) {
    this.#options = options;
  }

  get result(): { readonly files: number; readonly bytes: number } {
    return { files: this.#files, bytes: this.#bytes };
  }

  get signal(): AbortSignal | undefined {
    return this.#options.signal;
  }

  isDone(key: string): boolean {
    return this.#seen.has(key);
  }

  done(file: { readonly key: string; readonly bytes: number }, totalFiles: number): void {
    this.#seen.add(file.key);
    this.#files++;
    this.#bytes += file.bytes;
    this.#options.onProgress?.({ files: this.#files, totalFiles, bytes: this.#bytes });
  }
}

/**
 * Takes the place, or goes on with what an earlier try has left there. That may be all of it, if only the answer to its last
 * request was lost.
 */
async function beginCopy({ catalog, newId }: CopySource, to: ObjectStore, lake: string): Promise<Mark> {
  const taken = (what: string): never => {
    throw new AlreadyExistsError("place_taken", `${to.url} ${what}: choose a new or empty place`, { subject: to.url });
  };
  const made = await readLakeFile(to);
  const found = await readMark(to);
  if (made && made.lake !== found?.lake) taken("is a lake already");
  if (!found) for await (const { key } of to.list("")) taken(`holds other objects, such as ${key}`);
  const mark = found ?? (await putMark(to, { from: catalog.lakeId, lake, id: newId() }));
  if (mark.from !== catalog.lakeId) taken("holds an unfinished copy of another lake");
  if (made) return mark;
  await assertShareable(to, newId).catch(async (error: unknown) => {
    if (error instanceof StoreError && error.code === "not_shareable") await to.delete(COPY_MARK);
    throw error;
  });
  return mark;
}

async function putMark(to: ObjectStore, mark: Mark): Promise<Mark> {
  try {
    await to.put(COPY_MARK, Buffer.from(`${JSON.stringify(mark)}\n`), { ifAbsent: true });
    return mark;
  } catch (error) {
    // A request that was sent twice has met itself, or one of an earlier try.
    const found = error instanceof AlreadyExistsError ? await readMark(to) : undefined;
    if (!found) throw error;
    return found;
  }
}

async function readMark(store: ObjectStore): Promise<Mark | undefined> {
  const found = await findObject(store, COPY_MARK);
  return found && (JSON.parse(found.bytes.toString()) as Mark);
}

interface ExportedCopy {
  readonly content: SharedCopy;
  readonly index: Uint8Array;
}

async function exportCopy({ catalog, tempFolder }: CopySource, lake: string): Promise<ExportedCopy> {
  const folder = await mkdtemp(join(tempFolder, "eider-copy-"));
  try {
    const path = join(folder, "index.sqlite");
    await catalog.exportTo(path);
    const content = shareCopy(path, lake);
    return { content, index: await readFile(path) };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Each is compared with its SHA-256 on the way; one that is there with its size was copied before. */
async function copyFiles(
  from: ObjectStore,
  to: ObjectStore,
  { files }: SharedCopy,
  progress: CopyProgress,
): Promise<void> {
  const left = files.filter(({ key }) => !progress.isDone(key)).reverse();
  const copyNext = async (): Promise<void> => {
    for (let file = left.pop(); file; file = left.pop()) {
      progress.signal?.throwIfAborted();
      const { key, bytes, sha256 } = file;
      if ((await to.head(key))?.size !== bytes) await to.put(key, checked(from, key, sha256));
      progress.done(file, files.length);
    }
  };
  await Promise.all(Array.from({ length: COPIES }, copyNext));
}

async function* checked(from: ObjectStore, key: string, sha256: string): AsyncIterable<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of (await from.get(key)).body) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") !== sha256) {
    throw new CorruptionError("file_changed", `${key} is not what was committed: run verify`, { subject: key });
  }
}

/** Makes the place a lake. Returns the snapshot that it is of, which is an earlier one if an earlier try has made it one. */
async function finishCopy(to: ObjectStore, { lake }: Mark, { content, index }: ExportedCopy): Promise<number> {
  const { snapshot, stub } = content;
  const taken = new AlreadyExistsError("place_taken", `${to.url} was made a lake by another program meanwhile`);
  const made = await readLakeFile(to);
  if (made && made.lake !== lake) throw taken;
  if (made) return endCopy(to);
  if (stub) await putIndex(to, snapshot, index, stub);
  const file: LakeFile | undefined = await writeLakeFile(to, { lake, mode: "shared" });
  if (file?.lake !== lake) throw taken;
  return endCopy(to, snapshot);
}

/** What a new host begins with: two checkpoints, as every lake has, in case one is damaged, and the last entry's stub. */
async function putIndex(to: ObjectStore, snapshot: number, index: Uint8Array, stub: Uint8Array): Promise<void> {
  const copies: IndexCopy[] = [];
  for (const level of [6, 9]) {
    const body = await promisify(gzip)(index, { level });
    const sha256 = createHash("sha256").update(body).digest("hex");
    copies.push({ snapshot, sha256, bytes: body.length, body, async [Symbol.asyncDispose]() {} });
  }
  // Of a try before this one, at an earlier snapshot. Whatever is put again is not deleted: that may take effect later.
  const kept = new Set([logKey(snapshot), ...copies.map(checkpointKey)]);
  const old = (await listCheckpoints(to)).map(({ key }) => key);
  for await (const { key } of to.list(LOG)) old.push(key);
  await to.delete(old.filter((key) => !kept.has(key)));
  for (const copy of copies) await putCheckpoint(to, copy);
  await to.put(logKey(snapshot), stub);
}

async function endCopy(to: ObjectStore, snapshot?: number): Promise<number> {
  const copied = snapshot ?? (await listCheckpoints(to))[0]?.snapshot ?? 0;
  await to.delete(COPY_MARK).catch(() => undefined); // of no use, and no harm
  return copied;
}
