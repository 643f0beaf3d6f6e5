import { AlreadyExistsError, NotFoundError, StoreError } from "@eider/core";
import { assertRetryOptions, Backoff, isRetryable, type RetryOptions, retrying } from "./backoff.js";
import { type ByteRange, resolveRange, SingleBody } from "./body.js";
import { PutAttempt } from "./put-attempt.js";
import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoredObject,
} from "./store.js";
import { StoreWrapper } from "./wrapper.js";

/**
 * Tries again what failed with a `retryable` error, after waits that grow.
 *
 * - A body or a listing that breaks off goes on where it was. If the object was replaced meanwhile, that is
 *   `object_changed`: bytes of two objects are never joined.
 * - A put of bytes is repeated. A put of a stream is repeated only if nothing of it was read.
 * - Was it an earlier try of the same put that succeeded? An object with exactly the put's bytes is taken for that, so
 *   whoever creates objects to win a race puts something of their own into them. What stays unknown is `put_unsettled`.
 * - `retries: "none"` is left to the caller.
 *
 * `S3Store` does all this by itself.
 */
export class RetryStore extends StoreWrapper {
  readonly #options: RetryOptions;

  /** @throws InvalidInputError (`bad_option`) */
  constructor(inner: ObjectStore, options: RetryOptions = {}) {
    super(inner);
    assertRetryOptions(options);
    this.#options = options;
  }

  override async put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    if (options.retries === "none") return this.inner.put(key, body, options);
    const attempt = new PutAttempt(body, options);
    const backoff = new Backoff(this.#options);
    let failed = false;
    let unsettled = false;
    while (true) {
      try {
        return await this.inner.put(key, attempt.body(), attempt.options());
      } catch (error) {
        unsettled ||= isUnsettled(error);
        const again = isRetryable(error) || isUnsettled(error);
        const mayBeOurs = isUnsettled(error) || (failed && isRefused(error)) || (again && !attempt.canRepeat);
        failed = true;
        try {
          if (mayBeOurs && attempt.wasGiven) {
            const stored = await this.#stored(key, attempt, options).catch((cause) => {
              unsettled = true;
              throw cause;
            });
            if (stored !== undefined) return stored;
          }
          await backoff.wait(error, options.signal, again && attempt.canRepeat);
        } catch (final) {
          // Another's object under the key is an answer; but what was to be replaced may have been, and again since.
          const answered = !unsettled || isUnsettled(final) || final instanceof AlreadyExistsError;
          throw answered ? final : stillUnsettled(key, final);
        }
      }
    }
  }

  override async get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    const object = await this.#retrying(() => this.inner.get(key, options), options);
    const range = resolveRange(options.range, object.size);
    return { ...object, body: new SingleBody(key, () => this.#read(object, range, options)) };
  }

  override head(key: string, options: CallOptions = {}): Promise<ObjectInfo | undefined> {
    return this.#retrying(() => this.inner.head(key, options), options);
  }

  override async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    const backoff = new Backoff(this.#options);
    let from = options;
    while (true) {
      try {
        for await (const info of this.inner.list(prefix, from)) {
          from = { ...options, after: info.key };
          backoff.reset();
          yield info;
        }
        return;
      } catch (error) {
        await backoff.wait(error, options.signal);
      }
    }
  }

  override delete(keys: string | readonly string[], options: CallOptions = {}): Promise<void> {
    return this.#retrying(() => this.inner.delete(keys, options), options);
  }

  #retrying<T>(attempt: () => Promise<T>, { signal }: CallOptions): Promise<T> {
    return retrying(attempt, this.#options, signal);
  }

  /** The object, if an earlier try of this put has stored it. */
  #stored(key: string, attempt: PutAttempt, { signal }: PutOptions): Promise<ObjectInfo | undefined> {
    const options = signal === undefined ? {} : { signal };
    return this.#retrying(() => attempt.findStored(this.inner, key, options), options);
  }

  async *#read(object: StoredObject, range: ByteRange, options: GetOptions): AsyncGenerator<Uint8Array> {
    const { key } = object;
    const { signal } = options;
    const backoff = new Backoff(this.#options);
    let next = range.start;
    for (let source: StoredObject | undefined = object; ; source = undefined) {
      try {
        source ??= await this.#resume(object, { start: next, end: range.end }, signal);
        for await (const chunk of source.body) {
          next += chunk.length;
          backoff.reset();
          yield chunk;
        }
        if (next === range.end) return;
        const message = `${key} gave ${next - range.start} bytes instead of ${range.end - range.start}. Read it again.`;
        throw new StoreError("short_read", message, { subject: key, retryable: next < range.end });
      } catch (error) {
        if (next === range.end && isRetryable(error)) return;
        await backoff.wait(error, signal);
      }
    }
  }

  async #resume(object: StoredObject, range: ByteRange, signal: AbortSignal | undefined): Promise<StoredObject> {
    const { key } = object;
    const rest = await this.inner.get(key, signal === undefined ? { range } : { range, signal }).catch((error) => {
      throw error instanceof NotFoundError ? changed(key, error) : error;
    });
    if (rest.etag === object.etag) return rest;
    // Opens and closes it, so that no connection waits for a reader.
    await rest.body[Symbol.asyncIterator]().return?.();
    throw changed(key);
  }
}

/** Refused because of what is there, which may be what an earlier try put. */
function isRefused(error: unknown): boolean {
  return error instanceof AlreadyExistsError || (error instanceof StoreError && error.code === "etag_mismatch");
}

function isUnsettled(error: unknown): boolean {
  return error instanceof StoreError && error.code === "put_unsettled";
}

function stillUnsettled(key: string, cause: unknown): StoreError {
  const message = `${key} may have been put: no try was answered clearly. Look with head, or put it again.`;
  return new StoreError("put_unsettled", message, { subject: key, cause });
}

function changed(key: string, cause?: unknown): StoreError {
  const message = `${key} was replaced or deleted while it was read. Get it again.`;
  return new StoreError("object_changed", message, { subject: key, cause });
}
