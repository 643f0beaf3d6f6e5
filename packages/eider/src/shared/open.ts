/** Opening a shared lake: the store says which it is, and this host keeps an index of its log. */

import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { SqliteCatalog, type Timer } from "@eider/catalog";
import { CatalogError, NotFoundError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { lakeCacheFolder } from "../lake-cache.js";
import { COPY_MARK, type LakeFile, readLakeFile, writeLakeFile } from "../lake-file.js";
import type { LakeOptions } from "../options.js";
import { loadCheckpoint } from "./checkpoints.js";
import { indexCopies, makeIndex } from "./index-copies.js";
import { assertShareable } from "./probe.js";
import { SharedCatalog } from "./shared-catalog.js";

/** A second: as old as what people look at may be without their noticing. */
const STALENESS_MS = 1000;

export interface SharedParts {
  readonly clock: () => number;
  readonly random: (size: number) => Uint8Array;
  readonly timer: Timer;
  readonly newId: () => string;
}

/**
 * @throws StoreError `not_shareable` when the lake would have to be made and the store cannot hold it
 * @throws NotFoundError `lake_not_found`, `not_a_lake`
 * @throws CatalogError `lake_is_local`, `log_replaced`
 */
export async function openSharedCatalog(
  store: ObjectStore,
  options: LakeOptions,
  { clock, random, timer, newId }: SharedParts,
): Promise<SharedCatalog> {
  const { lake } = await findSharedLake(store, options.mode ?? "create", newId);
  const path = await indexPath(options.cacheDir, lake);
  const { logger } = options;
  if (!existsSync(path)) {
    // A new host begins with the newest checkpoint, and not with the whole log.
    await loadCheckpoint(store, 1, (body) => makeIndex({ path, lake }, body, newId()), logger);
  }
  const index = await SqliteCatalog.open({
    path,
    kind: "shared",
    lakeId: lake,
    clock,
    random,
    timer,
  });
  try {
    return await SharedCatalog.open({
      store,
      index,
      timer,
      clock,
      random,
      readOnly: options.mode === "read",
      stalenessMs: options.stalenessMs ?? STALENESS_MS,
      copies: indexCopies({ path, lake }),
      ...(logger && { logger }),
    });
  } catch (error) {
    await index[Symbol.asyncDispose]();
    throw error;
  }
}

/** The shared lake in a store, which is made if there is none and it may be. */
export async function findSharedLake(
  store: ObjectStore,
  mode: "create" | "open" | "read",
  newId: () => string,
): Promise<LakeFile> {
  const found = (await readLakeFile(store)) ?? (mode === "create" ? await makeSharedLake(store, newId) : undefined);
  if (!found) throw new NotFoundError("lake_not_found", `there is no lake at ${store.url}`, { subject: store.url });
  if (found.mode === "local") {
    throw new CatalogError(
      "lake_is_local",
      `the lake at ${store.url} is served by one catalog (${found.catalog}): open it with { store, catalog }`,
      { subject: store.url },
    );
  }
  return found;
}

async function makeSharedLake(store: ObjectStore, newId: () => string): Promise<LakeFile | undefined> {
  for await (const { key } of store.list("")) {
    // What another process leaves there while it makes this very lake is no hindrance.
    if (key.startsWith("_eider/") && key !== COPY_MARK) continue;
    const made = await readLakeFile(store);
    if (made) return made; // by another process, since we looked
    throw new NotFoundError(
      "not_a_lake",
      `${store.url} holds other objects and is not a lake: choose a new or empty place`,
      { subject: store.url },
    );
  }
  await assertShareable(store, newId);
  return writeLakeFile(store, { lake: newId(), mode: "shared" });
}

async function indexPath(cacheDir: string | undefined, lake: string): Promise<string> {
  const folder = lakeCacheFolder(cacheDir, lake);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return join(folder, "index.sqlite");
}
