/** A multipart upload: parts in, one object out, or nothing left behind. */

import type { CompletedPart } from "@aws-sdk/client-s3";
import { StoreError } from "@eider/core";
import { Backoff } from "./backoff.js";
import { type Commit, commit, putUnsettled, settle } from "./s3-commit.js";
import type { S3Connection } from "./s3-connection.js";
import { publicError, S3Failure } from "./s3-errors.js";
import { MARK } from "./s3-object.js";
import type { ObjectInfo } from "./store.js";

/** Giving an upload up ends after this time, also when the store does not answer. */
const ABORT_MILLISECONDS = 30_000;
/** A part on its way may arrive after its upload was aborted: then it is aborted again. */
const ABORT_ROUNDS = 5;
/** Times in listings of uploads are whole seconds, and taken before the answer is sent. */
const LISTED_EARLIER_MILLISECONDS = 5000;

/** Lets this many in at once; the others wait in the order they came. */
export class Slots {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot. @throws the signal's reason */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free--;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(enter);
    });
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

export class Upload {
  readonly #connection: S3Connection;
  readonly #slots: Slots;
  readonly #key: string;
  readonly #id: string;
  readonly #parts: CompletedPart[] = [];
  readonly #running = new Set<Promise<void>>();
  /** Aborts with the first error of a part. */
  readonly #failed = new AbortController();
  #count = 0;
  #gone: Promise<boolean> | undefined;

  private constructor(connection: S3Connection, slots: Slots, key: string, id: string) {
    this.#connection = connection;
    this.#slots = slots;
    this.#key = key;
    this.#id = id;
  }

  /** @throws the public error or the signal's reason; then there is no upload */
  static async begin(
    connection: S3Connection,
    slots: Slots,
    key: string,
    mark: string,
    signal: AbortSignal | undefined,
  ): Promise<Upload> {
    const input = { Key: connection.absolute(key), Metadata: { [MARK]: mark } };
    const began = connection.serverTime() ?? connection.now();
    const backoff = new Backoff(connection.settings.retry);
    let unknown = false;
    let id: string | undefined;
    try {
      while (id === undefined) {
        try {
          // Given up half-way, it would leave an upload behind whose id nobody knows.
          const mode = { untilSent: true, ...(signal === undefined ? {} : { abortSignal: signal }) };
          ({ UploadId: id } = await connection.request("CreateMultipartUpload", input, mode));
          if (id === undefined)
            throw new StoreError("store_failed", `${key}: the store began an upload without an id.`);
        } catch (error) {
          unknown ||= error instanceof S3Failure && error.unknown;
          await backoff.wait(publicError(error), signal);
        }
      }
    } finally {
      if (unknown) await abortStrays(connection, key, began, id);
    }
    const upload = new Upload(connection, slots, key, id);
    if (signal?.aborted) await upload.abort();
    signal?.throwIfAborted();
    return upload;
  }

