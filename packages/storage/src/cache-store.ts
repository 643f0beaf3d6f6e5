import { randomUUID } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { NotFoundError, StoreError } from "@eider/core";
import { type ByteRange, memoryBody, resolveRange, SingleBody } from "./body.js";
import { CacheCopies, checkSize, type LocalCopies, type LocalizeOptions, type LocalObject } from "./cache-copies.js";
import { CacheFetch, changed, close } from "./cache-fetch.js";
import { CacheFileError, CacheFolder } from "./cache-folder.js";
import { type CachePiece, hashKey, type ObjectFacts } from "./cache-piece.js";
import { openObject } from "./file-body.js";
import { notFound } from "./file-error.js";
import { type Flight, Flights } from "./flights.js";
import { assertSafeKey } from "./keys.js";
import type {
  CallOptions,
  GetOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoredObject,
} from "./store.js";
import { StoreWrapper } from "./wrapper.js";

export interface CacheStoreOptions {
  /** A local folder; it is made. Processes, stores and lakes may share it. */
  readonly dir: string;
  /** Bytes of all files in it, of all processes together, those in use too. */
  readonly maxBytes: number;
  /**
   * The keys whose objects never change once they are put: only these are cached, and they are read without asking the
   * store. Others always go to the store.
   */
  readonly cacheable: (key: string) => boolean;
  /** Objects up to this size are fetched as a whole. Longer reads of larger ones are not cached. Default 16 MiB. */
  readonly wholeBytes?: number;
  /** Ranges of larger objects are fetched in blocks of this size. Default 1 MiB. */
  readonly blockBytes?: number;
  /** Tells stores apart that share the folder. Default: the store's URL; for a memory store, something of its own. */
  readonly namespace?: string;
  /** Objects that `localize` fetches at once. Default 8. */
  readonly concurrency?: number;
  /** How long `localize` waits for others to release their files. Milliseconds, default 30,000. */
  readonly waitMs?: number;
  /**
   * How long files of `localize` keep their paths after they are released, for who asks for them again; shorter if their
   * room is needed in this process. Milliseconds, default 0. Less than the `waitMs` of other processes.
   */
  readonly keepMs?: number;
}

/** What a `CacheStore` did since it was made. */
export interface CacheStats {
  /** Reads answered from the cache alone. */
  readonly hits: number;
  /** Reads for which something was fetched into the cache. */
  readonly misses: number;
  /** Reads of cacheable keys that went to the store: too long, or there was no room, or the cache's disk failed. */
  readonly bypassed: number;
  /** Files removed to make room. */
  readonly evicted: number;
  /** Files removed because their bytes had changed. */
  readonly damaged: number;
}

/** Tries to read from the cache before the store is read past it: others may evict faster than one reads. */
const ROUNDS = 4;

interface Known {
  readonly facts: ObjectFacts;
  readonly whole: CachePiece | undefined;
  readonly blocks: ReadonlyMap<number, CachePiece>;
}

/**
 * Keeps what was read of immutable objects in a local folder of bounded size, and gives them as files (`localize`).
 * Processes may share the folder. What is damaged there is fetched again. `head` and `list` always ask the store.
 *
 * An object that another process deleted may be read until it is evicted; `purge` removes what must not stay.
 */
export class CacheStore extends StoreWrapper {
  readonly #options: CacheStoreOptions;
  readonly #namespace: string;
  readonly #wholeBytes: number;
  readonly #blockBytes: number;
  readonly #folder: CacheFolder;
  readonly #fetch: CacheFetch;
  readonly #copies: CacheCopies;
  readonly #flights = new Flights();
  readonly #handles = new Set<FileHandle>();
  readonly #counts = { hits: 0, misses: 0, bypassed: 0 };
  #closed = false;

