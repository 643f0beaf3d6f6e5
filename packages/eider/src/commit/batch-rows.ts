/**
 * Where the rows of a batch go: few of them into the entry itself, as a hot batch, without a file, a put or an intent; as
 * soon as they are more, into data files.
 */

import type { HotRows } from "@eider/catalog";
import {
  batchBytes,
  concatBatches,
  type EncodedRowGroup,
  encodeRecordBatch,
  integerBounds,
  type RecordBatch,
  type Schema,
} from "@eider/core";
import type { BatchSink } from "./pass.js";
import type { Stage, StagedFile } from "./stage.js";

/** An entry is read whole, and many at a time: however many batches it has, no more bytes of their rows are in it. */
export const MAX_INLINE_BYTES: number = 1024 * 1024;
/** Text so many times as long as the most that is kept in an entry is taken for too long, unread: it becomes row groups. */
const TEXT_FACTOR = 4;

export interface BatchRowsOptions {
  /** Rows whose message has at most so many bytes become a hot batch. 0: none do. */
  readonly inlineBytes: number;
  /** Whether files keep the rows as they come: then text may come encoded. */
  readonly keepsOrder: boolean;
  /** Begins data files for rows of a schema. */
  readonly newStage: (schema: Schema) => Promise<Stage>;
}

/** What a batch's rows have become: nothing, if there are none. */
export interface PlacedRows {
  readonly files: readonly StagedFile[];
  readonly hot?: HotRows;
}

export class BatchRows implements BatchSink {
  readonly #options: BatchRowsOptions;
  #schema: Schema = { fields: [] };
  #held: RecordBatch[] = [];
  #heldBytes = 0;
  #stage: Stage | undefined;

  constructor(options: BatchRowsOptions) {
    this.#options = options;
  }

  async restart(schema: Schema): Promise<number> {
    await this.discard();
    this.#schema = schema;
    const { inlineBytes, keepsOrder } = this.#options;
    return keepsOrder ? TEXT_FACTOR * inlineBytes : Number.POSITIVE_INFINITY;
  }

  async add(batch: RecordBatch): Promise<void> {
    if (batch.length === 0) return;
    if (this.#stage) return this.#stage.add(batch);
    this.#held.push(batch);
    this.#heldBytes += batchBytes(batch);
    if (this.#heldBytes > this.#options.inlineBytes) await this.#toFiles();
  }

  async addRowGroup(group: EncodedRowGroup): Promise<void> {
    await (await this.#toFiles()).addRowGroup(group);
  }

  /** Ends the batch; its files are durable in the store when this returns. */
  async finish(): Promise<PlacedRows> {
    if (this.#held.length > 0) {
      const batch = concatBatches(this.#held);
      const data = encodeRecordBatch(batch);
      if (data.length <= this.#options.inlineBytes) return { files: [], hot: { data, bounds: integerBounds(batch) } };
      await this.#toFiles();
    }
    return { files: (await this.#stage?.finish()) ?? [] };
  }

  /** Lets go of the rows, and deletes what was staged: only if it is certainly not committed. */
  async discard(): Promise<void> {
    const stage = this.#stage;
    this.#stage = undefined;
    this.#held = [];
    this.#heldBytes = 0;
    await stage?.discard();
  }

  async #toFiles(): Promise<Stage> {
    this.#stage ??= await this.#options.newStage(this.#schema);
    const held = this.#held;
    this.#held = [];
    this.#heldBytes = 0;
    for (const batch of held) await this.#stage.add(batch);
    return this.#stage;
  }
}
