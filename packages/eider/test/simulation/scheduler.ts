/**
 * Decides what runs next. Simulated processes stop at every call of a store and of SQLite and at every wait; between two
 * stops they run to the next in one go. Nothing else of Node.js decides an order: timers are steps too, and promises
 * settle in the order of their making.
 */

import type { Choices } from "./choices.js";

/** Steps after which a schedule counts as one that never ends. */
const MAX_STEPS = 20_000;
/** Real milliseconds that it waits for something else of Node.js. */
const MAX_IDLE_MS = 10_000;
/** Simulated milliseconds that a step takes. */
const STEP_MS = 5;

/** Whatever stops and goes on as one: a process. */
export interface Actor {
  readonly name: string;
  /** False once it is killed: what it waits for never comes. */
  alive: boolean;
  /** Has nothing to do any more. */
  finished: boolean;
}

interface Step {
  readonly actor: Actor;
  readonly label: string;
  /** Simulated time before which it would not be over by itself. */
  readonly wake: number;
  readonly resume: () => void;
}

/** An effect that was asked for and may come at any time, whatever has become of who asked. */
interface LateEffect {
  readonly label: string;
  readonly apply: () => void;
}

export class Scheduler {
  readonly choices: Choices;
  /** What happened, a line each, if it is wanted. */
  readonly trace: string[] | undefined;
  /** One in so many stops lets another process go on; the others, as long as they can, the one that ran last. */
  readonly #switchOneIn: number;
  readonly #actors: Actor[] = [];
  #steps: Step[] = [];
  #late: LateEffect[] = [];
  #last: Actor | undefined;
  #count = 0;
  #now = 0;

  constructor(choices: Choices, options: { readonly switchOneIn: number; readonly trace: boolean }) {
    this.choices = choices;
    this.#switchOneIn = options.switchOneIn;
    this.trace = options.trace ? [] : undefined;
  }

  /** Simulated milliseconds since the beginning. */
  get now(): number {
    return this.#now;
  }

  /** Counts what has run, so that any two moments have an order. */
  get moment(): number {
    return this.#count;
  }

  note(text: string): void {
    this.trace?.push(`${this.#count} ${text}`);
  }

  add(actor: Actor): void {
    this.#actors.push(actor);
  }

  /** Stops the caller until it is its turn. For a dead one that is never. */
  stop(actor: Actor, label: string, waitMs = 0): Promise<void> {
    return new Promise((resume) => {
      if (actor.alive) this.#steps.push({ actor, label, wake: this.#now + waitMs, resume });
    });
  }

  /** Lets an effect come at some later moment, or never. */
  defer(label: string, apply: () => void): void {
    this.#late.push({ label, apply });
  }

  /** Ends an actor where it stands. */
  kill(actor: Actor): void {
    actor.alive = false;
    this.#steps = this.#steps.filter((step) => step.actor !== actor);
  }

  /** Runs until the work is done. @throws Error if nothing can go on, or it never ends */
  async run<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const over = (): void => {
      done = true;
    };
    work.then(over, over);
    for (let idle = 0; ; ) {
      // Every promise that can settle without a step does so before this comes back; what waits for something else of
      // Node.js, such as reading, which makes way for timers now and then, needs a turn of its loop.
      await new Promise<void>(idle === 0 ? process.nextTick : setImmediate);
      if (done) return work;
      if (!this.#allStopped()) {
        if (idle === 0) idle = performance.now();
        if (performance.now() > idle + MAX_IDLE_MS)
          throw new Error("the schedule is stuck: somebody waits for what is no step");
        continue;
      }
      idle = 0;
      const step = this.#choose();
      if (++this.#count > MAX_STEPS) throw new Error(`the schedule does not end within ${MAX_STEPS} steps`);
      this.#now = Math.max(this.#now + STEP_MS, "wake" in step ? step.wake : 0);
      if ("apply" in step) {
        this.note(`late: ${step.label}`);
        step.apply();
        continue;
      }
      this.#last = step.actor;
      this.note(`${step.actor.name}: ${step.label}`);
      step.resume();
    }
  }

  /** Lets the effects that are still to come happen, or not. */
  settleLate(): void {
    for (const { label, apply } of this.#late.splice(0)) {
      if (this.choices.pick("turn", 2) === 0) continue;
      this.note(`late, at the end: ${label}`);
      apply();
    }
  }

  #allStopped(): boolean {
    const stopped = new Set(this.#steps.map(({ actor }) => actor));
    return stopped.size > 0 && this.#actors.every((actor) => !actor.alive || actor.finished || stopped.has(actor));
  }

  #choose(): Step | LateEffect {
    // Who ran last comes first: to go on is the plainest.
    const own = this.#steps.findIndex(({ actor }) => actor === this.#last);
    const first = Math.max(own, 0);
    if (own >= 0 && this.#switchOneIn > 1 && this.choices.rarely("switch", this.#switchOneIn, 1) === 0) {
      return this.#steps.splice(first, 1)[0]!;
    }
    const n = this.#steps.length + this.#late.length;
    const picked = this.choices.pick(own < 0 ? "turn" : "switch", n);
    if (picked >= this.#steps.length) return this.#late.splice(picked - this.#steps.length, 1)[0]!;
    const index = picked === 0 ? first : picked <= first ? picked - 1 : picked;
    return this.#steps.splice(index, 1)[0]!;
  }
}
