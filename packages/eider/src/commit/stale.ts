/** What to do about a commit that came too late. */

import type { CommitResult } from "@eider/catalog";
import { CatalogError } from "@eider/core";

/**
 * Planning again helps against most of what others have done meanwhile, but not where the caller has to look first.
 * @throws CatalogError `cursor_moved`, `sequence_gap`, `snapshot_moved`
 */
export function assertPlannable({ reason, message }: Extract<CommitResult, { status: "stale" }>): void {
  switch (reason) {
    case "cursor":
      throw new CatalogError("cursor_moved", `${message}: nothing was committed; read on from where it is`);
    case "sequence":
      throw new CatalogError("sequence_gap", message, { retryable: true });
    case "snapshot":
      throw new CatalogError("snapshot_moved", `${message}: nothing was committed; look again, then try again`, {
        retryable: true,
      });
  }
}
