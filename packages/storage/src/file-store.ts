import { type FileHandle, link, lstat, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { AlreadyExistsError, InvalidInputError, StoreError } from "@eider/core";
import { assertOneCondition, noConditionalReplace } from "./conditions.js";
import { mergedName } from "./exact-names.js";
import { openObject } from "./file-body.js";
import { errorCode, fileError, isAbsent, notFound } from "./file-error.js";
import { factsOf } from "./file-facts.js";
import { listFiles } from "./file-listing.js";
import { Folders, isLink, MAX_RACES, WINDOWS } from "./folders.js";
import { assertSafeKey, folderOf, keyToPath } from "./keys.js";
import type { StoreWarning } from "./network-disk.js";
import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoreCapabilities,
  StoredObject,
} from "./store.js";
import { sweepTempFiles, TempFile } from "./temp-file.js";

/** Keys deleted at once. */
const DELETE_BATCH = 32;
/** Waits before the tries to replace a file that another process of a Windows machine holds open; about a second. */
const WINDOWS_WAITS_MILLISECONDS = [5, 10, 20, 50, 100, 200, 300, 400];
const WINDOWS_HELD = new Set(["EPERM", "EACCES", "EBUSY"]);
/** How file systems without hard links (FAT, exFAT, some network drives) refuse `link`. */
const NO_LINKS = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"]);

export interface FileStoreOptions {
  /**
   * Sync every object and folder to disk before a call returns. Default true. False is for tests and scratch data: a
   * power cut may then lose what was put, though never show half of it to a process that lives.
   */
  readonly durable?: boolean;
  /** Refuse `put` and `delete`. Default false. */
  readonly readOnly?: boolean;
  /** Told once, at the first use, if the folder is on a network file system. Default: `process.emitWarning`. */
  readonly onWarning?: (warning: StoreWarning) => void;
}

/**
 * A store in a folder: each object is a plain file under its key. The folder is made by the first `put`.
 *
 * A put writes `_eider/tmp/<random>`, syncs it, and then publishes it in one step: `rename`, or for `ifAbsent` `link`,
 * because `rename` overwrites silently. So readers and racing processes see a whole object or none. Symbolic links
 * below the root are not followed; the root itself may be one.
 */
export class FileStore implements ObjectStore {
  readonly url: string;
  /** A file system replaces a name whatever file has it: to compare and replace in one step it has no call. */
  readonly capabilities: StoreCapabilities = {
    conditionalPut: true,
    conditionalReplace: false,
    maxObjectBytes: Number.POSITIVE_INFINITY,
    maxConditionalBytes: Number.POSITIVE_INFINITY,
  };
  readonly #root: string;
  readonly #folders: Folders;
  readonly #durable: boolean;
  readonly #readOnly: boolean;
  /** Files of bodies that are not read to their end yet. */
  readonly #handles = new Set<FileHandle>();
  #sweep: Promise<void> | undefined;
  #closed = false;

