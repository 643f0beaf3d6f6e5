/** Data files as paths that DuckDB can open: the store's own where it has them, else a local copy made once. */

import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ListedFile } from "@eider/catalog";
import { CorruptionError, NotFoundError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import pLimit from "p-limit";
import type { TempFolder } from "./temp-folder.js";

/** Objects fetched, or looked at, at the same time. */
const CONCURRENCY = 8;

export class LocalFiles {
  readonly #store: ObjectStore;
  readonly #temp: TempFolder;
  readonly #copies = new Map<string, Promise<string>>();
  readonly #limit = pLimit(CONCURRENCY);
  #copied = 0;

  constructor(store: ObjectStore, temp: TempFolder) {
    this.#store = store;
    this.#temp = temp;
  }

  /**
   * Absolute paths, in order.
   * @throws CorruptionError `missing_file`, `damaged_file` when a copy cannot be made
   */
  async paths(files: readonly ListedFile[]): Promise<string[]> {
    const { localPath } = this.#store;
    if (localPath) return files.map((file) => localPath.call(this.#store, file.key));
    return Promise.all(files.map((file) => this.#copy(file)));
  }

  #copy(file: ListedFile): Promise<string> {
    let copy = this.#copies.get(file.key);
    if (!copy) {
      copy = this.#limit(() => this.#fetch(file));
      this.#copies.set(file.key, copy);
      // A failed fetch may succeed later.
      copy.catch(() => this.#copies.delete(file.key));
    }
    return copy;
  }

  async #fetch(file: ListedFile): Promise<string> {
    const path = join(this.#temp.path, `${++this.#copied}.parquet`);
    let bytes = 0;
    const hash = createHash("sha256");
    try {
      const { body } = await this.#store.get(file.key);
      const counted = async function* (): AsyncIterable<Uint8Array> {
        for await (const chunk of body) {
          bytes += chunk.length;
          hash.update(chunk);
          yield chunk;
        }
      };
      await pipeline(Readable.from(counted()), createWriteStream(path));
    } catch (cause) {
      throw cause instanceof NotFoundError ? missingFile(file.key, cause) : cause;
    }
    if (bytes !== file.bytes || hash.digest("hex") !== file.sha256) throw damagedFile(file, bytes);
    return path;
  }

  /**
   * Looks for the file that made a query fail: one that is gone, has another size, or, if it is named in `message`,
   * other bytes than were committed.
   */
  async findFault(files: readonly ListedFile[], message: string): Promise<CorruptionError | undefined> {
    const paths = await this.paths(files).catch((error: unknown) => error);
    if (!Array.isArray(paths)) return paths instanceof CorruptionError ? paths : undefined;
    const faults = await Promise.all(
      files.map((file, i) => this.#limit(() => this.#fault(file, paths[i] as string, message))),
    );
    return faults.find((fault) => fault !== undefined);
  }

  async #fault(file: ListedFile, path: string, message: string): Promise<CorruptionError | undefined> {
    const found = await stat(path).catch(() => undefined);
    if (!found) return missingFile(file.key);
    if (found.size !== file.bytes) return damagedFile(file, found.size);
    if (!message.includes(path)) return undefined;
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
    return hash.digest("hex") === file.sha256 ? undefined : damagedFile(file, found.size);
  }
}

function missingFile(key: string, cause?: unknown): CorruptionError {
  return new CorruptionError("missing_file", `the data file ${key} is missing from the store: run lake.verify()`, {
    subject: key,
    ...(cause !== undefined && { cause }),
  });
}

function damagedFile(file: ListedFile, bytes: number): CorruptionError {
  const what = bytes === file.bytes ? "other bytes" : `${bytes} bytes instead of ${file.bytes}`;
  return new CorruptionError(
    "damaged_file",
    `the data file ${file.key} has ${what} than were committed: run lake.verify()`,
    {
      subject: file.key,
    },
  );
}
