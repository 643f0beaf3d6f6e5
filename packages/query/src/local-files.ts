/** Data files as paths that DuckDB can open: the store's own where it has them, else copies in a cache of bounded size. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { ListedFile } from "@eider/catalog";
import { CorruptionError, NotFoundError } from "@eider/core";
import { CacheStore, type ObjectStore, StoreWrapper } from "@eider/storage";
import pLimit from "p-limit";
import type { TempFolder } from "./temp-folder.js";

/** Files looked at at the same time. */
const CONCURRENCY = 8;
/** Of local copies, where nothing is said. */
const DEFAULT_CACHE_BYTES = 4 * 1024 ** 3;

/** Files that stay where they are until they are released. */
export interface HeldFiles {
  /** Absolute. */
  path(file: ListedFile): string;
  /** Whether a file came from the store, be it that it is there and stays there. */
  fetched(key: string): boolean;
  release(): Promise<void>;
}

export interface LocalFilesOptions {
  readonly store: ObjectStore;
  readonly temp: TempFolder;
  /** Bytes of the local copies. */
  readonly cacheBytes?: number;
  /** Lets go of what is held but not in use. */
  readonly onFull: () => Promise<void>;
}

/** The engine closes its cache, but not the lake's store. */
class BorrowedStore extends StoreWrapper {
  override async [Symbol.asyncDispose](): Promise<void> {}
}

export class LocalFiles implements AsyncDisposable {
  readonly #store: ObjectStore;
  readonly #cache: CacheStore | undefined;
  readonly #onFull: () => Promise<void>;
  readonly #limit = pLimit(CONCURRENCY);

  constructor({ store, temp, cacheBytes = DEFAULT_CACHE_BYTES, onFull }: LocalFilesOptions) {
    this.#store = store;
    this.#onFull = onFull;
    if (store.localPath !== undefined) return;
    this.#cache = new CacheStore(new BorrowedStore(store), {
      dir: join(temp.path, "cache"),
      maxBytes: cacheBytes,
      namespace: "lake",
      // Data files never change.
      cacheable: () => true,
    });
  }

  /** Whether the same file has the same path in every query. */
  get areInPlace(): boolean {
    return this.#cache === undefined;
  }

  /**
   * @throws CorruptionError `missing_file`, `damaged_file` when a copy cannot be made; LimitError `cache_too_small`,
   * `cache_full`
   */
  async hold(files: readonly ListedFile[], signal?: AbortSignal): Promise<HeldFiles> {
    if (this.#cache === undefined) {
      return { path: ({ key }) => this.#store.localPath!(key), fetched: () => true, release: async () => undefined };
    }
    const objects = files.map(({ key, bytes, sha256 }) => ({ key, size: bytes, sha256 }));
    try {
      const copies = await this.#cache.localize(objects, { onFull: this.#onFull, ...(signal && { signal }) });
      const paths = new Map(files.map(({ key }, i) => [key, copies.paths[i]!]));
      const fetched = new Set(copies.fetched);
      return { path: ({ key }) => paths.get(key)!, fetched: (key) => fetched.has(key), release: copies.release };
    } catch (error) {
      if (error instanceof NotFoundError) throw missingFile(error.subject ?? "", error);
      if (error instanceof CorruptionError) throw damagedFile(error.subject ?? "", "other bytes", error);
      throw error;
    }
  }

  /**
   * Looks for the file that made a query fail: one that is gone, has another size, or, if it is named in `message`,
   * other bytes than were committed.
   */
  async findFault(files: readonly ListedFile[], message: string): Promise<CorruptionError | undefined> {
    let held: HeldFiles;
    try {
      held = await this.hold(files);
    } catch (error) {
      return error instanceof CorruptionError ? error : undefined;
    }
    try {
      const looks = files.map((file) => this.#limit(() => this.#fault(file, held.path(file), message)));
      return (await Promise.all(looks)).find((fault) => fault !== undefined);
    } finally {
      await held.release();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#cache?.[Symbol.asyncDispose]();
  }

  async #fault(file: ListedFile, path: string, message: string): Promise<CorruptionError | undefined> {
    const found = await stat(path).catch(() => undefined);
    if (!found) return missingFile(file.key);
    if (found.size !== file.bytes) return damagedFile(file.key, `${found.size} bytes instead of ${file.bytes}`);
    if (!message.includes(path)) return undefined;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
    return hash.digest("hex") === file.sha256 ? undefined : damagedFile(file.key, "other bytes");
  }
}

function missingFile(key: string, cause?: unknown): CorruptionError {
  return new CorruptionError("missing_file", `the data file ${key} is missing from the store: run lake.verify()`, {
    subject: key,
    ...(cause !== undefined && { cause }),
  });
}

function damagedFile(key: string, what: string, cause?: unknown): CorruptionError {
  return new CorruptionError(
    "damaged_file",
    `the data file ${key} has ${what} than were committed: run lake.verify()`,
    {
      subject: key,
      ...(cause !== undefined && { cause }),
    },
  );
}
