/** Loads real files into a lake, asks it questions, then appends everything again to show that nothing counts twice. */

import { relative } from "node:path";
import { type AppendResult, Lake } from "eider";
import { type Dataset, datasets, pathOf } from "./datasets.js";
import { formatNumber, formatTable, progressLine } from "./display.js";
import { questions } from "./questions.js";

const where = process.argv[2] ?? "./data/demo";

async function main(): Promise<void> {
  console.log(`A lake in ${where}\n\nAppend six files, each as one batch:\n`);
  const lake = await Lake.open(where);
  try {
    for (const dataset of datasets) printAppend(dataset, await append(lake, dataset));
    for (const { title, sql } of questions) {
      const query = lake.sql(sql);
      console.log(`\n${title}\n`);
      console.log(formatTable(await query));
      const { elapsedMs, filesRead } = query.stats!;
      console.log(`  (${Math.round(elapsedMs)} ms, ${filesRead} data file${filesRead === 1 ? "" : "s"})`);
    }
    console.log("\nAppend everything again, as a job that was retried would:\n");
    for (const dataset of datasets) printAppend(dataset, await append(lake, dataset));
  } finally {
    await lake.close();
  }
  const here = relative(process.cwd(), where) || ".";
  console.log(`
Nothing was written twice: the answer is the first receipt. The lake is yours to ask:

  npx eider sql ${here} "SELECT weather, count(*) AS days FROM weather GROUP BY ALL ORDER BY days DESC"
  npx eider tables ${here}
  npx eider receipt ${here} weather ${batchId(datasets.at(-1)!)}
`);
}

/** The same id for the same file, so that a second run is recognised. */
function batchId({ file }: Dataset): string {
  return `vega-datasets/${file}`;
}

async function append(lake: Lake, dataset: Dataset): Promise<AppendResult & { elapsedMs: number }> {
  const started = performance.now();
  const progress = progressLine(dataset.file);
  const path = pathOf(dataset);
  const source = (await dataset.rows?.(path)) ?? { file: path };
  try {
    const table = lake.table(dataset.table, dataset.options);
    const result = await table.append(source, { batchId: batchId(dataset), onProgress: progress.update });
    return { ...result, elapsedMs: performance.now() - started };
  } finally {
    progress.end();
  }
}

function printAppend(
  { table, file }: Dataset,
  { status, receipt, elapsedMs }: AppendResult & { elapsedMs: number },
): void {
  console.log(
    `  ${status.padEnd(9)}  ${table.padEnd(14)}  ${formatNumber(receipt.rows).padStart(9)} rows  snapshot ${receipt.snapshot}  ` +
      `${receipt.contentHash.slice(0, 14)}…  ${file} (${Math.round(elapsedMs)} ms)`,
  );
}

// `npm start | head` has seen enough.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

await main();
