/**
 * The contract of a store: where bytes live. Keys are relative, `/`-separated, and literal (never percent-decoded).
 * Every adapter runs the same conformance suite (`@eider/storage/conformance`).
 */

/** What `head`, `get` and `list` know of an object. */
export interface ObjectInfo {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** Opaque; changes whenever the content does. */
  readonly etag: string;
  /**
   * Milliseconds since the epoch, by the store's clock, which may show whole seconds only. A `put` may give the time of
   * its answer; the other calls agree with each other.
   */
  readonly modifiedAt: number;
}

export type ObjectBody = Uint8Array | AsyncIterable<Uint8Array>;

export interface PutOptions {
  /** Create only: an existing object stays and the call throws `AlreadyExistsError`. Default false: overwrite. */
  readonly ifAbsent?: boolean;
  /**
   * Replace only: unless the object has this etag at the commit point, nothing changes and the call throws `StoreError`
   * `etag_mismatch`, also where there is no object. Needs `conditionalReplace`; not together with `ifAbsent`. Where etags
   * are made from the bytes, one that was replaced by equal bytes has it still.
   */
  readonly ifMatch?: string;
  /**
   * `none`: the request that makes the object visible is sent once, for callers who find out themselves what became of
   * it; no answer, or one that does not settle it, is `put_unsettled`. Default `safe`: the store may try again, and looks
   * whether it was its own earlier try that succeeded.
   */
  readonly retries?: "safe" | "none";
  readonly signal?: AbortSignal;
  /** Called with the bytes taken so far. */
  readonly onProgress?: (bytes: number) => void;
}

export interface GetOptions {
  /** Byte range `[start, end)`; `end` beyond the object is cut; a start at or beyond the end gives no bytes. */
  readonly range?: { readonly start: number; readonly end?: number } | { readonly suffix: number };
  readonly signal?: AbortSignal;
}

export interface StoredObject extends ObjectInfo {
  /**
   * The bytes asked for, in pieces, to be read once. A read that ends short throws `StoreError`; it never ends as if
   * complete.
   */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface ListOptions {
  /** Keys strictly after this one. */
  readonly after?: string;
  readonly signal?: AbortSignal;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** A put that was begun and is not finished: under way, or left behind by a process that was killed. */
export interface UnfinishedUpload {
  readonly key: string;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly startedAt: number;
  /** Ends it, whoever began it: nothing of it becomes visible any more. */
  abort(): Promise<void>;
}

/** What a store can do beyond the five calls. Wrappers forward these. */
export interface StoreCapabilities {
  /** `ifAbsent` is atomic among racing writers. */
  readonly conditionalPut: boolean;
  /** `ifMatch` is there, and atomic among racing writers. Without it, `ifMatch` is refused (`no_conditional_replace`). */
  readonly conditionalReplace: boolean;
  /** Bytes of the largest streamed object; `Infinity` if only space limits it. A longer stream is `object_too_large`. */
  readonly maxObjectBytes: number;
  /** Bytes of the largest stream that may be put with a condition; a longer one is `condition_too_large`. */
  readonly maxConditionalBytes: number;
}

/**
 * Five calls. All may throw `StoreError`; unsafe keys throw `InvalidInputError` (`bad_key`); an aborted signal makes a
 * call, or the body or listing it gave, throw the signal's reason. A put looks at its signal only up to its commit point.
 * - `put` is atomic: readers see the whole object or none. A put that throws leaves nothing new visible under
 *   the key; only `StoreError` `put_unsettled` says that it may have, or still may. It is never `retryable`: look first.
 * - `get` and `head` of an absent key: `NotFoundError` from `get`, `undefined` from `head`.
 * - `list` gives keys under a prefix (a plain string prefix) in ascending order of their UTF-8 bytes, without temporary files.
 * - `delete` of an absent key succeeds.
 */
export interface ObjectStore extends AsyncDisposable {
  /** For messages: `memory:`, `file:///…`; never with credentials. */
  readonly url: string;
  readonly capabilities: StoreCapabilities;
  put(key: string, body: ObjectBody, options?: PutOptions): Promise<ObjectInfo>;
  get(key: string, options?: GetOptions): Promise<StoredObject>;
  head(key: string, options?: CallOptions): Promise<ObjectInfo | undefined>;
  list(prefix: string, options?: ListOptions): AsyncIterable<ObjectInfo>;
  delete(keys: string | readonly string[], options?: CallOptions): Promise<void>;
  /** The absolute path of an object for engines that read files, where the store has one. */
  localPath?(key: string): string;
  /** Uploads of keys under a prefix, where the store keeps those that are not finished until somebody ends them. */
  unfinishedUploads?(prefix: string, options?: CallOptions): AsyncIterable<UnfinishedUpload>;
  /**
   * Milliseconds since the epoch by the store's own clock, where it has one: what it told with its last answer, plus the
   * time since. Undefined before the first answer.
   */
  serverTime?(): number | undefined;
}
