/** One schedule: from its decisions to what is wrong with what came of it. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parquetReady } from "@eider/core";
import {
  type Bounds,
  type Choices,
  enumerate,
  GivenChoices,
  generator,
  RandomChoices,
  shrink,
  trimmed,
} from "./choices.js";
import { Coverage } from "./coverage.js";
import { judge } from "./oracle.js";
import type { Scenario } from "./scenarios.js";
import type { Odds } from "./sim-process.js";
import type { Version } from "./sim-store.js";
import { leaveOut, randomAppend, randomWorkload, type Workload } from "./workload.js";
import { type Mode, World } from "./world.js";

/** A schedule after which something is wrong. */
export interface Failure {
  readonly problems: readonly string[];
  /** What was asked for, and the decisions since: as little of both as it could be made. */
  readonly workload: Workload;
  readonly trail: readonly number[];
  /** What happened, step by step. */
  readonly trace: readonly string[];
}

export interface Report {
  readonly schedules: number;
  readonly coverage: Coverage;
  readonly failure: Failure | undefined;
}

/** One whose store is set back to a backup, or whose hosts are of two versions. */
export type WorldKind = "restored" | "mixed";

/** Processes of a random schedule; those of a shared lake are on two hosts. */
const PROCESSES = { local: 3, shared: 4 };
/** Schedules that are tried for fewer decisions, in each of two rounds. */
const SHRINK_TRIES = 400;
/** Milliseconds that a commit whose fate is unknown is pursued. */
const PATIENCE_MS = 1500;
/** More than any batch here has: all of them are hot until they are folded. */
const INLINE_BYTES = 4096;

export class Simulation implements Disposable {
  readonly coverage = new Coverage();
  readonly #mode: Mode;
  readonly #folder = mkdtempSync(join(tmpdir(), "eider-simulation-"));
  readonly #diskPaths: readonly string[];
  readonly #shrinks: boolean;

