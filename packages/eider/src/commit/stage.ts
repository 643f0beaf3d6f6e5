/** Data files of a batch that is not committed yet: rows go to the file of their partition, sorted where asked for. */

import type { DataFile, TableInfo } from "@eider/catalog";
import {
  AlreadyExistsError,
  type EncodedRowGroup,
  type OrderBy,
  type PartitionSpec,
  type PartitionValue,
  parseOrderBy,
  parsePartitionBy,
  partitionPath,
  type RecordBatch,
  type Schema,
  StoreError,
  storedSchema,
} from "@eider/core";
import { chunkDigest } from "@eider/core/node";
import type { ObjectStore } from "@eider/storage";
import type { StoredFile } from "../writer/data-file.js";
import type { FileLayout } from "../writer/layout.js";
import { PartitionFiles } from "../writer/partition-files.js";

export interface StageOptions {
  readonly store: ObjectStore;
  /** The table's folder. */
  readonly folder: string;
  /** Snapshot when staging began. */
  readonly base: number;
  /** What the files hold: ids assigned, no unknown fields. */
  readonly schema: Schema;
  readonly partitionBy: readonly PartitionSpec[];
  readonly orderBy: OrderBy;
  readonly layout: FileLayout;
  /** Key-values of the Parquet footer. */
  readonly keyValues: Readonly<Record<string, string>>;
  /** A new unique file id. */
  readonly newId: () => string;
  readonly signal: AbortSignal | undefined;
}

/** A stage for files of a table, whose rows have this schema. */
export function tableStage(
  { store, layout, newId }: Pick<StageOptions, "store" | "layout" | "newId">,
  table: Pick<TableInfo, "name" | "folder" | "partitionBy" | "orderBy">,
  schema: Schema,
  {
    base,
    keyValues,
    signal,
  }: { base: number; keyValues: Readonly<Record<string, string>>; signal: AbortSignal | undefined },
): Stage {
  return new Stage({
    store,
    folder: table.folder,
    base,
    schema: storedSchema(schema),
    partitionBy: table.partitionBy.map((text) => parsePartitionBy(text, schema)),
    orderBy: parseOrderBy(table.orderBy, schema),
    layout,
    keyValues: {
      "eider.table": table.name,
      "eider.snapshot": String(base),
      "eider.schema": JSON.stringify(schema),
      ...keyValues,
    },
    newId,
    signal,
  });
}

/** A data file before the commit decides which schema version it belongs to. */
export type StagedFile = Omit<DataFile, "schemaVersion">;

/** Stages the data files of one batch. After an error, or when the batch is not committed, `discard` deletes them. */
export class Stage {
  readonly #options: StageOptions;
  readonly #files: PartitionFiles;
  readonly #staged = new Map<string, StagedFile>();
  /** Every key that may exist in the store, also of puts that failed. */
  readonly #keys: string[] = [];

  constructor(options: StageOptions) {
    this.#options = options;
    const { store, schema, partitionBy, orderBy, layout, keyValues, base, signal } = options;
    this.#files = new PartitionFiles({
      store,
      schema,
      partitionBy,
      orderBy,
      layout: {
        ...layout,
        wholeFiles: layout.wholeFiles || orderBy.length > 0,
        parquet: { ...layout.parquet, keyValues, chunkDigest },
      },
      newKey: (values) => this.#newKey(values),
      keysAreNew: true,
      isStored: (file, error) => this.#isStored(file, error),
      onFile: (file, partition) => {
        this.#staged.set(file.key, { ...file, base, partition });
      },
      signal,
    });
  }

  /** Adds rows that are encoded already, with the stage's schema; only where they are neither parted nor sorted. */
  addRowGroup(group: EncodedRowGroup): Promise<void> {
    return this.#files.addRowGroup(group);
  }

  add(batch: RecordBatch): Promise<void> {
    // Batches of an append have about the size of a row group already.
    const { partitionBy, orderBy, layout } = this.#options;
    const eager = partitionBy.length === 0 && orderBy.length === 0 && layout.wholeFiles;
    return this.#files.add(batch, { eager });
  }

  /** Closes what is open. The files are durable in the store when this returns. */
  async finish(): Promise<readonly StagedFile[]> {
    await this.#files.flush();
    // In the order in which they were begun, whichever was stored first.
    return this.#keys.map((key) => this.#staged.get(key)!);
  }

  /** Deletes what was staged. Only for a batch that is certainly not committed. */
  async discard(): Promise<void> {
    await this.#files.abort(new Error("the batch was given up"));
    if (this.#keys.length > 0) await this.#options.store.delete(this.#keys);
  }

  /**
   * A put whose answer was lost, or that was sent twice and met itself: the key is used for nothing else, so an object of
   * this size is ours.
   */
  async #isStored({ key, bytes }: StoredFile, error: unknown): Promise<boolean> {
    const answered = error instanceof AlreadyExistsError;
    if (!answered && !(error instanceof StoreError && error.code === "put_unsettled")) return false;
    if ((await this.#options.store.head(key))?.size === bytes) return true;
    if (!answered) return false;
    // Ours, and swept since: this append was so slow that maintenance took it for dead.
    throw new StoreError("staged_file_lost", `${key} was removed while it was staged: append again`, {
      retryable: true,
      cause: error,
      subject: key,
    });
  }

  #newKey(values: readonly PartitionValue[]): string {
    const { folder, base, partitionBy, newId } = this.#options;
    const path = partitionPath(partitionBy, values);
    const key = [folder, "data", ...(path === "" ? [] : [path]), `${base}-${newId()}.parquet`].join("/");
    this.#keys.push(key);
    return key;
  }
}
