import type { Answer } from "./answer.js";
import type { BucketState } from "./bucket-state.js";
import type { Payload } from "./payload.js";
import type { S3Request } from "./request.js";

/** What S3 limits; smaller in tests that run into them. */
export interface FakeLimits {
  /** Of every part but the last: 5 MiB. */
  readonly minPartBytes: number;
  /** 10,000 */
  readonly maxParts: number;
  /** Of a single PutObject or UploadPart: 5 GiB. */
  readonly maxPutBytes: number;
  /** Of a page of a listing: 1,000. */
  readonly maxKeys: number;
}

/** How a store treats conditional writes: as S3, not at all (the worst there is), or it says that it cannot. */
export type ConditionMode = "keeps" | "ignores" | "refuses";

export interface OperationContext {
  readonly request: S3Request;
  readonly payload: Payload;
  readonly bucket: BucketState;
  readonly limits: FakeLimits;
  readonly conditions: ConditionMode;
  /** R2: all parts but the last have one size, and the last is not larger. */
  readonly equalParts: boolean;
  /** What becomes of a part that is under way when its upload is aborted. */
  readonly lateParts: "refused" | "stick";
  /** What a CompleteMultipartUpload is told that comes again after it succeeded. */
  readonly completeAgain: "succeeds" | "refused";
  /** Milliseconds since the epoch, by the server's clock. */
  readonly now: number;
}

/** One operation, whole and at once. @throws S3Error */
export type Operation = (context: OperationContext) => Answer;
