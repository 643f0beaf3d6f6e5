/** Reads a snapshot as a query does: which files, then each of them, at its own pace. */

import { createHash } from "node:crypto";
import type { Catalog } from "@eider/catalog";
import type { ObjectStore } from "@eider/storage";
import type { Seen } from "./history.js";

/** @throws Error if a file is not what the catalog says */
export async function readSnapshot(
  { catalog, store }: { readonly catalog: Catalog; readonly store: ObjectStore },
  snapshot: number,
): Promise<Seen> {
  const batches: Record<string, string[]> = {};
  for (const table of snapshot === 0 ? [] : await catalog.tables(snapshot)) {
    const files = await catalog.files(table.id, snapshot, { statistics: false });
    for (const { key, sha256 } of files) {
      const hash = createHash("sha256");
      for await (const chunk of (await store.get(key)).body) hash.update(chunk);
      if (hash.digest("hex") !== sha256) throw new Error(`${key} is not what was committed`);
    }
    batches[table.id] = files.map(({ batchId }) => batchId ?? "");
  }
  return { snapshot, batches };
}
