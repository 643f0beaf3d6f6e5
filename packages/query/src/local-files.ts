/** Data files as paths that DuckDB can open: the store's own where it has them, else copies in a cache of bounded size. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { ListedFile } from "@eider/catalog";
import { CorruptionError, NotFoundError } from "@eider/core";
import { CacheStore, type LocalObject, type ObjectStore, StoreWrapper } from "@eider/storage";
import pLimit from "p-limit";
import { ColumnExcerpt } from "./column-excerpt.js";
import { damagedFile, missingFile } from "./file-fault.js";
import type { TempFolder } from "./temp-folder.js";

/** Files looked at, and parts of files fetched, at the same time. */
const CONCURRENCY = 8;
/** How long copies keep their paths after a query, so that DuckDB knows them again. */
const KEEP_MS = 10_000;
/** Data files up to this size are fetched as a whole, where nothing is said. */
const DEFAULT_WHOLE_FILE_BYTES = 16 * 1024 ** 2;
/** Of local copies, where nothing is said. */
const DEFAULT_CACHE_BYTES = 4 * 1024 ** 3;

/** A data file that a statement reads. */
export interface WantedFile {
  readonly file: ListedFile;
  /** Field ids of the columns that it reads of it. Undefined: it may be any. */
  readonly columns: ReadonlySet<number> | undefined;
}

/** Files that stay where they are until they are released. */
export interface HeldFiles {
  /** Equal keys hold the same paths. */
  readonly key: string;
  /** Absolute. */
  path(file: ListedFile): string;
  /**
   * Where a file came from: the store, be it that it is there and stays there, with its size, or else with the bytes that
   * were fetched, which are told once; or a copy that was there, with the bytes of that.
   */
  source(file: ListedFile): { readonly from: "store" | "cache"; readonly bytes: number };
  release(): Promise<void>;
}

export interface LocalFilesOptions {
  readonly store: ObjectStore;
  readonly temp: TempFolder;
  /** Bytes of the local copies. */
  readonly cacheBytes?: number;
  /** Folder of the copies, which other processes may share. Default: in `temp`. */
  readonly cacheFolder?: string;
  /** Only of larger files single columns are fetched. Default 16 MiB. */
  readonly wholeFileBytes?: number;
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
  readonly #wholeFileBytes: number;
  readonly #limit = pLimit(CONCURRENCY);

  constructor({ store, temp, cacheBytes, cacheFolder, wholeFileBytes, onFull }: LocalFilesOptions) {
    this.#store = store;
    this.#onFull = onFull;
    this.#wholeFileBytes = wholeFileBytes ?? DEFAULT_WHOLE_FILE_BYTES;
    if (store.localPath !== undefined) return;
    this.#cache = new CacheStore(new BorrowedStore(store), {
      dir: cacheFolder ?? join(temp.path, "cache"),
      maxBytes: cacheBytes ?? DEFAULT_CACHE_BYTES,
      namespace: "lake",
      keepMs: KEEP_MS,
      // Data files never change.
      cacheable: () => true,
    });
  }

  /** Whether the same file has the same path in every query. */
  get areInPlace(): boolean {
    return this.#cache === undefined;
  }

  /** Whether it makes a difference which columns of a table of so many bytes are read. */
  choosesColumns(bytes: number): boolean {
    return !this.areInPlace && bytes > this.#wholeFileBytes;
  }

  /**
   * @throws CorruptionError `missing_file`, `damaged_file` when a copy cannot be made; LimitError `cache_too_small`,
   * `cache_full`
   */
  async hold(files: readonly WantedFile[], signal?: AbortSignal): Promise<HeldFiles> {
    if (this.#cache === undefined) {
      return {
        key: "",
        path: ({ key }) => this.#store.localPath!(key),
        source: ({ bytes }) => ({ from: "store", bytes }),
        release: async () => undefined,
      };
    }
    const objects = togetherByKey(files).map((wanted) => this.#object(wanted));
    try {
      const copies = await this.#cache.localize(objects, { onFull: this.#onFull, ...(signal && { signal }) });
      const untold = new Map(copies.fetched);
      const places = new Map(objects.map(({ key }, i) => [key, i]));
      return {
        key: createHash("sha256").update(copies.paths.join("\n")).digest("base64url"),
        path: ({ key }) => copies.paths[places.get(key)!]!,
        source({ key }) {
          const bytes = untold.get(key);
          untold.delete(key);
          return bytes === undefined
            ? { from: "cache", bytes: copies.sizes[places.get(key)!]! }
            : { from: "store", bytes };
        },
        release: copies.release,
      };
    } catch (error) {
      if (error instanceof NotFoundError) throw missingFile(error.subject ?? "", error);
      if (error instanceof CorruptionError && error.code === "damaged_object") {
        throw damagedFile(error.subject ?? "", "other bytes", error);
      }
      throw error;
    }
  }

  /**
   * Looks for the file that made a query fail: one that is gone, has another size, or, if it is named in `message`,
   * other bytes than were committed.
   */
  async findFault(files: readonly WantedFile[], message: string): Promise<CorruptionError | undefined> {
    let held: HeldFiles;
    try {
      held = await this.hold(files);
    } catch (error) {
      return error instanceof CorruptionError ? error : undefined;
    }
    try {
      // Copies of single columns were checked when they were made.
      const whole = files.filter((wanted) => this.#object(wanted).excerpt === undefined);
      const looks = whole.map(({ file }) => this.#limit(() => this.#fault(file, held.path(file), message)));
      return (await Promise.all(looks)).find((fault) => fault !== undefined);
    } finally {
      await held.release();
    }
  }

  #object({ file, columns }: WantedFile): LocalObject {
    const { key, bytes: size, sha256, footer } = file;
    if (columns === undefined || footer === undefined || size <= this.#wholeFileBytes) return { key, size, sha256 };
    const { store, limit } = { store: this.#store, limit: this.#limit };
    return { key, size, sha256, excerpt: new ColumnExcerpt({ store, file: { ...file, footer }, columns, limit }) };
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

/** Each file once, with all columns that are read of it. */
function togetherByKey(files: readonly WantedFile[]): WantedFile[] {
  const byKey = new Map<string, WantedFile>();
  for (const wanted of files) {
    const { key } = wanted.file;
    const other = byKey.get(key);
    const columns =
      other === undefined || (wanted.columns && other.columns)
        ? wanted.columns && new Set([...wanted.columns, ...(other?.columns ?? [])])
        : undefined;
    byKey.set(key, { file: wanted.file, columns });
  }
  return [...byKey.values()];
}
