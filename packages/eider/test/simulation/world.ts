/** A lake under simulation: its store, its hosts and their disks, the processes, and what they do. */

import { dirname } from "node:path";
import { type Catalog, SqliteCatalog } from "@eider/catalog";
import { CatalogError, EiderError, StoreError } from "@eider/core";
import { uuidv7 } from "../../src/ids.js";
import { Lake } from "../../src/lake.js";
import { type CheckpointLimits, loadCheckpoint } from "../../src/shared/checkpoints.js";
import { findSharedLake } from "../../src/shared/open.js";
import { SharedCatalog } from "../../src/shared/shared-catalog.js";
import type { Choices } from "./choices.js";
import type { Coverage } from "./coverage.js";
import type { Event } from "./history.js";
import { Scheduler } from "./scheduler.js";
import { simCopies } from "./sim-copies.js";
import { SimDisk } from "./sim-disk.js";
import { type Odds, SimProcess } from "./sim-process.js";
import { SimBucket, SimStore, type Version } from "./sim-store.js";
import { type Opened, perform } from "./tasks.js";
import { isMove, type Work, type Workload } from "./workload.js";

/** Simulated epoch. */
const EPOCH = Date.UTC(2030, 0, 1);
/** Tiny, so that a few entries meet all of them. */
const LIMITS: CheckpointLimits = { isDue: ({ entries }) => entries >= 2, replayEntries: 3, stubBytes: 0 };
/** Tries of one piece of work that fails and may be tried again. */
const TRIES = 3;

/** `local`: one host, whose SQLite file is the catalog. `shared`: two, with a log in the store. */
export type Mode = "local" | "shared";

export interface WorldOptions {
  readonly mode: Mode;
  readonly choices: Choices;
  readonly coverage: Coverage;
  readonly odds: Odds;
  readonly workload: Workload;
  readonly switchOneIn: number;
  readonly trace: boolean;
  /** Existing empty files, one per host and one more: see `SimDisk`. */
  readonly diskPaths: readonly string[];
  /** Milliseconds for which queries of a shared lake do without a look at the log. */
  readonly stalenessMs: number;
  /** Milliseconds that the clocks of the hosts are ahead. */
  readonly skewMs: readonly number[];
  /** Whether the lake is there already: else the first processes race to make it. */
  readonly made: boolean;
  /** Milliseconds that a commit whose fate is unknown is pursued: short, so that its end is seen too. */
  readonly patienceMs: number;
  /** What each host runs; one after the other, the last for all that follow. */
  readonly versions: readonly Version[];
  /** See `LakeOptions`: 0, and every append makes a file. */
  readonly inlineBytes: number;
  /** Whether the store is set back to a backup, once, while they run. */
  readonly restores: boolean;
}

interface Host {
  readonly disk: SimDisk;
  readonly skewMs: number;
  readonly version: Version;
  readonly processes: SimProcess[];
}

/** Where processes follow each other. */
interface Place {
  readonly name: string;
  readonly host: Host;
  running: { readonly process: SimProcess; readonly opened: Promise<Opened> } | undefined;
}

