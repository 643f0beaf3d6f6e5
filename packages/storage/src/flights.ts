import { StoreError } from "@eider/core";

/** Lets so many run at once; the others wait in order. */
export class Gate {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(width: number) {
    this.#free = width;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free++;
      else next();
    }
  }
}

/** One piece of work that several callers wait for. It is aborted when all of them have left. */
export class Flight {
  readonly #abort = new AbortController();
  readonly #names: readonly string[];
  readonly #landed: () => void;
  #done: Promise<void> = Promise.resolve();
  #waiting = 0;
  #ended = false;
  /** What it brings is out of date: it may be given to nobody who comes later. */
  spoiled = false;
  /** It could not do its work and changed nothing: there was no room, or the object is too large. */
  useless = false;

  constructor(names: readonly string[], landed: () => void) {
    this.#names = names;
    this.#landed = landed;
  }

  get names(): readonly string[] {
    return this.#names;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  start(work: (flight: Flight) => Promise<void>): void {
    this.#done = work(this).finally(() => {
      this.#ended = true;
      this.#landed();
    });
    // Whoever waits hears of it; if everybody left, nobody has to.
    this.#done.catch(() => undefined);
  }

  /** Until it has landed, or the caller's own signal aborts. */
  async wait(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    this.#waiting++;
    let onAbort: (() => void) | undefined;
    try {
      const left = new Promise<never>((_, reject) => {
        onAbort = () => reject(signal?.reason);
        signal?.addEventListener("abort", onAbort, { once: true });
      });
      await Promise.race([this.#done, left]);
    } finally {
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      if (--this.#waiting === 0) this.abort(signal?.reason);
    }
  }

  /** Does nothing after it has landed. */
  abort(reason: unknown): void {
    if (this.#ended) return;
    this.#landed();
    this.#abort.abort(reason);
  }

  async settled(): Promise<void> {
    await this.#done.catch(() => undefined);
  }
}

/** The work that is going on, by name. */
export class Flights {
  readonly #byName = new Map<string, Flight>();
  readonly #all = new Set<Flight>();

  get(name: string): Flight | undefined {
    return this.#byName.get(name);
  }

  /** Starts work that is found under these names until it has landed. */
  start(names: readonly string[], work: (flight: Flight) => Promise<void>): Flight {
    const flight = new Flight(names, () => this.#forget(flight));
    for (const name of names) this.#byName.set(name, flight);
    this.#all.add(flight);
    flight.start(async () => {
      try {
        await work(flight);
      } finally {
        this.#all.delete(flight);
      }
    });
    return flight;
  }

  /** What is under way for names that begin like this brings nothing for later callers. */
  spoil(prefix: string): void {
    for (const flight of this.#all) {
      if (!flight.names.some((name) => name.startsWith(prefix))) continue;
      flight.spoiled = true;
      this.#forget(flight);
    }
  }

  /** Aborts all and waits until each has cleaned up. */
  async close(message: string): Promise<void> {
    const all = [...this.#all];
    for (const flight of all) flight.abort(new StoreError("store_closed", message));
    await Promise.all(all.map((flight) => flight.settled()));
  }

  #forget(flight: Flight): void {
    for (const name of flight.names) if (this.#byName.get(name) === flight) this.#byName.delete(name);
  }
}
