/**
 * Processes that have waited long for the write lock of a catalog file. SQLite's lock has no queue: it goes to whoever tries
 * while it is free, which is fast, and lets one of many wait for tens of turns. Here those who have waited long say so in a
 * folder beside the file. They go first, in the order in which they came, and all others make way.
 *
 * It only makes waits even. Who writes is decided by SQLite's lock alone: whoever finds that the queue does not move, or
 * cannot use the folder, tries all the same.
 */

import { closeSync, existsSync, mkdirSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";

/** Looks at a queue that does not move before trying all the same: its front may be busy with something else. */
const PATIENCE = 5;
/** Milliseconds after which a writer has waited long. */
const LONG_MS = 20;
/** Milliseconds between two looks of those who have, for each that is in front. */
const PAUSE_MS = 2;
const MAX_PAUSE_MS = 25;
/** Milliseconds after which a sign is taken for one that was left behind, whoever has its process id now. */
const STALE_MS = 10_000;
/** Milliseconds of the arrival, process id, random digits. */
const NAME = /^(\d{15})-(\d+)-[0-9a-f]{12}$/;

export interface LockQueueOptions {
  /** Made when somebody has to wait. */
  readonly folder: string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Random bytes. */
  readonly random: (size: number) => Uint8Array;
}

export class LockQueue {
  readonly #options: LockQueueOptions;

  constructor(options: LockQueueOptions) {
    this.#options = options;
  }

  /** Of a writer that has just come. */
  place(): LockPlace {
    return new LockPlace(this.#options);
  }
}

/** The place of one writer, which gives it up in the end. */
export class LockPlace implements Disposable {
  readonly #options: LockQueueOptions;
  readonly #arrived: number;
  /** File name, once it has waited long: the time of arrival first, so that names sort like arrivals. */
  #name: string | undefined;
  #ahead = 0;
  #front: string | undefined;
  #looks = 0;

  constructor(options: LockQueueOptions) {
    this.#options = options;
    this.#arrived = options.clock();
  }

  /** Whether nobody goes first, or the queue has not moved for long. */
  isTurn(): boolean {
    const names = this.#waiting();
    const own = this.#name;
    const ahead = own === undefined ? names : names.filter((name) => name < own);
    this.#ahead = ahead.length;
    if (ahead.length === 0) return true;
    this.#looks = ahead[0] === this.#front ? this.#looks + 1 : 0;
    this.#front = ahead[0];
    if (this.#looks < PATIENCE) return false;
    this.#looks = 0;
    return true;
  }

  /**
   * How many milliseconds to wait before the next look.
   * @param usual what it is without a queue
   */
  pause(usual: number): number {
    const { clock } = this.#options;
    if (this.#name === undefined && clock() - this.#arrived >= LONG_MS) this.#name = this.#enter();
    if (this.#name === undefined) return usual;
    return Math.min(PAUSE_MS * Math.max(1, this.#ahead), MAX_PAUSE_MS);
  }

  [Symbol.dispose](): void {
    if (this.#name !== undefined) remove(join(this.#options.folder, this.#name));
    this.#name = undefined;
  }

  #enter(): string | undefined {
    const { folder, random } = this.#options;
    const name = `${String(this.#arrived).padStart(15, "0")}-${process.pid}-${Buffer.from(random(6)).toString("hex")}`;
    try {
      mkdirSync(folder, { recursive: true });
      closeSync(openSync(join(folder, name), "wx"));
      return name;
    } catch {
      // A full disk, or a folder that is not ours: then nobody makes way.
      return undefined;
    }
  }

  /** Names in order; signs of those who are gone are removed. */
  #waiting(): string[] {
    const { folder, clock } = this.#options;
    // Where nobody ever had to wait, looking costs least.
    if (!existsSync(folder)) return [];
    const oldest = clock() - STALE_MS;
    return namesIn(folder).filter((name) => {
      const [, arrived, pid] = NAME.exec(name)!;
      if (Number(arrived) >= oldest && isRunning(Number(pid))) return true;
      remove(join(folder, name));
      return false;
    });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => NAME.test(name))
      .sort();
  } catch {
    return [];
  }
}

/** One in another container may seem to be gone: then it waits like all who have not said so. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // Somebody else has, or nobody can.
  }
}
