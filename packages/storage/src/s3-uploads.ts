/** Uploads that were begun and never finished, as killed processes leave them. */

import { keyProblem } from "./keys.js";
import type { S3Connection } from "./s3-connection.js";
import { abortUpload } from "./s3-upload.js";
import type { UnfinishedUpload } from "./store.js";

export async function* listUploads(
  connection: S3Connection,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<UnfinishedUpload> {
  const mode = signal === undefined ? {} : { abortSignal: signal };
  for (let markers = {}; ; ) {
    const input = { Prefix: connection.absolute(prefix), ...markers };
    const page = await connection.retry("ListMultipartUploads", input, mode);
    for (const { Key = "", UploadId, Initiated } of page.Uploads ?? []) {
      const key = connection.relative(Key);
      if (UploadId === undefined || Initiated === undefined || keyProblem(key) !== undefined) continue;
      yield {
        key,
        startedAt: Number(Initiated),
        abort: async () => void (await abortUpload(connection, key, UploadId)),
      };
    }
    if (!page.IsTruncated || page.NextKeyMarker === undefined) return;
    markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
  }
}
