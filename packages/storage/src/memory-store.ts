import { AlreadyExistsError, NotFoundError, StoreError } from "@eider/core";
import { memoryBody, readBody, resolveRange } from "./body.js";
import { assertOneCondition, etagMismatch } from "./conditions.js";
import { assertSafeKey, compareKeys } from "./keys.js";
import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoreCapabilities,
  StoredObject,
} from "./store.js";

/** Parts that a test may replace. */
export interface MemoryStoreOptions {
  /** Milliseconds since the epoch. Default: `Date.now`. */
  readonly clock?: () => number;
}

interface MemoryObject {
  readonly info: ObjectInfo;
  readonly bytes: Uint8Array;
}

/** A store in this process's memory. It is gone with the object. */
export class MemoryStore implements ObjectStore {
  readonly url = "memory:";
  readonly capabilities: StoreCapabilities = {
    conditionalPut: true,
    conditionalReplace: true,
    maxObjectBytes: Number.POSITIVE_INFINITY,
    maxConditionalBytes: Number.POSITIVE_INFINITY,
  };
  readonly #objects = new Map<string, MemoryObject>();
  readonly #clock: () => number;
  /** All keys in order; made by the first listing after a key came or went, and never changed in place. */
  #sorted: readonly string[] | undefined;
  #writes = 0;
  #closed = false;

  constructor(options: MemoryStoreOptions = {}) {
    this.#clock = options.clock ?? Date.now;
  }

  async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    this.#check(key, options.signal);
    assertOneCondition(options);
    const bytes = await readBody(body, options);
    // From here to the end nothing awaits: that makes it atomic.
    this.#assertOpen();
    const { ifMatch } = options;
    if (ifMatch !== undefined && this.#objects.get(key)?.info.etag !== ifMatch) throw etagMismatch(key);
    if (!this.#objects.has(key)) this.#sorted = undefined;
    else if (options.ifAbsent) {
      throw new AlreadyExistsError("object_exists", `${key} exists in ${this.url} and stays as it is.`, {
        subject: key,
      });
    }
    const etag = `m${++this.#writes}`;
    const info: ObjectInfo = { key, size: bytes.length, etag, modifiedAt: this.#clock() };
    this.#objects.set(key, { info, bytes });
    return info;
  }

  async get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    this.#check(key, options.signal);
    const object = this.#objects.get(key);
    if (object === undefined) {
      throw new NotFoundError("object_not_found", `There is no object ${key} in ${this.url}.`, { subject: key });
    }
    const range = resolveRange(options.range, object.bytes.length);
    return { ...object.info, body: memoryBody(key, object.bytes, range, options.signal) };
  }

  async head(key: string, options: CallOptions = {}): Promise<ObjectInfo | undefined> {
    this.#check(key, options.signal);
    return this.#objects.get(key)?.info;
  }

  async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    this.#assertOpen();
    this.#sorted ??= [...this.#objects.keys()].sort(compareKeys);
    const keys = this.#sorted;
    const { after, signal } = options;
    for (let i = firstIndex(keys, prefix, after); i < keys.length && keys[i]!.startsWith(prefix); i++) {
      signal?.throwIfAborted();
      const object = this.#objects.get(keys[i]!);
      if (object !== undefined) yield object.info;
    }
    signal?.throwIfAborted();
  }

  async delete(keys: string | readonly string[], options: CallOptions = {}): Promise<void> {
    const all = typeof keys === "string" ? [keys] : keys;
    options.signal?.throwIfAborted();
    this.#assertOpen();
    for (const key of all) assertSafeKey(key);
    for (const key of all) if (this.#objects.delete(key)) this.#sorted = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    this.#objects.clear();
    this.#sorted = undefined;
  }

  #check(key: string, signal: AbortSignal | undefined): void {
    signal?.throwIfAborted();
    this.#assertOpen();
    assertSafeKey(key);
  }

  #assertOpen(): void {
    if (this.#closed) throw new StoreError("store_closed", `${this.url} is closed: open a new store.`);
  }
}

/** The first of the sorted keys that is ≥ `prefix` and > `after`. */
function firstIndex(keys: readonly string[], prefix: string, after: string | undefined): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const key = keys[middle]!;
    const before = compareKeys(key, prefix) < 0 || (after !== undefined && compareKeys(key, after) <= 0);
    if (before) low = middle + 1;
    else high = middle;
  }
  return low;
}
