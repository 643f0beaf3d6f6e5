import { setTimeout as wait } from "node:timers/promises";
import { InvalidInputError, StoreError } from "@eider/core";

/** Time as retries see it; a test may replace it and wait for nothing. */
export interface RetryClock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Ends after that time; an abort ends it at once with the signal's reason. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** A try that failed and is followed by another. */
export interface RetryNotice {
  readonly error: StoreError;
  /** The one that failed; the first is 1. */
  readonly attempt: number;
  /** Milliseconds until the next. */
  readonly delayMs: number;
}

/** How often and after what waits a call is tried again. */
export interface RetryOptions {
  /** Tries in all, the first one too. Default 5; 1 never tries again. */
  readonly attempts?: number;
  /** The wait after the first try, in milliseconds; it doubles with each. Default 100. */
  readonly baseMs?: number;
  /** No wait is longer than this, in milliseconds. Default 20,000. */
  readonly maxMs?: number;
  readonly clock?: RetryClock;
  /** In [0, 1). Default `Math.random`. */
  readonly random?: () => number;
  /** Told before each wait. What it throws ends the tries. */
  readonly onRetry?: (notice: RetryNotice) => void;
}

export const realClock: RetryClock = {
  now: Date.now,
  async sleep(milliseconds, signal) {
    try {
      await wait(milliseconds, undefined, signal === undefined ? {} : { signal });
    } catch (error) {
      // Node wraps the reason into its own AbortError.
      signal?.throwIfAborted();
      throw error;
    }
  },
};

/** @throws InvalidInputError (`bad_option`) that names the option: with NaN, say, tries would have no end */
export function assertRetryOptions({ attempts = 1, baseMs = 0, maxMs = 0 }: RetryOptions): void {
  if (!Number.isSafeInteger(attempts) || attempts < 1) {
    throw badOption("attempts", `is a whole number from 1, the first try included, not ${String(attempts)}`);
  }
  // Beyond 2^31 - 1 a timer ends at once.
  for (const [name, value] of Object.entries({ baseMs, maxMs })) {
    if (typeof value !== "number" || !(value >= 0 && value < 2 ** 31)) {
      throw badOption(name, `is a number of milliseconds from 0 to 2147483647, not ${String(value)}`);
    }
  }
}

function badOption(name: string, rule: string): InvalidInputError {
  return new InvalidInputError("bad_option", `The option ${name} of retries ${rule}.`, { subject: name });
}

/** Whether the same call may succeed later, by the error's own word. */
export function isRetryable(error: unknown): error is StoreError {
  return error instanceof StoreError && error.retryable;
}

/**
 * The waits of one call. A wait is at random in the upper half of its bound, which doubles: waits grow, and callers that
 * failed together do not come back together. Where the store said when to come back, that is the least wait; if it is
 * longer than `maxMs`, the error goes to the caller, who may have better things to do.
 */
export class Backoff {
  readonly #options: RetryOptions;
  #failed = 0;

  constructor(options: RetryOptions = {}) {
    this.#options = options;
  }

  /** There was progress: the next failure counts as the first one again. */
  reset(): void {
    this.#failed = 0;
  }

  /**
   * Waits before another try.
   * @param again that another try is safe, where the error does not say so itself
   * @throws `error` itself when it is not retryable, it was the last try, or the store wants a longer wait than `maxMs`;
   * the signal's reason when it aborts
   */
  async wait(error: unknown, signal?: AbortSignal, again: boolean = isRetryable(error)): Promise<void> {
    signal?.throwIfAborted();
    const { attempts = 5, baseMs = 100, maxMs = 20_000, clock = realClock, random = Math.random } = this.#options;
    const attempt = ++this.#failed;
    if (!(error instanceof StoreError) || !again || attempt >= attempts) throw error;
    const asked = error.retryAfterMs ?? 0;
    if (asked > maxMs) throw error;
    const bound = Math.min(maxMs, baseMs * 2 ** (attempt - 1));
    const jittered = (bound / 2) * (1 + random());
    // Jitter comes on top of what was asked for: everybody was told the same.
    const delayMs = asked === 0 ? jittered : Math.min(maxMs, asked + jittered);
    this.#options.onRetry?.({ error, attempt, delayMs });
    await clock.sleep(delayMs, signal);
    signal?.throwIfAborted();
  }
}

/** Runs `attempt` until it succeeds or `Backoff.wait` gives up. */
export async function retrying<T>(
  attempt: () => Promise<T>,
  options: RetryOptions = {},
  signal?: AbortSignal,
): Promise<T> {
  const backoff = new Backoff(options);
  while (true) {
    try {
      return await attempt();
    } catch (error) {
      await backoff.wait(error, signal);
    }
  }
}
