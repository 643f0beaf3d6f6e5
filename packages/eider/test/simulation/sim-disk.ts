/**
 * A host's SQLite file: a real database in memory, behind a driver for each process that opens it. Transactions never
 * overlap, since none is open across an `await`; so locks are a matter of what the schedule says, and so is what becomes
 * of a COMMIT.
 */

import { rmSync } from "node:fs";
import type { OpenDriver, SqliteDriver, SqliteValue } from "@eider/catalog";
import { SimDatabase } from "./sim-database.js";
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
  #database = SimDatabase.take("");
  /** Since the beginning, but for those that were lost. */
  #committed: Transaction[] = [];
  /** Lies in the log behind its end. */
  #ghost: Transaction | undefined;
  /** How the next COMMITs fail. */
  #failing: CommitFault[] = [];
  /** Statements of a transaction that makes the first tables, as long as there is nothing else in it. */
  #schema: string[] | undefined;

  #changes = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** How often its content has changed. */
  get changes(): number {
    return this.#changes;
  }

  /** A driver for one process. */
  opener(process: SimProcess): OpenDriver {
    return () => new SimDriver(this, process);
  }

  get real(): SqliteDriver {
    if (this.#schema?.length) this.#makeTables(this.#schema);
    return this.#database.driver;
  }

  /** What is in its tables, but for what is of this host alone. */
  get content(): string {
    return this.#database.content();
  }

  /** Writes it into a real file. */
  copyTo(path: string): void {
    this.#database.copyTo(path);
  }

  /** All is lost. */
  wipe(): void {
    this.#changes++;
    this.#database.give();
    this.#database = SimDatabase.take("");
    this.#committed = [];
    this.#ghost = undefined;
  }

  /** How many have come to stay, the one that made the tables included. */
  get transactions(): number {
    return this.#committed.length;
  }

  /** Transactions that a power cut now may take along, the last ones first. */
  get atRisk(): number {
    return this.#committed.length - 1 - this.#committed.findLastIndex(({ durable }) => durable);
  }

  /** The entries of a local lake, as they were committed: rows may have expired since. */
  get entries(): Uint8Array[] {
    const entries: Uint8Array[][] = [];
    for (const [sql, params = []] of this.#committed.flatMap(({ statements }) => statements)) {
      const blobs = params.filter(isBytes);
      if (/^INSERT INTO entries/.test(sql)) entries.push(blobs);
      // Those that a rollback copies are in no entry.
      else if (/^INSERT INTO hot_batches .* VALUES/.test(sql)) entries.at(-1)?.push(...blobs);
    }
    return entries.map((parts) => Buffer.concat(parts));
  }

  begin(): void {
    if (this.#committed.length === 0) this.#schema = [];
    this.#database.begin(this.#committed.length);
  }

  exec(sql: string): void {
    // Tables that others have made before are there already.
    if (this.#schema) this.#schema.push(sql);
    else this.real.exec(sql);
  }

  commit(transaction: Transaction): void {
    if (this.#schema?.length) this.#makeTables(this.#schema);
    this.#schema = undefined;
    this.#committed.push(transaction);
    this.#changes++;
    this.#ghost = undefined;
  }

  rollBack(): void {
    this.#schema = undefined;
    const number = this.#committed.length;
    if (number === 0) this.wipe();
    else this.#database.rollBack(number);
  }

  /** Goes back to what it was `lost` transactions ago, and with `ghost` finds one that had seemed to fail. */
  recover(lost: number, ghost: boolean): void {
    this.#changes++;
    const found = ghost && lost === 0 ? this.#ghost : undefined;
    this.#ghost = undefined;
    const kept = this.#committed.length - lost;
    if (kept === 0) this.wipe();
    else if (lost > 0) this.#database.rollBack(kept);
    this.#committed.length = kept;
    if (!found) return;
    this.begin();
    for (const [sql, params] of found.statements) {
      if (params) this.real.run(sql, ...params);
      else this.exec(sql);
    }
    this.commit(found);
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

  haunt(transaction: Transaction): void {
    this.#ghost = transaction;
  }

  close(): void {
    this.#database.give();
    // Of a process that had to wait for a lock: while the folder is there, every transaction reads it.
    rmSync(`${this.path}-waiting`, { recursive: true, force: true });
  }

  #makeTables(schema: readonly string[]): void {
    this.#schema = undefined;
    this.#database.give();
    this.#database = SimDatabase.take(schema.join(";"));
    this.#database.begin(0);
  }
}

class SimDriver implements SqliteDriver {
  readonly #disk: SimDisk;
  readonly #process: SimProcess;
  #durable = true;
  /** Changes of the disk that are its own. */
  #changes = 0;
  #open: "no" | "read" | "write" = "no";
  #statements: Transaction["statements"] = [];

  constructor(disk: SimDisk, process: SimProcess) {
    if (!process.alive) throw new Error("a dead process opens no file");
    this.#disk = disk;
    this.#process = process;
  }

  exec(sql: string): void {
    if (sql === "BEGIN IMMEDIATE") {
      if (this.#process.fault("sqlite begin", ["locked"])) throw sqliteError("SQLITE_BUSY");
      this.#begin("write");
    } else if (sql === "BEGIN") this.#begin("read");
    else if (sql === "COMMIT") this.#commit();
    else if (sql === "ROLLBACK") this.close();
    else {
      if (sql.startsWith("PRAGMA synchronous")) this.#durable = !sql.includes("NORMAL");
      if (this.#open !== "write") return; // settings, which the database in memory has or lacks anyway
      this.#statements.push([sql, undefined]);
      this.#disk.exec(sql);
    }
  }

  run(sql: string, ...params: readonly SqliteValue[]): number {
    if (sql === "VACUUM INTO ?") {
      this.#disk.copyTo(String(params[0]));
      return 0;
    }
    this.#record(sql, params);
    return this.#disk.real.run(sql, ...params);
  }

  get<R>(sql: string, ...params: readonly SqliteValue[]): R | undefined {
    if (sql.startsWith("PRAGMA journal_mode")) return { journal_mode: "wal" } as R;
    if (sql === "PRAGMA data_version") return { data_version: this.#disk.changes - this.#changes } as R;
    this.#record(sql, params);
    return this.#disk.real.get<R>(sql, ...params);
  }

  all<R>(sql: string, ...params: readonly SqliteValue[]): R[] {
    return this.#disk.real.all<R>(sql, ...params);
  }

  close(): void {
    if (this.#open === "write") this.#disk.rollBack();
    this.#open = "no";
  }

  #begin(open: "read" | "write"): void {
    if (!this.#process.alive) throw new Error("a dead process begins no transaction");
    // One that reads is over before anything else happens: it sees one state by itself.
    if (open === "write") this.#disk.begin();
    this.#open = open;
    this.#statements = [];
  }

  #commit(): void {
    const { durable, statements } = { durable: this.#durable, statements: this.#statements };
    if (this.#open === "read") {
      this.#open = "no";
      return;
    }
    if (statements.length === 0) {
      this.close();
      return;
    }
    const process = this.#process;
    if (statements.filter(([sql]) => sql.startsWith("INSERT INTO receipts")).length > 1)
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
    this.#disk.commit({ statements, durable });
    this.#changes++;
    if (fault === "fails after") throw sqliteError("SQLITE_IOERR_FSYNC");
    if (process.crashes("sqlite commit: answer")) throw new Error("killed after the commit");
  }

  #record(sql: string, params: readonly SqliteValue[]): void {
    if (this.#open === "write" && /^\s*(INSERT|UPDATE|DELETE)/.test(sql)) this.#statements.push([sql, params]);
  }
}

function isBytes(value: SqliteValue): value is Uint8Array {
  return value instanceof Uint8Array;
}

/** An error as drivers throw it. */
function sqliteError(code: string): Error {
  return Object.assign(new Error(code.toLowerCase()), { code });
}
