// Does the jobs of one writer one after the other, announcing each step before it is taken, until it is killed: by its
// parent, or by itself at the step that it is told. Prints what each job was answered.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { openSqlite, SqliteCatalog } from "@eider/catalog";
import { FaultStore, openStore } from "@eider/storage";
import { Lake } from "eider";

const { where, cacheDir, jobs, die } = JSON.parse(process.argv[2]);
const print = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

/** What was announced last is where a kill hits. */
let steps = 0;
function step(name) {
  print({ step: name });
  if (die?.step === name && ++steps === die.nth) process.kill(process.pid, "SIGKILL");
}

function kindOf(key) {
  if (key.endsWith(".parquet")) return "file";
  return /^_eider\/log\/\d+$/.test(key) ? "entry" : undefined;
}

const hooks = {
  before({ kind, keys: [key] }) {
    if (kind === "put" && kindOf(key)) step(`${kindOf(key)}: to be put`);
    if (kind === "delete" && kindOf(key)) step("orphans: to be deleted");
  },
  during({ keys: [key] }) {
    if (kindOf(key) === "file") step("file: being put");
  },
  after({ kind, keys: [key] }) {
    if (kind === "put" && kindOf(key)) step(`${kindOf(key)}: put`);
    if (kind === "delete" && kindOf(key)) step("orphans: deleted");
  },
};

/** The binding with a step around each COMMIT, named by what is committed. */
function openDriver(path, options) {
  const driver = openSqlite(path, options);
  let what;
  return {
    ...driver,
    run(sql, ...values) {
      const table = /^\s*INSERT INTO (intents|entries)\b/.exec(sql)?.[1];
      if (table) what = table === "entries" ? "entry" : "intent";
      return driver.run(sql, ...values);
    },
    exec(sql) {
      if (sql === "BEGIN IMMEDIATE") what = undefined;
      const committed = sql === "COMMIT" ? what : undefined;
      if (committed) step(`${committed}: to be committed`);
      driver.exec(sql);
      if (committed) step(`${committed}: committed`);
      if (sql === "COMMIT") what = undefined;
    },
  };
}

step("lake: to be opened");
const store = new FaultStore(await openStore(where), hooks);
const lake = await Lake.open(
  where.startsWith("s3:")
    ? { store }
    : {
        store,
        catalog: await SqliteCatalog.open({ path: join(where, "_eider", "catalog.sqlite"), driver: openDriver }),
      },
  // Four of these rows stay in their entry, five make a file.
  { cacheDir },
);
for (const job of jobs) {
  step("job: to be begun");
  print({ job: job.number, batches: await run(job) });
  step("job: acknowledged");
}
await lake.close();

/** Does a job, and says of each of its batches `{ status, receipt }`. */
async function run({ batches, together, maintain }) {
  // Whatever is older than now and not committed may go: who staged it has to stage it again.
  if (maintain) await lake.maintain({ graceMs: 0, fold: "all" });
  if (together) {
    const { status, receipts } = await lake.transaction(async (tx) => {
      for (const batch of batches) await tx.table(batch.table).append(rowsOf(batch), { batchId: batch.batchId });
    });
    return receipts.map((receipt) => ({ status, receipt }));
  }
  const answers = [];
  for (const batch of batches) {
    const table = lake.table(batch.table, batch.partitionBy ? { partitionBy: batch.partitionBy } : {});
    const { status, receipt } = await table.append(rowsOf(batch), { batchId: batch.batchId });
    answers.push({ status, receipt });
  }
  return answers;
}

/** `batch` tells what each row came with, `i` which of its rows it is. */
async function* rowsOf({ label, rows, textBytes = 0 }) {
  for (let i = 0; i < rows; i++) {
    if (i === 1) step("rows: being read");
    yield { batch: label, i, part: `p${i % 3}`, text: `row ${i} of ${label}`.padEnd(textBytes, "…") };
  }
}
