/** Takes the texts of rejects out of an entry that is kept: they are in its header. */

import { frame } from "./entry.js";

interface HeaderJson {
  readonly operations: readonly { readonly op: string; readonly rejects?: { raw: string }[] }[];
}

/**
 * The entry without the texts of those of its rejects; all else is as it was, its id and its blobs too. Undefined if there
 * is nothing to take out.
 * @param entry with or without its blobs
 * @param ordinals which of its rejects, counted from 0
 */
export function scrubEntry(entry: Uint8Array, ordinals: ReadonlySet<number>): Uint8Array | undefined {
  const length = new DataView(entry.buffer, entry.byteOffset, entry.byteLength).getUint32(0, true);
  const text = Buffer.from(entry.buffer, entry.byteOffset + 4, length).toString("utf8");
  const header = JSON.parse(text) as HeaderJson;
  let ordinal = 0;
  let changed = false;
  for (const { op, rejects = [] } of header.operations) {
    if (op !== "append") continue; // a purge has ids there
    for (const reject of rejects) {
      if (!ordinals.has(ordinal++) || reject.raw === "") continue;
      reject.raw = "";
      changed = true;
    }
  }
  return changed ? Buffer.concat([frame(header), entry.subarray(4 + length)]) : undefined;
}
