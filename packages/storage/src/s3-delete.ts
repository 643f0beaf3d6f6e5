import { NotFoundError, StoreError } from "@eider/core";
import { Backoff } from "./backoff.js";
import type { S3Connection } from "./s3-connection.js";
import { publicError, S3Failure } from "./s3-errors.js";

/** Keys in one request: S3's limit. */
const BATCH = 1000;
/** Codes of single keys that are worth another try. */
const AGAIN = new Set(["InternalError", "SlowDown", "ServiceUnavailable", "OperationAborted", "RequestTimeout"]);
/** Failed keys that an error names. */
const NAMED = 5;

/** @throws StoreError `delete_failed` that names the first keys; the others are gone */
export async function deleteObjects(
  connection: S3Connection,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const mode = { abortSignal: signal };
  if (keys.length === 1) {
    try {
      await connection.retry(
        "DeleteObject",
        { Key: connection.absolute(keys[0]!) },
        mode,
        ({ status }) => status === 404,
      );
    } catch (error) {
      // Some stores answer 404 for an absent object; one for an absent bucket says so.
      if (!(error instanceof S3Failure && error.error instanceof NotFoundError)) throw publicError(error);
    }
    return;
  }
  for (let start = 0; start < keys.length; start += BATCH) {
    signal.throwIfAborted();
    await deleteBatch(connection, keys.slice(start, start + BATCH), signal);
  }
}

async function deleteBatch(connection: S3Connection, keys: readonly string[], signal: AbortSignal): Promise<void> {
  const backoff = new Backoff(connection.settings.retry);
  let left = [...new Set(keys)];
  while (left.length > 0) {
    const Objects = left.map((key) => ({ Key: connection.absolute(key) }));
    const input = { Delete: { Objects, Quiet: true } };
    const { Errors = [] } = await connection.retry("DeleteObjects", input, { abortSignal: signal });
    const failed = Errors.filter(({ Code }) => Code !== "NoSuchKey");
    if (failed.length === 0) return;
    left = failed.map(({ Key }) => connection.relative(Key ?? ""));
    const codes = [...new Set(failed.map(({ Code }) => Code ?? "without a code"))].join(", ");
    const named = `${left.slice(0, NAMED).join(", ")}${left.length > NAMED ? " and others" : ""}`;
    const message = `${left.length} of ${keys.length} objects were not deleted (${codes}): ${named}.`;
    const retryable = failed.every(({ Code }) => AGAIN.has(Code ?? ""));
    const error = new StoreError("delete_failed", message, { subject: left[0]!, retryable });
    await backoff.wait(error, signal);
  }
}
