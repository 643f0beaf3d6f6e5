/** The simulation is worth what it finds: each planted fault has to be found, within the schedules that CI can afford. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildWith } from "./simulation/bundle.js";
import { Fleet, type Job, randomJobs } from "./simulation/fleet.js";
import { MUTANTS } from "./simulation/mutants.js";
import { SCENARIOS } from "./simulation/scenarios.js";
import { formatFailure } from "./simulation/simulate.js";

/** Random ones for each fault that no scenario aims at; ten times as many seeds where few make such a world. */
const SCHEDULES = 3000;

let sound: Fleet;
beforeAll(async () => {
  sound = await Fleet.create("sound");
});
afterAll(() => sound[Symbol.asyncDispose]());

describe("a planted fault is found", () => {
  it.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))(
    "%s",
    async (name, { mode, faults, scenario, only }) => {
      const jobs: Job[] = scenario
        ? SCENARIOS[scenario]!.runs.filter((run) => run.mode === mode && !run.long).map((run) => ({
            mode,
            scenario,
            bounds: run,
          }))
        : randomJobs(mode, 1, only ? 10 * SCHEDULES : SCHEDULES, 100, only);
      await using planted = await Fleet.create(name, faults, { shrink: false });
      const { failure, schedules } = await planted.run(jobs);
      console.log(`${name}: after ${schedules} schedules: ${failure?.problems[0]}`);
      if (!failure) return expect.fail("it is not found");
      // Without the fault the same schedules are right: those of scenarios are run by a test of their own.
      if (scenario) return;
      const again = await sound.run([{ mode, from: failure.seed!, count: 1 }], 1);
      if (again.failure) expect.fail(formatFailure(again.failure));
    },
    600_000,
  );

  it("and one that is planted nowhere is an error of the gate", async () => {
    const fault = { file: "packages/catalog/src/check.ts", find: "no such text", replace: "" };
    await expect(buildWith("nowhere", [fault])).rejects.toThrow("does not have exactly once: no such text");
  });
});
