import { createHash, randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { lstat, mkdir, readdir, rm, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { StoreError } from "@eider/core";
import { errorCode, fileError } from "./file-error.js";

/** What a process of another machine left is removed when it showed no life for this long. */
const DEAD_MILLISECONDS = 24 * 60 * 60 * 1000;
const SIGN_OF_LIFE_MILLISECONDS = 60 * 60 * 1000;

/** Process ids mean nothing on another machine, nor in another container that shares the host's name. */
function hostId(): string {
  let space = "";
  try {
    space = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Not Linux: there is one space of process ids.
  }
  return createHash("sha256").update(`${hostname()}\0${space}`).digest("hex").slice(0, 12);
}

/** The folders in which processes keep what is theirs alone. A folder's name tells whose it is: `host-pid-random`. */
export class CacheOwner {
  readonly #root: string;
  readonly #processes: string;
  readonly #host = hostId();
  readonly #path: string;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(root: string) {
    this.#root = root;
    this.#processes = join(root, "processes");
    this.#path = join(this.#processes, `${this.#host}-${process.pid}-${randomBytes(6).toString("hex")}`);
  }

  /** @throws StoreError `cache_not_private` if the folder is another user's: they could put anything into it */
  async open(): Promise<void> {
    try {
      await mkdir(this.#processes, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw fileError(error, this.#root, "write");
    }
    const { uid } = await lstat(this.#root);
    if (process.getuid !== undefined && uid !== process.getuid()) {
      const message = `${this.#root} belongs to another user: choose another folder for the cache.`;
      throw new StoreError("cache_not_private", message, { subject: this.#root });
    }
  }

  /** This process's own folder. Made when it is first needed, and again if somebody took it for abandoned. */
  async folder(): Promise<string> {
    await mkdir(this.#path, { recursive: true, mode: 0o700 });
    if (this.#timer === undefined) {
      const show = (): void => void utimes(this.#path, new Date(), new Date()).catch(() => undefined);
      this.#timer = setInterval(show, SIGN_OF_LIFE_MILLISECONDS);
      this.#timer.unref();
    }
    return this.#path;
  }

  /** The names of all processes' files. */
  async list(): Promise<string[]> {
    const owners = await readdir(this.#processes);
    return (await Promise.all(owners.map((owner) => readdir(join(this.#processes, owner)).catch(() => [])))).flat();
  }

  /** Removes the folders of processes that are no more. True if there were any. */
  async sweep(): Promise<boolean> {
    let found = false;
    for (const owner of await readdir(this.#processes)) {
      const path = join(this.#processes, owner);
      if (path === this.#path || (await this.#lives(owner, path))) continue;
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
      found = true;
    }
    return found;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await rm(this.#path, { recursive: true, force: true }).catch(() => undefined);
  }

  async #lives(owner: string, path: string): Promise<boolean> {
    const [host, pid] = owner.split("-");
    if (host !== this.#host) {
      const stats = await lstat(path).catch(() => undefined);
      return stats === undefined || stats.mtimeMs > Date.now() - DEAD_MILLISECONDS;
    }
    try {
      process.kill(Number(pid), 0);
      return true;
    } catch (error) {
      // Another user's process may not be signalled, and lives.
      return errorCode(error) !== "ESRCH";
    }
  }
}
