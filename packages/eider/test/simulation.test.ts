/**
 * Random schedules. `EIDER_SIMULATION=10000` runs so many, `EIDER_SEED=…` begins at another seed. A failure says which
 * decisions lead to it, as few as could be found.
 */

import { describe, expect, it } from "vitest";
import { SEED } from "../../../test/support/seed.js";
import { formatFailure, Simulation } from "./simulation/simulate.js";

const SCHEDULES = Number(process.env.EIDER_SIMULATION ?? 200);

/** Combinations without which a run has tried nothing. */
const HITS = {
  local: [
    ["append", "put data", "late"],
    ["append", "put data", "refused"],
    ["append", "put data", "killed"],
    ["append", "put data: answer", "killed"],
    ["append", "sqlite begin", "locked"],
    ["append", "sqlite commit", "fails after"],
    ["append", "sqlite commit", "fails for now"],
    ["append", "sqlite commit: answer", "killed"],
    ["append", "group commit", "none"],
    ["query", "get data", "none"],
  ],
  shared: [
    ["append", "put log", "late"],
    ["append", "put log", "lost"],
    ["append", "put log", "unanswered"],
    ["append", "put log", "refused"],
    ["append", "put log", "twice"],
    ["append", "put log", "killed"],
    ["append", "put log: answer", "killed"],
    ["append", "get log", "lost"],
    ["append", "sqlite commit", "fails after"],
    ["query", "get log", "none"],
  ],
} as const;

describe.each(["local", "shared"] as const)("%s", (mode) => {
  it(`${SCHEDULES} random schedules from seed ${SEED}: acknowledged exactly once, unknown at most once, failed never`, async () => {
    using simulation = await Simulation.create(mode);
    const { failure, coverage } = await simulation.random(SEED, SCHEDULES);
    console.log(`What was hit, by operation, step and fault:\n${coverage.report()}`);
    if (failure) expect.fail(formatFailure(failure));
    if (SCHEDULES < 200) return;
    for (const [operation, step, fault] of HITS[mode]) {
      expect(coverage.count(operation, step, fault), `${operation}, ${step}, ${fault}`).toBeGreaterThan(0);
    }
  }, 3_600_000);

  it("a seed is one schedule, however often it runs", async () => {
    using simulation = await Simulation.create(mode);
    for (const seed of [3, 4, 5]) {
      const first = await simulation.trace(seed);
      expect(first.length).toBeGreaterThan(10);
      expect(await simulation.trace(seed)).toEqual(first);
    }
  });
});
