/** Maintenance in the background, after appends of this process: it folds what is due, and nobody waits for it. */

import type { Timer } from "@eider/catalog";
import type { Logger } from "./options.js";

/** A look whether something is due costs a listing of the tables: so many appends, or milliseconds, share one. */
const LOOK_APPENDS = 256;
const LOOK_MS = 10_000;

export interface AutoMaintenanceOptions {
  readonly timer: Timer;
  readonly logger: Logger;
  /** Does what is due. */
  readonly work: (signal: AbortSignal) => Promise<unknown>;
}

export class AutoMaintenance implements AsyncDisposable {
  readonly #options: AutoMaintenanceOptions;
  readonly #abort = new AbortController();
  #appends = 0;
  #looked: number;
  #running: Promise<void> | undefined;

  constructor(options: AutoMaintenanceOptions) {
    this.#options = options;
    this.#looked = options.timer.now();
  }

  /** Something was appended. Never waits, never fails. */
  appended(): void {
    this.#appends++;
    const now = this.#options.timer.now();
    if (this.#running || this.#abort.signal.aborted) return;
    if (this.#appends < LOOK_APPENDS && now - this.#looked < LOOK_MS) return;
    this.#appends = 0;
    this.#looked = now;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Gives up what is under way, and waits until it has ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#abort.abort(new Error("the lake is being closed"));
    await this.#running;
  }

  async #run(): Promise<void> {
    const { work, logger } = this.#options;
    const { signal } = this.#abort;
    try {
      await work(signal);
    } catch (error) {
      if (!signal.aborted) logger.warn?.("maintenance in the background failed, and is tried again later", { error });
    }
  }
}
