import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { InvalidInputError, LimitError, StoreError } from "@eider/core";
import type { Excerpt, ExcerptFile } from "./cache-excerpt.js";
import type { CacheFetch, ExpectedObject } from "./cache-fetch.js";
import { CacheFileError, type CacheFolder, type Reservation } from "./cache-folder.js";
import type { CachePiece } from "./cache-piece.js";
import { fileError, notFound } from "./file-error.js";
import { type Flight, type Flights, Gate } from "./flights.js";
import type { ObjectStore } from "./store.js";

/** An object to be copied, and what is known of it. */
export interface LocalObject extends ExpectedObject {
  readonly key: string;
  /** Less than the whole object that will do. */
  readonly excerpt?: Excerpt;
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
  /** Bytes of each. */
  readonly sizes: readonly number[];
  /** Keys of those that were not in the cache, with the bytes that were read from the store for them by this call. */
  readonly fetched: ReadonlyMap<string, number>;
  release(): Promise<void>;
}

/** Fetched rounds after which a cache that loses what it was given is given up. */
const MAX_ROUNDS = 5;
const LONGEST_LOOK_MILLISECONDS = 1000;

interface HeldFile {
  readonly path: string;
  readonly bytes: number;
}

/** One file to be made. */
interface Job {
  readonly object: LocalObject;
  /** Of its flight. */
  readonly name: string;
  readonly bytes: number;
  begun: boolean;
  /** Returns the bytes that were read from the store. */
  run(room: Reservation, flight: Flight): Promise<number>;
  /** Lets go of what it needs: by the flight, or by who does not begin one. */
  end(): Promise<void>;
}

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
    const held = new Map<string, HeldFile>();
    const fetched = new Map<string, number>();
    const release = async (): Promise<void> => {
      const paths = [...held.values()].map(({ path }) => path);
      held.clear();
      await this.#parts.folder.release(paths);
    };
    try {
      await this.#hold(wanted, held, fetched, release, options);
      const files = objects.map(({ key }) => held.get(key)!);
      const [paths, sizes] = [files.map(({ path }) => path), files.map(({ bytes }) => bytes)];
      return { paths, sizes, fetched, release, [Symbol.asyncDispose]: release };
    } catch (error) {
      await release();
      if (error instanceof CacheFileError) throw fileError(error.cause, "The cache", "write");
      throw error;
    }
  }

  async #hold(
    wanted: ReadonlyMap<string, LocalObject>,
    held: Map<string, HeldFile>,
    fetched: Map<string, number>,
    release: () => Promise<void>,
    options: LocalizeOptions,
  ): Promise<void> {
    const { signal } = options;
    const deadline = performance.now() + this.#parts.waitMs;
    let pauseMs = 20;
    // Excerpts that are there are worth their room only if it is not needed.
    let reuses = true;
    for (let rounds = 0; ; ) {
      signal?.throwIfAborted();
      const open = [...wanted.values()].filter(({ key }) => !held.has(key));
      await Promise.all(
        open.map((object) =>
          this.#gate.run(async () => {
            const file = await this.#lease(object);
            if (file !== undefined) held.set(object.key, file);
          }),
        ),
      );
      const missing = open.filter(({ key }) => !held.has(key));
      if (missing.length === 0) return;
      for (const { key } of missing) fetched.set(key, fetched.get(key) ?? 0);
      if (rounds++ === MAX_ROUNDS) {
        const message =
          "The cache loses what it is given: look whether something removes its files, or is its disk full?";
        throw new StoreError("cache_failed", message, { retryable: true });
      }
      if (await this.#fetchAll(missing, reuses, fetched, options)) continue;
      reuses = false;
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

  async #lease(object: LocalObject): Promise<HeldFile | undefined> {
    const { folder, hashOf } = this.#parts;
    const keyHash = hashOf(object.key);
    for (const piece of [...folder.pieces(keyHash), ...folder.excerpts(keyHash)]) {
      if (!isExpected(piece, object)) await folder.drop(piece);
      else if (willDo(piece, object)) {
        const path = await folder.lease(piece, suffixOf(object.key));
        if (path !== undefined) return { path, bytes: piece.bytes };
      }
    }
    return undefined;
  }

  #has(object: LocalObject): boolean {
    const { folder, hashOf } = this.#parts;
    const keyHash = hashOf(object.key);
    const pieces = [...folder.pieces(keyHash), ...folder.excerpts(keyHash)];
    return pieces.some((piece) => isExpected(piece, object) && willDo(piece, object));
  }

  /** Returns when all are in the cache; false if there is no room. */
  async #fetchAll(
    objects: readonly LocalObject[],
    reuses: boolean,
    fetched: Map<string, number>,
    options: LocalizeOptions,
  ): Promise<boolean> {
    const { flights, folder, maxBytes } = this.#parts;
    const { signal, onProgress } = options;
    const jobs = await this.#jobs(objects, reuses, signal);
    try {
      const fresh = jobs.filter(({ name }) => flights.get(name) === undefined);
      const total = fresh.reduce((sum, { bytes }) => sum + bytes, 0);
      if (total > maxBytes) {
        if (reuses && fresh.some(({ object }) => object.excerpt)) return false;
        const message = `${total} bytes are needed at once, and the cache holds ${maxBytes}: raise maxBytes, or ask for less.`;
        throw new LimitError("cache_too_small", message);
      }
      const rooms = fresh.length === 0 ? [] : await folder.reserve(fresh.map(({ bytes }) => bytes));
      if (rooms === undefined) return false;
      const left = new AbortController();
      let bytes = 0;
      const roomFor = new Map(fresh.map((job, i) => [job, rooms[i]!]));
      const flown = jobs.flatMap((job): Flight | [] => {
        const { name, object } = job;
        const room = roomFor.get(job);
        const running = flights.get(name);
        if (room === undefined) return running ?? [];
        // Others came first while room was made.
        if (running !== undefined || this.#has(object)) {
          void folder.cancel([room]);
          return running ?? [];
        }
        job.begun = true;
        return flights.start([name], async (flight) => {
          try {
            const read = await this.#gate.run(() => job.run(room, flight));
            fetched.set(object.key, (fetched.get(object.key) ?? 0) + read);
          } finally {
            await job.end();
          }
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
    } finally {
      await Promise.all(jobs.map((job) => (job.begun ? undefined : job.end())));
    }
  }

  async #jobs(objects: readonly LocalObject[], reuses: boolean, signal: AbortSignal | undefined): Promise<Job[]> {
    const planned = await Promise.allSettled(
      objects.map((object) =>
        this.#gate.run(() =>
          object.excerpt ? this.#excerpt(object, object.excerpt, reuses, signal) : this.#whole(object, 0, signal),
        ),
      ),
    );
    const jobs = planned.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    for (const result of planned) {
      if (result.status === "fulfilled") continue;
      await Promise.all(jobs.map((job) => job.end()));
      throw result.reason;
    }
    return jobs;
  }

  /** @param fetchedBytes what was read from the store before */
  async #whole(object: LocalObject, fetchedBytes: number, signal: AbortSignal | undefined): Promise<Job> {
    const { flights, fetch, hashOf } = this.#parts;
    const { key } = object;
    const keyHash = hashOf(key);
    const name = `${keyHash}/whole`;
    return {
      object,
      name,
      bytes: flights.get(name) === undefined ? await this.#sizeOf(object, signal) : 0,
      begun: false,
      run: async (room, flight) => {
        await fetch.copy(key, keyHash, room, object, flight);
        return fetchedBytes + room.bytes;
      },
      end: async () => undefined,
    };
  }

  async #excerpt(
    object: LocalObject,
    excerpt: Excerpt,
    reuses: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Job> {
    const { folder, fetch, hashOf } = this.#parts;
    const { key } = object;
    const keyHash = hashOf(key);
    const there: ExcerptFile[] = [];
    const end = (): Promise<void> => folder.release(there.map(({ path }) => path));
    try {
      for (const piece of reuses ? folder.excerpts(keyHash) : []) {
        const path = await folder.lease(piece, suffixOf(key));
        if (path !== undefined) there.push({ name: piece.excerpt!, path });
      }
      const plan = await excerpt.plan(there, signal);
      if (plan.kind === "whole") {
        await end();
        return await this.#whole(object, plan.fetchedBytes, signal);
      }
      const size = await this.#sizeOf(object, signal);
      const { name, bytes } = plan;
      const run: Job["run"] = (room, flight) => fetch.excerpt(keyHash, room, size, plan, flight);
      return { object, name: `${keyHash}/${name}`, bytes, begun: false, run, end };
    } catch (error) {
      await end();
      throw error;
    }
  }

  async #sizeOf({ key, size }: LocalObject, signal: AbortSignal | undefined): Promise<number> {
    if (size !== undefined) return size;
    const info = await this.#parts.inner.head(key, signal && { signal });
    if (info === undefined) throw notFound(key);
    return info.size;
  }
}

/** Whether a piece is all that is needed of the object. */
function willDo({ start, excerpt }: CachePiece, object: LocalObject): boolean {
  return excerpt === undefined ? start === undefined : (object.excerpt?.suits(excerpt) ?? false);
}

function isExpected({ start, excerpt, sha256, facts }: CachePiece, object: LocalObject): boolean {
  const { etag, size, sha256: hex } = object;
  if (size !== undefined && size !== facts.size) return false;
  // Who asked for it knew the object by what it holds.
  if (excerpt !== undefined) return true;
  if (etag !== undefined && etag !== facts.etag) return false;
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
