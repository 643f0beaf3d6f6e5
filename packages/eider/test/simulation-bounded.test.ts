/**
 * Every schedule of a few small workloads that needs no more than so many switches and faults. `EIDER_SIMULATION` set: also
 * those that take long.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Fleet } from "./simulation/fleet.js";
import { SCENARIOS } from "./simulation/scenarios.js";
import { formatFailure } from "./simulation/simulate.js";

const long = process.env.EIDER_SIMULATION !== undefined;

let fleet: Fleet;
beforeAll(async () => {
  fleet = await Fleet.create("bounded");
});
afterAll(() => fleet[Symbol.asyncDispose]());

describe.each(Object.entries(SCENARIOS))("%s", (scenario, { runs }) => {
  it.each(runs.filter((run) => long || !run.long))(
    "$mode: $switches switches, $faults faults",
    async ({ mode, switches, faults, least }) => {
      const { failure, schedules } = await fleet.run([{ mode, scenario, bounds: { switches, faults } }]);
      console.log(`${scenario}, ${mode}, ${switches} switches, ${faults} faults: ${schedules} schedules`);
      if (failure) expect.fail(formatFailure(failure));
      expect(schedules).toBeGreaterThanOrEqual(least);
    },
    3_600_000,
  );
});
