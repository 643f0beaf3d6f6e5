import type { Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { errorCode, fileError, isAbsent } from "./file-error.js";
import { factsOf } from "./file-facts.js";
import { type Folders, WINDOWS } from "./folders.js";
import { compareKeys, folderOf, keyProblem, nameToSegment } from "./keys.js";
import type { ListOptions, ObjectInfo } from "./store.js";

/** Files whose size and time are asked for at once. */
const STAT_BATCH = 64;

/** A file or folder of a level that may matter. */
interface Entry {
  readonly name: string;
  /** A folder's ends with a slash: that puts `a-b` before all of `a/…`, and those before `a0`. */
  readonly key: string;
  readonly isFolder: boolean;
}

/** One folder being listed; only the folders from the root to the current one are in memory. */
interface Level {
  readonly path: string;
  readonly entries: readonly Entry[];
  next: number;
}

/** The objects under a prefix in the order of their keys' bytes. Links and names that are no keys are left out. */
export async function* listFiles(folders: Folders, prefix: string, options: ListOptions): AsyncGenerator<ObjectInfo> {
  const { after, signal } = options;
  signal?.throwIfAborted();
  const start = folderOf(prefix);
  // No key can begin like this.
  if (prefix.startsWith("/") || (start !== "" && keyProblem(start) !== undefined)) return;
  const path = await folders.find(start);
  if (path === undefined) return;

  const levels: Level[] = [await readLevel(path, start === "" ? "" : `${start}/`, prefix, after)];
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    signal?.throwIfAborted();
    const entry = level.entries[level.next];
    if (entry === undefined) {
      levels.pop();
    } else if (entry.isFolder) {
      level.next++;
      levels.push(await readLevel(join(level.path, entry.name), entry.key, prefix, after));
    } else {
      const files = takeFiles(level);
      for (const info of await Promise.all(files.map((file) => inspect(join(level.path, file.name), file.key)))) {
        signal?.throwIfAborted();
        if (info !== undefined) yield info;
      }
    }
  }
}

/** The files from here to the next folder, at most one batch. */
function takeFiles(level: Level): readonly Entry[] {
  const first = level.next;
  while (level.next - first < STAT_BATCH && level.entries[level.next]?.isFolder === false) level.next++;
  return level.entries.slice(first, level.next);
}

async function readLevel(path: string, folder: string, prefix: string, after: string | undefined): Promise<Level> {
  let found: Dirent[];
  try {
    found = await readdir(path, { withFileTypes: true });
  } catch (error) {
    // Removed since its parent was read.
    if (!isAbsent(error)) throw fileError(error, folder, "read");
    found = [];
  }
  const entries: Entry[] = [];
  for (const entry of found) {
    const isFolder = entry.isDirectory();
    if (!isFolder && !entry.isFile()) continue;
    const key = folder + nameToSegment(entry.name, WINDOWS);
    if (keyProblem(key) !== undefined) continue;
    const listed = isFolder ? `${key}/` : key;
    if (isFolder ? mayHold(listed, prefix, after) : isListed(listed, prefix, after)) {
      entries.push({ name: entry.name, key: listed, isFolder });
    }
  }
  entries.sort((a, b) => compareKeys(a.key, b.key));
  return { path, entries, next: 0 };
}

function isListed(key: string, prefix: string, after: string | undefined): boolean {
  return key.startsWith(prefix) && (after === undefined || compareKeys(key, after) > 0);
}

/** Whether a key that begins with `folder` can be listed. */
function mayHold(folder: string, prefix: string, after: string | undefined): boolean {
  if (!folder.startsWith(prefix) && !prefix.startsWith(folder)) return false;
  return after === undefined || after.startsWith(folder) || compareKeys(folder, after) > 0;
}

async function inspect(path: string, key: string): Promise<ObjectInfo | undefined> {
  try {
    const stats = await lstat(path, { bigint: true });
    return stats.isFile() ? { key, ...factsOf(stats) } : undefined;
  } catch (error) {
    if (isAbsent(error) || errorCode(error) === "ENAMETOOLONG") return undefined;
    throw fileError(error, key, "read");
  }
}
