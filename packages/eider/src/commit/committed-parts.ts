/** What a table knows of a batch that is appended in parts, before and after they are. */

import { createHash } from "node:crypto";
import type { Catalog, Receipt } from "@eider/catalog";
import { BatchConflictError, CatalogError } from "@eider/core";
import { findTable, MAX_ATTEMPTS } from "./append.js";
import { assertPlannable } from "./stale.js";

/** Name of the note that says, in the commit of a part, how the source is cut. */
const NOTE = "eider.parts";

export class CommittedParts {
  readonly #catalog: Catalog;
  readonly #table: string;
  readonly #batchId: string;

  constructor(catalog: Catalog, table: string, batchId: string) {
    this.#catalog = catalog;
    this.#table = table;
    this.#batchId = batchId;
  }

  partId(part: number): string {
    return `${this.#batchId}/${part}`;
  }

  /** The receipt of a part, from 1. */
  part(part: number): Promise<Receipt | undefined> {
    return this.#receipt(this.partId(part));
  }

  /** Parts that are committed, up to the first that is not. */
  async parts(): Promise<Receipt[]> {
    const found: Receipt[] = [];
    for (let receipt = await this.part(1); receipt; receipt = await this.part(found.length + 1)) found.push(receipt);
    return found;
  }

  /**
   * The receipt that says that all parts are there.
   * @throws BatchConflictError `batch_conflict` the id is that of a batch which was appended whole
   */
  async whole(): Promise<Receipt | undefined> {
    const receipt = await this.#receipt(this.#batchId);
    if (!receipt || receipt.contentHash.startsWith("parts:")) return receipt;
    throw this.conflict(this.#batchId, `was appended whole in snapshot ${receipt.snapshot}`);
  }

  /** What is noted with each part. */
  note(partBytes: number): Readonly<Record<string, string>> {
    return { [NOTE]: JSON.stringify({ partBytes }) };
  }

  /** @throws BatchConflictError `batch_conflict` if parts are known that were cut by another size */
  async assertSameSize(partBytes: number): Promise<void> {
    const first = await this.part(1);
    if (!first) return;
    const [entry] = await this.#catalog.snapshots({ after: first.snapshot - 1, limit: 1 });
    const operation = entry?.operations.find(({ batchId }) => batchId === first.batchId);
    const note = operation?.meta?.[NOTE] ?? entry?.meta[NOTE];
    // Kept no longer, or not ours: then the content tells.
    if (note === undefined || note === this.note(partBytes)[NOTE]) return;
    throw this.conflict(this.#batchId, `is cut into parts by ${note}, not ${this.note(partBytes)[NOTE]}`);
  }

  conflict(id: string, reason: string, cause?: unknown): BatchConflictError {
    return new BatchConflictError(
      "batch_conflict",
      `batch ${JSON.stringify(id)} of table ${this.#table} ${reason}: append the same source with the same options, or choose another batch id`,
      { subject: id, ...(cause !== undefined && { cause }) },
    );
  }

  /**
   * Commits the empty batch that says that these are all parts.
   * @throws CatalogError `table_replaced` (retryable) where the parts are not in the table that is there now
   */
  async complete(
    parts: readonly Receipt[],
    meta: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: "committed" | "duplicate"; readonly receipt: Receipt }> {
    const hash = partsHash(parts);
    for (let tries = 1; tries <= MAX_ATTEMPTS; tries++) {
      const table = await findTable(this.#catalog, this.#table);
      const first = table && (await this.#catalog.receipt(table.id, this.partId(1)));
      if (!table || first?.contentHash !== parts[0]!.contentHash) {
        throw new CatalogError("table_replaced", `table ${this.#table} was dropped while parts came: append again`, {
          subject: this.#table,
          retryable: true,
        });
      }
      const outcome = await this.#catalog.commit({
        operations: [
          {
            op: "append",
            table: table.id,
            batch: this.#batchId,
            hash,
            rows: 0,
            schemaVersion: table.schemaVersion,
            files: [],
            rejects: [],
          },
        ],
        meta,
      });
      if (outcome.status !== "stale") return { status: outcome.status, receipt: outcome.receipts[0]! };
      assertPlannable(outcome);
    }
    throw new CatalogError("too_contended", `table ${this.#table} changed again and again: try again`, {
      subject: this.#table,
      retryable: true,
    });
  }

  async #receipt(batchId: string): Promise<Receipt | undefined> {
    const table = await this.#catalog.table(this.#table);
    return table && this.#catalog.receipt(table.id, batchId);
  }
}

/** `parts:` and the SHA-256 of the content hashes of the parts, each with a line feed. */
function partsHash(parts: readonly Receipt[]): string {
  const hash = createHash("sha256");
  for (const { contentHash } of parts) hash.update(`${contentHash}\n`);
  return `parts:${hash.digest("hex")}`;
}
