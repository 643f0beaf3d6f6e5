import { unlink } from "node:fs/promises";

interface Lease {
  readonly id: string;
  readonly path: Promise<string | undefined>;
  users: number;
  /** When the last user left, by `performance.now()`. */
  idleSince: number;
}

/**
 * The links by which this process holds files of the cache: one for each file, however many use it. It stays a while after
 * its last use, so that who comes next finds the same path.
 */
export class CacheLeases {
  readonly #keepMs: number;
  readonly #byId = new Map<string, Lease>();
  readonly #byPath = new Map<string, Lease>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  /**
   * One more use of a file.
   * @param check whether a link that is there is still good
   * @param make makes the link, where there is none; undefined if that cannot be
   */
  async take(
    id: string,
    check: (path: string) => Promise<boolean>,
    make: () => Promise<string | undefined>,
  ): Promise<string | undefined> {
    const known = this.#byId.get(id);
    if (known) {
      known.users++;
      const path = await known.path.catch(() => undefined);
      if (path !== undefined && (await check(path))) return path;
      this.#forget(known);
      await this.#leave(known, path);
      return this.take(id, check, make);
    }
    const lease: Lease = { id, path: make(), users: 1, idleSince: 0 };
    this.#byId.set(id, lease);
    try {
      const path = await lease.path;
      if (path === undefined) this.#forget(lease);
      else this.#byPath.set(path, lease);
      return path;
    } catch (error) {
      this.#forget(lease);
      throw error;
    }
  }

  /** Ends one use of each. */
  async release(paths: Iterable<string>): Promise<void> {
    await Promise.all(
      [...paths].map(async (path) => {
        const lease = this.#byPath.get(path);
        if (lease) await this.#leave(lease, path);
      }),
    );
  }

  /** Removes the links that nobody uses; true if there were any. */
  async releaseIdle(longerThanMs = 0): Promise<boolean> {
    const since = performance.now() - longerThanMs;
    const idle = [...this.#byPath].filter(([, { users, idleSince }]) => users === 0 && idleSince <= since);
    await Promise.all(idle.map(([path, lease]) => this.#remove(lease, path)));
    return idle.length > 0;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#byId.clear();
    this.#byPath.clear();
  }

  async #leave(lease: Lease, path: string | undefined): Promise<void> {
    if (--lease.users > 0 || path === undefined) return;
    lease.idleSince = performance.now();
    if (this.#keepMs === 0 || this.#byId.get(lease.id) !== lease) await this.#remove(lease, path);
    else this.#watch();
  }

  #watch(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      void this.releaseIdle(this.#keepMs).then(() => {
        if ([...this.#byPath.values()].some(({ users }) => users === 0)) this.#watch();
      });
    }, this.#keepMs);
    this.#timer.unref();
  }

  #forget(lease: Lease): void {
    if (this.#byId.get(lease.id) === lease) this.#byId.delete(lease.id);
  }

  async #remove(lease: Lease, path: string): Promise<void> {
    this.#forget(lease);
    this.#byPath.delete(path);
    await unlink(path).catch(() => undefined);
  }
}
