import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError, LimitError, StoreError } from "@eider/core";
import type { CacheFetch, ExpectedObject } from "./cache-fetch.js";
import { CacheFileError, type CacheFolder } from "./cache-folder.js";
import type { CachePiece } from "./cache-piece.js";
import { fileError, notFound } from "./file-error.js";
import { type Flight, type Flights, Gate } from "./flights.js";
import type { ObjectStore } from "./store.js";

/** An object to be copied, and what is known of it. */
export interface LocalObject extends ExpectedObject {
  readonly key: string;
}

export interface LocalizeOptions {
  readonly signal?: AbortSignal;
  /** Called with the bytes fetched so far; what was cached already is not among them. */
  readonly onProgress?: (bytes: number) => void;
  /** Called before it waits for room: whoever holds copies that it does not use may release them. */
  readonly onFull?: () => void | Promise<void>;
}

/** Files that can be read until they are released, whatever others evict or delete. */
export interface LocalCopies extends AsyncDisposable {
  /** Absolute, in the order of the objects asked for. Not to be written to. */
  readonly paths: readonly string[];
  /** Keys of those that were not in the cache. */
  readonly fetched: readonly string[];
  release(): Promise<void>;
}

/** Fetched rounds after which a cache that loses what it was given is given up. */
const MAX_ROUNDS = 5;
const LONGEST_LOOK_MILLISECONDS = 1000;

interface Parts {
  readonly inner: ObjectStore;
  readonly folder: CacheFolder;
  readonly flights: Flights;
  readonly fetch: CacheFetch;
  readonly hashOf: (key: string) => string;
  readonly maxBytes: number;
  readonly concurrency: number;
  readonly waitMs: number;
}

