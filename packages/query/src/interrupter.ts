/** Stops what DuckDB is doing when a signal aborts, time is up or the engine closes. */

import { LimitError } from "@eider/core";
import type { Native, NativeConnection } from "./native.js";

/** Milliseconds. An interrupt that falls between two native calls has no effect, so it is repeated. */
const REPEAT_MS = 5;

/** Timers above this fire at once; 24 days are as good as no limit. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export class Interrupter implements Disposable {
  readonly #native: Native;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #abort: () => void;
  readonly #controller = new AbortController();
  #stopped: { readonly reason: unknown } | undefined;
  #running: NativeConnection | undefined;
  #idle: Promise<void> = Promise.resolve();

  constructor(native: Native, options: { readonly signal?: AbortSignal; readonly timeoutMs?: number }) {
    this.#native = native;
    this.#signal = options.signal;
    this.#abort = () => this.stop(this.#signal?.reason);
    if (this.#signal?.aborted) this.#abort();
    this.#signal?.addEventListener("abort", this.#abort, { once: true });
    const { timeoutMs } = options;
    if (timeoutMs !== undefined && timeoutMs <= MAX_TIMER_MS) {
      const timeout = new LimitError("timeout", `the query took longer than its limit of ${timeoutMs} ms`);
      this.#timer = setTimeout(() => this.stop(timeout), timeoutMs);
      // A stream that nobody reads any more keeps no process alive; a running native call does by itself.
      this.#timer.unref();
    }
  }

  /** Why it was stopped, if it was. */
  get stopped(): { readonly reason: unknown } | undefined {
    return this.#stopped;
  }

  /** Aborts when it is stopped, for what DuckDB has no part in. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  stop(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#controller.abort(reason);
    if (this.#running) this.#native.interrupt(this.#running);
  }

  throwIfStopped(): void {
    if (this.#stopped) throw this.#stopped.reason;
  }

  /** Runs one native call of a connection. Throws the reason if it was stopped before, during or just after. */
  async call<T>(connection: NativeConnection, work: () => Promise<T>): Promise<T> {
    this.throwIfStopped();
    this.#running = connection;
    const repeat = setInterval(() => {
      if (this.#stopped) this.#native.interrupt(connection);
    }, REPEAT_MS);
    try {
      const running = work();
      this.#idle = running.then(
        () => undefined,
        () => undefined,
      );
      return await running;
    } finally {
      clearInterval(repeat);
      this.#running = undefined;
      this.throwIfStopped();
    }
  }

  /** Resolves when no native call runs. */
  idle(): Promise<void> {
    return this.#idle;
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#abort);
  }
}
