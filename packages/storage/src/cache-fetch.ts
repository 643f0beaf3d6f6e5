import { createHash } from "node:crypto";
import { CorruptionError, StoreError } from "@eider/core";
import { drainBody, resolveRange } from "./body.js";
import type { ExcerptPlan } from "./cache-excerpt.js";
import { CacheFileError, type CacheFolder, type Reservation } from "./cache-folder.js";
import type { CachePiece, ObjectFacts } from "./cache-piece.js";
import type { Flight } from "./flights.js";
import type { GetOptions, ObjectBody, ObjectStore, StoredObject } from "./store.js";

/** What the caller knows of an object: another one is not what was asked for. */
export interface ExpectedObject {
  readonly etag?: string;
  /** Bytes. */
  readonly size?: number;
  /** Hexadecimal. */
  readonly sha256?: string;
}

/** Bytes from the store inside into the files of the cache. */
export class CacheFetch {
  readonly #inner: ObjectStore;
  readonly #folder: CacheFolder;
  readonly #blockBytes: number;

  constructor(inner: ObjectStore, folder: CacheFolder, blockBytes: number) {
    this.#inner = inner;
    this.#folder = folder;
    this.#blockBytes = blockBytes;
  }

  /** A whole object of at most `limit` bytes. */
  async whole(key: string, keyHash: string, limit: number, flight: Flight): Promise<void> {
    const object = await this.#inner.get(key, { signal: flight.signal });
    const room = await this.#room(object, object.size > limit ? undefined : [object.size]);
    if (room === undefined) flight.useless = true;
    else await this.#fill(room[0]!, object, keyHash, {}, flight);
  }

  /** A whole object into room that was made for it. */
  async copy(key: string, keyHash: string, room: Reservation, expected: ExpectedObject, flight: Flight): Promise<void> {
    try {
      const object = await this.#inner.get(key, { signal: flight.signal });
      const { etag = object.etag } = expected;
      if (object.etag !== etag || object.size !== room.bytes) {
        await close(object.body);
        const found = `${object.size} bytes instead of ${room.bytes}`;
        throw object.etag !== etag || expected.size === undefined ? changed(key) : damaged(key, found);
      }
      await this.#fill(room, object, keyHash, expected, flight);
    } finally {
      // Nothing is there any more if it was published.
      await this.#folder.cancel([room]);
    }
  }

