/**
 * Checkpoints of a shared lake: `_eider/checkpoint/<n>-<sha256>.sqlite.gz`, the index of snapshot n. A new host begins with
 * the newest one instead of the whole log. Two are kept, so that a damaged one does no harm; and only entries up to the
 * older one may be overwritten by stubs, so that either of them and the entries after it are the whole lake.
 */

import { createHash } from "node:crypto";
import { CorruptionError, NotFoundError } from "@eider/core";
import type { ObjectBody, ObjectInfo, ObjectStore } from "@eider/storage";
import type { Logger } from "../options.js";

const PREFIX = "_eider/checkpoint/";
const KEPT = 2;
/** Looks at a list that others change meanwhile. */
const LOOKS = 3;

/** An index as an object. */
export interface IndexCopy extends AsyncDisposable {
  readonly snapshot: number;
  /** Of the object. */
  readonly sha256: string;
  readonly bytes: number;
  readonly body: ObjectBody;
}

/** How an index becomes an object, and an object an index. */
export interface IndexCopies {
  /** The index as it is now. */
  write(): Promise<IndexCopy>;
  /**
   * Makes the index what a copy is, unless that is older. Nothing is changed before the whole body has been read, which
   * throws at its end if it is not what it should be.
   */
  load(body: AsyncIterable<Uint8Array>): Promise<void>;
}

/** What is read again after the newest checkpoint. */
export interface Replay {
  readonly entries: number;
  readonly bytes: number;
  /** Of the checkpoint itself; 0 if there is none. */
  readonly checkpointBytes: number;
}

export interface CheckpointLimits {
  /** Whether it is time for another one. Default: more than 8 MiB and than half the checkpoint. */
  readonly isDue: (replay: Replay) => boolean;
  /** Entries that a host reads one by one though there may be a newer checkpoint. Default 1000. */
  readonly replayEntries: number;
  /** An entry of fewer bytes is not worth the request that makes it a stub. Default 16 KiB. */
  readonly stubBytes: number;
}

export const CHECKPOINT_LIMITS: CheckpointLimits = {
  isDue: ({ bytes, checkpointBytes }) => bytes > Math.max(8 * 1024 * 1024, checkpointBytes / 2),
  replayEntries: 1000,
  stubBytes: 16 * 1024,
};

export interface Checkpoint {
  readonly key: string;
  readonly snapshot: number;
  readonly sha256: string;
  readonly bytes: number;
}

/** Newest first. */
export async function listCheckpoints(store: ObjectStore): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  for await (const object of store.list(PREFIX)) {
    const checkpoint = parse(object);
    if (checkpoint) found.push(checkpoint);
  }
  return found.reverse();
}

/**
 * Loads the newest checkpoint that is whole, if there is one of snapshot `least` or later.
 * @returns the one that was loaded
 */
export async function loadCheckpoint(
  store: ObjectStore,
  least: number,
  load: IndexCopies["load"],
  logger: Logger | undefined,
): Promise<Checkpoint | undefined> {
  const damaged = new Set<string>();
  for (let looks = 0; looks < LOOKS; looks++) {
    const found = (await listCheckpoints(store)).filter(
      ({ snapshot, key }) => snapshot >= least && snapshot > 0 && !damaged.has(key),
    );
    if (found.length === 0) return undefined;
    for (const checkpoint of found) {
      try {
        await load(wholeBody(store, checkpoint));
        return checkpoint;
      } catch (error) {
        // Gone: there were two newer ones meanwhile. Damaged: the one before it is as good.
        if (!(error instanceof NotFoundError || error instanceof CorruptionError)) throw error;
        damaged.add(checkpoint.key);
        logger?.warn?.("a checkpoint cannot be read", { key: checkpoint.key, error });
      }
    }
  }
  return undefined;
}

/** Puts a checkpoint, and deletes those that are not needed any more. */
export async function putCheckpoint(store: ObjectStore, copy: IndexCopy): Promise<Checkpoint> {
  const { snapshot, sha256, bytes } = copy;
  const key = checkpointKey(copy);
  // Not conditional: what has this name has this content.
  await store.put(key, copy.body);
  const old = (await listCheckpoints(store)).slice(KEPT);
  if (old.length > 0) await store.delete(old.map((checkpoint) => checkpoint.key));
  return { key, snapshot, sha256, bytes };
}

/** What has this name has this content. */
export function checkpointKey({ snapshot, sha256 }: Pick<IndexCopy, "snapshot" | "sha256">): string {
  return `${PREFIX}${String(snapshot).padStart(20, "0")}-${sha256}.sqlite.gz`;
}

/** The last snapshot that no host needs the entries of, since there are two checkpoints of it or later. */
export async function coveredSnapshot(store: ObjectStore): Promise<number> {
  return (await listCheckpoints(store))[KEPT - 1]?.snapshot ?? 0;
}

async function* wholeBody(store: ObjectStore, { key, sha256, bytes }: Checkpoint): AsyncIterable<Uint8Array> {
  const hash = createHash("sha256");
  let size = 0;
  for await (const chunk of (await store.get(key)).body) {
    hash.update(chunk);
    size += chunk.length;
    yield chunk;
  }
  if (size !== bytes || hash.digest("hex") !== sha256) {
    throw new CorruptionError("bad_checkpoint", `${key} is damaged`, { subject: key });
  }
}

function parse({ key, size }: ObjectInfo): Checkpoint | undefined {
  const match = /^(\d{20})-([0-9a-f]{64})\.sqlite\.gz$/.exec(key.slice(PREFIX.length));
  return match ? { key, snapshot: Number(match[1]), sha256: match[2]!, bytes: size } : undefined;
}
