/**
 * Many small appends, then an aggregation: while all of them are hot, once they are folded, and over the same rows in one
 * file. The first query of a process encodes what is hot, and is told apart. Needs built packages (`npm run build`).
 *
 *   node bench/hot.mjs [--fast] [--rows=30000] [--rounds=9]        rows: appends of ten rows each
 */

import { join } from "node:path";
import { Lake } from "eider";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";

const { fast, rows, rounds } = options({ rows: 30_000, rounds: 9 });
const ROWS = 10;
const AT_ONCE = 32;
const appends = fast ? 320 : rows;
const QUERY = "SELECT user, count(*) AS n, sum(amount) AS s FROM t GROUP BY user ORDER BY user";

await withFolder(async (folder) => {
  const open = (name, more) => Lake.open(join(folder, name), { cacheDir: folder, ...more });
  const small = await open("small");
  const start = performance.now();
  let next = 0;
  const lane = async () => {
    while (next < appends) await small.table("t").append(makeBatch(next++));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  const perSecond = appends / ((performance.now() - start) / 1000);
  console.log(`${appends} appends of ${ROWS} rows, ${AT_ONCE} at once: ${perSecond.toFixed(0)} a second`);

  const one = await open("one", { inlineBytes: 0 });
  await one.table("t").append(Array.from({ length: appends }, (_, n) => makeBatch(n)).flat());

  // A process that has encoded nothing yet.
  await small.close();
  const hot = await open("small");
  await one.sql(QUERY);
  const first = performance.now();
  const expected = JSON.stringify(await hot.with({ values: "json" }).sql(QUERY));
  console.log(`first query over them, which encodes them: ${(performance.now() - first).toFixed(0)} ms`);

  const ask = (lake) => async () => {
    const answer = JSON.stringify(await lake.with({ values: "json" }).sql(QUERY));
    if (answer !== expected) throw new Error("the answers differ");
  };
  const report = (name, { hot: asked, "one file": reference }) =>
    console.log(
      `${name}: ${median(asked.times).toFixed(1)} ms, one file ${median(reference.times).toFixed(1)} ms, × ${ratio(asked.times, reference.times).toFixed(2)}`,
    );
  report("hot", await interleave({ hot: ask(hot), "one file": ask(one) }, { rounds, fast }));
  const folding = performance.now();
  const { folded } = await hot.maintain({ fold: "all" });
  console.log(
    `folded ${folded.batches} batches into ${folded.files} files in ${(performance.now() - folding).toFixed(0)} ms`,
  );
  report("folded", await interleave({ hot: ask(hot), "one file": ask(one) }, { rounds, fast }));
  await Promise.all([hot.close(), one.close()]);
});

function makeBatch(n) {
  return Array.from({ length: ROWS }, (_, i) => {
    return { id: n * ROWS + i, user: `user-${(n * 7919 + i) % 1000}`, amount: i / 4 };
  });
}