  /** Aborts when a part has failed for good, with its error. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  /**
   * Sends one part: waits until it is under way, not until it is there.
   * @param bytes not changed any more
   * @param onDone called when it is there
   * @throws the error of an earlier part, or the signal's reason
   */
  async add(bytes: Uint8Array, signal: AbortSignal, onDone?: () => void): Promise<void> {
    const number = ++this.#count;
    await this.#slots.take(AbortSignal.any([signal, this.failed]));
    const running = this.#send(number, bytes, signal)
      .then(onDone)
      .catch((error: unknown) => this.#failed.abort(error))
      .finally(() => {
        this.#slots.give();
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  /**
   * Waits for the parts and makes the object visible.
   * @throws what `commit` does, or the error of a part; then the upload is to be aborted
   */
  async complete(put: Commit): Promise<ObjectInfo> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    this.failed.throwIfAborted();
    const Key = this.#connection.absolute(this.#key);
    const input = { Key, UploadId: this.#id, MultipartUpload: { Parts: this.#parts } };
    try {
      return await commit(this.#connection, "CompleteMultipartUpload", input, put);
    } catch (error) {
      if (!(error instanceof StoreError && error.code === "put_unsettled")) throw error;
      // An upload that is gone cannot be completed later: so the outcome can be known after all.
      if (!(await this.abort())) throw error;
      const found = await settle(this.#connection, this.#key).catch(() => {
        throw error;
      });
      if (found?.mark === put.mark) return found.info;
      throw found === undefined && error.cause instanceof StoreError
        ? error.cause
        : putUnsettled(this.#key, error.cause);
    }
  }

  /**
   * Gives the upload up with all its parts, also those still on their way. It never fails: what a store that does not
   * answer keeps is for its rule on incomplete uploads.
   * @returns whether it is gone for sure
   */
  abort(): Promise<boolean> {
    this.#gone ??= (async () => {
      this.#failed.abort(new StoreError("upload_lost", `${this.#key}: the upload was given up.`));
      while (this.#running.size > 0) await Promise.all(this.#running);
      return abortUpload(this.#connection, this.#key, this.#id);
    })();
    return this.#gone;
  }

  async #send(number: number, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    const input = { Key: this.#connection.absolute(this.#key), UploadId: this.#id, PartNumber: number, Body: bytes };
    // A part that is out as a whole is waited for: it could arrive after the upload was aborted.
    const stop = AbortSignal.any([signal, this.failed]);
    const backoff = new Backoff(this.#connection.settings.retry);
    while (true) {
      try {
        const mode = { abortSignal: stop, untilSent: true };
        const { ETag, ChecksumCRC32 } = await this.#connection.request("UploadPart", input, mode);
        const checksum = ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 };
        this.#parts[number - 1] = { PartNumber: number, ETag, ...checksum };
        return;
      } catch (error) {
        await backoff.wait(publicError(error), stop);
      }
    }
  }
}

/** A stream cannot be longer than its parts. */
export function tooLong(key: string, { settings }: S3Connection): StoreError {
  const { maxParts, partBytes } = settings;
  const most = `${maxParts} parts of ${partBytes} bytes`;
  return new StoreError("object_too_large", `${key} is longer than ${most}. Write more objects, or use larger parts.`, {
    subject: key,
  });
}

export async function abortUpload(connection: S3Connection, key: string, id: string): Promise<boolean> {
  const input = { Key: connection.absolute(key), UploadId: id };
  const mode = { abortSignal: AbortSignal.timeout(ABORT_MILLISECONDS) };
  const gone = (failure: S3Failure): boolean => failure.status === 404;
  try {
    for (let round = 0; round < ABORT_ROUNDS; round++) {
      await connection.retry("AbortMultipartUpload", input, mode, gone);
      await connection.retry("ListParts", { ...input, MaxParts: 1 }, mode, gone);
    }
    return false;
  } catch (error) {
    return error instanceof S3Failure;
  }
}

/**
 * Uploads that a lost answer left behind: those of this key that began since. Racing writers of one key would lose
 * theirs too, but large objects have keys of their own.
 */
async function abortStrays(
  connection: S3Connection,
  key: string,
  began: number,
  except: string | undefined,
): Promise<void> {
  const Prefix = connection.absolute(key);
  const mode = { abortSignal: AbortSignal.timeout(ABORT_MILLISECONDS) };
  try {
    const { Uploads = [] } = await connection.retry("ListMultipartUploads", { Prefix }, mode);
    for (const { Key, UploadId, Initiated } of Uploads) {
      if (Key !== Prefix || UploadId === undefined || UploadId === except) continue;
      if (Number(Initiated ?? 0) >= began - LISTED_EARLIER_MILLISECONDS) await abortUpload(connection, key, UploadId);
    }
  } catch {
    // Not allowed, or no answer: the store's rule on incomplete uploads ends them.
  }
}
