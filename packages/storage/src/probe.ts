import { randomUUID } from "node:crypto";
import { AlreadyExistsError, StoreError } from "@eider/core";
import type { ObjectStore } from "./store.js";

/** Where probes put their objects, which they delete again. */
export const PROBE_FOLDER = "_eider/probe";
const ROUNDS = 8;
const RACERS = 4;

/**
 * Whether writers can leave it to the store who of them is first: races some creates of small objects below
 * `_eider/probe/` and, where the store says that it can, some replacements.
 * @throws StoreError `no_conditional_put`, `no_conditional_replace`: the store does not keep what it says
 * @throws StoreError as the store's calls do
 */
export async function probeStore(store: ObjectStore, options: { readonly signal?: AbortSignal } = {}): Promise<void> {
  const keys: string[] = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const key = `${PROBE_FOLDER}/${randomUUID()}`;
      keys.push(key);
      const won = await race("create", (body) => store.put(key, body, { ...options, ifAbsent: true }), isLoss);
      if (won !== 1) throw lacks("no_conditional_put", store, "creates", won);
      if (!store.capabilities.conditionalReplace) continue;
      const etag = (await store.head(key, options))?.etag ?? "";
      const replaced = await race("replace", (body) => store.put(key, body, { ...options, ifMatch: etag }), isMismatch);
      if (replaced !== 1) throw lacks("no_conditional_replace", store, "replacements", replaced);
    }
  } finally {
    await store.delete(keys).catch(() => undefined);
  }
}

/** How many of the racers won. What is neither won nor lost is thrown. */
async function race(
  what: string,
  put: (body: Uint8Array) => Promise<unknown>,
  isLost: (error: unknown) => boolean,
): Promise<number> {
  const racers = Array.from({ length: RACERS }, (_, i) => put(new TextEncoder().encode(`${what} ${i}`)));
  const ends = await Promise.allSettled(racers);
  for (const end of ends) if (end.status === "rejected" && !isLost(end.reason)) throw end.reason;
  return ends.filter(({ status }) => status === "fulfilled").length;
}

const isLoss = (error: unknown): boolean => error instanceof AlreadyExistsError;
const isMismatch = (error: unknown): boolean => error instanceof StoreError && error.code === "etag_mismatch";

function lacks(code: string, store: ObjectStore, what: string, won: number): StoreError {
  const seen = `of ${RACERS} racing ${what} of one object ${won} succeeded`;
  const advice = "Several writers would overwrite each other there: use another store, or a newer release of it.";
  return new StoreError(code, `${store.url} has no conditional writes: ${seen}. ${advice}`);
}
