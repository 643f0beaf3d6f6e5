import { randomUUID } from "node:crypto";
import { PROBE_FOLDER } from "./probe.js";
import type { S3Connection } from "./s3-connection.js";
import { publicError, S3Failure } from "./s3-errors.js";

/**
 * Whether the store looks at `If-None-Match` and `If-Match` when it completes a multipart upload. Ceph and others take
 * them and overwrite. Asked with an object of two bytes, which is deleted again.
 * @throws the public error, or the signal's reason
 */
export async function asksConditionsOfUploads(connection: S3Connection, abortSignal: AbortSignal): Promise<boolean> {
  const Key = connection.absolute(`${PROBE_FOLDER}/${randomUUID()}`);
  const mode = { abortSignal };
  await connection.retry("PutObject", { Key, Body: Buffer.from("1") }, mode);
  try {
    const { UploadId } = await connection.retry("CreateMultipartUpload", { Key }, mode);
    const upload = { Key, UploadId };
    try {
      const part = { ...upload, PartNumber: 1, Body: Buffer.from("2") };
      const { ETag, ChecksumCRC32 } = await connection.retry("UploadPart", part, mode);
      const Parts = [{ PartNumber: 1, ETag, ...(ChecksumCRC32 === undefined ? {} : { ChecksumCRC32 }) }];
      for (const condition of [{ IfNoneMatch: "*" }, { IfMatch: '"00000000000000000000000000000000"' }]) {
        const input = { ...upload, MultipartUpload: { Parts }, ...condition };
        const refused = await connection.retry("CompleteMultipartUpload", input, mode, isRefusal).then(
          () => false,
          (error: unknown) => {
            if (error instanceof S3Failure) return error.status === 412;
            throw error;
          },
        );
        if (!refused) return false;
      }
      return true;
    } finally {
      await connection.retry("AbortMultipartUpload", upload, mode, isRefusal).catch(() => undefined);
    }
  } catch (error) {
    throw publicError(error);
  } finally {
    await connection.retry("DeleteObject", { Key }, mode).catch(() => undefined);
  }
}

/** Not the condition, but the header itself may be refused too. */
function isRefusal({ status }: S3Failure): boolean {
  return (status >= 400 && status < 500 && status !== 408 && status !== 429 && status !== 403) || status === 501;
}
