import { InvalidInputError, StoreError } from "@eider/core";
import type { GetOptions, ObjectBody, PutOptions } from "./store.js";

/** Bytes in one piece of a body, so that an abort is seen soon and progress is told often. */
export const PIECE_BYTES: number = 1024 * 1024;

/** A half-open byte range inside an object. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

function isOffset(value: number | undefined): boolean {
  return value === undefined || (Number.isSafeInteger(value) && value >= 0);
}

/**
 * The range of `GetOptions` cut to an object of `size` bytes.
 * @throws InvalidInputError (`bad_range`) for offsets that are no whole numbers from 0, or an end before the start.
 */
export function resolveRange(range: GetOptions["range"], size: number): ByteRange {
  if (range === undefined) return { start: 0, end: size };
  if ("suffix" in range) {
    if (!isOffset(range.suffix)) throw badRange(range);
    return { start: Math.max(0, size - range.suffix), end: size };
  }
  const { start, end = size } = range;
  if (!isOffset(start) || !isOffset(range.end) || (range.end !== undefined && range.end < start)) throw badRange(range);
  const first = Math.min(start, size);
  return { start: first, end: Math.max(first, Math.min(end, size)) };
}

function badRange(range: GetOptions["range"]): InvalidInputError {
  const shown = JSON.stringify(range, (_, value) => (typeof value === "number" ? String(value) : value));
  return new InvalidInputError(
    "bad_range",
    `The range ${shown} is not valid: give whole numbers from 0, and an end that is not before the start.`,
  );
}

/**
 * Hands a body's chunks to `take` one by one and waits for each: that is the backpressure. Returns the bytes taken.
 * An abort ends it at once, even while the source hangs, and closes the source. A chunk is only valid until `take`
 * is done: its source may fill the same buffer again.
 * @throws the signal's reason, the source's own error, or InvalidInputError (`bad_body`) for anything but bytes.
 */
export async function drainBody(
  body: ObjectBody,
  options: Pick<PutOptions, "signal" | "onProgress">,
  take: (chunk: Uint8Array) => void | Promise<void>,
): Promise<number> {
  const { signal, onProgress } = options;
  signal?.throwIfAborted();
  if (body instanceof Uint8Array) {
    for (let start = 0; start < body.length; start += PIECE_BYTES) {
      const end = Math.min(start + PIECE_BYTES, body.length);
      await take(body.subarray(start, end));
      signal?.throwIfAborted();
      onProgress?.(end);
    }
    return body.length;
  }
  if (typeof body?.[Symbol.asyncIterator] !== "function") throw badBody(body);

  const iterator = body[Symbol.asyncIterator]();
  // One listener for the whole body: racing every chunk against one promise would grow that promise's list for ever.
  let rejectNext: ((reason: unknown) => void) | undefined;
  const onAbort = (): void => rejectNext?.(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  let total = 0;
  let pending = false;
  try {
    while (true) {
      pending = true;
      const next = iterator.next();
      const { done, value } = await (signal === undefined
        ? next
        : new Promise<IteratorResult<Uint8Array>>((resolve, reject) => {
            rejectNext = reject;
            next.then(resolve, reject);
          }));
      pending = false;
      signal?.throwIfAborted();
      if (done) return total;
      if (!(value instanceof Uint8Array)) throw badBody(value);
      const taken = take(value);
      if (taken !== undefined) await taken;
      total += value.length;
      onProgress?.(total);
      signal?.throwIfAborted();
    }
  } catch (error) {
    // As `for await` does: a source that failed by itself is not closed again. A generator that hangs in next()
    // answers return() only after it, so nobody waits for that one.
    if (!pending || signal?.aborted) {
      const closed = Promise.resolve(iterator.return?.()).catch(() => undefined);
      if (!pending) await closed;
    }
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}

function badBody(value: unknown): InvalidInputError {
  const kind = value === null ? "null" : typeof value;
  return new InvalidInputError("bad_body", `A body is a Uint8Array or an async iterable of them, not ${kind}.`);
}

/** A whole body as one new array, for stores that keep objects in memory. Options and errors as in `put`. */
export async function readBody(body: ObjectBody, options: PutOptions = {}): Promise<Uint8Array> {
  // Copied, and bytes at once: a caller may go on writing into its own, and a source may fill one buffer again.
  if (body instanceof Uint8Array) {
    const copy = body.slice();
    await drainBody(copy, options, () => undefined);
    return copy;
  }
  const chunks: Uint8Array[] = [];
  const total = await drainBody(body, options, (chunk) => {
    chunks.push(chunk.slice());
  });
  if (chunks.length === 1) return chunks[0]!;
  const bytes = new Uint8Array(total);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

/** A body that can be read once; a second reading throws, for it would otherwise end as if the object were empty. */
export class SingleBody implements AsyncIterable<Uint8Array> {
  readonly #open: () => AsyncIterator<Uint8Array>;
  readonly #key: string;
  #used = false;

  constructor(key: string, open: () => AsyncIterator<Uint8Array>) {
    this.#key = key;
    this.#open = open;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    if (this.#used) {
      throw new StoreError("body_used", `The body of ${this.#key} was read already: get the object again.`, {
        subject: this.#key,
      });
    }
    this.#used = true;
    return this.#open();
  }
}

/** The bytes of `source` in `range` as a body of fresh copies, checking the signal between pieces. */
export function memoryBody(
  key: string,
  source: Uint8Array,
  range: ByteRange,
  signal?: AbortSignal,
): AsyncIterable<Uint8Array> {
  return new SingleBody(key, async function* () {
    for (let start = range.start; start < range.end; start += PIECE_BYTES) {
      signal?.throwIfAborted();
      yield source.slice(start, Math.min(start + PIECE_BYTES, range.end));
    }
  });
}
