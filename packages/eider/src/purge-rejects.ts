/** The texts of rejects taken away for good, by commits of some hundred rejects each, and then wherever else they are. */

import { type Catalog, compareRejectIds, type ListedReject, type TableInfo } from "@eider/catalog";
import { NotFoundError } from "@eider/core";
import type { OpenLake } from "./open.js";
import type { PurgeRejectsOptions, PurgeRejectsResult } from "./options.js";
import { assertRejectId, namedRejects, rejectPages } from "./reject-pages.js";

/**
 * What was stopped anywhere is called again: it goes through all of them, those without a text included, since that may
 * still be elsewhere.
 * @throws NotFoundError `table_not_found`, `reject_not_found`
 */
export async function purgeRejects(
  { catalog, forget }: Pick<OpenLake, "catalog" | "forget">,
  table: TableInfo,
  options: PurgeRejectsOptions,
): Promise<PurgeRejectsResult> {
  const { signal, onProgress } = options;
  const all: string[] = [];
  let purged = 0;
  for await (const page of pagesOf(catalog, table, options)) {
    signal?.throwIfAborted();
    const rejects = page.filter(({ purgedIn }) => purgedIn === undefined).map(({ id }) => id);
    if (rejects.length > 0) {
      const { status } = await catalog.commit({ operations: [{ op: "purge", table: table.id, rejects }] });
      if (status !== "committed") {
        throw new NotFoundError("table_not_found", `table ${table.name} was dropped`, { subject: table.name });
      }
    }
    purged += rejects.length;
    for (const { id } of page) all.push(id);
    onProgress?.({ rejects: all.length, purged });
  }
  if (all.length > 0) {
    await catalog.scrub(all, signal);
    await forget();
  }
  return { purged };
}

async function* pagesOf(
  catalog: Catalog,
  table: TableInfo,
  { ids, batchId, before }: PurgeRejectsOptions,
): AsyncGenerator<readonly ListedReject[], void, undefined> {
  if (ids) {
    ids.forEach(assertRejectId);
    yield* namedRejects(catalog, table, [...new Set(ids)].sort(compareRejectIds));
  } else if (batchId !== undefined) yield* rejectPages(catalog, table.id, { batchId });
  else if (before !== undefined) yield* rejectPages(catalog, table.id, { before: await firstKept(catalog, before) });
}

/** The first snapshot whose rejects are not meant any more. */
async function firstKept(catalog: Catalog, before: number | Date): Promise<number> {
  if (typeof before === "number") return before;
  try {
    // Times are whole milliseconds. Rejects outlive their snapshots.
    return (await catalog.resolveSnapshot(new Date(before.getTime() - 1), { expired: true })) + 1;
  } catch (error) {
    // The lake is younger.
    if (error instanceof NotFoundError && error.code === "snapshot_not_found") return 0;
    throw error;
  }
}
