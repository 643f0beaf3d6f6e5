/**
 * The log of a shared lake: entry n is the object `_eider/log/<n>`, put if absent. Who has put it has committed; nobody
 * else decides. Numbers are dense and never free again.
 */

import type { Timer } from "@eider/catalog";
import { decodeEntry, encodeStub, entryFacts, isStub, ordinalsBySnapshot, scrubEntry, stubOf } from "@eider/catalog";
import { AlreadyExistsError, CatalogError, StoreError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";
import { findObject } from "../read-object.js";

/** Prefix of the entries. */
export const LOG = "_eider/log/";
/** Longest pause between two tries of one entry, in milliseconds. */
const MAX_PAUSE_MS = 2000;

/** Entries fetched at the same time. */
export const FETCHES = 16;

export interface StubOptions {
  readonly leastBytes: number;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly before: number;
  readonly signal?: AbortSignal | undefined;
}

export interface LogOptions {
  readonly store: ObjectStore;
  readonly timer: Timer;
  /** In [0, 1). */
  readonly jitter: () => number;
  /** Milliseconds for which an entry whose fate is not known is asked for. */
  readonly patienceMs: number;
}

/** Whose entry lies at a number: ours if it was won, and what it is. */
export interface Settled {
  readonly won: boolean;
  readonly bytes: Uint8Array;
}

export class Log {
  readonly #options: LogOptions;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /** The entry's bytes; undefined if there is none yet. */
  async read(n: number): Promise<Uint8Array | undefined> {
    return (await findObject(this.#options.store, logKey(n)))?.bytes;
  }

  /**
   * How many entries come after n, without a gap; at least those that were there when this was called, and no more than
   * `most`.
   */
  async countAfter(n: number, most: number = Number.POSITIVE_INFINITY): Promise<number> {
    let last = n;
    for await (const { key } of this.#options.store.list(LOG, { after: logKey(n) })) {
      // A listing is no picture of one moment: an earlier entry may have come behind its back.
      if (key !== logKey(last + 1)) break;
      if (++last - n >= most) break;
    }
    return last - n;
  }

  /**
   * Overwrites entries up to n by stubs, those of `leastBytes` or more that are older than `before`. Once for each: what is
   * a stub already is left alone.
   */
  async stub(n: number, { leastBytes, before, signal }: StubOptions): Promise<void> {
    const { store } = this.#options;
    let page: string[] = [];
    const overwrite = async (): Promise<void> => {
      signal?.throwIfAborted();
      await Promise.all(page.map((key) => this.#stubOne(key)));
      page = [];
    };
    for await (const { key, size, modifiedAt } of store.list(LOG, signal ? { signal } : {})) {
      if (key > logKey(n)) break;
      if (size < leastBytes || modifiedAt > before) continue;
      page.push(key);
      if (page.length === FETCHES) await overwrite();
    }
    await overwrite();
  }

  /** Overwrites entries by themselves without the texts of these rejects: their ids. */
  async scrub(rejects: readonly string[], signal?: AbortSignal): Promise<void> {
    for (const [n, ordinals] of ordinalsBySnapshot(rejects)) {
      signal?.throwIfAborted();
      while (!(await this.#scrubOne(logKey(n), ordinals)));
    }
  }

  /**
   * The entry stays the one that it was. Of two who scrub it at the same time the second must not bring back what the first
   * has taken out; on a store that cannot replace under a condition, who is interrupted has to call again anyway.
   * @returns false if another has overwritten it meanwhile
   */
  async #scrubOne(key: string, ordinals: ReadonlySet<number>): Promise<boolean> {
    const { store } = this.#options;
    const found = await findObject(store, key);
    const scrubbed = found && !isStub(found.bytes) ? scrubEntry(found.bytes, ordinals) : undefined;
    if (!found || !scrubbed) return true;
    try {
      await store.put(key, scrubbed, store.capabilities.conditionalReplace ? { ifMatch: found.etag } : {});
      return true;
    } catch (error) {
      if (error instanceof StoreError && error.code === "etag_mismatch") return false;
      throw error;
    }
  }

  /** A stub has less than whatever it overwrites, so no condition is needed. */
  async #stubOne(key: string): Promise<void> {
    const bytes = (await findObject(this.#options.store, key))?.bytes;
    if (!bytes || isStub(bytes)) return;
    const stub = encodeStub(stubOf(decodeEntry(bytes)));
    if (stub.length < bytes.length) await this.#options.store.put(key, stub);
  }

  /**
   * Puts an entry at n, and comes back when it is known whose entry is there: with its bytes.
   *
   * Whatever the answer to the put, what lies at n counts. Until something does, the put may still take effect; so it is
   * put again, and nothing else is tried at another number.
   * @throws CatalogError `commit_unknown` when patience is at its end
   * @throws StoreError the store refused the first put, and said that it did not happen
   */
  async settle(n: number, id: string, bytes: Uint8Array): Promise<Settled> {
    const { store, timer, patienceMs } = this.#options;
    const deadline = timer.now() + patienceMs;
    for (let tries = 0; ; tries++) {
      let failure: unknown;
      try {
        await store.put(logKey(n), bytes, { ifAbsent: true, retries: "none" });
        return { won: true, bytes };
      } catch (error) {
        if (tries === 0 && isRefusal(error)) throw error;
        failure = error;
      }
      try {
        const found = await this.read(n);
        if (found) return { won: entryFacts(found).id === id, bytes: found };
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
        failure = error;
      }
      if (timer.now() >= deadline) {
        throw new CatalogError(
          "commit_unknown",
          "the store does not answer, and whether the commit took effect cannot be told: append again with the same batch " +
            "id, which settles it",
          { cause: failure, retryable: true },
        );
      }
      await timer.sleep(pauseMs(tries, this.#options.jitter));
    }
  }
}

/** Grows from some 25 ms, and differs from what others wait. */
function pauseMs(tries: number, jitter: () => number): number {
  return Math.min(50 * 2 ** tries, MAX_PAUSE_MS) * (0.5 + jitter() / 2);
}

/** The store has answered that it did not and will not do it; trying again does not help. */
function isRefusal(error: unknown): boolean {
  if (error instanceof AlreadyExistsError) return false;
  return !(error instanceof StoreError) || (!error.retryable && error.code !== "put_unsettled");
}

/** Keys sort like numbers. */
export function logKey(n: number): string {
  return `${LOG}${String(n).padStart(20, "0")}`;
}
