/**
 * Every schedule of two processes with three operations each that needs no more than a few switches and faults.
 * `EIDER_SIMULATION` set: also those with both.
 */

import { describe, expect, it } from "vitest";
import { formatFailure, Simulation } from "./simulation/simulate.js";
import type { Workload } from "./simulation/workload.js";

const WORKLOAD: Workload = [
  [
    [{ kind: "append", table: "t", batch: 0, content: 0 }],
    [{ kind: "append", table: "t", batch: 1, content: 1 }],
    [{ kind: "query" }],
  ],
  [
    [{ kind: "append", table: "t", batch: 0, content: 0 }],
    [{ kind: "maintain" }],
    [{ kind: "append", table: "t", batch: 1, content: 0 }],
  ],
];

const long = process.env.EIDER_SIMULATION !== undefined;

describe.each(["local", "shared"] as const)("%s", (mode) => {
  it.each([
    { switches: 1, faults: 0, least: 40 },
    { switches: 0, faults: 1, least: 200 },
    ...(mode === "local" || long ? [{ switches: 2, faults: 0, least: 500 }] : []),
    ...(long ? [{ switches: 1, faults: 1, least: 5000 }] : []),
  ])(
    "$switches switches, $faults faults",
    async ({ least, ...bounds }) => {
      using simulation = await Simulation.create(mode);
      const { failure, schedules } = await simulation.exhaustive(WORKLOAD, bounds);
      console.log(`${mode}: ${schedules} schedules`);
      if (failure) expect.fail(formatFailure(failure));
      expect(schedules).toBeGreaterThan(least);
    },
    3_600_000,
  );
});
