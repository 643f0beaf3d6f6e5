/**
 * Durable appends of ten rows to a local lake: one after the other, and 32 at once. In the same rounds what they are
 * measured by: a transaction of SQLite for each (WAL, `synchronous = FULL`), and a file for each, both synced and no more;
 * and the same appends into Parquet files (`inlineBytes: 0`).
 * Needs built packages (`npm run build`).
 *
 *   node bench/append-small.mjs [--fast] [--rows=320] [--rounds=7]        rows: appends in a round
 */

import { closeSync, fsyncSync, mkdirSync, openSync, writeSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Lake } from "eider";
import { interleave, median, options, ratio, withFolder } from "./support/measure.mjs";

const { fast, rows, rounds } = options({ rows: 320, rounds: 7 });
const ROWS = 10;
const AT_ONCE = 32;
const appends = fast ? 2 * AT_ONCE : AT_ONCE * Math.ceil(rows / AT_ONCE);

const Database = createRequire(new URL("../packages/catalog/package.json", import.meta.url))("better-sqlite3");

await withFolder(async (folder) => {
  const database = openDatabase(join(folder, "alone.sqlite"));
  const insert = database.prepare("INSERT INTO rows VALUES (?, ?, ?)");
  const transact = database.transaction((batch) => {
    for (const { id, user, amount } of batch) insert.run(id, user, amount);
  });
  const files = join(folder, "files");
  mkdirSync(files);
  // Each in a lake of its own, so that none has the other's snapshots to keep.
  const [one, many] = await Promise.all(["one", "many"].map((name) => Lake.open(join(folder, name))));
  const inFiles = await Lake.open(join(folder, "in-files"), { inlineBytes: 0 });
  let next = 0;

  /** Time of each append in milliseconds. */
  const oneByOne = async (append) => {
    const times = [];
    for (let i = 0; i < appends; i++) {
      const batch = makeBatch(next++);
      const start = performance.now();
      await append(batch);
      times.push(performance.now() - start);
    }
    return times;
  };
  const waits = { transactions: [], files: [], "into files": [], appends: [], "32 at once": [] };
  const figures = await interleave(
    {
      transactions: () => oneByOne(transact),
      files: () => oneByOne((batch) => writeFile(files, batch)),
      "into files": () => oneByOne((batch) => inFiles.table("t").append(batch)),
      appends: () => oneByOne((batch) => one.table("t").append(batch)),
      "32 at once": async () => {
        const lanes = Array.from({ length: AT_ONCE }, async () => {
          const times = [];
          for (let i = 0; i < appends / AT_ONCE; i++) {
            const start = performance.now();
            await many.table("t").append(makeBatch(next++));
            times.push(performance.now() - start);
          }
          return times;
        });
        return (await Promise.all(lanes)).flat();
      },
    },
    { rounds, fast, after: (name, times) => waits[name].push(median(times)) },
  );

  const heads = ["wait ms", "a second", "× transaction", "× file", "× into files"];
  console.log(`\n${"".padEnd(14)}${heads.map((head) => head.padStart(15)).join("")}`);
  for (const [name, { times }] of Object.entries(figures)) {
    const perSecond = appends / (median(times) / 1000);
    const cells = [median(waits[name].slice(-rounds)).toFixed(2), perSecond.toFixed(0)];
    for (const reference of ["transactions", "files", "into files"])
      cells.push(ratio(times, figures[reference].times).toFixed(2));
    console.log(name.padEnd(14) + cells.map((cell) => cell.padStart(15)).join(""));
  }
  console.log("× …: time for the same appends; under 1 is faster");

  database.close();
  const rowsOf = async (lake) => Number((await lake.sql("SELECT count(*) AS n FROM t"))[0].n);
  const runs = rounds + (fast ? 0 : 1);
  for (const lake of [one, many, inFiles]) {
    if ((await rowsOf(lake)) !== runs * appends * ROWS) throw new Error("rows are missing, or there are too many");
    await lake.close();
  }
});

function makeBatch(n) {
  return Array.from({ length: ROWS }, (_, i) => {
    return { id: n * ROWS + i, user: `user-${(n * 7919 + i) % 1000}`, amount: i / 4 };
  });
}

function openDatabase(path) {
  const database = new Database(path);
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  database.exec("CREATE TABLE rows (id INTEGER, user TEXT, amount REAL)");
  return database;
}

/** A synced file in a synced folder: the least that a file for each append costs. */
function writeFile(folder, batch) {
  const file = openSync(join(folder, `${batch[0].id}.json`), "wx");
  writeSync(file, JSON.stringify(batch));
  fsyncSync(file);
  closeSync(file);
  const handle = openSync(folder, "r");
  fsyncSync(handle);
  closeSync(handle);
}
