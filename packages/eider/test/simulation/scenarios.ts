/** Workloads for bounded runs: each aims at what random ones rarely come to. */

import type { Bounds } from "./choices.js";
import type { Timed, Workload } from "./workload.js";
import type { Mode } from "./world.js";

export interface Scenario {
  readonly workload: Workload;
  /** What is run of it, and at least how many schedules that is: fewer would mean that it no longer stops where it did. */
  readonly runs: readonly (Bounds & { readonly mode: Mode; readonly least: number; readonly long?: true })[];
  /** Steps at which something may go wrong; default all of them. Whether a process is killed is `killed`. */
  readonly faultsAt?: readonly string[];
  /** Milliseconds that a commit whose fate is unknown is pursued. */
  readonly patienceMs?: number;
  /** Bytes of rows that are kept in their entry. Default 0: every append makes a file. */
  readonly inlineBytes?: number;
}

const append = (batch: number, content = 0, table = "t"): Timed => ({ kind: "append", table, batch, content });
const part = (sequence: number): Timed => ({ kind: "append", table: "t", batch: sequence, content: 0, source: true });
const query: Timed = { kind: "query" };
const consume: Timed = { kind: "consume" };
const maintain: Timed = { kind: "maintain" };
const quarantine = (batch: number): Timed => ({ kind: "quarantine", batch });

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  /** A bit of everything. */
  "same batches": {
    workload: [
      [[append(0)], [append(1, 1)], [query]],
      [[append(0)], [maintain], [append(1)]],
    ],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 40 },
      { mode: "local", switches: 0, faults: 1, least: 200 },
      { mode: "local", switches: 2, faults: 0, least: 500 },
      { mode: "local", switches: 1, faults: 1, least: 5000, long: true },
      { mode: "shared", switches: 1, faults: 0, least: 40 },
      { mode: "shared", switches: 0, faults: 1, least: 200 },
      { mode: "shared", switches: 2, faults: 0, least: 500, long: true },
      { mode: "shared", switches: 1, faults: 1, least: 5000, long: true },
    ],
  },
  /** A writer sleeps with a staged file while others go on and clean up. */
  "a slow writer": {
    workload: [
      [[append(0)], [append(1)]],
      [[append(2)], [maintain], [query]],
    ],
    faultsAt: ["put data", "delete data", "killed"],
    runs: [
      { mode: "local", switches: 2, faults: 0, least: 300 },
      { mode: "local", switches: 1, faults: 1, least: 1000, long: true },
      { mode: "shared", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 1, faults: 1, least: 1000, long: true },
    ],
  },
  /** A query begins while another one of its process is asking for what is new. */
  "two queries of a process": {
    workload: [[[query], [query, { ...query, after: 3 }]], [[append(0)]]],
    runs: [
      { mode: "shared", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 2, faults: 0, least: 300, long: true },
    ],
  },
  /** Two processes take the same change for the next one. */
  "two consumers": {
    workload: [[[append(0)], [append(1)], [consume], [consume]], [[consume]]],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 2, faults: 0, least: 300, long: true },
    ],
  },
  /** A consumer sleeps while another table takes the name, and another consumer its changes. */
  "a table replaced": {
    workload: [
      [[append(0)], [append(1)], [consume], [consume]],
      [[{ kind: "drop", table: "t" }], [append(2)], [consume]],
    ],
    runs: [{ mode: "shared", switches: 1, faults: 0, least: 20 }],
  },
  /** A lake goes back while another process creates a table, and fills one that had not changed. */
  "a lake taken back": {
    workload: [
      [[append(0)], [append(0, 0, "u")], [{ kind: "rollback", back: 1 }]],
      [[append(1)], [append(1, 0, "w")], [query]],
    ],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 2, faults: 0, least: 300, long: true },
    ],
  },
  /** A table goes back while another process gives it a column. */
  "a table taken back": {
    workload: [
      [[append(0)], [append(2)], [{ kind: "rollback", table: "t", back: 1 }]],
      [[append(1, 1)], [query]],
    ],
    runs: [{ mode: "local", switches: 1, faults: 0, least: 20 }],
  },
  /** Both find something to do; for the second there is nothing left. */
  "two rollbacks at once": {
    workload: [[[append(0)], [{ kind: "rollback", back: 1 }]], [[{ kind: "rollback", back: 1 }]]],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 10 },
      { mode: "shared", switches: 1, faults: 0, least: 10 },
    ],
  },
  /** The next part comes to a host that has not heard of the one before. */
  "parts of a source on two hosts": {
    workload: [
      [[part(0)], [part(1)]],
      [[part(0)], [part(2)]],
    ],
    runs: [{ mode: "shared", switches: 1, faults: 0, least: 20 }],
  },
  /** The same hot batches are folded by two processes, while a third reads them. */
  "two folds": {
    workload: [
      [[append(0), append(1)], [maintain]],
      [[append(2)], [maintain, query]],
    ],
    inlineBytes: 4096,
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 20 },
      { mode: "shared", switches: 1, faults: 0, least: 20 },
      { mode: "local", switches: 2, faults: 0, least: 300, long: true },
      { mode: "shared", switches: 2, faults: 0, least: 300, long: true },
    ],
  },
  /** Several appends share an entry whose fate is not known. */
  "a group out of patience": {
    workload: [[[append(0)], [append(1), append(2)]]],
    faultsAt: ["put log"],
    patienceMs: 0,
    runs: [{ mode: "shared", switches: 1, faults: 1, least: 20 }],
  },
  /** A host has not heard yet of a tag that another one was told to be there. */
  "a tag of another host": {
    workload: [
      [[append(0)], [{ kind: "tag", name: "v", back: 0 }], [append(1)]],
      [[query], [{ kind: "query", tag: "v" }]],
    ],
    runs: [{ mode: "shared", switches: 1, faults: 0, least: 20 }],
  },
  /** A lake moves while others append to it. */
  "a lake moved": {
    workload: [[[append(0)], [append(1)]], [[{ kind: "share" }]]],
    faultsAt: ["catalog retire", "put lake file", "put checkpoint"],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 100 },
      { mode: "local", switches: 0, faults: 1, least: 100 },
      { mode: "local", switches: 1, faults: 1, least: 300, long: true },
    ],
  },
  /** Of a lake whose only table was dropped; another one comes meanwhile. */
  "a lake copied": {
    workload: [[[append(0)], [{ kind: "drop", table: "t" }], [{ kind: "copy" }]], [[append(1, 0, "u")]]],
    faultsAt: ["put lake file", "put checkpoint", "delete checkpoint"],
    runs: [
      { mode: "local", switches: 0, faults: 1, least: 100 },
      { mode: "shared", switches: 1, faults: 0, least: 200, long: true },
      { mode: "shared", switches: 1, faults: 1, least: 300, long: true },
    ],
  },
  /** Snapshots end, one of a dropped table after a tag has been given to it. */
  "a tag that keeps a snapshot": {
    workload: [
      [
        [append(0)],
        [{ kind: "tag", name: "v", back: 0 }],
        [{ kind: "drop", table: "t" }],
        [{ kind: "expire", keep: 1, wait: false }],
      ],
      [[{ kind: "query", tag: "v" }], [{ kind: "expire", keep: 1, wait: true }]],
    ],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 30 },
      { mode: "shared", switches: 1, faults: 0, least: 60 },
    ],
  },
  /** One process replays both rejects, another the first one, whose text goes too. */
  "two replays": {
    workload: [
      [[quarantine(0)], [quarantine(1)], [{ kind: "replay", all: true }], [{ kind: "purge" }]],
      [[{ kind: "replay", all: false }]],
    ],
    faultsAt: ["sqlite commit", "catalog commit", "put log", "killed"],
    runs: [
      { mode: "local", switches: 1, faults: 0, least: 30 },
      { mode: "local", switches: 0, faults: 1, least: 100 },
      { mode: "local", switches: 2, faults: 0, least: 1000, long: true },
      { mode: "shared", switches: 1, faults: 0, least: 100 },
      { mode: "shared", switches: 0, faults: 1, least: 100 },
      { mode: "shared", switches: 1, faults: 1, least: 1000, long: true },
    ],
  },
  /** A store that does not answer, and writers without patience. */
  "out of patience": {
    workload: [[[append(0)], [query]], [[append(0)]]],
    faultsAt: ["put log"],
    patienceMs: 0,
    runs: [
      { mode: "shared", switches: 1, faults: 1, least: 300 },
      { mode: "shared", switches: 2, faults: 1, least: 3000, long: true },
    ],
  },
};
