/**
 * A source that ends with the signal's reason as soon as that is aborted, also while it keeps its reader waiting. The
 * source itself is told to stop, and not waited for: nobody knows whether it ever answers.
 */
export function interruptible<T>(source: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncIterable<T> {
  return signal === undefined ? source : { [Symbol.asyncIterator]: () => new Interruptible(source, signal) };
}

class Interruptible<T> implements AsyncIterator<T> {
  readonly #iterator: AsyncIterator<T>;
  readonly #signal: AbortSignal;
  /** Rejects the `next` that waits. */
  #fail: ((reason: unknown) => void) | undefined;

  constructor(source: AsyncIterable<T>, signal: AbortSignal) {
    this.#iterator = source[Symbol.asyncIterator]();
    this.#signal = signal;
    signal.addEventListener("abort", this.#abort);
  }

  async next(): Promise<IteratorResult<T>> {
    this.#signal.throwIfAborted();
    try {
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        this.#fail = reject;
        this.#iterator.next().then(resolve, reject);
      });
      if (next.done) this.#release();
      return next;
    } catch (error) {
      this.#release();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<T>> {
    this.#release();
    if (!this.#signal.aborted) await this.#iterator.return?.();
    return { done: true, value: undefined };
  }

  readonly #abort = (): void => {
    this.#fail?.(this.#signal.reason);
    void (async () => this.#iterator.return?.())().catch(() => {});
  };

  #release(): void {
    this.#signal.removeEventListener("abort", this.#abort);
  }
}
