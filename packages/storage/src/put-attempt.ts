import { createHash, type Hash } from "node:crypto";
import type { CallOptions, ObjectBody, ObjectInfo, ObjectStore, PutOptions } from "./store.js";

/** A body that may be given to several tries of a put, and what is known of its bytes. */
export class PutAttempt {
  readonly #body: ObjectBody;
  readonly #options: PutOptions;
  #hash: Hash | undefined;
  #size = 0;
  #opened = false;
  #ended = false;
  #told = 0;

  constructor(body: ObjectBody, options: PutOptions) {
    this.#body = body;
    this.#options = options;
  }

  /** Whether the next try can give all bytes again. A stream can be read once: only before a try has opened it. */
  get canRepeat(): boolean {
    return this.#body instanceof Uint8Array || !this.#opened;
  }

  /** Whether a try was given all bytes, so that the object may be there. */
  get wasGiven(): boolean {
    return this.#body instanceof Uint8Array || this.#ended;
  }

  body(): ObjectBody {
    const body = this.#body;
    if (body instanceof Uint8Array || typeof body?.[Symbol.asyncIterator] !== "function") return body;
    return { [Symbol.asyncIterator]: () => this.#read(body) };
  }

  /** Progress never goes back: a second try tells nothing until it is where the first one was. */
  options(): PutOptions {
    const { onProgress } = this.#options;
    if (onProgress === undefined) return this.#options;
    return {
      ...this.#options,
      onProgress: (bytes) => {
        if (bytes < this.#told) return;
        this.#told = bytes;
        onProgress(bytes);
      },
    };
  }

  /** The object under the key, if it has exactly this body's bytes. */
  async findStored(store: ObjectStore, key: string, options: CallOptions): Promise<ObjectInfo | undefined> {
    const body = this.#body;
    const info = await store.head(key, options);
    if (info === undefined || info.size !== (body instanceof Uint8Array ? body.length : this.#size)) return undefined;
    const wanted = body instanceof Uint8Array ? createHash("sha256").update(body) : this.#hash?.copy();
    const { body: stored, ...found } = await store.get(key, options);
    const hash = createHash("sha256");
    for await (const chunk of stored) hash.update(chunk);
    return hash.digest("hex") === wanted?.digest("hex") ? found : undefined;
  }

  #read(body: AsyncIterable<Uint8Array>): AsyncIterator<Uint8Array> {
    this.#opened = true;
    this.#hash = createHash("sha256");
    const source = body[Symbol.asyncIterator]();
    return {
      next: async () => {
        const result = await source.next();
        if (result.done) this.#ended = true;
        else if (result.value instanceof Uint8Array) {
          this.#hash?.update(result.value);
          this.#size += result.value.length;
        }
        return result;
      },
      return: async (value) => (await source.return?.(value)) ?? { done: true, value },
    };
  }
}
