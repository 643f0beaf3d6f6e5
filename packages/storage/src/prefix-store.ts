import { assertSafeKey } from "./keys.js";
import type {
  CallOptions,
  GetOptions,
  ListOptions,
  ObjectBody,
  ObjectInfo,
  ObjectStore,
  PutOptions,
  StoredObject,
  UnfinishedUpload,
} from "./store.js";
import { StoreWrapper } from "./wrapper.js";

/** The part of a store below a folder, as a store of its own: its keys are relative to that folder. */
export class PrefixStore extends StoreWrapper {
  /** Ends with a slash. */
  readonly #prefix: string;

  /** @param folder a safe key, for example `tenants/42` */
  constructor(inner: ObjectStore, folder: string) {
    super(inner);
    assertSafeKey(folder);
    this.#prefix = `${folder}/`;
  }

  override get url(): string {
    const { url } = this.inner;
    return url.endsWith("/") || url.endsWith(":") ? `${url}${this.#prefix}` : `${url}/${this.#prefix}`;
  }

  override async put(key: string, body: ObjectBody, options?: PutOptions): Promise<ObjectInfo> {
    return this.#relative(await this.inner.put(this.#absolute(key), body, options));
  }

  override async get(key: string, options?: GetOptions): Promise<StoredObject> {
    return this.#relative(await this.inner.get(this.#absolute(key), options));
  }

  override async head(key: string, options?: CallOptions): Promise<ObjectInfo | undefined> {
    const info = await this.inner.head(this.#absolute(key), options);
    return info && this.#relative(info);
  }

  override async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    const { after } = options;
    const inner = after === undefined ? options : { ...options, after: this.#prefix + after };
    for await (const info of this.inner.list(this.#prefix + prefix, inner)) yield this.#relative(info);
  }

  override async delete(keys: string | readonly string[], options?: CallOptions): Promise<void> {
    const all = typeof keys === "string" ? this.#absolute(keys) : keys.map((key) => this.#absolute(key));
    await this.inner.delete(all, options);
  }

  protected override innerPath(key: string): string {
    return super.innerPath(this.#absolute(key));
  }

  protected override async *innerUploads(prefix: string, options?: CallOptions): AsyncGenerator<UnfinishedUpload> {
    for await (const upload of super.innerUploads(this.#prefix + prefix, options)) {
      yield { ...upload, key: upload.key.slice(this.#prefix.length) };
    }
  }

  /** Checked alone first: `..` must not become safe, nor an empty key a folder. */
  #absolute(key: string): string {
    assertSafeKey(key);
    return this.#prefix + key;
  }

  #relative<T extends ObjectInfo>(info: T): T {
    return { ...info, key: info.key.slice(this.#prefix.length) };
  }
}