/** Makes copies of objects in the cache for programs that read files. */
export class CacheCopies {
  readonly #parts: Parts;
  readonly #gate: Gate;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#gate = new Gate(parts.concurrency);
  }

  async localize(objects: readonly LocalObject[], options: LocalizeOptions): Promise<LocalCopies> {
    const wanted = new Map(objects.map((object) => [object.key, object]));
    const held = new Map<string, string>();
    const fetched = new Set<string>();
    const release = async (): Promise<void> => {
      const paths = [...held.values()];
      held.clear();
      await this.#parts.folder.release(paths);
    };
    try {
      await this.#hold(wanted, held, fetched, release, options);
      const paths = objects.map(({ key }) => held.get(key)!);
      return { paths, fetched: [...fetched], release, [Symbol.asyncDispose]: release };
    } catch (error) {
      await release();
      if (error instanceof CacheFileError) throw fileError(error.cause, "The cache", "write");
      throw error;
    }
  }

  async #hold(
    wanted: ReadonlyMap<string, LocalObject>,
    held: Map<string, string>,
    fetched: Set<string>,
    release: () => Promise<void>,
    options: LocalizeOptions,
  ): Promise<void> {
    const { signal } = options;
    const deadline = performance.now() + this.#parts.waitMs;
    let pauseMs = 20;
    for (let rounds = 0; ; ) {
      signal?.throwIfAborted();
      const open = [...wanted.values()].filter(({ key }) => !held.has(key));
      await Promise.all(
        open.map((object) =>
          this.#gate.run(async () => {
            const path = await this.#lease(object);
            if (path !== undefined) held.set(object.key, path);
          }),
        ),
      );
      const missing = open.filter(({ key }) => !held.has(key));
      if (missing.length === 0) return;
      for (const { key } of missing) fetched.add(key);
      if (rounds++ === MAX_ROUNDS) {
        const message =
          "The cache loses what it is given: look whether something removes its files, or is its disk full?";
        throw new StoreError("cache_failed", message, { retryable: true });
      }
      if (await this.#fetchAll(missing, options)) continue;
      // Room is held by leases. Keeping ours while waiting for others could make two wait for each other for ever.
      await release();
      await options.onFull?.();
      rounds = 0;
      if (performance.now() > deadline) {
        const message = `The cache is full of files in use, for ${this.#parts.waitMs} ms: raise maxBytes, or do less at once.`;
        throw new LimitError("cache_full", message);
      }
      await sleep(pauseMs * (1 + Math.random()), undefined, signal && { signal }).catch(() => undefined);
      pauseMs = Math.min(LONGEST_LOOK_MILLISECONDS, pauseMs * 2);
    }
  }

  async #lease(object: LocalObject): Promise<string | undefined> {
    const { folder, hashOf } = this.#parts;
    for (const piece of folder.pieces(hashOf(object.key))) {
      if (!isExpected(piece, object)) await folder.drop(piece);
      else if (piece.start === undefined) {
        const path = await folder.lease(piece, suffixOf(object.key));
        if (path !== undefined) return path;
      }
    }
    return undefined;
  }

  #has(object: LocalObject): boolean {
    const pieces = this.#parts.folder.pieces(this.#parts.hashOf(object.key));
    return pieces.some((piece) => piece.start === undefined && isExpected(piece, object));
  }

  /** Returns when all are in the cache; false if there is no room. */
  async #fetchAll(objects: readonly LocalObject[], options: LocalizeOptions): Promise<boolean> {
    const { flights, folder, fetch, hashOf, maxBytes } = this.#parts;
    const { signal, onProgress } = options;
    const nameOf = (key: string): string => `${hashOf(key)}/whole`;
    const fresh = objects.filter(({ key }) => flights.get(nameOf(key)) === undefined);
    const sizes = await Promise.all(fresh.map((object) => this.#gate.run(() => this.#sizeOf(object, signal))));
    const total = sizes.reduce((sum, bytes) => sum + bytes, 0);
    if (total > maxBytes) {
      const message = `${total} bytes are needed at once, and the cache holds ${maxBytes}: raise maxBytes, or ask for less.`;
      throw new LimitError("cache_too_small", message);
    }
    const rooms = fresh.length === 0 ? [] : await folder.reserve(sizes);
    if (rooms === undefined) return false;
    const left = new AbortController();
    let bytes = 0;
    const roomFor = new Map(fresh.map((object, i) => [object, rooms[i]!]));
    const flown = objects.flatMap((object): Flight | [] => {
      const { key } = object;
      const room = roomFor.get(object);
      const running = flights.get(nameOf(key));
      if (room === undefined) return running ?? [];
      // Others came first while room was made.
      if (running !== undefined || this.#has(object)) {
        void folder.cancel([room]);
        return running ?? [];
      }
      return flights.start([nameOf(key)], async (flight) => {
        await this.#gate.run(() => fetch.copy(key, hashOf(key), room, object, flight));
        bytes += room.bytes;
        if (!left.signal.aborted) onProgress?.(bytes);
      });
    });
    try {
      // Each flight listens to it.
      const each = signal === undefined ? left.signal : AbortSignal.any([signal, left.signal]);
      setMaxListeners(flown.length + 1, each);
      await Promise.all(flown.map((flight) => flight.wait(each)));
    } catch (error) {
      // The others are not waited for any more.
      left.abort(error);
      throw error;
    }
    return true;
  }

  async #sizeOf({ key, size }: LocalObject, signal: AbortSignal | undefined): Promise<number> {
    if (size !== undefined) return size;
    const info = await this.#parts.inner.head(key, signal && { signal });
    if (info === undefined) throw notFound(key);
    return info.size;
  }
}

function isExpected({ start, sha256, facts }: CachePiece, { etag, size, sha256: hex }: LocalObject): boolean {
  if (etag !== undefined && etag !== facts.etag) return false;
  if (size !== undefined && size !== facts.size) return false;
  return start !== undefined || hex === undefined || Buffer.from(hex, "hex").toString("base64url") === sha256;
}

/** The end of a key's name, for programs that go by it. */
function suffixOf(key: string): string {
  return /\.[a-z0-9]{1,8}$/i.exec(key)?.[0] ?? "";
}

export function checkSize(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new InvalidInputError("bad_option", `${name} is a whole number of at least ${least}, not ${value}.`);
}
