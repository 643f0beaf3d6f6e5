/** What a statement reads of its tables, and where that comes from. */

import type { ListedFile, TableInfo } from "@eider/catalog";
import type { HeldFiles } from "./local-files.js";
import type { QueryStats, ReadCount } from "./query.js";

/** Of one table at one snapshot. */
export interface TableReads {
  readonly table: string;
  readonly snapshot: number;
  readonly filesConsidered: number;
  readonly from: QueryStats["from"];
}

export function tableReads(
  { name, files: filesConsidered, hotBatches, hotBytes }: TableInfo,
  snapshot: number,
  files: readonly ListedFile[],
  held: HeldFiles,
): TableReads {
  const sources = files.map((file) => held.source(file));
  const count = (from: "store" | "cache"): ReadCount => {
    const of = sources.filter((source) => source.from === from);
    return { count: of.length, bytes: of.reduce((sum, { bytes }) => sum + bytes, 0) };
  };
  return {
    table: name,
    snapshot,
    filesConsidered,
    from: {
      store: count("store"),
      cache: count("cache"),
      hot: { count: hotBatches, bytes: hotBytes },
    },
  };
}

/** All of a statement's tables together. */
export function totalReads(tables: readonly TableReads[]): Pick<QueryStats, "filesConsidered" | "filesRead" | "from"> {
  const sum = (of: (table: TableReads) => number): number => tables.reduce((total, table) => total + of(table), 0);
  const from = (source: keyof QueryStats["from"]): ReadCount => ({
    count: sum((table) => table.from[source].count),
    bytes: sum((table) => table.from[source].bytes),
  });
  return {
    filesConsidered: sum((table) => table.filesConsidered),
    filesRead: sum((table) => table.from.store.count + table.from.cache.count),
    from: { store: from("store"), cache: from("cache"), hot: from("hot") },
  };
}

/** A line for each table, for people. */
export function explainReads(tables: readonly TableReads[]): string {
  return tables
    .map(({ table, snapshot, filesConsidered, from: { store, cache, hot } }) => {
      const read = store.count + cache.count;
      const line =
        `${table} at snapshot ${snapshot}: ${read} of ${filesConsidered} files, ${filesConsidered - read} left out; ` +
        `from the store ${counted(store, "file", "files")}, from the cache ${counted(cache, "file", "files")}`;
      return hot.count === 0 ? line : `${line}, from the catalog ${counted(hot, "hot batch", "hot batches")}`;
    })
    .join("\n");
}

function counted({ count, bytes }: ReadCount, one: string, many: string): string {
  return count === 0 ? "none" : `${count} ${count === 1 ? one : many} of ${bytes} bytes`;
}