  private constructor(mode: Mode, shrinks: boolean) {
    this.#mode = mode;
    this.#shrinks = shrinks;
    this.#diskPaths = [0, 1, 2].map((host) => {
      const path = join(this.#folder, `host-${host}.sqlite`);
      writeFileSync(path, "");
      return path;
    });
  }

  /** @param options `shrink` false: failures are told as they are found */
  static async create(mode: Mode, options: { readonly shrink?: boolean } = {}): Promise<Simulation> {
    // Compiled once, by means of Node.js's own: no schedule may wait for it.
    await parquetReady();
    return new Simulation(mode, options.shrink ?? true);
  }

  /** Random schedules, one for each seed, until one fails; `only`: of seeds that make such a world. */
  async random(firstSeed: number, count: number, only?: WorldKind): Promise<Report> {
    for (let i = 0; i < count; i++) {
      const seed = firstSeed + i;
      if (only && !isOf(this.#settings(seed), only)) continue;
      const found = await this.#random(seed, false);
      if (found.problems.length > 0) {
        const settings = this.#settings(seed);
        const failure = await this.#explain(found, (workload, choices, trace) =>
          this.#schedule(choices, workload, { ...settings, trace }),
        );
        return { schedules: i + 1, coverage: this.coverage, failure };
      }
    }
    return { schedules: count, coverage: this.coverage, failure: undefined };
  }

  /** What happens in the schedule of a seed. */
  async trace(seed: number): Promise<readonly string[]> {
    return (await this.#random(seed, true)).trace;
  }

  /** Every schedule of a scenario within bounds, until one fails. */
  async exhaustive(scenario: Scenario, bounds: Bounds): Promise<Report> {
    let failure: Failure | undefined;
    const run: Run = (workload, choices, trace) => this.#scenarioSchedule({ ...scenario, workload }, choices, trace);
    const schedules = await enumerate(bounds, async (choices) => {
      const found = await run(scenario.workload, choices, false);
      if (found.problems.length > 0) failure = await this.#explain(found, run);
      return failure === undefined;
    });
    return { schedules, coverage: this.coverage, failure };
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #random(seed: number, trace: boolean): Promise<Outcome> {
    const choices = new RandomChoices(seed);
    const workload = randomWorkload(choices, PROCESSES[this.#mode]);
    const { shares, ...settings } = this.#settings(seed);
    // Somebody moves the lake while others are at work.
    if (shares) workload.push([[randomAppend(choices)], [{ kind: "share" }]]);
    return this.#schedule(choices, workload, { ...settings, trace });
  }

  /** How wild a schedule is comes from the seed and not from its decisions: it stays when those are made smaller. */
  #settings(seed: number): Omit<Settings, "trace"> & { readonly shares: boolean } {
    const next = generator(seed ^ 0x5eed);
    const of = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)]!;
    const shared = this.#mode === "shared";
    const restores = shared && of([true, ...Array<boolean>(11).fill(false)]);
    return {
      switchOneIn: of([1, 2, 2, 4, 8]),
      faultOneIn: of([8, 15, 30, 60, 0]),
      crashOneIn: of([30, 60, 100, 0]),
      skewMs: of([
        [0, 0],
        [0, 3_600_000],
        [60_000, -60_000],
      ]),
      made: restores || of([true, true, true, false]),
      patienceMs: of([PATIENCE_MS, PATIENCE_MS, 0]),
      inlineBytes: of([0, 0, INLINE_BYTES]),
      // Queries that look first every time, so that all of them have to see it.
      restores,
      stalenessMs: restores ? 0 : of([0, 0, 300]),
      versions: shared ? of<readonly Version[]>([...Array(7).fill([]), ["this", "newer"]]) : [],
      shares: !shared && of([true, ...Array<boolean>(15).fill(false)]),
    };
  }

  #scenarioSchedule(
    { workload, faultsAt, patienceMs = PATIENCE_MS, inlineBytes = 0 }: Scenario,
    choices: Choices,
    trace: boolean,
  ): Promise<Outcome> {
    const settings = {
      switchOneIn: 1,
      faultOneIn: 2,
      crashOneIn: 2,
      skewMs: [0, 0],
      made: true,
      stalenessMs: 0,
      patienceMs,
      versions: [],
      inlineBytes,
      restores: false,
      trace,
    };
    return this.#schedule(choices, workload, { ...settings, ...(faultsAt && { faultsAt }) });
  }

  async #schedule(choices: Choices, workload: Workload, settings: Settings): Promise<Outcome> {
    const { faultOneIn, crashOneIn, faultsAt, ...others } = settings;
    using world = new World({
      choices,
      coverage: this.coverage,
      odds: { faultOneIn, crashOneIn, ...(faultsAt && { faultsAt }) },
      workload,
      ...others,
      mode: this.#mode,
      diskPaths: this.#diskPaths,
    });
    const start = choices.trail.length;
    let problems: string[];
    // Most errors of a schedule are planned; where they were made is asked for only when it is explained.
    const { stackTraceLimit } = Error;
    if (!settings.trace) Error.stackTraceLimit = 0;
    try {
      await world.run();
      problems = await judge(world);
    } catch (error) {
      problems = [`the schedule broke: ${error instanceof Error ? error.stack : String(error)}`];
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
    return { problems, workload, trail: choices.trail.slice(start), trace: world.scheduler.trace ?? [] };
  }

  /** Makes a failure smaller, as long as what is wrong stays what was wrong: less work, then fewer decisions, then less work. */
  async #explain(found: Outcome, run: Run): Promise<Failure> {
    if (!this.#shrinks) return { ...found, trace: [] };
    const kinds = new Set(found.problems.map(kindOf));
    const fails = async (workload: Workload, trail: readonly number[]): Promise<boolean> => {
      const { problems } = await run(workload, new GivenChoices(trail), false);
      return problems.some((problem) => kinds.has(kindOf(problem)));
    };
    let { workload, trail } = found;
    for (let round = 0; round < 2; round++) {
      workload = await leaveOut(workload, (less) => fails(less, trail));
      trail = await shrink(trail, (less) => fails(workload, less), SHRINK_TRIES);
    }
    return run(workload, new GivenChoices(trail), true);
  }
}

function isOf({ restores, versions }: Pick<Settings, "restores" | "versions">, kind: WorldKind): boolean {
  return kind === "restored" ? restores : versions.length > 0;
}

/** How wild a schedule is. */
interface Settings extends Odds {
  readonly switchOneIn: number;
  readonly skewMs: readonly number[];
  readonly made: boolean;
  readonly patienceMs: number;
  readonly versions: readonly Version[];
  readonly inlineBytes: number;
  readonly restores: boolean;
  readonly stalenessMs: number;
  readonly trace: boolean;
}

type Outcome = Failure;

type Run = (workload: Workload, choices: Choices, trace: boolean) => Promise<Outcome>;

/** A problem without its names and numbers. */
function kindOf(problem: string): string {
  return problem.replace(/\S*\d\S*/g, "…");
}

/** A failure as text, with what it takes to run it again. */
export function formatFailure({ problems, workload, trail, trace }: Failure): string {
  const asked = workload.map((groups, i) => `process ${i}: ${JSON.stringify(groups)}`);
  return [...problems, "", ...asked, "", ...trace, "", `decisions: [${trimmed(trail).join(", ")}]`].join("\n");
}
