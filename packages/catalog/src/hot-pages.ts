/** Hot batches a page at a time: their rows may be many. */

import type { Catalog, HotBatch } from "./catalog.js";

export interface HotPagesOptions {
  /** The snapshot that shows them. */
  readonly at: number;
  /** Only batches added after this snapshot. Default 0. */
  readonly after?: number;
  /** Only batches added up to this snapshot. Default: `at`. */
  readonly upTo?: number;
  /** Batches in a page; it may be longer, since none splits a snapshot. */
  readonly limit: number;
}

/** Those of a table in order of commit; no page is empty. */
export async function* hotPages(
  catalog: Pick<Catalog, "hotBatches">,
  tableId: string,
  { at, after = 0, upTo = at, limit }: HotPagesOptions,
): AsyncGenerator<readonly HotBatch[], void, undefined> {
  for (let last = after; last < upTo; ) {
    const page = await catalog.hotBatches(tableId, { at, after: last, limit });
    const wanted = page.filter(({ addedIn }) => addedIn <= upTo);
    if (wanted.length > 0) yield wanted;
    if (wanted.length < limit) return;
    last = wanted.at(-1)!.addedIn;
  }
}
