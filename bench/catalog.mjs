/**
 * A local lake of many files and receipts: how long it takes to open, what an append to it costs, how large its catalog is.
 * In the same rounds an empty lake, which is 1.00. The entries are made in the catalog itself, without the data files that
 * they name; so its journal begins with a checkpoint of all of them, whose time is told by itself: one that grew by appends
 * has written those while it grew. `cpu` is the ratio of processor time, which fsync and other programs touch less. Needs built packages (`npm run build`).
 *
 *   node bench/catalog.mjs [--fast] [--rows=1000000] [--rounds=9]        rows: receipts; a tenth as many files
 */

import { statSync } from "node:fs";
import { join } from "node:path";
import { SqliteCatalog } from "@eider/catalog";
import { Lake } from "eider";
import { commitTable, draftOf } from "./support/catalog-entries.mjs";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";

const { fast, rows: receipts, rounds } = options({ rows: 1_000_000, rounds: 9 });
/** Commits that share a transaction while the lake is made. */
const AT_ONCE = 250;
/** Appends of ten rows in a round. */
const APPENDS = fast ? 5 : 50;

await withFolder(async (folder) => {
  const full = join(folder, "full");
  const empty = join(folder, "empty");
  for (const [where, count] of [
    [empty, 0],
    [full, receipts],
  ]) {
    await (await Lake.open(where)).close();
    await fill(join(where, "_eider", "catalog.sqlite"), count);
  }
  console.log(`its first checkpoint: ${((await timeOf(() => writeJournal(full))) / 1000).toFixed(1)} s`);
  await writeJournal(empty);
  await measure("open, one receipt", { empty: () => open(empty), full: () => open(full) }, 1);

  const lakes = await Promise.all([empty, full].map((where) => Lake.open(where)));
  let next = receipts;
  const append = async (lake) => {
    for (let i = 0; i < APPENDS; i++) await lake.table("t").append(rowsOf(next), { batchId: `batch-${next++}` });
  };
  await measure("append of ten rows", { empty: () => append(lakes[0]), full: () => append(lakes[1]) }, APPENDS);
  for (const lake of lakes) await lake.close();
});

/** Opens a lake, appends and waits for what that leaves in its store. */
async function writeJournal(where) {
  const lake = await Lake.open(where);
  await lake.table("t").append(rowsOf(0), { batchId: "first-page" });
  await lake.close();
}

async function timeOf(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function measure(what, contenders, per) {
  const figures = await interleave(contenders, { rounds, fast });
  console.log(`\n${what.padEnd(20)}${"ms".padStart(10)}${"ratio".padStart(8)}${"cpu".padStart(8)}`);
  for (const [name, { times, cpus }] of Object.entries(figures)) {
    const cells = [
      (median(times) / per).toFixed(2).padStart(10),
      ratio(times, figures.empty.times).toFixed(2).padStart(8),
      ratio(cpus, figures.empty.cpus).toFixed(2).padStart(8),
    ];
    console.log(name.padEnd(20) + cells.join(""));
  }
}

async function open(where) {
  const lake = await Lake.open(where, { mode: "open" });
  const batchId = where.endsWith("full") ? `batch-${receipts - 1}` : "none";
  const receipt = await lake.table("t").receipt(batchId);
  await lake.close();
  if ((receipt !== undefined) !== where.endsWith("full")) throw new Error("the receipt is not there");
}

/** Each append an entry of its own, as of one who appends alone: whoever expects a snapshot shares none. */
async function fill(path, count) {
  const catalog = await SqliteCatalog.open({ path, mode: "open" });
  await commitTable(catalog);
  for (let from = 0; from < count; from += AT_ONCE) {
    await Promise.all(
      Array.from({ length: AT_ONCE }, (_, i) =>
        catalog.commit({ ...draftOf(from + i, 1), expectSnapshot: from + i + 1 }),
      ),
    );
  }
  const head = await catalog.head();
  await catalog[Symbol.asyncDispose]();
  if (head.snapshot !== count + 1) throw new Error("entries are missing");
  if (count === 0) return;
  const { size } = statSync(path);
  const megabytes = (size / 1e6).toFixed(0);
  console.log(
    `${count} receipts, ${count / 10} files, ${head.snapshot} entries: catalog ${megabytes} MB, ` +
      `${(size / count).toFixed(0)} bytes a receipt, ${rounds} rounds`,
  );
}

function rowsOf(n) {
  return Array.from({ length: 10 }, (_, i) => ({ id: n * 10 + i, user: i % 7, at: n, kind: i % 3, value: i * n }));
}
