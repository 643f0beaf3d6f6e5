/**
 * Processes that are killed (SIGKILL) again and again while they append to one lake and maintain it: 300 on a local lake,
 * 200 on one that two hosts share on a real S3. Half of them kill themselves at a step of the commit protocol; the others are
 * killed by this process, at a moment that nobody chose. The next process of the same writer tries its last jobs again.
 * `EIDER_KILLS=150` makes it short, `EIDER_SEED` chooses other moments.
 */

import { makeBucket } from "@eider/test-s3";
import { Lake, type Receipt } from "eider";
import { expect, it, onTestFinished, vi } from "vitest";
import { runChild } from "./support/child.js";
import { temporaryFolder } from "./support/folder.js";
import { realS3 } from "./support/real-s3.js";
import { s3LakeUrl } from "./support/s3-lake.js";
import { randomNumbers } from "./support/seed.js";

const KILLS = Number(process.env.EIDER_KILLS ?? 500);
/** Processes at a time. */
const WRITERS = 4;
/** Jobs of one process, if it lives: every kind of job is among them, twice. */
const JOBS = 12;
/** The parent kills after so many lines at most, which are most of what a process prints, and up to so many milliseconds. */
const LINES = 90;
const DELAY_MS = 6;
/** Jobs that one process tries again at the end. */
const RETRIED = 300;

const EVERYWHERE = [
  "lake: to be opened",
  "job: to be begun",
  "rows: being read",
  "file: to be put",
  "file: being put",
  "file: put",
  "job: acknowledged",
  "orphans: to be deleted",
  "orphans: deleted",
];
const LOCAL = [
  ...EVERYWHERE,
  "intent: to be committed",
  "intent: committed",
  "entry: to be committed",
  "entry: committed",
];
const SHARED = [...EVERYWHERE, "entry: to be put", "entry: put"];

interface Batch {
  readonly table: string;
  readonly batchId: string | { readonly source: string; readonly sequence: number };
  /** What each of its rows says. */
  readonly label: string;
  readonly rows: number;
  /** Text in each row: much of it makes the batch data files, which small ones are not worth. */
  readonly textBytes?: number;
  readonly partitionBy?: readonly string[];
}

interface Job {
  readonly number: number;
  readonly batches: readonly Batch[];
  /** As one transaction. */
  readonly together?: true;
  readonly maintain?: true;
}

const TABLES = ["plain", "parted", "other", "raced", "fed"];

const LARGE = { textBytes: 40_000 };

/** The same job whenever it is tried. */
function jobOf(writer: number, number: number): Job {
  const label = `w${writer}-${number}`;
  const own = { batchId: label, label };
  switch (number % 6) {
    case 0:
      return { number, batches: [{ ...own, table: "plain", rows: 5 }] };
    case 1:
      return { number, batches: [{ ...own, ...LARGE, table: "parted", rows: 9, partitionBy: ["part"] }] };
    case 2:
      return {
        number,
        together: true,
        batches: [
          { ...own, table: "plain", rows: 3 },
          { ...own, ...LARGE, table: "other", rows: 3 },
        ],
      };
    case 3: {
      const all = `all-${number}`; // every writer tries this one
      return { number, batches: [{ table: "raced", batchId: all, label: all, rows: 4 }] };
    }
    case 4: {
      const batchId = { source: `w${writer}`, sequence: (number - 4) / 6 }; // of its source only the last is remembered
      return { number, batches: [{ table: "fed", batchId, label, rows: 2 }] };
    }
    default:
      return { number, batches: [], maintain: true };
  }
}

function jobsOf(writer: number, first: number, count: number): Job[] {
  return Array.from({ length: count }, (_, i) => jobOf(writer, first + i));
}

type Line =
  | { readonly step: string }
  | { readonly job: number; readonly batches: readonly { readonly status: string; readonly receipt: Receipt }[] };

it("a local lake", { timeout: 1_800_000 }, async () => {
  const where = temporaryFolder();
  const loop = new KillLoop(where, () => undefined, LOCAL);
  await loop.run(Math.round(KILLS * 0.6));
  await loop.retry();
  await loop.check();
});

