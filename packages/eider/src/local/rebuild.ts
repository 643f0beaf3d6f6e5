/** A local lake that has lost its catalog: made again from what its store has. */

import { createWriteStream } from "node:fs";
import { link, mkdtemp, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";
import { journalEntries, renameCatalog, SqliteCatalog } from "@eider/catalog";
import { AlreadyExistsError, CatalogError, CorruptionError, InvalidInputError, NotFoundError } from "@eider/core";
import { FileStore, type ObjectStore, openStore } from "@eider/storage";
import { readLakeFile } from "../lake-file.js";
import type { RebuildOptions, RebuildResult } from "../options.js";
import { dataFiles } from "../orphans.js";
import { loadCheckpoint } from "../shared/checkpoints.js";
import { unpack } from "../shared/index-jobs.js";
import { catalogPath } from "./catalog-path.js";
import { listPages, readPage } from "./journal.js";

/** As `Lake.rebuild`. */
export async function rebuildLake(where: string | URL, options: RebuildOptions): Promise<RebuildResult> {
  await using store = await openStore(where);
  if (!(store instanceof FileStore)) {
    const advice =
      "is in no folder: a shared lake needs no rebuilding, open it; one with a catalog of yours needs that";
    throw new InvalidInputError("bad_location", `${store.url} ${advice}`, { subject: store.url });
  }
  return await rebuildCatalog(store, catalogPath(fileURLToPath(store.url)), options);
}

/** Makes the catalog in `path` from the newest checkpoint and the entries after it. */
async function rebuildCatalog(
  store: ObjectStore,
  path: string,
  { signal, onProgress, logger }: RebuildOptions,
): Promise<RebuildResult> {
  const file = await readLakeFile(store);
  if (!file) throw new NotFoundError("lake_not_found", `there is no lake at ${store.url}`, { subject: store.url });
  if (file.catalog === undefined) {
    const advice = "needs no rebuilding: hosts make their indexes from its log by themselves, just open it";
    throw new CatalogError("lake_is_shared", `the lake at ${store.url} is shared and ${advice}`);
  }
  if (file.moved) {
    throw new CatalogError("lake_moved", `the lake at ${store.url} goes on at another place: open it there`);
  }
  await assertGone(path);
  const folder = await mkdtemp(join(dirname(path), "rebuild-"));
  try {
    const plain = join(folder, "catalog.sqlite");
    const checkpoint = await loadCheckpoint(
      store,
      1,
      async (body) => {
        await pipeline(body, createWriteStream(`${plain}.gz`));
        await unpack(`${plain}.gz`, plain);
      },
      logger,
    );
    const catalog = await SqliteCatalog.open({ path: plain, lakeId: file.lake });
    let result: RebuildResult;
    try {
      const entries = await replay(store, catalog, signal, (entries) => onProgress?.({ entries }));
      const { snapshot } = await catalog.head();
      await catalog.setJournaled(snapshot);
      const unnamed = await countUnnamed(store, catalog, signal);
      result = { snapshot, checkpoint: checkpoint?.snapshot ?? 0, entries, unnamed };
    } finally {
      await catalog[Symbol.asyncDispose]();
    }
    renameCatalog(plain, file.catalog);
    await publish(plain, path);
    return result;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What is left beside a catalog that is gone would be taken for the new one's. */
async function assertGone(path: string): Promise<void> {
  if (await exists(path)) {
    throw new AlreadyExistsError(
      "catalog_exists",
      `the lake has its catalog ${path}: move that away, with the files beside it, if it is to be rebuilt`,
      { subject: path },
    );
  }
  if (await exists(`${path}-wal`)) await rename(`${path}-wal`, `${path}-wal-lost`);
  await rm(`${path}-shm`, { force: true });
}

/** Applies the entries after the checkpoint, as far as they follow each other. */
async function replay(
  store: ObjectStore,
  catalog: SqliteCatalog,
  signal: AbortSignal | undefined,
  onEntries: (entries: number) => void,
): Promise<number> {
  let entries = 0;
  let { snapshot } = await catalog.head();
  for (const page of await listPages(store)) {
    signal?.throwIfAborted();
    if (page.last <= snapshot) continue;
    if (page.first > snapshot + 1) {
      throw new CorruptionError(
        "journal_gap",
        `the store lacks entry ${snapshot + 1} of the lake, and has later ones: restore ${page.key} and what is before it`,
        { subject: page.key },
      );
    }
    let n = page.first;
    for (const entry of journalEntries(await readPage(store, page))) {
      if (n++ <= snapshot) continue;
      await catalog.applyEntry(entry);
      snapshot++;
      onEntries(++entries);
    }
  }
  return entries;
}

/** Data files of batches that were lost, or were never committed. */
async function countUnnamed(
  store: ObjectStore,
  catalog: SqliteCatalog,
  signal: AbortSignal | undefined,
): Promise<number> {
  let unnamed = 0;
  for await (const page of dataFiles(store, signal)) {
    unnamed += page.length - (await catalog.referencedKeys(page.map(({ key }) => key))).size;
  }
  return unnamed;
}

/** From here on the lake has its catalog. */
async function publish(plain: string, path: string): Promise<void> {
  await sync(plain, "r+");
  await link(plain, path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code !== "EEXIST") throw cause;
    throw new AlreadyExistsError("catalog_exists", `another process has made the catalog ${path}`, { cause });
  });
  if (process.platform !== "win32") await sync(dirname(path), "r");
}

async function sync(path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
