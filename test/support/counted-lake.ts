import { SqliteCatalog } from "@eider/catalog";
import { CountingStore, MemoryStore } from "@eider/storage";
import { Lake, type Table } from "eider";
import { FILES } from "./files.js";

/** A lake in memory, a table of it, and how many puts there were since the last time that was asked. */
export async function openCounted(): Promise<{ lake: Lake; table: Table; puts: () => number }> {
  const store = new CountingStore(new MemoryStore());
  const lake = await Lake.open({ store, catalog: await SqliteCatalog.open({ path: ":memory:" }) }, FILES);
  const puts = (): number => {
    const { requests } = store.counts.put;
    store.reset();
    return requests;
  };
  puts();
  return { lake, table: lake.table("t"), puts };
}
