/**
 * Power cuts, imitated: while a lake is written, everything that is asked of the disk is recorded; then, for moments of that record,
 * the folder is made anew as a disk may leave it: with all that was synced by then, and of the rest whatever chance
 * leaves (nothing, everything, or each name and each sector of 512 bytes by itself, some of them torn). The lake that is found there
 * must open, have each batch that was acknowledged before, and none by half.
 *
 * Real are the store, SQLite's own code (compiled to WebAssembly, so that it comes to the disk by calls that can be watched)
 * and the native SQLite that opens what is left. Not imitated: SQLite's shared memory and locks between processes
 * (the log is of one connection), its layer for unix (what that adds, a sync of the folder with the first sync of a log, is
 * added here), disks that say "synced" before it is true, and file systems that keep less than POSIX asks for. Processes
 * that are killed before the power fails are imitated too: the next one builds on what the dead one has left unsynced.
 *
 * Faults that are planted (no sync at a commit, none of files, none of folders) have to be found by the same check.
 * `EIDER_POWER_CUTS=1000` makes it long, `EIDER_SEED` chooses other moments.
 */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { type OpenDriver, type Receipt, SqliteCatalog } from "@eider/catalog";
import { FileStore } from "@eider/storage";
import { Lake } from "eider";
import { describe, expect, it } from "vitest";
import type { Luck } from "./power-loss/disk-state.js";
import { RecordedDisk, type RecordOptions } from "./power-loss/recorded-disk.js";
import { wasmSqlite } from "./power-loss/wasm-sqlite.js";
import { temporaryFolder } from "./support/folder.js";
import { randomNumbers, SEED } from "./support/seed.js";

/** Per test: moments at which the power fails. */
const CUTS = Number(process.env.EIDER_POWER_CUTS ?? 100);
/** Processes that write one after the other; all but the last are killed. */
const PROCESSES = 4;
/** Jobs of one process, if it lives. */
const JOBS = 12;
/** A process is killed after so many changes of the disk at most. */
const LIFE_CHANGES = 400;
/** Every so many cuts the jobs are tried again on what is left, and SQL reads it. */
const THOROUGH = 15;

interface Setting extends RecordOptions {
  readonly driver?: OpenDriver;
  readonly durableFiles?: boolean;
}

/** What a writer was told when so many changes had been made. */
interface Acknowledged {
  readonly at: number;
  readonly job: number;
  readonly receipt: Receipt;
}

describe("after a power cut every acknowledged batch is there, and none by half", () => {
  it("while a lake is made and written", { timeout: 300_000 }, async () => {
    const trial = new Trial(temporaryFolder(), SEED);
    await trial.write({});
    const found = await trial.problems(CUTS);
    console.log(`${CUTS} power cuts during ${trial.moments} changes, ${trial.acknowledged} batches: none lost`);
    expect(found).toEqual([]);
  });

  it("while a lake is written that went through power cuts", { timeout: 300_000 }, async () => {
    let trial = new Trial(temporaryFolder(), SEED + 1);
    for (let life = 0; life < 4; life++) {
      await trial.write({});
      expect(await trial.problems(Math.round(CUTS / 5))).toEqual([]);
      trial = trial.after(temporaryFolder());
    }
    expect(trial.acknowledged).toBeGreaterThan(0);
  });
});

describe("planted: found by the same check", () => {
  const FAULTS: readonly [string, Setting][] = [
    ["SQLite syncs nothing", { driver: wasmSqlite((sql) => sql.replace("synchronous = FULL", "synchronous = OFF")) }],
    [
      "a commit is not synced",
      { driver: wasmSqlite((sql) => sql.replace("synchronous = FULL", "synchronous = NORMAL")) },
    ],
    ["the store syncs nothing", { durableFiles: false }],
    ["data files are not synced", { ignoreSync: (path, isFolder) => !isFolder && path.includes("tmp") }],
    ["folders are not synced", { ignoreSync: (_, isFolder) => isFolder }],
    ["folders of data files are not synced", { ignoreSync: (path, isFolder) => isFolder && path.includes("data") }],
  ];
  it.each(FAULTS)("%s", { timeout: 300_000 }, async (_, setting) => {
    const trial = new Trial(temporaryFolder(), SEED);
    await trial.write(setting);
    expect(await trial.problems(CUTS, 1)).not.toEqual([]);
  });
});

