/**
 * What a run of thousands of schedules has to have hit: each fault at each step of each operation that takes it. One that
 * is missing means that the simulation no longer goes where it went.
 */

import type { Coverage } from "./coverage.js";
import type { Mode } from "./world.js";

const PUT = ["lost", "late", "unanswered", "busy", "twice", "killed"];
const PUT_IF_ABSENT = [...PUT, "refused"];
const DELETE = ["lost", "late", "unanswered", "killed"];
const READ = ["lost", "killed"];
const KILLED = ["killed"];
const COMMIT = ["fails", "fails after", "fails for now", "killed"];

type Steps = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

const BOTH: Steps = {
  append: {
    "get lake file": READ,
    "get lake file: answer": KILLED,
    "put lake file": PUT_IF_ABSENT,
    "put lake file: answer": KILLED,
    "catalog table": KILLED,
    "catalog receipt": KILLED,
    "catalog folderUsed": KILLED,
    "put data": PUT_IF_ABSENT,
    "put data: answer": KILLED,
    "head data": ["lost"],
    "delete data": DELETE,
    "delete data: answer": KILLED,
    "sqlite begin": ["locked"],
    "sqlite commit": COMMIT,
    "sqlite commit: answer": KILLED,
  },
  expire: {
    "catalog expiry": ["none", ...KILLED],
    "catalog snapshots": ["none"],
    "catalog unusedKeys": ["none"],
    "list all": ["none"],
    "delete data": ["none"],
  },
  quarantine: { "catalog receipt": ["none"], "put data": ["none"] },
  replay: { "catalog rejects": ["none", ...KILLED] },
  purge: { "catalog rejects": ["none", ...KILLED], "catalog scrub": ["none"] },
  copy: {
    "catalog exportTo": ["none"],
    "put lake file": ["none", "lost", "killed"],
    "put checkpoint": ["none"],
    "put log": ["none"],
    "put data": ["none"],
  },
  rollback: { "catalog resolveSnapshot": KILLED, "catalog tables": ["none"], "catalog changes": ["none"] },
  tag: { "catalog resolveSnapshot": ["none"], "sqlite commit": ["none"] },
  advance: { "catalog cursor": ["none"], "catalog changes": ["none"] },
  transaction: { "put data": ["lost", "killed"], "put data: answer": KILLED },
  query: {
    "catalog head": KILLED,
    "catalog tables": KILLED,
    "catalog files": KILLED,
    "head data": READ,
    "get data": READ,
    "get data: answer": KILLED,
  },
  maintain: {
    "catalog resolveSnapshot": KILLED,
    "list all": READ,
    "list all: answer": KILLED,
    "catalog referencedKeys": ["none"],
    "delete data": ["none"],
  },
};

const ONE: Readonly<Record<Mode, Steps>> = {
  local: {
    append: {
      "catalog begin": KILLED,
      "catalog begin: answer": KILLED,
      "catalog commit": KILLED,
      "catalog commit: answer": KILLED,
      "catalog abandon": KILLED,
      "group commit": ["none"],
    },
    transaction: { "catalog commit": KILLED, "catalog commit: answer": KILLED },
    consume: { "catalog commit": ["none"] },
    maintain: { "catalog commit": KILLED },
    expire: { "catalog commit": KILLED },
    replay: { "catalog commit": ["none"] },
    purge: { "catalog commit": ["none"] },
    share: {
      "catalog retire": ["none"],
      "put lake file": ["none"],
      "put checkpoint": ["none"],
      "sqlite commit": ["none"],
    },
    drop: { "catalog commit": KILLED },
    rollback: { "catalog commit": ["none"], "catalog commit: answer": KILLED },
  },
  shared: {
    world: { restored: ["between commits", "a process stops"] },
    append: {
      "group commit": ["none"],
      "catalog applyCheckpoint": ["none"],
      told: ["commit_unknown", "batch_conflict", "reader_too_old"],
      "catalog propose": KILLED,
      "put log": PUT_IF_ABSENT,
      "put log: answer": KILLED,
      "get log": READ,
      "get log: answer": KILLED,
      "catalog applyEntry": KILLED,
      "catalog applyEntry: answer": KILLED,
      "list log": READ,
    },
    transaction: { "put log": ["none"], "put log: answer": KILLED },
    consume: { "put log": ["none"] },
    query: { "get log": READ, "catalog applyEntry": KILLED, "list log": ["none"] },
    maintain: { "put log": ["none"], "get log": READ },
    expire: { "put log": ["none"], "get log": READ },
    replay: { "put log": ["none"] },
    purge: { "put log": ["none"], "get log": READ },
    drop: { "put log": ["none"], "catalog applyEntry": KILLED },
    rollback: { "put log": ["none"], "get log": READ, "catalog applyEntry": KILLED },
  },
};

/** `operation, step, fault` for whatever was never hit and should have been. */
export function missed(mode: Mode, coverage: Coverage): string[] {
  return [BOTH, ONE[mode]].flatMap((operations) =>
    Object.entries(operations).flatMap(([operation, steps]) =>
      Object.entries(steps).flatMap(([step, faults]) =>
        faults
          .filter((fault) => coverage.count(operation, step, fault) === 0)
          .map((fault) => `${operation}, ${step}, ${fault}`),
      ),
    ),
  );
}
