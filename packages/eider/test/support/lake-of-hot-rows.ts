/** A lake in memory, with a clock to be set, whose table `t` gets hot batches. */

import { type Catalog, SqliteCatalog } from "@eider/catalog";
import { MemoryStore } from "@eider/storage";
import { Lake } from "../../src/lake.js";
import type { TableOptions } from "../../src/options.js";
import { appendHot } from "./hot-rows.js";

export class Opened implements AsyncDisposable {
  readonly store = new MemoryStore();
  now = Date.UTC(2030, 0, 1);
  #parts: { readonly lake: Lake; readonly catalog: Catalog } | undefined;

  /** A lake with a table `t` of the given columns. Its own appends make files: what is hot, {@link append} made. */
  static async with(options: TableOptions): Promise<Opened> {
    const opened = new Opened();
    const clock = (): number => opened.now;
    const catalog = await SqliteCatalog.open({ path: ":memory:", clock });
    const lake = await Lake.open({ store: opened.store, catalog }, { clock, inlineBytes: 0 });
    opened.#parts = { lake, catalog };
    await lake.table("t", options).create();
    return opened;
  }

  get lake(): Lake {
    return this.#parts!.lake;
  }

  get catalog(): Catalog {
    return this.#parts!.catalog;
  }

  append(batches: Parameters<typeof appendHot>[2]): Promise<number> {
    return appendHot(this.catalog, "t", batches);
  }

  rows(at?: number): Promise<unknown[]> {
    return this.lake.with({ values: "json", ...(at !== undefined && { at }) }).sql("FROM t ORDER BY ALL");
  }

  async hot(): Promise<string[]> {
    const batches = await this.catalog.hotBatches((await this.catalog.table("t"))!.id);
    return batches.map(({ batchId }) => batchId);
  }

  async keys(): Promise<string[]> {
    const keys: string[] = [];
    for await (const { key } of this.store.list("")) if (!key.startsWith("_eider/")) keys.push(key);
    return keys;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lake.close();
  }
}

export const opened = (options: TableOptions = {}): Promise<Opened> =>
  Opened.with({ schema: { id: "int64", v: "string" }, ...options });
