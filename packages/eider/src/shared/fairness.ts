/**
 * Between hosts that commit to one lake: whoever keeps losing says so in the store, and whoever keeps winning looks there now
 * and then and leaves a gap. It only makes waits shorter: who may commit is decided by the log alone.
 */

import type { Timer } from "@eider/catalog";
import type { ObjectStore } from "@eider/storage";
import type { Logger } from "../options.js";

const HOSTS = "_eider/hosts/";
/** A host that commits without a pause looks this often for others that wait. */
const RUN_MS = 2000;
/** The pause that it makes for them: longer than the longest of theirs, so that one of their tries falls into it. */
const GAP_MS = 200;
/** Longest pause of a commit that lost to others. */
const MAX_PAUSE_MS = 100;
/** Losses in a row after which a host says that it waits. */
const PATIENT_LOSSES = 3;
/** Whoever has said so less than this ago still waits, as far as others know. */
const WAITING_MS = 30_000;

export interface FairnessOptions {
  readonly store: ObjectStore;
  readonly timer: Timer;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly now: () => number;
  /** In [0, 1). */
  readonly jitter: () => number;
  /** Of this host's index. */
  readonly host: string;
  readonly logger?: Logger | undefined;
}

export class Fairness {
  readonly #options: FairnessOptions;
  /** By the timer: when the commits without a pause between them began, and when the last one ended. */
  #runSince = Number.NEGATIVE_INFINITY;
  #lastEnd = Number.NEGATIVE_INFINITY;
  #saidSo = Number.NEGATIVE_INFINITY;

  constructor(options: FairnessOptions) {
    this.#options = options;
  }

  /** Before a commit: lets others go first, if they have waited for long enough. */
  async enter(): Promise<void> {
    const { timer } = this.#options;
    if (timer.now() - this.#lastEnd >= GAP_MS) this.#runSince = timer.now();
    if (timer.now() - this.#runSince < RUN_MS) return;
    if (await this.#othersWait()) await timer.sleep(GAP_MS);
    this.#runSince = timer.now();
  }

  /** After a commit that won. */
  won(): void {
    this.#lastEnd = this.#options.timer.now();
  }

  /** After a commit that lost to another host, for the `losses`th time in a row. */
  async lost(losses: number): Promise<void> {
    const { timer, jitter } = this.#options;
    // Against one other writer the next number is most likely free; against more of them it is not.
    if (losses < 2) return;
    if (losses >= PATIENT_LOSSES && timer.now() - this.#saidSo >= WAITING_MS / 2) await this.#sayThatWeWait();
    await timer.sleep(Math.min(5 * 2 ** losses, MAX_PAUSE_MS) * jitter());
  }

  async #othersWait(): Promise<boolean> {
    const { store, now, host } = this.#options;
    try {
      for await (const { key, modifiedAt } of store.list(HOSTS)) {
        if (key !== HOSTS + host && now() - modifiedAt < WAITING_MS) return true;
      }
    } catch (error) {
      this.#warn(error);
    }
    return false;
  }

  async #sayThatWeWait(): Promise<void> {
    const { store, timer, host, now } = this.#options;
    this.#saidSo = timer.now();
    try {
      await store.put(HOSTS + host, Buffer.from(`${JSON.stringify({ waiting: now() })}\n`));
    } catch (error) {
      this.#warn(error);
    }
  }

  #warn(error: unknown): void {
    this.#options.logger?.warn?.("the hosts of the lake cannot be asked to let each other commit", { error });
  }
}
