/** The simulation is worth what it finds: each planted fault has to be found, within the schedules that CI can afford. */

import { describe, expect, it } from "vitest";
import { buildWith } from "./simulation/bundle.js";
import { MUTANTS } from "./simulation/mutants.js";

const SCHEDULES = 4000;

describe("a planted fault is found", () => {
  it.each(MUTANTS)(
    "$name",
    async ({ name, mode, faults }) => {
      const { Simulation } = await buildWith(name, faults);
      using simulation = await Simulation.create(mode, { shrink: false });
      const { failure, schedules } = await simulation.random(1, SCHEDULES);
      console.log(`${name}: after ${schedules} schedules: ${failure?.problems[0]}`);
      expect(failure).toBeDefined();
    },
    600_000,
  );

  it("and one that is planted nowhere is an error of the gate", async () => {
    const fault = { file: "packages/catalog/src/check.ts", find: "no such text", replace: "" };
    await expect(buildWith("nowhere", [fault])).rejects.toThrow("does not have exactly once: no such text");
  });
});
