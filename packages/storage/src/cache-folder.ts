import { createHash } from "node:crypto";
import { copyFile, type FileHandle, link, lstat, mkdir, open, readdir, rename, unlink, utimes } from "node:fs/promises";
import { join, resolve } from "node:path";
import { PIECE_BYTES } from "./body.js";
import { CacheIndex } from "./cache-index.js";
import { CacheLeases } from "./cache-leases.js";
import { CacheOwner } from "./cache-owner.js";
import { type CachePiece, makePiece, newId, ownName, parseOwnName, parsePiece } from "./cache-piece.js";
import { fileError, isAbsent } from "./file-error.js";

/** Of every cached file, in seconds since the epoch. A file with another one was written to by somebody else. */
const MODIFIED_SECONDS = 1_000_000_000;
/** A use of a file that is held is told again when the last one was told so long ago. */
const USE_MILLISECONDS = 60_000;
/** Files whose last use is asked for at once. */
const STAT_BATCH = 64;
/** With more files than this, eviction goes on to a tenth below the limit, for it has to look at each of them. */
const MANY_FILES = 100;

/** The cache's own files failed, not the store inside. */
export class CacheFileError extends Error {}

/** Room for one file, already counted in everybody's sum. */
export interface Reservation {
  readonly path: string;
  readonly id: string;
  readonly bytes: number;
}

interface Request {
  readonly sizes: readonly number[];
  readonly answer: (reservations: readonly Reservation[] | undefined) => void;
  readonly fail: (error: unknown) => void;
}

/** What all processes have in the folder. */
interface Inventory {
  readonly pieces: readonly CachePiece[];
  /** Being filled, or leased: removing their pieces would free nothing. */
  readonly pinned: ReadonlySet<string>;
  readonly total: number;
}

/**
 * The files of a cache, shared by processes without a lock. In `objects/` each file is complete and named by its facts;
 * it appears by `rename` and goes by `unlink`, which does not disturb who has it open. In `processes/<owner>/` are the
 * files that a process is filling, and its leases: further links to objects, which keep their bytes.
 *
 * The bound holds without a lock because room is asked for in this order: an empty file whose name promises its size,
 * then one look at all names. Of two processes that ask at once at least one sees the other.
 */
export class CacheFolder {
  readonly #objects: string;
  readonly #owner: CacheOwner;
  readonly #leases: CacheLeases;
  readonly #maxBytes: number;
  readonly #index = new CacheIndex();
  readonly #requests: Request[] = [];
  #serving: Promise<void> | undefined;
  #opened: Promise<void> | undefined;
  #links = 0;
  evicted = 0;
  damaged = 0;

  /** @param keepMs how long leases stay after their last use, unless their room is needed */
  constructor(folder: string, maxBytes: number, keepMs: number) {
    const root = join(resolve(folder), "eider-cache-2");
    this.#objects = join(root, "objects");
    this.#owner = new CacheOwner(root);
    this.#leases = new CacheLeases(keepMs);
    this.#maxBytes = maxBytes;
  }

  /** Makes the folders, removes what killed processes left, and reads what is there. Once. */
  open(): Promise<void> {
    this.#opened ??= this.#open();
    return this.#opened;
  }

  /** The pieces of a key that this process knows of, but for excerpts. Another one may have removed them. */
  pieces(keyHash: string): readonly CachePiece[] {
    return this.#index.of(keyHash).filter(({ excerpt }) => excerpt === undefined);
  }

  /** The excerpts of a key, as {@link pieces}. */
  excerpts(keyHash: string): readonly CachePiece[] {
    return this.#index.of(keyHash).filter(({ excerpt }) => excerpt !== undefined);
  }

