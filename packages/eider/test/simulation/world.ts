/** A lake under simulation: its store, its hosts and their disks, the processes, and what they do. */

import { SqliteCatalog } from "@eider/catalog";
import { CatalogError, NotFoundError, StoreError } from "@eider/core";
import { Lake } from "../../src/lake.js";
import type { Choices } from "./choices.js";
import type { Coverage } from "./coverage.js";
import type { Event } from "./history.js";
import { readSnapshot } from "./reader.js";
import { Scheduler } from "./scheduler.js";
import { SimDisk } from "./sim-disk.js";
import { type Odds, SimProcess } from "./sim-process.js";
import { SimBucket, SimStore } from "./sim-store.js";
import { rowsOf, type Work, type Workload } from "./workload.js";

/** Simulated epoch. */
const EPOCH = Date.UTC(2030, 0, 1);
/** Tries of one piece of work that fails and may be tried again. */
const TRIES = 3;

export interface WorldOptions {
  readonly choices: Choices;
  readonly coverage: Coverage;
  readonly odds: Odds;
  readonly workload: Workload;
  readonly switchOneIn: number;
  readonly trace: boolean;
  /** Existing empty files, one per host: see `SimDisk`. */
  readonly diskPaths: readonly string[];
}

export interface Opened {
  readonly lake: Lake;
  readonly catalog: SqliteCatalog;
  readonly store: SimStore;
}

export class World {
  readonly scheduler: Scheduler;
  readonly bucket: SimBucket;
  readonly disk: SimDisk;
  readonly history: Event[] = [];
  readonly #options: WorldOptions;
  #processes = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.scheduler = new Scheduler(options.choices, { switchOneIn: options.switchOneIn, trace: options.trace });
    this.bucket = new SimBucket(() => EPOCH + this.scheduler.now);
    this.disk = new SimDisk(options.diskPaths[0]!);
  }

  /** Runs the workload to its end; then nothing is under way any more. */
  async run(): Promise<void> {
    const actors = this.#options.workload.map((work, i) => this.#actor(i, work));
    await this.scheduler.run(Promise.all(actors));
    this.scheduler.settleLate();
  }

  /** Looks at the lake as a new process does, in peace. */
  async inspect<T>(look: (opened: Opened) => Promise<T>): Promise<T> {
    const process = this.#newProcess("inspector", { faultOneIn: 0, crashOneIn: 0 }, () => {});
    process.operation = "inspect";
    const work = async (): Promise<T> => {
      const opened = await this.#open(process);
      const result = await look(opened);
      await opened.lake.close();
      process.finished = true;
      return result;
    };
    return this.scheduler.run(work());
  }

  [Symbol.dispose](): void {
    this.disk.close();
  }

  /** One process after the other, each going on where the last was killed. */
  async #actor(number: number, works: readonly Work[]): Promise<void> {
    let opened: Opened | undefined;
    let process: SimProcess | undefined;
    const next = (): SimProcess => {
      opened = undefined;
      return this.#newProcess(`p${number}`, this.#options.odds, () => this.#afterCrash());
    };
    for (const [index, work] of works.entries()) {
      for (let tries = 1; ; tries++) {
        if (!process?.alive) process = next();
        const tag = `${number}.${index}.${tries}`;
        const event: Event = { tag, process: process.name, work, started: this.scheduler.moment, outcome: "unknown" };
        this.history.push(event);
        const running = process;
        running.operation = work.kind;
        const doing = (async () => {
          opened ??= await this.#open(running);
          await this.#do(opened, running, event);
        })().catch((error: unknown) => {
          if (!running.alive) return; // nobody is told
          event.error = error;
          event.outcome = error instanceof CatalogError && error.code === "commit_unknown" ? "unknown" : "fail";
        });
        await Promise.race([doing, running.died]);
        if (!running.alive) event.outcome = "unknown";
        event.ended = this.scheduler.moment;
        this.scheduler.note(`  ${tag} ${work.kind}: ${event.outcome}${event.error ? ` ${String(event.error)}` : ""}`);
        const again = !running.alive || (event.error !== undefined && isRetryable(event.error));
        if (!again || tries === TRIES) break;
      }
    }
    if (!process) return;
    if (process.alive && opened) await Promise.race([opened.lake.close(), process.died]);
    process.finished = true;
  }

  async #do(opened: Opened, process: SimProcess, event: Event): Promise<void> {
    const { work, tag } = event;
    const { lake } = opened;
    switch (work.kind) {
      case "append": {
        const options = { batchId: `b${work.batch}`, meta: { tag } };
        event.result = await lake.table(work.table).append(rowsOf(work), options);
        break;
      }
      case "query":
        event.seen = await readSnapshot(opened, await opened.catalog.head().then(({ snapshot }) => snapshot));
        break;
      case "maintain":
        event.deleted = (await lake.maintain({ graceMs: 0 })).deleted;
        break;
      case "drop":
        await lake
          .table(work.table)
          .drop()
          .catch((error: unknown) => {
            if (!(error instanceof NotFoundError)) throw error;
          });
        break;
    }
    if (process.alive) event.outcome = "ok";
  }

  /** The host may have lost power, which ends nobody else here: processes of one host that live on have lost nothing. */
  #afterCrash(): void {
    const { choices } = this.#options;
    const lost = choices.rarely("fault", 3, 1) === 0 ? 0 : choices.pick("fault", this.disk.atRisk + 1);
    this.disk.recover(lost, choices.rarely("fault", 3, 1) === 1);
  }

  #newProcess(name: string, odds: Odds, onCrash: () => void): SimProcess {
    const seed = ++this.#processes;
    const { coverage } = this.#options;
    return new SimProcess({ name: `${name}#${seed}`, scheduler: this.scheduler, coverage, odds, seed, onCrash });
  }

  async #open(process: SimProcess): Promise<Opened> {
    const clock = (): number => EPOCH + this.scheduler.now;
    const { random } = process;
    const timer = {
      now: () => this.scheduler.now,
      sleep: (milliseconds: number) => process.stop("sleep", milliseconds),
    };
    const own = await SqliteCatalog.open({
      path: this.disk.path,
      driver: this.disk.opener(process),
      clock,
      random,
      timer,
    });
    const catalog = stopping(own, process);
    const store = new SimStore(this.bucket, process);
    const lake = await Lake.open({ store, catalog }, { clock, random, threads: 1 });
    return { lake, catalog, store };
  }
}

/** Calls that change the file: their answer may come late, or never. */
const WRITES: ReadonlySet<unknown> = new Set(["commit", "begin", "abandon"]);

/** A catalog each of whose calls is a step of the process. */
function stopping(catalog: SqliteCatalog, process: SimProcess): SqliteCatalog {
  return new Proxy(catalog, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function" || name === Symbol.asyncDispose) {
        return typeof member === "function" ? member.bind(target) : member;
      }
      const step = `catalog ${String(name)}`;
      return async (...args: unknown[]): Promise<unknown> => {
        await process.stop(step);
        process.fault(step, []);
        const result: unknown = await member.apply(target, args);
        if (WRITES.has(name)) await process.stop(`${step}: answer`);
        return result;
      };
    },
  });
}

function isRetryable(error: unknown): boolean {
  return (error instanceof StoreError || error instanceof CatalogError) && error.retryable;
}
