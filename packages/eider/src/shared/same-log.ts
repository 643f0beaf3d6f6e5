/**
 * Whether the store still has the log that this host's index is of. A store that is set back to a backup under a running
 * process has free numbers again, and one behind a gap would be this process's next: nobody else would ever come there.
 * A lone commit has no request to spare for that, so it is looked at beside what goes on, now and then.
 */

import type { SqliteCatalog, Timer } from "@eider/catalog";
import { CatalogError } from "@eider/core";
import type { Log } from "./log.js";

export interface SameLogOptions {
  readonly log: Log;
  readonly index: SqliteCatalog;
  readonly timer: Timer;
  /** Milliseconds between two looks. */
  readonly everyMs: number;
}

export class SameLog {
  readonly #options: SameLogOptions;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** The entry before the first that this process has put since the last look; behind a gap, it is gone. */
  #before: number | undefined;
  #replaced: unknown;

  constructor(options: SameLogOptions) {
    this.#options = options;
  }

  /** This process has put an entry. */
  put(n: number): void {
    this.#before ??= n - 1;
  }

  /** @throws CatalogError `log_replaced` if it was found out before: nothing may be committed any more */
  assertFound(): void {
    if (this.#replaced) throw this.#replaced;
  }

  /** Looks, if the last time is long ago. @throws CatalogError `log_replaced` */
  async assertNowAndThen(): Promise<void> {
    const { timer, everyMs } = this.#options;
    if (timer.now() - this.#lookedAt >= everyMs) await this.assert();
  }

  /** Looks. @throws CatalogError `log_replaced` */
  async assert(): Promise<void> {
    this.assertFound();
    const { index, log, timer } = this.#options;
    const now = timer.now();
    const n = this.#before ?? (await index.head()).snapshot;
    this.#before = undefined;
    try {
      await this.#assertEntry(n, log, index);
    } catch (error) {
      if (error instanceof CatalogError && error.code === "log_replaced") this.#replaced = error;
      else this.#before ??= n;
      throw error;
    }
    this.#lookedAt = now;
  }

  async #assertEntry(n: number, log: Log, index: SqliteCatalog): Promise<void> {
    if (n === 0) return;
    const bytes = await log.read(n);
    if (!bytes) throw logGone();
    await index.applyEntry(bytes);
  }
}

/** The store lacks what the index has. */
export function logGone(): CatalogError {
  return new CatalogError(
    "log_replaced",
    "the store's log lacks entries that this host has applied: it was replaced or restored. " +
      "Delete this host's index to go on with what the store has now",
  );
}
