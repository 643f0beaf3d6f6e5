/**
 * The removal of orphans: data files that were staged and never committed, and those that only ended snapshots show.
 * Order matters (commit protocol, "Orphans"): the floor is raised first, so that a writer still holding such a file can
 * no longer commit it; only then is anything deleted.
 */

import type { Catalog } from "@eider/catalog";
import { StoreError } from "@eider/core";
import type { ObjectInfo, ObjectStore, UnfinishedUpload } from "@eider/storage";
import { snapshotAt } from "./expire.js";
import type { MaintainOptions, MaintainResult } from "./options.js";

/** 24 hours. */
const GRACE_MS = 24 * 60 * 60 * 1000;
/** Keys looked up or deleted at a time. */
const PAGE = 1000;

export async function removeOrphans(
  { store, catalog, clock }: { store: ObjectStore; catalog: Catalog; clock: () => number },
  options: Pick<MaintainOptions, "graceMs" | "signal">,
): Promise<Pick<MaintainResult, "deleted" | "bytes">> {
  const cutoff = (store.serverTime?.() ?? clock()) - (options.graceMs ?? GRACE_MS);
  await catalog.tidy(cutoff, options.signal);
  const floor = await snapshotAt(catalog, cutoff);
  const found = await orphans(store, catalog, floor, cutoff, options.signal);
  const uploads = await oldUploads(store, floor, cutoff, options.signal);
  if (found.length === 0 && uploads.length === 0) return { deleted: [], bytes: 0 };
  if (floor > (await catalog.head()).floor) await catalog.commit({ operations: [{ op: "floor", floor }] });
  // Looked up again: a writer may have committed its file between the listing and the floor.
  const orphaned = await unreferenced(catalog, found);
  for (let i = 0; i < orphaned.length; i += PAGE) {
    options.signal?.throwIfAborted();
    await store.delete(orphaned.slice(i, i + PAGE).map((object) => object.key));
  }
  for (const upload of uploads) {
    options.signal?.throwIfAborted();
    await upload.abort();
  }
  const deleted = [...orphaned, ...uploads].map(({ key }) => key);
  return { deleted, bytes: orphaned.reduce((sum, { size }) => sum + size, 0) };
}

/**
 * Our own data files (by name) that are old by their base and by their age, and that nothing names; and at any age those
 * that were committed and are unused, for which there was a wait before.
 */
async function orphans(
  store: ObjectStore,
  catalog: Catalog,
  floor: number,
  cutoff: number,
  signal: AbortSignal | undefined,
): Promise<ObjectInfo[]> {
  const found: ObjectInfo[] = [];
  for await (const page of dataFiles(store, signal)) {
    const unused = await catalog.unusedKeys(page.map(({ key }) => key));
    const isDue = ({ key, modifiedAt }: ObjectInfo): boolean =>
      unused.has(key) || (modifiedAt <= cutoff && (fileBase(key) ?? floor) < floor);
    found.push(...(await unreferenced(catalog, page.filter(isDue))));
  }
  return found;
}

/** Uploads of data files that could not be committed any more. */
async function oldUploads(
  store: ObjectStore,
  floor: number,
  cutoff: number,
  signal: AbortSignal | undefined,
): Promise<UnfinishedUpload[]> {
  const found: UnfinishedUpload[] = [];
  try {
    for await (const upload of store.unfinishedUploads?.("", signal ? { signal } : {}) ?? []) {
      if (upload.startedAt <= cutoff && (fileBase(upload.key) ?? floor) < floor) found.push(upload);
    }
  } catch (error) {
    // Not allowed, or not known there: the store's own rule on unfinished uploads ends them.
    if (!(error instanceof StoreError) || error.retryable) throw error;
  }
  return found;
}

async function unreferenced(catalog: Catalog, objects: readonly ObjectInfo[]): Promise<ObjectInfo[]> {
  const result: ObjectInfo[] = [];
  for (let i = 0; i < objects.length; i += PAGE) {
    const page = objects.slice(i, i + PAGE);
    const referenced = await catalog.referencedKeys(page.map((object) => object.key));
    result.push(...page.filter((object) => !referenced.has(object.key)));
  }
  return result;
}

/** Everything in the store but the lake's own folder, a page at a time. */
export async function* dataFiles(store: ObjectStore, signal: AbortSignal | undefined): AsyncIterable<ObjectInfo[]> {
  let page: ObjectInfo[] = [];
  for await (const object of store.list("", signal ? { signal } : {})) {
    if (object.key.startsWith("_eider/")) continue;
    page.push(object);
    if (page.length === PAGE) {
      yield page;
      page = [];
    }
  }
  if (page.length > 0) yield page;
}

/**
 * The base snapshot in a data file's name, `<table>/data/…/<base>-<id>.parquet`; undefined for files that are not ours: those
 * of a lake in a folder of this one's have their own `<table>/data/` further on. No part of a partition is just `data`.
 */
function fileBase(key: string): number | undefined {
  const match = /^[^/]+\/data\/(?:(?!data\/)[^/]+\/)*(\d+)-[0-9a-f-]{36}\.parquet$/.exec(key);
  return match ? Number(match[1]) : undefined;
}