it("a lake of two hosts on S3", { timeout: 1_800_000 }, async () => {
  const s3 = await realS3("kill loop on a shared lake");
  if (!s3) return;
  onTestFinished(() => void vi.unstubAllEnvs());
  const where = s3LakeUrl(s3, await makeBucket(s3), "lake");
  const hosts = [temporaryFolder(), temporaryFolder()];
  const loop = new KillLoop(where, (writer) => hosts[writer % hosts.length], SHARED);
  await loop.run(Math.round(KILLS * 0.4));
  await loop.retry();
  for (const host of [...hosts, temporaryFolder()]) await loop.check(host);
});

/** What one writer was told so far. */
interface Writer {
  /** Its next job. */
  next: number;
  /** The job that nobody was told of, if one was killed in it. */
  untold: number | undefined;
}

class KillLoop {
  readonly #where: string;
  readonly #cacheDir: (writer: number) => string | undefined;
  readonly #steps: readonly string[];
  readonly #random = randomNumbers();
  readonly #writers: Writer[] = Array.from({ length: WRITERS }, () => ({ next: 0, untold: undefined }));
  /** First answer by table and batch id: every later one has to say the same. */
  readonly #receipts = new Map<string, string>();
  readonly #committed = new Set<string>();
  /** Kills by the last step that was announced. */
  readonly #hits = new Map<string, { self: number; parent: number }>();
  /** Rows by table and label, of all jobs that were begun. */
  readonly #expected = new Map<string, number>();
  #kills = 0;
  #children = 0;
  /** Jobs that were committed by a process that was killed before it could say so. */
  #committedUntold = 0;

  constructor(where: string, cacheDir: (writer: number) => string | undefined, steps: readonly string[]) {
    this.#where = where;
    this.#cacheDir = cacheDir;
    this.#steps = steps;
  }

