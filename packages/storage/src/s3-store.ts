import { StoreError } from "@eider/core";
import { assertOneCondition } from "./conditions.js";
import { assertSafeKey } from "./keys.js";
import { PartBuffers } from "./part-bytes.js";
import { asksConditionsOfUploads } from "./s3-conditional.js";
import { S3Connection } from "./s3-connection.js";
import { deleteObjects } from "./s3-delete.js";
import { publicError } from "./s3-errors.js";
import { listObjects } from "./s3-listing.js";
import { getObject, headObject } from "./s3-object.js";
import { type S3Settings, type S3StoreOptions, settingsOf } from "./s3-options.js";
import { type PutParts, putObject } from "./s3-put.js";
import { Slots } from "./s3-upload.js";
import { listUploads } from "./s3-uploads.js";
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
 * A bucket of S3 or of a store that speaks it, or the part of one below a prefix. It needs the package
 * `@aws-sdk/client-s3`, which is loaded with the first request; making a store sends nothing.
 *
 * Bodies up to `partBytes` are one PutObject, longer ones a multipart upload whose parts leave while the body is
 * produced. Each put marks its object in the metadata (`eider-put`), so that it knows its own success again when the
 * answer was lost. An abort counts until the request that makes the object visible is out.
 */
export class S3Store implements ObjectStore {
  readonly url: string;
  readonly #settings: S3Settings;
  readonly #connection: S3Connection;
  readonly #parts: PutParts;
  readonly #closing = new AbortController();
  /** Puts and deletes that closing waits for. */
  readonly #running = new Set<Promise<unknown>>();
  #conditionalMultipart: boolean | Promise<boolean> | undefined;

  /** @throws InvalidInputError (`bad_store_options`) that names the option */
  constructor(options: S3StoreOptions) {
    this.#settings = settingsOf(options);
    this.url = this.#settings.url;
    this.#connection = new S3Connection(this.#settings);
    const { endpoint, client, conditionalMultipart, maxInFlight, partBytes } = this.#settings;
    const ours = endpoint === undefined && client === undefined;
    this.#conditionalMultipart = conditionalMultipart ?? (ours ? true : undefined);
    this.#parts = {
      connection: this.#connection,
      slots: new Slots(maxInFlight),
      buffers: new PartBuffers(partBytes, maxInFlight),
      conditionalMultipart: () => this.#asksConditions(),
    };
  }

  get capabilities(): StoreCapabilities {
    const { partBytes, maxParts, maxConditionalBytes } = this.#settings;
    const maxObjectBytes = partBytes * maxParts;
    return {
      conditionalPut: true,
      conditionalReplace: true,
      maxObjectBytes,
      maxConditionalBytes: this.#conditionalMultipart === true ? maxObjectBytes : maxConditionalBytes,
    };
  }

  put(key: string, body: ObjectBody, options: PutOptions = {}): Promise<ObjectInfo> {
    return this.#run(options.signal, (signal) => {
      assertSafeKey(key);
      assertOneCondition(options);
      this.#assertWritable(key);
      return putObject(this.#parts, key, body, options, signal);
    });
  }

  get(key: string, options: GetOptions = {}): Promise<StoredObject> {
    return this.#run(options.signal, (signal) => {
      assertSafeKey(key);
      return getObject(this.#connection, key, options.range, signal);
    });
  }

  head(key: string, options: CallOptions = {}): Promise<ObjectInfo | undefined> {
    return this.#run(options.signal, async (signal) => {
      assertSafeKey(key);
      return (await headObject(this.#connection, key, signal))?.info;
    });
  }

  async *list(prefix: string, options: ListOptions = {}): AsyncGenerator<ObjectInfo> {
    const signal = this.#signal(options.signal);
    yield* listObjects(this.#connection, prefix, { ...options, signal });
  }

  delete(keys: string | readonly string[], options: CallOptions = {}): Promise<void> {
    return this.#run(options.signal, async (signal) => {
      const all = typeof keys === "string" ? [keys] : keys;
      for (const key of all) assertSafeKey(key);
      this.#assertWritable(all[0] ?? "");
      if (all.length > 0) await deleteObjects(this.#connection, all, signal);
    });
  }

  async *unfinishedUploads(prefix: string, options: CallOptions = {}): AsyncGenerator<UnfinishedUpload> {
    try {
      yield* listUploads(this.#connection, prefix, this.#signal(options.signal));
    } catch (error) {
      throw publicError(error);
    }
  }

  serverTime(): number | undefined {
    return this.#connection.serverTime();
  }

  /** Ends what is running, with `store_closed`; waits until no upload is left behind. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(this.#closed());
    await Promise.allSettled(this.#running);
    this.#connection.close();
  }

  async #run<T>(signal: AbortSignal | undefined, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const running = (async () => {
      try {
        return await call(this.#signal(signal));
      } catch (error) {
        throw publicError(error);
      }
    })();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Of the caller and of the store. @throws the reason of one that is aborted */
  #signal(signal: AbortSignal | undefined): AbortSignal {
    signal?.throwIfAborted();
    this.#closing.signal.throwIfAborted();
    return signal === undefined
      ? AbortSignal.any([this.#closing.signal])
      : AbortSignal.any([signal, this.#closing.signal]);
  }

  /** One answer for all who ask, so it ends with the store and not with one of their signals. */
  #asksConditions(): Promise<boolean> {
    const known = this.#conditionalMultipart;
    if (known !== undefined) return Promise.resolve(known);
    const asking = asksConditionsOfUploads(this.#connection, this.#closing.signal);
    this.#conditionalMultipart = asking;
    asking.then(
      (answer) => (this.#conditionalMultipart = answer),
      // The next one asks again.
      () => (this.#conditionalMultipart = undefined),
    );
    return asking;
  }

  #assertWritable(key: string): void {
    if (!this.#settings.readOnly) return;
    throw new StoreError("store_read_only", `${this.url} was opened to read only: open it to write.`, { subject: key });
  }

  #closed(): StoreError {
    return new StoreError("store_closed", `${this.url} is closed: open a new store.`);
  }
}
