/** Small objects of the lake's own, which are read whole. */

import { NotFoundError } from "@eider/core";
import type { ObjectStore } from "@eider/storage";

export interface WholeObject {
  readonly bytes: Buffer;
  readonly etag: string;
}

/** @throws NotFoundError `object_not_found` */
export async function readObject(store: ObjectStore, key: string): Promise<WholeObject> {
  const { body, etag } = await store.get(key);
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return { bytes: Buffer.concat(chunks), etag };
}

/** Undefined if there is none. */
export async function findObject(store: ObjectStore, key: string): Promise<WholeObject | undefined> {
  try {
    return await readObject(store, key);
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