  async run(kills: number): Promise<void> {
    await Promise.all(
      this.#writers.map(async (_, writer) => {
        while (this.#kills < kills) await this.#runChild(writer);
      }),
    );
    const table = this.#steps.map((step) => {
      const { self, parent } = this.#hits.get(step) ?? { self: 0, parent: 0 };
      return `  ${step.padEnd(24)} ${String(self).padStart(4)} by itself ${String(parent).padStart(4)} by its parent`;
    });
    const jobs = this.#writers.reduce((sum, { next }) => sum + next, 0);
    const told = `${this.#kills} kills of ${this.#children} processes in ${jobs} jobs`;
    console.log(`${told}; committed, and killed before it was told: ${this.#committedUntold}\n${table.join("\n")}`);
    expect(this.#steps.filter((step) => !this.#hits.has(step))).toEqual([]);
    expect([...this.#hits.keys()].filter((step) => !this.#steps.includes(step))).toEqual([]);
  }

  /** One process of a writer, until it is killed or has no jobs left. */
  async #runChild(writer: number): Promise<void> {
    const state = this.#writers[writer]!;
    const number = this.#children++;
    const self = number % 2 === 0;
    // There are not always orphans: those steps get two turns.
    const turns = [...this.#steps, ...this.#steps.filter((step) => step.startsWith("orphans"))];
    const step = turns[(number >> 1) % turns.length]!;
    // Some steps come once in a process, others with a few of its jobs.
    const times = /^(lake|orphans)/.test(step) ? 1 : /^(file|intent)/.test(step) ? 3 : JOBS / 2;
    const nth = 1 + Math.floor(this.#random() * times);
    const moment = { lines: Math.floor(this.#random() * LINES), delayMs: this.#random() * DELAY_MS };
    // The last that was told is tried again too: its answer may not change.
    const argument = {
      where: this.#where,
      cacheDir: this.#cacheDir(writer),
      jobs: jobsOf(writer, Math.max(0, state.next - 1), JOBS),
      ...(self && { die: { step, nth } }),
    };
    let seen = 0;
    let timer: NodeJS.Timeout | undefined;
    const { code, signal, lines, stderr } = await runChild("kill-loop", argument, {
      flags: ["--no-warnings"],
      onLine: (_, child) => {
        if (!self && seen++ === moment.lines) timer = setTimeout(() => child.kill("SIGKILL"), moment.delayMs);
      },
    });
    clearTimeout(timer);
    expect(stderr).toBe("");
    for (const line of lines as Line[]) if ("job" in line) this.#note(state, line);
    if (signal === null) {
      expect(code).toBe(0);
      return;
    }
    expect(signal).toBe("SIGKILL");
    this.#kills++;
    state.untold = state.next;
    const last = (lines as Line[]).findLast((line) => "step" in line)!.step;
    const hits = this.#hits.get(last) ?? { self: 0, parent: 0 };
    hits[self ? "self" : "parent"]++;
    this.#hits.set(last, hits);
  }

  #note(state: Writer, { job, batches }: Extract<Line, { job: number }>): void {
    for (const { status, receipt } of batches) {
      const key = keyOf(receipt);
      const before = this.#receipts.get(key);
      // Of those that race for a batch, one is told that it committed it, perhaps after others heard that it is there.
      if (status === "committed") {
        expect(this.#committed).not.toContain(key);
        this.#committed.add(key);
      }
      if (before === undefined) {
        this.#receipts.set(key, JSON.stringify(receipt));
        if (job === state.untold && status === "duplicate" && receipt.table !== "raced") this.#committedUntold++;
      } else {
        expect(receipt).toEqual(JSON.parse(before));
        if (receipt.table !== "raced") expect(status).toBe("duplicate");
      }
    }
    state.next = Math.max(state.next, job + 1);
  }

  /** Every writer tries all its jobs again, from the first on and with the one that it was killed in. */
  async retry(): Promise<void> {
    for (const [writer, state] of this.#writers.entries()) {
      const jobs = jobsOf(writer, 0, state.next + 1);
      for (const { table, label, rows } of jobs.flatMap(({ batches }) => batches)) {
        this.#expected.set(`${table} ${label}`, rows);
      }
      for (let i = 0; i < jobs.length; i += RETRIED) {
        const argument = { where: this.#where, cacheDir: this.#cacheDir(writer), jobs: jobs.slice(i, i + RETRIED) };
        const { code, lines, stderr } = await runChild("kill-loop", argument, { flags: ["--no-warnings"] });
        expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
        for (const line of lines as Line[]) if ("job" in line) this.#note(state, line);
      }
    }
  }

  /** The lake has each batch once, says of each what its writer was told, and maintenance removes the rest. */
  async check(cacheDir?: string): Promise<void> {
    await using lake = await Lake.open(this.#where, cacheDir === undefined ? {} : { cacheDir });
    const found = new Map<string, number>();
    for (const table of TABLES) {
      const rows = await lake
        .with({ values: "json" })
        .sql<{ batch: string; n: number; i: number }>(
          `SELECT batch, count(*) AS n, sum(i) AS i FROM ${table} GROUP BY batch`,
        );
      for (const { batch, n, i } of rows) {
        found.set(`${table} ${batch}`, n);
        expect(i).toBe((n * (n - 1)) / 2); // 0 + 1 + … + (n − 1)
      }
      for (const receipt of await lake.table(table).batches({ limit: 1e6 })) {
        expect(JSON.stringify(receipt)).toBe(this.#receipts.get(keyOf(receipt)));
      }
    }
    expect(found).toEqual(this.#expected);
    const { ok, findings } = await lake.verify();
    expect({ ok, broken: findings.filter(({ kind }) => kind !== "stray") }).toEqual({ ok: true, broken: [] });
    // The orphans of the last writers are as old as the newest snapshot: they may go when there is a newer one.
    await lake.table("last").append([{ batch: cacheDir ?? "", i: 0 }]);
    const { deleted } = await lake.maintain({ graceMs: 0 });
    console.log(`${found.size} batches are there, once each; orphans that were left: ${deleted.length}`);
    expect(await lake.verify()).toMatchObject({ ok: true, findings: [] });
  }
}

function keyOf({ table, batchId }: Receipt): string {
  return `${table} ${batchId}`;
}
