/** Takes the texts of rejects out of an entry that is kept: they are in its header. */

import { frame } from "./entry.js";

interface RejectJson {
  raw: string;
}

/**
 * The entry without the texts of those of its rejects; all else is as it was, its id and its blobs too. Undefined if there
 * is nothing to take out.
 * @param entry with or without its blobs
 * @param ordinals which of its rejects, counted from 0
 */
export function scrubEntry(entry: Uint8Array, ordinals: ReadonlySet<number>): Uint8Array | undefined {
  const length = new DataView(entry.buffer, entry.byteOffset, entry.byteLength).getUint32(0, true);
  const header: unknown = JSON.parse(Buffer.from(entry.buffer, entry.byteOffset + 4, length).toString("utf8"));
  const { operations } = header as { operations: readonly { readonly rejects?: readonly RejectJson[] }[] };
  let ordinal = 0;
  let changed = false;
  // Only appends have such a list of objects; that of a purge has ids.
  for (const { op, rejects = [] } of operations as readonly { op: string; rejects?: RejectJson[] }[]) {
    if (op !== "append") continue;
    for (const reject of rejects) {
      if (!ordinals.has(ordinal++) || reject.raw === "") continue;
      reject.raw = "";
      changed = true;
    }
  }
  return changed ? Buffer.concat([frame(header as object), entry.subarray(4 + length)]) : undefined;
}