  /** An excerpt of an object of `size` bytes. Returns how many were read from the store. */
  async excerpt(keyHash: string, room: Reservation, size: number, plan: ExcerptPlan, flight: Flight): Promise<number> {
    try {
      const handle = await this.#folder.openReserved(room);
      let fetched: number;
      try {
        const put = async (bytes: Uint8Array, at: number): Promise<void> => {
          for (let done = 0; done < bytes.length; ) {
            done += (await handle.write(bytes, done, bytes.length - done, at + done).catch(failedFile)).bytesWritten;
          }
        };
        fetched = await plan.write(put, flight.signal);
      } finally {
        await handle.close();
      }
      const sha256 = await this.#folder.hashReserved(room).catch(failedFile);
      if (sha256 === undefined) throw new Error(`the excerpt ${plan.name} has not the ${plan.bytes} bytes of its plan`);
      const facts = { size, etag: "", modifiedAt: 0 };
      const piece = { keyHash, facts, start: undefined, excerpt: plan.name, sha256 };
      await this.#folder.publish(room, piece, () => flight.spoiled);
      const replaced = this.#folder.excerpts(keyHash).filter(({ excerpt }) => plan.replaces.includes(excerpt!));
      await Promise.all(replaced.map((old) => this.#folder.drop(old)));
      return fetched;
    } finally {
      // Nothing is there any more if it was published.
      await this.#folder.cancel([room]);
    }
  }

  /** The whole blocks in a range. */
  async blocks(key: string, keyHash: string, range: NonNullable<GetOptions["range"]>, flight: Flight): Promise<void> {
    const object = await this.#inner.get(key, { range, signal: flight.signal });
    const got = resolveRange(range, object.size);
    const first = Math.ceil(got.start / this.#blockBytes) * this.#blockBytes;
    const sizes: number[] = [];
    for (let start = first; start < got.end; start += this.#blockBytes) {
      sizes.push(Math.min(this.#blockBytes, got.end - start));
    }
    const rooms = await this.#room(object, sizes);
    if (rooms === undefined) {
      flight.useless = true;
      return;
    }
    try {
      let [block, used, skip] = [0, 0, first - got.start];
      let buffer = new Uint8Array(sizes[0] ?? 0);
      await drainBody(object.body, { signal: flight.signal }, async (chunk) => {
        let from = Math.min(skip, chunk.length);
        skip -= from;
        while (from < chunk.length && block < rooms.length) {
          const part = chunk.subarray(from, from + buffer.length - used);
          buffer.set(part, used);
          from += part.length;
          used += part.length;
          if (used < buffer.length) continue;
          const start = first + block * this.#blockBytes;
          await this.#fill(rooms[block]!, { ...object, body: buffer }, keyHash, {}, flight, start);
          buffer = new Uint8Array(sizes[++block] ?? 0);
          used = 0;
        }
      });
      if (block < rooms.length) throw short(key);
    } finally {
      await this.#folder.cancel(rooms);
    }
  }

  /** Closes the object if there is no room for it. */
  async #room(object: StoredObject, sizes: readonly number[] | undefined): Promise<readonly Reservation[] | undefined> {
    let rooms: readonly Reservation[] | undefined;
    try {
      rooms = sizes && (await this.#folder.reserve(sizes));
    } finally {
      if (rooms === undefined) await close(object.body);
    }
    return rooms;
  }

  async #fill(
    room: Reservation,
    object: ObjectFacts & { readonly key: string; readonly body: ObjectBody },
    keyHash: string,
    expected: ExpectedObject,
    flight: Flight,
    start?: number,
  ): Promise<void> {
    const { key, body, size, etag, modifiedAt } = object;
    const hash = createHash("sha256");
    let bytes = 0;
    try {
      const handle = await this.#folder.openReserved(room);
      try {
        bytes = await drainBody(body, { signal: flight.signal }, async (chunk) => {
          hash.update(chunk);
          for (let done = 0; done < chunk.length; ) {
            done += (await handle.write(chunk, done).catch(failedFile)).bytesWritten;
          }
        });
      } finally {
        await handle.close();
      }
      if (bytes !== room.bytes) throw short(key);
    } catch (error) {
      await this.#folder.cancel([room]);
      if (error instanceof CacheFileError && !(body instanceof Uint8Array)) await close(body);
      throw error;
    }
    const digest = hash.digest();
    if (expected.sha256 !== undefined && digest.toString("hex") !== expected.sha256) {
      await this.#folder.cancel([room]);
      throw damaged(key, "other bytes");
    }
    const facts = { size, etag, modifiedAt };
    const isWhole = start === undefined || bytes === size;
    const piece: Omit<CachePiece, "name" | "id" | "bytes"> = {
      keyHash,
      facts,
      start: isWhole ? undefined : start,
      excerpt: undefined,
      sha256: digest.toString("base64url"),
    };
    await this.#folder.publish(room, piece, () => flight.spoiled);
  }
}

/** Ends a body that nobody will read, so that no connection waits. One that was opened is closed already. */
export async function close(body: AsyncIterable<Uint8Array>): Promise<void> {
  try {
    await body[Symbol.asyncIterator]().return?.();
  } catch {
    // It was to be closed.
  }
}

export function changed(key: string): StoreError {
  const message = `${key} is not the object that was asked for: it was replaced. Look at it again.`;
  return new StoreError("object_changed", message, { subject: key });
}

function damaged(key: string, found: string): CorruptionError {
  const message = `${key} has ${found}: it is not what was put. Run lake.verify().`;
  return new CorruptionError("damaged_object", message, { subject: key });
}

function short(key: string): StoreError {
  return new StoreError("short_read", `${key} ended early. Read it again.`, { subject: key, retryable: true });
}

function failedFile(error: unknown): never {
  throw new CacheFileError("write", { cause: error });
}
