/**
 * Where every decision of a schedule comes from: what runs next, what goes wrong, what is asked for. A schedule is a pure
 * function of the decisions, so that it can be repeated, enumerated and made smaller.
 */

/**
 * `switch`: another process goes on than the one that could. `turn`: which one goes on when the last cannot. `fault`:
 * something goes wrong. `work`: what the processes are asked to do.
 */
export type ChoiceKind = "switch" | "turn" | "fault" | "work";

export interface Choices {
  /** A number from 0 to n − 1; 0 is the plainest. */
  pick(kind: ChoiceKind, n: number): number;
  /** 0, or once in about `oneIn` times a number from 1 to n. */
  rarely(kind: ChoiceKind, oneIn: number, n: number): number;
  /** What was decided so far. */
  readonly trail: readonly number[];
}

/** Mulberry32: small, fast, and the same everywhere. Numbers in [0, 1). */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 0x100000000;
  };
}

export class RandomChoices implements Choices {
  readonly trail: number[] = [];
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = generator(seed);
  }

  pick(_kind: ChoiceKind, n: number): number {
    if (n <= 1) return 0;
    const value = Math.floor(this.#next() * n);
    this.trail.push(value);
    return value;
  }

  rarely(_kind: ChoiceKind, oneIn: number, n: number): number {
    const value = this.#next() * oneIn < 1 ? 1 + Math.floor(this.#next() * n) : 0;
    this.trail.push(value);
    return value;
  }
}

/** The decisions of an earlier schedule, then the plainest ones. What does not fit any more becomes the nearest that does. */
export class GivenChoices implements Choices {
  readonly trail: number[] = [];
  readonly #given: readonly number[];

  constructor(given: readonly number[]) {
    this.#given = given;
  }

  pick(_kind: ChoiceKind, n: number): number {
    if (n <= 1) return 0;
    const value = Math.min(this.#given[this.trail.length] ?? 0, n - 1);
    this.trail.push(value);
    return value;
  }

  rarely(kind: ChoiceKind, _oneIn: number, n: number): number {
    return this.pick(kind, n + 1);
  }
}

/** How far an enumeration goes from the plain schedule; it takes every turn, and the plainest work. */
export interface Bounds {
  readonly switches: number;
  readonly faults: number;
}

/** One schedule of an enumeration: beyond its bounds everything is plain. */
class BoundedChoices implements Choices {
  readonly trail: number[] = [];
  readonly sizes: number[] = [];
  readonly #prefix: readonly number[];
  readonly #left: Record<ChoiceKind, number>;

  constructor(prefix: readonly number[], bounds: Bounds) {
    this.#prefix = prefix;
    this.#left = { switch: bounds.switches, fault: bounds.faults, turn: Number.POSITIVE_INFINITY, work: 0 };
  }

  pick(kind: ChoiceKind, n: number): number {
    if (n <= 1 || this.#left[kind] === 0) return 0;
    const value = this.#prefix[this.trail.length] ?? 0;
    this.trail.push(value);
    this.sizes.push(n);
    if (value > 0) this.#left[kind]--;
    return value;
  }

  rarely(kind: ChoiceKind, _oneIn: number, n: number): number {
    return this.pick(kind, n + 1);
  }
}

/** Every schedule within the bounds, each once: `run` is called with its decisions until there are no more. */
export async function enumerate(bounds: Bounds, run: (choices: Choices) => Promise<boolean>): Promise<number> {
  let prefix: number[] = [];
  for (let count = 1; ; count++) {
    const choices = new BoundedChoices(prefix, bounds);
    if (!(await run(choices))) return count;
    const { trail, sizes } = choices;
    let last = trail.length - 1;
    while (last >= 0 && trail[last]! + 1 >= sizes[last]!) last--;
    if (last < 0) return count;
    prefix = [...trail.slice(0, last), trail[last]! + 1];
  }
}

/**
 * A smaller list of decisions for which `fails` still holds: pieces are left out, then numbers made smaller, as long as
 * that helps and `tries` last.
 */
export async function shrink(
  trail: readonly number[],
  fails: (trail: readonly number[]) => Promise<boolean>,
  tries: number,
): Promise<readonly number[]> {
  let best = [...trail];
  let left = tries;
  const better = async (candidate: number[]): Promise<boolean> => {
    if (left-- <= 0 || !(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let improved = true; improved && left > 0; ) {
    improved = false;
    for (let size = best.length; size >= 1 && left > 0; size = Math.floor(size / 2)) {
      for (let start = best.length - size; start >= 0 && left > 0; start -= size) {
        if (await better([...best.slice(0, start), ...best.slice(start + size)])) improved = true;
        else if (best.slice(start, start + size).some((value) => value > 0)) {
          if (await better(best.map((value, i) => (i >= start && i < start + size ? 0 : value)))) improved = true;
        }
      }
    }
  }
  return trimmed(best);
}

/** Decisions beyond those given are the plainest anyway. */
export function trimmed(trail: readonly number[]): readonly number[] {
  return trail.slice(0, trail.findLastIndex((value) => value > 0) + 1);
}
