import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  PutOptions,
  StoredObject,
} from "./store.js";
import { StoreWrapper } from "./wrapper.js";

/** What went through a `CountingStore` since it was made or last reset. Failed calls count as requests too. */
export interface StoreCounts {
  readonly put: { readonly requests: number; readonly bytes: number };
  readonly get: { readonly requests: number; readonly bytes: number };
  readonly head: { readonly requests: number };
  readonly list: { readonly requests: number; readonly keys: number };
  readonly delete: { readonly requests: number; readonly keys: number };
}

function zero(): { [K in keyof StoreCounts]: { -readonly [C in keyof StoreCounts[K]]: number } } {
  return {
    put: { requests: 0, bytes: 0 },
    get: { requests: 0, bytes: 0 },
    head: { requests: 0 },
    list: { requests: 0, keys: 0 },
    delete: { requests: 0, keys: 0 },
  };
}

/** Counts requests and bytes by kind of call: what an operation costs in a store that bills for them. */
export class CountingStore extends StoreWrapper {
  #counts = zero();

  /** A copy: it does not change any more. */
  get counts(): StoreCounts {
    return structuredClone(this.#counts);
  }

  /** Starts again at zero. */
  reset(): void {
    this.#counts = zero();
  }

  override put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    const counts = this.#counts.put;
    counts.requests++;
    let counted = 0;
    const onProgress = (bytes: number): void => {
      counts.bytes += bytes - counted;
      counted = bytes;
      options.onProgress?.(bytes);
    };
    return this.inner.put(key, body, { ...options, onProgress });
  }

  override async get(key: string, options?: GetOptions): Promise<StoredObject> {
    const counts = this.#counts.get;
    counts.requests++;
    const object = await this.inner.get(key, options);
    return { ...object, body: counted(object.body, (bytes) => (counts.bytes += bytes)) };
  }

  override head(key: string, options?: CallOptions): Promise<ObjectInfo | undefined> {
    this.#counts.head.requests++;
    return this.inner.head(key, options);
  }

  override async *list(prefix: string, options?: ListOptions): AsyncGenerator<ObjectInfo> {
    const counts = this.#counts.list;
    counts.requests++;
    for await (const info of this.inner.list(prefix, options)) {
      counts.keys++;
      yield info;
    }
  }

  override delete(keys: string | readonly string[], options?: CallOptions): Promise<void> {
    this.#counts.delete.requests++;
    this.#counts.delete.keys += typeof keys === "string" ? 1 : keys.length;
    return this.inner.delete(keys, options);
  }
}

/** Opens the inner body when the outer one is opened, so that a second reading fails as it does there. */
function counted(body: AsyncIterable<Uint8Array>, add: (bytes: number) => void): AsyncIterable<Uint8Array> {
  return {
    [Symbol.asyncIterator]() {
      return countChunks(body[Symbol.asyncIterator](), add);
    },
  };
}

async function* countChunks(
  chunks: AsyncIterator<Uint8Array>,
  add: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of { [Symbol.asyncIterator]: () => chunks }) {
    add(chunk.length);
    yield chunk;
  }
}
