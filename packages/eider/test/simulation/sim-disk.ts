/**
 * A host's SQLite file: a real database in memory, behind a driver for each process that opens it. Transactions never
 * overlap, since none is open across an `await`; so locks are a matter of what the schedule says, and so is what becomes
 * of a COMMIT. All that was committed is kept as statements, from which a disk that lost its last writes is made again.
 */

import type { DriverOptions, OpenDriver, SqliteDriver, SqliteValue } from "@eider/catalog";
import { openSqlite } from "../../../catalog/src/sqlite-driver.js";
import type { SimProcess } from "./sim-process.js";

interface Transaction {
  readonly statements: (readonly [sql: string, params: readonly SqliteValue[] | undefined])[];
  readonly durable: boolean;
}

/** What can go wrong with a COMMIT that writes. */
const COMMIT_FAULTS = [
  "fails", // no effect
  "fails after", // took effect
  "fails for now", // no effect, unless the power is cut before the log is written again
] as const;
type CommitFault = (typeof COMMIT_FAULTS)[number];

export class SimDisk {
  /** An empty file that stands for it: who opens a catalog looks whether it is still the same. */
  readonly path: string;
  #real: SqliteDriver = openMemory();
  #committed: Transaction[] = [];
  /** Lies in the log behind its end. */
  #ghost: Transaction | undefined;
  /** How the next COMMITs fail. */
  #failing: CommitFault[] = [];

  constructor(path: string) {
    this.path = path;
  }

  /** A driver for one process. */
  opener(process: SimProcess): OpenDriver {
    return (_path, options) => new SimDriver(this, process, options);
  }

  get real(): SqliteDriver {
    return this.#real;
  }

  /** All is lost. */
  wipe(): void {
    this.#real.close();
    this.#real = openMemory();
    this.#committed = [];
    this.#ghost = undefined;
  }

  /** Transactions that a power cut now may take along, the last ones first. */
  get atRisk(): number {
    let n = 0;
    while (n < this.#committed.length && !this.#committed[this.#committed.length - 1 - n]!.durable) n++;
    return n;
  }

  get transactions(): number {
    return this.#committed.length;
  }

  /** Goes back to what it was `lost` transactions ago, and with `ghost` finds one that had seemed to fail. */
  recover(lost: number, ghost: boolean): void {
    const kept = this.#committed.slice(0, this.#committed.length - lost);
    if (ghost && lost === 0 && this.#ghost) kept.push(this.#ghost);
    this.#ghost = undefined;
    if (kept.length === this.#committed.length) return;
    this.#committed = kept;
    this.#real.close();
    this.#real = openMemory();
    for (const { statements } of kept) {
      this.#real.exec("BEGIN IMMEDIATE");
      for (const [sql, params] of statements) {
        if (params) this.#real.run(sql, ...params);
        else this.#real.exec(sql);
      }
      this.#real.exec("COMMIT");
    }
  }

  /** What becomes of a COMMIT. A disk that fails goes on failing for a while. */
  commitFault(process: SimProcess): CommitFault | undefined {
    const going = this.#failing.pop();
    if (going) return going;
    const fault = process.fault("sqlite commit", COMMIT_FAULTS);
    if (fault) this.#failing = Array(process.choices.rarely("fault", 3, 6)).fill(fault);
    return fault;
  }

  /** From now on nothing fails. */
  heal(): void {
    this.#failing = [];
  }

  keep(transaction: Transaction): void {
    if (transaction.statements.length === 0) return;
    this.#committed.push(transaction);
    this.#ghost = undefined;
  }

  haunt(transaction: Transaction): void {
    this.#ghost = transaction;
  }

  close(): void {
    this.#real.close();
  }
}

function openMemory(): SqliteDriver {
  return openSqlite(undefined, { readonly: false, create: true, blockMs: 0, copy: false });
}

class SimDriver implements SqliteDriver {
  readonly #disk: SimDisk;
  readonly #process: SimProcess;
  #durable = true;
  #open: "no" | "read" | "write" = "no";
  #statements: Transaction["statements"] = [];

  constructor(disk: SimDisk, process: SimProcess, _options: DriverOptions) {
    if (!process.alive) throw new Error("a dead process opens no file");
    this.#disk = disk;
    this.#process = process;
  }

  exec(sql: string): void {
    if (sql === "BEGIN IMMEDIATE") {
      if (this.#process.fault("sqlite begin", ["locked"])) throw sqliteError("SQLITE_BUSY");
      this.#begin(sql, "write");
    } else if (sql === "BEGIN") this.#begin(sql, "read");
    else if (sql === "COMMIT") this.#commit();
    else if (sql === "ROLLBACK") this.close();
    else {
      if (sql.startsWith("PRAGMA synchronous")) this.#durable = !sql.includes("NORMAL");
      if (this.#open === "write") this.#statements.push([sql, undefined]);
      this.#disk.real.exec(sql);
    }
  }

  run(sql: string, ...params: readonly SqliteValue[]): number {
    this.#record(sql, params);
    return this.#disk.real.run(sql, ...params);
  }

  get<R>(sql: string, ...params: readonly SqliteValue[]): R | undefined {
    if (sql.startsWith("PRAGMA journal_mode")) return { journal_mode: "wal" } as R;
    this.#record(sql, params);
    return this.#disk.real.get<R>(sql, ...params);
  }

  all<R>(sql: string, ...params: readonly SqliteValue[]): R[] {
    return this.#disk.real.all<R>(sql, ...params);
  }

  close(): void {
    if (this.#open !== "no") this.#disk.real.exec("ROLLBACK");
    this.#open = "no";
  }

  #begin(sql: string, open: "read" | "write"): void {
    if (!this.#process.alive) throw new Error("a dead process begins no transaction");
    this.#disk.real.exec(sql);
    this.#open = open;
    this.#statements = [];
  }

  #commit(): void {
    const { durable, statements } = { durable: this.#durable, statements: this.#statements };
    if (this.#open === "read" || statements.length === 0) {
      this.#open = "no";
      this.#disk.real.exec("COMMIT");
      return;
    }
    const process = this.#process;
    if (statements.filter(([sql]) => sql.startsWith("INSERT INTO entries")).length > 1)
      process.fault("group commit", []);
    if (process.crashes("sqlite commit")) {
      this.close();
      throw new Error("killed before the commit");
    }
    const fault = this.#disk.commitFault(process);
    if (fault === "fails" || fault === "fails for now") {
      this.close();
      if (fault === "fails for now") this.#disk.haunt({ statements, durable });
      throw sqliteError("SQLITE_IOERR_FSYNC");
    }
    this.#open = "no";
    this.#disk.real.exec("COMMIT");
    this.#disk.keep({ statements, durable });
    if (fault === "fails after") throw sqliteError("SQLITE_IOERR_FSYNC");
    if (process.crashes("sqlite commit: answer")) throw new Error("killed after the commit");
  }

  #record(sql: string, params: readonly SqliteValue[]): void {
    if (this.#open === "write" && /^\s*(INSERT|UPDATE|DELETE)/.test(sql)) this.#statements.push([sql, params]);
  }
}

/** An error as drivers throw it. */
function sqliteError(code: string): Error {
  return Object.assign(new Error(code.toLowerCase()), { code });
}
