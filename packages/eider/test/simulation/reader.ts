/** Reads a snapshot as a query does: which files, then each of them, at its own pace. */

import { createHash } from "node:crypto";
import type { Catalog } from "@eider/catalog";
import type { ObjectStore } from "@eider/storage";
import type { Seen } from "./history.js";

/** By what was hashed: bytes in a store never change, and most are read many times. */
const hashes = new WeakMap<Uint8Array, string>();

export function sha256Of(bytes: Uint8Array): string {
  const known = hashes.get(bytes);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(bytes).digest("hex");
  hashes.set(bytes, hash);
  return hash;
}

/** @throws Error if a file is not what the catalog says */
export async function readSnapshot(
  { catalog, store }: { readonly catalog: Catalog; readonly store: ObjectStore },
  snapshot: number,
): Promise<Seen> {
  const batches: Record<string, string[]> = {};
  for (const table of snapshot === 0 ? [] : await catalog.tables(snapshot)) {
    const files = await catalog.files(table.id, snapshot, { statistics: false });
    for (const { key, sha256 } of files) {
      // The simulated store sends an object in one piece, as it has it.
      for await (const bytes of (await store.get(key)).body)
        if (sha256Of(bytes) !== sha256) throw new Error(`${key} is not what was committed`);
    }
    batches[table.id] = files.map(({ batchId }) => batchId ?? "");
  }
  return { snapshot, batches };
}
