/** Hands pieces from a writer to one reader, one at a time: the writer waits until the reader has taken the piece. */
export class Pipe<T> implements AsyncIterable<T> {
  #piece: { readonly value: T } | undefined;
  #ended = false;
  #failure: { readonly error: unknown } | undefined;
  #wakeReader: (() => void) | undefined;
  #wakeWriter: (() => void) | undefined;

  /** @throws what {@link fail} was given */
  async push(value: T): Promise<void> {
    this.#piece = { value };
    this.#wakeReader?.();
    while (this.#piece !== undefined && !this.#failure) await new Promise<void>((wake) => (this.#wakeWriter = wake));
    if (this.#failure) throw this.#failure.error;
  }

  end(): void {
    this.#ended = true;
    this.#wakeReader?.();
  }

  /** Ends both sides with an error; the first one counts. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wakeWriter?.();
    this.#wakeReader?.();
  }

  async *[Symbol.asyncIterator](): AsyncIterator<T> {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      if (this.#piece !== undefined) {
        const { value } = this.#piece;
        this.#piece = undefined;
        this.#wakeWriter?.();
        yield value;
      } else if (this.#ended) return;
      else await new Promise<void>((wake) => (this.#wakeReader = wake));
    }
  }
}