  path(piece: CachePiece): string {
    return join(this.#objects, piece.name);
  }

  /**
   * Room for files of these sizes, all or none; undefined if there is no room even without what is evictable. Afterwards
   * the index is up to date.
   */
  reserve(sizes: readonly number[]): Promise<readonly Reservation[] | undefined> {
    return new Promise((answer, fail) => {
      this.#requests.push({ sizes, answer, fail });
      this.#serving ??= this.#serve();
    });
  }

  async cancel(reservations: readonly Reservation[]): Promise<void> {
    await Promise.all(reservations.map(({ path }) => unlink(path).catch(() => undefined)));
  }

  /** The reserved file, to be written and closed. */
  async openReserved({ path }: Reservation): Promise<FileHandle> {
    try {
      return await open(path, "w", 0o600);
    } catch (error) {
      throw new CacheFileError("open", { cause: error });
    }
  }

  /** Moves a file that was filled to where all processes find it. */
  async publish(
    reservation: Reservation,
    described: Omit<CachePiece, "name" | "id" | "bytes">,
    isOutdated: () => boolean,
  ): Promise<void> {
    const piece = makePiece({ ...described, id: reservation.id, bytes: reservation.bytes });
    if (piece === undefined || isOutdated()) return this.cancel([reservation]);
    try {
      await utimes(reservation.path, Date.now() / 1000, MODIFIED_SECONDS);
      await rename(reservation.path, this.path(piece));
    } catch (error) {
      throw new CacheFileError("publish", { cause: error });
    }
    if (isOutdated()) return this.drop(piece);
    this.#index.add(piece);
  }

  /**
   * Whether the piece is there with the right bytes; marks it as used. A damaged one is removed.
   * @param path one of its leases
   */
  async check(piece: CachePiece, path: string = this.path(piece)): Promise<boolean> {
    let handle: FileHandle | undefined;
    try {
      handle = await open(path, "r");
      const stats = await handle.stat();
      const untouched = stats.size === piece.bytes && stats.mtimeMs === MODIFIED_SECONDS * 1000;
      if (!untouched || !this.#index.isVerified(piece)) {
        if (stats.size !== piece.bytes || (await hashFile(handle)) !== piece.sha256) {
          this.damaged++;
          await this.drop(piece);
          return false;
        }
        this.#index.verify(piece);
      }
      await handle.utimes(Date.now() / 1000, MODIFIED_SECONDS).catch(() => undefined);
      return true;
    } catch (error) {
      this.#index.forget(piece);
      if (isAbsent(error)) return false;
      throw new CacheFileError("check", { cause: error });
    } finally {
      await handle?.close();
    }
  }

  /** Bytes of a small piece, or undefined if it is gone or damaged. */
  async read(piece: CachePiece, start: number, end: number): Promise<Uint8Array | undefined> {
    if (!(await this.check(piece))) return undefined;
    const bytes = new Uint8Array(end - start);
    const handle = await open(this.path(piece), "r").catch(() => undefined);
    try {
      for (let done = 0; done < bytes.length; ) {
        const { bytesRead = 0 } = (await handle?.read(bytes, done, bytes.length - done, start + done)) ?? {};
        if (bytesRead === 0) return undefined;
        done += bytesRead;
      }
      return bytes;
    } catch {
      return undefined;
    } finally {
      await handle?.close();
    }
  }

  /**
   * Another path of the piece that stays until it is released, whatever becomes of the piece; undefined if it is gone.
   * The same for all who hold it at the same time.
   */
  lease(piece: CachePiece, suffix: string): Promise<string | undefined> {
    const isUntouched = async (path: string): Promise<boolean> => {
      const stats = await lstat(path).catch(() => undefined);
      if (stats?.size === piece.bytes && stats.mtimeMs === MODIFIED_SECONDS * 1000) {
        if (stats.atimeMs < Date.now() - USE_MILLISECONDS) await utimes(path, Date.now() / 1000, MODIFIED_SECONDS);
        return true;
      }
      this.damaged++;
      await this.drop(piece);
      return false;
    };
    return this.#leases.take(piece.id, isUntouched, () => this.#link(piece, suffix));
  }

  async #link(piece: CachePiece, suffix: string): Promise<string | undefined> {
    const path = join(await this.#owner.folder(), ownName(piece.id, piece.bytes, `${++this.#links}${suffix}`));
    try {
      await link(this.path(piece), path);
    } catch (error) {
      if (isAbsent(error)) {
        this.#index.forget(piece);
        return undefined;
      }
      return this.#copy(piece, suffix);
    }
    if (await this.check(piece, path)) return path;
    await unlink(path).catch(() => undefined);
    return undefined;
  }

  release(paths: Iterable<string>): Promise<void> {
    return this.#leases.release(paths);
  }

  /** The hash of a reserved file that was filled, if it has its size. */
  async hashReserved({ path, bytes }: Reservation): Promise<string | undefined> {
    const handle = await open(path, "r");
    try {
      return (await handle.stat()).size === bytes ? await hashFile(handle) : undefined;
    } finally {
      await handle.close();
    }
  }

  async drop(piece: CachePiece): Promise<void> {
    this.#index.forget(piece);
    await unlink(this.path(piece)).catch(() => undefined);
  }

  /** Removes the pieces of a key, or all, also those that other processes made. */
  async purge(keyHashes?: ReadonlySet<string>): Promise<void> {
    await this.open();
    const { pieces } = await this.#look();
    for (const piece of pieces) if (keyHashes?.has(piece.keyHash) ?? true) await this.drop(piece);
  }

  /** Removes what is this process's own: its unfinished files and its leases. */
  async close(): Promise<void> {
    await this.#opened?.catch(() => undefined);
    await this.#serving;
    this.#leases.close();
    await this.#owner.close();
  }

  async #open(): Promise<void> {
    await this.#owner.open();
    try {
      await mkdir(this.#objects, { recursive: true, mode: 0o700 });
    } catch (error) {
      throw fileError(error, this.#objects, "write");
    }
    await this.#owner.sweep();
    await this.#look();
  }

  /** Serves what waits, all at once: one look at the folder is enough for any number of requests. */
  async #serve(): Promise<void> {
    while (this.#requests.length > 0) {
      const requests = this.#requests.splice(0);
      const given: Reservation[][] = [];
      try {
        for (const { sizes } of requests) given.push(await this.#promise(sizes));
        let total = await this.#makeRoom();
        // Who came last goes first.
        for (let i = requests.length - 1; i >= 0; i--) {
          const { sizes, answer } = requests[i]!;
          if (total <= this.#maxBytes) {
            answer(given[i]!);
            continue;
          }
          await this.cancel(given[i]!);
          total -= sizes.reduce((sum, bytes) => sum + bytes, 0);
          answer(undefined);
        }
      } catch (error) {
        await this.cancel(given.flat());
        for (const { fail } of requests) fail(new CacheFileError("reserve", { cause: error }));
      }
    }
    // In the same turn as the last look at the requests: the next one starts anew.
    this.#serving = undefined;
  }

  async #promise(sizes: readonly number[]): Promise<Reservation[]> {
    const folder = await this.#owner.folder();
    const reservations: Reservation[] = [];
    try {
      for (const bytes of sizes) {
        const id = newId();
        const path = join(folder, ownName(id, bytes, "new"));
        await (await open(path, "wx", 0o600)).close();
        reservations.push({ path, id, bytes });
      }
    } catch (error) {
      await this.cancel(reservations);
      throw error;
    }
    return reservations;
  }

  /** Evicts what was not used for longest until the sum is within the limit. Returns the sum. */
  async #makeRoom(): Promise<number> {
    let inventory = await this.#look();
    if (inventory.total <= this.#maxBytes) return inventory.total;
    const released = await this.#leases.releaseIdle();
    if ((await this.#owner.sweep()) || released) inventory = await this.#look();
    let { total } = inventory;
    const evictable = await lastUsed(
      inventory.pieces.filter(({ id }) => !inventory.pinned.has(id)),
      (piece) => this.path(piece),
    );
    const goal = this.#maxBytes * (evictable.length > MANY_FILES ? 0.9 : 1);
    const over = total > this.#maxBytes;
    for (const piece of over ? evictable : []) {
      if (total <= goal) break;
      await this.drop(piece);
      this.evicted++;
      total -= piece.bytes;
    }
    return total;
  }

  async #look(): Promise<Inventory> {
    const sizes = new Map<string, number>();
    const pinned = new Set<string>();
    const lookAtOwn = async (): Promise<void> => {
      for (const name of await this.#owner.list()) {
        const own = parseOwnName(name);
        if (own === undefined) continue;
        sizes.set(own.id, own.bytes);
        pinned.add(own.id);
      }
    };
    let pieces: readonly CachePiece[] = [];
    await this.#index.renew(async () => {
      // Files move from the processes to the objects, and leases come from there: in this order none is missed.
      await lookAtOwn();
      pieces = (await readdir(this.#objects)).flatMap((name) => parsePiece(name) ?? []);
      await lookAtOwn();
      return pieces;
    });
    for (const { id, bytes } of pieces) sizes.set(id, bytes);
    return { pieces, pinned, total: [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0) };
  }

  /** Where there are no hard links, a lease is a copy, with room of its own. */
  async #copy(piece: CachePiece, suffix: string): Promise<string | undefined> {
    if (!(await this.check(piece))) return undefined;
    const [room] = (await this.reserve([piece.bytes])) ?? [];
    if (room === undefined) return undefined;
    const path = `${room.path}${suffix}`;
    try {
      await rename(room.path, path);
      await copyFile(this.path(piece), path);
      return path;
    } catch {
      await unlink(path).catch(() => undefined);
      return undefined;
    }
  }
}

async function lastUsed(pieces: readonly CachePiece[], path: (piece: CachePiece) => string): Promise<CachePiece[]> {
  const used: { readonly piece: CachePiece; readonly at: number }[] = [];
  for (let start = 0; start < pieces.length; start += STAT_BATCH) {
    const batch = pieces.slice(start, start + STAT_BATCH);
    const stats = await Promise.all(batch.map((piece) => lstat(path(piece)).catch(() => undefined)));
    // One that is gone already frees its bytes first.
    for (const [i, piece] of batch.entries()) used.push({ piece, at: stats[i]?.atimeMs ?? 0 });
  }
  return used.sort((a, b) => a.at - b.at).map(({ piece }) => piece);
}

async function hashFile(handle: FileHandle): Promise<string> {
  const hash = createHash("sha256");
  const buffer = new Uint8Array(PIECE_BYTES);
  for (let position = 0; ; ) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return hash.digest("base64url");
    hash.update(buffer.subarray(0, bytesRead));
    position += bytesRead;
  }
}
