/** A process of a host: everything it does stops at steps, any of which may be its last. */

import { type Choices, generator } from "./choices.js";
import type { Coverage } from "./coverage.js";
import type { Actor, Scheduler } from "./scheduler.js";

/** How often things go wrong: once in so many chances, with 0 never. */
export interface Odds {
  readonly faultOneIn: number;
  readonly crashOneIn: number;
  /** Steps at which it may, `killed` for being killed; default everywhere. */
  readonly faultsAt?: readonly string[];
}

export interface SimProcessOptions {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly coverage: Coverage;
  readonly odds: Odds;
  /** Of its random source: ids are the same in every run of a schedule. */
  readonly seed: number;
  /** Told when it is killed. */
  readonly onCrash: () => void;
  /** Whether it is alone: then it stops only to wait, since nobody could come between. */
  readonly alone?: boolean;
}

export class SimProcess implements Actor {
  readonly name: string;
  readonly scheduler: Scheduler;
  readonly random: (size: number) => Uint8Array;
  /** Resolves when it is killed. */
  readonly died: Promise<void>;
  alive = true;
  finished = false;
  /** Moment of its start. */
  readonly started: number;
  /** What it is at, for the report of what was hit. */
  operation = "open";
  /** What went wrong so far. */
  faults = 0;
  readonly #options: SimProcessOptions;
  #die: () => void = () => {};

  constructor(options: SimProcessOptions) {
    this.name = options.name;
    this.scheduler = options.scheduler;
    this.#options = options;
    this.started = options.scheduler.moment;
    const next = generator(options.seed);
    this.random = (size) => Uint8Array.from({ length: size }, () => Math.floor(next() * 256));
    this.died = new Promise((resolve) => {
      this.#die = resolve;
    });
    this.scheduler.add(this);
  }

  get choices(): Choices {
    return this.scheduler.choices;
  }

  /** Whether things go wrong for it at all. */
  get faulty(): boolean {
    return this.#options.odds.faultOneIn > 0;
  }

  /** Waits for its turn; if it is killed here, for ever. */
  async stop(label: string, waitMs = 0): Promise<void> {
    if (this.#options.alone && waitMs === 0) return;
    if (this.alive) {
      await this.scheduler.stop(this, label, waitMs);
      if (this.alive && !this.crashes(stepOf(label))) return;
    }
    await new Promise<never>(() => {});
  }

  /** What goes wrong now, if anything. */
  fault<F extends string>(step: string, faults: readonly F[]): F | undefined {
    if (!this.alive) return undefined;
    const { coverage, odds } = this.#options;
    const n = odds.faultOneIn === 0 || odds.faultsAt?.includes(step) === false ? 0 : faults.length;
    const fault = n === 0 ? undefined : faults[this.choices.rarely("fault", odds.faultOneIn, n) - 1];
    if (fault) this.faults++;
    coverage.hit(this.operation, step, fault ?? "none");
    return fault;
  }

  /** Whether it is killed now. */
  crashes(step: string): boolean {
    const { coverage, odds, onCrash } = this.#options;
    if (!this.alive || odds.crashOneIn === 0 || odds.faultsAt?.includes("killed") === false) return false;
    if (this.choices.rarely("fault", odds.crashOneIn, 1) === 0) return false;
    coverage.hit(this.operation, step, "killed");
    this.scheduler.note(`  ${this.name} is killed`);
    this.kill();
    onCrash();
    return true;
  }

  kill(): void {
    this.scheduler.kill(this);
    this.#die();
  }
}

/** A label without the names in it. */
function stepOf(label: string): string {
  return /^[a-z]+( (all|lake file|log|checkpoint|data|[a-zA-Z]+))?(: answer)?/.exec(label)?.[0] ?? label;
}