  constructor(root: string, options: FileStoreOptions = {}) {
    if (root === "" || root.includes("\0")) {
      throw new InvalidInputError("bad_store_url", "The folder of a store needs a name: give a path like ./lake.");
    }
    this.#root = resolve(root);
    this.url = pathToFileURL(this.#root).href;
    this.#durable = options.durable ?? true;
    this.#readOnly = options.readOnly ?? false;
    this.#folders = new Folders(this.#root, this.#durable, options.onWarning ?? emitWarning);
  }

  async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    const { signal } = options;
    this.#check(signal);
    assertSafeKey(key);
    assertOneCondition(options);
    this.#assertWritable(key);
    if (options.ifMatch !== undefined) throw noConditionalReplace(key, this.url);
    const file = await TempFile.create(this.#folders, key);
    this.#sweep ??= sweepTempFiles(this.#folders, Date.now());
    try {
      const facts = await file.fill(body, options, this.#durable);
      this.#check(signal);
      await this.#publish(file, key, options.ifAbsent ?? false);
      return { key, ...facts };
    } catch (error) {
      await file.discard();
      throw error;
    }
  }

  async get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    this.#check(options.signal);
    assertSafeKey(key);
    const path = await this.#find(key);
    this.#check(options.signal);
    if (path === undefined || !(await this.#isNamed(path))) throw notFound(key);
    return openObject(path, key, options, this.#handles);
  }

  async head(key: string, options: CallOptions = {}): Promise<ObjectInfo | undefined> {
    this.#check(options.signal);
    assertSafeKey(key);
    const path = await this.#find(key);
    if (path === undefined || !(await this.#isNamed(path))) return undefined;
    try {
      const stats = await lstat(path, { bigint: true });
      if (stats.isSymbolicLink()) throw isLink(key);
      return stats.isFile() ? { key, ...factsOf(stats) } : undefined;
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw fileError(error, key, "read");
    }
  }

  async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    this.#check(options.signal);
    yield* listFiles(this.#folders, prefix, options);
  }

  async delete(keys: string | readonly string[], options: CallOptions = {}): Promise<void> {
    const all = typeof keys === "string" ? [keys] : keys;
    this.#check(options.signal);
    for (const key of all) assertSafeKey(key);
    this.#assertWritable(all[0] ?? "");
    const touched = new Set<string>();
    try {
      for (let start = 0; start < all.length; start += DELETE_BATCH) {
        this.#check(options.signal);
        const batch = all.slice(start, start + DELETE_BATCH);
        await Promise.all(
          batch.map(async (key) => {
            if (await this.#remove(key)) touched.add(folderOf(key));
          }),
        );
      }
    } finally {
      // Also after an error or abort: what was removed stays removed.
      await this.#folders.prune(touched);
    }
  }

  /** The file of an object, for engines that read files. It need not exist. */
  localPath(key: string): string {
    assertSafeKey(key);
    return join(this.#root, keyToPath(key, WINDOWS));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const handles = [...this.#handles];
    this.#handles.clear();
    await Promise.all([this.#sweep, ...handles.map((handle) => handle.close())]);
  }

  async #find(key: string): Promise<string | undefined> {
    const folder = await this.#folders.find(folderOf(key));
    return folder === undefined ? undefined : join(folder, this.#name(key));
  }

  /** Where names merge, an object of another name is found by this one too. */
  #isNamed(path: string): Promise<boolean> {
    return this.#folders.hasName(dirname(path), basename(path));
  }

  #name(key: string): string {
    return keyToPath(key.slice(key.lastIndexOf("/") + 1), WINDOWS);
  }

  /** The commit point of a put. After it, the signal is not looked at any more. */
  async #publish(file: TempFile, key: string, ifAbsent: boolean): Promise<void> {
    for (let race = 0; race < MAX_RACES; race++) {
      const folder = await this.#folders.make(folderOf(key));
      const path = join(folder, this.#name(key));
      try {
        if (!(await this.#isNamed(path)) && (await isThere(path))) throw mergedName(key);
        if (ifAbsent) await create(file.path, path, key);
        else await replace(file.path, path);
      } catch (error) {
        const code = errorCode(error);
        // A delete removed the folder because it was empty: make it again.
        if (code === "ENOENT") continue;
        // A folder that became empty has the key's name.
        if ((code === "EISDIR" || code === "EEXIST") && (await removeEmptyFolder(path))) continue;
        throw fileError(error, key, "write");
      }
      const discarded = ifAbsent ? file.discard() : undefined;
      try {
        await this.#folders.sync(folder);
      } catch (error) {
        const advice = "was put, but the disk did not confirm it: look with head whether it is there, then go on.";
        throw new StoreError("put_unsettled", `${key} ${advice}`, { subject: key, cause: error });
      } finally {
        await discarded;
      }
      return;
    }
    throw new StoreError("store_busy", `${key}: its folder is removed again and again by others. Try again.`, {
      subject: key,
      retryable: true,
    });
  }

  /** True if there was such an object. */
  async #remove(key: string): Promise<boolean> {
    const path = await this.#find(key);
    if (path === undefined || !(await this.#isNamed(path))) return false;
    try {
      await retryWhileHeld(() => unlink(path));
      return true;
    } catch (error) {
      if (isAbsent(error)) return false;
      // Linux says EISDIR for a folder, others EPERM: a folder is no object.
      if ((await lstat(path).catch(() => undefined))?.isDirectory()) return false;
      throw fileError(error, key, "write");
    }
  }

  #check(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#closed) throw new StoreError("store_closed", `${this.url} is closed: open a new store.`);
  }

  #assertWritable(key: string): void {
    if (!this.#readOnly) return;
    throw new StoreError("store_read_only", `${this.url} was opened to read only: open it to write.`, { subject: key });
  }
}

async function create(from: string, to: string, key: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    const code = errorCode(error) ?? "";
    const there = await lstat(to).catch(() => undefined);
    if (code === "EEXIST" && there?.isDirectory() !== true) {
      throw new AlreadyExistsError("object_exists", `${key} exists and stays as it is.`, {
        subject: key,
        cause: error,
      });
    }
    if (NO_LINKS.has(code) && there === undefined) {
      // Copying instead would show half an object to readers, and renaming could overwrite another writer's.
      const advice =
        "cannot be created safely here: this file system has no hard links. Move the lake to one that has.";
      throw new StoreError("no_hard_links", `${key} ${advice}`, { subject: key, cause: error });
    }
    throw error;
  }
}

async function replace(from: string, to: string): Promise<void> {
  await retryWhileHeld(() => rename(from, to));
}

/** Windows refuses to replace or remove a file that anybody holds open, often a virus scanner for a moment. */
async function retryWhileHeld(change: () => Promise<void>): Promise<void> {
  for (const wait of WINDOWS ? WINDOWS_WAITS_MILLISECONDS : []) {
    try {
      return await change();
    } catch (error) {
      if (!WINDOWS_HELD.has(errorCode(error) ?? "")) throw error;
    }
    await sleep(wait);
  }
  return change();
}

function emitWarning({ code, message }: StoreWarning): void {
  process.emitWarning(message, { type: "StoreWarning", code });
}

function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function removeEmptyFolder(path: string): Promise<boolean> {
  return rmdir(path).then(
    () => true,
    () => false,
  );
}
