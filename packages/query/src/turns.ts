/** Milliseconds of work after which other work of the process gets its turn. */
const TURN_MS = 10;

/** The turns of work that could go on without ever waiting: timers and other requests would wait to its end. */
export class Turns {
  #since = performance.now();

  /** Whether this turn has lasted long enough. */
  get isOver(): boolean {
    return performance.now() - this.#since >= TURN_MS;
  }

  /** Lets others have theirs. */
  async next(): Promise<void> {
    await new Promise(setImmediate);
    this.#since = performance.now();
  }
}
