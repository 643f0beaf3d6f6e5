/**
 * The log of a shared lake: entry n is the object `_eider/log/<n>`, put if absent. Who has put it has committed; nobody
 * else decides. Numbers are dense and never free again.
 */

import type { Timer } from "@eider/catalog";
import { decodeEntry } from "@eider/catalog";
import { AlreadyExistsError, CatalogError, NotFoundError, StoreError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";

const LOG = "_eider/log/";
/** Longest pause between two tries of one entry, in milliseconds. */
const MAX_PAUSE_MS = 2000;

export interface LogOptions {
  readonly store: ObjectStore;
  readonly timer: Timer;
  /** In [0, 1). */
  readonly jitter: () => number;
  /** Milliseconds for which an entry whose fate is not known is asked for. */
  readonly patienceMs: number;
}

export class Log {
  readonly #options: LogOptions;

  constructor(options: LogOptions) {
    this.#options = options;
  }

  /** The entry's bytes; undefined if there is none yet. */
  async read(n: number): Promise<Uint8Array | undefined> {
    const chunks: Uint8Array[] = [];
    try {
      for await (const chunk of (await this.#options.store.get(logKey(n))).body) chunks.push(chunk);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
    return Buffer.concat(chunks);
  }

  /** How many entries come after n, without a gap; at least those that were there when this was called. */
  async countAfter(n: number): Promise<number> {
    let last = n;
    for await (const { key } of this.#options.store.list(LOG, { after: logKey(n) })) {
      // A listing is no picture of one moment: an earlier entry may have come behind its back.
      if (key !== logKey(last + 1)) break;
      last++;
    }
    return last - n;
  }

  /**
   * Puts an entry at n, and comes back when it is known whose entry is there: with its bytes.
   *
   * Whatever the answer to the put, what lies at n counts. Until something does, the put may still take effect; so it is
   * put again, and nothing else is tried at another number.
   * @throws CatalogError `commit_unknown` when patience is at its end
   * @throws StoreError the store refused the first put, and said that it did not happen
   */
  async settle(
    n: number,
    id: string,
    bytes: Uint8Array,
  ): Promise<{ readonly won: boolean; readonly bytes: Uint8Array }> {
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
        if (found) return { won: decodeEntry(found).id === id, bytes: found };
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
function logKey(n: number): string {
  return `${LOG}${String(n).padStart(20, "0")}`;
}
