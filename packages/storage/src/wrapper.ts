import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoreCapabilities,
  StoredObject,
  UnfinishedUpload,
} from "./store.js";

/**
 * A store around another one, forwarding everything: what is cross-cutting overrides the calls it concerns.
 * It owns the inner store and closes it.
 */
export abstract class StoreWrapper implements ObjectStore {
  /** Only there if the inner store has it: callers ask for its presence. */
  readonly localPath?: (key: string) => string;
  /** As `localPath`. */
  readonly serverTime?: () => number | undefined;
  /** As `localPath`. */
  readonly unfinishedUploads?: (prefix: string, options?: CallOptions) => AsyncIterable<UnfinishedUpload>;
  protected readonly inner: ObjectStore;

  constructor(inner: ObjectStore) {
    this.inner = inner;
    if (inner.localPath !== undefined) this.localPath = (key) => this.innerPath(key);
    if (inner.serverTime !== undefined) this.serverTime = () => this.inner.serverTime!();
    if (inner.unfinishedUploads !== undefined) {
      this.unfinishedUploads = (prefix, options) => this.innerUploads(prefix, options);
    }
  }

  get url(): string {
    return this.inner.url;
  }

  get capabilities(): StoreCapabilities {
    return this.inner.capabilities;
  }

  put(key: string, body: ObjectBody, options?: PutOptions): Promise<ObjectInfo> {
    return this.inner.put(key, body, options);
  }

  get(key: string, options?: GetOptions): Promise<StoredObject> {
    return this.inner.get(key, options);
  }

  head(key: string, options?: CallOptions): Promise<ObjectInfo | undefined> {
    return this.inner.head(key, options);
  }

  list(prefix: string, options?: ListOptions): AsyncIterable<ObjectInfo> {
    return this.inner.list(prefix, options);
  }

  delete(keys: string | readonly string[], options?: CallOptions): Promise<void> {
    return this.inner.delete(keys, options);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve(this.inner[Symbol.asyncDispose]());
  }

  /** What `localPath` gives where the inner store has it. */
  protected innerPath(key: string): string {
    return this.inner.localPath!(key);
  }

  /** What `unfinishedUploads` gives where the inner store has it. */
  protected innerUploads(prefix: string, options?: CallOptions): AsyncIterable<UnfinishedUpload> {
    return this.inner.unfinishedUploads!(prefix, options);
  }
}
