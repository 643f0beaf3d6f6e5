/** The request that makes an object visible, and what became of it when the answer does not say. */

import { AlreadyExistsError, StoreError } from "@eider/core";
import { Backoff } from "./backoff.js";
import { etagMismatch } from "./conditions.js";
import type { S3Calls, S3Connection } from "./s3-connection.js";
import { publicError, S3Failure } from "./s3-errors.js";
import { type Found, headObject, plainEtag, wholeSeconds } from "./s3-object.js";
import type { ObjectInfo, PutOptions } from "./store.js";

/** What is to become visible. */
export interface Commit {
  readonly key: string;
  readonly size: number;
  /** Random; in the object's metadata, so that a put knows its own object again. */
  readonly mark: string;
  readonly ifAbsent: boolean;
  readonly ifMatch: string | undefined;
  readonly retries: NonNullable<PutOptions["retries"]>;
  readonly signal: AbortSignal | undefined;
}

/** A look at what is there may take this long in all. */
const SETTLE_MILLISECONDS = 15_000;

type CommitOperation = "PutObject" | "CompleteMultipartUpload";

/**
 * Sends it, and again while that can help. A try without an answer may have had its effect, or have it later: a put
 * with a condition then finds its own object, known by its mark; one without a condition is put once more.
 * @throws AlreadyExistsError, StoreError `etag_mismatch`: another object is there, and stays
 * @throws StoreError `put_unsettled`: the object may be there, or come
 * @throws the public error or the signal's reason: nothing changed
 */
export async function commit<O extends CommitOperation>(
  connection: S3Connection,
  operation: O,
  input: Omit<S3Calls[O][0], "Bucket">,
  put: Commit,
): Promise<ObjectInfo> {
  const { key, signal } = put;
  const backoff = new Backoff(connection.settings.retry);
  // A client of the caller's cannot say whether an abort came before the request was out.
  const mode = {
    untilSent: true,
    ...(signal !== undefined && connection.tellsWhenSent ? { abortSignal: signal } : {}),
  };
  /** What a try failed with that may have had its effect. */
  let unsettled: unknown;
  let quotes = connection.quotesEtags;
  while (true) {
    try {
      signal?.throwIfAborted();
      const conditions = conditionsOf(put, quotes);
      const { ETag } = await connection.request(operation, { ...input, ...conditions } as never, mode);
      connection.quotesEtags = quotes;
      const etag = plainEtag(ETag);
      return operation === "PutObject" && etag !== "" ? told(connection, put, etag) : await look(connection, put, etag);
    } catch (error) {
      const failure = error instanceof S3Failure ? error : undefined;
      const cause = publicError(error);
      if (failure?.unknown) unsettled = cause;
      const once = put.retries === "none";
      if (once && unsettled !== undefined) throw putUnsettled(key, cause);
      const refused = failure?.status === 412 || (put.ifMatch !== undefined && failure?.s3Code === "NoSuchKey");
      if (refused) {
        if (once && put.ifAbsent) throw exists(key, cause);
        // It may be the answer to our own success: an earlier try was there before, or a proxy sent it twice.
        const found = await settle(connection, key).catch((reason: unknown) => {
          throw putUnsettled(key, reason);
        });
        if (found?.mark === put.mark) return found.info;
        if (put.ifMatch === undefined) throw exists(key, cause);
        if (found?.info.etag !== put.ifMatch || quotes !== connection.quotesEtags) throw etagMismatch(key, cause);
        // It is the right one: this store wants its etags the other way.
        quotes = !quotes;
        continue;
      }
      if (once) throw cause;
      try {
        await backoff.wait(cause, signal);
      } catch (last) {
        if (unsettled === undefined) throw last;
        const found = await settle(connection, key).catch((reason: unknown) => {
          throw putUnsettled(key, reason);
        });
        if (found?.mark === put.mark) return found.info;
        // Whoever is there keeps an earlier try with this condition from ever taking effect.
        if (put.ifAbsent && found !== undefined) throw exists(key, last);
        throw putUnsettled(key, last);
      }
    }
  }
}

/** Looks what is there, in bounded time and whatever the caller's signal says: the caller has to be told. */
export function settle(connection: S3Connection, key: string): Promise<Found | undefined> {
  return headObject(connection, key, AbortSignal.timeout(SETTLE_MILLISECONDS));
}

function conditionsOf({ ifAbsent, ifMatch }: Commit, quotes: boolean): { IfNoneMatch?: "*"; IfMatch?: string } {
  if (ifAbsent) return { IfNoneMatch: "*" };
  if (ifMatch !== undefined) return { IfMatch: quotes ? `"${ifMatch}"` : ifMatch };
  return {};
}

function told(connection: S3Connection, { key, size }: Commit, etag: string): ObjectInfo {
  return { key, size, etag, modifiedAt: wholeSeconds(connection.serverTime() ?? connection.now()) };
}

/** What the answer left out: the etag, on some stores, and an upload's time, which is that of its beginning on others. */
async function look(connection: S3Connection, put: Commit, etag: string): Promise<ObjectInfo> {
  const found = await settle(connection, put.key).catch(() => undefined);
  // Replaced already, or not to be read with these credentials.
  if (found?.mark !== put.mark) return told(connection, put, etag);
  const { info } = found;
  if (info.size === put.size) return info;
  const message = `${put.key} has ${info.size} bytes, of ${put.size} that were put. Delete it and put it again.`;
  throw new StoreError("put_unsettled", message, { subject: put.key });
}

function exists(key: string, cause: unknown): AlreadyExistsError {
  return new AlreadyExistsError("object_exists", `${key} exists and stays as it is.`, { subject: key, cause });
}

export function putUnsettled(key: string, cause: unknown): StoreError {
  const advice = "was sent, but no answer says whether it is there, and it may still come: look with head, then go on.";
  return new StoreError("put_unsettled", `${key} ${advice}`, { subject: key, cause });
}
