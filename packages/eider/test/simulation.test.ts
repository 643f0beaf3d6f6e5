/**
 * Random schedules. `EIDER_SIMULATION=100000` runs so many, `EIDER_SEED=…` begins at another seed. A failure says which
 * decisions lead to it, as few as could be found.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SEED } from "../../../test/support/seed.js";
import { Fleet, randomJobs } from "./simulation/fleet.js";
import { missed } from "./simulation/reachable.js";
import { formatFailure, Simulation } from "./simulation/simulate.js";

/** Half of them of local lakes, half of shared ones. */
const SCHEDULES = Number(process.env.EIDER_SIMULATION ?? 10_000) / 2;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.create("random");
});
afterAll(() => fleet[Symbol.asyncDispose]());

describe.each(["local", "shared"] as const)("%s", (mode) => {
  it(`${SCHEDULES} random schedules from seed ${SEED}: acknowledged exactly once, unknown at most once, failed never`, async () => {
    const { failure, coverage } = await fleet.run(randomJobs(mode, SEED, SCHEDULES, 100));
    console.log(`${mode} lakes: how often each fault was hit, by operation and step\n${coverage.report()}`);
    if (failure) expect.fail(`seed ${failure.seed}\n${formatFailure(failure)}`);
    if (SCHEDULES >= 5000) expect(missed(mode, coverage), "never hit").toEqual([]);
  }, 36_000_000);

  it("a seed is one schedule, however often it runs", async () => {
    using simulation = await Simulation.create(mode);
    for (const seed of [3, 4, 5]) {
      const first = await simulation.trace(seed);
      expect(first.length).toBeGreaterThan(10);
      expect(await simulation.trace(seed)).toEqual(first);
    }
  });
});
