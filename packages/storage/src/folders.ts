import { lstat, mkdir, open, realpath, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { StoreError } from "@eider/core";
import { ExactNames, mergedName } from "./exact-names.js";
import { errorCode, fileError, isAbsent } from "./file-error.js";
import { folderOf, keyToPath, TEMPORARY_FOLDER } from "./keys.js";
import { networkWarning, type StoreWarning } from "./network-disk.js";

/** True where file names have Windows' rules. */
export const WINDOWS: boolean = process.platform === "win32";

/** How file systems say that a folder cannot be synced, which is not the same as failing to. */
const SYNC_UNSUPPORTED = new Set(["EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EISDIR"]);

/** A call that races with a remover of empty folders tries again; each more try needs another remover. */
export const MAX_RACES = 100;

/**
 * The folders below a root: none of them reached through a symbolic link, and each made so that it survives a power cut.
 * Keys name folders without a trailing slash; the root is "".
 *
 * Links that are there when a call begins are refused. Whoever can swap a folder for a link during a call could write
 * to the root anyway.
 */
export class Folders {
  readonly root: string;
  readonly #durable: boolean;
  /** Until it was called or there is nothing to warn of. */
  #onWarning: ((warning: StoreWarning) => void) | undefined;
  #real: string | undefined;
  #rootSettled = false;
  /** Folders that are known to be called as their keys say. */
  readonly #exact = new Set<string>();
  #names: ExactNames | undefined;
  /** Folders whose own entry in their parent is known to be on disk. */
  readonly #settled = new Set<string>();
  /** By path: the sync that runs now, and the one that starts after it and serves everybody who came meanwhile. */
  readonly #syncs = new Map<string, { running: Promise<void>; next?: Promise<void> }>();

  constructor(root: string, durable: boolean, onWarning?: (warning: StoreWarning) => void) {
    this.root = resolve(root);
    this.#durable = durable;
    this.#onWarning = onWarning;
  }

  /** The real path of a folder, or undefined if it is not there. */
  async find(key: string): Promise<string | undefined> {
    const path = await this.#findAny(key);
    return path === undefined || (await this.#isExact(path, key)) ? path : undefined;
  }

  /** Whether the entry that was found there is called so, and not only taken for it. */
  async hasName(folder: string, name: string): Promise<boolean> {
    return this.#names === undefined || this.#names.has(folder, name);
  }

  /** The real path of a folder, made with its parents if need be. Their entries are on disk when this returns. */
  async make(key: string): Promise<string> {
    for (let race = 0; race < MAX_RACES; race++) {
      const root = await this.#makeRoot();
      const path = await this.#findAny(key);
      if (path !== undefined) {
        if (!(await this.#isExact(path, key))) throw mergedName(key);
        if (key === TEMPORARY_FOLDER) await this.#names?.assertKept(path);
        await this.#settle(root, key);
        return path;
      }
      const parent = await this.make(folderOf(key));
      await this.#makeOne(join(root, keyToPath(key, WINDOWS)), key, parent);
    }
    throw new StoreError("store_busy", `${key}: its folder is removed again and again by others. Try again.`, {
      subject: key,
      retryable: true,
    });
  }

  /** After a file was put into it or removed: returns when a folder's entries are on disk. */
  async sync(path: string): Promise<void> {
    // Windows cannot sync folders; NTFS journals their entries.
    if (!this.#durable || WINDOWS) return;
    const current = this.#syncs.get(path);
    if (current === undefined) return this.#startSync(path);
    // The running one may have begun before the caller's change.
    current.next ??= current.running.catch(() => undefined).then(() => this.#startSync(path));
    return current.next;
  }

  /** After objects were removed from these folders: removes the empty ones and their empty parents, syncs the rest. */
  async prune(keys: Iterable<string>): Promise<void> {
    const root = await this.#findRoot();
    if (root === undefined) return;
    const left = new Set<string>();
    for (const key of keys) left.add(await this.#pruneOne(root, key));
    await Promise.all([...left].map((key) => this.sync(join(root, keyToPath(key, WINDOWS)))));
  }

  /** The real path of what is found at a key: where names merge, a folder of another name too. */
  async #findAny(key: string): Promise<string | undefined> {
    const root = await this.#findRoot();
    if (root === undefined || key === "") return root;
    const path = join(root, keyToPath(key, WINDOWS));
    const real = await this.#resolve(path, key);
    if (real === undefined) return undefined;
    // A difference is a link, or only another case or Unicode form of the same name.
    if (real !== path) await this.#refuseLinks(root, key);
    return path;
  }

  /** Each folder is looked at once: somebody would have to remove it and make it anew by another name. */
  async #isExact(path: string, key: string): Promise<boolean> {
    if (key === "" || this.#exact.has(key)) return true;
    if (!(await this.#isExact(dirname(path), folderOf(key)))) return false;
    if (!(await this.hasName(dirname(path), basename(path)))) return false;
    this.#exact.add(key);
    return true;
  }

  /** Returns the folder that stays. */
  async #pruneOne(root: string, key: string): Promise<string> {
    let folder = key;
    while (folder !== "") {
      // Before and after: a folder made anew by others meanwhile must be settled anew.
      this.#settled.delete(folder);
      this.#exact.delete(folder);
      try {
        await rmdir(join(root, keyToPath(folder, WINDOWS)));
      } catch (error) {
        if (!isAbsent(error)) break;
      }
      this.#settled.delete(folder);
      folder = folderOf(folder);
    }
    return folder;
  }

  async #findRoot(): Promise<string | undefined> {
    if (this.#real !== undefined) return this.#real;
    try {
      const real = await realpath(this.root);
      if (!(await stat(real)).isDirectory()) throw notFolder(this.root);
      this.#names ??= new ExactNames(real);
      const onWarning = this.#onWarning;
      this.#onWarning = undefined;
      const warning = onWarning && (await networkWarning(real));
      if (warning !== undefined) onWarning?.(warning);
      this.#real = real;
      return real;
    } catch (error) {
      if (errorCode(error) === "ENOENT") return undefined;
      if (errorCode(error) === "ENOTDIR") throw notFolder(this.root, error);
      throw fileError(error, "", "read");
    }
  }

  async #makeRoot(): Promise<string> {
    if (this.#real !== undefined && this.#rootSettled) return this.#real;
    // The root's own entry too if it was there: who made it may not have synced it yet.
    const made = (await this.#findRoot()) === undefined ? await makeFolders(this.root) : [this.root];
    for (const path of made) await this.sync(dirname(path));
    const real = await this.#findRoot();
    if (real === undefined) throw notFolder(this.root);
    this.#rootSettled = true;
    return real;
  }

  async #makeOne(path: string, key: string, parent: string): Promise<void> {
    try {
      await mkdir(path);
      this.#settled.delete(key);
    } catch (error) {
      const code = errorCode(error);
      // The parent went away again, perhaps with the root: `make` looks once more.
      if (code === "ENOENT") return this.#forget();
      if (code !== "EEXIST") throw fileError(error, key, "write");
      // Others made it; but a link that leads nowhere is "not there" and "exists" at once.
      if (dirname(path) === parent && (await lstat(path).catch(() => undefined))?.isSymbolicLink()) throw isLink(key);
    }
  }

  #forget(): void {
    this.#real = undefined;
    this.#rootSettled = false;
    this.#names = undefined;
    this.#exact.clear();
    this.#settled.clear();
  }

  /** Syncs the parents of those folders of the path that this process does not know to be settled, from the top. */
  async #settle(root: string, key: string): Promise<void> {
    if (!this.#durable || key === "" || this.#settled.has(key)) return;
    await this.#settle(root, folderOf(key));
    await this.sync(dirname(join(root, keyToPath(key, WINDOWS))));
    this.#settled.add(key);
  }

  async #startSync(path: string): Promise<void> {
    const sync: { running: Promise<void>; next?: Promise<void> } = { running: syncFolder(path) };
    this.#syncs.set(path, sync);
    try {
      await sync.running;
    } finally {
      if (sync.next === undefined && this.#syncs.get(path) === sync) this.#syncs.delete(path);
    }
  }

  async #resolve(path: string, key: string): Promise<string | undefined> {
    try {
      return await realpath(path);
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw fileError(error, key, "read");
    }
  }

  async #refuseLinks(root: string, key: string): Promise<void> {
    for (let folder = key; folder !== ""; folder = folderOf(folder)) {
      const entry = await lstat(join(root, keyToPath(folder, WINDOWS))).catch(() => undefined);
      if (entry?.isSymbolicLink()) throw isLink(folder);
    }
  }
}

/** Makes a folder with its parents and returns the new ones. Node's own `recursive` hides why it failed (EROFS). */
async function makeFolders(path: string, race = 0): Promise<string[]> {
  try {
    await mkdir(path);
    return [path];
  } catch (error) {
    const code = errorCode(error);
    // Made by others meanwhile; whether it is a folder is looked at next.
    if (code === "EEXIST") return [path];
    if (code === "ENOTDIR") throw notFolder(path, error);
    if (code !== "ENOENT" || dirname(path) === path || race === MAX_RACES) throw fileError(error, path, "write");
  }
  return [...(await makeFolders(dirname(path))), ...(await makeFolders(path, race + 1))];
}

async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (error) {
    const code = errorCode(error) ?? "";
    // Gone: whoever removed it synced its parent. Not readable or not supported: there is nothing more to do.
    if (code === "ENOENT" || code === "EACCES" || code === "EPERM" || SYNC_UNSUPPORTED.has(code)) return;
    throw fileError(error, path, "write");
  }
}

/** The refusal of a path that leads through a symbolic link. */
export function isLink(key: string): StoreError {
  return new StoreError("symlink_refused", `${key} is a symbolic link, and links below the root are not followed.`, {
    subject: key,
  });
}

function notFolder(root: string, cause?: unknown): StoreError {
  return new StoreError("root_not_folder", `${root} is not a folder: choose another place for the lake.`, {
    subject: root,
    cause,
  });
}