  constructor(inner: ObjectStore, options: CacheStoreOptions) {
    super(inner);
    const {
      dir,
      wholeBytes = 16 * 1024 * 1024,
      blockBytes = 1024 * 1024,
      concurrency = 8,
      waitMs = 30_000,
      keepMs = 0,
    } = options;
    const maxBytes = checkSize("maxBytes", options.maxBytes, 1);
    this.#options = options;
    this.#namespace = options.namespace ?? (inner.url.startsWith("memory:") ? randomUUID() : inner.url);
    this.#wholeBytes = Math.min(maxBytes, checkSize("wholeBytes", wholeBytes, 0));
    this.#blockBytes = checkSize("blockBytes", blockBytes, 1);
    this.#folder = new CacheFolder(dir, maxBytes, keepMs);
    this.#fetch = new CacheFetch(inner, this.#folder, this.#blockBytes);
    this.#copies = new CacheCopies({
      inner,
      folder: this.#folder,
      flights: this.#flights,
      fetch: this.#fetch,
      hashOf: (key) => this.#hash(key),
      maxBytes,
      concurrency: checkSize("concurrency", concurrency, 1),
      waitMs,
    });
  }

  get stats(): CacheStats {
    const { evicted, damaged } = this.#folder;
    return { ...this.#counts, evicted, damaged };
  }

  override async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    if (!this.#options.cacheable(key)) return this.inner.put(key, body, options);
    try {
      return await this.inner.put(key, body, options);
    } finally {
      await this.#outdate([key], options.ifAbsent !== true);
    }
  }

  override async delete(keys: string | readonly string[], options: CallOptions = {}): Promise<void> {
    const cached = [keys].flat().filter((key) => this.#options.cacheable(key));
    try {
      await this.inner.delete(keys, options);
    } finally {
      if (cached.length > 0) await this.#outdate(cached, true);
    }
  }

  override async get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    if (!this.#options.cacheable(key)) return this.inner.get(key, options);
    this.#check(options.signal);
    assertSafeKey(key);
    resolveRange(options.range, 0);
    await this.#folder.open();
    try {
      const found = await this.#cached(key, this.#hash(key), options);
      if (found !== undefined) return found;
    } catch (error) {
      // A cache that fails must not make a read fail.
      if (!(error instanceof CacheFileError)) throw error;
    }
    this.#counts.bypassed++;
    return this.inner.get(key, options);
  }

  /**
   * Copies whole objects, of any size and key, for programs that read files. All of them at once must fit into the cache.
   * @throws LimitError `cache_too_small`, or `cache_full` when others held the room for too long; NotFoundError; StoreError
   * `object_changed` for another etag than expected; CorruptionError `damaged_object` for another size or hash
   */
  async localize(objects: readonly (string | LocalObject)[], options: LocalizeOptions = {}): Promise<LocalCopies> {
    this.#check(options.signal);
    const asked = objects.map((object) => (typeof object === "string" ? { key: object } : object));
    for (const { key } of asked) assertSafeKey(key);
    await this.#folder.open();
    const all = await Promise.all(asked.map((object) => this.#withEtag(object, options)));
    return this.#copies.localize(all, options);
  }

  /**
   * Removes objects from the cache, by default all of every store that shares the folder, whichever process cached
   * them. What is in use stays until it is released.
   */
  async purge(keys?: readonly string[]): Promise<void> {
    this.#check(undefined);
    const hashes = keys && new Set(keys.map((key) => this.#hash(key)));
    for (const hash of hashes ?? [""]) this.#flights.spoil(hash);
    await this.#folder.purge(hashes);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await this.#flights.close(`${this.url} was closed during the call.`);
    const handles = [...this.#handles];
    this.#handles.clear();
    await Promise.all(handles.map((handle) => handle.close()));
    await this.#folder.close();
    await super[Symbol.asyncDispose]();
  }

  /** Of what may change, only what is in the store now is right. */
  async #withEtag(object: LocalObject, { signal }: CallOptions): Promise<LocalObject> {
    if (object.etag !== undefined || this.#options.cacheable(object.key)) return object;
    const info = await this.inner.head(object.key, signal && { signal });
    if (info === undefined) throw notFound(object.key);
    return { ...object, etag: info.etag };
  }

  async #cached(key: string, keyHash: string, options: GetOptions): Promise<StoredObject | undefined> {
    for (let round = 0; round < ROUNDS; round++) {
      const known = await this.#known(keyHash);
      const found = known && (await this.#serve(key, known, options));
      if (found !== undefined) {
        if (round === 0) this.#counts.hits++;
        else this.#counts.misses++;
        return found;
      }
      const flights = this.#fetchMissing(key, keyHash, known, options.range);
      if (flights === undefined) return undefined;
      await Promise.all(flights.map((flight) => flight.wait(options.signal)));
      if (flights.some((flight) => flight.useless)) return undefined;
      this.#check(options.signal);
    }
    return undefined;
  }

  /** What is cached of an object. Pieces of two versions are worth nothing: neither is known to be the newer one. */
  async #known(keyHash: string): Promise<Known | undefined> {
    const pieces = this.#folder.pieces(keyHash);
    const [first] = pieces;
    if (first === undefined) return undefined;
    if (pieces.some(({ facts }) => facts.etag !== first.facts.etag)) {
      await Promise.all(pieces.map((piece) => this.#folder.drop(piece)));
      return undefined;
    }
    const blocks = new Map<number, CachePiece>();
    for (const piece of pieces) {
      const { start, bytes, facts } = piece;
      if (start !== undefined && bytes === Math.min(this.#blockBytes, facts.size - start)) blocks.set(start, piece);
    }
    return { facts: first.facts, whole: pieces.find(({ start }) => start === undefined), blocks };
  }

  /** The object from the cache, if all that is needed is there. */
  async #serve(key: string, known: Known, options: GetOptions): Promise<StoredObject | undefined> {
    const { facts, whole } = known;
    const { signal } = options;
    const range = resolveRange(options.range, facts.size);
    if (whole !== undefined && (await this.#folder.check(whole))) {
      try {
        const { body } = await openObject(this.#folder.path(whole), key, options, this.#handles);
        return { key, ...facts, body };
      } catch (error) {
        // Evicted since.
        if (error instanceof NotFoundError) return undefined;
        throw new CacheFileError("open", { cause: error });
      }
    }
    if (range.start === range.end) return { key, ...facts, body: memoryBody(key, new Uint8Array(0), range, signal) };
    for (const start of this.#blocksOf(range)) if (!known.blocks.has(start)) return undefined;
    return { key, ...facts, body: new SingleBody(key, () => this.#read(key, known, range, signal)) };
  }

  /** Starts or joins the fetching of what a read needs; undefined if it is not for the cache. */
  #fetchMissing(
    key: string,
    keyHash: string,
    known: Known | undefined,
    range: GetOptions["range"],
  ): readonly Flight[] | undefined {
    const block = this.#blockBytes;
    const start = (names: readonly string[], work: (flight: Flight) => Promise<void>): Flight =>
      this.#flights.get(names[0]!) ?? this.#flights.start(names, work);
    const blocks = (names: readonly string[], wanted: NonNullable<GetOptions["range"]>): Flight =>
      start(names, (flight) => this.#fetch.blocks(key, keyHash, wanted, flight));

    if (range === undefined || (known !== undefined && known.facts.size <= this.#wholeBytes)) {
      if (known !== undefined && known.facts.size > this.#wholeBytes) return undefined;
      return [start([`${keyHash}/whole`], (flight) => this.#fetch.whole(key, keyHash, this.#wholeBytes, flight))];
    }
    if (known === undefined) {
      // The first answer tells the size. Enough is asked for to hold a whole block wherever the object ends.
      let asked: NonNullable<GetOptions["range"]>;
      if ("suffix" in range) asked = { suffix: range.suffix + block };
      else {
        const first = range.start - (range.start % block);
        asked = { start: first, end: range.end === undefined ? first + block : Math.ceil(range.end / block) * block };
      }
      const bytes = "suffix" in asked ? asked.suffix : asked.end! - asked.start;
      return bytes > this.#wholeBytes + 2 * block
        ? undefined
        : [blocks([`${keyHash}/${JSON.stringify(asked)}`], asked)];
    }
    const needed = resolveRange(range, known.facts.size);
    if (needed.end - needed.start > this.#wholeBytes) return undefined;
    const flights = new Set<Flight>();
    let run: number[] = [];
    const fly = (): void => {
      const [first] = run;
      if (first === undefined) return;
      const end = Math.min(known.facts.size, run.at(-1)! + block);
      const names = run.map((each) => `${keyHash}/${each}`);
      flights.add(blocks(names, { start: first, end }));
      run = [];
    };
    for (const each of this.#blocksOf(needed)) {
      const running = this.#flights.get(`${keyHash}/${each}`);
      if (running !== undefined) flights.add(running);
      if (running !== undefined || known.blocks.has(each)) fly();
      else run.push(each);
    }
    fly();
    return [...flights];
  }

  *#blocksOf(range: ByteRange): Generator<number> {
    const first = range.start - (range.start % this.#blockBytes);
    for (let start = first; start < range.end; start += this.#blockBytes) yield start;
  }

  async *#read(
    key: string,
    known: Known,
    range: ByteRange,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    for (let next = range.start; next < range.end; ) {
      this.#check(signal);
      const piece = known.blocks.get(next - (next % this.#blockBytes))!;
      const start = next - piece.start!;
      const end = Math.min(piece.bytes, range.end - piece.start!);
      const bytes = await this.#folder.read(piece, start, end).catch(() => undefined);
      if (bytes === undefined) {
        yield* this.#rest(key, known.facts.etag, { start: next, end: range.end }, signal);
        return;
      }
      next += bytes.length;
      yield bytes;
    }
  }

  /** What was evicted or found damaged during a read comes from the store. */
  async *#rest(
    key: string,
    etag: string,
    range: ByteRange,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Uint8Array> {
    const object = await this.inner.get(key, signal === undefined ? { range } : { range, signal });
    if (object.etag !== etag) {
      await close(object.body);
      throw changed(key);
    }
    yield* object.body;
  }

  /** @param everywhere also what other processes cached */
  async #outdate(keys: readonly string[], everywhere: boolean): Promise<void> {
    const hashes = new Set(keys.map((key) => this.#hash(key)));
    for (const hash of hashes) this.#flights.spoil(hash);
    const known = [...hashes].flatMap((hash) => [...this.#folder.pieces(hash), ...this.#folder.excerpts(hash)]);
    await Promise.all(known.map((piece) => this.#folder.drop(piece)));
    // Where the cache cannot be looked at, nothing is served from it either.
    if (everywhere && !this.#closed) await this.#folder.purge(hashes).catch(() => undefined);
  }

  #hash(key: string): string {
    return hashKey(this.#namespace, key);
  }

  #check(signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    if (this.#closed) throw new StoreError("store_closed", `${this.url} is closed: open a new store.`);
  }
}
