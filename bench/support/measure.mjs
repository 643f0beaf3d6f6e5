/** What all benchmarks share: options, interleaved rounds, medians. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

/** Options of a benchmark: `--fast` is a smoke run that measures nothing worth reading. */
export function options(defaults) {
  const strings = Object.entries(defaults).map(([name, value]) => [name, { type: "string", default: String(value) }]);
  const { values } = parseArgs({
    options: { fast: { type: "boolean", default: false }, ...Object.fromEntries(strings) },
  });
  const { fast } = values;
  const numbers = Object.fromEntries(Object.keys(defaults).map((name) => [name, Number(values[name])]));
  return { fast, ...numbers, rows: fast ? 2000 : numbers.rows, rounds: fast ? 1 : numbers.rounds };
}

/** Runs with a temporary folder, which is removed. */
export async function withFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), "eider-bench-"));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Times and CPU times in milliseconds, by contender and round. Contenders take turns, so that what else the machine does
 * meets all of them.
 * @param contenders functions by name, which get the number of the round
 * @param before is called before each, untimed; `after` gets the name and what the contender returned
 */
export async function interleave(contenders, { rounds, fast, before = () => {}, after = () => {} }) {
  const figures = Object.fromEntries(Object.keys(contenders).map((name) => [name, { times: [], cpus: [] }]));
  // The first round warms up compilers, allocators and the file cache, and does not count.
  for (let round = fast ? 0 : -1; round < rounds; round++) {
    for (const [name, contender] of Object.entries(contenders)) {
      before();
      const cpu = process.cpuUsage();
      const start = performance.now();
      const result = await contender(round);
      const time = performance.now() - start;
      const { user, system } = process.cpuUsage(cpu);
      await after(name, result);
      if (round < 0) continue;
      figures[name].times.push(time);
      figures[name].cpus.push((user + system) / 1000);
    }
  }
  return figures;
}

/** The median of what each round's figure is to the reference's of the same round. */
export function ratio(figures, reference) {
  return median(figures.map((figure, i) => figure / reference[i]));
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