/** One lake on one disk, from its first process to the power cut. */
class Trial {
  readonly #folder: string;
  readonly #seed: number;
  readonly #random: () => number;
  readonly #told: Acknowledged[];
  #nextJob: number;
  #disk: RecordedDisk | undefined;

  constructor(folder: string, seed: number, told: Acknowledged[] = []) {
    this.#folder = folder;
    this.#seed = seed;
    this.#random = randomNumbers(seed);
    this.#told = told;
    this.#nextJob = Math.max(-1, ...told.map(({ job }) => job)) + 1;
  }

  get moments(): number {
    return this.#disk!.now;
  }

  get acknowledged(): number {
    return this.#told.length;
  }

  /** Several processes write, one after the other. */
  async write(setting: Setting): Promise<void> {
    using disk = new RecordedDisk(this.#folder, setting);
    this.#disk = disk;
    for (let process = 1; process <= PROCESSES; process++) {
      const changes = process === PROCESSES ? undefined : 20 + Math.floor(this.#random() * LIFE_CHANGES);
      await disk.run(() => this.#process(disk, setting), changes);
    }
  }

  /** What is wrong after power cuts at so many moments. @param enough so many findings are enough */
  async problems(cuts: number, enough = Number.POSITIVE_INFINITY): Promise<string[]> {
    const found: string[] = [];
    const moments = Array.from({ length: cuts - 1 }, () => Math.floor(this.#random() * this.moments));
    let cut = 0;
    for (const state of this.#disk!.statesAt([...moments.sort((a, b) => a - b), this.moments])) {
      const moment = moments[cut] ?? this.moments;
      const folder = temporaryFolder();
      state.leaveTo(folder, this.#luck());
      for (const problem of await this.#check(folder, moment, cut++ % THOROUGH === 0)) {
        found.push(`seed ${this.#seed}, power cut at change ${moment}: ${problem}`);
      }
      rmSync(folder, { recursive: true });
      if (found.length >= enough) return found;
    }
    return found;
  }

  /** The same lake on what a power cut has left, for other processes to write to. */
  after(folder: string): Trial {
    const moment = Math.floor(this.#random() * this.moments);
    for (const state of this.#disk!.statesAt([moment])) state.leaveTo(folder, this.#luck());
    const told = this.#told.filter(({ at }) => at <= moment).map((each) => ({ ...each, at: 0 }));
    return new Trial(folder, this.#seed + 1, told);
  }

  async #process(disk: RecordedDisk, { driver = wasmSqlite(), durableFiles = true }: Setting): Promise<void> {
    const path = join(this.#folder, "_eider", "catalog.sqlite");
    const catalog = await SqliteCatalog.open({ path, driver });
    const store = new FileStore(this.#folder, { durable: durableFiles });
    await using lake = await Lake.open({ store, catalog });
    const from = Math.max(0, this.#nextJob - 1); // the last that was told is tried again too
    for (let job = from; job < from + JOBS; job++) {
      for (const receipt of await runJob(lake, job)) this.#told.push({ at: disk.now, job, receipt });
      this.#nextJob = job + 1;
    }
  }

  #luck(): Luck {
    const share = [0, 0.1, 0.5, 0.9, 1][Math.floor(this.#random() * 5)]!;
    const random = this.#random;
    return {
      survives: () => random() < share,
      torn(bytes) {
        if (share === 0 || random() > 0.2) return undefined;
        return Uint8Array.from({ length: bytes }, () => Math.floor(random() * 256));
      },
    };
  }

  async #check(folder: string, moment: number, thorough: boolean): Promise<string[]> {
    const problems: string[] = [];
    try {
      await using lake = await Lake.open(folder);
      const known = async (table: string, batchId: string): Promise<Receipt | undefined> =>
        (await lake.tables()).some(({ name }) => name === table) ? lake.table(table).receipt(batchId) : undefined;
      for (const { at, receipt } of this.#told) {
        if (at > moment) continue;
        const found = await known(receipt.table, receipt.batchId);
        if (JSON.stringify(found) !== JSON.stringify(receipt)) {
          problems.push(
            `${receipt.table} ${receipt.batchId} was acknowledged at ${at} and is ${JSON.stringify(found)}`,
          );
        }
      }
      for (const job of Array.from({ length: this.#nextJob + 1 }, (_, i) => i)) {
        const { together, batches } = jobOf(job);
        if (!together) continue;
        const receipts = await Promise.all(batches.map(({ table, batchId }) => known(table, batchId)));
        if (new Set(receipts.map((receipt) => receipt?.snapshot)).size > 1)
          problems.push(`half of job ${job} is there`);
      }
      const { ok, findings } = await lake.verify();
      if (!ok) problems.push(JSON.stringify(findings.filter(({ kind }) => kind !== "stray")));
      if (thorough && problems.length === 0) problems.push(...(await this.#goOn(lake, moment)));
    } catch (error) {
      problems.push(String(error));
    }
    return problems;
  }

  /** All jobs are tried again: then each batch is there once. */
  async #goOn(lake: Lake, moment: number): Promise<string[]> {
    const expected = new Map<string, number>();
    for (let job = 0; job <= this.#nextJob; job++) {
      for (const { table, batchId, rows } of jobOf(job).batches) expected.set(`${table} ${batchId}`, rows);
      const receipts = await runJob(lake, job);
      const told = this.#told.filter((each) => each.job === job && each.at <= moment);
      if (told.length > 0) expect(told.map(({ receipt }) => receipt)).toEqual(expect.arrayContaining([...receipts]));
    }
    const found = new Map<string, number>();
    for (const { name } of await lake.tables()) {
      const rows = await lake
        .with({ values: "json" })
        .sql<{ batch: string; n: number; i: number }>(
          `SELECT batch, count(*) AS n, sum(i) AS i FROM ${name} GROUP BY batch`,
        );
      for (const { batch, n, i } of rows) found.set(`${name} ${batch}`, i === (n * (n - 1)) / 2 ? n : Number.NaN);
    }
    expect(found).toEqual(expected);
    return (await lake.verify()).ok ? [] : ["broken after the jobs were tried again"];
  }
}

interface Batch {
  readonly table: string;
  readonly batchId: string;
  readonly rows: number;
  /** Text in each row: much of it makes the batch data files, which small ones are not worth. */
  readonly textBytes?: number;
}

/** The same whenever it is tried. */
function jobOf(job: number): {
  readonly together?: true;
  readonly maintain?: true;
  readonly batches: readonly Batch[];
} {
  const batchId = `b${job}`;
  switch (job % 5) {
    case 0:
      return { batches: [{ table: "plain", batchId, rows: 10 }] };
    case 1:
      return { batches: [{ table: "parted", batchId, rows: 9, textBytes: 10_000 }] };
    case 2:
      return { together: true, batches: ["plain", "other"].map((table) => ({ table, batchId, rows: 3 })) };
    case 3: // at once: they share a sync
      return { batches: [0, 1, 2, 3].map((i) => ({ table: "plain", batchId: `${batchId}-${i}`, rows: 2 })) };
    default:
      return { maintain: true, batches: [{ table: "other", batchId, rows: 2000 }] };
  }
}

async function runJob(lake: Lake, job: number): Promise<readonly Receipt[]> {
  const { together, maintain, batches } = jobOf(job);
  if (maintain) await lake.maintain({ graceMs: 0, fold: "all" });
  if (together) {
    const { receipts } = await lake.transaction(async (tx) => {
      for (const batch of batches) await tx.table(batch.table).append(rowsOf(batch), { batchId: batch.batchId });
    });
    return receipts;
  }
  return Promise.all(
    batches.map(async (batch) => {
      const table = lake.table(batch.table, batch.table === "parted" ? { partitionBy: ["part"] } : {});
      return (await table.append(rowsOf(batch), { batchId: batch.batchId })).receipt;
    }),
  );
}

function rowsOf({ batchId, rows, textBytes = 0 }: Batch): object[] {
  return Array.from({ length: rows }, (_, i) => ({
    batch: batchId,
    i,
    part: `p${i % 3}`,
    text: `row ${i} of ${batchId}`.padEnd(textBytes, "…"),
  }));
}
