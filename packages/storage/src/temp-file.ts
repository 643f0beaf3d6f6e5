import { randomUUID } from "node:crypto";
import { type FileHandle, lstat, open, readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { drainBody } from "./body.js";
import { errorCode, fileError } from "./file-error.js";
import { type FileFacts, factsOf } from "./file-facts.js";
import { type Folders, MAX_RACES } from "./folders.js";
import { TEMPORARY_FOLDER } from "./keys.js";
import type { ObjectBody, PutOptions } from "./store.js";

/** Chunks are gathered up to this size, so that a source of tiny ones does not cost a system call for each. */
const GATHER_BYTES = 256 * 1024;
/** What a killed process left behind is removed when nobody wrote to it for this long. */
const STALE_MILLISECONDS = 24 * 60 * 60 * 1000;

/** Microseconds since the epoch; never the same twice in this process. */
let lastMicroseconds = 0;
function uniqueMicroseconds(): number {
  const now = Math.floor((performance.timeOrigin + performance.now()) * 1000);
  lastMicroseconds = Math.max(now, lastMicroseconds + 1);
  return lastMicroseconds;
}

/** An object on its way in: a file that no reader looks for until it is renamed or linked to its place. */
export class TempFile {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #key: string;
  #gathered: Uint8Array | undefined;
  #used = 0;
  #open = true;

  private constructor(path: string, handle: FileHandle, key: string) {
    this.path = path;
    this.#handle = handle;
    this.#key = key;
  }

  /** Creates an empty one for the object `key`. */
  static async create(folders: Folders, key: string): Promise<TempFile> {
    try {
      for (let race = 0; ; race++) {
        const path = join(await folders.make(TEMPORARY_FOLDER), randomUUID());
        try {
          return new TempFile(path, await open(path, "wx"), key);
        } catch (error) {
          if (errorCode(error) !== "ENOENT" || race === MAX_RACES) throw error;
        }
      }
    } catch (error) {
      throw fileError(error, key, "write");
    }
  }

  /** Writes the whole body; with `durable` it is on disk when this returns. Then the file is closed. */
  async fill(body: ObjectBody, options: PutOptions, durable: boolean): Promise<FileFacts> {
    await drainBody(body, options, body instanceof Uint8Array ? (chunk) => this.#write(chunk) : (c) => this.#take(c));
    try {
      await this.#flush();
      // The kernel's own times stand still for milliseconds: two objects of one size, made and replaced within one such
      // step, could share size, time and inode, and so their etag.
      // Node 20 cuts to whole microseconds: the half keeps a rounded one from being cut to the one before.
      const seconds = (uniqueMicroseconds() + 0.5) / 1e6;
      await this.#handle.utimes(seconds, seconds);
      if (durable) await this.#handle.sync();
      const facts = factsOf(await this.#handle.stat({ bigint: true }));
      this.#open = false;
      await this.#handle.close();
      return facts;
    } catch (error) {
      throw fileError(error, this.#key, "write");
    }
  }

  /** Removes the file. Failing to is harmless: it is no object, and it is swept later. */
  async discard(): Promise<void> {
    if (this.#open) {
      this.#open = false;
      await this.#handle.close().catch(() => undefined);
    }
    await unlink(this.path).catch(() => undefined);
  }

  #take(chunk: Uint8Array): void | Promise<void> {
    this.#gathered ??= new Uint8Array(GATHER_BYTES);
    if (chunk.length > GATHER_BYTES - this.#used) return this.#flushAndTake(chunk);
    this.#gathered.set(chunk, this.#used);
    this.#used += chunk.length;
  }

  async #flushAndTake(chunk: Uint8Array): Promise<void> {
    await this.#flush();
    if (chunk.length >= GATHER_BYTES) await this.#write(chunk);
    else this.#take(chunk);
  }

  async #flush(): Promise<void> {
    const used = this.#used;
    this.#used = 0;
    if (this.#gathered !== undefined && used > 0) await this.#write(this.#gathered.subarray(0, used));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      for (let done = 0; done < bytes.length; ) {
        done += (await this.#handle.write(bytes, done, bytes.length - done)).bytesWritten;
      }
    } catch (error) {
      throw fileError(error, this.#key, "write");
    }
  }
}

/** Removes unfinished files that nobody has written to for a day. It never fails: what it cannot remove stays. */
export async function sweepTempFiles(folders: Folders, now: number): Promise<void> {
  const folder = await folders.find(TEMPORARY_FOLDER).catch(() => undefined);
  if (folder === undefined) return;
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const entry = await lstat(path).catch(() => undefined);
    if (entry?.isFile() && entry.mtimeMs < now - STALE_MILLISECONDS) await unlink(path).catch(() => undefined);
  }
}
