/** The log: what it is, and what must hold of it by itself. */

import { decodeEntry, type Entry } from "../../../catalog/src/entry.js";
import { rejectPlace } from "../../../catalog/src/reject-id.js";
import { decodeStub, isStub } from "../../../catalog/src/stub.js";
import { logKey } from "../../src/shared/log.js";
import type { Event } from "./history.js";
import { type SimBucket, understood } from "./sim-store.js";
import type { World } from "./world.js";

/** Every entry, as it was committed. */
export function readLog({ mode, hosts, bucket, restored }: World): Entry[] {
  if (mode === "shared") {
    const entries = [...bucket.entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, bytes]) => decodeEntry(bytes));
    return restored ? connected(entries) : entries;
  }
  return hosts[0]!.disk.entries.map(decodeEntry);
}

/** Those before one that hangs in the air: of a process that did not know yet that the store was set back. */
function connected(entries: readonly Entry[]): Entry[] {
  const end = entries.findIndex(({ n, prev }, i) => n !== i + 1 || prev !== (entries[i - 1]?.id ?? ""));
  return end < 0 ? [...entries] : entries.slice(0, end);
}

export function checkLog(log: readonly Entry[], problems: string[]): void {
  const seen = new Set<string>();
  log.forEach((entry, i) => {
    const before = log[i - 1];
    if (entry.n !== i + 1) problems.push(`entry ${i + 1} has number ${entry.n}`);
    if (entry.prev !== (before?.id ?? "")) problems.push(`entry ${entry.n} follows another one than entry ${i}`);
    if (before && entry.time < before.time) problems.push(`entry ${entry.n} is older than entry ${i}`);
    if (before && entry.floor < before.floor) problems.push(`the floor falls at entry ${entry.n}`);
    for (const operation of entry.operations) {
      const files =
        operation.op === "append" ? operation.files : operation.op === "rearrange" ? operation.addFiles : [];
      if (files.some(({ base }) => base < entry.floor))
        problems.push(`entry ${entry.n} has files from below its floor`);
      if (operation.op !== "append") continue;
      const { table, batch } = operation;
      const key = `${table} ${batch}`;
      if (seen.has(key)) problems.push(`batch ${batch} of table ${table} is committed again in entry ${entry.n}`);
      seen.add(key);
    }
  });
}

/** Either of two checkpoints, and the entries after it, are the whole lake; and no number is free again. */
export function checkStubs({ bucket }: World, log: readonly Entry[], problems: string[]): void {
  const keys = bucket.keys("_eider/log/");
  if (keys.length !== log.length) problems.push(`of ${log.length} entries ${keys.length} are there`);
  const checkpoints = bucket.keys("_eider/checkpoint/").map((key) => Number(key.split("/")[2]!.slice(0, 20)));
  const older = checkpoints.at(-2) ?? 0;
  for (const key of keys) {
    const { bytes } = bucket.objects.get(key)!;
    if (isStub(bytes) && decodeStub(bytes).n > older) problems.push(`${key} is a stub, and is needed after ${older}`);
  }
}

/** Whoever was told that a text is gone finds it in no entry of the log. */
export function checkScrubbed({ objects }: SimBucket, history: readonly Event[], problems: string[]): void {
  for (const { work, outcome, tag, rejects = [] } of history) {
    if (work.kind !== "purge" || outcome !== "ok") continue;
    for (const id of rejects) {
      const { snapshot, ordinal } = rejectPlace(id)!;
      const bytes = understood(objects.get(logKey(snapshot))!.bytes);
      if (isStub(bytes)) continue;
      const appends = decodeEntry(bytes).operations.filter((operation) => operation.op === "append");
      const text = appends.flatMap((append) => append.rejects)[ordinal]?.raw;
      if (text !== "") problems.push(`${tag}: entry ${snapshot} still has the text of ${id}`);
    }
  }
}
