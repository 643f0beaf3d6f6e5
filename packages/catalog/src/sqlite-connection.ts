/**
 * One connection to the catalog file: how it is opened, and how transactions wait, retry and end.
 *
 * Locks: a write transaction takes the write lock when it begins (`BEGIN IMMEDIATE`) and never upgrades a read, which
 * SQLite refuses at once whatever the timeout. SQLite itself blocks the thread for a few milliseconds at most; the rest
 * of the waiting is asynchronous; who has waited long for the write lock goes first (`lock-queue.ts`). No transaction is open
 * across an `await`.
 *
 * Durability: WAL with `synchronous = FULL`, so a commit is one fsync of the log.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { CatalogError, NotFoundError } from "@eider/core";
import { type LockPlace, LockQueue } from "./lock-queue.js";
import type { OpenDriver, SqliteDriver } from "./sqlite-driver.js";
import { isBusy, isDiskFull, isOpenRefused, toCatalogError } from "./sqlite-errors.js";
import { type Identity, isCurrent, migrate } from "./sqlite-schema.js";
import type { Timer } from "./timer.js";

/** Milliseconds that SQLite may block the event loop for a lock. */
const BLOCK_MS = 5;
/** Milliseconds: the longest pause between two tries for a lock. */
const MAX_PAUSE_MS = 25;

export interface ConnectionOptions {
  /** Absolute path of the file; undefined for a database in memory. */
  readonly path: string | undefined;
  readonly mode: "create" | "open" | "read";
  readonly busyTimeoutMs: number;
  readonly openDriver: OpenDriver;
  readonly timer: Timer;
  /** Milliseconds since the epoch, of all processes alike. */
  readonly clock: () => number;
  /** Random bytes, for jitter. */
  readonly random: (size: number) => Uint8Array;
  readonly identity: () => Identity;
}

/** COMMIT failed: whether it took effect is not known. The connection is closed; the next use opens it again. */
export class CommitUnknown extends Error {}

export class SqliteConnection {
  readonly #options: ConnectionOptions;
  /** For messages. */
  readonly #name: string;
  #driver: SqliteDriver | undefined;
  /** The file that was opened first: another one in its place is another lake. */
  #file: string | undefined;
  /** Set while a copy of the file is read: what the file looked like then. */
  #frozen: string | undefined;
  #closed = false;
  /** Ends when the last write in the queue has. Writers of this process wait here, in order, instead of at the lock. */
  #queue: Promise<void> = Promise.resolve();
  /** Where the first of them waits for those of other processes. */
  readonly #others: LockQueue | undefined;

  private constructor(options: ConnectionOptions) {
    this.#options = options;
    const { path, clock, random } = options;
    this.#name = path ?? ":memory:";
    this.#others = path === undefined ? undefined : new LockQueue({ folder: `${path}-waiting`, clock, random });
  }

  static async open(options: ConnectionOptions): Promise<SqliteConnection> {
    const connection = new SqliteConnection(options);
    const { path, mode } = options;
    const exists = path !== undefined && identify(path) !== undefined;
    if (mode !== "create" && !exists) {
      throw new NotFoundError("catalog_not_found", `there is no catalog ${connection.#name}`, {
        subject: connection.#name,
      });
    }
    if (path !== undefined && mode === "create") makeFolder(dirname(path));
    await connection.#patiently(() => connection.#open(), connection.#deadline());
    return connection;
  }