export class World {
  readonly scheduler: Scheduler;
  readonly bucket: SimBucket;
  readonly hosts: readonly Host[];
  /** Other places, to which the lake was copied or moved. */
  readonly places = new Map<string, SimBucket>();
  readonly history: Event[] = [];
  readonly #options: WorldOptions;
  /** When the store was set back to a backup, and to how many entries. */
  restored: { readonly moment: number; readonly entries: number } | undefined;
  /** Of a host that has never seen the lake. */
  readonly #spare: Host;
  /** What was in the tables of the hosts that were looked at. */
  readonly #inspected = new Set<string>();
  #processes = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.scheduler = new Scheduler(options.choices, { switchOneIn: options.switchOneIn, trace: options.trace });
    this.bucket = new SimBucket(() => EPOCH + this.scheduler.now);
    const [spare = "", ...paths] = options.diskPaths;
    const host = (path: string, i: number): Host => ({
      disk: new SimDisk(path),
      skewMs: options.skewMs[i] ?? 0,
      version: options.versions[i] ?? "this",
      processes: [],
    });
    this.hosts = paths.slice(0, options.mode === "local" ? 1 : 2).map(host);
    this.#spare = host(spare, 0);
    if (options.mode === "shared" && options.made) {
      const file = JSON.stringify({ format: 1, lake: "lake", mode: "shared" });
      this.bucket.put("_eider/lake.json", Buffer.from(file), true);
    }
  }

  get stalenessMs(): number {
    return this.#options.stalenessMs;
  }

  /** Whether some hosts are too old to read what others write. */
  get mixed(): boolean {
    return this.#options.versions.includes("newer");
  }

  get mode(): Mode {
    return this.#options.mode;
  }

  /** For the report of what was hit. */
  note(what: string, how: string): void {
    this.#options.coverage.hit("world", what, how);
  }

  /** Runs the workload to its end; then nothing is under way any more. */
  async run(): Promise<void> {
    const actors = this.#options.workload.map((work, i) => this.#actor(i, work));
    if (this.#options.restores) actors.push(this.#restore());
    await this.scheduler.run(Promise.all(actors));
    this.scheduler.settleLate();
  }

  /** Somebody takes a backup of the store, and later goes back to it; nobody tells the processes. */
  async #restore(): Promise<void> {
    const actor = { name: "operator", alive: true, finished: false };
    this.scheduler.add(actor);
    const pause = async (): Promise<void> => {
      for (let n = this.#options.choices.pick("work", 40); n >= 0; n--) await this.scheduler.stop(actor, "waits");
    };
    await pause();
    const restore = this.bucket.backup();
    this.scheduler.note("  the store is backed up");
    await pause();
    restore();
    this.restored = { moment: this.scheduler.moment, entries: this.bucket.entries.size };
    this.scheduler.note("  the store is restored");
    actor.finished = true;
  }

  /**
   * Looks at the lake as a new process of each host does, in peace; on a shared lake also as a new host. Where versions are
   * mixed, all hosts have been updated by then. All that a host answers comes from its tables: of several with the same ones, which
   * they should be, one is looked at.
   */
  async inspect(look: (opened: Opened) => Promise<void>): Promise<void> {
    const hosts = this.mode === "local" ? this.hosts : [...this.hosts, this.#spare];
    for (const host of hosts) await this.#inspectAt(host, look);
    // A checkpoint that is damaged is one of two.
    const newest = this.bucket.keys("_eider/checkpoint/").at(-1);
    if (newest === undefined) return;
    this.bucket.damage(newest);
    this.#spare.disk.wipe();
    await this.#inspectAt(this.#spare, look);
  }

  /** Looks at what another place has by now, as a new host does. */
  async inspectPlace(name: string, look: (opened: Opened, place: SimBucket) => Promise<void>): Promise<void> {
    const place = this.#placeOf(name);
    this.#spare.disk.wipe();
    await this.#inspectAt(this.#spare, (opened) => look(opened, place), place);
  }

  /** Does something in peace, as a new process of the first host. */
  async finish(work: (opened: Opened) => Promise<void>): Promise<void> {
    await this.#alone(this.hosts[0]!, undefined, work);
  }

  async #inspectAt(host: Host, look: (opened: Opened) => Promise<void>, place?: SimBucket): Promise<void> {
    await this.#alone(host, place, async (opened) => {
      if (this.mode === "local" || place) return look(opened);
      await opened.catalog.head(); // with which it catches up
      const { content } = host.disk;
      if (!this.#inspected.has(content)) await look(opened);
      this.#inspected.add(content);
    });
  }

  async #alone(host: Host, place: SimBucket | undefined, work: (opened: Opened) => Promise<void>): Promise<void> {
    host.disk.heal();
    const process = this.#newProcess("inspector", host, { faultOneIn: 0, crashOneIn: 0 }, true);
    process.operation = "inspect";
    const run = async (): Promise<void> => {
      const opened = await this.#open(process, this.mixed ? { ...host, version: "newer" } : host, place);
      await work(opened);
      await opened.lake.close();
      process.finished = true;
    };
    await this.scheduler.run(run());
  }

  [Symbol.dispose](): void {
    for (const { disk } of [...this.hosts, this.#spare]) disk.close();
  }

  /** What one place of a host is asked for, by one process after the other: each goes on where the last was killed. */
  async #actor(number: number, work: Workload[number]): Promise<void> {
    const place: Place = { name: `p${number}`, host: this.hosts[number % this.hosts.length]!, running: undefined };
    for (const [index, group] of work.entries()) {
      // Copies read and write real files, for which the scheduler can wait only where nothing else of the process goes on.
      if (group.some(isMove)) await this.#end(place);
      await Promise.all(
        group.map(async (one, i) => {
          for (let n = 0; n < (one.after ?? 0); n++) {
            if (place.running?.process.alive)
              await Promise.race([place.running.process.stop("pause"), place.running.process.died]);
          }
          await this.#persist(place, one, `${number}.${index}${"abc"[i]}`);
        }),
      );
      if (group.some(isMove)) await this.#end(place);
    }
    await this.#end(place);
  }

  /** The process of a place has nothing to do any more. */
  async #end(place: Place): Promise<void> {
    const { running } = place;
    place.running = undefined;
    if (!running) return;
    const { process, opened } = running;
    const closing = opened.then(({ lake }) => lake.close()).catch(() => undefined);
    if (process.alive) await Promise.race([closing, process.died]);
    process.finished = true;
  }

  /** Asks until there is an answer that stands, or too often. */
  async #persist(place: Place, work: Work, name: string): Promise<void> {
    for (let tries = 1; tries <= TRIES; tries++) {
      if (!place.running?.process.alive) {
        place.running = this.#start(place, this.#newProcess(place.name, place.host, this.#options.odds));
      }
      const { running } = place;
      const { process } = running;
      process.operation = work.kind;
      const tag = `${name}.${tries}`;
      const event: Event = {
        tag,
        process: process.name,
        version: place.host.version,
        opened: process.started,
        work,
        started: this.scheduler.moment,
        startedMs: this.scheduler.now,
        outcome: "unknown",
        // A lake is moved once; copies are lakes of their own.
        ...(isMove(work) && { place: work.kind === "share" ? "shared" : name }),
      };
      this.history.push(event);
      const doing = running.opened.then(async (opened) => {
        await perform(opened, event);
        if (process.alive) event.outcome = "ok";
      });
      const answered = doing.catch((error: unknown) => {
        if (!process.alive) return; // nobody is told
        event.error = error;
        event.outcome = error instanceof CatalogError && error.code === "commit_unknown" ? "unknown" : "fail";
      });
      await Promise.race([answered, process.died]);
      if (!process.alive) event.outcome = "unknown";
      event.ended = this.scheduler.moment;
      event.endedMs = this.scheduler.now;
      if (event.error) this.#options.coverage.hit(work.kind, "told", codeOf(event.error));
      this.scheduler.note(`  ${tag} ${work.kind}: ${event.outcome}${event.error ? ` ${String(event.error)}` : ""}`);
      // A lake that could not be opened is opened again.
      const failed = await Promise.race([running.opened.then(() => false).catch(() => true), Promise.resolve(false)]);
      if (process.alive && event.error && failed && place.running === running) {
        place.running = this.#start(place, process);
      }
      if (process.alive && !(event.error !== undefined && isRetryable(event.error))) return;
    }
  }

  #start({ host }: Place, process: SimProcess): NonNullable<Place["running"]> {
    const opened = this.#open(process, host);
    opened.catch(() => undefined); // told to whoever uses it
    return { process, opened };
  }

  /** A process was killed: by itself, or because its host lost power. Then all of them end, and the disk may go back. */
  #afterCrash({ disk, processes }: Host): void {
    const { choices } = this.#options;
    if (choices.rarely("fault", 3, 1) === 0) return;
    this.scheduler.note("  with all of its host");
    for (const process of processes) if (process.alive && !process.finished) process.kill();
    // An index may even be gone, or come back from a backup; a local lake's catalog is what the disk had promised to keep.
    const loss = this.mode === "shared" ? choices.rarely("fault", 3, 2) : 0;
    if (loss === 1) disk.wipe();
    else if (loss === 2) disk.recover(choices.pick("fault", disk.transactions + 1), false);
    else disk.recover(choices.pick("fault", disk.atRisk + 1), choices.rarely("fault", 3, 1) === 1);
  }

  #newProcess(name: string, host: Host, odds: Odds, alone = false): SimProcess {
    const seed = ++this.#processes;
    const process = new SimProcess({
      name: `${name}#${seed}`,
      scheduler: this.scheduler,
      coverage: this.#options.coverage,
      odds,
      seed,
      onCrash: () => this.#afterCrash(host),
      alone,
    });
    host.processes.push(process);
    return process;
  }

  async #open(process: SimProcess, host: Host, place?: SimBucket): Promise<Opened> {
    const { disk, skewMs, version } = host;
    const clock = (): number => EPOCH + skewMs + this.scheduler.now;
    const { random } = process;
    const timer = {
      now: () => this.scheduler.now,
      sleep: (milliseconds: number) => process.stop("sleep", milliseconds),
      turn: () => process.stop("turn"),
    };
    const store = new SimStore(place ?? this.bucket, process, version);
    const file = { path: disk.path, driver: disk.opener(process), clock, random, timer };
    let catalog: Catalog;
    if (this.mode === "local" && !place) catalog = stopping(await SqliteCatalog.open(file), process);
    else {
      const { lake: lakeId } = await findSharedLake(store, "create", () => uuidv7(clock(), random));
      const isNew = disk.transactions === 0;
      const index = stopping(await SqliteCatalog.open({ ...file, kind: "shared", lakeId }), process);
      const copies = simCopies(disk, index, process, version);
      // A new host begins with the newest checkpoint.
      if (isNew) await loadCheckpoint(store, 1, (body) => copies.load(body), undefined);
      const parts = { store, index, copies, timer, clock, random, readOnly: false };
      catalog = await SharedCatalog.open({
        ...parts,
        limits: LIMITS,
        patienceMs: this.#options.patienceMs,
        stalenessMs: this.stalenessMs,
        ...(this.#options.restores && { sameLogMs: 0 }),
      });
    }
    const { inlineBytes } = this.#options;
    const options = { clock, random, timer, threads: 1, inlineBytes, cacheDir: dirname(disk.path) };
    const lake = await Lake.open({ store, catalog }, options);
    const elsewhere = (name: string): SimStore => new SimStore(this.#placeOf(name), process, version);
    return { lake, catalog, store, clock, elsewhere };
  }

  #placeOf(name: string): SimBucket {
    const place = this.places.get(name) ?? new SimBucket(() => EPOCH + this.scheduler.now);
    this.places.set(name, place);
    return place;
  }
}

/** Calls that change the file: their answer may come late, or never. */
const WRITES: ReadonlySet<unknown> = new Set(["commit", "begin", "abandon", "applyEntry", "applyCheckpoint", "retire"]);

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

function codeOf(error: unknown): string {
  return error instanceof EiderError ? error.code : "an error";
}

function isRetryable(error: unknown): boolean {
  return (error instanceof StoreError || error instanceof CatalogError) && error.retryable;
}
