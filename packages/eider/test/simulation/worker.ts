/** Runs schedules in a thread of its own: see `fleet.ts`. Bundled with the sources, in some of which a fault is planted. */

import { parentPort, workerData } from "node:worker_threads";
import type { Answer, Job } from "./fleet.js";
import { SCENARIOS } from "./scenarios.js";
import { Simulation } from "./simulate.js";

async function run({ mode, from, count, only, scenario, bounds }: Job): Promise<Answer> {
  const { shrink } = workerData as { shrink: boolean };
  using simulation = await Simulation.create(mode, { shrink });
  const { schedules, coverage, failure } =
    scenario === undefined
      ? await simulation.random(from ?? 1, count ?? 1, only)
      : await simulation.exhaustive(SCENARIOS[scenario]!, bounds ?? { switches: 0, faults: 0 });
  return { schedules, hits: coverage.entries(), failure };
}

parentPort?.on("message", (job: Job) => {
  // What goes wrong here is no answer: it ends the thread, and with it the run.
  void run(job).then((answer) => parentPort?.postMessage(answer));
});
