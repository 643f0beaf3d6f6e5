/** What this host keeps of a lake that is elsewhere. */

import { tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import type { ObjectStore } from "@eider/storage";

/** The folder of a lake: for its index, and for copies of its data files. Of this user alone, for both decide what is read. */
export function lakeCacheFolder(cacheDir: string | undefined, lake: string): string {
  const root = cacheDir === undefined ? join(tmpdir(), `eider-${userInfo().uid}`) : resolve(cacheDir);
  return join(root, lake);
}

/** Where processes share copies of data files; undefined where the store has paths, or ends with its process. */
export function copiesFolder(store: ObjectStore, cacheDir: string | undefined, lake: string): string | undefined {
  if (store.localPath !== undefined || store.url.startsWith("memory:")) return undefined;
  return join(lakeCacheFolder(cacheDir, lake), "copies");
}
