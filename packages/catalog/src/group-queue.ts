/**
 * Commits that come at the same time are made together, in the order in which they came: one fsync, or one request, for
 * all of them. Whoever comes while a group is under way is in the next one.
 */

/**
 * What becomes of a member of a group. `failure` is its own and leaves the others alone; `again`: the answer hung on
 * others that are not committed, so it is asked once more, in the next group.
 */
export type Outcome<R> = { readonly answer: R } | { readonly failure: unknown } | "again";

export interface GroupOptions<M, R> {
  /** Lets what is about to come, come: see `Timer.turn`. */
  readonly turn: () => Promise<void>;
  /** Most members of one group. */
  readonly limit: number;
  /** Whether a member may be in a group with others. Default: all may. */
  readonly joins?: (member: M) => boolean;
  /** Tells the outcome of each member; if it throws, that is the outcome of all. */
  readonly commit: (members: readonly M[]) => Promise<readonly Outcome<R>[]>;
}

interface Waiting<M, R> {
  readonly member: M;
  readonly resolve: (answer: R) => void;
  readonly reject: (reason: unknown) => void;
}

export class GroupQueue<M, R> {
  readonly #options: GroupOptions<M, R>;
  #waiting: Waiting<M, R>[] = [];
  /** Ends when nobody waits any more. */
  #running: Promise<void> | undefined;

  constructor(options: GroupOptions<M, R>) {
    this.#options = options;
  }

  join(member: M): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ member, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Resolves once everybody who has joined is answered. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      await this.#options.turn();
      const group = this.#waiting.splice(0, this.#size());
      const again = await this.#commit(group);
      this.#waiting.unshift(...again);
    }
    this.#running = undefined;
  }

  /** How many of those who wait are the next group. */
  #size(): number {
    const { limit, joins } = this.#options;
    if (!joins) return limit;
    const alone = this.#waiting.findIndex(({ member }) => !joins(member));
    return alone < 0 ? limit : Math.min(limit, Math.max(alone, 1));
  }

  /** Answers the members of a group; those who have to be asked again come back. */
  async #commit(group: readonly Waiting<M, R>[]): Promise<Waiting<M, R>[]> {
    let outcomes: readonly Outcome<R>[];
    try {
      outcomes = await this.#options.commit(group.map(({ member }) => member));
    } catch (error) {
      for (const { reject } of group) reject(error);
      return [];
    }
    return group.filter(({ resolve, reject }, i) => {
      const outcome = outcomes[i]!;
      if (outcome === "again") return true;
      if ("answer" in outcome) resolve(outcome.answer);
      else reject(outcome.failure);
      return false;
    });
  }
}
