import { listObjects, listUploads } from "./list-operations.js";
import { abortUpload, completeUpload, createUpload, listParts, uploadPart } from "./multipart-operations.js";
import { deleteObject, deleteObjects, getObject, putObject } from "./object-operations.js";
import type { Operation } from "./operation.js";

/** What can be asked of a bucket, by AWS's names. */
export const OPERATIONS: Readonly<Record<string, Operation>> = {
  HeadBucket: () => ({ status: 200 }),
  PutObject: putObject,
  GetObject: getObject,
  HeadObject: getObject,
  DeleteObject: deleteObject,
  DeleteObjects: deleteObjects,
  ListObjectsV2: listObjects,
  ListMultipartUploads: listUploads,
  CreateMultipartUpload: createUpload,
  UploadPart: uploadPart,
  CompleteMultipartUpload: completeUpload,
  AbortMultipartUpload: abortUpload,
  ListParts: listParts,
};