  /** Runs `body` on one state of the file. */
  async read<T>(body: (driver: SqliteDriver) => T): Promise<T> {
    return this.#patiently(() => {
      const driver = this.#use();
      const result = this.#inTransaction(driver, "BEGIN", body);
      driver.exec("COMMIT");
      return result;
    }, this.#deadline());
  }

  /** Runs `body`, which is a single statement, and so by itself on one state of the file. */
  async readOne<T>(body: (driver: SqliteDriver) => T): Promise<T> {
    return this.#patiently(() => body(this.#use()), this.#deadline());
  }

  /**
   * Runs `body` in a write transaction and commits it; if it throws, nothing is changed.
   * @param durable false for what need not survive a power cut: then no fsync
   * @throws CommitUnknown
   */
  async write<T>(body: (driver: SqliteDriver) => T, durable = true): Promise<T> {
    const deadline = this.#deadline();
    const before = this.#queue;
    let done = (): void => {};
    this.#queue = new Promise((resolve) => {
      done = resolve;
    });
    await before;
    using place = this.#others?.place();
    try {
      return await this.#patiently(() => this.#write(body, durable), deadline, place);
    } finally {
      done();
    }
  }

  /** Copies the file, as it is at one moment, to a path where there is none. Blocks for as long as that takes. */
  async copyTo(path: string): Promise<void> {
    await this.#patiently(() => void this.#use().run("VACUUM INTO ?", path), this.#deadline());
  }

  /**
   * Writes the file anew, without what was deleted: pages keep what they had before a row was changed, or moved to another
   * page. SQLite's log has it too, and is emptied; where a reader of another process is in the way, by whoever closes the file
   * last. Blocks for as long as that takes.
   */
  async rewrite(): Promise<void> {
    await this.#queue;
    await this.#patiently(() => this.#use().exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)"), this.#deadline());
  }

  async close(): Promise<void> {
    await this.#queue;
    this.#closed = true;
    this.#discard();
  }

  #write<T>(body: (driver: SqliteDriver) => T, durable: boolean): T {
    const driver = this.#use();
    if (!durable) driver.exec("PRAGMA synchronous = NORMAL");
    try {
      const result = this.#inTransaction(driver, "BEGIN IMMEDIATE", body);
      this.#commit(driver);
      return result;
    } finally {
      if (!durable && this.#driver === driver) driver.exec("PRAGMA synchronous = FULL");
    }
  }

  /** Begins a transaction and runs `body` in it; rolls back if it throws, else leaves it open. */
  #inTransaction<T>(driver: SqliteDriver, begin: string, body: (driver: SqliteDriver) => T): T {
    driver.exec(begin);
    try {
      return body(driver);
    } catch (error) {
      rollBack(driver);
      throw error;
    }
  }

  #commit(driver: SqliteDriver): void {
    try {
      driver.exec("COMMIT");
    } catch (error) {
      if (this.#options.path === undefined) rollBack(driver);
      else this.#discard();
      if (isDiskFull(error)) throw error;
      throw new CommitUnknown("COMMIT failed", { cause: toCatalogError(error, this.#name) });
    }
  }

  /** Tries until somebody else's lock is gone or the deadline is passed; with a place, when it is its turn. */
  async #patiently<T>(attempt: () => T, deadline: number, place?: LockPlace): Promise<T> {
    const { timer, random } = this.#options;
    for (let pauseMs = 1; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const late = timer.now() >= deadline;
      if (late || !place || place.isTurn()) {
        try {
          return attempt();
        } catch (error) {
          if (!isBusy(error) || late) throw toCatalogError(error, this.#name);
        }
      }
      // Jitter, so that several waiters do not meet again and again.
      await timer.sleep((place?.pause(pauseMs) ?? pauseMs) * (0.5 + (random(1)[0] ?? 0) / 256));
    }
  }

  #deadline(): number {
    return this.#options.timer.now() + this.#options.busyTimeoutMs;
  }

  #use(): SqliteDriver {
    if (this.#closed) {
      throw new CatalogError("catalog_closed", `the catalog ${this.#name} is closed: open the lake again`, {
        subject: this.#name,
      });
    }
    if (this.#frozen !== undefined && this.#frozen !== this.#look()) this.#discard();
    const driver = this.#driver ?? this.#open();
    const { path } = this.#options;
    // SQLite would go on with a file that was deleted: its answers would be of a lake that is gone, and nobody would
    // ever find what it acknowledged.
    if (path !== undefined && identify(path) !== this.#file) {
      throw new CatalogError(
        "catalog_replaced",
        `the catalog ${path} was deleted or replaced while it was open: close the lake and open it again`,
        { subject: path },
      );
    }
    return driver;
  }

  #discard(): void {
    const driver = this.#driver;
    this.#driver = undefined;
    this.#frozen = undefined;
    driver?.close();
  }

  #open(): SqliteDriver {
    const { path, mode, openDriver } = this.#options;
    if (path !== undefined && mode === "read") return this.#openToRead(path);
    const driver = openDriver(path, {
      readonly: false,
      create: mode === "create",
      blockMs: BLOCK_MS,
      copy: false,
    });
    try {
      this.#prepareToWrite(driver);
    } catch (error) {
      driver.close();
      throw error;
    }
    return this.#keep(driver);
  }

  #prepareToWrite(driver: SqliteDriver): void {
    const { mode, identity } = this.#options;
    driver.exec("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF");
    // Looked at first, so that a foreign file is not touched.
    const current = this.#isCurrent(driver, { create: mode === "create", migrate: true });
    const journal = driver.get<{ journal_mode: string }>("PRAGMA journal_mode = WAL")?.journal_mode;
    if (journal !== "wal" && this.#options.path !== undefined) {
      throw new CatalogError(
        "catalog_unavailable",
        `the catalog ${this.#name} cannot have a write-ahead log there: keep it on a local disk`,
        { subject: this.#name },
      );
    }
    // fullfsync: on macOS a plain fsync leaves the data in the disk's cache. The limit is in bytes.
    driver.exec("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA journal_size_limit = 67108864");
    if (current) return;
    this.#inTransaction(driver, "BEGIN IMMEDIATE", () => migrate(driver, this.#name, identity));
    driver.exec("COMMIT");
  }

  /**
   * A read-only connection takes part in WAL's locking as long as it can open or make the files beside the catalog. In a
   * folder that it cannot write, where no log is left, the file is complete by itself, and a copy of it in memory is read
   * until the file changes.
   */
  #openToRead(path: string): SqliteDriver {
    for (;;) {
      const before = this.#look();
      const changed = (): boolean => before !== this.#look();
      try {
        return this.#keep(this.#tryToRead(path, false));
      } catch (error) {
        if (!isOpenRefused(error) || (sizeOf(`${path}-wal`) > 0 && !changed())) throw error;
      }
      try {
        const driver = this.#tryToRead(path, true);
        if (!changed()) {
          this.#frozen = before;
          return this.#keep(driver);
        }
        driver.close(); // copied while somebody wrote: of no state at all
      } catch (error) {
        if (!changed()) throw error;
      }
    }
  }

  #tryToRead(path: string, copy: boolean): SqliteDriver {
    const driver = this.#options.openDriver(path, { readonly: true, create: false, blockMs: BLOCK_MS, copy });
    try {
      this.#isCurrent(driver, { create: false, migrate: false });
      return driver;
    } catch (error) {
      driver.close();
      throw error;
    }
  }

  #isCurrent(driver: SqliteDriver, may: { create: boolean; migrate: boolean }): boolean {
    const current = this.#inTransaction(driver, "BEGIN", () => isCurrent(driver, this.#name, may));
    driver.exec("COMMIT");
    return current;
  }

  #keep(driver: SqliteDriver): SqliteDriver {
    const { path } = this.#options;
    if (path !== undefined) this.#file ??= identify(path);
    this.#driver = driver;
    return driver;
  }

  /** What the file looks like from outside: changes whenever somebody has written. */
  #look(): string | undefined {
    const path = this.#options.path ?? "";
    const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
    return stat && `${stat.ino} ${stat.size} ${stat.mtimeNs} ${sizeOf(`${path}-wal`)}`;
  }
}

function rollBack(driver: SqliteDriver): void {
  try {
    driver.exec("ROLLBACK");
  } catch {
    // SQLite has rolled back by itself: it does after errors of the disk.
  }
}

/** Which file this is, whatever its name; undefined if there is none. */
function identify(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stat && !stat.isFile()) {
    throw new CatalogError("not_a_catalog", `${path} is not a file: check the path`, { subject: path });
  }
  return stat && `${stat.dev} ${stat.ino}`;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

/** Makes a folder and those above it, and makes them last. */
function makeFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true });
  if (first === undefined || process.platform === "win32") return; // Windows cannot fsync a folder
  const top = dirname(first);
  for (let made = folder; ; made = join(made, "..")) {
    const handle = openSync(made, "r");
    try {
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    if (made === top) return;
  }
}
