/** What is in a store, as a second Parquet reader (hyparquet) sees it. */

import type { ObjectStore } from "@eider/storage";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";

export async function keysOf(store: ObjectStore): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of store.list("")) keys.push(key);
  return keys;
}

export async function bytesOf(store: ObjectStore, key: string): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of (await store.get(key)).body) chunks.push(chunk);
  return new Uint8Array(Buffer.concat(chunks));
}

/** The rows of one object, or of all that are Parquet, in order of their keys. */
export async function rowsOf(store: ObjectStore, key?: string): Promise<Record<string, unknown>[]> {
  const keys = key === undefined ? (await keysOf(store)).filter((each) => each.endsWith(".parquet")) : [key];
  const all: Record<string, unknown>[] = [];
  for (const each of keys) {
    const bytes = await bytesOf(store, each);
    const file = { byteLength: bytes.length, slice: (start: number, end?: number) => bytes.slice(start, end).buffer };
    all.push(...(await parquetReadObjects({ file, compressors })));
  }
  return all;
}
